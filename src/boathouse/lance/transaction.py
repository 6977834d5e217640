"""Commits: the head, and a change prepared on it as manifest bytes, transaction file and deletion files."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from boathouse.bits.entropy import current
from boathouse.errors import (
    CorruptTableError,
    InvalidArgumentError,
    ReadOnlyError,
    UnsafeStorageError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.lance import features
from boathouse.lance.build import Build, Built
from boathouse.lance.conflict import kind_of
from boathouse.lance.manifest import serialise
from boathouse.lance.messages import Timestamp, Transaction, WriterVersion
from boathouse.lance.paths import TRANSACTIONS, V2_2, table_version
from boathouse.lance.properties import properties_of
from boathouse.lance.snapshot import LanceSnapshot, load, open_version, read_manifest, same_file
from boathouse.lance.versions import list_versions, manifest_uri, newest
from boathouse.storage import PutMode, Stores, join
from boathouse.table.change import (
    AddFiles,
    Change,
    CreateTable,
    RemoveAll,
    ReplaceSchema,
    SetProperties,
)
from boathouse.table.format import Attempt

LIBRARY = "boathouse"


def head(change: Change, stores: Stores) -> LanceSnapshot | None:
    """The newest version; its `identity` differs from the planned one's if the table was recreated concurrently.

    A manifest has no id of its table: a different manifest at the planned version, or no version as high, shows it.
    """
    planned = change.planned
    file = newest(change.location, stores)
    if file is None:
        return None
    if isinstance(planned, LanceSnapshot) and same_file(file, planned.file):
        return planned
    try:
        found = open_version(change.location, stores, file)
    except VersionNotFoundError:  # cleaned up since the listing
        found = load(change.location, stores)
    if not isinstance(planned, LanceSnapshot):
        return found
    if _replaced(planned, found, stores):
        return replace(found, replaced=f"#{found.manifest.transaction_file}")
    return found


def _replaced(planned: LanceSnapshot, found: LanceSnapshot, stores: Stores) -> bool:
    if found.version <= planned.version:
        return found.version < planned.version or found.document != planned.document
    kept = {v.version: v for v in list_versions(planned.location, stores)}
    now = kept.get(planned.version)
    if now is None or same_file(now, planned.file):
        return False
    try:
        return read_manifest(planned.location, stores, now) != planned.document
    except VersionNotFoundError:  # cleaned up since the listing
        return False


def writable(snapshot: LanceSnapshot, stores: Stores) -> None:
    """Raises if the table may not be written here. UnsupportedFeatureError, UnsafeStorageError, CorruptTableError."""
    where = snapshot.location.uri
    if snapshot.ref is not None:
        raise ReadOnlyError(
            f"`{snapshot.ref}` is a tag, which cannot be written to", where=where, advice="open without ref="
        )
    features.check_writable(snapshot.manifest, where)
    ids = [f.id for f in snapshot.manifest.fragments]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise CorruptTableError(
            f"fragment id {twice} occurs twice, so rows cannot be addressed",
            where=where,
            advice="copy the rows into a new table",
        )
    storage, _ = stores.resolve(where)
    if not storage.atomic_create:
        raise UnsafeStorageError("this store cannot create a file atomically", where=where)
    if snapshot.manifest.branch or snapshot.manifest.base_paths:
        raise UnsupportedFeatureError("writing branches and clones is not offered", where=where)


def check_version(snapshot: LanceSnapshot) -> None:
    """Raises UnsupportedFeatureError if data files of the table's version are not written here."""
    found = table_version(snapshot.manifest, snapshot.location.uri)
    if found != V2_2:
        raise UnsupportedFeatureError(
            f"this table has data files of version {found}, which are not written here",
            where=snapshot.location.uri,
            advice=f"copy it into a new table, which has version {V2_2}",
        )


def prepare(change: Change, head: LanceSnapshot | None, stores: Stores) -> Attempt:
    """The next version on `head`: deletion files and transaction file are written, the manifest is the body."""
    if head is not None:
        writable(head, stores)
        head = head.repaired()
    built = _build(Build(change, head, stores))
    clock = current()
    base = head.version if head is not None else 0
    transaction = Transaction(
        read_version=base,
        uuid=str(clock.uuid4()),
        transaction_properties=properties_of(change),
        **built.operation,
    )
    separate = not built.document.manifest.writer_feature_flags & features.NO_TRANSACTION_FILE
    name = f"{base}-{transaction.uuid}.txn" if separate else ""
    manifest = replace(
        built.document.manifest,
        version=base + 1,
        timestamp=Timestamp.of_ms(max(clock.now_ms(), head.timestamp_ms if head is not None else 0)),
        transaction_file=name,
        writer_version=WriterVersion(library=LIBRARY, version=library_version()),
    )
    reader, writer = features.flags_of(manifest)
    manifest = replace(manifest, reader_feature_flags=reader, writer_feature_flags=writer)
    body = serialise(replace(built.document, manifest=manifest, transaction=transaction))
    side = built.side
    if separate:
        uri = join(change.location.uri, TRANSACTIONS, name)
        storage, key = stores.resolve(uri)
        storage.put(key, transaction.encode(), PutMode.CREATE)
        side = (*side, uri)
    scheme = head.file.scheme if head is not None else "V2"
    return Attempt(manifest_uri(change.location, base + 1, scheme), body, base + 1, side)


def _build(build: Build) -> Built:
    change = build.change
    kinds = {type(e) for e in change.edits}
    mixed = SetProperties in kinds and len(kinds) > 1
    if not kinds or mixed or (ReplaceSchema in kinds and RemoveAll not in kinds):
        raise InvalidArgumentError(
            f"a Lance commit of {', '.join(sorted(k.__name__ for k in kinds)) or 'nothing'}",
            where=change.location.uri,
            advice="commit properties and rows separately",
        )
    if CreateTable in kinds:
        return build.create()
    if build.head is None:
        raise InvalidArgumentError("a change of a table that does not exist", where=change.location.uri)
    if AddFiles in kinds:
        check_version(build.head)
    match kind_of(change):
        case "append":
            return build.append()
        case "overwrite":
            return build.overwrite()
        case "delete" | "update":
            return build.rows()
        case "config":
            return build.config()
        case "add-column":
            return build.add_columns()


def library_version() -> str:
    try:
        return version(LIBRARY)
    except PackageNotFoundError:
        return "0.0.0"
