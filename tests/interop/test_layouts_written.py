"""Arrow layouts of the user's that no file has: written to the three formats, read by us and by the others."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh

deltalake = pytest.importorskip("deltalake")
pyiceberg = pytest.importorskip("pyiceberg.table")
lance = pytest.importorskip("lance")


def by_delta_rs(uri: str) -> pa.Table:
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select * from t")
    return pa.table(rows)


def by_pyiceberg(uri: str) -> pa.Table:
    return pyiceberg.StaticTable.from_metadata(bh.open(uri).detail()["metadata"]).scan().to_arrow()


READERS = {"delta": by_delta_rs, "iceberg": by_pyiceberg, "lance": lambda uri: lance.dataset(uri).to_table()}

ROWS = [[1, 2], None, [], [None, 3], [4]]
TEXTS = [["a"], ["b", None], None, [], ["c"]]
INNER = pa.ListViewArray.from_arrays(
    pa.array([3, 0, 5, 5, 1], pa.int32()), pa.array([2, 3, 0, 1, 2], pa.int32()), pa.array(range(6), pa.int64())
)
LAYOUTS = {
    "view": pa.array(ROWS, pa.list_view(pa.int32())),
    "large_view": pa.array(ROWS, pa.large_list_view(pa.int64())),
    "large": pa.array(TEXTS, pa.large_list(pa.string_view())),
    "of_views": pa.array([[[1], None], [[]], None, [], [[2, 3]]], pa.list_view(pa.list_view(pa.int32()))),
    "shuffled": INNER,
    "in_struct": pa.StructArray.from_arrays([INNER], ["v"], mask=pa.array([False, True, False, False, False])),
    "coded": pa.array(["a", "b", None, "a", "a"]).dictionary_encode(),
    "runs": pc.run_end_encode(pa.array(["a", "a", None, "b", "b"])),
}


@pytest.mark.parametrize("format", READERS)
def test_layouts_arrive_whole(tmp_path, format):
    data = pa.table(LAYOUTS)
    bh.write(data.slice(1), str(tmp_path / "t"), format=format)
    bh.open(str(tmp_path / "t")).append(data.slice(0, 1))
    want = sorted(map(str, data.to_pylist()))
    assert sorted(map(str, bh.open(str(tmp_path / "t")).to_arrow().to_pylist())) == want
    assert sorted(map(str, READERS[format](str(tmp_path / "t")).to_pylist())) == want


BIG = [0, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, None]


def test_unsigned_rows_are_deleted_by_their_value(tmp_path):
    uri = str(tmp_path / "t")
    bh.write(pa.table({"u": pa.array(BIG, pa.uint64())}), uri, format="lance")
    table = bh.open(uri)
    assert table.scan(where="u > 9223372036854775808").count() == 2
    assert table.scan(where="u < 18446744073709551615").count() == 5
    table.delete("u BETWEEN 9223372036854775807 AND 9223372036854775808")
    left = [v for v in BIG if v not in (2**63 - 1, 2**63)]
    assert READERS["lance"](uri).column("u").to_pylist() == left
