"""Which modules the commands on metadata load: importing takes most of their time."""

from __future__ import annotations

import shutil

import deltalake
import pyarrow as pa
import pytest

LOADED = """
import sys
sys.argv = ["boathouse", *sys.argv[1:]]
from boathouse.cli.app import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
TABLES = {"delta": "deep/er/delta", "iceberg": "iceberg", "lance": "lance"}
ROWS = (
    "boathouse.compute", "boathouse.expr", "boathouse.variant", "boathouse.engines", "boathouse.api.table",
    "boathouse.table.plan", "boathouse.table.tasks", "boathouse.table.commit", "boathouse.table.change",
    "boathouse.parquet.read", "boathouse.parquet.write", "boathouse.parquet.resolve",
)  # fmt: skip
"""What evaluates expressions, reads or writes rows, or commits."""
APPENDED = pa.table({"id": [1, 2, 3, 4], "city": ["Kiel", "Bergen", None, "Oslo"]})
OF_A_FORMAT = (
    "scan", "tasks", "write", "new_table", "history",
    *(f"commit.{m}" for m in ("commits", "conflict", "transaction", "confirmation", "evolve")),
)  # fmt: skip
OTHERS = ("pandas", "numpy.ma", "pyarrow.parquet", "pyarrow.fs", "zoneinfo", "importlib.metadata", "rich")


def loaded_of(done, unwanted) -> list[str]:
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    return [m for m in loaded if any(m == u or m.startswith(u + ".") for u in unwanted)]


@pytest.mark.parametrize("format", TABLES)
def test_info_loads_nothing_that_reads_rows_or_commits(process, lake, format):
    unwanted = [*ROWS, *OTHERS, *(f"boathouse.{format}.{name}" for name in OF_A_FORMAT)]
    assert not loaded_of(process("info", lake / TABLES[format], code=LOADED), unwanted)


def test_info_of_a_delta_table_with_a_checkpoint_loads_no_pandas(process, lake, tmp_path):
    shutil.copytree(lake / TABLES["delta"], tmp_path / "t")
    deltalake.DeltaTable(tmp_path / "t").create_checkpoint()
    deltalake.write_deltalake(tmp_path / "t", APPENDED, mode="append")
    done = process("info", tmp_path / "t", code=LOADED)
    assert not loaded_of(done, ["pandas", "numpy.ma", "boathouse.compute"]) and "rows              8" in done.stdout


@pytest.mark.parametrize("format", TABLES)
def test_history_loads_nothing_that_reads_rows(process, lake, format):
    unwanted = ["pandas", "boathouse.compute", "boathouse.variant", "boathouse.engines", "boathouse.parquet.resolve"]
    assert not loaded_of(process("history", lake / TABLES[format], code=LOADED), unwanted)


@pytest.mark.parametrize("format", TABLES)
def test_opening_loads_nothing_of_the_format_that_reads_rows_or_commits(process, lake, format):
    code = (
        f"import sys, boathouse; boathouse.open({str(lake / TABLES[format])!r}); print(*sys.modules, file=sys.stderr)"
    )
    unwanted = [f"boathouse.{format}.{name}" for name in (*OF_A_FORMAT, "offered")]
    assert not loaded_of(process(code=code), unwanted)
