"""Entries of manifests as Arrow columns: from manifests of any writer, from files just written, for new manifests.

A column is a field of an entry or of its data file, under the specification's name; `partition.f<id>` is the value of a
partition field, in the type of its result. What is unknown, or not inherited yet, is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_type
from boathouse.avro import items as avro_items
from boathouse.avro.columns import Columns
from boathouse.avro.cursors import BEYOND, Path, Schema
from boathouse.avro.small_files import FewColumns
from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.entries import FILE, LiveFiles
from boathouse.iceberg.manifests.records import DELETED, EXISTING, POSITION_DELETES, Entry, ManifestFile
from boathouse.iceberg.manifests.row_ids import row_ids
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID
from boathouse.iceberg.manifests.values import arrow_array, from_avro
from boathouse.iceberg.manifests.verbatim import encoded_files
from boathouse.types import PartitionField, PartitionSpec

_NUMBER, _ID, _TEXT, _BYTES = pa.int64(), pa.int32(), pa.string(), pa.binary()
_COUNTS, _BOUNDS = pa.map_(_ID, _NUMBER), pa.map_(_ID, _BYTES)
TYPES: Final[Mapping[str, pa.DataType]] = {
    "status": _ID, "snapshot_id": _NUMBER, "sequence_number": _NUMBER, "file_sequence_number": _NUMBER,
    "content": _ID, "file_path": _TEXT, "file_format": _TEXT, "record_count": _NUMBER, "file_size_in_bytes": _NUMBER,
    **dict.fromkeys(("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"), _COUNTS),
    **dict.fromkeys(("lower_bounds", "upper_bounds"), _BOUNDS),
    "key_metadata": _BYTES, "split_offsets": pa.list_(_NUMBER), "equality_ids": pa.list_(_ID), "sort_order_id": _ID,
    "first_row_id": _NUMBER, "referenced_data_file": _TEXT, "content_offset": _NUMBER, "content_size_in_bytes": _NUMBER,
}  # fmt: skip
PUFFIN: Final = "PUFFIN"
MAPS: Final = tuple(name for name, type in TYPES.items() if pa.types.is_map(type))
_PLAIN: Final = ("key_metadata", "sort_order_id", "referenced_data_file", "content_offset", "content_size_in_bytes")
_LISTS: Final = ("split_offsets", "equality_ids")
ENTRY: Final = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
"""The fields of an entry beside its data file."""


def partition_column(field: PartitionField) -> str:
    return f"partition.f{field.recorded_id}"


def layout(spec: PartitionSpec) -> pa.Schema:
    """The columns of a manifest of files of this spec."""
    return pa.schema([*TYPES.items(), *((partition_column(f), to_arrow_type(f.type)) for f in spec)])


def table(arrays: Mapping[str, pa.Array], spec: PartitionSpec, rows: int) -> pa.Table:
    """The columns, null where there is no array."""
    schema = layout(spec)
    return pa.Table.from_arrays([arrays.get(f.name, pa.nulls(rows, f.type)) for f in schema], schema=schema)


def of_live(live: LiveFiles, spec: PartitionSpec, source: ManifestFile, schema: Schema | None = None) -> pa.Table:
    """The live files of the manifest `source` as existing ones, with the numbers and row ids that they inherit. Raises
    CorruptTableError.

    Where the manifest encodes them as one of `schema` does, they have the further column `data_file` of what is
    encoded, and their metrics, lists and, of data files, what is neither counted nor checked are left out.
    """
    ids = row_ids(live.columns, live.rows, source, pa.nulls(len(live), _NUMBER))
    encoded = None if schema is None else encoded_files(live, ids, schema)
    if encoded is None or source.content:
        live = live.whole()
    columns, rows = live.columns, len(live)
    keys: list[pa.Array] = []
    arrays = {
        "status": pa.repeat(pa.scalar(EXISTING, _ID), rows),
        "snapshot_id": longs(live.snapshot_id, live.snapshot_id != BEYOND),
        "sequence_number": longs(live.sequence),
        "file_sequence_number": longs(live.file_sequence),
        "content": longs(columns.longs((FILE, "content"))[0]).cast(_ID),
        "file_path": live.paths(),
        "file_format": _coded(live),
        "record_count": longs(live.rows),
        "file_size_in_bytes": longs(live.sizes),
        "first_row_id": ids,
        **{partition_column(f): live.partition_array(f) for f in spec},
    }
    if encoded is None or source.content:
        arrays |= {name: plain(columns, (FILE, name), TYPES[name]) for name in _PLAIN}
    if encoded is not None:
        return table(arrays, spec, rows).append_column(FILE, encoded)
    arrays |= {name: _map(columns, (FILE, name), TYPES[name], keys) for name in MAPS}
    arrays |= {name: _list(columns, (FILE, name), TYPES[name]) for name in _LISTS}
    return table(arrays, spec, rows)


def _coded(live: LiveFiles) -> pa.Array:
    found = live.formats()
    return pa.array(found.values, _TEXT).take(longs(found.codes))


def _map(columns: Columns | FewColumns, path: Path, type: pa.DataType, keys: list[pa.Array]) -> pa.Array:
    if isinstance(columns, Columns):
        return avro_items.maps(columns, path, type, keys)
    return _damaged(columns, path, [None if v is None else list(v.items()) for v in columns.values(path)], type)


def _list(columns: Columns | FewColumns, path: Path, type: pa.DataType) -> pa.Array:
    if isinstance(columns, Columns):
        return avro_items.lists(columns, path, type)
    return _damaged(columns, path, columns.values(path), type)


def plain(columns: Columns | FewColumns, path: Path, type: pa.DataType) -> pa.Array:
    """A field of entries that are decoded as a whole, null where they lack it. Raises CorruptTableError."""
    if columns.type(path) is None or not columns.known(path).any():
        return pa.nulls(len(columns), type)
    if pa.types.is_integer(type):
        found, valid = columns.longs(path)
        return _damaged(columns, path, [n if v else None for n, v in zip(found.tolist(), valid.tolist())], type)
    return columns.strings(path) if type == _TEXT else _damaged(columns, path, columns.values(path), type)


def _damaged(columns: Columns | FewColumns, path: Path, values: Sequence[Any], type: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, AttributeError) as error:
        raise CorruptTableError(
            f"a manifest entry has a {path[-1]} that is damaged: {error}", where=columns.where
        ) from None


def are_vectors(live: LiveFiles) -> pa.Array:
    """Which entries are deletion vectors."""
    return pc.equal(pc.utf8_upper(_coded(live)), PUFFIN)


def has_vectors(live: LiveFiles) -> bool:
    return any(str(name).upper() == PUFFIN for name in live.formats().values)


def all_vectors(live: LiveFiles) -> bool:
    return all(str(name).upper() == PUFFIN for name in live.formats().values)


def only_files(live: LiveFiles) -> pa.Array:
    """The data file that each entry of position deletes is for alone, as recorded: by name, or by equal bounds of its
    paths; null where there may be others."""
    live = live.whole()
    nothing = pa.nulls(len(live), _TEXT)
    path = (FILE, "referenced_data_file")
    named = nothing if live.columns.type(path) is None else live.columns.strings(path)
    bounds = (live.metric(name, [FILE_PATH_ID])[FILE_PATH_ID] for name in ("lower_bounds", "upper_bounds"))
    lower, upper = (b.cast(_BYTES) for b in bounds)
    shared = pc.fill_null(pc.not_equal(lower, upper), True)
    found = pc.coalesce(named, pc.if_else(shared, None, lower).cast(_TEXT))
    positions = pc.equal(longs(live.columns.longs((FILE, "content"))[0]), POSITION_DELETES)
    return pc.if_else(positions, found, pa.scalar(None, _TEXT))


def marked(entries: pa.Table, gone: npt.NDArray[np.bool_], snapshot_id: int) -> pa.Table:
    """The entries, some of them deleted by this snapshot; the others keep their numbers."""
    mask = pa.array(gone)
    status = pc.if_else(mask, pa.scalar(DELETED, _ID), pa.scalar(EXISTING, _ID))
    deleter = pc.if_else(mask, pa.scalar(snapshot_id, _NUMBER), entries.column("snapshot_id"))
    return entries.set_column(0, "status", status).set_column(1, "snapshot_id", deleter)


def without_offsets(entries: pa.Table) -> pa.Table:
    """The entries without where vectors are in their files, for a format version that has no fields for it."""
    for name in ("content_offset", "content_size_in_bytes"):
        i = entries.schema.get_field_index(name)
        entries = entries.set_column(i, entries.schema.field(i), pa.nulls(entries.num_rows, TYPES[name]))
    return entries


def by_snapshot(entries: pa.Table, snapshot_id: int) -> pa.Table:
    """The entries, added by this snapshot: for a format version in which they do not inherit it."""
    return entries.set_column(1, "snapshot_id", pa.repeat(pa.scalar(snapshot_id, _NUMBER), entries.num_rows))


def of_entries(entries: Sequence[Entry], spec: PartitionSpec) -> pa.Table:
    """A few entries that are given one by one, with partition values as Avro has them under `f<id>`."""
    files = [e["data_file"] for e in entries]
    arrays = {}
    for name, type in TYPES.items():
        values = [e.get(name) for e in (entries if name in ENTRY else files)]
        if pa.types.is_map(type):
            values = [None if v is None else list(v.items()) for v in values]
        arrays[name] = pa.array(values, type)
    for f in spec:
        stored = [d["partition"].get(f"f{f.recorded_id}") for d in files]
        arrays[partition_column(f)] = arrow_array([from_avro(v, f.type) for v in stored], f.type)
    return table(arrays, spec, len(entries))


def map_array(
    keys: Sequence[int],
    values: Sequence[pa.Array],
    type: pa.MapType,
    rows: int,
) -> pa.Array:
    """A map in each row, of the values of these keys that are not null."""
    if not keys:
        return pa.MapArray.from_arrays(pa.array([0] * (rows + 1), _ID), pa.nulls(0, _ID), pa.nulls(0, type.item_type))
    valid = np.stack([v.is_valid().to_numpy(zero_copy_only=False) for v in values], 1)
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(valid.sum(1), out=offsets[1:])
    # The values are key by key, and are taken row by row.
    places = (np.arange(len(keys))[None, :] * rows + np.arange(rows)[:, None])[valid]
    which = np.broadcast_to(np.array(keys, np.int32), valid.shape)[valid]
    items = pa.concat_arrays(list(values)).take(longs(places.astype(np.int64)))
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(which), items)


def tuples(entries: pa.Table, spec: PartitionSpec) -> set[tuple[Any, ...]]:
    """The distinct partition tuples: the bits of their values."""
    names = [partition_column(f) for f in spec]
    if not names or not entries.num_rows:
        return {()} if entries.num_rows else set()
    coded = []
    for name in names:
        found = entries.column(name).combine_chunks()
        if pa.types.is_floating(found.type):
            found = found.view(pa.int32() if found.type.bit_width == 32 else pa.int64())
        coded.append(found.dictionary_encode(null_encoding="encode"))
    rows = {tuple(row) for row in np.unique(np.stack([c.indices.to_numpy() for c in coded], 1), axis=0).tolist()}
    values = [[repr(v) for v in c.dictionary.to_pylist()] for c in coded]
    return {tuple(v[i] for v, i in zip(values, row)) for row in rows}
