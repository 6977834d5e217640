"""What a notebook and a prompt show of tables, schemas, histories and metadata."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL, TRAITS


@pytest.fixture(params=REAL)
def table(request, tmp_path):
    t = bh.create(
        str(tmp_path / "t"), "id bigint not null, `<b>` string, day date", format=request.param, profile="modern"
    )
    t.append(pa.table({"id": [1, 2, 3], "<b>": ["a", "b", None]}), message="first <i>")
    t.delete("id = 2")
    return t


def test_tables(table):
    text, html = repr(table), table._repr_html_()
    assert text.startswith(f"{table.format} table {table.uri}") and "id: bigint not null" in text
    assert "2 rows in 1 files" in html and "&lt;b&gt;" in html and "<b>: " not in html


def test_tables_whose_files_cannot_be_listed_are_shown(table, monkeypatch):
    def lost(self):
        raise bh.errors.StorageError("the store is away")

    monkeypatch.setattr(type(table._handle.snapshot), "sizes", lost)
    assert "rows in" not in table._repr_html_() and "id: bigint" in table._repr_html_()


def test_histories(table):
    history = table.history()
    lines = repr(history).splitlines()
    assert lines[0].split() == ["version", "time", "operation", "engine", "message", "changed"]
    assert len(lines) == len(history) + 1 and str(table.version) in lines[1]
    assert "first <i>" in repr(history) and "first &lt;i&gt;" in history._repr_html_()
    times = [dt.datetime.fromtimestamp(h.timestamp_ms / 1000, dt.UTC) for h in history]
    found = history.to_arrow()
    assert found["timestamp"].to_pylist() == times
    pytest.importorskip("pandas")
    assert history.to_pandas()["operation"].tolist() == [h.operation for h in history]
    assert isinstance(history, list) and history[:1] == [history[0]] and table.history(0) == []
    assert repr(table.history(0)).count("\n") == 0 and table.history(0).to_arrow().num_rows == 0


def test_long_histories_are_cut(table):
    long = type(table.history())(table.history() * 100)
    assert repr(long).splitlines()[-1].startswith("... and ") and repr(long).count("\n") == 51


def test_schemas_and_partitions(table, tmp_path):
    assert repr(table.schema).splitlines()[:2] == ["Schema", "  id: bigint not null"]
    assert "&lt;b&gt;" in table.schema._repr_html_() and "not null" in table.schema._repr_html_()
    assert repr(table.partitioning) == "partitioned by no column"
    if TRAITS[table.format].capabilities.transforms:
        by = bh.create(str(tmp_path / "by"), "id bigint, day date", format=table.format, partition_by=["month(day)"])
        by.partition_by("bucket(4, id)")
        assert repr(by.partitioning) == "partitioned by bucket(4, id); files of before by month(day)"
