"""create_changelog_view: a view of Spark of the rows that snapshots changed, by the name, arguments and columns that it
has in iceberg-spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from boathouse import registry
from boathouse.api.procedures.procedure import Called, Procedure, Row, known_options, number_of
from boathouse.api.table import Table
from boathouse.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
    VersionNotFoundError,
)
from boathouse.expr.identifiers import quote
from boathouse.ops.handle import Handle
from boathouse.table.features import Identifiers
from boathouse.table.history import HistoryEntry
from boathouse.table.location import At
from boathouse.types import Field, MapType, Schema, StructType, VariantType
from boathouse.types.data_types import children

_OPTIONS: Final = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")
_TYPE, _ORDINAL, _SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
_SEVERAL: Final = (
    "Cannot compute updates because there are multiple rows with the same identifier fields. Please make sure the rows "
    "are unique."
)


def _create_changelog_view(called: Called) -> Iterator[Row]:
    given, table = called.given, called.table.refresh()
    if given.get("remove_carryovers") is False:
        raise UnsupportedFeatureError(
            "rows that a commit only carried over are never shown", advice="leave remove_carryovers out"
        )
    net, identifiers = given.get("net_changes", False), _identifiers(table, given)
    updates = given.get("compute_updates", "identifier_columns" in given)
    if updates and net:
        raise InvalidArgumentError("updates cannot be computed of net changes", advice="leave one of them out")
    if updates and not identifiers:
        raise InvalidArgumentError(
            "updates are computed by identifier columns, and the table has none",
            advice="pass identifier_columns => array('id')",
        )
    frame = changelog(called.spark, table, given.get("options", {}))
    if updates:
        frame = _with_updates(frame, identifiers)
    elif net:
        frame = _net(frame, table.schema)
    name = given.get("changelog_view") or f"{called.name}_changes"
    view = name if name.startswith("`") else quote(name)
    frame.createOrReplaceTempView(view)
    yield (view,)


def _identifiers(table: Table, given: Mapping[str, Any]) -> Sequence[str]:
    if "identifier_columns" in given:
        for name in given["identifier_columns"]:
            if not table.schema.places.at(name):
                raise ColumnNotFoundError(
                    f"there is no column `{name}`", advice=f"it has {', '.join(table.schema.names)}"
                )
        return [quote(name) for name in given["identifier_columns"]]
    found = table._handle.snapshot.offers(Identifiers)
    return [] if found is None else [".".join(map(quote, path)) for path in found.columns]


def changelog(spark: Any, table: Table, options: Mapping[str, str]) -> Any:
    """The rows that the snapshots of a range inserted and deleted, without those that a commit only carried over, as a
    DataFrame: `_change_type` is INSERT or DELETE, `_change_ordinal` counts the snapshots of the range from 0, but for
    those that change no row."""
    options = known_options(options, _OPTIONS, ())
    end, entries = _range(table, options)
    columns = [quote(name) for name in end.schema.names]
    if not entries:
        empty = (
            end.scan().to_spark(spark).selectExpr(*columns, f"'' AS {_TYPE}", f"0 AS {_ORDINAL}", f"0L AS {_SNAPSHOT}")
        )
        return spark.createDataFrame([], empty.schema)
    frame = end.changes(entries[0].version).to_spark(spark)
    counted = [e.version for e in entries if e.data_change]
    versions, numbers = ", ".join(f"{v}L" for v in counted), ", ".join(map(str, range(len(counted))))
    ordinal = f"map_from_arrays(array({versions}), array({numbers}))[_commit_version]"
    return frame.selectExpr(
        *columns, f"upper({_TYPE}) AS {_TYPE}", f"{ordinal} AS {_ORDINAL}", f"_commit_version AS {_SNAPSHOT}"
    )


def _range(table: Table, options: Mapping[str, str]) -> tuple[Table, Sequence[HistoryEntry]]:
    """The table at the end of the range, and its snapshots, oldest first. A start is not part of it, an end is."""
    numbers = {name: number_of(options, name) for name in _OPTIONS}
    first, last, since, until = (numbers[name] for name in _OPTIONS)
    for name, a, b in (("start", first, since), ("end", last, until)):
        if a is not None and b is not None:
            raise InvalidArgumentError(
                f"{name}-snapshot-id and {name}-timestamp are both given", advice="leave one out"
            )
    if since is not None and until is not None and since >= until:
        raise InvalidArgumentError("start-timestamp is not before end-timestamp", advice="pass an earlier start")
    entries = _entries(table)
    if until is not None:
        entries = [e for e in entries if e.timestamp_ms <= until]
    elif last is not None:
        table = _at(table, last)
        entries = _entries(table)
    if until is not None and entries:
        table = _at(table, entries[-1].version)
    if since is not None:
        return table, [e for e in entries if e.timestamp_ms > since]
    if first is None:
        return table, entries
    versions = [e.version for e in entries]
    if first in versions:
        return table, entries[versions.index(first) + 1 :]
    if entries and entries[0].parent == first:
        return table, entries
    raise VersionNotFoundError(
        f"the snapshot {first} is not an ancestor of {table.version}", advice="start at one of t.refs.ancestors()"
    )


def _entries(table: Table) -> list[HistoryEntry]:
    """The snapshots up to the table's, oldest first."""
    return [e for e in table._handle.snapshot.history.entries() if not e.metadata_only][::-1]


def _at(table: Table, version: int) -> Table:
    snapshot = table._handle.snapshot
    if version == snapshot.version:
        return table
    found = registry.load(snapshot.format).open(snapshot.context, At(version=version))
    return Table(Handle(found, pinned=True), table._spark, table._timezone)


def _with_updates(frame: Any, identifiers: Sequence[str]) -> Any:
    """A delete and an insert of one identity in one snapshot are an update."""
    window = f"OVER (PARTITION BY {', '.join(identifiers)}, {_ORDINAL})"
    deletes, inserts = (f"count_if({_TYPE} = '{kind}') {window}" for kind in ("DELETE", "INSERT"))
    kind = (
        f"CASE WHEN {deletes} = 0 OR {inserts} = 0 THEN {_TYPE} "
        f"WHEN {deletes} > 1 OR {inserts} > 1 THEN CAST(raise_error('{_SEVERAL}') AS STRING) "
        f"WHEN {_TYPE} = 'DELETE' THEN 'UPDATE_BEFORE' ELSE 'UPDATE_AFTER' END AS {_TYPE}"
    )
    return frame.selectExpr(*(kind if name == _TYPE else quote(name) for name in frame.columns))


def _net(frame: Any, schema: Schema) -> Any:
    """What is left of all changes of each row: it is as often in the result as it was inserted, or deleted, more, and
    all of these are by the snapshot after which that was so ever since."""
    keys = [_key(f) for f in schema]
    row, sum_, total, zero = _free("row", "sum", "total", "zero", taken=frame.columns)
    by = f"PARTITION BY {', '.join(keys)}"
    order = f"{by} ORDER BY {_ORDINAL}, {_TYPE}"
    sign = f"CASE {_TYPE} WHEN 'INSERT' THEN 1 ELSE -1 END"
    counted = frame.selectExpr(
        "*",
        f"row_number() OVER ({order}) AS {row}",
        f"sum({sign}) OVER ({order} ROWS UNBOUNDED PRECEDING) AS {sum_}",
        f"sum({sign}) OVER ({by}) AS {total}",
    )
    last = f"max(CASE WHEN {sum_} = 0 THEN {row} ELSE 0 END) OVER ({by}) AS {zero}"
    kept = counted.selectExpr("*", last).where(f"{total} <> 0 AND {row} = {zero} + 1")
    columns = [quote(name) for name in frame.columns]
    return kept.selectExpr(*columns, f"explode(sequence(1, abs({total}))) AS {row}").selectExpr(*columns)


def _key(field: Field) -> str:
    """A column as Spark can compare it. Raises UnsupportedTypeError."""
    if isinstance(field.type, MapType) and not _has_map(field.type):
        return f"array_sort(map_entries({quote(field.name)}))"
    if _has_map(StructType((field,))):
        raise UnsupportedTypeError(
            f"net changes of rows with `{field.name}`, which is {field.type}, are not offered",
            advice="leave net_changes out",
        )
    return quote(field.name)


def _has_map(type: Any) -> bool:
    """Whether there is something below a type that Spark does not compare."""
    return any(isinstance(f.type, MapType | VariantType) or _has_map(f.type) for f in children(type))


def _free(*wanted: str, taken: Sequence[str]) -> list[str]:
    """Names of columns that a frame does not have."""
    lower = {name.lower() for name in taken}
    prefix = "_net"
    while any(f"{prefix}_{name}" in lower for name in wanted):
        prefix += "_"
    return [quote(f"{prefix}_{name}") for name in wanted]


PROCEDURES: Final = (
    Procedure(
        "create_changelog_view",
        "changelog_view string, options map<string,string>, compute_updates boolean, "
        "identifier_columns array<string>, net_changes boolean, remove_carryovers boolean",
        "changelog_view string",
        _create_changelog_view,
    ),
)
