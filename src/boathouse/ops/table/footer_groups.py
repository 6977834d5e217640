"""The footers of files that no table wrote, and from them the statistics of a table's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.arrow.schema import to_arrow_type
from boathouse.ops.table.parquet_folder import FoundFile
from boathouse.ops.tasks.footers import FooterTask, schema_of
from boathouse.parquet.convert import leaf_cast
from boathouse.parquet.stats import SchemaLeaf
from boathouse.parquet.written_stats import LeafColumn
from boathouse.storage import Stores
from boathouse.table.engine import Engine
from boathouse.table.found_files import FooterGroup, FoundFiles, Places
from boathouse.table.units import PARQUET

_TASK_FILES: Final = 64


def footer_groups(
    found: Sequence[FoundFile],
    stores: Stores,
    engine: Engine,
    read: Callable[[FooterTask], Iterable[pa.RecordBatch]],
    format: int | None = PARQUET,
) -> list[FooterGroup]:
    """The footers of all files, which `read` reads in tasks."""
    files = data_files(stores)
    tasks = []
    for start in range(0, len(found), _TASK_FILES):
        part = found[start : start + _TASK_FILES]
        numbers = range(start, start + len(part))
        tasks.append(FooterTask(files, [f.uri for f in part], [f.info.size for f in part], numbers, format))
    batches = engine.map(read, tasks, [len(t.uris) for t in tasks])
    return [_group(b, found) for b in batches]


def _group(batch: pa.RecordBatch, found: Sequence[FoundFile]) -> FooterGroup:
    uris = [found[i].uri for i in batch.column("file").to_pylist()]
    columns = (batch.column(name) for name in ("file", "format", "rows", "offsets", "stats"))
    return FooterGroup(schema_of(batch), uris, *columns)


def described(
    found: Sequence[FoundFile],
    partitions: Sequence[pa.Array],
    groups: Sequence[FooterGroup],
    places: Sequence[Places],
    leaves: Sequence[SchemaLeaf],
) -> FoundFiles:
    """The files with the statistics of a table's `leaves`, of which `places` say where they are in the files of each
    group."""
    order = pc.sort_indices(pa.concat_arrays([g.files for g in groups]))
    rows, formats, offsets = (
        pa.concat_arrays([getattr(g, name) for g in groups]).take(order) for name in ("rows", "formats", "offsets")
    )
    return FoundFiles(
        paths=[f.path for f in found],
        uris=[f.uri for f in found],
        sizes=[f.info.size for f in found],
        modified_ms=[f.info.modified_ms for f in found],
        rows=rows.to_pylist(),
        partitions=partitions,
        leaves=[_leaf(leaf, groups, places, order) for leaf in leaves],
        formats=formats,
        offsets=offsets,
    )


def _leaf(leaf: SchemaLeaf, groups: Sequence[FooterGroup], places: Sequence[Places], order: pa.Array) -> LeafColumn:
    """The statistics of one leaf in all files, in their order."""
    held = to_arrow_type(leaf.field.type)
    parts = [_part(leaf, group, at, held) for group, at in zip(groups, places, strict=True)]
    lower, upper, nulls, values, sizes = (pa.concat_arrays(column).take(order) for column in zip(*parts, strict=True))
    nans = [None] * len(order)
    counts = (nulls.to_pylist(), nans, values.to_pylist(), sizes.to_pylist())
    return LeafColumn(leaf.path, leaf.field.type, lower, upper, *counts)


def _part(
    leaf: SchemaLeaf, group: FooterGroup, at: Places, held: pa.DataType
) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array, pa.Array]:
    """Bounds in the table's type, nulls, values and bytes, in the files of one group."""
    count = len(group.files)
    nothing, number = pa.nulls(count, held), pa.nulls(count, pa.int64())
    if leaf.repeated or leaf.path not in at:
        return nothing, nothing, number, number, number
    path = at[leaf.path]
    if path is None:
        return nothing, nothing, group.rows, group.rows, number
    stats = group.leaves[path]
    convert = leaf_cast(stats.field("lower").type, held)
    lower, upper = (stats.field(n) if convert is None else convert(stats.field(n)) for n in ("lower", "upper"))
    return lower, upper, stats.field("nulls"), group.rows, stats.field("size")
