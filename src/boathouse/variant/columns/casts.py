"""Located values as Arrow arrays of a type: the casts of `boathouse.variant.cast`, a column at a time.

Values are grouped by their own type. Numbers and times are cast by numpy, strings are taken by Arrow; the rest (strings
to numbers, floats to strings, decimals beyond 18 digits, ...) is cast one by one, each distinct value once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.unaligned import Ints, Mask, prefix, unsigned
from boathouse.errors import EvaluationError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant.cast import cast_exact
from boathouse.variant.columns import numbers
from boathouse.variant.columns.byte_slices import as_text, is_ascii, is_utf8, join
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.nodes import OBJECT, Nodes
from boathouse.variant.columns.to_json import to_json
from boathouse.variant.metadata import parse_metadata
from boathouse.variant.primitives import BINARY, NULL, STRING, UUID
from boathouse.variant.value import Variant

_INT32_MAX = 2**31 - 1


class Taker:
    """Collects the parts of one output array: `rows` entries, node k of the input at `place[k]`, others null."""

    def __init__(self, nodes: Nodes, type: T.DataType, safe: bool) -> None:
        self.nodes, self.type, self.safe = nodes, type, safe
        self.arrow = to_arrow_type(type)
        self.parts: list[tuple[Ints | None, pa.Array]] = []

    def add(self, which: Ints | None, array: pa.Array) -> None:
        """The values of the nodes `which` (None: of all)."""
        self.parts.append((which, array))

    def finish(self, place: Ints | None, rows: int) -> pa.Array:
        if not self.parts:
            return pa.nulls(rows, self.arrow)
        if len(self.parts) == 1:
            which, array = self.parts[0]
            target = which if place is None else place if which is None else place[which]
            if target is None or (len(array) == rows and len(target) == rows):
                return array
        wide = any(array.type != self.arrow for _, array in self.parts)
        kind = pa.large_string() if isinstance(self.type, T.StringType) else pa.large_binary()
        source: npt.NDArray[Any] = np.full(rows, -1, np.int32 if rows < _INT32_MAX else np.int64)
        base = 0
        for which, array in self.parts:
            spot = np.arange(len(array)) if which is None else which
            source[spot if place is None else place[spot]] = np.arange(base, base + len(array))
            base += len(array)
        arrays = [array.cast(kind) if wide and array.type != kind else array for _, array in self.parts]
        return pa.concat_arrays(arrays).take(pa.array(source, mask=source < 0))


def take(
    nodes: Nodes, type: T.DataType, safe: bool = False, place: Ints | None = None, rows: int | None = None
) -> pa.Array:
    """The nodes as `type`, a scalar type: an array of `rows` entries with node k at `place[k]`, all others null.

    EvaluationError for what cannot be cast, which is null if `safe`; MalformedVariant.
    """
    out = Taker(nodes, type, safe)
    rows = len(nodes) if rows is None else rows
    if len(nodes) and not isinstance(type, T.NullType):
        groups = numbers.group_of(nodes.kinds())
        for group, which in _groups(groups):
            if group != NULL:
                _one_group(out, group, which)
    return out.finish(place, rows)


def _groups(groups: npt.NDArray[np.uint8]) -> Iterator[tuple[int, Ints | None]]:
    """Each group that occurs, and where (None: everywhere)."""
    first = groups[0]
    if (groups == first).all():
        yield int(first), None
        return
    for group in np.flatnonzero(np.bincount(groups, minlength=256)):
        yield int(group), np.flatnonzero(groups == group)


def _one_group(out: Taker, group: int, which: Ints | None) -> None:
    nodes = out.nodes if which is None else out.nodes.take(which)
    type = out.type
    if group in numbers.NUMERIC and not isinstance(type, T.StringType | T.BinaryType | T.FixedType | T.UUIDType):
        _numbers(out, nodes, group, which)
    elif isinstance(type, T.StringType) and group in (STRING, numbers.INTEGER, 1):
        array = _strings(nodes) if group == STRING else _number_text(nodes, group)
        out.add(which, array)
    elif isinstance(type, T.BinaryType) and group == STRING:
        text = _strings(nodes)
        out.add(which, text.cast(pa.large_binary() if pa.types.is_large_string(text.type) else pa.binary()))
    elif isinstance(type, T.BinaryType) and group == BINARY:
        out.add(which, byte_runs(nodes, *_bodies(nodes)))
    elif isinstance(type, T.UUIDType) and group == UUID:
        nodes.check(nodes.pos + 17 <= nodes.end, "a value ends beyond its container")
        raw = prefix(nodes.data, nodes.pos + 1, 16)
        out.add(which, pa.Array.from_buffers(pa.binary(16), len(nodes), [None, pa.py_buffer(raw)]))
    elif group >= OBJECT:
        _containers(out, nodes, which)
    else:
        out.add(which, one_by_one(nodes, type, out.safe))


def _numbers(out: Taker, nodes: Nodes, group: int, which: Ints | None) -> None:
    found = numbers.read(nodes, group)
    done = numbers.cast(found, out.type)
    if done is None:
        out.add(which, one_by_one(nodes, out.type, out.safe))
        return
    mask = done.bad
    if mask is not None and mask.any():
        if nodes.faults.bad is not None:
            mask = mask & ~nodes.faults.bad[nodes.row]
        if not out.safe and mask.any():
            _raise(nodes, int(np.argmax(mask)), out.type)
        mask = done.bad
    else:
        mask = None
    if done.hard is None or not done.hard.any():
        out.add(which, physical(done.values, mask, out.type))
        return
    hard = np.flatnonzero(done.hard)
    easy = np.flatnonzero(~done.hard)
    spot = np.arange(len(nodes)) if which is None else which
    if len(easy):
        out.add(spot[easy], physical(done.values[easy], None if mask is None else mask[easy], out.type))
    out.add(spot[hard], one_by_one(nodes.take(hard), out.type, out.safe))


def physical(values: npt.NDArray[Any], mask: Mask | None, type: T.DataType) -> pa.Array:
    """An array of `type` from its storage; null where `mask`."""
    arrow = to_arrow_type(type)
    match type:
        case T.BooleanType():
            return pa.array(values.astype(np.bool_), arrow, mask=mask)
        case T.DecimalType():
            both = np.empty((len(values), 2), np.int64)
            both[:, 0], both[:, 1] = values, values.astype(np.int64) >> 63
            valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
            return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(both)])
        case T.DateType() | T.TimeType() | T.TimestampType():
            storage, numbers = (pa.int32(), np.int32) if arrow.bit_width == 32 else (pa.int64(), np.int64)
            return pa.array(values.astype(numbers, copy=False), storage, mask=mask).view(arrow)
    return pa.array(values, arrow, mask=mask)


def _number_text(nodes: Nodes, group: int) -> pa.Array:
    whole = numbers.read(nodes, group).whole
    assert whole is not None
    if group == numbers.INTEGER:
        return pa.array(whole).cast(pa.string())
    return pa.array(whole != 0).cast(pa.string())


def _bodies(nodes: Nodes) -> tuple[Ints, Ints]:
    """Where the bytes of strings and binaries start and end. MalformedVariant; if lenient, malformed ones are empty."""
    data, pos = nodes.data, nodes.pos
    head = data[pos].astype(np.int64)
    start = pos + 1
    end = start + (head >> 2)
    long = np.flatnonzero((head & 3) == 0)
    if len(long):
        some = nodes.take(long)
        begin = some.pos + 5
        kept = some.check(begin <= some.end, "a value ends within its length")
        begin = begin if kept is None else np.where(kept, begin, some.pos)
        size = unsigned(data, np.maximum(begin - 4, 0), 4)
        start[long] = begin
        end[long] = begin + (size if kept is None else np.where(kept, size, 0))
    kept = nodes.check(end <= nodes.end, "a value ends beyond its container")
    return (start, end) if kept is None else (start, np.where(kept, end, start))


def byte_runs(nodes: Nodes, start: Ints, end: Ints) -> pa.Array:
    """Byte slices as binary; large_binary beyond 2 GiB."""
    array = join(nodes.data, start, end)
    if pa.types.is_large_binary(array.type) and int((end - start).sum()) <= _INT32_MAX:
        return array.cast(pa.binary())
    return array


def _strings(nodes: Nodes) -> pa.Array:
    """Strings as string (large_string beyond 2 GiB), checked to be UTF-8."""
    start, end = _bodies(nodes)
    raw = byte_runs(nodes, start, end)
    if is_ascii(raw):
        return as_text(raw)
    kind = pa.large_string() if pa.types.is_large_binary(raw.type) else pa.string()
    try:
        return raw.cast(kind)
    except pa.ArrowInvalid:
        ok = np.array([is_utf8(word) for word in raw.to_pylist()], np.bool_)
        nodes.check(ok, "a string is not UTF-8", start)
        good = pa.array(np.where(ok, np.arange(len(raw)), 0), mask=~ok)
        return raw.take(good).cast(kind)


def _containers(out: Taker, nodes: Nodes, which: Ints | None) -> None:
    """Objects and arrays: as STRING their JSON, otherwise a failure as for any other scalar."""
    if isinstance(out.type, T.StringType):
        texts = to_json(nodes.as_column(), special="string", lenient=Lenient())
        # A null here is malformed, or of an unknown type.
        left = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False))
        for k in left:
            cast_one(nodes, int(k), out.type, out.safe)
        out.add(which, texts)
        return
    nodes.containers()
    if not out.safe:
        bad = np.ones(len(nodes), np.bool_) if nodes.faults.bad is None else ~nodes.faults.bad[nodes.row]
        if bad.any():
            _raise(nodes, int(np.argmax(bad)), out.type)


def variant_at(nodes: Nodes, k: int) -> Variant:
    """One node as a Variant of its own bytes' row."""
    column, row = nodes.column, int(nodes.row[k])
    pos, end = int(nodes.pos[k]), int(nodes.end[k])
    return Variant.view(parse_metadata(column.metadata_bytes(row)), nodes.data[pos:end].tobytes(), 0, end - pos)


def _raise(nodes: Nodes, k: int, type: T.DataType) -> None:
    """The error that the cast of one node raises."""
    cast_one(nodes, k, type, False)
    raise EvaluationError(f"row {nodes.column.first_row + int(nodes.row[k]):,}: the value cannot be cast to {type}")


def cast_one(
    nodes: Nodes, k: int, type: T.DataType, safe: bool, finish: Callable[[Any, T.DataType], Any] | None = None
) -> Any:
    """The cast of one node by `cast_exact`, finished; its error names the row. None where it is malformed, if
    lenient."""
    row = nodes.column.first_row + int(nodes.row[k])
    try:
        found = cast_exact(variant_at(nodes, k), type, safe)
        return found if finish is None else finish(found, type)
    except EvaluationError as problem:
        raise EvaluationError(f"row {row:,}: {problem.message}", advice=problem.advice) from None
    except MalformedVariant as problem:
        offset = int(nodes.pos[k] - nodes.column.start[nodes.row[k]]) + (problem.offset or 0)
        if nodes.faults.lenient is None:
            raise MalformedVariant(problem.message, offset=offset, row=row, advice=problem.advice) from None
        nodes.faults.mark(nodes.row[k : k + 1])
        return None
    except UnsupportedFeatureError as problem:
        if nodes.faults.lenient is None:
            raise UnsupportedFeatureError(problem.message, where=f"row {row:,}", advice=problem.advice) from None
        nodes.faults.mark(nodes.row[k : k + 1])
        return None


def one_by_one(nodes: Nodes, type: T.DataType, safe: bool) -> pa.Array:
    """Scalars cast by the single-value implementation, each distinct one once."""
    size = nodes.sizes()
    coded = byte_runs(nodes, nodes.pos, nodes.pos + size).dictionary_encode()
    codes = coded.indices.to_numpy()
    first = np.zeros(len(coded.dictionary), np.int64)
    first[codes[::-1]] = np.arange(len(nodes))[::-1]
    whole = Nodes(nodes.column, nodes.row, nodes.pos, nodes.pos + size, nodes.faults)
    marked = None if nodes.faults.bad is None else nodes.faults.bad.copy()
    found = [cast_one(whole, int(k), type, safe) for k in first]
    if nodes.faults.bad is not None and (marked is None or (marked != nodes.faults.bad).any()):
        # All rows that hold a malformed distinct value are malformed.
        wrong = nodes.faults.bad[nodes.row[first]]
        nodes.faults.mark(nodes.row[wrong[codes]])
    return _stored(found, type).take(coded.indices)


def _stored(found: list[Any], type: T.DataType) -> pa.Array:
    """Values of `cast_exact` as an array."""
    arrow = to_arrow_type(type)
    match type:
        case T.DateType() | T.TimeType() | T.TimestampType():
            return pa.array(found, pa.int32() if arrow.bit_width == 32 else pa.int64()).view(arrow)
    return pa.array(found, arrow)
