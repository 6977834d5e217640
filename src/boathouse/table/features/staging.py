"""Writes that wait beside the branches until they are published."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Staging:
    """A value that a table has if its properties allow it: a write whose metadata names it under `key` adds a version
    to no branch."""

    key: str
