"""Variants from columns of JSON text.

The same answers as `Variant.from_json` gives row by row (boathouse.variant.json_in has the rules): what the scanners
of whole columns do not surely take is given to it, so that it decides on every error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.errors import InvalidArgumentError, InvalidJsonError
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.json_leaves import leaves_of
from boathouse.variant.columns.json_scan import Texts, scan
from boathouse.variant.columns.json_shapes import shapes_of, skeletons
from boathouse.variant.columns.json_write import write
from boathouse.variant.columns.lexicon import variant_array
from boathouse.variant.columns.ragged import Ints, Mask, Ragged, interleave, splits_of, stack
from boathouse.variant.json_in import from_json as one_from_json
from boathouse.variant.primitives import EMPTY_METADATA, NULL_VALUE

# Text that is worked on at a time: what is made of it has to stay in the processor's cache.
_STEP = 1 << 19


def from_json(texts: Any, *, lenient: Lenient | None = None) -> pa.StructArray | pa.ChunkedArray:
    """The variant column `struct<metadata, value>` of a column of JSON text; chunked if `texts` is.

    `texts`: an Arrow array or chunked array of strings or binary in UTF-8, of any layout, dictionaries and views too;
    null rows stay null. Each row has the smallest dictionary of its names, sorted, so rows with the same names have
    the same metadata; all else is canonical too. Raises InvalidJsonError with the row and byte of the first text that
    `Variant.from_json` refuses; with `lenient` such rows become null and are counted there.
    """
    if isinstance(texts, pa.ChunkedArray):
        first, made = 0, []
        for chunk in texts.chunks:
            made.append(_from_array(chunk, lenient, first))
            first += len(chunk)
        return pa.chunked_array(made or [_from_array(pa.array([], pa.string()), None, 0)])
    return _from_array(_arrow(texts), lenient, 0)


def _arrow(texts: Any) -> pa.Array:
    if isinstance(texts, pa.Array):
        return texts
    if hasattr(texts, "__arrow_c_array__"):
        return pa.array(texts)
    raise InvalidArgumentError(f"{type(texts).__name__} is no Arrow array", advice="pass a column of JSON text")


def _plain(array: pa.Array) -> pa.LargeBinaryArray:
    """The bytes of text of any layout."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    t = pa.types
    kind = array.type
    if t.is_null(kind):
        return array.cast(pa.large_binary())
    text = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    if not (text or t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind)):
        raise InvalidArgumentError(f"a column of {kind} has no JSON text", advice="pass strings or UTF-8 bytes")
    if t.is_string_view(kind):
        array = array.cast(pa.binary_view())
    return array.cast(pa.large_binary())


def _from_array(array: pa.Array, lenient: Lenient | None, first_row: int) -> pa.StructArray:
    plain = _plain(array)
    valid = plain.is_valid().to_numpy(zero_copy_only=False)
    dense = plain.drop_null() if plain.null_count else plain
    rows = np.flatnonzero(valid)
    made = [_step(dense.slice(a, b - a), rows[a:b] + first_row, lenient) for a, b in _steps(dense)]
    made.append(_Made(Ragged.of([EMPTY_METADATA]), Ragged.of([NULL_VALUE]), np.empty(0, np.bool_)))  # for null rows
    metadata = stack([one.metadata for one in made])
    values = stack([one.values for one in made])
    bad = np.concatenate([one.bad for one in made])
    if plain.null_count:
        places = np.full(len(plain), len(dense))
        places[rows] = np.arange(len(dense))
        metadata, values = metadata.take(places), values.take(places)
    valid[rows[bad]] = False
    return variant_array(metadata.slice(0, len(plain)), values.slice(0, len(plain)), valid)


def _steps(array: pa.LargeBinaryArray) -> Iterator[tuple[int, int]]:
    """Runs of rows of about _STEP bytes."""
    offsets = Ragged.from_arrow(array).offsets
    first = 0
    while first < len(array):
        last = int(np.searchsorted(offsets, offsets[first] + _STEP, "right")) - 1
        last = min(max(last, first + 1), len(array))
        yield first, last
        first = last


@dataclass(frozen=True, eq=False)
class _Made:
    """Variants of a run of rows; those of `bad` rows are variant null."""

    metadata: Ragged
    values: Ragged
    bad: Mask


def _step(array: pa.LargeBinaryArray, rows: Ints, lenient: Lenient | None) -> _Made:
    """The variants of some rows, which are `rows` of the whole column."""
    found = scan(Texts.of(array))
    which, distinct = skeletons(found)
    shapes = shapes_of(distinct)
    first_leaf = splits_of(shapes.text_leaves[which])[:-1]
    leaves, broken = leaves_of(found)
    good = shapes.good[which]
    good[broken] = False
    which = which[good]
    metadata, values = shapes.metadata.take(which), write(shapes, which, first_leaf[good], leaves)
    bad = np.zeros(len(array), np.bool_)
    if len(which) == len(array):
        return _Made(metadata, values, bad)
    done = found.texts.rows[good]
    left = np.setdiff1d(np.arange(len(array)), done)
    made = [_one(array[row].as_py(), int(rows[row]), lenient) for row in left.tolist()]
    bad[left] = [one is None for one in made]
    others = [(EMPTY_METADATA, NULL_VALUE) if one is None else one for one in made]
    places = [done, left]
    return _Made(
        interleave([metadata, Ragged.of([one[0] for one in others])], places, len(array)),
        interleave([values, Ragged.of([one[1] for one in others])], places, len(array)),
        bad,
    )


def _one(text: bytes, row: int, lenient: Lenient | None) -> tuple[bytes, bytes] | None:
    """Metadata and value of one text, or None if it is refused and `lenient` counts it. Raises InvalidJsonError."""
    try:
        variant = one_from_json(text)
        return variant.metadata, variant.value
    except InvalidJsonError as problem:
        if lenient is None:
            raise InvalidJsonError(problem.message, offset=problem.offset, row=row) from None
        lenient.add(np.array([row]))
        return None
