"""Conditions of a query that its view is made for, as on Connect: the same rows as without them, of fewer files."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.sql.tables import Tables
from boathouse.errors import BoathouseError
from boathouse.expr.sql_tokens import tokenize
from makers.traits import REAL, TRAITS

pytestmark = pytest.mark.spark

NAMES = ["EU", "eu", "a%", "", "ü", None]
ROWS = pa.table(
    {
        "p": pa.array([None if i % 7 == 6 else i % 7 - 2 for i in range(84)], pa.int32()),
        "name": [NAMES[i % 6] for i in range(84)],
        "d": pa.array([None if i % 11 == 0 else dt.date(2024, 1 + i % 3, 1 + i % 28) for i in range(84)], pa.date32()),
        "ok": [None if i % 5 == 0 else i % 2 == 0 for i in range(84)],
        "x": [None if i % 9 == 0 else [0.0, -0.0, 1.5, float("nan")][i % 4] for i in range(84)],
        "in": pa.array([2**62 + i for i in range(84)], pa.int64()),
    }
)


@pytest.fixture
def make(tmp_path):
    """A table of several files."""

    def made(format: str) -> str:
        path = str(tmp_path / format)
        by = {"partition_by": ["p"]} if TRAITS[format].partitions else {}
        for at in range(0, 84, 28):
            bh.write(ROWS.slice(at, 28), path, format=format, mode="append", **({} if at else by))
        return path

    return made


def rows(spark, sql: str, early: bool) -> list[str] | str:
    with Tables(spark, sql, early) as tables:
        try:
            return sorted(map(repr, spark.sql(tables.with_views(tokenize(sql))).collect()))
        except BoathouseError:
            raise
        except Exception:
            return "fails"


def atom(pick: random.Random) -> str:
    p, name = pick.randint(-4, 6), pick.choice(["'EU'", "'eu'", "''", "'z'", "'ü'"])
    day = f"DATE'2024-0{pick.randint(1, 3)}-1{pick.randint(0, 9)}'"
    op = pick.choice(["=", "<", "<=", ">", ">=", "<>", "<=>", "!=", "=="])
    certain = [
        f"p {op} {p}", f"{p} {op} t.p", f"name {op} {name}", f"d {op} {day}", f"ok {op} TRUE", f"`in` > {2**62 + p}",
        f"t.p BETWEEN {p} AND {p + 2}", f"name NOT IN ({name}, 'a%')", f"(d IN ({day}, {day}))", "x IS NOT NULL",
        f"p NOT BETWEEN -1 AND {p}", "name IS NULL",
    ]  # fmt: skip
    others = [
        f"x {op} {p}", f"CAST(p AS string) = '{p}'", "ok", "NOT ok", f"p = '{p}'", f"upper(name) = {name}",
        "isnan(x)", f"p + 1 {op} {p}", f"p IN ({p}, NULL)", f"x BETWEEN 0 AND p = {p}", "name LIKE 'e%'",
        f"CASE WHEN ok AND p = {p} AND x > 0 THEN true ELSE p = 1 END", f"(p = {p} OR name = {name})",
        f"p = (SELECT max(u.p) FROM u WHERE u.p < {p} AND u.name = {name})", f"d > '2024-02-1{pick.randint(0, 9)}'",
        f"EXISTS (SELECT 1 FROM u WHERE u.p = t.p AND u.d > {day})",
    ]  # fmt: skip
    return pick.choice(certain if pick.random() < 0.6 else others)


def condition(pick: random.Random) -> str:
    parts = [atom(pick) for _ in range(pick.randint(1, 4))]
    joins = pick.choices([" AND ", " and ", " OR ", " AND NOT "], [8, 2, 1, 1], k=len(parts) - 1)
    return parts[0] + "".join(j + p for j, p in zip(joins, parts[1:], strict=True))


def compare(spark, path: str, format: str, seeds: range) -> None:
    t = f"{format}.`{path}`"
    for seed in seeds:
        pick = random.Random(seed)
        where = condition(pick)
        sql = f"SELECT * FROM {t} t WHERE {where}".replace("FROM u ", f"FROM {t} u ")
        if pick.random() < 0.2:
            sql = f"{sql} UNION ALL (SELECT * FROM {t} AS t WHERE {condition(pick)})".replace("FROM u ", f"FROM {t} u ")
        elif pick.random() < 0.3:
            sql = f"SELECT name, count(*), sum(p) FROM {t} t WHERE {where} GROUP BY name HAVING count(*) > 1"
            sql = sql.replace("FROM u ", f"FROM {t} u ")
        assert rows(spark, sql, early=True) == rows(spark, sql, early=False), (seed, sql)


@pytest.mark.route("conditions of a query in its view")
@pytest.mark.parametrize("format", REAL)
def test_random_conditions_give_the_same_rows(spark, make, format):
    compare(spark, make(format), format, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("format", REAL)
def test_many_random_conditions_give_the_same_rows(spark, make, format, ansi):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        compare(spark, make(format), format, range(100, 600))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_view_has_the_rows_of_few_files(spark, make):
    path = make("delta")
    sql = f"SELECT x FROM delta.`{path}` WHERE p = 2 AND x > 0"
    with Tables(spark, sql, early=True) as tables:
        text = tables.with_views(tokenize(sql))
        (view,) = [word for word in text.replace("`", " ").split() if word.startswith("boathouse_")]
        assert 0 < len(spark.table(view).inputFiles()) < len(bh.open(path, spark=spark).to_spark().inputFiles())
    both = f"{sql} UNION ALL SELECT x FROM delta.`{path}` WHERE p = 3"
    with Tables(spark, both, early=True) as tables:
        assert len({word for word in tables.with_views(tokenize(both)).split() if word.startswith("boathouse_")}) == 2
