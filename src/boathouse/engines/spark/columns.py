"""Columns of PySpark as Spark SQL text, and the alias of a DataFrame; classic and Connect.

An operation takes its expressions as text: the library reads what it understands of them to prune files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import types as S

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.expr.tree import Literal

_INFIX: Final = {
    "=": "=", "==": "=", "<=>": "<=>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "+": "+", "-": "-",
    "*": "*", "/": "/", "%": "%", "and": "AND", "or": "OR", "&": "&", "|": "|", "^": "^", "like": "LIKE",
    "ilike": "ILIKE", "rlike": "RLIKE",
}  # fmt: skip
_PREFIX: Final = {"not": "NOT ", "!": "NOT ", "negative": "-", "negate": "-", "~": "~"}
_POSTFIX: Final = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}


def column_text(column: Column) -> str:
    """The expression of a column as Spark SQL text. Raises UnsupportedFeatureError for one that has no such text, as
    Python functions and windows."""
    return _classic(column._jc.node()) if hasattr(column, "_jc") else _connect(column._expr)


def alias_of(frame: DataFrame) -> str | None:
    """The name by which all columns of the frame are qualified: that of `alias`, or of the view that it was read from;
    None if there is none."""
    plan: Any = getattr(frame, "_plan", None)
    if plan is not None:
        return plan._alias if type(plan).__name__ == "SubqueryAlias" else None
    analyzed = frame._jdf.queryExecution().analyzed()
    if _kind(analyzed) == "SubqueryAlias":
        return str(analyzed.alias())
    names = {tuple(_items(a.qualifier())[-1:]) for a in _items(analyzed.output())}
    (name,) = names if len(names) == 1 else ((),)
    return str(name[0]) if name else None


def _call(name: str, args: Sequence[str]) -> str:
    """The call of a function; operators are functions too."""
    low = name.lower()
    if low in _INFIX and len(args) == 2:
        return f"({args[0]} {_INFIX[low]} {args[1]})"
    if low in _PREFIX and len(args) == 1:
        return f"({_PREFIX[low]}{args[0]})"
    if low in _POSTFIX and len(args) == 1:
        return f"({args[0]} {_POSTFIX[low]})"
    if low == "in":
        return f"({args[0]} IN ({', '.join(args[1:])}))" if args[1:] else f"(false AND {args[0]} IS NULL)"
    if low == "when":
        return _case(list(zip(args[::2], args[1::2], strict=False)), args[-1] if len(args) % 2 else None)
    return f"{quote(name)}({', '.join(args)})"


def _case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    cases = "".join(f" WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE{cases}{'' if otherwise is None else f' ELSE {otherwise}'} END"


def _name(parts: Sequence[str]) -> str:
    return ".".join(map(quote, parts))


def _no_text(what: object) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"a Column with {what} has no SQL text", advice="pass the expression as Spark SQL text, or add it to the source"
    )


def _kind(node: Any) -> str:
    """The class of a JVM object, without its package."""
    return str(node.getClass().getName()).rsplit(".", 1)[-1]


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _classic(node: Any) -> str:
    """The text of a node of classic Spark's columns."""
    reader = _CLASSIC.get(_kind(node))
    if reader is None:
        raise _no_text(_kind(node))
    return reader(node)


def _classic_function(node: Any) -> str:
    if node.isDistinct() or node.isInternal():
        raise _no_text(node.sql())
    return _call(node.functionName(), [_classic(a) for a in _items(node.arguments())])


def _classic_literal(node: Any) -> str:
    value = node.value()
    if value is None or isinstance(value, bool | int | float | str | Decimal | bytes):
        return str(Literal.of(value))
    kind = _kind(value)
    if kind in ("Date", "LocalDate"):
        return f"DATE'{value.toString()}'"
    if kind in ("Timestamp", "Instant"):
        return f"TIMESTAMP'{(value.toInstant() if kind == 'Timestamp' else value).toString()}'"
    if kind == "LocalDateTime":
        return f"TIMESTAMP_NTZ'{value.toString()}'"
    raise _no_text(f"a literal of {kind}")


def _classic_cast(node: Any) -> str:
    mode = node.evalMode()
    tried = mode.isDefined() and _kind(mode.get()).startswith("Cast$Try")
    return f"{'TRY_' if tried else ''}CAST({_classic(node.child())} AS {node.dataType().sql()})"


def _classic_case(node: Any) -> str:
    branches = [(_classic(b._1()), _classic(b._2())) for b in _items(node.branches())]
    otherwise = node.otherwise()
    return _case(branches, _classic(otherwise.get()) if otherwise.isDefined() else None)


def _classic_bound(node: Any) -> str:
    """A column that was taken from a frame, `df["a"]`, also a field of a struct."""
    expression = node.expression()
    if _kind(expression) == "Alias":
        expression = expression.child()
    if _kind(expression) not in ("AttributeReference", "GetStructField"):
        raise _no_text(expression.toString())
    return str(expression.sql())


_CLASSIC: Final[dict[str, Callable[[Any], str]]] = {
    "UnresolvedFunction": _classic_function,
    "UnresolvedAttribute": lambda n: _name(_items(n.nameParts())),
    "Literal": _classic_literal,
    "SqlExpression": lambda n: f"({n.expression()})",
    "Alias": lambda n: _classic(n.child()),
    "Cast": _classic_cast,
    "CaseWhenOtherwise": _classic_case,
    "UnresolvedExtractValue": lambda n: f"{_classic(n.child())}[{_classic(n.extraction())}]",
    "ExpressionColumnNode": _classic_bound,
    "LazyExpression": lambda n: _classic(n.child()),
}


def _connect(node: Any) -> str:
    """The text of an expression of Spark Connect."""
    reader = _CONNECT.get(type(node).__name__)
    if reader is None:
        raise _no_text(type(node).__name__)
    return reader(node)


def _connect_function(node: Any) -> str:
    if getattr(node, "_is_distinct", False):
        raise _no_text(node)
    return _call(node._name, [_connect(a) for a in node._args])


def _connect_literal(node: Any) -> str:
    value, type = node._value, node._dataType
    if value is not None and isinstance(type, S.DateType | S.TimestampNTZType):
        value = type.fromInternal(value)
    elif value is not None and isinstance(type, S.TimestampType):
        value = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value)
    if value is not None and not isinstance(value, bool | int | float | str | Decimal | bytes | dt.date):
        raise _no_text(f"a literal of {type.simpleString()}")
    return str(Literal.of(value))


def _connect_cast(node: Any) -> str:
    to = node._data_type if isinstance(node._data_type, str) else node._data_type.simpleString()
    return f"{'TRY_' if node._eval_mode == 'try' else ''}CAST({_connect(node._expr)} AS {to})"


def _connect_case(node: Any) -> str:
    branches = [(_connect(condition), _connect(value)) for condition, value in node._branches]
    return _case(branches, None if node._else_value is None else _connect(node._else_value))


_CONNECT: Final[dict[str, Callable[[Any], str]]] = {
    "UnresolvedFunction": _connect_function,
    "CallFunction": _connect_function,
    "ColumnReference": lambda n: n._unparsed_identifier,
    "LiteralExpression": _connect_literal,
    "SQLExpression": lambda n: f"({n._expr})",
    "ColumnAlias": lambda n: _connect(n._child),
    "CastExpression": _connect_cast,
    "CaseWhen": _connect_case,
    "UnresolvedExtractValue": lambda n: f"{_connect(n._child)}[{_connect(n._extraction)}]",
}
