"""Iceberg compatibility: rules under which a table's files and schema can be described as an Iceberg table.

PROTOCOL.md, "Iceberg Compatibility V1" and "V2". They hold where the protocol has the feature and its property is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow.compute as pc

from boathouse import types as T
from boathouse.delta.actions import MAPPING_MODE, Metadata, Protocol
from boathouse.delta.features.support import ICEBERG_COMPAT, supports
from boathouse.delta.features.type_changes import recorded
from boathouse.delta.schema import parse_type
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.delta.stats.bounds import row_count
from boathouse.errors import UnsupportedFeatureError

_VECTORS: Final = "delta.enableDeletionVectors"
_V1_BANS: Final = (T.ListType, T.MapType, T.NullType)
_V2_ALLOWS: Final = (
    T.IntegerType,
    T.FloatType,
    T.DecimalType,
    T.StringType,
    T.BinaryType,
    T.BooleanType,
    T.TimestampType,
    T.DateType,
    T.ListType,
    T.MapType,
    T.StructType,
)


def active(protocol: Protocol, metadata: Metadata) -> tuple[str, ...]:
    """The features that are in force."""
    return tuple(f for key, f in ICEBERG_COMPAT.items() if supports(protocol, f) and metadata.flag(key))


def is_active(snapshot: DeltaSnapshot) -> bool:
    """Whether files have the values of partition columns, too, at their end."""
    return bool(active(snapshot.protocol, snapshot.metadata))


def check(protocol: Protocol, metadata: Metadata, where: str, adopts: bool = False) -> None:
    """Raises UnsupportedFeatureError for a schema, feature or property that a version in force excludes, and for files
    that a new table adopts: they have no field ids."""
    found = active(protocol, metadata)
    if not found:
        return
    name = found[0]
    if len(found) > 1:
        raise _refused(f"{' and '.join(found)} exclude each other", where, "set the property of one of them to false")
    if metadata.column_mapping == "none":
        raise _refused(f"{name} needs column mapping", where, f"set {MAPPING_MODE} to name")
    vectors = supports(protocol, "deletionVectors")
    if vectors and name == "icebergCompatV1":
        raise _refused(f"{name} excludes the feature deletionVectors", where, "call drop_feature('deletionVectors')")
    if vectors and metadata.flag(_VECTORS):
        raise _refused(f"{name} excludes deletion vectors", where, f"set {_VECTORS} to false")
    if adopts:
        raise _refused(f"{name} needs field ids in every file, which the files lack", where, "write them as new ones")
    _check_types(name, metadata.schema, where)
    _check_type_changes(name, metadata)


def _check_types(name: str, schema: T.Schema, where: str) -> None:
    for path, f in schema.walk():
        banned = isinstance(f.type, _V1_BANS) if name == "icebergCompatV1" else not isinstance(f.type, _V2_ALLOWS)
        if banned:
            raise _refused(f"column `{'.'.join(path)}` is {f.type}, which {name} excludes", where, "use another type")


def _check_type_changes(name: str, metadata: Metadata) -> None:
    """Iceberg knows fewer of them than Delta does."""
    for path, f in metadata.schema.walk():
        for change in recorded(f, path, metadata.where):
            match [parse_type(change[key], metadata.where) for key in ("fromType", "toType")]:
                case [T.IntegerType(), T.IntegerType()] | [T.FloatType(), T.FloatType()]:
                    continue
                case [T.DecimalType(_, before), T.DecimalType(_, after)] if before == after:
                    continue
            words = f"column `{'.'.join(path)}` was {change['fromType']} and became {change['toType']}"
            raise _refused(f"{words}, which {name} excludes", metadata.where, "write the rows into a new table")


def check_change(newest: DeltaSnapshot, protocol: Protocol, metadata: Metadata, replaces: bool, restores: bool) -> None:
    """Raises UnsupportedFeatureError unless the metaData may follow `newest`; `replaces` if it has a new schema, and
    `restores` if other files than the newest ones come with it."""
    where = newest.location.uri
    check(protocol, metadata, where)
    found = active(protocol, metadata)
    if not found:
        return
    before, after = newest.metadata.partition_columns, metadata.partition_columns
    if replaces and before and [c.lower() for c in before] != [c.lower() for c in after]:
        raise _refused(
            f"a table with {found[0]} that is partitioned by {', '.join(before)} stays so",
            where,
            "keep the names of the partition columns",
        )
    if not restores and found[0] not in active(newest.protocol, newest.metadata):
        _check_files(found[0], newest)


def _check_files(name: str, newest: DeltaSnapshot) -> None:
    """Whether the files that are there satisfy what a version asks for when it is turned on."""
    where, files = newest.location.uri, 0
    for batch in newest.files():
        files += batch.num_rows
        if pc.any(pc.fill_null(pc.not_equal(batch.column("deleted"), 0), True)).as_py():
            raise _refused(f"{name} excludes deletion vectors, which files have", where, "call optimize() first")
        if batch.column("rows").null_count:
            raise _refused(f"{name} needs the number of rows of every file", where, "overwrite the table")
    if files and newest.metadata.partition_columns and name == "icebergCompatV1":
        raise _refused(
            f"{name} needs the values of partition columns in every file, and the files lack them",
            where,
            "create a table with the property, or use icebergCompatV2",
        )


def check_added(protocol: Protocol, metadata: Metadata, added: Iterable[Mapping[str, Any]], where: str) -> None:
    """Raises UnsupportedFeatureError for an add action that a version in force excludes."""
    found = active(protocol, metadata)
    if not found:
        return
    for action in added:
        if action.get("deletionVector") is not None:
            raise _refused(
                f"{found[0]} excludes deletion vectors ({action['path']})", where, "set the property to false"
            )
        if row_count(action.get("stats")) is None:
            raise _refused(f"{found[0]} needs the number of rows of {action['path']}", where, "rewrite that file first")


def _refused(what: str, where: str, advice: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(what, where=where, advice=advice)
