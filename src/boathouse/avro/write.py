"""Writes Avro data files: rows are encoded a column at a time, some megabytes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from boathouse.arrow.gathered import Gathered, Written, discarded
from boathouse.arrow.normal import normal
from boathouse.avro.container import CODECS, opening, stored_block
from boathouse.avro.writer import row_blocks
from boathouse.errors import InvalidArgumentError

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import OutputFiles

_TOGETHER: Final = 16 << 20
"""Bytes of Arrow memory that are encoded together: Arrow joins at most 2 GiB."""
_FIRST_RATIO: Final = 0.4


@dataclass(frozen=True, slots=True)
class AvroOptions:
    """`compression` is a codec of Avro's specification."""

    compression: str = "deflate"
    level: int | None = None

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            raise InvalidArgumentError(
                f"no compression codec {self.compression!r} of Avro files", advice=f"use one of {', '.join(CODECS)}"
            )


class AvroWriter:
    """One file being written; `close` or `abort` ends it. Batches have the types of `arrow`, in order, which are those
    of the fields of the Avro `schema`."""

    def __init__(self, files: OutputFiles, uri: str, schema: Any, arrow: pa.Schema, options: AvroOptions) -> None:
        self._files, self._uri, self._options, self._schema = files, uri, options, schema
        self._gathered = Gathered(arrow, _TOGETHER)
        self._sink: pa.NativeFile | None = None
        self._sync = b""
        self._place = self._rows = self._encoded = 0

    @property
    def bytes_written(self) -> int:
        """The approximate size of the file so far."""
        ratio = self._place / self._encoded if self._encoded else _FIRST_RATIO
        return int(self._place + self._gathered.bytes * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows; required fields have no nulls. Raises what the store raises."""
        for rows in self._gathered.add(batch):
            self._add(rows)

    def close(self) -> Written:
        """Finishes the file; one without rows is readable too."""
        self._add(self._gathered.rest())
        assert self._sink is not None
        self._sink.close()
        return Written(self._place, self._rows)

    def abort(self) -> None:
        """Leaves nothing behind; never raises."""
        discarded(self._sink, self._files, self._uri)

    def _add(self, rows: pa.Table) -> None:
        options = self._options
        if self._sink is None:
            self._sink = self._files.open_output(self._uri)
            head, self._sync = opening(self._schema, {}, options.compression)
            self._put(head)
        columns = [normal(_one(c)) for c in rows.columns]
        for count, data in row_blocks(columns, self._schema, rows.num_rows):
            self._put(stored_block(count, data, options.compression, self._sync, options.level))
        self._rows += rows.num_rows
        self._encoded += rows.nbytes

    def _put(self, data: bytes) -> None:
        assert self._sink is not None
        self._sink.write(data)
        self._place += len(data)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.chunks else pa.nulls(0, column.type)
