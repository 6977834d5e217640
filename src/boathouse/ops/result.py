"""The result of a write: a small value with a readable repr and an HTML one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape

import pyarrow as pa

from boathouse.ops.outcomes import data_files, total, writer
from boathouse.ops.write import Planned
from boathouse.table.location import CommitId, Version


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did; printed it is one line.

    `commit` names the commit among all of the table's (Iceberg: `v5.metadata.json`, Delta: `00000000000000000004`,
    Lance: `5`), as `history()` does. It is None for a dry run, and for a write that had nothing to do (`skipped` says
    why). `version` is the version of the rows, which `open(version=...)` opens. It is None without a commit, and for a
    commit that made no new one: in Iceberg, properties and columns are metadata beside the snapshots.

    `versions` are those of all commits of the operation; `version`, `commit` and `write_id` are the last one's.
    `rows_copied` are rows that were rewritten unchanged beside changed ones. `bytes_added` is of new files,
    `bytes_removed` of those that compaction replaced, `seconds` the whole time, `retries` how often the commit was
    repeated on a newer version. `write_id` is what `Table.find_write` takes. `engine` wrote the rows that were given or
    made: `spark`, its executors, or `local`, this process, which also writes a small DataFrame whose rows the driver
    holds; None where no such rows were written.
    """

    operation: str
    version: Version | None
    commit: str | None = None
    files_added: int = 0
    files_removed: int = 0
    rows_added: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_copied: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0
    seconds: float = 0.0
    retries: int = 0
    write_id: str | None = None
    dry_run: bool = False
    skipped: str | None = None
    versions: tuple[Version, ...] = ()
    engine: str | None = None

    def __repr__(self) -> str:
        if self.dry_run:
            head = f"{self.operation} (dry run, nothing written)"
        elif self.commit is None:
            head = f"{self.operation}: nothing to do" + (f", {self.skipped}" if self.skipped else "")
        elif self.version is None:
            head = f"{self.operation} -> metadata {self.commit.partition('.')[0]}"
        elif len(self.versions) > 1:
            head = f"{self.operation} -> versions {', '.join(map(str, self.versions))}"
        else:
            head = f"{self.operation} -> version {self.version}"
        return ": ".join(part for part in (head, ", ".join(self._parts())) if part)

    def _parts(self) -> list[str]:
        parts = []
        for name in FIGURES:
            value = getattr(self, name)
            if value:
                noun, done = name.split("_")
                parts.append(f"{value:,} {noun if value != 1 else noun[:-1]} {done}")
        if self.retries:
            parts.append("1 retry" if self.retries == 1 else f"{self.retries:,} retries")
        if self.seconds:
            parts.append(f"{self.seconds:.2f} s")
        return parts

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(f.name)}</th><td>{escape(str(getattr(self, f.name)))}</td></tr>"
            for f in fields(self)
            if getattr(self, f.name) not in (None, 0, 0.0, False, ())
        )
        return f"<table>{rows}</table>"


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """What a vacuum removed, or with `dry_run` would remove.

    `paths` are the files, relative to the table's root; `failed` are those that could not be removed, with the reason,
    which are counted nowhere else. `bytes_removed` counts what the store reported. `versions` are the two commits that
    record the vacuum in the table's history; none for a dry run, and in formats without such records.
    """

    files_removed: int
    bytes_removed: int
    paths: Sequence[str] = field(default=(), repr=False)
    failed: Sequence[tuple[str, str]] = ()
    retention_hours: float = 0.0
    mode: str = "full"
    dry_run: bool = False
    seconds: float = 0.0
    versions: tuple[Version, ...] = ()

    def __repr__(self) -> str:
        head = "vacuum (dry run, nothing removed)" if self.dry_run else "vacuum"
        parts = [f"{self.files_removed:,} file{'' if self.files_removed == 1 else 's'}, {self.bytes_removed:,} bytes"]
        if self.failed:
            parts.append(f"{len(self.failed):,} could not be removed (first {': '.join(self.failed[0])})")
        parts.append(f"older than {self.retention_hours:g} hours")
        if self.seconds:
            parts.append(f"{self.seconds:.2f} s")
        return f"{head}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass(frozen=True, slots=True)
class ExpiryResult:
    """What an expiry did, or with `dry_run` would do.

    `versions` can no longer be read, `refs` are branches and tags that were too old themselves; `commit` and `write_id`
    are those of the commit, None if nothing expired, or none was needed. `kinds` counts the files that went with them,
    by what they were: data, position deletes, equality deletes, manifest, manifest list, statistics, transaction,
    index. The others are as in VacuumResult; paths outside of the table's root are URIs.
    """

    versions: tuple[Version, ...]
    refs: tuple[str, ...] = ()
    commit: str | None = None
    files_removed: int = 0
    bytes_removed: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    paths: Sequence[str] = field(default=(), repr=False)
    failed: Sequence[tuple[str, str]] = ()
    dry_run: bool = False
    seconds: float = 0.0
    write_id: str | None = None

    def __repr__(self) -> str:
        head = "expire (dry run, nothing expired)" if self.dry_run else "expire"
        parts = [f"{len(self.versions):,} version{'' if len(self.versions) == 1 else 's'}"]
        parts += [f"{name!r}" for name in self.refs]
        parts.append(
            f"{self.files_removed:,} file{'' if self.files_removed == 1 else 's'}, {self.bytes_removed:,} bytes"
        )
        if self.failed:
            parts.append(f"{len(self.failed):,} could not be removed (first {': '.join(self.failed[0])})")
        if self.seconds:
            parts.append(f"{self.seconds:.2f} s")
        return f"{head}: {', '.join(parts)}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


FIGURES = ("rows_added", "rows_updated", "rows_deleted", "rows_copied", "files_added", "files_removed")
"""The metrics of every write that changes rows."""


def result_of(operation: str, planned: Planned, outcomes: Sequence[pa.Table], commit: CommitId | None) -> WriteResult:
    """The result of a change, made from the OUTCOMES of its work."""
    added = [data_files(o.select(["kind", "size"])) for o in outcomes]
    change = planned.change
    return WriteResult(
        operation=operation,
        version=None if commit is None else commit.version,
        commit=None if commit is None else commit.token,
        files_added=sum(a.num_rows for a in added) + planned.files_added,
        files_removed=planned.files_removed,
        rows_added=sum(total(o, "inserted") for o in outcomes) + planned.rows_added,
        rows_updated=sum(total(o, "updated") for o in outcomes),
        rows_deleted=sum(total(o, "deleted") for o in outcomes) + planned.rows_removed,
        rows_copied=sum(total(o, "copied") for o in outcomes),
        bytes_added=sum(total(a, "size") for a in added) + planned.bytes_added,
        bytes_removed=planned.bytes_removed,
        write_id=None if change is None else change.write_id,
        versions=() if commit is None or commit.version is None else (commit.version,),
        engine=next((name for o in outcomes if (name := writer(o)) is not None), None),
    )


def joined(first: WriteResult, then: WriteResult) -> WriteResult:
    """The result of two commits of one operation."""
    summed = (*FIGURES, "bytes_added", "bytes_removed", "seconds", "retries")
    total = {name: getattr(first, name) + getattr(then, name) for name in summed}
    last = first if then.commit is None else then
    return replace(last, **total, versions=(*first.versions, *then.versions))


def metrics_of(operation: str, planned: Planned, outcomes: Sequence[pa.Table]) -> dict[str, int]:
    """The metrics in the history, by the same names in every format; none for a change of metadata only."""
    if not outcomes:
        return {}
    result = result_of(operation, planned, outcomes, None)
    return {name: getattr(result, name) for name in FIGURES}
