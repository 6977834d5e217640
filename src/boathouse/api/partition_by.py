"""Parses `partition_by=`: column names, or transforms such as `month(ts)` and `bucket(16, id)`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from boathouse.api.arguments import names
from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import dotted
from boathouse.types import Field, PartitionField, Schema, SortField, StructType, Transform

_TRANSFORM = re.compile(r"^\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^,()]+?)(?:\s*,\s*(\d+))?\s*\)\s*$")
_SORTED = re.compile(r"^\s*(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?\s*$", re.I | re.S)
_NAMES = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "year": "year", "month": "month",
    "day": "day", "hour": "hour", "date": "day", "bucket": "bucket", "truncate": "truncate",
    "identity": "identity", "void": "void",
}  # fmt: skip
FIRST_ID = 1000


def partition_fields(
    by: str | Sequence[str] | None, schema: Schema, named: Mapping[str, str] | None = None
) -> tuple[PartitionField, ...]:
    """The partition fields of `by` (None: none), with ids from 1000, then those that are `named`. Raises
    InvalidArgumentError, ColumnNotFoundError."""
    texts = () if by is None else names("partition_by", [by] if isinstance(by, str) else by)
    found = [_field(text, schema, FIRST_ID + i) for i, text in enumerate(texts)]
    for name, text in (named or {}).items():
        found.append(replace(_field(text, schema, FIRST_ID + len(found)), name=name))
    return tuple(found)


def partition_sql(field: PartitionField) -> str:
    """The field as `partition_fields` reads it: `day`, `bucket(16, s.id)`."""
    name, number = dotted(field.source), field.transform.parameter
    if field.transform.name == "identity":
        return name
    return f"{field.transform.name}({'' if number is None else f'{number}, '}{name})"


def clustering_path(schema: Schema, text: str) -> tuple[str, ...]:
    """The path of a column, or of a field of a struct. Raises ColumnNotFoundError."""
    return _resolve(text, schema)[1]


def sort_fields(by: Sequence[str], schema: Schema) -> tuple[SortField, ...]:
    """The parts of a sort order; nulls come first where it ascends, unless it says otherwise. Raises
    InvalidArgumentError, ColumnNotFoundError."""
    found = []
    for text in by:
        match = _SORTED.match(text)
        assert match is not None
        field = _field(match[1], schema, FIRST_ID)
        descending = (match[2] or "").lower() == "desc"
        first = not descending if match[3] is None else match[3].lower() == "first"
        found.append(SortField(field.source, field.transform, descending, first))
    return tuple(found)


def _field(text: str, schema: Schema, id: int) -> PartitionField:
    match = None if text in schema.names else _TRANSFORM.match(text)
    if match is None:
        source, path = _resolve(text if text in schema.names else text.strip(), schema)
        return PartitionField(source.name, path, Transform("identity"), id, source.type, source.id)
    name = _NAMES.get(match[1].lower())
    number = match[2] or match[4]
    if name is None or (name in ("bucket", "truncate")) != (number is not None):
        raise InvalidArgumentError(
            f"cannot read the partition transform {text!r}",
            advice="write a column, year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)",
        )
    if number is not None and not 0 < int(number) < 2**31:
        raise InvalidArgumentError(f"{text!r}: {number} is out of range", advice="write a number of 1 or more")
    source, path = _resolve(match[3], schema)
    transform = Transform(name, None if number is None else int(number))  # type: ignore[arg-type]
    label = ".".join(path) if name == "identity" else f"{'.'.join(path)}_{_suffix(name)}"
    return PartitionField(label, path, transform, id, transform.result(source.type), source.id)


def _suffix(name: str) -> str:
    return {"truncate": "trunc"}.get(name, name)


def _resolve(text: str, schema: Schema) -> tuple[Field, tuple[str, ...]]:
    """A column by its name, which may contain dots, else a path through structs."""
    head, *rest = (text,) if text in schema.names else steps(text)
    field = schema.field(head)
    path = [field.name]
    for name in rest:
        members = field.type.fields if isinstance(field.type, StructType) else ()
        field = Schema(members).field(name)
        path.append(field.name)
    return field, tuple(path)
