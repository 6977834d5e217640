"""One suite over the toy, Delta, Iceberg and Lance and both engines: the same calls give the same rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors


@pytest.fixture
def table(format_name, traits, properties, tmp_path, to_data, session, make_people):
    """A table of 30 rows in two appends, partitioned by city where the format has partitions."""
    uri = str(tmp_path / "täble one")
    bh.create(uri, make_people(0, 1).schema, format=format_name, partition_by=traits.by("city"), properties=properties)
    t = bh.open(uri, format=format_name, spark=session)
    t.append(to_data(make_people(0, 20)))
    t.append(to_data(make_people(20, 30)))
    return t


def expected(make_people, keep, *more: pa.Table) -> list[dict]:
    rows = [r for r in make_people(0, 30).to_pylist() if keep(r)]
    rows += [r for table in more for r in table.to_pylist()]
    return sorted(rows, key=lambda r: tuple((v is None, str(v)) for v in r.values()))


@pytest.mark.feature("append")
@pytest.mark.route("append")
def test_appends_are_read_back(table, read, make_people):
    assert read(table.scan()) == expected(make_people, lambda r: True)
    assert table.count() == 30


def test_columns_and_predicates(table, read, make_people):
    rows = read(table.scan(columns=["name", "ID"], where="city = 'Oslo' and score > 4"))
    wanted = expected(make_people, lambda r: r["city"] == "Oslo" and (r["score"] or 0) > 4)
    assert rows == sorted(
        ({"name": r["name"], "id": r["id"]} for r in wanted),
        key=lambda r: tuple((v is None, str(v)) for v in r.values()),
    )
    assert table.scan(where="name is null").count() == len(expected(make_people, lambda r: r["name"] is None))
    assert table.scan(where="id = 1000000").count() == 0


@pytest.mark.feature("delete")
@pytest.mark.route("delete")
def test_delete_some_rows(table, read, make_people):
    result = table.delete("id % 4 = 1 or name is null")
    gone = lambda r: r["id"] % 4 == 1 or r["name"] is None  # noqa: E731
    assert result.rows_deleted == 30 - len(expected(make_people, lambda r: not gone(r)))
    assert read(table.scan()) == expected(make_people, lambda r: not gone(r))
    again = table.delete("id % 4 = 1")
    assert again.version is None and again.rows_deleted == 0


def test_delete_twice_in_the_same_units(table, read, make_people):
    table.delete("id = 3")
    table.delete("id = 6")
    table.delete("id >= 25")
    assert read(table.scan()) == expected(make_people, lambda r: r["id"] not in (3, 6) and r["id"] < 25)
    assert table.count() == 23


def test_a_predicate_that_is_null_deletes_nothing(table, make_people):
    before = table.version
    assert table.delete("score > null").version is None
    assert table.version == before and table.count() == 30


def test_delete_everything(table, read):
    result = table.delete()
    assert result.rows_deleted == 30
    assert read(table.scan()) == [] and table.count() == 0


@pytest.mark.feature("overwrite")
@pytest.mark.route("overwrite")
def test_overwrite_whole(table, read, to_data, make_people):
    result = table.overwrite(to_data(make_people(100, 105)))
    assert read(table.scan()) == expected(make_people, lambda r: False, make_people(100, 105))
    assert result.rows_added == 5


@pytest.mark.feature("overwrite of the rows that match a condition")
@pytest.mark.route("overwrite where")
def test_overwrite_where(table, read, to_data, make_people):
    oslo = make_people(100, 110).filter(pa.compute.equal(make_people(100, 110)["city"], "Oslo"))
    table.overwrite(to_data(oslo), where="city = 'Oslo'")
    assert read(table.scan()) == expected(make_people, lambda r: r["city"] != "Oslo", oslo)


def test_overwrite_where_refuses_rows_outside(table, read, to_data, make_people):
    with pytest.raises(errors.ConstraintViolationError, match="not satisfy"):
        table.overwrite(to_data(make_people(100, 110)), where="city = 'Oslo'")
    assert read(table.refresh().scan()) == expected(make_people, lambda r: True)


def test_overwrite_where_that_splits_files(table, read, to_data, make_people):
    table.overwrite(to_data(make_people(5, 8)), where="id between 5 and 7")
    assert read(table.scan()) == expected(make_people, lambda r: True)


@pytest.mark.feature("time travel")
@pytest.mark.route("time travel")
def test_time_travel(table, read, make_people, format_name, session):
    versions = [e.version for e in table.history()]
    assert len(versions) == len(set(versions)) >= 2
    table.delete("id < 10")
    before = bh.open(table.uri, format=format_name, version=versions[0], spark=session)
    assert read(before.scan()) == expected(make_people, lambda r: True)
    older = bh.open(table.uri, format=format_name, version=versions[1], spark=session)
    assert read(older.scan()) == expected(make_people, lambda r: r["id"] < 20)
    with pytest.raises(errors.ReadOnlyError):
        before.append(make_people(0, 1))
    with pytest.raises(errors.VersionNotFoundError):
        bh.open(table.uri, format=format_name, version=987654)


def test_columns_are_matched_by_name_and_missing_ones_are_null(table, read, to_data, make_people):
    part = pa.table({"City": ["Oslo"], "id": pa.array([500], pa.int32())})
    table.append(to_data(part))
    row = {"id": 500, "name": None, "score": None, "city": "Oslo"}
    assert row in read(table.scan(where="id = 500"))


def test_schema_mismatch_writes_nothing(table, to_data, make_people):
    version = table.version
    for bad in (
        pa.table({"id": ["x"], "city": ["Oslo"]}),
        pa.table({"id": [1], "nonsense": [1]}),
    ):
        with pytest.raises(errors.SchemaMismatchError):
            table.append(to_data(bad))
    assert table.refresh().version == version and table.count() == 30


@pytest.mark.feature("add columns")
@pytest.mark.route("add columns")
def test_add_column_then_append(table, read, to_data, make_people):
    table.add_column("extra", "array<int>")
    more = make_people(50, 51).append_column("extra", pa.array([[1, None]], pa.list_(pa.int32())))
    table.append(to_data(more))
    rows = read(table.scan(where="id in (1, 50)"))
    assert {r["id"]: r["extra"] for r in rows} == {1: None, 50: [1, None]}


@pytest.mark.feature("new columns by appends")
@pytest.mark.route("new columns by appends")
def test_merge_schema(table, read, to_data, make_people):
    more = make_people(50, 51).append_column("other", pa.array([1.5]))
    with pytest.raises(errors.SchemaMismatchError):
        table.append(to_data(more))
    table.append(to_data(more), merge_schema=True)
    assert {r["id"]: r["other"] for r in read(table.scan(where="id in (1, 50)"))} == {1: None, 50: 1.5}


def test_overwrite_schema(table, traits, read, to_data):
    new = pa.table({"when": pa.array([1, 2], pa.int32()), "id": ["a", None]})
    table.overwrite(to_data(new), overwrite_schema=True, partition_by=traits.by("when") or None)
    assert sorted(read(table.scan()), key=str) == sorted(new.to_pylist(), key=str)
    assert table.schema.names == ("when", "id")


@pytest.mark.feature("set properties")
@pytest.mark.route("set properties")
def test_properties(table, format_name, session):
    table.set_properties({"owner": "anna"})
    t = bh.open(table.uri, format=format_name, spark=session)
    assert t.properties["owner"] == "anna"
    t.set_properties({"owner": None})
    assert "owner" not in t.properties


def test_unknown_columns_and_bad_predicates(table):
    with pytest.raises(errors.ColumnNotFoundError):
        table.scan(where="nam = 'x'")
    with pytest.raises(errors.ColumnNotFoundError):
        table.scan(columns=["nope"])
    with pytest.raises(errors.ExpressionError):
        table.delete("id = = 3")
    with pytest.raises(errors.ExpressionError):
        table.delete("id + 1")


def test_ansi_errors_delete_nothing(table):
    with pytest.raises(errors.EvaluationError):
        table.delete("cast(name as int) = 1")
    assert table.refresh().count() == 30


def test_the_history_says_who_wrote_what(table, to_data, make_people):
    result = table.append(to_data(make_people(90, 91)), message="night run", metadata={"job": "7"})
    entry = table.history(limit=1)[0]
    assert (entry.version, entry.write_id, entry.message) == (result.version, result.write_id, "night run")
    assert entry.metadata["job"] == "7"
    assert table.find_write(result.write_id) == result.version
    assert table.find_write("nobody") is None


@pytest.mark.feature("application transactions")
@pytest.mark.route("application transactions")
def test_application_transactions_run_once(table, to_data, make_people):
    assert table.append(to_data(make_people(90, 92)), txn=("etl", 4)).version is not None
    for version in (4, 3):
        again = table.append(to_data(make_people(90, 92)), txn=("etl", version))
        assert again.version is None and again.skipped
    assert table.append(to_data(make_people(92, 93)), txn=("etl", 5)).version is not None
    assert table.count() == 33


def test_dry_runs_write_nothing(table, to_data, make_people):
    version = table.version
    for result in (
        table.append(to_data(make_people(0, 3)), dry_run=True),
        table.overwrite(to_data(make_people(0, 3)), dry_run=True),
        table.delete("id < 5", dry_run=True),
    ):
        assert result.dry_run and result.version is None
    assert table.refresh().version == version and table.count() == 30


def test_read_only_mode_refuses_before_any_request(table, to_data, make_people, monkeypatch):
    monkeypatch.setenv("BOATHOUSE_READ_ONLY", "1")
    for write in (
        lambda: table.append(to_data(make_people(0, 1))),
        lambda: table.overwrite(to_data(make_people(0, 1))),
        lambda: table.delete("id = 1"),
        lambda: bh.create(table.uri + "2", "id int", format=table.format),
        lambda: bh.write(make_people(0, 1), table.uri, mode="append"),
    ):
        with pytest.raises(errors.ReadOnlyError):
            write()
    assert table.refresh().count() == 30


@pytest.mark.route("write modes")
def test_write_modes(format_name, tmp_path, to_data, make_people):
    uri = str(tmp_path / "w")
    assert bh.write(to_data(make_people(0, 3)), uri, format=format_name).rows_added == 3
    with pytest.raises(errors.AlreadyExistsError):
        bh.write(to_data(make_people(0, 3)), uri, format=format_name)
    assert bh.write(to_data(make_people(0, 3)), uri, mode="ignore").skipped
    bh.write(to_data(make_people(3, 5)), uri, mode="append")
    assert bh.open(uri).count() == 5
    bh.write(to_data(make_people(7, 8)), uri, mode="overwrite")
    assert bh.open(uri).to_arrow()["id"].to_pylist() == [7]


def test_create_refuses_what_is_there(table, format_name):
    with pytest.raises(errors.AlreadyExistsError):
        bh.create(table.uri, "id int", format=format_name)


def test_empty_data(table, to_data, make_people):
    table.append(to_data(make_people(0, 0)))
    assert table.count() == 30


def test_a_stale_handle_appends_on_the_newest(table, to_data, make_people, format_name, session):
    other = bh.open(table.uri, format=format_name, spark=session)
    other.append(to_data(make_people(40, 45)))
    table.append(to_data(make_people(45, 50)))
    assert table.count() == 40


def test_explain_counts_what_is_skipped(table):
    explanation = table.scan(where="id < 20").explain()
    assert explanation.units >= 1
    assert "reads" in str(explanation)


def test_repr_names_the_table(table):
    assert table.uri in repr(table) and "id: bigint" in repr(table)
    assert "<table>" in table._repr_html_()


@pytest.mark.route("conditions that only Spark knows")
def test_a_delete_by_a_condition_that_only_spark_knows(table, make_people, session, read):
    where = "name rlike '^n.me [0-9]$' and bit_count(id) >= 1"
    if session is None:
        with pytest.raises(errors.ExpressionError):
            table.delete(where)
        assert table.refresh().count() == 30
        return
    version = table.version
    assert table.delete(where, dry_run=True).rows_deleted == 8 and table.refresh().version == version
    assert table.delete(where).rows_deleted == 8  # 0 has no bit, 3 has no name
    assert read(table) == expected(make_people, lambda r: r["id"] in (0, 3) or r["id"] > 9)
    assert table.delete(where).version is None
    assert table.delete("name rlike 'n.me'").files_removed > 0
    with pytest.raises(errors.ColumnNotFoundError):
        table.delete("nobody rlike 'x'")
    with pytest.raises(errors.ExpressionError):
        table.delete("bit_count(id)")
