"""ALTER TABLE of columns, properties and constraints, TRUNCATE, DESCRIBE and SHOW, as Spark's grammar has them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.sql import statements as module
from boathouse.api.sql.tables import Tables
from boathouse.errors import (
    ColumnNotFoundError,
    ExpressionError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedFeatureError,
)
from boathouse.expr.statements import parse_statement, single
from makers.traits import REAL

PROPERTIES = {
    "delta": {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
    "iceberg": {"format-version": "3"},
    "lance": {},
}


class Rows:
    """As much of a session as these statements need: frames are lists of rows."""

    def range(self, rows):
        return self

    def drop(self, name):
        return []

    def createDataFrame(self, rows, schema):
        return [tuple(row) for row in rows]


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


@pytest.fixture(autouse=True)
def in_process(monkeypatch):
    """Tables are opened without a session."""
    monkeypatch.setattr(Tables, "table", lambda _, name: bh.open(name.parts[-1], format=name.parts[0]))


@pytest.fixture
def run(format_name, tmp_path):
    """Runs a statement on the table `t`, and gives its rows."""
    path = str(tmp_path / "t")
    made = bh.create(path, "id bigint, n int, s struct<x: int>", format=format_name, properties=PROPERTIES[format_name])
    made.append(pa.Table.from_pylist([{"id": 1, "n": 2, "s": {"x": 3}}], made.to_arrow().schema))

    def run(text):
        sql = text.replace(" t ", f" {format_name}.`{path}` ")
        statement = parse_statement(sql, single(sql), lambda _: True)
        return module._READERS[type(statement)](Tables(Rows(), sql), statement)

    return run


@pytest.fixture
def table(tmp_path, run):
    return lambda: bh.open(str(tmp_path / "t"))


def columns(t):
    return [f"{f.name} {f.type}" for f in t.schema.fields]


def test_columns_come_and_go(run, table):
    run("ALTER TABLE t ADD COLUMNS (`a b` array<struct<p: int, q: map<string, int>>>, d DECIMAL(9,2))")
    assert columns(table())[3:] == ["a b array<struct<p:int,q:map<string,int>>>", "d decimal(9,2)"]
    run("alter table t add column text string ;")
    run("ALTER TABLE t RENAME COLUMN text TO `new name`")
    assert table().schema.names == ("id", "n", "s", "a b", "d", "new name")
    assert table().to_arrow().to_pylist() == [
        {"id": 1, "n": 2, "s": {"x": 3}, "a b": None, "d": None, "new name": None}
    ]
    run("ALTER TABLE t DROP COLUMN IF EXISTS nothing")
    run("ALTER TABLE t DROP COLUMNS `new name`")
    assert table().schema.names == ("id", "n", "s", "a b", "d")
    with pytest.raises(ColumnNotFoundError):
        run("ALTER TABLE t DROP COLUMN nothing")
    with pytest.raises(SchemaError):
        run("ALTER TABLE t ADD COLUMN z nonsense")
    with pytest.raises(InvalidArgumentError, match="already exists"):
        run("ALTER TABLE t ADD COLUMNS (y int, N string)")
    assert "y" not in table().schema.names


def test_types_get_wider(run, table):
    run("ALTER TABLE t ALTER COLUMN n TYPE bigint")
    assert columns(table())[1] == "n bigint" and table().to_arrow().column("n").to_pylist() == [2]


def test_properties(run, table):
    run("ALTER TABLE t SET TBLPROPERTIES ('owner' = 'it''s me', team.name = 7, \"kept\" = 'x')")
    assert dict(table().properties).items() >= {"owner": "it's me", "team.name": "7", "kept": "x"}.items()
    assert ("owner", "it's me") in run("SHOW TBLPROPERTIES t ")
    assert run("SHOW TBLPROPERTIES t ('team.name')") == [("team.name", "7")]
    run("ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('owner', 'nothing')")
    run("ALTER TABLE t UNSET TBLPROPERTIES (team.name)")
    assert "owner" not in table().properties and "team.name" not in table().properties
    for refused in ("ALTER TABLE t UNSET TBLPROPERTIES ('owner')", "SHOW TBLPROPERTIES t ('owner')"):
        with pytest.raises(InvalidArgumentError, match="no property 'owner'"):
            run(refused)


def test_truncate_and_describe(run, table):
    assert [row[:2] for row in run("DESCRIBE t ")] == [("id", "bigint"), ("n", "int"), ("s", "struct<x:int>")]
    more = dict(row[:2] for row in run("DESC TABLE EXTENDED t "))
    assert more["Provider"] == table().format and more["Location"] == table().uri and more["Rows"] == "1"
    assert run("SHOW COLUMNS IN t ") == [("id",), ("n",), ("s",)]
    run("TRUNCATE TABLE t ")
    assert table().count() == 0 and table().schema.names == ("id", "n", "s")


def test_what_only_one_format_has(run, table, format_name):
    """It is done, or refused by name with nothing changed."""
    forms = {
        "ALTER TABLE t ADD CONSTRAINT positive CHECK (id > 0 AND (n > 0))": lambda t: "positive" in str(t.properties),
        "ALTER TABLE t ALTER COLUMN id SET NOT NULL": lambda t: not t.schema.field("id").nullable,
        "ALTER TABLE t ALTER COLUMN s FIRST": lambda t: t.schema.names[0] == "s",
        "ALTER TABLE t ALTER COLUMN n COMMENT 'how many'": lambda t: t.schema.field("n").doc == "how many",
        "ALTER TABLE t ALTER COLUMN n SET DEFAULT 5": lambda t: True,
        "ALTER TABLE t ADD COLUMN (a int COMMENT 'c' FIRST, b int NOT NULL DEFAULT 7 AFTER id)": (
            lambda t: t.schema.names == ("a", "s", "id", "b", "n") and t.to_arrow().column("b").to_pylist() == [7]
        ),
        "ALTER TABLE t DROP CONSTRAINT IF EXISTS positive": lambda t: "positive" not in str(t.properties),
        "ALTER TABLE t DROP COLUMN (n, s)": lambda t: {"n", "s"}.isdisjoint(t.schema.names),
    }
    done = []
    for text, holds in forms.items():
        before = columns(table())
        try:
            run(text)
        except UnsupportedFeatureError:
            assert columns(table()) == before
        except InvalidArgumentError as error:
            assert "SET NOT NULL" in text and "null" in str(error)
        else:
            assert holds(table()), text
            done.append(text)
    assert done


def test_constraints_of_delta(tmp_path):
    path = str(tmp_path / "c")
    bh.create(path, "id bigint")

    def run(text):
        sql = f"ALTER TABLE delta.`{path}` {text}"
        statement = parse_statement(sql, single(sql), lambda _: True)
        module._READERS[type(statement)](Tables(Rows(), sql), statement)

    run("ADD CONSTRAINT big CHECK (id > 10)")
    run("DROP CONSTRAINT IF EXISTS other")
    run("DROP CONSTRAINT big")
    bh.open(path).append([{"id": 1}])
    with pytest.raises(InvalidArgumentError):
        run("DROP CONSTRAINT big")


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("ALTER TABLE delta.`/a/t` SET LOCATION '/b'", UnsupportedFeatureError, "this form of ALTER TABLE"),
        ("ALTER TABLE delta.`/a/t` CLUSTER BY a", ExpressionError, "or NONE"),
        ("ANALYZE TABLE delta.`/a/t` COMPUTE STATISTICS", UnsupportedFeatureError, "ANALYZE .*compute_table_stats"),
        ("MSCK REPAIR TABLE delta.`/a/t`", UnsupportedFeatureError, "nothing to repair"),
        ("CACHE TABLE delta.`/a/t`", UnsupportedFeatureError, "to_spark"),
        ("SHOW PARTITIONS delta.`/a/t` PARTITION (a = 1)", UnsupportedFeatureError, "t.files"),
        ("COMMENT ON TABLE delta.`/a/t` 'x'", ExpressionError, "expected IS"),
        ("ALTER TABLE delta.`/a/t` ADD COLUMN a", ExpressionError, "expected a type, found the end"),
        ("ALTER TABLE delta.`/a/t` ADD COLUMN (a int", ExpressionError, r"expected \), found the end"),
        ("ALTER TABLE delta.`/a/t` ADD COLUMN a int NULL", ExpressionError, "found NULL"),
        ("ALTER TABLE delta.`/a/t` RENAME COLUMN a b", ExpressionError, "expected TO"),
        ("ALTER TABLE delta.`/a/t` ALTER COLUMN a", ExpressionError, "expected TYPE"),
        ("ALTER TABLE delta.`/a/t` SET TBLPROPERTIES ('a')", ExpressionError, "expected ="),
        ("TRUNCATE TABLE delta.`/a/t` PARTITION (a = 1)", UnsupportedFeatureError, "use DELETE FROM"),
        ("DESCRIBE delta.`/a/t` id", ExpressionError, "expected the end, found id"),
    ],
)
def test_what_is_no_such_statement(text, error, says):
    with pytest.raises(error, match=f"(?i){says}"):
        parse_statement(text, single(text), lambda _: True)


@pytest.mark.parametrize("text", ["ALTER TABLE db.t SET LOCATION '/u'", "DESCRIBE (SELECT 1)", "DESCRIBE FUNCTION abs"])
def test_what_is_sparks(text):
    assert parse_statement(text, single(text), lambda name: name.parts[0] == "db") is None


@pytest.mark.spark
def test_on_spark(spark, tmp_path, monkeypatch):
    monkeypatch.undo()
    t = f"delta.`{tmp_path / 't'}`"
    bh.create(str(tmp_path / "t"), "id bigint, day date", partition_by="day")
    assert bh.sql(spark, f"ALTER TABLE {t} ADD COLUMN name string").count() == 0
    assert [tuple(r)[:2] for r in bh.sql(spark, f"DESCRIBE {t}").collect()][:2] == [
        ("id", "bigint"),
        ("day", "date"),
    ]
    assert ("Part 0", "identity(day)") in [tuple(r)[:2] for r in bh.sql(spark, f"DESCRIBE EXTENDED {t}").collect()]
    bh.sql(spark, f"INSERT INTO {t} VALUES (1, DATE'2026-11-24', 'a')")
    assert bh.sql(spark, f"TRUNCATE TABLE {t}").first()[0] == 1
    assert [r.col_name for r in bh.sql(spark, f"SHOW COLUMNS IN {t}").collect()] == ["id", "day", "name"]
    assert "delta.minReaderVersion" not in dict(bh.sql(spark, f"SHOW TBLPROPERTIES {t}").collect())
