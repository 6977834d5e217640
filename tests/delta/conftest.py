"""Foreign eyes for Delta tests, and tables written action by action."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


class Raw:
    """A table made by hand: actions a version, and Parquet files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.log.mkdir(parents=True)

    def __str__(self) -> str:
        return str(self.path)

    def entry(self, version: int) -> Path:
        return self.log / f"{version:020d}.json"

    def commit(self, version: int, *actions: Mapping[str, Any]) -> None:
        self.entry(version).write_text("".join(json.dumps(a) + "\n" for a in actions))

    def file(self, name: str, table: pa.Table) -> int:
        where = self.path / name
        where.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, where)
        return where.stat().st_size

    def add(self, path: str, values: Mapping[str, str | None] | None = None, **more: Any) -> dict[str, Any]:
        action = {"path": path, "partitionValues": dict(values or {}), "size": 1, "modificationTime": 1}
        return {"add": {**action, "dataChange": True, **more}}


def metadata(fields: Sequence[Mapping[str, Any]], partition_by: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A metaData action for schema JSON fields."""
    return {
        "metaData": {
            "id": "11111111-2222-4333-8444-555555555555",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
            "partitionColumns": list(partition_by),
            "configuration": {},
            **more,
        }
    }


def field(name: str, type: Any, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": nullable, "metadata": metadata}


def read_log(path: Any) -> dict[int, list[dict[str, Any]]]:
    """Every entry of a table, parsed by the standard library."""
    found = {}
    for entry in sorted((Path(str(path)) / "_delta_log").glob("*.json")):
        if entry.stem.isdigit():
            found[int(entry.stem)] = [json.loads(line) for line in entry.read_text().splitlines()]
    return found


def rows_by_deltalake(path: Any, sql: str = "select * from t") -> list[dict[str, Any]]:
    """Rows as the reference's DataFusion reader sees them."""
    deltalake = pytest.importorskip("deltalake")
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path)))
    return pa.table(builder.execute(sql).read_all()).to_pylist()


@pytest.fixture
def raw(tmp_path: Path) -> Callable[[], Raw]:
    """Makes an empty table folder to write actions into."""
    made: list[Raw] = []

    def make() -> Raw:
        made.append(Raw(tmp_path / f"raw{len(made)}"))
        return made[-1]

    return make


@pytest.fixture
def delta() -> Any:
    """The helpers of this module."""

    class Helpers:
        PROTOCOL = PROTOCOL
        metadata = staticmethod(metadata)
        field = staticmethod(field)
        log = staticmethod(read_log)
        rows = staticmethod(rows_by_deltalake)

    return Helpers


@pytest.fixture
def with_features(raw, delta):
    """A table by hand whose protocol has these writer features."""

    def make(*names, readers=(), properties=None, fields=None, more=()):
        table = raw()
        protocol = {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(readers),
            "writerFeatures": [*names, *readers],
        }  # fmt: skip
        metadata = delta.metadata(fields or [delta.field("x", "long")], configuration=properties or {})
        table.commit(0, {"protocol": protocol}, metadata, *more)
        return table

    return make
