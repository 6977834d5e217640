"""Names found exactly, else ignoring case."""

from __future__ import annotations

import pickle

import pytest

from boathouse.bits.names import Names, steps

NAMES = Names(["id", "Name", "NAME", "ID", "id"])


@pytest.mark.parametrize(
    ("name", "exactly", "loosely", "at"),
    [
        ("id", [0, 4], [0, 3, 4], [0, 4]),
        ("Id", [], [0, 3, 4], [0, 3, 4]),
        ("NAME", [2], [1, 2], [2]),
        ("naMe", [], [1, 2], [1, 2]),
        ("other", [], [], []),
    ],
)
def test_exactly_then_ignoring_case(name: str, exactly: list[int], loosely: list[int], at: list[int]) -> None:
    for names in (NAMES, pickle.loads(pickle.dumps(NAMES))):
        assert list(names.exactly(name)) == exactly
        assert list(names.loosely(name)) == loosely
        assert list(names.at(name)) == at


def test_repeated() -> None:
    assert NAMES.repeated() == "id"
    assert Names(["a", "A", "b"]).repeated() is None
    assert Names([]).repeated() is None


def test_paths_are_cut_at_dots_outside_backticks():
    assert steps("a.b") == ("a", "b")
    assert steps("`a.b`.c") == ("a.b", "c")
    assert steps("`a``.``b`") == ("a`.`b",)
    assert steps("with space.x") == ("with space", "x")
    for text in ("", ".", "a.", "a..b", "tick`", "`", "`a`b"):
        assert steps(text) == (text,)
