"""The part of README.md that lists what each format reads and writes, generated from the code that decides it.

python tools/readme_state.py            writes it
python tools/readme_state.py --check    fails if it is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from boathouse import registry
from boathouse.delta import features as delta
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg import metadata as iceberg
from boathouse.lance import features as lance
from boathouse.lance import paths as lance_files
from boathouse.table import inspection

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- state: begin -->\n", "<!-- state: end -->\n"
OPERATIONS = {
    "append": "append", "overwrite": "overwrite, also only of the rows that match a condition", "delete": "delete",
    "add_column": "add columns", "set_properties": "set properties", "update": "update", "merge": "merge",
    "upsert": "upsert", "rename_column": "rename columns", "drop_column": "drop columns", "changes": "change feed",
    "optimize": "compaction, Z-order",
    "purge": "purge of deleted rows", "vacuum": "vacuum", "restore": "restore", "widen_column": "widen columns",
    "set_name": "name the table", "set_comment": "comments", "convert": "convert a folder of Parquet files in place",
    "clone": "shallow clone", "drop_feature": "drop features",
}  # fmt: skip
_OF_DELTA = ("vacuum", "restore", "drop_feature", "clone", "convert", "set_name", "set_comment")
_WIDENED = "widen_column"
_MAPPED = ("rename_column", "drop_column")
_DELETES = {"vectors": "marked in deletion files", "copy-on-write": "their files are rewritten without them"}


def state() -> str:
    """The section between the markers."""
    there = [words for name, words in OPERATIONS.items() if name not in (*_OF_DELTA, *_MAPPED, _WIDENED)]
    delta_only = [OPERATIONS[name] for name in _OF_DELTA]
    mapped = [OPERATIONS[name] for name in _MAPPED]
    formats = {name: registry.load(name) for name in ("delta", "iceberg", "lance")}
    rows = [
        ("detected, opened, read, time travel by version and time", *("yes",) * 3),
        (", ".join(there), *("yes",) * 3),
        (", ".join(delta_only), "yes", "no", "no"),
        ("metadata tables", "files, data_files, history, snapshots, partitions, position_deletes",
         f"the {len(inspection.NAMES)} of the reference", "as for Delta, and refs"),
        (", ".join(mapped), "where `delta.columnMapping.mode` is name or id", "yes", "no"),
        (OPERATIONS[_WIDENED], "where `delta.enableTypeWidening` is true", "yes", "no"),
        ("stream source and sink on Spark, exactly once", *("yes",) * 3),
        ("partitions", *(_partitions(f.capabilities) for f in formats.values())),
        ("deleted rows", *(_deletes(name, f.capabilities) for name, f in formats.items())),
        ("read", f"reader versions 1 to {delta.MAX_READER}", _iceberg_read(), _lance_read()),
        ("written", f"writer versions 2 to {delta.MAX_WRITER}", "format version 2", f"data files {lance_files.V2_2}"),
        ("read and written", _delta(True, True), "Parquet data files", _lance(lance.READ & lance.WRITE)),
        ("read; not written where in use", _delta(True, False),
         "format versions 1 and 3, ORC and Avro files, deletion vectors, position and equality delete files, "
         "relocated tables",
         _lance(lance.READ & ~lance.WRITE)),
        ("refused by name", _delta(False, False),
         "encryption, "
         "row deletes under `write.delete.mode=merge-on-read`",
         _lance(~(lance.READ | lance.WRITE))),
    ]  # fmt: skip
    lines = ["| | Delta | Iceberg | Lance |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    lines += [
        "",
        "Not offered yet, for any format: translation between formats.",
    ]
    return "\n".join(lines) + "\n"


def _deletes(name: str, capabilities: object) -> str:
    words = _DELETES[capabilities.deletes]  # type: ignore[attr-defined]
    if name == "delta":
        words += "; marked in deletion vectors where `delta.enableDeletionVectors` is true"
    return words


def _partitions(capabilities: object) -> str:
    if not capabilities.partitions:  # type: ignore[attr-defined]
        return "the format has none"
    return "columns and transforms" if capabilities.transforms else "columns"  # type: ignore[attr-defined]


def _delta(read: bool, write: bool) -> str:
    names = [
        f.name for f in delta.FEATURES.values() if f.read == read and f.write == write and "-preview" not in f.name
    ]
    return ", ".join(names) or "none"


def _iceberg_read() -> str:
    versions = []
    for version in range(1, 9):
        try:
            iceberg._check_version({"format-version": version}, "")
        except UnsupportedFeatureError:
            continue
        versions.append(str(version))
    return f"format versions {' and '.join(versions)}"


def _lance_read() -> str:
    return f"data files {', '.join(lance_files._READ)}"


def _lance(flags: int) -> str:
    return ", ".join(name for bit, name in lance.NAMES.items() if flags & bit and name != "reserved") or "none"


def updated(text: str) -> str:
    """The text of README.md with the section replaced."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + state() + END + tail


def main() -> int:
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
