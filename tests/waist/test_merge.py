"""Merge on the toy, Delta, Iceberg and Lance, in process and on Spark: every clause, every kind of key."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors
from boathouse.api.engines import engine_for

NAN = float("nan")
ON = "target.id = source.id"


def files_of(uri: str) -> set[str]:
    """Every data file below the table's directory, committed or not."""
    path = Path(uri.removeprefix("file://"))
    assert path.is_dir()
    logs = {"_delta_log", "metadata", "_versions", "_transactions"}
    return {str(p) for p in path.rglob("*") if p.is_file() and not logs & set(p.parts)}


def rows_of(table) -> list[dict]:
    rows = bh.open(table.uri, format=table.format).to_arrow().to_pylist()
    return sorted(rows, key=lambda r: tuple((v is None, str(v)) for v in r.values()))


def by_id(table) -> dict:
    return {r["id"]: r for r in rows_of(table)}


def foreign(table) -> list[dict]:
    """The rows as another implementation reads them."""
    found = by_peer(table.uri, table.format).to_pylist()
    return sorted(found, key=lambda r: tuple((v is None, str(v)) for v in r.values()))


@pytest.fixture
def make(format_name, traits, properties, tmp_path, session):
    """A table of these rows, each piece an append, opened for the engine."""

    def table(*pieces: pa.Table, by: str = "", schema=None, name="täble one"):
        uri = str(tmp_path / name)
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


def changed(make_people, *ids, city="Bergen", score=-1.0) -> pa.Table:
    rows = make_people(0, 40).to_pylist()
    return pa.Table.from_pylist(
        [rows[i] | {"city": city, "score": score + i} for i in ids], schema=make_people(0, 1).schema
    )


def test_upsert(people, traits, to_data, make_people):
    source = changed(make_people, 3, 5, 21, 33, 34)
    result = people.merge(to_data(source), ON).when_matched_update_all().when_not_matched_insert_all().execute()
    want = {r["id"]: r for r in make_people(0, 30).to_pylist()} | {r["id"]: r for r in source.to_pylist()}
    assert by_id(people) == want == {r["id"]: r for r in foreign(people)}
    assert (result.rows_updated, result.rows_added, result.rows_deleted) == (3, 2, 0)
    assert result.operation == "merge" and people.count() == 32
    entry = people.history(limit=1)[0]
    assert "merge" in entry.operation.lower() or not traits.names_merges
    assert (entry.version, entry.write_id) == (result.version, result.write_id)
    assert people.scan(where="city = 'Bergen'").count() == 5


@pytest.mark.feature("upsert")
@pytest.mark.route("upsert")
def test_upsert_is_the_short_form(people, to_data, make_people, make):
    source = changed(make_people, 3, 5, 33)
    result = people.upsert(to_data(source), "id", message="nightly")
    want = {r["id"]: r for r in make_people(0, 30).to_pylist()} | {r["id"]: r for r in source.to_pylist()}
    assert by_id(people) == want == {r["id"]: r for r in foreign(people)}
    assert (result.operation, result.rows_updated, result.rows_added) == ("merge", 2, 1)
    assert people.history(limit=1)[0].message == "nightly"
    two = make(pa.table({"a": [1, 1, None], "B-c": ["x", "y", "z"], "n": [0, 0, 0]}), name="two")
    two.upsert(to_data(pa.table({"a": [1, 2, None], "B-c": ["y", "y", "z"], "n": [1, 2, 3]})), on=["a", "b-C"])
    rows = [(r["a"], r["B-c"], r["n"]) for r in two.to_arrow().to_pylist()]
    assert sorted(rows, key=str) == [(1, "x", 0), (1, "y", 1), (2, "y", 2), (None, "z", 0), (None, "z", 3)]
    for on, kind in (("nope", errors.ColumnNotFoundError), ([], errors.InvalidArgumentError)):
        with pytest.raises(kind):
            people.upsert(to_data(source), on)
    with pytest.raises(errors.ConstraintViolationError):
        people.upsert(to_data(pa.concat_tables([source, source])), ["id"])


@pytest.mark.feature("merge")
@pytest.mark.route("merge")
def test_every_clause_at_once(people, to_data, make_people):
    source = changed(make_people, *range(10, 20), *range(30, 38))
    result = (
        people.merge(to_data(source), "t.id = s.id", sides=("t", "s"))
        .when_matched_delete("t.id = 10")
        .when_matched_update({"name": "concat(s.name, ' / ', t.name)", "score": "s.score + t.id"}, "t.id % 2 = 1")
        .when_matched_delete("s.id % 3 = 0")
        .when_matched_update({"city": "t.city", "name": "'rest'"}, "t.id < 16")
        .when_not_matched_insert({"id": "s.id", "city": "upper(s.city)"}, "s.id < 32")
        .when_not_matched_insert_all("s.id < 34")
        .when_not_matched_insert({"id": "s.id + 1000", "name": "'late'"}, "s.id <> 37")
        .when_not_matched_by_source_update({"score": "t.score * 10"}, "t.id < 4")
        .when_not_matched_by_source_delete("t.id < 6")
        .when_not_matched_by_source_update({"name": "null", "score": "0"}, "t.id > 27")
        .execute()
    )
    want, given = {r["id"]: r for r in make_people(0, 30).to_pylist()}, {r["id"]: r for r in source.to_pylist()}
    for i in (10, 12, 18, 4, 5):
        del want[i]
    for i in (11, 13, 15, 17, 19):
        names = given[i]["name"], want[i]["name"]
        want[i]["name"] = None if None in names else " / ".join(names)
        want[i]["score"] = given[i]["score"] + i
    want[14]["name"] = "rest"  # 16 is touched by no clause
    empty = dict.fromkeys(("id", "name", "score", "city"))
    for i in (30, 31):
        want[i] = empty | {"id": i, "city": "BERGEN"}
    want |= {i: given[i] for i in (32, 33)}
    want |= {i + 1000: empty | {"id": i + 1000, "name": "late"} for i in (34, 35, 36)}
    for i in range(4):
        want[i]["score"] = None if want[i]["score"] is None else want[i]["score"] * 10
    for i in (28, 29):
        want[i] |= {"name": None, "score": 0.0}
    assert by_id(people) == want == {r["id"]: r for r in foreign(people)}
    assert (result.rows_updated, result.rows_deleted, result.rows_added) == (5 + 1 + 4 + 2, 5, 7)


def test_only_by_source(people, to_data, make_people):
    source = to_data(make_people(5, 8))
    assert people.merge(source, ON).when_not_matched_by_source_delete("target.id >= 8").execute().rows_deleted == 22
    result = people.merge(source, ON).when_not_matched_by_source_update({"score": "7"}).execute()
    assert result.rows_updated == 5
    assert [r["score"] for r in rows_of(people)] == [7.0] * 5 + [None, 3.0, 3.5]


def test_nothing_applies(people, to_data, make_people):
    version, before = people.version, files_of(people.uri)
    merge = people.merge(to_data(make_people(0, 40)), ON)
    for done in (
        merge.when_matched_delete("null").when_not_matched_insert_all("source.score > null"),
        merge.when_matched_update_all("target.id > 100"),
        people.merge(to_data(make_people(100, 103)), ON).when_matched_delete(),
        people.merge(to_data(make_people(0, 0)), ON).when_matched_update_all().when_not_matched_insert_all(),
    ):
        assert done.execute().version is None
    assert people.refresh().version == version and files_of(people.uri) == before


def test_an_empty_source_and_an_empty_table(people, make, to_data, make_people):
    empty = make(schema=make_people(0, 1).schema, by="city", name="empty")
    result = (
        empty.merge(to_data(make_people(0, 4)), ON)
        .when_matched_update_all()
        .when_not_matched_insert_all("source.id <> 2")
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert result.rows_added == 3 and sorted(by_id(empty)) == [0, 1, 3]
    result = people.merge(to_data(make_people(0, 0)), ON).when_not_matched_by_source_delete("target.id < 28").execute()
    assert result.rows_deleted == 28 and sorted(by_id(people)) == [28, 29]


def test_keys_that_are_null_nan_or_zero(make, to_data):
    schema = pa.schema([("f", pa.float64()), ("id", pa.int64())])
    target = pa.table({"f": [None, NAN, 0.0, -0.0, 1.5], "id": [1, 2, 3, 4, 5]}, schema=schema)
    source = pa.table({"f": [None, NAN, -0.0, 7.0], "id": [10, 20, 30, 70]}, schema=schema)
    for on, matched, left in (
        ("target.f = source.f", {2: 20, 3: 30, 4: 30}, {1, 5, 10, 70}),
        ("target.f <=> source.f", {1: 10, 2: 20, 3: 30, 4: 30}, {5, 70}),
    ):
        t = make(target, name=f"t {len(matched)}")
        merge = t.merge(to_data(source), on).when_matched_update({"id": "source.id * 1000 + target.id"})
        merge.when_not_matched_insert_all().execute()
        assert set(by_id(t)) == {s * 1000 + i for i, s in matched.items()} | left


def test_null_keys_are_never_matched_by_source(make, to_data):
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    t = make(pa.table({"id": [None, 1, 2], "n": [1, 2, 3]}, schema=schema))
    source = pa.table({"id": [None, 2], "n": [50, 60]}, schema=schema)
    merge = t.merge(to_data(source), ON).when_matched_delete().when_not_matched_insert_all()
    merge.when_not_matched_by_source_update({"n": "-target.n"}).execute()
    assert [(r["id"], r["n"]) for r in rows_of(t)] == [(1, -2), (None, -1), (None, 50)]


def test_all_keys_of_the_source_null(people, to_data, make_people):
    schema = make_people(0, 1).schema
    source = pa.Table.from_pylist([{"name": "x"}, {"name": "y"}], schema=schema)
    result = people.merge(to_data(source), ON).when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.rows_deleted, result.rows_added, result.files_removed) == (0, 2, 0) and people.count() == 32


def test_composite_keys_and_other_conditions(people, to_data, make_people):
    source = to_data(changed(make_people, *range(0, 12), city="Oslo"))
    on = "target.id = source.id and target.city = source.city and target.score + 1 > source.score and target.id < 9"
    result = people.merge(source, on + " and source.id <> 3").when_matched_update({"name": "'hit'"}).execute()
    # Oslo has every third; 0 has no score, 3 is excluded by the source, 9 by the target; others have id/2 + 1 > id - 1.
    assert result.rows_updated == 0 and result.version is None
    on = "source.id <=> target.id and source.city = target.city and target.id < 9 and source.id <> 3 and 1 = 1"
    result = people.merge(source, on).when_matched_update({"name": "'hit'"}).execute()
    assert {i for i, r in by_id(people).items() if r["name"] == "hit"} == {0, 6}
    result = people.merge(source, "target.id = source.id and target.id >= source.score + 1 and target.id < 2")
    assert result.when_matched_delete().execute().rows_deleted == 2


def test_keys_that_are_expressions_and_no_key_at_all(people, to_data, make_people):
    source = to_data(pa.table({"low": pa.array([3, 20], pa.int32()), "high": pa.array([5, 22], pa.int32())}))
    result = people.merge(source, "target.id >= source.low and target.id < source.high").when_matched_delete().execute()
    assert result.rows_deleted == 4
    result = people.merge(source, "target.id = source.low * 2").when_matched_update({"name": "'double'"}).execute()
    assert result.rows_updated == 1 and by_id(people)[6]["name"] == "double"


def test_types_of_keys(make, to_data):
    schema = pa.schema(
        [("id", pa.int64()), ("d", pa.date32()), ("n", pa.decimal128(10, 2)), ("b", pa.bool_()), ("s", pa.string()),
         ("t", pa.timestamp("us", "UTC")), ("x", pa.binary())]
    )  # fmt: skip
    day, now = dt.date(1582, 10, 4), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC)
    rows = [
        {"id": 1, "d": day, "n": Decimal("-1.25"), "b": True, "s": "ünï", "t": now, "x": b"\0\xff"},
        {"id": 2, "d": dt.date(9999, 12, 31), "n": Decimal("7.00"), "b": False, "s": "", "t": None, "x": b""},
    ]
    t = make(pa.Table.from_pylist(rows, schema=schema))
    source = to_data(pa.Table.from_pylist([rows[0] | {"id": 50}], schema=schema))
    for i, key in enumerate(("d", "n", "b", "s", "t", "x")):
        merge = t.merge(source, f"target.{key} = source.{key}").when_matched_update({"id": f"{100 + i}"})
        assert merge.execute().rows_updated == 1, key
        assert set(by_id(t)) == {100 + i, 2}


def test_two_source_rows_for_one_row(people, to_data, make_people):
    source = to_data(pa.concat_tables([changed(make_people, 4, 21), changed(make_people, 4, 35, 35, score=5.0)]))
    version, before = people.version, files_of(people.uri)
    for merge in (
        people.merge(source, ON).when_matched_update_all().when_not_matched_insert_all(),
        people.merge(source, ON).when_matched_delete("source.score > -100"),
        people.merge(source, ON).when_matched_delete("source.score < 0").when_matched_update({"name": "'x'"}),
    ):
        with pytest.raises(errors.ConstraintViolationError, match="more than one source row"):
            merge.execute()
    assert people.refresh().version == version and files_of(people.uri) == before
    # Only one of the two matches has a clause that applies.
    done = (
        people.merge(source, ON)
        .when_matched_update({"score": "source.score"}, "source.score between 8 and 10")
        .execute()
    )
    assert done.rows_updated == 1 and by_id(people)[4]["score"] == 9.0
    # Source rows that are twice in the source are inserted twice.
    done = people.merge(source, ON).when_not_matched_insert_all().execute()
    assert (done.rows_added, people.count()) == (2, 32)
    # A delete of everything that matches is the same twice.
    done = people.merge(source, ON).when_matched_delete().execute()
    assert done.rows_deleted == 4 and people.count() == 28  # 35 is there twice


def test_names_are_the_tables(make, to_data, traits):
    if not traits.dotted_names:
        pytest.skip("no names with dots")
    t = make(pa.table({"ID": [1, 2], "a.b": [10, 20], "we`ird": ["x", "y"], "Größe-cm": [1.5, 2.5]}))
    source = pa.table({"größe-CM": [9.5, 8.5], "id": [2, 3], "A.B": [21, 31], "we`ird": ["z", "ü"]})
    result = (
        t.merge(to_data(source), "TARGET.id = `source`.ID and target.`a.b` < source.`a.b`")
        .when_matched_update_all("target.`we``ird` = 'y'")
        .when_not_matched_insert_all()
        .execute()
    )
    assert (result.rows_updated, result.rows_added) == (1, 1)
    assert sorted(tuple(r.values()) for r in rows_of(t)) == [
        (1, 10, "x", 1.5), (2, 21, "z", 9.5), (3, 31, "ü", 8.5)
    ]  # fmt: skip
    assert t.schema.names == ("ID", "a.b", "we`ird", "Größe-cm")
    t.merge(to_data(source), "`target`.`a.b` = source.`a.b`").when_matched_update({"A.b": "`größe-cm`"}, "1 = 0")
    t.merge(to_data(source), "target.id = source.id").when_matched_update(
        {"a.b": "target.`a.b` + source.`a.b`"}
    ).execute()
    assert [r["a.b"] for r in rows_of(t)] == [10, 42, 62]


def test_columns_only_one_side_has(make, to_data):
    t = make(pa.table({"id": [1, 2], "old": ["a", "b"]}))
    source = to_data(pa.table({"id": [2, 3], "new": [5, 6]}))
    merge = t.merge(source, ON).when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    assert rows_of(t) == [{"id": 1, "old": "a"}, {"id": 2, "old": "b"}, {"id": 3, "old": None}]
    merge = t.merge(source, ON, merge_schema=True).when_matched_update_all("source.new = 5")
    merge.when_not_matched_insert_all().when_not_matched_by_source_delete("old = 'zz'").execute()
    assert rows_of(t) == [
        {"id": 1, "old": "a", "new": None}, {"id": 2, "old": "b", "new": 5}, {"id": 3, "old": None, "new": None},
    ]  # fmt: skip
    assert rows_of(t) == foreign(t)
    t.merge(source, ON, merge_schema=True).when_matched_update(
        {"new": "coalesce(target.new, 0) + source.new"}
    ).execute()
    assert [r["new"] for r in rows_of(t)] == [None, 10, 6]


def test_nested_columns(make, to_data):
    type = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    schema = pa.schema(
        [("id", pa.int64()), ("s", type), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))]
    )
    rows = [
        {"id": 1, "s": {"x": 1, "tags": ["a", None]}, "l": [1, None], "m": [("k", 1)]},
        {"id": 2, "s": None, "l": None, "m": None},
        {"id": 3, "s": {"x": None, "tags": None}, "l": [], "m": []},
    ]
    t = make(pa.Table.from_pylist(rows, schema=schema))
    new = [
        rows[0] | {"id": 2}, rows[1] | {"id": 3}, {"id": 4, "s": {"x": 9, "tags": []}, "l": [7], "m": [("z", None)]},
    ]  # fmt: skip
    source = to_data(pa.Table.from_pylist(new, schema=schema))
    t.merge(source, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows_of(t) == [rows[0], *new]
    t.merge(source, "target.s.x = source.s.x").when_matched_update(
        {"l": "source.l"}, "target.id <> source.id"
    ).execute()
    t.merge(source, ON).when_matched_update({"id": "target.id * 10", "s": "source.s"}).execute()
    assert [(r["id"], r["s"], r["l"]) for r in rows_of(t)] == [
        (1, rows[0]["s"], [1, None]), (20, new[0]["s"], [1, None]), (30, None, None), (40, new[2]["s"], [7]),
    ]  # fmt: skip


def test_a_source_that_is_the_table_itself(people, session):
    same = bh.open(people.uri, format=people.format, spark=session)
    scan = same.scan(where="id >= 10")
    source = scan if session is None else scan.to_spark(session)
    result = (
        people.merge(source, "target.id = source.id - 10")
        .when_matched_update({"name": "source.name", "score": "source.id"})
        .when_not_matched_insert({"id": "source.id + 100"})
        .when_not_matched_by_source_delete("target.id < 25")
        .execute()
    )
    assert (result.rows_updated, result.rows_added, result.rows_deleted) == (20, 0, 5)
    rows = by_id(people)
    assert sorted(rows) == [*range(20), *range(25, 30)] and all(rows[i]["score"] == i + 10 for i in range(20))


def test_a_source_is_read_once(people, session, make_people):
    data, opened = changed(make_people, *range(25, 35)), []
    if session is None:

        def batches():
            opened.append(1)
            yield from data.to_batches(max_chunksize=3)

        source = pa.RecordBatchReader.from_batches(data.schema, batches())
    else:
        source = session.createDataFrame(data).selectExpr("id", "name", "cast(rand() as double) as score", "city")
    result = (
        people.merge(source, ON)
        .when_matched_update({"score": "source.score", "name": "cast(source.score as string)"})
        .when_not_matched_insert({"id": "source.id", "score": "source.score", "name": "cast(source.score as string)"})
        .execute()
    )
    assert (result.rows_updated, result.rows_added) == (5, 5) and len(opened) <= 1
    rows = by_id(people)
    assert all(float(rows[i]["name"]) == rows[i]["score"] for i in range(25, 35))


def test_a_failing_row_leaves_nothing(people, to_data, make_people, engine_name):
    """On Spark, the files of tasks that had finished before the job failed may stay: nothing refers to them."""
    source = to_data(changed(make_people, 3, 12, 33))
    version, before = people.version, files_of(people.uri)
    for merge in (
        people.merge(source, ON).when_matched_update({"score": "1 / (source.id - 12)"}).when_not_matched_insert_all(),
        people.merge(source, ON).when_not_matched_insert({"id": "cast(source.city as bigint)"}),
        people.merge(source, ON).when_matched_delete("1 / (target.id - 12) > 0").when_not_matched_insert_all(),
        people.merge(source, ON + " and 1 / (target.id - 12) > 0").when_matched_update_all(),
    ):
        with pytest.raises(errors.EvaluationError):
            merge.execute()
    assert people.refresh().version == version
    left = files_of(people.uri)
    if engine_name == "spark":
        left -= {f for f in left - before if not any(f.endswith(known) for known in people.scan().files())}
    assert left == before


def test_what_is_refused(people, to_data, make_people):
    source = to_data(make_people(0, 3))
    version, before = people.version, files_of(people.uri)
    merge = people.merge(source, ON)
    x, y = ("x", "X"), ("x", "y")
    for make, error in (
        (lambda: merge.execute(), errors.InvalidArgumentError),
        (lambda: merge.when_matched_update({}).execute(), errors.InvalidArgumentError),
        (lambda: merge.when_matched_update({"no": "1"}).execute(), errors.ColumnNotFoundError),
        (lambda: merge.when_matched_update({"name": "source.no"}).execute(), errors.ColumnNotFoundError),
        (lambda: merge.when_matched_update({"name": "score"}).execute(), errors.ColumnNotFoundError),
        (lambda: merge.when_matched_delete("nothing(1)").execute(), errors.ExpressionError),
        (lambda: merge.when_matched_delete("target.id + 1").execute(), errors.ExpressionError),
        (lambda: people.merge(source, "id = id").when_matched_delete().execute(), errors.ColumnNotFoundError),
        (lambda: people.merge(source, "target.id =").when_matched_delete().execute(), errors.ExpressionError),
        (lambda: people.merge(source, "target.id").when_matched_delete().execute(), errors.ExpressionError),
        (lambda: people.merge(source, ON, sides=x).when_matched_delete().execute(), errors.InvalidArgumentError),
        (lambda: people.merge(source, ON, sides=y).when_matched_delete().execute(), errors.ColumnNotFoundError),
        (lambda: people.merge(source, ON, merge_schema="yes"), errors.InvalidArgumentError),
    ):
        with pytest.raises(error):
            make()
    assert people.refresh().version == version and files_of(people.uri) == before


def test_not_null_columns_stay_so(make, to_data):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32())])
    t = make(pa.table({"id": [1, 2, 3], "n": pa.array([1, 2, 3], pa.int32())}, schema=schema), schema=schema)
    before = files_of(t.uri)
    source = to_data(pa.table({"id": [2, 7, None], "n": pa.array([5, 6, 7], pa.int32())}))
    with pytest.raises((errors.ConstraintViolationError, errors.SchemaMismatchError)):
        t.merge(source, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    assert files_of(t.uri) == before
    merge = t.merge(source, ON).when_matched_update_all().when_not_matched_insert_all("source.id is not null")
    merge.execute()
    assert rows_of(t) == [{"id": 1, "n": 1}, {"id": 2, "n": 5}, {"id": 3, "n": 3}, {"id": 7, "n": 6}]
    assert not t.refresh().schema.field("id").nullable


def test_dry_runs_transactions_and_read_only(people, to_data, make_people, monkeypatch):
    before, version = files_of(people.uri), people.version
    source = to_data(changed(make_people, 3, 5, 33))
    merge = people.merge(source, ON).when_matched_update_all("source.id = 3").when_matched_delete()
    merge = merge.when_not_matched_insert_all()
    dry = merge.execute(dry_run=True)
    assert (dry.dry_run, dry.version, dry.rows_updated, dry.rows_deleted, dry.rows_added) == (True, None, 1, 1, 1)
    assert files_of(people.uri) == before and people.refresh().version == version
    done = merge.execute(txn=("job", 1), message="night run")
    assert (done.rows_updated, done.rows_deleted, done.rows_added) == (1, 1, 1)
    assert people.history(limit=1)[0].message == "night run"
    again = merge.execute(txn=("job", 1))
    assert again.version is None and again.skipped and people.refresh().count() == 30
    monkeypatch.setenv("BOATHOUSE_READ_ONLY", "1")
    with pytest.raises(errors.ReadOnlyError):
        merge.execute()


def test_time_zones(make, to_data, session):
    utc, zone = dt.UTC, "America/New_York"
    times = [dt.datetime(2024, 7, 1, hour, tzinfo=utc) for hour in (3, 4, 5)]
    schema = pa.schema([("id", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    t = make(pa.table({"id": [0, 1, 2], "t": times}, schema=schema))
    source = to_data(pa.table({"id": [0, 1, 2, 3], "t": [*times, times[0]]}, schema=schema))
    if session is None:
        t = bh.open(t.uri, format=t.format, timezone=zone)
    else:
        before = session.conf.get("spark.sql.session.timeZone")
        session.conf.set("spark.sql.session.timeZone", zone)
    try:
        result = (
            t.merge(source, "target.t = source.t and target.t >= timestamp '2024-07-01'")
            .when_matched_update({"id": "10 + hour(source.t)"})
            .when_not_matched_insert({"id": "source.id + 20", "t": "timestamp '2024-12-01'"}, "source.id = 3")
            .execute()
        )
    finally:
        if session is not None:
            session.conf.set("spark.sql.session.timeZone", before)
    assert (result.rows_updated, result.rows_added) == (2, 1)
    assert {i: r["t"] for i, r in by_id(t).items()} == {
        0: times[0], 10: times[1], 11: times[2], 23: dt.datetime(2024, 12, 1, 5, tzinfo=utc)
    }  # fmt: skip


def test_what_only_spark_knows(people, to_data, make_people, session):
    source = to_data(changed(make_people, 10, 11, 33))
    merges = (
        people.merge(source, ON).when_matched_delete("target.name rlike '^n.me 1[1-9]$'"),
        people.merge(source, ON + " and bit_count(target.id) >= 1").when_matched_update(
            {"name": "'x'"}, "target.id = 11"
        ),
        people.merge(source, ON).when_not_matched_insert({"name": "regexp_replace(source.name, 'n.me', 'x')"}),
    )
    if session is None:
        before = files_of(people.uri)
        for merge in merges:
            with pytest.raises(errors.ExpressionError):
                merge.execute()
        assert files_of(people.uri) == before
    else:
        assert [m.execute().rows_deleted for m in merges] == [1, 0, 0]
        assert [r["name"] for r in rows_of(people) if r["id"] is None] == ["x 11", "x 33"]  # 11 was deleted before


def test_only_touched_files_are_written_again(people, traits, to_data, make_people, monkeypatch):
    plans = []
    engine = type(engine_for(to_data(make_people(0, 1))))
    real = engine.scan
    monkeypatch.setattr(engine, "scan", lambda self, plan: (plans.append(plan.units.num_rows), real(self, plan))[1])
    source = to_data(changed(make_people, 22, 35))
    before = set(people.files().column("path").to_pylist())
    result = people.merge(source, ON).when_matched_update({"score": "0"}).when_not_matched_insert_all().execute()
    gone = before - set(people.refresh().files().column("path").to_pylist())
    marked = people._handle.snapshot.row_deletes("merge") != "rewrite"
    assert len(gone) == result.files_removed == (0 if marked else 1) and result.rows_updated == 1
    assert result.rows_copied == (0 if marked else 2 if traits.partitions else 9)
    # The rows from 20 on are in one file for each city, or in one of two that no bounds tell apart.
    assert plans[0] == (3 if traits.partitions else 2)
    source = to_data(changed(make_people, 22, 19))
    people.merge(source, ON + " and target.city = '東京'").when_matched_delete().execute()
    assert plans[1] < people.files().num_rows or traits.bounds == "none"


def test_a_condition_cannot_name_a_side_as_a_whole(people, to_data, make_people):
    for on in (ON + " and target is not null", "target = source"):
        merge = people.merge(to_data(changed(make_people, 3, 33)), on).when_matched_delete()
        with pytest.raises(errors.ColumnNotFoundError, match=r"(?i)write a column as target\.name"):
            merge.execute()


def test_what_can_fail_is_shielded(people, to_data):
    source = to_data(pa.table({"id": [1, 2, 9], "n": [0, 50, 7]}))
    on = "source.n <> 0 and target.id = cast(100 / source.n as bigint)"
    assert people.merge(source, on).when_matched_update({"name": "'x'"}).execute().rows_updated == 2
    assert {i for i, r in by_id(people).items() if r["name"] == "x"} == {2, 14}


def test_columns_with_the_names_of_the_waist(make, to_data):
    t = make(pa.table({"id": [1, 2], "_action": ["insert", "x"], "_kind": [1, 2]}))
    source = to_data(pa.table({"id": [2, 3], "_action": ["delete", "y"], "_unit": [7, 7], "_pos": [0, 0]}))
    merge = t.merge(source, ON).when_matched_update({"_action": "source._action", "_kind": "source._unit"})
    merge.when_not_matched_insert_all().execute()
    assert [tuple(r.values()) for r in rows_of(t)] == [(1, "insert", 1), (2, "delete", 7), (3, "y", None)]
    odd = make(pa.table({"id": [1, 2], "_pos": [5, 6]}), name="odd")
    for write in (lambda: odd.update({"id": "7"}), odd.merge(source, ON).when_matched_delete().execute):
        with pytest.raises(errors.UnsupportedFeatureError, match="_pos"):
            write()


def test_nanoseconds_are_keys(make, engine_name, traits):
    if engine_name == "spark" or not traits.nanoseconds:
        pytest.skip("nanoseconds are in tables of some formats, and read in process")
    type = pa.timestamp("ns")
    t = make(pa.table({"t": pa.array([1001, 1002, 2001], type), "id": [1, 2, 3]}))
    t.merge(pa.table({"t": pa.array([1002], type)}), "target.t = source.t").when_matched_delete().execute()
    assert t.to_arrow()["id"].to_pylist() == [1, 3]


def test_only_files_that_can_match_are_read(make, traits, to_data, monkeypatch):
    """Six files, sorted by every column."""
    day = dt.date(2024, 1, 1)

    def piece(first: int) -> pa.Table:
        ids = range(first * 10, first * 10 + 10)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "s": [f"k{i:03}" for i in ids],
                "d": [day + dt.timedelta(i) for i in ids],
                "n": pa.array([Decimal(i) / 4 for i in ids], pa.decimal128(10, 2)),
            }
        )

    pieces = [piece(i) for i in range(6)]
    t = make(*pieces)
    source = to_data(pa.concat_tables([pieces[2].slice(3, 2), pieces[3].slice(0, 1)]))
    engine = type(engine_for(source))
    units, real = [], engine.scan
    unknown = traits.bounds == "none"
    monkeypatch.setattr(engine, "scan", lambda self, plan: (units.append(plan.units.num_rows), real(self, plan))[1])
    for on, most in (
        ("target.id = source.id", 2),
        ("source.s = target.s", 2),
        ("target.d = source.d", 2),
        ("target.n = source.n", 2),
        ("target.id = source.id and target.s >= 'k030'", 1),
        ("target.id <=> source.id and target.d < date '2024-01-01'", 0),
        ("target.id > source.id and target.n between 1 and 2", 1),
    ):
        units.clear()
        t.merge(source, on).when_matched_update({"s": "null"}, "1 = 0").when_not_matched_insert_all("1 = 0").execute()
        assert units == [6 if unknown else most], on
    units.clear()
    merge = t.merge(source, ON).when_not_matched_by_source_update({"s": "null"}, "target.id = 59")
    assert merge.execute().rows_updated == 1 and units == [6]
    units.clear()
    assert t.merge(source, ON).when_matched_delete().execute().rows_deleted == 3
    assert units == [7 if unknown else 2] and t.count() == 57


def test_structs_of_another_shape(make, to_data, session):
    """They fit by the names of fields; on Spark a choice between two shapes is refused."""
    t = make(pa.table({"id": [1, 2, 5], "s": [{"a": 1, "b": 1}, {"a": 2, "b": 2}, None]}))
    source = to_data(pa.table({"id": [2, 3], "s": [{"b": 7, "a": 8}, None]}))
    merge = t.merge(source, ON)
    mixed = merge.when_matched_update({"id": "10"}, "source.id = 1").when_matched_update_all()
    if session is not None:
        with pytest.raises((errors.ExpressionError, errors.SchemaMismatchError)):
            mixed.execute()
    else:
        mixed.execute()
        assert {i: r["s"] for i, r in by_id(t).items()} == {1: {"a": 1, "b": 1}, 2: {"a": 8, "b": 7}, 5: None}
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert {i: r["s"] for i, r in by_id(t).items()} == {1: {"a": 1, "b": 1}, 2: {"a": 8, "b": 7}, 3: None, 5: None}
