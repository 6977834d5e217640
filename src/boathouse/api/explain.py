"""What a scan reads and skips, and why, as text and as a dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from boathouse.api.text import human_bytes
from boathouse.table.engine import Engine
from boathouse.table.features import PlanNotes
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a scan reads and skips, and why; printed it is a few lines of text.

    `units` (data files, with what is deleted in them), `bytes` and `rows` are what is read, `rows` None where a file
    does not record them; `with_deletes` counts the units that have deleted rows. `skipped` counts the units that each
    filter ruled out; `path` is the scan strategy on Spark for the others; `notes` say what is unusual about how its
    files are read.
    """

    format: str
    version: int
    where: str | None
    units: int
    bytes: int
    rows: int | None
    with_deletes: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    path: str | None = None

    @staticmethod
    def of(snapshot: Snapshot, plan: ScanPlan, engine: Engine | None = None) -> Explanation:
        """The explanation of a plan of a snapshot; `Scan.explain` makes it."""
        deletes = plan.units.column("deletes").to_pylist()
        noted = snapshot.offers(PlanNotes)
        route = getattr(engine, "route", None)
        return Explanation(
            format=snapshot.format,
            version=snapshot.version,
            where=None if plan.where is None else str(plan.where),
            units=plan.units.num_rows,
            bytes=plan.bytes,
            rows=plan.rows,
            with_deletes=sum(1 for d in deletes if d),
            skipped=dict(plan.tally.skipped),
            notes=() if noted is None else tuple(noted.notes(plan)),
            path=None if route is None else str(route(plan)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON: `units`, `bytes`, `rows`, `skipped`, `notes`, ..."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        skipped = sum(self.skipped.values())
        lines = [
            f"{self.format} version {self.version}" + (f" where {self.where}" if self.where else ""),
            f"  reads {self.units:,} of {self.units + skipped:,} units, {human_bytes(self.bytes)}"
            + (f", {self.rows:,} rows" if self.rows is not None else "")
            + (f", {self.with_deletes:,} with deleted rows" if self.with_deletes else ""),
        ]
        lines += [f"  skips {n:,} by {test}" for test, n in self.skipped.items()]
        lines += [f"  note: {note}" for note in self.notes]
        if self.path is not None:
            lines.append(f"  on Spark: {self.path}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
