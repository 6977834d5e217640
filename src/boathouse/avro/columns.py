"""The records of an Avro file as columns: where each wanted field is, decoded when it is asked for.

A record begins where the one before it ends, so only the beginnings of blocks are known. Where a file has many blocks,
as most writers make them, the first records of all blocks are stepped over together, then the second ones, and so on.
The records of blocks that are much longer than others are first found one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.arrow.vector import only_where
from boathouse.avro import container as avro
from boathouse.avro.codec import Read, is_pair, read_long, reader, skipper
from boathouse.avro.cursors import (
    ABSENT,
    TOGETHER,
    Blocks,
    Buffer,
    DamagedError,
    Longs,
    Marks,
    Path,
    Schema,
    Step,
    apart,
    over_items,
    present,
    stepper,
    varied,
)
from boathouse.avro.landmarks import find
from boathouse.errors import CorruptTableError

_STEP: Final = 50
"""A step over the next records of some blocks costs as much as walking over so many records one by one."""
_FLOATS: Final = {"float": ("<f4", 4), "double": ("<f8", 8)}
Valid = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Columns:
    """Records of one file. `starts` has the place of each, `places` those of its wanted fields."""

    buffer: Buffer
    schema: Schema
    starts: Longs
    places: Marks
    where: str

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def nbytes(self) -> int:
        return len(self.buffer.data) + self.own_bytes

    @property
    def own_bytes(self) -> int:
        """Without the encoded records, which others may share."""
        return self.starts.nbytes * (1 + len(self.places))

    def take(self, rows: npt.NDArray[Any]) -> Columns:
        """Some of the records, by number or by a mask."""
        places = {path: found[rows] for path, found in self.places.items()}
        return Columns(self.buffer, self.schema, self.starts[rows], places, self.where)

    def type(self, path: Path) -> Schema | None:
        """The type of a field, None if the file does not have it."""
        schema = self.schema
        for name in path:
            fields = present(schema)["fields"]
            schema = next((f["type"] for f in fields if f["name"] == name), None)
            if schema is None:
                return None
        return schema

    def records(self, unwanted: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """Every record as a dictionary; the fields in `unwanted` are skipped and None."""
        read = reader(self.schema, unwanted)
        return self._read(read, self.starts)

    def known(self, path: Path) -> Valid:
        """Which records have a value in a field."""
        places = self.places.get(path)
        return np.zeros(len(self), np.bool_) if places is None else places != ABSENT

    def longs(self, path: Path) -> tuple[Longs, Valid]:
        """Numbers, and which of them are not null; null ones, and those of a field that the file lacks, are 0."""
        valid = self.known(path)
        if valid.all() and len(self):
            return self.buffer.longs(self.places[path])[0], valid
        found = np.zeros(len(self), np.int64)
        if valid.any():
            found[valid] = self.buffer.longs(self.places[path][valid])[0]
        return found, valid

    def strings(self, path: Path) -> pa.Array:
        """Strings. Raises CorruptTableError if one is not UTF-8."""
        places = self.places.get(path)
        if places is None:
            return pa.nulls(len(self), pa.string())
        if present(self.type(path)) != "string":
            return pa.array(self.values(path), pa.string())
        found = sliced(self.buffer, places, pa.string())
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            raise CorruptTableError("an Avro block has a string that is not UTF-8", where=self.where) from None
        return found

    def values(self, path: Path) -> list[Any]:
        """The values of a field of any type, one by one."""
        type = self.type(path)
        if type is None:
            return [None] * len(self)
        read = reader(type if varied(type) else present(type))
        return self._read(read, self.places[path])

    def distinct(self, path: Path) -> tuple[list[Any], Longs]:
        """The distinct values of a field (bits decide, so that NaN and the zeros are told apart), and the number of
        that of each record."""
        type = self.type(path)
        kind = present(type)
        if varied(type) or not isinstance(kind, str):
            kind = "other"
        if kind in ("int", "long"):
            numbers, valid = self.longs(path)
            return _encoded(longs(numbers, valid))
        if kind in _FLOATS:
            values, codes = _encoded(self._floats(path, _FLOATS[kind][1]))
            pattern = "<f" if kind == "float" else "<d"
            return [None if v is None else struct.unpack(pattern, v)[0] for v in values], codes
        if kind in ("string", "bytes"):
            return _encoded(self.strings(path) if kind == "string" else sliced(self.buffer, self.places[path]))
        return numbered(self.values(path))

    def _floats(self, path: Path, width: int) -> pa.Array:
        places = self.places[path]
        bits = self.buffer.windows(width)[np.maximum(places, 0)]
        found = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(places), [None, pa.py_buffer(np.ascontiguousarray(bits))]
        )
        return only_where(pa.array(places != ABSENT), found.cast(pa.binary()))

    def pairs(self, path: Path, keys: Sequence[int]) -> dict[int, pa.Array]:
        """The values of these keys in a map, or an array of pairs, of numbers or bytes: int64 or binary, null where the
        map or the key is absent."""
        type = self.type(path)
        if type is None or not len(self) or not keys:
            return dict.fromkeys(keys, pa.nulls(len(self)))
        pair = _plain_pair(type)
        if pair is None:
            maps = self.values(path)
            return {k: pa.array([None if m is None else m.get(k) for m in maps]) for k in keys}
        found = _PairSearch(self.buffer, pair, keys, len(self)).run(self.places[path])
        if pair["value"] == "bytes":
            return {k: sliced(self.buffer, places) for k, places in found.items()}
        counts = {}
        for k, places in found.items():
            missing = places == ABSENT
            counts[k] = longs(self.buffer.longs(np.where(missing, 0, places))[0], ~missing)
        return counts

    def _read(self, read: Read, places: Longs) -> list[Any]:
        """The values at these places, None where ABSENT. Raises CorruptTableError: stepping over a value shows where it
        ends, not that it is one of its type."""
        data = self.buffer.data
        with avro.decoding(self.where):
            return [None if at == ABSENT else read(data, at)[0] for at in places.tolist()]


def numbered(values: Sequence[Any]) -> tuple[list[Any], Longs]:
    """The distinct values, by their text, and the number of that of each."""
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault((v.__class__, repr(v)), len(seen)) for v in values], np.int64)
    first = np.unique(codes, return_index=True)[1] if len(values) else ()
    return [values[i] for i in first], codes


def _encoded(found: pa.Array) -> tuple[list[Any], Longs]:
    encoded = found.dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def sliced(buffer: Buffer, places: Longs, type: pa.DataType = pa.binary()) -> pa.Array:
    """The strings or bytes at these ascending places (null where ABSENT).

    The whole buffer is an Arrow array already, of the values and of what is between them; Arrow takes every second.
    """
    rows = np.flatnonzero(places != ABSENT)
    size, begin = buffer.sizes(places[rows])
    cuts = np.stack([begin, begin + size], 1).ravel()
    offsets = pa.py_buffer(cuts.astype(np.int64))
    whole = type if pa.types.is_large_binary(type) else pa.large_binary()
    if not len(rows):
        return pa.nulls(len(places), type)
    array = pa.LargeBinaryArray.from_buffers(whole, len(cuts) - 1, [None, offsets, pa.py_buffer(buffer.data)])
    which = np.zeros(len(places), np.int64)
    which[rows] = np.arange(len(rows)) * 2
    found = array.take(longs(which, places != ABSENT))
    small = found.cast(pa.binary())
    return small if type == pa.binary() else small.view(type)


def _plain_pair(type: Schema) -> Mapping[str, str] | None:
    """The types of a map's keys and values by name, in order, if they are numbers and numbers or bytes."""
    kind = present(type)
    if varied(type) or not isinstance(kind, dict) or kind["type"] != "array" or not is_pair(kind["items"]):
        return None
    found = {f["name"]: f["type"] for f in kind["items"]["fields"]}
    plain = found["key"] in ("int", "long") and found["value"] in ("int", "long", "bytes")
    return found if plain else None


class _PairSearch:
    """Finds the values of some keys in many maps."""

    def __init__(self, buffer: Buffer, pair: Mapping[str, str], keys: Sequence[int], rows: int) -> None:
        self.buffer = buffer
        self.pair = pair
        self.found = {k: np.full(rows, ABSENT, np.int64) for k in keys}
        self.step = stepper(pair["value"], frozenset())
        self.skip = skipper(pair["value"])

    def run(self, places: Longs) -> dict[int, Longs]:
        rows = np.flatnonzero(places != ABSENT)
        for first in range(0, len(rows), TOGETHER):
            self._search(rows[first : first + TOGETHER], places)
        return self.found

    def _search(self, rows: Longs, places: Longs) -> None:
        at = places[rows]
        while len(rows):
            count, at = self.buffer.counts(at)
            on = count > 0
            rows, at, count = rows[on], at[on], count[on]
            at = over_items(at, count, partial(self._item, rows), partial(self._one, rows))

    def _item(self, rows: Longs, at: Longs, which: Longs) -> Longs:
        for name in self.pair:
            if name == "key":
                key, at = self.buffer.longs(at)
            else:
                value, at = at, self.step(self.buffer, at, {})
        self._note(key, value, rows[which])
        return at

    def _note(self, key: Longs, value: Longs, rows: Longs) -> None:
        low, high = int(key.min()), int(key.max())
        if low == high:
            if low in self.found:
                self.found[low][rows] = value
            return
        for wanted, places in self.found.items():
            hit = key == wanted
            places[rows[hit]] = value[hit]

    def _one(self, rows: Longs, at: int, which: int) -> int:
        for name in self.pair:
            if name == "key":
                key, at = read_long(self.buffer.data, at)
            else:
                value, at = at, self.skip(self.buffer.data, at)
        if key in self.found:
            self.found[key][rows[which]] = value
        return at


def read(container: avro.Container, schema: Schema, wanted: frozenset[Path], landmark: Path | None = None) -> Columns:
    """The records of a file; `schema` is `by_ids(...)` of its own. Raises CorruptTableError."""
    if not isinstance(schema, dict) or schema["type"] != "record":
        raise CorruptTableError("the Avro file does not contain records", where=container.where)
    return decoded(list(avro.payloads(container, schema)), schema, wanted, container.where, landmark)


def decoded(
    payloads: Sequence[tuple[int, bytes]],
    schema: Schema,
    wanted: frozenset[Path],
    where: str,
    landmark: Path | None = None,
) -> Columns:
    """The records of blocks, of one file or several, as `avro.payloads` gives them. They are found faster by a
    `landmark`, a field of strings that begin alike. Raises CorruptTableError."""
    blocks = [(count, data) for count, data in payloads if count or data]
    buffer = Buffer.of([data for _, data in blocks])
    bounds = Blocks.of([count for count, _ in blocks], [len(data) for _, data in blocks])
    try:
        with avro.decoding(where):
            return _stepped(buffer, schema, wanted, bounds, where, landmark)
    except DamagedError as error:
        raise CorruptTableError(f"an Avro block cannot be decoded: {error}", where=where) from None


def at_places(buffer: Buffer, schema: Schema, wanted: frozenset[Path], starts: Longs) -> Marks:
    """The places of wanted fields in values of a type that begin at these places."""
    _, marks = apart(buffer, stepper(schema, wanted), starts)
    return {path: marks.get(path, starts[:0]) for path in wanted}


def _stepped(
    buffer: Buffer, schema: Schema, wanted: frozenset[Path], blocks: Blocks, where: str, landmark: Path | None
) -> Columns:
    found: list[tuple[Longs, Marks]] = []
    seen = None if landmark is None else find(buffer, schema, wanted, landmark, blocks)
    if seen is not None:
        found.append((seen.starts, seen.marks))
        blocks = blocks.take(~seen.blocks)
    found += _side_by_side(buffer, schema, wanted, blocks)
    nothing = np.zeros(0, np.int64)
    rows = np.concatenate([nothing, *(s for s, _ in found)])
    order = np.argsort(rows, kind="stable")
    places = {path: np.concatenate([nothing, *(marks[path] for _, marks in found)])[order] for path in wanted}
    return Columns(buffer, schema, rows[order], places, where)


def _side_by_side(buffer: Buffer, schema: Schema, wanted: frozenset[Path], blocks: Blocks) -> list[tuple[Longs, Marks]]:
    """The records of blocks: the first ones of all, then the second ones, and so on."""
    step = stepper(schema, wanted)
    long = blocks.counts > _longest(blocks.counts)
    short, alone = blocks.take(~long), blocks.take(long)
    walked = [_walk(buffer, schema, *lane) for lane in zip(alone.begins, alone.counts, alone.ends)]
    starts = np.concatenate([short.begins, *(w[:-1] for w in walked)])
    stops = np.concatenate([short.ends, *(w[1:] for w in walked)])
    each = np.concatenate([short.counts, *(np.ones(len(w) - 1, np.int64) for w in walked)])
    # Those with most records first: then those that still have some are always the first ones.
    order = np.argsort(-each, kind="stable")
    found: list[tuple[Longs, Marks]] = []
    for first in range(0, len(order), TOGETHER):
        lanes = order[first : first + TOGETHER]
        at = _together(buffer, step, starts[lanes], each[lanes], found)
        if (at != stops[lanes]).any():
            raise DamagedError("its records do not end where it ends")
    return found


def _longest(counts: Longs) -> int:
    """The records of the longest block that is stepped over with others, so that the whole costs least."""
    ordered = np.append(-np.sort(-counts), 0)
    walked = np.cumsum(ordered) - ordered
    return int(ordered[np.argmin(walked + ordered * _STEP)])


def _together(buffer: Buffer, step: Step, at: Longs, counts: Longs, found: list[tuple[Longs, Marks]]) -> Longs:
    """Steps over the records of several blocks, and gives the places after them."""
    at = at.copy()
    for done in range(int(counts[0])):
        lanes = int(np.count_nonzero(counts > done))
        marks: Marks = {}
        start = at[:lanes].copy()
        at[:lanes] = step(buffer, start, marks)
        found.append((start, marks))
    return at


def _walk(buffer: Buffer, schema: Schema, at: int, count: int, end: int) -> Longs:
    """The beginnings of a block's records, found one by one, and its end."""
    skip = skipper(schema)
    data, place = buffer.data, int(at)
    places = [place]
    for _ in range(int(count)):
        place = skip(data, place)
        places.append(place)
    if place != end:
        raise DamagedError("its records do not end where it ends")
    return np.array(places, np.int64)
