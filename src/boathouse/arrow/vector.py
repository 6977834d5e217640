"""Conversions between Arrow arrays and numpy: values separate from nulls, and loops over distinct values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Value: TypeAlias = pa.Array | pa.Scalar
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_NUMPY = {pa.bool_(): np.bool_, pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64} | {
    pa.type_for_alias(name): getattr(np, name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


def as_array(value: Value, rows: int) -> pa.Array:
    """`value` as an array of `rows`; a scalar is repeated."""
    if isinstance(value, pa.Scalar):
        if not rows:  # Arrow repeats no list zero times
            return pa.nulls(0, value.type)
        return pa.repeat(value, rows) if not pa.types.is_null(value.type) else pa.nulls(rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array. Views are cast to plain types first: pyarrow cannot take them by index."""
    words = array.dictionary
    if pa.types.is_string_view(words.type) or pa.types.is_binary_view(words.type):
        words = words.cast(pa.string() if pa.types.is_string_view(words.type) else pa.binary())
        array = pa.DictionaryArray.from_arrays(array.indices, words)
    return array.dictionary_decode()


def nulls(array: pa.Array) -> Bools | None:
    """True where null; None if there is none."""
    if array.null_count == 0:
        return None
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), np.bool_)


def integers(array: pa.Array, fill: int = 0) -> tuple[Ints, Bools | None]:
    """The physical integers of an integer, date, time or timestamp array, `fill` where null."""
    t = array.type
    if pa.types.is_date32(t) or pa.types.is_time32(t):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(t) or pa.types.is_time64(t) or pa.types.is_date64(t) or pa.types.is_duration(t):
        array = array.view(pa.int64())
    mask = nulls(array)
    if mask is not None:
        array = pc.fill_null(array, fill)
    return array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), mask


def floats(array: pa.Array, fill: float = 0.0) -> tuple[npt.NDArray[Any], Bools | None]:
    mask = nulls(array)
    if mask is not None:
        array = pc.fill_null(array, fill)
    return array.to_numpy(zero_copy_only=False), mask


def numpy_type(type: pa.DataType) -> Any:
    """The numpy type of a number or boolean. Arrow's own `to_pandas_dtype` needs pandas in pyarrow 24."""
    return _NUMPY[type]


def build(values: npt.NDArray[Any], mask: Bools | None, type: pa.DataType) -> pa.Array:
    """An array of physical `values`, null where `mask`."""
    storage: pa.DataType = type
    if pa.types.is_date32(type):
        storage = pa.int32()
    elif pa.types.is_timestamp(type) or pa.types.is_time64(type):
        storage = pa.int64()
    numbers = values.astype(numpy_type(storage), copy=False)
    out = pa.array(numbers, storage, mask=mask)
    return out if storage == type else out.view(type)


def either(*masks: Bools | None) -> Bools | None:
    given = [m for m in masks if m is not None]
    return np.logical_or.reduce(given) if given else None


def ragged(counts: Ints) -> tuple[Ints, Ints]:
    """For concatenated groups of `counts` items: the group of each item, and its number in the group."""
    total = int(counts.sum())
    owner = np.repeat(np.arange(len(counts)), counts)
    slot = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return owner, slot


def classes(keys: Ints, least: int = 16, most: int = 64) -> Iterator[tuple[int | None, Ints | slice]]:
    """Positions grouped by equal key: (key, positions) for keys of at least `least` rows (`most` groups at most), then
    (None, the rest). Keys are not negative."""
    rows = len(keys)
    if not rows:
        return
    first = int(keys[0])
    if bool((keys == first).all()):
        yield first, slice(None)
        return
    if int(keys.max()) < 1 << 16:
        counts = np.bincount(keys)
        distinct = np.flatnonzero(counts)
        counts = counts[distinct]
    else:
        distinct, counts = np.unique(keys, return_counts=True)
    big = np.flatnonzero(counts >= least)
    if len(big) > most:
        big = big[np.argsort(counts[big])[::-1][:most]]
    left = np.ones(rows, np.bool_)
    for one in distinct[big]:
        same = keys == one
        left[same] = False
        yield int(one), np.flatnonzero(same)
    rest = np.flatnonzero(left)
    if len(rest):
        yield None, rest


def per_distinct(fn: Callable[[Any], Any], array: pa.Array, type: pa.DataType) -> pa.Array:
    """`fn` of each value, called once per distinct value; null stays null and None becomes null."""
    coded = array.dictionary_encode()
    results = pa.array([fn(v) for v in coded.dictionary.to_pylist()], type)
    return results.take(coded.indices)


def per_row(fn: Callable[..., Any], arrays: Sequence[pa.Array], type: pa.DataType) -> pa.Array:
    """`fn` of each row; null where any argument is null."""
    rows = zip(*(a.to_pylist() for a in arrays))
    return pa.array([None if any(v is None for v in row) else fn(*row) for row in rows], type)


def only_where(keep: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """The values for which `keep` is true, null elsewhere.

    With a null scalar instead, Arrow 23 makes an invalid array of a slice of strings.
    """
    return pc.if_else(keep, values, pa.nulls(len(values), values.type))
