"""Plans made by hand over Parquet files that pyarrow wrote, read with the rules of Delta or Iceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boathouse.arrow.filesystem import data_files
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.storage import Stores
from boathouse.table.plan import ScanPlan
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.table.units import deletes_schema, files_schema
from boathouse.types import DataType


class PlanMaker:
    """Collects files, and makes a `ScanPlan` of them."""

    def __init__(self, folder: Path, partition: Mapping[int, DataType]) -> None:
        self.folder = folder
        self.partition = partition
        self.units: list[dict[str, Any]] = []
        self.deletes: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        table: pa.Table,
        partition: Mapping[int, object] | None = None,
        deleted: Sequence[int] = (),
        spec: int = 0,
        **options: Any,
    ) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        if deleted:
            inline = serialize64(Bitmap.of(deleted))
            self.deletes.append({"delete": len(self.deletes), "kind": 0, "inline": inline, "rows": len(deleted)})
        self.units.append(
            {
                "unit": 100 + len(self.units),
                "path": f"file://{path}",
                "format": 0,
                "size": path.stat().st_size,
                "rows": table.num_rows,
                "deleted": len(deleted),
                "spec": spec,
                "partition": {str(i): (partition or {}).get(i) for i in self.partition},
                "deletes": [len(self.deletes) - 1] if deleted else None,
            }
        )
        return str(self.units[-1]["path"])

    def plan(
        self,
        columns: Sequence[ReadColumn],
        hidden: Sequence[str] = (),
        where: Any = None,
        output: Sequence[str] | None = None,
        format: str = "delta",
        diverged: bool = True,
    ) -> ScanPlan:
        partition = pa.struct([pa.field(str(i), to_arrow_type(t)) for i, t in self.partition.items()])
        units = pa.Table.from_pylist(self.units, schema=files_schema(partition, pa.struct([]), pa.struct([])))
        deletes = pa.Table.from_pylist(self.deletes, schema=deletes_schema())
        names = tuple(c.name for c in columns) if output is None else tuple(output)
        read = ReadSpec(format, data_files(Stores()), tuple(columns), names, tuple(hidden), where, diverged=diverged)
        return ScanPlan.of(read, units, deletes, where, Tally())


@pytest.fixture
def make_plan(tmp_path):
    """Makes a `PlanMaker`; `partition` gives the types of partition fields by id."""

    def make(partition: Mapping[int, DataType] | None = None) -> PlanMaker:
        return PlanMaker(tmp_path, partition or {})

    return make


@pytest.fixture
def engine(spark):
    from boathouse.engines.spark.engine import SparkEngine

    return SparkEngine(spark)


@pytest.fixture
def other_zone(spark):
    """The session in a zone with gaps and an offset."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    yield "America/Los_Angeles"
    spark.conf.set("spark.sql.session.timeZone", before)
