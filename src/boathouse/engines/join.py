"""Joins in process. pyarrow's hash join accepts no nested columns, never matches nulls and distinguishes 0.0 from -0.0,
so it gets only normalised keys and row ordinals; the rows are taken afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.evaluate import evaluate, mask
from boathouse.arrow.schema import from_arrow
from boathouse.errors import ExpressionError, UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.expr.tree import Comparison, Expr, all_of, columns, conjuncts
from boathouse.types import Schema

JoinType = Literal["inner", "left", "full", "semi", "anti"]
LEFT, RIGHT = "l", "r"
Key = tuple[Expr, Expr, bool]
"""Left key, right key (of one type, over a struct column `l` or `r`), and whether null matches null."""


def join_tables(left: pa.Table, right: pa.Table, on: str, how: JoinType) -> pa.Table:
    """Joins on a condition over the aliases `l` and `r` that has at least one equality of the two sides.

    Columns of the result: those of left, then those of right (none for semi and anti); names may repeat.
    """
    sides = pa.schema([pa.field(LEFT, pa.struct(left.schema)), pa.field(RIGHT, pa.struct(right.schema))])
    keys, rest = _keys(on, from_arrow(sides))
    if not keys:
        raise UnsupportedFeatureError(
            f"a join without an equality of both sides: {on}", advice="add a condition such as l.id = r.id"
        )
    pairs = _match(_values(left, LEFT, [k[0] for k in keys]), _values(right, RIGHT, [k[1] for k in keys]), keys)
    if rest is not None:
        pairs = _filter(left, right, pairs, rest)
    return _assemble(left, right, pairs, how)


def _keys(on: str, schema: Schema) -> tuple[list[Key], Expr | None]:
    """The equalities between the sides, and the rest of the condition; both bound."""
    keys, rest = [], []
    for part in conjuncts(parse(on)):
        stray = {path[0] for path in columns(part) if path[0].lower() not in (LEFT, RIGHT)}
        if stray:
            raise ExpressionError(f"`{min(stray)}` in a join belongs to neither side: {part}", advice="write l. or r.")
        key = _equality(bind(part, schema))
        if key is None:
            rest.append(part)
        else:
            keys.append(key)
    return keys, bind_predicate(all_of(rest), schema) if rest else None


def _equality(part: Expr) -> Key | None:
    if not (isinstance(part, Comparison) and part.op in ("=", "<=>")):
        return None
    match _side(part.left), _side(part.right):
        case "l", "r":
            return part.left, part.right, part.op == "<=>"
        case "r", "l":
            return part.right, part.left, part.op == "<=>"
    return None


def _side(e: Expr) -> str | None:
    sides = {path[0] for path in columns(e)}
    return sides.pop() if len(sides) == 1 else None


def _values(table: pa.Table, side: str, keys: Sequence[Expr]) -> list[pa.ChunkedArray]:
    found: list[list[pa.Array]] = [[] for _ in keys]
    for batch in table.to_batches() or [_empty(table.schema)]:
        rows = pa.RecordBatch.from_arrays([_struct(batch)], [side])
        for values, key in zip(found, keys, strict=True):
            values.append(_normal(evaluate(key, rows)))
    return [pa.chunked_array(values) for values in found]


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _struct(batch: pa.RecordBatch) -> pa.StructArray:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


def _normal(values: pa.Array) -> pa.Array:
    """One bit pattern for every NaN, and one for both zeros."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.equal(values, 0), pa.scalar(0, values.type), values)
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    return values


def _match(left: list[pa.ChunkedArray], right: list[pa.ChunkedArray], keys: Sequence[Key]) -> np.ndarray:
    """(n, 2) ordinals of matching rows: each key of both sides is encoded with one dictionary, common to all chunks."""
    size = len(left[0])
    codes = np.zeros(size + len(right[0]), np.int64)
    never = np.zeros(len(codes), bool)
    for a, b, (_, _, null_safe) in zip(left, right, keys, strict=True):
        both = pa.chunked_array([*a.chunks, *b.cast(a.type).chunks], a.type)
        encoded = pc.dictionary_encode(both, null_encoding="encode")
        index = np.concatenate(
            [np.empty(0, np.int64), *(c.indices.to_numpy(zero_copy_only=False) for c in encoded.chunks)]
        ).astype(np.int64)
        _, codes = np.unique(codes * (int(index.max(initial=0)) + 1) + index, return_inverse=True)
        if not null_safe:
            never |= both.is_null().to_numpy()
    lt = pa.table({"k": codes[:size], "l": np.arange(size)}).filter(pa.array(~never[:size]))
    rt = pa.table({"k": codes[size:], "r": np.arange(len(codes) - size)}).filter(pa.array(~never[size:]))
    joined = lt.join(rt, "k", join_type="inner").sort_by([("l", "ascending"), ("r", "ascending")])
    return np.stack([joined.column("l").to_numpy(), joined.column("r").to_numpy()], axis=1)


def _filter(left: pa.Table, right: pa.Table, pairs: np.ndarray, rest: Expr) -> np.ndarray:
    """The pairs for which the rest of the condition is true, a bounded number of rows at a time."""
    kept = []
    for start in range(0, len(pairs), 1 << 16):
        part = pairs[start : start + (1 << 16)]
        sides = [_rows(table, part[:, i]) for i, table in enumerate((left, right))]
        batch = pa.RecordBatch.from_arrays([_struct(s) for s in sides], [LEFT, RIGHT])
        kept.append(part[mask(rest, batch).to_numpy(zero_copy_only=False)])
    return np.concatenate(kept) if kept else pairs


def _rows(table: pa.Table, ordinals: np.ndarray) -> pa.RecordBatch:
    batches = table.take(pa.array(ordinals)).combine_chunks().to_batches()
    return batches[0] if batches else _empty(table.schema)


def _assemble(left: pa.Table, right: pa.Table, pairs: np.ndarray, how: JoinType) -> pa.Table:
    matched = np.zeros(left.num_rows, bool)
    matched[pairs[:, 0]] = True
    if how in ("semi", "anti"):
        return left.filter(pa.array(matched if how == "semi" else ~matched))
    lhs, rhs = pairs[:, 0], pairs[:, 1]
    l_null, r_null = np.zeros(len(lhs), bool), np.zeros(len(rhs), bool)
    if how in ("left", "full"):
        alone = np.flatnonzero(~matched)
        lhs, rhs = np.concatenate([lhs, alone]), np.concatenate([rhs, np.zeros(len(alone), np.int64)])
        l_null = np.concatenate([l_null, np.zeros(len(alone), bool)])
        r_null = np.concatenate([r_null, np.ones(len(alone), bool)])
    if how == "full":
        seen = np.zeros(right.num_rows, bool)
        seen[pairs[:, 1]] = True
        alone = np.flatnonzero(~seen)
        lhs, rhs = np.concatenate([lhs, np.zeros(len(alone), np.int64)]), np.concatenate([rhs, alone])
        l_null = np.concatenate([l_null, np.ones(len(alone), bool)])
        r_null = np.concatenate([r_null, np.zeros(len(alone), bool)])
    taken = left.take(pa.array(lhs, mask=l_null)).columns + right.take(pa.array(rhs, mask=r_null)).columns
    return pa.table(taken, names=[*left.column_names, *right.column_names])
