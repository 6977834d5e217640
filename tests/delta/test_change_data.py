"""The change data feed: which rows the change files hold, that delta-rs reads them, and that we read its own."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse import errors

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
ROWS = pa.table({"id": list(range(10)), "p": ["ab"[i % 2] for i in range(10)], "x": [i / 2 for i in range(10)]})

CHANGED = [
    (1, "delete", 3, "b", 1.5),
    (2, "update_postimage", 7, "b", -1.0),
    (2, "update_preimage", 7, "b", 3.5),
    (3, "delete", 8, "a", 4.0),
    (3, "insert", 1000, "a", 3.0),
    (3, "update_postimage", 7, "z", 1.0),
    (3, "update_preimage", 7, "b", -1.0),
]
"""The changes of a delete of row 3, an update of row 7, and `merged`."""


def actions(log, kind: str) -> list[dict]:
    return [a[kind] for a in log if kind in a]


def made(path: Path, **more) -> bh.Table:
    bh.write(ROWS, str(path), format="delta", properties={**FEED, **more}, partition_by="p")
    return bh.open(str(path))


def keys(rows: pa.Table) -> list[tuple]:
    order = ("_commit_version", "_change_type", "id", "p", "x")
    return sorted(tuple(r[c] for c in order) for r in rows.to_pylist())


def by_deltalake(path: Path, start: int = 0) -> list[tuple]:
    return keys(pa.table(deltalake.DeltaTable(str(path)).load_cdf(starting_version=start)))


def merged(t: bh.Table):
    news = pa.table({"id": [7, 8, 1000], "p": ["z", "a", "a"], "x": [1.0, 2.0, 3.0]})
    merge = t.merge(news, "target.id = source.id").when_matched_update_all(where="source.id = 7").when_matched_delete()
    return merge.when_not_matched_insert_all().execute()


@pytest.mark.spec("D-012", "D-015", "D-122", "D-125", "D-130", "D-131")
@pytest.mark.feature("changeDataFeed", format="delta")
def test_files_of_changed_rows(tmp_path, delta):
    t = made(tmp_path)
    assert actions(delta.log(tmp_path)[0], "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 4}]
    t.delete("id = 3")
    t.update({"x": "-1"}, where="id = 7")
    merged(t)
    log = delta.log(tmp_path)
    for version, kinds in ((1, {"delete"}), (2, {"update_preimage", "update_postimage"})):
        [cdc] = actions(log[version], "cdc")
        assert set(cdc) == {"path", "partitionValues", "size", "dataChange"} and cdc["dataChange"] is False
        assert cdc["path"].startswith("_change_data/p=b/cdc-") and cdc["partitionValues"] == {"p": "b"}
        file = pq.ParquetFile(tmp_path / cdc["path"])
        assert file.schema_arrow.names == ["id", "x", "_change_type"]
        assert set(file.read()["_change_type"].to_pylist()) == kinds
        assert (tmp_path / cdc["path"]).stat().st_size == cdc["size"]
    found = keys(t.changes(1).to_arrow())
    assert found == CHANGED
    assert by_deltalake(tmp_path, 1) == found
    assert int(deltalake.DeltaTable(str(tmp_path)).history(1)[0]["operationMetrics"]["numAddedChangeFiles"]) == 3
    some = t.changes(1, columns=["id"], where="x < 0 and p = 'b'").to_arrow()
    assert sorted(some.select(["id", "_change_type"]).to_pylist(), key=str) == [
        {"id": 7, "_change_type": "update_postimage"},
        {"id": 7, "_change_type": "update_preimage"},
    ]


@pytest.mark.spec("D-124", "D-126")
def test_commits_whose_files_say_it(tmp_path, delta):
    t = made(tmp_path)
    t.append(pa.table({"id": [20], "p": ["a"], "x": [0.0]}))
    t.delete("p = 'b'")
    t.optimize()
    t.overwrite(pa.table({"id": [77], "p": ["a"], "x": [0.0]}))
    assert not any(actions(entry, "cdc") for entry in delta.log(tmp_path).values())
    assert not (tmp_path / "_change_data").exists()
    found = keys(t.changes(0).to_arrow())
    assert len(found) == 10 + 1 + 5 + 6 + 1 and found == by_deltalake(tmp_path)


def test_a_delete_of_whole_files_and_of_rows_names_all_of_them(tmp_path):
    t = made(tmp_path)
    t.delete("p = 'b' or id = 0")
    found = keys(t.changes(1).to_arrow())
    assert [row[2] for row in found] == [0, 1, 3, 5, 7, 9] and found == by_deltalake(tmp_path, 1)


def test_overwrite_where(tmp_path):
    t = made(tmp_path)
    t.overwrite(pa.table({"id": [6], "p": ["a"], "x": [9.0]}), where="id between 5 and 8")
    found = keys(t.changes(1).to_arrow())
    assert [row[1:3] for row in found] == [("delete", 5), ("delete", 6), ("delete", 7), ("delete", 8), ("insert", 6)]
    assert found == by_deltalake(tmp_path, 1)


@pytest.mark.spec("D-127")
def test_with_deletion_vectors(tmp_path, delta):
    """A delete needs no change files; updates and merges have them, since a new file does not say what was there."""
    t = made(tmp_path, **VECTORS)
    t.delete("id = 3")
    t.update({"x": "-1"}, where="id = 7")
    merged(t)
    t.delete("p = 'a'")
    t.overwrite(ROWS.slice(1, 1), where="id < 3")
    log = delta.log(tmp_path)
    assert [bool(actions(log[v], "cdc")) for v in range(6)] == [False, False, True, True, False, False]
    assert keys(t.changes(1).to_arrow()) == [
        *CHANGED,
        *((4, "delete", i, "a", i / 2) for i in (0, 2, 4, 6)),
        (4, "delete", 1000, "a", 3.0),
    ]


def test_merge_with_new_columns(tmp_path):
    t = made(tmp_path)
    news = pa.table({"id": [7, 99], "p": ["b", "b"], "x": [1.0, 2.0], "new": ["a", "b"]})
    merge = t.merge(news, "target.id = source.id", merge_schema=True)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = t.changes(1).to_arrow().select(["id", "new", "_change_type"]).to_pylist()
    assert sorted(found, key=str) == [
        {"id": 7, "new": "a", "_change_type": "update_postimage"},
        {"id": 7, "new": None, "_change_type": "update_preimage"},
        {"id": 99, "new": "b", "_change_type": "insert"},
    ]


def test_changes_that_deltalake_records(tmp_path):
    path = str(tmp_path / "t")
    deltalake.write_deltalake(path, ROWS, partition_by=["p"], configuration=FEED)
    theirs = deltalake.DeltaTable(path)
    theirs.delete("id = 3")
    theirs.update(updates={"x": "-1.0"}, predicate="id = 7")
    news = pa.table({"id": [7, 1000], "p": ["b", "b"], "x": [1.0, 3.0]})
    merge = theirs.merge(news, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    found = keys(bh.open(path).changes(0).to_arrow())
    assert found == by_deltalake(path) and len(found) == 10 + 1 + 2 + 3


def test_a_merge_that_only_deletes(tmp_path):
    t = made(tmp_path)
    t.merge(pa.table({"id": [3, 3, 4]}), "target.id = source.id").when_matched_delete().execute()
    found = keys(t.changes(1).to_arrow())
    assert [row[1:3] for row in found] == [("delete", 3), ("delete", 4)] and found == by_deltalake(tmp_path, 1)


@pytest.mark.parametrize("line", ['{"cdc":{"path":3}}', '{"cdc":[1]}', '{"cdc": 7, "x": 1}', '{"cdc":{"path":"a"'])
def test_damaged_actions(tmp_path, line):
    t = made(tmp_path)
    t.delete("id = 3")
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text() + line + "\n")
    with pytest.raises(errors.CorruptTableError):
        bh.open(str(tmp_path)).changes(1).to_arrow()


def test_a_failed_operation_leaves_no_change_file(tmp_path):
    t = made(tmp_path)
    before = sorted(p for p in tmp_path.rglob("*") if p.is_file())
    with pytest.raises(errors.EvaluationError):
        t.update({"x": "1 / (id - 4)"})
    with pytest.raises(errors.EvaluationError):
        t.delete("1 / (id - 4) > 5")
    with pytest.raises(errors.ConstraintViolationError):
        twice = pa.table({"id": [1, 1], "p": ["a", "a"], "x": [0.0, 0.0]})
        t.merge(twice, "target.id = source.id").when_matched_update_all().execute()
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == before


def test_names_of_the_feed(tmp_path):
    rows = pa.table({"id": [1], "_Change_Type": ["x"]})
    with pytest.raises(errors.SchemaError, match="name of the change data feed"):
        bh.write(rows, str(tmp_path / "t"), format="delta", properties=FEED)
    bh.write(rows, str(tmp_path / "t"), format="delta")
    t = bh.open(str(tmp_path / "t"))
    with pytest.raises(errors.SchemaError, match="name of the change data feed"):
        t.set_properties(FEED)
    fed = made(tmp_path / "u")
    with pytest.raises(errors.SchemaError, match="name of the change data feed"):
        fed.add_column("_commit_version", "bigint")
    assert fed.refresh().version == t.refresh().version == 0


def test_the_feed_turned_on_and_off(tmp_path, delta):
    bh.write(ROWS, str(tmp_path), format="delta")
    t = bh.open(str(tmp_path))
    t.set_properties(FEED)
    assert actions(delta.log(tmp_path)[1], "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 4}]
    t.update({"x": "0"}, where="id = 1")
    t.set_properties({"delta.enableChangeDataFeed": "false"})
    t.update({"x": "1"}, where="id = 1")
    kinds = [(r[0], r[1]) for r in keys(t.changes(2).to_arrow())]
    assert kinds == [(2, "update_postimage"), (2, "update_preimage"), (4, "delete"), (4, "insert")]


@pytest.mark.spark
@pytest.mark.feature("changeDataFeed", format="delta")
@pytest.mark.route("change data of Delta")
def test_on_spark(tmp_path, spark):
    t = made(tmp_path)
    t = bh.open(str(tmp_path), spark=spark)
    t.update({"x": "-1"}, where="id = 7 and hash(id) is not null")
    news = spark.createDataFrame([(8, "a", 2.0), (1000, "a", 3.0)], "id long, p string, x double")
    t.merge(news, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    t.delete("id = 3")
    t.delete("hash(id) is not null and id = 5")
    found = keys(t.changes(1).to_spark().toArrow())
    assert found == keys(t.changes(1).to_arrow()) == by_deltalake(tmp_path, 1)
    assert [row[1:3] for row in found] == [
        ("update_postimage", 7), ("update_preimage", 7), ("insert", 1000), ("update_postimage", 8),
        ("update_preimage", 8), ("delete", 3), ("delete", 5),
    ]  # fmt: skip


@pytest.mark.spec("D-136")
@pytest.mark.parametrize("feed", [FEED, {}])
def test_the_schema_changes_inside_the_range(tmp_path, feed):
    """Rows have the columns of the end version: null before it had them; a column of another type is refused."""
    bh.write(ROWS.select(["id"]).slice(0, 2), str(tmp_path), format="delta", properties=feed)
    t = bh.open(str(tmp_path))
    t.append(pa.table({"id": [7], "w": ["new"]}), merge_schema=True)
    t.update({"w": "'set'"}, "id = 0")
    found = t.changes(0).to_arrow()
    order = ("_commit_version", "id", "w")
    inserted = [r for r in found.to_pylist() if r["_change_type"] in ("insert", "update_postimage")]
    wanted = [(0, 0, None), (0, 1, None), (1, 7, "new"), (2, 0, "set")]
    assert sorted((tuple(r[c] for c in order) for r in inserted), key=str) == wanted
    t.overwrite(pa.table({"id": ["x"]}), overwrite_schema=True)
    with pytest.raises(errors.UnsupportedFeatureError, match="id"):
        bh.open(str(tmp_path)).changes(0).to_arrow()
