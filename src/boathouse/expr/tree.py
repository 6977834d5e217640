"""The expression tree: frozen, picklable nodes that know no engine; `str(node)` is Spark SQL text.

Values of literals are physical, so that every instant of Spark fits: DATE is days since the epoch (int),
TIMESTAMP and TIMESTAMP_NTZ are the type's units since the epoch (int), DECIMAL is `decimal.Decimal`,
BINARY, FIXED and UUID are `bytes`. `type` is None until `resolve.bind` sets it.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache
from operator import is_
from typing import Any
from typing import Literal as OneOf

from boathouse import types as T
from boathouse.bits.names import steps
from boathouse.errors import ExpressionError
from boathouse.expr.identifiers import quote
from boathouse.expr.text import sql_literal

Path = tuple[str, ...]
ComparisonOp = OneOf["=", "!=", "<", "<=", ">", ">=", "<=>"]
ArithmeticOp = OneOf["+", "-", "*", "/", "%", "div"]

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Expr:
    """A condition or value: made by `col` and `lit`, operators and methods; `str(e)` is its Spark SQL text. Compares by
    value.

    `+ - * / < <= > >=` build expressions, `& | ~` combine conditions; equality is `eq` and `ne`. Everything else is
    written as Spark SQL text, which each `where` takes too.

    >>> condition = (bh.col("price") * 2 > 50) & bh.col("city").like("B%")
    >>> print(condition)
    ((price * 2) > 50) AND (city LIKE 'B%')
    >>> t.scan(where=condition).count()
    1
    """

    type: T.DataType | None = field(default=None, kw_only=True)

    def children(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of; none for columns and constants."""
        return ()

    def eq(self, other: object) -> Expr:
        """`self = other`; a method, since `==` compares expressions as values. Null where one side is null."""
        return Comparison("=", self, lit(other))

    def ne(self, other: object) -> Expr:
        """`self != other`; null where one side is null."""
        return Comparison("!=", self, lit(other))

    def __lt__(self, other: object) -> Expr:
        return Comparison("<", self, lit(other))

    def __le__(self, other: object) -> Expr:
        return Comparison("<=", self, lit(other))

    def __gt__(self, other: object) -> Expr:
        return Comparison(">", self, lit(other))

    def __ge__(self, other: object) -> Expr:
        return Comparison(">=", self, lit(other))

    def __and__(self, other: Expr) -> Expr:
        return And((self, other))

    def __or__(self, other: Expr) -> Expr:
        return Or((self, other))

    def __invert__(self) -> Expr:
        return Not(self)

    def __add__(self, other: object) -> Expr:
        return Arithmetic("+", self, lit(other))

    def __sub__(self, other: object) -> Expr:
        return Arithmetic("-", self, lit(other))

    def __mul__(self, other: object) -> Expr:
        return Arithmetic("*", self, lit(other))

    def __truediv__(self, other: object) -> Expr:
        return Arithmetic("/", self, lit(other))

    def is_null(self) -> Expr:
        """`self IS NULL`: true or false, never null."""
        return IsNull(self)

    def is_in(self, values: Iterable[object]) -> Expr:
        """`self IN (values)`, for Python values and expressions. Raises ExpressionError for a value that is no constant
        of SQL.

        >>> t.scan(where=bh.col("id").is_in([1, 3])).count()
        2
        """
        return In(self, tuple(map(lit, values)))

    def like(self, pattern: str) -> Expr:
        """`self LIKE pattern`: `%` stands for any text, `_` for one character, and a backslash before one of them for
        itself."""
        return Like(self, lit(pattern))

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value: combine conditions with &, | and ~")


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column, or a field of a struct column; after `bind` spelled as in the schema."""

    path: Path

    def __str__(self) -> str:
        return ".".join(quote(p) for p in self.path)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant; `value` None is NULL of any type."""

    value: bool | int | float | str | bytes | Decimal | None

    def __str__(self) -> str:
        return sql_literal(self.value, self.type)

    @staticmethod
    def of(value: object) -> Literal:
        """The literal of a Python value; aware datetimes are TIMESTAMP, naive ones TIMESTAMP_NTZ."""
        return _literal(value)


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    op: ComparisonOp
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_tight(self.left)} {self.op} {_tight(self.right)}"

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class And(Expr):
    """All of `args` (two or more), left to right."""

    args: tuple[Expr, ...]

    def __str__(self) -> str:
        return " AND ".join(_tight(a) for a in self.args)

    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Any of `args` (two or more), left to right."""

    args: tuple[Expr, ...]

    def __str__(self) -> str:
        return " OR ".join(_tight(a) for a in self.args)

    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, slots=True)
class Not(Expr):
    arg: Expr

    def __str__(self) -> str:
        if isinstance(self.arg, IsNull):
            return f"{_tight(self.arg.arg)} IS NOT NULL"
        return f"NOT {_tight(self.arg)}"

    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class In(Expr):
    """`value IN (options)`: null if nothing matches and `value` or an option is null."""

    value: Expr
    options: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{_tight(self.value)} IN ({', '.join(map(str, self.options))})"

    def children(self) -> tuple[Expr, ...]:
        return (self.value, *self.options)


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    arg: Expr

    def __str__(self) -> str:
        return f"{_tight(self.arg)} IS NULL"

    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Like(Expr):
    """SQL LIKE with `%`, `_` and an escape character; `ignore_case` is ILIKE."""

    value: Expr
    pattern: Expr
    escape: str = "\\"
    ignore_case: bool = False

    def __str__(self) -> str:
        text = f"{_tight(self.value)} {'I' if self.ignore_case else ''}LIKE {_tight(self.pattern)}"
        return text if self.escape == "\\" else f"{text} ESCAPE {sql_literal(self.escape, T.STRING)}"

    def children(self) -> tuple[Expr, ...]:
        return (self.value, self.pattern)


@dataclass(frozen=True, slots=True)
class Arithmetic(Expr):
    op: ArithmeticOp
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{_tight(self.left)} {self.op} {_tight(self.right)}"

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`safe` is TRY_CAST: null where CAST fails. `zone` is set by `bind` where the result depends on a time zone."""

    arg: Expr
    to: T.DataType
    safe: bool = False
    zone: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return f"{'TRY_' if self.safe else ''}CAST({self.arg} AS {str(self.to).upper()})"

    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """`CASE WHEN condition THEN value ... ELSE otherwise END`; a value is computed only where its condition is true."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None

    def __str__(self) -> str:
        text = "CASE" + "".join(f" WHEN {c} THEN {v}" for c, v in self.branches)
        return text + (f" ELSE {self.otherwise} END" if self.otherwise is not None else " END")

    def children(self) -> tuple[Expr, ...]:
        last = () if self.otherwise is None else (self.otherwise,)
        return (*(e for pair in self.branches for e in pair), *last)


@dataclass(frozen=True, slots=True)
class Function(Expr):
    """A function of functions.FUNCTIONS, by its lower-case name. `zone` as in Cast."""

    name: str
    args: tuple[Expr, ...]
    zone: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        if self.name == "negative" and len(self.args) == 1:
            return f"-({self.args[0]})"
        return f"{self.name}({', '.join(map(str, self.args))})"

    def children(self) -> tuple[Expr, ...]:
        return self.args


def col(name: str) -> Column:
    """The column `name`; `a.b` is the field b of the struct a, and a name with dots of its own is in backticks.

    Raises ExpressionError for what is not a string.

    >>> t.scan(where=bh.col("city").eq("Kiel")).count()
    1
    """
    if not isinstance(name, str):
        raise ExpressionError(f"{name!r} is not the name of a column", advice="pass the name as a string")
    return Column(steps(name))


def lit(value: object) -> Expr:
    """A Python value as a constant; aware datetimes are TIMESTAMP, naive ones TIMESTAMP_NTZ. An expression stays.

    Raises ExpressionError for values of other types.

    >>> print(bh.lit("it's"), bh.lit(None))
    'it\\'s' NULL
    """
    return value if isinstance(value, Expr) else Literal.of(value)


TRUE = Literal(True, type=T.BOOLEAN)
FALSE = Literal(False, type=T.BOOLEAN)
_LEAVES = (Column, Literal, Cast, Function, Case)


def _tight(e: Expr) -> str:
    return str(e) if isinstance(e, _LEAVES) and not str(e).startswith("-") else f"({e})"


def walk(e: Expr) -> Iterator[Expr]:
    """`e` and everything below it, parents first."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children()))


def columns(e: Expr) -> tuple[Path, ...]:
    """The paths that `e` reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(n.path for n in walk(e) if isinstance(n, Column)))


def rebuild(e: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """`e` with `fn` applied to each direct child; itself if that changes none."""
    changes: dict[str, Any] = {}
    kind: Any = type(e)
    for name in _names(kind):
        value = getattr(e, name)
        made: Any = value
        if isinstance(value, Expr):
            made = fn(value)
        elif name in ("args", "options"):
            made = tuple(map(fn, value))
            made = value if all(map(is_, made, value)) else made
        elif name == "branches":
            made = tuple((fn(c), fn(v)) for c, v in value)
            made = value if all(a is c and b is d for (a, b), (c, d) in zip(made, value, strict=True)) else made
        if made is not value:
            changes[name] = made
    return replace(e, **changes) if changes else e


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a node that may have children."""
    return () if kind in (Column, Literal) else tuple(f.name for f in fields(kind) if f.name not in ("type", "zone"))


def conjuncts(e: Expr) -> tuple[Expr, ...]:
    """The parts of a top-level AND, nested ones flattened; (e,) if there is none."""
    return tuple(c for a in e.args for c in conjuncts(a)) if isinstance(e, And) else (e,)


def all_of(parts: list[Expr]) -> Expr:
    """AND of `parts`: TRUE if there is none."""
    flat = tuple(c for p in parts for c in conjuncts(p) if c != TRUE)
    return And(flat, type=T.BOOLEAN) if len(flat) > 1 else flat[0] if flat else TRUE


def any_of(parts: list[Expr]) -> Expr:
    """OR of `parts`: FALSE if there is none."""
    flat = tuple(c for p in parts for c in (p.args if isinstance(p, Or) else (p,)) if c != FALSE)
    return Or(flat, type=T.BOOLEAN) if len(flat) > 1 else flat[0] if flat else FALSE


def _literal(value: object) -> Literal:
    match value:
        case Literal():
            return value
        case None:
            return Literal(None, type=T.NULL)
        case bool():
            return Literal(value, type=T.BOOLEAN)
        case int():
            if -(2**63) <= value < 2**63:
                return Literal(value, type=T.INT32 if -(2**31) <= value < 2**31 else T.INT64)
            return Literal(Decimal(value), type=decimal_type(Decimal(value)))
        case float():
            return Literal(value, type=T.DOUBLE)
        case Decimal():
            return Literal(value, type=decimal_type(value))
        case str():
            return Literal(value, type=T.STRING)
        case bytes() | bytearray() | memoryview():
            return Literal(bytes(value), type=T.BINARY)
        case uuid.UUID():
            return Literal(value.bytes, type=T.UUID)
        case dt.datetime():
            utc = value.tzinfo is not None
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if utc else value
            return Literal((naive - _EPOCH) // _MICROSECOND, type=T.TIMESTAMP if utc else T.TIMESTAMP_NTZ)
        case dt.date():
            return Literal(value.toordinal() - _EPOCH.toordinal(), type=T.DATE)
    raise ExpressionError(
        f"a Python {type(value).__name__} is not a literal",
        advice="give None, bool, int, float, Decimal, str, bytes, date, datetime or UUID",
    )


def decimal_type(value: Decimal) -> T.DecimalType:
    """The narrowest decimal type that holds `value` as it is written. Raises ExpressionError beyond 38 digits."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ExpressionError(f"{value} is not a decimal number")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 38:
        raise ExpressionError(f"{value} needs {precision} digits; a decimal has 38 at most")
    return T.DecimalType(precision, scale)
