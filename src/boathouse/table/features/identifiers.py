"""The columns that identify a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identifiers:
    """`columns`, paths through structs, are those that an upsert goes by."""

    columns: tuple[tuple[str, ...], ...]
