"""New tables and files: schema, partitioning, properties, and whether this library may write at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from boathouse.arrow.filesystem import data_files
from boathouse.bits.environment import switched_on
from boathouse.delta.actions import MAPPING_MODE, Metadata, Protocol, text_of
from boathouse.delta.data_writer import data_schema
from boathouse.delta.features.change_data import FEED, is_recorded, recording
from boathouse.delta.features.change_data import check_names as check_feed
from boathouse.delta.features.column_mapping import MAX_ID, completed, enabled, mode_of
from boathouse.delta.features.computed import computed, generation, with_defaults, with_generation
from boathouse.delta.features.constraints import constraints, invariants
from boathouse.delta.features.domains import check_columns, clustering
from boathouse.delta.features.iceberg_compat import check as check_compat
from boathouse.delta.features.iceberg_compat import is_active
from boathouse.delta.features.identity import check_partitioning, declared, identities
from boathouse.delta.features.row_ids import ID_COLUMN, VERSION_COLUMN, carried
from boathouse.delta.features.row_tracking import named
from boathouse.delta.features.support import (
    ASKED,
    FEATURES,
    MAX_READER,
    MAX_WRITER,
    V2_POLICY,
    VERSIONS,
    asked_by_name,
    check_write,
    lowest_protocol,
    supports,
    type_feature,
    without_names,
)
from boathouse.delta.log.mixed_writers import check_mixed_writers
from boathouse.delta.names import OF_FILES, check_characters, check_names, check_own_keys
from boathouse.delta.property_names import PROPERTIES
from boathouse.delta.schema import parse_schema, schema_json, without_keys
from boathouse.delta.snapshot import DeltaSnapshot, partition_spec
from boathouse.delta.tasks import settings
from boathouse.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    SchemaError,
    UnsafeStorageError,
    UnsupportedFeatureError,
)
from boathouse.parquet.schema import to_parquet_schema
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable, ReplaceSchema
from boathouse.table.tasks import RowCondition, WriteContext
from boathouse.types import NullType, PartitionField, PartitionSpec, Schema
from boathouse.types.data_types import TIMESTAMP_NTZ, children

TARGET_BYTES: Final = 128 << 20
_KEPT: Final = frozenset((MAX_ID, ID_COLUMN, VERSION_COLUMN))
"""Properties that writers keep of their own."""
_FLAGS: Final = frozenset(
    """delta.appendOnly delta.checkpoint.writeStatsAsJson delta.checkpoint.writeStatsAsStruct
    delta.enableChangeDataFeed delta.enableDeletionVectors delta.enableIcebergCompatV1 delta.enableIcebergCompatV2
    delta.enableInCommitTimestamps delta.enableRowTracking delta.enableTypeWidening delta.enableVariantShredding
    delta.rowTrackingSuspended""".split()  # noqa: SIM905
)
_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([kmgtp])b?|b)?")
SHREDDING: Final = "delta.enableVariantShredding"
PROFILES: Final[Mapping[str, Mapping[str, str]]] = {
    "modern": {
        "delta.enableDeletionVectors": "true",
        MAPPING_MODE: "name",
        "delta.enableInCommitTimestamps": "true",
    }
}
"""Names for properties of new tables."""


def create(where: str, table: CreateTable, snapshot: DeltaSnapshot | None = None) -> tuple[Schema, PartitionSpec]:
    """The schema and spec as Delta stores them. Raises SchemaError, UnsupportedTypeError, UnsupportedFeatureError."""
    table = profiled(table, where)
    check_own_keys(table.schema, where)
    check_names(table.schema.fields, "", where)
    if mode_of(table.properties, where) == "none":
        check_characters(table.schema.fields, where)
    if text_of(table.properties.get(FEED, "")).lower() == "true":
        check_feed(table.schema, where)
    plain = with_generation(without_keys(table.schema, OF_FILES), table.generated)
    plain = with_defaults(plain, table.defaults)
    if snapshot is None:
        plain = declared(plain, table.identities, where)
    schema = parse_schema(schema_json(plain), where)
    spec = partition_spec(schema, _partition_columns(schema, table.partition_by, where))
    check_partitioning(schema, [f.name for f in spec], where)
    check_columns(table.cluster_by, schema, bool(spec.fields), where)
    _check_stored(schema, spec, where)
    if snapshot is not None:
        check_types(schema, snapshot)
        return schema, spec
    if table.borrows:
        raise UnsupportedFeatureError(
            "a Delta table of files that stay another's is not offered", where=where, advice="make a shallow clone"
        )
    check_properties(table.properties, where)
    metadata = Metadata.parse(new_metadata("", schema, (), table.properties, where, table.adopts), where)
    protocol = Protocol.parse(first_protocol(schema, table), where)
    check_write(protocol, metadata, where)
    check_compat(protocol, metadata, where, table.adopts)
    return metadata.schema, partition_spec(metadata.schema, [f.name for f in spec])


def first_protocol(schema: Schema, table: CreateTable) -> dict[str, Any]:
    """The protocol action of a new table."""
    asked = {f"{ASKED}clustering": "supported"} if table.cluster_by else {}
    return lowest_protocol(schema, {**table.properties, **asked})


def profiled(table: CreateTable, where: str) -> CreateTable:
    """The table with the properties of its profile; those that are given count. Raises UnsupportedFeatureError."""
    if table.profile is None:
        return table
    properties = PROFILES.get(table.profile)
    if properties is None:
        raise UnsupportedFeatureError(
            f"Delta tables have no profile {table.profile!r}", where=where, advice=f"there are {', '.join(PROFILES)}"
        )
    return replace(table, properties={**properties, **table.properties}, profile=None)


def _check_stored(schema: Schema, spec: PartitionSpec, where: str) -> None:
    if not len(to_parquet_schema(data_schema(schema, spec))):
        raise SchemaError(
            "every column is a partition column or void, so that files would have no column",
            where=where,
            advice="leave a column out of partition_by, or add one",
        )


def check_replaced(snapshot: DeltaSnapshot, edit: ReplaceSchema) -> None:
    """Raises what `create` raises for the schema and partitioning of an overwrite."""
    fields = snapshot.partitioning.current.fields if edit.partition_by is None else edit.partition_by
    properties = dict(snapshot.properties)
    table = CreateTable(edit.schema, tuple(fields), properties, generated=edit.generated, defaults=edit.defaults)
    create(snapshot.location.uri, table, snapshot)


def new_metadata(
    id: str,
    schema: Schema,
    partition_columns: Iterable[str],
    configuration: Mapping[str, object],
    where: str,
    adopts: bool = False,
) -> dict[str, Any]:
    """The metaData action of a new table; with column mapping, if the configuration asks for it. If the table `adopts`
    files, they have the columns' own names, and no ids: raises UnsupportedFeatureError if ids are asked for."""
    found: dict[str, Any] = {
        "id": id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_json(schema),
        "partitionColumns": list(partition_columns),
        "configuration": {k: text_of(v) for k, v in without_names(configuration).items()},
    }
    found = dict(named(found, None, where))
    mode = mode_of(configuration, where)
    if mode == "none":
        return found
    if adopts and mode == "id":
        raise UnsupportedFeatureError(
            f"the files that are there have no field ids, which {MAPPING_MODE}=id needs",
            where=where,
            advice="set it to name",
        )
    if adopts:
        return enabled(found)
    found["configuration"] = {**found["configuration"], MAPPING_MODE: mode}
    # Not the id, which every attempt to create the table makes again.
    return {**completed(found, {"id": where, "schemaString": found["schemaString"]}), "id": id}


def check_types(schema: Schema, snapshot: DeltaSnapshot) -> None:
    """Raises UnsupportedFeatureError for a type that the table's protocol does not support."""
    for path, f in schema.walk():
        name = type_feature(f.type)
        if name and not (supports(snapshot.protocol, name) or supports(snapshot.protocol, f"{name}-preview")):
            raise UnsupportedFeatureError(
                f"column `{'.'.join(path)}` is {f.type}, which needs the Delta feature {name}",
                where=snapshot.location.uri,
                advice=f"set the property {ASKED}{name} to supported first: readers then need reader version 3; or "
                f"cast the column to {'timestamp' if f.type == TIMESTAMP_NTZ else 'a string of JSON'}",
            )


def _partition_columns(schema: Schema, fields: Iterable[PartitionField], where: str) -> tuple[str, ...]:
    names: list[str] = []
    for f in fields:
        if f.transform.name != "identity" or len(f.source) != 1:
            raise UnsupportedFeatureError(
                f"Delta tables are partitioned by columns, not by {f.transform} of `{'.'.join(f.source)}`",
                where=where,
                advice="add a column with that value and partition by it",
            )
        try:
            found = schema.field(f.source[0])
        except ColumnNotFoundError as error:
            error.where = where
            raise
        if children(found.type) or isinstance(found.type, NullType) or str(found.type) == "variant":
            raise SchemaError(f"column `{found.name}` of type {found.type} cannot partition a table", where=where)
        if found.name in names:
            raise InvalidArgumentError(f"`{found.name}` occurs twice in partition_by", where=where)
        names.append(found.name)
    return tuple(names)


def check_properties(properties: Mapping[str, object], where: str) -> None:
    """Raises UnsupportedFeatureError for a property of Delta's that requires an unsupported feature."""
    for key, value in properties.items():
        if key in _KEPT and (value is not None or key == MAX_ID):
            raise InvalidArgumentError(
                f"{key} is kept by the writers of a table, and cannot be set", where=where, advice="leave it out"
            )
        if key.startswith(ASKED):
            _check_asked(key, value, where)
        if key in VERSIONS:
            _check_version(key, value, where)
        if value is None or not key.startswith("delta.") or key.startswith(ASKED) or key in VERSIONS:
            continue
        text = text_of(value).strip().lower()
        if key not in PROPERTIES:
            raise UnsupportedFeatureError(
                f"the table property {key}={text} requires a Delta feature that is not offered here",
                where=where,
                advice="leave it out",
            )
        if key == "delta.checkpointInterval" and not (text.isdigit() and int(text) > 0):
            raise InvalidArgumentError(f"{key} is {text!r}, not a positive number", where=where)
        if key == V2_POLICY and text not in ("classic", "v2"):
            raise InvalidArgumentError(f"{key} is {text!r}, not classic or v2", where=where)
        if key == "delta.targetFileSize" and file_size(text) is None:
            raise InvalidArgumentError(f"{key} is {text!r}, not a size", where=where, advice="write it as 128mb")
        if key in _FLAGS and text not in ("true", "false"):
            raise InvalidArgumentError(f"{key} is {text!r}, not true or false", where=where)


def _check_version(key: str, value: object, where: str) -> None:
    """A version of the protocol is asked for, with the features that it implies."""
    most = MAX_READER if key == VERSIONS[0] else MAX_WRITER
    text = "" if value is None else text_of(value).strip()
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise InvalidArgumentError(
            f"{key} is {value!r}, not a version from 1 to {most}",
            where=where,
            advice="a protocol only grows; a feature goes by t.drop_feature(name)",
        )


def _check_asked(key: str, value: object, where: str) -> None:
    """A feature is asked for by name, to be supported."""
    name = asked_by_name({key: "supported"})
    if not name or not FEATURES[name[0]].write:
        raise UnsupportedFeatureError(
            f"the Delta feature {key[len(ASKED) :]} is not offered here", where=where, advice="leave it out"
        )
    if value is None or text_of(value).strip().lower() not in ("supported", "enabled"):
        raise InvalidArgumentError(
            f"{key} is {value!r}, not supported", where=where, advice="features are added by name, and not dropped"
        )


def write_context(
    context: TableContext,
    schema: Schema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
    write_id: str,
    conditions: tuple[RowCondition, ...] = (),
) -> WriteContext:
    """How files for this table are written. Raises SchemaError if they would have no column."""
    _check_stored(schema, spec, context.location.uri)
    tight = text_of(properties.get("delta.enableDeletionVectors", "")).lower() == "true"
    shred = text_of(properties.get(SHREDDING, "")).lower() == "true"
    options = {**settings({k: text_of(v) for k, v in properties.items()}, tight), "shred": shred}
    size = file_size(str(properties.get("delta.targetFileSize", ""))) or TARGET_BYTES
    files = data_files(context.stores)
    root = context.location.uri
    return WriteContext("delta", files, schema, spec, root, write_id, size, conditions=conditions, options=options)


def table_context(snapshot: DeltaSnapshot, write_id: str) -> WriteContext:
    """How files for a table that exists are written."""
    spec = snapshot.partitioning.current
    found = write_context(snapshot.context, snapshot.schema, spec, snapshot.properties, write_id, conditions(snapshot))
    found = replace(
        found,
        options={**found.options, "clustered": clustering(snapshot), "shred": shreds_variants(snapshot)},
        computed=computed(snapshot),
        identities=identities(snapshot),
        materialized=is_active(snapshot),
        carried=carried(snapshot),
    )
    return recording(found) if is_recorded(snapshot) else found


def conditions(snapshot: DeltaSnapshot) -> tuple[RowCondition, ...]:
    """What every new row must satisfy, by the features that the table supports."""
    found = {"checkConstraints": constraints, "invariants": invariants, "generatedColumns": generation}
    return tuple(c for name, of in found.items() if supports(snapshot.protocol, name) for c in of(snapshot.metadata))


def marks_rows(snapshot: DeltaSnapshot) -> bool:
    """Whether rows are deleted by deletion vectors: the table supports the feature, and its property is true."""
    return supports(snapshot.protocol, "deletionVectors") and snapshot.metadata.flag("delta.enableDeletionVectors")


def shreds_variants(snapshot: DeltaSnapshot) -> bool:
    """Whether variants are shredded: the table supports the feature, and its property is true."""
    named = any(supports(snapshot.protocol, f"variantShredding{end}") for end in ("", "-preview"))
    return named and snapshot.metadata.flag(SHREDDING)


def file_size(text: str) -> int | None:
    """The bytes of `134217728`, `128mb` and similar, with units of 1,024 as in Spark; None for other strings."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        return None
    return int(match[1]) << 10 * "bkmgtp".index(match[2] or "b")


def check_writable(snapshot: DeltaSnapshot, mixed_writers: bool = True) -> None:
    """Raises UnsupportedFeatureError, UnsafeStorageError or, if asked to look, MixedWritersError unless this table may
    be written."""
    check_write(snapshot.protocol, snapshot.metadata, snapshot.location.uri)
    check_storage(snapshot.context)
    if mixed_writers and not (snapshot.context.allow_mixed_writers or switched_on("BOATHOUSE_ALLOW_MIXED_WRITERS")):
        check_mixed_writers(snapshot)


def check_storage(context: TableContext) -> None:
    """Raises UnsafeStorageError for a store without put-if-absent."""
    storage, _ = context.stores.resolve(context.location.uri)
    if not storage.atomic_create:
        raise UnsafeStorageError(
            "the store cannot create an object only if it is absent, so two writers could take the same version",
            where=context.location.uri,
            advice="read the table, or keep it on a store with conditional writes",
        )
