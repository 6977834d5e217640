"""Binds expressions whose meaning depends on a time zone to one.

TIMESTAMP is an instant; its date, its hour, its string and its order among TIMESTAMP_NTZ and DATE are those of a zone.
Spark uses the session's. Here the nodes that need one carry its name, so that an expression means the same wherever it
is evaluated.
"""

from __future__ import annotations

from dataclasses import replace

from boathouse import types as T
from boathouse.bits import zones
from boathouse.errors import ExpressionError
from boathouse.expr.tree import Cast, Expr, Function, Literal, rebuild, walk

UTC = "UTC"


def in_zone(e: Expr, zone: str) -> Expr:
    """`e` (typed) with `zone` on every node that needs one and has none. Raises InvalidArgumentError."""
    return _stamped(e, UTC if zones.zone(zone).utc else zone)


def _stamped(e: Expr, zone: str) -> Expr:
    out = rebuild(e, lambda child: _stamped(child, zone))
    if isinstance(out, Cast | Function) and out.zone is None and needs_zone(out):
        return replace(out, zone=zone)
    return out


def depends_on_zone(e: Expr) -> bool:
    """Whether some node of `e` (typed) needs a zone and has none."""
    return any(isinstance(n, Cast | Function) and n.zone is None and needs_zone(n) for n in walk(e))


def needs_zone(e: Cast | Function) -> bool:
    """Whether the result of this node depends on a time zone."""
    if isinstance(e, Cast):
        return e.arg.type is not None and cast_needs_zone(e.arg.type, e.to, e.arg)
    match e.name:
        case "hour" | "minute" | "second" | "date_trunc":
            return any(isinstance(a.type, T.TimestampType) and a.type.utc for a in e.args)
        case "variant_get" | "try_variant_get":
            return isinstance(e.type, T.StringType | T.DateType | T.TimestampType)
    return False


def cast_needs_zone(source: T.DataType, to: T.DataType, arg: Expr | None = None) -> bool:
    """Whether CAST between the types depends on a zone; a null literal has none."""
    if isinstance(arg, Literal) and arg.value is None:
        return False
    match source, to:
        case (T.TimestampType(utc=a), T.TimestampType(utc=b)):
            return a != b
        case (T.TimestampType(utc=True), T.DateType() | T.StringType()):
            return True
        case (T.DateType() | T.StringType(), T.TimestampType(utc=True)):
            return True
        case (T.ListType(a) | T.FixedSizeListType(a, _), T.ListType(b) | T.FixedSizeListType(b, _)):
            return cast_needs_zone(a.type, b.type)
        case (T.MapType(a, b), T.MapType(c, d)):
            return cast_needs_zone(a.type, c.type) or cast_needs_zone(b.type, d.type)
        case (T.StructType(), T.StructType(fields)):
            found = ((source.places.at(f.name), f.type) for f in fields)
            return any(at and cast_needs_zone(source.fields[at[0]].type, t) for at, t in found)
    return False


def zone_for(source: T.DataType, to: T.DataType, zone: zones.Zone | None) -> zones.Zone | None:
    """The zone of a cast within another: none where it needs none."""
    return zone if cast_needs_zone(source, to) else None


def zone_of(e: Cast | Function) -> zones.Zone | None:
    """The zone of a node; None if it needs none. Raises ExpressionError if it needs one but is not bound."""
    if e.zone is not None:
        return zones.zone(e.zone)
    if needs_zone(e):
        raise ExpressionError(f"the time zone of {e} is unknown", advice="pass timezone=")
    return None
