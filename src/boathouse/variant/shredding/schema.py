"""Shredding schemas: which parts of a variant column are in typed Parquet columns (VariantShredding.md).

A schema is a tree, never a list of dotted paths: names of fields may hold dots or be empty. One node represents one
pair `value`, `typed_value`:

    ShreddingSchema()                                       value only: any variant
    ShreddingSchema(INT64)                                  a primitive, of exactly this Variant type
    ShreddingSchema(ShreddedArray(element))                 a 3-level list, its element a required group
    ShreddingSchema(ShreddedObject((("a", node), ...)))     a group of required groups
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type as plain_arrow_type
from boathouse.errors import InvalidArgumentError, SchemaError, UnsupportedTypeError
from boathouse.types.text import parse_type
from boathouse.variant.metadata import utf8

MAX_DEPTH = 100
"""Nested typed columns below the root; Spark and Iceberg write 50 at most."""
_REQUIRED = "a variant is shredded as boolean, tinyint to bigint, float, double, decimal up to 38 digits, date, time(6), timestamp and timestamp_ntz of us or ns, binary, string, uuid, array or struct"  # noqa: E501


@dataclass(frozen=True, slots=True)
class ShreddedObject:
    """The typed part of an object: a group with a required group for each field, in the file's order.

    Raises SchemaError without fields, or with a field twice.
    """

    fields: tuple[tuple[str, ShreddingSchema], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.fields]
        for name in names:
            utf8(name)
        if not names:
            raise SchemaError("an object is shredded into at least one field: Parquet has no empty groups")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise SchemaError(f"the field `{twice}` occurs twice in a shredded object")

    def field(self, name: str) -> ShreddingSchema | None:
        """The node of the field of exactly this name."""
        return next((node for own, node in self.fields if own == name), None)


@dataclass(frozen=True, slots=True)
class ShreddedArray:
    """The typed part of an array: a list whose element is a required group."""

    element: ShreddingSchema


@dataclass(frozen=True, slots=True)
class ShreddingSchema:
    """Which parts of a column of variants are in typed columns: a tree with a node for each pair `value`, `typed_value`
    (VariantShredding.md).

    `typed` is the type of `typed_value`, None if there is no such column. `has_value` is False in files that lack the
    `value` column (legal below arrays, tolerated elsewhere). `depth` is how many levels of objects and arrays are
    nested. `shredding_schema` makes one from text.

    Raises UnsupportedTypeError for a primitive that is not in the specification's table, SchemaError for a tree that no
    file can have.
    """

    typed: T.DataType | ShreddedObject | ShreddedArray | None = None
    has_value: bool = True
    depth: int = field(init=False, repr=False, compare=False, default=0)
    """How many levels of objects and arrays are nested in it."""

    def __post_init__(self) -> None:
        if isinstance(self.typed, T.DataType):
            object.__setattr__(self, "typed", _check_primitive(self.typed, ""))
        elif self.typed is None and not self.has_value:
            raise SchemaError("a shredded value needs one of the columns `value` and `typed_value`")
        elif self.typed is not None:
            if not isinstance(self.typed, ShreddedArray | ShreddedObject):
                raise SchemaError(
                    f"{self.typed!r} is not a typed column", advice="parse a string with shredding_schema()"
                )
            below = (
                [self.typed.element]
                if isinstance(self.typed, ShreddedArray)
                else [node for _, node in self.typed.fields]
            )
            object.__setattr__(self, "depth", 1 + max(node.depth for node in below))
            _check_depth(self.depth, "$")

    def __str__(self) -> str:
        """The type in Spark's SQL syntax, `variant` where nothing is typed."""
        return str(self.data_type)

    @property
    def data_type(self) -> T.DataType:
        """The same tree as a type, VARIANT where nothing is typed."""
        match self.typed:
            case None:
                return T.VariantType()
            case ShreddedArray(element):
                return T.ListType(T.Field("element", element.data_type))
            case ShreddedObject(fields):
                return T.StructType(tuple(T.Field(name, node.data_type) for name, node in fields))
            case primitive:
                return primitive

    @property
    def is_shredded(self) -> bool:
        """Whether anything is typed."""
        return self.typed is not None

    def leaves(self) -> Iterator[tuple[str, ...]]:
        """The paths of the leaf columns below the group, as `path_in_schema` splits them, without `metadata`."""
        if self.has_value:
            yield ("value",)
        match self.typed:
            case None:
                return
            case ShreddedArray(element):
                for path in element.leaves():
                    yield ("typed_value", "list", "element", *path)
            case ShreddedObject(fields):
                for name, node in fields:
                    for path in node.leaves():
                        yield ("typed_value", name, *path)
            case _:
                yield ("typed_value",)


def shredding_schema(source: ShreddingSchema | T.DataType | pa.DataType | str) -> ShreddingSchema:
    """A schema from a schema, a type, Spark's SQL of one (`struct<id:bigint,tags:array<string>>`), or the Arrow type of
    a shredded Parquet group (`struct<metadata, value, typed_value>`).

    In types and SQL `variant` and `void` mean: not typed. Raises UnsupportedTypeError naming the path and the type,
    SchemaError for what is not a shredding schema.

    >>> print(bh.variant.shredding_schema("struct<id:bigint,rest:variant>"))
    struct<id:bigint,rest:variant>
    """
    if isinstance(source, ShreddingSchema):
        return source
    if isinstance(source, str):
        return from_data_type(parse_type(source))
    if isinstance(source, T.DataType):
        return from_data_type(source)
    if not isinstance(source, pa.DataType):
        raise InvalidArgumentError(
            f"{source!r} is not a shredding schema", advice="pass a type, or its SQL: struct<id:bigint>"
        )
    return from_storage(source)


def from_data_type(type: T.DataType, where: str = "$", depth: int = 0) -> ShreddingSchema:
    """The schema that types everything in `type`; see `shredding_schema`."""
    _check_depth(depth, where)
    match type:
        case T.VariantType() | T.NullType():
            return ShreddingSchema()
        case T.StructType(fields):
            below = tuple((f.name, from_data_type(f.type, f"{where}.{f.name}", depth + 1)) for f in fields)
            return ShreddingSchema(ShreddedObject(below))
        case T.ListType(element):
            return ShreddingSchema(ShreddedArray(from_data_type(element.type, f"{where}[*]", depth + 1)))
    return ShreddingSchema(_check_primitive(type, where))


def from_storage(type: pa.DataType) -> ShreddingSchema:
    """The schema of a Parquet group of a variant, from the Arrow type it is read as: children by name, any order."""
    storage = type.storage_type if isinstance(type, pa.BaseExtensionType) else type
    children = _group(storage, "$", {"metadata", "value", "typed_value"})
    if "metadata" not in children:
        raise SchemaError(f"{type} is not a variant: it has no `metadata`")
    return _from_group(children, "$", 0)


def storage_type(schema: ShreddingSchema) -> pa.DataType:
    """The Arrow struct that holds a column shredded by `schema`, and from which it is written.

    `metadata` required; `value` required only where nothing is typed; groups of fields and of elements required.
    """
    metadata = pa.field("metadata", pa.binary(), False)
    if not schema.is_shredded:
        return pa.struct([metadata, pa.field("value", pa.binary(), False)])
    return pa.struct([metadata, *group_fields(schema)])


def group_fields(schema: ShreddingSchema) -> list[pa.Field]:
    """`value` and `typed_value` of one node."""
    fields = [pa.field("value", pa.binary(), True)] if schema.has_value else []
    match schema.typed:
        case None:
            return fields
        case ShreddedArray(element):
            typed = pa.list_(pa.field("element", pa.struct(group_fields(element)), False))
        case ShreddedObject(children):
            typed = pa.struct([pa.field(name, pa.struct(group_fields(node)), False) for name, node in children])
        case primitive:
            typed = pa.uuid() if isinstance(primitive, T.UUIDType) else plain_arrow_type(primitive)
    return [*fields, pa.field("typed_value", typed, True)]


def group_schema(group: Mapping[str, pa.Array]) -> ShreddingSchema:
    """The schema of one pair from its arrays."""
    return _from_group({name: pa.field(name, array.type) for name, array in group.items()}, "$", 0)


def _from_group(children: dict[str, pa.Field], where: str, depth: int) -> ShreddingSchema:
    _check_depth(depth, where)
    if "value" in children and not _is_binary(children["value"].type):
        raise SchemaError(f"`value` of {where} is {children['value'].type}, not binary")
    if "typed_value" not in children:
        if "value" not in children:
            raise SchemaError(f"{where} has neither `value` nor `typed_value`")
        return ShreddingSchema()
    type = children["typed_value"].type
    has_value = "value" in children
    t = pa.types
    if t.is_struct(type):
        fields = tuple((f.name, _from_below(f.type, f"{where}.{f.name}", depth)) for f in type)
        return ShreddingSchema(ShreddedObject(fields), has_value)
    if t.is_list(type) or t.is_large_list(type) or t.is_list_view(type) or t.is_large_list_view(type):
        return ShreddingSchema(ShreddedArray(_from_below(type.value_type, f"{where}[*]", depth)), has_value)
    return ShreddingSchema(_check_primitive(_primitive(type, where), where), has_value)


def _from_below(type: pa.DataType, where: str, depth: int) -> ShreddingSchema:
    return _from_group(_group(type, where, {"value", "typed_value"}), where, depth + 1)


def _group(type: pa.DataType, where: str, names: set[str]) -> dict[str, pa.Field]:
    if not pa.types.is_struct(type):
        raise SchemaError(f"{where} is {type}, not a group of {' and '.join(sorted(names))}")
    children = {f.name: f for f in type}
    if len(children) < len(list(type)) or not children.keys() <= names:
        raise SchemaError(f"{where} is {type}: a group of a variant holds only {' and '.join(sorted(names))}")
    return children


def _is_binary(type: pa.DataType) -> bool:
    t = pa.types
    if t.is_dictionary(type):
        type = type.value_type
    return bool(t.is_binary(type) or t.is_large_binary(type) or t.is_binary_view(type))


def _primitive(type: pa.DataType, where: str) -> T.DataType:
    """The primitive type of a leaf read from Parquet, not yet checked."""
    t = pa.types
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name != "arrow.uuid":
            raise UnsupportedTypeError(_refusal(type.extension_name, where), advice=_REQUIRED)
        return T.UUID
    if t.is_dictionary(type):
        return _primitive(type.value_type, where)
    if t.is_boolean(type):
        return T.BooleanType()
    if t.is_integer(type):
        return T.IntegerType(type.bit_width, t.is_signed_integer(type))
    if t.is_floating(type):
        return T.FloatType(type.bit_width)
    if t.is_decimal(type) and 0 <= type.scale <= type.precision <= 38:
        return T.DecimalType(type.precision, type.scale)
    if t.is_string(type) or t.is_large_string(type) or t.is_string_view(type):
        return T.StringType()
    if _is_binary(type):
        return T.BinaryType()
    if t.is_fixed_size_binary(type):
        return T.FixedType(type.byte_width)
    if t.is_date32(type):
        return T.DateType()
    if t.is_time(type):
        return T.TimeType(type.unit)
    if t.is_timestamp(type):
        return T.TimestampType(type.tz is not None, type.unit)
    raise UnsupportedTypeError(_refusal(type, where), advice=_REQUIRED)


def _check_primitive(type: T.DataType, where: str) -> T.DataType:
    match type:
        case T.BooleanType() | T.DateType() | T.StringType() | T.BinaryType() | T.UUIDType() | T.TimeType("us"):
            return type
        case T.IntegerType(_, True) | T.FloatType(32 | 64) | T.TimestampType(_, "us" | "ns"):
            return type
        case T.DecimalType(precision, _) if precision <= 38:
            return type
        case T.FixedType(16):
            return T.UUID
    raise UnsupportedTypeError(_refusal(type, where), advice=_REQUIRED)


def _refusal(type: object, where: str) -> str:
    return f"{f'{where}: ' if where else ''}{type} is not a type of a shredded column"


def _check_depth(depth: int, where: str) -> None:
    if depth > MAX_DEPTH:
        raise SchemaError(f"a shredding schema deeper than {MAX_DEPTH} levels, at {where[:80]}")
