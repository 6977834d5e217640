"""What an ORC file outside of a table says: its columns, the number of rows, safe statistics."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa

from boathouse.arrow.schema import from_arrow, to_arrow_type
from boathouse.orc.footer import INSTANT, LIST, MAP, STRING, STRUCT, TIMESTAMP, UNION, Statistics, read_tail
from boathouse.orc.footer import Footer as OrcFooter
from boathouse.orc.types import columns_of
from boathouse.parquet.fields import file_fields
from boathouse.parquet.footer_summary import AsStored, Footer
from boathouse.parquet.stats import LeafStats, SchemaLeaf, schema_leaves
from boathouse.types import IntegerType

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles


def orc_footer(files: DataFiles, uri: str, size: int | None = None) -> Footer:
    """The footer, columns with their field ids. Bounds are those of whole numbers and texts: those of other types
    depend on the writer's calendar or time zone, or on NaN. Raises CorruptTableError, UnsupportedTypeError."""
    with closing(files.open_input(uri, size)) as stream:
        said = read_tail(stream, uri).footer
    columns = columns_of(said, uri)
    fields = file_fields(pa.schema([c.field for c in columns]))
    stored = AsStored(ids=True, micros=_micros(said))
    schema = stored.schema(from_arrow(pa.schema([c.field for c in columns])), fields)
    leaves = [leaf for leaf in schema_leaves(schema) if not leaf.repeated]
    stats = tuple(_stats(leaf, said) for leaf in leaves)
    return Footer(schema, said.rows, stats, tuple(s.offset for s in said.stripes))


def _micros(said: OrcFooter) -> set[int]:
    """The leaves that are timestamps of microseconds, by their numbers: types are in the order of their tree."""
    leaves = [t for t in said.types if t.kind not in (STRUCT, LIST, MAP, UNION)]
    nanos = [t.attribute("iceberg.timestamp-unit") == "NANOS" for t in leaves]
    return {i for i, t in enumerate(leaves) if t.kind in (TIMESTAMP, INSTANT) and not nanos[i]}


def _stats(leaf: SchemaLeaf, said: OrcFooter) -> LeafStats:
    number = 0
    for name in leaf.path:
        type = said.types[number]
        number = type.below[type.names.index(name)]
    plain = LeafStats(leaf.path, leaf.field.type)
    if number >= len(said.statistics):
        return plain
    found = said.statistics[number]
    nulls = None if found.values is None or found.values > said.rows else said.rows - found.values
    lower, upper = _bounds(found, leaf, said.types[number].kind)
    return LeafStats(
        leaf.path, leaf.field.type, lower, upper, nulls=nulls, values=said.rows, column_size=found.bytes_on_disk
    )


def _bounds(found: Statistics, leaf: SchemaLeaf, kind: int | None) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    low: int | str | None = None
    high: int | str | None = None
    if isinstance(leaf.field.type, IntegerType) and found.numbers is not None:
        low, high = _signed(found.numbers.low), _signed(found.numbers.high)
    elif kind == STRING and found.texts is not None:
        low, high = _text(found.texts.low), _text(found.texts.high)
    if low is None or high is None or low > high:  # type: ignore[operator]
        return None, None
    held = to_arrow_type(leaf.field.type)
    try:
        return pa.scalar(low, held), pa.scalar(high, held)
    except (pa.ArrowInvalid, OverflowError):
        return None, None


def _signed(zigzag: int | None) -> int | None:
    return None if zigzag is None else (zigzag >> 1) ^ -(zigzag & 1)


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
