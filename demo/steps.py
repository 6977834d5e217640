"""The demo's steps, each done for one format at a time; every one is a few lines to copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import boathouse as bh
from boathouse import registry
from boathouse.ops.result import WriteResult
from demo.frames import CANCELLED, DIVERTED, Fingerprint, corrected, fingerprint

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Frames of the CSV files, and the airlines as an Arrow table. `fixed` is the month that is corrected."""

    spark: Any
    flights: Any
    airlines: pa.Table
    airports_before: Any
    airports_after: Any
    months: int

    @property
    def fixed(self) -> int:
        return min(7, self.months)


@dataclass(slots=True)
class Place:
    """The tables of one format, and what the steps remember about them."""

    format: str
    folder: Path
    before_delete: int | None = None
    first_airports: int | None = None
    flights: Fingerprint | None = None
    airports: Fingerprint | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def uri(self, table: str) -> str:
        return str(self.folder / table)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step, for the screen and for the summary."""

    text: str
    facts: dict[str, Any]


def append_months(inputs: Inputs, place: Place, tell: Tell) -> Outcome:
    """Every month is one append; the first creates the table, partitioned by month if the format has partitions."""
    partitions = registry.load(place.format).capabilities.partitions
    rows = files = 0
    for month in range(1, inputs.months + 1):
        tell(f"month {month} of {inputs.months}")
        done = bh.write(
            inputs.flights.where(f"month = {month}"), place.uri("flights"), place.format, mode="append",
            partition_by=["month"] if partitions else (), message=f"flights of month {month}",
        )  # fmt: skip
        rows, files, place.before_delete = rows + done.rows_added, files + done.files_added, done.version
    return Outcome(f"{rows:,} rows, {files} files", {"rows": rows, "files": files, "version": place.before_delete})


def write_airports(inputs: Inputs, place: Place, tell: Tell) -> Outcome:
    """One release of the airports, overwritten by the next; the airlines come from Arrow, without Spark."""
    tell("first release")
    first = bh.write(inputs.airports_before, place.uri("airports"), place.format, message="release 20240806")
    tell("second release")
    second = bh.write(
        inputs.airports_after, place.uri("airports"), place.format, mode="overwrite", message="release 20250909"
    )
    place.first_airports = first.version
    bh.write(inputs.airlines, place.uri("airlines"), place.format)
    text = f"{first.rows_added:,} rows, then {second.rows_added:,}"
    return Outcome(text, {"first": _facts(first), "second": _facts(second)})


def delete_cancelled(inputs: Inputs, place: Place, tell: Tell) -> Outcome:
    """Deletes the cancelled flights."""
    tell(CANCELLED)
    done = bh.open(place.uri("flights"), spark=inputs.spark).delete(CANCELLED, message="cancelled flights")
    return Outcome(f"{done.rows_deleted:,} rows gone", _facts(done))


def correct_month(inputs: Inputs, place: Place, tell: Tell) -> Outcome:
    """Reads one month, corrects it in Spark, and overwrites it."""
    tell("read, correct, overwrite")
    month = f"month = {inputs.fixed}"
    table = bh.open(place.uri("flights"), spark=inputs.spark)
    wrong = table.scan(where=f"{month} AND {DIVERTED}").count()
    rows = corrected(table.scan(where=month).to_spark())
    done = table.overwrite(rows, where=month, message="delays of diverted flights")
    text = f"{wrong:,} delays in {done.rows_added:,} rows"
    return Outcome(text, {"corrected": wrong, **_facts(done)})


def take_fingerprint(inputs: Inputs, place: Place, tell: Tell) -> Outcome:
    """Hashes over all columns of all rows, computed by Spark from the finished tables."""
    tell("hashing all rows")
    flights = bh.open(place.uri("flights"))
    place.flights = fingerprint(flights.to_spark(inputs.spark), inputs.flights.columns)
    airports = bh.open(place.uri("airports")).to_spark(inputs.spark)
    place.airports = fingerprint(airports, inputs.airports_after.columns)
    # Counted again in this process, without Spark.
    alone = flights.count()
    facts = {"rows": place.flights.rows, "fingerprint": place.flights.text, "rows_without_spark": alone}
    return Outcome(f"{place.flights.rows + place.airports.rows:,} rows", facts)


def _facts(done: WriteResult) -> dict[str, Any]:
    names = ("version", "rows_added", "rows_deleted", "rows_copied", "files_added", "files_removed")
    return {name: getattr(done, name) for name in names}
