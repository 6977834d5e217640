"""The builder of several changes of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boathouse.api.arguments import errors_at, names
from boathouse.api.columns import constant, named, typed
from boathouse.api.description import text_or_none
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.schema.add_columns import AddColumns
from boathouse.ops.schema.alter_columns import ColumnDropped, ColumnRenamed, ColumnWidened
from boathouse.ops.schema.column_rules import ColumnMoved, DefaultChanged, IdentifiersSet, NullabilitySet
from boathouse.ops.schema.several import SeveralEdits
from boathouse.ops.table.comments import Commented
from boathouse.ops.write import Write


@dataclass(frozen=True, slots=True)
class Evolution:
    """Changes of columns that are being described; nothing happens before `execute`, which makes one commit of them.
    Each method returns a new builder, and is the method of Table of the same name. Made by `Table.evolve`.

    Each change sees the columns as the ones before it leave them, so names can be swapped, and a column added, moved
    and made an identifier at once.

    >>> step = t.evolve().add_column("tags", "array<string>").add_column("seen", "date")
    >>> done = step.execute(message="for the new feed")
    >>> t.schema.names
    ('id', 'city', 'price', 'tags', 'seen')
    """

    uri: str
    run: Callable[[SeveralEdits, WriteOptions], WriteResult]
    steps: tuple[Write, ...] = ()

    def add_column(
        self,
        name: str,
        type: Any,
        *,
        default: object = None,
        nullable: bool = True,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
    ) -> Evolution:
        """Adds a column, or a field of a struct. Raises InvalidArgumentError, SchemaError for text that is not a
        type."""
        with errors_at(self.uri):
            place = "" if first else after
            return self._with(AddColumns(((named(name), typed(type)),), nullable, constant(default), comment, place))

    def rename_column(self, name: str, new_name: str) -> Evolution:
        """Renames a column or a field of a struct. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(ColumnRenamed(named(name), named(new_name)))

    def drop_column(self, name: str) -> Evolution:
        """Drops a column or a field of a struct. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(ColumnDropped(named(name)))

    def widen_column(self, name: str, type: Any) -> Evolution:
        """Gives a column a wider type. Raises InvalidArgumentError, SchemaError for text that is not a type."""
        with errors_at(self.uri):
            return self._with(ColumnWidened(named(name), typed(type)))

    def move_column(self, name: str, *, after: str | None = None) -> Evolution:
        """Places a column right `after` a sibling, else first. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(ColumnMoved(named(name), None if after is None else named(after)))

    def set_nullable(self, name: str, nullable: bool, *, unchecked: bool = False) -> Evolution:
        """Lets a column be null, or no longer. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(NullabilitySet(named(name), nullable, unchecked))

    def set_default(self, name: str, default: object) -> Evolution:
        """Sets what a column has in rows that are written without it. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(DefaultChanged(named(name), constant(default)))

    def set_comment(self, comment: str | None, column: str | None = None) -> Evolution:
        """Sets the comment of a column, or of the table. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            return self._with(Commented(text_or_none(comment), text_or_none(column)))

    def set_identifiers(self, columns: str | Sequence[str]) -> Evolution:
        """Says which columns identify a row. Raises InvalidArgumentError."""
        with errors_at(self.uri):
            found = names("columns", [columns] if isinstance(columns, str) else columns)
            return self._with(IdentifiersSet(tuple(found)))

    def execute(
        self,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes all changes in one commit, or none of them; no file is rewritten.

        Raises InvalidArgumentError without any change, or for one that is not possible; ColumnNotFoundError,
        UnsupportedFeatureError, UnsupportedTypeError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        with errors_at(self.uri):
            return self.run(SeveralEdits(self.steps), WriteOptions.of(message, metadata, None, dry_run))

    def _with(self, step: Write) -> Evolution:
        return replace(self, steps=(*self.steps, step))
