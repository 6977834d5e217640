"""Files rewritten in an order, on every format and both engines: the same rows, and each file a range of the order."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors
from makers.traits import TRAITS

ROWS = 600


@pytest.fixture
def table(format_name, properties, tmp_path, session):
    drawn = random.Random(3)
    rows = pa.table(
        {
            "id": pa.array(drawn.sample(range(ROWS), ROWS), pa.int64()),
            "name": [drawn.choice([None, "a", "ü", ""]) for _ in range(ROWS)],
        }
    )
    uri = str(tmp_path / "täble")
    t = bh.create(uri, rows.schema, format=format_name, properties=properties)
    for i in range(0, ROWS, 100):
        t.append(rows.slice(i, 100))
    return bh.open(uri, format=format_name, spark=session)


def rows_of(t):
    return sorted(map(repr, t.to_arrow().to_pylist()))


@pytest.mark.feature("sorted rewrites")
def test_rows_are_in_the_order(table, format_name):
    before, version = rows_of(table), table.version
    done = table.optimize(sort_by=["name desc nulls last", "id"])
    assert done.rows_added == 0 and done.files_removed >= 6 and done.bytes_removed > 0 and len(done.versions) == 1
    assert rows_of(table) == before == rows_of(bh.open(table.uri, format=format_name, version=version))
    found = list(zip(table.to_arrow()["name"].to_pylist(), table.to_arrow()["id"].to_pylist(), strict=True))
    names = {"ü": 0, "a": 1, "": 2, None: 3}
    if done.files_added == 1:
        assert found == sorted(found, key=lambda r: (names[r[0]], r[1]))
    if not TRAITS[format_name].in_memory:
        assert sorted(map(repr, by_peer(table.uri, format_name).to_pylist())) == before
    assert table.optimize(sort_by=["id"], dry_run=True).files_removed == done.files_added


def test_orders_that_cannot_be(table):
    version = table.version
    for sort_by, error, said in (
        ([], errors.InvalidArgumentError, "no sort order"),
        (["size"], errors.ColumnNotFoundError, "size"),
        ("id", errors.InvalidArgumentError, "is not a list of names"),
    ):
        with pytest.raises(error, match=said):
            table.optimize(sort_by=sort_by)
    with pytest.raises(errors.InvalidArgumentError, match="one order and one commit"):
        table.optimize(sort_by=["id"], zorder_by=["id"])
    assert table.refresh().version == version


@pytest.mark.parametrize(
    "threshold", ({"delete_ratio_threshold": 0.5}, {"delete_ratio_threshold": 1, "delete_file_threshold": 2})
)
def test_files_are_rewritten_for_their_deletes(tmp_path, threshold):
    uri = str(tmp_path / "t")
    names = [f"write.{n}.mode" for n in ("delete", "update", "merge")]
    properties = dict.fromkeys(names, "merge-on-read") | {"write.target-file-size-bytes": "1"}
    t = bh.create(uri, "id bigint", format="iceberg", properties=properties)
    for i in range(3):
        t.append(pa.table({"id": [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]}))
    t.delete("id = 0")
    t.delete("id IN (1, 4)")
    t.delete("id IN (8, 9)")
    before = set(t.files()["path"].to_pylist())
    done = t.optimize(**threshold)
    gone = before - set(t.files()["path"].to_pylist())
    of = {p: pq.read_table(p.removeprefix("file://"))["id"].to_pylist()[0] for p in gone}
    assert sorted(of.values()) == ([0] if "delete_file_threshold" in threshold else [0, 8])
    assert done.files_removed == len(gone) and done.bytes_removed > 0
    for wrong in ({"delete_ratio_threshold": 0}, {"delete_ratio_threshold": "x"}, {"delete_file_threshold": 0}):
        with pytest.raises(errors.InvalidArgumentError, match=next(iter(wrong))):
            t.optimize(**wrong)
