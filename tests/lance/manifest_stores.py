"""A table whose versions are agreed on in a SQLite store, and a store that fails where a test says."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

import boathouse as bh
from boathouse.errors import UndecidedError
from boathouse.lance.external import opened
from boathouse.lance.external.sqlite import SqliteStore
from boathouse.lance.external.store import Entry
from boathouse.storage import Stores
from boathouse.table.context import TableContext

from .conftest import Kit


class StoreKit(Kit):
    """`open`, `create` and `read` go by the store, `alone` by the folder."""

    def __init__(self, root, path) -> None:
        super().__init__(root)
        self.path = path
        path.touch()
        self.stores = Stores(self.options)

    @property
    def options(self) -> dict[str, str]:
        return {"manifest_store": f"sqlite:///{self.path}"}

    @property
    def store(self) -> SqliteStore:
        return SqliteStore(str(self.path))

    def open(self, **options):
        return super().open(storage_options=self.options, **options)

    def create(self, data: pa.Table, **options):
        bh.write(data, self.uri, format="lance", storage_options=self.options, **options)
        return self.open()

    def read(self, **options) -> pa.Table:
        return self.open().scan(**options).to_arrow()

    def alone(self):
        return bh.open(self.uri, format="lance")

    def wrapped(self, wrap) -> TableContext:
        return TableContext(self.location, Stores(self.options, wrap=wrap))

    def rows(self) -> list[tuple]:
        sql = "SELECT base_uri, version, path, committer, size FROM lance_manifests ORDER BY base_uri, version"
        with sqlite3.connect(self.path) as connection:
            return connection.execute(sql).fetchall()

    def entries(self) -> dict[int, str]:
        """The file names in the store, by version."""
        return {v: path.rpartition("/")[2] for base, v, path, _, _ in self.rows() if base == self.location.uri}

    def names(self) -> list[str]:
        """The file names in `_versions`."""
        return sorted(p.name for p in (self.root / "_versions").iterdir())


@dataclass
class FailingStore:
    """Passes on to `inner`; before and after each put, `before(method, entry)` and `after(method, entry)` are called,
    which may raise."""

    inner: SqliteStore
    before: Callable[[str, Entry], None] = lambda method, entry: None
    after: Callable[[str, Entry], None] = lambda method, entry: None
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    def latest(self, base):
        return self.inner.latest(base)

    def get(self, base, version):
        return self.inner.get(base, version)

    def put_if_absent(self, base, entry):
        return self._put("put_if_absent", base, entry)

    def put_if_exists(self, base, entry):
        return self._put("put_if_exists", base, entry)

    def forget(self, base):
        self.inner.forget(base)

    def _put(self, method, base, entry):
        self.calls.append((method, entry.uri.rpartition("/")[2]))
        self.before(method, entry)
        answer = getattr(self.inner, method)(base, entry)
        self.after(method, entry)
        return answer


def failing(patch, store: SqliteStore, **how) -> FailingStore:
    """From now on every table's store is this one."""
    made = FailingStore(store, **how)
    patch.setattr(opened, "store_of", lambda context: made)
    return made


def raising(method: str, error: Exception, times: int = 1) -> Callable[[str, Entry], None]:
    """Raises the first times that the method is called."""
    left = [error] * times

    def fail(called, entry):
        if called == method and left:
            raise left.pop()

    return fail


LOST = UndecidedError("the answer was lost")
