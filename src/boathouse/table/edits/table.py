"""Edits of a table as a whole: how it begins, its properties and rules, what it was before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from boathouse.table.location import Version
from boathouse.table.version import TableVersion
from boathouse.types import Identity, PartitionField, Schema


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The first commit of a table. Field ids, if any, are assigned in `prepare`. `identities` declare columns of
    `schema`.

    `adopts`: its files are there already, and have the columns' own names; `borrows`: they belong to others, so that
    nothing that the table does may remove one. `generated` is the expression of each generated column, and `defaults`
    what columns have in rows that lack them: Spark SQL text by the names of columns. `cluster_by` are paths.
    """

    schema: Schema
    partition_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    identities: Mapping[str, Identity] = field(default_factory=dict)
    adopts: bool = False
    borrows: bool = False
    comment: str | None = None
    generated: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CloneTable:
    """The first commit of a table that has the rows, schema and properties of a version of another one. Made by
    `features.Clonable`: `units` are the FILES rows of the source, whose files are not copied. `properties` come to
    those of the source. After RemoveAll the table is there, and becomes a clone."""

    source: TableVersion
    units: pa.Table
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The application `app` has written its version `version`."""

    app: str
    version: int


@dataclass(frozen=True, slots=True)
class SetName:
    """The name that the table has of its own, beside its location; None removes it."""

    name: str | None


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Properties are set; a value of None removes one."""

    properties: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class SetClustering:
    """The columns, paths through structs, by which the table wants its rows clustered; none: by none."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class GiveRowIds:
    """The rows of at most so many `files` that have no ids get some; no row changes."""

    files: int


@dataclass(frozen=True, slots=True)
class AdvanceIdentity:
    """The identity column `name` has given values up to `mark`, beginning with the planned snapshot's next one."""

    name: str
    mark: int


@dataclass(frozen=True, slots=True)
class SetConstraint:
    """Every row must satisfy the condition, Spark SQL text; None drops the constraint."""

    name: str
    condition: str | None


@dataclass(frozen=True, slots=True)
class SetFeature:
    """A feature of the format is enabled, or dropped."""

    name: str
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class RestoreTo:
    """Rows, schema, partitioning, properties and constraints become those of the version `target`; what writers need to
    know beyond a version stays: application transactions, features, counters.

    Made by `features.Restorable` for the planned snapshot alone, so that any concurrent commit makes it again. `added`
    are FILES rows of the target that the snapshot lacks, `removed` those of the snapshot that the target lacks; a unit
    of which other rows are deleted is in both. `needed` are the URIs of every file that `added` refers to; `files` and
    `size` are those of the whole table afterwards.
    """

    target: TableVersion
    added: pa.Table
    removed: pa.Table
    needed: tuple[str, ...]
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class ExpireVersions:
    """These versions can no longer be read, and these branches and tags are gone. Made by `features.Expiry` for the
    planned snapshot alone, so that any concurrent commit makes it again."""

    versions: tuple[Version, ...]
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """The column or struct field at `path` has about so many distinct values; `sketch` is the format's own record of
    them."""

    path: tuple[str, ...]
    distinct: int
    sketch: bytes


@dataclass(frozen=True, slots=True)
class SetColumnStatistics:
    """What is known of the columns of the planned version. Made by `features.ColumnStatistics`."""

    columns: tuple[DistinctCount, ...]


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    """What the files of each partition of the planned version add up to: `rows` is a table of the format's own. Made by
    `features.ColumnStatistics`."""

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SetIndex:
    """The column has an index of this name, which covers `units` of the planned version, and replaces one that there
    is. Made by `features.Indices`: `content` is the format's own."""

    name: str
    column: str
    kind: str
    units: tuple[int, ...]
    content: Any


@dataclass(frozen=True, slots=True)
class DropIndex:
    """There is no index of this name any more."""

    name: str


TableEdit = (
    CreateTable
    | CloneTable
    | SetTransaction
    | SetName
    | SetProperties
    | SetClustering
    | GiveRowIds
    | AdvanceIdentity
    | SetConstraint
    | SetFeature
    | RestoreTo
    | ExpireVersions
    | SetColumnStatistics
    | SetPartitionStatistics
    | SetIndex
    | DropIndex
)
