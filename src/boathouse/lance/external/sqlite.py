"""A manifest store in a SQLite file, for writers on one machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from boathouse.bits.library import LIBRARY
from boathouse.errors import InvalidArgumentError, StorageError
from boathouse.lance.external.store import Entry

_WAIT_SECONDS: Final = 30.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS lance_manifests (
  base_uri TEXT NOT NULL, version INTEGER NOT NULL, path TEXT NOT NULL, committer TEXT NOT NULL, size INTEGER,
  PRIMARY KEY (base_uri, version)
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """The file has to be there, be it empty: a misspelt name would otherwise be a store of its own, in which versions
    are agreed on that others agree on elsewhere. A connection lives as long as a call, so that processes may fork."""

    path: str

    @property
    def name(self) -> str:
        return f"sqlite:///{self.path}"

    def latest(self, base: str) -> Entry | None:
        return self._entry("base_uri = ? ORDER BY version DESC LIMIT 1", (base,))

    def get(self, base: str, version: int) -> Entry | None:
        return self._entry("base_uri = ? AND version = ?", (base, version))

    def put_if_absent(self, base: str, entry: Entry) -> bool:
        sql = "INSERT INTO lance_manifests (path, committer, size, base_uri, version) VALUES (?, ?, ?, ?, ?)"
        return self._put(f"{sql} ON CONFLICT DO NOTHING", base, entry)

    def put_if_exists(self, base: str, entry: Entry) -> bool:
        sql = "UPDATE lance_manifests SET path = ?, committer = ?, size = ? WHERE base_uri = ? AND version = ?"
        return self._put(sql, base, entry)

    def forget(self, base: str) -> None:
        with self._connected() as connection:
            connection.execute("DELETE FROM lance_manifests WHERE base_uri = ?", (base,))

    def _entry(self, condition: str, values: tuple[str | int, ...]) -> Entry | None:
        with self._connected() as connection:
            sql = f"SELECT version, path, size FROM lance_manifests WHERE {condition}"
            found = connection.execute(sql, values).fetchone()
        return None if found is None else Entry(*found)

    def _put(self, sql: str, base: str, entry: Entry) -> bool:
        with self._connected() as connection:
            values = (entry.uri, LIBRARY, entry.size, base, entry.version)
            return connection.execute(sql, values).rowcount > 0

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Each statement is a transaction: it has taken effect, or it raises and has not."""
        if not os.path.isfile(self.path):
            raise InvalidArgumentError(
                "there is no manifest store here",
                where=self.name,
                advice="check the name; an empty file becomes a new store",
            )
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
                if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'lance_manifests'").fetchone() is None:
                    connection.execute(_TABLE)
                yield connection
        except sqlite3.Error as error:
            advice = "name a SQLite file" if "not a database" in str(error) else None
            raise StorageError(f"the manifest store failed: {error}", where=self.name, advice=advice) from error
