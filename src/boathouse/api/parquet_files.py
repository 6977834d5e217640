"""read_parquet, write_parquet: Parquet files outside of tables, with variant columns in any layout."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.api.arguments import errors_at, flag, names
from boathouse.api.opening import path_text
from boathouse.arrow.conform import conform
from boathouse.arrow.evaluate import evaluate
from boathouse.arrow.filesystem import DataFiles, WholeFile, data_files
from boathouse.arrow.schema import MARK, VARIANT_STORAGE, from_arrow, is_variant_storage, to_arrow_field
from boathouse.bits.lazy_import import Late
from boathouse.engines.sources import Batches, from_data
from boathouse.errors import (
    ColumnNotFoundError,
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
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.shredded import Place
from boathouse.parquet.source import ParquetSource, open_source
from boathouse.parquet.stats import SchemaLeaf, leaf_array, schema_leaves
from boathouse.parquet.write import CODEC, FileSummary, ParquetOptions, ParquetWriter
from boathouse.storage import Stores
from boathouse.types import DataType, Field, ListType, MapType, Schema, StructType, VariantType

shredding_schema = Late("boathouse.variant.shredding.schema")
choose = Late("boathouse.variant.shredding.choose")

Shred = Mapping[str, Any] | Literal["auto"] | None
PYSPARK_LIMIT, SPARK_LIMIT = 16 << 20, 128 << 20
"""The largest value in bytes that pyspark's own functions, and Spark itself, accept."""
_SAMPLE_ROWS = 64 * 1024
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
    ExpressionError, EvaluationError, MalformedVariant.
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


def write_parquet(
    data: Any,
    path: str | os.PathLike[str],
    *,
    shred: Shred = None,
    widen: bool = False,
    variants: Sequence[str] | None = None,
    compression: str = CODEC,
    row_group_rows: int = 1 << 20,
    storage_options: Mapping[str, str] | None = None,
) -> FileSummary:
    """Writes one Parquet file from anything that exports Arrow data; variant columns get the annotation VARIANT(1).

    The file appears when it is complete; it then replaces a file of that name, which is kept if writing fails. Variants
    are the columns marked as such (those from `boathouse.variant`, `read_parquet`, DuckDB and polars are), and those in
    `variants`. `shred` controls shredding: none (None), chosen from the first rows ("auto"), or by column, with the
    type to shred by (`{"v": "struct<id:bigint,tags:array<string>>"}`; "auto" and None are possible for a column too). A
    nested column is named by its path: `items.element.v`. Values keep their exact types whatever the schema: a typed
    column of bigint takes only int64. With `widen` it also takes narrower integers (for decimals: narrower ones of its
    scale), and their widths are lost. Data from JSON, where widths have no meaning, needs this to be shredded well.
    Warns about values larger than Spark can read.

    Raises InvalidArgumentError, UnsupportedTypeError, SchemaError (not a shredding schema), StorageError.
    """
    options = ParquetOptions(compression=compression, row_group_rows=row_group_rows, row_group_bytes=512 << 20)
    uri = path_text(path)
    with errors_at(uri):
        rows = _marked(from_data(data), [] if variants is None else names("variants", variants))
        schema = from_arrow(rows.schema)
        stored = to_parquet_schema(schema)
        leaves = {leaf.path: leaf for leaf in schema_leaves(schema) if isinstance(leaf.field.type, VariantType)}
        batches: Iterator[pa.RecordBatch] = (conform(batch, schema) for batch in rows.open())
        batches, shredding = _shredding(_wanted(shred, leaves), leaves, batches, flag("widen", widen))
        with WholeFile(Stores(storage_options), uri) as file:
            return _written(ParquetWriter(file, uri, stored, options, shredding, widen), batches, leaves)


def _written(
    writer: ParquetWriter, batches: Iterator[pa.RecordBatch], leaves: Mapping[Place, SchemaLeaf]
) -> FileSummary:
    warned: set[Place] = set()
    try:
        for batch in batches:
            _warn_of_large(batch, leaves, warned)
            writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def _marked(rows: Batches, variants: Sequence[str]) -> Batches:
    schema = rows.schema
    for name in variants:
        i = schema.get_field_index(name)
        if i < 0:
            raise ColumnNotFoundError(f"no column `{name}`", advice=f"the data has {', '.join(schema.names)}")
        if not is_variant_storage(schema.field(i).type):
            raise SchemaMismatchError(f"`{name}` is {schema.field(i).type}, not a struct<metadata, value>")
        schema = schema.set(i, schema.field(i).with_metadata({MARK: b"variant"}))
    if not variants:
        return rows
    return Batches(schema, lambda: (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in rows.open()))


def _wanted(shred: Shred, leaves: Mapping[Place, SchemaLeaf]) -> dict[Place, Any]:
    """The value of `shred` for each variant: a schema, or "auto"."""
    if shred is None:
        return {}
    if shred == "auto":
        return dict.fromkeys(leaves, "auto")
    if not isinstance(shred, Mapping):
        raise InvalidArgumentError(
            f"shred={shred!r}", advice='pass None, "auto", or a dict of columns: {"v": "struct<id:bigint>"}'
        )
    by_name = {".".join(place): place for place in leaves}
    if unknown := [name for name in shred if name not in by_name]:
        raise ColumnNotFoundError(
            f"shred= names `{unknown[0]}`, which is not a variant column",
            advice=f"the variants are {', '.join(by_name) or 'none: name them with variants='}",
        )
    return {by_name[name]: how for name, how in shred.items() if how is not None}


def _shredding(
    wanted: Mapping[Place, Any], leaves: Mapping[Place, SchemaLeaf], batches: Iterator[pa.RecordBatch], widen: bool
) -> tuple[Iterator[pa.RecordBatch], dict[Place, Any]]:
    """The batches, and the schemas: "auto" ones are chosen from the first rows."""
    out = {place: how if how == "auto" else shredding_schema.shredding_schema(how) for place, how in wanted.items()}
    unsure = [place for place, how in out.items() if isinstance(how, str)]
    if not unsure:
        return batches, out
    seen: list[pa.RecordBatch] = []
    while sum(b.num_rows for b in seen) < _SAMPLE_ROWS and (batch := next(batches, None)) is not None:
        seen.append(batch)
    for place in unsure:
        column = pa.chunked_array([leaf_array(b, leaves[place].steps) for b in seen], VARIANT_STORAGE)
        out[place] = choose.choose(column, widen=widen)
    return chain(seen, batches), {place: how for place, how in out.items() if how.is_shredded}


def _warn_of_large(batch: pa.RecordBatch, leaves: Mapping[Place, SchemaLeaf], warned: set[Place]) -> None:
    for place, leaf in leaves.items():
        sizes = pc.binary_length(leaf_array(batch, leaf.steps).field("value"))
        largest = pc.max(sizes).as_py() or 0
        if largest <= PYSPARK_LIMIT or place in warned:
            continue
        warned.add(place)
        who = "Spark cannot read it" if largest > SPARK_LIMIT else "pyspark's own functions cannot read it (Spark can)"
        warnings.warn(f"`{'.'.join(place)}` contains a variant of {largest:,} bytes: {who}", UserWarning, stacklevel=4)
