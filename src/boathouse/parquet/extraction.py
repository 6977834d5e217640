"""Paths that expressions read in variant columns, and the statistics of their values in a footer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.arrow.cast import cast
from boathouse.arrow.schema import from_arrow_type, to_arrow_type
from boathouse.errors import EvaluationError, UnsupportedTypeError
from boathouse.expr.tree import Column, Expr, Function, IsNull, Literal, rebuild
from boathouse.parquet.bounds import chunk_bounds
from boathouse.parquet.fields import FileField
from boathouse.parquet.resolve import Resolver, SourceColumn
from boathouse.parquet.stats import chunk_nulls, summaries
from boathouse.parquet.variants import TYPED, VALUE, VariantPath, member
from boathouse.types import DataType, FloatType, IntegerType, UUIDType, VariantType
from boathouse.variant.path import parse_path

_GETS = ("variant_get", "try_variant_get")


@dataclass(frozen=True, slots=True)
class Extraction:
    """`variant_get` of a top-level column at a constant path."""

    column: str
    path: VariantPath
    call: Function


def extraction(e: Expr) -> Extraction | None:
    """The extraction of a bound expression, if it is a `variant_get` of a column; ExpressionError for an invalid
    path."""
    match e:
        case Function(name, (Column((column,)), Literal(str(text)), *_)) if name in _GETS:
            return Extraction(column, tuple(parse_path(text)), e)
    return None


def variant_paths(exprs: Iterable[Expr]) -> dict[str, tuple[VariantPath, ...] | None]:
    """For each variant column that bound expressions read, the paths in it; None where one reads the whole value."""
    found: dict[str, list[VariantPath] | None] = {}
    todo = list(exprs)
    while todo:
        e = todo.pop()
        got = extraction(e)
        if got is not None:
            paths = found.setdefault(got.column, [])
            if paths is not None:
                paths.append(got.path)
        elif isinstance(e, IsNull) and isinstance(e.arg, Column) and isinstance(e.arg.type, VariantType):
            found.setdefault(e.arg.path[0], [])
        elif isinstance(e, Column) and isinstance(e.type, VariantType):
            found[e.path[0]] = None
        else:
            todo.extend(e.children())
    return {name: None if paths is None else tuple(dict.fromkeys(paths)) for name, paths in found.items()}


def as_columns(where: Expr) -> tuple[Expr, dict[str, Extraction]]:
    """`where` with each extraction replaced by a column named after its SQL, for pruning; and these extractions."""
    named: dict[str, Extraction] = {}

    def step(e: Expr) -> Expr:
        got = extraction(e)
        if got is None:
            return rebuild(e, step)
        name = str(e)
        named[name] = got
        return Column((name,), type=e.type)

    return step(where), named


def extraction_stats(
    metadata: pq.FileMetaData, resolver: Resolver, columns: Iterable[SourceColumn], wanted: Extraction
) -> pa.StructArray:
    """The footer's statistics of the extracted values, one row per row group, as `row_group_stats` gives for columns.

    Known only where the path leads to a shredded value whose cast to the requested type preserves order, and where the
    `value` beside it is always null (VariantShredding.md, Data Skipping): then all values are typed.
    """
    type = wanted.call.type
    assert type is not None
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = [g.num_rows for g in groups]
    nothing: list[None] = [None] * len(groups)
    held = to_arrow_type(type)
    source = next((c for c in columns if c.name == wanted.column), None)
    parts = None if source is None else _shredded(resolver, source, wanted.path)
    if parts is None or not _keeps_order(parts[1], type):
        unknown = pa.nulls(len(groups), held)
        return summaries(unknown, unknown, nothing, nothing, nothing, nothing, nothing)
    value, typed = parts
    lowers, uppers, nulls = [], [], []
    for g in groups:
        usable = value is None or chunk_nulls([g.column(value.first)]) == g.num_rows
        lower, upper, missing = _summary(g.column(typed.first), typed, type) if usable else (None, None, None)
        lowers.append(lower)
        uppers.append(upper)
        nulls.append(missing)
    exact = [None if lower is None else False for lower in lowers]
    return summaries(pa.array(lowers, held), pa.array(uppers, held), exact, exact, nulls, nothing, rows)


def _shredded(resolver: Resolver, column: SourceColumn, path: VariantPath) -> tuple[FileField | None, FileField] | None:
    """The `value` (None: no such column) and the `typed_value` at a path through objects; None if there is none."""
    group = resolver.found(column)
    for step in path:
        typed = None if group is None else _part(group, TYPED)
        if typed is None or not isinstance(step, str):
            return None
        group = member(typed, step)
    if group is None:
        return None
    typed = _part(group, TYPED)
    return None if typed is None or typed.children else (_part(group, VALUE), typed)


def _part(group: FileField, name: str) -> FileField | None:
    return next((c for c in group.children if c.name == name), None)


def _keeps_order(typed: FileField, to: DataType) -> bool:
    """Whether every typed value can be cast to `to`, or fails, and x <= y still holds afterwards."""
    try:
        source = from_arrow_type(typed.type)
    except UnsupportedTypeError:
        return False
    match source, to:
        case (IntegerType(), IntegerType() | FloatType(64)) | (FloatType(), FloatType(64)):
            return True
        case (UUIDType(), _) | (VariantType(), _):
            return False
    return source == to


def _summary(
    chunk: pq.ColumnChunkMetaData, typed: FileField, to: DataType
) -> tuple[pa.Scalar | None, pa.Scalar | None, int | None]:
    """Lower bound, upper bound and nulls of a chunk of typed values, all of them as `to`."""
    nulls = chunk_nulls([chunk])
    if nulls is not None and nulls == chunk.num_values:
        return None, None, nulls
    pair = chunk_bounds(chunk.statistics, typed.type)
    if pair is None:
        # Without bounds it is unknown whether all the numbers fit, and those that do not may become null.
        return None, None, None
    source = from_arrow_type(typed.type)
    try:
        bounds = pa.array(pair, typed.type)
        bounds = bounds if source == to else cast(bounds, source, to)
    except (EvaluationError, pa.ArrowInvalid):
        return None, None, None
    return bounds[0], bounds[1], nulls
