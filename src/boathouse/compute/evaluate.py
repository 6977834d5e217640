"""Evaluates bound expressions over record batches: whole-column kernels, Spark's semantics, ANSI errors.

A value that can raise is computed only for the rows that need it in AND, OR, CASE and COALESCE, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow import arithmetic, kernels, literals
from boathouse.arrow.cast import cast
from boathouse.arrow.layouts import member, plain
from boathouse.arrow.schema import from_arrow, to_arrow_type
from boathouse.arrow.vector import Value, as_array
from boathouse.compute import functions
from boathouse.errors import (
    BoathouseError,
    ColumnNotFoundError,
    CorruptTableError,
    EvaluationError,
    ExpressionError,
)
from boathouse.expr.functions import FUNCTIONS
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.expr.simplify import simplify
from boathouse.expr.tree import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Comparison,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    columns,
    rebuild,
)
from boathouse.expr.zoned import zone_of
from boathouse.types import DataType, FloatType, VariantType
from boathouse.types.data_types import children


def evaluate(expr: Expr, batch: pa.RecordBatch | pa.Table) -> pa.Array:
    """One value per row. An unbound `expr` is bound to the batch's own schema first.

    Raises EvaluationError (overflow, division by zero, a cast that fails) naming the expression.
    """
    if expr.type is None:
        expr = bind(expr, from_arrow(batch.schema))
    return as_array(_run(expr, _one(batch)), batch.num_rows)


def mask(expr: Expr, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """Which rows satisfy a condition: true or false, null counting as false."""
    if expr.type is None:
        expr = bind_predicate(expr, from_arrow(batch.schema))
    out = evaluate(expr, batch)
    if pa.types.is_null(out.type):
        return pa.repeat(pa.scalar(False), batch.num_rows)
    return pc.fill_null(out, False) if out.null_count else out


def select(batch: pa.RecordBatch, expr: Expr) -> pa.RecordBatch:
    """The rows of `batch` that satisfy `expr`."""
    keep = mask(expr, batch)
    return batch if keep.true_count == len(keep) else batch.filter(keep)


def fold_constants(expr: Expr) -> Expr:
    """`expr` with every part that reads no column replaced by its value, if computing it raises no error."""
    return simplify(_fold(expr))


def _fold(e: Expr) -> Expr:
    if isinstance(e, Literal | Column) or e.type is None:
        return e
    if columns(e) or isinstance(e.type, VariantType) or children(e.type):
        # There are no literals of variants and nested values.
        return rebuild(e, _fold)
    try:
        return literals.to_literal(as_array(_run(e, _no_columns()), 1)[0], e.type)
    except BoathouseError:
        return e


@cache
def _no_columns() -> pa.RecordBatch:
    """A batch for expressions that read no column; created lazily, because the first array imports pandas if it is
    installed."""
    return pa.RecordBatch.from_pylist([], pa.schema([]))


def _one(batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    if isinstance(batch, pa.RecordBatch):
        return batch
    chunks = batch.combine_chunks().to_batches()
    return chunks[0] if chunks else pa.RecordBatch.from_pylist([], batch.schema)


def _run(e: Expr, batch: pa.RecordBatch) -> Value:
    try:
        return _HANDLERS[type(e)](e, batch)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError(f"{str(error).splitlines()[0]} in {e}") from error
    except pa.ArrowIndexError as error:
        # From a dictionary that was read: its indexes are first checked here.
        raise CorruptTableError(f"corrupt data: {error} in {e}") from error


@lru_cache(4096)
def can_raise(e: Expr) -> bool:
    """Whether `e` can fail for values of the right types."""
    match e:
        case Arithmetic(op):
            own = op in ("/", "%", "div") or not isinstance(e.type, FloatType)
        case Cast(safe=safe):
            own = not safe
        case Function(name):
            own = not FUNCTIONS[name].total
        case _:
            own = False
    return own or any(can_raise(c) for c in e.children())


def _type(e: Expr) -> DataType:
    if e.type is None:
        raise ExpressionError(f"not bound to a schema: {e}", advice="call expr.resolve.bind first")
    return e.type


def _column(e: Column, batch: pa.RecordBatch) -> pa.Array:
    at = batch.schema.get_field_index(e.path[0])
    array = batch.column(_position(e.path[0], batch.schema.names) if at < 0 else at)
    for name in e.path[1:]:
        if not pa.types.is_struct(array.type):
            raise ColumnNotFoundError(f"no field {e} in the batch")
        at = array.type.get_field_index(name)
        array = member(array, _position(name, [f.name for f in array.type]) if at < 0 else at)
    return plain(array, _type(e))


def _position(name: str, names: list[str]) -> int:
    if names.count(name) == 1:
        return names.index(name)
    hits = [i for i, n in enumerate(names) if n.lower() == name.lower()]
    if len(hits) != 1:
        raise ColumnNotFoundError(f"no column `{name}` in the batch", advice=f"it has {', '.join(names)}")
    return hits[0]


def _comparison(e: Comparison, batch: pa.RecordBatch) -> Value:
    if e.op == "<=>":
        return kernels.compare(e.op, _run(e.left, batch), _run(e.right, batch))
    return kernels.compare(e.op, *_pair(e.left, e.right, batch))


def _pair(first: Expr, second: Expr, batch: pa.RecordBatch) -> tuple[Value, Value]:
    """Both operands; the second is not computed where the first is null if it can raise, as in Spark."""
    value = _run(first, batch)
    if not can_raise(second):
        return value, _run(second, batch)
    return value, _where(second, batch, pc.is_valid(value))


def _logical(e: And | Or, batch: pa.RecordBatch) -> Value:
    conjunction = isinstance(e, And)
    join = pc.and_kleene if conjunction else pc.or_kleene
    out = _run(e.args[0], batch)
    for arg in e.args[1:]:
        if can_raise(arg):
            done = pc.invert(out) if conjunction else out
            right = _where(arg, batch, pc.invert(pc.fill_null(done, False)))
        else:
            right = _run(arg, batch)
        out = join(out, right)
    return out


def _where(e: Expr, batch: pa.RecordBatch, needed: Value) -> Value:
    """`e` for the rows `needed` (no nulls in it), null elsewhere."""
    if isinstance(needed, pa.Scalar):
        if needed.as_py():
            return _run(e, batch)
        return pa.scalar(None, to_arrow_type(_type(e)))
    count = needed.true_count
    if count == batch.num_rows:
        return _run(e, batch)
    type = to_arrow_type(_type(e))
    if count == 0:
        return pa.scalar(None, type)
    part = as_array(_run(e, batch.filter(needed)), count)
    chosen = needed.to_numpy(zero_copy_only=False)
    positions = np.where(chosen, np.cumsum(chosen) - 1, 0)
    return part.take(pa.array(positions, pa.int64(), mask=~chosen))


def _not(e: Not, batch: pa.RecordBatch) -> Value:
    return pc.invert(_run(e.arg, batch))


def _is_null(e: IsNull, batch: pa.RecordBatch) -> Value:
    return pc.is_null(_run(e.arg, batch))


def _in(e: In, batch: pa.RecordBatch) -> Value:
    if all(isinstance(o, Literal) for o in e.options):
        given = [o for o in e.options if isinstance(o, Literal) and o.value is not None]
        options = literals.to_array(tuple(given), to_arrow_type(_type(e.value)))
        return kernels.is_in(_run(e.value, batch), options, len(given) < len(e.options))
    parts = tuple(Comparison("=", e.value, o, type=e.type) for o in e.options)
    return _logical(Or(parts, type=e.type), batch) if len(parts) > 1 else _comparison(parts[0], batch)


def _case(e: Case, batch: pa.RecordBatch) -> Value:
    last = e.otherwise if e.otherwise is not None else Literal(None, type=e.type)
    if not any(can_raise(c) for c in e.children()):
        out = as_array(_run(last, batch), batch.num_rows)
        for condition, value in reversed(e.branches):
            out = _choose(_run(condition, batch), _run(value, batch), out, batch.num_rows)
        return out
    left: pa.Array = pa.repeat(pa.scalar(True), batch.num_rows)
    out = pa.nulls(batch.num_rows, to_arrow_type(_type(e)))
    for condition, value in e.branches:
        hit = pc.fill_null(as_array(_where(condition, batch, left), batch.num_rows), False)
        hit = pc.and_(hit, left)
        out = _choose(hit, _where(value, batch, hit), out, batch.num_rows)
        left = pc.and_not(left, hit)
    return _choose(left, _where(last, batch, left), out, batch.num_rows)


def _choose(condition: Value, yes: Value, no: pa.Array, rows: int) -> pa.Array:
    condition = as_array(condition, rows)
    return pc.if_else(pc.fill_null(condition, False) if condition.null_count else condition, as_array(yes, rows), no)


def _coalesce(e: Function, batch: pa.RecordBatch) -> Value:
    out = as_array(_run(e.args[0], batch), batch.num_rows)
    for arg in e.args[1:]:
        if not out.null_count:
            break
        missing = pc.is_null(out)
        out = _choose(missing, _where(arg, batch, missing), out, batch.num_rows)
    return out


def _cast(e: Cast, batch: pa.RecordBatch) -> Value:
    value = _run(e.arg, batch)
    if isinstance(value, pa.Scalar):
        return cast(as_array(value, 1), _type(e.arg), e.to, e.safe, zone_of(e))[0]
    return cast(value, _type(e.arg), e.to, e.safe, zone_of(e))


def _arithmetic(e: Arithmetic, batch: pa.RecordBatch) -> Value:
    if e.op in ("/", "%", "div"):
        # Spark evaluates the divisor first.
        right, left = _pair(e.right, e.left, batch)
    else:
        left, right = _pair(e.left, e.right, batch)
    return _spread(lambda a: arithmetic.apply(e.op, a[0], a[1], _type(e)), [left, right], e)


def _function(e: Function, batch: pa.RecordBatch) -> Value:
    if e.name == "coalesce":
        return _coalesce(e, batch)
    values = [_run(a, batch) for a in e.args]
    if not values:  # array(), the only function that takes none
        return pa.scalar([], to_arrow_type(_type(e)))
    if e.name in functions.ZONED:
        zoned, zone = functions.ZONED[e.name], zone_of(e)
        return _spread(lambda a: zoned(a, _type(e), zone), values, e)
    kernel = functions.KERNELS[e.name]
    return _spread(lambda a: kernel(a, _type(e)), values, e)


def _like(e: Like, batch: pa.RecordBatch) -> Value:
    values = [_run(e.value, batch), _run(e.pattern, batch)]
    return _spread(lambda a: functions.like(a[0], a[1], e.escape, e.ignore_case), values, e)


def _spread(kernel: Callable[[list[Value]], Value], values: list[Value], e: Expr) -> Value:
    """`kernel` of the arguments, at least one of them an array; constants are computed once."""
    constant = all(isinstance(v, pa.Scalar) for v in values)
    if constant:
        values[0] = as_array(values[0], 1)
    try:
        out = kernel(values)
    except EvaluationError as error:
        raise error if " in " in error.message else EvaluationError(f"{error.message} in {e}") from error
    return out[0] if constant else out


_HANDLERS: dict[type[Expr], Callable[..., Value]] = {
    Column: _column,
    Literal: lambda e, batch: literals.to_scalar(e),
    Comparison: _comparison,
    And: _logical,
    Or: _logical,
    Not: _not,
    In: _in,
    IsNull: _is_null,
    Like: _like,
    Arithmetic: _arithmetic,
    Cast: _cast,
    Case: _case,
    Function: _function,
}
