"""The closed list of functions: name, arguments, result. Documentation is generated from it.

Any other function is refused with UnsupportedFunctionError. An argument's kind is what `resolve` coerces it to, as
Spark's ANSI mode does; a kind ending in `?` is optional.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from boathouse import types as T
from boathouse.errors import ExpressionError, SchemaError, UnsupportedFunctionError
from boathouse.expr.coercion import bounded, common_of
from boathouse.expr.tree import Expr, Literal
from boathouse.types.data_types import unlabelled
from boathouse.types.text import parse_type

Kind = OneOf[
    "any", "common", "numeric", "double", "int", "string", "text", "date", "instant", "sized", "unit", "variant",
    "path", "type",
]  # fmt: skip
Result = T.DataType | Callable[[Sequence[Expr]], T.DataType]
Group = OneOf["condition", "number", "text", "time", "collection", "variant"]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """`variadic` repeats the last kind; `total` functions never raise on values of the right types."""

    name: str
    group: Group
    kinds: tuple[str, ...]
    result: Result
    doc: str
    aliases: tuple[str, ...] = ()
    variadic: bool = False
    total: bool = True

    @property
    def least(self) -> int:
        return sum(not k.endswith("?") for k in self.kinds)

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.kinds)

    def kind(self, i: int) -> str:
        return self.kinds[min(i, len(self.kinds) - 1)].rstrip("?")


def _first(args: Sequence[Expr]) -> T.DataType:
    assert args[0].type is not None
    return args[0].type


def _common(args: Sequence[Expr]) -> T.DataType:
    out = common_of(a.type for a in args if a.type is not None)
    assert out is not None
    return out


def _whole(args: Sequence[Expr]) -> T.DataType:
    """CEIL and FLOOR: BIGINT, or a decimal without fraction and with one digit for the carry."""
    type = _first(args)
    return bounded(type.precision - type.scale + 1, 0) if isinstance(type, T.DecimalType) else T.INT64


def _rounded(args: Sequence[Expr]) -> T.DataType:
    type = _first(args)
    if not isinstance(type, T.DecimalType):
        return type
    digits = args[1].value if len(args) > 1 and isinstance(args[1], Literal) else 0
    assert isinstance(digits, int)
    whole = type.precision - type.scale + 1
    if digits < 0:
        return bounded(max(whole, -digits + 1), 0)
    scale = min(type.scale, digits)
    return bounded(whole + scale, scale)


def _extracted(args: Sequence[Expr]) -> T.DataType:
    """The type requested from `variant_get`: VARIANT if none is given."""
    if len(args) < 3:
        return T.VARIANT
    name = args[2]
    assert isinstance(name, Literal)
    try:
        return parse_type(str(name.value))
    except SchemaError as error:
        raise ExpressionError(error.message, advice=error.advice) from None


def _list(args: Sequence[Expr]) -> T.DataType:
    return T.ListType(T.Field("element", _common(args)))


def _struct(args: Sequence[Expr]) -> T.DataType:
    names = [n.value for n in args[::2] if isinstance(n, Literal) and isinstance(n.value, str)]
    types = [a.type for a in args[1::2] if a.type is not None]
    if len(names) != len(types) or 2 * len(types) != len(args):
        raise ExpressionError(
            "named_struct takes pairs of a constant name and a value", advice="write named_struct('a', 1, 'b', x)"
        )
    return T.StructType(tuple(T.Field(str(n), unlabelled(t)) for n, t in zip(names, types, strict=True)))


_SPECS = (
    FunctionSpec("coalesce", "condition", ("common",), _common, "first that is not null", ("nvl", "ifnull"), True),
    FunctionSpec("greatest", "condition", ("common", "common"), _common, "greatest, nulls skipped", variadic=True),
    FunctionSpec("least", "condition", ("common", "common"), _common, "least, nulls skipped", variadic=True),
    FunctionSpec("isnan", "condition", ("double",), T.BOOLEAN, "whether NaN; false for null"),
    FunctionSpec("negative", "number", ("numeric",), _first, "negated; overflow is an error", total=False),
    FunctionSpec("abs", "number", ("numeric",), _first, "absolute value; overflow is an error", total=False),
    FunctionSpec("ceil", "number", ("numeric",), _whole, "smallest integer not below", ("ceiling",), total=False),
    FunctionSpec("floor", "number", ("numeric",), _whole, "greatest integer not above", total=False),
    FunctionSpec("round", "number", ("numeric", "int?"), _rounded, "half up to constant digits", total=False),
    FunctionSpec("sign", "number", ("double",), T.DOUBLE, "-1.0, 0.0 or 1.0", ("signum",)),
    FunctionSpec("sqrt", "number", ("double",), T.DOUBLE, "square root; NaN for negative arguments"),
    FunctionSpec("power", "number", ("double", "double"), T.DOUBLE, "first to the power of the second", ("pow",)),
    FunctionSpec("pmod", "number", ("numeric", "numeric"), _common, "remainder, not negative for a positive divisor",
                 total=False),
    FunctionSpec("upper", "text", ("string",), T.STRING, "in upper case", ("ucase",)),
    FunctionSpec("lower", "text", ("string",), T.STRING, "in lower case", ("lcase",)),
    FunctionSpec("trim", "text", ("string",), T.STRING, "without spaces at both ends"),
    FunctionSpec("ltrim", "text", ("string",), T.STRING, "without leading spaces"),
    FunctionSpec("rtrim", "text", ("string",), T.STRING, "without trailing spaces"),
    FunctionSpec("length", "text", ("text",), T.INT32, "number of characters, or of bytes of a binary",
                 ("char_length", "character_length", "len")),
    FunctionSpec("substring", "text", ("string", "int", "int?"), T.STRING, "from a 1-based position, or from the end",
                 ("substr",)),
    FunctionSpec("left", "text", ("string", "int"), T.STRING, "first characters"),
    FunctionSpec("right", "text", ("string", "int"), T.STRING, "last characters"),
    FunctionSpec("concat", "text", ("string",), T.STRING, "concatenated; null if any is null", variadic=True),
    FunctionSpec("concat_ws", "text", ("string", "string?"), T.STRING,
                 "concatenated with the first as separator, nulls skipped", variadic=True),
    FunctionSpec("replace", "text", ("string", "string", "string?"), T.STRING, "every occurrence replaced"),
    FunctionSpec("startswith", "text", ("string", "string"), T.BOOLEAN, "whether the first begins with the second"),
    FunctionSpec("endswith", "text", ("string", "string"), T.BOOLEAN, "whether the first ends with the second"),
    FunctionSpec("contains", "text", ("string", "string"), T.BOOLEAN, "whether the first contains the second"),
    FunctionSpec("year", "time", ("date",), T.INT32, "year"),
    FunctionSpec("quarter", "time", ("date",), T.INT32, "1 to 4"),
    FunctionSpec("month", "time", ("date",), T.INT32, "1 to 12"),
    FunctionSpec("day", "time", ("date",), T.INT32, "day of the month", ("dayofmonth",)),
    FunctionSpec("dayofweek", "time", ("date",), T.INT32, "1 is Sunday"),
    FunctionSpec("weekday", "time", ("date",), T.INT32, "0 is Monday"),
    FunctionSpec("dayofyear", "time", ("date",), T.INT32, "1 to 366"),
    FunctionSpec("weekofyear", "time", ("date",), T.INT32, "ISO week"),
    FunctionSpec("hour", "time", ("instant",), T.INT32, "0 to 23"),
    FunctionSpec("minute", "time", ("instant",), T.INT32, "0 to 59"),
    FunctionSpec("second", "time", ("instant",), T.INT32, "0 to 59"),
    FunctionSpec("date_add", "time", ("date", "int"), T.DATE, "days later", ("dateadd",)),
    FunctionSpec("date_sub", "time", ("date", "int"), T.DATE, "days earlier"),
    FunctionSpec("datediff", "time", ("date", "date"), T.INT32, "days from the second to the first", ("date_diff",)),
    FunctionSpec("last_day", "time", ("date",), T.DATE, "last day of the month", total=False),
    FunctionSpec("trunc", "time", ("date", "unit"), T.DATE, "start of the week, month, quarter or year", total=False),
    FunctionSpec("date_trunc", "time", ("unit", "timestamp"), T.TIMESTAMP,
                 "start of the unit, microsecond to year", total=False),
    FunctionSpec("to_date", "time", ("date",), T.DATE, "CAST to DATE"),
    FunctionSpec("to_timestamp", "time", ("timestamp",), T.TIMESTAMP, "CAST to TIMESTAMP"),
    FunctionSpec("array", "collection", ("common?",), _list, "a list of these elements", variadic=True),
    FunctionSpec("named_struct", "collection", ("any", "any"), _struct,
                 "a struct of fields, each given by its name, a constant, and its value", variadic=True),
    FunctionSpec("size", "collection", ("sized",), T.INT32, "number of elements; null for null",
                 ("cardinality", "array_size")),
    FunctionSpec("variant_get", "variant", ("variant", "path", "type?"), _extracted,
                 "the value at a path (`$.a.b[0]`) as a type (`'int'`; by default a variant); null if there is none; "
                 "a value that cannot be cast is an error", total=False),
    FunctionSpec("try_variant_get", "variant", ("variant", "path", "type?"), _extracted,
                 "`variant_get`, null where that is an error", total=False),
    FunctionSpec("is_variant_null", "variant", ("variant",), T.BOOLEAN,
                 "whether it is the variant null; false for null"),
    FunctionSpec("parse_json", "variant", ("string",), T.VARIANT, "the variant of a JSON text", total=False),
    FunctionSpec("try_parse_json", "variant", ("string",), T.VARIANT, "`parse_json`, null where that is an error"),
    FunctionSpec("to_json", "variant", ("variant",), T.STRING, "the JSON text of a variant; NaN and infinities quoted",
                 total=False),
    FunctionSpec("schema_of_variant", "variant", ("variant",), T.STRING, "the type of a variant's value", total=False),
)  # fmt: skip

FUNCTIONS: dict[str, FunctionSpec] = {name: s for s in _SPECS for name in (s.name, *s.aliases)}

# Spelled as functions, but nodes of the tree: the parser rewrites them.
SPECIAL: dict[str, str] = {
    "if": "if(condition, a, b): CASE WHEN condition THEN a ELSE b END",
    "nvl2": "nvl2(a, b, c): CASE WHEN a IS NOT NULL THEN b ELSE c END",
    "nullif": "nullif(a, b): null where a = b",
    "isnull": "isnull(a): a IS NULL",
    "isnotnull": "isnotnull(a): a IS NOT NULL",
    "mod": "mod(a, b): a % b",
    "like": "like(text, pattern)",
    "ilike": "ilike(text, pattern)",
}


CASTS: dict[str, T.DataType] = {
    "boolean": T.BOOLEAN, "tinyint": T.INT8, "smallint": T.INT16, "int": T.INT32, "bigint": T.INT64, "float": T.FLOAT,
    "double": T.DOUBLE, "decimal": T.DecimalType(10, 0), "date": T.DATE, "timestamp": T.TIMESTAMP, "binary": T.BINARY,
    "string": T.STRING,
}  # fmt: skip
"""`double(x)`: CAST(x AS DOUBLE)."""


def lookup(name: str, where: str | None = None) -> FunctionSpec:
    """The specification of `name`, ignoring case.

    Raises UnsupportedFunctionError with the nearest names and `where`, the whole expression.
    """
    spec = FUNCTIONS.get(name.lower())
    if spec is not None:
        return spec
    near = difflib.get_close_matches(name.lower(), [*FUNCTIONS, *SPECIAL, *CASTS], 3, 0.6)
    raise UnsupportedFunctionError(
        f"function `{name}` is not offered here{f': {where}' if where else ''}",
        advice=f"nearest: {', '.join(near)}" if near else "see the list of functions in the documentation",
    )


def reference() -> str:
    """The list as Markdown, one table per group."""
    lines: list[str] = []
    for group in dict.fromkeys(s.group for s in _SPECS):
        lines += [f"### {group.capitalize()}", "", "| function | result | meaning |", "|--|--|--|"]
        for s in (s for s in _SPECS if s.group == group):
            more = ", ..." if s.variadic else ""
            args = ", ".join(f"[{k[:-1]}]" if k.endswith("?") else k for k in s.kinds)
            also = f" Also `{'`, `'.join(s.aliases)}`." if s.aliases else ""
            result = s.result if isinstance(s.result, T.DataType) else "of the arguments"
            lines.append(f"| `{s.name}({args}{more})` | {result} | {s.doc}.{also} |")
        lines.append("")
    casts = ", ".join(f"`{name}(x)`" for name in CASTS)
    lines += ["### Shorthands", "", *(f"- `{text}`" for text in SPECIAL.values()), f"- {casts}: CAST to this type", ""]
    return "\n".join(lines)
