"""Columns in another order, and columns that may be null from now on: metadata alone, read by deltalake."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import ColumnNotFoundError, UnsupportedFeatureError

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"], "s": [{"p": 1, "q": 2}, None]})


@pytest.fixture
def uri(tmp_path):
    uri = str(tmp_path / "t")
    bh.create(uri, "a bigint not null, b string, s struct<p: bigint, q: bigint>", partition_by=["b"])
    bh.open(uri).append(ROWS)
    return uri


def names(uri):
    return [f.name for f in deltalake.DeltaTable(uri).schema().fields]


@pytest.mark.parametrize(
    ("column", "after", "wanted"),
    [("s", None, "s a b"), ("a", "b", "b a s"), ("A", "S", "b s a"), ("a", "a", "a b s"), ("b", "a", "a b s")],
)
def test_columns_are_moved(uri, column, after, wanted):
    t = bh.open(uri)
    before = sorted(t.to_arrow().select(["a", "b", "s"]).to_pylist(), key=lambda r: r["a"])
    t.move_column(column, after=after)
    assert " ".join(t.columns) == " ".join(names(uri)) == wanted
    t.append(pa.table({"s": [{"q": 4, "p": 3}], "b": ["z"], "a": [3]}))
    found = sorted(bh.open(uri).to_arrow().to_pylist(), key=lambda r: r["a"])
    assert found == [*before, {"a": 3, "b": "z", "s": {"p": 3, "q": 4}}]
    theirs = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select * from t order by a")
    assert pa.table(theirs).to_pylist() == found
    assert t.history()[1].operation == "CHANGE COLUMN"


def test_fields_of_structs_are_moved(uri):
    t = bh.open(uri)
    t.move_column("s.q")
    assert str(t.schema.field("s").type) == "struct<q:bigint,p:bigint>"
    assert t.scan(where="a = 1").to_arrow()["s"].to_pylist() == [{"q": 2, "p": 1}]
    with pytest.raises(ColumnNotFoundError):
        t.move_column("a", after="nothing")


def test_columns_become_nullable(uri):
    t = bh.open(uri)
    stale = bh.open(uri)
    t.set_nullable("a", True)
    t.append(pa.table({"b": ["z"]}))
    assert t.scan(where="a IS NULL").count() == 1 and deltalake.DeltaTable(uri).schema().fields[0].nullable
    stale.append(pa.table({"a": [9], "b": ["w"]}))
    assert stale.count() == 4
    with pytest.raises(UnsupportedFeatureError, match=r"cannot become NOT NULL.*add_constraint"):
        t.set_nullable("b", False)
