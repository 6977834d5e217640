"""Commits: a change prepared on the newest version, as manifest bytes, transaction file and deletion files."""

from __future__ import annotations

from dataclasses import replace

from boathouse.bits.library import LIBRARY, library_version
from boathouse.bits.system import current
from boathouse.errors import (
    CorruptTableError,
    InvalidArgumentError,
    ReadOnlyError,
    UnsafeStorageError,
    UnsupportedFeatureError,
)
from boathouse.lance.commit.properties import properties_of
from boathouse.lance.manifests import dictionaries, features
from boathouse.lance.manifests.file import serialise
from boathouse.lance.manifests.messages import Timestamp, Transaction, WriterVersion
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import manifest_uri
from boathouse.lance.new_files import put_new
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.operations.known import CLONE, CREATE, ours
from boathouse.lance.paths import TRANSACTIONS
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join
from boathouse.table.attempt import Attempt
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.edits import (
    AddColumn,
    AddColumnFiles,
    AddFiles,
    CastColumn,
    CloneTable,
    CreateTable,
    DropColumn,
    DropIndex,
    RemoveAll,
    RemoveFiles,
    RenameColumn,
    ReplaceSchema,
    RestoreTo,
    SetComment,
    SetDeletes,
    SetIndex,
    SetNullable,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.location import CommitId
from boathouse.table.metadata_columns import ROW_ID
from boathouse.table.version import Follows

_OFFERED = (
    CloneTable,
    CreateTable,
    AddFiles,
    RemoveFiles,
    RemoveAll,
    SetDeletes,
    SetTransaction,
    ReplaceSchema,
    AddColumn,
    RenameColumn,
    DropColumn,
    SetType,
    CastColumn,
    AddColumnFiles,
    SetComment,
    SetNullable,
    SetProperties,
    SetIndex,
    DropIndex,
    RestoreTo,
)


def check_writable(snapshot: LanceSnapshot) -> None:
    """Raises if the table may not be written here. UnsupportedFeatureError, UnsafeStorageError, CorruptTableError."""
    where = snapshot.location.uri
    if snapshot.tagged:
        raise ReadOnlyError(
            f"`{snapshot.ref}` is a tag, which cannot be written to", where=where, advice="open without ref="
        )
    features.check_writable(snapshot.manifest, where)
    if features.has_stable_row_ids(snapshot.manifest) and snapshot.schema.places.at(ROW_ID):
        raise UnsupportedFeatureError(
            f"a column `{ROW_ID}` in a table with stable row ids: its rows cannot be told from their ids",
            where=where,
            advice="rename the column",
        )
    lost = dictionaries.missing(snapshot.manifest.fields, snapshot.document.values)
    if lost is not None:
        raise CorruptTableError(
            f"the values of the dictionary column `{lost.name}` are not in the manifest, where each commit has to "
            "put them again",
            where=where,
            advice="copy the rows into a new table",
        )
    ids = [f.id for f in snapshot.manifest.fragments]
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise CorruptTableError(
            f"fragment id {twice} occurs twice, so rows cannot be addressed",
            where=where,
            advice="copy the rows into a new table",
        )
    storage, _ = snapshot.stores.resolve(where)
    if store_name(snapshot.context) is None and not storage.atomic_create:
        raise UnsafeStorageError(
            "this store cannot create a file atomically",
            where=where,
            advice="use another store, or an external manifest store (the storage option manifest_store)",
        )


def prepare(change: Change, context: TableContext, head: LanceSnapshot | None = None) -> Attempt:
    """The next version on `head`: deletion files and transaction file are written, the manifest is the body."""
    change.require(*_OFFERED)
    if head is not None:
        check_writable(head)
        head = head.repaired()
    return sealed(change, context, _built(Build(change, head, context)), head)


def sealed(change: Change, context: TableContext, built: Built, head: LanceSnapshot | None = None) -> Attempt:
    """The attempt to put a manifest after `head`, or as the first of its table."""
    clock = current()
    base = head.version if head is not None else built.begins or 0
    version = base + 1 if built.begins is None else base
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
        version=version,
        timestamp=Timestamp.of_ms(max(clock.now_ms(), head.timestamp_ms if head is not None else 0)),
        transaction_file=name,
        writer_version=WriterVersion(library=LIBRARY, version=library_version()),
    )
    reader, writer = features.flags_of(manifest)
    manifest = replace(manifest, reader_feature_flags=reader, writer_feature_flags=writer)
    body = serialise(replace(built.document, manifest=manifest, transaction=transaction))
    side = built.side
    if separate:
        uri = join(context.location.uri, TRANSACTIONS, name)
        storage, key = context.stores.resolve(uri)
        put_new(storage, key, transaction.encode())
        side = (*side, uri)
    scheme = head.file.scheme if head is not None else "V2"
    return Attempt(
        manifest_uri(context.location, version, scheme),
        body,
        CommitId(version, str(version)),
        side,
        replaces=head.token if head is not None else None,
        updates=(transaction,),
        requirements=Follows.of(head),
    )


def _built(build: Build) -> Built:
    change = build.change
    where = change.location.uri
    operation = ours(change)
    if len([*change.all(SetTransaction)]) > 1:
        raise UnsupportedFeatureError("a Lance commit of several application transactions", where=where)
    if any(e.sequence is not None for e in change.all(AddFiles)):
        raise UnsupportedFeatureError("sequence numbers of files are not offered for Lance tables", where=where)
    if operation not in (CREATE, CLONE) and build.head is None:
        raise InvalidArgumentError("a change of a table that does not exist", where=where)
    return operation.build(build)
