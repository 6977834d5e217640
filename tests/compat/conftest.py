"""Where the table of a documented call is: at a path, or under a name of the metastore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Spot:
    """`name` None: the table is known by its path alone."""

    spark: Any
    path: str
    name: str | None = None

    @property
    def sql(self) -> str:
        """How statements name it."""
        return self.name or f"delta.`{self.path}`"

    def builder(self, verb: str = "create") -> Any:
        from boathouse.compat.delta_tables import DeltaTable

        made = getattr(DeltaTable, verb)(self.spark)
        return made.location(self.path) if self.name is None else made.tableName(self.name)

    def table(self) -> Any:
        from boathouse.compat.delta_tables import DeltaTable

        if self.name is None:
            return DeltaTable.forPath(self.spark, self.path)
        return DeltaTable.forName(self.spark, self.name)

    def beside(self, word: str) -> Spot:
        """Another table, known in the same way."""
        return Spot(self.spark, f"{self.path}_{word}", None if self.name is None else f"{self.name}_{word}")

    def filled(self, rows: list[tuple[Any, ...]], columns: str, **properties: str) -> Any:
        """A new table with these rows; the DeltaTable."""
        import boathouse as bh

        frame = self.spark.createDataFrame(rows, columns)
        made = self.builder().addColumns(frame.schema)
        for key, value in properties.items():
            made = made.property(f"delta.{key}", value)
        made.execute()
        frame.createOrReplaceTempView("rows_of_a_spot")
        bh.sql(self.spark, f"INSERT INTO {self.sql} SELECT * FROM rows_of_a_spot")
        return self.table()


@pytest.fixture(params=["path", "name"])
def spot(request, spark, tmp_path):
    path = str(tmp_path / "t")
    if request.param == "path":
        yield Spot(spark, path)
        return
    spark.sql("CREATE DATABASE documented")
    try:
        yield Spot(spark, path, "documented.t")
    finally:
        spark.sql("DROP DATABASE documented CASCADE")
