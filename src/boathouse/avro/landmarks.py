"""Finds the records of blocks by a landmark: bytes that each record has at the beginning of one field, such as the
folder in the paths of a table's files.

In a block only the beginning of the first record is known. But where a field of each record is guessed, stepping from
there leads to the record's end, which is where the next one begins; stepping on from there must lead to the next guess,
and the last record must end with its block. No wrong guess passes, and all records are stepped over at once, in the
order of their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from boathouse.avro.cursors import (
    Blocks,
    Buffer,
    DamagedError,
    Longs,
    Marks,
    Path,
    Schema,
    Step,
    apart,
    stepper,
)

_RECORDS: Final = 4
"""Records that a block has on average, so that guessing pays."""
_BYTES: Final = (8, 256)
"""The shortest landmark, and the longest."""
_LENGTH_BYTES: Final = 2
"""Of the number before a string, besides the last one."""


@dataclass(frozen=True, slots=True)
class Found:
    """`blocks` says whose records were found, `starts` where they begin, in their order."""

    blocks: npt.NDArray[np.bool_]
    starts: Longs
    marks: Marks


def find(buffer: Buffer, schema: Schema, wanted: frozenset[Path], landmark: Path, blocks: Blocks) -> Found | None:
    """The records of blocks in which a landmark, the strings of the field `landmark`, shows all of them; None if none
    was found, or nothing confirms them."""
    halves = _halves(schema, landmark, wanted)
    counts = blocks.counts
    if halves is None or not len(counts) or counts.min() < 1 or counts.sum() < _RECORDS * len(counts):
        return None
    try:
        first, _ = apart(buffer, halves[0], blocks.begins)
        known, places = _guess(buffer, first, blocks)
        found = _confirmed(buffer, halves, places, blocks.take(known))
        return None if found is None else Found(known, *found)
    except (DamagedError, IndexError):
        return None


def _halves(schema: Schema, path: Path, wanted: frozenset[Path]) -> tuple[Step, Step] | None:
    """The steps over what is before a field of strings, and over the rest of the record."""
    parts = _split(schema, path)
    if parts is None or any(path[:n] in wanted for n in range(1, len(path))):
        return None
    return stepper(parts[0], wanted), stepper(parts[1], wanted)


def _split(schema: Schema, path: Path) -> tuple[Schema, Schema] | None:
    """The fields of a record before one, and the others, as records."""
    if not path:
        return ({"type": "record", "fields": []}, schema) if schema == "string" else None
    if not isinstance(schema, dict) or schema["type"] != "record":
        return None
    fields: list[dict[str, Any]] = schema["fields"]
    at = next((i for i, f in enumerate(fields) if f["name"] == path[0]), None)
    inside = None if at is None else _split(fields[at]["type"], path[1:])
    if at is None or inside is None:
        return None
    before, after = ({**fields[at], "type": part} for part in inside)
    return {**schema, "fields": [*fields[:at], before]}, {**schema, "fields": [after, *fields[at + 1 :]]}


def _guess(buffer: Buffer, first: Longs, blocks: Blocks) -> tuple[npt.NDArray[np.bool_], Longs]:
    """The blocks in which the landmark occurs as often as they have records, and where the strings that begin with it
    are. `first` are the places of the strings of the first records."""
    mark = _landmark(buffer, first)
    if len(mark) < _BYTES[0]:
        return np.zeros(len(blocks), np.bool_), first[:0]
    gaps = np.fromiter(map(len, buffer.data.split(mark)[:-1]), np.int64)
    at = np.cumsum(gaps) + np.arange(len(gaps)) * len(mark)
    block = blocks.ends.searchsorted(at, "right")
    known = np.bincount(block, minlength=len(blocks))[: len(blocks)] == blocks.counts
    place = at[np.append(known, False)[block]] - 1
    for _ in range(_LENGTH_BYTES):
        place -= buffer.numbers[place - 1] > 127
    return known, place


def _landmark(buffer: Buffer, places: Longs) -> bytes:
    """What most strings at these places begin with, up to a slash: those of another folder are few."""
    sizes, at = buffer.sizes(places)
    strings = sorted(buffer.data[b : b + min(n, _BYTES[1])] for b, n in zip(at.tolist(), sizes.tolist()))
    few = len(strings) // 10
    low, high = strings[few], strings[-1 - few]
    alike = next((i for i, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
    return low[: low.rfind(b"/", 0, alike) + 1]


def _confirmed(buffer: Buffer, halves: tuple[Step, Step], places: Longs, blocks: Blocks) -> tuple[Longs, Marks] | None:
    """Where the records of these blocks begin, and what is wanted in them, if their strings are at these places."""
    if not len(places):
        return None
    after, rest = apart(buffer, halves[1], places)
    last = np.cumsum(blocks.counts) - 1
    starts = np.concatenate([places[:1], after[:-1]])
    starts[last - blocks.counts + 1] = blocks.begins
    reached, marks = apart(buffer, halves[0], starts)
    if (reached != places).any() or (after[last] != blocks.ends).any():
        return None
    return starts, marks | rest
