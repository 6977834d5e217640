"""The footers of ORC stripes: which stream has how many bytes, one after the other, and how columns are encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from boathouse.bits.protobuf import Message, repeated, scalar
from boathouse.orc.footer import Statistics

DATA: Final = 1
NANOS: Final = 5
INDEXES: Final = (6, 7, 8)
"""The kinds of streams of row groups, which are before the others, and of bloom filters."""


@dataclass(frozen=True, kw_only=True)
class Stream(Message):
    """Readers look for fields that are there, also where they are 0."""

    kind: int | None = scalar(1, "enum", optional=True)
    column: int | None = scalar(2, "uint32", optional=True)
    length: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class Encoding(Message):
    kind: int | None = scalar(1, "enum", optional=True)


@dataclass(frozen=True, kw_only=True)
class StripeFooter(Message):
    streams: tuple[Stream, ...] = repeated(1, Stream)
    columns: tuple[Encoding, ...] = repeated(2, Encoding)
    zone: str = scalar(3, "string")


@dataclass(frozen=True, kw_only=True)
class StripeStatistics(Message):
    columns: tuple[Statistics, ...] = repeated(1, Statistics)


@dataclass(frozen=True, kw_only=True)
class Metadata(Message):
    """Of each stripe, in the tail of the file."""

    stripes: tuple[StripeStatistics, ...] = repeated(1, StripeStatistics)
