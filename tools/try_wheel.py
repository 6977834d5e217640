"""Tries an installed boathouse with no more than its own requirements: a table of every format, and the command line.

PYTHON tools/try_wheel.py    where boathouse is installed in PYTHON from a wheel, and nothing else is
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import boathouse as bh

ROWS = pa.table({"id": [1, 2, 3], "city": ["Kiel", "Bergen", None]})
CLI = Path(sys.executable).with_name("boathouse")


def main() -> None:
    home = Path(bh.__file__).parents[1]
    assert home.name == "site-packages", f"boathouse comes from {home}, not from an installed wheel"
    assert importlib.metadata.version("boathouse") == bh.__version__
    page = importlib.metadata.metadata("boathouse").get_payload()
    assert "](docs/" not in page and "/blob/main/docs/" in page, "links of the package's page lead nowhere"
    for extra in ("pyspark", "pandas", "pytest"):
        assert importlib.util.find_spec(extra) is None, f"{extra} is installed: this environment proves nothing"
    with tempfile.TemporaryDirectory() as folder:
        for format in ("delta", "iceberg", "lance"):
            tried(f"{folder}/{format}", format)
        listed = json.loads(shell("inventory", folder, "--json"))
    assert len(listed) == 3, listed


def tried(path: str, format: str) -> None:
    """Creates, appends, reads, updates, deletes."""
    table = bh.create(path, ROWS.schema, format=format)
    table.append(ROWS)
    table.append(pa.table({"id": [4], "city": ["Oslo"]}))
    assert table.scan(["id"], "city LIKE 'B%' OR city IS NULL").to_arrow().column("id").to_pylist() == [2, 3]
    assert table.update({"city": "upper(city)"}, "id = 1").rows_updated == 1
    assert table.delete("city IS NULL").rows_deleted == 1
    rows = sorted(bh.open(path).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [r["city"] for r in rows] == ["KIEL", "Bergen", "Oslo"], rows
    told = json.loads(shell("info", path, "--json"))
    assert (told["format"], told["rows"]) == (format, 3), told
    print(f"{format}: created, appended, read, updated, deleted")


def shell(*arguments: str) -> str:
    """What the installed command prints."""
    return subprocess.run([CLI, *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
