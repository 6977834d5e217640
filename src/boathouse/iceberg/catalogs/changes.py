"""Tables and namespaces that come to a catalog, and go, by PyIceberg's client of it. A SQL catalog, which only names
documents, gets a document of ours for a new table, in every format version; the others make it themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from boathouse.bits import system
from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    InvalidArgumentError,
    NotFoundError,
    ReadOnlyError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.catalogs.errors import catalog_errors
from boathouse.iceberg.catalogs.sql import SqlRow
from boathouse.iceberg.commit.column_edits import with_defaults
from boathouse.iceberg.metadata.document import TableMetadata, dump
from boathouse.iceberg.metadata.draft import COMMENT, created, finished
from boathouse.iceberg.metadata.partitions import spec_fields_json
from boathouse.iceberg.metadata.schemas import schema_json
from boathouse.iceberg.metadata.versions import PROPERTY
from boathouse.iceberg.paths import METADATA_FOLDER
from boathouse.iceberg.row_modes import of_profile
from boathouse.iceberg.snapshot import read_metadata
from boathouse.iceberg.write import create as new_table
from boathouse.storage import PutMode, Stores, absolute, join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.edits.declared import require_none
from boathouse.table.location import Location

if TYPE_CHECKING:
    from boathouse.iceberg.catalogs.pyiceberg import IcebergCatalog


def create_table(
    catalog: IcebergCatalog, parts: tuple[str, ...], table: CreateTable, place: str | None, stores: Stores
) -> None:
    """An empty table, at `place`, or where the catalog puts tables. Raises AlreadyExistsError, TableNotFoundError for a
    namespace that is not there, and what creating a table at a path raises."""
    where = f"{catalog.name}.{'.'.join(parts)}"
    row = SqlRow.of(catalog.client, parts)
    context = TableContext(Location(where), stores)
    schema, spec, version = new_table(context, table)
    table = of_profile(table)
    if row is None:
        require_none(table, f"{type(catalog.client).__name__}: new", where, "defaults")
        asked = {**table.properties, PROPERTY: str(version)}
        asked |= {} if table.comment is None else {COMMENT: table.comment}
        with catalog_errors(where, catalog.secrets), _types_of_clients(where):
            types = import_module("pyiceberg.schema").Schema.model_validate(schema_json(schema, 0))
            fields = {"spec-id": spec.id, "fields": spec_fields_json(spec)}
            by = import_module("pyiceberg.partitioning").PartitionSpec.model_validate(fields)
            catalog.client.create_table(parts, types, place, partition_spec=by, properties=asked)
        return
    with catalog_errors(where, catalog.secrets):
        root = absolute(_placed(catalog, parts, place, where))
    schema = with_defaults(schema, table.defaults, version, where)
    draft = created(table, schema, spec, root, system.current().now_ms(), version)
    document = finished(draft.document, None, str(system.current().uuid4()))
    uri = join(root, METADATA_FOLDER, f"00000-{system.current().uuid4()}.metadata.json")
    TableMetadata.of(document, uri)
    storage, key = stores.resolve(uri)
    storage.put(key, dump(document), PutMode.CREATE)
    try:
        _name(catalog, row, uri, where)
    except (AlreadyExistsError, TableNotFoundError):
        storage.delete([key])
        raise


def _placed(catalog: IcebergCatalog, parts: tuple[str, ...], place: str | None, where: str) -> str:
    """Where a SQL catalog puts a new table, by its own rule."""
    try:
        return str(catalog.client._resolve_table_location(place, ".".join(parts[:-1]), parts[-1]))
    except ValueError:
        raise InvalidArgumentError(
            "neither the catalog nor the namespace says where tables are",
            where=where,
            advice="pass location=, or give the catalog a warehouse",
        ) from None


def _name(catalog: IcebergCatalog, row: SqlRow, uri: str, where: str) -> None:
    """The document becomes a table's. The client loads it then, which it cannot in every version of the format: the row
    tells whether it is there."""
    try:
        with catalog_errors(where, catalog.secrets):
            catalog.client.register_table(row.identifier, uri)
    except (AlreadyExistsError, TableNotFoundError):
        raise
    except BoathouseError:
        with catalog_errors(where, catalog.secrets):
            if row.location() != uri:
                raise


@contextmanager
def _types_of_clients(where: str) -> Iterator[None]:
    """What PyIceberg's classes say of a schema that they cannot hold."""
    try:
        yield
    except ValueError as error:
        raise UnsupportedFeatureError(
            f"PyIceberg's client of this catalog does not create such a table ({error})"[:500], where=where
        ) from None


def drop_table(catalog: IcebergCatalog, parts: tuple[str, ...], purge: bool) -> None:
    """With `purge` its files go too, unless the table says that they are not its own. Raises TableNotFoundError,
    ReadOnlyError, StorageError."""
    where = f"{catalog.name}.{'.'.join(parts)}"
    with catalog_errors(where, catalog.secrets):
        if not purge:
            catalog.client.drop_table(parts)
            return
        if catalog.client.load_table(parts).metadata.properties.get("gc.enabled", "true").lower() == "false":
            raise ReadOnlyError(
                "the table says that its files may be those of others (gc.enabled is false)",
                where=where,
                advice="drop it without purge=True, or set the property gc.enabled to true",
            )
        catalog.client.purge_table(parts)


def rename_table(catalog: IcebergCatalog, parts: tuple[str, ...], to: tuple[str, ...]) -> None:
    """Raises AlreadyExistsError, TableNotFoundError, also for a namespace, StorageError."""
    with catalog_errors(f"{catalog.name}.{'.'.join(parts)}", catalog.secrets):
        catalog.client.rename_table(parts, to)


def register_table(catalog: IcebergCatalog, parts: tuple[str, ...], metadata: str, stores: Stores) -> None:
    """A table whose metadata document is there. Raises AlreadyExistsError, TableNotFoundError, CorruptTableError."""
    where = f"{catalog.name}.{'.'.join(parts)}"
    uri = absolute(metadata)
    try:
        read_metadata(uri, stores)
    except NotFoundError:
        raise TableNotFoundError("there is no metadata file", where=uri) from None
    row = SqlRow.of(catalog.client, parts)
    if row is not None:
        _name(catalog, row, uri, where)
        return
    with catalog_errors(where, catalog.secrets):
        catalog.client.register_table(parts, uri)


def create_namespace(catalog: IcebergCatalog, name: str, properties: Mapping[str, str]) -> None:
    """Raises AlreadyExistsError, StorageError."""
    with catalog_errors(f"{catalog.name}.{name}", catalog.secrets):
        catalog.client.create_namespace(tuple(name.split(".")), dict(properties))


def drop_namespace(catalog: IcebergCatalog, name: str) -> None:
    """Raises InvalidArgumentError if it has tables, TableNotFoundError, StorageError."""
    with catalog_errors(f"{catalog.name}.{name}", catalog.secrets):
        catalog.client.drop_namespace(tuple(name.split(".")))


def namespace_properties(catalog: IcebergCatalog, name: str) -> dict[str, str]:
    """Raises TableNotFoundError, StorageError."""
    with catalog_errors(f"{catalog.name}.{name}", catalog.secrets):
        return dict(catalog.client.load_namespace_properties(tuple(name.split("."))))


def set_namespace_properties(catalog: IcebergCatalog, name: str, properties: Mapping[str, str | None]) -> None:
    """None removes one. Raises TableNotFoundError, StorageError."""
    given = {k: v for k, v in properties.items() if v is not None}
    with catalog_errors(f"{catalog.name}.{name}", catalog.secrets):
        catalog.client.update_namespace_properties(tuple(name.split(".")), set(properties) - set(given), given)
