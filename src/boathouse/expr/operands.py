"""Typed operands: Spark's implicit ANSI casts between them, and the types of comparisons and arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from boathouse import types as T
from boathouse.errors import ExpressionError
from boathouse.expr.coercion import common, common_of, computed, decimal_arithmetic, decimal_for, is_numeric
from boathouse.expr.simplify import cast_literal
from boathouse.expr.tree import FALSE, TRUE, Arithmetic, Cast, Expr, Function, Literal

EXAMPLE = "variant_get(v, '$.a.b', 'int')"
EXTRACT = f"extract a value first: {EXAMPLE}"


def beyond_bigint(op: str, left: Expr, right: Expr) -> Expr | None:
    """An integer against a decimal literal beyond BIGINT: Spark's analyzer decides <, <=, >, >= for nulls too.

    Unsigned integers, which Spark does not have, are compared by value.
    """
    if isinstance(left, Literal):
        left, right = right, left
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    decimal = isinstance(right, Literal) and isinstance(right.type, T.DecimalType) and right.value is not None
    signed = isinstance(left.type, T.IntegerType) and left.type.signed
    if not decimal or not signed or op[0] not in "<>" or op == "<=>":
        return None
    assert isinstance(right, Literal) and isinstance(right.value, Decimal)
    if -(2**63) <= right.value < 2**63:
        return None
    return TRUE if (op[0] == "<") == (right.value > 0) else FALSE


def cast_to(e: Expr, to: T.DataType) -> Expr:
    """`e` as `to`: itself, a converted literal, or an implicit CAST."""
    if e.type == to:
        return e
    if isinstance(e, Literal):
        folded = cast_literal(e, to)
        if folded is not None:
            return folded
    return Cast(e, to, type=to)


def boolean(e: Expr, parent: Expr) -> Expr:
    if isinstance(e.type, T.NullType | T.BooleanType):
        return cast_to(e, T.BOOLEAN)
    raise ExpressionError(f"{e} is {e.type}, but a boolean is needed in {parent}")


def comparable(e: Expr, parent: Expr) -> None:
    if isinstance(e.type, T.VariantType):
        raise ExpressionError(f"variants cannot be compared or ordered: {parent}", advice=EXTRACT)
    if isinstance(e.type, T.StructType | T.ListType | T.FixedSizeListType | T.MapType):
        raise ExpressionError(
            f"values of {e.type} cannot be compared here: {parent}", advice="compare a field, or extract a value first"
        )


def same(args: tuple[Expr, ...], parent: Expr) -> tuple[Expr, ...]:
    """All cast to their common type. An integer literal beside a decimal becomes the decimal that its digits need."""
    if any(isinstance(a.type, T.DecimalType) for a in args):
        args = tuple(narrow(a) for a in args)
    to = common_of(a.type for a in args if a.type is not None)
    if to is None:
        raise strangers(args, parent, "CAST one side")
    to = T.FLOAT if to == T.FloatType(16) else to
    return tuple(cast_to(a, to) for a in args)


def narrow(e: Expr) -> Expr:
    if isinstance(e, Literal) and isinstance(e.type, T.IntegerType) and e.value is not None:
        literal = Literal.of(e.value)
        assert isinstance(literal.value, int)
        digits = max(1, len(str(abs(literal.value))))
        return cast_to(literal, T.DecimalType(digits, 0))
    return e


def arithmetic(e: Expr, op: str, left: Expr, right: Expr) -> Expr:
    day = days(op, left, right)
    if day is not None:
        return day
    left, right = (number(a, b, e) for a, b in ((left, right), (right, left)))
    if op != "div":
        left, right = (cast_to(x, computed(x.type) or T.NULL) for x in (left, right))
    if op == "div":
        both = [cast_to(x, T.INT64) if isinstance(x.type, T.IntegerType | T.NullType) else x for x in (left, right)]
        if any(x.type != T.INT64 for x in both):
            raise ExpressionError(f"`div` is for integers: {e}")
        return Arithmetic("div", both[0], both[1], type=T.INT64)
    decimal = any(isinstance(x.type, T.DecimalType) for x in (left, right))
    if decimal and not any(isinstance(x.type, T.FloatType) for x in (left, right)):
        a, b = (as_decimal(x) for x in (left, right))
        assert isinstance(a.type, T.DecimalType) and isinstance(b.type, T.DecimalType)
        return Arithmetic(op, a, b, type=decimal_arithmetic(op, a.type, b.type))  # type: ignore[arg-type]
    assert left.type is not None and right.type is not None
    to = T.DOUBLE if op == "/" else common(left.type, right.type)
    to = T.DOUBLE if isinstance(to, T.NullType) else to
    if to is None or not is_numeric(to):
        raise ExpressionError(f"`{op}` needs numbers, not {left.type} and {right.type}: {e}")
    return Arithmetic(op, cast_to(left, to), cast_to(right, to), type=to)  # type: ignore[arg-type]


def days(op: str, left: Expr, right: Expr) -> Expr | None:
    """DATE plus or minus a whole number is a number of days."""
    if op == "+" and isinstance(right.type, T.DateType):
        left, right = right, left
    whole = isinstance(right.type, T.IntegerType) and right.type.bits <= 32
    if op not in ("+", "-") or not isinstance(left.type, T.DateType) or not whole:
        return None
    return Function("date_add" if op == "+" else "date_sub", (left, cast_to(right, T.INT32)), type=T.DATE)


def number(e: Expr, other: Expr, parent: Expr) -> Expr:
    """A string beside a number is cast to BIGINT or DOUBLE, as in Spark's ANSI coercion."""
    if isinstance(e.type, T.StringType) and is_numeric(other.type):
        return cast_to(e, T.INT64 if isinstance(other.type, T.IntegerType) else T.DOUBLE)
    if is_numeric(e.type) or isinstance(e.type, T.NullType):
        return e
    advice = "use date_add, date_sub or datediff" if isinstance(e.type, T.DateType | T.TimestampType) else "CAST it"
    advice = EXTRACT if isinstance(e.type, T.VariantType) else advice
    raise ExpressionError(f"{e} is {e.type}, but a number is needed in {parent}", advice=advice)


def as_decimal(e: Expr) -> Expr:
    if isinstance(e.type, T.IntegerType):
        return narrow(e) if isinstance(e, Literal) else cast_to(e, decimal_for(e.type))
    return cast_to(e, T.DecimalType(38, 0)) if isinstance(e.type, T.NullType) else e


def alike(values: Sequence[Expr], parent: Expr) -> tuple[Expr, ...]:
    """The values of CASE, COALESCE, GREATEST: integer literals keep their type beside decimals."""
    to = common_of(a.type for a in values if a.type is not None)
    if to is None:
        raise strangers(values, parent, "CAST them to one type")
    return tuple(cast_to(a, to) for a in values)


def strangers(args: Sequence[Expr], parent: Expr, advice: str) -> ExpressionError:
    kinds = ", ".join(dict.fromkeys(str(a.type) for a in args))
    advice = EXTRACT if any(isinstance(a.type, T.VariantType) for a in args) else advice
    return ExpressionError(f"incompatible types ({kinds}): {parent}", advice=advice)
