"""The part of README.md that lists what each format can do, generated from the tests that prove it.

python tools/readme_state.py            writes it
python tools/readme_state.py --check    fails if it is not current
python tools/readme_state.py --update   collects the tests first, and writes docs/features.txt from their marks

A test that carries `@pytest.mark.feature("merge")` proves it for the format and the engine that its parameters name, or
that the mark names. What the code says it can read or write, and no test proves, is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boathouse import registry
from boathouse.delta.features import support as delta
from boathouse.lance import paths as lance_files
from boathouse.lance.file.storable import WRITTEN
from boathouse.lance.manifests import features as lance

ROOT = Path(__file__).parent.parent
README, PROVED = ROOT / "README.md", ROOT / "docs" / "features.txt"
BEGIN, END = "<!-- state: begin -->\n", "<!-- state: end -->\n"
FORMATS = ("delta", "iceberg", "lance")
OPERATIONS = (
    "append", "overwrite", "overwrite of the rows that match a condition",
    "overwrite of the partitions that the rows are in", "delete", "update", "merge", "upsert",
    "change feed", "time travel", "add columns", "new columns by appends", "set properties", "application transactions",
    "compaction", "Z-order", "sorted rewrites", "purge of deleted rows", "rewrite of row deletes",
    "rewrite of manifests",
    "upsert by equality deletes", "metadata tables", "streams, each row once", "SQL", "named tables",
    "rename columns", "drop columns",
    "widen columns", "add columns with values", "cast columns",
    "several changes of columns at once", "SQL of partition fields, orders and identifiers",
    "branches and tags", "catalogs",
    "tables of catalogs created, renamed and dropped", "views", "vacuum",
    "expiry of versions", "removal of orphan files", "external manifest store", "computed columns and limits",
    "queries of DuckDB and polars", "random access", "conditions by indices", "nearest neighbours", "restore",
    "shallow clone", "blobs read lazily", "blobs written", "indices",
    "convert a folder of Parquet files in place",
    "data files added in place", "snapshot of a folder of Parquet files", "changelog views",
    "rewrite of paths",
    "CHECK constraints", "clustering columns", "name the table", "comments", "drop features",
    "statistics of columns", "statistics of partitions",
)  # fmt: skip
CONDITIONS = {
    ("delta", "rename columns"): "where `delta.columnMapping.mode` is name or id",
    ("delta", "drop columns"): "where `delta.columnMapping.mode` is name or id",
    ("delta", "widen columns"): "where `delta.enableTypeWidening` is true",
    ("iceberg", "views"): "of SQL and REST catalogs",
}
ICEBERG_WRITTEN = (
    "format version 1", "format version 2", "format version 3", "row lineage", "partition evolution", "column defaults",
    "sort orders", "metrics modes", "deletion vectors", "position delete files", "ORC and Avro files",
)  # fmt: skip
ICEBERG_READ = (
    "equality delete files", "relocated tables",
)  # fmt: skip
ICEBERG_REFUSED = ("encryption",)
_REWRITTEN = "their files are rewritten without them"
DELETED_ROWS = (
    f"{_REWRITTEN}; marked in deletion vectors where `delta.enableDeletionVectors` is true",
    f"{_REWRITTEN}; marked in deletion vectors, in version 2 in position delete files, where `write.delete.mode`, "
    "`write.update.mode`, `write.merge.mode` are merge-on-read",
    "marked in deletion files",
)
Proofs = Mapping[tuple[str, str], frozenset[str]]
"""(feature, format) -> the engines on which a test proves it."""


def proofs(items: Iterable[Any]) -> Proofs:
    """What collected tests prove. Raises ValueError for one that names no format."""
    found: dict[tuple[str, str], set[str]] = {}
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        engine = "spark" if item.get_closest_marker("spark") is not None else "local"
        for mark in item.iter_markers("feature"):
            format = mark.kwargs.get("format") or params.get("format_name") or params.get("format")
            if format is None:
                raise ValueError(f"{item.nodeid} does not say of which format it proves {mark.args}")
            engines = {"local", "spark"} if mark.kwargs.get("engine") == "either" else {engine}
            for name in mark.args:
                found.setdefault((name, format.partition("-")[0]), set()).update(engines)
    return {key: frozenset(engines) for key, engines in found.items() if key[1] in FORMATS}


def lines_of(proved: Proofs) -> list[str]:
    return [f"{name} | {format} | {' '.join(sorted(on))}" for (name, format), on in sorted(proved.items())]


def recorded() -> Proofs:
    rows = (line.split(" | ") for line in PROVED.read_text().splitlines())
    return {(name, format): frozenset(engines.split()) for name, format, engines in rows}


def state(proved: Proofs) -> str:
    """The section between the markers. Raises ValueError for what the code can do and no test proves."""
    _require_proofs(proved)
    formats = {name: registry.load(name) for name in FORMATS}
    rows = [
        *_operations(proved),
        ("partitions", *(_partitions(f.capabilities) for f in formats.values())),
        ("deleted rows", *DELETED_ROWS),
        ("versions", f"reader 1 to {delta.MAX_READER}, writer 2 to {delta.MAX_WRITER}", "read and written: 1 to 3",
         f"data files, read: {', '.join(lance_files._READ)}; written: {', '.join(WRITTEN)}"),
        ("read and written", _names(_delta(True, True)), f"Parquet data files, {_names(ICEBERG_WRITTEN[3:])}",
         _names(_lance(lance.READ & lance.WRITE))),
        ("read; not written where in use", _names(_delta(True, False)), _names(ICEBERG_READ),
         _names(_lance(lance.READ & ~lance.WRITE))),
        ("refused by name", _names(_delta(False, False)), _names(ICEBERG_REFUSED),
         _names(_lance(~(lance.READ | lance.WRITE)))),
    ]  # fmt: skip
    lines = ["| | Delta | Iceberg | Lance |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    lines += ["", "Not offered yet, for any format: translation between formats."]
    return "\n".join(lines) + "\n"


def _operations(proved: Proofs) -> list[tuple[str, ...]]:
    """A row for each set of operations that are alike in every format."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in OPERATIONS:
        cells = tuple(_cell(proved.get((name, format), frozenset()), (format, name)) for format in FORMATS)
        rows.setdefault(cells, []).append(name)
    return [(", ".join(names), *cells) for cells, names in rows.items()]


def _cell(engines: frozenset[str], of: tuple[str, str]) -> str:
    if not engines:
        return "no"
    where = {("local",): "in process", ("spark",): "on Spark"}.get(tuple(engines), "yes")
    return CONDITIONS.get(of, where)


def _require_proofs(proved: Proofs) -> None:
    needed = [(name, "delta") for name in [*_delta(True, True), *_delta(True, False), *_delta(False, False)]]
    needed += [(name, "iceberg") for name in (*ICEBERG_WRITTEN, *ICEBERG_READ, *ICEBERG_REFUSED)]
    needed.append(("feature flags", "lance"))
    missing = [f"{name} ({format})" for name, format in needed if (name, format) not in proved]
    known = {*needed, *((name, format) for name in OPERATIONS for format in FORMATS)}
    unknown = [f"{name} ({format})" for name, format in proved if (name, format) not in known]
    if missing or unknown:
        raise ValueError(f"no test proves: {missing}; this tool does not know: {unknown}")


def _partitions(capabilities: Any) -> str:
    if not capabilities.partitions:
        return "the format has none"
    return "columns and transforms" if capabilities.transforms else "columns"


def _delta(read: bool, write: bool) -> list[str]:
    return [f.name for f in delta.FEATURES.values() if f.read == read and f.write == write and "-preview" not in f.name]


def _lance(flags: int) -> list[str]:
    return [name for bit, name in lance.NAMES.items() if flags & bit and name != "reserved"]


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def updated(text: str) -> str:
    """The text of README.md with the section replaced."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + state(recorded()) + END + tail


def collect() -> None:
    """Writes docs/features.txt."""
    import pytest

    class Collector:
        items: tuple[Any, ...] = ()

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            self.items = tuple(items)

    collector = Collector()
    if pytest.main(["--collect-only", "-qq", str(ROOT / "tests")], plugins=[collector]) != 0:
        raise SystemExit("the tests cannot be collected")
    PROVED.write_text("\n".join(lines_of(proofs(collector.items))) + "\n")


def main() -> int:
    if "--update" in sys.argv[1:]:
        collect()
    text = README.read_text()
    if "--check" in sys.argv[1:]:
        if updated(text) != text:
            print("README.md is not current: run python tools/readme_state.py", file=sys.stderr)
            return 1
        return 0
    README.write_text(updated(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
