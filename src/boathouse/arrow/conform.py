"""Casts user data to a table's schema: resolves columns by name, reorders them, allows safe casts only, lists every
mismatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.layouts import laid_out, members, unwrapped
from boathouse.arrow.schema import from_arrow_field, to_arrow_field, to_arrow_type
from boathouse.arrow.selection import take
from boathouse.bits.names import Names
from boathouse.errors import SchemaMismatchError, UnsupportedTypeError
from boathouse.types import blobs

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_NAIVE = "declare its zone: cast it to a timestamp with a zone"


Absent = Mapping[int, object]
"""What fields of structs have where the structs lack them, by field id."""


def conform(
    data: pa.RecordBatch | pa.Table, schema: T.Schema, where: str | None = None, absent: Absent = MappingProxyType({})
) -> pa.RecordBatch | pa.Table:
    """`data` with exactly the columns of `schema`, in its order and its Arrow types; a batch stays a batch.

    Columns match by name, ignoring case where that is not ambiguous; missing nullable ones are null, but for fields of
    structs with a value in `absent`.
    Raises SchemaMismatchError that lists every extra or missing column, lossy type and null in a non-null column.
    """
    if isinstance(data, pa.Table):
        batches = [_conform_batch(b, schema, where, absent) for b in data.to_batches()]
        return pa.Table.from_batches(batches, _arrow(schema)) if batches else _no_rows(data, schema, where, absent)
    return _conform_batch(data, schema, where, absent)


def _arrow(schema: T.Schema) -> pa.Schema:
    return pa.schema([to_arrow_field(f) for f in schema])


def _no_rows(data: pa.Table, schema: T.Schema, where: str | None, absent: Absent) -> pa.Table:
    empty = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in data.schema], schema=data.schema)
    return pa.Table.from_batches([_conform_batch(empty, schema, where, absent)])


def _conform_batch(batch: pa.RecordBatch, schema: T.Schema, where: str | None, absent: Absent) -> pa.RecordBatch:
    problems = _Problems(absent)
    columns = list(zip(batch.schema, batch.columns))
    arrays = _members(columns, schema.fields, batch.num_rows, "", problems, None)
    if problems:
        raise SchemaMismatchError(
            "the data does not fit the table: " + "; ".join(problems),
            where=where,
            advice="select, cast or fill these columns, or evolve the schema",
        )
    return pa.RecordBatch.from_arrays(arrays, schema=_arrow(schema))


class _Problems(list[str]):
    """What is found to be wrong, and what is right to be absent."""

    def __init__(self, absent: Absent) -> None:
        super().__init__()
        self.absent = absent


def _match(columns: list[tuple[pa.Field, pa.Array]], fields: tuple[T.Field, ...]) -> dict[int, Sequence[int]]:
    """For each field the given columns that match it: an exact name takes precedence over one in another case."""
    out: dict[int, Sequence[int]] = {}
    names = Names(f.name for f, _ in columns)
    wanted = Names(f.name for f in fields)
    for i, f in enumerate(fields):
        hits = names.exactly(f.name)
        if not hits and len(wanted.loosely(f.name)) == 1:
            hits = [j for j in names.loosely(f.name) if not wanted.exactly(columns[j][0].name)]
        out[i] = hits
    return out


def _members(
    columns: list[tuple[pa.Field, pa.Array]],
    fields: tuple[T.Field, ...],
    rows: int,
    parent: str,
    problems: _Problems,
    present: pa.Array | None,
) -> list[pa.Array]:
    """One array per field; `present` marks the rows in which the parent is not null (None: all)."""
    matches = _match(columns, fields)
    used = {j for hits in matches.values() for j in hits}
    for j, (field, _) in enumerate(columns):
        if j not in used:
            problems.append(f"`{parent}{field.name}` is not a column of the table")
    arrays = []
    for i, f in enumerate(fields):
        path = f"{parent}{f.name}"
        hits = matches[i]
        if len(hits) > 1:
            problems.append(f"`{path}` occurs {len(hits)} times ({', '.join(columns[j][0].name for j in hits)})")
        if len(hits) == 1:
            field, array = columns[hits[0]]
            arrays.append(_fit(array, field, f, path, problems, present))
            continue
        if not hits and parent and f.id is not None and f.id in problems.absent:
            arrays.append(pa.repeat(pa.scalar(problems.absent[f.id], to_arrow_type(f.type)), rows))
            continue
        if not hits and not f.nullable:
            problems.append(f"`{path}` is missing and cannot be null")
        arrays.append(pa.nulls(rows, to_arrow_type(f.type)))
    return arrays


def _fit(
    array: pa.Array, given: pa.Field, field: T.Field, path: str, problems: _Problems, present: pa.Array | None
) -> pa.Array:
    if not field.nullable and array.null_count:
        missing = pc.is_null(array) if present is None else pc.and_(pc.is_null(array), present)
        if count := missing.true_count:
            problems.append(f"`{path}` has {count} nulls and cannot be null")
    try:
        source = from_arrow_field(given).type
    except UnsupportedTypeError as error:
        problems.append(error.message)
        return pa.nulls(len(array), to_arrow_type(field.type))
    before = len(problems)
    try:
        out = _convert(array, source, field.type, path, problems)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowIndexError, UnsupportedTypeError) as error:
        problems.append(f"`{path}` ({source}) does not fit {field.type}: {str(error).splitlines()[0]}")
    return out if len(problems) == before else pa.nulls(len(array), to_arrow_type(field.type))


def _convert(array: pa.Array, source: T.DataType, to: T.DataType, path: str, problems: _Problems) -> pa.Array:
    array = unwrapped(array)
    arrow = to_arrow_type(to)
    if array.type == arrow and not isinstance(
        to, T.StructType | T.ListType | T.MapType | T.FixedSizeListType | T.VariantType
    ):
        return array
    if isinstance(source, T.NullType):
        return pa.nulls(len(array), arrow)
    match source, to:
        case (_, T.StructType(fields)) if blobs.is_written(to):
            return _blob(array, source, fields, arrow, path, problems)
        case (T.StructType(), T.StructType(fields)):
            return _struct(array, fields, path, problems)
        case (T.ListType() | T.FixedSizeListType(), T.ListType(element)):
            return _list(array, element, arrow, path, problems)
        case (T.ListType() | T.FixedSizeListType(), T.FixedSizeListType(element, size)):
            return _vector(array, element, size, path, problems)
        case (T.MapType(), T.MapType(key, value)):
            return _map(array, key, value, arrow, path, problems)
        case (T.VariantType() | T.StructType(), T.VariantType()):
            return _variant(array, source, path, problems)
    advice = _refusal(source, to)
    if advice is not None:
        problems.append(f"`{path}` is {source}, but the table has {to}{f': {advice}' if advice else ''}")
        return array
    try:
        return _scalar(array, source, to, arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        problems.append(f"`{path}` ({source}) contains a value that does not fit {to}: {str(error).splitlines()[0]}")
        return array


def _refusal(source: T.DataType, to: T.DataType) -> str | None:
    """None if `source` fits `to` without loss (values are checked later); otherwise the reason."""
    match source, to:
        case _ if source == to:
            return None
        case (T.IntegerType(a, s), T.IntegerType(b, t)):
            wide = (b > a) if (t and not s) else (b >= a and s == t)
            return None if wide else "narrowing may lose values"
        case (T.IntegerType(bits, True), T.FloatType(wide_bits)):
            return None if bits < {16: 11, 32: 24, 64: 53}[wide_bits] else "the float does not hold every such integer"
        case (T.IntegerType(bits), T.DecimalType(p, s)):
            return None if p - s >= _DIGITS[bits] else "the decimal has too few digits"
        case (T.FloatType(a), T.FloatType(b)):
            return None if b >= a else "narrowing loses digits"
        case (T.DecimalType(p, s), T.DecimalType(q, t)):
            return None if t >= s and q - t >= p - s else "the decimal has too few digits"
        case (T.TimestampType(utc), T.TimestampType(want)):
            if utc != want:
                return _NAIVE if want else "a wall clock has no zone: cast it to a timestamp without zone"
            return None
        case (T.TimeType(), T.TimeType()):
            return None
        case (T.DateType(), T.TimestampType(utc=False)):
            return None
        case (T.FixedType(), T.BinaryType()) | (T.UUIDType(), T.BinaryType()):
            return None
        case (T.FixedType(length), T.UUIDType()) | (T.UUIDType(), T.FixedType(length)):
            return None if length == 16 else "a UUID is 16 bytes"
        case (
            (T.BinaryType(), T.FixedType() | T.UUIDType())
            | (T.BooleanType(), T.BooleanType())
            | (T.StringType(), T.StringType())
        ):
            return None
    return ""


def _scalar(array: pa.Array, source: T.DataType, to: T.DataType, arrow: pa.DataType) -> pa.Array:
    if isinstance(source, T.IntegerType) and isinstance(to, T.DecimalType):
        return array.cast(pa.decimal128(20, 0)).cast(arrow)
    return array.cast(arrow)


def _valid(array: pa.Array) -> pa.Array | None:
    return pc.is_valid(array) if array.null_count else None


def _struct(array: pa.Array, fields: tuple[T.Field, ...], path: str, problems: _Problems) -> pa.Array:
    columns = list(zip(array.type, members(array)))
    present = _valid(array)
    made = _members(columns, fields, len(array), f"{path}.", problems, present)
    arrow = [to_arrow_field(f) for f in fields]
    if problems or not fields:  # without fields there is nothing to cast, and only the array has the length
        return array
    if not made:
        # Without fields, only the struct array has the number of rows.
        return array
    return pa.StructArray.from_arrays(made, fields=arrow, mask=None if present is None else pc.invert(present))


_LOGICAL_BLOB = frozenset(("data", "uri", "position", "size"))


def _blob(
    array: pa.Array,
    source: T.DataType,
    fields: tuple[T.Field, ...],
    arrow: pa.DataType,
    path: str,
    problems: _Problems,
) -> pa.Array:
    """Bytes, a struct that may have them as `data` (pylance's blobs), or a blob that is in the table."""
    if blobs.is_written(source):
        return _struct(array, fields, path, problems)
    data, missing = array, _nulls(array)
    if isinstance(source, T.StructType):
        names = [f.name for f in source.fields]
        if "data" not in names or not _LOGICAL_BLOB.issuperset(names):
            problems.append(f"`{path}` says where blobs are, and has not their bytes: read them by take_blobs()")
            return array
        parts = dict(zip(names, members(array), strict=True))
        if "uri" in parts and parts["uri"].null_count < len(array):
            problems.append(f"`{path}` has blobs in other files (`uri`), which are not written: give their bytes")
            return array
        data = parts["data"]
    elif not isinstance(source, T.BinaryType):
        problems.append(f"`{path}` is {source}, but the table has blobs: give binary values")
        return array
    values = {blobs.DATA: data.cast(pa.binary())}
    parts_of = [values.get(f.name, pa.nulls(len(array), arrow.field(i).type)) for i, f in enumerate(fields)]
    return pa.StructArray.from_arrays(parts_of, fields=list(arrow), mask=missing)


def _list(array: pa.Array, element: T.Field, arrow: pa.DataType, path: str, problems: _Problems) -> pa.Array:
    offsets, (inner,), mask = laid_out(array)
    inner = _fit(inner, array.type.value_field, element, f"{path}.{element.name}", problems, None)
    if problems:
        return array
    return pa.ListArray.from_arrays(offsets, inner, arrow, mask=mask)


def _vector(array: pa.Array, element: T.Field, size: int, path: str, problems: _Problems) -> pa.Array:
    lengths = pc.list_value_length(array)
    if pc.any(pc.not_equal(lengths, size)).as_py():
        problems.append(f"`{path}` has lists that are not of {size} elements")
        return array
    _, (inner,), mask = laid_out(array)
    inner = _fit(inner, array.type.value_field, element, f"{path}.{element.name}", problems, None)
    if problems:
        return array
    if mask is not None:
        # A fixed-size list has elements for null rows too: distribute the elements over all rows.
        there = np.repeat(pc.is_valid(array).to_numpy(zero_copy_only=False), size)
        inner = take(inner, pa.array(np.cumsum(there) - 1, mask=~there))
    return pa.FixedSizeListArray.from_arrays(inner, type=pa.list_(to_arrow_field(element), size), mask=mask)


def _map(array: pa.Array, key: T.Field, value: T.Field, arrow: pa.DataType, path: str, problems: _Problems) -> pa.Array:
    offsets, (keys, items), mask = laid_out(array)
    keys = _fit(keys, array.type.key_field, key, f"{path}.{key.name}", problems, None)
    items = _fit(items, array.type.item_field, value, f"{path}.{value.name}", problems, None)
    if problems:
        return array
    return pa.MapArray.from_arrays(offsets, keys, items, arrow, mask=mask)


def _variant(array: pa.Array, source: T.DataType, path: str, problems: _Problems) -> pa.Array:
    names = [f.name for f in array.type] if pa.types.is_struct(array.type) else []
    if sorted(names) != ["metadata", "value"]:
        problems.append(f"`{path}` is {source}, but the table has variant")
        return array
    parts = [unwrapped(array.field(names.index(n))).cast(pa.binary()) for n in ("metadata", "value")]
    fields = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(array))


def _nulls(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None
