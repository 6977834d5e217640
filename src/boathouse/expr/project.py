"""Projects a condition on columns to one on partition values (Iceberg spec, "Scan Planning").

Inclusive: true for every partition that may contain a row that satisfies the condition. Strict: true only for
partitions in which every row satisfies it. An unknown or void transform imposes no restriction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Literal as OneOf

from boathouse import types as T
from boathouse.errors import ExpressionError
from boathouse.expr.text import WIDE
from boathouse.expr.transforms import apply, truncate
from boathouse.expr.tree import (
    FALSE,
    TRUE,
    And,
    Column,
    Comparison,
    ComparisonOp,
    Expr,
    Function,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Path,
    all_of,
    any_of,
    columns,
    rebuild,
)

_Op = OneOf["=", "!=", "<", "<=", ">", ">=", "in", "not in", "null", "not null", "prefix", "not prefix"]
_OPPOSITE: dict[str, _Op] = {
    "=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in", "not in": "in",
    "null": "not null", "not null": "null", "prefix": "not prefix", "not prefix": "prefix",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Test:
    """One comparison of a column with constants, none of them null."""

    op: _Op
    path: Path
    type: T.DataType
    values: tuple[object, ...] = ()


def project(expr: Expr, spec: T.PartitionSpec, schema: T.Schema, strict: bool = False) -> Expr:
    """`expr` (bound) over partition values: `Column((field name,))` of the field's type.

    Where nothing is known the result is TRUE (inclusive) or FALSE (strict).
    """
    if expr.type is None:
        raise ExpressionError(f"not bound to a schema: {expr}", advice="call expr.resolve.bind first")
    return _Projection(spec, strict).run(expr, False)


class _Projection:
    def __init__(self, spec: T.PartitionSpec, strict: bool) -> None:
        self.strict = strict
        self.nothing = FALSE if strict else TRUE
        self.fields: dict[Path, list[T.PartitionField]] = {}
        for f in spec:
            if f.transform.name not in ("void", "unknown"):
                self.fields.setdefault(f.source, []).append(f)

    def run(self, e: Expr, negated: bool) -> Expr:
        """The projection of `e`, or of NOT `e`: true where the condition is true; null counts as false."""
        match e:
            case Literal(value):
                return FALSE if value is None or bool(value) == negated else TRUE
            case Not(arg):
                return self.run(arg, not negated)
            case And(args) | Or(args):
                parts = [self.run(a, negated) for a in args]
                return all_of(parts) if isinstance(e, And) != negated else any_of(parts)
        tests = _tests(e, negated)
        if tests is None:
            return self.identities(e, negated)
        return any_of([self.test(t) for t in tests])

    def test(self, t: _Test) -> Expr:
        """All partition fields of the column restrict it (inclusive), or any of them suffices (strict)."""
        found = [self.field(t, f) for f in self.fields.get(t.path, [])]
        parts = [p for p in found if p is not None]
        if not parts:
            return self.nothing
        return any_of(parts) if self.strict else all_of(parts)

    def field(self, t: _Test, f: T.PartitionField) -> Expr | None:
        column = Column((f.name,), type=f.type)
        if t.op in ("null", "not null"):
            return _build(t.op, column)
        match f.transform.name:
            case "identity":
                return _build(t.op, column, t.values)
            case "bucket":
                wanted = ("!=", "not in") if self.strict else ("=", "in")
                return _build(t.op, column, _images(t, f)) if t.op in wanted else None
            case "truncate":
                step = _STEPS.get(type(t.type))
                return self.number(t, f, column, step) if step else self.text(t, f, column)
        return self.time(t, f, column)

    def number(self, t: _Test, f: T.PartitionField, column: Column, step: Callable[..., object]) -> Expr | None:
        """Monotonic transforms of discrete values."""
        move = partial(step, t.type)
        image = partial(apply, f.transform, t.type)
        if t.op in ("=", "in"):
            return None if self.strict else _build(t.op, column, _images(t, f))
        if t.op in ("!=", "not in"):
            return _build(t.op, column, _images(t, f)) if self.strict else None
        if t.op.endswith("prefix"):
            return None
        value = t.values[0]
        if self.strict:
            at = {"<": value, "<=": move(value, 1), ">": value, ">=": move(value, -1)}[t.op]
            return _build("<" if t.op[0] == "<" else ">", column, (image(at),))
        at = {"<": move(value, -1), "<=": value, ">": move(value, 1), ">=": value}[t.op]
        return _build("<=" if t.op[0] == "<" else ">=", column, (image(at),))

    def text(self, t: _Test, f: T.PartitionField, column: Column) -> Expr | None:
        """Truncated strings and binaries: shorter values are complete in the partition."""
        width = f.transform.parameter or 0
        cut = tuple(dict.fromkeys(truncate(v, width) for v in t.values))
        if t.op.endswith("prefix"):
            return self.prefix(t, column, width)
        if t.op in ("=", "in"):
            return None if self.strict else _build(t.op, column, cut)
        if t.op in ("!=", "not in"):
            return _build(t.op, column, cut) if self.strict else None
        if self.strict:
            return _build("<" if t.op[0] == "<" else ">", column, cut)
        return _build("<=" if t.op[0] == "<" else ">=", column, cut)

    def prefix(self, t: _Test, column: Column, width: int) -> Expr | None:
        value = t.values[0]
        assert isinstance(value, str)
        if len(value) <= width:
            return _build(t.op, column, (value,))
        if self.strict:
            return _build("not prefix", column, (value[:width],)) if t.op == "not prefix" else None
        return _build("=", column, (value[:width],)) if t.op == "prefix" else None

    def time(self, t: _Test, f: T.PartitionField, column: Column) -> Expr | None:
        """Years to hours. Early writers truncated negative values toward zero, so their values may be one too great."""
        out = self.number(t, f, column, _int_step)
        if out is None or (f.transform.name == "day" and isinstance(t.type, T.DateType)):
            return out
        match out:
            case Comparison("=", _, Literal(int(v))) if v < 0:
                return _build("in", column, (v, v + 1))
            case Comparison("!=", _, Literal(int(v))) if v < 0:
                return _build("not in", column, (v, v + 1))
            case Comparison("<=" | ">" as op, _, Literal(int(v))) if v < 0:
                return _build("<=" if op == "<=" else ">", column, (v + 1,))
            case In(_, options) | Not(In(_, options)):
                values = [o.value for o in options if isinstance(o, Literal) and isinstance(o.value, int)]
                more = dict.fromkeys([*values, *(v + 1 for v in values if v < 0)])
                return _build(t.op, column, tuple(more))
        return out

    def identities(self, e: Expr, negated: bool) -> Expr:
        """Any other condition, if it reads only identity-partitioned columns."""
        used = columns(e)
        names = {p: f.name for p in used for f in self.fields.get(p, []) if f.transform.name == "identity"}
        if not used or set(names) != set(used):
            return self.nothing
        out = _renamed(e, names)
        return Not(out, type=T.BOOLEAN) if negated else out


def _renamed(e: Expr, names: dict[Path, str]) -> Expr:
    if isinstance(e, Column):
        return Column((names[e.path],), type=e.type)
    return rebuild(e, lambda c: _renamed(c, names))


def _tests(e: Expr, negated: bool) -> list[_Test] | None:
    """The tests whose OR is `e` (or NOT `e`); None if it is not of that form."""
    found = _positive(e)
    if found is None or not negated:
        return None if found is None else [found]
    if isinstance(e, Column):
        return [_Test("=", found.path, found.type, (False,))]
    if isinstance(e, In) and len(found.values) < len(e.options):
        # NOT IN a list that holds NULL is never true.
        return []
    opposite = _Test(_OPPOSITE[found.op], found.path, found.type, found.values)
    if isinstance(e, Comparison) and e.op == "<=>":
        return [opposite, _Test("null", found.path, found.type)]
    return [opposite]


def _positive(e: Expr) -> _Test | None:
    match e:
        case Column(path) if isinstance(e.type, T.BooleanType):
            return _Test("=", path, e.type, (True,))
        case Comparison(op, Column(path) as c, Literal(value)) if value is not None and c.type is not None:
            return _Test("=" if op == "<=>" else op, path, c.type, (value,))
        case In(Column(path) as c, options) if c.type is not None and all(isinstance(o, Literal) for o in options):
            values = (o.value for o in options if isinstance(o, Literal))
            return _Test("in", path, c.type, tuple(v for v in values if v is not None))
        case IsNull(Column(path) as c) if c.type is not None:
            return _Test("null", path, c.type)
        case Function("startswith", (Column(path) as c, Literal(str(prefix)))) if c.type is not None:
            return _Test("prefix", path, c.type, (prefix,))
    return None


def _images(t: _Test, f: T.PartitionField) -> tuple[object, ...]:
    return tuple(dict.fromkeys(apply(f.transform, t.type, v) for v in t.values))


def _build(op: str, column: Column, values: Iterable[object] = ()) -> Expr | None:
    """The test `op` of a partition value; None if a value is beyond the partition field's type."""
    given = tuple(values)
    type = column.type
    if isinstance(type, T.IntegerType | T.DateType):
        bits = type.bits if isinstance(type, T.IntegerType) else 32
        if any(isinstance(v, int) and not -(2 ** (bits - 1)) <= v < 2 ** (bits - 1) for v in given):
            return None
    if isinstance(type, T.DecimalType) and any(isinstance(v, Decimal) and _digits(v) > type.precision for v in given):
        return None
    literals = tuple(Literal(v, type=type) for v in given)  # type: ignore[arg-type]
    match op:
        case "null" | "not null":
            out: Expr = IsNull(column, type=T.BOOLEAN)
        case "prefix" | "not prefix":
            out = Function("startswith", (column, literals[0]), type=T.BOOLEAN)
        case "in" | "not in":
            if not literals:
                return FALSE if op == "in" else TRUE
            out = In(column, literals, type=T.BOOLEAN)
        case _:
            return Comparison(_comparison(op), column, literals[0], type=T.BOOLEAN)
    return Not(out, type=T.BOOLEAN) if op.startswith("not") else out


def _comparison(op: str) -> ComparisonOp:
    match op:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return op
    raise ExpressionError(f"{op} is not a comparison")


def _digits(value: Decimal) -> int:
    return len(value.as_tuple().digits)


def _int_step(type: T.DataType, value: int, by: int) -> int:
    return value + by


def _decimal_step(type: T.DataType, value: Decimal, by: int) -> Decimal:
    assert isinstance(type, T.DecimalType)
    return WIDE.add(value, Decimal(by).scaleb(-type.scale))


_STEPS: dict[type[T.DataType], Callable[..., object]] = {T.IntegerType: _int_step, T.DecimalType: _decimal_step}
