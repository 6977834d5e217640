"""boathouse changes, sql and verify."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.checksum import Checksum
from boathouse.cli.app import exit_code
from boathouse.errors import BoathouseError, ExpressionError, InvalidArgumentError, UnsupportedFeatureError

READERS = {"delta": "deltalake", "iceberg": "pyiceberg", "lance": "pylance"}
NESTED = pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])


@pytest.fixture
def people(tmp_path):
    uri = str(tmp_path / "people")
    t = bh.create(uri, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    t.append(pa.table({"id": [1, 2], "name": ["ada", "bo"]}))
    t.delete("id = 1")
    t.append(pa.table({"id": [3], "name": ["cy"]}))
    return uri


def test_changes_between_versions(run, asjson, people):
    found = asjson("changes", people, "--from", 2, "--to", 3)
    assert [(r["id"], r["_change_type"], r["_commit_version"]) for r in found] == [(1, "delete", 2), (3, "insert", 3)]
    assert asjson("changes", people, "--from", 1, "--where", "id = 3", "--columns", "name", "-n", 5)[0]["name"] == "cy"
    code, out = run("changes", people, "--from", 3)
    assert code == 0 and "_change_type" in out.splitlines()[0] and "cy" in out
    assert run("changes", people)[0] == 2  # --from is needed


def everything() -> pa.Table:
    day, moment = dt.date(2026, 11, 20), dt.datetime(2026, 11, 20, 10, 30, 0, 5)
    return pa.table({
        "i": pa.array([1, None, -(2**62)]), "f": pa.array([0.5, float("nan"), None]),
        "b": pa.array([True, None, False]),
        "s": pa.array(["é", "", None]), "d": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
        "day": pa.array([day, None, day]), "at": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\0x", None, b""]), "n": pa.array([{"x": 1.5, "y": ["a", None]}, None, {"x": None}], NESTED),
    })  # fmt: skip


@pytest.mark.parametrize("format", READERS)
def test_verify_compares_with_the_other_library(run, asjson, tmp_path, format):
    uri = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true"} if format == "delta" else {}
    t = bh.create(uri, everything().schema, format, properties=properties)
    t.append(everything())
    t.append(everything())
    t.delete("i = 1")
    found = asjson("verify", uri, "--against", READERS[format])
    assert (found["format"], found["rows"], found["same"]) == (format, 4, True)
    (reader,) = found["readers"]
    assert (reader["reader"], reader["rows"], reader["checksum"]) == (READERS[format], 4, found["checksum"])
    code, out = run("verify", uri)
    assert code == 0 and "the same" in out
    older = asjson("verify", uri, "--version", t.history(2)[1].version)
    assert older["rows"] == 6 and older["same"] and older["checksum"] != found["checksum"]


def test_verify_fails_where_rows_differ(run, tmp_path, monkeypatch):
    from boathouse.cli import foreign

    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1, 2]}), uri)
    for rows, said in ((pa.table({"id": [1, 3]}), "other rows"), (pa.table({"id": ["x"]}), "SchemaMismatchError")):
        reader = ("deltalake", ("delta",), lambda table, options, rows=rows: rows.to_batches())
        monkeypatch.setitem(foreign._READERS, "deltalake", reader)
        code, out = run("verify", uri)
        assert code == 1 and said in out


def test_readers_are_named(run, people):
    with pytest.raises(InvalidArgumentError, match="pyiceberg: it does not read delta") as found:
        run("verify", people, "--against", "pyiceberg")
    assert exit_code(found.value) == 2
    with pytest.raises(InvalidArgumentError, match="newest"):
        run("verify", people, "--against", "duckdb", "--version", 1)


def test_the_checksum_is_that_of_a_multiset():
    rows = everything()
    whole = Checksum.of(rows.to_batches())
    turned = pa.concat_tables([rows.slice(2), rows.slice(0, 2)])
    assert Checksum.of(turned.to_batches()) == whole and whole.rows == 3 and len(whole.text) == 32
    assert Checksum.of(rows.slice(0, 2).to_batches() + rows.slice(2).to_batches()) == whole
    assert Checksum.of(pa.concat_tables([rows, rows]).to_batches()) != whole
    for name in rows.column_names:
        at = rows.column_names.index(name)
        other = rows.set_column(at, name, rows[name].take(pa.array([0, 0, 2])))
        assert Checksum.of(other.to_batches()) != whole, name
    zeros = (pa.table({"f": [0.0, np.nan]}), pa.table({"f": [-0.0, -np.nan]}))
    assert len({Checksum.of(t.to_batches()) for t in zeros}) == 1
    swapped = (pa.table({"a": [1, 2], "b": [2, 1]}), pa.table({"a": [1, 2], "b": [1, 2]}))
    assert len({Checksum.of(t.to_batches()) for t in swapped}) == 2
    assert Checksum.of([]) == Checksum()


def test_sql_is_described_without_running(asjson, run):
    found = asjson("sql", "DELETE FROM delta.`/a` WHERE id IN (SELECT id FROM t)", "--dry-run")
    assert found == {"statement": "delete", "changes": "delta.`/a`", "reads": []}
    found = asjson("sql", "CREATE TABLE s.u USING delta AS SELECT * FROM s.t", "--dry-run")
    assert (found["statement"], found["changes"], found["reads"]) == ("CREATE", "s.u", ["s.t"])
    found = asjson("sql", "SELECT * FROM delta.`/a` JOIN s.t USING (id)", "--dry-run")
    assert found == {"statement": "SELECT", "changes": None, "reads": ["delta.`/a`", "s.t"]}
    for text, kind, code in (
        ("UPDATE t", ExpressionError, 2),
        ("OPTIMIZE t FULL", UnsupportedFeatureError, 4),
    ):
        with pytest.raises(BoathouseError) as found:
            run("sql", text, "--dry-run")
        assert isinstance(found.value, kind) and exit_code(found.value) == code


@pytest.mark.spark
def test_sql_runs_on_spark(spark, run, asjson, people, monkeypatch):
    from contextlib import contextmanager

    from boathouse.cli import local_spark as local

    @contextmanager
    def session(work):
        yield spark

    monkeypatch.setattr(local, "session", session)
    monkeypatch.setattr(local, "check", lambda: None)
    assert asjson("sql", f"UPDATE delta.`{people}` SET name = 'x' WHERE id = 2") == [{"num_affected_rows": 1}]
    assert asjson("sql", f"SELECT * FROM delta.`{people}` ORDER BY id", "-n", 1) == [{"id": 2, "name": "x"}]
    code, out = run("sql", f"SELECT name FROM delta.`{people}` VERSION AS OF 1 ORDER BY 1")
    assert code == 0 and out.split() == ["name", "ada", "bo"]
    for wrong in (
        "SELEC 1",
        f"SELECT nothing FROM delta.`{people}`",
        "SELECT nowhere(1)",
        "SELECT * FROM no_such_table",
    ):
        with pytest.raises(ExpressionError) as told:
            run("sql", wrong)
        assert "\n" not in str(told.value) and "Project" not in str(told.value) and exit_code(told.value) == 2
    with pytest.raises(BoathouseError) as failed:
        run("sql", "SELECT CAST('x' AS INT)")
    assert "\n" not in str(failed.value) and exit_code(failed.value) == 1
