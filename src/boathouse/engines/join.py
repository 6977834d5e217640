"""Joins in process. pyarrow's hash join takes no nested payload, never matches null and tells 0.0 from -0.0,
so only normalised keys and row ordinals go through it; the rows are taken afterwards."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.evaluate import evaluate, mask
from boathouse.arrow.schema import from_arrow
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind
from boathouse.expr.tree import Column, Comparison, Expr, all_of, columns, conjuncts, rebuild

JoinType = Literal["inner", "left", "full", "semi", "anti"]


def join_tables(left: pa.Table, right: pa.Table, on: str, how: JoinType) -> pa.Table:
    """Joins on a condition over the aliases `l` and `r` that has at least one equality of the two sides.

    Columns of the result: those of left, then those of right (none for semi and anti).
    """
    keys, rest = _keys(on)
    if not keys:
        raise UnsupportedFeatureError(
            f"a join without an equality of both sides: {on}", advice="add a condition such as l.id = r.id"
        )
    pairs = _match(_key_table(left, [a for a, _, _ in keys]), _key_table(right, [b for _, b, _ in keys]), keys)
    if rest is not None:
        pairs = _filter(left, right, pairs, rest)
    return _assemble(left, right, pairs, how)


def _keys(on: str) -> tuple[list[tuple[Expr, Expr, bool]], Expr | None]:
    """(left key, right key, null-safe) of each equality between the sides, and the rest of the condition."""
    keys, rest = [], []
    for part in conjuncts(parse(on)):
        pair = _equality(part)
        if pair is None:
            rest.append(part)
        else:
            keys.append(pair)
    return keys, all_of(rest) if rest else None


def _equality(part: Expr) -> tuple[Expr, Expr, bool] | None:
    if not (isinstance(part, Comparison) and part.op in ("=", "<=>")):
        return None
    a, b = _side(part.left), _side(part.right)
    if {a, b} != {"l", "r"}:
        return None
    left, right = (part.left, part.right) if a == "l" else (part.right, part.left)
    return _strip(left), _strip(right), part.op == "<=>"


def _side(e: Expr) -> str | None:
    sides = {path[0].lower() for path in columns(e)}
    return sides.pop() if len(sides) == 1 else None


def _strip(e: Expr) -> Expr:
    return Column(e.path[1:]) if isinstance(e, Column) else rebuild(e, _strip)


def _key_table(table: pa.Table, keys: list[Expr]) -> list[pa.Array]:
    batch = table.combine_chunks().to_batches()
    rows = batch[0] if batch else pa.RecordBatch.from_pylist([], table.schema)
    schema = from_arrow(table.schema)
    return [_normal(evaluate(bind(k, schema), rows)) for k in keys]


def _normal(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.equal(values, 0), pa.scalar(0, values.type), values)
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    return values


def _match(left: list[pa.Array], right: list[pa.Array], keys: list[tuple[Expr, Expr, bool]]) -> np.ndarray:
    """(n, 2) ordinals of matching rows: each key of both sides encoded over one common dictionary."""
    codes_l = np.zeros(len(left[0]), np.int64)
    codes_r = np.zeros(len(right[0]), np.int64)
    never_l = np.zeros(len(codes_l), bool)
    never_r = np.zeros(len(codes_r), bool)
    for a, b, (_, _, null_safe) in zip(left, right, keys, strict=True):
        both = pc.dictionary_encode(pa.concat_arrays([a, b.cast(a.type)]), null_encoding="encode")
        index = both.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, dense = np.unique(np.stack([np.concatenate([codes_l, codes_r]), index]), axis=1, return_inverse=True)
        codes_l, codes_r = dense[: len(a)].reshape(-1), dense[len(a) :].reshape(-1)
        if not null_safe:
            never_l |= a.is_null().to_numpy(zero_copy_only=False)
            never_r |= b.is_null().to_numpy(zero_copy_only=False)
    lt = pa.table({"k": codes_l, "l": np.arange(len(codes_l))}).filter(pa.array(~never_l))
    rt = pa.table({"k": codes_r, "r": np.arange(len(codes_r))}).filter(pa.array(~never_r))
    joined = lt.join(rt, "k", join_type="inner").sort_by([("l", "ascending"), ("r", "ascending")])
    return np.stack([joined.column("l").to_numpy(), joined.column("r").to_numpy()], axis=1)


def _filter(left: pa.Table, right: pa.Table, pairs: np.ndarray, rest: Expr) -> np.ndarray:
    lhs = left.take(pa.array(pairs[:, 0])).combine_chunks().to_struct_array()
    rhs = right.take(pa.array(pairs[:, 1])).combine_chunks().to_struct_array()
    both = pa.table({"l": lhs, "r": rhs}).combine_chunks()
    batch = both.to_batches()[0] if both.num_rows else pa.RecordBatch.from_pylist([], both.schema)
    return pairs[mask(bind(rest, from_arrow(batch.schema)), batch).to_numpy(zero_copy_only=False)]


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
    columns = left.take(pa.array(lhs, mask=l_null)).columns + right.take(pa.array(rhs, mask=r_null)).columns
    return pa.table(columns, names=[*left.column_names, *right.column_names])
