"""The history in the retained versions: their commits, the version of a write, and which files they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from boathouse.errors import VersionNotFoundError
from boathouse.lance.commit.confirmation import is_followed
from boathouse.lance.commit.properties import (
    MESSAGE,
    METADATA,
    METRICS,
    OPERATION,
    OWN,
    PARAMETERS,
    TXN_APP,
    TXN_VERSION,
    WRITE_ID,
)
from boathouse.lance.commit.properties import app_version as recorded
from boathouse.lance.commit.properties import document as document_of
from boathouse.lance.maintain.needs import Seen, needs
from boathouse.lance.manifests.file import parse
from boathouse.lance.manifests.messages import Transaction
from boathouse.lance.manifests.versions import VERSIONS, VersionFile, list_versions
from boathouse.lance.snapshot import LanceSnapshot, read_manifest, read_transaction
from boathouse.storage import parent
from boathouse.table.attempt import undecided
from boathouse.table.context import TableContext
from boathouse.table.history import HistoryEntry
from boathouse.table.location import Version

_KEPT_WHOLE = ("_refs", "_indices", "tree", "_blobs")
"""Folders whose files are always considered needed, as their references are not inspected."""


@dataclass(frozen=True, slots=True)
class LanceHistory:
    """See `table.history.History`."""

    snapshot: LanceSnapshot

    def entries(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """The commits up to the snapshot, newest first, as far as their manifests are retained."""
        snapshot = self.snapshot
        kept = [v for v in list_versions(snapshot.context) if v.version <= snapshot.version]
        for file in kept[: limit if limit is not None else len(kept)]:
            yield _entry(snapshot.context, file)

    def find_write(self, write_id: str) -> Version | None:
        """The version whose transaction has the write id, if it is part of the main line; newest first.

        Raises CommitUnknownError if the retained versions do not tell.
        """
        context = self.snapshot.context
        listed = list_versions(context)
        for file in listed:
            try:
                transaction = read_transaction(context, read_manifest(context, file))
            except VersionNotFoundError:  # cleaned up since the listing
                continue
            if transaction is not None and transaction.transaction_properties.get(WRITE_ID) == write_id:
                if not is_followed(context, listed, file, transaction):
                    raise undecided(write_id, file.version, context.location.uri)
                return file.version
        return None

    def app_version(self, app: str) -> int | None:
        """The newest version that an application recorded, up to the snapshot."""
        snapshot = self.snapshot
        for file in list_versions(snapshot.context):
            if file.version > snapshot.version:
                continue
            transaction = read_transaction(snapshot.context, read_manifest(snapshot.context, file))
            properties = transaction.transaction_properties if transaction is not None else {}
            found = recorded(properties, app)
            if found is not None:
                return found
        return None


def _entry(context: TableContext, file: VersionFile) -> HistoryEntry:
    document = read_manifest(context, file)
    manifest = document.manifest
    transaction = read_transaction(context, document) or Transaction()
    properties = transaction.transaction_properties
    writer = manifest.writer_version
    metadata = {**document_of(properties, METADATA), **{k: v for k, v in properties.items() if k not in OWN}}
    return HistoryEntry(
        version=file.version,
        commit=str(file.version),
        timestamp_ms=manifest.timestamp.ms if manifest.timestamp else 0,
        operation=properties.get(OPERATION) or transaction.operation or "unknown",
        parameters={**_parameters(transaction), **document_of(properties, PARAMETERS)},
        metrics=document_of(properties, METRICS),
        engine=f"{writer.library}/{writer.version}" if writer else None,
        write_id=properties.get(WRITE_ID),
        message=properties.get(MESSAGE),
        metadata=metadata,
        parent=file.version - 1 if file.version > 1 and transaction.clone is None else None,
        data_change=transaction.operation != "rewrite",
    )


def _parameters(transaction: Transaction) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if transaction.operation is not None:
        found["transaction"] = transaction.operation
    if transaction.uuid:
        found["uuid"] = transaction.uuid
    if transaction.delete is not None and transaction.delete.predicate:
        found["predicate"] = transaction.delete.predicate
    if transaction.restore is not None:
        found["version"] = transaction.restore.version
    app = transaction.transaction_properties.get(TXN_APP)
    if app is not None:
        found["txn"] = (app, transaction.transaction_properties.get(TXN_VERSION))
    return found


@dataclass(frozen=True, slots=True)
class LanceLiveFiles:
    """See `table.features.LiveFiles`."""

    context: TableContext

    def uris(self) -> Iterator[str]:
        """URIs that the retained versions need: manifests (detached ones too), data, deletions, transactions, refs,
        indices.

        Branches are in `tree`, each a table of its own that may refer to files of this one.
        """
        context = self.context
        storage, folder = context.stores.resolve(context.location.uri)
        found: set[str] = set()
        seen = Seen()
        manifests = [info.key for info in storage.list(f"{folder}/{VERSIONS}")]
        for name in _KEPT_WHOLE:
            keys = [info.key for info in storage.list(f"{folder}/{name}")]
            found.update(map(storage.uri, keys))
            manifests += [k for k in keys if f"/{VERSIONS}/" in k]
        for key in manifests:
            uri = storage.uri(key)
            found.add(uri)
            if key.endswith(".manifest"):
                needed = needs(parse(storage.get(key), where=uri), parent(parent(uri)), seen)
                found.update(uri for uri, _, _ in needed if not uri.endswith("/"))
        stems = {uri.removesuffix(".lance") for uri in found if uri.endswith(".lance")}
        blobs = (storage.uri(info.key) for info in storage.list(f"{folder}/data") if info.key.endswith(".blob"))
        found.update(uri for uri in blobs if parent(uri) in stems)
        yield from sorted(found)
