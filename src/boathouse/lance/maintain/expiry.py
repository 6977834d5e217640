"""Which versions of a Lance table expire, and which files go with them. No commit is made: each version is a file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from boathouse.errors import CorruptTableError, InvalidArgumentError
from boathouse.lance.maintain.candidates import Candidates
from boathouse.lance.maintain.lines import Kept, Lines, documents, lines, times
from boathouse.lance.maintain.needs import Seen, below, folder_of, needs
from boathouse.lance.maintain.settings import older_than_ms, retained
from boathouse.lance.manifests.versions import list_versions, missing_version
from boathouse.lance.refs.files import of_main
from boathouse.lance.refs.versions import named
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import Storage
from boathouse.table.edits import ExpireVersions
from boathouse.table.features.expiry import ExpiryRule, HeldFile
from boathouse.table.location import Version
from boathouse.table.snapshot import Snapshot

log = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class LanceExpiry:
    """See `table.features.Expiry` and `table.features.VersionFiles`."""

    snapshot: LanceSnapshot

    @property
    def ms(self) -> int:
        return older_than_ms(self.snapshot.properties, self.snapshot.location.uri)

    def due(self, rule: ExpiryRule, now_ms: int) -> ExpireVersions:
        snapshot, where = self.snapshot, self.snapshot.location.uri
        before = now_ms - self.ms if rule.before_ms is None else rule.before_ms
        keep = retained(snapshot.properties, where) if rule.keep is None else rule.keep
        listed = [v for v in list_versions(snapshot.context) if v.version <= snapshot.version]
        there, stay = {v.version for v in listed}, {**self._named(), snapshot.version: "the newest"}
        for version in rule.versions:
            if version not in there:
                raise missing_version(snapshot.location, version, tuple(listed))
            if version in stay:
                raise InvalidArgumentError(
                    f"version {version} is {stay[version]}, so it cannot expire",
                    where=where,
                    advice="leave it out, or drop what needs it first",
                )
        free = (v for v in listed[keep:] if v.version not in stay and v.version not in rule.versions)
        asked = [(where, Kept(v.key, v.version, v.size or 0)) for v in free]
        old = {kept.version for kept, ms in times(self._storage()[0], asked) if ms < before}
        return ExpireVersions(tuple(sorted(there & (old | rule.versions))))

    def held_by(self, expired: ExpireVersions, after: Snapshot) -> Mapping[str, HeldFile]:
        if not expired.versions:
            return {}
        now, gone = lines(cast(LanceSnapshot, after)), frozenset(expired.versions)
        leaving = [kept for kept in now.own if kept.version in gone]
        found, seen = Candidates(now.root), Seen()
        storage, root = self._storage()
        for _, kept, document in documents(storage, [(now.root, k) for k in leaving], _warn):
            try:
                found.take(needs(document, now.root, seen))
            except CorruptTableError as error:
                _warn(kept, error)
        self._subtract(found, now, (k for k in now.own if k.version is not None and k.version not in gone))
        manifests = {storage.uri(kept.key): HeldFile("manifest", kept.size) for kept in leaving}
        return manifests | dict(found.files(storage, root))

    def documents(self, expired: ExpireVersions) -> Mapping[Version, str]:
        if not expired.versions:
            return {}
        storage, _ = self._storage()
        gone = frozenset(expired.versions) - self._named().keys()
        listed = list_versions(self.snapshot.context)
        return {v.version: storage.uri(v.key) for v in reversed(listed) if v.version in gone}

    def unneeded(self, held: Mapping[str, HeldFile], expired: ExpireVersions) -> Mapping[str, HeldFile]:
        now, gone = lines(self.snapshot), frozenset(expired.versions)
        found = Candidates(now.root)
        for uri, file in held.items():
            folder = folder_of(below(uri, now.root) or "")
            found.take([(uri if folder is None else f"{now.root}/{folder}", file.kind, None)])
        # Those that stay were read before any version was removed.
        newest = self.snapshot.version
        since = (k for k in now.own if k.version is not None and (k.version in gone or k.version > newest))
        self._subtract(found, now, since)
        return {uri: file for uri, file in held.items() if found.still(uri)}

    def _named(self) -> Mapping[int, str]:
        branch = self.snapshot.manifest.branch
        return named(of_main(self.snapshot.context, branch), branch)

    def _subtract(self, found: Candidates, now: Lines, own: Iterable[Kept]) -> None:
        """What these versions need, and every one that is not of this line."""
        seen = Seen()
        if found:
            for root, _, document in documents(self._storage()[0], [*((now.root, kept) for kept in own), *now.besides]):
                found.subtract(needs(document, root, seen))

    def _storage(self) -> tuple[Storage, str]:
        return self.snapshot.stores.resolve(self.snapshot.location.uri)


def _warn(kept: Kept, error: CorruptTableError) -> None:
    log.warning("what version %s alone needs is not known, and stays: %s", kept.version, error)
