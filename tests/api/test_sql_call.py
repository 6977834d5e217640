"""CALL: Iceberg's procedures by their names, arguments and results."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors

pytestmark = pytest.mark.spark


@pytest.fixture
def path(tmp_path) -> str:
    """Three files of two rows each."""
    uri = str(tmp_path / "a täble")
    for i in range(3):
        bh.write(pa.table({"id": [2 * i, 2 * i + 1], "city": ["b", "a"]}), uri, format="iceberg", mode="append")
    return uri


@pytest.fixture
def run(spark):
    def rows(text: str) -> list[dict]:
        return [r.asDict() for r in bh.sql(spark, text).collect()]

    return rows


@pytest.mark.route("CALL")
def test_files_are_rewritten(run, path):
    sizes = bh.open(path).files()["size"].to_pylist()
    assert run(f"CALL system.rewrite_data_files('{path}')") == [
        {
            "rewritten_data_files_count": 3,
            "added_data_files_count": 1,
            "rewritten_bytes_count": sum(sizes),
            "failed_data_files_count": 0,
            "removed_delete_files_count": 0,
        }
    ]
    assert sorted(bh.open(path).to_arrow()["id"].to_pylist()) == list(range(6))
    (again,) = run(f"call SYSTEM.Rewrite_Data_Files(TABLE => 'iceberg.`{path}`')")
    assert set(again.values()) == {0}


def test_arguments_are_values_of_spark_s_sql(run, path):
    given = "options => map('target-file-size-bytes', string(1 << 20)), sort_order => 'zorder(city, `id`)'"
    assert run(f"CALL system.rewrite_data_files({given}, table => '{path}')")[0]["rewritten_data_files_count"] == 3
    assert bh.open(path).to_arrow()["city"].to_pylist() == ["a"] * 3 + ["b"] * 3


def test_deletes_are_rewritten(run, path):
    table = bh.open(path)
    table.set_properties({"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"})
    for i in (0, 2):
        table.delete(f"id = {i}")
    table.delete("id = 1 AND city = 'a'", dry_run=True)
    table.set_properties({"format-version": "3"})
    (row,) = run(f"CALL system.rewrite_position_delete_files('{path}')")
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (2, 2)
    assert row["rewritten_bytes_count"] > 0 and row["added_bytes_count"] > 0
    assert bh.open(path).count() == 4


def test_tables_by_name(spark, run, path):
    spark.sql("CREATE DATABASE harbour")
    try:
        spark.sql(f"CREATE EXTERNAL TABLE harbour.ships (id BIGINT) USING parquet LOCATION '{path}'")
        assert run("CALL system.rewrite_data_files('harbour.ships')")[0]["rewritten_data_files_count"] == 3
        assert run("CALL spark_catalog.system.rewrite_data_files('harbour.ships')")[0]["added_data_files_count"] == 0
        with pytest.raises(errors.TableNotFoundError, match=r"no table harbour\.boats"):
            run("CALL system.rewrite_data_files('harbour.boats')")
    finally:
        spark.sql("DROP DATABASE harbour CASCADE")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("system.fly('{path}')", "no procedure system.fly.*rewrite_data_files"),
        ("system.rewrite_data_files('{path}', tabel => 'x')", "has no argument 'tabel'.*strategy => string"),
        ("system.rewrite_data_files()", "needs the argument 'table'"),
        ("system.rewrite_data_files('{path}', table => 'x')", "is given 'table' twice"),
        ("system.rewrite_position_delete_files('{path}', map(), 1)", "at most 2 arguments"),
        ("system.rewrite_data_files(table => null)", "is no string"),
    ],
)
def test_wrong_calls_are_refused(run, path, text, said):
    with pytest.raises(errors.InvalidArgumentError, match=said):
        run("CALL " + text.format(path=path))
    assert len(bh.open(path).history()) == 3


@pytest.mark.parametrize(
    "more", ["strategy => 'sort'", "sort_order => 'id DESC'", "options => map('min-input-files', '2')"]
)
def test_what_is_not_offered_is_refused(run, path, more):
    with pytest.raises(errors.UnsupportedFeatureError, match="not offered"):
        run(f"CALL system.rewrite_data_files('{path}', {more})")


def test_of_other_formats_and_of_no_table(run, tmp_path):
    with pytest.raises(errors.TableNotFoundError, match="nowhere"):
        run(f"CALL system.rewrite_data_files('{tmp_path}/nowhere')")
    bh.write(pa.table({"id": [1]}), str(tmp_path / "d"))
    with pytest.raises(errors.UnsupportedFeatureError, match="for Iceberg tables, and this is delta"):
        run(f"CALL system.rewrite_data_files('delta.`{tmp_path}/d`')")


def test_procedures_of_others_are_sparks(spark):
    with pytest.raises(Exception, match=r"(?i)CALL|procedure|catalog"):
        bh.sql(spark, "CALL other.f(1)")


def test_snapshots_expire(run, path):
    first = bh.open(path).history()[-1].version
    (row,) = run(f"CALL system.expire_snapshots('{path}', snapshot_ids => array({first}))")
    assert row == {
        "deleted_data_files_count": 0,
        "deleted_position_delete_files_count": 0,
        "deleted_equality_delete_files_count": 0,
        "deleted_manifest_files_count": 0,
        "deleted_manifest_lists_count": 1,
        "deleted_statistics_files_count": 0,
    }
    bh.open(path).optimize()
    (row,) = run(f"CALL system.expire_snapshots('{path}', current_timestamp() + INTERVAL 1 DAY, retain_last => 1)")
    assert (row["deleted_data_files_count"], row["deleted_manifest_lists_count"]) == (3, 2)
    assert bh.open(path).count() == 6
    with pytest.raises(errors.UnsupportedFeatureError, match="not offered"):
        run(f"CALL system.expire_snapshots('{path}', clean_expired_metadata => true)")


def test_orphans_are_removed(run, path, tmp_path):
    stray = tmp_path / "a täble" / "data" / "stray.parquet"
    stray.write_bytes(b"x")
    os.utime(stray, (0, 0))
    found = [{"orphan_file_location": f"file://{stray}"}]
    assert run(f"CALL system.remove_orphan_files('{path}', dry_run => true)") == found and stray.exists()
    assert run(f"CALL system.remove_orphan_files(table => '{path}', location => 'file:{path}')") == found
    assert not stray.exists() and bh.open(path).count() == 6
    with pytest.raises(errors.InvalidArgumentError, match="72 hours"):
        run(f"CALL system.remove_orphan_files('{path}', older_than => current_timestamp())")
    with pytest.raises(errors.UnsupportedFeatureError, match="only the table's own location"):
        run(f"CALL system.remove_orphan_files('{path}', location => '{tmp_path}')")


def test_manifests_are_rewritten(run, path):
    assert run(f"CALL system.rewrite_manifests('{path}', use_caching => false)") == [
        {"rewritten_manifests_count": 3, "added_manifests_count": 1}
    ]
    (again,) = run(f"CALL system.rewrite_manifests('{path}', spec_id => 0)")
    assert set(again.values()) == {0} and bh.open(path).count() == 6
    with pytest.raises(errors.InvalidArgumentError, match="not a field of partition spec 0"):
        run(f"CALL system.rewrite_manifests('{path}', sort_by => array('city'))")
