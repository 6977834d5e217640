"""The tables of the corpora, and rows that compare whatever wrote and read them."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import VariantVal

from boathouse.variant import Variant

HERE = Path(__file__).parent
INTEROP = str(HERE.parent / "interop")
if INTEROP not in sys.path:
    sys.path.insert(0, INTEROP)
MANY = 20_000
"""Above so many rows, only counts and sums of the first column are compared."""


def plain(value: Any) -> Any:
    """Comparable as text: instants in UTC without zone, NaN as a word, variants as JSON."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dict) and value.keys() == {"metadata", "value"}:
        return Variant(value["metadata"], value["value"]).to_json()
    if isinstance(value, VariantVal):
        return Variant(value.metadata, value.value).to_json()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr([plain(v) for v in row.values()]) for row in table.to_pylist())


def same(found: pa.Table, wanted: pa.Table) -> None:
    """The same rows in any order, with columns in the order of the first."""
    assert sorted(found.column_names) == sorted(wanted.column_names)
    assert found.num_rows == wanted.num_rows
    wanted = wanted.select(found.column_names)
    if found.num_rows > MANY:
        assert pc.sum(found.column(0)) == pc.sum(wanted.column(0))
    else:
        assert rows_of(found) == rows_of(wanted)


def expected_rows(folder: Path) -> pa.Table | None:
    """The corpus's own expectation of the newest version, if it has one."""
    found = sorted((folder.parent / "expected").rglob("*.parquet")) if folder.name == "delta" else []
    if not found:
        return None
    tables = [pq.ParquetFile(f, coerce_int96_timestamp_unit="us").read() for f in found]
    return pa.concat_tables(tables, promote_options="permissive")


def by_deltalake(folder: Path, version: int | None = None) -> pa.Table:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(folder), version=version))
    return pa.table(builder.execute("select * from t").read_all())


@pytest.fixture(scope="session")
def delta_corpus(corpora: Path) -> Path:
    return corpora / "delta"


@pytest.fixture(scope="session")
def rows() -> Any:
    """The helpers of this module."""
    return SimpleNamespace(plain=plain, of=rows_of, same=same, expected=expected_rows, by_deltalake=by_deltalake)
