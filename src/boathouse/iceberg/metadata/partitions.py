"""Partition specs as JSON, transforms by name, and folder names from partition values."""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import quote_plus

from boathouse import types as T
from boathouse.bits.floats import format_float
from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedTypeError
from boathouse.iceberg.metadata.schemas import by_id
from boathouse.types.partitioning import BUCKETABLE

FIRST_FIELD_ID = 1000
_APART = 1 << 20
_PLAIN = frozenset({"identity", "year", "month", "day", "hour", "void"})
_SIZED = re.compile(r"(bucket|truncate)\[(\d{1,10})\]")


def parse_transform(text: str) -> T.Transform:
    """A transform by its name in the specification; any other string is `unknown`, kept unchanged."""
    if text in _PLAIN:
        return T.Transform(text)  # type: ignore[arg-type]
    if (m := _SIZED.fullmatch(text)) and 0 < int(m[2]) < 1 << 31:
        return T.Transform(m[1], int(m[2]))  # type: ignore[arg-type]
    return T.Transform("unknown", text=text)


def parse_specs(
    documents: Iterable[Mapping[str, Any]], schemas: Sequence[T.Schema], current: int, where: str | None = None
) -> T.Partitioning:
    """All specs of a table. Sources are looked up in `schemas`, the current one first: a dropped column still
    partitions old files. Raises CorruptTableError."""
    known: dict[int, tuple[tuple[str, ...], T.Field]] = {}
    for schema in reversed(schemas):
        known.update(by_id(schema))
    specs = [_spec(d, known, where) for d in documents]
    return T.Partitioning(tuple(_apart(specs)), current)


def _apart(specs: Sequence[T.PartitionSpec]) -> list[T.PartitionSpec]:
    """The specs with one meaning for each field id: `void`, which has no values, follows the others in type.

    Version 1 assigned ids by position, so specs may have one id for values of two columns or types: the later ones get
    ids of their own, which do not depend on specs that are added.
    """
    first: dict[int, T.PartitionField] = {}
    for f in (f for spec in specs for f in spec if f.transform.name != "void"):
        first.setdefault(f.id, f)
    return [replace(spec, fields=tuple(_of_one_meaning(f, spec, first) for f in spec)) for spec in specs]


def _of_one_meaning(
    field: T.PartitionField, spec: T.PartitionSpec, first: Mapping[int, T.PartitionField]
) -> T.PartitionField:
    other = first.get(field.id, field)
    if field.transform.name == "void":
        return replace(field, type=other.type)
    if (field.source_id, field.transform, field.type) == (other.source_id, other.transform, other.type):
        return field
    return replace(field, id=field.id + (spec.id + 1) * _APART, recorded=field.id)


def _spec(
    document: Mapping[str, Any], known: Mapping[int, tuple[tuple[str, ...], T.Field]], where: str | None
) -> T.PartitionSpec:
    fields = [_field(f, known, FIRST_FIELD_ID + i, where) for i, f in enumerate(document["fields"])]
    return T.PartitionSpec(int(document["spec-id"]), tuple(fields))


def _field(
    document: Mapping[str, Any], known: Mapping[int, Any], default_id: int, where: str | None
) -> T.PartitionField:
    transform = parse_transform(document["transform"])
    id = default_id if document.get("field-id") is None else int(document["field-id"])
    if document.get("source-id") is None:
        # `source-ids`: several arguments, which no transform of the specification accepts yet.
        return T.PartitionField(document["name"], (), T.Transform("unknown", text=document["transform"]), id, T.STRING)
    source_id = int(document["source-id"])
    if source_id not in known:
        if transform.name in ("void", "unknown"):
            return T.PartitionField(document["name"], (), transform, id, T.STRING, source_id)
        raise CorruptTableError(
            f"partition field `{document['name']}` comes from field {source_id}, which no schema has", where=where
        )
    path, field = known[source_id]
    if transform.name != "unknown" and not accepts(transform, field.type):
        raise CorruptTableError(
            f"partition field `{document['name']}` is {transform} of `{'.'.join(path)}`, which is {field.type}",
            where=where,
        )
    type = T.STRING if transform.name == "unknown" else transform.result(field.type)
    return T.PartitionField(document["name"], path, transform, id, type, source_id)


def spec_fields_json(spec: T.PartitionSpec) -> list[dict[str, Any]]:
    """The `fields` array of a spec: what manifests hold under `partition-spec`."""
    return [
        {"source-id": f.source_id, "field-id": f.recorded_id, "name": f.name, "transform": str(f.transform)}
        for f in spec
    ]


def bind_spec(
    fields: Sequence[T.PartitionField], schema: T.Schema, spec_id: int, last_id: int
) -> tuple[T.PartitionSpec, int]:
    """A new spec for a schema that has ids, and the last assigned partition field id.

    Raises InvalidArgumentError for a missing source, UnsupportedTypeError for a transform that does not accept its
    source.
    """
    paths = dict(schema.walk())
    bound: list[T.PartitionField] = []
    taken: dict[str, T.PartitionField] = {}
    for f in fields:
        source = paths.get(f.source)
        if source is None:
            raise InvalidArgumentError(
                f"partition field `{f.name}` comes from `{'.'.join(f.source)}`, which is not a column"
            )
        check_source(f.transform, f.source, schema)
        if f.name in taken:
            raise InvalidArgumentError(f"two partition fields are called `{f.name}`")
        if f.name in schema.names and (f.transform.name != "identity" or f.source != (f.name,)):
            raise InvalidArgumentError(
                f"partition field `{f.name}` has the name of a different column", advice="give it another name"
            )
        last_id += 1
        taken[f.name] = T.PartitionField(
            f.name, f.source, f.transform, last_id, f.transform.result(source.type), source.id
        )
        bound.append(taken[f.name])
    return T.PartitionSpec(spec_id, tuple(bound)), last_id


def check_source(transform: T.Transform, source: tuple[str, ...], schema: T.Schema) -> None:
    """Raises UnsupportedTypeError if the transform does not accept the column at `source`."""
    fields = schema.fields
    type: T.DataType | None = None
    for i, name in enumerate(source):
        found = next((f for f in fields if f.name == name), None)
        if found is None:
            raise InvalidArgumentError(f"`{'.'.join(source)}` is not a column")
        type = found.type
        if isinstance(type, T.ListType | T.MapType):
            raise UnsupportedTypeError(f"`{'.'.join(source[: i + 1])}` is {type}, which cannot partition a table")
        fields = type.fields if isinstance(type, T.StructType) else ()
    if type is None or isinstance(type, T.StructType) or not accepts(transform, type):
        raise UnsupportedTypeError(f"transform {transform} does not accept `{'.'.join(source)}`, which is {type}")


def accepts(transform: T.Transform, type: T.DataType) -> bool:
    """Whether the specification defines the transform on columns of this type."""
    if transform.name != "void" and isinstance(type, T.GeometryType | T.GeographyType):
        return False
    match transform.name:
        case "void":
            return True
        case "identity":
            return not isinstance(type, T.StructType | T.ListType | T.MapType | T.VariantType)
        case "year" | "month" | "day":
            return isinstance(type, T.DateType | T.TimestampType)
        case "hour":
            return isinstance(type, T.TimestampType)
        case "truncate":
            return isinstance(type, T.IntegerType | T.DecimalType | T.StringType | T.BinaryType)
        case "bucket":
            return isinstance(type, BUCKETABLE)
    return False


def partition_path(spec: T.PartitionSpec, values: Mapping[int, object]) -> str:
    """`name=value/...` with URL-encoded parts; "" if unpartitioned. Never parsed back."""
    parts = [f"{_encode(f.name)}={_encode(human(f, values.get(f.id)))}" for f in spec if f.transform.name != "void"]
    return "/".join(parts)


def _encode(text: str) -> str:
    return quote_plus(text, safe="*").replace("~", "%7E")


def human(field: T.PartitionField, value: object) -> str:
    """A partition value as the specification's readable string: 2017-12-01-10 for an hour; binary as base64."""
    if value is None:
        return "null"
    match field.transform.name:
        case "year":
            return f"{1970 + int(value):04d}"  # type: ignore[call-overload]
        case "month":
            years, month = divmod(int(value), 12)  # type: ignore[call-overload]
            return f"{1970 + years:04d}-{month + 1:02d}"
        case "hour":
            days, hour = divmod(int(value), 24)  # type: ignore[call-overload]
            return f"{_date(days)}-{hour:02d}"
    if field.type == T.DATE and isinstance(value, int):
        return _date(value)
    return _plain(field.type, value)


def _date(days: int) -> str:
    return (dt.date(1970, 1, 1) + dt.timedelta(days)).isoformat()


def _plain(type: T.DataType, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes() if isinstance(type, T.UUIDType):
            h = value.hex()
            return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="auto")
            return text + "+00:00" if isinstance(type, T.TimestampType) and type.utc else text
        case Decimal():
            return format(value, "f")
        case float() if isinstance(type, T.FloatType):
            return format_float(value, type.bits)
    return str(value)


def unknown_transforms(spec: T.PartitionSpec) -> list[str]:
    """The transforms of a spec that this library cannot compute."""
    return [str(f.transform) for f in spec if f.transform.name == "unknown"]
