"""The schema of a variant, or of many: `OBJECT<a: BIGINT, b: ARRAY<STRING>>`, as Spark's `schema_of_variant` prints it.

Integers of every width are BIGINT, decimals are as narrow as their digits without trailing zeros. Merging finds the
narrowest type that holds both, VARIANT where there is none; types that Spark cannot read (UUID beside another, times
of day, nanoseconds) merge with themselves only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from boathouse import types as T
from boathouse.variant.decode import kind_at, read_decimal
from boathouse.variant.primitives import DECIMALS, Family, Kind
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

_TIMES = (T.DATE, T.TIMESTAMP_NTZ, T.TIMESTAMP)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True, slots=True, eq=False)
class VariantSchema:
    """What is in a variant, or in many, by path; printed it is what Spark's `schema_of_variant` gives: `OBJECT<a:
    BIGINT>`.

    `type` has a StructType for objects (fields by name, all nullable), ListType for arrays, NULL where nothing but
    nulls were seen, VARIANT where types differ. Two schemas are equal if they print the same.
    """

    type: T.DataType

    def __str__(self) -> str:
        return "".join(_spell(self.type))

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, VariantSchema) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


class SchemaBuilder:
    """The schema of everything that was added, in any order. Holds one node for each path seen."""

    def __init__(self) -> None:
        self.root = Shape()

    def add(self, v: VariantView) -> SchemaBuilder:
        """Raises MalformedVariant, UnsupportedFeatureError as a full reading does."""
        data, (pos, end) = v.buffer, v.span
        trail: list[Shape] = []
        for step in walk(data, pos, end, v.dictionary):
            if step.event is Event.END:
                trail.pop()
                continue
            shape = trail[-1].child(step.key) if trail else self.root
            if step.event is Event.SCALAR:
                shape.add(_scalar_type(data, step.pos, step.end))
            else:
                shape.open(step.event is Event.OBJECT)
                trail.append(shape)
        return self

    def add_schema(self, schema: VariantSchema) -> SchemaBuilder:
        """Adds everything that another schema was made from."""
        work: list[tuple[Shape, T.DataType]] = [(self.root, schema.type)]
        while work:
            shape, type = work.pop()
            match type:
                case T.StructType(fields):
                    shape.open(True)
                    work += [(shape.child(f.name), f.type) for f in fields]
                case T.ListType(element):
                    shape.open(False)
                    work.append((shape.child(0), element.type))
                case _:
                    shape.add(type)
        return self

    def finish(self) -> VariantSchema:
        return VariantSchema(self.root.freeze())


def schema_of(v: VariantView) -> VariantSchema:
    """The schema of one variant. Raises MalformedVariant, UnsupportedFeatureError."""
    return SchemaBuilder().add(v).finish()


def merge(schemas: Iterable[VariantSchema]) -> VariantSchema:
    """The schema that holds all of them, as Spark's `schema_of_variant_agg`; VOID for none.

    >>> of = lambda text: bh.variant.Variant.from_json(text).schema_of()
    >>> print(bh.variant.merge([of('{"a": 1}'), of('{"a": 2.5, "b": "x"}')]))
    OBJECT<a: DECIMAL(21,1), b: STRING>
    """
    return reduce(SchemaBuilder.add_schema, schemas, SchemaBuilder()).finish()


class Shape:
    """What was seen at one path: a scalar type, fields or elements; VARIANT once two of these have been seen."""

    __slots__ = ("element", "fields", "leaf")

    def __init__(self) -> None:
        self.leaf: T.DataType = T.NULL
        self.fields: dict[str, Shape] | None = None
        self.element: Shape | None = None

    def add(self, type: T.DataType) -> None:
        if isinstance(type, T.NullType):
            return
        if self.fields is not None or self.element is not None:
            self._mix()
        else:
            self.leaf = common_type(self.leaf, type)

    def open(self, is_object: bool) -> None:
        if self.leaf is not T.NULL or (self.element if is_object else self.fields) is not None:
            self._mix()
        elif is_object:
            self.fields = {} if self.fields is None else self.fields
        elif self.element is None:
            self.element = Shape()

    def _mix(self) -> None:
        self.leaf, self.fields, self.element = T.VARIANT, None, None

    def child(self, key: str | int | None) -> Shape:
        """The node of a field or of the elements; a discarded one if this is VARIANT already."""
        if isinstance(key, str) and self.fields is not None:
            return self.fields.setdefault(key, Shape())
        return self.element if isinstance(key, int) and self.element is not None else Shape()

    def freeze(self) -> T.DataType:
        """Children before their parents, without recursion."""
        order: list[Shape] = [self]
        for shape in order:
            order.extend(shape.fields.values() if shape.fields else ())
            order.extend([shape.element] if shape.element else ())
        types: dict[int, T.DataType] = {}
        for shape in reversed(order):
            if shape.fields is not None:
                found = sorted(shape.fields.items())
                types[id(shape)] = T.StructType(tuple(T.Field(name, types[id(child)]) for name, child in found))
            elif shape.element is not None:
                types[id(shape)] = T.ListType(T.Field("element", types[id(shape.element)]))
            else:
                types[id(shape)] = shape.leaf
        return types[id(self)]


def common_type(a: T.DataType, b: T.DataType) -> T.DataType:
    """The narrowest type that holds two scalar types, as Spark merges them; VARIANT if there is none."""
    if a == b or isinstance(b, T.NullType):
        return a
    if isinstance(a, T.NullType):
        return b
    if a in _TIMES and b in _TIMES:
        return max(a, b, key=_TIMES.index)
    numbers = [_as_decimal(t) for t in (a, b)]
    if a in (T.FLOAT, T.DOUBLE) or b in (T.FLOAT, T.DOUBLE):
        kinds = {a, b}
        if not all(t in (T.FLOAT, T.DOUBLE) or d is not None for t, d in zip((a, b), numbers, strict=True)):
            return T.VARIANT
        return T.FLOAT if kinds == {T.FLOAT, T.INT64} else T.DOUBLE
    left, right = numbers
    if left is None or right is None:
        return T.VARIANT
    scale = max(left.scale, right.scale)
    precision = scale + max(left.precision - left.scale, right.precision - right.scale)
    return T.DecimalType(precision, scale) if precision <= 38 else T.DOUBLE


def _as_decimal(type: T.DataType) -> T.DecimalType | None:
    return T.DecimalType(20, 0) if type == T.INT64 else type if isinstance(type, T.DecimalType) else None


def _scalar_type(data: bytes, pos: int, end: int) -> T.DataType:
    kind = kind_at(data, pos)
    assert kind is not None
    return narrowest_decimal(*read_decimal(data, pos, end)) if kind in DECIMALS else type_of(kind)


def type_of(kind: Kind) -> T.DataType:
    """The type of the values of a primitive type that is not a decimal."""
    return T.INT64 if kind.family is Family.INTEGER else kind.type or T.NULL


def narrowest_decimal(unscaled: int, scale: int) -> T.DecimalType:
    """The type of a decimal without trailing zeros in the fraction."""
    digits = str(abs(unscaled))
    zeros = min(len(digits) - len(digits.rstrip("0")), scale) if unscaled else scale
    scale -= zeros
    return T.DecimalType(max(len(digits) - zeros if unscaled else 1, scale, 1), scale)


def quote_name(name: str) -> str:
    """A field's name as Spark prints it: between backticks unless it is a plain word."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _spell(type: T.DataType) -> Iterator[str]:
    work: list[T.DataType | str] = [type]
    while work:
        item = work.pop()
        match item:
            case str():
                yield item
            case T.StructType(fields):
                work.append(">")
                for i in reversed(range(len(fields))):
                    work += [fields[i].type, f"{', ' if i else ''}{quote_name(fields[i].name)}: "]
                yield "OBJECT<"
            case T.ListType(element):
                work += [">", element.type]
                yield "ARRAY<"
            case _:
                yield str(item).upper()
