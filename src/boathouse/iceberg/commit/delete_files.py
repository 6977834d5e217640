"""The row deletes that a commit adds: deletion vectors, which it writes itself, and files of positions, which tasks
wrote (spec, "Delete Formats")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.vector import only_where
from boathouse.bits import system
from boathouse.bits.roaring import deserialize64
from boathouse.iceberg.data_files.formats import format_names
from boathouse.iceberg.deletes import puffin
from boathouse.iceberg.deletes.planned import deleted_positions
from boathouse.iceberg.manifests.columns import PUFFIN, TYPES, map_array, partition_column, table
from boathouse.iceberg.manifests.records import ADDED, POSITION_DELETES
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import join
from boathouse.table.edits import AddDeletes, SetDeletes
from boathouse.types import PartitionSpec

_ENTRIES: Final = 20_000


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A Puffin file that is not written yet: its bytes, the planned FILES rows of the units that its vectors are for,
    and where each of these is."""

    uri: str
    data: bytes
    units: pa.Table
    blobs: Sequence[puffin.Blob]

    def entries(self, spec: PartitionSpec) -> pa.Table:
        """The manifest entries of the vectors of files of one partition spec; numbers are inherited."""
        mine = pc.equal(self.units.column("spec"), spec.id)
        units = self.units.filter(mine).combine_chunks()
        blobs = [blob for blob, of in zip(self.blobs, mine.to_pylist(), strict=True) if of]
        rows = len(blobs)
        arrays = {
            "status": pa.repeat(pa.scalar(ADDED, pa.int32()), rows),
            "content": pa.repeat(pa.scalar(POSITION_DELETES, pa.int32()), rows),
            "file_path": pa.repeat(self.uri, rows),
            "file_format": pa.repeat(PUFFIN, rows),
            "record_count": pa.array([blob.count for blob in blobs], pa.int64()),
            "file_size_in_bytes": pa.repeat(pa.scalar(len(self.data), pa.int64()), rows),
            "referenced_data_file": pa.array([blob.data_file for blob in blobs], pa.string()),
            "content_offset": pa.array([blob.offset for blob in blobs], pa.int64()),
            "content_size_in_bytes": pa.array([blob.size for blob in blobs], pa.int64()),
            **partition_of(units, spec),
        }
        return table(arrays, spec, rows)


def vectors(edits: Sequence[SetDeletes], head: IcebergSnapshot, folder: str) -> VectorFile:
    """A vector for each unit that loses rows: these, and those that the head deletes of it by vectors or positions.

    Raises CorruptTableError and MissingFileError if those cannot be read.
    """
    units = pa.concat_tables([e.units for e in edits])
    before = deleted_positions(head, units)
    new = (deserialize64(vector) for e in edits for vector in e.vectors)
    merged = [old | added for old, added in zip(before, new, strict=True)]
    data, blobs = puffin.written(list(zip(recorded(units), merged, strict=True)))
    return VectorFile(join(folder, f"{system.current().uuid4()}-deletes.puffin"), data, units, blobs)


def positions(edits: Sequence[AddDeletes], spec: PartitionSpec) -> pa.Table:
    """The manifest entries of files of positions of one spec; numbers are inherited. One that is for a single data file
    names it, and has it as the bounds of its paths, by which older readers know."""
    found = [_positions(edit, spec) for edit in edits]
    return pa.concat_tables([entries for entries in found if entries.num_rows] or found[:1])


def _positions(edit: AddDeletes, spec: PartitionSpec) -> pa.Table:
    files = edit.outcomes.filter(pc.equal(edit.outcomes.column("spec"), spec.id)).combine_chunks()
    at = pc.index_in(files.column("unit_path"), edit.units.column("path").combine_chunks()).combine_chunks()
    name = pa.array(recorded(edit.units), pa.string()).take(at)
    rows = files.num_rows
    paths = map_array([FILE_PATH_ID], [name.cast(pa.binary())], TYPES["lower_bounds"], rows)
    bounds = only_where(name.is_valid(), paths)
    arrays = {
        "status": pa.repeat(pa.scalar(ADDED, pa.int32()), rows),
        "content": pa.repeat(pa.scalar(POSITION_DELETES, pa.int32()), rows),
        "file_path": files.column("path").combine_chunks(),
        "file_format": format_names(files),
        "record_count": files.column("rows").combine_chunks(),
        "file_size_in_bytes": files.column("size").combine_chunks(),
        "split_offsets": files.column("native").combine_chunks().field("split_offsets"),
        "lower_bounds": bounds,
        "upper_bounds": bounds,
        "referenced_data_file": name,
    }
    # A file of one unit has its partition, one of several is of the spec that OUTCOMES are of.
    of_units = partition_of(edit.units.take(at), spec) if rows else {}
    of_files = partition_of(files, spec) if rows and at.null_count else of_units
    for column, values in of_units.items():
        arrays[column] = pc.if_else(at.is_valid(), values, of_files[column])
    return table(arrays, spec, rows)


@dataclass(frozen=True, slots=True)
class IcebergRecordedPaths:
    """See `table.features.RecordedPaths`."""

    def names(self, units: pa.Table) -> list[str]:
        return recorded(units)


def recorded(units: pa.Table) -> list[str]:
    """The paths of planned units as the table's metadata has them: row deletes must name them so."""
    found: list[str] = pc.coalesce(
        pc.struct_field(units.column("native"), "recorded"), units.column("path")
    ).to_pylist()
    return found


def partition_of(units: pa.Table, spec: PartitionSpec) -> dict[str, pa.Array]:
    """The partition values of FILES or OUTCOMES rows of this spec, as columns of manifest entries."""
    if not spec.fields:
        return {}
    partition = units.column("partition").combine_chunks()
    return {partition_column(f): partition.field(str(f.id)) for f in spec}


def parts(entries: pa.Table) -> Iterator[pa.Table]:
    """The entries of each manifest."""
    for start in range(0, entries.num_rows, _ENTRIES):
        yield entries.slice(start, _ENTRIES)
