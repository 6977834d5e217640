"""Writes ORC files: pyarrow encodes the stripes, each as a file in memory, and the tail of the whole is made here, with
the attributes of Iceberg on the types (Apache ORC specification; Iceberg specification, Appendix A)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow.orc import ORCWriter

from boathouse.arrow.gathered import Gathered, Written, discarded
from boathouse.arrow.normal import normal
from boathouse.errors import InvalidArgumentError
from boathouse.orc.attributes import ID, attributes_of
from boathouse.orc.footer import Footer, PostScript, Range, Statistics, Stripe, Tail, inflated, read_tail, stored
from boathouse.orc.moments import Ints, misread, stored_again
from boathouse.orc.stripes import Metadata, StripeFooter, StripeStatistics
from boathouse.types import Schema

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import OutputFiles

CODECS: Final = ("uncompressed", "snappy", "zlib", "lz4", "zstd")
_MAGIC: Final = b"ORC"
_ONE_STRIPE: Final = 1 << 40
_FIRST_RATIO: Final = 0.4
_DISTINCT: Final = 0.8
"""Strings have a dictionary if at most this part of them is distinct, as in the reference."""


@dataclass(frozen=True, slots=True)
class OrcOptions:
    """`stripe_bytes` (of Arrow memory) close a stripe."""

    compression: str = "zlib"
    strategy: str = "speed"
    stripe_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            raise InvalidArgumentError(
                f"no compression codec {self.compression!r} of ORC files", advice=f"use one of {', '.join(CODECS)}"
            )
        if self.strategy not in ("speed", "compression"):
            raise InvalidArgumentError(f"no compression strategy {self.strategy!r}", advice="use speed or compression")
        if self.stripe_bytes < 1:
            raise InvalidArgumentError(f"stripes of {self.stripe_bytes} bytes", advice="a stripe has at least one row")


@dataclass(frozen=True, slots=True)
class _Part:
    """A stripe that was written, what pyarrow's file said of it, and its statistics."""

    stripe: Stripe | None
    tail: Tail
    statistics: tuple[Statistics, ...]
    lengths: Mapping[int, int]
    indexed: bool


class OrcWriter:
    """One file being written; `close` or `abort` ends it. Batches have the types of `arrow`, in order, which are those
    of the fields of `schema`, of which none is void or variant."""

    def __init__(self, files: OutputFiles, uri: str, schema: Schema, arrow: pa.Schema, options: OrcOptions) -> None:
        self._files, self._uri, self._options = files, uri, options
        self._attributes = attributes_of(schema)
        self._gathered = Gathered(arrow, options.stripe_bytes)
        self._sink: pa.NativeFile | None = None
        self._place = 0
        self._parts: list[_Part] = []
        self._encoded = 0

    @property
    def bytes_written(self) -> int:
        """The approximate size of the file so far."""
        ratio = self._place / self._encoded if self._encoded else _FIRST_RATIO
        return int(self._place + self._gathered.bytes * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows. Raises ConstraintViolationError for timestamps that ORC lacks, and what the store raises."""
        for rows in self._gathered.add(batch):
            self._stripe(rows)

    def close(self) -> Written:
        """Finishes the file; one without rows is readable too."""
        rest = self._gathered.rest()
        if rest.num_rows or not self._parts:
            self._stripe(rest)
        stripes = [p.stripe for p in self._parts if p.stripe is not None]
        self._put(self._tail(stripes))
        assert self._sink is not None
        self._sink.close()
        return Written(self._place, sum(s.rows for s in stripes), [s.offset for s in stripes], self._sizes())

    def abort(self) -> None:
        """Leaves nothing behind; never raises."""
        discarded(self._sink, self._files, self._uri)

    def _open(self) -> None:
        if self._sink is None:
            self._sink = self._files.open_output(self._uri)
            self._put(_MAGIC)

    def _put(self, data: bytes) -> None:
        assert self._sink is not None
        self._sink.write(data)
        self._place += len(data)

    def _stripe(self, rows: pa.Table) -> None:
        self._encoded += rows.nbytes
        columns = {str(i): normal(_one(c), _as_stored) for i, c in enumerate(rows.columns)}
        moments = misread(dict(zip(rows.column_names, columns.values())), self._uri)
        data = self._packed(pa.table(columns) if columns else rows, rows.column_names)
        tail = read_tail(pa.BufferReader(data), self._uri)
        self._open()
        if not tail.footer.stripes:
            self._parts.append(_Part(None, tail, tail.footer.statistics, {}, True))
            return
        (stripe,) = tail.footer.stripes
        body = data[stripe.offset : stripe.end]
        statistics = _statistics(tail, moments)
        if moments:
            body, stripe = stored_again(body, stripe, moments, tail.script, self._uri)
        placed = replace(stripe, offset=self._place)
        self._put(body)
        lengths = _lengths(body[stripe.index + stripe.data :], tail.script, self._uri)
        self._parts.append(_Part(placed, tail, statistics, lengths, not moments))

    def _packed(self, rows: pa.Table, names: Sequence[str]) -> bytes:
        """The rows as a file of one stripe."""
        sink = pa.BufferOutputStream()
        writer = ORCWriter(
            sink,
            stripe_size=_ONE_STRIPE,
            compression=self._options.compression,
            compression_strategy=self._options.strategy,
            dictionary_key_size_threshold=_DISTINCT,
        )
        writer.write(rows.rename_columns(list(names)))
        writer.close()
        return bytes(sink.getvalue().to_pybytes())

    def _tail(self, stripes: Sequence[Stripe]) -> bytes:
        """Statistics of stripes, footer and postscript."""
        first = self._parts[0].tail
        each = [StripeStatistics(columns=p.statistics) for p in self._parts if p.stripe is not None]
        metadata = stored(Metadata(stripes=tuple(each)).encode(), first.script) if each else b""
        types = zip(first.footer.types, self._attributes, strict=True)
        footer = Footer(
            header=len(_MAGIC),
            content=self._place - len(_MAGIC),
            stripes=tuple(stripes),
            types=tuple(replace(type, attributes=found) for type, found in types),
            rows=sum(s.rows for s in stripes),
            statistics=tuple(map(_merged, zip(*(p.statistics for p in self._parts), strict=True))),
            stride=first.footer.stride if all(p.indexed for p in self._parts) else 0,
            writer=first.footer.writer,
            software=first.footer.software,
        )
        body = stored(footer.encode(), first.script)
        script = replace(first.script, footer=len(body), metadata=len(metadata)).encode()
        return metadata + body + script + bytes((len(script),))

    def _sizes(self) -> dict[int, int]:
        """By field id."""
        found = {}
        for number, attributes in enumerate(self._attributes[1:], 1):
            (id,) = (int(a.value) for a in attributes if a.key == ID)
            found[id] = sum(p.lengths.get(number, 0) for p in self._parts)
        return found


def _one(column: pa.ChunkedArray) -> pa.Array:
    """The chunks as one array that begins with its own memory: pyarrow's writer misreads slices of structs."""
    chunks = column.chunks
    return pa.concat_arrays([chunks[0].slice(0, 0), *chunks]) if chunks else pa.nulls(0, column.type)


def _as_stored(array: pa.Array) -> pa.Array:
    """ORC has no times, and bytes of any length only."""
    if pa.types.is_time(array.type):
        return array.view(pa.int64())
    return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array


def _lengths(footer: bytes, script: PostScript, uri: str) -> dict[int, int]:
    """The bytes of each type's streams in a stripe."""
    found: dict[int, int] = {}
    for stream in StripeFooter.decode(inflated(footer, script, uri), where=uri).streams:
        column = stream.column or 0
        found[column] = found.get(column, 0) + stream.length
    return found


def _statistics(tail: Tail, moments: Mapping[int, tuple[Ints, Ints]]) -> tuple[Statistics, ...]:
    """Those of the file, which are those of its only stripe. Where timestamps are stored again, their bounds are
    too."""
    return tuple(
        replace(s, times=_times(*moments[number]), unknown=b"") if number in moments else s
        for number, s in enumerate(tail.footer.statistics)
    )


def _times(seconds: Ints, nanos: Ints) -> Range:
    milliseconds = seconds * 1000 + nanos // 1_000_000
    return Range(utc_low=_zigzag(int(milliseconds.min())), utc_high=_zigzag(int(milliseconds.max())))


def _zigzag(value: int) -> int:
    return (value << 1) ^ (value >> 63)


def _merged(parts: Sequence[Statistics]) -> Statistics:
    """The statistics of a column in a file of several stripes: counts, bytes and the bounds of timestamps; others are
    left to the stripes."""
    if len(parts) == 1:
        return parts[0]
    return Statistics(
        values=sum(p.values or 0 for p in parts),
        nulls=any(p.nulls for p in parts),
        bytes_on_disk=sum(p.bytes_on_disk or 0 for p in parts),
        times=_span([p for p in parts if p.values]),
    )


def _span(parts: Sequence[Statistics]) -> Range | None:
    bounds = [p.times.bounds for p in parts if p.times is not None]
    known = [b for b in bounds if b is not None]
    if not parts or len(known) < len(parts):
        return None
    return Range(utc_low=_zigzag(min(b[0] for b in known)), utc_high=_zigzag(max(b[1] for b in known)))
