"""Columns of variants for other libraries: `VariantArray`, and the extension name on fields.

In memory a column is a plain struct<metadata, value>. The metadata of its field marks it as `arrow.parquet.variant`;
the C interface does so with an extension type that is made for the export alone. The type is never registered: pyarrow
would then create such arrays in every read of the process, and it crashes when it writes them to Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import index
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import (
    VARIANT_EXTENSION,
    VARIANT_MARKS,
    VARIANT_STORAGE,
    is_variant_field,
    is_variant_storage,
)
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, SchemaMismatchError
from boathouse.variant.columns.decode import to_pylist
from boathouse.variant.columns.extract import extract
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, column, storage_of
from boathouse.variant.columns.reading import variant_at
from boathouse.variant.columns.to_json import to_json
from boathouse.variant.columns.valid import is_valid
from boathouse.variant.json_out import Special
from boathouse.variant.primitives import EMPTY_METADATA, NULL_VALUE
from boathouse.variant.spark import is_spark_variant
from boathouse.variant.value import Variant


class _Exported(pa.ExtensionType):
    """The type that the C interface exports; never registered, and never returned as the type of an array."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, VARIANT_EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _Exported:
        return cls(storage)


class VariantArray:
    """A column of variants: `storage` is the struct<metadata, value> array (any binary layout) or a chunked one.

    Indexing gives `Variant` (None for null rows), a slice another VariantArray without copying. Libraries that read
    Arrow's C interface (polars, pyarrow) accept it directly; those that know the extension see a column of variants.

    >>> column = bh.variant.VariantArray.from_python([{"a": 1}, None, {"a": "x"}])
    >>> column[0]["a"].type, column[1], column.extract("$.a", "string").to_pylist()
    ('int8', None, ['1', None, 'x'])
    """

    __slots__ = ("_columns", "storage")

    def __init__(self, data: Any) -> None:
        """From an Arrow array or chunked array of variants, or any object that exports one.

        Raises SchemaMismatchError for other types, and for shredded columns.
        """
        found = data.storage if isinstance(data, VariantArray) else storage_of(data)
        self.storage: pa.StructArray | pa.ChunkedArray = found
        self._columns: list[tuple[int, Column]] | None = None

    @classmethod
    def from_variants(cls, values: Iterable[Variant | None]) -> VariantArray:
        """The column of some values, each with its own metadata; None is a null row. Raises InvalidArgumentError for
        others."""
        rows = list(values)
        for row in rows:
            if row is not None and not isinstance(row, Variant):
                raise InvalidArgumentError(f"{type(row).__name__} is not a Variant", advice="use from_python")
        children = [
            pa.array([EMPTY_METADATA if row is None else row.metadata for row in rows], pa.binary()),
            pa.array([NULL_VALUE if row is None else row.value for row in rows], pa.binary()),
        ]
        mask = pa.array([row is None for row in rows], pa.bool_())
        return cls(pa.StructArray.from_arrays(children, fields=list(VARIANT_STORAGE), mask=mask))

    @classmethod
    def from_python(cls, values: Iterable[object]) -> VariantArray:
        """The column of Python values; None is a null row, not a variant null.

        Raises InvalidArgumentError for values that `Variant.from_python` does not take.
        """
        return cls.from_variants(None if value is None else Variant.from_python(value) for value in values)

    @property
    def null_count(self) -> int:
        """How many rows are null; a variant null is not."""
        return int(self.storage.null_count)

    def __len__(self) -> int:
        return len(self.storage)

    @overload
    def __getitem__(self, key: int) -> Variant | None: ...
    @overload
    def __getitem__(self, key: slice) -> VariantArray: ...
    def __getitem__(self, key: int | slice) -> Variant | VariantArray | None:
        """A row as Variant (None if null; IndexError), or the rows of a slice as VariantArray.

        Raises MalformedVariant, with the row, where the metadata is wrong; the value is read when it is accessed.
        """
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step != 1:
                return VariantArray(self.storage.take(pa.array(range(first, last, step), pa.int64())))
            return VariantArray(self.storage.slice(first, max(last - first, 0)))
        row = index(key)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(key)
        first, chunk = next(pair for pair in reversed(self._chunks()) if pair[0] <= row)
        return None if chunk.is_null(row - first) else variant_at(chunk, row - first)

    def __iter__(self) -> Iterator[Variant | None]:
        for _, chunk in self._chunks():
            for row in range(chunk.rows):
                yield None if chunk.is_null(row) else variant_at(chunk, row)

    def _chunks(self) -> list[tuple[int, Column]]:
        if self._columns is None:
            parts = self.storage.chunks if isinstance(self.storage, pa.ChunkedArray) else [self.storage]
            found, first = [], 0
            for part in parts:
                if len(part):
                    found.append((first, replace(column(part), first_row=first)))
                first += len(part)
            self._columns = found
        return self._columns

    def to_pylist(self, *, lenient: Lenient | None = None) -> list[Any]:
        """The rows as Python values, of the types that `Variant.to_python` gives; None for null rows.

        Raises MalformedVariant with the row and offset, and UnsupportedFeatureError for primitive types of later
        specifications, unless `lenient` is given: such rows are None then, and counted. EvaluationError for dates and
        timestamps that Python cannot hold.
        """
        return to_pylist(self.storage, lenient=lenient)

    def to_json(self, *, special: Special = "refuse", lenient: Lenient | None = None) -> pa.Array | pa.ChunkedArray:
        """The rows as canonical JSON text, null for null rows: a string array (large_string beyond 2 GiB), chunked if
        the column is.

        `special` says how NaN and infinities are written: "refuse" (EvaluationError), "string" or "null". Raises
        MalformedVariant with the row and offset, and UnsupportedFeatureError for primitive types of later
        specifications, unless `lenient` is given: such rows are null then, and counted.
        """
        return to_json(self.storage, special=special, lenient=lenient)

    def extract(self, path: Any, type: Any = "variant", **options: Any) -> pa.Array | pa.ChunkedArray:
        """The values at a path as a type, by the rules of Spark's `variant_get`; null where there is none.

        `path` is a string (`$.a[0]`) or steps; `type` Spark's SQL text, a DataType or an Arrow type. Options are
        `safe=True` (null where a cast fails) and `lenient=` (malformed rows are null, and counted). Raises
        EvaluationError where a cast fails, MalformedVariant with row and byte, ExpressionError for the path,
        UnsupportedTypeError.
        """
        return extract(self.storage, path, type, **options)

    def __eq__(self, other: object) -> bool:
        """Whether both hold equal variants row by row, compared by equivalence class (null equals null)."""
        if not isinstance(other, VariantArray):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __arrow_c_schema__(self) -> object:
        return _Exported(self.storage.type).__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        array = self.storage
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [_none(array.type)])
        exported: tuple[object, object] = _exported(array).__arrow_c_array__(requested_schema)
        return exported

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        chunks = self.storage.chunks if isinstance(self.storage, pa.ChunkedArray) else [self.storage]
        stream = pa.chunked_array([_exported(chunk) for chunk in chunks], _Exported(self.storage.type))
        return stream.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        shown = [repr(self[row]) for row in range(min(len(self), 10))]
        rest = [f"... {len(self) - 10:,} more"] if len(self) > 10 else []
        return "\n".join([f"<VariantArray of {len(self):,} rows>", *shown, *rest])


def _none(type: pa.DataType) -> pa.Array:
    return pa.array([], type)


def _exported(array: pa.Array) -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(_Exported(array.type), array)


def field(name: str, nullable: bool = True) -> pa.Field:
    """An Arrow field for a column of variants, marked for other libraries and for ours."""
    return pa.field(name, VARIANT_STORAGE, nullable, VARIANT_MARKS)


def annotate(table: Any, columns: Sequence[str] | None = None) -> Any:
    """A table or record batch whose columns of variants carry the extension name, at any depth; no data is copied.

    Those that declare it are marked, and top-level structs of two binaries, `metadata` and `value`, each row of which
    is a variant. `columns` names top-level columns that hold variants, also such without a row, or shredded ones, of
    which nothing else tells. Raises ColumnNotFoundError, SchemaMismatchError for a column that cannot hold them,
    InvalidArgumentError.

    >>> table = pa.table({"v": bh.variant.from_json(pa.array(["1"]))})
    >>> bh.variant.annotate(table).schema.field("v").metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise InvalidArgumentError(f"annotate takes a pyarrow Table or RecordBatch, not {type(table).__name__}")
    if isinstance(columns, str):
        raise InvalidArgumentError(f"columns={columns!r} is not a list of names", advice=f"pass [{columns!r}]")
    for name in columns or ():
        at = table.schema.get_field_index(name)
        if at < 0:
            raise ColumnNotFoundError(f"no column `{name}`", advice=f"there are {', '.join(table.schema.names)}")
        if not is_variant_storage(table.schema.field(at).type):
            raise SchemaMismatchError(f"`{name}` is {table.schema.field(at).type}, not a struct<metadata, value>")
    fields = [
        _marked(one, (columns is not None and one.name in columns) or _are_variants(values))
        for one, values in zip(table.schema, table.columns)
    ]
    schema = pa.schema(fields, table.schema.metadata)
    arrays = [array.cast(one.type) if array.type != one.type else array for one, array in zip(fields, table.columns)]
    return type(table).from_arrays(arrays, schema=schema)


def _are_variants(values: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a column that nothing declares can hold nothing but variants: by its type, and by every value."""
    type = values.type
    if not (pa.types.is_struct(type) and sorted(f.name for f in type) == ["metadata", "value"]):
        return False
    if not all(pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type) for f in type):
        return False
    return len(values) > values.null_count and bool(pc.all(is_valid(values)).as_py())


def _marked(one: pa.Field, surely: bool = False) -> pa.Field:
    """The field, marked wherever it or a nested field declares that it holds variants."""
    if isinstance(one.type, pa.BaseExtensionType):
        return one
    if surely or is_variant_field(one) or is_spark_variant(one.type):
        return one.with_metadata({**(one.metadata or {}), **VARIANT_MARKS})
    return one.with_type(_marked_type(one.type))


def _marked_type(type: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_struct(type):
        return pa.struct([_marked(one) for one in type])
    if t.is_map(type):
        return pa.map_(_marked(type.key_field), _marked(type.item_field))
    if t.is_fixed_size_list(type):
        return pa.list_(_marked(type.value_field), type.list_size)
    if t.is_large_list(type):
        return pa.large_list(_marked(type.value_field))
    return pa.list_(_marked(type.value_field)) if t.is_list(type) else type
