"""Writes the tables of the corpus with the release of pylance that runs it: OUT/{version}/{table}, and the written
values.

    python lance_corpus_write.py OUT [COLUMN ...]

A column that the release does not write, or does not read back, is left out of the tables: each is tried separately.
OUT/report.json lists these columns with the reason.
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

VERSIONS = {"legacy": (0, 0), "2.0": (0, 12), "2.1": (0, 36), "2.2": (2, 0)}
"""Versions of data files, with the first release that writes their final form."""
RELEASE = tuple(map(int, lance.__version__.split(".")[:2]))
UNREADABLE = ("dictionary_of_float",)
"""Columns of legacy tables because of which newer releases refuse the whole table."""


def options(version: str) -> list[dict[str, Any]]:
    """How releases accept the version of data files, newest way first."""
    named = [{"data_storage_version": version}]
    if version == "legacy":
        return [*named, {"use_legacy_format": True}, {}]
    return [*named, {"use_legacy_format": False}] if version == "2.0" else named


def table_of(made: dict[str, Made]) -> pa.Table:
    fields = [pa.field(n, a.type, null or bool(a.null_count), meta or None) for n, (a, meta, null) in made.items()]
    return pa.table([array for array, _, _ in made.values()], pa.schema(fields))


def write(table: pa.Table, path: Path, version: str, batch: int = 4096) -> str | None:
    """Writes and reads back; returns the failure, or None."""
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
        except BaseException as wrong:  # a panic in pylance is not an Exception
            return f"write: {wrong}"[:300]
        try:
            return None if dataset.count_rows() == len(table) and dataset.to_table() is not None else "rows lost"
        except BaseException as wrong:
            return f"read: {wrong}"[:300]
    return error


def save(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def plain(column: pa.ChunkedArray) -> list[Any]:
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
    if pa.types.is_temporal(column.type):  # outside the range of Python's dates
        column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return column.to_pylist()


def read_otherwise(place: Path, held: dict[str, Made]) -> dict[str, pa.ChunkedArray]:
    """The columns that this release itself does not read as they were written."""
    found = {}
    for name, one in held.items():
        try:
            column = lance.dataset(str(place)).to_table([name]).column(0)
        except BaseException as error:
            print("not read back:", place, name, str(error)[:100], file=sys.stderr)
            continue
        if repr(plain(column)) != repr(plain(table_of({name: one}).column(0))):
            found[name] = column
    return found


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


def changed(out: Path, report: dict[str, Any]) -> None:
    """Tables after deletes, new and dropped columns, and changes of the types of nested fields."""
    rows = [{"a": i, "b": f"b{i}"} for i in range(50)]
    table = pa.table({"i": pa.array(range(50)), "s": pa.array(rows), "t": [f"t{i % 7}" for i in range(50)]})
    for version in (v for v, since in VERSIONS.items() if since <= RELEASE):
        place = out / version / "changed"
        error = write(table, place, version)
        done = []
        steps: dict[str, Any] = {
            "delete": lambda d: d.delete("i = 7 OR i = 20"),
            "cast of a member": lambda d: d.alter_columns({"path": "s.a", "data_type": pa.int32()}),
            "add": lambda d: d.add_columns({"z": "i + 1"}),
            "drop": lambda d: d.drop_columns(["i"]),
            "rename": lambda d: d.alter_columns({"path": "t", "name": "u"}),
            "append": lambda d: lance.write_dataset(d.to_table().slice(0, 3), d.uri, mode="append"),
        }
        for name, step in steps.items() if error is None else ():
            copy = out / "try"
            shutil.copytree(place, copy)
            try:
                step(lance.dataset(str(place)))
                lance.dataset(str(place)).to_table()
                done.append(name)
            except BaseException as wrong:
                report["left_out"][f"{version}/changed/{name}"] = str(wrong)[:300]
                shutil.rmtree(place)
                shutil.copytree(copy, place)
            shutil.rmtree(copy)
        if done:
            report["tables"].append(f"{version}/changed")
            found = lance.dataset(str(place)).to_table()
            save(place.with_suffix(".arrow"), found)
        else:
            shutil.rmtree(place, ignore_errors=True)


def main(out: Path, wanted: list[str]) -> None:
    report: dict[str, Any] = {"release": lance.__version__, "left_out": {}, "tables": []}
    for table, made, batch in groups(wanted):
        for version in (v for v, since in VERSIONS.items() if since <= RELEASE):
            place = out / version / table
            held: dict[str, Made] = {}
            for name, one in made.items():
                if version == "legacy" and name.startswith(UNREADABLE):
                    continue
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
            report["columns"] = report.get("columns", 0) + len(held)
            save(place.with_suffix(".arrow"), table_of(held))
            again = read_otherwise(place, held)
            if again:
                save(place.with_suffix(".read.arrow"), pa.table(again))
    if not wanted:
        changed(out, report)
    (out / "report.json").write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
