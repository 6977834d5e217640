"""One entry of the log: one JSON action per line (PROTOCOL.md, "Delta Log Entries").

Lines of add and remove actions are kept as bytes until files are requested: a large commit is then cheap to open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import pyarrow as pa

from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError

TEXT_MAP: Final = pa.map_(pa.string(), pa.string())
VECTOR: Final = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD: Final = pa.schema(
    [
        ("path", pa.string()),
        ("partitionValues", TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", TEXT_MAP),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
        ("stats", pa.string()),
    ]
)
REMOVE: Final = pa.schema(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", TEXT_MAP),
        ("size", pa.int64()),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
_FILES: Final = (b'{"add":', b'{"remove":')
_CHANGE: Final = b'{"cdc":'
_STATE: Final = frozenset(("protocol", "metaData", "txn", "sidecar", "checkpointMetadata", "domainMetadata"))
"""Actions, besides those on files, that a reader must not miss."""
_CHUNK: Final = 16_384


@dataclass(frozen=True, slots=True)
class Entry:
    """The actions of one version, except those on files, which are not parsed yet; `changes` are the cdc actions.

    A compaction is the entry of its last version, and has the remaining actions of all since version `first`.
    """

    version: int
    uri: str
    modified_ms: int = 0
    actions: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    lines: tuple[tuple[int, bytes], ...] = ()
    changes: tuple[tuple[int, bytes], ...] = ()
    first: int | None = None

    def last(self, kind: str) -> dict[str, Any] | None:
        found = self.actions.get(kind)
        return found[-1] if found else None

    @property
    def info(self) -> dict[str, Any]:
        return self.last("commitInfo") or {}

    def files(self) -> Iterator[tuple[bool, dict[str, Any]]]:
        """(is it an add, the action) in order. Raises CorruptTableError naming the line."""
        for start in range(0, len(self.lines), _CHUNK):
            for document in _documents(self.lines[start : start + _CHUNK], self.uri):
                for kind in ("add", "remove"):
                    if (action := document.get(kind)) is not None:
                        check_path(kind, action, self.uri)
                        check_vector(action.get("deletionVector"), self.uri)
                        yield kind == "add", action

    def change_files(self) -> list[dict[str, Any]]:
        """The cdc actions. Raises CorruptTableError naming the line."""
        found = [action for d in _documents(self.changes, self.uri) if (action := d.get("cdc")) is not None]
        for action in found:
            check_path("cdc", action, self.uri)
        return found


def check_path(kind: str, action: Any, uri: str) -> None:
    """Raises CorruptTableError for an action on a file without its path."""
    if not isinstance(action, dict) or not isinstance(action.get("path"), str):
        raise CorruptTableError(f"an {kind} action has no path", where=uri)


def check_vector(vector: Any, uri: str) -> None:
    """Raises CorruptTableError for a deletion vector's descriptor that is incomplete or out of range."""
    if vector is None or vector == {}:
        return
    if not isinstance(vector, dict):
        raise CorruptTableError(f"{vector!r} is not a deletion vector", where=uri)
    for name in ("storageType", "pathOrInlineDv"):
        if not isinstance(vector.get(name), str):
            raise CorruptTableError(f"a deletion vector has no {name}", where=uri)
    for name in ("sizeInBytes", "cardinality"):
        if not _natural(vector.get(name)):
            raise CorruptTableError(f"a deletion vector has no {name}", where=uri)
    if vector.get("offset") is not None and (not _natural(vector["offset"]) or vector["storageType"] == "i"):
        raise CorruptTableError(f"a deletion vector has the offset {vector['offset']!r}", where=uri)


def _natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def parse_entry(version: int, uri: str, data: bytes, modified_ms: int = 0) -> Entry:
    """Reads one entry. Unknown actions are kept unparsed. Raises CorruptTableError naming the line."""
    actions: dict[str, list[dict[str, Any]]] = {}
    lines: list[tuple[int, bytes]] = []
    changes: list[tuple[int, bytes]] = []
    rows = data.split(b"\n")
    last = next((i for i in range(len(rows) - 1, -1, -1) if rows[i].strip()), -1)
    for number, line in enumerate(rows, 1):
        line = line.strip()
        if not line:
            continue
        if line.startswith(_FILES) and line.endswith(b"}") and number <= last:
            lines.append((number, line))
            continue
        if line.startswith(_CHANGE) and line.endswith(b"}") and number <= last:
            changes.append((number, line))
            continue
        document = _document(number, line, uri)
        if "add" in document or "remove" in document:
            lines.append((number, line))
        if "cdc" in document:
            changes.append((number, line))
        for kind, action in document.items():
            if kind not in ("add", "remove", "cdc") and isinstance(action, dict):
                actions.setdefault(kind, []).append(action)
            elif kind in _STATE and action is not None:
                raise CorruptTableError(f"the {kind} action in line {number} is not an object", where=uri)
    for kind in ("protocol", "metaData"):
        if len(actions.get(kind, ())) > 1:
            raise CorruptTableError(f"the log entry has {len(actions[kind])} {kind} actions", where=uri)
    applications = [str(action.get("appId")) for action in actions.get("txn", ())]
    if len(set(applications)) < len(applications):
        raise CorruptTableError("the log entry has txn actions of one application twice", where=uri)
    return Entry(version, uri, modified_ms, actions, tuple(lines), tuple(changes))


def _documents(lines: Iterable[tuple[int, bytes]], uri: str) -> list[dict[str, Any]]:
    lines = list(lines)
    try:
        found = orjson.loads(b"[" + b",".join(line for _, line in lines) + b"]")
        if len(found) == len(lines) and all(isinstance(d, dict) for d in found):
            return list(found)
    except orjson.JSONDecodeError:
        pass
    return [_document(number, line, uri) for number, line in lines]


def _document(number: int, line: bytes, uri: str) -> dict[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        found = json_value(line, uri, f"line {number} of the log entry")
    if not isinstance(found, dict):
        raise CorruptTableError(f"line {number} of the log entry is not an action", where=uri)
    return found


def actions_table(actions: list[dict[str, Any]], schema: pa.Schema, uri: str) -> pa.Table:
    """Actions on files as Arrow columns, without unknown fields. Raises CorruptTableError for a wrong type."""
    columns = []
    try:
        for f in schema:
            values: list[Any] = [a.get(f.name) for a in actions]
            if f.type == TEXT_MAP:
                values = [None if v is None else list(v.items()) for v in values]
            columns.append(pa.array(values, f.type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, AttributeError, OverflowError, UnicodeEncodeError) as error:
        raise CorruptTableError(f"an action has a value of the wrong type: {error}", where=uri) from error
    return pa.Table.from_arrays(columns, schema=schema)
