"""Which snapshots and refs expire (spec, "Snapshot Retention Policy"), and which files go with them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa

from boathouse.errors import (
    BoathouseError,
    CorruptTableError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.iceberg.history import IcebergLiveFiles
from boathouse.iceberg.manifests.entries import FILE, LiveFiles
from boathouse.iceberg.manifests.records import DATA, EQUALITY_DELETES, ManifestFile
from boathouse.iceberg.metadata.document import Json, TableMetadata
from boathouse.iceberg.metadata.updates import MAIN
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import relative
from boathouse.table.edits import ExpireVersions
from boathouse.table.features.expiry import ExpiryRule, HeldFile, HeldKind
from boathouse.table.snapshot import Snapshot

log = logging.getLogger("boathouse")

MAX_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_KEPT: Final = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
REMOVABLE: Final = "gc.enabled"
_DEFAULTS: Final[Mapping[str, int]] = {MAX_AGE: 5 * 24 * 3_600_000, MIN_KEPT: 1, MAX_REF_AGE: (1 << 63) - 1}
_GUARD_MS: Final = 3 * 24 * 3_600_000
_STATISTICS: Final = ("statistics", "partition-statistics")


@dataclass(frozen=True, slots=True)
class IcebergExpiry:
    """See `table.features.Expiry` and `table.features.Orphans`."""

    snapshot: IcebergSnapshot

    @property
    def ms(self) -> int:
        return _setting(self.snapshot.metadata, MAX_AGE)

    def due(self, rule: ExpiryRule, now_ms: int) -> ExpireVersions:
        metadata = self.snapshot.metadata
        check_removable(self.snapshot)
        for version in rule.versions:
            if version not in metadata.snapshots:
                raise VersionNotFoundError(
                    f"snapshot {version} does not exist", where=metadata.uri, advice="it may have expired already"
                )
        oldest = _setting(metadata, MAX_REF_AGE)
        refs = {name: ref for name, ref in metadata.refs.items() if _lasts(name, ref, metadata, now_ms, oldest)}
        heads = {int(ref["snapshot-id"]): name for name, ref in refs.items()}
        for version in rule.versions & heads.keys():
            raise InvalidArgumentError(
                f"snapshot {version} is that of {heads[version]!r}, so it cannot expire",
                where=metadata.uri,
                advice="leave it out, or move or drop the branch or tag first",
            )
        kept = {*heads, *_of_branches(metadata, refs, rule, now_ms)} - rule.versions
        gone = tuple(id for id in metadata.snapshots if id not in kept)
        return ExpireVersions(gone, tuple(name for name in metadata.refs if name not in refs))

    def held_by(self, expired: ExpireVersions, after: Snapshot) -> Mapping[str, HeldFile]:
        head = cast(IcebergSnapshot, after)
        gone = frozenset(expired.versions)
        before = self.snapshot.metadata
        leaving = [s for id, s in before.snapshots.items() if id in gone]
        staying = [s for id, s in head.metadata.snapshots.items() if id not in gone]
        return _Held(self.snapshot, head).only(leaving, staying, gone)

    @property
    def guard_ms(self) -> int:
        return _GUARD_MS

    def kept(self) -> Iterator[pa.Array]:
        check_removable(self.snapshot)
        root = self.snapshot.location.uri
        for uri in IcebergLiveFiles(self.snapshot).uris():
            yield pa.array([below if (below := relative(uri, root)) is not None else uri], pa.string())

    def searched(self, folder: str) -> bool:
        names = folder.split("/") if folder else []
        fields = {f.name for spec in self.snapshot.partitioning.specs for f in spec}
        return all(not n.startswith((".", "_")) or n.partition("=")[0] in fields for n in names)

    def own(self, path: str) -> bool:
        return not path.rpartition("/")[2].startswith((".", "_"))


def check_removable(snapshot: IcebergSnapshot) -> None:
    """Raises UnsupportedFeatureError for a table whose files may be those of other tables too."""
    if snapshot.properties.get(REMOVABLE, "true").lower() == "false":
        raise UnsupportedFeatureError(
            f"the table's files are not to be removed: {REMOVABLE} is false, as other tables may have them",
            where=snapshot.token,
            advice=f"set {REMOVABLE} to true if no other table needs them",
        )


def _setting(metadata: TableMetadata, name: str) -> int:
    text = metadata.properties.get(name)
    if text is None:
        return _DEFAULTS[name]
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(
            f"the property {name} is {text!r}", where=metadata.uri, advice="set it to a whole number"
        ) from None


def _own(ref: Json, name: str, default: int, where: str) -> int:
    found = ref.get(name)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int):
        raise CorruptTableError(f"a ref has {name} {found!r:.80}", where=where)
    return found


def _lasts(name: str, ref: Json, metadata: TableMetadata, now_ms: int, oldest: int) -> bool:
    """Whether a branch or tag stays: main always does, one that leads nowhere does not."""
    if name == MAIN:
        return True
    snapshot = metadata.snapshots.get(int(ref["snapshot-id"]))
    age = _own(ref, "max-ref-age-ms", oldest, metadata.uri)
    return snapshot is not None and now_ms - int(snapshot["timestamp-ms"]) <= age


def _of_branches(metadata: TableMetadata, refs: Mapping[str, Json], rule: ExpiryRule, now_ms: int) -> Iterator[int]:
    """The snapshots that branches retain, and the young ones that belong to no branch or tag: they may be staged."""
    before = now_ms - _setting(metadata, MAX_AGE) if rule.before_ms is None else rule.before_ms
    fewest = _setting(metadata, MIN_KEPT) if rule.keep is None else rule.keep
    known: set[int] = set()
    for ref in refs.values():
        if ref.get("type", "branch") != "branch":
            known.add(int(ref["snapshot-id"]))
            continue
        age = _own(ref, "max-snapshot-age-ms", 0, metadata.uri)
        since = now_ms - age if "max-snapshot-age-ms" in ref else before
        keep = _own(ref, "min-snapshots-to-keep", fewest, metadata.uri)
        retained = True
        for i, snapshot in enumerate(metadata.ancestors(int(ref["snapshot-id"]))):
            known.add(int(snapshot["snapshot-id"]))
            retained = retained and (i < keep or int(snapshot["timestamp-ms"]) >= since)
            if retained:
                yield int(snapshot["snapshot-id"])
    for id, snapshot in metadata.snapshots.items():
        if id not in known and int(snapshot["timestamp-ms"]) >= before:
            yield id


class _Held:
    """The files of some snapshots that others do not have."""

    def __init__(self, before: IcebergSnapshot, head: IcebergSnapshot) -> None:
        self._before, self._head = before, head
        self._paths, self._listing = head.paths, head.listing
        self._found: dict[str, HeldFile] = {}

    def only(self, leaving: Sequence[Json], staying: Sequence[Json], gone: frozenset[int]) -> Mapping[str, HeldFile]:
        kept = self._manifests(self._head.metadata, staying)
        lists = {self._list(s) for s in staying}
        for snapshot in leaving:
            uri = self._list(snapshot)
            if uri is not None and uri not in lists:
                self._found[uri] = HeldFile("manifest list", None)
            try:
                self._take(snapshot, kept)
            except BoathouseError as error:
                log.warning("what snapshot %s alone needs is not known, and stays: %s", snapshot["snapshot-id"], error)
        candidates = {uri for uri, held in self._found.items() if held.kind != "manifest list"}
        for uri, source in kept.items():
            if not candidates:
                break
            if source.empty:
                continue
            needed = candidates.intersection(self._listing.live_uris(source))
            candidates -= {uri, *needed}
            for other in needed:
                del self._found[other]
        self._statistics(gone)
        return self._found

    def _list(self, snapshot: Json) -> str | None:
        recorded = snapshot.get("manifest-list")
        return None if recorded is None else self._paths.uri(recorded)

    def _manifests(self, metadata: TableMetadata, snapshots: Sequence[Json]) -> dict[str, ManifestFile]:
        found: dict[str, ManifestFile] = {}
        for snapshot in snapshots:
            for source in self._listing.of(metadata, snapshot).manifest_files:
                found.setdefault(self._paths.uri(source.path), source)
        return found

    def _take(self, snapshot: Json, kept: Mapping[str, ManifestFile]) -> None:
        listing = self._listing.of(self._before.metadata, snapshot)
        for source in listing.manifest_files:
            uri = self._paths.uri(source.path)
            if uri in kept or uri in self._found:
                continue
            live = listing.live(source)
            uris = self._paths.uris(live.paths()).to_pylist()
            self._found.update(zip(uris, map(HeldFile, _kinds(live, source), live.sizes.tolist()), strict=True))
            self._found[uri] = HeldFile("manifest", source.row.get("manifest_length"))

    def _statistics(self, gone: frozenset[int]) -> None:
        for name in _STATISTICS:
            files: list[dict[str, Any]] = self._before.metadata.document.get(name) or []
            later = self._head.metadata.document.get(name) or []
            kept = {self._paths.uri(f["statistics-path"]) for f in later if int(f["snapshot-id"]) not in gone}
            for file in files:
                uri = self._paths.uri(file["statistics-path"])
                if int(file["snapshot-id"]) in gone and uri not in kept:
                    self._found[uri] = HeldFile("statistics", file.get("file-size-in-bytes"))


def _kinds(live: LiveFiles, source: ManifestFile) -> list[HeldKind]:
    if source.content == DATA:
        return ["data"] * len(live)
    contents = live.columns.longs((FILE, "content"))[0].tolist()
    return ["equality deletes" if c == EQUALITY_DELETES else "position deletes" for c in contents]
