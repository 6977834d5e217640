"""Vacuum of the toy: a version is retained until the one after it is as old as the retention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from boathouse.errors import VersionNotFoundError
from toy_format.state import Document, State
from toy_format.tasks import PositionFile

WEEK_MS = 7 * 86_400_000


@dataclass(frozen=True)
class ToyLiveFiles:
    state: State

    def uris(self) -> Iterator[str]:
        for document in self.state.versions.values():
            yield from files_of(document)


@dataclass(frozen=True)
class ToyRetention:
    head: Document
    state: State
    root: str

    ms = property(lambda s: int(s.head.properties.get("toy.retention-ms", WEEK_MS)))

    def kept(self, before_ms: int) -> Iterator[pa.Array]:
        after = {d.parent: d for d in self.state.versions.values()}
        for version, document in self.state.versions.items():
            if version == self.head.version or after[version].timestamp_ms >= before_ms:
                yield pa.array(self._files(document), pa.string())

    def expired(self, before_ms: int) -> Iterator[str]:
        for document in self.state.versions.values():
            if document.parent is not None and document.parent not in self.state.versions:
                raise VersionNotFoundError("the toy forgot its first versions", where=self.root)
            yield from self._files(document)

    def searched(self, folder: str) -> bool:
        return folder.split("/")[0] == "data"

    def vacuumed(self, before_ms: int) -> None: ...

    def _files(self, document: Document) -> list[str]:
        return [part.removeprefix(f"{self.root}/") for part in files_of(document)]


def files_of(document: Document) -> Iterator[str]:
    for unit in document.units:
        yield from unit.parts
    for deletes in document.deletes:
        if isinstance(deletes.rows, PositionFile):
            yield from deletes.rows.parts
