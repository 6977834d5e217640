"""A view: a query that a catalog keeps beside its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from boathouse.errors import UnsupportedFeatureError, VersionNotFoundError
from boathouse.types import Schema

_SHOWN: Final = 2000


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """One of the definitions that a view has or had: its id, when it was made in milliseconds since 1970, and what
    `View` says of the current one. `summary` is what its writer said, as `engine-name`."""

    version: int
    timestamp_ms: int
    schema: Schema
    sql: Mapping[str, str]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    storage_table: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """A view as its metadata describes it (Iceberg View Spec): nothing of it is run here.

    `sql` has the same query in one or more dialects; names in it without a catalog or namespace are those of
    `default_catalog` (None: the view's own) and `default_namespace`. A materialized view has its rows in the table
    `storage_table` of its catalog. `engine` is what created it. `versions` are the definitions that are retained, in
    the order of their ids, and `log` says when which of them became the current one: pairs of milliseconds and version.
    """

    version: int
    schema: Schema
    sql: Mapping[str, str]
    location: str
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None
    storage_table: str | None = None
    engine: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[ViewVersion, ...] = ()
    log: tuple[tuple[int, int], ...] = ()

    def at(self, version: int) -> ViewVersion:
        """One of its versions. Raises VersionNotFoundError."""
        for found in self.versions:
            if found.version == version:
                return found
        known = ", ".join(str(v.version) for v in self.versions)
        raise VersionNotFoundError(f"the view has no version {version}", advice=f"it has {known}")

    def refusal(self, where: str) -> UnsupportedFeatureError:
        """The error of one who opens it as a table: it has the queries, and what to do instead."""
        queries = "; ".join(f"in {dialect}: {_shortened(sql)}" for dialect, sql in self.sql.items())
        advice = f"run its query with an engine that has {' or '.join(self.sql) or 'its'} SQL"
        if self.storage_table is not None:
            advice += f", or open the table with its rows, {self.storage_table}"
        kind = "a view" if self.storage_table is None else "a materialized view"
        return UnsupportedFeatureError(
            f"this is {kind}, not a table: {queries or 'no SQL'}", where=where, advice=advice
        )


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """What a view is asked to be. `sql` is by dialect; names in it without a namespace are of `default_namespace`."""

    sql: Mapping[str, str]
    schema: Schema
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None


def _shortened(sql: str) -> str:
    return sql if len(sql) <= _SHOWN else f"{sql[:_SHOWN]}..."
