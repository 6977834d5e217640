"""Builds variants value by value; the dictionary is created at the end, from the names that were used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TypeVar

from boathouse.errors import InvalidArgumentError
from boathouse.variant.encode import (
    DOUBLE_BYTES,
    FLOAT_BYTES,
    decimal_id,
    encode_binary,
    encode_bool,
    encode_decimal,
    encode_int,
    encode_integer,
    encode_string,
    encode_time,
    encode_uuid,
)
from boathouse.variant.metadata import parse_metadata
from boathouse.variant.primitives import (
    DATE,
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_DEPTH,
    NULL_VALUE,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
)
from boathouse.variant.python_values import python_tree
from boathouse.variant.tree import Encoded, Node, assemble, check_names, variant_tree
from boathouse.variant.view import VariantView

T = TypeVar("T")


class ValueBuilder:
    """Builds one variant: scalars of an exact type or `append(value)`, containers with begin and end.

    In an object each value is preceded by `key(name)`. With `metadata`, its ids are used and it must contain every
    name; otherwise the end creates the smallest dictionary. Raises InvalidArgumentError for values that no variant can
    hold, a name used twice in an object, more than 1,000 nested containers, and calls out of order.
    """

    def __init__(self, metadata: bytes | None = None) -> None:
        self._metadata = None if metadata is None else parse_metadata(metadata)
        self._open: list[Node] = []
        self._closed: list[Node] = []
        self._root: bytes | Node | None = None
        self._key: str | None = None

    @property
    def depth(self) -> int:
        """The number of open containers."""
        return len(self._open)

    def key(self, name: str) -> Self:
        """The name of the field whose value comes next."""
        if not self._open or self._open[-1].names is None or self._key is not None:
            raise InvalidArgumentError(f"key({name!r}) belongs in an object, once before each value")
        if not isinstance(name, str):
            raise InvalidArgumentError(f"{name!r} is not a field name: names are strings")
        self._key = name
        return self

    def append_encoded(self, value: bytes) -> Self:
        """A scalar as its encoded bytes, which are not checked."""
        self._place(_of(bytes, value))
        return self

    def append_tree(self, root: bytes | Node, inner_first: Iterable[Node]) -> Self:
        """A value that is laid out already, its root and all its nodes with children before parents; for readers of
        this library."""
        self._place(root)
        self._closed.extend(inner_first)
        return self

    def append_null(self) -> Self:
        """A variant null."""
        return self.append_encoded(NULL_VALUE)

    def append_boolean(self, value: bool) -> Self:
        """True or false."""
        return self.append_encoded(encode_bool(_of(bool, value)))

    def append_int8(self, value: int) -> Self:
        """8 bits: -128 to 127."""
        return self.append_encoded(encode_integer(INT8, value))

    def append_int16(self, value: int) -> Self:
        """16 bits: -32,768 to 32,767."""
        return self.append_encoded(encode_integer(INT16, value))

    def append_int32(self, value: int) -> Self:
        """32 bits, signed."""
        return self.append_encoded(encode_integer(INT32, value))

    def append_int64(self, value: int) -> Self:
        """64 bits, signed."""
        return self.append_encoded(encode_integer(INT64, value))

    def append_int(self, value: int) -> Self:
        """In the narrowest type: int8 to int64, decimal16 up to 38 digits."""
        return self.append_encoded(encode_int(_of(int, value)))

    def append_float(self, value: float) -> Self:
        """32 bits: rounds; an overflow becomes an infinity, as IEEE 754 rounds."""
        _of((float, int), value)
        try:
            return self.append_encoded(FLOAT_BYTES.pack(FLOAT << 2, value))
        except OverflowError:
            return self.append_encoded(FLOAT_BYTES.pack(FLOAT << 2, float("inf") if value > 0 else float("-inf")))

    def append_double(self, value: float) -> Self:
        """64 bits of IEEE 754; an integer is rounded to one."""
        return self.append_encoded(DOUBLE_BYTES.pack(DOUBLE << 2, _of((float, int), value)))

    def append_decimal4(self, unscaled: int, scale: int) -> Self:
        """unscaled x 10^-scale in 4 bytes: up to 9 digits, scale 0 to 38."""
        return self.append_encoded(encode_decimal(DECIMAL4, _of(int, unscaled), _of(int, scale)))

    def append_decimal8(self, unscaled: int, scale: int) -> Self:
        """unscaled x 10^-scale in 8 bytes: up to 18 digits, scale 0 to 38."""
        return self.append_encoded(encode_decimal(DECIMAL8, _of(int, unscaled), _of(int, scale)))

    def append_decimal16(self, unscaled: int, scale: int) -> Self:
        """unscaled x 10^-scale in 16 bytes: up to 38 digits, scale 0 to 38."""
        return self.append_encoded(encode_decimal(DECIMAL16, _of(int, unscaled), _of(int, scale)))

    def append_decimal(self, unscaled: int, scale: int) -> Self:
        """unscaled x 10^-scale in the narrowest decimal that covers its digits and its scale."""
        return self.append_encoded(encode_decimal(decimal_id(_of(int, unscaled), _of(int, scale)), unscaled, scale))

    def append_date(self, days: int) -> Self:
        """Days since 1970-01-01."""
        return self.append_encoded(encode_integer(DATE, days))

    def append_timestamp(self, micros: int) -> Self:
        """An instant: microseconds since 1970-01-01 UTC."""
        return self.append_encoded(encode_integer(TIMESTAMP, micros))

    def append_timestamp_ntz(self, micros: int) -> Self:
        """A wall clock: microseconds since 1970-01-01."""
        return self.append_encoded(encode_integer(TIMESTAMP_NTZ, micros))

    def append_timestamp_nanos(self, nanos: int) -> Self:
        """An instant: nanoseconds since 1970-01-01 UTC."""
        return self.append_encoded(encode_integer(TIMESTAMP_NANOS, nanos))

    def append_timestamp_ntz_nanos(self, nanos: int) -> Self:
        """A wall clock: nanoseconds since 1970-01-01."""
        return self.append_encoded(encode_integer(TIMESTAMP_NTZ_NANOS, nanos))

    def append_time(self, micros: int) -> Self:
        """Microseconds since midnight, below 24:00."""
        return self.append_encoded(encode_time(_of(int, micros)))

    def append_binary(self, value: bytes) -> Self:
        """Bytes, of any length."""
        return self.append_encoded(encode_binary(_of(bytes, value)))

    def append_string(self, value: str) -> Self:
        """Text; up to 63 bytes of UTF-8 it is stored as a short string. Raises InvalidArgumentError for unpaired
        surrogates."""
        return self.append_encoded(encode_string(_of(str, value)))

    def append_uuid(self, value: bytes) -> Self:
        """16 bytes, big-endian."""
        return self.append_encoded(encode_uuid(_of(bytes, value)))

    def append(self, value: Any) -> Self:
        """Any Python value, of the types and by the rules of `Variant.from_python`. Raises InvalidArgumentError for
        others."""
        return self.append_tree(*python_tree(value, MAX_DEPTH - self.depth))

    def begin_object(self) -> Self:
        """Opens an object: what follows are pairs of `key` and a value, until `end`."""
        return self._begin(Node([]))

    def begin_array(self) -> Self:
        """Opens an array: what follows are its elements, until `end`."""
        return self._begin(Node(None))

    def end(self) -> Self:
        """Closes the innermost object or array."""
        if not self._open or self._key is not None:
            raise InvalidArgumentError("end() without a container, or after a key() without a value")
        node = self._open.pop()
        if node.names is not None:
            check_names(node.names)
        self._closed.append(node)
        return self

    def append_variant(self, value: VariantView) -> Self:
        """A copy of a variant with its exact types; with this builder's ids and canonical container headers.

        Raises MalformedVariant and UnsupportedFeatureError as a full reading does.
        """
        return self.append_tree(*variant_tree(_of(VariantView, value), MAX_DEPTH - len(self._open)))

    def _begin(self, node: Node) -> Self:
        if len(self._open) >= MAX_DEPTH:
            raise InvalidArgumentError(f"more than {MAX_DEPTH:,} nested objects and arrays")
        self._place(node)
        self._open.append(node)
        return self

    def _place(self, value: bytes | Node) -> None:
        if not self._open:
            if self._root is not None:
                raise InvalidArgumentError("a variant is one value: begin an array to hold several")
            self._root = value
            return
        top = self._open[-1]
        if top.names is not None:
            if self._key is None:
                raise InvalidArgumentError("a value in an object needs a key() before it")
            top.names.append(self._key)
            self._key = None
        top.children.append(value)

    def encoded(self) -> Encoded:
        """Metadata and value. The builder is then empty again."""
        if self._open or self._root is None:
            raise InvalidArgumentError("a container is still open" if self._open else "nothing was appended")
        found = assemble(self._root, self._closed, self._metadata)
        self._closed, self._root = [], None
        return found


def _of(kind: type[T] | tuple[type[T], ...], value: T) -> T:
    """The value, if it has the type that this append takes. Raises InvalidArgumentError."""
    if not isinstance(value, kind):
        raise InvalidArgumentError(
            f"{value!r} is a {type(value).__name__}, which this append does not take", advice="append() takes any value"
        )
    return value
