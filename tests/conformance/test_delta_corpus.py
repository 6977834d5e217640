"""Every Delta table of the corpora: the expected rows, or a refusal that names its reason."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse import errors

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "delta_corpus.json").read_text())
"""Folder -> rows (int), or [error class, words of its message]; `open` refuses, or the first read does."""


@pytest.fixture(scope="session")
def delta_corpus(corpora):
    return corpora / "delta"


def plain(value):
    """Comparable as text: instants in UTC without zone, NaN as a word."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def rows_of(table):
    return sorted(repr([plain(v) for v in row.values()]) for row in table.to_pylist())


def expected_rows(folder):
    """The corpus's own expectation, if it has one."""
    found = sorted((folder.parent / "expected").rglob("*.parquet")) if folder.name == "delta" else []
    if not found:
        return None
    tables = [pq.ParquetFile(f, coerce_int96_timestamp_unit="us").read() for f in found]
    return pa.concat_tables(tables, promote_options="permissive")


@pytest.mark.parametrize("name", EXPECTED)
def test_table(delta_corpus, name):
    folder = delta_corpus / name
    wanted = EXPECTED[name]
    if isinstance(wanted, list):
        kind, words = wanted
        with pytest.raises(errors.BoathouseError) as error:
            bh.open(str(folder), format="delta").to_arrow()
        assert type(error.value).__name__ == kind
        assert words in str(error.value)
        return
    table = bh.open(str(folder), format="delta")
    found = table.to_arrow()
    assert found.num_rows == wanted == table.count()
    expected = expected_rows(folder)
    if expected is None or "partition-values" in name:  # that one expects the Pacific zone: see below
        return
    expected = expected.select(found.column_names)
    if found.num_rows > 200_000:
        assert pc.sum(found.column(0)) == pc.sum(expected.column(0))
    else:
        assert rows_of(found) == rows_of(expected)


def test_no_table_is_left_out(delta_corpus):
    found = {str(p.parent.relative_to(delta_corpus)) for p in delta_corpus.rglob("_delta_log")}
    assert found == set(EXPECTED)


def test_partition_values_written_in_the_pacific_zone(delta_corpus):
    """A timestamp without a zone is read in UTC: seven hours from what its writer in California meant."""
    folder = delta_corpus / "golden" / "data-reader-partition-values" / "delta"
    found = bh.open(str(folder), format="delta").to_arrow()
    expected = expected_rows(folder).select(found.column_names)
    others = [n for n in found.column_names if n != "as_timestamp"]
    assert rows_of(found.select(others)) == rows_of(expected.select(others))
    ours = {t for t in found.column("as_timestamp").to_pylist() if t is not None}
    theirs = {t for t in expected.column("as_timestamp").to_pylist() if t is not None}
    assert {plain(t) + dt.timedelta(hours=7) for t in ours} == {plain(t) for t in theirs}


def test_time_travel(delta_corpus):
    folder = delta_corpus / "golden" / "time-travel-start-start20-start40" / "delta"
    counts = [bh.open(str(folder), format="delta", version=v).count() for v in range(3)]
    assert counts == [10, 20, 30]
