"""URIs as Hadoop and Spark spell them: in `_metadata.file_path`, and in the log of a table by delta-spark.

delta-spark compares the two as text where it looks for the file of a row, so that an absolute path in a log has to be
spelled so.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from boathouse.storage.uris import split

_KEPT: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'(),;:$&+=@/")


def hadoop_uri(uri: str) -> str:
    """A raw canonical URI, encoded; local files have one slash."""
    scheme, authority, key = split(uri)
    return f"file:/{encode_path(key)}" if scheme == "file" else f"{scheme}://{authority}/{encode_path(key)}"


def encode_path(path: str) -> str:
    """A raw path as `java.net.URI` prints it: letters of any script stay as they are."""
    return "".join(c if c in _KEPT or _plain(c) else _percent(c) for c in path)


def _plain(c: str) -> bool:
    return ord(c) > 127 and unicodedata.category(c) not in ("Cc", "Zs", "Zl", "Zp")


def _percent(c: str) -> str:
    return "".join(f"%{b:02X}" for b in c.encode())
