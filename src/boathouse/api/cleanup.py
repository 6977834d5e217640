"""Methods of a table that remove versions and files which nobody needs any more."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boathouse.api.arguments import flag, located
from boathouse.api.engines import LOCAL, described, engine_for, zone_of
from boathouse.api.opening import timestamp_ms
from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.ops.files.expire import expire
from boathouse.ops.files.remove_orphans import remove_orphans
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import ExpiryResult, VacuumResult
from boathouse.table.features import ExpiryRule
from boathouse.table.location import Version


class Cleanup:
    """The part of Table for versions that expire, and for orphans."""

    _handle: Handle
    _spark: Any
    _timezone: str | None

    @located
    def expire_snapshots(
        self,
        older_than: str | dt.datetime | None = None,
        *,
        retain_last: int | None = None,
        snapshot_ids: Sequence[Version] = (),
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> ExpiryResult:
        """Forgets the versions older than a time, except the last `retain_last` of each branch, and then removes the
        files that no other version, branch or tag needs. For Iceberg and Lance.

        In Iceberg, without a time or a number, the table's properties count: `history.expire.max-snapshot-age-ms` (5
        days) and `history.expire.min-snapshots-to-keep` (1). What a branch retains by its own settings goes before
        both; a tag holds its version until the tag is older than its `max-ref-age-ms`, or
        `history.expire.max-ref-age-ms`. Statistics go with their snapshots. It is one commit.

        In Lance the config counts: `lance.auto_cleanup.older_than` (14 days) and `lance.auto_cleanup.retain_versions`
        (1). The newest version stays, those of tags, and those at which branches begin; of the files those that
        branches and detached versions need. Only the line of versions is cleaned at which the table is open. Shallow
        clones elsewhere are not known: files that only they need go. No commit is made, so that `message` and
        `metadata` are not recorded; application transactions are forgotten with the versions that recorded them.

        `snapshot_ids` expire too, however young they are. `dry_run` says what would go. A file that cannot be removed
        is reported in the result; after a crash the files are orphans.

        Raises VersionNotFoundError, InvalidArgumentError for a snapshot that a branch or tag names,
        UnsupportedFeatureError for other formats and where the property `gc.enabled` is false, CorruptTableError,
        CommitConflictError, CommitUnknownError, ReadOnlyError, StorageError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        if retain_last is not None and (isinstance(retain_last, bool) or not isinstance(retain_last, int)):
            raise InvalidArgumentError(f"retain_last={retain_last!r} is not a number", advice="pass for example 10")
        for id in snapshot_ids:
            if isinstance(id, bool) or not isinstance(id, int):
                raise InvalidArgumentError(f"{id!r} is not a snapshot", advice="pass versions of history()")
        rule = ExpiryRule(self._time(older_than), retain_last, frozenset(snapshot_ids))
        self._handle.check_open()
        engine = engine_for(None, self._spark)
        with described(engine, "expire_snapshots", str(self._handle.location)):
            snapshot, result = expire(self._handle, engine, rule, options)
        self._handle = replace(self._handle, snapshot=snapshot)
        return result

    @located
    def remove_orphan_files(
        self,
        older_than: str | dt.datetime | None = None,
        *,
        enforce_retention_duration: bool = True,
        dry_run: bool = False,
    ) -> VacuumResult:
        """Removes the files of the table's folder that no version, branch, tag or metadata document of it names, as
        writers leave them that were killed. For Iceberg and Lance.

        Files of the last three days (Iceberg) or seven (Lance) always stay, since a writer may be about to commit them;
        with `enforce_retention_duration=False` those after `older_than`. Paths are compared however their scheme is
        spelled (`s3a://` and `s3://`, `file:/` and `file:///`). In Iceberg files and folders whose names begin with `_`
        or `.` stay; in Lance all but data files, blobs, deletion files, transactions, files of indices, and manifests
        that were not finished. So do other tables below this one. `dry_run` says what would go.

        Raises InvalidArgumentError for too young a time, UnsupportedFeatureError for other formats, for a folder that
        is a table of another format too, and where the property `gc.enabled` is false, CorruptTableError,
        MissingFileError, ReadOnlyError, StorageError.
        """
        time = self._time(older_than)
        age = None if time is None else max(system.current().now_ms() - time, 0)
        enforce = flag("enforce_retention_duration", enforce_retention_duration)
        self._handle.check_open()
        engine = engine_for(None, self._spark)
        with described(engine, "remove_orphan_files", str(self._handle.location)):
            return remove_orphans(self._handle, engine, age, enforce, flag("dry_run", dry_run))

    def _time(self, value: str | dt.datetime | None) -> int | None:
        return None if value is None else timestamp_ms(value, zone_of(LOCAL, self._timezone, self._spark) or "UTC")
