"""One Parquet data file of a table, and its row of OUTCOMES; runs on executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.bits import entropy
from boathouse.errors import ConstraintViolationError
from boathouse.iceberg.partitions import partition_path
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.stats import StatsCollector, schema_leaves, to_struct
from boathouse.parquet.write import ParquetOptions, ParquetWriter
from boathouse.storage import join
from boathouse.table.tasks import WriteContext
from boathouse.table.units import DATA_FILE, PARQUET, outcomes_schema, partition_type, stats_type

NATIVE: Final = pa.struct(
    [pa.field("column_sizes", pa.list_(pa.int64())), pa.field("split_offsets", pa.list_(pa.int64()))]
)
"""Bytes of each leaf's chunks, in the order of `stats`; where the row groups start."""


def outcomes(context: WriteContext) -> pa.Schema:
    """OUTCOMES for this context: statistics over every leaf of the schema, depth first."""
    types = [leaf.field.type for leaf in schema_leaves(context.schema)]
    return outcomes_schema(partition_type(context.spec), stats_type(types), NATIVE)


class DataFileWriter:
    """Rows that share one partition tuple, into one new file below the context's directory."""

    def __init__(self, context: WriteContext, partition: Mapping[int, object]) -> None:
        self._context = context
        self._partition = partition
        name = f"00000-0-{entropy.current().uuid4()}.parquet"
        self._uri = join(context.directory, partition_path(context.spec, partition), name)
        self._stats = StatsCollector(context.schema)
        options = context.options
        self._writer = ParquetWriter(
            context.files,
            self._uri,
            to_parquet_schema(context.schema),
            ParquetOptions(
                compression=options.get("compression", "zstd"),
                compression_level=options.get("compression_level"),
                row_group_bytes=options.get("row_group_bytes", 128 << 20),
            ),
        )

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows. Raises ConstraintViolationError for a null where the column is required, and for text that is
        no UTF-8."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ConstraintViolationError(f"the rows are not valid: {error}", where=self._uri) from None
        self._writer.write(batch)
        self._stats.update(batch)

    def close(self) -> pa.Table:
        """Finishes the file: one row of OUTCOMES."""
        summary = self._writer.close()
        stats = self._stats.finish(summary.metadata)
        schema = outcomes(self._context)
        native = {"column_sizes": [s.column_size for s in stats], "split_offsets": split_offsets(summary.metadata)}
        partition = {str(f.id): self._partition.get(f.id) for f in self._context.spec}
        row = {
            "kind": DATA_FILE,
            "path": self._uri,
            "format": PARQUET,
            "size": summary.size,
            "rows": summary.rows,
            "spec": self._context.spec.id,
            "partition": partition,
            "native": native,
        }
        table = pa.Table.from_pylist([row], schema=schema)
        at = schema.get_field_index("stats")
        return table.set_column(at, schema.field(at), to_struct(stats).cast(schema.field(at).type))

    def abort(self) -> None:
        """Leaves nothing behind."""
        self._writer.abort()


def split_offsets(metadata: pq.FileMetaData) -> list[int]:
    """Where each row group starts, ascending."""
    starts = []
    for i in range(metadata.num_row_groups):
        column = metadata.row_group(i).column(0)
        pages = column.data_page_offset
        starts.append(min(pages, column.dictionary_page_offset) if column.has_dictionary_page else pages)
    return sorted(starts)
