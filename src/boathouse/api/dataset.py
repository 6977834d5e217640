"""A scan as an Arrow dataset: whoever reads datasets asks for columns and rows, and only those are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from boathouse.api.arguments import names, number
from boathouse.api.arrow_conditions import from_arrow_expression
from boathouse.api.conditions import is_arrow_expression
from boathouse.arrow.schema import from_arrow
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError

if TYPE_CHECKING:
    import pyarrow.compute

    from boathouse.api.scan import Scan

Expression: TypeAlias = "pyarrow.compute.Expression"


class ScanDataset(ds.Dataset):
    """The rows of a scan. Conditions that have a counterpart are evaluated by the scan, and choose the files that it
    reads; others by Arrow, on the rows that it gives."""

    def __init__(self, scan: Scan) -> None:  # there is no dataset of Arrow's own below it
        self._scan = scan
        self._schema = scan.to_reader().schema

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: Expression | None = None, **options: Any
    ) -> DatasetRows:
        """The rows that satisfy `filter`, and of them these columns. How the rows are read (`options`: batch sizes,
        threads) is up to the scan.

        Raises InvalidArgumentError for columns that are not names of the dataset's, and a condition of another library.
        """
        asked = None if columns is None else names("columns", columns)
        for name in asked or ():
            if name not in self._schema.names:
                raise InvalidArgumentError(
                    f"no column {name!r} in the dataset", advice=f"it has {', '.join(self._schema.names)}"
                )
        if filter is None:
            return DatasetRows(self._scan, self._schema, asked, None)
        if not is_arrow_expression(filter):
            raise InvalidArgumentError(f"{filter!r} is not an expression of Arrow", advice="use pyarrow.compute.field")
        if self._scan.takes_conditions:
            try:
                where = from_arrow_expression(filter, from_arrow(self._schema))
            except UnsupportedFeatureError:
                return DatasetRows(self._scan, self._schema, asked, filter)
            return DatasetRows(self._scan.narrowed(None, where), self._schema, asked, None)
        return DatasetRows(self._scan, self._schema, asked, filter)

    def to_table(self, columns: Sequence[str] | None = None, filter: Expression | None = None, **_: Any) -> pa.Table:
        """As `scanner`, in memory."""
        return self.scanner(columns, filter).to_table()

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Expression | None = None, **_: Any
    ) -> Iterator[pa.RecordBatch]:
        """As `scanner`, batch by batch."""
        return self.scanner(columns, filter).to_batches()

    def head(
        self, num_rows: int, columns: Sequence[str] | None = None, filter: Expression | None = None, **_: Any
    ) -> pa.Table:
        """At most `num_rows` rows."""
        return self.scanner(columns, filter).head(num_rows)

    def count_rows(self, filter: Expression | None = None, **_: Any) -> int:
        """The number of rows."""
        return self.scanner(None, filter).count_rows()

    def take(self, indices: Any, columns: Sequence[str] | None = None, **_: Any) -> pa.Table:
        """Rows by their numbers in the scan."""
        return self.to_table(columns).take(indices)

    @property
    def partition_expression(self) -> Any:
        """None: partitions are known to the table alone."""
        return None

    def get_fragments(self, filter: Expression | None = None) -> Any:
        """Refused: a file of a table is not all that its rows depend on."""
        raise self._refused("get_fragments")

    def _get_fragments(self, filter: Expression | None = None) -> Any:
        raise self._refused("get_fragments")

    def replace_schema(self, schema: pa.Schema) -> Any:
        """Refused."""
        raise self._refused("replace_schema")

    def filter(self, expression: Expression) -> Any:
        """Refused; `to_table`, `to_batches` and `scanner` take conditions."""
        raise self._refused("filter")

    def sort_by(self, sorting: Any, **_: Any) -> Any:
        """Refused."""
        raise self._refused("sort_by")

    def join(self, *_: Any, **__: Any) -> Any:
        """Refused."""
        raise self._refused("join")

    def join_asof(self, *_: Any, **__: Any) -> Any:
        """Refused."""
        raise self._refused("join_asof")

    def _scanner_options(self, options: Any) -> Any:
        raise self._refused("_scanner_options")

    def __reduce__(self) -> Any:
        raise self._refused("pickling")

    def _refused(self, what: str) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"{what} is not offered by the dataset of a table", where=self._scan.uri, advice="use to_table()"
        )


class DatasetRows:
    """What a scanner of Arrow offers, of a scan."""

    def __init__(self, scan: Scan, schema: pa.Schema, columns: list[str] | None, filter: Expression | None) -> None:
        """Of the rows that satisfy `filter`, which Arrow evaluates, these columns."""
        self.dataset_schema = schema
        self.projected_schema = schema if columns is None else pa.schema([schema.field(n) for n in columns])
        self._columns, self._filter = columns, filter
        # A scan of no columns has no rows to count: those of one are read.
        self._scan = scan if columns is None or filter is not None else scan.narrowed(columns or schema.names[:1])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch."""
        for batch in self._scan.to_batches():
            if self._filter is not None:
                batch = batch.filter(self._filter)
            yield batch if self._columns is None else batch.select(self._columns)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """The rows in memory."""
        if self._filter is None:
            found = self._scan.to_arrow()
            return found if self._columns is None else found.select(self._columns)
        return pa.Table.from_batches(list(self.to_batches()), self.projected_schema)

    def head(self, num_rows: int) -> pa.Table:
        """At most so many rows."""
        most = number("num_rows", num_rows)
        if self._filter is None:
            found = self._scan.head(most)
            return found if self._columns is None else found.select(self._columns)
        return self.to_table().slice(0, most)

    def count_rows(self) -> int:
        """The number of rows."""
        return self._scan.count() if self._filter is None else sum(b.num_rows for b in self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)
