"""The options that every write accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from boathouse.errors import InvalidArgumentError
from boathouse.table.change import Isolation


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of every write: a message and metadata for the history, an application transaction, a dry run.

    `txn` is (application id, version): a write whose version the table already has from this application is skipped, so
    that a job can be run again safely. `isolation` is `serializable` or `snapshot`; None is the table's own.
    `compression` is the codec of this write's files, and `max_file_rows` the most rows of each.
    """

    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    txn: tuple[str, int] | None = None
    dry_run: bool = False
    target_file_bytes: int | None = None
    isolation: Isolation | None = None
    compression: str | None = None
    max_file_rows: int | None = None

    @staticmethod
    def of(
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteOptions:
        """The options of a call. Raises InvalidArgumentError."""
        return WriteOptions(message, {} if metadata is None else metadata, txn, dry_run, target_file_bytes, isolation)

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
        if self.isolation not in (None, *get_args(Isolation)):
            raise InvalidArgumentError(
                f"isolation={self.isolation!r} is not an isolation level",
                advice=f"pass one of {', '.join(get_args(Isolation))}",
            )
        rows = self.max_file_rows
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
            raise InvalidArgumentError(f"max_file_rows={rows!r} is not a number of rows", advice="pass 1 or more")
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
