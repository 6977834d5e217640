"""Edits of rows: files and deletes that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from boathouse.table.location import Version
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class AddFiles:
    """New data files: OUTCOMES rows of kind data.

    `sequence` None is inherited from the commit. A compaction keeps the one that it read at: deletes that were
    committed since must apply to its files. `clustered`: by the columns that the table names. `found`: the files were
    there before this write, so that the table may know them; `again`: what it had and deleted may come back.
    """

    outcomes: pa.Table
    sequence: int | None = None
    clustered: bool = False
    found: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class AddColumnFiles:
    """Columns of every unit, in files beside those that are there: OUTCOMES rows of kind data with the `unit` whose
    rows they have. Made for `features.ColumnFiles`; the columns are those of the change's schema edits."""

    outcomes: pa.Table


@dataclass(frozen=True, slots=True)
class RemoveFiles:
    """Units are removed from the table: their planned FILES rows, including `native`, so that nothing is read again."""

    units: pa.Table


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Every unit of the head is removed."""


@dataclass(frozen=True, slots=True)
class SetDeletes:
    """Rows of units are deleted: planned FILES rows, and for each the newly deleted positions.

    `vectors[i]` is a portable 64-bit roaring bitmap for row i of `units`.
    """

    units: pa.Table
    vectors: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AddDeletes:
    """New files of deletes: OUTCOMES rows of kind delete that have a path; `units` are the planned FILES rows of the
    units that lose rows by them."""

    units: pa.Table
    outcomes: pa.Table


@dataclass(frozen=True, slots=True)
class AddKeyDeletes:
    """New files of the keys of deleted rows: OUTCOMES rows of kind delete that have a path. Rows that are older than
    the commit, and equal one of these in the columns `keys` (null equals null), are deleted: in the files' partitions,
    or `everywhere`."""

    outcomes: pa.Table
    keys: Schema
    everywhere: bool


@dataclass(frozen=True, slots=True)
class AddChangeFiles:
    """New files of changed rows, for readers of the table's changes: OUTCOMES rows of kind change."""

    outcomes: pa.Table


@dataclass(frozen=True, slots=True)
class ReplaceDeletes:
    """The row deletes of the planned version go but for those that are of one unit alone, in the form in which they
    would be written now: `units` are planned FILES rows, and include every one that one of the others applies to. What
    they delete of these is in the other edits of the change."""

    units: pa.Table


@dataclass(frozen=True, slots=True)
class CherryPick:
    """The files that another version added are added once more, as this commit's; `notes` are what the history says of
    it. Made by `features.CherryPicks` for the planned snapshot alone, so that any concurrent commit makes it again."""

    version: Version
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RewriteManifests:
    """The lists of files with this partition spec are written anew, sorted by these fields of it; no file comes or
    goes. Right on any snapshot."""

    spec: int
    fields: tuple[str, ...]


FileEdit = (
    AddFiles
    | AddColumnFiles
    | RemoveFiles
    | RemoveAll
    | SetDeletes
    | AddDeletes
    | AddKeyDeletes
    | ReplaceDeletes
    | AddChangeFiles
    | CherryPick
    | RewriteManifests
)
