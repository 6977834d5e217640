"""The files of a new snapshot: its manifests and its manifest list (spec, "Snapshots", "Optimistic Concurrency").

Manifests of added files contain only inherited values, so they are the same at every attempt and are written once; in
format version 1, where nothing is inherited, they name their snapshot and are written by every attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, BoathouseError, InvalidArgumentError
from boathouse.iceberg.commit import delete_files, key_deletes, readback, row_ids
from boathouse.iceberg.commit.cherry_pick import entries_added
from boathouse.iceberg.commit.clustered import clustered
from boathouse.iceberg.commit.head_manifests import HeadManifests
from boathouse.iceberg.commit.new_manifests import Listed, ManifestMaker
from boathouse.iceberg.commit.new_paths import check_new
from boathouse.iceberg.commit.summaries import Tallies, summary
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import by_snapshot, of_live
from boathouse.iceberg.manifests.merge import MergeRule
from boathouse.iceberg.manifests.records import DELETES, Row
from boathouse.iceberg.metadata.document import Json, TableMetadata
from boathouse.iceberg.metadata.metrics_modes import modes
from boathouse.iceberg.metadata.partitions import unknown_transforms
from boathouse.iceberg.metadata.sort_orders import wanted_order
from boathouse.iceberg.metadata.versions import NEXT_ROW_ID
from boathouse.iceberg.paths import METADATA_FOLDER
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.write import added_columns, data_folder
from boathouse.storage import PutMode, absolute, join
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.edits import AddDeletes, AddFiles, CherryPick, RewriteManifests, SetDeletes
from boathouse.types import PartitionSpec, Schema

log = logging.getLogger("boathouse")
FIRST_ROW_ID: Final = "first-row-id"
METADATA_PATH: Final = "write.metadata.path"
ENTRIES_PER_MANIFEST: Final = 20_000
FEWEST_ENTRIES: Final = 10
"""So many entries a manifest has at least, whatever size is wanted: readers ask for each manifest."""


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
    further: list[tuple[str, bytes]] = field(default_factory=list)
    """Files beside the manifests, which are not written yet."""

    def __post_init__(self) -> None:
        self.metadata = TableMetadata(self.document, "" if self.head is None else self.head.token)
        self.version = self.metadata.format
        self.snapshot_id = _new_id(self.metadata.snapshots)
        self.sequence = int(self.document["last-sequence-number"]) + 1 if self.version.sequence_numbers else 0
        self.properties = self.metadata.properties
        self.root = self.context.location.uri if self.head is None else self.head.paths.root
        place = self.properties.get(METADATA_PATH)
        folder = absolute(place) if place else join(self.root, METADATA_FOLDER)
        self.maker = ManifestMaker(self.metadata, self.snapshot_id, self.sequence, self.change.write_id, folder)

    def snapshot(self) -> Json:
        """The snapshot object, its manifests and manifest list written."""
        # Everything that may be unreadable is read before anything is written: manifests of added files outlive an
        # attempt.
        listed = self.merged([*self.add(), *self.picked(), *self.add_vectors(), *self.add_deletes(), *self.carried()])
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
        attempt = 0 if self.head is None else 1
        uri = join(self.maker.folder, f"snap-{self.snapshot_id}-{attempt}-{self.maker.uuid}.avro")
        numbers = {"sequence-number": self.sequence} if self.version.sequence_numbers else {}
        keys = {"snapshot-id": str(self.snapshot_id), **{k: str(v) for k, v in numbers.items()}}
        keys["parent-snapshot-id"] = "null" if parent is None else str(parent["snapshot-id"])
        if lineage:
            keys[FIRST_ROW_ID] = str(lineage[FIRST_ROW_ID])
        data = manifest_writer.write_list(rows, keys, self.maker.codec, self.version)
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
        check_new(self.change, self.head)
        found: list[Listed] = []
        schema = self.file_schema()
        target = MergeRule.of(self.properties).target_bytes
        wanted = modes(schema, self.properties, wanted_order(self.document, schema).bounded)
        for sequence, outcomes in self.added():
            for spec_id in sorted(outcomes.column("spec").unique().to_pylist()):
                spec = self.metadata.partitioning.spec(spec_id)
                files = outcomes.filter(pc.equal(outcomes.column("spec"), spec_id))
                for start in range(0, files.num_rows, ENTRIES_PER_MANIFEST):
                    part = files.slice(start, ENTRIES_PER_MANIFEST)
                    entries = added_columns(part, schema, spec, wanted, sequence)
                    if not self.version.sequence_numbers:
                        entries = by_snapshot(entries, self.snapshot_id)
                    self.tallies.added(entries, spec)
                    for some, made in self.encoded(entries, spec, target):
                        found.append(replace(made, added=some, lasting=self.version.sequence_numbers))
        return found

    def picked(self) -> Iterator[Listed]:
        """New manifests of what other snapshots added."""
        for edit in self.change.all(CherryPick):
            assert self.head is not None
            for spec, entries in entries_added(self.head, edit.version):
                if not self.version.sequence_numbers:
                    entries = by_snapshot(entries, self.snapshot_id)
                self.tallies.added(entries, spec)
                made = self.maker.encode(self.maker.name_of(entries, spec), entries, spec)
                yield replace(made, added=entries, lasting=self.version.sequence_numbers)

    def encoded(self, entries: pa.Table, spec: PartitionSpec, target: int) -> Iterator[tuple[pa.Table, Listed]]:
        """Manifests of added entries, each of about `target` bytes at most."""
        made = self.maker.encode(self.maker.name_of(entries, spec), entries, spec)
        parts = min(entries.num_rows // FEWEST_ENTRIES, -(-made.size // max(1, target)))
        if parts < 2:
            yield entries, made
            return
        size = -(-entries.num_rows // parts)
        for start in range(0, entries.num_rows, size):
            some = entries.slice(start, size)
            yield some, self.maker.encode(self.maker.name_of(some, spec), some, spec)

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
                yield replace(self.maker.encode(self.maker.new_name(), entries, spec, DELETES), added=entries)

    def add_deletes(self) -> Iterator[Listed]:
        """New manifests of files of positions and of keys."""
        edits = list(self.change.all(AddDeletes))
        found: list[tuple[PartitionSpec, pa.Table]] = []
        for spec_id in sorted({id for e in edits for id in e.outcomes.column("spec").to_pylist()}):
            spec = self.metadata.partitioning.spec(spec_id)
            found.append((spec, delete_files.positions(edits, spec)))
        found += key_deletes.entries(self.change, self.metadata)
        for spec, deletes in found:
            for entries in delete_files.parts(deletes):
                self.tallies.added(entries, spec)
                made = self.maker.encode(self.maker.name_of(entries, spec), entries, spec, DELETES)
                yield replace(made, added=entries, lasting=True)

    def carried(self) -> list[Listed]:
        """The head's manifests."""
        if self.head is None:
            return []
        edit = self.change.edit(RewriteManifests)
        if edit is not None:
            return clustered(self.head, edit, self.maker, self.tallies)
        return HeadManifests(self.head, self.change, self.maker, self.tallies).after()

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
                    if not self.maker.keeps(live):
                        return group
                    tables.append(of_live(live, spec, m.source))
        except BoathouseError as error:
            log.warning("manifests are not merged: %s", error)
            return group
        return [self.maker.encode(self.maker.new_name(), pa.concat_tables(tables), spec, content)]


def _new_id(taken: Iterable[int]) -> int:
    """A positive random long that no snapshot of the table has."""
    known = set(taken)
    while True:
        bits = system.current().uuid4().int
        id = (bits ^ (bits >> 64)) & ((1 << 63) - 1)
        if id and id not in known:
            return id
