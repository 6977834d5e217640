"""CALL, parsed."""

from __future__ import annotations

import pytest

from boathouse.errors import ExpressionError
from boathouse.expr.call_statement import parse_call
from boathouse.expr.sql_tokens import joined
from boathouse.expr.statements import single


def parsed(sql):
    return parse_call(sql, single(sql))


def arguments(sql):
    return [(a.name, joined(a.value)) for a in parsed(sql).arguments]


def test_names_and_values_are_told_apart():
    call = parsed("call `my cat`.system.expire_snapshots('db.t');")
    assert call.parts == ("my cat", "system", "expire_snapshots")
    assert parsed("CALL system.f()").arguments == ()
    assert parsed("SELECT 1") is None
    given = arguments(
        "CALL system.f('a, b', map('k', 'v', 'w', array(1, 2)[0]), x => -1, `y` => TIMESTAMP '2026-11-01')"
    )
    assert given == [
        (None, "'a, b'"),
        (None, "map('k', 'v', 'w', array(1, 2)[0])"),
        ("x", "-1"),
        ("y", "TIMESTAMP '2026-11-01'"),
    ]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("CALL", "line 1, column 5: expected the name of a procedure, found the end"),
        ("CALL system.'f'()", "column 13: expected the name"),
        ("CALL system.f", "column 14: expected \\( and the arguments, found the end"),
        ("CALL system.f('t'", "column 18: expected \\) at the end"),
        ("CALL system.f('t',)", "column 19: expected a value, found \\)"),
        ("CALL system.f(,'t')", "column 15: expected a value, found ,"),
        ("CALL system.f(table =>)", "expected a value"),
        ("CALL system.f(table => 't', 1)", "column 29: expected name => value"),
    ],
)
def test_errors_name_the_place(sql, said):
    with pytest.raises(ExpressionError, match=said):
        parsed(sql)
