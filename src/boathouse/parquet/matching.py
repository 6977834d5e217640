"""How nested fields are found in a Parquet file, and what a missing one holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from boathouse.types import Field


def own_name(field: Field) -> str:
    return field.name


def no_default(field: Field) -> object:
    return None


@dataclass(frozen=True, slots=True)
class Matching:
    """How a format finds nested fields and fills in missing ones; picklable (module-level functions).

    `physical_name` is a nested field's name in the file (Delta column mapping); `default` its value where the
    file lacks it (Iceberg initial-default); `file_ids` gives the id of a physical path in files that carry no
    field ids at all (Iceberg name mapping), lists and maps with their `element`, `key` and `value`. Without it, columns
    that have ids are found by name in such files, if these have one of the `names` (in lower case; None: in any file).
    """

    physical_name: Callable[[Field], str] = own_name
    default: Callable[[Field], object] = no_default
    file_ids: Callable[[tuple[str, ...]], int | None] | None = None
    names: frozenset[str] | None = None
