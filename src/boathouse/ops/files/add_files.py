"""Add files: data files that are there become part of a table in place, in one commit; no file is rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.cast import cast
from boathouse.bits import zones
from boathouse.bits.names import Names
from boathouse.bits.zones import Zone
from boathouse.errors import InvalidArgumentError, NotFoundError, UnsupportedFeatureError
from boathouse.ops.table.footer_groups import described, footer_groups
from boathouse.ops.table.parquet_folder import FoundFile, file_at, folder_values, found_files, partition_arrays
from boathouse.ops.tasks.all_footers import read_all_footers
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.parquet.stats import schema_leaves
from boathouse.table.change import Operation
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles
from boathouse.table.features import Adoption, required
from boathouse.table.location import Location
from boathouse.table.snapshot import Snapshot
from boathouse.types import STRING, Field, Schema


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """The files at these URIs, or below those that are folders, become files of the table. In a partitioned one the
    names of folders (`year=2024`) give the values; of these only what `partitions` names is added. `format` None: each
    file shows its own. A file that the table has is refused, and with `check` one that it had, too.

    Raises NotFoundError if there are none, InvalidArgumentError, SchemaMismatchError naming a file.
    """

    sources: tuple[str, ...]
    partitions: Mapping[str, str | None] = field(default_factory=dict)
    format: int | None = None
    check: bool = True
    operation: ClassVar[Operation] = "append"

    def plan(self, start: Start) -> WritePlan:
        """Reads footers; whatever is done with the commit, the files stay."""
        snapshot = start.snapshot
        adoption = required(snapshot, Adoption, "add_files")
        fields = _folders_of(snapshot)
        zone = None if start.zone is None else zones.zone(start.zone)
        found, values = self._found(snapshot, fields, zone)
        groups = footer_groups(found, snapshot.context.stores, start.engine, read_all_footers, self.format)
        places = [adoption.places(group) for group in groups]
        leaves = schema_leaves(snapshot.schema)
        outcomes = adoption.adopted(described(found, values, groups, places, leaves))
        rows = pc.sum(outcomes.column("rows")).as_py() or 0
        edits = (*adoption.edits, AddFiles(outcomes, found=True, again=not self.check))
        change = start.change("append", edits, parameters={"files": str(len(found))})
        figures = {"rows_added": rows, "files_added": len(found)}
        size = sum(f.info.size for f in found)
        planned = Planned(replace(change, metrics=figures), files_added=len(found), rows_added=rows, bytes_added=size)
        return WritePlan((), lambda _: planned)

    def _found(self, snapshot: Snapshot, fields: Schema, zone: Zone | None) -> tuple[list[FoundFile], list[pa.Array]]:
        """The files that are asked for, and their partition values."""
        context = snapshot.context
        files = {f.uri: f for source in self.sources for f in _files(source, context, fields)}
        found = list(files.values())
        if not found:
            raise NotFoundError("there are no files to add", where=self.sources[0], advice="name a file or its folder")
        values = partition_arrays(found, fields, zone, "rename the folder")
        kept = self._kept(fields, values, len(found), zone)
        if not pc.any(kept).as_py():
            asked = ", ".join(f"{k}={v}" for k, v in self.partitions.items())
            raise NotFoundError(f"no file is in the partition {asked}", where=self.sources[0])
        wanted = kept.to_pylist()
        return [f for f, yes in zip(found, wanted) if yes], [v.filter(kept) for v in values]

    def _kept(self, fields: Schema, values: Sequence[pa.Array], count: int, zone: Zone | None) -> pa.Array:
        kept, names = pa.repeat(pa.scalar(True), count), Names(fields.names)
        for name, text in self.partitions.items():
            at = names.at(name)
            if len(at) != 1:
                raise InvalidArgumentError(
                    f"the table is not partitioned by `{name}`",
                    advice=f"it is by {', '.join(fields.names)}" if fields.names else "it is not partitioned",
                )
            if text is None:
                kept = pc.and_(kept, pc.is_null(values[at[0]]))
                continue
            type = fields.fields[at[0]].type
            wanted = cast(pa.array([text], pa.string()), STRING, type, safe=True, zone=zone)[0]
            if not wanted.is_valid:
                raise InvalidArgumentError(f"{text!r} is not a {type}, which the partition column `{name}` is")
            kept = pc.and_(kept, pc.fill_null(pc.equal(values[at[0]], wanted), False))
        return kept


def _folders_of(snapshot: Snapshot) -> Schema:
    """The columns whose values the names of folders give. Raises UnsupportedFeatureError for a partition that is not a
    column's own value."""
    spec = snapshot.partitioning.current
    fields = [f for f in spec if f.transform.name != "void"]
    other = [f for f in fields if f.transform.name != "identity"]
    if other or len(fields) < len(spec.fields):
        name = f"{other[0].transform} of `{'.'.join(other[0].source)}`" if other else "a field that was dropped"
        raise UnsupportedFeatureError(
            f"the table is partitioned by {name}, which no name of a folder says",
            where=str(snapshot.context),
            advice="append the rows of the files instead",
        )
    return Schema(tuple(Field(f.name, f.type) for f in fields))


def _files(source: str, context: TableContext, fields: Schema) -> list[FoundFile]:
    """The file at a URI, or all below it, each with the values of all partition columns and of no others."""
    storage, key = context.stores.resolve(source)
    if key and storage.exists(key):
        file = file_at(storage.head(key), 0, storage)
        return [_checked(replace(file, values=_of(fields, file.values)), fields)]
    inside = found_files(TableContext(Location(source), context.stores), fields)
    above = _of(fields, folder_values(key, source))
    return [_checked(replace(f, values={**above, **f.values}), fields) for f in inside]


def _of(fields: Schema, values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Those of the partition columns: folders on the way to a file may have other names with a sign."""
    names = Names(fields.names)
    return {name: value for name, value in values.items() if names.at(name)}


def _checked(file: FoundFile, fields: Schema) -> FoundFile:
    names = Names(fields.names)
    other = [name for name in file.values if not names.at(name)]
    missing = [f.name for f in fields if not Names(file.values).at(f.name)]
    if not (other or missing):
        return file
    what = f"says `{other[0]}`" if other else f"does not say `{missing[0]}`"
    by = ", ".join(f"`{name}`" for name in fields.names)
    raise InvalidArgumentError(
        f"the path of this file {what}, and the table is {f'partitioned by {by}' if by else 'not partitioned'}",
        where=file.uri,
        advice="name the folders by the columns of the table, as city=Kiel/a.parquet, or append the rows of the files",
    )
