"""Python values as variants.

None null, bool boolean, int the narrowest type (int8 to int64, then decimal16 to 38 digits), float double, Decimal
the narrowest decimal that covers its digits and its scale (the sign of -0 is lost), str string, bytes, bytearray and
memoryview binary, date date, datetime timestamp (with a zone) or timestamp_ntz (without), time time, UUID uuid, list
and tuple array, dict and other mappings with string keys object, Variant a copy with its exact types.

numpy scalars keep their width: int8 to int64, float32 float, float64 double, float16 float, uint8 int16, uint16
int32, uint32 int64, uint64 decimal16, bool_ boolean, datetime64 of days date, of seconds to microseconds
timestamp_ntz, of nanoseconds timestamp_ntz_nanos, NaT null; arrays are arrays of such. A pandas.Timestamp with
nanoseconds is a nanosecond timestamp; NaT is null.

Refused with InvalidArgumentError, naming the path: other types (sets, timedelta), keys that are not strings,
unpaired surrogates, integers and decimals beyond 38 digits, decimals that are NaN or infinite, times with a zone,
more than 1,000 nested containers (as every cycle has).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

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
from boathouse.variant.metadata import utf8
from boathouse.variant.primitives import (
    DATE,
    DECIMAL16,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_DEPTH,
    MAX_SCALE,
    NULL_VALUE,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
)
from boathouse.variant.tree import Encoded, Node, assemble, check_names, variant_tree
from boathouse.variant.view import VariantView
from boathouse.variant.walk import spell_path

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_Work = tuple[Any, Node, int]  # a container, its node, and how deep its children may be


def encode_python(obj: object) -> Encoded:
    """Metadata and value of a Python value, by the rules of the module. Raises InvalidArgumentError."""
    return assemble(*python_tree(obj, MAX_DEPTH))


def python_tree(obj: object, depth: int) -> tuple[bytes | Node, list[Node]]:
    """A Python value as a tree, and its nodes with children before parents; at most `depth` are nested.

    Raises InvalidArgumentError with the path of the value that does not fit.
    """
    root, nodes = _nodes(obj, depth)
    return root, nodes[::-1]


def _nodes(obj: object, depth: int) -> tuple[bytes | Node, list[Node]]:
    """The value as a tree, and its nodes with parents before children; at most `depth` are nested."""
    nodes: list[Node] = []
    work: list[_Work] = []
    node: Node | None = None
    try:
        encode = _ENCODERS.get(type(obj))
        root = _place(obj, depth, nodes, work) if encode is None else encode(obj)
        while work:
            found, node, left = work.pop()
            add = node.children.append
            if node.names is None:
                items = found
            else:
                node.names.extend(_names(found, nodes, node))
                items = found.values()
            for item in items:
                encode = _ENCODERS.get(type(item))
                add(_place(item, left, nodes, work) if encode is None else encode(item))
    except InvalidArgumentError as problem:
        if node is None or problem.where is not None:
            raise
        slot = len(node.children)
        where = _path_of(nodes, node, slot if node.names is None else node.names[slot])
        raise InvalidArgumentError(problem.message, where=where, advice=problem.advice) from None
    return root, nodes


def _place(item: Any, left: int, nodes: list[Node], work: list[_Work]) -> bytes | Node:
    """A scalar encoded; a container as an empty node, to be filled later; `left` is how many levels are left."""
    if isinstance(item, (dict, Mapping)):
        node = Node([])
    elif isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim):
        node = Node(None)
    elif isinstance(item, VariantView):
        copy, inner_first = variant_tree(item, left)
        nodes.extend(reversed(inner_first))
        return copy
    else:
        return _scalar(item)
    if left <= 0:
        raise _too_deep()
    nodes.append(node)
    work.append((item, node, left - 1))
    return node


def _too_deep() -> InvalidArgumentError:
    return InvalidArgumentError(f"more than {MAX_DEPTH:,} nested containers", advice="look for a cycle")


def _names(found: Mapping[Any, Any], nodes: list[Node], node: Node) -> list[str]:
    """The keys as field names. Raises InvalidArgumentError with the path of the mapping."""
    names = list(found)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"{name!r} is not a field name: names are strings",
                where=_path_of(nodes, node),
                advice="convert the keys",
            )
        if not name.isascii():
            _check_text(name, nodes, node)
    if not all(type(name) is str for name in names):
        names = [str.__str__(name) for name in names]
        check_names(names)
    return names


def _check_text(name: str, nodes: list[Node], node: Node) -> None:
    try:
        utf8(name)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(problem.message, where=_path_of(nodes, node), advice=problem.advice) from None


def _path_of(nodes: list[Node], node: Node, *last: str | int) -> str:
    """The path of a node, and of a child that is not added yet."""
    keys: list[str | int | None] = [*reversed(last)]
    for parent in reversed(nodes):
        slot = next((i for i, child in enumerate(parent.children) if child is node), None)
        if slot is not None:
            keys.append(slot if parent.names is None else parent.names[slot])
            node = parent
    text = spell_path(keys[::-1])
    return text if len(text) <= 200 else f"{text[:150]}... {len(keys):,} levels deep"


def _scalar(obj: Any) -> bytes:
    """A scalar whose type is not exactly one of the known types: a subclass, or numpy's."""
    if isinstance(obj, np.ndarray):
        obj = obj[()]
    if isinstance(obj, np.generic):
        return _numpy(obj)
    for kind in (datetime, date, time, bool, int, float, Decimal, str, bytes, bytearray, memoryview, uuid.UUID):
        if isinstance(obj, kind):
            return _ENCODERS[kind](obj)
    raise InvalidArgumentError(
        f"a variant cannot hold a {type(obj).__name__}", advice="convert it: a set to a list, a timedelta to a number"
    )


def _integer(id: int) -> Callable[[Any], bytes]:
    return lambda number: encode_integer(id, int(number))


_NUMPY: dict[type, Callable[[Any], bytes]] = {
    np.int8: _integer(INT8), np.int16: _integer(INT16), np.int32: _integer(INT32),
    np.int64: _integer(INT64), np.uint8: _integer(INT16), np.uint16: _integer(INT32),
    np.uint32: _integer(INT64), np.uint64: lambda number: encode_decimal(DECIMAL16, int(number), 0),
    np.float16: lambda number: FLOAT_BYTES.pack(FLOAT << 2, number),
    np.float32: lambda number: FLOAT_BYTES.pack(FLOAT << 2, number),
    np.float64: lambda number: DOUBLE_BYTES.pack(DOUBLE << 2, number),
    np.bool_: lambda flag: encode_bool(bool(flag)), np.str_: lambda text: encode_string(str(text)),
    np.bytes_: lambda raw: encode_binary(bytes(raw)),
}  # fmt: skip


def _numpy(obj: np.generic) -> bytes:
    encode = _NUMPY.get(type(obj))
    if encode is not None:
        return encode(obj)
    if isinstance(obj, np.datetime64):
        if np.isnat(obj):
            return NULL_VALUE
        unit, step = np.datetime_data(obj.dtype)
        units = int(obj.astype("int64")) * step
        if unit == "D":
            return encode_integer(DATE, units)
        if unit in ("s", "ms", "us"):
            factor = {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]
            return encode_integer(TIMESTAMP_NTZ, units * factor)
        if unit == "ns":
            return encode_integer(TIMESTAMP_NTZ_NANOS, units)
    if isinstance(obj, np.integer) and not isinstance(obj, np.timedelta64):
        # Other names of the same widths, such as longlong.
        return _NUMPY[np.dtype(f"{obj.dtype.kind}{obj.dtype.itemsize}").type](obj)
    raise InvalidArgumentError(f"a variant cannot hold a numpy value of type {obj.dtype}")


def _decimal(obj: Decimal) -> bytes:
    sign, digits, exponent = obj.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidArgumentError(f"a variant cannot hold the decimal {obj}", advice="use a float for it")
    if -exponent > MAX_SCALE or len(digits) + max(exponent, 0) > 2 * MAX_SCALE:
        raise InvalidArgumentError(
            f"the decimal {obj} needs a scale above 38 or too many digits", advice="round it, or store a string"
        )
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    unscaled = -unscaled if sign else unscaled
    return encode_decimal(decimal_id(unscaled, scale), unscaled, scale)


def _datetime(obj: datetime) -> bytes:
    if obj != obj:  # pandas.NaT
        return NULL_VALUE
    utc = obj.utcoffset() is not None
    nanosecond = int(getattr(obj, "nanosecond", 0))
    if type(obj) is not datetime:
        obj = datetime(
            obj.year, obj.month, obj.day, obj.hour, obj.minute, obj.second, obj.microsecond, obj.tzinfo, fold=obj.fold
        )
    micros = (obj - (_EPOCH_UTC if utc else _EPOCH.replace(tzinfo=obj.tzinfo))) // _MICROSECOND
    if nanosecond:
        return encode_integer(TIMESTAMP_NANOS if utc else TIMESTAMP_NTZ_NANOS, micros * 1_000 + nanosecond)
    return encode_integer(TIMESTAMP if utc else TIMESTAMP_NTZ, micros)


def _time(obj: time) -> bytes:
    if obj.tzinfo is not None:
        raise InvalidArgumentError(f"a variant's time of day has no zone: {obj}", advice="drop the zone")
    return encode_time(((obj.hour * 60 + obj.minute) * 60 + obj.second) * 1_000_000 + obj.microsecond)


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda none: NULL_VALUE,
    bool: encode_bool,
    int: encode_int,
    float: lambda number: DOUBLE_BYTES.pack(DOUBLE << 2, number),
    str: encode_string,
    Decimal: _decimal,
    bytes: encode_binary,
    bytearray: lambda raw: encode_binary(bytes(raw)),
    memoryview: lambda raw: encode_binary(bytes(raw)),
    datetime: _datetime,
    date: lambda day: encode_integer(DATE, day.toordinal() - _EPOCH_DAY),
    time: _time,
    uuid.UUID: lambda found: encode_uuid(found.bytes),
}
