"""Preparing a commit: manifests, a manifest list, and the next metadata document (spec, "Optimistic Concurrency").

Manifests of added files contain only inherited values, so they are the same at every attempt and are written once.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import entropy
from boathouse.errors import (
    AlreadyExistsError,
    CorruptTableError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from boathouse.iceberg import carried, documents, manifests, readback, updates
from boathouse.iceberg.evolve import edit_schema
from boathouse.iceberg.files import Listing
from boathouse.iceberg.manifests import DATA, DELETED, EXISTING, Entry, ManifestFile, Row
from boathouse.iceberg.metadata import Json, TableMetadata, dump
from boathouse.iceberg.paths import METADATA_FOLDER, compressed, next_of_catalog, next_uri
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.summaries import Tallies, described, summary
from boathouse.iceberg.write import added_entries
from boathouse.storage import PutMode, absolute, basename, join
from boathouse.table.attempt import Attempt
from boathouse.table.change import Change
from boathouse.table.commit import discard
from boathouse.table.context import TableContext
from boathouse.table.edits import (
    AddColumn,
    AddFiles,
    CreateTable,
    DropColumn,
    RemoveAll,
    RemoveFiles,
    RenameColumn,
    ReplaceSchema,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.location import CommitId
from boathouse.types import PartitionSpec, Schema

METADATA_PATH: Final = "write.metadata.path"
ENTRIES_PER_MANIFEST: Final = 20_000
OFFERED: Final = (
    AddFiles, RemoveFiles, RemoveAll, ReplaceSchema, AddColumn, RenameColumn, DropColumn, SetType, SetProperties,
    SetTransaction,
)  # fmt: skip
_CODECS = {"gzip": "deflate", "zstd": "zstandard", "uncompressed": "null"}


def prepare(change: Change, head: IcebergSnapshot) -> Attempt:
    """Writes the manifests and the list of the commit that follows `head`, and returns its metadata document.

    Raises if the commit is impossible; then nothing of it is left behind.
    """
    change.require(*OFFERED)
    document = dict(head.metadata.document)
    for properties in change.all(SetProperties):
        documents.set_properties(document, properties)
    for edit in change.schema_edits:
        edit_schema(document, edit, head.token)
    documents.settle_sort_order(document)
    _check_transactions(change)
    following = next_uri if head.context.catalog is None else next_of_catalog
    return _attempt(change, head.context, document, following(head.token), head)


def create(change: Change, context: TableContext, created: CreateTable, schema: Schema, spec: PartitionSpec) -> Attempt:
    """The first commit of a table, as `prepare`."""
    change.require(CreateTable, AddFiles, SetTransaction)
    document = documents.new_document(created, schema, spec, context.location.uri)
    codec = created.properties.get("write.metadata.compression-codec", "none").lower()
    if codec not in ("none", "gzip"):
        raise UnsupportedFeatureError(f"metadata compression {codec!r} is not offered", advice="use none or gzip")
    name = "v1.gz.metadata.json" if codec == "gzip" else "v1.metadata.json"
    return _attempt(change, context, document, join(context.location.uri, METADATA_FOLDER, name), None)


def _attempt(change: Change, context: TableContext, document: Json, uri: str, head: IcebergSnapshot | None) -> Attempt:
    """The attempt that makes `document`, completed by a snapshot if files are added or removed, the next version."""
    before = None if head is None else head.metadata
    now = entropy.current().now_ms()
    now = now if before is None else max(now, int(before.document["last-updated-ms"]) + 1)
    work: _Work | None = None
    snapshot: Json | None = None
    try:
        if _makes_snapshot(change):
            work = _Work(change, head, document, context, now)
            snapshot = work.snapshot()
            documents.add_snapshot(document, snapshot, change.ref)
        documents.finish(document, before, now, change.write_id, None if work is not None else described(change))
        body = dump(document)
        readback.check_metadata(body, uri, before, snapshot)
    except Exception:
        if work is not None:
            discard(context.stores, (*work.side, *work.kept))
        raise
    after = TableMetadata(document, uri)
    return Attempt(
        uri,
        gzip.compress(body, mtime=0) if compressed(uri) else body,
        CommitId(None if work is None else work.snapshot_id, basename(uri)),
        () if work is None else tuple(work.side),
        None if head is None else head.token,
        updates.updates(before, after),
        updates.requirements(before, after, change.ref),
    )


def _check_transactions(change: Change) -> None:
    """A snapshot's summary records one transaction; without a snapshot there is no place for any."""
    if change.txn is not None and not _makes_snapshot(change):
        raise UnsupportedFeatureError(
            f"Iceberg keeps application transactions in snapshots, and {change.operation} creates none",
            where=str(change.location),
            advice="leave txn out",
        )
    if len(list(change.all(SetTransaction))) > 1:
        raise UnsupportedFeatureError(
            "more than one application transaction in a commit is not offered for Iceberg tables",
            where=str(change.location),
            advice="leave out all but one",
        )


def _makes_snapshot(change: Change) -> bool:
    return any(isinstance(e, AddFiles | RemoveFiles | RemoveAll) for e in change.edits)


@dataclass
class _Work:
    """One attempt at a snapshot: the files that it writes, and its metrics."""

    change: Change
    head: IcebergSnapshot | None
    document: Json
    context: TableContext
    now: int
    side: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Manifests of added files: the next attempt reuses them."""
    tallies: Tallies = field(default_factory=Tallies)
    written: int = 0

    def __post_init__(self) -> None:
        self.metadata = TableMetadata(self.document, "" if self.head is None else self.head.token)
        self.snapshot_id = _new_id(self.metadata.snapshots)
        self.sequence = int(self.document["last-sequence-number"]) + 1
        self.uuid = str(entropy.current().uuid4())
        self.properties = self.metadata.properties
        codec = self.properties.get("write.avro.compression-codec", "gzip").lower()
        self.codec = _CODECS.get(codec, "deflate")
        root = self.context.location.uri if self.head is None else self.head.paths.root
        place = self.properties.get(METADATA_PATH)
        self.folder = absolute(place) if place else join(root, METADATA_FOLDER)

    def snapshot(self) -> Json:
        """The snapshot object, its manifests and manifest list written."""
        # Everything that may be unreadable is read before anything is written: manifests of added files outlive an
        # attempt.
        carried = self.carry()
        rows = [*self.add(), *carried]
        parent = None if self.head is None else self.head.snapshot
        uri = join(self.folder, f"snap-{self.snapshot_id}-1-{self.uuid}.avro")
        keys = {"snapshot-id": str(self.snapshot_id), "sequence-number": str(self.sequence)}
        keys["parent-snapshot-id"] = "null" if parent is None else str(parent["snapshot-id"])
        data = manifests.write_list(rows, keys, self.codec)
        readback.check_list(data, rows, uri)
        self.put(uri, data)
        document: Json = {"snapshot-id": self.snapshot_id}
        if parent is not None:
            document["parent-snapshot-id"] = parent["snapshot-id"]
        return {
            **document,
            "sequence-number": self.sequence,
            "timestamp-ms": self.now,
            "summary": summary(self.change, self.tallies, parent),
            "manifest-list": uri,
            "schema-id": self.document["current-schema-id"],
        }

    def put(self, uri: str, data: bytes) -> None:
        storage, key = self.context.stores.resolve(uri)
        storage.put(key, data, PutMode.CREATE)
        self.side.append(uri)

    def add(self) -> list[Row]:
        """New manifests for the added files, one for each spec and sequence number they were written with."""
        rows: list[Row] = []
        for sequence, outcomes in self.added():
            for spec_id in sorted(set(outcomes.column("spec").to_pylist())):
                spec = self.metadata.partitioning.spec(spec_id)
                files = outcomes.filter(pc.equal(outcomes.column("spec"), spec_id))
                for start in range(0, files.num_rows, ENTRIES_PER_MANIFEST):
                    part = files.slice(start, ENTRIES_PER_MANIFEST)
                    entries = added_entries(part, self.file_schema(), spec, self.properties, sequence)
                    self.tallies.added(entries, spec_id)
                    rows.append(self.added_manifest(entries, spec))
        return rows

    def added(self) -> list[tuple[int | None, pa.Table]]:
        """The OUTCOMES rows of added files by their data sequence number (None: this commit's)."""
        found: dict[int | None, list[pa.Table]] = {}
        for edit in self.change.all(AddFiles):
            if edit.sequence is not None and not 0 <= edit.sequence < self.sequence:
                raise InvalidArgumentError(
                    f"files are added at sequence number {edit.sequence}, which no commit of the table has",
                    where=str(self.change.location),
                )
            found.setdefault(edit.sequence, []).append(edit.outcomes)
        return [(sequence, pa.concat_tables(tables)) for sequence, tables in found.items()]

    def file_schema(self) -> Schema:
        """The schema that the added files were written with: the planned one, unless the change has its own or evolves
        it, which is allowed on the planned metadata only."""
        planned = self.change.planned
        return self.metadata.schema if planned is None or self.change.schema_edits else planned.schema

    def added_manifest(self, entries: Sequence[Entry], spec: PartitionSpec) -> Row:
        """A manifest named by its content: a later attempt reuses it, and never gets another one."""
        names = "\n".join(
            [self.change.write_id, str(spec.id), self.codec, *(e["data_file"]["file_path"] for e in entries)]
        )
        uri = join(self.folder, f"{hashlib.sha256(names.encode()).hexdigest()[:32]}-m0.avro")
        data, row = self.encode(uri, entries, spec, DATA)
        storage, key = self.context.stores.resolve(uri)
        self.kept.append(uri)
        try:
            storage.put(key, data, PutMode.CREATE)
        except AlreadyExistsError:
            row["manifest_length"] = storage.head(key).size
        return row

    def encode(self, uri: str, entries: Sequence[Entry], spec: PartitionSpec, content: int) -> tuple[bytes, Row]:
        """A manifest, and its row in the list."""
        schema_id = int(self.document["current-schema-id"])
        data = manifests.write_entries(entries, spec, self.metadata.schema, schema_id, content, self.codec)
        row = manifests.list_row(uri, len(data), spec, entries, content, self.sequence, self.snapshot_id)
        readback.check_manifest(data, row, entries, spec)
        return data, row

    def carry(self) -> list[Row]:
        """The head's manifests: those that lose files are rewritten, those without live files are dropped."""
        if self.head is None:
            return []
        listing = self.head.listing
        planned = self.change.planned
        if isinstance(planned, IcebergSnapshot):
            listing.reader.adopt(planned.listing.reader)
        if self.change.edit(RemoveAll) is not None:
            return [self.rewrite(listing, m, None)[0] for m in listing.manifest_files if not m.empty]
        removed = self.change.removed
        if removed is None or removed.num_rows == 0:
            return [self.carried(listing, m) for m in listing.manifest_files if not m.empty]
        wanted = set(removed.column("path").to_pylist())
        named = set(pc.struct_field(removed.column("native"), "manifest").to_pylist())
        return self.without(listing, wanted, named)

    def without(self, listing: Listing, wanted: set[str], named: Collection[str]) -> list[Row]:
        """All manifests with the given files removed: searched first where they were planned, then elsewhere."""
        live = [m for m in listing.manifest_files if not m.empty]
        order = sorted(range(len(live)), key=lambda i: live[i].path not in named)
        rows: dict[int, Row] = {}
        for i in order:
            if wanted and live[i].content == DATA:
                rows[i], found = self.rewrite(listing, live[i], wanted)
                wanted = wanted - found
            else:
                rows[i] = self.carried(listing, live[i])
        if wanted:
            raise CorruptTableError(
                f"{len(wanted)} files to remove are not in the head, such as {min(wanted)}",
                where=str(self.change.location),
            )
        return [rows[i] for i in range(len(live))]

    def rewrite(self, listing: Listing, source: ManifestFile, gone: set[str] | None) -> tuple[Row, set[str]]:
        """The manifest with the files in `gone` (None: all) marked deleted, and which of them it had.

        It is unchanged if it has none of them.
        """
        uris = listing.live_uris(source)
        found = {u for u in uris if gone is None or u in gone}
        if not found:
            return self.carried(listing, source), found
        entries = listing.entries(source)
        removed = [e for e, u in zip(entries, uris) if u in found]
        spec = listing.spec(source)
        carried.check_spec(spec, source.path)
        self.tallies.removed(removed, spec.id)
        kept = [carried.entry(self.marked(e, u in found), spec, source.path) for e, u in zip(entries, uris)]
        uri = join(self.folder, f"{self.uuid}-m{self.written}.avro")
        self.written += 1
        data, row = self.encode(uri, kept, spec, source.content)
        self.put(uri, data)
        return row, found

    def carried(self, listing: Listing, source: ManifestFile) -> Row:
        """The row of an unchanged manifest."""
        return carried.row(source, lambda: listing.entries(source, live_only=False, metrics=frozenset()))

    def marked(self, entry: Entry, gone: bool) -> Entry:
        """Carried-over entries keep their sequence numbers, made explicit; a deleted one names the snapshot that
        deletes it."""
        if gone:
            return {**entry, "status": DELETED, "snapshot_id": self.snapshot_id}
        return {**entry, "status": EXISTING}


def _new_id(taken: Iterable[int]) -> int:
    """A positive random long that no snapshot of the table has."""
    known = set(taken)
    while True:
        bits = entropy.current().uuid4().int
        id = (bits ^ (bits >> 64)) & ((1 << 63) - 1)
        if id and id not in known:
            return id
