"""Spark SQL text to the expression tree, with sqlglot's grammar and none of its function rewriting.

Where operator precedence differs between sqlglot and Spark (`a = b LIKE c`, `a || b + c`) the text is refused with a
request for parentheses: a guess could be silently wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from boathouse import types as T
from boathouse.errors import ExpressionError, SchemaError
from boathouse.expr import functions
from boathouse.expr.simplify import cast_literal
from boathouse.expr.text import parse_clock
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
)


class _Narrow(Spark):
    """Spark's grammar in which every call stays a call by name, and a doubled quote is a quote (Spark 4)."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        # sqlglot takes FIXED for DECIMAL: here it is bytes of a fixed length.
        KEYWORDS: ClassVar[dict[str, Any]] = {**Spark.Tokenizer.KEYWORDS, "FIXED": TokenType.FIXEDSTRING}

    class Parser(Spark.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

    class Generator(Spark.Generator):
        TYPE_MAPPING: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TYPE_MAPPING,
            exp.DataType.Type.FIXEDSTRING: "FIXED",
        }


_TYPES: dict[str, T.DataType] = {
    "BOOLEAN": T.BOOLEAN,
    "TINYINT": T.INT8,
    "SMALLINT": T.INT16,
    "INT": T.INT32,
    "BIGINT": T.INT64,
    "FLOAT": T.FLOAT,
    "DOUBLE": T.DOUBLE,
    "TEXT": T.STRING,
    "VARCHAR": T.STRING,
    "BINARY": T.BINARY,
    "VARBINARY": T.BINARY,
    "DATE": T.DATE,
    "TIMESTAMPTZ": T.TIMESTAMP,
    "TIMESTAMPLTZ": T.TIMESTAMP,
    "TIMESTAMP": T.TIMESTAMP,
    "TIMESTAMPNTZ": T.TIMESTAMP_NTZ,
    "NULL": T.NULL,
}
_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.Not, *_COMPARISONS)
_MAX_LENGTH = 1_000_000

# The arguments that a node may have beside its operands. Any other one that is set changes the meaning # (`negate` of
# LIKE) in a way unknown to this module, so it is refused.
_OPERANDS = frozenset({"this", "expression", "expressions"})
_CARRIED: dict[type[exp.Expression], frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Cast: frozenset({"to", "safe"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.In: frozenset({"query", "field", "unnest"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.HexString: frozenset({"is_integer"}),
}


def parse(sql: str) -> Expr:
    """The tree of a Spark SQL expression, untyped. Raises ExpressionError with the text and the position."""
    if not isinstance(sql, str) or not sql.strip():
        raise ExpressionError("an expression is a non-empty string", advice="write a condition such as id > 5")
    if len(sql) > _MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(sql)} characters", advice="join with a table of keys instead")
    try:
        # As the only projection of a SELECT, so that statements and lists are not accepted as an expression.
        tree = _Narrow().parse(f"SELECT\n{sql}\n")
    except SqlglotError as e:
        raise _failed(sql, e) from None
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply", advice="use IN for long lists") from None
    select = tree[0] if len(tree) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or _clauses(select):
        raise ExpressionError(f"not a single expression: {sql}", advice="write one condition or value, not a statement")
    try:
        return _Reader(sql).read(select.expressions[0])
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply", advice="use IN for long lists") from None


def _clauses(select: exp.Select) -> list[str]:
    return [k for k, v in select.args.items() if v and k not in ("expressions", "kind", "hint")]


def _failed(sql: str, e: SqlglotError) -> ExpressionError:
    first = (getattr(e, "errors", None) or [{}])[0]
    line, column = first.get("line"), first.get("col")
    what = str(first.get("description") or e).split("\n")[0].rstrip(".")
    near = first.get("highlight")
    # The text begins on the second line of what sqlglot parses.
    at = f" at line {max(line - 1, 1)}, column {column}" if line else ""
    return ExpressionError(f"cannot parse{at}{f' near `{near}`' if near else ''}: {what}: {sql}")


class _Reader:
    """Converts the sqlglot tree of one text to ours."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def refuse(self, what: str, advice: str | None = None) -> ExpressionError:
        return ExpressionError(f"{what}: {self.sql}", advice=advice)

    def read(self, node: exp.Expression) -> Expr:
        kind = type(node)
        if {k for k, v in node.args.items() if v} - _OPERANDS - _CARRIED.get(kind, frozenset()):
            raise self.refuse(f"`{self.show(node)}` is not offered here")
        if kind is exp.Paren:
            return self.read(node.this)
        if kind is exp.Column or kind is exp.Dot:
            return Column(self.path(node))
        if kind is exp.And or kind is exp.Or:
            return self.logical(node)
        if kind in _COMPARISONS:
            return self.comparison(node)
        if kind in _ARITHMETIC or kind is exp.DPipe:
            return self.arithmetic(node)
        reader = _READERS.get(kind)
        if reader is None:
            raise self.refuse(f"`{self.show(node)}` is not offered here")
        return reader(self, node)

    def show(self, node: exp.Expression) -> str:
        return str(node.sql(dialect=_Narrow))

    def path(self, node: exp.Expression) -> tuple[str, ...]:
        if isinstance(node, exp.Dot):
            return (*self.path(node.this), *self.path(node.expression))
        if isinstance(node, exp.Identifier):
            return (node.this,)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise self.refuse(f"`{self.show(node)}` is not offered here")
        return tuple(p.this for p in node.parts)

    def logical(self, node: exp.Expression) -> Expr:
        """AND and OR chains are read with a loop: thousands of terms are legal."""
        kind = type(node)
        terms: list[exp.Expression] = []
        while type(node) is kind:
            terms.append(node.expression)
            node = node.this
        args = tuple(self.read(t) for t in (node, *reversed(terms)))
        return And(args) if kind is exp.And else Or(args)

    def comparison(self, node: exp.Expression) -> Expr:
        for side in (node.this, node.expression):
            if isinstance(side, _PREDICATES):
                raise self.refuse(f"`{self.show(node)}` is ambiguous", "put one side in parentheses")
        op: Any = _COMPARISONS[type(node)]
        return Comparison(op, self.read(node.this), self.read(node.expression))

    def arithmetic(self, node: exp.Expression) -> Expr:
        kind = type(node)
        for side in (node.this, node.expression):
            if (kind is exp.DPipe) != isinstance(side, exp.DPipe) and isinstance(side, (exp.Add, exp.Sub, exp.DPipe)):
                raise self.refuse("`||` beside + or - is ambiguous", "put one side in parentheses")
        left, right = self.read(node.this), self.read(node.expression)
        if kind is exp.DPipe:
            return Function("concat", (left, right))
        op: Any = _ARITHMETIC[kind]
        return Arithmetic(op, left, right)

    def number(self, node: exp.Expression, sign: str = "") -> Literal:
        word = sign + node.this
        if node.is_string:
            return Literal(node.this, type=T.STRING)
        if "e" in word.lower():
            # Spark reads 1e3 as DOUBLE and 1.0e3BD as DECIMAL.
            if math.isinf(float(word)):
                raise self.refuse(f"{word} is beyond DOUBLE")
            return Literal(float(word), type=T.DOUBLE)
        return Literal.of(int(word)) if word.lstrip("-").isdigit() else Literal.of(Decimal(word))

    def negative(self, node: exp.Expression) -> Expr:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self.number(inner, "-")
        suffixed = isinstance(inner, exp.Cast | exp.TryCast) and isinstance(inner.this, exp.Literal)
        if suffixed and not inner.this.is_string:
            return self.cast(inner, "-")
        arg = self.read(inner)
        return Function("negative", (arg,))

    def cast(self, node: exp.Expression, sign: str = "") -> Expr:
        to = self.type(node.args["to"])
        arg = self.number(node.this, sign) if isinstance(node.this, exp.Literal) else self.read(node.this)
        return self.cast_to(arg, to, bool(node.args.get("safe")))

    def cast_to(self, arg: Expr, to: T.DataType, safe: bool = False) -> Expr:
        if isinstance(arg, Literal) and not safe:
            folded = cast_literal(arg, to)
            if folded is not None:
                return folded
            # `200Y` and DATE'x' fail here; CAST('x' AS INT) would fail at run time, so it may as well fail now.
            if to == T.TIMESTAMP and isinstance(arg.value, str) and parse_clock(arg.value) is not None:
                return Cast(arg, to)  # in the zone that the expression is bound in
            if isinstance(arg.value, str) or (isinstance(arg.value, int) and isinstance(to, T.IntegerType)):
                raise self.refuse(f"{arg} is not a valid {to}")
        return Cast(arg, to, safe)

    def type(self, node: exp.Expression) -> T.DataType:
        name = node.this.name if hasattr(node.this, "name") else str(node.this)
        if name == "DECIMAL":
            return self.decimal(node)
        if name == "FIXEDSTRING":
            return self.fixed(node)
        if name not in _TYPES or (node.expressions and name not in ("TEXT", "VARCHAR")):
            raise self.refuse(f"no CAST to {self.show(node)} here")
        if node.expressions:
            raise self.refuse("CHAR(n) and VARCHAR(n) are not offered", "use STRING")
        return _TYPES[name]

    def fixed(self, node: exp.Expression) -> T.DataType:
        given = [str(p.name) for p in node.expressions]
        if len(given) != 1 or not _is_number(given[0], 9) or not int(given[0]):
            raise self.refuse(f"{self.show(node)} is not a type", "write FIXED(length)")
        return T.FixedType(int(given[0]))

    def decimal(self, node: exp.Expression) -> T.DataType:
        given = [str(p.name) for p in node.expressions]
        if len(given) > 2 or not all(_is_number(g, 3) for g in given):
            raise self.refuse(f"{self.show(node)} is not a type", "write DECIMAL(precision, scale)")
        precision, scale = [*map(int, given), *(10, 0)[len(given) :]]
        try:
            return T.DecimalType(precision, scale)
        except SchemaError as error:
            raise self.refuse(error.message) from None

    def call(self, node: exp.Expression) -> Expr:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else node.key
        args = tuple(self.read(a) for a in node.expressions)
        if (to := functions.CASTS.get(name)) is not None and len(args) == 1:
            return self.cast_to(args[0], to)
        special = _SPECIAL.get(name)
        if special is None:
            return Function(functions.lookup(name, self.sql).name, args)
        arity, build = special
        if len(args) != arity:
            raise self.refuse(f"{name} takes {arity} arguments, not {len(args)}")
        return build(*args)

    def case(self, node: exp.Expression) -> Expr:
        subject = self.read(node.this) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            test = condition if subject is None else Comparison("=", subject, condition)
            branches.append((test, self.read(branch.args["true"])))
        default = node.args.get("default")
        return Case(tuple(branches), None if default is None else self.read(default))

    def if_(self, node: exp.Expression) -> Expr:
        otherwise = node.args.get("false")
        branch = (self.read(node.this), self.read(node.args["true"]))
        return Case((branch,), None if otherwise is None else self.read(otherwise))

    def is_(self, node: exp.Expression) -> Expr:
        value, what = self.read(node.this), node.expression
        if isinstance(what, exp.Null):
            return IsNull(value)
        if isinstance(what, exp.Boolean):
            return Comparison("<=>", value, Literal(bool(what.this), type=T.BOOLEAN))
        raise self.refuse(f"`IS {self.show(what)}` is not offered here")

    def in_(self, node: exp.Expression) -> Expr:
        if node.args.get("query") or node.args.get("field") or node.args.get("unnest") or not node.expressions:
            raise self.refuse("IN takes a list of values here, not a query")
        return In(self.read(node.this), tuple(self.read(o) for o in node.expressions))

    def between(self, node: exp.Expression) -> Expr:
        value = self.read(node.this)
        low, high = self.read(node.args["low"]), self.read(node.args["high"])
        return And((Comparison(">=", value, low), Comparison("<=", value, high)))

    def like(self, node: exp.Expression, escape: str = "\\") -> Expr:
        if isinstance(node.expression, exp.Any | exp.All | exp.Tuple):
            raise self.refuse("LIKE ANY and LIKE ALL are not offered", "combine LIKEs with OR or AND")
        like = Like(self.read(node.this), self.read(node.expression), escape, isinstance(node, exp.ILike))
        # Some versions of sqlglot represent NOT LIKE by a flag, others by a Not around it.
        return Not(like) if node.args.get("negate") else like

    def escape(self, node: exp.Expression) -> Expr:
        word = node.expression
        one = isinstance(word, exp.Literal) and word.is_string and len(word.this) == 1
        if not one or not isinstance(node.this, exp.Like | exp.ILike):
            raise self.refuse("ESCAPE takes one character")
        return self.like(node.this, word.this)

    def hex(self, node: exp.Expression) -> Expr:
        digits = node.this if isinstance(node.this, str) else str(node.this)
        try:
            return Literal(bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)), type=T.BINARY)
        except ValueError:
            raise self.refuse(f"X'{digits}' is not hexadecimal") from None

    def joined(self, node: exp.Expression) -> Expr:
        """Adjacent string literals, which sqlglot turns into a Concat."""
        parts = [self.read(p) for p in node.expressions]
        words = [p.value for p in parts if isinstance(p, Literal) and isinstance(p.value, str)]
        if len(words) != len(parts):
            raise self.refuse("adjacent values")
        return Literal("".join(words), type=T.STRING)


def _is_number(text: str, digits: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= digits


_READERS: dict[type[exp.Expression], Callable[[_Reader, Any], Expr]] = {
    exp.Literal: _Reader.number,
    exp.RawString: lambda r, n: Literal(n.this, type=T.STRING),
    exp.Null: lambda r, n: Literal(None, type=T.NULL),
    exp.Boolean: lambda r, n: Literal(bool(n.this), type=T.BOOLEAN),
    exp.HexString: _Reader.hex,
    exp.Concat: _Reader.joined,
    exp.Not: lambda r, n: Not(r.read(n.this)),
    exp.Neg: _Reader.negative,
    exp.NullSafeNEQ: lambda r, n: Not(Comparison("<=>", r.read(n.this), r.read(n.expression))),
    exp.Cast: _Reader.cast,
    exp.TryCast: _Reader.cast,
    exp.Anonymous: _Reader.call,
    exp.Case: _Reader.case,
    exp.If: _Reader.if_,
    exp.Is: _Reader.is_,
    exp.In: _Reader.in_,
    exp.Between: _Reader.between,
    exp.Like: _Reader.like,
    exp.ILike: _Reader.like,
    exp.Escape: _Reader.escape,
}

_SPECIAL: dict[str, tuple[int, Callable[..., Expr]]] = {
    "if": (3, lambda c, a, b: Case(((c, a),), b)),
    "nvl2": (3, lambda c, a, b: Case(((Not(IsNull(c)), a),), b)),
    "nullif": (2, lambda a, b: Case(((Comparison("=", a, b), Literal(None, type=T.NULL)),), a)),
    "isnull": (1, IsNull),
    "isnotnull": (1, lambda a: Not(IsNull(a))),
    "mod": (2, lambda a, b: Arithmetic("%", a, b)),
    "like": (2, Like),
    "ilike": (2, lambda a, b: Like(a, b, ignore_case=True)),
}
