"""Everything that is wrong or odd about the bytes of a variant.

An error is what a full reading refuses (`decode` lists it). An oddity is read without loss, but shows that the writer
deviated from the specification: fields out of order, a false sorted flag, a first dictionary offset that is not 0,
bytes after the end, gaps, shared values, array values out of order, a scale beyond the decimal's precision, reserved
bits; and unknown primitive types, which newer writers may use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant.decode import (
    Container,
    check_layout,
    read_container,
    read_names,
    read_scalar,
    value_end,
)
from boathouse.variant.metadata import Metadata, parse_metadata, unsigned
from boathouse.variant.primitives import (
    KINDS,
    MAX_DEPTH,
    OBJECT,
    PRIMITIVES,
    SHORT_STRING,
)
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, spell_path, walk

LIMIT = 1_000  # findings that are returned


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (`error`) or odd (`oddity`: read without loss, but not as the specification has it) in a
    variant.

    `offset` counts bytes from the start of the metadata (`path` is "metadata") or of the value; `path` leads to the
    value in question.
    """

    kind: Literal["error", "oddity"]
    message: str
    offset: int
    path: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.path}, byte {self.offset:,}: {self.message}"


def validate(value: VariantView) -> tuple[Finding, ...]:
    """Errors and oddities of a variant's bytes, those of the metadata first. Never raises because of a finding."""
    start, end = value.span
    return validate_bytes(value.metadata, value.buffer[start:end])


def validate_bytes(metadata: bytes, value: bytes) -> tuple[Finding, ...]:
    """Errors and oddities of metadata and value, at most 1,000 and one that reports the limit."""
    findings: list[Finding] = []
    try:
        dictionary = parse_metadata(metadata)
    except MalformedVariant as problem:
        return (Finding("error", problem.message, problem.offset or 0, "metadata"),)
    _check_metadata(dictionary, findings)
    check = _Check(value, dictionary, findings)
    check.run()
    if len(findings) > LIMIT:
        findings[LIMIT:] = [Finding("oddity", "further findings are omitted", findings[LIMIT].offset, "$")]
    return tuple(findings)


def _check_metadata(dictionary: Metadata, findings: list[Finding]) -> None:
    """Oddities of the dictionary, and names that are not UTF-8."""

    def odd(message: str, offset: int) -> None:
        findings.append(Finding("oddity", message, offset, "metadata"))

    raw, size = dictionary.raw, (dictionary.raw[0] >> 6) + 1
    if raw[0] & 0x20:
        odd("the reserved bit 5 of the header is set", 0)
    if int.from_bytes(raw[1 + size : 1 + 2 * size], "little"):
        odd("the first dictionary offset is not 0", 1 + size)
    if dictionary.size < len(raw):
        odd(f"{len(raw) - dictionary.size:,} bytes follow the dictionary", dictionary.size)
    names = [dictionary.name_bytes(id) for id in range(len(dictionary))]
    if dictionary.flag and any(right <= left for left, right in pairwise(names)):
        odd("the flag says sorted and unique names, which they are not", 0)
    for id in range(len(names)):
        try:
            dictionary.name(id)
        except MalformedVariant as problem:
            findings.append(Finding("oddity", problem.message, problem.offset or 0, "metadata"))
        if len(findings) > LIMIT:
            return


@dataclass(frozen=True, slots=True)
class _Place:
    """A value to be checked, and the path to it."""

    pos: int
    end: int
    depth: int
    key: str | int | None = None
    parent: _Place | None = None

    def path(self) -> str:
        keys: list[str | int | None] = []
        here: _Place | None = self
        while here is not None and here.parent is not None:
            keys.append(here.key)
            here = here.parent
        return spell_path(keys[::-1])


class _Check:
    """One pass over the value: every distinct child once, so linear in the bytes even if children are shared."""

    def __init__(self, data: bytes, metadata: Metadata, findings: list[Finding]) -> None:
        self.data = data
        self.metadata = metadata
        self.findings = findings
        self.errors = 0

    def note(self, kind: Literal["error", "oddity"], message: str, offset: int, place: _Place) -> None:
        self.errors += kind == "error"
        self.findings.append(Finding(kind, message, offset, place.path()))

    def run(self) -> None:
        """Checks everything; then a full reading finds the faults that only it can find."""
        root = _Place(0, len(self.data), 0)
        try:
            stop = value_end(self.data, 0, len(self.data))
        except MalformedVariant as problem:
            self.note("error", problem.message, problem.offset or 0, root)
            return
        if 0 <= stop < len(self.data):
            self.note("oddity", f"{len(self.data) - stop:,} bytes follow the value", stop, root)
        work = [_Place(0, stop, 0)]
        while work and len(self.findings) <= LIMIT:
            place = work.pop()
            if self.data[place.pos] & 3 <= SHORT_STRING:
                self.scalar(place)
            else:
                work.extend(reversed(self.container(place)))
        if not self.errors and not work:
            self.read()

    def read(self) -> None:
        try:
            for step in walk(self.data, 0, len(self.data), self.metadata):
                if step.event is Event.SCALAR:
                    read_scalar(self.data, step.pos, step.end)
        except MalformedVariant as problem:
            self.note("error", problem.message, problem.offset or 0, _Place(0, 0, 0))
        except UnsupportedFeatureError:
            pass  # recorded as an oddity at its position

    def scalar(self, place: _Place) -> None:
        header = self.data[place.pos]
        id = header >> 2
        if header & 3 != SHORT_STRING and id >= PRIMITIVES:
            self.note("oddity", f"primitive type {id} is unknown: it cannot be read", place.pos, place)
            return
        try:
            content = read_scalar(self.data, place.pos, place.end)
        except MalformedVariant as problem:
            self.note("error", problem.message, problem.offset or place.pos, place)
            return
        if isinstance(content, tuple) and content[1] > KINDS[id].digits:
            self.note("oddity", f"scale {content[1]} in a {KINDS[id].name}", place.pos + 1, place)

    def container(self, place: _Place) -> list[_Place]:
        """The distinct children that can be checked."""
        data, pos = self.data, place.pos
        if place.depth >= MAX_DEPTH:
            self.note("error", f"more than {MAX_DEPTH:,} nested objects and arrays", pos, place)
            return []
        box = read_container(data, pos, place.end)
        if data[pos] >> 2 & (0x20 if data[pos] & 3 == OBJECT else 0x38):
            self.note("oddity", "reserved bits of the header are set", pos, place)
        keys = self.names(box, place)
        starts, ends, children = [], [], []
        for index, offset in enumerate(unsigned(data, box.offsets_at, box.offset_size, box.elements)):
            child = _Place(box.values_at + offset, 0, place.depth + 1, keys[index] if keys else index, place)
            try:
                end = value_end(data, child.pos, box.end)
            except MalformedVariant as problem:
                self.note("error", problem.message, problem.offset or child.pos, child)
                continue
            starts.append(child.pos)
            ends.append(end)
            children.append(_Place(child.pos, end, child.depth, child.key, place))
        if len(starts) == box.elements:
            try:
                check_layout(box, starts, ends)
            except MalformedVariant as problem:
                self.note("error", problem.message, problem.offset or pos, place)
                return []
        elif len(set(starts)) < len(starts) or any(end > start for end, start in _overlaps(starts, ends)):
            return []
        self.order(box, place, starts, ends)
        distinct: dict[int, _Place] = {}
        for child in children:
            distinct.setdefault(child.pos, child)
        return list(distinct.values())

    def names(self, box: Container, place: _Place) -> Sequence[str]:
        if not box.is_object:
            return ()
        try:
            names = read_names(self.data, box, self.metadata)
        except MalformedVariant as problem:
            self.note("error", problem.message, problem.offset or box.pos, place)
            return [f"field {slot}" for slot in range(box.elements)]
        if list(names) != sorted(names):
            self.note("oddity", "the fields are not in the order of their names", box.ids_at, place)
        return names

    def order(self, box: Container, place: _Place, starts: list[int], ends: list[int]) -> None:
        """Oddities of the positions of the values."""
        if len(set(starts)) < len(starts):
            self.note("oddity", "values are shared", box.offsets_at, place)
        if not box.is_object and starts != sorted(starts):
            self.note("oddity", "the values of the array are not in the order of its elements", box.offsets_at, place)
        spans = sorted(set(zip(starts, ends)))
        before = box.values_at
        for start, end in spans:
            if start > before >= 0:
                self.note("oddity", f"{start - before:,} bytes before a value belong to no value", before, place)
                return
            before = end


def _overlaps(starts: list[int], ends: list[int]) -> list[tuple[int, int]]:
    """(end, next start) of children in the order of their positions."""
    spans = sorted(zip(starts, ends))
    return [(left[1], right[0]) for left, right in pairwise(spans)]
