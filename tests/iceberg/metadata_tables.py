"""Compares metadata tables with pyiceberg's, where the reference and pyiceberg mean the same."""

import datetime as dt
from contextlib import suppress

import numpy as np
import pyarrow as pa

BY_PYICEBERG = (
    "entries", "files", "data_files", "delete_files", "history", "metadata_log_entries", "snapshots", "refs",
    "manifests", "partitions", "all_data_files", "all_delete_files", "all_files", "all_manifests",
)  # fmt: skip
AT_A_SNAPSHOT = ("entries", "files", "data_files", "delete_files", "partitions")


class Map(dict):
    """A map, whose keys are values."""


def plain(value, type):
    """Maps as dicts (no map is an empty one), times as milliseconds, everything else as Python has it."""
    if value is None:
        return Map() if pa.types.is_map(type) else None
    if pa.types.is_map(type):
        return Map(value)
    if pa.types.is_struct(type):
        return {f.name: plain(value[f.name], f.type) for f in type}
    if pa.types.is_list(type):
        return [plain(v, type.value_type) for v in value]
    if isinstance(value, dt.datetime):
        return round((value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp() * 1000)
    return value


def rows(table):
    return [{n: plain(v, table.schema.field(n).type) for n, v in row.items()} for row in table.to_pylist()]


def within(mine, theirs):
    """What of `mine` pyiceberg has too: it lacks columns, and members of structs."""
    if isinstance(mine, dict) and isinstance(theirs, dict) and not isinstance(mine, Map):
        return {k: within(v, theirs[k]) for k, v in mine.items() if k in theirs}
    if isinstance(mine, list) and isinstance(theirs, list):
        return [within(a, b) for a, b in zip(mine, theirs)] if len(mine) == len(theirs) else mine
    return mine


def theirs_as_ours(name, row, ours):
    """pyiceberg's row, where it says the same in another way, or says more that nobody asked for."""
    if not ours.get("partition", True) or "partition" not in ours:
        row.pop("partition", None)
    file = row.get("data_file")
    if file is not None and "partition" not in ours["data_file"]:
        file.pop("partition", None)
    if row.get("readable_metrics") is not None:
        # It has one struct for each top-level column; only those of simple types mean anything.
        there = ours["readable_metrics"]
        row["readable_metrics"] = {k: v for k, v in row["readable_metrics"].items() if k in there}
    for summary in row.get("partition_summaries") or ():
        summary["lower_bound"] = "null" if summary["lower_bound"] is None else summary["lower_bound"]
        summary["upper_bound"] = "null" if summary["upper_bound"] is None else summary["upper_bound"]
    if name == "metadata_log_entries":
        row["file"] = row["file"].removeprefix("file://")
    if name == "manifests" or name == "all_manifests":
        row["partition_summaries"] = row["partition_summaries"] or None
        as_numbers(row)
    return row


def as_numbers(row):
    """Floats are spelled as Java does by us, and as Python does by pyiceberg, which shows them as doubles."""
    for summary in row["partition_summaries"] or ():
        for bound in ("lower_bound", "upper_bound"):
            with suppress(ValueError):
                summary[bound] = str(np.float32(summary[bound]))


def ours_as_theirs(name, row):
    if name == "metadata_log_entries":
        row["file"] = row["file"].removeprefix("file://")
    if name == "manifests" or name == "all_manifests":
        row["partition_summaries"] = row["partition_summaries"] or None
        as_numbers(row)
    return row


def agree(name, ours, theirs):
    """Both tables have the same rows, as far as pyiceberg has the columns; in any order."""
    mine, found = rows(ours), rows(theirs)
    assert len(mine) == len(found), name
    if mine:
        found = [theirs_as_ours(name, row, mine[0]) for row in found]
        mine = [within(ours_as_theirs(name, row), found[0]) for row in mine]
    for a, b in zip(sorted(mine, key=key), sorted(found, key=key)):
        assert repr(a) == repr({k: b[k] for k in a}) or equal(a, {k: b[k] for k in a}), name
        assert set(a) == set(b), name


def key(row):
    file = row.get("data_file") or row
    small = {k: v for k, v in file.items() if k not in ("readable_metrics", "summary")}
    return repr([row.get("status"), row.get("sequence_number"), sorted(small.items(), key=repr)])


def equal(a, b):
    """As ==, but NaN equals NaN, and the order of keys does not matter."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b or (a != a and b != b)
