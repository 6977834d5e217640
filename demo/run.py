"""The demo from start to end."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.csv as pc

import boathouse as bh
from boathouse.api.text import human_bytes
from boathouse.bits import system
from boathouse.cli import local_spark as sparks
from boathouse.cli import show
from demo import folder as folders
from demo import later, releases, steps, streamed
from demo.board import Board, Lines, Terminal
from demo.data import ARCHIVES, Data, get
from demo.frames import AIRPORTS, CANCELLED, FLIGHTS, corrected, fingerprint, read
from demo.questions import CHANGES, QUESTIONS, Question
from demo.steps import Inputs, Place


@dataclass
class Report:
    """The summary document, filled while the demo runs."""

    started: float
    document: dict[str, Any] = field(default_factory=dict)

    def seconds(self) -> float:
        return round(system.current().monotonic() - self.started, 2)


def demo(to: str, formats: Sequence[str], months: int, clean: bool, json: bool) -> bool:
    """Runs the demo, or cleans up after one; returns whether the tables are equal. Raises AlreadyExistsError and
    others."""
    folder = Path(to).expanduser().resolve()
    if clean:
        removed = folders.clean(folder)
        show.as_json({"folder": str(folder), "removed": removed}) if json else print(
            f"removed what the demo left in {folder}" if removed else f"{folder} contains nothing of a demo"
        )
        return True
    board: Board = Board() if json else Terminal() if sys.stdout.isatty() else Lines()
    report = Report(system.current().monotonic())
    sparks.check()
    board.say("Fetching flights and airports from PyPI, or from the cache ...")
    data = get()
    folders.prepare(folder)
    with tempfile.TemporaryDirectory(prefix="boathouse-demo-") as work, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board.say("Starting Spark on two cores ...")
        with sparks.session(Path(work)) as spark:
            _run(spark, data, folder, formats, months, board, report)
            if "iceberg" in formats:
                streamed_to = str(folder / "iceberg" / "airports_streamed")
                report.document["airports_streamed"] = streamed.keep(streamed_to, data, board, spark)
    if "delta" in formats:
        kept = str(folder / "delta" / "airports_kept")
        report.document["airports_kept"] = releases.follow(kept, data.airports, board)
    chapters = ("proof", "airports_streamed", "airports_kept")
    holds = all(report.document.get(chapter, {}).get("holds", True) for chapter in chapters)
    report.document["seconds"] = report.seconds()
    if json:
        show.as_json(report.document)
    else:
        _closing(board, report, folder)
    return holds


def _run(
    spark: Any, data: Data, folder: Path, formats: Sequence[str], months: int, board: Board, report: Report
) -> None:
    inputs = _inputs(spark, data, months)
    rows = inputs.flights.count()
    report.document |= {
        "folder": str(folder),
        "data": {a.file: a.licence for a in ARCHIVES},
        "spark": spark.version,
        "ready_after_seconds": report.seconds(),
        "source_rows": rows,
        "formats": {name: {"steps": {}} for name in formats},
    }
    board.say(f"Spark {spark.version}: {rows:,} flights of 2013 from New York, tables below {folder}")
    places = [Place(name, folder / name) for name in formats]
    _steps(inputs, places, board, report)
    _airports(inputs, places[0], board, report)
    _later(inputs, places, board, report)
    for i, question in enumerate(QUESTIONS):
        _ask(inputs, places[i % len(places)], question, board, report)
    _prove(inputs, places, board, report)
    _sizes(places, board, report)


def _inputs(spark: Any, data: Data, months: int) -> Inputs:
    flights = read(spark, data.flights, FLIGHTS).where(f"month <= {months}").cache()
    airlines = pc.read_csv(str(data.airlines))
    return Inputs(
        spark, flights, airlines, read(spark, data.airports_before, AIRPORTS),
        read(spark, data.airports_after, AIRPORTS), months,
    )  # fmt: skip


def _steps(inputs: Inputs, places: list[Place], board: Board, report: Report) -> None:
    """Runs every step for every format, and measures the time of each."""
    todo = {
        f"append {inputs.months} month{'' if inputs.months == 1 else 's'}": steps.append_months,
        "airports, two releases": steps.write_airports,
        "delete cancelled flights": steps.delete_cancelled,
        f"correct month {inputs.fixed}": steps.correct_month,
        "fingerprint of all rows": steps.take_fingerprint,
    }
    board.open(list(todo), [p.format for p in places])
    clock = system.current().monotonic
    try:
        for label, step in todo.items():
            for place in places:
                start = clock()
                outcome = step(inputs, place, partial(board.working, label, place.format))
                place.seconds[label] = seconds = round(clock() - start, 2)
                facts = {"seconds": seconds, **outcome.facts}
                report.document["formats"][place.format]["steps"][step.__name__] = facts
                board.done(label, place.format, seconds, outcome.text)
    finally:
        board.close()


def _airports(inputs: Inputs, place: Place, board: Board, report: Report) -> None:
    """The changes in the second release of the airports, by time travel."""
    newest = bh.open(place.uri("airports"))
    first = bh.open(place.uri("airports"), version=place.first_airports)
    newest.to_spark(inputs.spark).createOrReplaceTempView("airports")
    first.to_spark(inputs.spark).createOrReplaceTempView("airports_before")
    row = inputs.spark.sql(CHANGES).first().asDict()
    report.document["airports_changed"] = row
    title = f"What did the second release of the airports change? ({place.format}, two versions compared)"
    board.table(title, list(row), [list(row.values())])


def _later(inputs: Inputs, places: list[Place], board: Board, report: Report) -> None:
    """A view of each table, and the files that a condition after it leaves."""
    rows = []
    for place in places:
        table = bh.open(place.uri("flights"), spark=inputs.spark)
        table.to_spark().createOrReplaceTempView(later.VIEW)
        answer = inputs.spark.sql(later.QUERY.format(month=inputs.months))
        found, read = answer.collect()[0][0], later.files_read(answer)
        if read is not None:
            rows.append([place.format, found, read, len(table.scan().files())])
    header = ["format", "flights", "files_read", "files_of_the_table"]
    report.document["later"] = [dict(zip(header, row, strict=True)) for row in rows]
    if rows:
        board.table(f"Which files does a view read? ({later.QUERY.format(month=inputs.months)})", header, rows)


def _ask(inputs: Inputs, place: Place, question: Question, board: Board, report: Report) -> None:
    version = place.before_delete if question.before else None
    bh.open(place.uri("flights"), version=version).to_spark(inputs.spark).createOrReplaceTempView("flights")
    for name in ("airlines", "airports"):
        bh.open(place.uri(name)).to_spark(inputs.spark).createOrReplaceTempView(name)
    answer = inputs.spark.sql(question.sql)
    rows = [row.asDict() for row in answer.collect()]
    about = f"{place.format}, version {version}" if question.before else place.format
    report.document.setdefault("answers", {})[question.name] = {
        "format": place.format,
        "version": version,
        "rows": rows,
    }
    board.table(f"{question.title} ({about})", answer.columns, [list(r.values()) for r in rows])


def _prove(inputs: Inputs, places: list[Place], board: Board, report: Report) -> None:
    """The tables must contain what Spark computes from the CSV files alone."""
    fixed = f"month = {inputs.fixed}"
    kept = inputs.flights.where(f"NOT ({CANCELLED})")
    expected = kept.where(f"NOT ({fixed})").unionByName(corrected(kept.where(fixed)))
    flights = fingerprint(expected, inputs.flights.columns)
    airports = fingerprint(inputs.airports_after, inputs.airports_after.columns)
    rows = [("the CSV files", flights.rows, flights.text, airports.rows, airports.text, "")]
    holds = True
    for place in places:
        assert place.flights is not None and place.airports is not None
        alone = report.document["formats"][place.format]["steps"]["take_fingerprint"]["rows_without_spark"]
        same = place.flights == flights and place.airports == airports and alone == flights.rows
        holds = holds and same
        rows.append((
            place.format, place.flights.rows, place.flights.text, place.airports.rows, place.airports.text,
            "the same" if same else "DIFFERS",
        ))  # fmt: skip
    report.document["proof"] = {"holds": holds, "rows": flights.rows, "fingerprint": flights.text}
    header = ("rows of", "flights", "their fingerprint", "airports", "their_fingerprint", "")
    board.table("Do the tables hold the same rows?", header, rows)


def _sizes(places: list[Place], board: Board, report: Report) -> None:
    rows = []
    for place in places:
        table = bh.open(place.uri("flights"))
        found, versions = table.detail(), len(table.history())
        facts = {n: found[n] for n in ("rows", "files", "bytes", "deleted_rows", "version")} | {"versions": versions}
        report.document["formats"][place.format] |= {"flights": facts, "seconds": round(sum(place.seconds.values()), 2)}
        size = human_bytes(found["bytes"])
        seconds = f"{sum(place.seconds.values()):.1f}"
        rows.append((place.format, found["rows"], versions, found["files"], size, seconds))
    board.table(
        "The flights tables (the time of the first format includes Spark's warm-up)",
        ("format", "rows", "versions", "files", "size", "seconds"),
        rows,
    )


def _closing(board: Board, report: Report, folder: Path) -> None:
    proof = report.document["proof"]
    verdict = "hold the same rows as the CSV files" if proof["holds"] else "DO NOT hold the same rows"
    board.say(f"The tables {verdict}: {proof['rows']:,} flights. {report.document['seconds']:.0f} seconds in all.")
    names = list(report.document["formats"])
    near = _near(folder)
    run = os.environ.get("BOATHOUSE_RUNNER", "")
    first, last = f"{near}/{names[0]}/flights", f"{near}/{names[-1]}/flights"
    older = report.document["formats"][names[-1]]["steps"]["append_months"]["version"]
    for line in (
        "", "Look further:",
        f"  {run}boathouse info {first}",
        f"  {run}boathouse history {last}",
        f"  {run}boathouse plan {first} --where \"month = 1 AND dep_delay > 60\"",
        f"  {run}boathouse inventory {near}",
        *([f"  {run}boathouse history {near}/delta/airports_kept"] if "delta" in names else []),
        f"  {run}python", "    import boathouse as bh",
        f"    bh.open({first!r}).scan(columns=['carrier', 'dep_delay'], where='month = 1').to_pandas()",
        f"    bh.open({last!r}, version={older}).count()",
    ):  # fmt: skip
        board.say(line)


def _near(folder: Path) -> str:
    """The folder relative to the working directory, if it is below it."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)
