"""The write context of a table's files, and written files as manifest entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.arrow.ordering import can_order
from boathouse.errors import (
    InvalidArgumentError,
    MixedWritersError,
    ReadOnlyError,
    UnsafeStorageError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.commit.defaults import absent, computed
from boathouse.iceberg.commit.row_ids import carried
from boathouse.iceberg.data_files.formats import (
    check_types,
    data_format,
    delete_format,
    file_options,
    format_names,
    number,
)
from boathouse.iceberg.data_files.metrics import metrics
from boathouse.iceberg.data_files.writer import OF_DELETES, SORT_ORDER
from boathouse.iceberg.manifests.columns import partition_column, table
from boathouse.iceberg.manifests.records import ADDED, DATA
from boathouse.iceberg.metadata import rules
from boathouse.iceberg.metadata.encryption import require_plain
from boathouse.iceberg.metadata.metrics_modes import Mode
from boathouse.iceberg.metadata.partitions import FIRST_FIELD_ID, bind_spec, unknown_transforms
from boathouse.iceberg.metadata.schema_rules import check_lineage_names
from boathouse.iceberg.metadata.schemas import fresh_schema
from boathouse.iceberg.metadata.sort_orders import known_orders, wanted_order
from boathouse.iceberg.metadata.versions import MODERN, NEW, PROPERTY, FormatVersion, asked_version
from boathouse.iceberg.paths import version_of
from boathouse.iceberg.row_modes import positions_per
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import absolute, join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.edits.declared import require_none
from boathouse.table.tasks import Distribution, WriteContext
from boathouse.types import PartitionSpec, Schema

DATA_PATH: Final = "write.data.path"
DEFAULT_TARGET: Final = 512 << 20
DISTRIBUTION: Final = "write.distribution-mode"
_DISTRIBUTIONS: Final[Mapping[str, Distribution]] = {"none": "none", "hash": "partition", "range": "range"}


def create(context: TableContext, create: CreateTable) -> tuple[Schema, PartitionSpec, FormatVersion]:
    """The schema, spec and format version that a new table will have.

    Raises UnsupportedTypeError naming the column, UnsupportedFeatureError for a format version that is not offered.
    """
    require_none(create, "Iceberg", str(context), "identities", "generated", "cluster_by")
    require_plain(create.properties, str(context))
    if create.profile not in (None, "modern"):
        raise UnsupportedFeatureError(f"Iceberg tables have no profile {create.profile!r}", where=str(context))
    version = NEW if create.profile is None else MODERN
    if PROPERTY in create.properties:
        version = asked_version(create.properties[PROPERTY])
    schema, _ = fresh_schema(create.schema, version)
    if version.row_lineage:
        check_lineage_names(schema, str(context))
    return schema, bind_spec(create.partition_by, schema, 0, FIRST_FIELD_ID - 1)[0], version


def write_context(
    context: TableContext, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str], root: str, write_id: str
) -> WriteContext:
    """How data files are written: below `write.data.path`, else the `data` folder of the table at `root`.

    Raises UnsupportedFeatureError if the table asks for files of a format that is not offered, or has columns of a type
    that is not offered in it.
    """
    where = str(context.location)
    deletes = file_options(delete_format(properties, where), properties, deletes=True)
    format = data_format(properties, where)
    check_types(format, schema, where)
    options: dict[str, Any] = {**file_options(format, properties), OF_DELETES: deletes}
    size = properties.get("write.target-file-size-bytes")
    return WriteContext(
        format="iceberg",
        files=data_files(context.stores),
        schema=schema,
        spec=spec,
        directory=data_folder(properties, root),
        write_id=write_id,
        target_bytes=DEFAULT_TARGET if size is None else number("write.target-file-size-bytes", size),
        options=options,
    )


def table_context(snapshot: IcebergSnapshot, write_id: str) -> WriteContext:
    """How data files for a table that exists are written."""
    spec, properties = snapshot.partitioning.current, snapshot.properties
    found = write_context(snapshot.context, snapshot.schema, spec, properties, snapshot.paths.root, write_id)
    found = replace(found, carried=carried(snapshot.metadata), positions_per=positions_per(properties))
    found = replace(found, computed=computed(snapshot.schema), absent=absent(snapshot.schema))
    found = replace(found, distribution=distribution(properties))
    document, schema = snapshot.metadata.document, snapshot.schema
    order, orders = wanted_order(document, schema), known_orders(document, schema)
    ids = {o.fields: o.id for o in orders if o.fields and can_order(schema, o.fields)}
    found = replace(found, options={**found.options, SORT_ORDER: ids}) if ids else found
    return replace(found, order=order.fields) if order.whole and order.fields in ids else found


def distribution(properties: Mapping[str, str]) -> Distribution | None:
    """What the table says of how rows meet in workers. Raises InvalidArgumentError."""
    text = properties.get(DISTRIBUTION)
    if text is None:
        return None
    found = _DISTRIBUTIONS.get(text.lower())
    if found is None:
        raise InvalidArgumentError(
            f"the table's {DISTRIBUTION} is {text!r}", advice="set it to none, hash or range, or remove it"
        )
    return found


def check_writable(found: IcebergSnapshot) -> None:
    """Raises if this library may not write the table, because of its location, other writers, or its features."""
    metadata = found.metadata
    where = metadata.uri
    if found.location.metadata is not None:
        raise UnsupportedFeatureError(
            "a table opened by its metadata file is read only", where=where, advice="open the table's folder to write"
        )
    managed = found.context.catalog is not None
    if not managed and version_of(where) is None:
        raise MixedWritersError(
            "the table belongs to a catalog, and only the catalog may make a new version current",
            where=where,
            advice='open it by its name in the catalog: bh.open("catalog.namespace.table")',
        )
    if found.paths.moved:
        raise UnsupportedFeatureError(
            f"the table was relocated from {metadata.location}, which its metadata still names",
            where=where,
            advice="write its metadata for where it is: t.rewrite_table_path(...)",
        )
    if found.ref is not None and (metadata.refs.get(found.ref) or {}).get("type") == "tag":
        raise ReadOnlyError(
            f"`{found.ref}` is a tag, which cannot be written to",
            where=where,
            advice="open without ref=, or with that of a branch",
        )
    unknown = unknown_transforms(metadata.partitioning.current)
    if unknown:
        raise UnsupportedFeatureError(f"writing with partition transform {unknown[0]} is not offered", where=where)
    require_plain(metadata.properties, where)
    rules.check(metadata.document, where)
    if metadata.format.row_lineage:
        check_lineage_names(found.schema, where)
    storage, _ = found.stores.resolve(found.location.uri)
    if not managed and not storage.atomic_create:
        raise UnsafeStorageError("this store does not support put-if-absent", where=found.location.uri)


def data_folder(properties: Mapping[str, str], root: str) -> str:
    """Where the data files of the table at `root` are written, and their deletion vectors."""
    return absolute(properties[DATA_PATH]) if properties.get(DATA_PATH) else join(root, "data")


def added_columns(
    outcomes: pa.Table, schema: Schema, spec: PartitionSpec, modes: Mapping[int, Mode], sequence: int | None
) -> pa.Table:
    """Manifest entries for files that were just written: OUTCOMES of kind data, all with this schema and spec.

    Snapshot id and sequence numbers are null, to be inherited; `sequence` sets the data sequence number. `modes` say
    which metrics they have.
    """
    files = outcomes.combine_chunks()
    rows, native = files.num_rows, files.column("native").combine_chunks()
    partition = files.column("partition").combine_chunks() if spec.fields else None
    arrays = {
        "status": pa.repeat(pa.scalar(ADDED, pa.int32()), rows),
        "sequence_number": pa.repeat(pa.scalar(sequence, pa.int64()), rows),
        "content": pa.repeat(pa.scalar(DATA, pa.int32()), rows),
        "file_path": files.column("path").combine_chunks(),
        "file_format": format_names(files),
        "record_count": files.column("rows").combine_chunks(),
        "file_size_in_bytes": files.column("size").combine_chunks(),
        **{name: native.field(name) for name in ("split_offsets", SORT_ORDER)},
        **metrics(files, schema, modes),
    }
    if partition is not None:
        arrays |= {partition_column(f): partition.field(str(f.id)) for f in spec}
    return table(arrays, spec, rows)
