"""Resolves URIs to storages."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

from boathouse.errors import ForeignPathError
from boathouse.storage.base import Storage
from boathouse.storage.local import LocalStorage
from boathouse.storage.memory import MemoryStorage
from boathouse.storage.options import StorageOptions
from boathouse.storage.uris import absolute, foreign, split

Wrap = Callable[[Storage], Storage]


class Stores:
    """Resolves URIs with one set of options; keeps one `Storage` per bucket. Safe to share between threads.

    `wrap` is put around every storage when it is first resolved (tests inject faults there). With `home`, the location
    of the table whose metadata names the URIs, those in a store of another kind are refused: metadata in a bucket,
    which others may write, must not open local files.
    """

    def __init__(
        self,
        options: Mapping[str, str] | StorageOptions | None = None,
        *,
        wrap: Wrap | None = None,
        home: str | None = None,
    ) -> None:
        self.options = StorageOptions.of(options)
        self.wrap = wrap
        self.home = home
        self._kept: dict[tuple[str, str], Storage] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Stores({self.options!r})"

    def absolute(self, place: str | os.PathLike[str]) -> str:
        """The canonical URI of a path or URI (see `boathouse.storage.uris.absolute`)."""
        return absolute(place)

    def check(self, uri: str) -> None:
        """Raises ForeignPathError for a canonical URI in a store of another kind than the table's."""
        if self.home is not None and foreign(uri, self.home):
            raise ForeignPathError(f"the table at {self.home} names a file elsewhere", where=uri)

    def resolve(self, uri: str | os.PathLike[str]) -> tuple[Storage, str]:
        """(storage, key) of a path or URI; no request is made. InvalidArgumentError, UnsupportedFeatureError,
        ForeignPathError."""
        whole = absolute(uri)
        self.check(whole)
        scheme, authority, key = split(whole)
        kept = self._kept.get((scheme, authority))
        if kept is None:
            with self._lock:
                kept = self._kept.get((scheme, authority))
                if kept is None:
                    kept = self._open(scheme, authority)
                    if self.wrap is not None:
                        kept = self.wrap(kept)
                    self._kept[scheme, authority] = kept
        return kept, key

    def _open(self, scheme: str, authority: str) -> Storage:
        if scheme == "file":
            return LocalStorage()
        if scheme == "memory":
            return MemoryStorage.named(authority)
        # Imported here, not above: loading obstore takes longer than reading a small local table.
        from boathouse.storage.cloud import open_cloud  # noqa: PLC0415

        return open_cloud(scheme, authority, self.options)
