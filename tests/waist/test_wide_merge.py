"""Updates and merges of many columns: their work grows with the number of columns, not with its square."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL


def wide(columns: int, first: int) -> pa.Table:
    return pa.table({f"c{i}": pa.array([first + i, first + i + 1], pa.int32()) for i in range(columns)})


def calls(run) -> int:
    """How many functions are called."""
    found = 0

    def count(frame, event, arg):
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def every_clause(table, rows):
    merge = table.merge(rows, "target.c0 = source.c0").when_matched_update({"c5": "source.c5 + 1"}, "source.c3 > 99")
    merge = merge.when_matched_update_all().when_not_matched_insert_all("source.c7 > 0")
    merge.when_not_matched_insert({f"c{i}": f"c{i}" for i in range(0, len(rows.schema), 2)}).execute()


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "operation",
    [
        lambda t, rows: t.update({"c3": "c3 + 1"}, "c0 = 1"),
        lambda t, rows: t.update({name: f"{name} + 1" for name in rows.schema.names}, "c0 = 1"),
        lambda t, rows: t.upsert(rows, on="c0"),
        every_clause,
    ],
    ids=["update", "update of every column", "upsert", "merge of every clause"],
)
@pytest.mark.parametrize("format", REAL)
def test_the_work_of_many_columns(tmp_path, format, operation):
    few, many = 60, 240
    found = []
    for n in (few, few, many):  # the first run imports what the others use
        uri = str(tmp_path / f"{len(found)}")
        bh.write(wide(n, 0), uri, format=format)
        table = bh.open(uri)
        found.append(calls(lambda n=n, table=table: operation(table, wide(n, 1))))
        assert bh.open(uri).count() in (2, 3)
    assert found[2] / found[1] < 1.3 * many / few
