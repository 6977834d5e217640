"""The data files of one write, and their rows of OUTCOMES; runs on executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.ordering import OrderCheck
from boathouse.bits import system
from boathouse.errors import ConstraintViolationError
from boathouse.iceberg.data_files.file_writers import Stored, StoredFile, stored_files
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID, POSITION_ID
from boathouse.iceberg.metadata.partitions import partition_path
from boathouse.parquet.stats import schema_leaves
from boathouse.parquet.written_stats import FileLeaves, struct_of
from boathouse.storage import join
from boathouse.table.tasks import WriteContext
from boathouse.table.units import KIND_OF, outcome_rows, outcomes_schema, partition_type, stats_type
from boathouse.types import INT64, STRING, Field, Schema

NATIVE: Final = pa.struct(
    [
        pa.field("column_sizes", pa.list_(pa.int64())),
        pa.field("split_offsets", pa.list_(pa.int64())),
        pa.field("sort_order_id", pa.int32()),
    ]
)
"""Bytes of each leaf's chunks, in the order of `stats`; where the row groups start; the table's order that the rows
were found to be in."""
SORT_ORDER: Final = "sort_order_id"
"""The option with the ids of the table's orders, by their fields."""
OF_DELETES: Final = "deletes"
"""The option with those of files of positions and of keys that differ from those of data files."""
_OF_ROWS: Final = frozenset({"positions", "keys"})
"""What delete files hold."""
_PLACES: Final = (Field("file_path", STRING, False, id=FILE_PATH_ID), Field("pos", INT64, False, id=POSITION_ID))


def stored_rows(context: WriteContext) -> Schema:
    """The columns of files as they are stored: those of positions have the specification's names and ids."""
    return Schema(_PLACES) if context.content == "positions" else context.rows


def outcomes(context: WriteContext) -> pa.Schema:
    """OUTCOMES for this context: statistics over every leaf of the schema, depth first."""
    types = [leaf.field.type for leaf in schema_leaves(context.schema)]
    return outcomes_schema(partition_type(context.spec), stats_type(types), NATIVE)


@dataclass(frozen=True, slots=True)
class _Closed:
    uri: str
    partition: Mapping[int, object]
    stored: Stored
    sorted: bool

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.uri,)


class DataFiles:
    """The data files of one write."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        options = context.options
        if context.content in _OF_ROWS:
            options = options.get(OF_DELETES, options)
        elif context.codec is not None:
            options = {**options, "compression": context.codec}
        self.rows = stored_rows(context)
        self.leaves = FileLeaves(self.rows if context.content == "positions" else context.schema)
        self.stored = stored_files(context, self.rows, self.leaves, options)
        self._schema = outcomes(context)

    def open(self, partition: Mapping[int, object]) -> DataFileWriter:
        return DataFileWriter(self, partition)

    def outcomes(self, closed: Sequence[_Closed]) -> pa.Table:
        leaves = self.leaves.columns([c.stored.stats for c in closed])
        sizes = [list(row) for row in zip(*(leaf.sizes for leaf in leaves))]
        order = self.context.options.get(SORT_ORDER, {}).get(self.context.order)
        native = [
            pa.array(sizes or [[]] * len(closed), pa.list_(pa.int64())),
            pa.array([c.stored.offsets for c in closed], pa.list_(pa.int64())),
            pa.array([order if c.sorted else None for c in closed], pa.int32()),
        ]
        spec = self.context.spec
        known = {
            "path": [c.uri for c in closed],
            "size": [c.stored.size for c in closed],
            "rows": [c.stored.rows for c in closed],
            "partition": [{str(f.id): c.partition.get(f.id) for f in spec} for c in closed],
            "stats": struct_of(leaves, len(closed)),
            "native": pa.StructArray.from_arrays(native, fields=list(NATIVE)),
        }
        return outcome_rows(self._schema, KIND_OF[self.context.content], self.stored.format, spec.id, known)


class DataFileWriter:
    """Rows that share one partition tuple, into one new file below the context's directory."""

    def __init__(self, files: DataFiles, partition: Mapping[int, object]) -> None:
        self._partition = partition
        context = files.context
        kind = "-deletes" if context.content in _OF_ROWS else ""
        name = f"00000-0-{system.current().uuid4()}{kind}{context.ending}{files.stored.suffix}"
        self._uri = join(context.directory, partition_path(context.spec, partition), name)
        self._files = files
        self._order = OrderCheck(files.rows, context.order) if context.order else None
        self._file: StoredFile = files.stored.open(self._uri)

    @property
    def bytes_written(self) -> int:
        return self._file.bytes_written

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows. Raises ConstraintViolationError for a null in a required column, and for strings that are not
        UTF-8."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ConstraintViolationError(f"the rows are not valid: {error}", where=self._uri) from None
        if self._files.context.content == "positions":
            batch = batch.rename_columns(self._files.rows.names)
        self._file.write(batch)
        if self._order is not None:
            self._order.update(batch)

    def close(self) -> _Closed:
        """Finishes the file."""
        in_order = self._order is not None and self._order.holds
        return _Closed(self._uri, self._partition, self._file.close(), in_order)

    def abort(self) -> None:
        """Leaves nothing behind."""
        self._file.abort()
