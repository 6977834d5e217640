"""Chunks with NaN have no bounds in the files that we write, so that no reader skips the rows of a NaN by them."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.arrow.schema import from_arrow
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.unbounded import float_leaves
from boathouse.parquet.write import ParquetOptions, ParquetWriter
from boathouse.storage import StorageOptions

NAN = float("nan")
POINT = pa.struct([("a", pa.int64()), ("d", pa.float64())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("s", POINT),
        ("l", pa.list_(pa.float64())),
        ("m", pa.map_(pa.float32(), POINT)),
        ("t", pa.string()),
    ]
)
FLOATS = ("d", "f", "s.d", "l.list.element", "m.key_value.key", "m.key_value.value.d")


def row(id, value):
    """A row with `value` in every float."""
    point = {"a": id, "d": value}
    return {"id": id, "d": value, "f": value, "s": point, "l": [value, 1.0], "m": [(value, point)], "t": "x"}


def write(tmp_path, rows, **options):
    uri = (tmp_path / "a.parquet").as_uri()
    schema = to_parquet_schema(from_arrow(SCHEMA))
    with ParquetWriter(NativeFiles(StorageOptions()), uri, schema, ParquetOptions(**options)) as writer:
        for batch in pa.Table.from_pylist(rows, SCHEMA).to_batches():
            writer.write(batch)
    return tmp_path / "a.parquet"


def chunks(path, group):
    """The chunks of a row group by the name of their column."""
    found = pq.read_metadata(path).row_group(group)
    return {found.column(i).path_in_schema: found.column(i) for i in range(found.num_columns)}


def test_chunks_with_nan_have_no_bounds_and_others_keep_theirs(tmp_path):
    path = write(tmp_path, [row(1, 1.0), row(2, 2.0), row(3, NAN), row(4, 3.0), row(5, -0.0), row(6, 4.0)],
                 row_group_rows=2)  # fmt: skip
    for group, nan in enumerate((False, True, False)):
        found = chunks(path, group)
        for name, chunk in found.items():
            bounded = not (nan and name in FLOATS)
            assert chunk.statistics.has_min_max == bounded, (group, name)
            assert chunk.has_column_index == bounded, (group, name)
            assert chunk.has_offset_index
            assert chunk.statistics.null_count == 0
    assert chunks(path, 2)["d"].statistics.max == 4.0
    assert chunks(path, 1)["id"].statistics.max == 4


def test_values_that_are_not_stored_do_not_count(tmp_path):
    """NaN below a null struct, outside of a slice of a list, below a null list."""
    points = pa.StructArray.from_arrays(
        [pa.array([1, 2], pa.int64()), pa.array([1.0, NAN])], fields=list(POINT), mask=pa.array([False, True])
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), pa.array([NAN, NAN, 2.0]), mask=pa.array([False, True, False])
    )[1:]
    leaves = float_leaves(pa.schema([("s", points.type), ("l", lists.type)]))
    batch = pa.record_batch([points, lists], names=["s", "l"])
    assert [leaf.column for leaf in leaves] == [1, 2]
    assert [leaf.has_nan(batch) for leaf in leaves] == [False, False]
    assert leaves[1].has_nan(pa.record_batch([points, pa.array([[1.0], [None, NAN]])], names=["s", "l"]))


@pytest.mark.parametrize("type", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_every_width_of_floats(type):
    (leaf,) = float_leaves(pa.schema([("x", type)]))
    for values, expected in [([1, np.nan], True), ([None, np.nan], True), ([1, None], False), ([], False)]:
        array = pa.array([None if v is None else np.dtype(f"f{type.bit_width // 8}").type(v) for v in values], type)
        assert leaf.has_nan(pa.record_batch([array], names=["x"])) == expected


def test_readers_that_order_nan_last_find_it(tmp_path):
    path = write(tmp_path, [row(i, v) for i, v in enumerate([1.0, NAN, 2.0])])
    for condition in ("d > 27", "f > 27", "s.d > 27", "d >= 27", "d <> 1 and d <> 2", "d = 'nan'"):
        assert duckdb.sql(f"select id from '{path}' where {condition}").fetchall() == [(1,)], condition
    read = ds.dataset(path).to_table(filter=pc.field("id") > 0)
    assert read.num_rows == 2 and pc.is_nan(read["d"]).to_pylist() == [True, False]


def test_typed_columns_of_shredded_variants(tmp_path):
    path = str(tmp_path / "v.parquet")
    values = bh.variant.from_arrow(pa.array([1.5, NAN, 2.5, 3.5]))
    bh.write_parquet(pa.table({"v": values}), path, shred={"v": "double"}, variants=["v"], row_group_rows=2)
    bounded = [chunks(path, g)["v.typed_value"].statistics.has_min_max for g in (0, 1)]
    assert bounded == [False, True]
    found = bh.variant.to_pylist(bh.read_parquet(path)["v"])
    assert found[0] == 1.5 and found[1] != found[1]


def test_many_groups_and_columns_read_as_they_were(tmp_path):
    names = [f"c{i}" for i in range(40)]
    values = np.arange(40 * 60, dtype=np.float64).reshape(40, 60)
    values[::3, ::7] = NAN
    table = pa.table(dict(zip(names, values, strict=True)))
    path = str(tmp_path / "w.parquet")
    bh.write_parquet(table, path, row_group_rows=5)
    found = pq.read_table(path)
    assert found.schema.names == names
    assert all(np.array_equal(found[n].to_numpy(), v, equal_nan=True) for n, v in zip(names, values, strict=True))
    metadata = pq.read_metadata(path)
    for g in range(metadata.num_row_groups):
        for c in range(40):
            has_nan = bool(np.isnan(values[c, 5 * g : 5 * g + 5]).any())
            assert metadata.row_group(g).column(c).statistics.has_min_max != has_nan
