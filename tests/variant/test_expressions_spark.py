"""The functions on variants give what Spark's give, over generated values, paths and types, and fail where they do."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE, from_arrow
from boathouse.compute.evaluate import evaluate
from boathouse.errors import BoathouseError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind
from boathouse.variant import Variant, VariantBuilder
from boathouse.variant.spark import SPARK_VARIANT, to_spark

pytestmark = pytest.mark.spark

SCALARS = [
    None, True, False, 0, 1, -1, 127, 128, -129, 32_768, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 1.5, -0.0,
    2.5e10, -1e300, 1e-7, math.nan, math.inf, -math.inf, Decimal("1.10"), Decimal("-0.005"), Decimal("99999999.5"),
    Decimal("123456789012345678901234567.89"), "", "12", " 7 ", "1.5", "true", "no", "x" * 70, "2020-02-29", "1e3", "ü",
    "2020-02-29 10:11:12.5", "2020-02-29T10:11:12+02:00", b"ab\x00", b"",
]  # fmt: skip
EXACT = [("date", 18_000), ("date", -1), ("timestamp", 1_600_000_000_123_456), ("timestamp", -1),
         ("timestamp_ntz", 86_399_999_999), ("float", 1.25), ("int64", 5), ("int32", 300), ("int16", -7),
         ("uuid", bytes(range(16)))]  # fmt: skip
PATHS = ["$", "$.a", "$.b.c", "$[0]", "$.a[1]", "$.b[0].a", "$['a']", '$["b"].c', "$.A"]
TYPES = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,10)",
         "string", "binary", "date", "timestamp", "timestamp_ntz"]  # fmt: skip


def scalar(source: random.Random) -> Variant:
    if source.random() < 0.3:
        kind, value = source.choice(EXACT)
        builder = VariantBuilder()
        getattr(builder, f"append_{kind}")(value)
        return builder.finish()
    return Variant.from_python(source.choice(SCALARS))


def value(source: random.Random, builder: VariantBuilder, depth: int = 0) -> None:
    kind = source.random()
    if depth > 2 or kind < 0.3:
        builder.append_variant(scalar(source))
    elif kind < 0.55:
        builder.begin_array()
        for _ in range(source.randrange(3)):
            value(source, builder, depth + 1)
        builder.end()
    else:
        builder.begin_object()
        for name in source.sample(["a", "b", "c", "A", "é"], source.randrange(4)):
            builder.key(name)
            value(source, builder, depth + 1)
        builder.end()


def rows(seed: int, count: int) -> pa.Array:
    source = random.Random(seed)
    made: list[Variant | None] = [Variant.from_python(s) for s in SCALARS if not isinstance(s, float) or s == s]
    for kind, content in EXACT:
        builder = VariantBuilder()
        getattr(builder, f"append_{kind}")(content)
        made.append(builder.finish())
    while len(made) < count:
        builder = VariantBuilder()
        value(source, builder)
        made.append(builder.finish() if source.random() < 0.95 else None)
    return pa.array([v and {"metadata": v.metadata, "value": v.value} for v in made], VARIANT_STORAGE)


@pytest.fixture(scope="module")
def data(spark: Any) -> pa.RecordBatch:
    v = rows(5, 250)
    k = pa.array(range(len(v)), pa.int32())
    sent = pa.table([k, to_spark(v)], schema=pa.schema([pa.field("k", pa.int32()), pa.field("v", SPARK_VARIANT)]))
    spark.createDataFrame(sent).createOrReplaceTempView("variants")
    field = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
    return pa.RecordBatch.from_arrays([k, v], schema=pa.schema([pa.field("k", pa.int32()), field]))


def canonical(array: Any) -> list[Any]:
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [
        ("nan" if math.isnan(v) else struct.pack(">d", v)) if isinstance(v, float) else v for v in array.to_pylist()
    ]


def alike(a: str | None, b: str | None) -> bool:
    """Objects and arrays as text are the same JSON; ours keeps the digits of decimals, and ISO's form of instants."""
    if a is None or b is None or a[0] not in "[{":
        return False
    return _plain(json.loads(a, parse_float=Decimal)) == _plain(json.loads(b, parse_float=Decimal))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return _instant(value.replace("T", " ").replace("Z", "+00:00")) if isinstance(value, str) else value


def _instant(text: str) -> Any:
    """Instants inside of JSON: Spark prints them in its session's zone, and here they are in UTC."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if found.tzinfo is None else found.astimezone(dt.UTC)


def compare(spark: Any, data: pa.RecordBatch, expressions: list[str], zone: str = "UTC") -> list[str]:
    schema = from_arrow(data.schema)
    columns = ", ".join(f"{e} AS c{i}" for i, e in enumerate(expressions))
    theirs = spark.sql(f"SELECT k, {columns} FROM variants ORDER BY k").toArrow()
    problems = []
    for i, e in enumerate(expressions):
        ours, other = evaluate(bind(parse(e), schema, zone), data), theirs.column(i + 1)
        if pa.types.is_timestamp(other.type) and other.type.tz:
            other = other.cast(pa.timestamp("us", "UTC"))
        if ours.type != other.type:
            problems.append(f"{e}: ours is {ours.type}, Spark's {other.type}")
        texts = pa.types.is_string(ours.type)
        for row, (a, b) in enumerate(zip(canonical(ours), canonical(other))):
            if a != b and not (texts and alike(a, b)):
                v = data.column("v")[row].as_py()
                problems.append(f"{e} of {Variant(**v).to_json(special='string')}: ours {a!r}, Spark's {b!r}")
    return problems


@pytest.mark.spec("V-061", "V-062", "V-063")
@pytest.mark.parametrize("type", TYPES)
def test_try_variant_get(spark: Any, data: pa.RecordBatch, type: str) -> None:
    quoted = [p.replace("'", "\\'") for p in PATHS]
    assert compare(spark, data, [f"try_variant_get(v, '{p}', '{type}')" for p in quoted]) == []


@pytest.mark.parametrize("name", ["America/New_York", "Asia/Kolkata"])
def test_times_in_the_sessions_zone(spark: Any, data: pa.RecordBatch, name: str) -> None:
    """Dates, clocks and strings of instants, and instants of those, are the session's."""
    wanted = [f"try_variant_get(v, '{p}', '{t}')" for p in ("$", "$.a") for t in (*TYPES[-3:], "string")]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        assert compare(spark, data, [*wanted, "TRY_CAST(v AS DATE) = DATE'2019-04-14'"], name) == []
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.route("conditions on variants")
def test_predicates_and_schemas(spark: Any, data: pa.RecordBatch) -> None:
    expressions = [
        "is_variant_null(v)", "v IS NULL", "variant_get(v, '$.a') IS NULL", "is_variant_null(variant_get(v, '$.a'))",
        "schema_of_variant(v)", "schema_of_variant(variant_get(v, '$.b'))", "try_variant_get(v, '$.a', 'int') > 0",
        "CASE WHEN k < 3 THEN variant_get(v, '$', 'string') END", "TRY_CAST(v AS INT)", "TRY_CAST(v AS STRING)",
        "coalesce(try_variant_get(v, '$.a', 'double'), 0D)", "to_json(v) IS NULL", "to_json(v) LIKE '\"%'",
        "try_variant_get(variant_get(v, '$.b'), '$.c', 'string')",
    ]  # fmt: skip
    assert compare(spark, data, expressions) == []


def fails(spark: Any, e: str, k: int) -> bool:
    try:
        spark.sql(f"SELECT {e} FROM variants WHERE k = {k}").collect()
    except Exception as problem:
        assert "INVALID_VARIANT_CAST" in str(problem), problem
        return True
    return False


@pytest.mark.spec("V-063")
@pytest.mark.parametrize("type", ["tinyint", "int", "decimal(9,2)", "boolean", "date"])
def test_strict_casts_fail_on_the_same_rows(spark: Any, data: pa.RecordBatch, type: str) -> None:
    """A row on which Spark fails is one where it gives no value although something is there that is not null."""
    e = f"variant_get(v, '$', '{type}')"
    bound = bind(parse(e), from_arrow(data.schema))
    picks = random.Random(type).sample(range(len(data)), 12)
    for k in picks:
        try:
            evaluate(bound, data.slice(k, 1))
            ours = False
        except BoathouseError:
            ours = True
        assert ours == fails(spark, e, k), (k, data.column("v")[k].as_py())


@pytest.mark.spec("V-064")
def test_parse_json(spark: Any) -> None:
    texts = [
        "1", "1.10", "1e3", "-0", "12345678901234567890", "1" * 39, "[1, 2, {}]", '{"b": 1, "a": null}', '"\\u00fc"',
        "null", " true ", "", "{", "nul", "01", "1.", "[1,]", '{"a" 1}', "'x'", '{"a":1,"a":2}', "NaN", None, "[[]]",
        "1E-7", "123456789.123456789", "0.00000000000000000000000000000000000001", '"' + "x" * 100 + '"',
    ]  # fmt: skip
    table = pa.table({"k": pa.array(range(len(texts)), pa.int32()), "t": pa.array(texts, pa.string())})
    spark.createDataFrame(table).createOrReplaceTempView("texts")
    # Spark's own toArrow fails on variants that are null.
    columns = "try_parse_json(t) v, schema_of_variant(try_parse_json(t)) s"
    theirs = spark.sql(f"SELECT {columns} FROM texts ORDER BY k").collect()
    ours = evaluate(bind(parse("try_parse_json(t)"), from_arrow(table.schema)), table)
    schemas = evaluate(bind(parse("schema_of_variant(try_parse_json(t))"), from_arrow(table.schema)), table)
    for text, a, b in zip(texts, ours.to_pylist(), [row.v for row in theirs], strict=True):
        assert (a and Variant(**a)) == (b and Variant(b.metadata, b.value)), text
    assert schemas.to_pylist() == [row.s for row in theirs]


@pytest.mark.spec("V-078", "V-080")
def test_conditions_over_shredded_files(spark: Any, data: pa.RecordBatch, tmp_path: Path) -> None:
    """The same rows pass in Spark over its view, and with us over our shredded file."""
    bh.write_parquet(pa.Table.from_batches([data]), tmp_path / "f.parquet", row_group_rows=50,
                     shred={"v": "struct<a:array<bigint>,b:struct<c:string>>"})  # fmt: skip
    source = random.Random(3)
    for _ in range(25):
        path, type = source.choice(PATHS[:6]), source.choice(["int", "double", "string", "boolean"])
        literal = {"int": "1", "double": "1.5D", "string": "'12'", "boolean": "true"}[type]
        where = f"try_variant_get(v, '{path}', '{type}') {source.choice(['=', '<', '>=', '!=', '<=>'])} {literal}"
        theirs = [r[0] for r in spark.sql(f"SELECT k FROM variants WHERE {where} ORDER BY k").collect()]
        assert bh.read_parquet(tmp_path / "f.parquet", columns=["k"], where=where)["k"].to_pylist() == theirs, where
