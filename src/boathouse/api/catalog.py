"""Catalogs: tables by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boathouse import registry
from boathouse.api.arguments import errors_at, flag, strings
from boathouse.api.catalog_views import CatalogViews
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import LOCAL, time_zone, zone_of
from boathouse.api.opening import path_text, point
from boathouse.api.partition_by import partition_fields
from boathouse.api.schemas import as_schema
from boathouse.api.table import Table
from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.location import NEWEST, At


class Catalog(CatalogViews):
    """A catalog of Iceberg tables: names, and which version of each is the newest. Made by `boathouse.catalog`."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __repr__(self) -> str:
        return f"Catalog({self.name!r})"

    @property
    def name(self) -> str:
        """Its name in the configuration."""
        return str(self._made.name)

    def namespaces(self) -> list[str]:
        """The names of all namespaces, nested ones joined by dots. Raises StorageError."""
        return list(self._made.namespaces())

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables of a namespace, or of all, as `namespace.table`. Raises TableNotFoundError for a namespace that is
        not there, StorageError."""
        return list(self._made.tables(namespace))

    def open(
        self,
        identifier: str,
        version: int | None = None,
        timestamp: str | dt.datetime | None = None,
        ref: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        spark: Any = None,
        timezone: str | None = None,
        allow_foreign_paths: bool = False,
        verify: bool = True,
    ) -> Table:
        """Opens `namespace.table`; the other arguments are those of `boathouse.open`.

        The catalog says which version is the newest, and makes the new ones: writes go through it. What it vends for
        the table's store (credentials, endpoint) is used unless `storage_options` says otherwise.

        Raises TableNotFoundError, VersionNotFoundError, InvalidArgumentError, CorruptTableError,
        UnsupportedFeatureError (with its query for a view), StorageError if the catalog fails.
        """
        table = self._made.table(identifier)
        with errors_at(table.name):
            named = time_zone(timezone)
            zone = zone_of(LOCAL, named, spark) if timestamp is not None else None
            at = point(version, timestamp, ref, zone or "UTC")
            handle = _opened(table, at, storage_options, allow_foreign_paths, verify)
        return Table(handle, spark, named)

    def create(
        self,
        identifier: str,
        schema: Any,
        partition_by: str | Sequence[str] | None = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        profile: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        spark: Any = None,
        timezone: str | None = None,
    ) -> Table:
        """Creates the empty table `namespace.table`, at `location` or where the catalog puts tables, and opens it.

        The other arguments are those of `boathouse.create`. In a SQL catalog every format version is created; in
        others, those that PyIceberg's client knows.

        Raises AlreadyExistsError, TableNotFoundError for a namespace that is not there, SchemaError,
        ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError, UnsupportedFeatureError, StorageError.

        >>> prod = bh.catalog("prod", type="sql", uri="sqlite:///catalog.db", warehouse="lake")
        >>> prod.create_namespace("sales")
        >>> prod.create("sales.orders", "id bigint, day date", partition_by="month(day)").append([{"id": 1}]).rows_added
        1
        """
        with errors_at(f"{self.name}.{identifier}"):
            named, logical = time_zone(timezone), as_schema(schema)
            asked = CreateTable(
                logical, partition_fields(partition_by, logical), strings("properties", properties), profile
            )
            create_in(self, identifier, asked, location, storage_options)
        return self.open(identifier, storage_options=storage_options, spark=spark, timezone=named)

    def drop(self, identifier: str, purge: bool = False) -> None:
        """Drops `namespace.table`. Its files stay, unless `purge` is true: then those of all its versions are removed,
        by PyIceberg's client or the catalog's server.

        Raises TableNotFoundError, ReadOnlyError for a purge of a table with `gc.enabled` false, StorageError.
        """
        made = self._made
        _changes().drop_table(made, made.parts(identifier), flag("purge", purge))

    def rename(self, identifier: str, to: str) -> None:
        """Renames `namespace.table` to another name, also of another namespace; its files stay where they are. A table
        that is open under the old name is not found any more.

        Raises TableNotFoundError, also for a namespace that is not there, AlreadyExistsError, StorageError.
        """
        made = self._made
        _changes().rename_table(made, made.parts(identifier), made.parts(to))

    def register(self, identifier: str, metadata: str, storage_options: Mapping[str, str] | None = None) -> Table:
        """Adds a table that is there as `namespace.table`, and opens it: `metadata` is its newest metadata file, a
        `*.metadata.json`. From then on only the catalog's users may write it.

        Raises AlreadyExistsError, TableNotFoundError, CorruptTableError, UnsupportedFeatureError, StorageError.
        """
        made = self._made
        with errors_at(f"{self.name}.{identifier}"):
            stores = made.stores(storage_options)
            _changes().register_table(made, made.parts(identifier), path_text(metadata), stores)
        return self.open(identifier, storage_options=storage_options)

    def create_namespace(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Creates a namespace, of a nested one the last; `location` among its properties is where its tables are.

        Raises AlreadyExistsError, InvalidArgumentError, StorageError.
        """
        _changes().create_namespace(self._made, _namespace(name), strings("properties", properties))

    def drop_namespace(self, name: str) -> None:
        """Drops an empty namespace. Raises InvalidArgumentError if it has tables, TableNotFoundError, StorageError."""
        _changes().drop_namespace(self._made, _namespace(name))

    def namespace_properties(self, name: str) -> dict[str, str]:
        """The properties of a namespace. Raises TableNotFoundError, StorageError."""
        return dict(_changes().namespace_properties(self._made, _namespace(name)))

    def set_namespace_properties(self, name: str, properties: Mapping[str, str | None]) -> None:
        """Sets properties of a namespace; None removes one, those that are not named stay.

        Raises TableNotFoundError, InvalidArgumentError, StorageError.
        """
        _changes().set_namespace_properties(self._made, _namespace(name), strings("properties", properties, nulls=True))


def _changes() -> Any:
    return registry.catalogs("iceberg", "changes")


def _namespace(name: str) -> str:
    if not isinstance(name, str) or not name or not all(name.split(".")):
        raise InvalidArgumentError(f"{name!r} is not a namespace", advice="pass a name, such as 'sales'")
    return name


def create_in(
    catalog: Catalog,
    identifier: str,
    table: CreateTable,
    location: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Makes the empty table. Raises what `Catalog.create` raises."""
    made = catalog._made
    place = None if location is None else path_text(location)
    _changes().create_table(made, made.parts(identifier), table, place, made.stores(storage_options))


def newest_in(catalog: Catalog, identifier: str, storage_options: Mapping[str, str] | None, at: At = NEWEST) -> Handle:
    """The newest version of `namespace.table`, to be written, or of a branch. Raises what `Catalog.open` raises."""
    loaded = system.current().monotonic()
    return replace(_opened(catalog._made.table(identifier), at, storage_options), loaded=loaded)


def _opened(
    table: Any, at: At, storage_options: Mapping[str, str] | None, foreign: bool = False, verify: bool = True
) -> Handle:
    place, vended = table.place(storage_options)
    location = replace(locate(place), verify=verify)
    stores = Stores({**vended, **(storage_options or {})}, home=None if foreign else location.uri)
    snapshot = registry.load("iceberg").open(TableContext(location, stores, catalog=table), at)
    return Handle(snapshot, at.pinned)


def catalog(name: str = "default", **options: str) -> Catalog:
    """A catalog of PyIceberg's configuration (`~/.pyiceberg.yaml`, PYICEBERG_CATALOG__... variables), or one of these
    options.

    Options are `type`, `uri`, `warehouse`, ... as PyIceberg names them; underscores in place of `-` and `.` are not
    translated: pass `**{"s3.endpoint": ...}`. PyIceberg's client of the catalog has its own requirements: install
    `pyiceberg[sql-sqlite]`, `pyiceberg[hive]` or `pyiceberg[glue]`; REST needs no extra.

    Raises MissingRequirementError without PyIceberg or that extra, InvalidArgumentError for a name that is not
    configured, StorageError if the catalog fails.

    >>> prod = bh.catalog("prod", type="sql", uri="sqlite:///catalog.db", warehouse="lake")
    >>> prod.namespaces()
    []
    """
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{name!r} is not the name of a catalog", advice="pass a name, such as 'prod'")
    return Catalog(registry.catalogs().IcebergCatalog.load(name, strings("options", options)))


def in_catalog(
    uri: object, catalog_options: Mapping[str, str] | None, storage_options: Mapping[str, str] | None
) -> tuple[Catalog, str] | None:
    """The catalog and the name in it, unless there is a table at a path of that name. Without dots nothing is asked."""
    text = path_text(uri)
    if catalog_options is None and (text.count(".") < 2 or "/" in text):
        return None
    if catalog_options is None and formats_at(locate(text), Stores(storage_options)):
        return None
    found = _by_name(text, catalog_options)
    if found is None and catalog_options is not None:
        raise InvalidArgumentError(
            f"{text!r} is not a name in a catalog", advice="write catalog.namespace.table, or leave out catalog_options"
        )
    return found


def _by_name(text: str, catalog_options: Mapping[str, str] | None) -> tuple[Catalog, str] | None:
    """The catalog and the table that `catalog.namespace.table` names; None if no such catalog is configured."""
    first, _, rest = text.partition(".")
    if "." not in rest or any(c in text for c in "/\\: "):
        return None
    module = registry.catalogs()
    if catalog_options is None and not module.configured(first):
        return None
    return Catalog(module.IcebergCatalog.load(first, strings("catalog_options", catalog_options))), rest
