"""Writes Avro records from Arrow columns: every value of a column becomes its bytes at once, and Arrow joins those of a
record. Nothing is done for each record in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.binary_scalars import binary_scalar
from boathouse.arrow.layouts import members

Schema = Any
Longs = npt.NDArray[np.int64]
Part: TypeAlias = "pa.Array | bytes"
"""The bytes of a field in each record, or those that it has in all."""
_NULL, _PRESENT, _END = b"\x00", b"\x02", b"\x00"
_BLOCK: Final = 64_000
"""The size of a block: records of different blocks can be decoded together."""
_SIGNED: Final = {"int": pa.int32(), "long": pa.int64()}


def blocks(columns: Mapping[str, pa.Array], schema: Schema, rows: int) -> Iterator[tuple[int, bytes]]:
    """The records, block by block, with the number of each block's. `columns` are the fields of the schema by name,
    those of records in it by their path, joined by dots; a field without a column is null. The column of a record is
    its encoded bytes."""
    yield from _cut_blocks(_whole(_record(columns, schema, "", rows), rows), rows)


def row_blocks(columns: Sequence[pa.Array], schema: Schema, rows: int) -> Iterator[tuple[int, bytes]]:
    """The same of rows of any types; the columns are `arrow.normal`, one for each field of the schema, and have nulls
    where it is a union alone."""
    parts = [_value(column, f["type"]) for column, f in zip(columns, schema["fields"], strict=True)]
    yield from _cut_blocks(_whole(_joined(parts), rows), rows)


def _cut_blocks(whole: pa.BinaryArray, rows: int) -> Iterator[tuple[int, bytes]]:
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, np.int32, rows + 1, whole.offset * 4).astype(np.int64)
    first = 0
    while first < rows:
        last = int(np.searchsorted(ends, ends[first] + _BLOCK, "left"))
        last = min(max(last, first + 1), rows)
        yield last - first, data.slice(int(ends[first]), int(ends[last] - ends[first])).to_pybytes()
        first = last


def _whole(part: Part, rows: int) -> pa.BinaryArray:
    if not isinstance(part, bytes):
        return part
    offsets = np.arange(rows + 1, dtype=np.int32) * len(part)
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(part * rows)])


def _record(columns: Mapping[str, pa.Array], schema: Schema, above: str, rows: int) -> Part:
    found: list[Part] = []
    for field in schema["fields"]:
        name = above + field["name"]
        inside = isinstance(field["type"], dict) and field["type"]["type"] == "record"
        if inside and name in columns:
            found.append(columns[name])
        elif inside:
            found.append(_record(columns, field["type"], name + ".", rows))
        else:
            found.append(_field(columns.get(name), field["type"]))
    return _joined(found)


def _field(array: pa.Array | None, schema: Schema) -> Part:
    if array is None:
        if not isinstance(schema, list):
            raise ValueError(f"a value of {schema} is missing")
        return _NULL
    if array.null_count and not isinstance(schema, list):
        raise ValueError(f"a value of {schema} is missing")
    return _value(array, schema)


def _value(array: pa.Array, schema: Schema) -> Part:
    """The bytes of each value; those of nulls are undefined in a type that is no union."""
    if not isinstance(schema, list):
        return encoded(array, schema)
    if array.null_count == len(array):
        return _NULL
    values = encoded(array, next(s for s in schema if s != "null"))
    if not array.null_count:
        return _joined([_PRESENT, values])
    return pc.if_else(
        array.is_valid(), pc.binary_join_element_wise(binary_scalar(_PRESENT), values, _NOTHING), binary_scalar(_NULL)
    )


def _joined(parts: list[Part]) -> Part:
    """The parts of each record, one after the other."""
    merged: list[Part] = []
    for part in parts:
        if merged and isinstance(part, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += part
        elif part != b"":
            merged.append(part)
    if all(isinstance(part, bytes) for part in merged):
        return b"".join(p for p in merged if isinstance(p, bytes))
    if len(merged) == 1:
        return merged[0]
    return pc.binary_join_element_wise(*(binary_scalar(p) if isinstance(p, bytes) else p for p in merged), _NOTHING)


_NOTHING: Final = binary_scalar(b"")


def encoded(array: pa.Array, schema: Schema) -> pa.BinaryArray:
    """The bytes of each value of a type that is no union; those of nulls are undefined."""
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "int" | "long":
            return varints(_longs(array, kind))
        case "boolean":
            return _cut(pc.cast(array.fill_null(False), pa.uint8()).to_numpy(), 1)
        case "float" | "double":
            return _cut(array.fill_null(0).to_numpy(), 4 if kind == "float" else 8)
        case "string" | "bytes":
            strings = _storage(array).cast(pa.binary()).fill_null(b"")
            sizes = varints(np.asarray(pc.binary_length(strings), np.int64))
            return pc.binary_join_element_wise(sizes, strings, _NOTHING)
        case "fixed":
            return _fixed(array, int(schema["size"]))
        case "array":
            return _array(array, schema["items"])
        case "map":
            fields = [{"name": "key", "type": "string"}, {"name": "value", "type": schema["values"]}]
            return _array(array, {"type": "record", "fields": fields})
        case "record":
            parts = [_value(child, f["type"]) for child, f in zip(members(array), schema["fields"], strict=True)]
            return _whole(_joined(parts), len(array))
    raise TypeError(f"{schema} is not written by columns")


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _longs(array: pa.Array, kind: str) -> Longs:
    """Numbers, also those of days and times."""
    if not pa.types.is_integer(array.type):
        array = array.view(_SIGNED[kind])
    return array.fill_null(0).to_numpy().astype(np.int64)


def _array(array: pa.Array, items: Schema) -> pa.BinaryArray:
    """A list, or a map as one of its entries."""
    offsets = np.asarray(array.offsets, np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    if isinstance(array, pa.MapArray):
        pairs = {f["name"]: f["type"] for f in items["fields"]}
        key, value = (c.slice(first, last - first) for c in (array.keys, array.items))
        values = _whole(_joined([encoded(key, pairs["key"]), _value(value, pairs["value"])]), last - first)
    else:
        values = _whole(_value(array.values.slice(first, last - first), items), last - first)
    rows = pa.ListArray.from_arrays(pa.array((offsets - first).astype(np.int32)), values)
    counts = varints(np.diff(offsets))
    whole = pc.binary_join_element_wise(counts, pc.binary_join(rows, _NOTHING), binary_scalar(_END), _NOTHING)
    return pc.if_else(pc.equal(pc.list_value_length(rows), 0), binary_scalar(_END), whole)


def _fixed(array: pa.Array, size: int) -> pa.BinaryArray:
    array = _storage(array)
    if not pa.types.is_decimal(array.type):
        return array.cast(pa.binary()).fill_null(bytes(size))
    low_first = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * 16 :][: len(array) * 16].reshape(-1, 16)
    return _cut(np.ascontiguousarray(_extended(low_first[:, ::-1], size)), size)


def _extended(numbers: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Big-endian numbers in so many bytes."""
    if size <= 16:
        return numbers[:, 16 - size :]
    sign = np.where(numbers[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    return np.concatenate([np.repeat(sign, size - 16, 1), numbers], 1)


def _cut(values: npt.NDArray[Any], size: int) -> pa.BinaryArray:
    """Values of one size."""
    values = np.ascontiguousarray(values)
    rows = values.nbytes // size
    offsets = np.arange(rows + 1, dtype=np.int32) * size
    return pa.BinaryArray.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(values)])


def varints(values: Longs) -> pa.BinaryArray:
    """Zigzag varints."""
    bits = ((values << 1) ^ (values >> 63)).view(np.uint64)
    sizes = np.ones(len(bits), np.int64)
    for shift in range(7, 70, 7):
        longer = bits >> np.uint64(shift) > 0 if shift < 64 else np.zeros(len(bits), np.bool_)
        if not longer.any():
            break
        sizes += longer
    offsets = np.zeros(len(bits) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    for i in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > i)
        byte = (bits[rows] >> np.uint64(7 * i)) & np.uint64(127)
        out[offsets[rows] + i] = byte.astype(np.uint8) | np.where(sizes[rows] > i + 1, 128, 0).astype(np.uint8)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(bits), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    )
