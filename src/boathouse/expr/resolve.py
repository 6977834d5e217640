"""Binds expressions: resolves names, inserts Spark's implicit ANSI casts, gives every node its type."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from boathouse.bits.names import Names
from boathouse.errors import ColumnNotFoundError, ExpressionError
from boathouse.expr import functions
from boathouse.expr.coercion import (
    can_cast,
    common,
    common_of,
    computed,
    decimal_arithmetic,
    decimal_for,
    is_numeric,
)
from boathouse.expr.simplify import cast_literal, simplify
from boathouse.expr.tree import (
    FALSE,
    TRUE,
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
)
from boathouse.expr.zoned import UTC, depends_on_zone, in_zone
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    VARIANT,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    Field,
    FixedSizeListType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    NullType,
    Schema,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
    VariantType,
)

_EXAMPLE = "variant_get(v, '$.a.b', 'int')"
_EXTRACT = f"extract a value first: {_EXAMPLE}"


def bind(expr: Expr, schema: Schema, zone: str | None = UTC) -> Expr:
    """`expr` typed and resolved against `schema`, in a time zone, then simplified; binding twice changes nothing.

    Parts that were bound before keep their zone. `zone` None is an unknown zone.
    Raises ColumnNotFoundError (with the nearest names) and ExpressionError (incompatible types; a zone that is needed
    but unknown), InvalidArgumentError (`zone` is not a time zone).
    """
    typed = _bind(expr, schema)
    if zone is not None:
        return simplify(in_zone(typed, zone))
    out = simplify(typed)
    if depends_on_zone(out):
        raise ExpressionError(
            f"the result of {expr} depends on the time zone, which is unknown here",
            advice="name the zone with timezone=, as spark.sql.session.timeZone does in Spark",
        )
    return out


def bind_predicate(expr: Expr, schema: Schema, zone: str | None = UTC) -> Expr:
    """As `bind`; the result must be BOOLEAN (or NULL, which no row satisfies)."""
    out = bind(expr, schema, zone)
    if isinstance(out.type, NullType):
        return Literal(None, type=BOOLEAN)
    if not isinstance(out.type, BooleanType):
        raise ExpressionError(
            f"a condition must be boolean, but this is {out.type}: {expr}", advice="compare it with a value"
        )
    return out


def resolve_path(path: Sequence[str], schema: Schema) -> tuple[tuple[str, ...], DataType]:
    """The path as spelled in the schema, and its type: an exact match, else ignoring case if only one matches."""
    fields: Sequence[Field] = schema.fields
    found: list[str] = []
    type: DataType = StructType(tuple(schema.fields))
    for i, name in enumerate(path):
        if i and not isinstance(type, StructType):
            raise ColumnNotFoundError(f"`{'.'.join(found)}` is {type}, so it has no field `{name}`")
        places = type.places if i and isinstance(type, StructType) else schema.places
        field = _pick(name, fields, places, ".".join(found))
        found.append(field.name)
        type = field.type
        fields = type.fields if isinstance(type, StructType) else ()
    return tuple(found), type


def _pick(name: str, fields: Sequence[Field], places: Names, parent: str) -> Field:
    hits = [fields[i] for i in places.at(name)]
    if len(hits) == 1:
        return hits[0]
    what = f"field `{name}` of `{parent}`" if parent else f"column `{name}`"
    if hits:
        raise ColumnNotFoundError(
            f"{what} is ambiguous: {', '.join(f.name for f in hits)}", advice="spell it exactly as the table does"
        )
    names = [f.name for f in fields]
    near = difflib.get_close_matches(name, names, 3, 0.6) or names[:20]
    raise ColumnNotFoundError(f"no {what}", advice=f"did you mean {', '.join(near)}?" if near else None)


def _bind(e: Expr, schema: Schema) -> Expr:
    match e:
        case Column(path):
            found, type = resolve_path(path, schema)
            return Column(found, type=type)
        case Literal(value):
            return e if e.type is not None else Literal.of(value)
        case Comparison(op, left, right):
            sides = (_bind(left, schema), _bind(right, schema))
            constant = _beyond_bigint(op, *sides)
            if constant is not None:
                return constant
            a, b = _same(sides, e)
            _comparable(a, e)
            return Comparison(op, a, b, type=BOOLEAN)
        case And(args):
            return And(tuple(_boolean(_bind(a, schema), e) for a in args), type=BOOLEAN)
        case Or(args):
            return Or(tuple(_boolean(_bind(a, schema), e) for a in args), type=BOOLEAN)
        case Not(arg):
            return Not(_boolean(_bind(arg, schema), e), type=BOOLEAN)
        case In(value, options):
            all = _same(tuple(_bind(x, schema) for x in (value, *options)), e)
            _comparable(all[0], e)
            return In(all[0], tuple(all[1:]), type=BOOLEAN)
        case IsNull(arg):
            return IsNull(_bind(arg, schema), type=BOOLEAN)
        case Like(value, pattern):
            text = _coerce(_bind(value, schema), "string", e)
            return replace(e, value=text, pattern=_coerce(_bind(pattern, schema), "string", e), type=BOOLEAN)
        case Arithmetic(op, left, right):
            return _arithmetic(e, op, _bind(left, schema), _bind(right, schema))
        case Cast(arg, to, safe):
            inner = _bind(arg, schema)
            if isinstance(inner.type, VariantType) and not isinstance(to, VariantType):
                where = (inner, Literal("$", type=STRING), Literal(str(to), type=STRING))
                return Function("try_variant_get" if safe else "variant_get", where, type=to)
            if inner.type is None or not can_cast(inner.type, to):
                raise ExpressionError(f"{inner.type} cannot be cast to {to}: {e}")
            return replace(e, arg=inner, type=to)
        case Case():
            return _case(e, schema)
        case Function(name, args):
            made = _function(e, name, [_bind(a, schema) for a in args])
            return replace(made, zone=e.zone) if e.zone is not None and isinstance(made, Function) else made
    raise ExpressionError(f"unknown expression {e!r}")


def _beyond_bigint(op: str, left: Expr, right: Expr) -> Expr | None:
    """An integer against a decimal literal beyond BIGINT: Spark's analyzer decides <, <=, >, >= for nulls too.

    Unsigned integers, which Spark does not have, are compared by value.
    """
    if isinstance(left, Literal):
        left, right = right, left
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    decimal = isinstance(right, Literal) and isinstance(right.type, DecimalType) and right.value is not None
    signed = isinstance(left.type, IntegerType) and left.type.signed
    if not decimal or not signed or op[0] not in "<>" or op == "<=>":
        return None
    assert isinstance(right, Literal) and isinstance(right.value, Decimal)
    if -(2**63) <= right.value < 2**63:
        return None
    return TRUE if (op[0] == "<") == (right.value > 0) else FALSE


def cast_to(e: Expr, to: DataType) -> Expr:
    """`e` as `to`: itself, a converted literal, or an implicit CAST."""
    if e.type == to:
        return e
    if isinstance(e, Literal):
        folded = cast_literal(e, to)
        if folded is not None:
            return folded
    return Cast(e, to, type=to)


def _boolean(e: Expr, parent: Expr) -> Expr:
    if isinstance(e.type, NullType | BooleanType):
        return cast_to(e, BOOLEAN)
    raise ExpressionError(f"{e} is {e.type}, but a boolean is needed in {parent}")


def _comparable(e: Expr, parent: Expr) -> None:
    if isinstance(e.type, VariantType):
        raise ExpressionError(f"variants cannot be compared or ordered: {parent}", advice=_EXTRACT)
    if isinstance(e.type, StructType | ListType | FixedSizeListType | MapType):
        raise ExpressionError(
            f"values of {e.type} cannot be compared here: {parent}", advice="compare a field, or extract a value first"
        )


def _same(args: tuple[Expr, ...], parent: Expr) -> tuple[Expr, ...]:
    """All cast to their common type. An integer literal beside a decimal becomes the decimal that its digits need."""
    if any(isinstance(a.type, DecimalType) for a in args):
        args = tuple(_narrow(a) for a in args)
    to = common_of(a.type for a in args if a.type is not None)
    if to is None:
        raise _strangers(args, parent, "CAST one side")
    to = FLOAT if to == FloatType(16) else to
    return tuple(cast_to(a, to) for a in args)


def _narrow(e: Expr) -> Expr:
    if isinstance(e, Literal) and isinstance(e.type, IntegerType) and e.value is not None:
        literal = Literal.of(e.value)
        assert isinstance(literal.value, int)
        digits = max(1, len(str(abs(literal.value))))
        return cast_to(literal, DecimalType(digits, 0))
    return e


def _arithmetic(e: Expr, op: str, left: Expr, right: Expr) -> Expr:
    day = _days(op, left, right)
    if day is not None:
        return day
    left, right = (_number(a, b, e) for a, b in ((left, right), (right, left)))
    if op != "div":
        left, right = (cast_to(x, computed(x.type) or NULL) for x in (left, right))
    if op == "div":
        both = [cast_to(x, INT64) if isinstance(x.type, IntegerType | NullType) else x for x in (left, right)]
        if any(x.type != INT64 for x in both):
            raise ExpressionError(f"`div` is for integers: {e}")
        return Arithmetic("div", both[0], both[1], type=INT64)
    decimal = any(isinstance(x.type, DecimalType) for x in (left, right))
    if decimal and not any(isinstance(x.type, FloatType) for x in (left, right)):
        a, b = (_as_decimal(x) for x in (left, right))
        assert isinstance(a.type, DecimalType) and isinstance(b.type, DecimalType)
        return Arithmetic(op, a, b, type=decimal_arithmetic(op, a.type, b.type))  # type: ignore[arg-type]
    assert left.type is not None and right.type is not None
    to = DOUBLE if op == "/" else common(left.type, right.type)
    to = DOUBLE if isinstance(to, NullType) else to
    if to is None or not is_numeric(to):
        raise ExpressionError(f"`{op}` needs numbers, not {left.type} and {right.type}: {e}")
    return Arithmetic(op, cast_to(left, to), cast_to(right, to), type=to)  # type: ignore[arg-type]


def _days(op: str, left: Expr, right: Expr) -> Expr | None:
    """DATE plus or minus a whole number is a number of days."""
    if op == "+" and isinstance(right.type, DateType):
        left, right = right, left
    whole = isinstance(right.type, IntegerType) and right.type.bits <= 32
    if op not in ("+", "-") or not isinstance(left.type, DateType) or not whole:
        return None
    return Function("date_add" if op == "+" else "date_sub", (left, cast_to(right, INT32)), type=DATE)


def _number(e: Expr, other: Expr, parent: Expr) -> Expr:
    """A string beside a number is cast to BIGINT or DOUBLE, as in Spark's ANSI coercion."""
    if isinstance(e.type, StringType) and is_numeric(other.type):
        return cast_to(e, INT64 if isinstance(other.type, IntegerType) else DOUBLE)
    if is_numeric(e.type) or isinstance(e.type, NullType):
        return e
    advice = "use date_add, date_sub or datediff" if isinstance(e.type, DateType | TimestampType) else "CAST it"
    advice = _EXTRACT if isinstance(e.type, VariantType) else advice
    raise ExpressionError(f"{e} is {e.type}, but a number is needed in {parent}", advice=advice)


def _as_decimal(e: Expr) -> Expr:
    if isinstance(e.type, IntegerType):
        return _narrow(e) if isinstance(e, Literal) else cast_to(e, decimal_for(e.type))
    return cast_to(e, DecimalType(38, 0)) if isinstance(e.type, NullType) else e


def _case(e: Case, schema: Schema) -> Expr:
    conditions = [_boolean(_bind(c, schema), e) for c, _ in e.branches]
    values = [_bind(v, schema) for _, v in e.branches]
    if e.otherwise is not None:
        values.append(_bind(e.otherwise, schema))
    same = _alike(values, e)
    otherwise = same[-1] if e.otherwise is not None else None
    return Case(tuple(zip(conditions, same)), otherwise, type=same[0].type)


def _alike(values: Sequence[Expr], parent: Expr) -> tuple[Expr, ...]:
    """The values of CASE, COALESCE, GREATEST: integer literals keep their type beside decimals."""
    to = common_of(a.type for a in values if a.type is not None)
    if to is None:
        raise _strangers(values, parent, "CAST them to one type")
    return tuple(cast_to(a, to) for a in values)


def _strangers(args: Sequence[Expr], parent: Expr, advice: str) -> ExpressionError:
    kinds = ", ".join(dict.fromkeys(str(a.type) for a in args))
    advice = _EXTRACT if any(isinstance(a.type, VariantType) for a in args) else advice
    return ExpressionError(f"incompatible types ({kinds}): {parent}", advice=advice)


def _function(e: Expr, name: str, args: list[Expr]) -> Expr:
    spec = functions.lookup(name)
    if len(args) < spec.least or (spec.most is not None and len(args) > spec.most):
        takes = f"{spec.least}" if spec.least == spec.most else f"{spec.least} to {spec.most or 'any number of'}"
        raise ExpressionError(f"{spec.name} takes {takes} arguments, not {len(args)}: {e}")
    if spec.name == "concat" and args and all(isinstance(a.type, BinaryType) for a in args):
        return Function("concat", tuple(args), type=BINARY)
    if spec.name == "pmod":
        rest = _arithmetic(e, "%", args[0], args[1])
        return Function("pmod", rest.children(), type=rest.type)
    out = [_coerce(a, spec.kind(i), e) for i, a in enumerate(args)]
    if spec.name in ("trunc", "date_trunc"):
        _unit(spec.name, out)
    if spec.name == "round" and len(out) > 1 and not isinstance(out[1], Literal):
        raise ExpressionError(f"the digits of round must be a constant: {e}")
    if "common" in spec.kinds:
        texts = {isinstance(a.type, StringType) for a in out if not isinstance(a.type, NullType)}
        if spec.name != "coalesce" and len(texts) > 1:
            raise ExpressionError(f"{spec.name} does not mix strings with other types: {e}", advice="CAST the string")
        out = list(_alike(out, e))
        if spec.name != "coalesce":
            _comparable(out[0], e)
            out = [cast_to(a, FLOAT) if a.type == FloatType(16) else a for a in out]
    if spec.name in ("to_date", "to_timestamp"):
        return out[0]
    result = spec.result if isinstance(spec.result, DataType) else spec.result(out)
    return Function(spec.name, tuple(out), type=result)


def _unit(name: str, args: Sequence[Expr]) -> None:
    unit = args[1 if name == "trunc" else 0]
    if not isinstance(unit, Literal):
        raise ExpressionError(f"the unit of {name} must be a constant string")


def _coerce(e: Expr, kind: str, parent: Expr) -> Expr:
    """`e` as an argument of `kind`, with the implicit casts of Spark's ANSI mode; everything else is refused."""
    t = e.type
    if kind in ("any", "common"):
        return e
    to: DataType | None = None
    match kind:
        case "numeric":
            to = computed(t) if is_numeric(t) else DOUBLE if isinstance(t, StringType | NullType) else None
        case "double":
            to = computed(t) if isinstance(t, FloatType) and _name(parent) == "isnan" else _double(t)
        case "int":
            narrow = isinstance(t, IntegerType) and t.bits <= 32
            to = INT32 if narrow or isinstance(t, StringType | NullType) else None
        case "string" | "unit":
            text = not isinstance(t, BinaryType | FixedType | UUIDType) and t is not None and can_cast(t, STRING)
            to = STRING if text else None
        case "text":
            binary = isinstance(t, BinaryType | FixedType | UUIDType)
            to = t if binary else STRING if t is not None and can_cast(t, STRING) else None
        case "date":
            to = DATE if isinstance(t, DateType | TimestampType | StringType | NullType) else None
        case "timestamp":
            to = TIMESTAMP if isinstance(t, DateType | TimestampType | StringType | NullType) else None
        case "instant":
            to = t if isinstance(t, TimestampType) else None
            to = TIMESTAMP if isinstance(t, DateType | StringType | NullType) else to
        case "sized":
            to = t if isinstance(t, ListType | FixedSizeListType | MapType | NullType) else None
        case "variant":
            to = VARIANT if isinstance(t, VariantType | NullType) else None
        case "path" | "type":
            if not isinstance(e, Literal) or not isinstance(e.value, str):
                raise ExpressionError(f"the {kind} must be a constant string in {parent}", advice=f"write {_EXAMPLE}")
            to = STRING
    if to is None:
        advice = _EXTRACT if isinstance(t, VariantType) else "CAST it"
        advice = "make variants from JSON text with parse_json" if kind == "variant" else advice
        raise ExpressionError(f"{e} is {t}, but {kind} is needed in {parent}", advice=advice)
    return cast_to(e, to)


def _double(t: DataType | None) -> DataType | None:
    return DOUBLE if is_numeric(t) or isinstance(t, StringType | NullType) else None


def _name(e: Expr) -> str:
    return e.name if isinstance(e, Function) else ""
