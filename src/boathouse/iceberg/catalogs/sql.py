"""The row of a table in a SQL catalog, which names its metadata document: read, and swapped.

The rows are those of PyIceberg's `SqlCatalog` (and of Java's `JdbcCatalog`). It commits in the same way: a new
document, and an UPDATE of the row where it still names the old one; but it loads, copies and validates the whole
document several times for that, so that a commit costs more with every snapshot of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class SqlRow:
    """The row of one table."""

    client: Any
    identifier: tuple[str, ...]

    @classmethod
    def of(cls, client: Any, identifier: tuple[str, ...]) -> SqlRow | None:
        """None for another catalog, also for a subclass of PyIceberg's that commits in its own way."""
        own: Any = next((kind for kind in type(client).__mro__ if kind.__name__ == "SqlCatalog"), None)
        if own is None or type(client).commit_table is not own.commit_table:
            return None
        return cls(client, identifier)

    def location(self) -> str | None:
        """The metadata document's location, as it is recorded; None without a row of a table."""
        sql, names = _modules()
        wanted = sql.select(names.metadata_location).where(self._mine(sql, names))
        # Rows may also be of views.
        kind = getattr(self.client, "_iceberg_type_filter", lambda: None)()
        with self.client.engine.connect() as connection:
            found: str | None = connection.execute(wanted if kind is None else wanted.where(kind)).scalar()
        return found

    def swap(self, before: str, after: str) -> Swap:
        """An open transaction in which the row names `after`, if it named `before`."""
        return Swap(self, before, after)

    def _mine(self, sql: Any, names: Any) -> Any:
        *namespace, table = self.identifier
        return sql.and_(
            names.catalog_name == self.client.name,
            names.table_namespace == ".".join(namespace),
            names.table_name == table,
        )


class Swap:
    """`done` says whether a row was changed. Until `commit` nothing is: what fails before it has changed nothing."""

    def __init__(self, row: SqlRow, before: str, after: str) -> None:
        sql, names = _modules()
        client = row.client
        where = sql.and_(row._mine(sql, names), names.metadata_location == before)
        values = {"metadata_location": after, "previous_metadata_location": before}
        self._connection = client.engine.connect()
        try:
            # Drivers that do not count the rows of an UPDATE: the row is locked first.
            locked = sql.select(names.metadata_location).where(where).with_for_update()
            counts = client.engine.dialect.supports_sane_rowcount
            there = counts or self._connection.execute(locked).first() is not None
            changed = self._connection.execute(sql.update(names).where(where).values(**values)) if there else None
            self.done = changed is not None and (changed.rowcount > 0 or not counts)
        except BaseException:
            self._connection.close()
            raise

    def commit(self) -> None:
        """Ends the transaction. What it raises leaves open whether it was committed."""
        with self._connection as connection:
            if self.done:
                connection.commit()


def _modules() -> tuple[Any, Any]:
    return import_module("sqlalchemy"), import_module("pyiceberg.catalog.sql").IcebergTables
