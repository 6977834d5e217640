"""The JSON text of many scalars of one kind at once, as binary arrays: that of `json_out.scalar_to_json` of each."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.unaligned import Bytes, Ints
from boathouse.errors import EvaluationError
from boathouse.variant.columns.byte_slices import flat, join
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.scalars import binaries, decimals, numbers, uuids
from boathouse.variant.json_out import Special, date_text, decimal_text, float_text, time_text, timestamp_text
from boathouse.variant.primitives import Family, Kind

_DAYS = (-719_162, 2_932_896)  # the years 1 to 9999
_PLAIN = (1e-4, 1e9)  # where Arrow prints doubles as Python does, except whole ones
_WIDEST = 18  # digits of a fraction that fit into 64 bits with one digit more
_POWERS = 10 ** np.arange(_WIDEST + 1)


def text_of(tree: Tree, which: Ints, kind: Kind, special: Special) -> pa.Array:
    """The JSON text of scalars of one kind (not null, boolean or string). Raises Faulty, and EvaluationError with its
    row for NaN and infinities if they are refused."""
    if kind.family is Family.FLOAT:
        return _floats(tree, which, kind, special)
    return _WRITERS[kind.family](tree, which, kind)


def escaped(strings: pa.Array) -> pa.Array:
    """Strings as they are written between the quotes in JSON."""
    data, offsets = flat(strings)
    special = np.flatnonzero((data < 0x20) | (data == 0x22) | (data == 0x5C))
    if not len(special):
        return strings
    which = np.unique(np.searchsorted(offsets, special, side="right") - 1)
    found = [encode_basestring(text)[1:-1] for text in strings.take(pa.array(which)).to_pylist()]
    places = np.arange(len(strings))
    places[which] = len(strings) + np.arange(len(which))
    return pa.concat_arrays([strings, pa.array(found, strings.type)]).take(pa.array(places))


def _binary(text: list[str]) -> pa.Array:
    return pa.array(text, pa.string()).cast(pa.binary())


def _integers(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    return pa.array(numbers(tree, which, kind)).cast(pa.string()).cast(pa.binary())


def _mixed(
    fast: npt.NDArray[np.bool_], quick: Callable[[Ints], pa.Array], slow: Callable[[Ints], list[str]]
) -> pa.Array:
    """JSON texts: Arrow prints the `fast` ones, Python the rest."""
    if fast.all():
        return quick(np.arange(len(fast)))
    ours, theirs = np.flatnonzero(fast), np.flatnonzero(~fast)
    places = np.empty(len(fast), np.int64)
    places[np.concatenate([ours, theirs])] = np.arange(len(fast))
    return pa.concat_arrays([quick(ours), _binary(slow(theirs))]).take(pa.array(places))


def _floats(tree: Tree, which: Ints, kind: Kind, special: Special) -> pa.Array:
    found = numbers(tree, which, kind)
    size = np.abs(found)
    with np.errstate(invalid="ignore"):
        fast = (size >= _PLAIN[0]) & (size < _PLAIN[1]) & (found != np.trunc(found))

    def slow(at: Ints) -> list[str]:
        values = found[at].tolist()
        if kind.size == 8 and np.isfinite(found[at]).all():
            return list(map(repr, values))
        out = []
        for place, value in zip(at.tolist(), values):
            try:
                out.append(float_text(value, kind.size == 4, special))
            except EvaluationError as problem:
                row = int(tree.numbers[tree.row[which[place]]])
                raise EvaluationError(problem.message, where=f"row {row:,}", advice=problem.advice) from None
        return out

    return _mixed(fast, lambda at: pa.array(found[at]).cast(pa.string()).cast(pa.binary()), slow)


def _decimals(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    unscaled, scale = decimals(tree, which, kind)
    if isinstance(unscaled, list):
        return _binary([decimal_text(number, digits) for number, digits in zip(unscaled, scale.tolist())])
    plain = scale <= _WIDEST
    if plain.all():
        return _plain_decimals(unscaled.astype(np.int64), scale)

    def slow(at: Ints) -> list[str]:
        return [decimal_text(number, digits) for number, digits in zip(unscaled[at].tolist(), scale[at].tolist())]

    return _mixed(plain, lambda at: _plain_decimals(unscaled[at].astype(np.int64), scale[at]), slow)


def _plain_decimals(unscaled: npt.NDArray[np.int64], scale: npt.NDArray[np.uint8]) -> pa.Array:
    whole, fraction = np.divmod(np.abs(unscaled), _POWERS[scale])
    whole_text, whole_at = flat(pa.array(whole).cast(pa.string()))
    # The fraction with a digit before it, which keeps its leading zeros and leaves room for the point.
    fraction_text, fraction_at = flat(pa.array(fraction + _POWERS[scale]).cast(pa.string()))
    pool = np.concatenate([np.frombuffer(b"-", np.uint8), whole_text, fraction_text])
    start, end = np.zeros((len(scale), 3), np.int64), np.zeros((len(scale), 3), np.int64)
    end[:, 0] = unscaled < 0
    start[:, 1], end[:, 1] = whole_at[:-1], whole_at[1:]
    start[:, 2], end[:, 2] = fraction_at[:-1], np.where(scale > 0, fraction_at[1:], fraction_at[:-1])
    start[:, 1:] += (1, 1 + len(whole_text))
    end[:, 1:] += (1, 1 + len(whole_text))
    pool[start[:, 2]] = ord(".")
    data, offsets = flat(join(pool, start.reshape(-1), end.reshape(-1)))
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets[::3])), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary() if offsets.itemsize == 4 else pa.large_binary(), len(scale), buffers)


def _framed(text: pa.Array, tail: bytes) -> pa.Array:
    """Strings of one width in quotes, with the space of a timestamp replaced."""
    data, offsets = flat(text.cast(pa.binary()))
    width = int(offsets[1] - offsets[0])
    out = np.empty((len(text), width + 2 + len(tail)), np.uint8)
    out[:, 1 : width + 1] = data.reshape(len(text), width)
    out[:, 0] = out[:, -1] = ord('"')
    out[:, width + 1 : -1] = np.frombuffer(tail, np.uint8)
    if width > 15:
        out[:, 11] = ord("T")
    return _fixed(out)


def _fixed(matrix: Bytes) -> pa.Array:
    rows, width = matrix.shape
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(matrix)])


def _instants(
    found: npt.NDArray[Any], type: pa.DataType, limits: tuple[int, int], tail: bytes, slow: Callable[[int], str]
) -> pa.Array:
    def quick(at: Ints) -> pa.Array:
        if not len(at):
            return pa.array([], pa.binary())
        return _framed(pa.array(found[at]).view(type).cast(pa.string()), tail)

    fast = (found >= limits[0]) & (found <= limits[1])
    return _mixed(fast, quick, lambda at: [f'"{slow(number)}"' for number in found[at].tolist()])


def _dates(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    return _instants(numbers(tree, which, kind), pa.date32(), _DAYS, b"", date_text)


def _timestamps(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    digits, day = kind.digits, 86_400 * 10**kind.digits
    limits = (-(2**63) + 1, 2**63 - 1) if digits == 9 else (_DAYS[0] * day, (_DAYS[1] + 1) * day - 1)
    return _instants(
        numbers(tree, which, kind),
        pa.timestamp("ns" if digits == 9 else "us"),
        limits,
        b"Z" if kind.utc else b"",
        lambda ticks: timestamp_text(ticks, digits, kind.utc),
    )


def _times(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    found = numbers(tree, which, kind)
    return _instants(found, pa.time64("us"), (0, 2**63 - 1), b"", lambda micros: time_text(micros, kind.digits))


def _uuids(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    return _binary([f'"{one}"' for one in uuids(tree, which, kind)])


def _binaries(tree: Tree, which: Ints, kind: Kind) -> pa.Array:
    return pa.array([b'"' + b64encode(raw) + b'"' for raw in binaries(tree, which).to_pylist()], pa.binary())


_WRITERS: dict[Family, Callable[[Tree, Ints, Kind], pa.Array]] = {
    Family.INTEGER: _integers,
    Family.DECIMAL: _decimals,
    Family.DATE: _dates,
    Family.TIME: _times,
    Family.TIMESTAMP: _timestamps,
    Family.BINARY: _binaries,
    Family.UUID: _uuids,
}
