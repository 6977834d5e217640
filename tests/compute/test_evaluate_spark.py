"""Expressions mean what Spark means: a few hundred of them over nasty rows, in a handful of Spark jobs."""

# ruff: noqa: E501

import datetime as dt
import math
import random
import struct
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pytest

from boathouse.arrow.schema import from_arrow, to_arrow_type
from boathouse.compute.evaluate import evaluate
from boathouse.errors import BoathouseError, EvaluationError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind

pytestmark = pytest.mark.spark

INT_EDGES = {8: [-128, 127], 16: [-32768, 32767], 32: [-(2**31), 2**31 - 1], 64: [-(2**63), 2**63 - 1]}
US = 1_000_000
INSTANTS = [
    0,
    -1,
    -62_135_596_800 * US,
    253_402_300_799 * US + 999_999,
    1_582_934_400 * US,
    -US * 3600 - 1,
    None,
    951_782_399 * US,
]
DAYS = [0, -1, -719_162, 2_932_896, 18_321, 11_016, None, 364]


def decimals(strings: list) -> list:
    return [None if t is None else Decimal(t) for t in strings]


def nasty() -> pa.Table:
    ints = {f"i{b}": pa.array([*INT_EDGES[b], 0, 1, -1, 7, None, -8], f"int{b}") for b in (8, 16, 32, 64)}
    doubles = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, None, -2.5]
    columns = {
        "k": pa.array(range(8), pa.int32()),
        **ints,
        "f32": pa.array(doubles, pa.float32()),
        "f64": pa.array([math.nan, 0.0, -0.0, 1e300, -5e-324, 2.675, None, -1234567.891], pa.float64()),
        "g64": pa.array([math.nan, -0.0, 3.5, math.inf, -math.inf, 2.675, 1.0, None], pa.float64()),
        "s": pa.array(["", "abc", " Ab%c_ ", "ß\U0001f389é", "z\u0301a", "A\\b", None, "  12 "]),
        "t": pa.array(["a", "abc", "", "\U0001f389", "b", "a%", "abc", None]),
        "d": pa.array(DAYS, pa.int32()).view(pa.date32()),
        "e": pa.array([None, *DAYS[:5], 0, 1], pa.int32()).view(pa.date32()),
        "ts": pa.array(INSTANTS, pa.int64()).view(pa.timestamp("us", "UTC")),
        "ntz": pa.array([*INSTANTS[1:], 5], pa.int64()).view(pa.timestamp("us")),
        "dec": pa.array(decimals(["0.00", "-0.01", "99999999.99", "-99999999.99", "1.25", "2.35", None, "-7.50"]), pa.decimal128(10, 2)),
        "big": pa.array(decimals(["0", "1e-10", "-1.5", "9999999999999999999999999999.9999999999", None, "3", "0.5", "-2.25"]), pa.decimal128(38, 10)),
        "b": pa.array([True, False, None, True, False, None, True, False]),
        "x": pa.array([b"", b"\x00", b"\xff", b"abc", None, b"ab", b"\x7f", b"\x80"]),
        "st": pa.array([{"n": 1, "w": "a"}, {"n": None, "w": "b"}, None, *[{"n": 5, "w": None}] * 5], pa.struct([("n", pa.int32()), ("w", pa.string())])),
        "l": pa.array([[1], [], None, [None, 2], [1, 2, 3], [], [0], None], pa.list_(pa.int32())),
        "m": pa.array([1, -3, 0, 10, 25, None, 7, -99], pa.int32()),
        "n": pa.array([2, 5, -7, None, 3, 1, 4, -2], pa.int32()),
        "p": pa.array([0.5, -2.25, 100.0, None, 3.0, -0.5, 1e6, 7.125], pa.float64()),
        "q": pa.array([2.0, 0.25, -4.0, 1.0, None, 8.0, -0.5, 16.0], pa.float64()),
        "c": pa.array([Decimal(v) for v in ["0.5", "-1.25", "3.00", "100.10", "-7.77", "2.5", "0.01", "9.99"]], pa.decimal128(6, 2)),
    }  # fmt: skip
    return pa.table(columns)


OPS = ["=", "!=", "<", "<=", ">", ">=", "<=>"]
PAIRS = [
    ("i8", "i64"), ("i32", "f32"), ("f32", "f64"), ("f64", "g64"), ("i64", "f64"), ("dec", "i32"), ("dec", "big"),
    ("dec", "f64"), ("s", "t"), ("d", "e"), ("d", "ts"), ("d", "ntz"), ("ts", "ntz"), ("x", "X'80'"), ("b", "true"),
    ("i32", "1.5"), ("i32", "'7'"), ("d", "'1969-12-31'"), ("ts", "'1970-01-01 00:00:00'"), ("f64", "0"),
    ("g64", "CAST('NaN' AS DOUBLE)"), ("f32", "CAST('NaN' AS FLOAT)"), ("f32", "-0.0D"), ("i8", "300"), ("dec", "1.25"),
    ("dec", "1.251"), ("i64", "9223372036854775808"), ("st.n", "1"), ("s", "NULL"), ("c", "m"),
]  # fmt: skip
CONDITIONS = [
    "i32 IN (0, 7, NULL)", "i32 NOT IN (0, 7)", "f64 IN (0.0D, CAST('NaN' AS DOUBLE))", "g64 IN (1, 3.5)",
    "s IN ('abc', '')", "d IN ('1970-01-01', DATE'2020-02-29')", "dec IN (1.25, 2)", "m IN (n, 1)", "t IN (s, 'a')",
    "s LIKE 'a%'", "s LIKE '%\\\\%%'", "s LIKE '_bc'", "s LIKE ''", "s LIKE '%'", "s ILIKE ' aB%'", "s NOT LIKE '%b%'",
    "s LIKE '%!%c!_%' ESCAPE '!'", "s LIKE t", "s LIKE 'A\\\\\\\\b'", "s LIKE '_\U0001f389_'",
    "m BETWEEN 0 AND 10", "NOT (m BETWEEN n AND 10)", "b AND m > 0", "b OR m > 0", "NOT b", "b AND NULL", "b OR NULL",
    "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "m IS NULL", "m IS NOT NULL", "st IS NULL", "st.w IS NULL", "b = (m > 0)",
    "m <> 0 AND 10 / m > 1", "m = 0 OR 10 / m > 1", "startswith(s, 'a')", "endswith(s, t)", "contains(s, 'b')",
    "isnan(f64)", "isnan(g64) AND b", "isnull(m)", "isnotnull(m)", "b IS DISTINCT FROM true", "m IS NOT DISTINCT FROM n",
    "cast(s as string) = 'abc'", "CAST(DATE'1900-03-01' AS STRING) < s", "coalesce(ntz, ntz) = ntz", "(m > 1) <=> NULL", "true", "NULL = 1", "1 = 1.0", "'a' < 'B'", "'it''s' = \"it's\"",
]  # fmt: skip
VALUES = [
    "m + n", "m - n", "m * n", "m / n", "m % 3", "-m", "abs(m)", "m + 1L", "m + 1.5", "m * 1.5D", "m + p", "m div 4",
    "p + q", "p - q", "p * q", "p / q", "p % q", "-p", "-f64", "abs(f64)", "f32 + f32", "g64 * 2", "m / 2", "pmod(m, 7)",
    "pmod(m, -7)", "mod(m, 4)", "pmod(p, 3)", "c + c", "c - m", "c * c", "c / 3", "c / 1.7", "c % 0.3", "c * p", "-c",
    "abs(c)", "dec + dec", "dec * c", "dec / c", "big + c", "big / 7", "c + 1", "1 / c", "pmod(c, 0.3)", "c * 123456789012345678",
    "ceil(p)", "floor(p)", "ceil(c)", "floor(c)", "floor(m)", "round(p)", "round(p, 1)", "round(f64, 2)", "round(c, 1)",
    "round(c)", "round(m, -1)", "round(c, -1)", "round(p, -2)", "round(big, 3)", "round(-0.4D)", "sign(p)", "sign(-0.0D)",
    "signum(f64)", "sqrt(abs(p))", "sqrt(q)", "power(m, 2)", "greatest(m, n)", "least(m, n, 3)", "greatest(f64, g64)",
    "least(f64, g64)", "greatest(s, t)", "greatest(c, m)", "least(d, e)", "coalesce(m, n, 0)", "coalesce(m, 1.5)",
    "nvl(s, 'none')", "nullif(m, 1)", "nullif(f64, 0)", "if(b, m, n)", "if(b, m, 2.5)", "if(b, 'x', NULL)",
    "CASE WHEN m > 0 THEN 'pos' WHEN m < 0 THEN 'neg' ELSE 'none' END", "CASE m WHEN 1 THEN n WHEN 0 THEN -1 END",
    "CASE WHEN m = 0 THEN 0 ELSE 100 / m END", "nvl2(m, 1, 2)", "CASE WHEN b THEN d ELSE ts END", "coalesce(d, ts)",
    "upper(s)", "lower(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "length(s)", "length(x)", "char_length(t)",
    "substring(s, 2, 2)", "substring(s, -2)", "substring(s, 0, 1)", "substring(s, -9, 8)", "substring(s, m, n)", "substr(s, 3)",
    "left(s, 2)", "right(s, 2)", "left(s, -1)", "right(s, n)", "concat(s, t)", "s || '-' || m", "concat(x, x)",
    "concat_ws('/', s, t, m)", "concat_ws(s, t, t)", "replace(s, 'b', 'XX')", "replace(s, 'a')", "replace(s, t, '.')",
    "concat(b, d, c)", "year(d)", "month(d)", "day(d)", "quarter(d)", "dayofweek(d)", "weekday(d)", "dayofyear(d)",
    "weekofyear(d)", "last_day(d)", "year(ts)", "month(ntz)", "day(ts)", "hour(ts)", "minute(ts)", "second(ts)",
    "hour(ntz)", "date_add(d, m)", "date_add(d, i32)", "date_sub(d, i32)", "datediff(date_add(d, i32), e)", "date_sub(d, 400)", "d + 1", "d - 1", "datediff(d, e)", "trunc(d, 'MM')", "trunc(d, 'week')",
    "trunc(d, 'quarter')", "trunc(d, 'YEAR')", "trunc(d, 'nope')", "date_trunc('year', ts)", "date_trunc('week', ts)",
    "date_trunc('DAY', ntz)", "date_trunc('hour', ts)", "date_trunc('minute', d)", "date_trunc('second', ts)",
    "date_trunc('millisecond', ts)", "date_trunc('quarter', ts)", "to_date(ts)", "to_date('2020-02-29')", "size(l)",
    "to_timestamp('2020-02-29 1:2:3.5')", "cast(m as string)", "cast(c as string)", "cast(big as string)",
    "cast(p as string)", "cast(d as string)", "cast(ts as string)", "cast(ntz as string)", "cast(b as string)",
    "cast(i64 as double)", "cast(i64 as float)", "cast(dec as double)", "cast(big as double)", "cast(c as float)",
    "cast(m as tinyint)", "cast(p as int)", "cast(c as int)", "cast(c as decimal(10,1))", "cast(p as decimal(12,2))",
    "cast(m as decimal(10,2))", "cast(b as int)", "cast(b as decimal(3,1))", "cast(m as boolean)", "cast(f64 as boolean)",
    "cast(c as boolean)", "cast(d as timestamp)", "cast(d as timestamp_ntz)", "cast(ts as date)", "cast(ntz as timestamp)",
    "cast(ts as timestamp_ntz)", "cast(f64 as float)", "cast(f32 as double)", "cast(s as binary)", "try_cast(s as int)",
    "try_cast(t as boolean)", "try_cast(s as date)", "try_cast(i64 as int)", "try_cast(f64 as bigint)", "try_cast(dec as decimal(4,1))",
    "try_cast(f64 as decimal(5,1))", "cast('1e3' as double)", "cast('1.255' as decimal(5,2))", "cast(' 2020-1-2 ' as date)",
    "cast('2020-01-01T10:11:12.1234567+02:30' as timestamp)", "cast('2020-07-01 10:00:00 Europe/Paris' as timestamp)",
    "cast('2020-01-01 10:00:00Z' as timestamp_ntz)", "st.n + 1", "1.10", "1e2", "5L", "5S", "5Y", "1.5F", "2.50BD", "X'1f'",
    "DATE'0001-01-01'", "TIMESTAMP'1969-12-31 23:59:59.5'", "TIMESTAMP_NTZ'2020-01-01 00:00:00'", "'a' 'b'", "'tab\\t'",
    "double(m)", "double('NaN')", "float('-inf')", "int(p)", "bigint(c)", "smallint('7')", "tinyint(b)", "string(d)", "string(c)",
    "date(ts)", "date('2020-02-29')", "timestamp(d)", "timestamp('2020-02-29 01:02:03')", "boolean(m)", "decimal(m)", "binary(s)",
    "array(m, n)", "array(m, 1.5D, NULL)", "array(s, 'x')", "size(array(m, n, 1))",
    "named_struct('a', m, 'b c', s)", "if(b, array(m), array(n, n))",
    "cast(ts as bigint)", "cast(ts as double)", "cast(ts as float)", "cast(ts as decimal(24,6))", "cast(ts as decimal(38,2))",
    "cast(timestamp'2020-01-01 00:00:00.5Z' as bigint)", "cast(timestamp'1969-12-31 23:59:59.25Z' as bigint)",
    "cast(timestamp'2020-01-01 00:00:00.5Z' as int)", "cast(timestamp'1969-12-31 23:59:59.25Z' as double)",
    "cast(m as timestamp)", "cast(i64 as timestamp)", "cast(i8 as timestamp)", "cast(p as timestamp)", "cast(q as timestamp)",
    "cast(c as timestamp)", "cast(-1.5D as timestamp)", "cast(1.25 as timestamp)", "cast(7 as timestamp)",
    "try_cast(g64 as timestamp)", "try_cast(ts as int)",
]  # fmt: skip
RAISING = [
    "i32 + 1", "i64 - 1", "-i32", "abs(i8)", "i32 * 2", "m / 0", "m % 0", "p / 0", "m div 0", "pmod(m, 0)", "c / 0",
    "cast(i64 as int)", "cast(i32 as tinyint)", "cast(f64 as int)", "cast(s as int)", "cast(t as date)", "cast(t as boolean)",
    "cast(dec as decimal(4,1))", "cast(f64 as decimal(5,1))", "s = 1", "t > DATE'2020-01-01'", "10 / m", "i8 + i8",
    "s LIKE 'a\\\\bc'", "big * big", "ceil(f64)", "cast(g64 as bigint)", "cast(ts as int)", "cast(ts as smallint)", "cast(g64 as timestamp)", "cast(1e300D as timestamp)", "cast(ts as decimal(5,0))", "round(i32, -1)",
]  # fmt: skip


def generated() -> list[str]:
    """Random expressions over the mild columns: all kinds of types side by side."""
    rng = random.Random(20240229)
    numbers = [
        "m",
        "n",
        "p",
        "q",
        "c",
        "3",
        "-2",
        "1.5",
        "0.25D",
        "7L",
        "st.n",
        "cast(m as smallint)",
        "cast(p as float)",
    ]
    words = ["s", "t", "'abc'", "''", "upper(t)", "concat(t, 'x')"]
    times = ["d", "e", "ts", "ntz", "DATE'2000-02-29'", "TIMESTAMP'1970-01-01 00:00:01Z'"]

    def number(depth: int) -> str:
        if depth == 0:
            return rng.choice(numbers)
        kind = rng.randrange(7)
        a, b = number(depth - 1), number(depth - 1)
        if kind < 3:
            return f"({a} {rng.choice('+-*')} {b})"
        return [f"CASE WHEN {condition(0)} THEN {a} ELSE {b} END", f"coalesce({a}, {b})", f"greatest({a}, {b})",
                f"abs({a})"][kind - 3]  # fmt: skip

    def condition(depth: int) -> str:
        if depth == 0:
            kind = rng.randrange(4)
            if kind < 2:
                return f"({number(1)} {rng.choice(OPS)} {number(0)})"
            pool = words if kind == 2 else times
            return f"({rng.choice(pool)} {rng.choice(OPS)} {rng.choice(pool)})"
        return rng.choice(["({} AND {})", "({} OR {})", "(NOT {} AND {})"]).format(
            condition(depth - 1), condition(depth - 1)
        )

    return [number(2) for _ in range(80)] + [condition(rng.randrange(3)) for _ in range(120)]


def canonical(array) -> list:
    """Values that compare by what they are: days and micros as integers, -0.0 apart from 0.0, NaN alike."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [
        ("nan" if math.isnan(v) else struct.pack(">d", v)) if isinstance(v, float) else v for v in array.to_pylist()
    ]


def show(spark, batch: pa.Table) -> None:
    """The batch as the view `nasty`; Arrow's naive timestamps arrive as TIMESTAMP and are cast back, in UTC."""
    columns = {
        f.name: f"cast({f.name} as timestamp_ntz) as {f.name}" for f in batch.schema if f.type == pa.timestamp("us")
    }
    with session_zone(spark, "UTC"):
        frame = spark.createDataFrame(batch).selectExpr(*[columns.get(n, n) for n in batch.column_names])
        frame.createOrReplaceTempView("nasty")
        types = dict(frame.dtypes)
    assert all(types[n] == "timestamp_ntz" for n in columns)


@contextmanager
def session_zone(spark, zone: str):
    """The session's time zone while the block runs."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield zone
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]


@pytest.fixture(params=ZONES)
def zone(spark, request):
    with session_zone(spark, request.param) as name:
        yield name


def compare(spark, batch: pa.Table, expressions: list[str], zone: str = "UTC") -> list[str]:
    """What differs between ours, bound in `zone`, and Spark's in its session's: type or values."""
    schema = from_arrow(batch.schema)
    show(spark, batch)
    ours = {}
    failed = []
    for sql in expressions:
        try:
            ours[sql] = evaluate(bind(parse(sql), schema, zone), batch)
        except BoathouseError as error:
            failed.append(f"{sql}: {error}")
    problems = failed
    for chunk in chunks(list(ours), 100):
        columns = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(chunk))
        try:
            theirs = spark.sql(f"SELECT k, {columns} FROM nasty ORDER BY k").toArrow()
        except Exception:
            problems += [p for sql in chunk for p in alone(spark, sql)]
            continue
        for i, sql in enumerate(chunk):
            mine, other = ours[sql], theirs.column(i + 1)
            if in_utc(mine.type) != in_utc(other.type) and not pa.types.is_null(other.type):
                problems.append(f"{sql}: ours is {mine.type}, Spark's {other.type}")
            elif canonical(mine) != canonical(other):
                problems.append(f"{sql}:\n   ours  {mine}\n   spark {other.combine_chunks()}".replace(",\n ", ","))
    return problems


def in_utc(type: pa.DataType) -> pa.DataType:
    """Spark hands instants over in its session's zone."""
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type) and type.tz else type


def chunks(items: list, size: int):
    return [items[i : i + size] for i in range(0, len(items), size)]


def alone(spark, sql: str) -> list[str]:
    try:
        spark.sql(f"SELECT {sql} FROM nasty").toArrow()
    except Exception as error:
        return [f"{sql}: Spark raises {str(error)[:150]}"]
    return []


@pytest.fixture(scope="module")
def batch() -> pa.Table:
    return nasty()


def test_comparisons(spark, batch, zone):
    both = [f"{a} {op} {b}" for a, b in PAIRS for op in OPS] + [f"{b} {op} {a}" for a, b in PAIRS for op in ("<", ">=")]
    assert compare(spark, batch, both, zone) == []


@pytest.mark.route("conditions")
def test_conditions(spark, batch, zone):
    assert compare(spark, batch, CONDITIONS, zone) == []


@pytest.mark.route("values")
def test_values(spark, batch, zone):
    wrong = compare(spark, batch, VALUES, zone)
    assert not wrong, "; ".join(wrong)


def hours() -> pa.Table:
    """Instants and wall clocks around the changes of clocks that the zones above have and had, one an odd minute."""
    changes = [1_710_054_000, 1_730_613_600, 1_712_415_600, 1_728_142_200, -1_633_276_800, 2_214_282_600, 4_099_140_000]
    long_ago = [-2_717_650_800, -3_645_237_208, -1_167_642_600, -62_135_596_800 - 86_400 * 400, -5_000_000_000]
    around = [-86_400, -5_400, -3_600, -1_800, -1, 0, 1, 900, 1_800, 3_599, 3_600, 5_400, 7_200, 86_399]
    seconds = [c + a for c in changes + long_ago for a in around] + [2**40, -(2**41)]
    us = [s * US + s % 3 * 1_500 for s in seconds]
    epoch = dt.datetime(1970, 1, 1)
    strings = [str(epoch + dt.timedelta(microseconds=u)) if abs(u) < 60_000_000_000 * US else None for u in us]
    strings[-2:] = ["2024-03-10 02:30:00", "2024-11-03 01:30"]
    return pa.table(
        {
            "k": pa.array(range(len(us)), pa.int32()),
            "ts": pa.array(us, pa.int64()).view(pa.timestamp("us", "UTC")),
            # Clocks that are skipped, and that exist twice, in each of the zones.
            "ntz": pa.array([u - o * 1_800 * US for u, o in zip(us, [10, 8, 0, -11, -21, -22] * 100)], pa.int64()).view(pa.timestamp("us")),
            "d": pa.array([s // 86_400 for s in seconds], pa.int32()).view(pa.date32()),
            "s": pa.array(strings),
        }
    )  # fmt: skip


ZONED = [
    "cast(ts as date)", "cast(ts as string)", "cast(ts as timestamp_ntz)", "cast(ntz as timestamp)", "cast(d as timestamp)",
    "to_timestamp(s)", "cast(s as timestamp)", "to_date(ts)", "hour(ts)", "minute(ts)", "second(ts)", "hour(ntz)", "year(ts)",
    "day(ts)", "dayofweek(ts)", "datediff(ts, d)", "last_day(ts)", "trunc(ts, 'month')", "ts || ''", "coalesce(d, ts)",
    *(f"date_trunc('{u}', ts)" for u in ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "millisecond")),
    "ts = ntz", "ntz < ts", "d <= ts", "ts > d", "d = ts", "ts >= '2024-03-10'", "ts >= timestamp'2024-03-10 00:00:00'",
    "ts < timestamp'2024-11-03 01:30:00'", "ts between '2024-03-10 02:30:00' and '2024-11-03 01:59:59.5'",
    "ts in (timestamp'2024-03-10 03:00:00', '2024-11-03 01:00')", "cast(ts as date) = date'2024-03-10'", "ts = s",
    "date_trunc('day', ts) = timestamp'2024-03-10'", "cast(ts as string) like '2024-03-%'", "ts < d + 1",
    "d = timestamp'2024-03-10 00:00:00'", "d < timestamp'2024-03-10 02:30:00'", "ntz = timestamp'2024-03-10 02:30:00'",
    "ts >= timestamp'2024-03-10 00:00:00 Asia/Tokyo'", "ts = timestamp'2024-03-10 05:00:00Z'", "timestamp'2024-06-01' = date'2024-06-01'",
    "hour(timestamp'2024-07-01 00:30:00')", "hour('2024-07-01 00:30:00')", "cast(timestamp'2024-07-01 22:00:00Z' as date)",
    "cast(timestamp_ntz'2024-03-10 02:30:00' as timestamp)", "cast(date'2024-03-10' as timestamp)",
]  # fmt: skip


def test_time_zones(spark, zone):
    """Everything that depends on the session's zone, around changes of the clocks."""
    assert compare(spark, hours(), ZONED, zone) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["America/Toronto", "Asia/Manila", "Pacific/Apia", "Africa/Monrovia", "America/Havana", "Europe/Dublin",
     "Pacific/Kwajalein", "Africa/Casablanca", "Asia/Kathmandu", "+05:45", "-18:00", "PST", "UTC+3"],
)  # fmt: skip
def test_time_zones_with_odd_histories(spark, name):
    with session_zone(spark, name):
        assert compare(spark, hours(), ZONED, name) == []


def test_generated(spark, batch):
    schema = from_arrow(batch.schema)
    quiet = []
    for sql in generated():
        try:
            evaluate(bind(parse(sql), schema), batch)
        except EvaluationError:
            continue
        except BoathouseError:
            pass
        quiet.append(sql)
    assert len(quiet) > 150
    assert compare(spark, batch, quiet) == []


def test_both_raise(spark, batch):
    schema = from_arrow(batch.schema)
    show(spark, batch)
    for sql in RAISING:
        with pytest.raises(BoathouseError):
            evaluate(bind(parse(sql), schema), batch)
        assert alone(spark, sql), f"Spark computes {sql}"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"], indirect=True)
def test_printed_text_means_the_same(spark, batch, zone):
    """`str` of a bound expression is Spark SQL that Spark reads back with the same meaning."""
    schema = from_arrow(batch.schema)
    printed = [str(bind(parse(sql), schema, zone)) for sql in [*CONDITIONS, *VALUES]]
    assert compare(spark, batch, list(dict.fromkeys(printed)), zone) == []
    assert all(to_arrow_type(bind(parse(p), schema, zone).type) for p in printed)
