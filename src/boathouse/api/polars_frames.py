"""Lazy frames of polars, whose queries tell a scan what they need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from boathouse.api.polars_conditions import parts_from_polars
from boathouse.expr.tree import all_of

if TYPE_CHECKING:
    from boathouse.api.scan import Scan


def lazy_frame(scan: Scan) -> pl.LazyFrame:
    """A frame over the rows of a scan.

    Of a query's conditions the scan gets those that mean the same for it; all of them are evaluated by polars too.
    """
    schema = scan.to_reader().schema

    def rows(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        # The rows are limited before the condition is evaluated, so that it must not be passed on then.
        passed = predicate is not None and n_rows is None and scan.takes_conditions
        parts = parts_from_polars(predicate) if passed else []
        asked = schema.names[:1] if with_columns == [] else with_columns
        found = scan.narrowed(asked, all_of(parts) if parts else None)
        for batch in (found if n_rows is None else found.limit(n_rows)).to_batches():
            frame = _frame(pa.Table.from_batches([batch]))
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame if with_columns is None else frame.select(with_columns)

    return register_io_source(rows, schema=_frame(schema.empty_table()).schema)


def _frame(table: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    return found
