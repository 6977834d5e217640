"""Statements on tables as values: what the parser of `expr.statements` makes of a text."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.expr.sql_tokens import Token, joined

Tokens = tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class TableName:
    """The parts of a name, ``("delta", "/a path")`` for ``delta.`/a path` ``, and its tokens."""

    parts: tuple[str, ...]
    tokens: Tokens

    def __str__(self) -> str:
        return joined(self.tokens)


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """VERSION AS OF a number or the name of a branch or tag, or TIMESTAMP AS OF; exactly one is given."""

    version: int | None = None
    ref: str | None = None
    timestamp: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    table: TableName
    alias: str | None
    where: Tokens | None


@dataclass(frozen=True, slots=True)
class Update:
    table: TableName
    alias: str | None
    values: tuple[tuple[Tokens, Tokens], ...]
    where: Tokens | None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`method` is that of the builder of a merge."""

    method: str
    values: tuple[tuple[Tokens, Tokens], ...] | None
    where: Tokens | None


@dataclass(frozen=True, slots=True)
class Merge:
    table: TableName
    alias: str | None
    source: Tokens
    on: Tokens
    clauses: tuple[MergeClause, ...]
    evolve: bool


@dataclass(frozen=True, slots=True)
class Insert:
    """`columns` None: by position; `by_name`: those of the query. `partition` are the columns of a PARTITION clause,
    with the value of each row if it has one. `overwrite` replaces all rows, or those of `where` or the partition.
    `evolve`: columns that the table lacks are added."""

    table: TableName
    partition: tuple[tuple[str, Tokens | None], ...]
    columns: tuple[str, ...] | None
    by_name: bool
    overwrite: bool
    where: Tokens | None
    query: Tokens
    evolve: bool = False


@dataclass(frozen=True, slots=True)
class Optimize:
    table: TableName
    where: Tokens | None
    zorder_by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reorg:
    """Purges deleted rows: the only form that is offered."""

    table: TableName
    where: Tokens | None


@dataclass(frozen=True, slots=True)
class Vacuum:
    table: TableName
    mode: str
    hours: float | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class History:
    table: TableName
    limit: int | None


@dataclass(frozen=True, slots=True)
class Detail:
    table: TableName


@dataclass(frozen=True, slots=True)
class Truncate:
    table: TableName


@dataclass(frozen=True, slots=True)
class Describe:
    """The columns, and with `extended` what else the table is."""

    table: TableName
    extended: bool


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """All, or the one of this key."""

    table: TableName
    key: str | None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    table: TableName


@dataclass(frozen=True, slots=True)
class Restore:
    table: TableName
    at: TimeTravel


Shown = Describe | ShowProperties | ShowColumns
Statement = Merge | Update | Delete | Insert | Truncate | Optimize | Reorg | Vacuum | History | Detail | Restore | Shown
