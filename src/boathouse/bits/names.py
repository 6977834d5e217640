"""Looks up names of columns and fields in constant time: tables have thousands of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

_STEP = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def steps(text: str) -> tuple[str, ...]:
    """The names of a dotted path, each in backticks if it contains dots; (text,) if it is not such a path."""
    found = list(_STEP.finditer(text))
    if not found or ".".join(m[0] for m in found) != text:
        return (text,)
    return tuple(m[2] or m[1].replace("``", "`") for m in found)


class Names:
    """An index of names: exact, or ignoring case. Positions count from 0."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)

    def __reduce__(self) -> tuple[type[Names], tuple[tuple[str, ...]]]:
        return Names, (self._names,)

    def exactly(self, name: str) -> Sequence[int]:
        """The positions of `name`, ascending."""
        return self._exact.get(name, ())

    def loosely(self, name: str) -> Sequence[int]:
        """The positions of names that equal `name` ignoring case, ascending."""
        return self._loose.get(name.lower(), ())

    def at(self, name: str) -> Sequence[int]:
        """Exact matches, else those ignoring case, as Spark resolves names: more than one is ambiguous."""
        return self.exactly(name) or self.loosely(name)

    def repeated(self) -> str | None:
        """The first name that occurs more than once."""
        return next((name for name, places in self._exact.items() if len(places) > 1), None)

    @cached_property
    def _exact(self) -> dict[str, list[int]]:
        return _places(self._names)

    @cached_property
    def _loose(self) -> dict[str, list[int]]:
        return _places(name.lower() for name in self._names)


def _places(names: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name, []).append(i)
    return found
