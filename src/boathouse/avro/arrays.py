"""Decodes the fields of many Avro records at once into Arrow arrays, nested ones too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.avro.codec import skipper
from boathouse.avro.columns import at_places, sliced
from boathouse.avro.cursors import ABSENT, Buffer, DamagedError, Longs, Marks, over_items, stepper
from boathouse.avro.types import AvroType

_FLOATS = {"float": ("<f4", 4), "double": ("<f8", 8)}


def decoded(buffer: Buffer, type: AvroType, places: Marks, rows: int) -> pa.Array:
    """The values of a type in this many records, whose places are ascending. Raises DamagedError, ArrowInvalid."""
    if type.kind == "null":
        return pa.nulls(rows)
    at = places[type.path]
    missing = at == ABSENT
    here = np.where(missing, 0, at)
    match type.kind:
        case "record":
            return _record(buffer, type, places, missing)
        case "array" | "map":
            return _repeated(buffer, type, at, missing)
        case "int" | "long":
            return _integers(buffer, type, at, missing)
        case "boolean":
            return pa.array(buffer.numbers[here] != 0, mask=missing)
        case "float" | "double":
            kind, width = _FLOATS[type.kind]
            bits = np.ascontiguousarray(buffer.windows(width)[here])
            return pa.array(bits.view(kind).reshape(-1), mask=missing)
        case "enum":
            return _enum(buffer, type, at, missing)
        case "fixed":
            size = int(type.schema["size"])
            if pa.types.is_decimal(type.arrow):
                return _decimals(buffer, type.arrow, at, np.full(len(at), size), missing)
            return _fixed(buffer, size, at, missing)
    if pa.types.is_decimal(type.arrow):
        sizes, begin = np.zeros(len(at), np.int64), at.copy()
        sizes[~missing], begin[~missing] = buffer.sizes(at[~missing])
        return _decimals(buffer, type.arrow, begin, sizes, missing)
    return sliced(buffer, at, type.arrow)


def _record(buffer: Buffer, type: AvroType, places: Marks, missing: npt.NDArray[np.bool_]) -> pa.Array:
    children = [decoded(buffer, b, places, len(missing)) for b in type.below]
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.Array.from_buffers(type.arrow, len(missing), [valid], children=children)


def _integers(buffer: Buffer, type: AvroType, at: Longs, missing: npt.NDArray[np.bool_]) -> pa.Array:
    numbers = np.zeros(len(at), np.int64)
    numbers[~missing] = buffer.longs(at[~missing])[0]
    found = pa.array(numbers, mask=missing)
    return (found.cast(pa.int32()) if type.kind == "int" else found).view(type.arrow)


def _enum(buffer: Buffer, type: AvroType, at: Longs, missing: npt.NDArray[np.bool_]) -> pa.Array:
    numbers = np.zeros(len(at), np.int64)
    numbers[~missing] = buffer.longs(at[~missing])[0]
    symbols = pa.array(type.schema["symbols"], pa.string())
    if (len(at) and (numbers[~missing] < 0).any()) or (numbers[~missing] >= len(symbols)).any():
        raise DamagedError("a value is none of the symbols of its enum")
    return symbols.take(pa.array(numbers, mask=missing))


def _fixed(buffer: Buffer, size: int, at: Longs, missing: npt.NDArray[np.bool_]) -> pa.Array:
    if missing.all():
        return pa.nulls(len(at), pa.binary(size))
    bits = np.ascontiguousarray(buffer.windows(size)[np.where(missing, at[~missing][0], at)])
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), len(at), [valid, pa.py_buffer(bits)])


def _decimals(
    buffer: Buffer, type: pa.DataType, at: Longs, sizes: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_]
) -> pa.Array:
    """Big-endian numbers of any size, extended by their sign to 16 bytes."""
    out = np.zeros((len(at), 16), np.uint8)
    for size in np.unique(sizes[~missing]).tolist():
        if size == 0:
            raise DamagedError("a decimal has no bytes")
        rows = np.flatnonzero(~missing & (sizes == size))
        raw = buffer.windows(size)[at[rows]]
        kept = raw[:, -16:]
        sign = np.where(kept[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
        if (raw[:, :-16] != sign).any():
            raise DamagedError("a decimal has more than 128 bits")
        whole = np.broadcast_to(sign, (len(rows), 16)).copy()
        whole[:, 16 - kept.shape[1] :] = kept
        out[rows] = whole[:, ::-1]
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    found = pa.Array.from_buffers(type, len(at), [valid, pa.py_buffer(out)])
    found.validate(full=True)  # the precision
    return found


def _repeated(buffer: Buffer, type: AvroType, at: Longs, missing: npt.NDArray[np.bool_]) -> pa.Array:
    counts, starts = _items(buffer, type, at, missing)
    item = type.below[0]
    found = at_places(buffer, type.items, frozenset(item.wanted()), starts)
    values = decoded(buffer, item, found, len(starts))
    if pa.types.is_map(type.arrow):
        values = _entries(values, type.arrow)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    valid = pa.array(~missing).buffers()[1] if missing.any() else None
    return pa.Array.from_buffers(type.arrow, len(at), [valid, offsets.buffers()[1]], children=[values])


def _entries(values: pa.Array, type: pa.MapType) -> pa.Array:
    key, value = (values.field(values.type.get_field_index(name)) for name in ("key", "value"))
    if key.null_count:
        raise DamagedError("the key of a map is null")
    fields = [type.key_field.with_name("key"), type.item_field.with_name("value")]
    return pa.StructArray.from_arrays([key, value], fields=fields)


def _items(
    buffer: Buffer, type: AvroType, at: Longs, missing: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], Longs]:
    """How many items each row has, and where each begins, in order."""
    step, skip = stepper(type.items, frozenset()), skipper(type.items)
    counts = np.zeros(len(at), np.int64)
    starts: list[Longs] = [np.zeros(0, np.int64)]
    single: list[int] = []
    rows = np.flatnonzero(~missing)
    place = at[rows]

    def one(place: int, row: int) -> int:
        single.append(place)
        return skip(buffer.data, place)

    def many(places: Longs, which: Longs) -> Longs:
        starts.append(places.copy())
        return step(buffer, places, {})

    while len(rows):
        count, place = buffer.counts(place)
        on = count > 0
        rows, place, count = rows[on], place[on], count[on]
        counts[rows] += count
        place = over_items(place, count, many, one)
    return counts, np.sort(np.concatenate([*starts, np.array(single, np.int64)]))
