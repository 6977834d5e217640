"""Z-order: rows by the interleaved bits of where each of some columns stands among the values of its partition.

A column's place is the share of the partition's rows with smaller values, nulls first, estimated from a sample: so
every column's first bit halves the rows, however its values are distributed. The keys of one table are integers: the
partition's number, then the interleaved bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.arrow.ordering import leaf_of
from boathouse.ops.tasks.routing import PartitionKey, grouped, same
from boathouse.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DurationType,
    FixedType,
    FloatType,
    IntegerType,
    PartitionSpec,
    Schema,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)

Path = tuple[str, ...]
Values = npt.NDArray[Any]
Keys = npt.NDArray[np.int64]
KEY_BITS: Final = 62
STEPS: Final = 8
"""How many steps a file is sorted in."""
_PREFIX: Final = 64
"""Bytes of strings that are compared."""
_MAX_BITS: Final = 16
_MAX_BOUNDS: Final = 1024
_NUMBERS: Final = (BooleanType, IntegerType, FloatType, DecimalType, DateType, TimestampType, TimeType, DurationType)
_BYTES: Final = (StringType, BinaryType, FixedType, UUIDType)
SORTABLE: Final = (*_NUMBERS, *_BYTES)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The places of one column's values in one partition: `places[i]` is that of values from `bounds[i - 1]` on."""

    bounds: Values
    places: Keys

    @staticmethod
    def of(values: Values, nulls: npt.NDArray[np.bool_], bits: int) -> Ranks:
        """From a sample."""
        known = np.sort(values[~nulls])
        bounds, first = np.unique(known, return_index=True)
        if len(bounds) > _MAX_BOUNDS:
            chosen = np.linspace(0, len(bounds) - 1, _MAX_BOUNDS).astype(np.int64)
            bounds, first = bounds[chosen], first[chosen]
        before = np.concatenate([[0], first]) + int(nulls.sum())
        places = before * (1 << bits) // max(1, len(values))
        return Ranks(bounds, np.minimum(places, (1 << bits) - 1).astype(np.int64))

    def place(self, values: Values, nulls: npt.NDArray[np.bool_]) -> Keys:
        """The place of each value; that of null is the first."""
        if not len(self.bounds):
            return np.zeros(len(values), np.int64)
        found = self.places[np.searchsorted(self.bounds, values, side="right")]
        found[nulls] = 0
        return found


@dataclass(frozen=True)
class ZOrder:
    """The order of the rows of some partitions. `schema` are the columns that decide it; `starts` are the first keys of
    all files but the first, `steps` those of parts of files that are sorted at once, ascending."""

    schema: Schema
    spec: PartitionSpec
    columns: tuple[Path, ...]
    partitions: Mapping[PartitionKey, int]
    ranks: tuple[tuple[Ranks, ...], ...]
    bits: int
    starts: Keys
    steps: Keys

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    def keys(self, rows: pa.RecordBatch) -> Keys:
        """The key of each row; `rows` has the columns `names`, in this order. Rows of a partition that was not in the
        sample come last."""
        rows = conform(rows, self.schema)
        groups, inverse = grouped(rows, self.spec, self.schema)
        known = [self.partitions.get(same(key), len(self.partitions)) for key in groups]
        values = [sortable(*leaf_of(rows, self.schema, path)) for path in self.columns]
        keys = np.zeros(rows.num_rows, np.int64)
        width = self.bits * len(self.columns)
        for group, number in enumerate(known):
            at = slice(None) if len(known) == 1 else np.flatnonzero(inverse == group)
            base = number << width
            if number == len(self.partitions):
                keys[at] = base
                continue
            ranks = self.ranks[number]
            places = [r.place(v[at], n[at]) for r, (v, n) in zip(ranks, values, strict=True)]
            keys[at] = base | interleaved(places, self.bits)
        return keys


def interleaved(places: Sequence[Keys], bits: int) -> Keys:
    """The bits of each place, the highest of every column first."""
    found = np.zeros(len(places[0]), np.int64)
    for bit in range(bits - 1, -1, -1):
        for place in places:
            found = (found << 1) | ((place >> bit) & 1)
    return found


def sortable(array: pa.Array, type: DataType) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Values that numpy compares in the order of the type, and where they are null. Decimals and long strings are
    rounded, which keeps the order."""
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if isinstance(type, _BYTES):
        return _prefixes(array), nulls
    if isinstance(type, BooleanType):
        array = array.cast(pa.uint8())
    elif isinstance(type, DecimalType):
        array = array.cast(pa.float64(), safe=False)
    elif not isinstance(type, IntegerType | FloatType):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    zero = pa.scalar(0).cast(array.type)
    return pc.fill_null(array, zero).to_numpy(zero_copy_only=False), nulls


def _prefixes(array: pa.Array) -> Values:
    """The first bytes of each value, as numpy's strings, which end at the last byte that is not zero."""
    plain = pc.fill_null(array.cast(pa.binary()), b"")
    if plain.offset:
        plain = pa.concat_arrays([plain])
    _, ends, data = plain.buffers()
    offsets = np.frombuffer(ends, np.int32)[plain.offset : plain.offset + len(plain) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    lengths = np.diff(offsets)
    width = int(min(_PREFIX, lengths.max(initial=1))) or 1
    within = np.arange(width)
    at = np.minimum(offsets[:-1, None] + within, len(held) - 1)
    chars = np.where(within < lengths[:, None], held[at], 0).astype(np.uint8)
    return np.ascontiguousarray(chars).view(f"S{width}").reshape(-1)


def z_order(
    sample: pa.RecordBatch,
    bytes_each: npt.NDArray[np.float64],
    schema: Schema,
    spec: PartitionSpec,
    columns: tuple[Path, ...],
    target_bytes: int,
) -> ZOrder:
    """The order that a sample of the rows suggests; each of its rows stands for so many bytes of files."""
    groups, inverse = grouped(sample, spec, schema)
    by_group = np.argsort(inverse, kind="stable")
    members = np.split(by_group, np.cumsum(np.bincount(inverse, minlength=len(groups)))[:-1])
    bits = min(_MAX_BITS, (KEY_BITS - len(groups).bit_length()) // len(columns))
    values = [sortable(*leaf_of(sample, schema, path)) for path in columns]
    ranks = tuple(tuple(Ranks.of(v[at], n[at], bits) for v, n in values) for at in members)
    numbers = {same(key): i for i, key in enumerate(groups)}
    none = np.zeros(0, np.int64)
    order = ZOrder(schema, spec, columns, numbers, ranks, bits, none, none)
    keys = order.keys(sample)
    cuts = _Cuts(target_bytes)
    for number, at in enumerate(members):
        sorted_at = at[np.argsort(keys[at], kind="stable")]
        cuts.partition(number << bits * len(columns), keys[sorted_at], bytes_each[sorted_at])
    starts, steps = np.array(cuts.starts, np.int64), np.array(cuts.steps, np.int64)
    return ZOrder(schema, spec, columns, numbers, ranks, bits, starts, steps)


class _Cuts:
    """Where files begin: small partitions share the worker that writes them, large ones are cut at even shares."""

    def __init__(self, target_bytes: int) -> None:
        self.starts: list[int] = []
        self.steps: list[int] = []
        self._target = target_bytes
        self._held = 0.0

    def partition(self, base: int, keys: Keys, sizes: npt.NDArray[np.float64]) -> None:
        if not len(keys):
            return
        total = float(sizes.sum())
        files = max(1, round(total / self._target))
        if self._held and self._held + total > 1.25 * self._target:
            self._begin(base)
        ends = np.cumsum(sizes)
        for i in range(1, files * STEPS):
            at = int(np.searchsorted(ends, i * total / (files * STEPS)))
            key = int(keys[min(at, len(keys) - 1)])
            if i % STEPS == 0:
                self._begin(key)
            elif key > (self.steps[-1] if self.steps else base):
                self.steps.append(key)
        self._held += total / files

    def _begin(self, key: int) -> None:
        if not self.starts or key > self.starts[-1]:
            self.starts.append(key)
            if not self.steps or key > self.steps[-1]:
                self.steps.append(key)
        self._held = 0.0


def part_of(schema: Schema, columns: Sequence[Path], spec: PartitionSpec) -> Schema:
    """The columns of the table that decide the order."""
    needed = {p[0] for p in columns} | {f.source[0] for f in spec if f.source and f.transform.name != "void"}
    return Schema(tuple(f for f in schema if f.name in needed))
