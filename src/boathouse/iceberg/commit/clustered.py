"""Manifests of one spec written anew, their entries sorted by partition: readers that want some partitions open few of
them. Entries keep their snapshot, sequence numbers and row ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.iceberg.commit.head_manifests import unchanged
from boathouse.iceberg.commit.new_manifests import Listed, ManifestMaker
from boathouse.iceberg.commit.summaries import Tallies
from boathouse.iceberg.manifests.columns import of_live, partition_column
from boathouse.iceberg.manifests.merge import MergeRule
from boathouse.iceberg.manifests.records import DATA, DELETES, ManifestFile
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.edits import RewriteManifests


@dataclass(frozen=True, slots=True)
class _Group:
    """The manifests of one kind that are written anew, as so many."""

    content: int
    sources: Sequence[ManifestFile]
    count: int


def wanted(head: IcebergSnapshot, edit: RewriteManifests) -> bool:
    """Whether anything would be written: one manifest that stays one is as good as any."""
    return bool(_groups(head, edit))


def _groups(head: IcebergSnapshot, edit: RewriteManifests) -> list[_Group]:
    target = MergeRule.of(head.properties).target_bytes
    found = []
    for content in (DATA, DELETES):
        of_spec = (m for m in head.listing.manifest_files if m.spec_id == edit.spec and not m.empty)
        sources = [m for m in of_spec if (m.content == DATA) == (content == DATA)]
        size = sum(int(m.row.get("manifest_length") or 0) for m in sources)
        count = max(1, -(-size // max(target, 1)))
        if len(sources) > 1 or count > 1:
            found.append(_Group(content, sources, count))
    return found


def clustered(head: IcebergSnapshot, edit: RewriteManifests, maker: ManifestMaker, tallies: Tallies) -> list[Listed]:
    """The manifests of the next snapshot. Those with vectors stay in a format version that has no place for them."""
    spec = maker.metadata.partitioning.spec(edit.spec)
    fields = {f.name: partition_column(f) for f in spec}
    replaced: set[str] = set()
    made: list[Listed] = []
    for group in _groups(head, edit):
        live = [(source, head.listing.live(source)) for source in group.sources]
        tables = [of_live(files, spec, source) for source, files in live if maker.keeps(files)]
        if not tables:
            continue
        replaced.update(source.path for source, files in live if maker.keeps(files))
        entries = pa.concat_tables(tables)
        entries = entries.take(_order(entries, [fields[name] for name in edit.fields]))
        for part in _parts(entries, group.count):
            made.append(maker.encode(maker.new_name(), part, spec, group.content))
            tallies.add("entries-processed", part.num_rows)
    kept = [m for m in head.listing.manifest_files if m.path not in replaced and not m.empty]
    tallies.add("manifests-created", len(made))
    tallies.add("manifests-replaced", len(replaced))
    tallies.add("manifests-kept", len(kept))
    return [*made, *(unchanged(head.listing, m, maker.version) for m in kept)]


def _order(entries: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The rows sorted by these columns, nulls last; those that are equal in their order."""
    if not columns:
        return pa.array(np.arange(entries.num_rows))
    ranks = [_ranks(entries.column(name).combine_chunks()) for name in columns]
    return pa.array(np.lexsort(ranks[::-1]))


def _ranks(values: pa.Array) -> npt.NDArray[np.int64]:
    """The place of each value among the distinct ones."""
    coded = values.dictionary_encode()
    distinct = coded.dictionary
    if pa.types.is_boolean(distinct.type):
        distinct = distinct.cast(pa.int8())
    place = np.empty(len(distinct), np.int64)
    place[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    codes = pc.fill_null(coded.indices, len(distinct)).to_numpy()
    found: npt.NDArray[np.int64] = np.append(place, len(distinct))[codes]
    return found


def _parts(entries: pa.Table, count: int) -> Iterator[pa.Table]:
    rows = -(-entries.num_rows // count)
    for start in range(0, entries.num_rows, rows):
        yield entries.slice(start, rows)
