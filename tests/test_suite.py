"""The suite itself: what CI runs proves what is said to be proved, and every long test is in a part of `./run slow`."""

from __future__ import annotations

from pathlib import Path

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
