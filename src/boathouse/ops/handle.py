"""The handle that every operation works on: an opened table, or a location where one will be created."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from boathouse.errors import InvalidArgumentError, ReadOnlyError
from boathouse.storage import Stores
from boathouse.table.format import Snapshot, TableFormat
from boathouse.table.location import Location


@dataclass(frozen=True, slots=True)
class Handle:
    """A table at one of its versions. `pinned` handles were opened at a version and refuse writes.

    `zone` is the time zone of conditions; None if it is unknown.
    """

    location: Location
    stores: Stores
    format: TableFormat
    snapshot: Snapshot
    pinned: bool = False
    allow_mixed_writers: bool = False
    zone: str | None = "UTC"

    def check_writable(self) -> None:
        """Raises if writes are disabled, or this table may not be written."""
        self.check_open()
        self.format.writable(self.snapshot, self.stores, self.allow_mixed_writers)

    def check_open(self) -> None:
        """Raises, without any request, if writes are disabled or the handle is pinned."""
        check_read_only(str(self.location))
        if self.pinned:
            raise ReadOnlyError(
                f"the table was opened at version {self.snapshot.version}",
                where=str(self.location),
                advice="open it without version= or timestamp= to write",
            )


def check_read_only(where: str) -> None:
    """Raises ReadOnlyError if BOATHOUSE_READ_ONLY is set to anything but 0, false or nothing."""
    if os.environ.get("BOATHOUSE_READ_ONLY", "").strip().lower() not in ("", "0", "false", "no"):
        raise ReadOnlyError(
            "BOATHOUSE_READ_ONLY is set: every write is refused", where=where, advice="unset it to write"
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of every write: a message and metadata for the history, an application transaction, a dry run.

    `txn` is (application id, version): a write whose version the table already has from this application
    is skipped, so that a job can be run again safely.
    """

    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    txn: tuple[str, int] | None = None
    dry_run: bool = False
    target_file_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.message is not None and not isinstance(self.message, str):
            raise InvalidArgumentError(f"message={self.message!r} is not a string", advice="pass a string")
        if self.txn is not None and not _is_txn(self.txn):
            raise InvalidArgumentError(
                f"txn={self.txn!r} is not (application id, version)", advice="pass for example txn=('etl', 7)"
            )
        if not isinstance(self.metadata, Mapping):
            raise InvalidArgumentError(
                f"metadata={self.metadata!r} is not a dict", advice="pass a dict of strings to strings"
            )
        for key, value in self.metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidArgumentError(
                    f"metadata {key!r}: {value!r} is not a string", advice="pass a dict of strings to strings"
                )
        if not isinstance(self.dry_run, bool):
            raise InvalidArgumentError(
                f"dry_run={self.dry_run!r} is neither True nor False", advice="pass True or False"
            )
        size = self.target_file_bytes
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InvalidArgumentError(
                f"target_file_bytes={size!r} is not a number of bytes", advice="pass for example 128 << 20"
            )


def _is_txn(txn: object) -> bool:
    """Whether it is a pair of a string and a version that fits a signed 64-bit integer, as Delta stores it."""
    if not isinstance(txn, tuple | list) or len(txn) != 2:
        return False
    app, version = txn
    if not isinstance(app, str) or not app or isinstance(version, bool) or not isinstance(version, int):
        return False
    return -(2**63) <= version < 2**63
