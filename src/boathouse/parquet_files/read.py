"""read_parquet: Parquet files outside of tables, with variant columns in any layout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import errors_at, names
from boathouse.api.opening import path_text
from boathouse.arrow.filesystem import DataFiles, data_files
from boathouse.arrow.schema import to_arrow_field
from boathouse.compute.evaluate import evaluate
from boathouse.errors import (
    InvalidArgumentError,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.expr.tree import Column, Expr
from boathouse.expr.tree import columns as expr_columns
from boathouse.parquet.extraction import variant_paths
from boathouse.parquet.file_schema import file_schema
from boathouse.parquet.read import SourceColumn, scan_source
from boathouse.parquet.source import ParquetSource, open_source
from boathouse.storage import Stores
from boathouse.types import DataType, Field, ListType, MapType, Schema, StructType, VariantType

_BATCH_ROWS = 256 * 1024
"""A path into shredded variants costs 0.1 ms per batch, however few rows it has."""


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    expr: Expr

    @property
    def type(self) -> DataType:
        assert self.expr.type is not None
        return self.expr.type


def read_parquet(
    path: str | os.PathLike[str] | Sequence[str],
    columns: Sequence[str] | Mapping[str, str | Expr] | None = None,
    where: str | Expr | None = None,
    variants: Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> pa.Table:
    """The rows of a Parquet file, of several, or of all the `.parquet` files in a folder, as one Arrow table.

    `columns` are names, or new columns by name with the expression of each: on a shredded variant, an expression such
    as `variant_get(v, '$.a.b', 'int')` reads only the columns of the file that it needs. `where` keeps the rows for
    which it is true; row groups are pruned by their statistics, including those of shredded values. Groups with the
    VARIANT annotation are read as variants, and so are the columns in `variants` (`v`, `items.element`). The files may
    be shredded differently; a column that a file lacks is null in its rows.

    Raises NotFoundError, CorruptTableError, SchemaMismatchError (files with incompatible schemas), ColumnNotFoundError,
    ExpressionError, EvaluationError, MalformedVariant, InvalidArgumentError, UnsupportedFeatureError for folders named
    by partition values.

    >>> v = bh.variant.from_json(pa.array(['{"a": {"b": 5}}', '{"a": {"b": 9}}']))
    >>> done = bh.write_parquet(pa.table({"v": v}), "v.parquet", variants=["v"], shred="auto")
    >>> bh.read_parquet("v.parquet", columns={"b": "variant_get(v, '$.a.b', 'int')"}).to_pylist()
    [{'b': 5}, {'b': 9}]
    """
    given: list[Any] = list(path) if isinstance(path, list | tuple) else [path]
    marked = [] if variants is None else names("variants", variants)
    stores = Stores(storage_options)
    files = data_files(stores)
    with errors_at(path_text(given[0]) if given else None):
        uris = [uri for one in given for uri in _files_at(path_text(one), stores)]
        if not uris:
            raise InvalidArgumentError("no file to read", advice="pass the path of a Parquet file, or of a folder")
        with _Opened(files) as opened:
            schema = _united({uri: file_schema(opened(uri), marked, some=len(uris) > 1) for uri in uris})
            outputs = _outputs(columns, schema)
            text = parse(where) if isinstance(where, str) else where
            return _read(opened, uris, schema, outputs, None if text is None else bind_predicate(text, schema))


class _Opened:
    """Opens files and keeps the last one open: a single file is opened once."""

    def __init__(self, files: DataFiles) -> None:
        self._files = files
        self._last: ParquetSource | None = None

    def __call__(self, uri: str) -> ParquetSource:
        if self._last is None or self._last.uri != uri:
            self.close()
            self._last = open_source(self._files, uri)
        return self._last

    def close(self) -> None:
        if self._last is not None:
            self._last.close()
            self._last = None

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _files_at(path: str, stores: Stores) -> list[str]:
    """The file at the path, or the Parquet files below it in the order of their names, without hidden ones."""
    storage, key = stores.resolve(path)
    if storage.exists(key):
        return [storage.uri(key)]
    found = []
    for info in storage.list(key):
        steps = info.key[len(key) :].strip("/").split("/")
        if any(s.startswith(("_", ".")) for s in steps) or not info.key.endswith((".parquet", ".parq")):
            continue
        if any("=" in s for s in steps[:-1]):
            raise UnsupportedFeatureError(
                "folders named by partition values", where=storage.uri(info.key), advice="open it as a table, or pass "
                "the files of one folder",
            )  # fmt: skip
        found.append(storage.uri(info.key))
    if not found:
        raise NotFoundError("there are no Parquet files", where=storage.uri(key))
    return found


def _united(schemas: Mapping[str, Schema]) -> Schema:
    """The columns of all files, in the order of first appearance. Raises SchemaMismatchError for two types of one."""
    if len(schemas) == 1:
        return next(iter(schemas.values()))
    fields: dict[str, Field] = {}
    homes: dict[str, str] = {}
    for uri, schema in schemas.items():
        for f in schema:
            known = fields.setdefault(f.name, f)
            first = homes.setdefault(f.name, uri)
            if known.type == f.type:
                continue
            fields[f.name] = replace(known, type=_nullable(known.type))
            if fields[f.name].type != _nullable(f.type):
                raise SchemaMismatchError(
                    f"`{f.name}` is {known.type} in {first}, but {f.type} here",
                    where=uri,
                    advice="read the files one by one, or name the variants among their columns with variants=",
                )
    sure = {n for n in fields if all(n in s.names and not s.field(n).nullable for s in schemas.values())}
    return Schema(tuple(Field(f.name, f.type, f.name not in sure) for f in fields.values()))


def _nullable(type: DataType) -> DataType:
    """The type with everything below it nullable: writers differ in nullability."""
    match type:
        case StructType(fields):
            return StructType(tuple(_below(f) for f in fields))
        case ListType(element):
            return ListType(_below(element))
        case MapType(key, value):
            return MapType(replace(key, type=_nullable(key.type)), _below(value))
    return type


def _below(field: Field) -> Field:
    return replace(field, type=_nullable(field.type), nullable=True)


def _outputs(columns: Sequence[str] | Mapping[str, str | Expr] | None, schema: Schema) -> list[_Output]:
    if isinstance(columns, Mapping):
        parsed = {name: parse(e) if isinstance(e, str) else e for name, e in columns.items()}
        return [_Output(name, bind(e, schema)) for name, e in parsed.items()]
    wanted = schema.names if columns is None else names("columns", columns)
    return [_Output(name, bind(Column((name,)), schema)) for name in wanted]


def _read(opened: _Opened, uris: Sequence[str], schema: Schema, outputs: list[_Output], where: Expr | None) -> pa.Table:
    sources = _sources(schema, [o.expr for o in outputs], where)
    fields = [to_arrow_field(_field(o, schema)) for o in outputs]
    scans = (scan_source(opened(uri), sources, row_filter=where, batch_rows=_BATCH_ROWS) for uri in uris)
    made = [_project(batch, outputs, fields) for scan in scans for batch in scan]
    if not fields:
        return pa.table({"rows": pa.nulls(sum(b.num_rows for b in made))}).select([])
    return pa.Table.from_batches(made, pa.schema(fields))


def _field(output: _Output, schema: Schema) -> Field:
    if isinstance(output.expr, Column) and len(output.expr.path) == 1:
        return Field(output.name, output.type, schema.field(output.expr.path[0]).nullable)
    return Field(output.name, output.type)


def _sources(schema: Schema, outputs: list[Expr], where: Expr | None) -> list[SourceColumn]:
    """The columns to read; variants of which only some paths are needed are read in part."""
    every = outputs if where is None else [*outputs, where]
    read = {path[0] for e in every for path in expr_columns(e)}
    only = variant_paths(every)
    out = []
    for f in schema:
        if f.name in read:
            paths = only.get(f.name) if isinstance(f.type, VariantType) else None
            out.append(SourceColumn(f.name, f.type, (f.name,), nullable=f.nullable, only=paths))
    return out


def _project(batch: pa.RecordBatch, outputs: list[_Output], fields: list[pa.Field]) -> pa.RecordBatch:
    if not outputs:
        return batch.select([])
    arrays = [evaluate(o.expr, batch) for o in outputs]
    return pa.RecordBatch.from_arrays([_as(a, f.type) for a, f in zip(arrays, fields)], schema=pa.schema(fields))


def _as(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)
