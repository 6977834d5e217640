"""Random conditions that come before and after a frame is made, in four time zones, with ANSI mode and without it,
against Spark on plain Parquet files from which it is told to push nothing down."""

from __future__ import annotations

import datetime as dt
import math
import random
from contextlib import suppress
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError

pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.spark

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kathmandu", "Europe/Lisbon")
FILES = 12
PUSHDOWN = "spark.sql.parquet.filterPushdown.enabled"
UTC = dt.UTC
VALUES = {
    "i": [-(2**31), -1, 0, 1, 7, 2**31 - 1],
    "l": [-(2**63), -5, 0, 3, 2**53 + 1, 2**63 - 1],
    "f": [math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf, 5e-324, 1.7976931348623157e308],
    "g": [math.nan, -0.0, 0.0, 0.1, 16777216.0, -2.5, -math.inf, math.inf, 2.0**-149, 3.4028234663852886e38],
    "n": [Decimal("-99999999.99"), Decimal("0.00"), Decimal("1.25"), Decimal("1.26")],
    "s": ["", "a", "A", "ab", "Ünï", "東京", "🙂", "zz" * 40, "a "],
    "d": [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1970, 1, 1), dt.date(2020, 11, 1)],
    "ts": [
        dt.datetime(1500, 3, 1, 12, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2020, 11, 1, 8, 30, tzinfo=UTC), dt.datetime(2020, 11, 1, 9, 30, tzinfo=UTC),
        dt.datetime(2021, 3, 14, 10, tzinfo=UTC),
    ],
    "ntz": [dt.datetime(1500, 3, 1), dt.datetime(2020, 11, 1, 1, 30), dt.datetime(2021, 3, 14, 2, 30)],
    "b": [True, False],
    "p": [-3, 0, 4, 11],
    "q": [dt.date(1500, 1, 1), dt.date(2020, 11, 1), dt.date(2024, 2, 29)],
    "w": [math.nan, -0.0, 0.0, -1.5, math.inf, -math.inf, 5e-324],
}  # fmt: skip
TYPES = {
    "i": pa.int32(), "l": pa.int64(), "f": pa.float64(), "g": pa.float32(), "n": pa.decimal128(10, 2), "s": pa.string(),
    "d": pa.date32(), "ts": pa.timestamp("us", "UTC"), "ntz": pa.timestamp("us"), "b": pa.bool_(), "p": pa.int32(),
    "q": pa.date32(), "w": pa.float64(),
}  # fmt: skip
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.float64()), ("z", pa.int64())])
PARTITION = ("p", "q", "w")


def tables(chance: random.Random) -> list[pa.Table]:
    """One table a file: few values a column, so that bounds exclude some conditions; partition columns have one."""
    found = []
    for number in range(FILES):
        some = {
            c: chance.choices([*v, None], k=1 if c in PARTITION else chance.randint(1, 3)) for c, v in VALUES.items()
        }
        rows = [{c: chance.choice(v) for c, v in some.items()} for _ in range(chance.randint(1, 5))]
        columns = {"id": pa.array(range(100 * number, 100 * number + len(rows)), pa.int64())}
        columns |= {c: pa.array([r[c] for r in rows], t) for c, t in TYPES.items()}
        columns["st"] = pa.array([{"x": r["l"], "y": r["f"], "z": r["i"]} for r in rows], STRUCT)
        found.append(pa.table(columns))
    return found


def literal(value: object, column: str) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float():
            name = "float" if column == "g" else "double"
            text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), repr(value))
            return f"{name}('{text}')"
        case Decimal():
            return f"CAST('{value}' AS decimal(10,2))"
        case int():
            return f"CAST('{value}' AS {'bigint' if column == 'l' else 'int'})"
        case str():
            return "'" + value.replace("'", "\\'") + "'"
        case dt.datetime():
            zone = "Z" if value.tzinfo else ""
            kind = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
            return f"{kind}'{value.replace(tzinfo=None).isoformat()}{zone}'"
    return f"DATE'{value}'"


def leaf(chance: random.Random) -> str:
    column = chance.choice(list(VALUES))
    value = literal(chance.choice(VALUES[column]), column)
    other = literal(chance.choice([*VALUES[column], None]), column)
    op = chance.choice(["=", "<", "<=", ">", ">=", "!=", "<=>"])
    plain = [
        f"{column} {op} {value}", f"{value} {op} {column}", f"{column} IS NULL", f"{column} IS NOT NULL",
        f"{column} IN ({value}, {other})", f"{column} NOT IN ({value}, {other})", f"NOT ({column} {op} {value})",
        f"{column} BETWEEN {value} AND {other}", f"coalesce({column}, {value}) {op} {value}",
    ]  # fmt: skip
    many = ", ".join(literal(v, "l") for v in (*VALUES["l"], *range(20, 30)))
    floats = ", ".join(literal(float(v), "f") for v in (chance.choice([0.0, -0.0, 1.5]), math.nan, *range(20, 32)))
    days = ", ".join(f"DATE'{v}'" for v in (*VALUES["d"][::2], *(f"1970-02-{n:02}" for n in range(1, 12))))
    special = [
        "s LIKE 'a%'", "s LIKE '%b'", "startswith(s, 'a')", "s NOT LIKE 'a%'", "upper(s) = 'A'", "s = 'a' OR s > 'z'",
        "s COLLATE utf8_lcase = 'A'", "rtrim(s) = 'a'", f"l IN ({many})", f"l NOT IN ({many})", "i % 2 = 1",
        f"f IN ({floats})", f"f NOT IN ({floats})", f"d IN ({days})", f"d NOT IN ({days})", f"d NOT IN ({days}, NULL)",
        f"w NOT IN ({floats})",
        "p % 3 = 1", "p + i % 10 > 3",
        "isnan(f)", "NOT isnan(w)", "f = g", "i = l", "i > 0.5",
        "l >= 9007199254740992D", "n > 1.255", "n = 1.25D", "CAST(i AS bigint) = 7", "try_cast(s AS int) IS NULL",
        "ts > '2020-11-01 01:30:00'",
        "ts = TIMESTAMP'2020-11-01 01:30:00'", "CAST(ts AS date) = DATE'2020-11-01'", "ts < DATE'2020-11-01'",
        "d = CAST(ts AS date)", "ntz > ts", "ntz = TIMESTAMP'2020-11-01 01:30:00'", "hour(ts) = 1", "year(q) = 2020",
        "CAST(q AS timestamp) <= TIMESTAMP'2020-11-01T07:00:00Z'", "q = CAST(ts AS date)", "date_trunc('day', ts) = ts",
        "st.x = 3", "st.y < 1", "st.z = 7", "st.z < 0 OR st.x > 0", "st.z IN (1, 7)",
        "st IS NULL", "st.x IS NULL", "b", "NOT b", "b = (p > 0)", "w = f", "w > 0", "w <= 0",
        "CASE WHEN p > 0 THEN l ELSE i END > 2", "if(b, i, p) = 0", "(b AND i > 0) IS NULL", "abs(p) = 3",
        "d BETWEEN '1582-10-04' AND '1970-01-01'", "length(s) = 1",
    ]  # fmt: skip
    return chance.choice(plain if chance.random() < 0.6 else special)


def condition(chance: random.Random, depth: int = 0) -> str:
    if depth == 2 or chance.random() < 0.45:
        return leaf(chance)
    parts = [condition(chance, depth + 1) for _ in range(2)]
    joined = f"({parts[0]}) {chance.choice(['AND', 'OR'])} ({parts[1]})"
    return f"NOT ({joined})" if chance.random() < 0.2 else joined


SETTINGS = {
    # Tables are tiny: compiling a query, and room for large batches, take longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.columnarReaderBatchSize": "32",
    "spark.sql.files.openCostInBytes": "0",
    "spark.sql.files.minPartitionNum": "1",
}


@pytest.fixture
def session(spark):
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name in (*SETTINGS, "spark.sql.ansi.enabled", PUSHDOWN):
        spark.conf.unset(name)
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def check(spark, tmp_path, format, seed, count):
    """Compares so many conditions over one table in each zone, with and without ANSI mode."""
    chance = random.Random(f"{seed} {format}")
    made = tables(chance)
    uri, plain = str(tmp_path / f"t{seed}"), str(tmp_path / f"plain{seed}.parquet")
    for i, rows in enumerate(made):
        bh.write(rows, uri, format=format, mode="append", **({} if i else {"partition_by": list(PARTITION)}))
    pq.write_table(pa.concat_tables(made), plain)
    for zone in ZONES:
        for ansi in ("true", "false"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            compare(spark, uri, plain, [condition(chance) for _ in range(count)], (zone, ansi))


def compare(spark, uri, plain, conditions, where):
    """One query asks for the rows of each condition by a scan of its own, and of every fifth by an early one too."""
    spark.conf.set(PUSHDOWN, "false")
    judged = spark.read.parquet(plain).selectExpr("id", *(f"({c}) AS c{i}" for i, c in enumerate(conditions)))
    expected = judged.toArrow().to_pylist()
    spark.conf.unset(PUSHDOWN)
    table = bh.open(uri, spark=spark)
    table.to_spark().createOrReplaceTempView("late")
    asked = {f"late: {text}": (i, f"late WHERE {text}") for i, text in enumerate(conditions)}
    for i, text in list(enumerate(conditions))[::5]:
        with suppress(BoathouseError):  # not in our dialect
            table.scan(["id"], where=text).to_spark().createOrReplaceTempView(f"early{i}")
            asked[f"early: {text}"] = (i, f"early{i}")
    parts = [f"SELECT {n} AS n, id FROM {rows}" for n, (_, rows) in enumerate(asked.values())]
    found = spark.sql(" UNION ALL ".join(parts)).toArrow().to_pylist()
    got = [sorted(r["id"] for r in found if r["n"] == n) for n in range(len(asked))]
    wanted = [sorted(r["id"] for r in expected if r[f"c{i}"]) for i, _ in asked.values()]
    wrong = {name: (g, w) for name, g, w in zip(asked, got, wanted, strict=True) if g != w}
    assert wrong == {}, where


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_random_conditions_late_and_early(session, tmp_path, format):
    check(session, tmp_path, format, 1, 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 27))
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_many_random_conditions_late_and_early(session, tmp_path, format, seed):
    """2 formats, 25 tables, 4 zones, 2 modes, 50 conditions: 20,000, and every fifth also early."""
    check(session, tmp_path, format, seed, 50)
