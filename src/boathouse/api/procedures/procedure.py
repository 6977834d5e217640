"""What a procedure of CALL is: its name, what it takes, what it returns, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from boathouse.api.table import Table
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.ops.result import WriteResult
from boathouse.table.history import HistoryEntry

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a procedure: `table` is that of its argument `table`, `name` the last part of its name; `given`
    are the other arguments by name, as Python values (times are aware datetimes), without those that are absent or
    null."""

    spark: Any
    table: Table
    name: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """`type` is one of Spark SQL."""

    name: str
    type: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Procedure:
    """`takes` are its parameters after `table`, in their order, as DDL: `snapshot_id bigint NOT NULL, ...`, those that
    are NOT NULL required; `returns` are the columns of its result, as DDL. `run` gives the rows. Parameters that only
    say how the reference does its work (threads, caches) are taken and change nothing."""

    name: str
    takes: str
    returns: str
    run: Callable[[Called], Iterable[Row]]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (Parameter("table", "string", True), *_parameters(self.takes))


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of a procedure that makes a table: `given` are all arguments; `catalog` is the name before `system`, or
    empty."""

    spark: Any
    catalog: str
    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Maker:
    """A procedure that makes a table: `takes` are all parameters in their order, otherwise as Procedure."""

    name: str
    takes: str
    returns: str
    run: Callable[[Asked], Iterable[Row]]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return _parameters(self.takes)


def _parameters(takes: str) -> tuple[Parameter, ...]:
    found = []
    for text in takes.split(", ") if takes else ():
        name, _, type = text.removesuffix(" NOT NULL").partition(" ")
        found.append(Parameter(name, type, text.endswith(" NOT NULL")))
    return tuple(found)


def known_options(given: Mapping[str, str], known: Iterable[str], ignored: Iterable[str]) -> dict[str, str]:
    """Of the map `options` of a procedure those that have a meaning here. Raises UnsupportedFeatureError for one that
    is neither known nor without effect on the result."""
    known, ignored = frozenset(known), frozenset(ignored)
    for name in given:
        if name not in known | ignored:
            raise UnsupportedFeatureError(
                f"the option {name!r} is not offered", advice=f"there are {', '.join(sorted(known))}"
            )
    return {name: value for name, value in given.items() if name in known}


def number_of(options: Mapping[str, str], name: str, kind: Callable[[str], Any] = int) -> Any:
    """The value of an option as a number; None if it is not given. Raises InvalidArgumentError."""
    text = options.get(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidArgumentError(
            f"the option {name!r} is {text!r}", advice=f"pass a number: map('{name}', '3')"
        ) from None


def total(table: Table, done: WriteResult, name: str) -> int:
    """The sum of a figure of the summaries of the commits that an operation has just made."""
    made = frozenset(done.versions)
    return sum(int(e.metrics.get(name, 0)) for e in entries(table, done) if e.version in made)


def entries(table: Table, done: WriteResult) -> Iterator[HistoryEntry]:
    """The commits from the first to the last of an operation; others may be between them."""
    left = set(done.versions)
    for entry in table.refresh().history() if left else ():
        if not entry.metadata_only:
            yield entry
            left.discard(entry.version)
        if not left:
            return
