"""Writes the tables of the corpus with the release of pylance that runs it: OUT/{version}/{table}, and what went in.

    python lance_corpus_write.py OUT [COLUMN ...]

A column that the release does not write, or does not read back, is left out of the tables: each is tried alone.
OUT/report.json says which ones and why.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from lance_corpus_columns import Made, columns, pages

import lance

VERSIONS = ("legacy", "2.0", "2.1", "2.2")


def options(version: str) -> list[dict[str, Any]]:
    """How releases have been asked for a version of data files, newest way first."""
    named = [{"data_storage_version": version}]
    if version == "legacy":
        return [*named, {"use_legacy_format": True}, {}]
    return [*named, {"use_legacy_format": False}] if version == "2.0" else named


def table_of(made: dict[str, Made]) -> pa.Table:
    fields = [pa.field(n, a.type, null or bool(a.null_count), meta or None) for n, (a, meta, null) in made.items()]
    return pa.table([array for array, _, _ in made.values()], pa.schema(fields))


def write(table: pa.Table, path: Path, version: str, batch: int = 4096) -> str | None:
    """Writes and reads back; what went wrong, or None."""
    error = "no way to ask for the version"
    for asked in options(version):
        shutil.rmtree(path, ignore_errors=True)
        try:
            reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(batch))
            dataset = lance.write_dataset(reader, str(path), schema=table.schema, **asked)
        except TypeError as wrong:
            error = f"write: {wrong}"
            if "unexpected keyword" in str(wrong):
                continue
            return error
        except BaseException as wrong:  # a panic in pylance is no Exception
            return f"write: {wrong}"[:300]
        try:
            return None if dataset.count_rows() == len(table) and dataset.to_table() is not None else "rows lost"
        except BaseException as wrong:
            return f"read: {wrong}"[:300]
    return error


def groups(wanted: list[str]) -> Iterator[tuple[str, dict[str, Made], int]]:
    """(table, its columns, rows of a batch); the columns of a table have the same number of rows."""
    by_rows: dict[int, dict[str, Made]] = {}
    for name, make in columns().items():
        if not wanted or name in wanted:
            try:
                made = make()
            except (pa.ArrowException, NotImplementedError, AttributeError, TypeError, ValueError) as error:
                print("cannot make", name, error, file=sys.stderr)
                continue
            by_rows.setdefault(len(made[0]), {})[name] = made
    for rows, made in sorted(by_rows.items()):
        yield f"rows{rows}", made, 4096
    if not wanted:
        yield "pages", {name: make() for name, make in pages().items()}, 5


def main(out: Path, wanted: list[str]) -> None:
    report: dict[str, Any] = {"release": lance.__version__, "left_out": {}, "tables": []}
    for table, made, batch in groups(wanted):
        for version in VERSIONS:
            place = out / version / table
            held: dict[str, Made] = {}
            for name, one in made.items():
                error = write(table_of({name: one}), out / "try", version, batch)
                if error is None:
                    held[name] = one
                else:
                    report["left_out"][f"{version}/{table}/{name}"] = error
            shutil.rmtree(out / "try", ignore_errors=True)
            if not held:
                continue
            error = write(table_of(held), place, version, batch)
            if error is not None:
                report["left_out"][f"{version}/{table}"] = error
                shutil.rmtree(place, ignore_errors=True)
                continue
            report["tables"].append(f"{version}/{table}")
            with pa.OSFile(str(place.with_suffix(".arrow")), "wb") as sink:
                with pa.ipc.new_file(sink, table_of(held).schema) as writer:
                    writer.write_table(table_of(held))
    (out / "report.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
