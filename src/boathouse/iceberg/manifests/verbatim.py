"""The data files of entries as they are encoded: a manifest that loses files repeats them byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.binary_scalars import binary_scalar
from boathouse.arrow.longs import longs
from boathouse.avro import container as avro
from boathouse.avro.columns import Columns
from boathouse.avro.cursors import Buffer, DamagedError, Longs, Schema, apart, stepper
from boathouse.avro.writer import varints
from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.entries import FILE, LiveFiles
from boathouse.iceberg.manifests.schemas import ENTRY_NAMES

_ROW_ID = "first_row_id"
_PRESENT, _NOTHING = binary_scalar(b"\x02"), binary_scalar(b"")


def encoded_files(live: LiveFiles, row_ids: pa.Array, schema: Schema) -> pa.Array | None:
    """The encoded data files, with these row ids where they inherit them; None if their manifest does not encode them
    as one of `schema` does, or has few entries. Raises CorruptTableError."""
    columns = live.columns
    if not isinstance(columns, Columns) or not len(columns):
        return None
    mine = _fields(avro.by_ids(schema, ENTRY_NAMES, columns.where))
    theirs = _fields(columns.schema)
    names = [f["name"] for f in theirs]
    if FILE not in names or not _alike(_file(mine), _file(theirs)):
        return None
    inside = _fields(_file(theirs))
    numbered = [f["name"] for f in inside].index(_ROW_ID) if columns.type((FILE, _ROW_ID)) is not None else len(inside)
    try:
        with avro.decoding(columns.where):
            begin = _after(columns.buffer, theirs[: names.index(FILE)], columns.starts)
            middle = _after(columns.buffer, inside[:numbered], begin)
            end = _after(columns.buffer, inside[numbered:], middle)
    except DamagedError as error:
        raise CorruptTableError(f"a manifest cannot be decoded: {error}", where=columns.where) from None
    whole = _cut(columns.buffer, begin, end)
    valid, known = row_ids.is_valid().to_numpy(zero_copy_only=False), columns.known((FILE, _ROW_ID))
    if (known & ~valid).any():
        return None
    inherits = valid & ~known
    if not inherits.any():
        return whole
    # A null is the number of its branch, which is the first one, in a byte; others could write it in more.
    if numbered == len(inside) or columns.buffer.numbers[middle[inherits]].any():
        return None
    ids = varints(row_ids.fill_null(0).to_numpy().astype(np.int64))
    before, after = _cut(columns.buffer, begin, middle), _cut(columns.buffer, np.minimum(middle + 1, end), end)
    given = pc.binary_join_element_wise(before, _PRESENT, ids, after, _NOTHING)
    return pc.if_else(pa.array(inherits), given, whole)


def _fields(record: Schema) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record["fields"]
    return found


def _file(entry: Sequence[dict[str, Any]]) -> Schema:
    return next(f["type"] for f in entry if f["name"] == FILE)


def _alike(one: Schema, other: Schema) -> bool:
    """Whether values of two types (`by_ids(...)`) are the same fields in the same bytes; the names of types do not
    matter."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() - {"name"} if one.get("type") in ("record", "fixed", "enum") else one.keys()
        others = other.keys() - {"name"} if other.get("type") in ("record", "fixed", "enum") else other.keys()
        return keys == others and all(_alike(one[k], other[k]) for k in keys)
    return type(one) is type(other) and one == other


def _after(buffer: Buffer, fields: Sequence[dict[str, Any]], places: Longs) -> Longs:
    return apart(buffer, stepper({"type": "record", "fields": list(fields)}, frozenset()), places)[0]


def _cut(buffer: Buffer, begin: Longs, end: Longs) -> pa.Array:
    """The bytes between ascending places: every second of the values that the whole buffer is made of."""
    cuts = np.stack([begin, end], 1).ravel()
    offsets = pa.py_buffer(cuts.astype(np.int64))
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, offsets, pa.py_buffer(buffer.data)]
    )
    return array.take(longs(np.arange(len(begin)) * 2)).cast(pa.binary())
