"""Binds expressions: resolves names, inserts Spark's implicit ANSI casts, gives every node its type."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from boathouse import types as T
from boathouse.bits.names import Names
from boathouse.errors import ColumnNotFoundError, ExpressionError
from boathouse.expr import functions
from boathouse.expr.coercion import (
    can_cast,
    computed,
    is_numeric,
)
from boathouse.expr.operands import (
    EXAMPLE,
    EXTRACT,
    alike,
    arithmetic,
    beyond_bigint,
    boolean,
    cast_to,
    comparable,
    same,
)
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
    Path,
)
from boathouse.expr.values import Stored, as_blob
from boathouse.expr.zoned import UTC, depends_on_zone, in_zone
from boathouse.types import blobs
from boathouse.types.data_types import children


def bind(expr: Expr, schema: T.Schema, zone: str | None = UTC) -> Expr:
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


def bind_predicate(expr: Expr, schema: T.Schema, zone: str | None = UTC) -> Expr:
    """As `bind`; the result must be BOOLEAN (or NULL, which no row satisfies)."""
    out = bind(expr, schema, zone)
    if isinstance(out.type, T.NullType):
        return Literal(None, type=T.BOOLEAN)
    if not isinstance(out.type, T.BooleanType):
        raise ExpressionError(
            f"a condition must be boolean, but this is {out.type}: {expr}", advice="compare it with a value"
        )
    return out


def resolve_path(path: Sequence[str], schema: T.Schema) -> tuple[tuple[str, ...], T.DataType]:
    """The path as spelled in the schema, and its type: an exact match, else ignoring case if only one matches."""
    fields: Sequence[T.Field] = schema.fields
    found: list[str] = []
    type: T.DataType = T.StructType(tuple(schema.fields))
    for i, name in enumerate(path):
        if i and not isinstance(type, T.StructType):
            raise ColumnNotFoundError(f"`{'.'.join(found)}` is {type}, so it has no field `{name}`")
        places = type.places if i and isinstance(type, T.StructType) else schema.places
        field = _pick(name, fields, places, ".".join(found))
        found.append(field.name)
        type = field.type
        fields = type.fields if isinstance(type, T.StructType) else ()
    return tuple(found), type


def _pick(name: str, fields: Sequence[T.Field], places: Names, parent: str) -> T.Field:
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


def _bind(e: Expr, schema: T.Schema) -> Expr:
    match e:
        case Column(path):
            found, type = resolve_path(path, schema)
            return Column(found, type=type)
        case Literal(value):
            return e if e.type is not None else Literal.of(value)
        case Comparison(op, left, right):
            sides = (_bind(left, schema), _bind(right, schema))
            constant = beyond_bigint(op, *sides)
            if constant is not None:
                return constant
            a, b = same(sides, e)
            comparable(a, e)
            return Comparison(op, a, b, type=T.BOOLEAN)
        case And(args):
            return And(tuple(boolean(_bind(a, schema), e) for a in args), type=T.BOOLEAN)
        case Or(args):
            return Or(tuple(boolean(_bind(a, schema), e) for a in args), type=T.BOOLEAN)
        case Not(arg):
            return Not(boolean(_bind(arg, schema), e), type=T.BOOLEAN)
        case In(value, options):
            all = same(tuple(_bind(x, schema) for x in (value, *options)), e)
            comparable(all[0], e)
            return In(all[0], tuple(all[1:]), type=T.BOOLEAN)
        case IsNull(arg):
            return IsNull(_bind(arg, schema), type=T.BOOLEAN)
        case Like(value, pattern):
            text = _coerce(_bind(value, schema), "string", e)
            return replace(e, value=text, pattern=_coerce(_bind(pattern, schema), "string", e), type=T.BOOLEAN)
        case Arithmetic(op, left, right):
            return arithmetic(e, op, _bind(left, schema), _bind(right, schema))
        case Cast(arg, to, safe):
            inner = _bind(arg, schema)
            if isinstance(inner.type, T.VariantType) and not isinstance(to, T.VariantType):
                where = (inner, Literal("$", type=T.STRING), Literal(str(to), type=T.STRING))
                return Function("try_variant_get" if safe else "variant_get", where, type=to)
            if inner.type is None or not can_cast(inner.type, to):
                raise ExpressionError(f"{inner.type} cannot be cast to {to}: {e}")
            return replace(e, arg=inner, type=to)
        case Case():
            return _case(e, schema)
        case Stored(arg, to, column, needs):
            return _stored(_bind(arg, schema), to, column, needs)
        case Function(name, args):
            made = _function(e, name, [_bind(a, schema) for a in args])
            return replace(made, zone=e.zone) if e.zone is not None and isinstance(made, Function) else made
    raise ExpressionError(f"unknown expression {e!r}")


def _stored(e: Expr, to: T.DataType, column: str, needs: tuple[Path, ...]) -> Expr:
    if blobs.is_written(to):
        return _blob(e, to, column)
    if e.type is None or not can_cast(e.type, to):
        advice = EXTRACT if isinstance(e.type, T.VariantType) else f"give a value of {to}"
        raise ExpressionError(f"`{column}` is {to}, and {e} is {e.type}, which cannot be cast to it", advice=advice)
    lacking = [".".join((column, *path)) for path in needs if _lacks(e.type, path)]
    if lacking:
        raise ExpressionError(
            f"`{column}` is set to {e}, whose structs lack `{'`, `'.join(lacking)}`, which is not null by default",
            advice="give the field a value",
        )
    return cast_to(e, to)


def _blob(e: Expr, to: T.DataType, column: str) -> Expr:
    if isinstance(e.type, T.BinaryType):
        made = as_blob(e, to, lambda f: Literal(None, type=f.type))
        return cast_to(_function(made, made.name, list(made.args)), to)
    if str(e.type) != str(to) and not isinstance(e.type, T.NullType):
        raise ExpressionError(f"`{column}` has blobs, and {e} is {e.type}", advice="give a binary value")
    return cast_to(e, to)


def _lacks(type: T.DataType, path: Path) -> bool:
    """Whether structs of the type lack the last field of a path, and have what is above it."""
    step, *rest = path
    fields = children(type)
    if isinstance(type, T.StructType):
        found = Names(f.name for f in fields).at(step)
        if not found:
            return not rest
        place = found[0]
    else:
        place = 1 if isinstance(type, T.MapType) and step == "value" else 0
    return bool(rest) and bool(fields) and _lacks(fields[place].type, tuple(rest))


def _case(e: Case, schema: T.Schema) -> Expr:
    conditions = [boolean(_bind(c, schema), e) for c, _ in e.branches]
    values = [_bind(v, schema) for _, v in e.branches]
    if e.otherwise is not None:
        values.append(_bind(e.otherwise, schema))
    same = alike(values, e)
    otherwise = same[-1] if e.otherwise is not None else None
    return Case(tuple(zip(conditions, same)), otherwise, type=same[0].type)


def _function(e: Expr, name: str, args: list[Expr]) -> Expr:
    spec = functions.lookup(name)
    if len(args) < spec.least or (spec.most is not None and len(args) > spec.most):
        takes = f"{spec.least}" if spec.least == spec.most else f"{spec.least} to {spec.most or 'any number of'}"
        raise ExpressionError(f"{spec.name} takes {takes} arguments, not {len(args)}: {e}")
    if spec.name == "concat" and args and all(isinstance(a.type, T.BinaryType) for a in args):
        return Function("concat", tuple(args), type=T.BINARY)
    if spec.name == "pmod":
        rest = arithmetic(e, "%", args[0], args[1])
        return Function("pmod", rest.children(), type=rest.type)
    out = [_coerce(a, spec.kind(i), e) for i, a in enumerate(args)]
    if spec.name in ("trunc", "date_trunc"):
        _unit(spec.name, out)
    if spec.name == "round" and len(out) > 1 and not isinstance(out[1], Literal):
        raise ExpressionError(f"the digits of round must be a constant: {e}")
    if "common" in spec.kinds:
        strings = {isinstance(a.type, T.StringType) for a in out if not isinstance(a.type, T.NullType)}
        if spec.name != "coalesce" and len(strings) > 1:
            raise ExpressionError(f"{spec.name} does not mix strings with other types: {e}", advice="CAST the string")
        out = list(alike(out, e))
        if spec.name != "coalesce":
            comparable(out[0], e)
            out = [cast_to(a, T.FLOAT) if a.type == T.FloatType(16) else a for a in out]
    if spec.name == "array":
        out = list(alike(out, e))
    if spec.name in ("to_date", "to_timestamp"):
        return out[0]
    result = spec.result if isinstance(spec.result, T.DataType) else spec.result(out)
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
    to: T.DataType | None = None
    match kind:
        case "numeric":
            to = computed(t) if is_numeric(t) else T.DOUBLE if isinstance(t, T.StringType | T.NullType) else None
        case "double":
            to = computed(t) if isinstance(t, T.FloatType) and _name(parent) == "isnan" else _double(t)
        case "int":
            narrow = isinstance(t, T.IntegerType) and t.bits <= 32
            to = T.INT32 if narrow or isinstance(t, T.StringType | T.NullType) else None
        case "string" | "unit":
            text = (
                not isinstance(t, T.BinaryType | T.FixedType | T.UUIDType) and t is not None and can_cast(t, T.STRING)
            )
            to = T.STRING if text else None
        case "text":
            binary = isinstance(t, T.BinaryType | T.FixedType | T.UUIDType)
            to = t if binary else T.STRING if t is not None and can_cast(t, T.STRING) else None
        case "date":
            to = T.DATE if isinstance(t, T.DateType | T.TimestampType | T.StringType | T.NullType) else None
        case "timestamp":
            to = T.TIMESTAMP if isinstance(t, T.DateType | T.TimestampType | T.StringType | T.NullType) else None
        case "instant":
            to = t if isinstance(t, T.TimestampType) else None
            to = T.TIMESTAMP if isinstance(t, T.DateType | T.StringType | T.NullType) else to
        case "sized":
            to = t if isinstance(t, T.ListType | T.FixedSizeListType | T.MapType | T.NullType) else None
        case "variant":
            to = T.VARIANT if isinstance(t, T.VariantType | T.NullType) else None
        case "path" | "type":
            if not isinstance(e, Literal) or not isinstance(e.value, str):
                raise ExpressionError(f"the {kind} must be a constant string in {parent}", advice=f"write {EXAMPLE}")
            to = T.STRING
    if to is None:
        advice = EXTRACT if isinstance(t, T.VariantType) else "CAST it"
        advice = "make variants from JSON text with parse_json" if kind == "variant" else advice
        raise ExpressionError(f"{e} is {t}, but {kind} is needed in {parent}", advice=advice)
    return cast_to(e, to)


def _double(t: T.DataType | None) -> T.DataType | None:
    return T.DOUBLE if is_numeric(t) or isinstance(t, T.StringType | T.NullType) else None


def _name(e: Expr) -> str:
    return e.name if isinstance(e, Function) else ""
