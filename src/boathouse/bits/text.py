"""Decodes bytes of a table's files as UTF-8 or JSON: anything else is corrupt, and the error names the file."""

from __future__ import annotations

import json
from typing import Any

from boathouse.errors import CorruptTableError


def text(data: bytes | bytearray | memoryview, where: str | None, what: str = "text") -> str:
    """UTF-8 as a string; `what` describes the bytes in the error. Raises CorruptTableError."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise CorruptTableError(
            f"{what} is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}", where=where
        ) from None


def json_value(data: bytes | bytearray | memoryview | str, where: str | None, what: str = "the document") -> Any:
    """A JSON value. Raises CorruptTableError for what is not JSON, is nested too deeply, or contains an unpaired
    surrogate."""
    source = data if isinstance(data, str) else text(data, where, what)
    try:
        found = json.loads(source)
        if "\\ud" in source or "\\uD" in source:  # an unpaired surrogate is not text, though the json module accepts it
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CorruptTableError(f"{what} contains an unpaired surrogate: {error.reason}", where=where) from None
    except ValueError as error:
        raise CorruptTableError(f"{what} is not JSON: {error}", where=where) from None
    except RecursionError:
        raise CorruptTableError(f"{what} is nested too deeply", where=where) from None
    return found
