"""The code that runs on executors: reading fragments, and writing data files of the table's version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from boathouse.bits import system
from boathouse.errors import BoathouseError, SchemaMismatchError
from boathouse.lance.blobs.writer import BlobWriter
from boathouse.lance.columns.stored_types import CONVERTED, stored
from boathouse.lance.file.fields import SchemaMessage
from boathouse.lance.file.schema import arrow_schema, tree
from boathouse.lance.file.storable import check_storable
from boathouse.lance.file.writer import FileSummary, LanceWriter
from boathouse.lance.lineage.sequences import FIRST_NEW, encode_ids
from boathouse.lance.options import FIELDS, NO_PARTITION, OUTCOME_NATIVE, VERSION
from boathouse.lance.read import read
from boathouse.storage import join
from boathouse.table.metadata_columns import POSITION, ROW_ID, UNIT
from boathouse.table.tasks import WriteContext
from boathouse.table.units import DATA_FILE, LANCE, outcome_rows, stats_type
from boathouse.table.units import outcomes_schema as schema_of_outcomes

__all__ = ["outcomes_schema", "read", "writers"]


def outcomes_schema(context: WriteContext) -> pa.Schema:
    """OUTCOMES of Lance files, without statistics, which the format does not have."""
    return schema_of_outcomes(NO_PARTITION, stats_type(()), OUTCOME_NATIVE)


def writers(context: WriteContext) -> LanceFiles:
    """New data files for this context."""
    return LanceFiles(context)


def file_name(ending: str) -> str:
    """The first three bytes of a uuid as binary digits, the others as hex: Lance's naming of files. Then the ending of
    the write, which readers do not look at."""
    raw = system.current().uuid4().bytes
    return "".join(f"{byte:08b}" for byte in raw[:3]) + raw[3:].hex() + ending + ".lance"


@dataclass(frozen=True, slots=True)
class _Closed:
    uri: str
    summary: FileSummary
    row_ids: bytes | None
    places: bytes | None
    beside: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.uri, *self.beside)


class LanceFiles:
    """The data files of one write, under new names; Lance has no partitions."""

    def __init__(self, context: WriteContext) -> None:
        """Raises UnsupportedFeatureError for columns that are not written."""
        self._context = context
        nodes = tree(SchemaMessage.decode(context.options[FIELDS]).fields, where=context.directory)
        check_storable(nodes, context.options[VERSION], context.directory)

    def open(self, partition: Mapping[int, object]) -> LanceFileWriter:
        return LanceFileWriter(self._context)

    def outcomes(self, closed: Sequence[_Closed]) -> pa.Table:
        parts = [
            {
                "path": c.uri,
                "size": c.summary.size,
                "format": LANCE,
                "fields": c.summary.fields,
                "columns": c.summary.column_indices,
            }
            for c in closed
        ]
        known = {
            "path": [c.uri for c in closed],
            "size": [c.summary.size for c in closed],
            "rows": [c.summary.rows for c in closed],
            "partition": [{}] * len(closed),
            "parts": [[part] for part in parts],
            "native": [{"version": c.summary.version, "row_ids": c.row_ids, "places": c.places} for c in closed],
        }
        return outcome_rows(outcomes_schema(self._context), DATA_FILE, LANCE, 0, known)


class LanceFileWriter:
    """One data file; batches have the plain types and are written with the table's own."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        self.uri = join(context.directory, file_name(context.ending))
        fields = SchemaMessage.decode(context.options[FIELDS]).fields
        self._sink = context.files.open_output(self.uri)
        self._schema = arrow_schema(fields)
        self._writer = LanceWriter(self._sink, self._schema, fields, version=context.options[VERSION])
        self._blobs = BlobWriter(context.files, self.uri, context.options[VERSION], self._writer)
        self._blob_columns = {i: node for i, node in enumerate(tree(fields)) if node.is_blob}
        self._converted = {i: node for i, node in enumerate(tree(fields)) if node.extension in CONVERTED}
        self._bytes = 0
        self._carried: dict[str, list[pa.Array]] = {name: [] for name in context.hidden}

    @property
    def bytes_written(self) -> int:
        """Files beside this one do not count: those who compact see the sizes of data files."""
        return self._bytes + (self._writer.size if self._blob_columns else 0)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._carried:
            count = len(self._carried)
            for parts, column in zip(self._carried.values(), batch.columns[-count:], strict=True):
                parts.append(column)
            batch = batch.select(range(batch.num_columns - count))
        try:
            batch = self._without_bytes(batch)
            self._writer.write(self._spelt(batch))
        except pa.ArrowException as error:
            raise SchemaMismatchError(
                f"rows that the table's types cannot represent: {error}", where=self.uri
            ) from error
        self._bytes += batch.nbytes

    def _without_bytes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Blobs as the file stores them, whose bytes are written; JSON and brain floats as bytes."""
        for i, node in self._blob_columns.items():
            batch = batch.set_column(i, node.name, self._blobs.stored(node, batch.column(i)))
        for i, node in self._converted.items():
            batch = batch.set_column(i, node.name, stored(node, batch.column(i)))
        return batch

    def _spelt(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Plain columns as dictionaries if the table has them; other representations are cast by the writer."""
        if not any(pa.types.is_dictionary(f.type) for f in self._schema):
            return batch
        columns = [
            column.dictionary_encode().cast(f.type) if pa.types.is_dictionary(f.type) else column
            for f, column in zip(self._schema, batch.columns)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def close(self) -> _Closed:
        self._blobs.close()
        summary = self._writer.close()
        self._sink.close()
        ids, units, positions = (self._carried.get(name) for name in (ROW_ID, UNIT, POSITION))
        row_ids = None if ids is None else _encoded(ids)
        places = None if units is None or positions is None else _addresses(units, positions)
        return _Closed(self.uri, summary, row_ids, places, tuple(self._blobs.paths))

    def abort(self) -> None:
        self._blobs.abort()
        with suppress(BoathouseError, OSError, pa.ArrowException):
            self._sink.close()
        with suppress(BoathouseError, OSError, pa.ArrowException):
            self.context.files.delete(self.uri)


def _addresses(units: Sequence[pa.Array], positions: Sequence[pa.Array]) -> bytes:
    upper, lower = (pa.chunked_array(parts, pa.int64()).to_numpy() for parts in (units, positions))
    return encode_ids((upper << 32) + lower)


def _encoded(parts: Sequence[pa.Array]) -> bytes | None:
    """The ids of a file's rows, with numbers that stand for those of new rows; None if all are new."""
    ids = pa.chunked_array(parts, pa.int64())
    if ids.null_count == len(ids):
        return None
    numbers = ids.fill_null(-1).to_numpy().copy()
    new = numbers < 0
    numbers[new] = FIRST_NEW + np.arange(int(new.sum()))
    return encode_ids(numbers)
