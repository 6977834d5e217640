"""Statistics files (spec, "Table Statistics"): what is counted of a version, and what its metadata says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa

from boathouse.bits.names import steps
from boathouse.bits.theta import Sketch
from boathouse.errors import ColumnNotFoundError, CorruptTableError, InvalidArgumentError, UnsupportedTypeError
from boathouse.expr.resolve import resolve_path
from boathouse.iceberg import puffin
from boathouse.iceberg.metadata.schemas import by_id
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.statistics.partitions import partition_rows
from boathouse.iceberg.statistics.sketches import COUNTED, merged, sketch_units
from boathouse.table.edits import DistinctCount, SetColumnStatistics, SetPartitionStatistics
from boathouse.table.tasks import ScanTask

THETA: Final = "apache-datasketches-theta-v1"
NDV: Final = "ndv"
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IcebergStatistics:
    """See `table.features.ColumnStatistics`."""

    snapshot: IcebergSnapshot

    def countable(self, names: Sequence[str] | None) -> tuple[Path, ...]:
        schema = self.snapshot.schema
        if self.snapshot.snapshot is None:
            raise InvalidArgumentError(
                "the table has no version yet, so there is nothing to count", where=str(self.snapshot.context)
            )
        found: list[Path]
        if names is None:
            found = [(f.name,) for f in schema if isinstance(f.type, COUNTED)]
        else:
            found = [_path(name, schema) for name in names]
        types = {path: f.type for path, f in schema.walk()}
        for path in found:
            if not isinstance(types[path], COUNTED):
                raise UnsupportedTypeError(
                    f"distinct values of `{'.'.join(path)}` ({types[path]}) cannot be counted",
                    where=str(self.snapshot.context),
                    advice="name columns of simple types",
                )
        if not found:
            raise InvalidArgumentError("no column is left to count", where=str(self.snapshot.context))
        return tuple(dict.fromkeys(found))

    def task(self, paths: Sequence[Path]) -> Callable[[ScanTask], Iterator[pa.RecordBatch]]:
        return partial(sketch_units, paths=tuple(paths))

    def edit(self, paths: Sequence[Path], counted: Iterable[pa.RecordBatch]) -> SetColumnStatistics:
        sketches = merged(list(counted), len(paths))
        made = [DistinctCount(p, int(s.estimate), s.to_bytes()) for p, s in zip(paths, sketches, strict=True)]
        return SetColumnStatistics(tuple(made))

    def partitions(self) -> SetPartitionStatistics:
        metadata = self.snapshot.metadata
        if self.snapshot.snapshot is None or not any(spec.fields for spec in metadata.partitioning.specs):
            raise InvalidArgumentError(
                "the table has no partitions, or no version yet",
                where=str(self.snapshot.context),
                advice="leave it out",
            )
        return SetPartitionStatistics(partition_rows(self.snapshot))

    def recorded(self) -> pa.Table:
        paths = {id: ".".join(path) for id, (path, _) in by_id(self.snapshot.schema).items()}
        rows = [
            (paths[blob["fields"][0]], self._distinct(entry, blob))
            for entry in self._entries()
            for blob in entry.get("blob-metadata") or []
            if blob.get("type") == THETA and len(blob["fields"]) == 1 and blob["fields"][0] in paths
        ]
        schema = pa.schema([("column", pa.string()), ("distinct", pa.int64())])
        return pa.Table.from_pylist([{"column": c, "distinct": d} for c, d in rows], schema)

    @property
    def file(self) -> str | None:
        return next((self.snapshot.paths.uri(e["statistics-path"]) for e in self._entries()), None)

    def _entries(self) -> list[Mapping[str, Any]]:
        entries = self.snapshot.metadata.document.get("statistics") or []
        return [e for e in entries if e["snapshot-id"] == self.snapshot.version]

    def _distinct(self, entry: Mapping[str, Any], blob: Mapping[str, Any]) -> int:
        """What the metadata says, else what the sketch in the file says."""
        said = (blob.get("properties") or {}).get(NDV)
        if said is not None and str(said).isdigit():
            return int(said)
        uri = self.snapshot.paths.uri(entry["statistics-path"])
        storage, key = self.snapshot.stores.resolve(uri)
        for found in puffin.read(storage.get(key), uri):
            if found.type == THETA and list(found.fields) == list(blob["fields"]):
                try:
                    return int(Sketch.parse(found.data).estimate)
                except ValueError as error:
                    raise CorruptTableError(f"the sketch is damaged: {error}", where=uri) from None
        raise CorruptTableError(f"there is no sketch of field {blob['fields'][0]}", where=uri)


def _path(name: str, schema: Any) -> Path:
    if name in schema.names:
        return (name,)
    path: Path = resolve_path(steps(name), schema)[0]
    if not path:
        raise ColumnNotFoundError(f"there is no column `{name}`")
    return path
