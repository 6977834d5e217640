"""Convert: a folder of Parquet files becomes a table in place, or a table elsewhere has its files, in one commit; no
file is rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.bits.zones import Zone
from boathouse.errors import NotFoundError
from boathouse.ops.handle import check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, metrics_of, result_of
from boathouse.ops.run import new_write_id
from boathouse.ops.table.create import already_there, commit_new
from boathouse.ops.table.footer_groups import described, footer_groups
from boathouse.ops.table.parquet_folder import found_files, partition_arrays
from boathouse.ops.tasks.footers import read_footers
from boathouse.ops.write import Planned, new_change
from boathouse.parquet.stats import schema_leaves
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, CreateTable
from boathouse.table.engine import Engine
from boathouse.table.features import Adoption, required
from boathouse.table.format import TableFormat
from boathouse.table.found_files import FooterGroup
from boathouse.table.location import Location
from boathouse.table.snapshot import Snapshot
from boathouse.types import Field, PartitionField, Schema
from boathouse.types.data_types import without_ids
from boathouse.types.partitioning import IDENTITY
from boathouse.types.united import united

_FIRST_ID: Final = 1000


@dataclass(frozen=True, slots=True)
class Convert:
    """The columns that the names of folders give, with their types, and the new table's properties. `zone` is that of
    timestamps in names of folders. `source` is the folder if the table is made elsewhere: then the files stay its own.
    """

    partitions: Schema
    properties: Mapping[str, str]
    zone: Zone | None = None
    source: Location | None = None


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
    place = context if asked.source is None else replace(context, location=asked.source)
    found = found_files(place, asked.partitions)
    if not found:
        raise NotFoundError(
            "there are no files to make a table of", where=str(place), advice="pass a folder of Parquet files"
        )
    values = partition_arrays(found, asked.partitions, asked.zone)
    footers = footer_groups(found, context.stores, engine, read_footers)
    table = _table(footers, asked)
    target = format.create(context, table)
    adoption = required(target, Adoption, "conversion of a folder")
    places = [adoption.places(group) for group in footers]
    outcomes = adoption.adopted(described(found, values, footers, places, schema_leaves(target.schema)))
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


def _table(groups: Sequence[FooterGroup], asked: Convert) -> CreateTable:
    """The table, with the columns of all files. One of the same name as a partition column has the values that the
    folders say."""
    firsts: dict[Schema, FooterGroup] = {}
    for group in sorted(groups, key=lambda g: g.first):
        firsts.setdefault(Schema(without_ids(group.schema.fields)), group)
    whole = united([(group.uris[0], schema) for schema, group in firsts.items()])
    names = {f.name.lower(): Field(f.name, f.type) for f in asked.partitions}
    fields = [names.pop(f.name.lower(), f) for f in whole]
    fields += names.values()
    spec = tuple(
        PartitionField(f.name, (f.name,), IDENTITY, _FIRST_ID + i, f.type) for i, f in enumerate(asked.partitions)
    )
    borrows = asked.source is not None
    return CreateTable(Schema(tuple(fields)), spec, asked.properties, adopts=True, borrows=borrows)
