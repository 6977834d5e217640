"""Iceberg catalogs (REST, SQL, Hive, Glue) through PyIceberg's clients, which are imported in this folder only.

A catalog is asked for three things: its names, which metadata document of a table is current, and the swap to another,
in the updates and requirements of the REST catalog's specification. All files are read and written by us.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import orjson

from boathouse.bits import system
from boathouse.errors import (
    BoathouseError,
    InvalidArgumentError,
    MissingRequirementError,
    NotFoundError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.catalogs import views
from boathouse.iceberg.catalogs.errors import GONE, catalog_errors, wrong_options
from boathouse.iceberg.catalogs.sql import SqlRow
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.snapshot import read_metadata
from boathouse.storage import Stores, absolute, basename, parent
from boathouse.storage.aliases import ALIASES
from boathouse.storage.options import scrub
from boathouse.table.attempt import Attempt, Published
from boathouse.table.location import CommitId
from boathouse.table.view import View

log = logging.getLogger("boathouse")
_LOOKS: Final = 6
_REFUSED: Final = ("CommitFailedException", "BadRequestError", "UnauthorizedError", "ForbiddenError", "ValidationError")
"""Errors of a request that changed nothing; after any other, that is unknown."""
_MADE_BY_CLIENTS: Final = 2
"""The highest format version of documents that clients make."""
_NUMBERS: Final = ("glue.max-retries",)
"""Options that PyIceberg hands on as they are to a library that wants numbers."""
_SECRETS: Final = ("credential", "token", "secret", "password", "key", "uri")


def configured(name: str) -> bool:
    """Whether PyIceberg's configuration (its file, or PYICEBERG_CATALOG__... variables) has this catalog."""
    return _configuration(name) is not None


def _configuration(name: str) -> Mapping[str, Any] | None:
    """As it is now: `load_catalog` knows the configuration of when PyIceberg was imported."""
    try:
        config = import_module("pyiceberg.utils.config").Config()
    except ImportError:
        return None
    found: Mapping[str, Any] | None = config.get_catalog_config(name)
    return found


@dataclass(frozen=True, slots=True)
class IcebergCatalog:
    """A catalog; `secrets` are values of its settings that no message may show."""

    name: str
    client: Any
    secrets: tuple[str, ...] = ()

    @classmethod
    def load(cls, name: str, options: Mapping[str, str]) -> IcebergCatalog:
        """By PyIceberg's configuration, and these options. Raises MissingRequirementError, InvalidArgumentError,
        StorageError."""
        try:
            catalogs = import_module("pyiceberg.catalog")
        except ImportError as error:
            raise MissingRequirementError(
                "catalogs need PyIceberg", advice='pip install "pyiceberg[sql-sqlite]", or the extra of your catalog'
            ) from error
        known = _configuration(name)
        if not options and known is None:
            raise InvalidArgumentError(
                f"there is no catalog {name!r}",
                advice="name it in PyIceberg's configuration (~/.pyiceberg.yaml), or pass its options, such as uri=",
            )
        settings = {**(known or {}), **options}
        secrets = tuple(v for k, v in settings.items() if isinstance(v, str) and any(s in k.lower() for s in _SECRETS))
        with catalog_errors(name, secrets), wrong_options(name, secrets):
            given = {k: int(v) if k in _NUMBERS and str(v).isdecimal() else v for k, v in settings.items()}
            return cls(name, catalogs.load_catalog(name, **given), secrets)

    def namespaces(self) -> list[str]:
        """Every namespace, nested ones too. Raises StorageError."""
        with catalog_errors(self.name, self.secrets):
            return sorted(".".join(n) for n in self._namespaces(()))

    def _namespaces(self, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for found in self.client.list_namespaces(above) if above else self.client.list_namespaces():
            name = tuple(found)
            if len(name) > len(above):
                yield name
                yield from self._namespaces(name)

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables of a namespace, or of all. Raises TableNotFoundError, StorageError."""
        names = self.namespaces() if namespace is None else [namespace]
        with catalog_errors(self.name, self.secrets):
            return sorted(".".join(t) for n in names for t in self.client.list_tables(tuple(n.split("."))))

    def views(self, namespace: str | None = None) -> list[str]:
        """The views of a namespace, or of all. Raises TableNotFoundError, StorageError, and UnsupportedFeatureError if
        the client does not list them."""
        return views.list_views(self, self.namespaces() if namespace is None else [namespace])

    def view(self, identifier: str, stores: Stores | None = None) -> View:
        """A view by namespace and name. Raises TableNotFoundError, and what `views` raises."""
        return views.load_view(self, identifier, self.stores(None) if stores is None else stores)

    def table(self, identifier: str) -> CatalogTable:
        """A table by namespace and name, joined by dots. Raises InvalidArgumentError."""
        return CatalogTable(self, self.parts(identifier))

    def stores(self, options: Mapping[str, str] | None) -> Stores:
        """Those of files that are no table's of the catalog yet: what it says of stores, and `options` before that."""
        return Stores({**_settings(self.client.properties), **(options or {})})

    def parts(self, identifier: str) -> tuple[str, ...]:
        """A name by namespace and table. Raises InvalidArgumentError."""
        parts = tuple(identifier.split("."))
        if len(parts) < 2 or not all(parts):
            raise InvalidArgumentError(
                f"{identifier!r} is not a table's name", where=self.name, advice="write namespace.table"
            )
        return parts


class CatalogTable:
    """See `table.context.TableCatalog`. It keeps what the client loaded last: settings and the token that commits are
    sent with; of a SQL catalog, what the row named last."""

    def __init__(self, catalog: IcebergCatalog, identifier: tuple[str, ...]) -> None:
        self.catalog = catalog
        self.identifier = identifier
        self._row = SqlRow.of(catalog.client, identifier)
        self._recorded: str | None = None
        self._read: TableMetadata | None = None
        self._loaded: Any = None
        self._placed: Any = None

    @property
    def name(self) -> str:
        return ".".join((self.catalog.name, *self.identifier))

    def head(self) -> str:
        """Of a table that was just placed, what the catalog said then: it is opened by one request."""
        if self._read is not None:
            return self._read.uri
        placed, self._placed = self._placed, None
        if placed is not None:
            return absolute(str(placed.metadata_location))
        if self._row is not None and (recorded := self._named()) is not None:
            return absolute(recorded)
        return absolute(str(self._load().metadata_location))

    def document(self, uri: str) -> TableMetadata | None:
        """What placing the table has read, once."""
        read, self._read = self._read, None
        return read if read is not None and read.uri == uri else None

    def place(self, options: Mapping[str, str] | None = None) -> tuple[str, dict[str, str]]:
        """The table's location, and the settings of its store that the catalog vends; `options` go before them. Raises
        UnsupportedFeatureError with the query of a view."""
        if self._row is not None and (recorded := self._named()) is not None:
            return self._read_here(recorded, options or {})
        try:
            found = self._load()
        except TableNotFoundError:
            self._refuse_view()
            raise
        self._placed = found
        return str(found.metadata.location), _settings(found.io.properties)

    def _read_here(self, recorded: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """A SQL catalog only names the document, which its client would read from the same place."""
        general = self.catalog.client.properties
        uri = absolute(recorded)
        try:
            self._read = read_metadata(uri, Stores({**_settings(general), **options}))
        except NotFoundError as error:
            raise StorageError(
                f"the catalog names a metadata document that is not there: {error.message}", where=uri
            ) from None
        return self._read.location, _settings({**general, **self._read.properties})

    def _named(self) -> str | None:
        assert self._row is not None
        with catalog_errors(self.name, self.catalog.secrets):
            self._recorded = self._row.location()
        return self._recorded

    def takes_documents(self, version: int) -> bool:
        """PyIceberg's clients make no documents of version 3: a REST catalog's server does. In a SQL catalog, a table
        of names, we swap documents of all versions."""
        if self._row is not None:
            return True
        kind = type(self.catalog.client).__name__
        if version <= _MADE_BY_CLIENTS or kind.startswith("Rest"):
            return False
        raise UnsupportedFeatureError(
            f"PyIceberg's client of this catalog ({kind}) does not write tables of format version {version}",
            where=self.name,
            advice="keep the table at version 2, or keep it in a REST or SQL catalog",
        )

    def publish(self, attempt: Attempt) -> Published | Attempt:
        """`lost` if the head no longer satisfies the requirements. A swap without an answer is settled by the snapshot
        that it would have made: without a snapshot, and as long as the head may still change, it is unknown. So is a
        refusal: clients send a request without an answer again, as botocore does for Glue, and the second one is
        refused because of the first."""
        if self._row is not None:
            return self._swapped(self._row, attempt)
        # What is required says nothing about concurrent commits of metadata alone.
        if (self._loaded is None or not _guarded(attempt)) and attempt.replaces != self.head():
            return "lost"
        try:
            answer = self.catalog.client.commit_table(self._loaded, *_typed(attempt))
        except Exception as error:
            if _refuses(error):
                log.debug("%s refused the commit: %s", self.name, scrub(str(error), self.catalog.secrets))
                return "lost" if attempt.version is None else self._settled(attempt, refused=True)
            log.warning("%s did not answer: %s", self.name, scrub(repr(error), self.catalog.secrets))
            return self._settled(attempt)
        return self._answered(attempt, answer)

    def _swapped(self, row: SqlRow, attempt: Attempt) -> Published | Attempt:
        """The attempt's document, which is there, becomes the table's, if the row still names the one that it follows.
        Whatever the attempt requires holds of that one. Raises StorageError if nothing was changed."""
        before = self._recorded if self._recorded is not None else self._named()
        if before is None or absolute(before) != attempt.replaces:
            before = self._named()
        if before is None or absolute(before) != attempt.replaces:
            return "lost"
        with catalog_errors(self.name, self.catalog.secrets):
            swap = row.swap(before, _spelled(attempt.uri, before))
        try:
            swap.commit()
        except Exception as error:
            log.warning("%s did not answer: %s", self.name, scrub(repr(error), self.catalog.secrets))
            return self._settled(attempt)
        self._recorded = None
        return attempt if swap.done else "lost"

    def _answered(self, attempt: Attempt, answer: Any) -> Published | Attempt:
        """The attempt with the document that the catalog made of it; `won` alone if that cannot be read."""
        try:
            uri = absolute(str(answer.metadata_location))
            made = TableMetadata.of(orjson.loads(answer.metadata.model_dump_json()), uri)
        except Exception as error:
            log.debug("%s answered a commit with metadata that cannot be read: %r", self.name, error)
            return "won"
        return replace(attempt, uri=uri, commit=CommitId(attempt.version, basename(uri)), state=made)

    def _settled(self, attempt: Attempt, refused: bool = False) -> Published:
        clock = system.current()
        for i in range(_LOOKS):
            if i or not refused:
                clock.sleep(clock.random() * 0.05 * 2**i)
            try:
                found = self._load()
            except TableNotFoundError:
                if refused:
                    return "lost"
                continue
            except StorageError:
                continue
            if any(s.snapshot_id == attempt.version for s in found.metadata.snapshots) or _follows(found, attempt.uri):
                return "won"
            if refused:
                return "lost"
            if _overtaken(attempt, found.metadata.refs) or _outnumbered(attempt, found.metadata):
                # The branch has another head, which does not follow ours, or another one has our sequence number: what
                # we require can never hold again.
                return "lost"
        return "unknown"

    def _refuse_view(self) -> None:
        try:
            view = self.catalog.view(".".join(self.identifier))
        except BoathouseError:
            return
        raise view.refusal(self.name) from None

    def _load(self) -> Any:
        with catalog_errors(self.name, self.catalog.secrets):
            self._loaded = self.catalog.client.load_table(self.identifier)
            return self._loaded


def _settings(properties: Mapping[str, Any]) -> dict[str, str]:
    """Those of a store."""
    return {k: str(v) for k, v in properties.items() if k.lower() in ALIASES}


def _spelled(uri: str, before: str) -> str:
    """The URI as the catalog spells locations: `before` may say `s3a://`, or be a path."""
    folder = before.rpartition("/")[0]
    return f"{folder}/{basename(uri)}" if folder and absolute(folder) == parent(uri) else uri


def _follows(found: Any, uri: str) -> bool:
    """Whether the loaded table's document is this one, or follows it."""
    line = [found.metadata_location, *(e.metadata_file for e in found.metadata.metadata_log)]
    return any(basename(place) == basename(uri) and absolute(place) == uri for place in line)


def _guarded(attempt: Attempt) -> bool:
    """Whether the requirements say which snapshot the commit follows."""
    return any(r["type"] == "assert-ref-snapshot-id" for r in attempt.requirements)


def _overtaken(attempt: Attempt, refs: Mapping[str, Any]) -> bool:
    """Whether a branch is elsewhere than where the commit has to find it. A commit of metadata alone moves none: after
    one, ours may still succeed."""
    wanted = {r["ref"]: r["snapshot-id"] for r in attempt.requirements if r["type"] == "assert-ref-snapshot-id"}
    heads = {name: refs[name].snapshot_id if name in refs else None for name in wanted}
    return heads != wanted


def _refuses(error: Exception) -> bool:
    """Whether the request has changed nothing. A client that applies updates itself raises ValueError where a
    concurrent commit, also one to another branch, took the sequence number."""
    kind = type(error).__name__
    return kind in GONE or kind in _REFUSED or (kind == "ValueError" and "sequence number" in str(error))


def _outnumbered(attempt: Attempt, metadata: Any) -> bool:
    """Whether the sequence number of the attempt's snapshot is taken, by one of another branch: those of a table rise,
    and catalogs add no other snapshot to it."""
    last = getattr(metadata, "last_sequence_number", 0)
    made = [u["snapshot"] for u in attempt.updates if u["action"] == "add-snapshot"]
    return any(s.get("parent-snapshot-id") is not None and 0 < s.get("sequence-number", 0) <= last for s in made)


def _typed(attempt: Attempt) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Requirements and updates as PyIceberg's clients take them."""
    adapter = import_module("pydantic").TypeAdapter
    table = import_module("pyiceberg.table.update")
    return tuple(_parsed(adapter, kind, values) for kind, values in (
        (table.TableRequirement, attempt.requirements), (table.TableUpdate, attempt.updates)
    ))  # type: ignore[return-value]  # fmt: skip


def _parsed(adapter: Any, kind: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    parser = adapter(kind)
    return tuple(parser.validate_python(dict(v)) for v in values)
