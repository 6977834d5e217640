"""Which metrics of which columns a table asks for: `write.metadata.metrics.*`, as the reference reads them."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from boathouse.errors import InvalidArgumentError
from boathouse.types import Field, ListType, MapType, Schema, StructType
from boathouse.types.data_types import children

PREFIX: Final = "write.metadata.metrics."
DEFAULT: Final = f"{PREFIX}default"
COLUMN: Final = f"{PREFIX}column."
INFERRED: Final = f"{PREFIX}max-inferred-column-defaults"
_LIMIT: Final = 100
_NESTED: Final = (StructType, ListType, MapType)
_TRUNCATE: Final = re.compile(r"truncate\((\d{1,9})\)", re.I)

log = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class Mode:
    """What is recorded of a column: nothing, counts, or bounds too, truncated to `width` (None: complete)."""

    name: Literal["none", "counts", "truncate", "full"]
    width: int | None = None

    @property
    def bounds(self) -> bool:
        return self.name in ("truncate", "full")


NOTHING: Final = Mode("none")
TRUNCATED: Final = Mode("truncate", 16)
_PLAIN: Final = {m.name: m for m in (NOTHING, Mode("counts"), Mode("full"))}


def parse(text: str) -> Mode | None:
    """The mode that a property names, in any case; None if there is none of that name."""
    found = _PLAIN.get(text.lower())  # type: ignore[call-overload]
    if found is None and (match := _TRUNCATE.fullmatch(text)) and int(match[1]):
        return Mode("truncate", int(match[1]))
    return found


def check(properties: Mapping[str, str | None], schema: Schema) -> None:
    """Raises InvalidArgumentError for properties that nobody obeys: a mode or a number that is none, and a column that
    the table lacks, for which the reference refuses later changes of the schema."""
    names = {".".join(path) for path, _ in schema.walk()}
    for key, value in properties.items():
        if value is None or not key.startswith(PREFIX):
            continue
        if key == INFERRED:
            if _number(value) is None:
                raise InvalidArgumentError(f"{key} is {value!r}, which is not a number of columns")
        elif (key == DEFAULT or key.startswith(COLUMN)) and parse(value) is None:
            raise InvalidArgumentError(
                f"{key} is {value!r}, which is not a mode of metrics",
                advice="set none, counts, truncate(16) (or another number) or full",
            )
        if key.startswith(COLUMN) and key[len(COLUMN) :] not in names:
            raise InvalidArgumentError(
                f"{key} is set, but the table has no column `{key[len(COLUMN) :]}`",
                advice="name fields of structs, and elements, by their path: s.x, l.element",
            )


def modes(schema: Schema, properties: Mapping[str, str], sorted_by: Collection[str] = ()) -> dict[int, Mode]:
    """The mode of every leaf, by field id. `sorted_by`: columns whose order the rows of files are in, which have bounds
    unless their own property says otherwise.

    A property that is not to be understood is as if it were not set, as in the reference.
    """
    default = _mode(properties, DEFAULT)
    if default is None:
        counted = set(_first(schema.fields, _limit(properties)))
    ordered = TRUNCATED if default is None or not default.bounds else default
    found = {}
    for path, field in schema.walk():
        if field.id is None or isinstance(field.type, _NESTED):
            continue
        name = ".".join(path)
        inherited = default if default is not None else TRUNCATED if field.id in counted else NOTHING
        if name in sorted_by:
            inherited = ordered
        found[field.id] = _mode(properties, COLUMN + name) or inherited
    return found


def _mode(properties: Mapping[str, str], key: str) -> Mode | None:
    text = properties.get(key)
    found = None if text is None else parse(text)
    if text is not None and found is None:
        log.warning("the property %s is %r, which is not a mode of metrics: it is ignored", key, text)
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _limit(properties: Mapping[str, str]) -> int:
    """How many leaves have metrics where nothing else is said."""
    text = properties.get(INFERRED)
    found = _LIMIT if text is None else _number(text)
    if found is None:
        log.warning("the property %s is %r, which is not a number of columns: it is ignored", INFERRED, text)
    return _LIMIT if found is None else found


def _first(fields: Sequence[Field], limit: int) -> list[int]:
    """The ids of the first leaves: those of a struct itself come before those of the structs, lists and maps in it."""
    found: list[int] = []

    def visit(members: Sequence[Field]) -> Iterator[int]:
        yield from (f.id for f in members if f.id is not None and not isinstance(f.type, _NESTED))
        for f in members:
            yield from visit(children(f.type))

    for id in visit(fields):
        if len(found) >= limit:
            break
        found.append(id)
    return found
