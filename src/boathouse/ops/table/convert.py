"""Convert: a folder of Parquet files becomes a table in place, in one commit; no file is rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits import system
from boathouse.bits.zones import Zone
from boathouse.ops.handle import check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, metrics_of, result_of
from boathouse.ops.run import new_write_id
from boathouse.ops.table.create import already_there, commit_new
from boathouse.ops.table.parquet_folder import FoundFile, found_files, partition_arrays
from boathouse.ops.tasks.footers import FooterTask, read_footers, schema_of
from boathouse.ops.write import Planned, new_change
from boathouse.parquet.convert import leaf_cast
from boathouse.parquet.stats import SchemaLeaf, schema_leaves
from boathouse.parquet.written_stats import LeafColumn
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, CreateTable
from boathouse.table.engine import Engine
from boathouse.table.features import Adoption, required
from boathouse.table.format import TableFormat
from boathouse.table.found_files import FoundFiles
from boathouse.table.snapshot import Snapshot
from boathouse.types import Field, PartitionField, Schema
from boathouse.types.partitioning import IDENTITY
from boathouse.types.united import united

_TASK_FILES: Final = 64
_FIRST_ID: Final = 1000


@dataclass(frozen=True, slots=True)
class Convert:
    """The columns that the names of folders give, with their types, and the new table's properties. `zone` is that of
    timestamps in names of folders."""

    partitions: Schema
    properties: Mapping[str, str]
    zone: Zone | None = None


def convert(
    format: TableFormat, context: TableContext, asked: Convert, engine: Engine, options: WriteOptions = WriteOptions()
) -> tuple[Snapshot | None, WriteResult]:
    """Makes the table. The snapshot is None after a dry run, or if it could not be read after the commit.

    Raises AlreadyExistsError, NotFoundError for an empty folder, InvalidArgumentError for partitions that do not fit,
    CorruptTableError for a file that is not Parquet, SchemaMismatchError, UnsupportedTypeError,
    UnsupportedFeatureError; then nothing was written.
    """
    started = system.current().monotonic()
    check_read_only(str(context))
    if format.detect(context):
        raise already_there(context.location)
    root = context.location.uri
    found = found_files(context, asked.partitions)
    values = partition_arrays(found, asked.partitions, root, asked.zone)
    footers = _footers(found, context, engine)
    schema, table = _table(footers, found, asked, root)
    target = format.create(context, table)
    adoption = required(target, Adoption, "conversion of a folder")
    outcomes = adoption.adopted(_files(found, values, footers, schema, asked.partitions))
    parameters = {"files": str(len(found))}
    change = new_change(target, new_write_id(), "convert", (table, AddFiles(outcomes)), options)
    planned = Planned(replace(change, parameters=parameters))
    rows = pc.sum(outcomes.column("rows")).as_py() or 0
    if options.dry_run:
        result = result_of("convert", planned, [outcomes], None)
        return None, replace(result, rows_added=rows, dry_run=True, write_id=None)
    assert planned.change is not None
    metrics = metrics_of("convert", planned, [outcomes]) | {"rows_added": rows}
    outcome = commit_new(target, replace(planned.change, metrics=metrics), None)
    result = result_of("convert", planned, [outcomes], outcome.commit)
    seconds = system.current().monotonic() - started
    return outcome.after, replace(result, rows_added=rows, seconds=seconds, retries=outcome.attempts - 1)


@dataclass(frozen=True, slots=True)
class _Group:
    """The footers of files with one schema: `files` are their numbers."""

    schema: Schema
    files: pa.Array
    rows: pa.Array
    stats: pa.StructArray


def _footers(found: Sequence[FoundFile], context: TableContext, engine: Engine) -> list[_Group]:
    files, root = data_files(context.stores), context.location.uri
    tasks = []
    for start in range(0, len(found), _TASK_FILES):
        part = found[start : start + _TASK_FILES]
        uris, sizes = [f"{root}/{f.path}" for f in part], [f.info.size for f in part]
        tasks.append(FooterTask(files, uris, sizes, range(start, start + len(part))))
    batches = engine.map(read_footers, tasks, [len(t.uris) for t in tasks])
    return [_Group(schema_of(b), b.column("file"), b.column("rows"), b.column("stats")) for b in batches]


def _table(
    groups: Sequence[_Group], found: Sequence[FoundFile], asked: Convert, root: str
) -> tuple[Schema, CreateTable]:
    """The columns that are read from the files, and the table. A column of the same name as a partition column has the
    values that the folders say."""
    firsts: dict[Schema, int] = {}
    for group in groups:
        firsts[group.schema] = min(firsts.get(group.schema, len(found)), group.files[0].as_py())
    order = sorted(firsts, key=firsts.__getitem__)
    whole = united([(f"{root}/{found[firsts[s]].path}", s) for s in order])
    names = {f.name.lower(): Field(f.name, f.type) for f in asked.partitions}
    fields = [names.pop(f.name.lower(), f) for f in whole]
    fields += names.values()
    stored = Schema(tuple(f for f in whole if f.name.lower() not in {p.name.lower() for p in asked.partitions}))
    spec = tuple(
        PartitionField(f.name, (f.name,), IDENTITY, _FIRST_ID + i, f.type) for i, f in enumerate(asked.partitions)
    )
    return stored, CreateTable(Schema(tuple(fields)), spec, asked.properties, adopts=True)


def _files(
    found: Sequence[FoundFile],
    values: Sequence[pa.Array],
    groups: Sequence[_Group],
    stored: Schema,
    partitions: Schema,
) -> FoundFiles:
    order = pc.sort_indices(pa.concat_arrays([g.files for g in groups]))
    rows = pa.concat_arrays([g.rows for g in groups]).take(order)
    return FoundFiles(
        paths=[f.path for f in found],
        sizes=[f.info.size for f in found],
        modified_ms=[f.info.modified_ms for f in found],
        rows=rows.to_pylist(),
        partitions=values,
        leaves=[_leaf(leaf, groups, order) for leaf in schema_leaves(stored)],
    )


def _leaf(leaf: SchemaLeaf, groups: Sequence[_Group], order: pa.Array) -> LeafColumn:
    """The statistics of one leaf in all files, in their order."""
    held = to_arrow_type(leaf.field.type)
    parts = [_part(leaf, group, held) for group in groups]
    lower, upper, nulls, rows = (pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True))
    unknown = [None] * len(order)
    return LeafColumn(leaf.path, leaf.field.type, lower, upper, nulls.to_pylist(), unknown, rows.to_pylist(), unknown)


def _part(leaf: SchemaLeaf, group: _Group, held: pa.DataType) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Bounds in the table's type, nulls and rows, in the files of one group. A column that they lack is null."""
    count = len(group.files)
    nothing, rows = pa.nulls(count, held), group.rows
    if leaf.repeated:
        return nothing, nothing, pa.nulls(count, pa.int64()), pa.nulls(count, pa.int64())
    own = [found.path for found in schema_leaves(group.schema) if not found.repeated]
    if leaf.path not in own:
        return nothing, nothing, rows, rows
    stats = group.stats.field(str(own.index(leaf.path)))
    convert = leaf_cast(stats.field("lower").type, held)
    lower, upper = (stats.field(n) if convert is None else convert(stats.field(n)) for n in ("lower", "upper"))
    return lower, upper, stats.field("nulls"), rows
