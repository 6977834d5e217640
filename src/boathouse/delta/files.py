"""FILES of a version: the checkpoint streamed, less what the entries after it replace, then what those add.

Pruned first by partition values, read alone; only survivors' other columns are kept, and only their statistics
decoded. Nothing holds all files of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.prune import Pruner
from boathouse.arrow.schema import to_arrow_type
from boathouse.delta import paths
from boathouse.delta.actions import Metadata
from boathouse.delta.checkpoint import BATCH_ROWS, OpenCheckpoint, read_files
from boathouse.delta.commits import ADD
from boathouse.delta.partition_values import decode_column
from boathouse.delta.schema import physical_name
from boathouse.delta.stats import StatsColumn, decode_stats, row_counts, stats_column
from boathouse.delta.tail import Tail, file_keys
from boathouse.expr.tree import Expr, Path, all_of, conjuncts
from boathouse.expr.tree import columns as columns_of
from boathouse.table.location import Location
from boathouse.table.plan import Tally
from boathouse.table.units import PARQUET, PART, column_stats_type, files_schema, partition_type
from boathouse.types import Field, Partitioning

Mask = np.ndarray[Any, np.dtype[np.bool_]]
NATIVE_FIELDS: Final = (
    "path", "partitionValues", "modificationTime", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip
NATIVE: Final = pa.struct([ADD.field(n) for n in NATIVE_FIELDS])


class Version(Protocol):
    """What is needed of a snapshot."""

    @property
    def location(self) -> Location: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def partitioning(self) -> Partitioning: ...
    @property
    def checkpoint(self) -> OpenCheckpoint | None: ...
    @property
    def tail(self) -> Tail: ...


def list_files(
    snapshot: Version, columns: Sequence[tuple[str, ...]], where: Expr | None, tally: Tally | None
) -> Iterator[pa.RecordBatch]:
    """FILES in batches. `unit` numbers the actions of the version, so that it is the same in every listing."""
    lister = Lister.of(snapshot, columns, where, tally or Tally())
    tail = snapshot.tail
    checkpoint = snapshot.checkpoint
    after = 0
    if checkpoint is not None and checkpoint.parts:
        after = checkpoint.rows
        choose = lister.choose if lister.by_partition is not None else None
        for units, adds in read_files(checkpoint, "add", ADD, choose):
            keys = paths.keys_of(adds.column("path"), lister.root)
            full = file_keys(keys, adds.column("deletionVector"))
            live = np.asarray(pc.invert(tail.superseded(full)).to_numpy(zero_copy_only=False), bool)
            yield from lister.emit(units, adds, keys, live)
    for start in range(0, tail.adds.num_rows, BATCH_ROWS):
        adds = tail.adds.slice(start, BATCH_ROWS).combine_chunks().to_batches()[0]
        units = pa.array(np.arange(after + start, after + start + adds.num_rows))
        live = np.ones(adds.num_rows, bool)
        if lister.by_partition is not None:
            live &= lister.choose(adds.column("partitionValues"))
        yield from lister.emit(units, adds, paths.keys_of(adds.column("path"), lister.root), live)


@dataclass(frozen=True, slots=True)
class Lister:
    """Turns add actions into FILES."""

    root: str
    partition: tuple[Field, ...]
    asked: tuple[StatsColumn, ...]
    used: tuple[Path, ...]
    schema: pa.Schema
    by_partition: Pruner | None
    by_bounds: Pruner | None
    words: tuple[str, str]
    stats_of: tuple[StatsColumn | int, ...] = field(default=())
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def of(cls, snapshot: Version, asked: Sequence[Path], where: Expr | None, tally: Tally) -> Lister:
        table = snapshot.metadata.schema
        fields = tuple(table.field(n) for n in snapshot.metadata.partition_columns)
        first, rest = _split(where, {f.name for f in fields})
        used = columns_of(where) if where is not None else ()
        names = [f.name for f in fields]
        stats_of = tuple(names.index(p[0]) if p[0] in names and len(p) == 1 else stats_column(table, p) for p in used)
        columns = tuple(stats_column(table, p) for p in asked)
        stats = pa.struct([pa.field(str(i), column_stats_type(to_arrow_type(c.type))) for i, c in enumerate(columns)])
        return cls(
            snapshot.location.uri,
            fields,
            columns,
            used,
            files_schema(partition_type(snapshot.partitioning), stats, NATIVE),
            None if first is None else Pruner(first, [(n,) for n in names]),
            None if rest is None or where is None else Pruner(where, list(used)),
            (f"partition {first}", f"bounds {rest}"),
            stats_of,
            tally,
        )

    def partition_texts(self, values: pa.Array, f: Field) -> pa.Array:
        found = pc.map_lookup(values, pa.scalar(physical_name(f)), "first")
        return found if found.type == pa.string() else found.cast(pa.string())

    def choose(self, values: pa.Array) -> Mask:
        """Which partitions may hold a row, judged once for each distinct one."""
        assert self.by_partition is not None
        coded = [self.partition_texts(values, f).dictionary_encode(null_encoding="encode") for f in self.partition]
        codes = np.zeros(len(values), np.int64)
        for c in coded:
            codes = codes * (len(c.dictionary) + 1) + np.asarray(c.indices.to_numpy(zero_copy_only=False), np.int64)
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        rows = values.take(pa.array(firsts))
        mask = self.by_partition.may_match(self._exact(self._values(rows)), pa.nulls(len(rows), pa.int64()))
        kept: Mask = as_mask(mask)[inverse.reshape(-1)]
        self.tally.skip(self.words[0], int(len(kept) - kept.sum()))
        return kept

    def _values(self, values: pa.Array) -> list[pa.Array]:
        return [decode_column(self.partition_texts(values, f), f.type, self.root) for f in self.partition]

    def _exact(self, values: list[pa.Array]) -> pa.StructArray:
        columns = [exact_stats(v) for v in values]
        return pa.StructArray.from_arrays(columns, names=[str(i) for i in range(len(columns))])

    def emit(self, units: pa.Array, adds: pa.RecordBatch, keys: pa.Array, live: Mask) -> Iterator[pa.RecordBatch]:
        """FILES of the rows of `live` that the bounds let pass."""
        if not live.all():
            keep = pa.array(live)
            units, adds, keys = units.filter(keep), adds.filter(keep), keys.filter(keep)
        if not adds.num_rows:
            return
        values = self._values(adds.column("partitionValues"))
        rows = row_counts(adds.column("stats"))
        if self.by_bounds is not None:
            mask = as_mask(self.by_bounds.may_match(self._bounds(adds, values), rows))
            self.tally.skip(self.words[1], int(len(mask) - mask.sum()))
            if not mask.any():
                return
            if not mask.all():
                keep = pa.array(mask)
                units, adds, keys, rows = units.filter(keep), adds.filter(keep), keys.filter(keep), rows.filter(keep)
                values = [v.filter(keep) for v in values]
        yield self._batch(units, adds, keys, rows, values)

    def _bounds(self, adds: pa.RecordBatch, values: list[pa.Array]) -> pa.StructArray:
        wanted = [c for c in self.stats_of if isinstance(c, StatsColumn)]
        decoded = iter(decode_stats(adds.column("stats"), wanted).flatten() if wanted else [])
        columns = [exact_stats(values[c]) if isinstance(c, int) else next(decoded) for c in self.stats_of]
        return pa.StructArray.from_arrays(columns, names=[str(i) for i in range(len(columns))])

    def _batch(
        self, units: pa.Array, adds: pa.RecordBatch, keys: pa.Array, rows: pa.Array, values: list[pa.Array]
    ) -> pa.RecordBatch:
        count = len(units)
        vectors = adds.column("deletionVector")
        deleted = pc.fill_null(vectors.field("cardinality"), 0)
        deleted = pc.if_else(pc.is_valid(vectors), deleted, pa.scalar(0, pa.int64()))
        partition = self.schema.field("partition").type
        made = {
            "unit": units,
            "path": paths.uris_of(keys, self.root),
            "format": repeat(PARQUET, count, pa.int8()),
            "size": adds.column("size"),
            "rows": rows,
            "deleted": deleted,
            "spec": repeat(0, count, pa.int32()),
            "partition": _struct(values, partition, count),
            "sequence": adds.column("defaultRowCommitVersion"),
            "first_row_id": adds.column("baseRowId"),
            "parts": pa.nulls(count, pa.list_(PART)),
            "deletes": pa.nulls(count, pa.list_(pa.int32())),
            "stats": decode_stats(adds.column("stats"), self.asked),
            "native": pa.StructArray.from_arrays([adds.column(n) for n in NATIVE_FIELDS], fields=list(NATIVE)),
        }
        return pa.RecordBatch.from_arrays([made[f.name] for f in self.schema], schema=self.schema)


def as_mask(mask: Any) -> Mask:
    """A mask of Arrow or numpy; unknown keeps the row."""
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    if isinstance(mask, pa.Array):
        mask = pc.fill_null(mask, True).to_numpy(zero_copy_only=False)
    return np.asarray(mask, bool)


def exact_stats(values: pa.Array) -> pa.StructArray:
    """A partition column as statistics: every row of the file has the value."""
    count = len(values)
    valid = pc.is_valid(values)
    one = pa.scalar(1, pa.int64())
    nulls = pc.if_else(valid, pa.scalar(0, pa.int64()), one)
    floating = pa.types.is_floating(values.type)
    nans = pc.if_else(pc.fill_null(pc.is_nan(values), False), one, pa.scalar(0, pa.int64())) if floating else None
    bounds = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values) if floating else values
    counts = [nulls, nans if nans is not None else repeat(0, count, pa.int64()), repeat(1, count, pa.int64())]
    return pa.StructArray.from_arrays(
        [bounds, bounds, valid, valid, *counts], fields=list(column_stats_type(values.type))
    )


def repeat(value: int, count: int, type: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type), count)


def _struct(values: list[pa.Array], type: pa.StructType, count: int) -> pa.Array:
    if not values:
        return pa.array([{}] * count, type)
    return pa.StructArray.from_arrays(values, fields=list(type))


def _split(where: Expr | None, partition: set[str]) -> tuple[Expr | None, Expr | None]:
    """The conjuncts that partition columns alone decide, and the others."""
    if where is None:
        return None, None
    first: list[Expr] = []
    rest: list[Expr] = []
    for part in conjuncts(where):
        used = columns_of(part)
        (first if used and all(len(p) == 1 and p[0] in partition for p in used) else rest).append(part)
    return all_of(first) if first else None, all_of(rest) if rest else None
