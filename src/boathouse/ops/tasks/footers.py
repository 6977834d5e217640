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
from boathouse.table.units import PARQUET
from boathouse.types import Schema

_SCHEMA: Final = b"boathouse:schema"


@dataclass(frozen=True, slots=True)
class FooterTask:
    """Some files: `numbers` identify them in the result. Those of one `format` (None: each shows its own) are described
    by `read_all_footers`."""

    files: DataFiles
    uris: Sequence[str]
    sizes: Sequence[int]
    numbers: Sequence[int]
    format: int | None = PARQUET


Found = tuple[int, int, Footer]
"""A file's number, its format and its footer."""


def read_footers(task: FooterTask) -> Iterator[pa.RecordBatch]:
    """The footers of Parquet files, without bounds of floats: a batch for each distinct schema, of
    `file`, `format`, `rows`, `offsets`, and `stats` as `struct<"0": struct<lower, upper, nulls, size>, ...>` over its
    leaves outside lists and maps. The schema has the files' field ids."""
    found = []
    for number, uri, size in zip(task.numbers, task.uris, task.sizes, strict=True):
        with closing(open_source(task.files, uri, size=size)) as source:
            found.append((number, PARQUET, footer_of(source, ids=True)))
    yield from batches(found)


def batches(found: Sequence[Found]) -> Iterator[pa.RecordBatch]:
    """Footers as `read_footers` gives them."""
    groups: dict[Schema, list[Found]] = {}
    for one in found:
        groups.setdefault(one[2].schema, []).append(one)
    for schema, group in groups.items():
        yield _batch(schema, group)


def _batch(schema: Schema, group: Sequence[Found]) -> pa.RecordBatch:
    numbers, formats, footers = zip(*group)
    leaves = [_leaf([f.stats[i] for f in footers]) for i in range(len(footers[0].stats))]
    names = [str(i) for i in range(len(leaves))]
    columns = {
        "file": pa.array(numbers, pa.int64()),
        "format": pa.array(formats, pa.int8()),
        "rows": pa.array([f.rows for f in footers], pa.int64()),
        "offsets": pa.array([f.offsets for f in footers], pa.list_(pa.int64())),
        "stats": pa.StructArray.from_arrays(leaves, names=names)
        if leaves
        else pa.array([{}] * len(group), pa.struct([])),
    }
    plain = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return plain.replace_schema_metadata({_SCHEMA: to_arrow(schema, field_ids=True).serialize().to_pybytes()})


def _leaf(stats: Sequence[LeafStats]) -> pa.StructArray:
    held = to_arrow_type(stats[0].type)
    lower, upper = (_values([getattr(s, name) for s in stats], held) for name in ("lower", "upper"))
    nulls, sizes = (pa.array([getattr(s, n) for s in stats], pa.int64()) for n in ("nulls", "column_size"))
    return pa.StructArray.from_arrays([lower, upper, nulls, sizes], names=["lower", "upper", "nulls", "size"])


def _values(scalars: Sequence[pa.Scalar | None], held: pa.DataType) -> pa.Array:
    if all(s is None for s in scalars):
        return pa.nulls(len(scalars), held)
    return pa.array(scalars, held)


def schema_of(batch: pa.RecordBatch) -> Schema:
    """The schema of the files of a batch that `read_footers` made."""
    return from_arrow(pa.ipc.read_schema(pa.py_buffer(batch.schema.metadata[_SCHEMA])))
