"""The toy's documents: immutable versions in a dict, and a head that is swapped."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boathouse.types import Partitioning, Schema


@dataclass(frozen=True)
class Unit:
    id: int
    parts: tuple[str, str]
    sizes: tuple[int, int]
    rows: int
    sequence: int
    first_row_id: int
    spec: int
    partition: Mapping[int, Any]
    stats: Mapping[str, tuple[Any, Any, int]]  # column -> lower, upper, nulls


@dataclass(frozen=True)
class Deletes:
    """Kind `position`: shared, {unit id: positions}. Kind `equality`: rows whose `key` is among `values`."""

    kind: str
    sequence: int
    rows: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    key: str = ""
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Document:
    version: int
    parent: int | None
    timestamp_ms: int
    identity: str
    operation: str
    write_id: str | None
    schema: Schema
    partitioning: Partitioning
    properties: Mapping[str, str]
    units: tuple[Unit, ...]
    deletes: tuple[Deletes, ...]
    next_row_id: int
    touched: frozenset[int] = frozenset()
    added: bool = False
    metadata_changed: bool = False
    txns: Mapping[str, int] = field(default_factory=dict)
    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass
class State:
    """One table. `versions` may lose old entries; `refs` maps a branch or tag to a version."""

    versions: dict[int, Document] = field(default_factory=dict)
    refs: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    counter: int = 0

    def swap(self, ref: str, before: str | None, document: Document) -> bool:
        with self.lock:
            if before != (str(self.refs[ref]) if ref in self.refs else None):
                return False
            self.versions[document.version] = document
            self.refs[ref] = document.version
            return True

    def next_version(self) -> int:
        with self.lock:
            self.counter += 1
            return self.counter


TABLES: dict[str, State] = {}


def clean(uri: str, keep: int) -> None:
    """Forgets all but the newest `keep` versions of the main branch's ancestry, as a cleaner would."""
    state = TABLES[uri]
    for version in sorted(state.versions)[:-keep]:
        del state.versions[version]
