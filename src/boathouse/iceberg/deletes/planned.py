"""The row deletes of a plan: which of the snapshot's delete files apply to which unit; positions as deletion vectors,
equality deletes as the files that tasks read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.bits.roaring import EMPTY, Bitmap, deserialize64, serialize64
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import Expr
from boathouse.iceberg.deletes import vectors as deletion_vectors
from boathouse.iceberg.deletes.equality import (
    METRICS,
    EqualityFile,
    KeyStats,
    applies_to,
    delete_format,
    ordered_keys,
)
from boathouse.iceberg.deletes.index import Place, Units
from boathouse.iceberg.deletes.positions import DeleteFileTask, read_positions
from boathouse.iceberg.deletes.vectors import Vector
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests.columns import only_files
from boathouse.iceberg.manifests.records import DELETES, EQUALITY_DELETES, ManifestFile
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.snapshot import MapFunction
from boathouse.table.units import EQUALITY, VECTOR, deletes_schema

_FEW: Final = 64
"""So many entries are decoded as fast as they are chosen from."""


@dataclass(frozen=True, slots=True)
class _PositionFile:
    uri: str
    format: int
    place: Place
    only: str | None


@dataclass(slots=True)
class _Found:
    """The delete files that apply to planned units; `vectors` are by unit."""

    positions: list[_PositionFile] = field(default_factory=list)
    vectors: dict[int, Vector] = field(default_factory=dict)
    equality: list[EqualityFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The units with `deletes` and `deleted` filled in, DELETES, and the field ids of the equality deletes' keys."""

    units: pa.Table
    deletes: pa.Table
    keys: Mapping[int, str] = field(default_factory=dict)
    """Field id -> a delete file with this key."""


def resolve_deletes(
    snapshot: IcebergSnapshot, units: pa.Table, where: Expr | None, map: MapFunction | None
) -> Resolved:
    """DELETES have one deletion vector for each unit with deleted positions, and a row for each equality delete file.

    Raises CorruptTableError, MissingFileError, and UnsupportedFeatureError for a delete file that is not read.
    """
    if units.num_rows == 0 or not snapshot.listing.delete_manifests:
        return Resolved(units, deletes_schema().empty_table())
    index = Units.of(units, snapshot.partitioning)
    found = Collector(snapshot, index).found(snapshot.listing.delete_manifests)
    bitmaps, files = _bitmaps(snapshot, found, index, map)
    known = _key_stats(snapshot, units, found.equality, where, map)
    equality = [(f, rows) for f in found.equality if (rows := applies_to(f, index, known))]
    keys = {id: f.uri for f, _ in equality for id in f.keys}
    return Resolved(*_attached(units, bitmaps, files, equality), keys)


def deleted_positions(snapshot: IcebergSnapshot, units: pa.Table) -> list[Bitmap]:
    """The rows that vectors and position deletes delete of each unit. Raises what `resolve_deletes` raises."""
    sizes = units.column("rows").to_pylist()
    if not snapshot.listing.delete_manifests:
        return [EMPTY] * len(sizes)
    index = Units.of(units, snapshot.partitioning)
    found = Collector(snapshot, index).found(snapshot.listing.delete_manifests)
    bitmaps, _ = _bitmaps(snapshot, found, index, None)
    return [_inside(bitmaps[row], size) if row in bitmaps else EMPTY for row, size in enumerate(sizes)]


def newly_deleted(
    snapshot: IcebergSnapshot, units: pa.Table, sources: Sequence[ManifestFile], adders: Collection[int]
) -> list[str]:
    """The units that may have lost rows by deletes that these snapshots added, listed in these manifests; files of
    positions are not opened."""
    index = Units.of(units, snapshot.partitioning)
    found = Collector(snapshot, index).found(sources, adders)
    rows = set(found.vectors)
    for file in found.positions:
        row = None if file.only is None else index.at(file.only, file.place)
        rows.update(np.flatnonzero(index.not_after(file.place)).tolist() if row is None else [row])
    for equality in found.equality:
        rows.update(applies_to(equality, index, None))
    paths = units.column("path")
    return [paths[row].as_py() for row in sorted(rows)]


def _bitmaps(
    snapshot: IcebergSnapshot, found: _Found, index: Units, map: MapFunction | None
) -> tuple[dict[int, Bitmap], dict[int, int]]:
    """The deleted positions of units, and the number of files that they are from, by unit."""
    bitmaps = _load_vectors(snapshot, found.vectors)
    files = dict.fromkeys(bitmaps, 1)
    # Where a data file has a vector, its older position deletes are in the vector.
    for row, positions in _positions(snapshot, found, index, map):
        if row not in found.vectors:
            bitmaps[row] = bitmaps[row] | positions if row in bitmaps else positions
            files[row] = files.get(row, 0) + 1
    return bitmaps, files


def _inside(bitmap: Bitmap, rows: int) -> Bitmap:
    """A position beyond the file deletes nothing."""
    return Bitmap.of(bitmap.within(0, rows))


def _key_stats(
    snapshot: IcebergSnapshot,
    units: pa.Table,
    files: Sequence[EqualityFile],
    where: Expr | None,
    map: MapFunction | None,
) -> KeyStats | None:
    """The statistics of the key columns that can exclude units; the manifests are decoded already."""
    keys = ordered_keys(snapshot.schema, files)
    if not keys:
        return None
    paths, ids = [(f.name,) for f in keys], [f.id for f in keys if f.id is not None]
    schema = snapshot.listing.schema_of_files(paths)
    found = pa.Table.from_batches(list(snapshot.listing.files(paths, where, map=map)), schema)
    return KeyStats.of(snapshot.schema, found, units.column("path").to_pylist(), ids)


def _load_vectors(snapshot: IcebergSnapshot, vectors: Mapping[int, Vector]) -> dict[int, Bitmap]:
    by_file: dict[str, list[int]] = {}
    for row, vector in vectors.items():
        by_file.setdefault(snapshot.paths.uri(vector.path), []).append(row)
    bitmaps: dict[int, Bitmap] = {}
    for uri, rows in by_file.items():
        loaded = deletion_vectors.load(uri, [vectors[row] for row in rows], snapshot.stores)
        bitmaps.update(zip(rows, loaded, strict=True))
    return bitmaps


def _positions(
    snapshot: IcebergSnapshot, found: _Found, index: Units, map: MapFunction | None
) -> Iterator[tuple[int, Bitmap]]:
    """Deleted positions of units, by unit, from each position delete file."""
    files = [f for f in found.positions if f.only is None or index.at(f.only, f.place) not in found.vectors]
    tasks = [DeleteFileTask(i, data_files(snapshot.stores), f.uri, f.format) for i, f in enumerate(files)]
    for batch in _run(map, tasks):
        for delete, recorded, inline in zip(*(batch.column(i).to_pylist() for i in range(3))):
            file, path = files[delete], snapshot.paths.uri(recorded)
            row = index.at(path, file.place) if file.only in (None, path) else None
            if row is not None:
                yield row, deserialize64(inline, where=file.uri)


def _run(map: MapFunction | None, tasks: Sequence[DeleteFileTask]) -> Iterator[pa.RecordBatch]:
    if map is not None and len(tasks) > 1:
        yield from map(read_positions, tasks)
        return
    for task in tasks:
        yield from read_positions(task)


def _attached(
    units: pa.Table,
    bitmaps: Mapping[int, Bitmap],
    files: Mapping[int, int],
    equality: Sequence[tuple[EqualityFile, Sequence[int]]],
) -> tuple[pa.Table, pa.Table]:
    counts: list[int | None] = [0] * units.num_rows
    lists: list[list[int]] = [[] for _ in range(units.num_rows)]
    rows: list[dict[str, Any]] = []
    sizes = units.column("rows").to_pylist()
    for row in sorted(bitmaps):
        inside = _inside(bitmaps[row], sizes[row])
        if len(inside):
            lists[row].append(len(rows))
            counts[row] = len(inside)
            positions = {"inline": serialize64(inside), "rows": len(inside), "files": files[row]}
            rows.append({"delete": len(rows), "kind": VECTOR, **positions})
    for file, touched in equality:
        for row in touched:
            lists[row].append(len(rows))
            counts[row] = None
        rows.append({
            "delete": len(rows), "kind": EQUALITY, "path": file.uri, "format": file.format, "rows": file.rows,
            "sequence": file.place.sequence, "spec": file.place.partition[0], "everywhere": file.place.unpartitioned,
            "keys": list(file.keys)})  # fmt: skip
    units = units.set_column(units.schema.get_field_index("deleted"), "deleted", pa.array(counts, pa.int64()))
    at = units.schema.get_field_index("deletes")
    numbers = pa.array([found or None for found in lists], pa.list_(pa.int32()))
    units = units.set_column(at, units.schema.field(at), numbers)
    return units, pa.Table.from_pylist(rows, schema=deletes_schema())


@dataclass(frozen=True, slots=True)
class Collector:
    """Reads the delete manifests. Raises UnsupportedFeatureError for a kind of delete file that is not read."""

    snapshot: IcebergSnapshot
    units: Units

    def found(self, sources: Sequence[ManifestFile], adders: Collection[int] | None = None) -> _Found:
        """The deletes in these manifests: all that are live, or those that one of the snapshots `adders` added."""
        found = _Found()
        listing = self.snapshot.listing
        for source in sources:
            if source.content != DELETES:
                raise CorruptTableError(f"manifest content {source.content} is unknown", where=source.path)
            spec = listing.spec(source)
            for entry in listing.entries(source, metrics=METRICS, kept=self._kept(source)):
                if adders is not None and entry["snapshot_id"] not in adders:
                    continue
                data = entry["data_file"]
                values = manifests.partition_values(data, spec, source.path)
                place = Place.of(spec, values, entry["sequence_number"])
                if data.get("content") == EQUALITY_DELETES:
                    self._equality(data, place, found)
                elif str(data["file_format"]).upper() == "PUFFIN":
                    self._vector(data, place, found)
                else:
                    self._positions(data, place, found)
        return found

    def _kept(self, source: ManifestFile) -> npt.NDArray[np.bool_] | None:
        """Which entries of many may be of the units: those of one other data file alone are not decoded further."""
        listing = self.snapshot.listing
        live = listing.live(source)
        if len(live) <= _FEW:
            return None
        files = only_files(live)
        known = files.drop_null()
        uris = listing.paths.uris(known)
        mine = known.filter(pc.is_in(uris, pa.array(list(self.units.rows), uris.type)))
        kept: npt.NDArray[np.bool_] = pc.or_(pc.is_null(files), pc.is_in(files, mine)).to_numpy(zero_copy_only=False)
        return kept

    def _equality(self, data: Mapping[str, Any], place: Place, found: _Found) -> None:
        if self.units.older(place).any():
            found.equality.append(EqualityFile.of(data, self.snapshot.paths.uri(data["file_path"]), place))

    def _vector(self, data: Mapping[str, Any], place: Place, found: _Found) -> None:
        """A vector names its data file: where it contradicts that file's entry, either could be meant."""
        vector = Vector.of(data)
        path = self.snapshot.paths.uri(vector.data_file)
        row = self.units.rows.get(path)
        if row is None:
            return
        if row in found.vectors:
            raise CorruptTableError("a data file has more than one deletion vector", where=path)
        if self.units.at(path, place) is None:
            raise CorruptTableError(
                "the deletion vector of a data file is older than the file, or of another partition", where=path
            )
        found.vectors[row] = vector

    def _positions(self, data: Mapping[str, Any], place: Place, found: _Found) -> None:
        if not self.units.touched(place):
            return
        uri = self.snapshot.paths.uri(data["file_path"])
        only = _referenced(data)
        only_uri = None if only is None else self.snapshot.paths.uri(only)
        if only_uri is not None and self.units.at(only_uri, place) is None:
            return
        found.positions.append(_PositionFile(uri, delete_format(data, uri), place, only_uri))


def _referenced(data_file: Mapping[str, Any]) -> str | None:
    """The only data file to which a delete file applies: by name, or by equal lower and upper bounds of its paths."""
    named = data_file.get("referenced_data_file")
    if named:
        return str(named)
    lower = (manifests.map_of(data_file, "lower_bounds") or {}).get(FILE_PATH_ID)
    upper = (manifests.map_of(data_file, "upper_bounds") or {}).get(FILE_PATH_ID)
    return bytes(lower).decode("utf-8", "replace") if lower is not None and lower == upper else None
