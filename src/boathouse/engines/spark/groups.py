"""Units of a plan by how Spark reads them, and what a source of their rows gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame

from boathouse.engines.spark.equality import EqualityJoins
from boathouse.engines.spark.read_schema import Shape
from boathouse.engines.spark.selection import Expression
from boathouse.table.reading import constants
from boathouse.table.tasks import ReadColumn, ReadSpec


@dataclass(frozen=True, slots=True)
class Group:
    """Units that are read the same way: `constants` are the columns whose values come from a partition field,
    `deleted` whether positions are deleted, `equality` the numbers of their equality deletes.

    The units have the paths by which Spark reaches their files; `paths` are those of the table.
    """

    units: pa.Table
    constants: Mapping[str, int]
    deleted: bool
    equality: tuple[int, ...]
    paths: pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a group as they are in its files.

    `staged` are columns to select beside those of the files, with their names; on the selection `values` are the
    constants by name, `unit` the unit of a row, and `key` tells files apart: `keys` are those of the group's units, in
    their order.
    """

    frame: DataFrame
    staged: tuple[tuple[str, Expression], ...]
    values: Mapping[str, Expression]
    unit: Expression | None
    key: Column | None
    keys: pa.Array | None


class Source(Protocol):
    """How Spark gets the files of a plan."""

    def rows(self, group: Group, stored: Sequence[ReadColumn], shape: Shape, skips: bool) -> Rows:
        """The rows of one group, `stored` being the columns that its files have and `shape` how they are read. Unless
        it `skips`, conditions are evaluated on every row."""


def groups(read: ReadSpec, units: pa.Table, paths: pa.ChunkedArray, equality: EqualityJoins) -> list[Group]:
    """Units by how they are read, in order of first appearance; the order of units within a group is kept."""
    specs = units.column("spec").to_numpy()
    known = {int(spec): constants(read, int(spec)) for spec in np.unique(specs)}
    alike = {spec: next(s for s, c in known.items() if c == found) for spec, found in known.items()}
    numbers = np.zeros(len(specs), np.int64)
    for spec, same in alike.items():
        numbers[specs == spec] = same
    kinds: list[tuple[bool, tuple[int, ...]]] = [(False, ())]
    treated = np.zeros(len(specs), np.int64)
    lists = units.column("deletes")
    for i in np.flatnonzero(pc.fill_null(pc.greater(pc.list_value_length(lists), 0), False).to_numpy()):
        ids = lists[int(i)].as_py()
        by_key = equality.among(ids)
        kind = (len(ids) > len(by_key), by_key)
        if kind not in kinds:
            kinds.append(kind)
        treated[i] = kinds.index(kind)
    both, first, inverse = np.unique(np.stack([numbers, treated]), axis=1, return_index=True, return_inverse=True)
    found = []
    for j in np.argsort(first):
        rows = pa.array(np.flatnonzero(inverse.reshape(-1) == j))
        whole = both.shape[1] == 1
        found.append(
            Group(
                units if whole else units.take(rows),
                known[int(both[0, j])],
                kinds[both[1, j]][0],
                kinds[both[1, j]][1],
                paths if whole else paths.take(rows),
            )
        )
    return found
