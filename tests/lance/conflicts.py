"""Two concurrent commits: what the reference says of each pair, as data; who makes them; and which rows are left.

The verdicts are those of `rust/lance/src/io/commit/conflict_resolver.rs` of Lance for commits on the same fragment, and
on the same column where they name one, of other rows and other keys. pylance itself is held to them too.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits.protobuf import Message
from boathouse.errors import CommitConflictError
from boathouse.lance.manifests.file import parse, serialise
from boathouse.lance.manifests.messages import ReserveFragments, Transaction
from boathouse.lance.manifests.versions import manifest_name, parse_name

from .overlaid import file_of

lance = pytest.importorskip("lance")
LanceOperation = lance.LanceOperation
Compaction = pytest.importorskip("lance.optimize").Compaction

REBASED, RETRIED, REFUSED = "o", "r", "x"

FIRSTS = (
    "append", "delete", "update", "overwrite", "create_index", "rewrite", "merge", "project", "restore",
    "reserve_fragments", "update_config", "data_replacement", "update_mem_wal_state", "update_bases", "data_overlay",
)  # fmt: skip
_GRID = {
    "append":           "o o o x o o o o x o o o x o o",
    "delete":           "o r r x o r r o x o o r x o o",
    "update":           "o r r x o r r o x o o r o o r",
    "overwrite":        "o o o r o o o o o o o o x o o",
    "create_index":     "o o o x o r o o x o o r x o o",
    "rewrite":          "o r r x r r r o x o o r o o r",
    "merge":            "r r r x o r r x x o o r x o r",
    "project":          "o o o x o o r r x o o o x o o",
    "restore":          "o o o o o o o o o o o o x o o",
    "update_config":    "o o o o o o o o o o o o o o o",
    "data_replacement": "o o r x r r r o x o o r x o o",
    "update_bases":     "o o o o o o o o o o o o o o o",
    "data_overlay":     "o o o x o r r o x o o o x o o",
}  # fmt: skip
REFERENCE = {(later, first): v for later, row in _GRID.items() for first, v in zip(FIRSTS, row.split(), strict=True)}
"""By the commit that comes second, planned on the version before, and the one that came first."""

HERE = (
    "append", "delete", "update", "overwrite", "create_index", "rewrite", "merge", "columns", "data_replacement",
    "project", "restore", "update_config",
)  # fmt: skip
"""Those that are made here; `columns` is a merge that has values."""

_ON_THE_HEAD = "it is built on the fields and fragments of the head, so nothing of it is lost"
_THE_SAME = "what is planned again is the same version"
_STALE = "files were written with the column that was dropped"
_COMPUTED = "values are computed again, of every row, from the columns that are left"
_UNREAD = "what the state of MemWAL means is not known here"
OTHERWISE = {
    ("delete", "delete"): (REBASED, "the deleted rows of both are put together, also where they are the same"),
    ("delete", "data_overlay"): (RETRIED, "its condition may be true of other rows now"),
    ("rewrite", "create_index"): (REBASED, "ours takes the new index along, or its fragments are searched without it"),
    **{
        ("merge", first): (REBASED, _ON_THE_HEAD)
        for first in ("append", "delete", "update", "rewrite", "data_replacement", "merge", "project", "data_overlay")
    },
    **{("project", first): (REBASED, _ON_THE_HEAD) for first in ("merge", "project")},
    ("columns", "project"): (RETRIED, _COMPUTED),
    **{("data_replacement", first): (RETRIED, _COMPUTED) for first in ("append", "delete", "project", "data_overlay")},
    ("data_replacement", "create_index"): (REBASED, "the new index no longer covers what has other values"),
    ("update", "project"): (RETRIED, _STALE),
    ("rewrite", "project"): (RETRIED, _STALE),
    **{
        ("restore", first): (RETRIED, _THE_SAME)
        for first in (
            "append", "delete", "update", "overwrite", "rewrite", "merge", "project", "restore", "data_replacement",
            "data_overlay",
        )
    },
    **{(later, "update_mem_wal_state"): (REFUSED, _UNREAD) for later in HERE},
}  # fmt: skip
"""Where ours differs, and why."""


def expected_of_pylance(later: str, first: str) -> str:
    return REFERENCE[_merge(later), _merge(first)]


def expected_of_ours(later: str, first: str) -> str:
    """The verdict on a change of ours."""
    otherwise = OTHERWISE.get((later, _merge(first)))
    return expected_of_pylance(later, first) if otherwise is None else otherwise[0]


def _merge(operation: str) -> str:
    return "merge" if operation == "columns" else operation


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass
class State:
    """What a table holds: rows by their `id`, of these columns; its config; and which rows were overlaid."""

    columns: list[str]
    rows: dict[int, dict[str, Any]]
    config: dict[str, str]
    overlaid: frozenset[int] = frozenset()

    def table(self) -> list[dict[str, Any]]:
        """The rows with every column, by id."""
        return [{c: self.rows[i].get(c) for c in self.columns} for i in sorted(self.rows)]


COLUMNS = ("id", "v", "s", "w")
SIDES = {
    # ids appended and overwritten with, the id deleted, the one updated, the one overlaid, the column added and the one
    # dropped
    "first": (100, 300, 1, 3, 5, "c_first", "s"),
    "later": (200, 400, 2, 4, 6, "c_later", "w"),
    "apart": (200, 400, 12, 14, 16, "c_later", "w"),
}


def rows_from(start: int, count: int) -> pa.Table:
    ids = list(range(start, start + count))
    types = (pa.int64(), pa.int64(), pa.string(), pa.int64())
    columns = (ids, [i * 7 % 50 for i in ids], [f"s{i}" if i % 3 else None for i in ids], [0] * count)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types)], names=list(COLUMNS))


def create(uri: str, stable: bool) -> None:
    """Two versions: a fragment of ids 0 to 9, and one more of 10 to 19."""
    lance.write_dataset(rows_from(0, 10), uri, enable_stable_row_ids=stable)
    lance.write_dataset(rows_from(10, 10), uri, mode="append")


def begun(fragments: int = 2) -> State:
    rows = rows_from(0, 10 * fragments).to_pylist()
    return State(list(COLUMNS), {r["id"]: r for r in rows}, {})


def after(state: State, operation: str, side: str, by_us: bool) -> State:
    """The state after a commit. An overwrite of pylance brings its own columns, one of ours has those of the table. Of
    pylance's new values of a column those do not count that an overlay has which came meanwhile."""
    appended, overwritten, deleted, updated, overlaid, added, dropped = SIDES[side]
    state = copy.deepcopy(state)
    match operation:
        case "append":
            state.rows |= {r["id"]: r for r in rows_from(appended, 3).to_pylist()}
        case "delete":
            state.rows.pop(deleted, None)
        case "update" if updated in state.rows:
            state.rows[updated]["v"] += 1000
        case "overwrite":
            state.rows = {r["id"]: r for r in rows_from(overwritten, 4).to_pylist()}
            state.columns = state.columns if by_us else list(COLUMNS)
        case "merge" | "columns":
            state.columns.append(added)
            for row in state.rows.values():
                row[added] = row["id"] * 2 if operation == "columns" else None
        case "project":
            state.columns.remove(dropped)
        case "restore":
            state = begun(1)
        case "update_config":
            state.config[side] = "1"
        case "data_replacement":
            for id in state.rows if by_us else set(state.rows) & set(range(10)) - state.overlaid:
                state.rows[id]["v"] = id + 5000
        case "data_overlay" if overlaid in state.rows:
            state.rows[overlaid]["v"] = overlaid + 7000
            state.overlaid |= {overlaid}
    return state


# -- who makes them ----------------------------------------------------------------------------------------------------


def ours(uri: str, operation: str, side: str) -> Callable[[], Any]:
    """A commit of ours, planned when it is called."""
    appended, overwritten, deleted, updated, _, added, dropped = SIDES[side]
    t = bh.open(uri, format="lance")
    match operation:
        case "append":
            return lambda: t.append(rows_from(appended, 3))
        case "delete":
            return lambda: t.delete(f"id = {deleted}")
        case "update":
            return lambda: t.update({"v": "v + 1000"}, where=f"id = {updated}")
        case "overwrite":
            return lambda: t.overwrite(rows_from(overwritten, 4))
        case "create_index":
            return lambda: t.create_index("v", name=f"{side}_idx")
        case "rewrite":
            return t.optimize
        case "merge":
            return lambda: t.add_column(added, "bigint")
        case "columns":
            return lambda: t.add_columns({added: "id * 2"})
        case "data_replacement":
            return lambda: t.add_columns({"v": "id + 5000"}, replace=True)
        case "project":
            return lambda: t.drop_column(dropped)
        case "restore":
            return lambda: t.restore(version=1)
        case "update_config":
            return lambda: t.set_properties({side: "1"})
    raise AssertionError(operation)


def theirs(uri: str, operation: str, side: str) -> Callable[[], Any]:
    """A commit of pylance, planned now. The state of MemWAL, and fragments that are reserved alone, it has no call for:
    they are put by hand."""
    appended, overwritten, deleted, updated, overlaid, added, dropped = SIDES[side]
    ds = lance.dataset(uri)

    def committing(made: Any) -> Callable[[], Any]:
        return lambda: lance.LanceDataset.commit(uri, made, read_version=ds.version)

    match operation:
        case "append":
            return committing(LanceOperation.Append(_written(rows_from(appended, 3), uri)))
        case "delete":
            return committing(LanceOperation.Delete([_without(ds, deleted)], [], f"id = {deleted}"))
        case "update":
            row = ds.to_table(filter=f"id = {updated}")
            row = row.set_column(1, "v", pa.array([v + 1000 for v in row.column("v").to_pylist()], pa.int64()))
            made = LanceOperation.Update(
                updated_fragments=[_without(ds, updated)],
                new_fragments=_written(row, uri),
                fields_for_preserving_frag_bitmap=[0, 1, 2, 3],
            )
            return committing(made)
        case "overwrite":
            new = rows_from(overwritten, 4)
            return committing(LanceOperation.Overwrite(new.schema, _written(new, uri)))
        case "create_index":
            return lambda: ds.create_scalar_index("v", "BTREE", name=f"{side}_idx")
        case "rewrite":
            done = [task.execute(ds) for task in Compaction.plan(ds, {}).tasks]
            return lambda: Compaction.commit(ds, done)
        case "merge":
            return lambda: ds.add_columns(pa.field(added, pa.int64()))
        case "columns":
            return lambda: ds.add_columns({added: "id * 2"})
        case "project":
            return lambda: ds.drop_columns([dropped])
        case "restore":
            return committing(LanceOperation.Restore(1))
        case "update_config":
            return lambda: ds.update_config({side: "1"})
        case "data_replacement":
            return committing(LanceOperation.DataReplacement([_replacement(uri, ds)]))
        case "data_overlay":
            if not hasattr(LanceOperation, "DataOverlay"):
                pytest.skip("this pylance has no overlays")
            return committing(LanceOperation.DataOverlay([_overlay(uri, ds, overlaid)]))
        case "update_bases":
            return lambda: ds.add_bases([lance.DatasetBasePath(f"{uri}-{side}", name=side)])
        case "reserve_fragments":
            return lambda: by_hand(Path(uri), reserve_fragments=ReserveFragments(num_fragments=5))
        case "update_mem_wal_state":
            return lambda: by_hand(Path(uri), unknown=b"\x82\x07\x00")
    raise AssertionError(operation)


def _written(rows: pa.Table, uri: str) -> Any:
    """Fragments of the table that no version has."""
    return lance.fragment.write_fragments(rows, uri, mode="append")


def _without(ds: Any, id: int) -> Any:
    """The metadata of the fragment that has a row, without it."""
    for fragment in ds.get_fragments():
        if fragment.count_rows(f"id = {id}"):
            return fragment.delete(f"id = {id}")
    raise AssertionError(id)


def _replacement(uri: str, ds: Any) -> Any:
    """The first column `v` of the first fragment, in another file."""
    return LanceOperation.DataReplacementGroup(0, _file(uri, ds, [i + 5000 for i in range(10)]))


def _overlay(uri: str, ds: Any, id: int) -> Any:
    """Another value of the column `v` in a row of the first two fragments."""
    overlay = LanceOperation.DataOverlayFile(_file(uri, ds, [id + 7000]), [id % 10])
    return LanceOperation.DataOverlayGroup(id // 10, [overlay])


def _file(uri: str, ds: Any, values: list[int]) -> Any:
    """A data file of the column `v`."""
    (field,) = [f for f in ds.lance_schema.fields() if f.name() == "v"]
    return file_of(uri, pa.table({"v": pa.array(values, pa.int64())}), [field.id()])


def by_hand(root: Path, **operation: Message | bytes) -> None:
    """One more version, of this operation, that changes no row."""
    newest = min((root / "_versions").glob("*.manifest"), key=lambda p: -parse_name(p.name).version)
    document = parse(newest.read_bytes(), where=str(newest))
    manifest, transaction = document.manifest, Transaction(uuid=str(uuid.uuid4()), **operation)
    if transaction.reserve_fragments is not None:
        highest = max(manifest.max_fragment_id or 0, *(f.id for f in manifest.fragments))
        manifest = replace(manifest, max_fragment_id=highest + transaction.reserve_fragments.num_fragments)
    manifest = replace(manifest, version=manifest.version + 1, transaction_file="")
    transaction = replace(transaction, read_version=document.manifest.version)
    body = serialise(replace(document, manifest=manifest, transaction=transaction))
    (root / "_versions" / manifest_name(manifest.version, "V2")).write_bytes(body)


def verdict_of_pylance(commit: Callable[[], Any]) -> str:
    """What became of it. Raises what is no verdict."""
    try:
        commit()
    except Exception as error:
        text = str(error)
        if "Retryable" in text or "preempted" in text:
            return RETRIED
        if "incompatible" in text.lower():
            return REFUSED
        raise
    return REBASED


def verdict_of_ours(commit: Callable[[], Any]) -> str:
    """What became of it; a second compaction has nothing to do when it is planned again."""
    try:
        result = commit()
    except CommitConflictError:
        return REFUSED
    return RETRIED if result.retries or result.commit is None else REBASED
