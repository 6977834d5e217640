"""Filters of Spark's planner as conditions on the columns of a table: exactly what they say, or what they imply.

Only nodes whose meaning depends on no setting of a session are read, and only where both sides have the type of the
column; any other part is left out, and then prunes nothing. Values are taken as Spark holds them, never from a text
that a time zone or a locale would have made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isnan
from typing import Any, Final

import numpy as np

from boathouse.engines.spark.schema import spark_type
from boathouse.expr.tree import (
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
    all_of,
)
from boathouse.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

_OPERATORS: Final[Mapping[str, ComparisonOp]] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FLIPPED: Final[Mapping[str, ComparisonOp]] = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
MAX_DEPTH: Final = 100
"""Deeper filters are not read: what evaluates conditions calls itself, and Python not much deeper."""
_REPLACED: Final = "\ufffd"
"""What Java shows for bytes that are no text."""


@dataclass(frozen=True, slots=True)
class Values:
    """How the values of a filter's node are asked of Spark, by the node's number: of a literal its plain value, or None
    where the node is not the one with that text; of a set all of its members as texts."""

    plain: Callable[[int, str], int | None]
    members: Callable[[int], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class _Node:
    kind: str
    number: int
    fields: Mapping[str, Any]
    children: tuple[_Node, ...]


def implied(nodes: Sequence[Mapping[str, Any]], columns: Mapping[str, Expr], values: Values) -> Expr | None:
    """What a filter implies for the table's columns, unbound; None if nothing that can be said.

    `nodes` are the filter's, parents first; `columns` are by the names that Spark knows them by, with their types.
    """
    tree = _tree(iter(enumerate(nodes)), MAX_DEPTH)
    return None if tree is None else _Reader(columns, values).implied(tree)


def _tree(nodes: Iterator[tuple[int, Mapping[str, Any]]], depth: int) -> _Node | None:
    """None for a tree that is deeper."""
    number, fields = next(nodes)
    kind = str(fields["class"]).rpartition(".")[2]
    children = []
    for _ in range(int(fields["num-children"])):
        child = _tree(nodes, depth - 1) if depth else None
        if child is None:
            return None
        children.append(child)
    return _Node(kind, number, fields, tuple(children))


@dataclass(frozen=True, slots=True)
class _Reader:
    columns: Mapping[str, Expr]
    values: Values

    def implied(self, node: _Node) -> Expr | None:
        """A condition that is true wherever the filter is."""
        match node.kind:
            case "And":
                found = [e for e in map(self.implied, node.children) if e is not None]
                return all_of(found) if found else None
            case "Or":
                parts = [self.implied(c) for c in node.children]
                known = tuple(p for p in parts if p is not None)
                return Or(known) if len(known) == len(parts) else None
        return self.exact(node)

    def exact(self, node: _Node) -> Expr | None:
        """The filter itself: true, false and null for the same rows."""
        if node.kind in ("And", "Or", "Not"):
            parts = tuple(e for e in map(self.exact, node.children) if e is not None)
            if len(parts) < len(node.children):
                return None
            return Not(parts[0]) if node.kind == "Not" else And(parts) if node.kind == "And" else Or(parts)
        if node.kind in _OPERATORS:
            return self._comparison(_OPERATORS[node.kind], *node.children)
        match node.kind:
            case "IsNull" | "IsNotNull":
                value = self._column(node.children[0])
                return None if value is None else IsNull(value) if node.kind == "IsNull" else Not(IsNull(value))
            case "In":
                column = self._column(node.children[0])
                if column is None:
                    return None
                return _among(column, [_value(c, column, self.values) for c in node.children[1:]])
            case "InSet":
                column, texts = self._column(node.children[0]), self.values.members(node.number)
                return None if column is None or texts is None else _among(column, [_member(t, column) for t in texts])
            case "StartsWith":
                text, prefix = node.children
                return self._with_literal(text, prefix, lambda v, given: Function("startswith", (v, given)))
            case "AttributeReference":
                value = self._column(node)
                return value if value is not None and isinstance(value.type, BooleanType) else None
        return None

    def _comparison(self, op: ComparisonOp, left: _Node, right: _Node) -> Expr | None:
        if left.kind == "Literal":
            left, right, op = right, left, _FLIPPED[op]
        return self._with_literal(left, right, lambda column, value: Comparison(op, column, value))

    def _with_literal(self, left: _Node, right: _Node, made: Callable[[Expr, Literal], Expr]) -> Expr | None:
        """What is made of a column and of a literal of its type."""
        column = self._column(left)
        value = None if column is None else _value(right, column, self.values)
        return None if column is None or value is None else made(column, value)

    def _column(self, node: _Node) -> Expr | None:
        """The column that the node is, or the float that `floats.opaque` hides from readers of files."""
        match node.kind:
            case "AttributeReference":
                found = self.columns.get(str(node.fields["name"]))
                return found if found is not None and _of_type(node.fields.get("dataType"), found.type) else None
            case "NaNvl":
                hidden, other = node.children
                found = self._column(hidden)
                nan = other.kind == "Literal" and other.fields.get("value") == "NaN"
                return found if nan and found is not None and isinstance(found.type, FloatType) else None
            case "GetStructField":
                whole, inner = self._column(node.children[0]), _inner(node)
                if not isinstance(whole, Column) or not isinstance(whole.type, StructType) or inner is None:
                    return None
                field = next((f for f in whole.type.fields if f.name == inner["name"]), None)
                if field is None or not _of_type(inner["type"], field.type):
                    return None
                return Column((*whole.path, field.name), type=field.type)
        return None


def _among(column: Expr, values: Sequence[Literal | None]) -> Expr | None:
    known = tuple(v for v in values if v is not None)
    return In(column, known) if known and len(known) == len(values) else None


def _inner(node: _Node) -> Mapping[str, Any] | None:
    """The field that the node takes of its struct, as Spark describes it; the numbers of fields are those of what Spark
    reads, which leaves out fields that a query does not need."""
    below, ordinal = node.children[0], node.fields.get("ordinal")
    if below.kind == "GetStructField":
        found = _inner(below)
        whole = None if found is None else found["type"]
    else:
        whole = below.fields.get("dataType")
    if not isinstance(whole, dict) or whole.get("type") != "struct" or not isinstance(ordinal, int):
        return None
    field: Mapping[str, Any] = whole["fields"][ordinal]
    return field


def _of_type(found: Any, type: DataType | None) -> bool:
    """Whether a type of Spark's is what Spark reads for the table's; of structs each field is asked by itself."""
    if isinstance(type, StructType):
        return isinstance(found, dict) and found.get("type") == "struct"
    return type is not None and _plain(type) and found == spark_type(type, "").jsonValue()


def _plain(type: DataType) -> bool:
    match type:
        case BooleanType() | IntegerType(_, True) | FloatType(32 | 64) | DecimalType() | StringType() | DateType():
            return True
        case TimestampType(_, "us"):
            return True
    return False


def _value(node: _Node, column: Expr, values: Values) -> Literal | None:
    """A literal of the column's type."""
    type = column.type
    if node.kind != "Literal" or isinstance(type, StructType) or not _of_type(node.fields.get("dataType"), type):
        return None
    text = node.fields.get("value")
    if text is None:
        return Literal(None, type=type)
    if isinstance(type, DateType | TimestampType):
        plain = values.plain(node.number, str(text))
        return None if plain is None else Literal(plain, type=type)
    return _member(str(text), column)


def _member(text: str, column: Expr) -> Literal | None:
    """A value of the column's type as Java prints what Spark holds: days, microseconds, ..."""
    type = column.type
    match type:
        case BooleanType():
            return Literal(text == "true", type=type) if text in ("true", "false") else None
        case IntegerType() | DateType() | TimestampType():
            return Literal(int(text), type=type) if text.lstrip("-").isdecimal() else None
        case FloatType(bits):
            try:
                value = float(np.float32(text) if bits == 32 else np.float64(text))
            except ValueError:
                return None
            return Literal(value, type=type) if not isnan(value) or text == "NaN" else None
        case DecimalType():
            try:
                return Literal(Decimal(text), type=type)
            except InvalidOperation:
                return None
        case StringType():
            return None if _REPLACED in text else Literal(text, type=type)
    return None
