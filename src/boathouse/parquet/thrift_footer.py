"""Thrift footers: the VARIANT annotation, read and added to what pyarrow has written; the sink that edits footers.

pyarrow can neither write nor expose it. The annotation is one optional field of a group's SchemaElement, so the footer
(Thrift, compact protocol) is copied with those few bytes inserted; it holds no offsets into itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from boathouse.errors import CorruptTableError

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
"""The magic bytes at the end of a file with an encrypted footer."""
_DEPTH = 64
"""Far deeper than any Parquet metadata is nested."""
_LEVELS = 1_000
"""The most nested groups of a schema: a shredded variant takes three for each level of its own."""
_SCHEMA = 2
_NAME, _CHILDREN, _LOGICAL = 4, 5, 10
_BYTES_OF = {3: 1, 7: 8, 13: 16}
_VARINTS = (4, 5, 6)
_BYTE, _LIST, _SET, _MAP, _STRUCT, _BINARY = 3, 9, 10, 11, 12, 8
# LogicalType is a union, VARIANT its field 16 (long form: zigzag 32), VariantType{1: i8 specification_version = 1}.
_VARIANT_FIELD, _VERSION_FIELD = 16, 1
_VARIANT = bytes([0x0C, 0x20, 0x13, 0x01, 0x00, 0x00])


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """A group annotated VARIANT: its `path` in the Parquet schema, its `first` leaf column, and how many it has.

    `version` is the annotation's specification_version: None where it is missing, as in VARIANT before VARIANT(1).
    """

    path: tuple[str, ...]
    first: int
    leaves: int
    version: int | None


@dataclass(frozen=True, slots=True)
class _Element:
    end: int
    """The position after the element's stop byte."""
    last: int
    """The id of its last field."""
    name: str
    children: int
    variant: bool
    version: int | None


class Cursor:
    """A reader of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise CorruptTableError("the Parquet footer ends too early")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        out = self.byte()
        if out < 0x80:
            return out
        out &= 0x7F
        for shift in range(7, 70, 7):
            byte = self.byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
        raise CorruptTableError("the Parquet footer holds a number of more than 64 bits")

    def field(self, last: int) -> tuple[int, int]:
        """The next field's id and type; type 0 ends the struct."""
        head = self.byte()
        if not head & 0x0F:
            return last, 0
        if head >> 4:
            return last + (head >> 4), head & 0x0F
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1), head & 0x0F

    def list_head(self) -> tuple[int, int]:
        """How many elements of which type."""
        head = self.byte()
        size = head >> 4
        return (self.varint() if size == 15 else size), head & 0x0F

    def text(self) -> str:
        size = self.varint()
        self.at += size
        # Names that are not UTF-8 are refused only where they are needed.
        return self.data[self.at - size : self.at].decode("utf-8", "replace")

    def skip(self, kind: int, in_list: bool = False, depth: int = 0) -> None:
        if depth > _DEPTH:
            raise CorruptTableError(f"the Parquet footer is nested more than {_DEPTH} levels deep")
        if kind in _VARINTS:
            self.varint()
        elif kind in (1, 2):
            self.at += in_list  # a boolean field is in its header
        elif kind in _BYTES_OF:
            self.at += _BYTES_OF[kind]
        elif kind == _BINARY:
            size = self.varint()  # before `self.at` is read, because it advances it
            self.at += size
        elif kind in (_LIST, _SET):
            size, of = self.list_head()
            for _ in range(size):
                self.skip(of, True, depth + 1)
                self._within()
        elif kind == _MAP:
            self._skip_map(depth + 1)
        elif kind == _STRUCT:
            last, of = self.field(0)
            while of:
                self.skip(of, False, depth + 1)
                last, of = self.field(last)
        else:
            raise CorruptTableError(f"the Parquet footer holds a field of the unknown Thrift type {kind}")

    def _skip_map(self, depth: int) -> None:
        size = self.varint()
        kinds = self.byte() if size else 0
        for _ in range(size):
            self.skip(kinds >> 4, True, depth)
            self.skip(kinds & 0x0F, True, depth)
            self._within()

    def _within(self) -> None:
        if self.at > len(self.data):
            raise CorruptTableError("the Parquet footer ends too early")


def annotated(footer: bytes) -> tuple[VariantGroup, ...]:
    """The groups that the Thrift `footer` annotates VARIANT, with or without a version, in the schema's order."""
    return _groups(_elements(footer))


def _groups(elements: list[_Element]) -> tuple[VariantGroup, ...]:
    found: list[VariantGroup] = []
    open_groups: list[tuple[int, int]] = []  # depth, and the place in `found`
    leaves = 0

    def close(depth: int) -> None:
        while open_groups and open_groups[-1][0] >= depth:
            at = open_groups.pop()[1]
            found[at] = replace(found[at], leaves=leaves - found[at].first)

    for path, element in _with_paths(elements):
        close(len(path))
        if element.variant and element.children:
            open_groups.append((len(path), len(found)))
            found.append(VariantGroup(tuple(path), leaves, 0, element.version))
        leaves += not element.children
    close(0)
    return tuple(found)


def read_footer_bytes(stream: Any, size: int) -> bytes:
    """The Thrift footer of a Parquet file of `size` bytes that can be read at any position. Raises
    CorruptTableError."""
    stream.seek(max(size - 8, 0))
    tail = stream.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length + 8 > size:
        raise CorruptTableError("the file does not end as a Parquet file does")
    stream.seek(size - 8 - length)
    return bytes(stream.read(length))


def annotate(footer: bytes, groups: Collection[tuple[str, ...]]) -> bytes:
    """The Thrift `footer` with the groups at these paths of the Parquet schema annotated VARIANT(1).

    Raises CorruptTableError if a group is missing.
    """
    out = bytearray()
    copied = 0
    missing = set(groups)
    for path, element in _with_paths(_elements(footer)):
        if not element.children or tuple(path) not in missing:
            continue
        missing.remove(tuple(path))
        out += footer[copied : element.end - 1]
        out += bytes([(_LOGICAL - element.last) << 4 | _STRUCT]) + _VARIANT
        copied = element.end - 1
    if missing:
        raise CorruptTableError(f"the file has no group {sorted(missing)[0]} to annotate")
    return bytes(out + footer[copied:])


def _elements(footer: bytes) -> list[_Element]:
    cursor = Cursor(footer)
    last, kind = cursor.field(0)
    while kind and last != _SCHEMA:
        cursor.skip(kind)
        last, kind = cursor.field(last)
    if not kind:
        raise CorruptTableError("the Parquet footer has no schema")
    size, _ = cursor.list_head()
    return [_element(cursor) for _ in range(size)]


def _element(cursor: Cursor) -> _Element:
    found: dict[int, Any] = {}
    variant, version = False, None
    last, kind = cursor.field(0)
    at = last
    while kind:
        at = last
        if last == _NAME:
            found[_NAME] = cursor.text()
        elif last == _CHILDREN:
            found[_CHILDREN] = cursor.varint() >> 1
        elif last == _LOGICAL and kind == _STRUCT:
            variant, version = _logical(cursor)
        else:
            cursor.skip(kind)
        last, kind = cursor.field(last)
    return _Element(cursor.at, at, found.get(_NAME, ""), found.get(_CHILDREN, 0), variant, version)


def _logical(cursor: Cursor) -> tuple[bool, int | None]:
    """Whether a LogicalType is VARIANT, and its specification_version."""
    variant, version = False, None
    last, kind = cursor.field(0)
    while kind:
        if last == _VARIANT_FIELD and kind == _STRUCT:
            variant = True
            inner, of = cursor.field(0)
            while of:
                if inner == _VERSION_FIELD and of == _BYTE:
                    version = cursor.byte()
                else:
                    cursor.skip(of)
                inner, of = cursor.field(inner)
        else:
            cursor.skip(kind)
        last, kind = cursor.field(last)
    return variant, version


def _with_paths(elements: list[_Element]) -> Iterator[tuple[list[str], _Element]]:
    """The elements below the root, each with its path: one list that is changed in place."""
    path: list[str] = []
    left = [elements[0].children] if elements else []
    for element in elements[1:]:
        while left and not left[-1]:
            left.pop()
        if not left:
            raise CorruptTableError(f"the Parquet footer has a column `{element.name}` that belongs to no group")
        left[-1] -= 1
        del path[len(left) - 1 :]
        path.append(element.name)
        yield path, element
        if element.children:
            left.append(element.children)
            if len(left) > _LEVELS:
                raise CorruptTableError(f"the Parquet footer has groups nested more than {_LEVELS} levels deep")
    if any(left):
        raise CorruptTableError("the Parquet footer has a group that announces more columns than there are")


class EditingSink:
    """A binary file object over `sink` that holds back the end of a Parquet file, to change its footer."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._held: bytearray | None = None
        self.closed = False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def write(self, data: Any) -> int:
        if self._held is None:
            self._sink.write(data)
        else:
            self._held += data
        return len(data)

    def tell(self) -> int:
        return int(self._sink.tell()) + len(self._held or b"")

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        self.closed = True
        self._sink.close()

    def hold(self) -> None:
        """Holds back what is written from now on until `release`; call it before the footer is written."""
        self._held = bytearray()

    def release(self, edit: Callable[[bytes], bytes]) -> None:
        """Writes what was held back, with the Thrift footer that `edit` makes of the one there."""
        tail, self._held = bytes(self._held or b""), None
        size = int.from_bytes(tail[-8:-4], "little")
        footer = edit(tail[-8 - size : -8])
        self._sink.write(tail[: -8 - size] + footer + len(footer).to_bytes(4, "little") + MAGIC)
