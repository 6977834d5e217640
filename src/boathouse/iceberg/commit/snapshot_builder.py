"""The files of a new snapshot: its manifests and its manifest list (spec, "Snapshots", "Optimistic Concurrency").

Manifests of added files contain only inherited values, so they are the same at every attempt and are written once; in
format version 1, where nothing is inherited, they name their snapshot and are written by every attempt.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, BoathouseError, CorruptTableError, InvalidArgumentError
from boathouse.iceberg.commit import delete_files, readback, row_ids
from boathouse.iceberg.commit.summaries import Tallies, summary
from boathouse.iceberg.files import Listing
from boathouse.iceberg.manifests import carried
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import by_snapshot, has_vectors, marked, of_live, only_files
from boathouse.iceberg.manifests.entries import LiveFiles
from boathouse.iceberg.manifests.merge import MergeRule
from boathouse.iceberg.manifests.records import DATA, DELETES, ManifestFile, Row
from boathouse.iceberg.metadata.document import Json, TableMetadata
from boathouse.iceberg.metadata.partitions import unknown_transforms
from boathouse.iceberg.metadata.versions import NEXT_ROW_ID
from boathouse.iceberg.paths import METADATA_FOLDER
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.write import added_columns, data_folder
from boathouse.storage import PutMode, absolute, join
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.edits import AddDeletes, AddFiles, RemoveAll, SetDeletes
from boathouse.types import PartitionSpec, Schema

log = logging.getLogger("boathouse")
FIRST_ROW_ID: Final = "first-row-id"
METADATA_PATH: Final = "write.metadata.path"
ENTRIES_PER_MANIFEST: Final = 20_000
_CODECS = {"gzip": "deflate", "zstd": "zstandard", "uncompressed": "null"}
_REQUESTS: Final = 8
"""So many manifests are rewritten at once."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest of the new snapshot, as its row of the list says.

    One of the head that did not change is `source`; a new one has `data`, which is not written yet, and its entries,
    if they are added by this commit. A `lasting` one is the same at every attempt.
    """

    row: Row
    source: ManifestFile | None = None
    data: bytes = b""
    added: pa.Table | None = None
    lasting: bool = False

    @property
    def size(self) -> int:
        return int(self.row["manifest_length"])


@dataclass
class SnapshotBuilder:
    """One attempt at a snapshot: the files that it writes, and its metrics."""

    change: Change
    head: IcebergSnapshot | None
    document: Json
    context: TableContext
    side: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Manifests of added files: the next attempt reuses them."""
    tallies: Tallies = field(default_factory=Tallies)
    named: int = 0
    further: list[tuple[str, bytes]] = field(default_factory=list)
    """Files beside the manifests, which are not written yet."""

    def __post_init__(self) -> None:
        self.metadata = TableMetadata(self.document, "" if self.head is None else self.head.token)
        self.version = self.metadata.format
        self.snapshot_id = _new_id(self.metadata.snapshots)
        self.sequence = int(self.document["last-sequence-number"]) + 1 if self.version.sequence_numbers else 0
        self.uuid = str(system.current().uuid4())
        self.properties = self.metadata.properties
        codec = self.properties.get("write.avro.compression-codec", "gzip").lower()
        self.codec = _CODECS.get(codec, "deflate")
        self.root = self.context.location.uri if self.head is None else self.head.paths.root
        place = self.properties.get(METADATA_PATH)
        self.folder = absolute(place) if place else join(self.root, METADATA_FOLDER)

    def snapshot(self) -> Json:
        """The snapshot object, its manifests and manifest list written."""
        # Everything that may be unreadable is read before anything is written: manifests of added files outlive an
        # attempt.
        listed = self.merged([*self.add(), *self.add_vectors(), *self.add_positions(), *self.carry()])
        for uri, data in self.further:
            self.put(uri, data)
        for i, manifest in enumerate(listed):
            if manifest.lasting:
                listed[i] = self.put_added(manifest)
            elif manifest.data:
                self.put(manifest.row["manifest_path"], manifest.data)
        rows, lineage = self.numbered([manifest.row for manifest in listed])
        parent = None if self.head is None else self.head.snapshot
        # Others number attempts from 1: a list of no version with a 0 is known as what a killed first commit left.
        uri = join(self.folder, f"snap-{self.snapshot_id}-{0 if self.head is None else 1}-{self.uuid}.avro")
        numbers = {"sequence-number": self.sequence} if self.version.sequence_numbers else {}
        keys = {"snapshot-id": str(self.snapshot_id), **{k: str(v) for k, v in numbers.items()}}
        keys["parent-snapshot-id"] = "null" if parent is None else str(parent["snapshot-id"])
        if lineage:
            keys[FIRST_ROW_ID] = str(lineage[FIRST_ROW_ID])
        data = manifest_writer.write_list(rows, keys, self.codec, self.version)
        readback.check_list(data, rows, uri)
        self.put(uri, data)
        document: Json = {"snapshot-id": self.snapshot_id}
        if parent is not None:
            document["parent-snapshot-id"] = parent["snapshot-id"]
        return {
            **document,
            **numbers,
            "timestamp-ms": self.document["last-updated-ms"],
            "summary": summary(self.change, self.tallies, parent),
            "manifest-list": uri,
            "schema-id": self.document["current-schema-id"],
            **lineage,
        }

    def numbered(self, rows: list[Row]) -> tuple[list[Row], Json]:
        """The rows of the list with the ids that this commit assigns, and what its snapshot says of them."""
        if not self.version.row_lineage:
            return rows, {}
        first = int(self.document[NEXT_ROW_ID])
        found, following = row_ids.numbered(rows, first)
        return found, {FIRST_ROW_ID: first, "added-rows": following - first}

    def put(self, uri: str, data: bytes) -> None:
        storage, key = self.context.stores.resolve(uri)
        storage.put(key, data, PutMode.CREATE)
        self.side.append(uri)

    def put_added(self, manifest: Listed) -> Listed:
        """A manifest named by its content: a later attempt reuses it, and never gets another one."""
        uri = manifest.row["manifest_path"]
        storage, key = self.context.stores.resolve(uri)
        self.kept.append(uri)
        try:
            storage.put(key, manifest.data, PutMode.CREATE)
        except AlreadyExistsError:
            return replace(manifest, row={**manifest.row, "manifest_length": storage.head(key).size})
        return manifest

    def add(self) -> list[Listed]:
        """New manifests for the added files, one for each spec and sequence number they were written with."""
        found: list[Listed] = []
        for sequence, outcomes in self.added():
            for spec_id in sorted(outcomes.column("spec").unique().to_pylist()):
                spec = self.metadata.partitioning.spec(spec_id)
                files = outcomes.filter(pc.equal(outcomes.column("spec"), spec_id))
                for start in range(0, files.num_rows, ENTRIES_PER_MANIFEST):
                    part = files.slice(start, ENTRIES_PER_MANIFEST)
                    entries = added_columns(part, self.file_schema(), spec, self.properties, sequence)
                    if not self.version.sequence_numbers:
                        entries = by_snapshot(entries, self.snapshot_id)
                    self.tallies.added(entries, spec)
                    made = self.encode(self.name_of(entries, spec), entries, spec)
                    found.append(replace(made, added=entries, lasting=self.version.sequence_numbers))
        return found

    def add_vectors(self) -> Iterator[Listed]:
        """New manifests of deletion vectors. What the head deletes already is in them, so that every attempt writes its
        own."""
        edits = list(self.change.all(SetDeletes))
        if not edits or self.head is None:
            return
        file = delete_files.vectors(edits, self.head, data_folder(self.properties, self.root))
        self.further.append((file.uri, file.data))
        for spec_id in sorted(file.units.column("spec").unique().to_pylist()):
            spec = self.metadata.partitioning.spec(spec_id)
            for entries in delete_files.parts(file.entries(spec)):
                self.tallies.added(entries, spec)
                yield replace(self.encode(self.new_name(), entries, spec, DELETES), added=entries)

    def add_positions(self) -> Iterator[Listed]:
        """New manifests of files of positions."""
        edits = list(self.change.all(AddDeletes))
        for spec_id in sorted({id for e in edits for id in e.outcomes.column("spec").to_pylist()}):
            spec = self.metadata.partitioning.spec(spec_id)
            for entries in delete_files.parts(delete_files.positions(edits, spec)):
                self.tallies.added(entries, spec)
                made = self.encode(self.name_of(entries, spec), entries, spec, DELETES)
                yield replace(made, added=entries, lasting=True)

    def added(self) -> list[tuple[int | None, pa.Table]]:
        """The OUTCOMES rows of added files by their data sequence number (None: this commit's)."""
        found: dict[int | None, list[pa.Table]] = {}
        for edit in self.change.all(AddFiles):
            if edit.sequence is not None and self.sequence and not 0 <= edit.sequence < self.sequence:
                raise InvalidArgumentError(
                    f"files are added at sequence number {edit.sequence}, which no commit of the table has",
                    where=str(self.change.location),
                )
            found.setdefault(edit.sequence if self.sequence else None, []).append(edit.outcomes)
        return [(sequence, pa.concat_tables(tables)) for sequence, tables in found.items()]

    def file_schema(self) -> Schema:
        """The schema that the added files were written with: the planned one, unless the change has its own or evolves
        it, which is allowed on the planned metadata only."""
        planned = self.change.planned
        return self.metadata.schema if planned is None or self.change.schema_edits else planned.schema

    def name_of(self, entries: pa.Table, spec: PartitionSpec) -> str:
        written = [self.change.write_id, str(spec.id), self.codec, str(self.version)]
        if not self.version.sequence_numbers:
            written.append(str(self.snapshot_id))
        names = "\n".join([*written, *entries.column("file_path").to_pylist()])
        return f"{hashlib.sha256(names.encode()).hexdigest()[:32]}-m0.avro"

    def new_name(self) -> str:
        self.named += 1
        return f"{self.uuid}-m{self.named - 1}.avro"

    def encode(self, name: str, entries: pa.Table, spec: PartitionSpec, content: int = DATA) -> Listed:
        """A new manifest."""
        uri = join(self.folder, name)
        schema_id = int(self.document["current-schema-id"])
        schema = self.metadata.schema
        data = manifest_writer.write(entries, spec, schema, schema_id, content, self.codec, self.version)
        row = manifest_writer.list_row(uri, len(data), spec, entries, content, self.sequence, self.snapshot_id)
        readback.check_manifest(data, row, entries, spec)
        return Listed(row, data=data)

    def carry(self) -> list[Listed]:
        """The head's manifests: those that lose files, or row deletes, are rewritten, those without live files are
        dropped."""
        if self.head is None:
            return []
        listing = self.head.listing
        planned = self.change.planned
        if isinstance(planned, IcebergSnapshot):
            listing.reader.adopt(planned.listing.reader)
        live = [m for m in listing.manifest_files if not m.empty]
        if self.change.edit(RemoveAll) is not None:
            return [made for made, _ in self.rewritten(listing, live, None)]
        removed = self.change.removed
        wanted: set[str] = set() if removed is None else set(removed.column("path").to_pylist())
        named = () if removed is None else set(pc.struct_field(removed.column("native"), "manifest").to_pylist())
        made = self.without(listing, live, wanted, named)
        made |= self.without_deletes(listing, live, wanted.union(*self.remarked()))
        return [made.get(i) or self.carried(listing, m) for i, m in enumerate(live)]

    def remarked(self) -> Iterator[list[str]]:
        """The units that get another vector."""
        for edit in self.change.all(SetDeletes):
            yield edit.units.column("path").to_pylist()

    def without(
        self, listing: Listing, live: Sequence[ManifestFile], wanted: set[str], named: Collection[str]
    ) -> dict[int, Listed]:
        """By their places, the manifests that had the given files: searched first where they were planned, then
        elsewhere."""
        made: dict[int, Listed] = {}
        for likely in (True, False):
            places = [i for i, m in enumerate(live) if m.content == DATA and (m.path in named) == likely]
            if not wanted:
                break
            for i, (manifest, found) in zip(places, self.rewritten(listing, [live[i] for i in places], wanted)):
                made[i] = manifest
                wanted = wanted - found
        if wanted:
            raise CorruptTableError(
                f"{len(wanted)} files to remove are not in the head, such as {min(wanted)}",
                where=str(self.change.location),
            )
        return made

    def without_deletes(self, listing: Listing, live: Sequence[ManifestFile], gone: set[str]) -> dict[int, Listed]:
        """By their places, the manifests that had row deletes of one of the given data files alone: vectors, and files
        of positions. Nothing else needs them: the file is gone, or has another vector."""
        places = [i for i, m in enumerate(live) if m.content != DATA] if gone else []
        found = self.rewritten(listing, [live[i] for i in places], gone)
        return {i: made for i, (made, _) in zip(places, found)}

    def rewritten(
        self, listing: Listing, sources: Sequence[ManifestFile], gone: set[str] | None
    ) -> Iterator[tuple[Listed, set[str]]]:
        """Each manifest with the files in `gone` (None: all) marked deleted, and which of them it had. One that has
        none of them is unchanged."""
        work = [partial(self.rewrite, listing, m, self.new_name(), gone) for m in sources]
        with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
            for made, removed in pool.map(_call, work) if len(work) > 1 else map(_call, work):
                if removed is None:
                    yield made, set()
                    continue
                self.tallies.removed(removed, self.metadata.partitioning.spec(made.row["partition_spec_id"]))
                yield made, set(listing.paths.uris(removed.column("file_path").combine_chunks()).to_pylist())

    def rewrite(
        self, listing: Listing, source: ManifestFile, name: str, gone: set[str] | None
    ) -> tuple[Listed, pa.Table | None]:
        """The manifest without the files in `gone`, and the entries of those that it had."""
        live = listing.live(source)
        lost = np.ones(len(live), np.bool_)
        if gone is not None and not self.keeps(live):
            return self.carried(listing, source), None
        if gone is not None:
            files = live.paths() if source.content == DATA else only_files(live)
            known = files.drop_null()
            uris = listing.paths.uris(known)
            found = known.filter(pc.is_in(uris, pa.array(gone, uris.type)))
            lost = pc.is_in(files, found).to_numpy(zero_copy_only=False)
        if not lost.any():
            return self.carried(listing, source), None
        spec = listing.spec(source)
        carried.check_spec(spec, source.path)
        entries = marked(of_live(live, spec, source), lost, self.snapshot_id)
        return self.encode(name, entries, spec, source.content), entries.filter(pa.array(lost))

    def keeps(self, live: LiveFiles) -> bool:
        """Whether a new manifest can say of these files what theirs says; vectors have no place in version 2."""
        return "vectors" in self.version.deletes or not has_vectors(live)

    def carried(self, listing: Listing, source: ManifestFile) -> Listed:
        """An unchanged manifest."""

        def counts() -> dict[str, int]:
            entries = listing.reader.entries(source, listing.paths.uri(source.path), listing.verify)
            found = entries.files(live_only=False)
            statuses = longs(found.columns.longs(("status",))[0])
            return manifest_writer.counts(pa.table({"status": statuses, "record_count": longs(found.rows)}))

        return Listed(carried.row(source, counts, self.version), source)

    def merged(self, listed: list[Listed]) -> list[Listed]:
        """The manifests, where files are added: small ones of a kind as one."""
        rule = MergeRule.of(self.properties)
        if not rule.enabled or all(m.added is None for m in listed):
            return listed
        found: list[Listed] = []
        alike: dict[tuple[int, int], list[Listed]] = {}
        grows = {m.row["content"] for m in listed if m.added is not None}
        for m in listed:
            if m.row["content"] in grows and (m.source is not None or m.added is not None):
                alike.setdefault((-m.row["content"], m.row["partition_spec_id"]), []).append(m)
            else:
                found.append(m)
        for (content, spec_id), manifests in sorted(alike.items(), reverse=True):
            spec = self.metadata.partitioning.spec(spec_id)
            if unknown_transforms(spec):
                found += manifests
                continue
            for group in rule.groups(manifests, lambda m: m.size):
                found += self.one(group, spec, -content)
        return found

    def one(self, group: Sequence[Listed], spec: PartitionSpec, content: int) -> Sequence[Listed]:
        """These manifests as one. Those that cannot be read stay: a commit that only adds does not need them."""
        if len(group) < 2:
            return group
        tables = []
        try:
            for m in group:
                if m.source is None:
                    tables.append(m.added)
                elif self.head is not None:
                    live = self.head.listing.live(m.source)
                    if not self.keeps(live):
                        return group
                    tables.append(of_live(live, spec, m.source))
        except BoathouseError as error:
            log.warning("manifests are not merged: %s", error)
            return group
        return [self.encode(self.new_name(), pa.concat_tables(tables), spec, content)]


def _call(work: Callable[[], tuple[Listed, pa.Table | None]]) -> tuple[Listed, pa.Table | None]:
    return work()


def _new_id(taken: Iterable[int]) -> int:
    """A positive random long that no snapshot of the table has."""
    known = set(taken)
    while True:
        bits = system.current().uuid4().int
        id = (bits ^ (bits >> 64)) & ((1 << 63) - 1)
        if id and id not in known:
            return id
