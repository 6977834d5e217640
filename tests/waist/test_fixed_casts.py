"""CAST to bytes of a fixed length, which Spark's SQL lacks: in conditions, updates and merges, on both engines."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.features.computed import with_generation
from boathouse.engines.spark.values import text
from boathouse.errors import EvaluationError, ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind
from boathouse.types import BINARY, Field, FixedType, Schema

WITH_FIXED = ("iceberg", "lance")
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "b": pa.array([b"abcd", b"wxyz", None, b"\x00\xff\x00\xff"], pa.binary()),
        "f": pa.array([b"abcd", None, b"wxyz", b"\x00\xff\x00\xff"], pa.binary(4)),
        "fixed": ["x", "y", "z", None],
    }
)
COUNTS = {
    "cast(b as fixed(4)) = f": 2,
    "CAST(b AS FIXED (4)) <=> f": 2,
    "cast(b as fixed(4)) is null": 1,
    "f::fixed(4) > X'61626364'": 1,
    "try_cast(b as fixed(3)) is null": 4,
    "cast(cast(b as fixed(4)) as fixed(4)) in (X'61626364', X'00FF00FF')": 2,
    "id < 3 and cast(X'6162' as fixed(2)) < b": 2,
    "fixed <> 'as fixed(4)'": 3,
    "cast(null as fixed(3)) is null and `fixed` is not null": 3,
}


@pytest.fixture
def table(tmp_path, request):
    bh.write(ROWS, str(tmp_path / "t"), format=request.param)
    return bh.open(str(tmp_path / "t"))


def rows_of(t: bh.Table) -> dict:
    return {r["id"]: (r["b"], r["f"]) for r in bh.open(t.uri).to_arrow().to_pylist()}


@pytest.mark.parametrize("table", WITH_FIXED, indirect=True)
def test_conditions(table):
    for where, rows in COUNTS.items():
        assert table.scan(where=where).count() == rows, where
    with pytest.raises(EvaluationError, match=r"does not fit fixed\(3\)"):
        table.scan(where="cast(b as fixed(3)) = f").to_arrow()
    assert bind(parse("cast(b as fixed(4))"), Schema((Field("b", FixedType(4)),))).type == FixedType(4)


@pytest.mark.parametrize("table", ["iceberg"], indirect=True)
def test_what_is_no_such_type(table):
    wrong = ("fixed", "fixed(0)", "fixed(4, 2)", "fixed(-1)", "array<fixed(4)>", "foo(4)", "fixedstring(4)")
    for type in wrong:
        for where in (f"cast(b as {type}) is null", f"try_cast(b as {type}) is null"):
            with pytest.raises(ExpressionError) as error:
                table.scan(where=where)
            assert "decimal" not in str(error.value).lower() and "FIXEDSTRING" not in str(error.value)
    for where in ("cast(id as fixed(8)) = f", "cast(fixed as fixed(1)) = f"):
        with pytest.raises(ExpressionError, match="cannot be cast to fixed"):
            table.scan(where=where)


def changes(t: bh.Table, source: object) -> None:
    """Updates and merges whose values and conditions cast."""
    t.update({"f": "cast(b as fixed(4))"}, "cast(b as fixed(4)) = X'7778797A'")
    t.update({"f": "try_cast(X'0102' as fixed(4))"}, "id = 1")
    merge = t.merge(source, "target.id = source.k AND cast(source.v as fixed(4)) <> X'00000000'")
    merge = merge.when_matched_update({"f": "CAST(source.v AS fixed(4))"}, "try_cast(source.v as fixed(4)) IS NOT NULL")
    merge.when_not_matched_insert({"id": "k", "b": "v", "f": "cast(v as fixed(4))"}).execute()
    assert rows_of(t) == {
        1: (b"abcd", None), 2: (b"wxyz", b"wxyz"), 3: (None, b"1234"), 4: (b"\x00\xff\x00\xff",) * 2, 9: (b"5678",) * 2,
    }  # fmt: skip
    with pytest.raises(EvaluationError, match=r"does not fit fixed\(3\)"):
        t.update({"b": "cast(b as fixed(3))"})
    with pytest.raises(EvaluationError, match=r"does not fit fixed\(2\)"):
        t.merge(source, "target.id = source.k").when_matched_update({"b": "cast(v as fixed(2))"}).execute()
    assert t.delete("cast(f as fixed(4)) = X'31323334'").rows_deleted == 1


SOURCE = pa.table({"k": pa.array([3, 9], pa.int64()), "v": pa.array([b"1234", b"5678"], pa.binary())})


@pytest.mark.parametrize("table", WITH_FIXED, indirect=True)
def test_updates_and_merges(table):
    changes(table, SOURCE)


@pytest.mark.spark
@pytest.mark.parametrize("table", WITH_FIXED, indirect=True)
@pytest.mark.parametrize("mode", ["true", "false"])
def test_on_spark(table, spark, mode):
    spark.conf.set("spark.sql.ansi.enabled", mode)
    try:
        t = bh.open(table.uri, spark=spark)
        for where, rows in COUNTS.items():
            assert t.scan(where=where).to_spark().count() == rows, where
            assert t.delete(where, dry_run=True).rows_deleted == rows, where
        with pytest.raises(Exception, match=r"does not fit fixed\(3\)"):
            t.scan(where="cast(b as fixed(3)) = f").to_spark().collect()
        changes(t, spark.createDataFrame(SOURCE))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_delta_table_holds_no_expression_that_spark_cannot_read(tmp_path):
    uri = str(tmp_path / "t")
    bh.write(ROWS.select(["id", "b"]), uri, format="delta")
    t = bh.open(uri)
    assert t.scan(where="try_cast(b as fixed(4)) = X'61626364'").count() == 1
    with pytest.raises(ExpressionError, match="FIXED is no type of Spark"):
        t.add_constraint("four", "b IS NULL OR cast(b as fixed(4)) IS NOT NULL")
    t.add_constraint("words", "id > 0 OR 'as fixed(4)' = ''")
    with pytest.raises(ExpressionError, match="FIXED is no type of Spark"):
        with_generation(Schema((Field("b", BINARY), Field("c", BINARY))), {"c": "cast(b as fixed(4))"})


def test_the_text_that_spark_gets():
    assert text("a = 'as fixed(4)' AND unknown_to_us(b)") == "a = 'as fixed(4)' AND unknown_to_us(b)"
    assert text("try_cast(b as fixed(4))") == "CASE WHEN octet_length(CAST(b AS BINARY)) = 4 THEN CAST(b AS BINARY) END"
    assert "FIXED(" not in text("cast(b as fixed(4)) = f")
