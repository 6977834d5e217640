"""Rows as dicts: their numbers take the widths of the table's columns, or are refused whole."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import SchemaMismatchError
from makers.traits import REAL

COLUMNS = "i int, s int, f float, d double, n struct<i: int, l: array<float>>, b bigint"
ROW = {"i": 7, "s": -3, "f": 0.1, "d": 2, "n": {"i": 1, "l": [1, 0.5]}, "b": 2**40}
FLOAT = pa.scalar(0.1, pa.float32()).as_py()
KEPT = {**ROW, "f": FLOAT}


@pytest.fixture(params=REAL)
def table(request, tmp_path):
    return bh.create(str(tmp_path / "t"), COLUMNS, format=request.param)


def test_every_way_to_write_them(table):
    table.append([ROW])
    table.append([{"I": 8}])
    bh.write([{"i": 9, "f": 3}], table.uri, mode="append")
    table.refresh()
    table.upsert([{"i": 7, "s": 4}, {"i": 10, "s": 5}], on="i")
    table.merge([{"i": 11}], "target.i = source.i").when_not_matched_insert_all().execute()
    found = {r["i"]: r for r in table.to_arrow().to_pylist()}
    assert sorted(found) == [7, 8, 9, 10, 11]
    assert (found[7]["s"], found[10]["s"], found[9]["f"]) == (4, 5, 3.0)
    table.overwrite([ROW])
    assert table.to_arrow().to_pylist() == [KEPT]
    table.overwrite([{"i": 2**40}], overwrite_schema=True)
    assert str(table.schema.fields[0].type) == "bigint"


@pytest.mark.parametrize(
    "row", [{"i": 2**31}, {"i": 1.5}, {"f": 2**24 + 1}, {"f": 1e300}, {"n": {"i": 2**31}}, {"i": True}]
)
def test_what_does_not_fit(table, row):
    with pytest.raises(SchemaMismatchError):
        table.append([{"b": 1}, row])
    assert table.count() == 0


def test_infinities_and_nulls(table):
    rows = [{"f": float("inf"), "i": None}, {"f": float("nan"), "i": None}, {"f": None, "i": 3}]
    table.append(rows)
    assert [str(r["f"]) for r in table.to_arrow().to_pylist()] == ["inf", "nan", "None"]


def test_columns_of_arrow_are_not_narrowed(table):
    with pytest.raises(SchemaMismatchError, match="narrowing"):
        table.append(pa.table({"i": pa.array([1], pa.int64())}))
