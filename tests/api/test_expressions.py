"""Expressions made in Python: what their operators mean, and as conditions of everything that takes one."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import ColumnNotFoundError, EvaluationError, ExpressionError

ROWS = pa.table(
    {
        "a": [1, 2, 3, 4, 5, None],
        "s": ["x", None, "ab", None, "a%", "ab"],
        "day": [dt.date(2026, 1, d) for d in range(1, 7)],
        "place": [{"city": c, "a.b": i} for i, c in enumerate(["Kiel", "Oslo", None, "Kiel", "Rom", "Oslo"])],
        "two words": [10, 20, 30, 40, 50, 60],
        "n": [1, 2, 3, 4, 5, 6],
    }
)
MAPPED = {"delta.columnMapping.mode": "name"}
CASES = [
    (bh.col("a").eq(3), "a = 3", [3]),
    (bh.col("a").ne(3), "a != 3", [1, 2, 4, 5]),
    (bh.col("a") < 2, "a < 2", [1]),
    (bh.col("a") <= 2, "a <= 2", [1, 2]),
    (bh.col("a") > 4, "a > 4", [5]),
    (bh.col("a") >= 4, "a >= 4", [4, 5]),
    (bh.lit(4) < bh.col("a"), "4 < a", [5]),
    ((bh.col("a") > 3) & bh.col("s").is_null(), "(a > 3) AND (s IS NULL)", [4]),
    ((bh.col("a") > 4) | bh.col("s").is_null(), "(a > 4) OR (s IS NULL)", [2, 4, 5]),
    (~bh.col("s").is_null(), "s IS NOT NULL", [1, 3, 5, 6]),
    (~(bh.col("a") > 3), "NOT (a > 3)", [1, 2, 3]),
    (bh.col("a").is_in([1, 5, 9]), "a IN (1, 5, 9)", [1, 5]),
    (~bh.col("a").is_in([1, None]), "NOT (a IN (1, NULL))", []),
    (bh.col("s").like("a%"), "s LIKE 'a%'", [3, 5, 6]),
    (bh.col("s").like(r"a\%"), r"s LIKE 'a\\%'", [5]),
    ((bh.col("a") + 1).eq(3), "(a + 1) = 3", [2]),
    ((bh.col("a") - bh.col("n")).ne(0), "(a - n) != 0", []),
    (bh.col("a") * 2 > 8, "(a * 2) > 8", [5]),
    ((bh.col("a") / 2).eq(1.5), "(a / 2) = 1.5D", [3]),
    ((bh.lit(10) - bh.col("a")).eq(7), "(10 - a) = 7", [3]),
    (bh.col("day") >= dt.date(2026, 1, 5), "day >= DATE'2026-01-05'", [5, 6]),
    (bh.col("place.city").eq("Kiel"), "place.city = 'Kiel'", [1, 4]),
    (bh.col("place.`a.b`") > 3, "place.`a.b` > 3", [5, 6]),
    (bh.col("`two words`").is_in([10, 60]), "`two words` IN (10, 60)", [1, 6]),
    (bh.col("TWO WORDS").eq(20), "`TWO WORDS` = 20", [2]),
]
IDS = [text for _, text, _ in CASES]


@pytest.fixture(scope="module")
def readable(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("expressions") / "t")
    bh.write(ROWS, path, properties=MAPPED)
    return bh.open(path)


@pytest.fixture
def table(tmp_path):
    bh.write(ROWS, str(tmp_path / "t"), properties=MAPPED)
    return bh.open(str(tmp_path / "t"))


def left(table) -> list[int]:
    return sorted(table.to_arrow().column("n").to_pylist())


@pytest.mark.parametrize("where, text, rows", CASES, ids=IDS)
def test_a_scan_finds_what_the_text_finds(readable, where, text, rows):
    found = readable.scan(["n"], where)
    assert sorted(found.to_arrow().column("n").to_pylist()) == rows
    assert found.count() == readable.scan(where=text).count() == len(rows)
    assert str(where) == text


def test_delete_takes_an_expression(table):
    result = table.delete((bh.col("a") > 3) & bh.col("s").is_null())
    assert result.rows_deleted == 1
    assert left(table) == [1, 2, 3, 5, 6]
    assert table.delete(bh.col("place.city").eq("Oslo")).rows_deleted == 2
    assert left(table) == [1, 3, 5]


def test_overwrite_takes_an_expression(table):
    new = ROWS.slice(4, 1).set_column(5, "n", pa.array([50]))
    table.overwrite(new, where=bh.col("a") >= 4)
    assert left(table) == [1, 2, 3, 6, 50]
    with pytest.raises(bh.errors.ConstraintViolationError):
        table.overwrite(new, where=bh.col("a").eq(1))
    assert left(table) == [1, 2, 3, 6, 50]


def test_update_takes_expressions_for_values_and_condition(table):
    result = table.update({"n": bh.col("n") * 10, "s": bh.lit("it's")}, where=bh.col("a").is_null())
    assert result.rows_updated == 1
    (row,) = table.scan(["n", "s"], bh.col("n") > 6).to_arrow().to_pylist()
    assert row == {"n": 60, "s": "it's"}


def test_merge_takes_expressions(table):
    source = pa.table({"n": [1, 7], "a": [100, 700]})
    merge = table.merge(source, bh.col("target.n").eq(bh.col("source.n")))
    merge.when_matched_update({"a": bh.col("source.a") + 1}).when_not_matched_insert(
        {"n": bh.col("source.n")}
    ).execute()
    assert table.scan(["a"], "n = 1").to_arrow().column("a").to_pylist() == [101]
    assert table.scan(["a"], "n = 7").to_arrow().column("a").to_pylist() == [None]


@pytest.mark.parametrize("use", [bool, lambda e: e and e, lambda e: 1 < e < 3, lambda e: not e])
def test_an_expression_has_no_truth_value(use):
    with pytest.raises(TypeError, match=r"&, \| and ~"):
        use(bh.col("a") > 3)


def test_expressions_are_values():
    made = (bh.col("a") > 3) & bh.col("s").is_null()
    same = (bh.col("a") > 3) & bh.col("s").is_null()
    assert isinstance(made, bh.Expr)
    assert made == same
    assert hash(made) == hash(same)
    assert made != ((bh.col("a") > 4) & bh.col("s").is_null())
    assert bh.lit(bh.col("a")) == bh.col("a")


USES = {
    "scan": lambda t, where: t.scan(where=where),
    "delete": lambda t, where: t.delete(where),
    "overwrite": lambda t, where: t.overwrite(ROWS, where),
    "update": lambda t, where: t.update({"n": "0"}, where),
    "merge": lambda t, where: t.merge(ROWS, where),
    "clause": lambda t, where: t.merge(ROWS, "target.n = source.n").when_matched_delete(where),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("where", [bh.col("a") == 3, bh.col("a") != 3], ids=["==", "!="])
def test_a_comparison_of_values_is_no_condition(table, use, where):
    """`==` compares expressions as values: what it gives is refused, and not taken for a condition."""
    with pytest.raises(ExpressionError, match=r"eq\(\) and ne\(\)") as caught:
        use(table, where)
    assert caught.value.where == table.uri
    assert left(table) == [1, 2, 3, 4, 5, 6]


def test_errors_name_the_column(readable):
    with pytest.raises(ExpressionError, match="3 is not the name"):
        bh.col(3)
    with pytest.raises(ColumnNotFoundError, match="nope"):
        readable.scan(where=bh.col("nope") > 1)
    with pytest.raises(EvaluationError, match="Kiel"):
        readable.scan(where=bh.col("place.city") + 1 > bh.lit("x")).to_arrow()
