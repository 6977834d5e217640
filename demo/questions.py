"""The demo's queries, in Spark SQL over temporary views."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """`before` queries the version before the cancelled flights were deleted."""

    name: str
    title: str
    sql: str
    before: bool = False


QUESTIONS = (
    Question(
        "carriers",
        "Which airlines leave latest?",
        """
        SELECT a.name AS airline, count(*) AS flights, round(avg(f.dep_delay), 1) AS minutes_late,
               round(100 * avg(IF(f.arr_delay > 15, 1, 0)), 1) AS percent_over_15
        FROM flights f JOIN airlines a ON f.carrier = a.carrier
        GROUP BY a.name ORDER BY minutes_late DESC, airline LIMIT 5""",
    ),
    Question(
        "routes",
        "Which routes are the busiest?",
        """
        SELECT o.name AS origin, d.name AS destination, count(*) AS flights,
               round(avg(f.arr_delay), 1) AS minutes_late
        FROM flights f JOIN airports o ON f.origin = o.iata JOIN airports d ON f.dest = d.iata
        GROUP BY o.name, d.name ORDER BY flights DESC, origin, destination LIMIT 5""",
    ),
    Question(
        "cancelled",
        "How many flights had been cancelled, before they were deleted?",
        """
        SELECT a.name AS airline, count(*) AS flights, count_if(f.dep_time IS NULL) AS cancelled,
               round(100 * avg(IF(f.dep_time IS NULL, 1, 0)), 1) AS percent
        FROM flights f JOIN airlines a ON f.carrier = a.carrier
        GROUP BY a.name ORDER BY cancelled DESC, airline LIMIT 5""",
        before=True,
    ),
)

CHANGES = """
    SELECT count_if(b.icao IS NULL) AS added, count_if(a.icao IS NULL) AS removed,
           count_if(a.icao = b.icao AND xxhash64(struct(a.*)) != xxhash64(struct(b.*))) AS changed,
           count_if(a.icao = b.icao AND a.name != b.name) AS renamed
    FROM airports a FULL JOIN airports_before b ON a.icao = b.icao"""
