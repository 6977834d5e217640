"""Conditions on the rows of a table: CHECK constraints and invariants (PROTOCOL.md, "CHECK Constraints" and "Column
Invariants")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from boathouse.delta.actions import Metadata
from boathouse.delta.features.support import CONSTRAINT
from boathouse.errors import UnsupportedFeatureError
from boathouse.table.tasks import RowCondition

INVARIANT: Final = "delta.invariants"


def constraints(metadata: Metadata) -> Iterator[RowCondition]:
    """The CHECK constraints."""
    for key, sql in metadata.configuration.items():
        if key.lower().startswith(CONSTRAINT):
            yield RowCondition(key[len(CONSTRAINT) :], sql)


def invariants(metadata: Metadata) -> Iterator[RowCondition]:
    """Raises UnsupportedFeatureError for one that is not an expression."""
    for path, field in metadata.schema.walk():
        if INVARIANT in field.metadata:
            name = ".".join(path)
            sql = _expression(field.metadata[INVARIANT], name, metadata.where)
            yield RowCondition(f"the invariant of {name}", sql)


def _expression(text: object, name: str, where: str) -> str:
    """The SQL text of `{"expression": {"expression": "x > 3"}}`."""
    try:
        found = json.loads(str(text))["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str):
        raise UnsupportedFeatureError(
            f"the column `{name}` has an invariant that cannot be checked here: {text}",
            where=where,
            advice="write the table with the engine that uses it",
        )
    return found
