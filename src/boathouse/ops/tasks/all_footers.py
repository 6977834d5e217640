"""Reads the footers of data files of every format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa

from boathouse.avro.rows import open_avro
from boathouse.avro.summary import footer_of as avro_footer
from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.ops.tasks.footers import FooterTask, batches
from boathouse.orc.summary import orc_footer
from boathouse.parquet.footer_summary import Footer, footer_of
from boathouse.parquet.matching import Matching
from boathouse.parquet.source import open_source
from boathouse.table.units import AVRO, ORC, PARQUET

_MAGIC: Final = {b"PAR1": PARQUET, b"ORC": ORC, b"Obj\x01": AVRO}
"""What a file of a format begins with."""
_PLAIN: Final = Matching()


def read_all_footers(task: FooterTask) -> Iterator[pa.RecordBatch]:
    """As `read_footers`, of every format, with bounds of floats. Errors name the file: UnsupportedFeatureError for one
    of another format, UnsupportedTypeError, CorruptTableError."""
    found = []
    for number, uri, size in zip(task.numbers, task.uris, task.sizes, strict=True):
        try:
            format = _format(task, uri, size) if task.format is None else task.format
            found.append((number, format, _footer(task, uri, size, format)))
        except BoathouseError as error:
            error.where = error.where or uri
            raise
    yield from batches(found)


def _format(task: FooterTask, uri: str, size: int) -> int:
    with closing(task.files.open_input(uri, size)) as stream:
        start = bytes(stream.read_at(min(size, 4), 0))
    for magic, format in _MAGIC.items():
        if start.startswith(magic):
            return format
    raise UnsupportedFeatureError("the file is neither Parquet nor ORC nor Avro", where=uri)


def _footer(task: FooterTask, uri: str, size: int, format: int) -> Footer:
    if format == ORC:
        return orc_footer(task.files, uri, size)
    if format == AVRO:
        with closing(open_avro(task.files, uri, _PLAIN, size)) as file:
            return avro_footer(file)
    with closing(open_source(task.files, uri, size=size)) as source:
        return footer_of(source, floats=True, ids=True)
