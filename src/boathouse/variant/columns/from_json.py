"""Variants from columns of JSON text.

Gives the same results as `Variant.from_json` row by row (boathouse.variant.json_in has the rules): rows that the column
scanners cannot handle with certainty are passed to it, so that it decides on every error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.errors import InvalidArgumentError
from boathouse.variant.columns.byte_slices import imported
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.json_batches import build
from boathouse.variant.columns.metadata_builder import variant_array

_LARGE = pa.struct([pa.field(name, pa.large_binary(), False) for name in ("metadata", "value")])


def from_json(texts: Any, *, lenient: Lenient | None = None) -> pa.StructArray | pa.ChunkedArray:
    """The variant column `struct<metadata, value>` of a column of JSON text; chunked if `texts` is.

    `texts`: an Arrow array or chunked array (or what exports one) of strings or binary in UTF-8, of any layout,
    dictionaries and views too; null rows stay null. Each row has the smallest dictionary of its names, sorted, so rows
    with the same names have the same metadata; everything else is canonical too. Numbers become the types that
    `Variant.from_json` gives them.

    Raises InvalidJsonError with the row and byte of the first text that is not JSON; with `lenient` such rows become
    null and are counted.

    >>> column = bh.variant.from_json(pa.array(['{"a": {"b": 5}}', "[1]"]))
    >>> bh.variant.extract(column, "$.a.b", "int").to_pylist()
    [5, None]
    """
    texts = imported(texts, "pass a column of JSON text")
    if isinstance(texts, pa.ChunkedArray):
        first, made = 0, []
        for chunk in texts.chunks:
            made.append(_from_array(chunk, lenient, first))
            first += len(chunk)
        made = made or [_from_array(pa.array([], pa.string()), None, 0)]
        if len({array.type for array in made}) > 1:  # some chunks hold more than 2 GiB
            made = [array.cast(_LARGE) for array in made]
        return pa.chunked_array(made)
    return _from_array(texts, lenient, 0)


def _plain(array: pa.Array) -> pa.LargeBinaryArray:
    """The bytes of a string column of any layout."""
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
    made = build(dense, rows + first_row, lenient)
    metadata, values = made.metadata, made.values
    if plain.null_count:
        places = np.full(len(plain), len(dense))
        places[rows] = np.arange(len(dense))
        metadata, values = metadata.take(places), values.take(places)
    valid[rows[made.bad]] = False
    return variant_array(metadata.slice(0, len(plain)), values.slice(0, len(plain)), valid)
