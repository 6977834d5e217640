"""Reads the footers of Parquet files, many in one task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles
from boathouse.arrow.schema import from_arrow, to_arrow, to_arrow_type
from boathouse.parquet.footer_summary import Footer, footer_of
from boathouse.parquet.source import open_source
from boathouse.parquet.stats import LeafStats
from boathouse.types import Schema

_SCHEMA: Final = b"boathouse:schema"


@dataclass(frozen=True, slots=True)
class FooterTask:
    """Some files: `numbers` identify them in the result."""

    files: DataFiles
    uris: Sequence[str]
    sizes: Sequence[int]
    numbers: Sequence[int]


def read_footers(task: FooterTask) -> Iterator[pa.RecordBatch]:
    """A batch for each distinct schema: `file`, `rows`, and `stats` as `struct<"0": struct<lower, upper, nulls>, ...>`
    over its leaves outside lists and maps."""
    found: dict[Schema, list[tuple[int, Footer]]] = {}
    for number, uri, size in zip(task.numbers, task.uris, task.sizes, strict=True):
        with closing(open_source(task.files, uri, size=size)) as source:
            footer = footer_of(source)
        found.setdefault(footer.schema, []).append((number, footer))
    for schema, group in found.items():
        yield _batch(schema, [n for n, _ in group], [f for _, f in group])


def _batch(schema: Schema, numbers: Sequence[int], footers: Sequence[Footer]) -> pa.RecordBatch:
    leaves = [_leaf([f.stats[i] for f in footers]) for i in range(len(footers[0].stats))]
    names = [str(i) for i in range(len(leaves))]
    stats = pa.StructArray.from_arrays(leaves, names=names) if leaves else pa.array([{}] * len(numbers), pa.struct([]))
    rows = pa.array([f.rows for f in footers], pa.int64())
    plain = pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), rows, stats], names=["file", "rows", "stats"])
    return plain.replace_schema_metadata({_SCHEMA: to_arrow(schema).serialize().to_pybytes()})


def _leaf(stats: Sequence[LeafStats]) -> pa.StructArray:
    held = to_arrow_type(stats[0].type)
    lower, upper = (_values([getattr(s, name) for s in stats], held) for name in ("lower", "upper"))
    nulls = pa.array([s.nulls for s in stats], pa.int64())
    return pa.StructArray.from_arrays([lower, upper, nulls], names=["lower", "upper", "nulls"])


def _values(scalars: Sequence[pa.Scalar | None], held: pa.DataType) -> pa.Array:
    if all(s is None for s in scalars):
        return pa.nulls(len(scalars), held)
    return pa.array(scalars, held)


def schema_of(batch: pa.RecordBatch) -> Schema:
    """The schema of the files of a batch that `read_footers` made."""
    return from_arrow(pa.ipc.read_schema(pa.py_buffer(batch.schema.metadata[_SCHEMA])))
