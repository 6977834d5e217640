"""Joins in process: the right side is held in memory and indexed by its keys, the left side streams.

The equalities of the condition between an expression over the left and one over the right side are the keys; the rest
is evaluated for pairs of rows with equal keys, a bounded number at a time. Without an equality these are all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from boathouse.arrow.conform import conform
from boathouse.arrow.keys import KeyIndex
from boathouse.arrow.schema import from_arrow, to_arrow, to_arrow_type
from boathouse.arrow.selection import take
from boathouse.arrow.vector import Bools, Ints
from boathouse.compute.evaluate import can_raise, evaluate, mask
from boathouse.engines.sources import Batches
from boathouse.errors import InvalidArgumentError
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.sides import Sides
from boathouse.expr.tree import TRUE, Comparison, Expr, Literal, all_of, columns, conjuncts
from boathouse.table.engine import JoinType
from boathouse.types import INT32, Field, Schema
from boathouse.types.data_types import unlabelled

LEFT_ROWS = 1 << 17
"""Rows of the left side that are looked up at once."""
PAIR_ROWS = 1 << 17
PAIR_BYTES = 64 << 20
"""Limits of a batch of pairs: its rows, and its bytes if all rows were of average size."""
NO_ROW = -1


def join(left: Batches, right: Batches, on: str, how: JoinType, sides: tuple[str, str]) -> Batches:
    """The pairs of rows as two struct columns, each null where its side has no match; for semi and anti the left rows.

    The right side is read when the rows are first read, and kept.
    """
    if sides[0].lower() == sides[1].lower():
        raise InvalidArgumentError(f"both sides of a join are named {sides[0]!r}", advice="name them differently")
    pairs = how not in ("semi", "anti")
    left, right = _plain(left, pairs), _plain(right, pairs)
    structs = [pa.struct([f.with_nullable(True) for f in rel.schema]) for rel in (left, right)]
    schema = pa.schema([pa.field(name, type) for name, type in zip(sides, structs)])
    matching = Join(left, right, Condition.of(on, from_arrow(schema), left.zone), how, schema)
    if not pairs:
        return Batches(left.schema, matching.filtered, left.once, zone=left.zone)
    return Batches(schema, matching.joined, left.once, sides=True, zone=left.zone)


def _plain(rel: Batches, alike: bool) -> Batches:
    """The rows in the layouts of the library's types: of some of the others, Arrow cannot take or mask rows.

    `alike`: nested types as Spark has them, so that CASE may choose between the values of both sides.
    """
    schema = from_arrow(rel.schema)
    if alike:
        schema = Schema(tuple(Field(f.name, unlabelled(f.type)) for f in schema.fields))
    plain = to_arrow(schema)
    if rel.schema.types != plain.types:
        return Batches(plain, lambda: (conform(batch, schema) for batch in rel.open()), rel.once, zone=rel.zone)
    return Batches(plain, rel.open, rel.once, rel.whole, zone=rel.zone) if alike else rel


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over two struct columns, split by how it is evaluated; every part is bound.

    `only` are the parts over one side alone, which exclude rows before they are looked up.
    """

    keys: tuple[tuple[Expr, ...], tuple[Expr, ...]]
    null_matches: tuple[bool, ...]
    only: tuple[Expr, Expr]
    rest: Expr | None

    @staticmethod
    def of(on: str, schema: Schema, zone: str = "UTC") -> Condition:
        sides = [f.name for f in schema.fields]
        keys: list[tuple[Expr, Expr, bool]] = []
        only: list[list[Expr]] = [[], []]
        rest: list[Expr] = []
        for part in conjuncts(bind_predicate(Sides(schema).condition(on), schema, zone)):
            read = _read(part)
            key = _equality(part, sides)
            if key is not None:
                keys.append(key)
            elif len(read) == 1 and not can_raise(part):
                # What can raise stays behind the parts that may shield it.
                only[sides.index(read.pop())].append(part)
            elif part != TRUE:
                rest.append(part)
        one = Literal(1, type=INT32)
        left, right, safe = zip(*keys) if keys else ((one,), (one,), (False,))
        return Condition((left, right), safe, (all_of(only[0]), all_of(only[1])), all_of(rest) if rest else None)


def _equality(part: Expr, sides: Sequence[str]) -> tuple[Expr, Expr, bool] | None:
    """The key of the left side, that of the right side, and whether null equals null."""
    if not (isinstance(part, Comparison) and part.op in ("=", "<=>")):
        return None
    for left, right in ((part.left, part.right), (part.right, part.left)):
        if _read(left) == {sides[0]} and _read(right) == {sides[1]}:
            return left, right, part.op == "<=>"
    return None


def _read(e: Expr) -> set[str]:
    return {path[0] for path in columns(e)}


@dataclass(frozen=True, slots=True)
class _Indexed:
    """The right side: its columns, and the index of those of its rows that can match."""

    rows: int
    columns: list[pa.Array | pa.ChunkedArray]
    row_bytes: int
    able: Ints
    index: KeyIndex


@dataclass(frozen=True)
class Join:
    """One join; its rows can be read more than once if those of the left side can."""

    left: Batches
    right: Batches
    condition: Condition
    how: JoinType
    schema: pa.Schema

    @cached_property
    def _right(self) -> _Indexed:
        table = self.right.table().combine_chunks()
        columns = [c.chunk(0) if c.num_chunks == 1 else c for c in table.columns]
        keys: list[list[pa.Array]] = [[pa.array([], _key_type(e))] for e in self.condition.keys[1]]
        able: list[Ints] = [np.empty(0, np.int64)]
        first = 0
        for batch in table.to_batches():
            rows, values = self._keys(1, batch)
            able.append(rows + first)
            for chunks, value in zip(keys, values, strict=True):
                chunks.append(value)
            first += batch.num_rows
        index = KeyIndex.of([pa.chunked_array(chunks) for chunks in keys], self.condition.null_matches)
        return _Indexed(first, columns, table.nbytes // max(first, 1), np.concatenate(able), index)

    def _keys(self, side: int, batch: pa.RecordBatch) -> tuple[Ints, list[pa.Array]]:
        """The rows of one side that can match, and their keys."""
        rows = pa.RecordBatch.from_arrays([_struct(self.schema, side, batch.columns)], [self.schema.names[side]])
        able = np.arange(batch.num_rows)
        if self.condition.only[side] != TRUE:
            keep = mask(self.condition.only[side], rows)
            able, rows = np.flatnonzero(keep.to_numpy(zero_copy_only=False)), rows.filter(keep)
        return able, [evaluate(key, rows) for key in self.condition.keys[side]]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.left.open():
            for start in range(0, batch.num_rows, LEFT_ROWS):
                yield batch.slice(start, LEFT_ROWS)

    def filtered(self) -> Iterator[pa.RecordBatch]:
        """The left rows that have a match (semi), or none (anti)."""
        for batch in self._batches():
            matched = np.zeros(batch.num_rows, np.bool_)
            if self.condition.rest is None:
                able, groups = self._groups(batch)
                matched[able[groups >= 0]] = True
            else:
                for left, _, _ in self._pairs(batch):
                    matched[left] = True
            yield batch.filter(pa.array(matched if self.how == "semi" else ~matched))

    def joined(self) -> Iterator[pa.RecordBatch]:
        """The pairs in the order of the left rows; right rows without a match come last."""
        seen = np.zeros(self._right.rows, np.bool_)
        for batch in self._batches():
            done = 0
            matched = np.zeros(batch.num_rows, np.bool_)
            for left, right, upto in self._pairs(batch):
                matched[left] = True
                seen[right] = True
                if self.how in ("left", "full"):
                    left, right = _with_alone(left, right, done + np.flatnonzero(~matched[done:upto]))
                    done = upto
                if len(left):
                    yield self._rows(batch, left, right)
        if self.how in ("right", "full"):
            alone = np.flatnonzero(~seen)
            size = _pair_rows(self._right.row_bytes)
            for start in range(0, len(alone), size):
                part = alone[start : start + size]
                nothing = pa.nulls(len(part), self.schema.field(0).type)
                yield pa.RecordBatch.from_arrays([nothing, self._right_rows(part)], schema=self.schema)

    def _groups(self, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
        """The left rows that can match, and the group of right rows with the same keys for each."""
        able, keys = self._keys(0, batch)
        return able, self._right.index.lookup(keys)

    def _pairs(self, batch: pa.RecordBatch) -> Iterator[tuple[Ints, Ints, int]]:
        """Left and right rows that satisfy the condition, and the left row before which there will be no more pairs.

        The left rows ascend, and the last triple covers all of them.
        """
        right = self._right
        able, groups = self._groups(batch)
        counts = right.index.counts(groups)
        found = np.flatnonzero(counts)
        counts = counts[found]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        size = _pair_rows(right.row_bytes + batch.nbytes // max(batch.num_rows, 1))
        for start in range(0, max(total, 1), size):
            at = np.arange(start, min(start + size, total))
            owner = at if total == len(found) else np.searchsorted(ends, at, "right")
            left = able[found[owner]]
            pairs = right.able[right.index.row(groups[found[owner]], at - (ends - counts)[owner])]
            last = start + size >= total
            upto = batch.num_rows if last else int(able[found[owner[-1]]])
            if self.condition.rest is not None:
                keep = self._satisfied(self.condition.rest, batch, left, pairs)
                left, pairs = left[keep], pairs[keep]
            yield left, pairs, upto

    def _satisfied(self, rest: Expr, batch: pa.RecordBatch, left: Ints, right: Ints) -> Bools:
        """For which pairs the rest of the condition is true; only the columns that it reads are taken."""
        structs = []
        for side, (columns_of, rows) in enumerate(((batch.columns, left), (self._right.columns, right))):
            type = self.schema.field(side).type
            paths = [p for p in columns(rest) if p[0] == self.schema.names[side]]
            every = any(len(p) == 1 for p in paths) or not paths
            names = {p[1] for p in paths if len(p) > 1}
            used = [i for i in range(type.num_fields) if every or type.field(i).name in names]
            taken = [_taken(columns_of[i], pa.array(rows)) for i in used]
            structs.append(pa.StructArray.from_arrays(taken, fields=[type.field(i) for i in used]))
        pairs = pa.RecordBatch.from_arrays(structs, self.schema.names)
        return np.asarray(mask(rest, pairs).to_numpy(zero_copy_only=False), np.bool_)

    def _rows(self, batch: pa.RecordBatch, left: Ints, right: Ints) -> pa.RecordBatch:
        first, last = int(left[0]), int(left[-1])
        if last - first == len(left) - 1 and (np.diff(left) == 1).all():
            taken = batch.slice(first, len(left)).columns
        else:
            taken = [_taken(column, pa.array(left)) for column in batch.columns]
        return pa.RecordBatch.from_arrays([_struct(self.schema, 0, taken), self._right_rows(right)], schema=self.schema)

    def _right_rows(self, rows: Ints) -> pa.StructArray:
        """The right rows as structs, null for NO_ROW."""
        missing = rows == NO_ROW
        if missing.all():
            return pa.nulls(len(rows), self.schema.field(1).type)
        absent = missing.any()
        places = pa.array(rows, mask=missing if absent else None)
        taken = [_taken(column, places) for column in self._right.columns]
        return _struct(self.schema, 1, taken, pa.array(missing) if absent else None)


def _with_alone(left: Ints, right: Ints, alone: Ints) -> tuple[Ints, Ints]:
    """The pairs and the left rows that have none, in the order of the left rows."""
    if not len(alone):
        return left, right
    both = np.concatenate([left, alone])
    order = np.argsort(both, kind="stable")
    return both[order], np.concatenate([right, np.full(len(alone), NO_ROW)])[order]


def _pair_rows(row_bytes: int) -> int:
    return min(PAIR_ROWS, max(1, PAIR_BYTES // max(row_bytes, 1)))


def _struct(
    schema: pa.Schema, side: int, arrays: Sequence[pa.Array], missing: pa.Array | None = None
) -> pa.StructArray:
    return pa.StructArray.from_arrays(arrays, fields=list(schema.field(side).type), mask=missing)


def _taken(column: pa.Array | pa.ChunkedArray, places: pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        # Only where a column is too large for one array.
        return column.take(places).combine_chunks()
    return take(column, places)


def _key_type(e: Expr) -> pa.DataType:
    assert e.type is not None
    return to_arrow_type(e.type)
