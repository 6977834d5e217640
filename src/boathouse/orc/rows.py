"""Reads ORC files: pyarrow decodes the stripes, behind a tail that says only what has been checked."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow.orc import ORCFile

from boathouse.errors import CorruptTableError, MissingRequirementError, UnsupportedFeatureError
from boathouse.orc import footer as orc_footer
from boathouse.orc.footer import Tail, name_of
from boathouse.orc.times import StripePart, with_timestamps
from boathouse.orc.types import Column, columns_of
from boathouse.parquet.field_source import FieldSource
from boathouse.parquet.fields import file_fields
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import without_columns
from boathouse.parquet.resolve import Resolver

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

_MOST_BYTES: Final = 8 << 30
"""The most bytes that a stripe may take in memory, without its strings: pyarrow reads it at once."""


def open_orc(files: DataFiles, uri: str, matching: Matching, size: int | None = None) -> FieldSource:
    """Opens an ORC file. Raises CorruptTableError, UnsupportedFeatureError, and the errors of `files`."""
    stream = files.open_input(uri, size)
    try:
        tail = orc_footer.read_tail(stream, uri)
        columns = {c.field.name: c for c in columns_of(tail.footer, uri)}
        fields = file_fields(pa.schema([c.field for c in columns.values()]), matching.file_ids)
    except BaseException:
        stream.close()
        raise
    found = _OrcFile(uri, stream, tail, columns)
    return FieldSource(uri, stream, Resolver(fields, matching), found.tables)


@dataclass(frozen=True, slots=True)
class _OrcFile:
    uri: str
    stream: pa.NativeFile
    tail: Tail
    columns: dict[str, Column]

    def tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """A table for each stripe."""
        wanted = [self.columns[name] for name in names]
        for column in wanted:
            if column.refused is not None:
                raise UnsupportedFeatureError(
                    f"column `{column.field.name}`: {column.refused}", where=self.uri, advice="rewrite it as Parquet"
                )
        if not wanted:
            yield from (without_columns(stripe.rows) for stripe in self.tail.footer.stripes)
            return
        source = _Checked(self.stream, self.tail, [n for c in wanted for n in c.far])
        with _damage(self.uri, source):
            reader = ORCFile(pa.PythonFile(source, mode="r"))
        for number, stripe in enumerate(self.tail.footer.stripes):
            if stripe.rows * sum(c.width for c in wanted) > _MOST_BYTES:
                raise UnsupportedFeatureError(
                    f"an ORC stripe of {stripe.rows:,} rows is too large to be read", where=self.uri,
                    advice="rewrite it with smaller stripes",
                )  # fmt: skip
            with _damage(self.uri, source):
                batch = reader.read_stripe(number, [name_of(c.number) for c in wanted])
                if batch.num_rows != stripe.rows:
                    raise pa.ArrowInvalid(f"{batch.num_rows} rows where the footer says {stripe.rows}")
                found = [batch.column(name_of(c.number)) for c in wanted]
                # pyarrow has other names, and numbers where Iceberg has times.
                arrays = [a.view(c.stored) for c, a in zip(wanted, found)]
            for i, c in enumerate(wanted):
                if c.far:
                    part = StripePart(self.stream, self.tail, stripe, self.uri)
                    arrays[i] = with_timestamps(arrays[i], c.field.type, iter(c.far), part)
            yield pa.Table.from_arrays(arrays, names=list(names))


class _Checked(io.RawIOBase):
    """The file with another tail. pyarrow reports an error of the store as a text: it is kept here."""

    def __init__(self, stream: pa.NativeFile, tail: Tail, seconds: Collection[int]) -> None:
        super().__init__()
        self.failed: BaseException | None = None
        self._stream, self._content, self._tail = stream, tail.content, tail.clean(seconds)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self._content + len(self._tail)
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: size}[whence])
        return self._at

    def read(self, size: int = -1) -> bytes:
        start = self._at
        stop = self._content + len(self._tail)
        stop = stop if size < 0 else min(stop, start + size)
        data = b""
        if start < min(stop, self._content):
            try:
                data = bytes(self._stream.read_at(min(stop, self._content) - start, start))
            except BaseException as error:
                self.failed = error
                raise
        if stop > self._content:
            data += self._tail[max(0, start - self._content) : stop - self._content]
        self._at += len(data)
        return data


@contextmanager
def _damage(uri: str, source: _Checked) -> Iterator[None]:
    """Turns what pyarrow raises for corrupt data into CorruptTableError; errors of the store pass through."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        if source.failed is not None:
            raise source.failed from None
        if "zoneinfo" in str(error) or "time zone" in str(error):
            raise MissingRequirementError(
                f"ORC files with timestamps cannot be read without the database of time zones: {error}", where=uri,
                advice="install the system's package tzdata, or set TZDIR to its folder",
            ) from error  # fmt: skip
        what = "corrupt ORC data" + (", or too little memory" if isinstance(error, MemoryError) else "")
        raise CorruptTableError(f"{what}: {error}", where=uri) from error
