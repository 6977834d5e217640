"""Encrypted tables, which are refused by name: the property that makes a table one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from boathouse.errors import UnsupportedFeatureError

MASTER_KEY: Final = "encryption.key-id"
"""The master key of a table whose files are encrypted; without it they are plain, whatever keys the metadata lists."""
ENCRYPTED: Final = "Iceberg table encryption is not offered"


def require_plain(properties: Mapping[str, str], where: str | None = None) -> None:
    """Raises UnsupportedFeatureError for a table whose new files would have to be encrypted."""
    if properties.get(MASTER_KEY):
        raise UnsupportedFeatureError(
            f"{ENCRYPTED}: {MASTER_KEY} is {properties[MASTER_KEY]!r}",
            where=where,
            advice="use the format's own library for it",
        )
