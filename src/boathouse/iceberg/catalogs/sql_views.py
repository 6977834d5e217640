"""Views of SQL catalogs: rows of the type VIEW that name documents of ours, as `JdbcCatalog` has them (schema V1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, cast

import orjson

from boathouse.bits import system
from boathouse.bits.library import library_version
from boathouse.errors import AlreadyExistsError, CorruptTableError, InvalidArgumentError, NotFoundError, StorageError
from boathouse.iceberg.catalogs.view_stores import Json, Parts
from boathouse.iceberg.metadata.view_changes import applied, new_document
from boathouse.iceberg.metadata.views import parse_view
from boathouse.iceberg.paths import METADATA_FOLDER, read_bytes
from boathouse.storage import PutMode, Stores, absolute, basename, join
from boathouse.table.view import ViewDefinition

_VIEW: Final = "VIEW"
_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class SqlViews:
    """See `ViewStore`. `client` is PyIceberg's SqlCatalog, which has the tables of the database and no views."""

    client: Any
    stores: Stores

    def names(self, namespace: Parts) -> Sequence[Parts]:
        self.client.load_namespace_properties(namespace)
        sql, rows = self._modules()
        wanted = sql.select(rows.table_name).where(
            rows.catalog_name == self.client.name,
            rows.table_namespace == ".".join(namespace),
            rows.iceberg_type == _VIEW,
        )
        with self.client.engine.connect() as connection:
            return [(*namespace, name) for (name,) in connection.execute(wanted)]

    def load(self, parts: Parts) -> tuple[Json, Any]:
        recorded = self._found(parts)
        if recorded is None:
            raise import_module("pyiceberg.exceptions").NoSuchViewError(f"View does not exist: {'.'.join(parts)}")
        uri = absolute(recorded)
        try:
            return cast(Json, orjson.loads(read_bytes(self.stores, uri))), recorded
        except NotFoundError as error:
            raise StorageError(
                f"the catalog names a metadata document that is not there: {error.message}", where=uri
            ) from None
        except orjson.JSONDecodeError as error:
            raise CorruptTableError(f"the view's metadata is not JSON: {error}", where=uri) from None

    def create(
        self, parts: Parts, definition: ViewDefinition, place: str | None, properties: Mapping[str, str]
    ) -> Json:
        self.client.load_namespace_properties(parts[:-1])
        self._free(parts)
        clock = system.current()
        root = absolute(self._placed(parts, place))
        document = new_document(definition, root, properties, str(clock.uuid4()), clock.now_ms(), library_version())
        uri = self._put(root, 0, document)
        sql, rows = self._modules()
        values = {
            "catalog_name": self.client.name, "table_namespace": ".".join(parts[:-1]), "table_name": parts[-1],
            "metadata_location": uri, "previous_metadata_location": None, "iceberg_type": _VIEW,
        }  # fmt: skip
        try:
            with self.client.engine.begin() as connection:
                connection.execute(sql.insert(rows).values(**values))
        except sql.exc.IntegrityError:
            self._discard(uri)
            raise self._there(parts) from None
        return document

    def commit(self, parts: Parts, document: Json, token: Any, updates: Sequence[Json]) -> Json | None:
        made = applied(document, updates, system.current().now_ms())
        number = basename(token).partition("-")[0]
        uri = self._put(absolute(document["location"]), int(number) + 1 if number.isdecimal() else 1, made)
        sql, rows = self._modules()
        changed = sql.update(rows).where(self._mine(parts), rows.metadata_location == token)
        if self._executed(changed.values(metadata_location=uri, previous_metadata_location=token)):
            return made
        self._discard(uri)
        return None

    def drop(self, parts: Parts) -> None:
        sql, rows = self._modules()
        if not self._executed(sql.delete(rows).where(self._mine(parts))):
            raise import_module("pyiceberg.exceptions").NoSuchViewError(f"View does not exist: {'.'.join(parts)}")

    def rename(self, parts: Parts, to: Parts) -> None:
        self.load(parts)
        self.client.load_namespace_properties(to[:-1])
        self._free(to)
        sql, rows = self._modules()
        named = {"table_namespace": ".".join(to[:-1]), "table_name": to[-1]}
        try:
            self._executed(sql.update(rows).where(self._mine(parts)).values(**named))
        except sql.exc.IntegrityError:
            raise self._there(to) from None

    def _modules(self) -> tuple[Any, Any]:
        """Raises NotImplementedError for a database whose rows have no type."""
        if self.client._iceberg_type_filter() is None:
            raise NotImplementedError("the catalog's table iceberg_tables has no column iceberg_type (schema V0)")
        return import_module("sqlalchemy"), import_module("pyiceberg.catalog.sql").IcebergTables

    def _mine(self, parts: Parts, type: str | None = _VIEW) -> Any:
        sql, rows = self._modules()
        named = sql.and_(
            rows.catalog_name == self.client.name,
            rows.table_namespace == ".".join(parts[:-1]),
            rows.table_name == parts[-1],
        )
        return named if type is None else sql.and_(named, rows.iceberg_type == type)

    def _found(self, parts: Parts, type: str | None = _VIEW) -> str | None:
        sql, rows = self._modules()
        with self.client.engine.connect() as connection:
            wanted = sql.select(rows.metadata_location).where(self._mine(parts, type))
            return cast("str | None", connection.execute(wanted).scalar())

    def _executed(self, statement: Any) -> bool:
        with self.client.engine.begin() as connection:
            return bool(connection.execute(statement).rowcount)

    def _free(self, parts: Parts) -> None:
        if self._found(parts, None) is not None:
            raise self._there(parts)

    def _there(self, parts: Parts) -> AlreadyExistsError:
        kind = "view" if self._found(parts) is not None else "table"
        return AlreadyExistsError(
            f"there is a {kind} of this name", where=f"{self.client.name}.{'.'.join(parts)}",
            advice="choose another name, or drop it",
        )  # fmt: skip

    def _placed(self, parts: Parts, place: str | None) -> str:
        """Where the catalog puts a view: as a table."""
        try:
            return str(self.client._resolve_table_location(place, ".".join(parts[:-1]), parts[-1]))
        except ValueError:
            raise InvalidArgumentError(
                "neither the catalog nor the namespace says where views are",
                advice="pass location=, or give the catalog a warehouse",
            ) from None

    def _put(self, root: str, number: int, document: Json) -> str:
        """Writes a document that every reader can read."""
        uri = join(root, METADATA_FOLDER, f"{number:0{_DIGITS}}-{system.current().uuid4()}.metadata.json")
        parse_view(document, uri)
        storage, key = self.stores.resolve(uri)
        storage.put(key, orjson.dumps(document), PutMode.CREATE)
        return uri

    def _discard(self, uri: str) -> None:
        storage, key = self.stores.resolve(uri)
        storage.delete([key])
