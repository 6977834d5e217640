"""How a feature is asked for, and the error where a table does not offer it."""

from __future__ import annotations

from boathouse.errors import UnsupportedFeatureError
from boathouse.table.snapshot import Feature, Target


def required(table: Target, feature: type[Feature], operation: str) -> Feature:
    """What the table offers. Raises UnsupportedFeatureError, naming `operation`, if it does not offer the feature."""
    found = table.offers(feature)
    if found is None:
        raise not_offered(operation, table)
    return found


def not_offered(operation: str, table: Target) -> UnsupportedFeatureError:
    """The error of a table that does not have the operation."""
    return UnsupportedFeatureError(
        f"{operation} is not offered for {table.format} tables",
        where=str(table.context.location),
        advice="use the format's own library for it",
    )
