"""Conditions in Substrait, the form in which Arrow passes on its expressions: the parts of them that we can evaluate.

The messages are those of substrait/proto/extended_expression.proto and algebra.proto.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from boathouse import types as T
from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import And, Arithmetic, Case, Column, Comparison, Expr, Function, In, IsNull, Not, Or, lit
from boathouse.expr.tree import Literal as Constant


@dataclass(frozen=True, kw_only=True)
class FunctionName(Message):
    anchor: int = scalar(2, "uint32")
    name: str = scalar(3, "string")


@dataclass(frozen=True, kw_only=True)
class Declaration(Message):
    function: FunctionName | None = nested(3, FunctionName)


@dataclass(frozen=True, kw_only=True)
class StructField(Message):
    field: int = scalar(1, "int32")
    child: Segment | None = nested(2, lambda: Segment)


@dataclass(frozen=True, kw_only=True)
class Segment(Message):
    struct_field: StructField | None = nested(2, StructField)


@dataclass(frozen=True, kw_only=True)
class FieldReference(Message):
    direct: Segment | None = nested(1, Segment)


@dataclass(frozen=True, kw_only=True)
class DecimalValue(Message):
    value: bytes = scalar(1, "bytes")
    precision: int = scalar(2, "int32")
    scale: int = scalar(3, "int32")


@dataclass(frozen=True, kw_only=True)
class Literal(Message):
    boolean: bool | None = scalar(1, "bool", oneof="literal")
    i8: int | None = scalar(2, "int32", oneof="literal")
    i16: int | None = scalar(3, "int32", oneof="literal")
    i32: int | None = scalar(5, "int32", oneof="literal")
    i64: int | None = scalar(7, "int64", oneof="literal")
    fp32: float | None = scalar(10, "float", oneof="literal")
    fp64: float | None = scalar(11, "double", oneof="literal")
    string: str | None = scalar(12, "string", oneof="literal")
    binary: bytes | None = scalar(13, "bytes", oneof="literal")
    timestamp: int | None = scalar(14, "int64", oneof="literal")
    date: int | None = scalar(16, "int32", oneof="literal")
    decimal: DecimalValue | None = nested(24, DecimalValue, oneof="literal")
    timestamp_tz: int | None = scalar(27, "int64", oneof="literal")
    null: Message | None = nested(29, Message, oneof="literal")


@dataclass(frozen=True, kw_only=True)
class Argument(Message):
    value: Expression | None = nested(3, lambda: Expression)


@dataclass(frozen=True, kw_only=True)
class ScalarFunction(Message):
    reference: int = scalar(1, "uint32")
    arguments: tuple[Argument, ...] = repeated(4, Argument)


@dataclass(frozen=True, kw_only=True)
class IfClause(Message):
    condition: Expression | None = nested(1, lambda: Expression)
    then: Expression | None = nested(2, lambda: Expression)


@dataclass(frozen=True, kw_only=True)
class IfThen(Message):
    clauses: tuple[IfClause, ...] = repeated(1, IfClause)
    otherwise: Expression | None = nested(2, lambda: Expression)


@dataclass(frozen=True, kw_only=True)
class SingularOrList(Message):
    value: Expression | None = nested(1, lambda: Expression)
    options: tuple[Expression, ...] = repeated(2, lambda: Expression)


@dataclass(frozen=True, kw_only=True)
class Expression(Message):
    literal: Literal | None = nested(1, Literal)
    selection: FieldReference | None = nested(2, FieldReference)
    function: ScalarFunction | None = nested(3, ScalarFunction)
    if_then: IfThen | None = nested(6, IfThen)
    one_of: SingularOrList | None = nested(8, SingularOrList)


@dataclass(frozen=True, kw_only=True)
class Reference(Message):
    expression: Expression | None = nested(1, Expression)


@dataclass(frozen=True, kw_only=True)
class ExtendedExpression(Message):
    extensions: tuple[Declaration, ...] = repeated(2, Declaration)
    expressions: tuple[Reference, ...] = repeated(3, Reference)


def from_substrait(data: bytes, fields: Sequence[T.Field]) -> Expr:
    """The one expression of a message over rows of these fields.

    Raises UnsupportedFeatureError for what has no counterpart, CorruptTableError for bytes that are no such message.
    """
    message = ExtendedExpression.decode(data)
    names = {d.function.anchor: d.function.name for d in message.extensions if d.function is not None}
    if len(message.expressions) != 1:
        raise _unsupported(f"{len(message.expressions)} expressions")
    return _Reader(fields, names).read(message.expressions[0].expression)


Build = Callable[..., Expr]
_FUNCTIONS: dict[str, tuple[int | None, Build]] = {
    "equal": (2, lambda a, b: Comparison("=", a, b)),
    "not_equal": (2, lambda a, b: Comparison("!=", a, b)),
    "lt": (2, lambda a, b: Comparison("<", a, b)),
    "lte": (2, lambda a, b: Comparison("<=", a, b)),
    "gt": (2, lambda a, b: Comparison(">", a, b)),
    "gte": (2, lambda a, b: Comparison(">=", a, b)),
    "and": (None, lambda *args: And(args)),
    "or": (None, lambda *args: Or(args)),
    "not": (1, Not),
    "is_null": (1, IsNull),
    "is_not_null": (1, lambda a: Not(IsNull(a))),
    "is_nan": (1, lambda a: Function("isnan", (a,))),
    "add": (2, lambda a, b: Arithmetic("+", a, b)),
    "subtract": (2, lambda a, b: Arithmetic("-", a, b)),
    "multiply": (2, lambda a, b: Arithmetic("*", a, b)),
    "starts_with": (2, lambda a, b: Function("startswith", (a, b))),
    "ends_with": (2, lambda a, b: Function("endswith", (a, b))),
    "contains": (2, lambda a, b: Function("contains", (a, b))),
}
"""Functions by their names in Substrait's extensions: how many arguments (None: two or more), and what they become."""


@dataclass(frozen=True, slots=True)
class _Reader:
    fields: Sequence[T.Field]
    names: dict[int, str]

    def read(self, message: Expression | None) -> Expr:
        match message:
            case Expression(literal=Literal() as found):
                return _literal(found)
            case Expression(selection=FieldReference(direct=Segment() as segment)):
                return Column(_path(segment, self.fields))
            case Expression(function=ScalarFunction() as call):
                return self._call(call)
            case Expression(if_then=IfThen(clauses=clauses, otherwise=otherwise)):
                last = None if otherwise is None else self.read(otherwise)
                return _case([(self.read(c.condition), self.read(c.then)) for c in clauses], last)
            case Expression(one_of=SingularOrList() as found):
                return self._one_of(found)
        raise _unsupported("this part of it")

    def _call(self, call: ScalarFunction) -> Expr:
        name = self.names.get(call.reference, "").partition(":")[0]
        count, build = _FUNCTIONS.get(name, (0, _never))
        args = [self.read(a.value) for a in call.arguments]
        fits = len(args) > 1 if count is None else len(args) == count
        if not fits or b"INSENSITIVE" in call.unknown:  # an option of functions on text
            raise _unsupported(f"the function {name or call.reference}")
        return build(*args)

    def _one_of(self, found: SingularOrList) -> Expr:
        """Arrow's is_in is false for null, where SQL's IN is null."""
        value, options = self.read(found.value), tuple(map(self.read, found.options))
        if any(isinstance(o, Constant) and o.value is None for o in options):
            raise _unsupported("null among the values of is_in")
        return And((Not(IsNull(value)), In(value, options)))


def _case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
    """`if_else(is_valid(x), is_in(x, values), null)`, which DuckDB makes of IN, is IN again: it can be pruned by."""
    null = otherwise is None or (isinstance(otherwise, Constant) and otherwise.value is None)
    match branches:
        case [(Not(IsNull(value)) as valid, And((tested, In(found) as within)))] if null and (found, tested) == (
            value,
            valid,
        ):
            return within
    return Case(tuple(branches), otherwise)


def _never(*_: Expr) -> Expr:
    raise _unsupported("a function")


def _path(segment: Segment | None, fields: Sequence[T.Field]) -> tuple[str, ...]:
    path: list[str] = []
    while segment is not None:
        at = segment.struct_field
        if at is None or not 0 <= at.field < len(fields):
            raise _unsupported("an element of a list or a map")
        field = fields[at.field]
        path.append(field.name)
        fields = field.type.fields if isinstance(field.type, T.StructType) else ()
        segment = at.child
    return tuple(path)


def _literal(found: Literal) -> Expr:
    epoch = dt.datetime(1970, 1, 1)
    match found:
        case Literal(boolean=bool() as value) | Literal(string=str() as value) | Literal(binary=bytes() as value):
            return lit(value)
        case Literal(i64=int() as value):
            return Constant(value, type=T.INT64)
        case Literal(i8=int() as value) | Literal(i16=int() as value) | Literal(i32=int() as value):
            return lit(value)
        case Literal(fp64=float() as value):
            return Constant(value, type=T.DOUBLE)
        case Literal(fp32=float() as value):
            return Constant(value, type=T.FLOAT)
        case Literal(date=int() as value):
            return lit((epoch + dt.timedelta(value)).date())
        case Literal(timestamp=int() as value):
            return lit(epoch + dt.timedelta(microseconds=value))
        case Literal(timestamp_tz=int() as value):
            return lit((epoch + dt.timedelta(microseconds=value)).replace(tzinfo=dt.UTC))
        case Literal(decimal=DecimalValue(value=value, scale=scale)):
            return lit(Decimal(int.from_bytes(value, "little", signed=True)).scaleb(-scale))
        case Literal(null=Message()):
            return lit(None)
    raise _unsupported("a constant of this type")


def _unsupported(what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"this Arrow expression cannot be a condition here: {what} has no counterpart",
        advice="say it as Spark SQL text, for example where=\"city LIKE 'B%'\"",
    )
