"""Which parts of a filter of Spark's planner are read, and as what."""

import pytest

pytest.importorskip("pyspark")

from boathouse import types as T
from boathouse.engines.spark.later import Values, implied
from boathouse.expr.tree import Column

TYPES = {
    "i": ("integer", T.INT32), "l": ("long", T.INT64), "g": ("float", T.FLOAT), "f": ("double", T.DOUBLE),
    "s": ("string", T.STRING), "n": ("decimal(10,2)", T.DecimalType(10, 2)), "b": ("boolean", T.BOOLEAN),
    "ts": ("timestamp", T.TIMESTAMP), "bin": ("binary", T.BINARY),
}  # fmt: skip
COLUMNS = {f"physical {n}": Column((n,), type=t) for n, (_, t) in TYPES.items()}
PLACE = "org.apache.spark.sql.catalyst.expressions."


def node(kind, *children, **fields):
    return [{"class": PLACE + kind, "num-children": len(children), **fields}, *(n for c in children for n in c)]


def col(name):
    return node("AttributeReference", name=f"physical {name}", dataType=TYPES[name][0])


def lit(value, type):
    return node("Literal", value=value, dataType=type)


ONE = node("EqualTo", col("l"), lit("1", "long"))
UNREAD = node("EqualTo", node("Abs", col("l")), lit("1", "long"))
NAN = lit("NaN", "double")


@pytest.mark.parametrize(
    ("filter", "read"),
    [
        (ONE, "l = 1"),
        (node("LessThan", lit("1", "long"), col("l")), "l > 1"),
        (node("And", ONE, UNREAD), "l = 1"),
        (node("Or", ONE, UNREAD), None),
        (node("Or", node("And", ONE, UNREAD), col("b")), "(l = 1) OR b"),
        (node("Not", node("And", ONE, UNREAD)), None),
        (node("Not", node("Or", ONE, col("b"))), "NOT ((l = 1) OR b)"),
        (node("IsNotNull", col("s")), "s IS NOT NULL"),
        (node("IsNull", col("bin")), None),
        (node("StartsWith", col("s"), lit("a", "string")), "startswith(s, 'a')"),
        (node("StartsWith", col("s"), lit("\ufffd", "string")), None),
        (node("EqualTo", col("s"), lit("a", "string collate UTF8_LCASE")), None),
        (node("EqualTo", col("l"), lit("1", "integer")), None),
        (node("EqualTo", node("Cast", col("i"), dataType="long"), lit("1", "long")), None),
        (node("EqualTo", node("AttributeReference", name="physical l", dataType="integer"), lit("1", "integer")), None),
        (node("EqualTo", node("AttributeReference", name="l", dataType="long"), lit("1", "long")), None),
        (node("GreaterThan", node("NaNvl", col("f"), NAN), lit("1.5", "double")), "f > 1.5D"),
        (node("GreaterThan", node("NaNvl", col("f"), lit("0.0", "double")), lit("1.5", "double")), None),
        (node("EqualTo", col("n"), lit("1.25", "decimal(10,2)")),  "n = CAST('1.25' AS DECIMAL(10,2))"),
        (node("In", col("l"), lit("1", "long"), lit(None, "long")), "l IN (1, CAST(NULL AS BIGINT))"),
        (node("In", col("l"), lit("1", "long"), col("l")), None),
        (node("InSet", col("l"), hset=None), "l IN (7, 8)"),
        (node("InSet", col("b"), hset=None), None),
        (node("EqualTo", col("ts"), lit("2020-11-01 01:30:00", "timestamp")), "ts = 5"),
        (node("EqualTo", col("ts"), lit("another text", "timestamp")), None),
    ],
)  # fmt: skip
def test_what_is_read(filter, read):
    values = Values(
        lambda number, text: 5 if (number, text) == (2, "2020-11-01 01:30:00") else None, lambda n: ["7", "8"]
    )
    found = implied(filter, COLUMNS, values)
    if read == "ts = 5":
        assert found is not None and found.right.value == 5
    else:
        assert (None if found is None else str(found).replace("1L", "1").replace("7L", "7").replace("8L", "8")) == read


def test_a_float_is_the_one_that_spark_holds():
    found = implied(node("EqualTo", col("g"), lit("0.1", "float")), COLUMNS, Values(lambda *a: None, lambda n: None))
    assert found.right.value == 0.10000000149011612
