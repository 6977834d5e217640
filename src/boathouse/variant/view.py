"""One variant as a lazy view: only what is accessed is read. `value.Variant` adds what is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Self

from boathouse.errors import InvalidArgumentError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant.decode import (
    Container,
    Scalar,
    read_children,
    read_container,
    read_scalar,
    type_name,
    unknown_type,
    value_end,
)
from boathouse.variant.metadata import Metadata, parse_metadata, unsigned
from boathouse.variant.path import as_path
from boathouse.variant.primitives import ARRAY, OBJECT, SHORT_STRING
from boathouse.variant.walk import path_to

Path = str | Sequence[str | int]


class VariantView:
    """A value of a variant in a buffer, and its children. They share the buffers of their parent."""

    __slots__ = ("_end", "buffer", "dictionary", "pos")

    dictionary: Metadata
    buffer: bytes
    pos: int
    _end: int

    def __init__(self, metadata: bytes, value: bytes) -> None:
        for given in (metadata, value):
            if not isinstance(given, (bytes, bytearray, memoryview)):
                raise InvalidArgumentError(
                    f"a variant is made from bytes, not from {type(given).__name__}",
                    advice="use from_python or from_json",
                )
        self.dictionary = parse_metadata(bytes(metadata))
        self.buffer = bytes(value)
        self.pos = 0
        self._end = len(self.buffer)
        if not self.buffer:
            raise MalformedVariant("the value is empty", offset=0)

    @classmethod
    def view(cls, dictionary: Metadata, buffer: bytes, pos: int, end: int) -> Self:
        """The value at `pos` of a buffer, which has to end by `end`; nothing is copied."""
        self = object.__new__(cls)
        self.dictionary, self.buffer, self.pos, self._end = dictionary, buffer, pos, end
        return self

    @property
    def metadata(self) -> bytes:
        """The bytes of the metadata, which may hold names that this value does not use."""
        return self.dictionary.raw

    @property
    def value(self) -> bytes:
        """The exact bytes of this value, without what follows them in the buffer."""
        pos, end = self.pos, self.end
        return self.buffer if pos == 0 and end == len(self.buffer) else self.buffer[pos:end]

    @property
    def end(self) -> int:
        """Where the value ends in `buffer`, by its own header. Raises UnsupportedFeatureError, MalformedVariant."""
        stop = value_end(self.buffer, self.pos, self._end)
        if stop < 0:
            raise self._unknown()
        return stop

    @property
    def span(self) -> tuple[int, int]:
        """Where the value starts and the latest position at which it must end, in `buffer`."""
        return self.pos, self._end

    @property
    def type(self) -> str:
        """The Variant type: `null`, `boolean`, `int8` to `int64`, `float`, `double`, `decimal4` to `decimal16`, `date`,
        `timestamp`, `timestamp_ntz`, `timestamp_nanos`, `timestamp_ntz_nanos`, `time`, `binary`, `string`, `uuid`,
        `object`, `array`.

        Raises UnsupportedFeatureError for primitive types of later specifications, MalformedVariant.
        """
        if value_end(self.buffer, self.pos, self._end) < 0:
            raise self._unknown()
        return type_name(self.buffer, self.pos)

    @property
    def scalar(self) -> Scalar:
        """The content of a scalar, without loss: decimals as (unscaled, scale), dates as days, times as integers of
        their unit, UUIDs and binaries as bytes.

        Raises InvalidArgumentError for objects and arrays, MalformedVariant, UnsupportedFeatureError.
        """
        if self.buffer[self.pos] & 3 > SHORT_STRING:
            raise InvalidArgumentError(f"an {self.type} is not a scalar", advice="take a child of it, or to_python()")
        return read_scalar(self.buffer, self.pos, self.end)

    def _unknown(self) -> UnsupportedFeatureError:
        return unknown_type(self.buffer, self.pos, path_to(self.buffer, 0, len(self.buffer), self.dictionary, self.pos))

    def _box(self) -> Container | None:
        if self.buffer[self.pos] & 3 <= SHORT_STRING:
            return None
        return read_container(self.buffer, self.pos, self._end)

    def get(self, path: Path) -> Self | None:
        """The value at a path such as `$.a.b[0]` or ("a", "b", 0); None if there is none.

        A path into a scalar, a missing key and an index beyond the end give None, not an error. Raises ExpressionError
        for an invalid path.
        """
        here: Self | None = self
        for step in as_path(path):
            if here is None:
                return None
            here = here._field(step) if isinstance(step, str) else here._element(step)
        return here

    def _field(self, name: str) -> Self | None:
        box = self._box()
        if box is None or not box.is_object:
            return None
        slots = _slots(self.buffer, box, self.dictionary.ids(name))
        if len(slots) > 1:
            raise MalformedVariant(f"the object has the field {name!r} twice", offset=self.pos)
        return self._child(box, slots[0]) if slots else None

    def _element(self, index: int) -> Self | None:
        box = self._box()
        if box is None or box.is_object or not 0 <= index < box.elements:
            return None
        return self._child(box, index)

    def _child(self, box: Container, index: int) -> Self:
        at = box.offsets_at + index * box.offset_size
        start = box.values_at + int.from_bytes(self.buffer[at : at + box.offset_size], "little")
        stop = value_end(self.buffer, start, box.end)
        return self.view(self.dictionary, self.buffer, start, box.end if stop < 0 else stop)

    def __getitem__(self, key: str | int) -> Self:
        """A field of an object or an element of an array (from the end if negative). KeyError, IndexError."""
        if isinstance(key, str):
            found = self._field(key)
            if found is None:
                raise KeyError(key)
            return found
        position = index(key)
        found = self._element(position if position >= 0 else position + len(self))
        if found is None:
            raise IndexError(key)
        return found

    def __contains__(self, name: object) -> bool:
        """Whether an object has a field of this name."""
        return isinstance(name, str) and self._field(name) is not None

    def keys(self) -> tuple[str, ...]:
        """The field names of an object, in stored order. Raises InvalidArgumentError for anything else."""
        return tuple(name for name, _ in self.items())

    def values(self) -> tuple[Self, ...]:
        """The children of an object or array, in stored order. Raises InvalidArgumentError for scalars,
        MalformedVariant."""
        return tuple(value for _, value in self._children())

    def items(self) -> tuple[tuple[str, Self], ...]:
        """The fields of an object, in stored order. Raises InvalidArgumentError for anything else."""
        if self.buffer[self.pos] & 3 != OBJECT:
            raise InvalidArgumentError(f"{self.type} has no fields", advice="ask `type` first")
        return tuple((str(key), value) for key, value in self._children())

    def _children(self) -> list[tuple[str | int, Self]]:
        box = self._box()
        if box is None:
            raise InvalidArgumentError(f"{self.type} has no children", advice="ask `type` first")
        view, dictionary, buffer = self.view, self.dictionary, self.buffer
        return [
            (key, view(dictionary, buffer, pos, box.end if end < 0 else end))
            for key, pos, end in read_children(buffer, box, dictionary)
        ]

    def __iter__(self) -> Iterator[str | Self]:
        """Names of an object, elements of an array."""
        if self.buffer[self.pos] & 3 == ARRAY:
            return iter(self.values())
        return iter(self.keys())

    def __len__(self) -> int:
        """Fields or elements. Raises InvalidArgumentError for scalars."""
        box = self._box()
        if box is None:
            raise InvalidArgumentError(f"{self.type} has no length", advice="ask `type` first")
        return box.elements

    def __bool__(self) -> bool:
        """Always true, whatever the variant holds."""
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.metadata, self.value))


def _slots(data: bytes, box: Container, ids: Sequence[int]) -> list[int]:
    """The slots of an object's id list that hold one of the ids, in any order."""
    if len(ids) != 1:
        wanted = set(ids)
        return [i for i, id in enumerate(unsigned(data, box.ids_at, box.id_size, box.elements)) if id in wanted]
    size = box.id_size
    if ids[0] >= 1 << 8 * size:
        return []
    needle, stop = ids[0].to_bytes(size, "little"), box.ids_at + box.elements * size
    found: list[int] = []
    at = data.find(needle, box.ids_at, stop)
    while at >= 0:
        if (at - box.ids_at) % size == 0:
            found.append((at - box.ids_at) // size)
        at = data.find(needle, at + 1, stop)
    return found
