"""Branches and tags in SQL: procedures that move them, statements that make them, and names that read and write them,
as iceberg-spark has them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.table.refs import Ref

pytestmark = pytest.mark.spark


def rows(*ids) -> pa.Table:
    return pa.table({"id": list(ids)})


@pytest.fixture
def path(tmp_path) -> str:
    uri = str(tmp_path / "a täble")
    for n in (1, 2, 3):
        bh.write(rows(n), uri, format="iceberg", mode="append")
    return uri


@pytest.fixture
def run(spark):
    def rows(text: str) -> list[tuple]:
        return [tuple(r) for r in bh.sql(spark, text).collect()]

    return rows


def ids(run, name: str) -> list[int]:
    return sorted(id for (id,) in run(f"SELECT id FROM {name}"))


@pytest.mark.route("refs in SQL")
def test_procedures(spark, run, path):
    t = bh.open(path)
    third, second, first = t.refs.ancestors()
    times = {v: e.timestamp_ms for v, e in zip(t.refs.ancestors(), t.history())}
    assert run(f"CALL system.ancestors_of('{path}')") == [(v, times[v]) for v in (third, second, first)]
    assert run(f"CALL system.ancestors_of(table => '{path}', snapshot_id => {second})")[0] == (second, times[second])
    found = bh.sql(spark, f"CALL system.rollback_to_snapshot('{path}', {second})")
    assert found.columns == ["previous_snapshot_id", "current_snapshot_id"] and found.dtypes[0][1] == "bigint"
    assert [tuple(r) for r in found.collect()] == [(third, second)]
    assert run(f"CALL system.set_current_snapshot(table => '{path}', snapshot_id => {third})") == [(second, third)]
    moment = dt.datetime.fromtimestamp(times[second] / 1000, dt.UTC).isoformat()
    assert run(f"CALL system.rollback_to_timestamp('{path}', TIMESTAMP '{moment}')") == [(third, first)]
    t.refresh().refs.create_branch("b", third)
    assert run(f"CALL system.fast_forward('{path}', 'main', 'b')") == [("main", first, third)]
    t.refresh().set_properties({"write.wap.enabled": "true"})
    staged = t.append(rows(4), metadata={"wap.id": "x"}).version
    t.append(rows(5))
    assert run(f"CALL system.publish_changes('{path}', 'x')") == [(staged, t.refresh().version)]
    branch = bh.open(path, ref="b").append(rows(6)).version
    assert run(f"CALL system.cherrypick_snapshot('{path}', {branch})") == [(branch, t.refresh().version)]
    assert ids(run, f"iceberg.`{path}`") == [1, 2, 3, 4, 5, 6]
    assert run(f"CALL system.set_current_snapshot('{path}', ref => 'b')")[0][1] == branch
    with pytest.raises(errors.InvalidArgumentError, match="needs a version or a ref"):
        run(f"CALL system.set_current_snapshot('{path}')")
    with pytest.raises(errors.VersionNotFoundError, match="no branch 'c'"):
        run(f"CALL system.fast_forward('{path}', 'c', 'b')")
    with pytest.raises(errors.InvalidArgumentError, match="needs the argument 'wap_id'"):
        run(f"CALL system.publish_changes('{path}')")


def test_names_of_branches_and_tags(spark, run, path):
    t = bh.open(path)
    t.refs.create_branch("audit")
    t.refs.create_tag("old", t.refs.ancestors()[1])
    main, branch, name = f"iceberg.`{path}`", f"iceberg.`{path}`.branch_audit", f"boathouse.`{path}`"
    run(f"INSERT INTO {branch} VALUES (4)")
    run(f"UPDATE {branch} SET id = 9 WHERE id = 2")
    run(f"DELETE FROM {branch} WHERE id = 1")
    run(f"MERGE INTO {branch} AS t USING (SELECT 7L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert ids(run, main) == [1, 2, 3] and ids(run, branch) == [3, 4, 7, 9]
    assert ids(run, f"{main} VERSION AS OF 'audit'") == [3, 4, 7, 9]
    assert ids(run, f"{name} FOR SYSTEM_VERSION AS OF 'old'") == ids(run, f"{main}.tag_old") == [1, 2]
    joined = f"SELECT count(*) FROM {main} AS m JOIN {branch} AS b ON m.id = b.id JOIN {main}.tag_old AS o"
    assert run(joined) == [(2,)]
    with pytest.raises(errors.ReadOnlyError, match="`old` is a tag"):
        run(f"INSERT INTO {main}.tag_old VALUES (4)")
    with pytest.raises(errors.VersionNotFoundError, match="no branch or tag 'none'"):
        run(f"SELECT * FROM {main} VERSION AS OF 'none'")
    spark.sql("CREATE DATABASE quay")
    try:
        spark.sql(f"CREATE EXTERNAL TABLE quay.ships (id BIGINT) USING parquet LOCATION '{path}'")
        assert ids(run, "quay.ships.branch_audit") == [3, 4, 7, 9] and ids(run, "quay.ships") == [1, 2, 3]
        spark.sql("CREATE TABLE quay.branch_x (id BIGINT) USING parquet")
        assert ids(run, "quay.branch_x") == []
    finally:
        spark.sql("DROP DATABASE quay CASCADE")


def test_a_restore(run, path):
    t = bh.open(path)
    second = t.refs.ancestors()[1]
    run(f"RESTORE iceberg.`{path}` TO VERSION AS OF {second}")
    assert ids(run, f"iceberg.`{path}`") == [1, 2] and t.refresh().version == second


def test_writes_from_spark_to_a_branch(spark, path):
    bh.open(path).refs.create_branch("audit")
    t = bh.open(path, ref="audit", spark=spark)
    t.append(spark.range(10, 12))
    t.delete("id = 10")
    assert sorted(r["id"] for r in t.to_spark().collect()) == [1, 2, 3, 11]
    spark.range(20, 21).write.format("boathouse").mode("append").option("branch", "audit").save(path)
    read = spark.read.format("boathouse").option("branch", "audit").load(path)
    assert sorted(r["id"] for r in read.collect()) == [1, 2, 3, 11, 20] and bh.open(path).count() == 3


def test_branches_and_tags_of_lance(spark, run, tmp_path):
    """Files of the main line are read by a base path, also by workers; what they write is in the branch's folder."""
    path = str(tmp_path / "ein täble")
    bh.write(rows(1, 2, 3), path, format="lance")
    name = f"lance.`{path}`"
    run(f"ALTER TABLE {name} CREATE BRANCH audit")
    run(f"ALTER TABLE {name} CREATE TAG old AS OF VERSION 1")
    t = bh.open(path, ref="audit", spark=spark)
    t.append(spark.range(10, 13))
    t.delete("id = 10")
    t.update({"id": "id + 100"}, where="id = 2")
    run(f"INSERT INTO {name}.branch_audit VALUES (20)")
    found = sorted(t.refresh().to_arrow()["id"].to_pylist())
    assert found == ids(run, f"{name}.branch_audit") == [1, 3, 11, 12, 20, 102]
    assert ids(run, name) == ids(run, f"{name} VERSION AS OF 'old'") == [1, 2, 3]
    with pytest.raises(errors.UnsupportedFeatureError, match="retention of a tag"):
        run(f"ALTER TABLE {name} CREATE TAG other RETAIN 7 DAYS")
    with pytest.raises(errors.UnsupportedFeatureError, match="fast_forward"):
        run(f"CALL system.fast_forward('{path}', 'audit', 'main')")
    run(f"ALTER TABLE {name} DROP TAG old")
    run(f"ALTER TABLE {name} DROP BRANCH audit")
    assert list(bh.open(path).refs) == ["main"]


def test_statements(spark, run, path):
    t, name = bh.open(path), f"iceberg.`{path}`"
    third, second, _ = t.refs.ancestors()
    assert run(f"ALTER TABLE {name} CREATE BRANCH audit AS OF VERSION {second} RETAIN 7 DAYS") == []
    run(f"ALTER TABLE {name} CREATE BRANCH IF NOT EXISTS audit")
    run(f"ALTER TABLE {name} CREATE OR REPLACE TAG `a-b` RETAIN 2 HOURS")
    assert dict(t.refresh().refs) == {
        "main": Ref("main", "branch", third),
        "audit": Ref("audit", "branch", second, max_ref_age_ms=7 * 86_400_000),
        "a-b": Ref("a-b", "tag", third, max_ref_age_ms=7_200_000),
    }
    run(f"ALTER TABLE {name} REPLACE BRANCH audit WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS")
    assert t.refresh().refs["audit"] == Ref("audit", "branch", third, 3, 2 * 86_400_000, 7 * 86_400_000)
    with pytest.raises(errors.AlreadyExistsError, match="there is a tag 'a-b'"):
        run(f"ALTER TABLE {name} CREATE BRANCH `a-b`")
    with pytest.raises(errors.VersionNotFoundError, match="no tag 'none'"):
        run(f"ALTER TABLE {name} REPLACE TAG none")
    run(f"ALTER TABLE {name} DROP BRANCH audit")
    run(f"ALTER TABLE {name} DROP BRANCH IF EXISTS audit")
    run(f"ALTER TABLE {name} DROP TAG `a-b`")
    assert list(t.refresh().refs) == ["main"]
    spark.sql("CREATE TABLE plain (id BIGINT) USING parquet")
    try:
        run("ALTER TABLE plain SET TBLPROPERTIES ('a' = 'b')")
    finally:
        spark.sql("DROP TABLE plain")
