"""One version of a table, as a Change names it: what it was planned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from boathouse.table.context import TableContext
from boathouse.table.location import Version
from boathouse.types import Partitioning, Schema


class TableVersion(Protocol):
    """The properties of one version of a table; immutable."""

    @property
    def format(self) -> str: ...
    @property
    def context(self) -> TableContext: ...
    @property
    def version(self) -> Version: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def ref(self) -> str | None: ...
    @property
    def identity(self) -> str:
        """The table's own id: another table created at the same path has another one."""

    @property
    def token(self) -> str:
        """The version token that publish must find unchanged: the key or number of the head."""

    @property
    def schema(self) -> Schema: ...
    @property
    def partitioning(self) -> Partitioning: ...
    @property
    def properties(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Follows:
    """A requirement: the head is this version of the table with this identity."""

    identity: str
    version: Version

    @classmethod
    def of(cls, head: TableVersion | None) -> tuple[Follows, ...]:
        """None for a table that does not exist yet."""
        return () if head is None else (cls(head.identity, head.version),)
