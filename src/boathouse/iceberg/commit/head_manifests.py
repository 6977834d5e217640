"""The head's manifests in a new snapshot: those that lose files or row deletes are written anew, the others carried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.errors import CorruptTableError
from boathouse.iceberg.commit.new_manifests import Listed, ManifestMaker
from boathouse.iceberg.commit.summaries import Tallies
from boathouse.iceberg.files import Listing
from boathouse.iceberg.manifests import carried, rewrite
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.records import DATA, ManifestFile
from boathouse.iceberg.manifests.rewrite import Among, Lost, Replaced, RewriteTask
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import RemoveAll, ReplaceDeletes, SetDeletes


@dataclass(frozen=True, slots=True)
class HeadManifests:
    """Those of `head`, under a change that `maker` and `tallies` are for."""

    head: IcebergSnapshot
    change: Change
    maker: ManifestMaker
    tallies: Tallies

    @property
    def listing(self) -> Listing:
        return self.head.listing

    def after(self) -> list[Listed]:
        """Those of the next snapshot; manifests without live files are left out."""
        planned = self.change.planned
        if isinstance(planned, IcebergSnapshot):
            self.listing.reader.adopt(planned.listing.reader)
        live = [m for m in self.listing.manifest_files if not m.empty]
        if self.change.edit(RemoveAll) is not None:
            return [made for made, _ in self._rewritten([(m, rewrite.all_files) for m in live])]
        made = self._without_files(live) | self._without_deletes(live)
        return [made.get(i) or self._carried(m) for i, m in enumerate(live)]

    def _without_files(self, live: Sequence[ManifestFile]) -> dict[int, Listed]:
        """By their places, the manifests that had files to remove: first those where they were planned, which have them
        as long as they are in the head, then all others."""
        removed = self.change.removed
        if removed is None:
            return {}
        wanted = set(removed.column("path").to_pylist())
        named = _by_manifest(removed)
        made: dict[int, Listed] = {}
        for likely in (True, False):
            places = [i for i, m in enumerate(live) if m.content == DATA and (m.path in named) == likely]
            if not wanted:
                break
            rest = Among(frozenset(wanted))
            losing = [(live[i], named.get(live[i].path, rest)) for i in places]
            for i, (manifest, entries) in zip(places, self._rewritten(losing)):
                made[i] = manifest
                if entries is not None:
                    wanted = wanted - set(self._uris(entries.column("file_path").combine_chunks()).to_pylist())
        if wanted:
            raise CorruptTableError(
                f"{len(wanted)} files to remove are not in the head, such as {min(wanted)}",
                where=str(self.change.location),
            )
        return made

    def _without_deletes(self, live: Sequence[ManifestFile]) -> dict[int, Listed]:
        """By their places, the manifests that had row deletes of one data file alone, vectors or files of positions,
        which nothing needs any more: the file is gone, or has another vector."""
        removed = self.change.removed
        gone = set[str]() if removed is None else set(removed.column("path").to_pylist())
        gone.update(path for e in self.change.all(SetDeletes) for path in e.units.column("path").to_pylist())
        lost: Lost = Among(frozenset(gone), only_for=True)
        replaced = self.change.edit(ReplaceDeletes)
        if replaced is not None:
            planned = self.change.planned
            assert isinstance(planned, IcebergSnapshot)
            gone.update(replaced.units.column("path").to_pylist())
            last = planned.metadata.last_sequence_number
            lost = Replaced(frozenset(gone), last, "vectors" in self.maker.version.deletes)
        places = [i for i, m in enumerate(live) if m.content != DATA] if gone or replaced is not None else []
        found = self._rewritten([(live[i], lost) for i in places])
        return {i: made for i, (made, _) in zip(places, found)}

    def _uris(self, paths: pa.Array) -> pa.Array:
        return self.listing.paths.uris(paths)

    def _rewritten(self, losing: Sequence[tuple[ManifestFile, Lost]]) -> Iterator[tuple[Listed, pa.Table | None]]:
        """Each manifest with some entries marked as deleted, and these entries. One that loses none is unchanged."""
        listing, maker = self.listing, self.maker
        work = tuple(rewrite.Losing(m, maker.uri(maker.new_name()), lost) for m, lost in losing)
        partitioning = listing.metadata.partitioning
        task = RewriteTask(maker.new, partitioning, listing.paths, listing.verify, listing.reader, work)
        for (source, _), found in zip(losing, rewrite.rewritten(task, self.change.map)):
            if found is None:
                yield self._carried(source), None
                continue
            self.tallies.removed(found.removed, maker.metadata.partitioning.spec(found.row["partition_spec_id"]))
            yield Listed(found.row, data=found.data), found.removed

    def _carried(self, source: ManifestFile) -> Listed:
        return unchanged(self.listing, source, self.maker.version)


def unchanged(listing: Listing, source: ManifestFile, version: FormatVersion) -> Listed:
    """A manifest of the head as it is, listed in a table of this version."""

    def counts() -> dict[str, int]:
        entries = listing.reader.entries(source, listing.paths.uri(source.path), listing.verify)
        found = entries.files(live_only=False)
        statuses = longs(found.columns.longs(("status",))[0])
        return manifest_writer.counts(pa.table({"status": statuses, "record_count": longs(found.rows)}))

    return Listed(carried.row(source, counts, version), source)


def _by_manifest(units: pa.Table) -> dict[str, Among]:
    """The units by the manifest that lists them, as recorded."""
    found: dict[str, list[str]] = {}
    manifests = pc.struct_field(units.column("native"), "manifest").to_pylist()
    for manifest, path in zip(manifests, units.column("path").to_pylist()):
        found.setdefault(manifest, []).append(path)
    return {manifest: Among(frozenset(paths)) for manifest, paths in found.items()}
