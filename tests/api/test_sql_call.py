"""CALL: Iceberg's procedures by their names, arguments and results."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
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
    ("more", "error", "said"),
    [
        ("strategy => 'sort'", errors.InvalidArgumentError, "no sort order"),
        ("strategy => 'pile'", errors.InvalidArgumentError, "the strategy is 'pile'"),
        ("strategy => 'binpack', sort_order => 'id'", errors.InvalidArgumentError, "and a sort order is given"),
        ("sort_order => 'size'", errors.ColumnNotFoundError, "size"),
        ("options => map('max-file-size-bytes', '2')", errors.UnsupportedFeatureError, "not offered"),
        ("sort_order => 'id', options => map('min-input-files', '2')", errors.UnsupportedFeatureError, "not offered"),
        ("options => map('min-input-files', 'x')", errors.InvalidArgumentError, "Pass a number"),
    ],
)
def test_what_is_not_offered_is_refused(run, path, more, error, said):
    with pytest.raises(error, match=said):
        run(f"CALL system.rewrite_data_files('{path}', {more})")
    assert len(bh.open(path).history()) == 3


def test_rows_are_sorted_by_a_rewrite(run, path):
    call = (
        f"CALL system.rewrite_data_files(table => '{path}', sort_order => 'city DESC NULLS LAST, truncate(10, `id`)')"
    )
    assert run(call)[0]["rewritten_data_files_count"] == 3
    found = bh.open(path)
    assert found.to_arrow()["city"].to_pylist() == ["b"] * 3 + ["a"] * 3
    assert set(found.inspect.files()["sort_order_id"].to_pylist()) == {None}
    found.sort_by("id desc")
    (row,) = run(f"CALL system.rewrite_data_files('{path}', strategy => 'sort', options => map('rewrite-all', 'true'))")
    assert row["failed_data_files_count"] == 0 and row["rewritten_bytes_count"] > 0
    assert bh.open(path).to_arrow()["id"].to_pylist() == [5, 4, 3, 2, 1, 0]
    assert set(bh.open(path).inspect.files()["sort_order_id"].to_pylist()) == {1}


def test_which_files_are_rewritten(run, path):
    call = f"CALL system.rewrite_data_files('{path}', where => 'id > 3', options => map('{{}}'))"
    few = call.format("min-input-files', '3")
    assert run(few)[0]["rewritten_data_files_count"] == 0
    assert run(call.format("rewrite-all', 'true"))[0]["rewritten_data_files_count"] == 1  # only the third can have such
    assert len(bh.open(path).files()) == 3 and bh.open(path).count() == 6


CHANGES = "SELECT * FROM {} ORDER BY _change_ordinal, id, _change_type"


@pytest.mark.feature("changelog views", format="iceberg")
def test_changes_are_a_view(spark, run, tmp_path):
    uri = str(tmp_path / "shïps")
    t = bh.create(uri, "id bigint, city string, m map<string, int>", format="iceberg")
    t.append(pa.table({"id": [1, 2, 3], "city": ["a", "b", "c"]}))
    first = t.version
    t.update({"city": "'z'"}, "id = 2")
    t.optimize()
    t.delete("id = 3")
    t.append(pa.table({"id": [3, 4], "city": ["c", "d"]}))
    versions = [e.version for e in t.history() if not e.metadata_only][::-1]

    def rows(view: str) -> list[tuple]:
        return [tuple(r.values()) for r in run(CHANGES.format(view))]

    (made,) = run(f"CALL system.create_changelog_view('{uri}', options => map('start-snapshot-id', '{first}'))")
    assert made == {"changelog_view": "`shïps_changes`"}
    expected = [
        (2, "b", None, "DELETE", 0, versions[1]), (2, "z", None, "INSERT", 0, versions[1]),
        (3, "c", None, "DELETE", 1, versions[-2]),
        (3, "c", None, "INSERT", 2, versions[-1]), (4, "d", None, "INSERT", 2, versions[-1]),
    ]  # fmt: skip
    assert rows("`shïps_changes`") == expected
    names = "table => '{}', changelog_view => 'v', options => map('start-snapshot-id', string({}))"
    given = names.format(uri, first)
    assert run(f"CALL system.create_changelog_view({given}, identifier_columns => array('id'))") == [
        {"changelog_view": "v"}
    ]
    kinds = {"DELETE": "UPDATE_BEFORE", "INSERT": "UPDATE_AFTER"}
    updated = [(*r[:3], kinds[r[3]], *r[4:]) if r[0] == 2 else r for r in expected]
    assert sorted(rows("v"), key=str) == sorted(updated, key=str)
    run(f"CALL system.create_changelog_view({given}, net_changes => true)")
    assert rows("v") == [expected[0], expected[1], expected[4]]
    everything = f"table => '{uri}', changelog_view => 'v'"
    run(f"CALL system.create_changelog_view({everything}, net_changes => true)")
    assert [r[:2] + r[3:5] for r in rows("v")] == [
        (1, "a", "INSERT", 0), (2, "z", "INSERT", 1), (3, "c", "INSERT", 3), (4, "d", "INSERT", 3),
    ]  # fmt: skip
    times = {e.version: e.timestamp_ms for e in t.history()}
    run(
        f"CALL system.create_changelog_view({everything}, options => map('start-timestamp', "
        f"'{times[versions[0]]}', 'end-timestamp', '{times[versions[-2]]}'))"
    )
    assert rows("v") == expected[:3]
    for options in (f"'end-snapshot-id', '{first}', 'start-snapshot-id', '{first}'", "'end-timestamp', '1'"):
        run(f"CALL system.create_changelog_view({everything}, options => map({options}))")
        assert rows("v") == []
    t.set_nullable("id", False, unchecked=True)
    t.set_identifiers(["id"])
    run(f"CALL system.create_changelog_view({given}, compute_updates => true)")
    assert {r[3] for r in rows("v")} == {"UPDATE_BEFORE", "UPDATE_AFTER", "INSERT", "DELETE"}


def test_views_of_changes_that_cannot_be(run, path):
    call = f"CALL system.create_changelog_view('{path}', changelog_view => 'w', "
    for more, error, said in (
        ("compute_updates => true", errors.InvalidArgumentError, "the table has none"),
        ("identifier_columns => array('id'), net_changes => true", errors.InvalidArgumentError, "net changes"),
        ("identifier_columns => array('size')", errors.ColumnNotFoundError, "no column `size`"),
        ("remove_carryovers => false", errors.UnsupportedFeatureError, "carried over"),
        ("options => map('start-snapshot-id', '7')", errors.VersionNotFoundError, "7 is not an ancestor"),
        ("options => map('locality', '7')", errors.UnsupportedFeatureError, "not offered"),
    ):
        with pytest.raises(error, match=said):
            run(f"{call}{more})")
    bh.open(path).append(pa.table({"id": [0], "city": ["twice"]}))
    bh.open(path).update({"city": "concat(city, '!')"}, "id = 0")
    run(f"{call}identifier_columns => array('id'))")
    with pytest.raises(Exception, match="multiple rows with the same identifier fields"):
        run("SELECT * FROM w")


@pytest.mark.feature(
    "snapshot of a folder of Parquet files", "convert a folder of Parquet files in place", format="iceberg"
)
def test_a_folder_of_files_becomes_a_table(run, tmp_path):
    source = tmp_path / "dröp"
    for city, ids in (("Kiel", [1, 2]), ("Oslo", [3])):
        for year in (2024, 2025):
            (source / f"city={city}" / f"y={year}").mkdir(parents=True)
            pq.write_table(pa.table({"id": ids}), source / f"city={city}" / f"y={year}" / "a.parquet")
    uri = str(tmp_path / "new")
    call = f"CALL system.snapshot('parquet.`{source}`', '{uri}'"
    assert run(f"{call}, properties => map('a', 'b'))") == [{"imported_files_count": 4}]
    t = bh.open(uri)
    assert str(t.schema) == "id: bigint\ncity: string\ny: int" and t.properties["gc.enabled"] == "false"
    assert sorted(r["id"] for r in run(f"SELECT * FROM iceberg.`{uri}` WHERE y = 2024")) == [1, 2, 3]
    with pytest.raises(errors.AlreadyExistsError):
        run(f"{call})")
    for arguments, error, said in (
        (f"'orc.`{source}`', '{uri}2'", errors.UnsupportedFeatureError, "orc files is not offered"),
        (f"'parquet.`{source}`', 'name'", errors.UnsupportedFeatureError, "by the name 'name'"),
        (f"'parquet.`{source}`', '{uri}2', '{uri}3'", errors.UnsupportedFeatureError, "made at its path"),
        (f"'{tmp_path}/none', '{uri}2'", errors.NotFoundError, "no files to make a table of"),
    ):
        with pytest.raises(error, match=said):
            run(f"CALL system.snapshot({arguments})")
    with pytest.raises(errors.UnsupportedFeatureError, match="no backup"):
        run(f"CALL system.migrate('{source}', backup_table_name => 'b')")
    assert run(f"CALL system.migrate('parquet.`{source}`', map('owner', 'x'))") == [{"migrated_files_count": 4}]
    assert bh.open(str(source)).count() == 6 and bh.open(str(source)).properties["migrated"] == "true"


def test_a_table_is_registered(run, path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_CATALOG__PIER__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PIER__URI", f"sqlite:///{tmp_path}/pier.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PIER__WAREHOUSE", str(tmp_path / "warehouse"))
    bh.catalog("pier").create_namespace("db")
    head = max(tmp_path.glob("a täble/metadata/v*.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    (row,) = run(f"CALL pier.system.register_table('pier.db.ships', '{head}')")
    assert row == {
        "current_snapshot_id": bh.open(path).version, "total_records_count": 6, "total_data_files_count": 3,
    }  # fmt: skip
    assert bh.open("pier.db.ships").count() == 6
    with pytest.raises(errors.InvalidArgumentError, match="needs a catalog"):
        run(f"CALL system.register_table('db.ships', '{head}')")


@pytest.mark.feature("rewrite of paths", format="iceberg")
def test_paths_are_rewritten(run, path, tmp_path):
    call = f"CALL system.rewrite_table_path('{path}', '{path}', 's3://bucket/t', staging_location => '{tmp_path}/stage'"
    with pytest.raises(errors.UnsupportedFeatureError, match="part of a history"):
        run(f"{call}, start_version => 'v1.metadata.json')")
    (row,) = run(f"{call}, end_version => 'v3.metadata.json')")
    assert row == {
        "latest_version": "v3.metadata.json",
        "file_list_location": f"file://{tmp_path}/stage/file-list",
        "rewritten_manifest_file_paths_count": 3,
        "rewritten_delete_file_paths_count": 0,
    }
    assert len((tmp_path / "stage" / "file-list").read_text().splitlines()) == 3 + 3 + 3 + 1


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


@pytest.mark.feature("data files added in place", format="iceberg")
def test_files_are_added(spark, run, tmp_path):
    source, uri = tmp_path / "dröp", str(tmp_path / "ports")
    for city, ids in (("Kiel", [1, 2]), ("Oslo", [3])):
        (source / f"city={city}").mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), source / f"city={city}" / "a.parquet")
    bh.create(uri, "id bigint, city string", format="iceberg", partition_by=["city"])
    call = f"CALL system.add_files('{uri}', 'parquet.`{source}`'"
    assert run(f"{call}, map('city', 'Oslo'), parallelism => 2)") == [
        {"added_files_count": 1, "changed_partition_count": 1}
    ]
    with pytest.raises(errors.InvalidArgumentError, match="the table has it"):
        run(f"{call}, check_duplicate_files => true)")
    with pytest.raises(errors.InvalidArgumentError, match="'nothing' names no files"):
        run(f"CALL system.add_files('{uri}', 'nothing')")
    spark.sql("CREATE DATABASE quay")
    try:
        columns = "id BIGINT, city STRING) USING parquet PARTITIONED BY (city"
        spark.sql(f"CREATE TABLE quay.ships ({columns}) LOCATION '{source}'")
        given = f"source_table => 'quay.ships', table => '{uri}', partition_filter => map('city', 'Kiel')"
        run(f"CALL system.add_files({given})")
        assert sorted(r["id"] for r in run(f"SELECT * FROM iceberg.`{uri}`")) == [1, 2, 3]
        with pytest.raises(errors.UnsupportedFeatureError, match=r"quay\.boats is not made of Parquet"):
            spark.sql("CREATE TABLE quay.boats (id BIGINT) USING csv")
            run(f"CALL system.add_files('{uri}', 'quay.boats')")
    finally:
        spark.sql("DROP DATABASE quay CASCADE")
