"""The methods of a table that name and describe it."""

from __future__ import annotations

from collections.abc import Mapping

from boathouse.api.arguments import located
from boathouse.api.engines import LOCAL
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.comments import Commented, TableNamed


class Description(Part):
    """Texts about a Delta table (PROTOCOL.md, "Change Metadata"); `detail` shows them."""

    @located
    def set_name(
        self,
        name: str | None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Sets the name that the table has beside its location; None removes it.

        Raises InvalidArgumentError, UnsupportedFeatureError for other formats than Delta, CommitConflictError.
        """
        return self._run(LOCAL, TableNamed(text_or_none(name)), WriteOptions.of(message, metadata, None, dry_run))

    @located
    def set_comment(
        self,
        comment: str | None,
        column: str | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Sets the comment of the table (Delta's description), or of a column or struct field; None removes it.

        Raises ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError for that of a Lance table itself,
        CommitConflictError.
        """
        write = Commented(text_or_none(comment), text_or_none(column))
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))


def text_or_none(value: object) -> str | None:
    """A text that may be left out. Raises InvalidArgumentError."""
    if value is None or (isinstance(value, str) and value):
        return value
    raise InvalidArgumentError(f"{value!r} is not a text", advice="pass a string, or None to remove it")
