"""The branches and tags of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from boathouse.api.arguments import flag, located
from boathouse.api.engines import LOCAL
from boathouse.api.opening import timestamp_ms
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.cherry_pick import CherryPicked
from boathouse.ops.table.refs import FastForwarded, Presence, RefDropped, RefRetained, RefSet
from boathouse.ops.table.rollback import CurrentSet, RolledBack
from boathouse.ops.write import Write
from boathouse.table import features
from boathouse.table.location import Version
from boathouse.table.refs import Ref, RefType, Retention


class Refs(Mapping[str, Ref]):
    """The branches and tags of a table, by name: `t.refs["audit"].version`, `"audit" in t.refs`, `list(t.refs)`.

    A branch has commits of its own: `bh.open(uri, ref="audit")` reads it, and every write to that table goes there. A
    tag stays at its version, and is read only. For Iceberg they share the table's schema and properties: a branch is
    read with the table's schema, a tag with that of its version; all is in one commit each, which changes no row of any
    version. For Lance a branch begins as a shallow clone of its version and has version numbers, schema and properties
    of its own; tags and branches are created and dropped, tags replaced, and the rest is Iceberg's. `dry_run` only
    checks. Methods take `message=`, `metadata={...}` and `dry_run=` as every write, and raise UnsupportedFeatureError
    for other formats, ReadOnlyError, StorageError, CommitConflictError and CommitUnknownError.

    >>> lake = bh.create("lake/trips", "id bigint", format="iceberg")
    >>> done = lake.append([{"id": 1}])
    >>> done = lake.refs.create_branch("audit")
    >>> audit = bh.open("lake/trips", ref="audit")
    >>> done = audit.append([{"id": 2}])
    >>> lake.refresh().count(), audit.count()
    (1, 2)
    >>> done = lake.refs.fast_forward("main", to="audit")
    >>> lake.count(), list(lake.refs)
    (2, ['main', 'audit'])
    """

    def __init__(
        self, handle: Callable[[], Handle], run: Callable[[Any, Write, WriteOptions], WriteResult], zone: str | None
    ) -> None:
        self._handle, self._commit, self._zone = handle, run, zone

    @property
    def uri(self) -> str:
        """The root folder of the table, as a URI."""
        return self._handle().location.uri

    @located
    def _named(self) -> Mapping[str, Ref]:
        return features.required(self._handle().snapshot, features.Refs, "branches and tags").named()

    def __getitem__(self, name: str) -> Ref:
        return self._named()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named())

    def __len__(self) -> int:
        return len(self._named())

    def __repr__(self) -> str:
        lines = [f"{ref.type} {name} at version {ref.version}" for name, ref in self._named().items()]
        return "\n".join(lines) or "no branches and tags yet"

    @located
    def ancestors(self, version: Version | None = None) -> list[Version]:
        """The versions from which a version (by default this one) was made, itself first, as far as they are retained.

        Raises VersionNotFoundError, InvalidArgumentError, UnsupportedFeatureError for Delta.
        """
        snapshot = self._handle().snapshot
        refs = features.required(snapshot, features.Refs, "ancestors")
        wanted = _version(version)
        return [a.version for a in refs.ancestors(snapshot.version if wanted is None else wanted)]

    @located
    def create_branch(
        self,
        name: str,
        version: Version | None = None,
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Creates a branch at a version, by default the newest. `or_replace` moves one that is there, and
        `if_not_exists` leaves it as it is.

        When older versions expire, at least `min_snapshots_to_keep` of its versions stay, and those of the last
        `max_snapshot_age_ms` milliseconds; the branch goes once its version is older than `max_ref_age_ms`. What is not
        given is what the table says (`history.expire.*`), and for a branch that is replaced what it had. These
        settings, and `or_replace`, are for Iceberg.

        Raises AlreadyExistsError, VersionNotFoundError for a version that is not retained, InvalidArgumentError.
        """
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        before = _presence(or_replace, if_not_exists)
        return self._set(name, "branch", version, retention, before, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def create_tag(
        self,
        name: str,
        version: Version | None = None,
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
        max_ref_age_ms: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Creates a tag at a version, by default the newest; as `create_branch`.

        Raises AlreadyExistsError, VersionNotFoundError for a version that is not retained, InvalidArgumentError.
        """
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        before = _presence(or_replace, if_not_exists)
        return self._set(name, "tag", version, retention, before, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def replace_branch(
        self,
        name: str,
        version: Version | None = None,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Moves a branch to a version, by default the newest of the table as it is open, wherever it was before;
        retention that is not given stays.

        Raises VersionNotFoundError if there is no such branch or version, InvalidArgumentError.
        """
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._set(name, "branch", version, retention, "present", options)

    @located
    def replace_tag(
        self,
        name: str,
        version: Version | None = None,
        *,
        max_ref_age_ms: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Moves a tag to a version, by default the newest of the table as it is open.

        Raises VersionNotFoundError if there is no such tag or version, InvalidArgumentError.
        """
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._set(name, "tag", version, retention, "present", options)

    @located
    def retain(
        self,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Sets what is retained of a branch or tag, as in `create_branch`; what is not given stays. A tag has
        `max_ref_age_ms` alone, and main never expires.

        Raises VersionNotFoundError if there is no such branch or tag, InvalidArgumentError.
        """
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        return self._run(RefRetained(_name(name), retention), message, metadata, dry_run)

    @located
    def drop_branch(
        self,
        name: str,
        *,
        if_exists: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Drops a branch; its versions stay until they expire. For Lance they go with it, and so do its files.

        Raises VersionNotFoundError if there is none, InvalidArgumentError for main, for the branch that the table is
        open at, for a tag, and for a branch of Lance of which a tag or another branch names a version.
        """
        return self._run(RefDropped(_name(name), "branch", flag("if_exists", if_exists)), message, metadata, dry_run)

    @located
    def drop_tag(
        self,
        name: str,
        *,
        if_exists: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Drops a tag; its version stays until it expires.

        Raises VersionNotFoundError if there is none, InvalidArgumentError for a branch.
        """
        return self._run(RefDropped(_name(name), "tag", flag("if_exists", if_exists)), message, metadata, dry_run)

    @located
    def fast_forward(
        self,
        branch: str,
        to: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Moves a branch on to the version of another branch or a tag that comes from it: no version is lost.

        Raises VersionNotFoundError for a name that is not there, InvalidArgumentError if the branch has versions that
        the other does not come from.
        """
        return self._run(FastForwarded(_name(branch), _name(to)), message, metadata, dry_run)

    @located
    def rollback(
        self,
        version: Version | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes an ancestor the newest version of the branch that the table is open at (main without `ref=`): the one
        named, or the newest that is older than `timestamp`, as in `boathouse.open`. Schema and properties stay;
        `Table.restore` brings the version's schema back too. The later versions stay until they expire.

        Raises InvalidArgumentError for a version that is no ancestor, VersionNotFoundError.
        """
        if (version is None) == (timestamp is None):
            raise InvalidArgumentError("rollback needs a version or a timestamp", advice="pass one of them")
        time = None if timestamp is None else timestamp_ms(timestamp, self._zone or "UTC")
        return self._run(RolledBack(_version(version), time), message, metadata, dry_run)

    @located
    def set_current(
        self,
        version: Version | None = None,
        ref: str | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes any retained version, or that of a branch or tag, the newest of the branch that the table is open at
        (main without `ref=`). Schema and properties stay.

        Raises VersionNotFoundError, InvalidArgumentError.
        """
        if (version is None) == (ref is None):
            raise InvalidArgumentError("set_current needs a version or a ref", advice="pass one of them")
        name = None if ref is None else _name(ref)
        return self._run(CurrentSet(_version(version), name), message, metadata, dry_run)

    @located
    def cherry_pick(
        self,
        version: Version,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes the changes of a version of another branch, or of a staged one, on the branch that the table is open
        at. An append is made again wherever the branch is; an overwrite of partitions if they have no new files since;
        any other version only where it follows the newest one, and then the branch moves to it. No data is written.

        Raises InvalidArgumentError with the reason, VersionNotFoundError.
        """
        if version is None:
            raise InvalidArgumentError("cherry_pick needs a version", advice="pass a number of inspect.snapshots()")
        return self._run(CherryPicked(_version(version)), message, metadata, dry_run)

    @located
    def publish(
        self,
        wap_id: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Publishes what was staged under a name: writes with `metadata={"wap.id": name}` to a table with the property
        `write.wap.enabled` add their version (`WriteResult.version`), which `open` reads, but to no branch. As
        `cherry_pick` of that version; a name is published once.

        Raises VersionNotFoundError if nothing is staged under the name, InvalidArgumentError.
        """
        if not isinstance(wap_id, str) or not wap_id:
            raise InvalidArgumentError(f"{wap_id!r} is not the name of a staged write", advice="pass a string")
        return self._run(CherryPicked(staged=wap_id), message, metadata, dry_run)

    def _set(
        self,
        name: str,
        type: RefType,
        version: Version | None,
        retention: Retention,
        before: Presence,
        options: WriteOptions,
    ) -> WriteResult:
        return self._commit(LOCAL, RefSet(_name(name), type, _version(version), retention, before), options)

    def _run(self, write: Write, message: str | None, metadata: Mapping[str, str] | None, dry_run: bool) -> WriteResult:
        return self._commit(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgumentError(f"{name!r} is not the name of a branch or tag", advice="pass the name as a string")
    return name


def _version(version: object) -> Version | None:
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidArgumentError(f"{version!r} is not a version", advice="pass a number of history()")
    return version


def _presence(or_replace: bool, if_not_exists: bool) -> Presence:
    if flag("or_replace", or_replace) and flag("if_not_exists", if_not_exists):
        raise InvalidArgumentError("or_replace and if_not_exists exclude each other", advice="pass one of them")
    return "either" if or_replace else "absent-or-kept" if flag("if_not_exists", if_not_exists) else "absent"
