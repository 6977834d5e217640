"""Which modules the commands on metadata load: importing takes most of their time."""

from __future__ import annotations

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
OF_A_FORMAT = ("scan", "tasks", "conflict", "transaction", "write", "landed", "evolve")
OTHERS = ("pandas", "numpy.ma", "pyarrow.parquet", "pyarrow.fs", "zoneinfo", "importlib.metadata", "rich")


def loaded_of(done, unwanted) -> list[str]:
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.splitlines()[-1].split()
    return [m for m in loaded if any(m == u or m.startswith(u + ".") for u in unwanted)]


@pytest.mark.parametrize("format", TABLES)
def test_info_loads_nothing_that_reads_rows_or_commits(process, lake, format):
    unwanted = [*ROWS, *OTHERS, *(f"boathouse.{format}.{name}" for name in OF_A_FORMAT)]
    assert not loaded_of(process("info", lake / TABLES[format], code=LOADED), unwanted)


@pytest.mark.parametrize("format", TABLES)
def test_history_loads_nothing_that_reads_rows(process, lake, format):
    unwanted = ["pandas", "boathouse.compute", "boathouse.variant", "boathouse.engines", "boathouse.parquet.resolve"]
    assert not loaded_of(process("history", lake / TABLES[format], code=LOADED), unwanted)
