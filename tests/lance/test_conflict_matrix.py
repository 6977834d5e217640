"""Every pair of concurrent commits, with row ids that stay and without: ours against ours, ours on a table that pylance
has changed meanwhile, and stale handles of pylance against ours. Each cell says what becomes of the second commit, and
which rows are left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from .conflicts import (
    FIRSTS,
    HERE,
    REBASED,
    REFERENCE,
    REFUSED,
    State,
    after,
    begun,
    create,
    expected_of_ours,
    expected_of_pylance,
    ours,
    rows_from,
    theirs,
    verdict_of_ours,
    verdict_of_pylance,
)

THEIR_FIRSTS = (*FIRSTS, "columns")
THEIR_LATERS = (*dict.fromkeys(later for later, _ in REFERENCE), "columns")


@pytest.fixture(autouse=True)
def overlays(monkeypatch):
    """pylance makes them where its environment allows it."""
    monkeypatch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")


def cells(laters: Iterable[str], firsts: Sequence[str]) -> list:
    """Every pair, with row ids that stay and without. Of each second commit one is not slow."""
    found = []
    for row, later in enumerate(laters):
        for column, first in enumerate(firsts):
            for stable in (False, True):
                slow = (row * 3 + 1) % len(firsts) != column or stable == (row % 2 == 0)
                id = f"{later}-after-{first}{'-stable' if stable else ''}"
                found.append(pytest.param(later, first, stable, id=id, marks=[pytest.mark.slow] if slow else []))
    return found


@pytest.mark.spec("L-070")
@pytest.mark.parametrize(("later", "first", "stable"), cells(HERE, HERE))
def test_ours_after_ours(kit, later, first, stable):
    create(kit.uri, stable)
    with kit.overtaken_by(lambda: ours(kit.uri, first, "first")()):
        verdict = verdict_of_ours(ours(kit.uri, later, "later"))
    assert verdict == expected_of_ours(later, first)
    state = after(begun(), first, "first", by_us=True)
    check(kit, state if verdict == REFUSED else after(state, later, "later", by_us=True))


@pytest.mark.spec("L-070", "L-071")
@pytest.mark.parametrize(("later", "first", "stable"), cells(HERE, THEIR_FIRSTS))
def test_ours_after_theirs(kit, later, first, stable):
    create(kit.uri, stable)
    with kit.overtaken_by(lambda: theirs(kit.uri, first, "first")()):
        verdict = verdict_of_ours(ours(kit.uri, later, "later"))
    assert verdict == expected_of_ours(later, first)
    state = after(begun(), first, "first", by_us=False)
    check(kit, state if verdict == REFUSED else after(state, later, "later", by_us=True))


@pytest.mark.spec("L-070", "L-071")
@pytest.mark.parametrize(("later", "first", "stable"), cells(THEIR_LATERS, HERE))
def test_theirs_after_ours(kit, later, first, stable):
    create(kit.uri, stable)
    stale = theirs(kit.uri, later, "later")
    ours(kit.uri, first, "first")()
    verdict = verdict_of_pylance(stale)
    assert verdict == expected_of_pylance(later, first)
    state = after(begun(), first, "first", by_us=True)
    check(kit, after(state, later, "later", by_us=False) if verdict == REBASED else state)


@pytest.mark.parametrize(("later", "first", "stable"), cells(THEIR_LATERS, THEIR_FIRSTS))
def test_theirs_after_theirs(kit, later, first, stable):
    """The table of verdicts is what pylance does."""
    create(kit.uri, stable)
    stale = theirs(kit.uri, later, "later")
    theirs(kit.uri, first, "first")()
    verdict = verdict_of_pylance(stale)
    assert verdict == expected_of_pylance(later, first)
    state = after(begun(), first, "first", by_us=False)
    check(kit, after(state, later, "later", by_us=False) if verdict == REBASED else state)


@pytest.mark.parametrize("later", ["delete", "update"])
@pytest.mark.parametrize(
    ("first", "ours_first", "ours_later"),
    [
        *((first, *by) for first in ("delete", "update") for by in ((True, True), (True, False), (False, True))),
        ("data_replacement", False, True),
    ],
)
def test_rows_of_other_fragments_never_conflict(kit, later, first, ours_first, ours_later):
    create(kit.uri, stable=False)
    stale = (ours if ours_later else theirs)(kit.uri, later, "apart")
    before = (ours if ours_first else theirs)(kit.uri, first, "first")
    if ours_later:
        with kit.overtaken_by(before):
            assert verdict_of_ours(stale) == REBASED
    else:
        before()
        assert verdict_of_pylance(stale) == REBASED
    check(kit, after(after(begun(), first, "first", by_us=ours_first), later, "apart", by_us=ours_later))


def test_the_same_property_is_refused(kit):
    create(kit.uri, stable=False)
    for maker in (ours, theirs):
        with kit.overtaken_by(maker(kit.uri, "update_config", "first")):
            assert verdict_of_ours(ours(kit.uri, "update_config", "first")) == REFUSED
    stale = theirs(kit.uri, "update_config", "first")
    ours(kit.uri, "update_config", "first")()
    assert verdict_of_pylance(stale) == REFUSED
    check(kit, after(begun(), "update_config", "first", by_us=True))


def check(kit, state: State) -> None:
    """Both read what should be there, with and without an index, and nothing of it is damaged."""
    dataset, table = kit.dataset(), kit.open()
    dataset.validate()
    expected = state.table()
    assert sorted(dataset.to_table().to_pylist(), key=lambda r: r["id"]) == expected
    assert sorted(table.to_arrow().to_pylist(), key=lambda r: r["id"]) == expected
    assert dict(table.properties) == dataset.config() == state.config
    found = dataset.to_table(columns=["id"], filter="v >= 20").column("id").to_pylist()
    assert sorted(found) == [r["id"] for r in expected if r["v"] >= 20]
    kit.open().append(rows_from(900, 1).select([c for c in state.columns if c in rows_from(0, 1).column_names]))
    assert dataset.checkout_version(dataset.latest_version).count_rows() == len(expected) + 1
