"""The head's manifests in a new snapshot: those that lose files or row deletes are written anew, the others carried."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.errors import CorruptTableError
from boathouse.iceberg.commit.new_manifests import Listed, ManifestMaker
from boathouse.iceberg.commit.summaries import Tallies
from boathouse.iceberg.files import Listing
from boathouse.iceberg.manifests import carried
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import are_vectors, marked, of_live, only_files, without_offsets
from boathouse.iceberg.manifests.entries import LiveFiles
from boathouse.iceberg.manifests.records import DATA, ManifestFile
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import RemoveAll, ReplaceDeletes, SetDeletes

_REQUESTS: Final = 8
"""So many manifests are rewritten at once."""

Lost = Callable[[LiveFiles], npt.NDArray[np.bool_]]
"""Which of the live entries of a manifest go."""


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
            return [made for made, _ in self._rewritten(live, lambda entries: np.ones(len(entries), np.bool_))]
        made = self._without_files(live) | self._without_deletes(live)
        return [made.get(i) or self._carried(m) for i, m in enumerate(live)]

    def _without_files(self, live: Sequence[ManifestFile]) -> dict[int, Listed]:
        """By their places, the manifests that had files to remove: searched first where they were planned, then
        elsewhere."""
        removed = self.change.removed
        if removed is None:
            return {}
        wanted = set(removed.column("path").to_pylist())
        named: Collection[str] = set(pc.struct_field(removed.column("native"), "manifest").to_pylist())
        made: dict[int, Listed] = {}
        for likely in (True, False):
            places = [i for i, m in enumerate(live) if m.content == DATA and (m.path in named) == likely]
            if not wanted:
                break
            lost = partial(self._among, wanted, LiveFiles.paths)
            for i, (manifest, entries) in zip(places, self._rewritten([live[i] for i in places], lost)):
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
        lost: Lost = partial(self._among, gone, only_files)
        replaced = self.change.edit(ReplaceDeletes)
        if replaced is not None:
            gone.update(replaced.units.column("path").to_pylist())
            lost = partial(self._replaced, gone)
        places = [i for i, m in enumerate(live) if m.content != DATA] if gone or replaced is not None else []
        found = self._rewritten([live[i] for i in places], lost)
        return {i: made for i, (made, _) in zip(places, found)}

    def _replaced(self, units: Collection[str], live: LiveFiles) -> npt.NDArray[np.bool_]:
        """The row deletes that the planned version had, but for vectors, in version 2 for those of one file, of other
        units."""
        planned = self.change.planned
        assert isinstance(planned, IcebergSnapshot)
        known: npt.NDArray[np.bool_] = live.file_sequence <= planned.metadata.last_sequence_number
        alone = are_vectors(live) if "vectors" in self.maker.version.deletes else only_files(live).is_valid()
        stay = alone.to_numpy(zero_copy_only=False) & ~self._among(units, only_files, live)
        return known & ~stay

    def _among(
        self, gone: Collection[str], files_of: Callable[[LiveFiles], pa.Array], live: LiveFiles
    ) -> npt.NDArray[np.bool_]:
        files = files_of(live)
        known = files.drop_null()
        uris = self._uris(known)
        found = known.filter(pc.is_in(uris, pa.array(gone, uris.type)))
        lost: npt.NDArray[np.bool_] = pc.is_in(files, found).to_numpy(zero_copy_only=False)
        return lost

    def _uris(self, paths: pa.Array) -> pa.Array:
        return self.listing.paths.uris(paths)

    def _rewritten(self, sources: Sequence[ManifestFile], lost: Lost) -> Iterator[tuple[Listed, pa.Table | None]]:
        """Each manifest with some entries marked as deleted, and these entries. One that loses none is unchanged."""
        work = [partial(self._rewrite, m, self.maker.new_name(), lost) for m in sources]
        with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
            for made, removed in pool.map(_call, work) if len(work) > 1 else map(_call, work):
                if removed is not None:
                    self.tallies.removed(removed, self.maker.metadata.partitioning.spec(made.row["partition_spec_id"]))
                yield made, removed

    def _rewrite(self, source: ManifestFile, name: str, lost: Lost) -> tuple[Listed, pa.Table | None]:
        live = self.listing.live(source)
        gone = lost(live)
        if not gone.any() or not (gone.all() or self.maker.keeps(live)):
            return self._carried(source), None
        spec = self.listing.spec(source)
        carried.check_spec(spec, source.path)
        entries = marked(of_live(live, spec, source), gone, self.maker.snapshot_id)
        if not self.maker.keeps(live):
            entries = without_offsets(entries)
        return self.maker.encode(name, entries, spec, source.content), entries.filter(pa.array(gone))

    def _carried(self, source: ManifestFile) -> Listed:
        """An unchanged manifest."""

        def counts() -> dict[str, int]:
            listing = self.listing
            entries = listing.reader.entries(source, listing.paths.uri(source.path), listing.verify)
            found = entries.files(live_only=False)
            statuses = longs(found.columns.longs(("status",))[0])
            return manifest_writer.counts(pa.table({"status": statuses, "record_count": longs(found.rows)}))

        return Listed(carried.row(source, counts, self.maker.version), source)


def _call(work: Callable[[], tuple[Listed, pa.Table | None]]) -> tuple[Listed, pa.Table | None]:
    return work()
