"""Cherry-picks: which snapshots can be made again on another line, and the entries of what they added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import InvalidArgumentError, VersionNotFoundError
from boathouse.iceberg.commit.staging import PUBLISHED, SOURCE, STAGED, staged_version, summary_of
from boathouse.iceberg.commit.summaries import REPLACES_PARTITIONS
from boathouse.iceberg.commit.written_columns import lacking
from boathouse.iceberg.files import UNITS_A_MANIFEST, Listing
from boathouse.iceberg.manifests.batches import read_files
from boathouse.iceberg.manifests.columns import TYPES, of_live
from boathouse.iceberg.manifests.records import ADDED, DELETED
from boathouse.iceberg.metadata.updates import MAIN
from boathouse.iceberg.refs import ref_of
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.edits import CherryPick, Edit, RemoveFiles, SetRef
from boathouse.table.features import Picked
from boathouse.table.location import Version
from boathouse.table.refs import Ref
from boathouse.types import PartitionSpec

_INHERITED: Final = ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IcebergCherryPicks:
    """See `table.features.CherryPicks`: the rules of the reference's `CherryPickOperation`."""

    head: IcebergSnapshot

    def staged(self, name: str) -> Version:
        return staged_version(self.head.metadata, name)

    def pick(self, version: Version) -> Picked:
        metadata, head = self.head.metadata, self.head
        source = metadata.snapshots.get(version)
        if source is None:
            raise VersionNotFoundError(
                f"snapshot {version} does not exist", where=head.token, advice="inspect.snapshots() lists them"
            )
        line = list(metadata.ancestors(head.version or None))
        self._check_new(version, source, line)
        summary, parent = summary_of(source), source.get("parent-snapshot-id")
        none = head.listing.schema_of_files().empty_table()
        listing = listing_of(head, source)
        if (parent or None) == (head.version or None):
            name = head.ref or MAIN
            before = metadata.refs.get(name)
            ref = Ref(name, "branch", version) if before is None else ref_of(name, before, head.token).at(version)
            return Picked((SetRef(ref),), self._added(listing, version), none)
        column = lacking(metadata, version, metadata.schema)
        if column is not None:
            raise self._refused(version, f"its rows lack the required column `{column}`")
        if summary.get("operation") == "append":
            return Picked((self._edit(version, summary),), self._added(listing, version), none)
        if summary.get("operation") == "overwrite" and summary.get(REPLACES_PARTITIONS, "").lower() == "true":
            return self._overwrite(version, source, listing, line)
        raise self._refused(version, "it is no append, no overwrite of partitions, and does not follow the head")

    def _overwrite(self, version: Version, source: Json, listing: Listing, line: Sequence[Json]) -> Picked:
        """An overwrite of partitions, which must be as they were."""
        parent = source.get("parent-snapshot-id")
        ids = [int(s["snapshot-id"]) for s in line]
        if parent is not None and parent not in ids:
            raise self._refused(version, f"it overwrites partitions of snapshot {parent}, which is no ancestor")
        added = self._added(listing, version)
        since = pa.array(ids if parent is None else ids[: ids.index(parent)], pa.int64())
        units = pa.Table.from_batches(self.head.files(), self.head.listing.schema_of_files())
        adders = pc.struct_field(units.column("native"), "snapshot_id")
        changed = _tuples(units.filter(pc.is_in(adders, since))) & _tuples(added)
        if changed:
            raise self._refused(version, f"the partition {min(changed)} has new files since")
        gone = pa.array(list(_gone(listing, version)), pa.string())
        removed = units.filter(pc.is_in(units.column("path"), gone))
        if removed.num_rows < len(gone):
            raise self._refused(version, f"{len(gone) - removed.num_rows} of the files that it removed are gone")
        edits: tuple[Edit, ...] = (self._edit(version, summary_of(source)),)
        return Picked((*edits, RemoveFiles(removed)) if removed.num_rows else edits, added, removed)

    def _check_new(self, version: Version, source: Json, line: Sequence[Json]) -> None:
        """Raises InvalidArgumentError if the branch has the changes already: by this snapshot, or by one of its
        name."""
        name = summary_of(source).get(STAGED)
        for ancestor in line:
            summary = summary_of(ancestor)
            if ancestor["snapshot-id"] == version or summary.get(SOURCE) == str(version):
                raise self._refused(version, f"snapshot {ancestor['snapshot-id']} of the branch has its changes")
            if name is not None and name in (summary.get(STAGED), summary.get(PUBLISHED)):
                raise self._refused(version, f"{name!r} has been published by snapshot {ancestor['snapshot-id']}")

    def _refused(self, version: Version, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"snapshot {version} cannot be cherry-picked: {why}",
            where=self.head.token,
            advice="write the rows again, or make its branch the current one by refs.set_current()",
        )

    def _edit(self, version: Version, summary: Mapping[str, str]) -> CherryPick:
        name = summary.get(STAGED)
        published = {} if name is None else {PUBLISHED: name}
        return CherryPick(version, {SOURCE: str(version), **published})

    def _added(self, listing: Listing, version: Version) -> pa.Table:
        """FILES of what the snapshot added."""
        request = listing.request((), None)
        found = []
        for i, m in enumerate(m for m in listing.data_manifests if m.snapshot_id == version and not m.empty):
            for batch in read_files(listing.task(request, m, i * UNITS_A_MANIFEST)):
                adders = batch.column("native").field("snapshot_id")
                found.append(batch.replace_schema_metadata(None).filter(pc.equal(adders, version)))
        return pa.Table.from_batches(found, listing.schema_of_files())


def listing_of(head: IcebergSnapshot, source: Json) -> Listing:
    """The files of another snapshot, by the reader of the head."""
    found = Listing(head.metadata, source, head.metadata.schema, head.paths, head.stores, verify=False)
    found.reader.adopt(head.listing.reader)
    return found


def entries_added(head: IcebergSnapshot, version: Version) -> Iterator[tuple[PartitionSpec, pa.Table]]:
    """Entries of the data files that a snapshot added, as added ones that inherit everything; by manifest."""
    listing = listing_of(head, head.metadata.snapshots[version])
    for source in listing.data_manifests:
        if source.snapshot_id != version or source.empty:
            continue
        spec = listing.spec(source)
        entries = of_live(listing.live(source), spec, source)
        entries = entries.filter(pc.equal(entries.column("snapshot_id"), version))
        if entries.num_rows:
            status = pa.repeat(pa.scalar(ADDED, TYPES["status"]), entries.num_rows)
            entries = entries.set_column(0, "status", status)
            for name in _INHERITED:
                i = entries.schema.get_field_index(name)
                entries = entries.set_column(i, entries.schema.field(i), pa.nulls(entries.num_rows, TYPES[name]))
            yield spec, entries


def _gone(listing: Listing, version: Version) -> Iterator[str]:
    """The URIs of the data files that the snapshot removed."""
    for source in listing.data_manifests:
        if source.snapshot_id == version:
            for entry in listing.entries(source, live_only=False, metrics=frozenset()):
                if entry["status"] == DELETED and entry["snapshot_id"] == version:
                    yield listing.paths.uri(entry["data_file"]["file_path"])


def _tuples(units: pa.Table) -> set[str]:
    """The partitions of these units, as text."""
    return {
        f"{spec} {tuple((row or {}).values())!r}"
        for spec, row in zip(units.column("spec").to_pylist(), units.column("partition").to_pylist())
    }
