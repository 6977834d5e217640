"""Paths of data files: URIs in the log, raw URIs everywhere else (PROTOCOL.md, "Add File and Remove File").

A path is decoded exactly once. Folders made of partition values are escaped as in Hive, then encoded as a URI: the
value `A/A` makes the folder `x=A%2FA`, and the path contains `x=A%252FA`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import CorruptTableError, InvalidArgumentError
from boathouse.storage import uris

CHANGE_DATA: Final = "_change_data"
"""The folder of change files."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_HIVE = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_ODD = re.compile(r"^/|[%:\0]")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")


def decode(path: str, root: str) -> str:
    """The raw absolute URI of a path in the log; `root` is the table's. Raises CorruptTableError."""
    return uri_of(key_of(path, root), root)


def key_of(path: str, root: str) -> str:
    """The file's identity in the table: its raw path below the root, or its raw absolute URI elsewhere."""
    if not _ODD.search(path):
        return path
    try:
        raw = unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise CorruptTableError(f"the path {path!r} is not percent-encoded UTF-8", where=root) from error
    if "\0" in raw:
        raise CorruptTableError(f"the path {path!r} contains a NUL", where=root)
    if _SCHEME.match(path):
        found = _absolute(raw, root)
    elif raw.startswith("/"):
        scheme, authority, _ = uris.split(root)
        found = _absolute(f"{scheme}://{authority}{raw}" if scheme != "file" else raw, root)
    else:
        return raw
    inside = uris.relative(found, root)
    return found if inside is None else inside


def _absolute(raw: str, root: str) -> str:
    try:
        return uris.absolute(raw)
    except InvalidArgumentError as error:
        raise CorruptTableError(f"the path {raw!r} cannot be opened: {error.message}", where=root) from error


def uri_of(key: str, root: str) -> str:
    """The raw absolute URI of a file by its `key_of`."""
    return key if _ABSOLUTE.match(key) else f"{root}/{key}"


def keys_of(paths: pa.Array, root: str) -> pa.Array:
    """`key_of` for a column; only paths with something to decode are decoded one by one."""
    if not (
        _holds(paths, "%") or _holds(paths, ":") or _holds(paths, "\0") or pc.any(pc.starts_with(paths, "/")).as_py()
    ):
        return paths
    return pa.array([key_of(p, root) for p in paths.to_pylist()], pa.string())


def _holds(strings: pa.Array, char: str) -> bool:
    """Whether an ASCII character occurs in a column: one pass over its bytes, since Arrow's search is slow."""
    _, offsets, data = strings.buffers()
    if data is None or not len(strings):
        return False
    ends = np.frombuffer(offsets, np.int32)
    first, last = ends[strings.offset], ends[strings.offset + len(strings)]
    return bool((np.frombuffer(data, np.uint8)[first:last] == ord(char)).any())


def uris_of(keys: pa.Array, root: str) -> pa.Array:
    """`uri_of` for a column."""
    below = pc.binary_join_element_wise(pa.scalar(f"{root}/"), keys, "")
    if not _holds(keys, ":"):
        return below
    return pc.if_else(pc.match_substring_regex(keys, f"^{_ABSOLUTE.pattern}"), keys, below)


def encode(raw: str) -> str:
    """A raw relative path in the log's encoding: only unreserved characters, `/` and `=` are kept."""
    return quote(raw, safe="/=")


def hive_escape(text: str) -> str:
    """A string as part of a Hive folder name."""
    return _HIVE.sub(lambda m: f"%{ord(m[0]):02X}", text)


def partition_folder(name: str, text: str | None) -> str:
    """`name=value` for one partition value, truncated where the file system would refuse it: the path is never
    parsed."""
    value = HIVE_NULL if text is None else hive_escape(text)
    folder = f"{hive_escape(name)}={value}"
    return folder if len(folder.encode()) <= 200 else folder.encode()[:200].decode(errors="ignore") + "~"
