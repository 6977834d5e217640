"""Table metadata: the JSON document, and views of it (spec, "Table Metadata").

A commit changes only what its updates are about (module apply), so that unknown fields are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import orjson

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.metadata.checks import check_document
from boathouse.iceberg.metadata.partitions import parse_specs
from boathouse.iceberg.metadata.schema_rules import check_schema
from boathouse.iceberg.metadata.schemas import parse_schema
from boathouse.iceberg.metadata.updates import MAIN
from boathouse.iceberg.metadata.version_1 import completed
from boathouse.iceberg.metadata.versions import VERSIONS, FormatVersion
from boathouse.iceberg.metadata.views import is_view, parse_view
from boathouse.storage import ObjectInfo
from boathouse.types import Partitioning, Schema

Json = dict[str, Any]


class TableMetadata:
    """A metadata document of version 1 (completed to have what version 2 has), 2 or 3, immutable.

    `uri` is the file that it came from, `file` that file as the listing showed it, if it was found by one.
    """

    def __init__(self, document: Json, uri: str, file: ObjectInfo | None = None) -> None:
        self.document = document
        self.uri = uri
        self.file = file

    @classmethod
    def parse(
        cls, data: bytes, uri: str, file: ObjectInfo | None = None, known: TableMetadata | None = None
    ) -> TableMetadata:
        """`known` is the version before, which was checked. Raises CorruptTableError, and UnsupportedFeatureError
        naming a version that is not offered."""
        try:
            document = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise CorruptTableError(f"the table metadata is not JSON: {error}", where=uri) from None
        if not isinstance(document, dict):
            raise CorruptTableError("the table metadata is not a JSON object", where=uri)
        return cls.of(document, uri, file, known)

    @classmethod
    def of(
        cls, document: Json, uri: str, file: ObjectInfo | None = None, known: TableMetadata | None = None
    ) -> TableMetadata:
        """A document that is parsed already; raises what `parse` raises."""
        _check_version(document, uri)
        if not VERSIONS[document["format-version"]].sequence_numbers:
            document = completed(document)
        check_document(document, uri, None if known is None else known.document)
        return cls(document, uri, file)

    def listed_as(self, file: ObjectInfo) -> TableMetadata:
        """The same document, with what is known of it, and its file as a listing showed it."""
        found = copy(self)
        found.file = file
        return found

    @property
    def version(self) -> int:
        return int(self.document["format-version"])

    @property
    def format(self) -> FormatVersion:
        return VERSIONS[self.version]

    @property
    def uuid(self) -> str:
        return str(self.document["table-uuid"])

    @property
    def location(self) -> str:
        return str(self.document["location"])

    @property
    def properties(self) -> Mapping[str, str]:
        return self.document.get("properties") or {}

    @property
    def last_sequence_number(self) -> int:
        return int(self.document["last-sequence-number"])

    @property
    def current_snapshot_id(self) -> int | None:
        """-1, null and absent all mean that there is none."""
        found = self.document.get("current-snapshot-id")
        return None if found is None or found == -1 else int(found)

    @cached_property
    def snapshots(self) -> dict[int, Json]:
        return {int(s["snapshot-id"]): s for s in self.document.get("snapshots") or []}

    @cached_property
    def refs(self) -> dict[str, Json]:
        """Branches and tags; `main` always exists if the table has a current snapshot."""
        refs = dict(self.document.get("refs") or {})
        if MAIN not in refs and self.current_snapshot_id is not None:
            refs[MAIN] = {"snapshot-id": self.current_snapshot_id, "type": "branch"}
        return refs

    @cached_property
    def schemas(self) -> dict[int, Schema]:
        found = {int(s["schema-id"]): parse_schema(s, self.uri) for s in self.document["schemas"]}
        for schema in found.values():
            check_schema(schema, self.version, self.uri)
        return found

    @property
    def schema(self) -> Schema:
        return self.schemas[self.document["current-schema-id"]]

    def schema_of(self, snapshot: Mapping[str, Any] | None) -> Schema:
        """The schema that a snapshot was written with; the current one if it does not record it."""
        id = None if snapshot is None else snapshot.get("schema-id")
        return self.schema if id is None else self.schemas.get(int(id), self.schema)

    @cached_property
    def partitioning(self) -> Partitioning:
        current = self.document["current-schema-id"]
        order = [self.schemas[current], *(s for i, s in sorted(self.schemas.items(), reverse=True) if i != current)]
        return parse_specs(self.document["partition-specs"], order, self.document["default-spec-id"], self.uri)

    def ancestors(self, snapshot_id: int | None) -> Iterator[Json]:
        """A snapshot and its parents, newest first, as far as they are listed."""
        seen: set[int] = set()
        while snapshot_id is not None and snapshot_id not in seen:
            seen.add(snapshot_id)
            snapshot = self.snapshots.get(snapshot_id)
            if snapshot is None:
                return
            yield snapshot
            snapshot_id = snapshot.get("parent-snapshot-id")


def logged_files(metadata: TableMetadata) -> list[tuple[str, int]]:
    """The metadata files that the document records, with their times, oldest first; the last one is its own."""
    log = metadata.document.get("metadata-log") or []
    found = [(str(e["metadata-file"]), int(e["timestamp-ms"])) for e in log]
    return [*found, (metadata.uri, int(metadata.document["last-updated-ms"]))]


def files_of_snapshots(metadata: TableMetadata) -> dict[int, str]:
    """The metadata file that each snapshot came with, as far as it is recorded: the first one with its time."""
    files: dict[int, str] = {}
    for uri, time in logged_files(metadata):
        files.setdefault(time, uri)
    times = {id: int(s["timestamp-ms"]) for id, s in metadata.snapshots.items()}
    return {id: files[time] for id, time in times.items() if time in files}


def _check_version(document: Json, uri: str) -> None:
    version = document.get("format-version")
    if is_view(document):
        raise parse_view(document, uri).refusal(uri)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CorruptTableError(f"format-version is {version!r}", where=uri)
    if version not in VERSIONS:
        raise UnsupportedFeatureError(f"Iceberg format version {version} is not offered", where=uri)


def as_read(document: Json, known: Json) -> Json:
    """The document as it is read from its bytes. What is the same object in `known`, the version before, was read once;
    so were the members at the beginning of a list, as snapshots are added at its end."""
    found = {}
    for name, value in VERSIONS[document["format-version"]].stored(document).items():
        before = known.get(name)
        if value is before:
            found[name] = value
        elif isinstance(value, list) and isinstance(before, list):
            pairs = enumerate(zip(value, before))
            same = next((i for i, (a, b) in pairs if a is not b), min(len(value), len(before)))
            found[name] = [*value[:same], *orjson.loads(orjson.dumps(value[same:]))]
        else:
            found[name] = orjson.loads(orjson.dumps(value))
    return found


def dump(document: Json) -> bytes:
    """The document as it is stored, by its own version."""
    return orjson.dumps(VERSIONS[document["format-version"]].stored(document))
