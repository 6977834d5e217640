"""The table `partitions`: counts of the live files of each partition, from the columns of manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_type
from boathouse.iceberg.files import Listing
from boathouse.iceberg.inspect.columns import TIME, Layout, struct
from boathouse.iceberg.inspect.documents import signed
from boathouse.iceberg.manifests.columns import PUFFIN
from boathouse.iceberg.manifests.entries import FILE
from boathouse.iceberg.manifests.records import EQUALITY_DELETES
from boathouse.table.grouping import Groups

Rows = npt.NDArray[np.int64]
_POSITION_DELETES: Final = 1
_UNKNOWN: Final = np.iinfo(np.int64).min + 1


@dataclass(frozen=True, slots=True)
class _Files:
    """Numbers of all live files, how many of the layout's fields their specs have, and their partition values."""

    content: Rows
    rows: Rows
    sizes: Rows
    snapshot: Rows
    spec: Rows
    fields: Rows
    vectors: Rows
    partition: Sequence[pa.Array]


def partitions(listing: Listing, layout: Layout) -> pa.Table:
    """The table."""
    return with_vectors(listing, layout)[0]


def with_vectors(listing: Listing, layout: Layout) -> tuple[pa.Table, Rows]:
    """One row for each partition of the union of all specs; one for the table if no spec has fields. As in the
    reference, equal tuples of two specs are two partitions if the specs have different numbers of these fields. Beside
    it, how many of the files of position deletes are deletion vectors."""
    schema = layout.partitions
    files = _files(listing, layout)
    if not len(files.rows):
        return schema.empty_table(), files.rows
    groups = Groups.of([longs(files.fields), *files.partition], len(files.rows))
    times = _times(listing, files.snapshot)
    last = groups.greatest(times)
    data, equality = files.content == 0, files.content == EQUALITY_DELETES
    position = files.content == _POSITION_DELETES
    ones = np.ones(len(files.rows), np.int64)
    known = times[last] != _UNKNOWN
    columns = {
        "record_count": longs(groups.sums(files.rows, data)),
        "file_count": _int32(groups.sums(ones, data)),
        "total_data_file_size_in_bytes": longs(groups.sums(files.sizes, data)),
        "position_delete_record_count": longs(groups.sums(files.rows, position)),
        "position_delete_file_count": _int32(groups.sums(ones, position)),
        "equality_delete_record_count": longs(groups.sums(files.rows, equality)),
        "equality_delete_file_count": _int32(groups.sums(ones, equality)),
        "last_updated_at": longs(np.where(known, times[last], 0) * 1000, known).view(TIME),
        "last_updated_snapshot_id": longs(files.snapshot[last], known),
    }
    if layout.partition:
        first = longs(groups.first)
        columns["partition"] = struct([p.take(first) for p in files.partition], layout.partition_type, len(groups))
        # As in the reference, that of the file that was added last, and 0 where no snapshot says when.
        columns["spec_id"] = _int32(np.where(known, files.spec[last], 0))
    found = pa.Table.from_arrays([columns[f.name] for f in schema], schema=schema)
    return found, groups.sums(files.vectors, position)


def _int32(numbers: Rows) -> pa.Array:
    return pa.array(numbers.astype(np.int32))


def _files(listing: Listing, layout: Layout) -> _Files:
    numbers: list[tuple[Rows, ...]] = [tuple(np.zeros(0, np.int64) for _ in range(7))]
    values: list[list[pa.Array]] = [[pa.nulls(0, to_arrow_type(f.type))] for _, f in layout.partition]
    for source in listing.manifest_files:
        if source.empty:
            continue
        spec, live = listing.spec(source), listing.live(source)
        n = len(live)
        content = live.columns.longs((FILE, "content"))[0]
        fields = len({f.id for f in spec} & {id for id, _ in layout.partition})
        formats = live.formats()
        puffin = np.array([str(v).upper() == PUFFIN for v in formats.values], np.int64)[formats.codes]
        of_spec = np.full(n, spec.id, np.int64), np.full(n, fields, np.int64), puffin
        numbers.append((content, live.rows, live.sizes, live.snapshot_id, *of_spec))
        coded = live.partition(spec)
        for (id, f), column in zip(layout.partition, values):
            column.append(coded[id].array(f.type) if id in coded else pa.nulls(n, to_arrow_type(f.type)))
    content, rows, sizes, snapshots, specs, fields_of, vectors = (np.concatenate(column) for column in zip(*numbers))
    found = [pa.concat_arrays(column) for column in values]
    return _Files(content, rows, sizes, snapshots, specs, fields_of, vectors, found)


def _times(listing: Listing, snapshots: Rows) -> Rows:
    """When the snapshots that added the files were committed, in milliseconds."""
    known = {signed(id): int(s["timestamp-ms"]) for id, s in listing.metadata.snapshots.items()}
    ids, which = np.unique(snapshots, return_inverse=True)
    times = np.array([known.get(id, _UNKNOWN) for id in ids.tolist()], np.int64)
    found: Rows = times[which]
    return found
