"""Update on the toy, Delta, Iceberg and Lance, in process and on Spark: the same rows and the same figures."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors


def files_of(uri: str) -> set[str]:
    """Every data file below the table's directory, committed or not."""
    assert Path(uri.removeprefix("file://")).is_dir() or uri.startswith("memory")
    logs = ("_delta_log", "metadata", "_versions", "_transactions")
    return {
        str(p) for p in Path(uri.removeprefix("file://")).rglob("*") if p.is_file() and not set(logs) & set(p.parts)
    }


@pytest.fixture
def make(format_name, traits, properties, tmp_path, session):
    """A table of these rows, each piece a file, opened for the engine."""

    def table(*pieces: pa.Table, by: str = "", schema=None):
        uri = str(tmp_path / "täble one")
        by = traits.by(by) if by else ()
        bh.create(uri, schema or pieces[0].schema, format=format_name, partition_by=by, properties=properties)
        writer = bh.open(uri, format=format_name)
        for piece in pieces:
            writer.append(piece)
        return bh.open(uri, format=format_name, spark=session)

    return table


@pytest.fixture
def people(make, make_people):
    return make(make_people(0, 20), make_people(20, 30), by="city")


def rows_of(table) -> dict:
    return {r["id"]: r for r in bh.open(table.uri, format=table.format).to_arrow().to_pylist()}


@pytest.mark.feature("update")
@pytest.mark.route("update")
def test_rows_that_match_get_new_values(people, make_people, read):
    result = people.update({"score": "score + id", "name": "upper(name)"}, where="id % 4 = 1")
    want = {r["id"]: r for r in make_people(0, 30).to_pylist()}
    for i in range(1, 30, 4):
        row = want[i]
        row["score"] = None if row["score"] is None else row["score"] + i
        row["name"] = None if row["name"] is None else row["name"].upper()
    assert {r["id"]: r for r in read(people)} == want == rows_of(people)
    assert (result.operation, result.rows_updated, result.rows_added, result.rows_deleted) == ("update", 8, 0, 0)
    assert result.rows_copied in (0, 22)
    entry = people.history(limit=1)[0]
    assert "update" in entry.operation.lower()
    assert (entry.version, entry.write_id) == (result.version, result.write_id)


def test_values_see_the_old_row(people):
    people.update({"id": "cast(score * 2 as bigint) + 100", "score": "id"}, where="id in (6, 7)")
    rows = rows_of(people)
    assert rows[106]["score"] == 6 and rows[107]["score"] == 7 and 6 not in rows


def test_without_a_condition_every_row(people):
    result = people.update({"name": "null"})
    assert result.rows_updated == 30 and {r["name"] for r in rows_of(people).values()} == {None}


def test_null_is_not_true_and_nothing_means_no_commit(people):
    version = people.version
    for where in ("id > 100", "null", "score > null", "false"):
        result = people.update({"name": "'x'"}, where=where)
        assert (result.version, result.rows_updated) == (None, 0)
    assert people.refresh().version == version
    result = people.update({"name": "'x'"}, where="score < 3")  # null for every fifth
    assert result.rows_updated == 4


def test_rows_move_to_another_partition(people):
    people.update({"city": "'Bergen'"}, where="id in (0, 3, 21)")
    assert {i for i, r in rows_of(people).items() if r["city"] == "Bergen"} == {0, 3, 21}
    assert people.scan(where="city = 'Bergen'").count() == 3
    assert people.scan(where="city = 'Oslo'").count() == 7
    people.update({"city": "null"}, where="city = 'Oslo'")
    assert people.scan(where="city is null").count() == 7


def test_updated_twice_and_after_deletes(people):
    people.delete("id < 3")
    people.update({"score": "-1"}, where="id < 6")
    people.update({"score": "score - id"}, where="id < 8")
    people.delete("id = 5")
    rows = rows_of(people)
    assert [rows[i]["score"] for i in (3, 4, 6, 7)] == [-4, -5, -3, -3.5] and sorted(rows) == [3, 4, *range(6, 30)]


def test_values_are_cast_as_ansi_does(people):
    people.update({"score": "'1.25'", "name": "id"}, where="id = 4")
    assert (rows_of(people)[4]["score"], rows_of(people)[4]["name"]) == (1.25, "4")


def test_a_failing_row_changes_nothing(people, engine_name):
    """On Spark, the files of tasks that had finished before the job failed may stay: nothing refers to them."""
    before = files_of(people.uri)
    for values, where in (
        ({"score": "1 / (id - 12)"}, None),
        ({"score": "cast(name as double)"}, "id > 25"),
        ({"name": "'x'"}, "cast(name as int) = 1"),
        ({"id": "id + 9223372036854775807"}, "id >= 10"),
    ):
        with pytest.raises(errors.EvaluationError):
            people.update(values, where=where)
    assert people.refresh().version == bh.open(people.uri, format=people.format).version
    left = files_of(people.uri)
    if engine_name == "spark":
        left -= {f for f in left - before if not any(f.endswith(known) for known in people.scan().files())}
    assert left == before and len(rows_of(people)) == 30


def test_what_is_refused(people):
    before, version = files_of(people.uri), people.version
    for values, where, error in (
        ({"nobody": "1"}, None, errors.ColumnNotFoundError),
        ({"name": "nobody"}, None, errors.ColumnNotFoundError),
        ({"name": "'x'"}, "nobody = 1", errors.ColumnNotFoundError),
        ({"name": "'x'", "NAME": "'y'"}, None, errors.InvalidArgumentError),
        ({}, None, errors.InvalidArgumentError),
        ({"name": 7}, None, errors.InvalidArgumentError),
        ({"name": "upper("}, None, errors.ExpressionError),
        ({"name": "'x'"}, "id +", errors.ExpressionError),
        ({"name": "'x'"}, "id + 1", errors.ExpressionError),
        ({"name": "no_function_of_anyone(id)"}, None, errors.ExpressionError),
    ):
        with pytest.raises(error):
            people.update(values, where=where)
    assert files_of(people.uri) == before and people.refresh().version == version


def test_not_null_columns_stay_so(make, format_name, session):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32())])
    t = make(pa.table({"id": [1, 2, 3], "n": pa.array([1, 2, 3], pa.int32())}, schema=schema), schema=schema)
    before = files_of(t.uri)
    with pytest.raises((errors.ConstraintViolationError, errors.SchemaMismatchError)):
        t.update({"id": "case when n = 2 then null else id end"})
    assert files_of(t.uri) == before
    t.update({"n": "null"}, where="id = 2")
    assert rows_of(t) == {1: {"id": 1, "n": 1}, 2: {"id": 2, "n": None}, 3: {"id": 3, "n": 3}}


def test_names_with_dots_backticks_and_upper_case(make, traits):
    if not traits.dotted_names:
        pytest.skip("no names with dots")
    t = make(pa.table({"ID": [1, 2], "a.b": [10, 20], "we`ird": ["x", "y"], "Größe-cm": [1.5, 2.5]}))
    result = t.update({"a.b": "`A.B` + id", "we`ird": "concat(`we``ird`, '!')", "größe-CM": "0"}, where="`a.b` > 10")
    assert result.rows_updated == 1
    assert sorted(t.to_arrow().to_pylist(), key=lambda r: r["ID"]) == [
        {"ID": 1, "a.b": 10, "we`ird": "x", "Größe-cm": 1.5},
        {"ID": 2, "a.b": 22, "we`ird": "y!", "Größe-cm": 0.0},
    ]


def test_nested_columns(make):
    type = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    nested = [{"x": i, "tags": [f"t{i}", None]} for i in range(4)]
    table = {"id": [0, 1, 2, 3], "s": pa.array([*nested[:3], None], type), "l": pa.array([[1], [], None, [None, 2]])}
    t = make(pa.table(table))
    t.update({"id": "id + 10"}, where="s.x = 1 or s is null")
    assert {i: (r["s"], r["l"]) for i, r in rows_of(t).items()} == {
        0: (nested[0], [1]), 11: (nested[1], []), 2: (nested[2], None), 13: (None, [None, 2]),
    }  # fmt: skip
    t.update({"s": "null", "l": "null"}, where="id = 11")
    assert rows_of(t)[11] == {"id": 11, "s": None, "l": None}


def test_dry_runs_and_transactions(people):
    before, version = files_of(people.uri), people.version
    dry = people.update({"score": "0"}, where="id < 5", dry_run=True)
    assert (dry.dry_run, dry.version, dry.rows_updated) == (True, None, 5)
    assert files_of(people.uri) == before and people.refresh().version == version
    assert people.update({"score": "score + 1"}, where="id = 6", txn=("job", 1)).rows_updated == 1
    again = people.update({"score": "score + 1"}, where="id = 6", txn=("job", 1))
    assert again.version is None and again.skipped and rows_of(people)[6]["score"] == 4


def test_read_only(people, monkeypatch):
    monkeypatch.setenv("BOATHOUSE_READ_ONLY", "1")
    with pytest.raises(errors.ReadOnlyError):
        people.update({"score": "0"})


def test_time_zones(make, session):
    utc = dt.UTC
    times = [dt.datetime(2024, 7, 1, hour, tzinfo=utc) for hour in (3, 4, 5)]
    t = make(pa.table({"id": [0, 1, 2], "t": pa.array(times, pa.timestamp("us", "UTC"))}))
    zone, before = "America/New_York", None
    if session is None:
        t = bh.open(t.uri, format=t.format, timezone=zone)
    else:
        before = session.conf.get("spark.sql.session.timeZone")
        session.conf.set("spark.sql.session.timeZone", zone)
    try:
        result = t.update({"t": "timestamp '2024-12-01 00:00:00'", "id": "hour(t) + 10"}, "t < timestamp '2024-07-01'")
        assert result.rows_updated == 1
    finally:
        if session is not None:
            session.conf.set("spark.sql.session.timeZone", before)
    assert {i: r["t"] for i, r in rows_of(t).items()} == {
        33: dt.datetime(2024, 12, 1, 5, tzinfo=utc), 1: times[1], 2: times[2],
    }  # fmt: skip


def test_what_only_spark_knows(people, session):
    values, where = {"name": "regexp_replace(name, 'n.me', 'x')"}, "name rlike '^n.me 1[0-9]$' and bit_count(id) >= 1"
    if session is None:
        before = files_of(people.uri)
        with pytest.raises(errors.ExpressionError):
            people.update(values, where=where)
        assert files_of(people.uri) == before
    else:
        assert people.update(values, where=where).rows_updated == 8  # two have no name
        assert {i for i, r in rows_of(people).items() if (r["name"] or "").startswith("x")} == {
            i for i in range(11, 20) if i % 7 != 3
        }


def test_queries_over_views_and_columns(people, session):
    if session is None:
        pytest.skip("Spark's own")
    functions = pytest.importorskip("pyspark.sql.functions")
    session.createDataFrame([(3,), (25,)], "k bigint").createOrReplaceTempView("chosen")
    largest = {"name": "(select cast(max(k) as string) from chosen)"}
    assert people.update(largest, where="id in (select k from chosen)").rows_updated == 2
    assert people.delete("exists (select 1 from chosen where k = id + 1)").rows_deleted == 2
    upper = {"name": functions.upper(functions.col("name"))}
    assert people.update(upper, where=functions.col("id").isin(1, 25)).rows_updated == 2
    assert people.delete(functions.col("id") > 27).rows_deleted == 2
    found = rows_of(people)
    assert sorted(found) == [i for i in range(28) if i not in (2, 24)]
    assert {i: found[i]["name"] for i in (1, 3, 4, 25)} == {1: "NÄME 1", 3: "25", 4: "näme 4", 25: "25"}


def test_only_touched_files_are_written_again(people, traits):
    before = set(people.files().column("path").to_pylist())
    result = people.update({"score": "0"}, where="id = 22")
    gone = before - set(people.refresh().files().column("path").to_pylist())
    marked = people._handle.snapshot.row_deletes("update") != "rewrite"
    assert len(gone) == (0 if marked else 1) and result.files_removed == len(gone)
    assert result.rows_copied == (0 if marked else 2 if traits.partitions else 9)
    assert result.files_added >= 1
