"""Counts the requests to stores."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from boathouse.storage import Stores
from boathouse.testing.faults import FaultyStorage, Plan


class Asked:
    """The requests since the last call of `clear`, as (name, key), reads of ranges of one file counted as they are."""

    def __init__(self) -> None:
        self.storages: list[FaultyStorage] = []

    def clear(self) -> None:
        for storage in self.storages:
            storage.log.clear()

    @property
    def all(self) -> list[tuple[str, str]]:
        return [(o.name, o.key) for storage in self.storages for o in storage.log]

    def of_table(self) -> Counter[str]:
        """By name, those of the table's metadata: everything but reads and writes of data files."""
        return Counter(name for name, key in self.all if not key.endswith((".parquet", ".lance")))

    def of_data(self) -> Counter[str]:
        return Counter(name for name, key in self.all if key.endswith((".parquet", ".lance")))


@pytest.fixture
def asked(monkeypatch) -> Asked:
    """The requests to every storage that is opened from now on."""
    made = Asked()
    real = Stores.__init__

    def init(self: Stores, *args: Any, **kwargs: Any) -> None:
        def wrap(inner: Any) -> FaultyStorage:
            made.storages.append(FaultyStorage(inner, Plan()))
            return made.storages[-1]

        real(self, *args, **{**kwargs, "wrap": wrap})

    monkeypatch.setattr(Stores, "__init__", init)
    return made
