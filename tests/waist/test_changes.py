"""Changes between versions on every format and both engines: replayed, they lead from one version to the other."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from dataclasses import replace

import deltalake
import pyarrow as pa
import pytest
from toy_format.state import TABLES, Deletes, clean

import boathouse as bh
import lance
from boathouse import errors
from boathouse.bits import system
from makers.traits import REAL, Traits

META = ("_change_type", "_commit_version", "_commit_timestamp")


@pytest.fixture
def fetch(session):
    """All changed rows as an Arrow table, by the engine."""
    return lambda c: c.to_arrow() if session is None else c.to_spark(session).toArrow()


@pytest.fixture
def local_only(engine_name):
    if engine_name != "local":
        pytest.skip("nothing here depends on the engine")


@pytest.fixture
def made(format_name, traits, properties, tmp_path, session):
    """Creates a table of these rows; returns it."""

    def make(rows: pa.Table, by: str | None = None) -> bh.Table:
        uri = str(tmp_path / "t")
        partition_by = () if by is None else traits.by(by)
        bh.create(uri, rows.schema, format=format_name, partition_by=partition_by, properties=properties)
        t = bh.open(uri, format=format_name, spark=session)
        if rows.num_rows:
            t.append(rows)
        return t

    return make


def canonical(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    return tuple(map(canonical, value)) if isinstance(value, list | tuple) else value


def counted(rows: list[dict]) -> Counter:
    return Counter(canonical({k: v for k, v in r.items() if k not in META}) for r in rows)


def by_commit(rows: list[dict]) -> dict[int, tuple[Counter, Counter]]:
    """(deleted, inserted) rows by version."""
    found: dict[int, tuple[Counter, Counter]] = {}
    for r in rows:
        pair = found.setdefault(r["_commit_version"], (Counter(), Counter()))
        pair[r["_change_type"] in ("insert", "update_postimage")].update(counted([r]))
    return found


def check_replay(t, changes: pa.Table, first: int | None) -> dict[int, tuple[Counter, Counter]]:
    """Every commit's changes lead from its parent's rows to its own, and no row is in both; returns them."""
    found = by_commit(changes.to_pylist())
    for entry in reversed(t.history()):
        if entry.metadata_only or first not in (None, entry.version):
            continue
        first = None
        before = Counter()
        if entry.parent is not None:
            before = counted(bh.open(t.uri, format=t.format, version=entry.parent).to_arrow().to_pylist())
        after = counted(bh.open(t.uri, format=t.format, version=entry.version).to_arrow().to_pylist())
        gone, new = found.pop(entry.version, (Counter(), Counter()))
        assert gone == before - after and new == after - before
    assert not found
    return by_commit(changes.to_pylist())


@pytest.mark.feature("change feed")
def test_the_changes_of_every_operation(made, fetch, make_people):
    t = made(make_people(0, 30), by="city")
    first = t.version
    t.delete("id < 4")
    t.update({"score": "score + 1"}, where="id in (5, 7, 8)")
    t.append(make_people(40, 44))
    compacted = t.optimize().version
    t.merge(make_people(8, 10), "target.id = source.id").when_matched_update_all().execute()
    t.delete("city = 'Oslo'")
    t.overwrite(make_people(20, 25))
    found = fetch(t.changes(first))
    assert found.schema.names == [*t.schema.names, *META]
    assert [str(found.schema.field(n).type) for n in META] == ["string", "int64", "timestamp[us, tz=UTC]"]
    commits = check_replay(t, found, first)
    assert compacted not in commits and sum(commits[first][1].values()) == 30
    times = {e.version: e.timestamp_ms for e in t.history()}
    for row in found.to_pylist():
        assert row["_commit_timestamp"] == dt.datetime.fromtimestamp(times[row["_commit_version"]] / 1000, dt.UTC)


@pytest.mark.route("change feed")
def test_start_and_end_are_included(made, fetch, make_people):
    t = made(make_people(0, 3))
    versions = [t.version]
    for i in range(3, 6):
        t.append(make_people(i, i + 1))
        versions.append(t.version)
    assert sorted(fetch(t.changes(versions[1], versions[2]))["id"].to_pylist()) == [3, 4]
    assert sorted(fetch(t.changes(versions[3]))["id"].to_pylist()) == [5]
    assert sorted(fetch(t.changes(0))["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert sorted(fetch(t.changes(0, versions[0]))["id"].to_pylist()) == [0, 1, 2]
    pinned = bh.open(t.uri, format=t.format, version=versions[1])
    assert pinned.changes(versions[0]).to_arrow()["id"].to_pylist() == [0, 1, 2, 3]


def test_columns_and_predicates(made, fetch, make_people):
    t = made(make_people(0, 20), by="city")
    first = t.version
    t.update({"score": "score + 1"}, where="id = 4")
    found = fetch(t.changes(first, columns=["name"], where="city = 'São Paulo' and id > 3"))
    assert found.schema.names == ["name", *META]
    rows = [r for r in found.to_pylist() if r["_commit_version"] == t.version]
    # The update changed no name, but it did change the row.
    assert sorted((r["name"], r["_change_type"]) for r in rows) == [("näme 4", "delete"), ("näme 4", "insert")]
    assert sum(r["_commit_version"] == first for r in found.to_pylist()) == 6


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))])),
        ("l", pa.list_(pa.struct([("k", pa.string()), ("v", pa.float64())]))),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


def nested(traits: Traits) -> pa.Table:
    rows = [
        {"id": 1, "x": math.nan, "s": {"a": 1, "l": ["u", None]}, "l": [{"k": "p", "v": math.nan}], "m": [("a", 1)]},
        {"id": 2, "x": None, "s": None, "l": None, "m": None},
        {"id": 2, "x": None, "s": None, "l": None, "m": None},
        {"id": 3, "x": -0.0, "s": {"a": None, "l": None}, "l": [], "m": []},
        {"id": 4, "x": 1.0, "s": {"a": 2, "l": []}, "l": [None, {"k": None, "v": 2.0}], "m": [("b", None), ("a", 2)]},
    ]
    found = pa.Table.from_pylist(rows, NESTED)
    return found if traits.maps else found.drop_columns(["m"])


def test_rows_that_were_only_carried_over_are_no_change(made, fetch, traits):
    t = made(nested(traits))
    t.delete("id = 4")
    found = fetch(t.changes(t.version)).to_pylist()
    assert [(r["id"], r["_change_type"]) for r in found] == [(4, "delete")]
    t.update({"x": "x"}, where="id <= 3")  # the same rows again
    assert fetch(t.changes(t.version)).num_rows == 0
    t.append(nested(traits))
    t.delete("id in (1, 3)")
    found = fetch(t.changes(t.version)).to_pylist()
    assert sorted((r["id"], r["_change_type"]) for r in found) == [(1, "delete")] * 2 + [(3, "delete")] * 2


def test_one_of_two_equal_rows(made, fetch, traits):
    t = made(nested(traits))
    t.overwrite(nested(traits).slice(2))
    found = fetch(t.changes(t.version)).to_pylist()
    assert sorted((r["id"], r["_change_type"]) for r in found) == [(1, "delete"), (2, "delete")]
    deleted = next(r for r in found if r["id"] == 1)
    assert deleted["s"] == {"a": 1, "l": ["u", None]} and math.isnan(deleted["x"])
    if traits.maps:
        assert deleted["m"] == [("a", 1)]


def test_columns_that_were_added_are_null_before(made, fetch, make_people):
    t = made(make_people(0, 2))
    first = t.version
    t.add_column("extra", "int")
    t.append(make_people(2, 3).append_column("extra", pa.array([7], pa.int32())))
    t.delete("id = 0")
    found = fetch(t.changes(first)).to_pylist()
    assert [(r["id"], r["extra"], r["_change_type"]) for r in found] == [
        (0, None, "insert"), (1, None, "insert"), (2, 7, "insert"), (0, None, "delete"),
    ]  # fmt: skip


def test_nothing_changed(made, fetch, make_people):
    t = made(make_people(0, 0))
    found = fetch(t.changes(0))
    assert found.num_rows == 0 and found.schema.names == [*t.schema.names, *META]


def test_a_schema_that_was_replaced_is_refused(made, traits, local_only, make_people):
    t = made(make_people(0, 4))
    first = t.version
    t.overwrite(pa.table({"name": pa.array([1, 2], pa.int64()), "id": ["a", "b"]}), overwrite_schema=True)
    if traits.lasting_ids:  # new columns have new ids, and rows before have none of them
        rows = t.changes(first, columns=["id"]).to_arrow().to_pylist()
        assert {(r["id"], r["_change_type"]) for r in rows} >= {(None, "delete"), ("a", "insert")}
        return
    with pytest.raises(errors.UnsupportedFeatureError, match="cannot be read with the schema of version"):
        t.changes(first).to_arrow()
    assert t.changes(first, end=first).to_arrow()["id"].to_pylist() == [0, 1, 2, 3]


def test_versions_that_do_not_exist(made, local_only, make_people):
    t = made(make_people(0, 2))
    with pytest.raises(errors.VersionNotFoundError, match=rf"version 99 is not among.*{t.version}"):
        t.changes(99).to_arrow()
    with pytest.raises(errors.VersionNotFoundError):
        t.changes(0, end=99)
    for wrong in (None, "1", True):
        with pytest.raises(errors.InvalidArgumentError, match="start="):
            t.changes(wrong)
    with pytest.raises(errors.ColumnNotFoundError):
        t.changes(0, columns=["nope"])
    with pytest.raises(errors.ExpressionError):
        t.changes(0, where="id +")


def test_batches_and_readers(made, local_only, make_people):
    t = made(make_people(0, 5))
    t.delete("id = 2")
    changes = t.changes(0)
    table = changes.to_arrow()
    assert pa.Table.from_batches(list(changes.to_batches())) == table == changes.to_reader().read_all()
    assert pa.table(changes) == table and len(changes.to_pandas()) == 6
    assert f"versions 0 to {t.version}" in repr(changes)


def foreign_commit(uri: str, **changes) -> int:
    """Another writer's commit on the toy."""
    state = TABLES[uri]
    head = state.versions[state.refs["main"]]
    new = replace(head, version=state.next_version(), parent=head.version, timestamp_ms=system.current().now_ms())
    assert state.swap("main", str(head.version), replace(new, **changes))
    return new.version


@pytest.fixture
def toy(tmp_path, make_people, session):
    uri = str(tmp_path / "toy")
    bh.create(uri, make_people(0, 1).schema, format="toy")
    t = bh.open(uri, format="toy", spark=session)
    t.append(make_people(0, 10))
    t.append(make_people(10, 14))
    return t


def test_equality_deletes(toy, fetch):
    head = toy._handle.snapshot.document
    toy.delete("id = 5")
    deletes = TABLES[toy.uri].versions[toy.version].deletes
    version = foreign_commit(toy.uri, deletes=(*deletes, Deletes("equality", 100, key="id", values=(3, 5, 12))))
    found = fetch(toy.refresh().changes(version, columns=["name"]))
    assert sorted(found["name"].fill_null("null").to_pylist()) == ["null", "näme 12"]
    assert set(found["_change_type"].to_pylist()) == {"delete"}
    back = foreign_commit(toy.uri, deletes=head.deletes)
    found = fetch(toy.refresh().changes(back))
    assert sorted(found["id"].to_pylist()) == [3, 5, 12] and set(found["_change_type"].to_pylist()) == {"insert"}


def test_history_that_is_gone_says_what_is_retained(toy, engine_name, make_people):
    first = toy.version
    toy.append(make_people(20, 21))
    toy.append(make_people(21, 22))
    clean(toy.uri, keep=2)
    with pytest.raises(errors.VersionNotFoundError, match=r"not among.*retained versions are 4, 5"):
        toy.changes(first).to_arrow()
    with pytest.raises(errors.VersionNotFoundError, match=r"version 3.*is gone.*retained versions are 4, 5"):
        toy.changes(4).to_arrow()
    assert toy.changes(5).to_arrow()["id"].to_pylist() == [21]


def test_delta_agrees_with_the_change_feed_of_another_library(tmp_path, make_people):
    uri = str(tmp_path / "cdf")
    feed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(uri, make_people(0, 10), configuration=feed)
    theirs = deltalake.DeltaTable(uri)
    deltalake.write_deltalake(theirs, make_people(10, 14), mode="append")
    theirs.delete("id = 3 or id = 11")
    theirs.update(updates={"score": "-1.0"}, predicate="id = 4")
    deltalake.write_deltalake(theirs, make_people(0, 2), mode="overwrite")
    wanted = by_commit(pa.table(theirs.load_cdf(starting_version=1)).to_pylist())
    found = by_commit(bh.open(uri).changes(1).to_arrow().to_pylist())
    # Their feed of the overwrite has the rows that it wrote again on both sides.
    last = max(wanted)
    gone, new = wanted[last]
    wanted[last] = (gone - new, new - gone)
    assert found == wanted


def test_deletion_vectors_of_another_writer(corpora, session, fetch):
    tables = sorted(p.parent for p in corpora.glob("**/_delta_log") if "dv" in p.parent.name.lower())
    if not tables:
        pytest.skip("no table with deletion vectors")
    t = bh.open(str(tables[0]), spark=session)
    retained = [e.version for e in t.history()]
    check_replay(t, fetch(t.changes(min(retained))), None)


def test_lance_compacted_by_its_own_library(tmp_path, make_people, fetch):
    uri = str(tmp_path / "l")
    for i in range(0, 12, 4):
        lance.write_dataset(make_people(i, i + 4), uri, mode="append" if i else "create", data_storage_version="2.2")
    theirs = lance.dataset(uri)
    theirs.delete("id = 5")
    theirs.optimize.compact_files()
    t = bh.open(uri)
    found = fetch(t.changes(1)).to_pylist()
    assert [(r["id"], r["_change_type"]) for r in found if r["_commit_version"] > 3] == [(5, "delete")]
    assert sorted(r["id"] for r in found if r["_change_type"] == "insert") == list(range(12))


@pytest.mark.spark
@pytest.mark.parametrize("engine_name", ["spark"])
@pytest.mark.parametrize("format_name", REAL)
def test_on_spark_the_number_of_commits_makes_no_difference_to_the_query(made, session, engine_name):
    """All commits are read by one relation, and by two that are compared where files were rewritten."""
    t = made(pa.table({"id": range(6), "s": ["x"] * 6}))
    first = t.version
    seen = []
    for n in range(1, 5):
        t.append(pa.table({"id": range(10 * n, 10 * n + 6), "s": ["x"] * 6}))
        t.update({"s": f"'u{n}'"}, where=f"id = {10 * n}")
        frame = t.changes(first).to_spark(session)
        found = frame.collect()
        seen.append(frame._jdf.queryExecution().optimizedPlan().toString().count("MapInArrow"))
        assert len(found) == 6 + 8 * n  # an append's six, and two of an update
    assert seen[1:] == seen[:1] * 3 and seen[0] <= 3
