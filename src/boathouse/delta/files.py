"""FILES of a version: the checkpoint, streamed, without what the entries after it replace, followed by what those add.

Pruned first by partition values, which are read separately; other columns are kept, and statistics decoded, only for
the remaining files. Nothing holds all files of a table in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.delta import paths
from boathouse.delta.actions import Metadata
from boathouse.delta.checkpoint.reader import BATCH_ROWS, OpenCheckpoint, Wanted, read_files
from boathouse.delta.log.entry import ADD
from boathouse.delta.log.tail import Tail, file_keys
from boathouse.delta.partition_values import decode_column, readable
from boathouse.delta.schema import physical_name
from boathouse.delta.stats.bounds import StatsColumn, decode_stats, row_counts, stats_column
from boathouse.delta.stats.convert import stat_columns, texts_of
from boathouse.delta.stats.parsed import PARSED, decode_parsed, leaves, overlaid, parsed_rows
from boathouse.errors import CorruptTableError
from boathouse.table.location import Location
from boathouse.table.tally import Tally
from boathouse.table.units import PARQUET, PART, column_stats_type, files_schema, partition_type, stats_type
from boathouse.types import Field, Partitioning

if TYPE_CHECKING:
    from boathouse.delta.stats.pruning import Test
    from boathouse.expr.tree import Expr, Path

Mask = np.ndarray[Any, np.dtype[np.bool_]]
NATIVE_FIELDS: Final = (
    "path", "partitionValues", "modificationTime", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion",
    "clusteringProvider", "stats",
)  # fmt: skip
LISTED: Final = pa.schema([f for f in ADD if f.name in (*NATIVE_FIELDS, "size")])
NATIVE: Final = pa.struct([ADD.field(n) for n in NATIVE_FIELDS])


StatsSource = StatsColumn | int
"""Where a column's statistics come from: the JSON, or the partition column of this number."""


class Version(Protocol):
    """The required parts of a snapshot."""

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
    snapshot: Version,
    columns: Sequence[tuple[str, ...]],
    where: Expr | None,
    tally: Tally | None,
    all_stats: bool = False,
) -> Iterator[pa.RecordBatch]:
    """FILES in batches. `unit` numbers the actions of the version, so that it is the same in every listing.

    `all_stats`: `native` has all statistics of a file as JSON text, or else none.
    """
    lister = Lister.of(snapshot, columns, where, tally or Tally(), all_stats)
    tail = snapshot.tail
    checkpoint = snapshot.checkpoint
    after = 0
    if checkpoint is not None and checkpoint.parts:
        after = checkpoint.rows
        choose = lister.choose if lister.by_partition is not None else None
        for units, adds in read_files(checkpoint, Wanted("add", LISTED, choose, lister.parsed)):
            keys = paths.keys_of(adds.column("path"), lister.root)
            full = file_keys(keys, adds.column("deletionVector"))
            live = np.asarray(pc.invert(tail.superseded(full)).to_numpy(zero_copy_only=False), bool)
            yield from lister.emit(units, adds, keys, live)
    for start in range(0, tail.adds.num_rows, BATCH_ROWS):
        adds = tail.adds.slice(start, BATCH_ROWS).combine_chunks().to_batches()[0]
        units = pa.arange(after + start, after + start + adds.num_rows)
        live = np.ones(adds.num_rows, bool)
        if lister.by_partition is not None:
            live &= lister.choose(adds.column("partitionValues"))
        yield from lister.emit(units, adds, paths.keys_of(adds.column("path"), lister.root), live)


def schema_of(snapshot: Version, asked: Sequence[Path]) -> pa.Schema:
    """The schema of FILES with statistics of these columns."""
    sources = _sources(snapshot.metadata, asked)
    fields = [snapshot.metadata.partition_columns[c] if isinstance(c, int) else c.type for c in sources]
    types = [snapshot.metadata.schema.field(t).type if isinstance(t, str) else t for t in fields]
    return files_schema(partition_type(snapshot.partitioning), stats_type(types), NATIVE)


def _sources(metadata: Metadata, wanted: Sequence[Path]) -> tuple[StatsSource, ...]:
    names = [n.lower() for n in metadata.partition_columns]
    return tuple(
        names.index(p[0].lower()) if p[0].lower() in names else stats_column(metadata.schema, p) for p in wanted
    )


def _tests(where: Expr | None, partition: Sequence[str]) -> tuple[Test | None, Test | None, tuple[Path, ...]]:
    """`delta.pruning.tests_of`; it is loaded with the first predicate, and with it all that evaluates expressions."""
    if where is None:
        return None, None, ()
    from boathouse.delta.stats.pruning import tests_of  # noqa: PLC0415

    return tests_of(where, partition)


@dataclass(frozen=True, slots=True)
class Lister:
    """Turns add actions into FILES."""

    root: str
    partition: tuple[Field, ...]
    asked: tuple[StatsSource, ...]
    used: tuple[StatsSource, ...]
    schema: pa.Schema
    by_partition: Test | None
    by_bounds: Test | None
    tally: Tally
    checkpoint: str
    all_stats: tuple[StatsColumn, ...] | None = None

    @classmethod
    def of(
        cls, snapshot: Version, asked: Sequence[Path], where: Expr | None, tally: Tally, all_stats: bool = False
    ) -> Lister:
        table = snapshot.metadata.schema
        fields = tuple(table.field(n) for n in snapshot.metadata.partition_columns)
        names = [f.name for f in fields]
        by_partition, by_bounds, used = _tests(where, names)
        return cls(
            snapshot.location.uri,
            fields,
            _sources(snapshot.metadata, asked),
            _sources(snapshot.metadata, used),
            schema_of(snapshot, asked),
            by_partition,
            by_bounds,
            tally,
            snapshot.checkpoint.uri if snapshot.checkpoint else snapshot.location.uri,
            stat_columns(table, names) if all_stats else None,
        )

    @property
    def parsed(self) -> list[str]:
        """The columns to read from `stats_parsed`."""
        return leaves([c for c in (*self.used, *self.asked, *(self.all_stats or ())) if isinstance(c, StatsColumn)])

    def partition_strings(self, values: pa.Array) -> list[pa.Array]:
        """The strings of each partition column."""
        return map_columns(values, [physical_name(f) for f in self.partition])

    def choose(self, values: pa.Array, valid: Mask | None = None) -> Mask:
        """Which partitions may contain a matching row, decided once for each distinct one.

        `valid` marks the rows that are adds. Adds of a checkpoint that later commits superseded are counted as
        skipped too: their paths are not read.
        """
        assert self.by_partition is not None
        strings = self.partition_strings(values)
        unsure = self._unrecorded(values, strings, valid)
        coded = [t.dictionary_encode(null_encoding="encode") for t in strings]
        codes = np.zeros(len(values), np.int64)
        for c in coded:
            if len(codes) and codes.max() > 1 << 31:  # many columns of many values: the product would overflow
                codes = _distinct(codes)[1].astype(np.int64)
            codes = codes * (len(c.dictionary) + 1) + np.asarray(c.indices.to_numpy(zero_copy_only=False), np.int64)
        firsts, inverse = _distinct(codes)
        decoded, odd = self._readable([t.take(pa.array(firsts)) for t in strings])
        mask = self.by_partition.pruner.may_match(self._exact(decoded), pa.nulls(len(firsts), pa.int64()))
        kept: Mask = (as_mask(mask) | odd)[inverse] | unsure
        kept = kept if valid is None else kept & valid
        self.tally.skip(self.by_partition.name, int((len(kept) if valid is None else valid.sum()) - kept.sum()))
        return kept

    def _values(self, strings: list[pa.Array]) -> list[pa.Array]:
        return [decode_column(t, f.type, self.root) for t, f in zip(strings, self.partition)]

    def _readable(self, strings: list[pa.Array]) -> tuple[list[pa.Array], Mask]:
        """The values, and where one is not of its column's type: such a file is kept here.

        Adds that later entries superseded may be of a time when the column had another type, or the table other
        partition columns; a live one is an error of the table when it is listed.
        """
        try:
            return self._values(strings), np.zeros(len(strings[0]), bool)
        except CorruptTableError:
            found = [readable(t, f.type, self.root) for t, f in zip(strings, self.partition)]
        return [v for v, _ in found], np.logical_or.reduce([as_mask(odd) for _, odd in found])

    def _unrecorded(self, values: pa.Array, strings: list[pa.Array], valid: Mask | None) -> Mask:
        """Adds that may lack the value of a partition column; they are kept too."""
        found = np.zeros(len(values), bool)
        for f, column in zip(self.partition, strings):
            if column.null_count and not _recorded(values, physical_name(f), column, valid):
                found |= as_mask(pc.is_null(column))
        return found

    def check_recorded(self, values: pa.Array, strings: list[pa.Array]) -> None:
        """Raises CorruptTableError for an add without a value of each partition column."""
        for f, column in zip(self.partition, strings):
            if column.null_count and not _recorded(values, physical_name(f), column, None):
                raise CorruptTableError(f"an add action has no partition value of `{f.name}`", where=self.checkpoint)

    def _exact(self, values: list[pa.Array]) -> pa.StructArray:
        columns = [exact_stats(v, pa.nulls(len(v), pa.int64())) for v in values]
        return pa.StructArray.from_arrays(columns, names=[str(i) for i in range(len(columns))])

    def emit(self, units: pa.Array, adds: pa.RecordBatch, keys: pa.Array, live: Mask) -> Iterator[pa.RecordBatch]:
        """FILES of the rows of `live` that the bounds do not exclude."""
        if not live.all():
            keep = pa.array(live)
            units, adds, keys = units.filter(keep), adds.filter(keep), keys.filter(keep)
        if not adds.num_rows:
            return
        maps = adds.column("partitionValues")
        strings = self.partition_strings(maps)
        self.check_recorded(maps, strings)
        values = self._values(strings)
        rows = counted(adds)
        if self.by_bounds is not None:
            mask = as_mask(self.by_bounds.pruner.may_match(self._stats(self.used, adds, values, rows), rows))
            self.tally.skip(self.by_bounds.name, int(len(mask) - mask.sum()))
            if not mask.any():
                return
            if not mask.all():
                keep = pa.array(mask)
                units, adds, keys, rows = units.filter(keep), adds.filter(keep), keys.filter(keep), rows.filter(keep)
                values = [v.filter(keep) for v in values]
        yield self._batch(units, adds, keys, rows, values)

    def _stats(
        self, sources: Sequence[StatsSource], adds: pa.RecordBatch, values: list[pa.Array], rows: pa.Array
    ) -> pa.StructArray:
        """Statistics of columns: decoded, or exact for partition columns."""
        if not sources:
            return pa.array([{}] * len(rows), pa.struct([]))
        wanted = [c for c in sources if isinstance(c, StatsColumn)]
        decoded = iter(decoded_stats(adds, wanted).flatten() if wanted else [])
        columns = [exact_stats(values[c], rows) if isinstance(c, int) else next(decoded) for c in sources]
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
            "stats": self._stats(self.asked, adds, values, rows),
            "native": self._native(adds),
        }
        return pa.RecordBatch.from_arrays([made[f.name] for f in self.schema], schema=self.schema)

    def _native(self, adds: pa.RecordBatch) -> pa.StructArray:
        """Without statistics, which are most of an add's bytes, unless they are asked for."""
        stats = pa.nulls(len(adds), pa.string()) if self.all_stats is None else texts_of(adds, self.all_stats)
        columns = [stats if name == "stats" else adds.column(name) for name in NATIVE_FIELDS]
        return pa.StructArray.from_arrays(columns, fields=list(NATIVE))


def counted(adds: pa.RecordBatch) -> pa.Array:
    """The number of rows of each file, from either form of its statistics."""
    texts = adds.column("stats")
    found = row_counts(texts)
    if PARSED not in adds.schema.names:
        return found
    return overlaid(found, parsed_rows(adds.column(PARSED)), pc.is_valid(texts))


def decoded_stats(adds: pa.RecordBatch, columns: Sequence[StatsColumn]) -> pa.StructArray:
    """The statistics of columns, from either form."""
    texts = adds.column("stats")
    if PARSED not in adds.schema.names:
        return decode_stats(texts, columns)
    has_text = pc.is_valid(texts)
    if not pc.any(has_text).as_py():
        return decode_parsed(adds.column(PARSED), columns)
    return overlaid(decode_stats(texts, columns), decode_parsed(adds.column(PARSED), columns), has_text)


def map_columns(maps: pa.MapArray, names: Sequence[str]) -> list[pa.Array]:
    """The value of each name in every map; null where it is absent.

    Writers write the same keys in the same order to every map: then the values are every n-th of all.
    """
    if not names:
        return []
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    keys, items = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    count = len(names)
    if not maps.null_count and len(keys) == count * len(maps):
        order = keys.slice(0, count).to_pylist()
        lanes = [pa.array(np.arange(i, len(keys), count)) for i in range(count)] if count > 1 else [None]
        same = all(
            pc.all(pc.equal(keys if at is None else keys.take(at), name)).as_py() for name, at in zip(order, lanes)
        )
        if same and set(order) == set(names):
            columns = {n: items if at is None else items.take(at) for n, at in zip(order, lanes)}
            return [columns[n] for n in names]
    return [pc.map_lookup(maps, pa.scalar(n), "first") for n in names]


def _recorded(maps: pa.MapArray, name: str, column: pa.Array, valid: Mask | None) -> bool:
    """Whether the maps without a value of `name` contain the name, with null; only `valid` ones count."""
    missing = pc.is_null(column)
    without = maps.filter(missing if valid is None else pc.and_(missing, pa.array(valid)))
    if not len(without):
        return True
    first, last = without.offsets[0].as_py(), without.offsets[-1].as_py()
    held = pc.equal(without.keys.slice(first, last - first), name)
    return not without.null_count and pc.sum(held).as_py() == len(without)


def _distinct(codes: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[Any, Any]:
    """One row of each distinct code, and for every row the number of its code; without sorting if codes are dense."""
    top = int(codes.max()) + 1 if len(codes) else 0
    if top > 4 * len(codes) + 1024:
        _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return firsts, inverse.reshape(-1)
    row_of = np.full(top, -1, np.int64)
    row_of[codes] = np.arange(len(codes))
    present = np.flatnonzero(row_of >= 0)
    number_of = np.zeros(top, np.int64)
    number_of[present] = np.arange(len(present))
    return row_of[present], number_of[codes]


def as_mask(mask: Any) -> Mask:
    """A mask of Arrow or numpy; unknown keeps the row."""
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    if isinstance(mask, pa.Array):
        mask = pc.fill_null(mask, True).to_numpy(zero_copy_only=False)
    return np.asarray(mask, bool)


def exact_stats(values: pa.Array, rows: pa.Array) -> pa.StructArray:
    """A partition column as statistics: every row of the file has the value. Unknown row counts are taken as 1."""
    valid = pc.is_valid(values)
    rows = pc.fill_null(rows, 1)
    none = repeat(0, len(values), pa.int64())
    nulls = pc.if_else(valid, none, rows)
    nans, bounds = none, values
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(values), False)
        nans, bounds = pc.if_else(nan, rows, none), pc.if_else(nan, pa.scalar(None, values.type), values)
    return pa.StructArray.from_arrays(
        [bounds, bounds, valid, valid, nulls, nans, rows], fields=list(column_stats_type(values.type))
    )


def repeat(value: int, count: int, type: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type), count)


def _struct(values: list[pa.Array], type: pa.StructType, count: int) -> pa.Array:
    if not values:
        return pa.array([{}] * count, type)
    return pa.StructArray.from_arrays(values, fields=list(type))
