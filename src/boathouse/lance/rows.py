"""How many rows a data file holds, where its manifest does not say."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse.lance.messages import Field
from boathouse.storage import Stores


def count_rows(stores: Stores, uri: str, fields: Sequence[Field]) -> int:
    return 0
