"""Views of catalogs: listed, loaded, created, replaced, renamed and dropped, where the catalog has a place for them.

A REST catalog's server makes the documents of views; a SQL catalog names documents of ours. Other clients of PyIceberg
at most list, load and drop them: the rest is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from boathouse.bits import system
from boathouse.bits.library import library_version
from boathouse.errors import CommitConflictError, UnsupportedFeatureError
from boathouse.iceberg.catalogs.errors import catalog_errors
from boathouse.iceberg.catalogs.rest_views import RestViews
from boathouse.iceberg.catalogs.sql_views import SqlViews
from boathouse.iceberg.catalogs.view_stores import ClientViews, Json, ViewStore
from boathouse.iceberg.metadata.view_changes import replacing, rolling_back, setting
from boathouse.iceberg.metadata.views import parse_view
from boathouse.storage import Stores
from boathouse.table.view import View, ViewDefinition

if TYPE_CHECKING:
    from boathouse.iceberg.catalogs.pyiceberg import IcebergCatalog

_ATTEMPTS: Final = 20


def list_views(catalog: IcebergCatalog, namespaces: Sequence[str]) -> list[str]:
    """The views of these namespaces, by full name."""
    with _views(catalog, catalog.name, catalog.stores(None)) as views:
        return sorted(".".join(v) for n in namespaces for v in views.names(tuple(n.split("."))))


def load_view(catalog: IcebergCatalog, identifier: str, stores: Stores) -> View:
    """A view by its name. Raises TableNotFoundError, CorruptTableError."""
    parts, where = catalog.parts(identifier), f"{catalog.name}.{identifier}"
    with _views(catalog, where, stores) as views:
        document, _ = views.load(parts)
    return parse_view(document, where)


def create_view(
    catalog: IcebergCatalog,
    identifier: str,
    definition: ViewDefinition,
    place: str | None,
    properties: Mapping[str, str],
    stores: Stores,
) -> View:
    """A new view. Raises AlreadyExistsError, TableNotFoundError for a namespace, InvalidArgumentError."""
    parts, where = catalog.parts(identifier), f"{catalog.name}.{identifier}"
    with _views(catalog, where, stores) as views:
        document = views.create(parts, definition, place, properties)
    return parse_view(document, where)


def replace_view(
    catalog: IcebergCatalog, identifier: str, defined: Callable[[View], ViewDefinition], stores: Stores
) -> View:
    """What the present definition is made to becomes the new one. Raises TableNotFoundError, InvalidArgumentError."""

    def change(document: Json, where: str) -> Sequence[Json]:
        definition = defined(parse_view(document, where))
        return replacing(document, definition, system.current().now_ms(), library_version())

    return _committed(catalog, identifier, change, stores)


def rollback_view(catalog: IcebergCatalog, identifier: str, version: int, stores: Stores) -> View:
    """An older version becomes the current one. Raises TableNotFoundError, VersionNotFoundError."""
    return _committed(catalog, identifier, lambda document, _: rolling_back(document, version), stores)


def set_view_properties(
    catalog: IcebergCatalog, identifier: str, properties: Mapping[str, str | None], stores: Stores
) -> View:
    """None removes one. Raises TableNotFoundError, InvalidArgumentError."""
    return _committed(catalog, identifier, lambda document, _: setting(properties), stores)


def drop_view(catalog: IcebergCatalog, identifier: str) -> None:
    """Raises TableNotFoundError."""
    with _views(catalog, f"{catalog.name}.{identifier}", catalog.stores(None)) as views:
        views.drop(catalog.parts(identifier))


def rename_view(catalog: IcebergCatalog, identifier: str, to: str) -> None:
    """Raises TableNotFoundError, also for a namespace, AlreadyExistsError."""
    with _views(catalog, f"{catalog.name}.{identifier}", catalog.stores(None)) as views:
        views.rename(catalog.parts(identifier), catalog.parts(to))


def _committed(
    catalog: IcebergCatalog, identifier: str, change: Callable[[Json, str], Sequence[Json]], stores: Stores
) -> View:
    """The view after the change, which is made again of whatever another writer left."""
    parts, where = catalog.parts(identifier), f"{catalog.name}.{identifier}"
    with _views(catalog, where, stores) as views:
        for _ in range(_ATTEMPTS):
            document, token = views.load(parts)
            updates = change(document, where)
            made = views.commit(parts, document, token, updates) if updates else document
            if made is not None:
                return parse_view(made, where)
            system.current().sleep(system.current().random() * 0.05)
    raise CommitConflictError(
        f"the view was changed {_ATTEMPTS} times meanwhile", where=where, advice="look at it, and do it again"
    )


@contextmanager
def _views(catalog: IcebergCatalog, where: str, stores: Stores) -> Iterator[ViewStore]:
    """What keeps the catalog's views; errors of its client as ours."""
    with catalog_errors(where, catalog.secrets):
        try:
            yield store_of(catalog.client, stores)
        except NotImplementedError as error:
            said = f": {error}" if str(error) else ""
            raise UnsupportedFeatureError(
                f"PyIceberg's client of this catalog ({type(catalog.client).__name__}) does not know views, or not "
                f"this of them{said}",
                where=catalog.name,
                advice="do it with an engine that has the catalog",
            ) from None


def store_of(client: Any, stores: Stores) -> ViewStore:
    """By the kind of the client."""
    kinds = {kind.__name__ for kind in type(client).__mro__}
    if "RestCatalog" in kinds:
        return RestViews(client)
    return SqlViews(client, stores) if "SqlCatalog" in kinds else ClientViews(client)
