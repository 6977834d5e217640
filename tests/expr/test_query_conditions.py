"""Which parts of a query's WHERE are certain: pushed into the scan of its one table."""

import pytest

from boathouse import types as T
from boathouse.expr.query_conditions import certain_condition
from boathouse.expr.sql_tokens import tokenize
from boathouse.expr.table_refs import references

TABLE = T.Schema(
    (
        T.Field("p", T.INT32),
        T.Field("name", T.STRING),
        T.Field("d", T.DATE),
        T.Field("ok", T.BOOLEAN),
        T.Field("x", T.DOUBLE),
        T.Field("ts", T.TIMESTAMP),
        T.Field("s", T.StructType((T.Field("p", T.INT32),))),
        T.Field("a`b", T.INT64),
        T.Field("current_date", T.DATE),
    )
)


def pushed(sql: str, table: T.Schema = TABLE) -> list[str | None]:
    tokens = tokenize(sql)
    return [certain_condition(tokens, r, table) for r in references(sql, tokens)]


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("p = 5", "p = 5"),
        ("-5 <= p AND upper(name) = 'X' AND name = 'EU'", "-5 <= p AND name = 'EU'"),
        ("t.p IN (1, -2, 3) AND (t.name >= 'a') AND ((d < DATE '2024-01-31'))",
         "p IN (1, -2, 3) AND name >= 'a' AND d < DATE '2024-01-31'"),
        ("p BETWEEN 1 AND 3 AND name NOT IN ('a')", "p BETWEEN 1 AND 3 AND name NOT IN ('a')"),
        ("d NOT BETWEEN DATE'2024-01-01' AND DATE'2024-02-01' AND ok = TRUE",
         "d NOT BETWEEN DATE'2024-01-01' AND DATE'2024-02-01' AND ok = TRUE"),
        ("x IS NOT NULL AND ts IS NULL AND `a``b` <=> 7", "x IS NOT NULL AND ts IS NULL AND `a``b` <=> 7"),
        ("p = 5 GROUP BY p HAVING max(x) = 1 AND p = 6", "p = 5"),
        ("p = 5 AND q = 3 AND name LIKE 'a%' ORDER BY p", "p = 5"),
        ("p = 5 AND p = (SELECT 1)", "p = 5"),
    ],
)  # fmt: skip
def test_a_column_against_literals_of_its_type(where, wanted):
    for sql in (f"SELECT * FROM t WHERE {where}", f"SELECT (SELECT max(p) FROM db.t WHERE {where}) FROM u"):
        assert pushed(sql)[0] == wanted
    assert pushed(f"INSERT INTO u SELECT p FROM delta.`/a b` AS t WHERE {where}")[-1] == wanted


@pytest.mark.parametrize(
    "where",
    [
        "p = 5 OR name = 'x'",
        "p = 5 AND (p = 6 OR ok)",
        "NOT p = 5",
        "CASE WHEN ok AND p = 5 AND ok THEN true END",
        "x BETWEEN 1 AND p = 5",
        "p = '5'",
        "p = 5.0",
        "p = 5L + 1",
        "p = 5 = ok",
        "p = 1234567890123456789",
        'name = "x"',
        r"name = 'a\nb'",
        "name = '${v}'",
        "name = 'it''s'",
        "name = 'a' 'b'",
        "name = r'a'",
        "d = '2024-01-01'",
        "d = DATE'2024-02-30'",
        "d = DATE'2024-01'",
        "x > 5",
        "ts > TIMESTAMP'2024-01-01 00:00:00'",
        "s.p = 5",
        "u.p = 5",
        "P = 5",
        "current_date = DATE'2024-01-01'",
        "p IN (1, NULL)",
        "p IN ()",
        "p NOT",
        "p IS",
        "ok",
        "exists(SELECT 1 WHERE p = 5)",
        "name = 'x' COLLATE UTF8_LCASE",
        "p = :p",
        "p",
        "",
    ],
)
def test_what_is_not_certain_is_left_to_the_query(where):
    found = pushed(f"SELECT * FROM t WHERE {where}")
    assert found[0] is None or (where.startswith("p = 5 AND (") and found == ["p = 5"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t, u WHERE p = 5",
        "SELECT * FROM u JOIN t WHERE p = 5",
        "SELECT * FROM t LEFT JOIN u ON p = q WHERE p = 5",
        "SELECT * FROM (t) WHERE p = 5",
        "SELECT * FROM t AS x(q, p) WHERE p = 5",
        "SELECT * FROM t TABLESAMPLE (5 ROWS) WHERE p = 5",
        "FROM t SELECT * WHERE p = 5",
        "FROM t |> WHERE p = 5",
        "SELECT * FROM t x WHERE t.p = 5",
        "SELECT * FROM t s WHERE s.p = 5",
        "SELECT * FROM delta.`/a/t` WHERE t.p = 5",
        "SELECT p FROM t UNION SELECT 1 WHERE p = 5",
        "TABLE t",
    ],
)
def test_other_queries_have_no_condition_on_one_table(sql):
    assert pushed(sql)[-1 if "JOIN t" in sql else 0] is None


def test_a_pipe_ends_the_condition_and_each_query_has_its_own():
    assert pushed("FROM t WHERE p = 5 AND ok |> WHERE p = 6") == ["p = 5"]
    both = "SELECT p FROM t WHERE p = 5 UNION ALL (SELECT p FROM t AS u WHERE u.p = 6 AND u.ok)"
    assert pushed(both) == ["p = 5", "p = 6"]
