"""What tells the relations of a FileIndex apart; no session is needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from boathouse.engines.spark.file_lists import REMEMBERED_FILES, Held, _Answers
from boathouse.engines.spark.tuples import Constants, Tuples
from boathouse.expr.tree import col
from boathouse.table.tasks import ReadColumn
from boathouse.types import DOUBLE, STRING


def test_slices_of_the_same_paths_are_other_files():
    paths = pa.array([f"file:///t/{i}.parquet" for i in range(4)])
    sizes, tuples = np.full(2, 10), Tuples(pa.table({}), np.zeros(2, np.int64))
    first, second, copied = (
        Held(p, p, sizes, tuples, None) for p in (paths[:2], paths[2:], pa.array(paths[2:].to_pylist()))
    )
    assert first.identity != second.identity == copied.identity


def test_values_of_files_tell_them_apart():
    paths, sizes, numbers = pa.array(["a", "b"]), np.ones(2, np.int64), np.arange(2)
    found = [Held(paths, paths, sizes, Tuples(pa.table({"c0": v}), numbers), None) for v in ([1, 2], [1, 3])]
    assert found[0].identity != found[1].identity


def test_tuples_keep_each_zero_and_nan():
    values = [0.0, -0.0, float("nan"), None, 0.0, float("nan")]
    units = pa.table({"partition": pa.array([{"1": v, "2": "x"} for v in values])})
    read = (ReadColumn("f", DOUBLE), ReadColumn("s", STRING))
    found = Constants(read, (1, 2), ()).of(units)
    told = [found.values.column("c0")[int(n)].as_py() for n in found.numbers]
    assert told == ["0.0", "-0.0", "NaN", None, "0.0", "NaN"] and found.values.num_rows == 4


def test_only_so_many_files_of_answers_are_kept():
    answers, asked = _Answers(), []

    def ask(where):
        asked.append(where)
        return pa.table({"path": pa.nulls(REMEMBERED_FILES // 2)})

    conditions = [col("id").eq(n) for n in range(3)]
    for where in (*conditions, *reversed(conditions)):
        answers.of(where, ask)
    assert asked == [*conditions, conditions[0]]
