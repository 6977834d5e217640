"""Reads files of any format that gives its rows in order as Arrow columns with field ids: ORC and Avro."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from boathouse.bits.roaring import Bitmap
from boathouse.errors import BoathouseError
from boathouse.expr.tree import Expr
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import BATCH_ROWS, ColumnPlan, RowScan, SourceColumn, already_read
from boathouse.parquet.resolve import Resolver

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles


@dataclass(frozen=True, slots=True)
class FieldSource:
    """One open file. `tables` gives its rows, some at a time and in order, with at least the top-level fields of these
    names; their types are those of the resolver's fields."""

    uri: str
    stream: pa.NativeFile
    resolver: Resolver
    tables: Callable[[Sequence[str]], Iterator[pa.Table]]

    def close(self) -> None:
        self.stream.close()


OpenSource = Callable[["DataFiles", str, Matching, int | None], FieldSource]
"""`open(files, uri, matching, size)`: raises CorruptTableError, UnsupportedFeatureError and the errors of `files`."""


def scan_fields(
    source: FieldSource,
    columns: Sequence[SourceColumn],
    *,
    row_filter: Expr | None = None,
    deleted: Bitmap | None = None,
    positions: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The file's rows as `columns`, as `parquet.read.scan_file` gives those of a Parquet file."""
    try:
        plan = ColumnPlan.of(source.resolver, columns, positions, row_filter)
        scan = RowScan(source.uri, plan, row_filter, deleted)
        wanted = list(dict.fromkeys(path[0] for path in plan.paths if path is not None))
        first = 0
        for table in source.tables(wanted):
            yield from scan.rows(first, table.num_rows, partial(already_read, table), batch_rows)
            first += table.num_rows
    except BoathouseError as error:
        error.where = error.where or source.uri
        raise
