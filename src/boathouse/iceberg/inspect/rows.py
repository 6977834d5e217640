"""The entries of manifests as the columns of the metadata tables: large manifests column by column, small ones
together, entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_type
from boathouse.avro.columns import Columns
from boathouse.avro.cursors import BEYOND, Path
from boathouse.avro.items import lists, maps
from boathouse.errors import CorruptTableError
from boathouse.iceberg.files import Listing
from boathouse.iceberg.inspect.columns import INTS, LONGS, MAPS, PARTITION, READABLE, Layout, struct
from boathouse.iceberg.inspect.metrics import readable
from boathouse.iceberg.manifests.entries import FILE, Entries
from boathouse.iceberg.manifests.records import Entry, ManifestFile, partition_values
from boathouse.iceberg.manifests.row_ids import number_rows, row_ids
from boathouse.iceberg.manifests.values import arrow_array
from boathouse.types import PartitionSpec

_BATCH: Final = 4096
"""Entries of small manifests that are made to columns together."""
_ENTRY: Final = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
_LONGS: Final = ("record_count", "file_size_in_bytes", "content_offset", "content_size_in_bytes")
Arrays = dict[str, pa.Array]
"""The columns of some entries by name; `partition` is a struct, if there are partition fields."""


@dataclass(frozen=True, slots=True)
class Read:
    """Which entries are read from the manifests of one snapshot or several."""

    listing: Listing
    layout: Layout
    live_only: bool

    def files(self, sources: Sequence[ManifestFile]) -> pa.Table:
        """The table `files` of these manifests."""
        schema = self.layout.files

        def batch(arrays: Arrays, rows: int) -> pa.RecordBatch:
            arrays[READABLE] = readable(arrays, self.layout.leaves, rows)
            return pa.RecordBatch.from_arrays([arrays[f.name] for f in schema], schema=schema)

        return pa.Table.from_batches(self._batches(sources, batch), schema)

    def entries(self, sources: Sequence[ManifestFile]) -> pa.Table:
        """The table `entries` of these manifests."""
        schema, fields = self.layout.entries, self.layout.file_fields

        def batch(arrays: Arrays, rows: int) -> pa.RecordBatch:
            file = struct([arrays[f.name] for f in fields], pa.struct(fields), rows)
            found = [arrays[n] for n in _ENTRY]
            return pa.RecordBatch.from_arrays([*found, file, readable(arrays, self.layout.leaves, rows)], schema=schema)

        return pa.Table.from_batches(self._batches(sources, batch), schema)

    def _batches(
        self, sources: Sequence[ManifestFile], batch: Callable[[Arrays, int], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """One batch for each large manifest, and for the small ones between two of them."""
        small: list[tuple[Entry, PartitionSpec, str]] = []
        listing = self.listing
        wanted = [(m, listing.paths.uri(m.path)) for m in sources if not (self.live_only and m.empty)]
        for found in listing.reader.whole(wanted, listing.verify):
            spec = listing.spec(found.source)
            large = isinstance(found.columns, Columns)
            if small and (large or len(small) >= _BATCH):
                yield batch(self._of_records(small), len(small))
                small = []
            if large:
                yield batch(*self._of_columns(found, spec))
            else:
                records = found.records(self.live_only)
                number_rows(records, found.source)
                small += [(e, spec, found.source.path) for e in records]
        if small:
            yield batch(self._of_records(small), len(small))

    def _of_columns(self, entries: Entries, spec: PartitionSpec) -> tuple[Arrays, int]:
        found = entries.live if self.live_only else entries.files(live_only=False)
        columns, n = found.columns, len(found)
        assert isinstance(columns, Columns)
        spec_id = pa.repeat(pa.scalar(spec.id, pa.int32()), n)
        keys: list[pa.Array] = []
        nothing = pa.nulls(n, pa.int64())
        arrays: Arrays = {
            "status": _ints(columns, ("status",)),
            "snapshot_id": longs(found.snapshot_id, found.snapshot_id != BEYOND),
            "sequence_number": longs(found.sequence),
            "file_sequence_number": longs(found.file_sequence),
            "content": pa.array(columns.longs((FILE, "content"))[0].astype(np.int32)),
            "file_path": found.paths(),
            "file_format": _upper(found.formats().values, found.formats().codes),
            "spec_id": spec_id,
            "key_metadata": _bytes(columns, (FILE, "key_metadata")),
            "split_offsets": lists(columns, (FILE, "split_offsets"), LONGS),
            "equality_ids": lists(columns, (FILE, "equality_ids"), INTS),
            "sort_order_id": _ints(columns, (FILE, "sort_order_id")),
            "referenced_data_file": columns.strings((FILE, "referenced_data_file")),
            **{name: _longs(columns, (FILE, name), nothing) for name in _LONGS},
            "first_row_id": row_ids(columns, found.rows, entries.source, nothing),
            **{name: maps(columns, (FILE, name), type, keys) for name, type in MAPS.items()},
        }
        if self.layout.partition:
            coded = found.partition(spec)
            values = [
                coded[id].array(f.type) if id in coded else pa.nulls(n, to_arrow_type(f.type))
                for id, f in self.layout.partition
            ]
            arrays[PARTITION] = struct(values, self.layout.partition_type, n)
        return arrays, n

    def _of_records(self, rows: Sequence[tuple[Entry, PartitionSpec, str]]) -> Arrays:
        schema = self.layout.files
        files = [entry["data_file"] for entry, _, _ in rows]
        arrays: Arrays = {n: pa.array([_number(e[n]) for e, _, _ in rows], pa.int64()) for n in _ENTRY}
        arrays["status"] = arrays["status"].cast(pa.int32())
        for field in schema:
            if field.name not in (PARTITION, READABLE, "spec_id"):
                arrays[field.name] = _plain([f.get(field.name) for f in files], field, rows[0][2])
        arrays["content"] = arrays["content"].fill_null(0)
        arrays["file_format"] = pc.utf8_upper(arrays["file_format"])
        arrays["spec_id"] = pa.array([spec.id for _, spec, _ in rows], pa.int32())
        if self.layout.partition:
            found = [partition_values(f, spec, where) for f, (_, spec, where) in zip(files, rows)]
            values = [arrow_array([p.get(id) for p in found], f.type) for id, f in self.layout.partition]
            arrays[PARTITION] = struct(values, self.layout.partition_type, len(rows))
        return arrays


def _plain(values: Sequence[Any], field: pa.Field, where: str) -> pa.Array:
    if isinstance(field.type, pa.MapType):
        values = [None if v is None else list(v.items()) for v in values]
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, AttributeError) as error:
        raise CorruptTableError(f"a manifest entry has a {field.name} that is damaged: {error}", where=where) from None


def _number(value: int) -> int | None:
    """A number that some writers leave outside of 64 bits is none."""
    return value if BEYOND < value < -BEYOND else None


def _longs(columns: Columns, path: Path, nothing: pa.Array) -> pa.Array:
    """Numbers; `nothing` is the array where all are null, so that it is in memory once."""
    numbers, valid = columns.longs(path)
    return longs(numbers, valid & (numbers != BEYOND)) if valid.any() else nothing


def _bytes(columns: Columns, path: Path) -> pa.Array:
    if not columns.known(path).any():
        return pa.nulls(len(columns), pa.binary())
    return pa.array(columns.values(path), pa.binary())


def _ints(columns: Columns, path: Path) -> pa.Array:
    """A number of 32 bits; null where it is null, or is none."""
    numbers, valid = columns.longs(path)
    fits = (numbers >= -(1 << 31)) & (numbers < 1 << 31)
    return pa.array(numbers.astype(np.int32), mask=~(valid & fits))


def _upper(names: Sequence[Any], codes: Any) -> pa.Array:
    return pa.array([str(n).upper() for n in names], pa.string()).take(longs(codes))
