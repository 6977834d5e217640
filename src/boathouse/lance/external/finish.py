"""What a version that the manifest store has chosen still needs: the copy under its final name, and that the store says
so.

Anybody may do it, any number of times, as all copy the same staged file. The copy makes the version part of the table,
for those too who do not know the store; what comes after it is repair.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from boathouse.errors import AlreadyExistsError, BoathouseError, CorruptTableError, NotFoundError
from boathouse.lance.external import opened
from boathouse.lance.external.store import Entry, ManifestStore
from boathouse.lance.manifests.file import parse
from boathouse.lance.manifests.names import VERSIONS, final_name, numbered
from boathouse.storage import PutMode, join
from boathouse.table.context import TableContext

log = logging.getLogger("boathouse")


def settle(context: TableContext) -> Entry | None:
    """The newest version in the table's store, final now; None if the store does not know the table yet.

    Raises CorruptTableError if it cannot be made final, InvalidArgumentError, MissingRequirementError, StorageError.
    """
    store = opened.store_of(context)
    entry = store.latest(context.location.uri)
    while entry is not None:
        try:
            return finish(context, store, entry)[0]
        except CorruptTableError:
            # Others may have finished it and gone on, so that its files have expired since.
            newer = store.latest(context.location.uri)
            if newer == entry:
                raise
            entry = newer
    return None


def finish(
    context: TableContext, store: ManifestStore, entry: Entry, body: bytes | None = None
) -> tuple[Entry, bytes | None]:
    """The entry under its final name, and the bytes there where they had to be looked at. `body` are those that were
    staged, if they are known.

    Where somebody who does not know the store has put another manifest under the final name, that one stays: its
    version was in the table, and this one never. Raises CorruptTableError, StorageError.
    """
    uri = final_uri(context, store, entry)
    if uri == entry.uri:
        return entry, None
    storage, key = context.stores.resolve(uri)
    staged = context.stores.resolve(entry.uri)[1]
    try:
        body = storage.get(staged) if body is None else body
    except NotFoundError:
        return _finished(context, store, entry, uri), None
    if entry.size not in (None, len(body)):
        raise _not_final(f"the staged manifest has {len(body)} bytes instead of {entry.size}", store, entry)
    there = body
    if not storage.atomic_create:
        storage.put(key, body)
    else:
        try:
            storage.put(key, body, PutMode.CREATE)
        except AlreadyExistsError:
            there = _checked(storage.get(key), body, store, entry)
    final = replace(entry, uri=uri, size=len(there))
    try:
        store.put_if_exists(context.location.uri, final)
        storage.delete([staged])
    except BoathouseError as error:
        log.warning("version %s is final, but %s may still say otherwise: %s", entry.version, store.name, error)
    return final, there


def repair(context: TableContext, staged: Mapping[str, int]) -> frozenset[str]:
    """Which of the staged manifests, keys with their versions, the store names, after it was told of the final ones
    that are there. Raises StorageError, CorruptTableError."""
    store, found = opened.store_of(context), set()
    for staged_key, version in staged.items():
        entry = store.get(context.location.uri, version)
        if entry is None or context.stores.resolve(entry.uri)[1] != staged_key:
            continue
        final = final_uri(context, store, entry)
        storage, key = context.stores.resolve(final)
        if storage.exists(key):
            store.put_if_exists(context.location.uri, replace(entry, uri=final, size=storage.head(key).size))
        else:
            found.add(staged_key)
    return frozenset(found)


def final_uri(context: TableContext, store: ManifestStore, entry: Entry) -> str:
    """The final name of the version that an entry is of, which it may have already. Raises CorruptTableError for a file
    that is no manifest of this version in this table."""
    folder, _, name = entry.uri.rpartition("/")
    final = name if numbered(name) is not None else final_name(name)
    found = None if final is None else numbered(final)
    if folder != join(context.location.uri, VERSIONS) or final is None or found is None or found[0] != entry.version:
        raise CorruptTableError(
            f"the manifest store {store.name} says that version {entry.version} of {context.location.uri} is this file",
            where=entry.uri,
            advice="correct the entry, or remove it if the version is in the folder of the table",
        )
    return join(folder, final)


def _finished(context: TableContext, store: ManifestStore, entry: Entry, uri: str) -> Entry:
    """The entry of a version whose staged manifest is gone: somebody else finished it, or it is lost."""
    storage, key = context.stores.resolve(uri)
    try:
        size = storage.head(key).size
    except NotFoundError:
        raise _not_final("neither the staged manifest nor the final one is there", store, entry) from None
    if entry.size not in (None, size):
        raise _not_final(f"the final manifest has {size} bytes instead of {entry.size}", store, entry)
    final = replace(entry, uri=uri, size=size)
    try:
        store.put_if_exists(context.location.uri, final)
    except BoathouseError as error:
        log.warning("version %s is final, but %s may still say otherwise: %s", entry.version, store.name, error)
    return final


def _checked(there: bytes, body: bytes, store: ManifestStore, entry: Entry) -> bytes:
    """What is under the final name already: the same, or a manifest of this version that somebody else put."""
    if there != body:
        if parse(there, where=entry.uri).manifest.version != entry.version:
            raise _not_final("another manifest is in its place", store, entry)
        log.warning("version %s was put without %s, which had chosen %s", entry.version, store.name, entry.uri)
    return there


def _not_final(what: str, store: ManifestStore, entry: Entry) -> CorruptTableError:
    return CorruptTableError(
        f"version {entry.version}, the newest in the manifest store {store.name}, cannot be read: {what}",
        where=entry.uri,
        advice="restore the file; if nobody was told that this version was committed, remove its entry from the store",
    )
