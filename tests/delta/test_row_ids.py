"""Row tracking: rows keep their ids and versions when they are copied, updated, compacted (PROTOCOL.md, "Row
Tracking")."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import boathouse as bh
from boathouse.errors import UnsupportedFeatureError

NAMES = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-2",
}


@pytest.fixture(params=["copies", "vectors"])
def tracked(with_features, delta, request):
    more = {"delta.enableDeletionVectors": "true"} if request.param == "vectors" else {}
    readers = ["deletionVectors"] if more else []
    fields = [delta.field("x", "long"), delta.field("s", "string")]
    table = with_features("rowTracking", "domainMetadata", readers=readers, fields=fields, properties=NAMES | more)
    opened = bh.open(str(table))
    opened.append(pa.table({"x": [0, 1, 2, 3], "s": ["a", "b", "c", "d"]}))
    opened.append(pa.table({"x": [4, 5], "s": ["e", "f"]}))
    return opened


def lines(table):
    """x -> (row id, row version)"""
    found = table.scan(columns=["x", "_row_id", "_row_version"]).to_arrow().to_pylist()
    return {r["x"]: (r["_row_id"], r["_row_version"]) for r in found}


FIRST = {0: (0, 1), 1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (4, 2), 5: (5, 2)}


@pytest.mark.spec("D-303")
def test_copies_keep_ids_and_versions(tracked):
    assert lines(tracked) == FIRST
    tracked.delete("x = 1")
    assert lines(tracked) == {x: v for x, v in FIRST.items() if x != 1}
    tracked.optimize()
    assert lines(tracked) == {x: v for x, v in FIRST.items() if x != 1}
    tracked.append(pa.table({"x": [9], "s": ["z"]}))
    new = lines(tracked).pop(9)
    assert new[0] > 5 and new[1] == tracked.version
    tracked.optimize(zorder_by=["x"])
    assert lines(tracked) == {x: v for x, v in FIRST.items() if x != 1} | {9: new}


@pytest.mark.spec("D-303")
def test_updates_keep_ids_and_get_a_version(tracked):
    tracked.update({"s": "'new'"}, where="x in (2, 4)")
    version = tracked.version
    assert lines(tracked) == FIRST | {2: (2, version), 4: (4, version)}
    tracked.update({"s": "'newer'"}, where="x = 2")
    assert lines(tracked) == FIRST | {2: (2, tracked.version), 4: (4, version)}


@pytest.mark.spec("D-303")
def test_merges_keep_ids(tracked):
    source = pa.table({"x": [1, 5, 7], "s": ["u", "u", "i"]})
    tracked.merge(source, "target.x = source.x").when_matched_update_all().when_not_matched_insert_all().execute()
    found, version = lines(tracked), tracked.version
    new = found.pop(7)
    assert found == FIRST | {1: (1, version), 5: (5, version)}
    assert new[0] > 5 and new[1] == version


@pytest.mark.spec("D-303")
def test_an_overwrite_of_some_rows_keeps_the_others(tracked):
    tracked.overwrite(pa.table({"x": [3], "s": ["again"]}), where="x >= 3 and x < 5")
    found, version = lines(tracked), tracked.version
    new = found.pop(3)
    assert found == {x: v for x, v in FIRST.items() if x not in (3, 4)}
    assert new[0] > 5 and new[1] == version


def test_readers_see_no_more_columns(tracked, delta):
    tracked.update({"s": "'new'"}, where="x = 2")
    rows = QueryBuilder().register("t", DeltaTable(tracked.uri)).execute("select * from t order by x").read_all()
    assert pa.table(rows).column_names == ["x", "s"] == tracked.to_arrow().column_names
    files = tracked.files().column("path").to_pylist()
    stored = [pq.read_schema(f.removeprefix("file://")).names for f in files]
    assert ["x", "s", "_row-id-col-1", "_row-commit-version-col-2"] in stored
    assert ["x", "s"] in stored, "rows that are new take both from their file"
    entries = delta.log(tracked.uri.removeprefix("file://"))
    (info,) = (a["commitInfo"] for a in entries[max(entries)] if "commitInfo" in a)
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_tables_that_do_not_track_rows_have_no_ids(tmp_path):
    bh.write(pa.table({"x": [1]}), str(tmp_path / "t"), format="delta")
    with pytest.raises(UnsupportedFeatureError, match="_row_id"):
        bh.open(str(tmp_path / "t")).scan(columns=["x", "_row_id"]).to_arrow()


@pytest.mark.spark
def test_rows_keep_their_ids_on_spark(tracked, spark):
    table = bh.open(tracked.uri, spark=spark)
    source = spark.createDataFrame([(1, "u"), (7, "i")], "x long, s string")
    table.merge(source, "target.x = source.x").when_matched_update_all().when_not_matched_insert_all().execute()
    version = table.version
    table.update({"s": "concat(s, 'x')"}, where="x = 2")
    found = lines(table)
    assert found.pop(7)[0] > 5
    assert found == FIRST | {1: (1, version), 2: (2, version + 1)}
    assert {
        r.x: (r._row_id, r._row_version)
        for r in table.scan(columns=["x", "_row_id", "_row_version"]).to_spark().collect()
    } == lines(table)
