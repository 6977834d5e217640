"""The values of dictionary columns of tables of file version 0.1, which a manifest file holds beside its message.

A field's `dictionary` is a place in that same file: numbers begin at `offset`; for strings, `length` + 1 positions of
8 bytes, which count from the start of the file. So each new manifest file has to contain the values again. In later
versions the values are in the data files, and places are (0, 0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.lance.file.fields import Dictionary, Field
from boathouse.lance.file.schema import leaf_type

_PREFIX = "dict:"


@dataclass(frozen=True, slots=True)
class Values:
    """`data` are the values one after another; `ends` where each string ends in them."""

    data: bytes
    ends: tuple[int, ...] | None = None

    def at(self, start: int) -> tuple[int, bytes]:
        """(the offset to record, bytes) for values that are written at byte `start` of a file."""
        if self.ends is None:
            return start, self.data
        places = struct.pack(f"<{len(self.ends) + 1}q", start, *(start + end for end in self.ends))
        return start + len(self.data), self.data + places


Dictionaries = Mapping[tuple[str, Dictionary], Values]
"""By a field's logical type and place: a field that is replaced by another one does not inherit its values."""


def read(data: bytes, fields: Iterable[Field]) -> Dictionaries:
    """The dictionaries in a manifest file; those that are not whole are left out."""
    found = {}
    for field in fields:
        place = field.dictionary
        if place is not None and place.length > 0:
            values = _values(data, place, field.logical_type)
            if values is not None:
                found[field.logical_type, place] = values
    return found


def missing(fields: Iterable[Field], known: Dictionaries) -> Field | None:
    """A field whose values are not known, so that no manifest file can be written for it."""
    places = ((f, f.dictionary) for f in fields)
    return next((f for f, d in places if d is not None and d.length > 0 and (f.logical_type, d) not in known), None)


def placed(fields: Iterable[Field], known: Dictionaries, start: int) -> tuple[tuple[Field, ...], bytes]:
    """The fields with the places of their values, which are written from byte `start` on, and those bytes."""
    out: list[Field] = []
    parts = bytearray()
    for field in fields:
        values = known.get((field.logical_type, field.dictionary)) if field.dictionary is not None else None
        if field.dictionary is not None and values is not None:
            offset, written = values.at(start + len(parts))
            parts += written
            field = replace(field, dictionary=replace(field.dictionary, offset=offset))
        out.append(field)
    return tuple(out), bytes(parts)


def _values(data: bytes, place: Dictionary, logical: str) -> Values | None:
    kind = _value_type(logical)
    if kind is None or place.offset < 0:
        return None
    if pa.types.is_primitive(kind):
        size = (place.length * kind.bit_width + 7) // 8
        raw = data[place.offset : place.offset + size]
        return Values(raw) if len(raw) == size else None
    size = (place.length + 1) * 8
    raw = data[place.offset : place.offset + size]
    if len(raw) < size:
        return None
    first, *ends = struct.unpack(f"<{place.length + 1}q", raw)
    if not all(0 <= a <= b <= len(data) for a, b in zip((first, *ends), ends)):
        return None
    return Values(data[first : ends[-1]], tuple(end - first for end in ends))


def _value_type(logical: str) -> pa.DataType | None:
    """The type of a dictionary's values, if it is one that a manifest file can hold."""
    if not logical.startswith(_PREFIX):
        return None
    try:
        kind = leaf_type(logical).value_type
    except (CorruptTableError, UnsupportedFeatureError):
        return None
    t = pa.types
    strings = t.is_string(kind) or t.is_binary(kind) or t.is_large_string(kind) or t.is_large_binary(kind)
    return kind if strings or t.is_primitive(kind) else None
