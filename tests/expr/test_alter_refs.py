"""ALTER TABLE ... BRANCH and TAG as values; any other ALTER TABLE is not ours."""

import pytest

from boathouse.errors import ExpressionError
from boathouse.expr.alter_refs import AlterRef
from boathouse.expr.statement_tree import TableName
from boathouse.expr.statements import parse_statement, single

DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000


def parsed(sql):
    return parse_statement(sql, single(sql), lambda table: True)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("CREATE BRANCH a", ("branch", "create", "a")),
        ("create branch if not exists `a-b`", ("branch", "create-if-absent", "a-b")),
        ("CREATE OR REPLACE BRANCH a AS OF VERSION 12", ("branch", "create-or-replace", "a", 12)),
        ("REPLACE BRANCH a RETAIN 2 HOURS", ("branch", "replace", "a", None, None, None, 2 * HOUR)),
        (
            "CREATE BRANCH a AS OF VERSION 7 RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 30 MINUTES",
            ("branch", "create", "a", 7, 3, 30 * MINUTE, 7 * DAY),
        ),
        ("CREATE BRANCH a WITH SNAPSHOT RETENTION 3 SNAPSHOTS", ("branch", "create", "a", None, 3)),
        ("CREATE BRANCH a WITH SNAPSHOT RETENTION 2 DAYS", ("branch", "create", "a", None, None, 2 * DAY)),
        ("CREATE TAG a AS OF VERSION 1 RETAIN 1 DAYS", ("tag", "create", "a", 1, None, None, DAY)),
        ("CREATE OR REPLACE TAG a", ("tag", "create-or-replace", "a")),
        ("REPLACE TAG tag", ("tag", "replace", "tag")),
        ("DROP BRANCH a", ("branch", "drop", "a")),
        ("DROP TAG IF EXISTS a", ("tag", "drop-if-exists", "a")),
    ],
)
def test_statements(sql, wanted):
    found = parsed(f"ALTER TABLE db.t {sql}")
    assert found == AlterRef(found.table, *wanted)
    assert isinstance(found.table, TableName) and found.table.parts == ("db", "t")


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("CREATE BRANCH", "expected the name of a branch, found the end"),
        ("CREATE TAG 'a'", "expected the name of a tag, found 'a'"),
        ("CREATE BRANCH a AS OF VERSION x", "expected a version, found x"),
        ("CREATE BRANCH a RETAIN 1 WEEKS", "expected DAYS, HOURS, MINUTES, found WEEKS"),
        ("CREATE BRANCH a RETAIN DAYS", "expected a number"),
        ("CREATE BRANCH a WITH SNAPSHOT RETENTION", "expected a number"),
        ("CREATE BRANCH a WITH SNAPSHOT RETENTION 1 SNAPSHOTS 2", "expected DAYS, HOURS, MINUTES"),
        ("CREATE TAG a WITH SNAPSHOT RETENTION 1 SNAPSHOTS", "expected the end, found WITH"),
        ("DROP BRANCH a b", "expected the end, found b"),
        ("CREATE OR REPLACE BRANCH IF NOT EXISTS a", "expected the end"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(sql, match):
    with pytest.raises(ExpressionError, match=match):
        parsed(f"ALTER TABLE t {sql}")


@pytest.mark.parametrize("sql", ["ADD PARTITION (a = 1)", "SET LOCATION 'x'"])
def test_other_forms_are_spark_s(sql):
    assert parsed(f"ALTER TABLE t {sql}") is None
