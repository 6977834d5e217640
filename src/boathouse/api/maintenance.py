"""Methods of a table that change its files, but no row of the newest version, except `restore`."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as with_values
from typing import Any, get_args

from boathouse.api.arguments import flag, located, names, strings
from boathouse.api.conditions import Condition, condition
from boathouse.api.detection import choose, formats_at, locate
from boathouse.api.engines import LOCAL, described, engine_for, zone_of
from boathouse.api.new_location import check_free
from boathouse.api.opening import path_text, point
from boathouse.api.partition_by import sort_fields
from boathouse.errors import InvalidArgumentError
from boathouse.ops.files.compact import COMMIT_BYTES, Choice, Compact
from boathouse.ops.files.remove_orphans import vacuum_versions
from boathouse.ops.files.rewrite_deletes import RewriteDeletes
from boathouse.ops.files.rewrite_manifests import ManifestsRewritten
from boathouse.ops.files.sort_rows import SortedFiles
from boathouse.ops.files.vacuum import Mode, Vacuum, vacuum
from boathouse.ops.files.zorder import ClusterRows
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import VacuumResult, WriteResult
from boathouse.ops.run import run
from boathouse.ops.table.clone import TableCloned, clone
from boathouse.ops.table.restore import Restore
from boathouse.ops.write import Write
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.engine import Engine
from boathouse.table.features import Clustering, CompactableLog, Expiry, required
from boathouse.table.location import Version
from boathouse.types import Schema, SortField

_HOUR_MS = 3_600_000


class Maintenance:
    """The part of Table for its files."""

    _handle: Handle
    _spark: Any
    _timezone: str | None

    def _run(self, engine: Engine, write: Write, options: WriteOptions, zoned: bool = False) -> WriteResult:
        raise NotImplementedError

    @located
    def optimize(
        self,
        where: Condition | None = None,
        *,
        zorder_by: Sequence[str] | None = None,
        sort_by: Sequence[str] | None = None,
        delete_ratio_threshold: float | None = None,
        delete_file_threshold: int | None = None,
        target_file_bytes: int | None = None,
        commit_bytes: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Rewrites small files of a partition as larger ones, without their deleted rows; no row changes.

        With `zorder_by` all files are rewritten, in one commit, so that each has a narrow range of these columns, also
        nested ones (`a.b`), and readers skip more of them. A table that names columns to be clustered by (Delta's
        liquid clustering) is always rewritten so, once it has a file that is not. With `sort_by`, as
        `["city", "id desc"]` or `["bucket(4, id) desc nulls last"]`, all files are rewritten in that order, each a
        range of it; with `[]` in the table's own (`t.sort_by`). Otherwise files of which a twentieth is deleted, or
        the part `delete_ratio_threshold`, are rewritten whatever their size, and those to which so many as
        `delete_file_threshold` row deletes apply. `where` names partition columns only.
        More than `commit_bytes` of files are rewritten in several commits, which `WriteResult.versions` lists. The old
        files stay for readers of older versions until they are vacuumed.

        Raises InvalidArgumentError for another column, ExpressionError, CommitConflictError, CommitUnknownError,
        ReadOnlyError.

        >>> done = t.append([{"id": 4, "city": "Oslo", "price": 31.5}])
        >>> done = t.optimize()
        >>> done.files_removed, done.files_added
        (2, 1)
        """
        options = WriteOptions.of(message, metadata, None, dry_run, target_file_bytes)
        at_once = _commit_bytes(commit_bytes)
        columns = () if zorder_by is None else tuple(names("zorder_by", zorder_by))
        if zorder_by is not None and (not columns or commit_bytes is not None):
            raise InvalidArgumentError("zorder_by needs a column, and is one commit", advice="leave commit_bytes out")
        by = None if sort_by is None else _sorting(sort_by, (zorder_by, commit_bytes))
        choice = _choice(delete_ratio_threshold, delete_file_threshold)
        self._handle.check_open()
        parsed = None if where is None else condition(where, self._handle.snapshot.schema)
        write: Write = Compact(parsed, at_once, choice=choice)
        if by is not None:
            write = SortedFiles(by if sort_by else None, parsed)
        elif columns or self._handle.snapshot.offers(Clustering) is not None:
            write = ClusterRows(columns, parsed)
        return self._run(engine_for(None, self._spark), write, options, where is not None)

    @located
    def purge(
        self,
        where: Condition | None = None,
        *,
        target_file_bytes: int | None = None,
        commit_bytes: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Rewrites every file that has deleted rows without them, so that no row delete is left to apply; no row
        changes. The old files stay for readers of older versions until they are vacuumed. `where` names partition
        columns only; `commit_bytes` is as in `optimize`.

        Raises InvalidArgumentError for another column, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run, target_file_bytes)
        self._handle.check_open()
        parsed = None if where is None else condition(where, self._handle.snapshot.schema)
        write = Compact(parsed, _commit_bytes(commit_bytes), purge=True)
        return self._run(engine_for(None, self._spark), write, options, where is not None)

    @located
    def rewrite_deletes(
        self,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Writes the row deletes of the newest version in the form that is read fastest, in one commit, without writing
        a data file; no row changes. For Iceberg: deletes by keys, files of positions that data files share, and several
        of one data file become deletion vectors, or in format version 2 one file of positions for each data file; those
        that apply to nothing any more are forgotten.

        Raises UnsupportedFeatureError for other formats and for Iceberg's format version 1, CommitConflictError,
        CommitUnknownError, ReadOnlyError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        self._handle.check_open()
        return self._run(engine_for(None, self._spark), RewriteDeletes(), options)

    @located
    def rewrite_manifests(
        self,
        sort_by: Sequence[str] | None = None,
        *,
        spec_id: int | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Writes the lists of the newest version's files anew, in one commit, sorted by partition and as large as
        `commit.manifest.target-size-bytes` says, so that a reader of some partitions opens few of them; no file of rows
        is written, and no row changes. For Iceberg. `sort_by` are fields of the partition spec `spec_id`, by default
        all of the current one; lists of files of other specs stay as they are. The history names how many were
        replaced, made and kept.

        Raises InvalidArgumentError for a spec or a field that is not there, UnsupportedFeatureError for other formats,
        CorruptTableError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        if spec_id is not None and (isinstance(spec_id, bool) or not isinstance(spec_id, int)):
            raise InvalidArgumentError(f"spec_id={spec_id!r} is not a number", advice="pass the id of a partition spec")
        fields = None if sort_by is None else tuple(names("sort_by", sort_by))
        options = WriteOptions.of(message, metadata, None, dry_run)
        self._handle.check_open()
        return self._run(engine_for(None, self._spark), ManifestsRewritten(spec_id, fields), options)

    @located
    def vacuum(
        self,
        retention: float | dt.timedelta | None = None,
        *,
        mode: Mode = "full",
        enforce_retention_duration: bool = True,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> VacuumResult:
        """Removes files that no version of the last `retention` (hours, or a timedelta) needs; older versions can no
        longer be read. By default the table's own retention (Delta: `delta.deletedFileRetentionDuration`, or 7 days).

        `full` lists the table's folder, and also removes files that no commit ever referred to; `lite` lists nothing
        and removes what the log records as removed. Files that were modified within the retention stay, and so do
        folders whose names begin with `_` or `.`, and other tables below this one. A shorter retention than the table's
        needs `enforce_retention_duration=False`: it takes files from readers of older versions and from writers that
        have not committed yet. Tables elsewhere that use these files, as shallow clones do, are not known. `dry_run`
        returns what would be removed. A file that cannot be removed is reported in the result.

        In Iceberg and Lance versions are expired first, as `expire_snapshots` does, of which the table's retention is
        `history.expire.max-snapshot-age-ms`, or 5 days, in Lance `lance.auto_cleanup.older_than`, or 14 days: branches,
        tags and what they retain stay. `full` then removes orphans as `remove_orphan_files` does, of the last three or
        seven days only with `enforce_retention_duration=False`.

        Raises InvalidArgumentError for too short a retention, VersionNotFoundError if the log was cleaned too far for
        `lite`, UnsupportedFeatureError for features that are not supported, ReadOnlyError, StorageError,
        CommitConflictError, CommitUnknownError.

        >>> t.vacuum(dry_run=True).files_removed
        0
        """
        if mode not in get_args(Mode):
            raise InvalidArgumentError(f"mode={mode!r}", advice="it is full or lite")
        options = WriteOptions.of(message, metadata, None, dry_run)
        asked = Vacuum(_milliseconds(retention), mode, flag("enforce_retention_duration", enforce_retention_duration))
        self._handle.check_open()
        by_versions = self._handle.snapshot.offers(Expiry) is not None
        engine = engine_for(None, self._spark)
        with described(engine, "vacuum", str(self._handle.location)):
            snapshot, result = (vacuum_versions if by_versions else vacuum)(self._handle, engine, asked, options)
        self._handle = with_values(self._handle, snapshot=snapshot)
        return result

    @located
    def restore(
        self,
        version: Version | None = None,
        timestamp: str | dt.datetime | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes the rows, schema, partitioning and properties those of an older version, or of the newest one not after
        `timestamp` (as in `boathouse.open`), in one new commit. The versions in between stay; so do application
        transactions. Nothing is committed if the table is already the same. For Delta, Lance, and Iceberg, where any
        retained version becomes that of the branch again, with its schema; properties and partitioning stay, as no
        version records them.

        Raises VersionNotFoundError, MissingFileError, naming the first file of that version that is gone, before
        anything is committed, ConstraintViolationError for an append-only table, UnsupportedFeatureError for
        features that are not supported, and for a schema that other branches of an Iceberg table stand against,
        InvalidArgumentError, ReadOnlyError, CommitConflictError, CommitUnknownError.

        >>> before = t.version
        >>> done = t.delete()
        >>> done = t.restore(before)
        >>> t.count()
        3
        """
        if (version is None) == (timestamp is None):
            raise InvalidArgumentError("restore needs a version or a timestamp", advice="pass one of them")
        options = WriteOptions.of(message, metadata, None, dry_run)
        self._handle.check_open()
        at = point(version, timestamp, None, zone_of(LOCAL, self._timezone, self._spark) or "UTC")
        return self._run(engine_for(None, self._spark), Restore(at), options)

    @located
    def compact_log(self, first: Version | None = None, last: Version | None = None) -> str:
        """Writes the log entries of versions `first` (by default that after the newest checkpoint) to `last` (by
        default the newest) as one file, which readers that know such files take instead; returns its URI. The entries
        stay, and so does the table's version. For Delta.

        Raises InvalidArgumentError for less than two versions or one that is not there yet, VersionNotFoundError if an
        entry was cleaned away, UnsupportedFeatureError for Iceberg and Lance, ReadOnlyError, StorageError.
        """
        for name, version in (("first", first), ("last", last)):
            if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
                raise InvalidArgumentError(f"{name}={version!r} is not a version", advice="pass a number")
        self._handle.check_open()
        newest = self._handle.snapshot.newest()
        return required(newest, CompactableLog, "compact_log").compact_log(first, last)

    @located
    def clone(
        self,
        target: str,
        *,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes a shallow clone at the path `target`: a new table with this version's rows, schema, partitioning and
        properties, which names this table's files and copies none. Writes to the clone never touch this table, and its
        vacuum removes none of this table's files. A vacuum of this table does not know its clones: it removes files
        that it needs no longer, and the clone can then not be read. For Delta and Lance, where a branch is cloned too;
        open an older version to clone it. In Delta the clone may have `properties` beside those of this table, and with
        `replace` a table that is there becomes the clone, as a new version.

        Raises AlreadyExistsError, InvalidArgumentError if one table were inside the other, ForeignPathError for a store
        of another kind, UnsupportedFeatureError for Iceberg, for features that are not supported, and for `replace` and
        `properties` in Lance, ReadOnlyError, CommitConflictError, CommitUnknownError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        location = locate(path_text(target))
        context = TableContext(location, Stores(self._handle.context.stores.options, home=location.uri))
        given = strings("properties", properties)
        source = self._handle.snapshot
        if flag("replace", replace) and formats_at(location, context.stores):
            there = choose(location, context.stores, source.format).open(context)
            return run(Handle(there), LOCAL, TableCloned(source, given), options)[1]
        check_free(context)
        return clone(source, context, options, given)


def _sorting(by: Sequence[str], others: Sequence[object]) -> Callable[[Schema], tuple[SortField, ...]]:
    """The order that the texts say of a schema. Raises InvalidArgumentError."""
    texts = names("sort_by", by)
    if any(o is not None for o in others):
        raise InvalidArgumentError("sort_by is one order and one commit", advice="leave zorder_by and commit_bytes out")
    return lambda schema: sort_fields(texts, schema)


def _choice(ratio: float | None, files: int | None) -> Choice:
    """Raises InvalidArgumentError."""
    found = Choice()
    if ratio is not None:
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 1:
            raise InvalidArgumentError(
                f"delete_ratio_threshold={ratio!r} is no part of a file", advice="pass for example 0.3"
            )
        found = with_values(found, deleted=float(ratio))
    if files is not None:
        if isinstance(files, bool) or not isinstance(files, int) or files < 1:
            raise InvalidArgumentError(f"delete_file_threshold={files!r} is not a number", advice="pass for example 3")
        found = with_values(found, deletes=files)
    return found


def _commit_bytes(given: int | None) -> int:
    if given is None:
        return COMMIT_BYTES
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidArgumentError(f"commit_bytes={given!r} is not a number", advice="pass 100 << 30")
    return given


def _milliseconds(retention: float | dt.timedelta | None) -> int | None:
    """Raises InvalidArgumentError."""
    if retention is None:
        return None
    if isinstance(retention, dt.timedelta):
        found = retention / dt.timedelta(milliseconds=1)
    elif isinstance(retention, int | float) and not isinstance(retention, bool) and math.isfinite(retention):
        found = float(retention) * _HOUR_MS
    else:
        found = -1.0
    if found < 0:
        raise InvalidArgumentError(f"retention={retention!r} is not a duration", advice="pass hours, or a timedelta")
    return round(found)
