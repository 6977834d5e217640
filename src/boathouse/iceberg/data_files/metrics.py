"""The metrics of data files in manifest entries (spec, "Manifests": fields 108 to 110, 125, 128 and 137)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.iceberg.manifests.columns import MAPS, TYPES, map_array
from boathouse.iceberg.manifests.values import encode, encode_numbers, number_kind, physical_list, truncated
from boathouse.iceberg.metadata.metrics_modes import Mode
from boathouse.parquet.bounds import truncate_texts
from boathouse.parquet.stats import schema_leaves
from boathouse.types import DataType, FloatType, NullType, Schema


def metrics(files: pa.Table, schema: Schema, modes: Mapping[int, Mode]) -> dict[str, pa.Array]:
    """The metric maps of written files (OUTCOMES), each of the leaves whose mode has it. Those of lists and maps have
    counts of their elements, and no bounds."""
    stats, rows = files.column("stats").combine_chunks(), files.num_rows
    sizes = files.column("native").combine_chunks().field("column_sizes")
    found: dict[str, dict[int, pa.Array]] = {name: {} for name in MAPS}
    for i, leaf in enumerate(schema_leaves(schema)):
        id, type = leaf.field.id, leaf.field.type
        assert id is not None
        mode = modes[id]
        if mode.name == "none" or isinstance(type, NullType):  # no file has a column of nulls
            continue
        s = stats.field(str(i))
        found["column_sizes"][id] = _element(sizes, i)
        found["value_counts"][id], found["null_value_counts"][id] = s.field("values"), s.field("nulls")
        if isinstance(type, FloatType):
            found["nan_value_counts"][id] = s.field("nans")
        if mode.bounds and not leaf.repeated:
            bounds = _bounds(s.field("lower"), s.field("upper"), type, mode.width)
            found["lower_bounds"][id], found["upper_bounds"][id] = bounds
    return {name: map_array(list(maps), list(maps.values()), TYPES[name], rows) for name, maps in found.items()}


def _element(lists: pa.Array, index: int) -> pa.Array:
    """One element of each list; null where the list is null."""
    if lists.null_count == 0:
        return pc.list_element(lists, index)
    return pa.array([None if v is None else v[index] for v in lists.to_pylist()], pa.int64())


def _bounds(lower: pa.Array, upper: pa.Array, type: DataType, width: int | None) -> tuple[pa.Array, pa.Array]:
    """Bounds in binary form, truncated."""
    kind = number_kind(type)
    if kind is not None:
        return encode_numbers(lower, kind), encode_numbers(upper, kind)
    if pa.types.is_string(lower.type):
        return (
            (lower.cast(pa.binary()), upper.cast(pa.binary())) if width is None else truncate_texts(lower, upper, width)
        )
    pairs = zip(physical_list(lower, type), physical_list(upper, type))
    cut = [truncated(low, high, width) for low, high in pairs]
    made = [pa.array([encode(pair[i], type) for pair in cut], pa.binary()) for i in (0, 1)]
    return made[0], made[1]
