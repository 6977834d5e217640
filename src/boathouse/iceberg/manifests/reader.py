"""Reads manifests and manifest lists, each once: they never change, so what is decoded is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Final

from boathouse.avro.columns import Columns
from boathouse.avro.small_files import FewColumns
from boathouse.errors import MissingFileError, NotFoundError
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests.entries import FEW, Entries, Many, Opened, decoded_together
from boathouse.iceberg.manifests.records import ManifestFile

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles
    from boathouse.storage import Stores

REMEMBERED: Final = 64 << 20
"""Bytes of decoded manifests that are remembered for one snapshot; manifest lists always are."""


TOGETHER: Final = 32 << 20
"""Bytes of manifests, decompressed, from which on they are not decoded together with another one."""


class ManifestReader:
    """Pickles as a reader through Arrow's file systems that remembers nothing, for executors.

    What does not fit is not remembered, instead of what was read first: manifests are read in the same order each time.
    """

    def __init__(self, stores: Stores | None, files: DataFiles | None = None) -> None:
        self._stores = stores
        self._files = files
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        self._kept: dict[str, tuple[Entries, int]] = {}
        self._room = REMEMBERED
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[ManifestReader], tuple[None, DataFiles | None]]:
        if self._stores is None:
            return ManifestReader, (None, self._files)
        from boathouse.arrow.filesystem import data_files  # noqa: PLC0415  # it loads Arrow's clients of object stores

        return ManifestReader, (None, data_files(self._stores))

    def adopt(self, other: ManifestReader) -> None:
        """Remembers what the reader of another snapshot of the table has read."""
        if other is not self:
            self._lists.update(other._lists)
            for entries, size in list(other._kept.values()):
                self._keep([entries], size)

    def holds(self, uri: str) -> bool:
        """Whether reading this manifest makes no request."""
        return uri in self._kept

    def listed(self, uri: str) -> tuple[ManifestFile, ...]:
        """The manifests that a manifest list names. Raises MissingFileError, CorruptTableError."""
        found = self._lists.get(uri)
        if found is None:
            found = self._lists[uri] = tuple(manifests.read_list(self._bytes(uri), uri))
        return found

    def embedded(self, path: str, uri: str, snapshot_id: int) -> ManifestFile:
        """A manifest that no manifest list describes, as one would. Raises MissingFileError, CorruptTableError."""
        data = self._bytes(uri)
        source = manifests.described(data, path, uri, snapshot_id)
        found = Entries.read(data, source, uri)
        self._keep([found], found.columns.nbytes)
        return source

    def entries(self, source: ManifestFile, uri: str, verify: bool) -> Entries:
        """A manifest, with `verify` as complete as the manifest list counts it. Raises MissingFileError,
        CorruptTableError."""
        found = self._known(source, uri)
        if found is None:
            found = Entries.read(self._bytes(uri), source, uri)
            self._keep([found], found.columns.nbytes)
        if verify:
            source.check(len(found.live), uri)
        return found

    def whole(self, sources: Iterable[tuple[ManifestFile, str]], verify: bool) -> Iterator[Entries]:
        """Manifests with every field of their entries, in their order; what is decoded by columns is not remembered.
        Raises what `entries` raises."""
        for group in self.opened(sources, every=True):
            yield from self.decoded(group, verify, every=True)

    def opened(
        self, sources: Iterable[tuple[ManifestFile, str]], every: bool = False
    ) -> Iterator[Sequence[Entries | Many]]:
        """Manifests in their order, read and decompressed, in groups that `decoded` decodes together. Raises what
        `entries` raises."""
        group: list[Entries | Many] = []
        for source, uri in sources:
            found = self._opened(source, uri, every)
            if group and not _fits(found, group):
                yield group
                group = []
            group.append(found)
        if group:
            yield group

    def decoded(self, group: Sequence[Entries | Many], verify: bool, every: bool = False) -> list[Entries]:
        """What `entries` gives, and raises, of each manifest of a group that was opened with the same `every`."""
        together = [m for m in group if isinstance(m, Many)]
        found = self._together(together, every) if together else [m for m in group if isinstance(m, Entries)]
        if verify:
            for entries in found:
                entries.source.check(len(entries.live), entries.where)
        return found

    def _known(self, source: ManifestFile, uri: str) -> Entries | None:
        if uri not in self._kept:
            return None
        found, _ = self._kept[uri]
        return found if found.source == source else found.listed_as(source)

    def _together(self, opened: Sequence[Many], every: bool) -> list[Entries]:
        found = decoded_together(opened, every)
        if not every:
            # They share the bytes that they were decoded from, so all of them are remembered, or none.
            places = sum(e.columns.own_bytes for e in found if isinstance(e.columns, Columns))
            self._keep(found, places + sum(m.size for m in opened))
        return found

    def _opened(self, source: ManifestFile, uri: str, every: bool) -> Entries | Many:
        """A manifest, whose entries are decoded if they are few or known: with `every` field if that is asked for."""
        known = self._known(source, uri)
        if known is not None and (not every or isinstance(known.columns, FewColumns)):
            return known
        data = self._bytes(uri)
        opened = Opened.of(data, source, uri)
        if opened.count > FEW:
            return opened.many()
        found = opened.few(len(data))
        self._keep([found], found.columns.nbytes)
        return found

    def _keep(self, found: Sequence[Entries], size: int) -> None:
        with self._lock:
            new = [e for e in found if e.where not in self._kept]
            if new and size <= self._room:
                self._kept.update((e.where, (e, size // len(new))) for e in new)
                self._room -= size

    def _bytes(self, uri: str) -> bytes:
        try:
            if self._stores is not None:
                storage, key = self._stores.resolve(uri)
                return storage.get(key)
            assert self._files is not None
            with self._files.open_input(uri) as file:
                return bytes(file.read())
        except NotFoundError:
            raise MissingFileError("a file that the table's metadata names is missing", where=uri) from None


def _fits(found: Entries | Many, group: Sequence[Entries | Many]) -> bool:
    """Whether a manifest is decoded with these."""
    others = [m for m in group if isinstance(m, Many)]
    if isinstance(found, Entries) or len(others) < len(group):
        return False
    return found.schema == others[0].schema and sum(m.size for m in others) <= TOGETHER
