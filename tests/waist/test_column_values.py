"""Columns with values for rows that are there: offered where units have files of their own for columns, and refused by
name elsewhere, before anything is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.table.features import ColumnFiles
from makers.traits import FORMATS, TRAITS

ROWS = pa.table({"id": pa.array(range(9), pa.int64()), "s": ["a", None, "c"] * 3})


def the_function(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    return {"f": rows.column("id")}


ASKED = {
    "expressions": lambda t: t.add_columns({"b": "id * 2"}),
    "function": lambda t: t.add_columns(the_function),
    "join": lambda t: t.add_columns(pa.table({"id": [3], "j": ["x"]}), on="id"),
    "cast": lambda t: t.cast_column("id", "string"),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("format", FORMATS)
def test_where_it_is_offered(tmp_path, format, asked):
    bh.write(ROWS, str(tmp_path / "t"), format=format)
    table = bh.open(str(tmp_path / "t"), format=format)
    if ColumnFiles not in TRAITS[format].offers:
        with pytest.raises(errors.UnsupportedFeatureError, match=f"is not offered for {format} tables"):
            asked(table)
        assert table.refresh().to_arrow().sort_by("id") == ROWS
        return
    asked(table)
    again = bh.open(str(tmp_path / "t"), format=format)
    found = again.to_arrow().to_pylist()
    assert [int(row["id"]) for row in found] == list(range(9))
    assert [row.get("b", i * 2) for i, row in enumerate(found)] == [i * 2 for i in range(9)]
    assert [row.get("f", i) for i, row in enumerate(found)] == list(range(9))
    assert [row["j"] for row in found if row.get("j")] in ([], ["x"])
