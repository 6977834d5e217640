"""Evaluation without Spark: layouts, laziness, what may not be loaded on an executor."""

import math
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.arrow.kernels import compare
from boathouse.arrow.schema import from_arrow
from boathouse.bits.floats import format_float
from boathouse.bits.zones import zone
from boathouse.compute.evaluate import evaluate, fold_constants, mask, select
from boathouse.errors import ColumnNotFoundError, EvaluationError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.expr.text import parse_date, parse_timestamp
from boathouse.types import INT32, Field, Schema


def test_nan_is_greatest_and_negative_zero_is_zero():
    batch = pa.record_batch({"x": [math.nan, 1.0, 9.0, -0.0, None]})
    assert mask(parse("x > 5"), batch).to_pylist() == [True, False, True, False, False]
    assert mask(parse("x = 0"), batch).to_pylist() == [False, False, False, True, False]
    assert mask(parse("x IN (0.0D, CAST('NaN' AS DOUBLE))"), batch).to_pylist() == [True, False, False, True, False]
    assert select(batch, parse("NOT (x <= 5)")).num_rows == 2


FLOATS = st.none() | st.sampled_from([math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf])
OPS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1), st.sampled_from(sorted(OPS)), st.booleans())
def test_comparisons_follow_the_total_order(pairs, op, scalar):
    def key(v):
        return (1, 0.0) if math.isnan(v) else (0, v)

    left = pa.array([a for a, _ in pairs], pa.float64())
    right = pa.array([b for _, b in pairs], pa.float64())
    rights = [pairs[0][1]] * len(pairs) if scalar else [b for _, b in pairs]
    expected = [None if a is None or b is None else OPS[op](key(a), key(b)) for (a, _), b in zip(pairs, rights)]
    assert compare(op, left, right[0] if scalar else right).to_pylist() == expected


@pytest.mark.parametrize(
    "type", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_any_text_layout(type):
    batch = pa.record_batch([pa.array(["a", None, "b"], pa.string()).cast(type)], ["s"])
    assert evaluate(parse("s = 'a'"), batch).to_pylist() == [True, None, False]
    assert evaluate(parse("upper(s)"), batch).to_pylist() == ["A", None, "B"]


def test_values_that_raise_are_computed_only_where_needed():
    batch = pa.record_batch({"x": [0, 2, None], "s": ["0", "x", "3"]})
    assert evaluate(parse("x <> 0 AND 10 / x > 1"), batch).to_pylist() == [False, True, None]
    assert evaluate(parse("x = 0 OR 10 / x > 1"), batch).to_pylist() == [True, True, None]
    assert evaluate(parse("CASE WHEN x = 0 THEN -1 ELSE 10 div x END"), batch).to_pylist() == [-1, 5, None]
    assert evaluate(parse("coalesce(x, CAST(s AS BIGINT))"), batch).to_pylist() == [0, 2, 3]
    assert evaluate(parse("if(s = 'x', 0, CAST(s AS INT))"), batch).to_pylist() == [0, 0, 3]
    assert evaluate(parse("nullif(x, 0) > 10 / x"), batch).to_pylist() == [None, False, None]
    assert evaluate(parse("(10 / x) / nullif(x, 0)"), batch).to_pylist() == [None, 2.5, None]
    with pytest.raises(EvaluationError, match=r"division by zero in .*x"):
        evaluate(parse("10 / x"), batch)
    with pytest.raises(EvaluationError, match="'x' is not a valid int"):
        evaluate(parse("CAST(s AS INT)"), batch)


def test_members_of_null_structs_are_null():
    batch = pa.record_batch({"st": pa.array([{"a": {"b": 1}}, {"a": None}, None])})
    assert evaluate(parse("ST.a.B"), batch).to_pylist() == [1, None, None]
    hidden = pa.StructArray.from_arrays([pa.array([1, 2])], ["a"], mask=pa.array([False, True]))
    assert evaluate(parse("st.a"), pa.record_batch({"st": hidden})).to_pylist() == [1, None]


def test_columns_are_found_by_name_in_any_order():
    expr = bind(parse("a - b"), Schema((Field("a", INT32), Field("b", INT32))))
    batch = pa.record_batch({"B": pa.array([1], pa.int32()), "z": ["x"], "a": pa.array([5], pa.int32())})
    assert evaluate(expr, batch).to_pylist() == [4]
    with pytest.raises(ColumnNotFoundError, match="no column `b`"):
        evaluate(expr, batch.select(["a"]))


def test_empty_batches_and_constants():
    batch = pa.record_batch({"x": pa.array([], pa.int64())})
    assert evaluate(parse("x + 1"), batch).to_pylist() == []
    assert mask(parse("NULL"), pa.record_batch({"x": [1, 2]})).to_pylist() == [False, False]
    assert evaluate(parse("1 + 1"), pa.record_batch({"x": [1, 2]})).to_pylist() == [2, 2]
    assert evaluate(parse("x > 0"), pa.table({"x": pa.chunked_array([[1], [-1]])})).to_pylist() == [True, False]
    assert str(fold_constants(bind_predicate(parse("x > 1 + 2 AND 2 > 1"), from_arrow(batch.schema)))) == "x > 3L"


def test_texts_of_floats_and_times():
    assert [format_float(v) for v in (1e7, 9999999.0, 0.001, 1e-4, -1.5, 123456789.125)] == [
        "1.0E7", "9999999.0", "0.001", "1.0E-4", "-1.5", "1.23456789125E8",
    ]  # fmt: skip
    assert parse_date("2020-2-29") == 18321
    assert parse_date("2021-02-29") is None
    assert parse_timestamp("1969-12-31 23:59:59.9999999Z", zone("Asia/Tokyo")) == -1
    assert parse_timestamp("2020-01-01 25:00:00", zone("UTC")) is None


def test_executors_load_no_parser():
    """What runs on executors must not pull in sqlglot or another library that only the driver has."""
    code = (
        "import sys, boathouse.compute.evaluate, boathouse.compute.prune;"
        "import boathouse.arrow.transforms, boathouse.arrow.cast;"
        "bad = {'sqlglot', 'obstore', 'fastavro', 'orjson', 'google.protobuf', 'pyspark', 'pandas'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(bad)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
