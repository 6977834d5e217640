"""The types of the three specifications as frozen values.

`str(type)` is Spark's SQL syntax where Spark has the type (`bigint`, `array<string>`), else the specification's name
(`uuid`, `fixed(16)`, `uint32`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Literal

from boathouse.bits.names import Names
from boathouse.errors import ColumnNotFoundError, SchemaError

TimeUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class DataType:
    """Root of all types; compares by value, hashes, pickles. `str(type)` is its name in Spark's SQL."""

    def __str__(self) -> str:
        raise NotImplementedError


class NullType(DataType):
    """Holds only nulls: Delta `void`, Iceberg v3 `unknown`, Arrow `null`. The one value is `NULL`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "void"


class BooleanType(DataType):
    """True or false. The one value is `BOOLEAN`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "boolean"


@dataclass(frozen=True, slots=True)
class IntegerType(DataType):
    """An integer of 8, 16, 32 or 64 bits: `INT8` to `INT64`; unsigned ones exist in Lance only."""

    bits: int
    signed: bool = True

    @property
    def low(self) -> int:
        """The least value: -(2^(bits-1)), 0 if unsigned."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest value: 2^(bits-1) - 1, 2^bits - 1 if unsigned."""
        return self.low + (1 << self.bits) - 1

    def __str__(self) -> str:
        if not self.signed:
            return f"uint{self.bits}"
        return {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}[self.bits]


@dataclass(frozen=True, slots=True)
class FloatType(DataType):
    """IEEE 754 of 16 (Lance only), 32 or 64 bits: `HALF_FLOAT`, `FLOAT`, `DOUBLE`."""

    bits: int

    def __str__(self) -> str:
        return {16: "halffloat", 32: "float", 64: "double"}[self.bits]


@dataclass(frozen=True, slots=True)
class DecimalType(DataType):
    """Exact decimal: precision 1 to 38 digits (Lance: to 76), 0 <= scale <= precision. Others raise SchemaError."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 76 and 0 <= self.scale <= self.precision):
            raise SchemaError(f"decimal({self.precision},{self.scale}) is not a decimal type")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


class StringType(DataType):
    """Text in UTF-8, of any length. The one value is `STRING`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "string"


class BinaryType(DataType):
    """Bytes, of any length. The one value is `BINARY`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "binary"


@dataclass(frozen=True, slots=True)
class GeometryType(BinaryType):
    """Shapes on a plane, as well-known binary (Iceberg only); None is the default reference system, `OGC:CRS84`."""

    crs: str | None = None

    def __str__(self) -> str:
        return "geometry" if self.crs is None else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(BinaryType):
    """Shapes on the globe, as well-known binary (Iceberg only); without an algorithm edges are `spherical`."""

    crs: str | None = None
    algorithm: str | None = None

    def __str__(self) -> str:
        given = ", ".join(v for v in (self.crs, self.algorithm) if v is not None)
        return f"geography({given})" if given else "geography"


@dataclass(frozen=True, slots=True)
class FixedType(DataType):
    """Exactly `length` bytes."""

    length: int

    def __str__(self) -> str:
        return f"fixed({self.length})"


class UUIDType(DataType):
    """16 bytes, big-endian (Iceberg only). The one value is `UUID`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "uuid"


class DateType(DataType):
    """Days since 1970-01-01, without a zone. The one value is `DATE`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "date"


@dataclass(frozen=True, slots=True)
class TimeType(DataType):
    """Time of day without zone, in units since midnight (`s`, `ms`, `us`, `ns`); Iceberg has microseconds."""

    unit: TimeUnit = "us"

    def __str__(self) -> str:
        return {"us": "time(6)", "ns": "time(9)", "ms": "time(3)", "s": "time(0)"}[self.unit]


@dataclass(frozen=True, slots=True)
class TimestampType(DataType):
    """Units since 1970-01-01. `utc=True` is an instant (`TIMESTAMP`; Iceberg timestamptz); False is a wall clock
    (`TIMESTAMP_NTZ`).

    `unit` is `us` in Spark, Delta and Iceberg; `ns` in Iceberg v3; all four (`s`, `ms`, `us`, `ns`) in Lance.
    """

    utc: bool = True
    unit: TimeUnit = "us"

    def __str__(self) -> str:
        name = "timestamp" if self.utc else "timestamp_ntz"
        return name if self.unit == "us" else f"{name}({self.unit})"


@dataclass(frozen=True, slots=True)
class DurationType(DataType):
    """A span of time (Lance only; Spark's day-time interval)."""

    unit: TimeUnit = "us"

    def __str__(self) -> str:
        return f"duration({self.unit})"


class VariantType(DataType):
    """A value of any type in the Variant binary encoding, (metadata, value): see `boathouse.variant`. The one value is
    `VARIANT`."""

    __slots__ = ()

    def __str__(self) -> str:
        return "variant"


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column or nested field.

    `id` is the format's field id where it has one; `doc` is its comment. `metadata` is the format's own, kept verbatim:
    JSON-like values, compared but not hashed.
    """

    name: str
    type: DataType
    nullable: bool = True
    id: int | None = None
    doc: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' not null'}"

    def with_type(self, type: DataType) -> Field:
        """The same field with another type."""
        return replace(self, type=type)


@dataclass(frozen=True)
class StructType(DataType):
    """Named fields, in order; iterating gives them.

    >>> from boathouse.types import STRING, Field, StructType
    >>> print(StructType((Field("street", STRING), Field("city", STRING))))
    struct<street:string,city:string>
    """

    fields: tuple[Field, ...] = ()

    @cached_property
    def places(self) -> Names:
        """Where the names of the fields are: exactly, or ignoring case."""
        return Names(f.name for f in self.fields)

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{f.name}:{f.type}" for f in self.fields) + ">"

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True, slots=True)
class ListType(DataType):
    """A list of elements of one type; `element.name` is what the file calls it (`element` in Delta and Iceberg, `item`
    in Lance)."""

    element: Field

    def __str__(self) -> str:
        return f"array<{self.element.type}>"


@dataclass(frozen=True, slots=True)
class FixedSizeListType(DataType):
    """Exactly `size` elements: a vector (Lance only)."""

    element: Field
    size: int

    def __str__(self) -> str:
        return f"vector<{self.element.type},{self.size}>"


@dataclass(frozen=True, slots=True)
class MapType(DataType):
    """Keys and values of one type each; keys are never null."""

    key: Field
    value: Field

    def __str__(self) -> str:
        return f"map<{self.key.type},{self.value.type}>"


NULL = NullType()
BOOLEAN = BooleanType()
INT8, INT16, INT32, INT64 = (IntegerType(bits) for bits in (8, 16, 32, 64))
HALF_FLOAT, FLOAT, DOUBLE = (FloatType(bits) for bits in (16, 32, 64))
STRING = StringType()
BINARY = BinaryType()
UUID = UUIDType()
DATE = DateType()
TIMESTAMP = TimestampType(utc=True)
TIMESTAMP_NTZ = TimestampType(utc=False)
VARIANT = VariantType()


def field_of_path(field: Field, path: Sequence[str]) -> Field:
    """The field, a struct, with nothing in it but what is at the path; all of it without one."""
    if not path or not isinstance(field.type, StructType):
        return field
    below = (field_of_path(f, path[1:]) for f in field.type.fields if f.name == path[0])
    return field.with_type(StructType(tuple(below)))


def children(type: DataType) -> tuple[Field, ...]:
    """The fields directly below a nested type, in the specifications' order; () for a leaf."""
    match type:
        case StructType(fields):
            return fields
        case ListType(element) | FixedSizeListType(element, _):
            return (element,)
        case MapType(key, value):
            return (key, value)
        case _:
            return ()


def unlabelled(type: DataType) -> DataType:
    """`type` without what differs between formats: names of elements, nullability, ids and comments of fields."""
    match type:
        case StructType(fields):
            return StructType(tuple(Field(f.name, unlabelled(f.type)) for f in fields))
        case ListType(element):
            return ListType(Field("element", unlabelled(element.type)))
        case FixedSizeListType(element, size):
            return FixedSizeListType(Field("item", unlabelled(element.type)), size)
        case MapType(key, value):
            return MapType(Field("key", unlabelled(key.type), False), Field("value", unlabelled(value.type)))
    return type


def without_ids(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields without field ids, at every depth."""
    return tuple(replace(f, id=None, type=_below_without_ids(f.type)) for f in fields)


def _below_without_ids(type: DataType) -> DataType:
    match type:
        case StructType(fields):
            return StructType(without_ids(fields))
        case ListType(element):
            return ListType(without_ids((element,))[0])
        case FixedSizeListType(element, size):
            return FixedSizeListType(without_ids((element,))[0], size)
        case MapType(key, value):
            return MapType(*without_ids((key, value)))
    return type


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, with the schema's own metadata. Printed it is one line a column.

    Schemas are given as DDL text almost everywhere; in Python they are made of fields:

    >>> from boathouse.types import INT64, STRING, Field, Schema
    >>> schema = Schema((Field("id", INT64, nullable=False), Field("city", STRING)))
    >>> print(schema)
    id: bigint not null
    city: string
    >>> schema.names, schema.field("CITY").name
    (('id', 'city'), 'city')
    """

    fields: tuple[Field, ...]
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return "\n".join(str(f) for f in self.fields)

    def __repr__(self) -> str:
        return "\n  ".join(["Schema", *map(str, self.fields)])

    def _repr_html_(self) -> str:
        rows = ((f.name, str(f.type), "" if f.nullable else "not null", f.doc or "") for f in self.fields)
        cells = ("".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) for row in rows)
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(f.name for f in self.fields)

    @cached_property
    def places(self) -> Names:
        """Where the names of the columns are: exactly, or ignoring case."""
        return Names(self.names)

    def field(self, name: str) -> Field:
        """The column called `name`: exactly, else ignoring case if only one matches, as Spark resolves.

        Raises ColumnNotFoundError if there is none, or if several match when case is ignored.
        """
        return self.fields[self.index(name)]

    def index(self, name: str) -> int:
        """The position, from 0, of the column called `name`; found as `field` finds it.

        Raises ColumnNotFoundError if there is none, or if several match when case is ignored.
        """
        hits = self.places.exactly(name)[:1] or self.places.loosely(name)
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise ColumnNotFoundError(
                f"column `{name}` is ambiguous: {', '.join(self.fields[i].name for i in hits)}",
                advice="spell it exactly as in the table",
            )
        raise ColumnNotFoundError(f"no column `{name}`", advice=f"the columns are {', '.join(self.names) or '(none)'}")

    def walk(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Every field with its path, depth first, parents before children."""

        def below(path: tuple[str, ...], f: Field) -> Iterator[tuple[tuple[str, ...], Field]]:
            yield path, f
            for child in children(f.type):
                yield from below((*path, child.name), child)

        for f in self.fields:
            yield from below((f.name,), f)
