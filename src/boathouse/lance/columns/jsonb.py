"""JSON columns from Lance's binary form (JSONB) to text, and back.

Big-endian words. A container starts with its kind (array, object, scalar) and count; then one entry per member (an
object's keys first) with kind and length; then the members' bytes. Numbers are a tag, whose low bits some writers
use for the width, and the digits.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from boathouse.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError

_KIND = 0xF0000000
_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = (i << 28 for i in range(6))
_WORDS = {_NULL: "null", _FALSE: "false", _TRUE: "true"}
_ZERO, _SIGNED, _UNSIGNED, _FLOAT = 0x00, 0x40, 0x50, 0x60
_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
_MAX_DEPTH = 200


def to_text(data: bytes, *, where: str) -> str:
    """The JSON text of one value, without spaces. Raises CorruptTableError, UnsupportedFeatureError."""
    try:
        text, end = _container(data, 0, 0, where)
    except (struct.error, IndexError, UnicodeDecodeError, KeyError) as error:
        raise CorruptTableError(f"a JSON value that does not parse: {error!r}", where=where) from error
    if end != len(data):
        raise CorruptTableError(f"a JSON value of {end} bytes in {len(data)}", where=where)
    return text


def _container(data: bytes, at: int, depth: int, where: str) -> tuple[str, int]:
    """The text of the container at `at`, and where it ends."""
    if depth > _MAX_DEPTH:
        raise UnsupportedFeatureError(f"a JSON value nested more than {_MAX_DEPTH} deep", where=where)
    (head,) = struct.unpack_from(">I", data, at)
    kind, count = head & _KIND, head & ~_KIND
    if kind not in (_ARRAY, _OBJECT, _SCALAR) or (kind == _SCALAR and count):
        raise CorruptTableError(f"a JSON value that begins with {head:#x}", where=where)
    entries = 2 * count if kind == _OBJECT else 1 if kind == _SCALAR else count
    words = struct.unpack_from(f">{entries}I", data, at + 4)
    end = at + 4 + 4 * entries
    texts = []
    for word in words:
        text, end = _member(data, word, end, depth, where)
        texts.append(text)
    if kind == _SCALAR:
        return texts[0], end
    if kind == _ARRAY:
        return f"[{','.join(texts)}]", end
    return "{" + ",".join(f"{k}:{v}" for k, v in zip(texts[:count], texts[count:])) + "}", end


def _member(data: bytes, word: int, at: int, depth: int, where: str) -> tuple[str, int]:
    kind, size = word & _KIND, word & ~_KIND
    end = at + size
    if end > len(data):
        raise CorruptTableError(f"a JSON member that ends at {end} of {len(data)}", where=where)
    if kind in _WORDS:
        return _WORDS[kind], end
    if kind == _STRING:
        return json.dumps(data[at:end].decode(), ensure_ascii=False), end
    if kind == _NUMBER:
        return _number(data[at:end], where), end
    if kind == _CONTAINER:
        text, stop = _container(data, at, depth + 1, where)
        if stop != end:
            raise CorruptTableError(f"a JSON container that ends at {stop}, not at {end}", where=where)
        return text, end
    raise CorruptTableError(f"a JSON member of kind {kind:#x}", where=where)


def _number(raw: bytes, where: str) -> str:
    tag, width = raw[0] & 0xF0, len(raw) - 1
    if tag == _ZERO and width == 0:
        return "0"
    if tag == _SIGNED:
        return str(struct.unpack(">" + _INTEGERS[width], raw[1:])[0])
    if tag == _UNSIGNED:
        return str(struct.unpack(">" + _INTEGERS[width].upper(), raw[1:])[0])
    if tag == _FLOAT:
        return repr(struct.unpack(">d", raw[1:])[0])
    raise UnsupportedFeatureError(f"a JSON number with the tag {raw[0]:#x}", where=where)


def from_text(text: str, *, column: str) -> bytes:
    """The binary form of a JSON text; members of objects are sorted by their names, and numbers beyond 64 bits are
    doubles, as pylance has them. Raises SchemaMismatchError for what is not JSON, or has a name twice."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        kind, body = _encoded(value, 0)
        return body if kind == _CONTAINER else struct.pack(">II", _SCALAR, kind | len(body)) + body
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SchemaMismatchError(
            f"a text for the JSON column `{column}` is not JSON: {why}", advice="give it as json.dumps writes it"
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no value of JSON")


def _encoded(value: Any, depth: int) -> tuple[int, bytes]:
    """The kind of a member, and its bytes."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    match value:
        case None:
            return _NULL, b""
        case bool():
            return _TRUE if value else _FALSE, b""
        case str():
            return _STRING, value.encode()
        case int() | float():
            return _NUMBER, _digits(value)
        case list():
            return _CONTAINER, _held(_ARRAY, len(value), [_encoded(v, depth + 1) for v in value])
    names = sorted(name.encode() for name in value)
    members = [_encoded(value[name.decode()], depth + 1) for name in names]
    return _CONTAINER, _held(_OBJECT, len(names), [*((_STRING, name) for name in names), *members])


def _held(kind: int, count: int, members: list[tuple[int, bytes]]) -> bytes:
    words = [kind | count, *(k | len(body) for k, body in members)]
    return struct.pack(f">{len(words)}I", *words) + b"".join(body for _, body in members)


def _digits(value: int | float) -> bytes:
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        if value == 0:
            return bytes((_ZERO,))
        tag = _SIGNED if value < 0 else _UNSIGNED
        bits = (~value).bit_length() + 1 if value < 0 else value.bit_length()
        width = next(w for w in _INTEGERS if bits <= 8 * w)
        return bytes((tag,)) + value.to_bytes(width, "big", signed=value < 0)
    number = float(value)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return bytes((_FLOAT,)) + struct.pack(">d", number)
