"""The records of a small Avro file, decoded one by one, with the methods of `Columns`: cheaper for a few records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.avro.columns import Valid, numbered
from boathouse.avro.cursors import Longs, Path, Schema, in_64_bits, present


@dataclass(frozen=True, slots=True)
class FewColumns:
    """See `Columns`."""

    rows: list[dict[str, Any]]
    schema: Schema
    nbytes: int
    where: str

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: npt.NDArray[Any]) -> FewColumns:
        which = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return FewColumns([self.rows[i] for i in which.tolist()], self.schema, self.nbytes, self.where)

    def type(self, path: Path) -> Schema | None:
        schema = self.schema
        for name in path:
            fields = present(schema)["fields"]
            schema = next((f["type"] for f in fields if f["name"] == name), None)
            if schema is None:
                return None
        return schema

    def records(self, unwanted: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        return [_without(r, unwanted) for r in self.rows]

    def known(self, path: Path) -> Valid:
        return np.array([v is not None for v in self.values(path)], np.bool_)

    def longs(self, path: Path) -> tuple[Longs, Valid]:
        values = self.values(path)
        return np.array([in_64_bits(v or 0) for v in values], np.int64), np.array(
            [v is not None for v in values], np.bool_
        )

    def strings(self, path: Path) -> pa.Array:
        return pa.array(self.values(path), pa.string())

    def values(self, path: Path) -> list[Any]:
        found: list[Any] = self.rows
        for name in path:
            found = [None if v is None else v.get(name) for v in found]
        return found

    def distinct(self, path: Path) -> tuple[list[Any], Longs]:
        return numbered(self.values(path))

    def pairs(self, path: Path, keys: Sequence[int]) -> dict[int, pa.Array]:
        maps = self.values(path)
        return {k: pa.array([None if m is None else m.get(k) for m in maps]) for k in keys}


def _without(record: dict[str, Any], unwanted: frozenset[str]) -> dict[str, Any]:
    """A copy, with the fields in `unwanted` None: callers change what they are given."""
    return {
        name: None if name in unwanted else _without(value, unwanted) if isinstance(value, dict) else value
        for name, value in record.items()
    }
