"""The properties of a table that are no part of its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from boathouse.errors import InvalidArgumentError
from boathouse.table.edits import CreateTable

STABLE_ROW_IDS: Final = "enable_stable_row_ids"
"""The property of a new table that gives its rows ids which stay with them; pylance's name. It is not kept as one: a
flag says so."""


def options_of(create: CreateTable) -> tuple[dict[str, str], bool]:
    """The properties that a new table keeps, and whether its rows have stable ids, as they have with the profile
    `modern`. Raises InvalidArgumentError."""
    asked = create.properties.get(STABLE_ROW_IDS)
    if asked is not None and asked.lower() not in ("true", "false"):
        raise InvalidArgumentError(f"{STABLE_ROW_IDS} is {asked!r}", advice="give true or false")
    kept = {key: value for key, value in create.properties.items() if key != STABLE_ROW_IDS}
    return kept, create.profile == "modern" if asked is None else asked.lower() == "true"


def check_properties(properties: Mapping[str, object], where: str) -> None:
    """Raises InvalidArgumentError for a property that only a new table can have."""
    if STABLE_ROW_IDS in properties:
        raise InvalidArgumentError(
            f"{STABLE_ROW_IDS} cannot be set: the rows of this table were written with or without ids",
            where=where,
            advice=f"copy them into a new table, by properties={{'{STABLE_ROW_IDS}': 'true'}}",
        )
