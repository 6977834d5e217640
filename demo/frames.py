"""The demo's data as Spark frames: schemas of the CSV files, the correction, the fingerprint of a frame's rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLIGHTS = (
    "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, "
    "arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, "
    "distance INT, hour INT, minute INT, time_hour TIMESTAMP"
)
AIRPORTS = (
    "icao STRING, iata STRING, name STRING, city STRING, subd STRING, country STRING, elevation DOUBLE, lat DOUBLE, "
    "lon DOUBLE, tz STRING, lid STRING"
)
CANCELLED = "dep_time IS NULL"
DIVERTED = "arr_delay IS NULL AND arr_time IS NOT NULL"
_DELAY = "pmod((arr_time div 100) * 60 + arr_time % 100 - (sched_arr_time div 100) * 60 - sched_arr_time % 100, 1440)"


def read(spark: Any, path: Path, schema: str) -> Any:
    """A CSV file with a header line; NA and empty fields are null."""
    return spark.read.schema(schema).option("header", True).option("nullValue", "NA").csv(path.as_uri())


def corrected(flights: Any) -> Any:
    """Diverted flights that reached their destination get the delay that follows from their clock times."""
    delay = f"CASE WHEN {DIVERTED} THEN CAST({_DELAY} AS INT) ELSE arr_delay END"
    columns = [f"{delay} AS arr_delay" if name == "arr_delay" else name for name in flights.columns]
    return flights.selectExpr(*columns)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A fingerprint of rows that does not depend on their order: the number, the sum and the XOR of their hashes."""

    rows: int
    sum: int
    xor: int

    @property
    def text(self) -> str:
        """Twenty hexadecimal digits of sum and XOR."""
        return f"{self.sum & 0xFFFFFFFFFF:010x}{self.xor & 0xFFFFFFFFFF:010x}"


def fingerprint(frame: Any, columns: list[str]) -> Fingerprint:
    """Computed by Spark. Nulls are hashed by column, since xxhash64 alone skips them."""
    named = [f"`{name}`" for name in columns]
    row_hash = f"xxhash64({', '.join(f'{name}, {name} IS NULL' for name in named)})"
    found = frame.selectExpr(
        "count(*)", f"coalesce(sum(CAST({row_hash} AS DECIMAL(38, 0))), 0)", f"coalesce(bit_xor({row_hash}), 0)"
    ).first()
    return Fingerprint(int(found[0]), int(found[1]), int(found[2]))
