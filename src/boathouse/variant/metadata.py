"""The dictionary of the field names in a variant's objects (VariantEncoding.md, "Metadata encoding")."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from boathouse.errors import InvalidArgumentError, MalformedVariant
from boathouse.variant.primitives import EMPTY_METADATA, VERSION, metadata_header, width_of

_CACHED_BELOW = 1 << 16
_UNITS = {2: "H", 4: "I"}


def unsigned(data: bytes, at: int, size: int, count: int) -> Sequence[int]:
    """`count` unsigned little-endian integers of `size` bytes from `at`; the caller has checked the bounds."""
    if size == 1:
        return data[at : at + count]
    if size == 3:
        return [int.from_bytes(data[i : i + 3], "little") for i in range(at, at + 3 * count, 3)]
    return struct.unpack_from(f"<{count}{_UNITS[size]}", data, at)


class Metadata:
    """The dictionary of field names of a variant: names by id, and ids by name (VariantEncoding.md, "Metadata
    encoding").

    `size` is the number of bytes of `raw` that the dictionary occupies; `raw` may be longer. `flag` says that the names
    are marked as sorted, which is never relied on. Each name is checked to be UTF-8 when it is read.

    Raises MalformedVariant for bytes that are not such a dictionary; `parse_metadata` keeps what it has parsed.
    """

    __slots__ = ("_bad", "_ids", "_names", "_offsets", "_strings_at", "flag", "raw", "shapes", "size")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.flag, self._offsets, self._strings_at = _parse(raw)
        self.size = self._strings_at + self._offsets[-1]
        self.shapes: dict[bytes, tuple[str, ...]] = {}  # names by an object's id list, for `decode.read_names`
        self._names: tuple[str, ...] | None = None
        self._bad: tuple[str, int | None] | None = None  # what is wrong with a name, so that it is determined once
        self._ids: dict[bytes, list[int]] | None = None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __repr__(self) -> str:
        return f"Metadata({len(self)} names, {self.size} bytes)"

    def name_bytes(self, id: int) -> bytes:
        """The name as it is stored. Raises MalformedVariant if the id does not exist."""
        if not 0 <= id < len(self._offsets) - 1:
            raise MalformedVariant(f"field id {id:,} in a dictionary of {len(self):,} names")
        return self.raw[self._strings_at + self._offsets[id] : self._strings_at + self._offsets[id + 1]]

    def name(self, id: int) -> str:
        """The name of a field id. Raises MalformedVariant if the id does not exist, or the name is not UTF-8."""
        if self._names is not None and 0 <= id < len(self._names):
            return self._names[id]
        try:
            return self.name_bytes(id).decode()
        except UnicodeDecodeError as problem:
            raise MalformedVariant(
                f"the name of field id {id:,} is not UTF-8",
                offset=self._strings_at + self._offsets[id] + problem.start,
            ) from None

    def names(self) -> tuple[str, ...]:
        """All names, by id. Raises MalformedVariant at the first that is not UTF-8."""
        if self._bad is not None:
            raise MalformedVariant(self._bad[0], offset=self._bad[1])
        if self._names is None:
            try:
                self._names = tuple([self.name(id) for id in range(len(self))])
            except MalformedVariant as problem:
                self._bad = problem.message, problem.offset
                raise
        return self._names

    def ids(self, name: str) -> tuple[int, ...]:
        """The ids of a name, ascending: none, one, or several where the dictionary repeats it."""
        try:
            return tuple(self._by_name().get(name.encode(), ()))
        except UnicodeEncodeError:
            return ()

    def _by_name(self) -> dict[bytes, list[int]]:
        if self._ids is None:
            found: dict[bytes, list[int]] = {}
            base = self._strings_at
            for id, (start, end) in enumerate(pairwise(self._offsets)):
                found.setdefault(self.raw[base + start : base + end], []).append(id)
            self._ids = found
        return self._ids


def _parse(raw: bytes) -> tuple[bool, Sequence[int], int]:
    """The sorted flag, the offsets, and the start of the strings."""
    if not raw:
        raise MalformedVariant("the metadata is empty", offset=0)
    header = raw[0]
    if header & 0x0F != VERSION:
        raise MalformedVariant(
            f"the metadata is of version {header & 0x0F}", offset=0, advice="only version 1 is known: upgrade boathouse"
        )
    size = (header >> 6) + 1
    if len(raw) < 1 + size:
        raise MalformedVariant("the metadata ends within its dictionary size", offset=len(raw))
    count = int.from_bytes(raw[1 : 1 + size], "little")
    strings_at = 1 + size * (count + 2)
    if strings_at > len(raw):
        raise MalformedVariant(
            f"the offsets of {count:,} names do not fit into {len(raw):,} bytes of metadata",
            offset=len(raw),
        )
    offsets = unsigned(raw, 1 + size, size, count + 1)
    if strings_at + offsets[-1] > len(raw):
        raise MalformedVariant("the dictionary's strings end beyond the metadata", offset=1 + size * (count + 1))
    for id, (start, end) in enumerate(pairwise(offsets)):
        if end < start:
            raise MalformedVariant(
                f"dictionary offset {id + 1:,} is below the previous one", offset=1 + size * (id + 2)
            )
    return bool(header & 0x10), offsets, strings_at


_cached = lru_cache(maxsize=512)(Metadata)


def parse_metadata(raw: bytes) -> Metadata:
    """The dictionary in `raw`, which may be longer. Raises MalformedVariant, InvalidArgumentError for what is not
    bytes.

    Refused: another version, offsets that decrease or point beyond the bytes. Accepted: a first offset that is not 0,
    bytes after the last string, names in any order or repeated, whatever the flag says.
    """
    if type(raw) is bytes and len(raw) <= _CACHED_BELOW:
        return _cached(raw)
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"metadata is bytes, not {type(raw).__name__}")
    return Metadata(bytes(raw))


def build_metadata(names: Iterable[str]) -> bytes:
    """Metadata of the names: sorted by their UTF-8 bytes, each once, flag set, with the narrowest offsets.

    Raises InvalidArgumentError for a name with an unpaired surrogate.

    >>> bh.variant.parse_metadata(bh.variant.build_metadata(["b", "a", "b"])).names()
    ('a', 'b')
    """
    strings = sorted({utf8(name) for name in names})
    if not strings:
        return EMPTY_METADATA
    offsets = [0]
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    size = width_of(max(offsets[-1], len(strings)))
    numbers = b"".join([number.to_bytes(size, "little") for number in (len(strings), *offsets)])
    return bytes([metadata_header(True, size)]) + numbers + b"".join(strings)


def utf8(text: str) -> bytes:
    """The UTF-8 bytes. Raises InvalidArgumentError for unpaired surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        raise InvalidArgumentError(
            f"{text!r} has an unpaired surrogate at character {problem.start:,}: UTF-8 cannot encode it"
        ) from None
