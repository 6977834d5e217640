"""The location of a table, and a reference to one of its versions."""

from __future__ import annotations

from dataclasses import dataclass

Version = int
"""The format's own number (Delta and Lance: the version; Iceberg: the snapshot id). Never compared with `<`."""


@dataclass(frozen=True, slots=True)
class CommitId:
    """Names one commit of a table.

    `version` is the version of the rows that it made, None if it made none: an Iceberg commit of metadata alone.
    `token` names it among all of the table's commits (Iceberg: the metadata file, `v5.metadata.json`; Delta: the log
    entry, `00000000000000000004`; Lance: `5`).
    """

    version: Version | None
    token: str


@dataclass(frozen=True, slots=True)
class Location:
    """A table's root as an absolute URI without a trailing slash.

    `metadata` names one metadata document to open instead of the newest (an Iceberg `*.metadata.json`). With `verify`
    false, totals that the metadata records beside its lists of files are not compared with those lists. `relocated` are
    pairs of folders: where metadata says that files are, and where they are. `manifests` names the external store in
    which the versions of a Lance table are agreed on, if its address says one.
    """

    uri: str
    metadata: str | None = None
    verify: bool = True
    relocated: tuple[tuple[str, str], ...] = ()
    manifests: str | None = None

    def __str__(self) -> str:
        return self.metadata or self.uri


@dataclass(frozen=True, slots=True)
class At:
    """A point in a table's history: by default the newest; at most one of `version` and `timestamp_ms`."""

    version: Version | None = None
    timestamp_ms: int | None = None
    ref: str | None = None

    @property
    def pinned(self) -> bool:
        return self.version is not None or self.timestamp_ms is not None


NEWEST = At()
