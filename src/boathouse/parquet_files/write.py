"""write_parquet: one Parquet file outside of a table, its variant columns annotated and shredded on request."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.api.arguments import errors_at, flag, names
from boathouse.api.opening import path_text
from boathouse.arrow.conform import conform
from boathouse.arrow.filesystem import WholeFile
from boathouse.arrow.schema import MARK, VARIANT_STORAGE, from_arrow, is_variant_storage
from boathouse.engines.sources import Batches, from_data
from boathouse.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.shredded import Place
from boathouse.parquet.stats import SchemaLeaf, leaf_array, schema_leaves
from boathouse.parquet.write import CODEC, FileSummary, ParquetOptions, ParquetWriter
from boathouse.storage import Stores
from boathouse.types import VariantType
from boathouse.variant.shredding.choose import choose
from boathouse.variant.shredding.schema import shredding_schema

Shred = Mapping[str, Any] | Literal["auto"] | None
PYSPARK_LIMIT, SPARK_LIMIT = 16 << 20, 128 << 20
"""The largest value in bytes that pyspark's own functions, and Spark itself, accept."""
_SAMPLE_ROWS = 64 * 1024


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
    Warns about values larger than Spark can read. `row_group_rows` is the number of rows of a row group at most.

    Raises InvalidArgumentError, ColumnNotFoundError, UnsupportedTypeError, SchemaError (not a shredding schema),
    SchemaMismatchError, MalformedVariant, StorageError.

    >>> bh.write_parquet(pa.table({"id": [1, 2]}), "ids.parquet", compression="zstd").rows
    2
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
    out = {place: how if how == "auto" else shredding_schema(how) for place, how in wanted.items()}
    unsure = [place for place, how in out.items() if isinstance(how, str)]
    if not unsure:
        return batches, out
    seen: list[pa.RecordBatch] = []
    while sum(b.num_rows for b in seen) < _SAMPLE_ROWS and (batch := next(batches, None)) is not None:
        seen.append(batch)
    for place in unsure:
        column = pa.chunked_array([leaf_array(b, leaves[place].steps) for b in seen], VARIANT_STORAGE)
        out[place] = choose(column, widen=widen)
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
