"""The suite itself: what CI runs proves what is said to be proved, and every long test is in a part of `./run slow`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from makers.traits import FORMATS

TESTS = Path(__file__).parent


def in_ci(items):
    """Those that `.ci/run` runs, by `./run test`, `./run spark` or `./run smoke`."""
    return [i for i in items if i.get_closest_marker("slow") is None or i.get_closest_marker("smoke") is not None]


def test_ci_proves_every_feature(tool, all_items):
    state = tool("readme_state")
    assert state.lines_of(state.proofs(in_ci(all_items))) == state.PROVED.read_text().splitlines()


def test_no_line_of_the_specifications_is_proved_by_slow_tests_alone(all_items):
    proved = {id for item in in_ci(all_items) for mark in item.iter_markers("spec") for id in mark.args}
    assert proved and {id for item in all_items for mark in item.iter_markers("spec") for id in mark.args} == proved


def test_every_slow_test_is_in_one_part(tool, all_items):
    parts_of = tool("slow_parts").parts_of
    slow = [item.nodeid for item in all_items if item.get_closest_marker("slow") is not None]
    assert slow and [id for id in slow if len(parts_of(id)) != 1] == []


def test_parts_name_what_there_is(tool):
    paths = [path for paths in tool("slow_parts").PARTS.values() for path in paths]
    assert [path for path in paths if not (TESTS.parent / path).exists()] == []


def test_a_few_spark_tests_run_by_default(all_items):
    """A route is what `./run test` tries on Spark: more than a hundred take longer than its seven minutes allow."""
    on_spark = [item for item in in_ci(all_items) if item.get_closest_marker("spark") is not None]
    default = [i.nodeid for i in on_spark if {m.name for m in i.iter_markers()}.isdisjoint({"more_spark", "slow"})]
    assert 0 < len(default) <= 100


def test_a_route_is_of_a_test_on_spark(all_items):
    """Elsewhere the mark does nothing."""
    named = {mark.args[0] for item in all_items for mark in item.iter_markers("route")}
    run = {
        mark.args[0]
        for item in in_ci(all_items)
        for mark in item.iter_markers("route")
        if item.get_closest_marker("spark") is not None and item.get_closest_marker("more_spark") is None
    }
    assert named == run


def _format_names(node: ast.AST) -> Iterator[str]:
    """The names of formats, or of kinds of their tables such as delta-vectors, that an expression is or holds."""
    for held in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]:
        if isinstance(held, ast.Constant) and isinstance(held.value, str) and held.value.split("-")[0] in FORMATS:
            yield held.value


def _compared(source: str) -> list[tuple[int, str]]:
    """Lines that compare or match something with the name of a format, and the name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left, _, others):
                asked = [left, *others]
            case ast.MatchValue(value):
                asked = [value]
            case ast.Call(ast.Attribute(attr="startswith" | "endswith" | "__eq__"), args):
                asked = args
            case _:
                continue
        found += [(node.lineno, name) for part in asked for name in _format_names(part)]
    return sorted(found)


@pytest.mark.parametrize("folder", ["api", "engines", "waist"])
def test_tests_of_all_formats_compare_no_name_of_one(folder):
    """They ask what a format has: `makers/traits.py`. What is of one format alone is tested in its folder."""
    files = [path for path in (TESTS / folder).rglob("*.py") if "toy_format" not in path.parts]
    found = {str(path.relative_to(TESTS)): _compared(path.read_text()) for path in files}
    assert files and {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    ['a == "delta"', '"lance" != a', 'a in ("iceberg", "x")', 'a not in {"toy"}', 'a == "delta-vectors"',
     'match a:\n    case "delta": pass', 'a.startswith("delta")'],
)  # fmt: skip
def test_a_comparison_with_the_name_of_a_format_is_found(line):
    assert len(_compared(line)) == 1


@pytest.mark.parametrize("line", ['a == "delta.enableDeletionVectors"', 'made("delta")', 'a["lance"] == 1', "a == b"])
def test_a_name_of_a_format_that_is_not_compared_is_none(line):
    assert _compared(line) == []
