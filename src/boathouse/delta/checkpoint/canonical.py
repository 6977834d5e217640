"""The checksum of `_last_checkpoint`: MD5 of a canonical form of JSON (PROTOCOL.md, "JSON checksum")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from boathouse.errors import CorruptTableError


class _Number(str):
    """A number in its original spelling."""


def checksum(text: str | bytes) -> str:
    """MD5, in hexadecimal, of the canonical form of a JSON document without its top-level `checksum`."""
    import hashlib  # noqa: PLC0415  # it loads OpenSSL, and few tables have a checksum

    return hashlib.md5(canonical(text).encode(), usedforsecurity=False).hexdigest()


def canonical(text: str | bytes) -> str:
    """The canonical form. Raises CorruptTableError for text that is not JSON or repeats a key."""
    try:
        document = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_Number, object_pairs_hook=_pairs
        )
    except ValueError as error:
        raise CorruptTableError(f"not a JSON document, so it has no checksum: {error}") from error
    if isinstance(document, dict):
        document.pop("checksum", None)
    if not isinstance(document, dict | list):
        return _scalar(document)
    leaves = sorted(_leaves(document), key=lambda leaf: leaf[0].encode())
    return ",".join(f"{path}={value}" for path, value in leaves)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _leaves(document: dict[str, Any] | list[Any]) -> Iterator[tuple[str, str]]:
    """Without recursion: a step back through every level for each leaf of a deep document takes a second."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(_below(path, _text(key)), child) for key, child in value.items()]
        elif isinstance(value, list):
            waiting += [(_below(path, str(i)), child) for i, child in enumerate(value)]
        else:
            yield path, _scalar(value)


def _below(path: str, name: str) -> str:
    return f"{path}+{name}" if path else name


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, _Number) else _text(value)


def _text(value: str) -> str:
    return f'"{quote(value, safe="")}"'
