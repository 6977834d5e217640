"""Views of a catalog, by name. Nothing of them is run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse import registry
from boathouse.api.arguments import errors_at, strings
from boathouse.api.opening import path_text
from boathouse.api.schemas import as_schema
from boathouse.errors import InvalidArgumentError
from boathouse.table.view import View, ViewDefinition

_DIALECT = "spark"


class CatalogViews:
    """The part of `Catalog` that is about views. A SQL and a REST catalog have them; with another PyIceberg's client
    decides what it offers, and the rest is an UnsupportedFeatureError."""

    _made: Any

    def views(self, namespace: str | None = None) -> list[str]:
        """The views of a namespace, or of all, as `namespace.view`. Raises TableNotFoundError for a namespace that is
        not there, UnsupportedFeatureError if PyIceberg's client of this catalog does not list views, StorageError."""
        return list(self._made.views(namespace))

    def view(self, identifier: str, storage_options: Mapping[str, str] | None = None) -> View:
        """The view `namespace.view`: its queries by SQL dialect, schema and defaults, and its earlier versions.

        Raises TableNotFoundError for a name that is not there, CorruptTableError, UnsupportedFeatureError if
        PyIceberg's client of this catalog has no views, StorageError.
        """
        found: View = self._made.view(identifier, self._made.stores(storage_options))
        return found

    def create_view(
        self,
        identifier: str,
        sql: str | Mapping[str, str],
        schema: Any,
        default_namespace: str | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> View:
        """Creates the view `namespace.view` of a query, in Spark's SQL or as `{dialect: query}`.

        `schema` are the columns of its result, as `boathouse.create` takes them: the query is not run. Names in it
        without a namespace are of `default_namespace`, by default the view's own, and of `default_catalog`, by default
        the one that each engine has this catalog as. The property `version.history.num-entries` says how many versions
        are kept (10).

        Raises AlreadyExistsError, TableNotFoundError for a namespace that is not there, SchemaError,
        InvalidArgumentError, UnsupportedTypeError, UnsupportedFeatureError, StorageError.

        >>> prod = bh.catalog("prod", type="sql", uri="sqlite:///views.db", warehouse="lake")
        >>> prod.create_namespace("sales")
        >>> prod.create_view("sales.large", "SELECT id FROM orders WHERE total > 100", "id bigint").version
        1
        >>> prod.replace_view("sales.large", "SELECT id FROM orders").version
        2
        >>> [v.sql["spark"] for v in prod.view("sales.large").versions]
        ['SELECT id FROM orders WHERE total > 100', 'SELECT id FROM orders']
        """
        made = self._made
        with errors_at(f"{made.name}.{identifier}"):
            own = made.parts(identifier)[:-1]
            asked = ViewDefinition(
                _queries(sql), as_schema(schema), _levels(default_namespace, own), _name(default_catalog)
            )
            place = None if location is None else path_text(location)
            given = strings("properties", properties)
            found: View = _module().create_view(made, identifier, asked, place, given, made.stores(storage_options))
        return found

    def replace_view(
        self,
        identifier: str,
        sql: str | Mapping[str, str],
        schema: Any = None,
        default_namespace: str | None = None,
        default_catalog: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> View:
        """Gives a view another query, as a new version; a definition that it has had becomes current again.

        What is left out stays as it is. A dialect that the view has must be among the new ones, unless its property
        `replace.drop-dialect.allowed` is true; with `replace.append-dialect.allowed` its query stays.

        Raises TableNotFoundError, InvalidArgumentError, SchemaError, UnsupportedTypeError, UnsupportedFeatureError
        (also for a materialized view), CommitConflictError, CorruptTableError, StorageError.
        """
        made = self._made

        def defined(view: View) -> ViewDefinition:
            columns = view.schema if schema is None else as_schema(schema)
            catalog = view.default_catalog if default_catalog is None else _name(default_catalog)
            return ViewDefinition(_queries(sql), columns, _levels(default_namespace, view.default_namespace), catalog)

        with errors_at(f"{made.name}.{identifier}"):
            found: View = _module().replace_view(made, identifier, defined, made.stores(storage_options))
        return found

    def rollback_view(self, identifier: str, version: int, storage_options: Mapping[str, str] | None = None) -> View:
        """Makes an earlier version of a view the current one.

        Raises TableNotFoundError, VersionNotFoundError, InvalidArgumentError for one without a dialect of the current
        version, UnsupportedFeatureError, CommitConflictError, StorageError.
        """
        made = self._made
        with errors_at(f"{made.name}.{identifier}"):
            found: View = _module().rollback_view(made, identifier, version, made.stores(storage_options))
        return found

    def set_view_properties(
        self,
        identifier: str,
        properties: Mapping[str, str | None],
        storage_options: Mapping[str, str] | None = None,
    ) -> View:
        """Sets properties of a view, such as `comment`; None removes one, those that are not named stay.

        Raises TableNotFoundError, InvalidArgumentError, UnsupportedFeatureError, CommitConflictError, StorageError.
        """
        made = self._made
        with errors_at(f"{made.name}.{identifier}"):
            given = strings("properties", properties, nulls=True)
            found: View = _module().set_view_properties(made, identifier, given, made.stores(storage_options))
        return found

    def drop_view(self, identifier: str) -> None:
        """Drops a view; its metadata files stay. Raises TableNotFoundError, UnsupportedFeatureError, StorageError."""
        _module().drop_view(self._made, identifier)

    def rename_view(self, identifier: str, to: str) -> None:
        """Renames a view to another name, also of another namespace.

        Raises TableNotFoundError, also for a namespace that is not there, AlreadyExistsError, UnsupportedFeatureError,
        StorageError.
        """
        _module().rename_view(self._made, identifier, to)


def _module() -> Any:
    return registry.catalogs("iceberg", "views")


def _queries(sql: str | Mapping[str, str]) -> dict[str, str]:
    """The query by dialect. Raises InvalidArgumentError."""
    found = {_DIALECT: sql} if isinstance(sql, str) else strings("sql", sql)
    for dialect, text in found.items():
        if not dialect.strip() or not text.strip():
            raise InvalidArgumentError(f"no query in {dialect or 'a dialect without a name'}", advice="pass its SQL")
    return found


def _levels(name: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    if name is None:
        return default
    if not isinstance(name, str) or not all(name.split(".")):
        raise InvalidArgumentError(f"{name!r} is not a namespace", advice="pass a name, such as 'sales'")
    return tuple(name.split("."))


def _name(catalog: str | None) -> str | None:
    if catalog is not None and (not isinstance(catalog, str) or not catalog):
        raise InvalidArgumentError(f"{catalog!r} is not the name of a catalog", advice="pass a name, or leave it out")
    return catalog
