"""Where bytes of a table's files become text or JSON: what is neither is damage, and the error names the file."""

from __future__ import annotations

import json
from typing import Any

from boathouse.errors import CorruptTableError


def text(data: bytes | bytearray | memoryview, where: str | None, what: str = "text") -> str:
    """UTF-8 as text; `what` says in the error what the bytes were to be. Raises CorruptTableError."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise CorruptTableError(
            f"{what} is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}", where=where
        ) from None


def json_value(data: bytes | bytearray | memoryview | str, where: str | None, what: str = "the document") -> Any:
    """A JSON value. Raises CorruptTableError for what is not JSON, nested too deep, or holds half a character."""
    source = data if isinstance(data, str) else text(data, where, what)
    try:
        found = json.loads(source)
        if "\\ud" in source or "\\uD" in source:  # half of a surrogate pair is no text, though json takes it
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CorruptTableError(f"{what} holds half a surrogate pair: {error.reason}", where=where) from None
    except ValueError as error:
        raise CorruptTableError(f"{what} is not JSON: {error}", where=where) from None
    except RecursionError:
        raise CorruptTableError(f"{what} is nested too deeply", where=where) from None
    return found
