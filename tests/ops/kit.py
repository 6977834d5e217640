"""Operations as plan and outcomes: a snapshot made by hand, work that nobody does, and the OUTCOMES that it might give.

There is no table: no file is written, none is read, and none exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from toy_format.adapter import ToySnapshot
from toy_format.state import Deletes, Document, Unit
from toy_format.tasks import outcomes_schema

from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.engines.local import LocalEngine
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, result_of
from boathouse.ops.write import Planned, RowWork, Source, Start, TaskWork, WritePlan
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, RemoveFiles, SetDeletes
from boathouse.table.location import Location
from boathouse.types import DOUBLE, INT64, STRING, Field, PartitionField, Partitioning, PartitionSpec, Schema
from boathouse.types.partitioning import IDENTITY

SCHEMA = Schema((Field("id", INT64), Field("city", STRING), Field("score", DOUBLE)))
BY_CITY = (PartitionField("city", ("city",), IDENTITY, 1000, STRING),)


@dataclass(frozen=True)
class Hand(ToySnapshot):
    """A snapshot with what its units lost, which says how rows are deleted."""

    way: str = "vectors"

    def row_deletes(self, operation: str) -> str:
        return self.way


def unit(id: int, city: str = "Oslo", size: int = 1000, sequence: int = 1) -> Unit:
    """Ten rows, `id` from ten times the unit's number on."""
    first = 10 * id
    stats = {"id": (first, first + 9, 0), "city": (city, city, 0)}
    halves = (f"mem://{id}.a", f"mem://{id}.b"), (size // 2, size // 2)
    return Unit(id, *halves, 10, sequence, first, 0, {1000: city}, stats)


class Kit:
    """Units 1, 2 (Oslo) and 3 (Bergen), of ten rows each; the third has lost two."""

    engine = LocalEngine()

    def __init__(self, way: str = "vectors", options: WriteOptions = WriteOptions()) -> None:
        self.options = options
        deletes = (Deletes("position", 2, {3: (0, 1)}),)
        self.snapshot = Hand(
            TableContext(Location("memory://nowhere"), Stores()),
            Document(
                7, 6, 0, "identity", "append", None, SCHEMA, Partitioning((PartitionSpec(0, BY_CITY),)), {},
                (unit(1), unit(2), unit(3, "Bergen")), deletes, 40,
            ),
            "main",
            way=way,
        )  # fmt: skip

    def with_units(self, *units: Unit, deletes: Sequence[Deletes] = ()) -> Kit:
        """The same table with other units."""
        document = replace(self.snapshot.document, units=units, deletes=tuple(deletes))
        self.snapshot = replace(self.snapshot, document=document)
        return self

    def plan(self, write: Any) -> WritePlan:
        return write.plan(Start(self.snapshot, self.engine, self.options, "write 1", "UTC"))

    def run(self, write: Any, *outcomes: pa.Table) -> tuple[Planned, WriteResult]:
        """What a write commits and reports if its work gives these OUTCOMES. Work that depends on work is planned."""
        plan = self.plan(write)
        assert len(plan.work) == len(outcomes), "one table of OUTCOMES for each work"
        for at, work in enumerate(plan.work):
            assert isinstance(work if isinstance(work, RowWork | TaskWork) else work(outcomes[:at]), RowWork | TaskWork)
        planned = plan.finish(outcomes)
        return planned, result_of(write.operation, planned, outcomes, None)

    def source(self, columns: Mapping[str, Any]) -> Source:
        return Source.of(self.engine, self.engine.source(pa.table(dict(columns))))

    def outcomes(self, *rows: Mapping[str, Any]) -> pa.Table:
        """OUTCOMES of the table's own schema, or of that of rows with other columns."""
        return pa.Table.from_pylist(list(rows), outcomes_schema(self.snapshot.write_context("write 1")))


def wrote(path: str, **counts: int) -> dict[str, Any]:
    """A new data file; its rows are those that are inserted, updated or copied."""
    rows = sum(counts.get(name, 0) for name in ("inserted", "updated", "copied"))
    file = {"kind": "data", "path": path, "format": 3, "size": 500, "rows": rows, "spec": 0}
    return file | {"partition": {"1000": "Oslo"}} | counts


def took(unit: int, *positions: int, **counts: int) -> dict[str, Any]:
    """A unit that loses rows: these positions, or all without any."""
    vector, rows = (serialize64(Bitmap.of(positions)), len(positions)) if positions else (None, None)
    return {"kind": "delete", "unit": unit, "vector": vector, "rows": rows} | counts


def edits_of(planned: Planned) -> list[Any]:
    """The edits of a change in short: what is added, removed, and deleted at which positions; others as they are."""
    found: list[Any] = []
    for edit in planned.change.edits if planned.change else ():
        match edit:
            case AddFiles(files):
                found.append(("add", *files.column("path").to_pylist()))
            case RemoveFiles(units):
                found.append(("remove", *units.column("unit").to_pylist()))
            case SetDeletes(units, vectors):
                gone = [deserialize64(v).positions().tolist() for v in vectors]
                found.append(("delete", dict(zip(units.column("unit").to_pylist(), gone, strict=True))))
            case _:
                found.append(edit)
    return found
