"""The tests of a predicate on the files of a table: on partition values alone, then on all statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boathouse.compute.prune import Pruner
from boathouse.expr.tree import Expr, Path, all_of, columns, conjuncts


@dataclass(frozen=True, slots=True)
class Test:
    """`name` is the one that a `Tally` counts the skipped files under."""

    pruner: Pruner
    name: str


def tests_of(where: Expr, partition: Sequence[str]) -> tuple[Test | None, Test | None, tuple[Path, ...]]:
    """The test of the partition columns alone, that of all statistics, and the columns whose statistics it reads.

    A test is None if it decides nothing.
    """
    used = tuple(columns(where))
    first, rest = _split(where, set(partition))
    by_partition = None if first is None else Test(Pruner(first, [(n,) for n in partition]), f"partition {first}")
    by_bounds = None if rest is None else Test(Pruner(where, used), f"bounds {rest}")
    return by_partition, by_bounds, used


def _split(where: Expr, partition: set[str]) -> tuple[Expr | None, Expr | None]:
    """The conjuncts that partition columns alone decide, and the others."""
    first: list[Expr] = []
    rest: list[Expr] = []
    for part in conjuncts(where):
        used = columns(part)
        (first if used and all(len(p) == 1 and p[0] in partition for p in used) else rest).append(part)
    return all_of(first) if first else None, all_of(rest) if rest else None
