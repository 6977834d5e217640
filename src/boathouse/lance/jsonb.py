"""Decodes JSON columns from Lance's binary form (JSONB) to text.

Big-endian words. A container starts with its kind (array, object, scalar) and count; then one entry per member (an
object's keys first) with kind and length; then the members' bytes. Numbers are a tag with the width in its low bits and
the digits.
"""

from __future__ import annotations

import json
import struct

from boathouse.errors import CorruptTableError, UnsupportedFeatureError

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
