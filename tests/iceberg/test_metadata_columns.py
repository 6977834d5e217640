"""Metadata columns in scans: places of rows, deleted rows, partitions, row lineage."""

import json

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from mixed_files import FORMATS, opener

import boathouse as bh
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg import tasks
from boathouse.types import INT64, STRING, Field, Schema

IDS = Schema((Field("id", INT64), Field("p", STRING)))


def rows(*ids, p="a"):
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([p] * len(ids), pa.string())})


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


@pytest.fixture
def changed(new):
    """A table of two specs with files of every format, a vector, position deletes and equality deletes."""
    files = new(IDS, partition_by=["p"]).upgrade()
    for n, format in enumerate(FORMATS):
        files.commit(files.file(format, rows(*range(10 * n, 10 * n + 5)), partition={"p": "a"}))
    parquet, orc, _ = files.live()
    files.commit(*files.vectors({parquet: [0, 4]}, {"p": "a"}))
    files.commit(files.positions([(orc, 1), (orc, 2)], {"p": "a"}))
    files.commit(files.equality(pa.table({"id": pa.array([22, 24], pa.int64())}), [1], partition={"p": "a"}))

    def change(document):
        field = {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[4]"}
        document["partition-specs"].append({"spec-id": 1, "fields": [field]})
        document["default-spec-id"], document["last-partition-id"] = 1, 1001

    files.edit(change)
    files.commit(files.file("parquet", rows(100, 101, p="z"), partition={"id_bucket": 3}), spec=1)
    return files


ALL = ["id", "_file", "_pos", "_spec_id", "_partition"]


def expected(files):
    names = dict(zip((0, 10, 20, 100), files.live()))
    for first, path in names.items():
        for n in range(2 if first == 100 else 5):
            partition = {"p": None, "id_bucket": 3} if first == 100 else {"p": "a", "id_bucket": None}
            yield {"id": first + n, "_file": path, "_pos": n, "_spec_id": int(first == 100), "_partition": partition}


DEAD = [0, 4, 11, 12, 22, 24]


@pytest.mark.spec("I-102")
def test_the_places_of_rows_on_merge_on_read_files(changed):
    scan = bh.open(str(changed.root)).scan
    live = [r for r in expected(changed) if r["id"] not in DEAD]
    found = scan(ALL).to_arrow()
    assert found.column_names == ALL and sorted(found.to_pylist(), key=lambda r: r["id"]) == live
    # In any order, under conditions, alone, and batch by batch.
    for columns in (ALL[::-1], ["_pos", "p", "_file"], ["_partition"], ["_spec_id", "id"]):
        for where, kept in ((None, live), ("id > 11 AND p = 'a'", [r for r in live if 11 < r["id"] < 100])):
            found = scan(columns, where).to_arrow()
            assert found.column_names == columns and found.num_rows == len(kept)
            reader = scan(columns, where).to_reader()
            assert reader.schema == found.schema and reader.read_all().equals(found)
            for name in set(columns) & {"_pos", "_spec_id"}:
                assert sorted(found[name].to_pylist()) == sorted(r[name] for r in kept)
    assert scan(ALL, "id = 3").to_arrow().to_pylist() == [live[2]]


@pytest.mark.spec("I-102")
def test_deleted_rows_are_marked(changed):
    scan = bh.open(str(changed.root)).scan
    wanted = [{**r, "_deleted": r["id"] in DEAD} for r in expected(changed)]
    found = scan([*ALL, "_deleted"]).to_arrow()
    assert sorted(found.to_pylist(), key=lambda r: r["id"]) == wanted
    assert found.schema.field("_deleted") == pa.field("_deleted", pa.bool_(), False)
    assert scan(["_deleted"]).count() == 17 and scan(["id"]).count() == 11
    some = scan(["_deleted", "id"], "id BETWEEN 4 AND 12 AND p = 'a'").to_arrow().to_pylist()
    assert some == [{"_deleted": n != 10, "id": n} for n in (4, 10, 11, 12)]


@pytest.mark.spec("I-102")
def test_a_table_without_partitions_and_deletes(make):
    table, _ = make(rows(1, 2))
    found = table.scan(["_partition", "_deleted", "_sequence", "id"]).to_arrow().to_pylist()
    assert found == [{"_partition": {}, "_deleted": False, "_sequence": 1, "id": n} for n in (1, 2)]
    for columns, error in ((["_change_type"], ColumnNotFoundError), (["_FILE"], ColumnNotFoundError),
                           (["_pos", "_pos"], InvalidArgumentError)):  # fmt: skip
        with pytest.raises(error):
            table.scan(columns)
    with pytest.raises(ColumnNotFoundError):
        table.scan(where="_pos = 1")


@pytest.mark.spec("I-102")
def test_the_partition_where_two_fields_are_of_one_column(new):
    files = new(IDS, partition_by=["p"])
    files.commit(files.file("parquet", rows(1), partition={"p": "a"}))

    def change(document):
        field = {"source-id": 2, "field-id": 1001, "name": "again", "transform": "identity"}
        document["partition-specs"].append({"spec-id": 1, "fields": [field]})
        document["default-spec-id"], document["last-partition-id"] = 1, 1001

    files.edit(change)
    files.commit(files.file("parquet", rows(2, p="b"), partition={"again": "b"}), spec=1)
    found = bh.open(str(files.root)).scan(["id", "_partition", "p"]).to_arrow().to_pylist()
    assert sorted(found, key=lambda r: r["id"]) == [
        {"id": 1, "_partition": {"p": "a", "again": None}, "p": "a"},
        {"id": 2, "_partition": {"p": None, "again": "b"}, "p": "b"},
    ]


@pytest.mark.spec("I-105")
def test_columns_of_these_names(make):
    data = pa.table({"_file": ["mine", "yours"], "_pos": pa.array([7, 8], pa.int64()), "_deleted": [True, False],
                     "_partition": ["x", "y"], "_row_id": [1.5, None]})  # fmt: skip
    table, eyes = make(data)
    assert table.to_arrow().equals(data)
    assert table.scan(["_pos", "_file", "_spec_id"], "_pos = 8").to_arrow().to_pylist() == [
        {"_pos": 8, "_file": "yours", "_spec_id": 0}]  # fmt: skip
    # Metadata columns are asked for apart from the table's, by which they are never hidden.
    hidden = ("_file", "_pos", "_deleted")
    plan = table._handle.snapshot.plan(["_file", "_pos"], None, hidden)
    (batch,) = (b for t in plan.tasks() for b in tasks.read(t))
    assert [c.to_pylist() for c in batch.columns] == [
        ["mine", "yours"], [7, 8], [eyes.live()[0]["file_path"]] * 2, [0, 1], [False, False]]  # fmt: skip
    assert eyes.rows().to_pylist() == data.to_pylist()


ROW_ID, UPDATED = 2147483540, 2147483539


def numbered(files, ids):
    """Gives the manifests of the current snapshot first row ids, as a writer of version 3 does."""
    document = files.document
    path = document["snapshots"][-1]["manifest-list"].removeprefix("file://")
    with open(path, "rb") as f:
        reader = fastavro.reader(f)
        schema, records = json.loads(reader.metadata["avro.schema"]), list(reader)
    schema["fields"].append({"name": "first_row_id", "type": ["null", "long"], "default": None, "field-id": 520})
    for record in records:
        record["first_row_id"] = ids.get(record["manifest_path"]) if isinstance(ids, dict) else ids
        ids = ids if isinstance(ids, dict) else None if ids is None else ids + record["added_rows_count"]
    with open(path, "wb") as f:
        fastavro.writer(f, schema, records)


LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


def stored_lineage(files, format, table, row_ids, updated):
    """The entry of a file that stores the lineage of moved rows."""
    data = table.append_column("_row_id", pa.array(row_ids, pa.int64()))
    data = data.append_column("_last_updated_sequence_number", pa.array(updated, pa.int64()))
    extra = [{"id": ROW_ID, "name": "_row_id", "type": "long", "required": False},
             {"id": UPDATED, "name": "_last_updated_sequence_number", "type": "long", "required": False}]  # fmt: skip
    return files.file(format, data, {"fields": [*files.schema["fields"], *extra]})


@pytest.mark.spec("I-104")
def test_the_lineage_of_rows(new):
    files = new(IDS).upgrade()
    for n, format in enumerate(FORMATS):
        moved = stored_lineage(
            files, format, rows(*range(10 * n + 5, 10 * n + 8)), [900 + n, None, 950 + n], [7, 8, None]
        )
        files.commit(files.file(format, rows(*range(10 * n, 10 * n + 3))), moved)
    manifests = list(files._avro(files.document["snapshots"][-1]["manifest-list"]))
    starts = {r["manifest_path"]: 100 * (i + 1) for i, r in enumerate(manifests)}
    numbered(files, starts)
    found = {r["id"]: r for r in bh.open(str(files.root)).scan(LINEAGE).to_arrow().to_pylist()}
    for r in manifests:
        start, commit = starts[r["manifest_path"]], r["sequence_number"]
        n = commit - 1
        # The second file of the manifest follows the three rows of the first.
        moved = [(10 * n + 5, 900 + n, 7), (10 * n + 6, start + 3 + 1, 8), (10 * n + 7, 950 + n, commit)]
        for values in [(10 * n + k, start + k, commit) for k in range(3)] + moved:
            assert found.pop(values[0]) == dict(zip(LINEAGE, values))
    assert not found
    # Ids do not depend on which files and rows a condition leaves.
    some = bh.open(str(files.root)).scan(LINEAGE, "id = 6 OR id = 2").to_arrow().to_pylist()
    first = next(r["manifest_path"] for r in manifests if r["sequence_number"] == 1)
    assert {r["id"]: r["_row_id"] for r in some} == {2: starts[first] + 2, 6: starts[first] + 4}


@pytest.mark.spec("I-104")
def test_row_ids_where_bounds_exclude_earlier_files(new):
    files = new(IDS).upgrade()
    files.commit(*(files.data(rows(n, n + 1), (1, 2), bounds=True) for n in (0, 10, 20)))
    numbered(files, 500)
    scan = bh.open(str(files.root)).scan
    assert scan(["id", "_row_id"]).to_arrow()["_row_id"].to_pylist() == [*range(500, 506)]
    assert scan(["_row_id", "id"], "id >= 20").to_arrow().to_pylist() == [
        {"_row_id": 504, "id": 20}, {"_row_id": 505, "id": 21}]  # fmt: skip
    assert len(scan(["id"], "id >= 20").files()) == 1


@pytest.mark.spec("I-333")
@pytest.mark.parametrize("format", FORMATS)
def test_files_without_row_ids_have_no_lineage(new, format):
    """Rows of before an upgrade, and what appendix E says even of files that store some."""
    files = new(IDS).upgrade()
    files.commit(files.file(format, rows(1)), stored_lineage(files, format, rows(2), [9], [9]))
    found = bh.open(str(files.root)).scan(LINEAGE).to_arrow().to_pylist()
    assert found == [dict(zip(LINEAGE, (n, None, None))) for n in (1, 2)]


@pytest.mark.spec("I-104")
def test_columns_of_changes(make):
    table, _ = make(rows(1, 2))
    first = table.version
    table.append(rows(3))
    second = table.version
    table.delete("id = 1")
    found = table.changes(first).to_arrow().to_pylist()
    shown = [(r["_commit_version"], r["_change_type"], r["id"]) for r in found]
    assert shown == [(first, "insert", 1), (first, "insert", 2), (second, "insert", 3), (table.version, "delete", 1)]
    order = [h.version for h in reversed(table.history())]
    assert [order.index(r["_commit_version"]) for r in found] == sorted(
        order.index(r["_commit_version"]) for r in found
    )


@pytest.mark.parametrize("format", ("delta", "lance"))
def test_other_formats(tmp_path, format):
    table = bh.create(str(tmp_path / "t"), rows(1).schema, format=format)
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    found = table.scan(["_file", "id", "_pos"]).to_arrow()
    assert found.column_names == ["_file", "id", "_pos"] and found["id"].to_pylist() == [1, 3]
    assert pc.all(pc.greater_equal(found["_pos"], 0)).as_py()
    with pytest.raises(UnsupportedFeatureError, match=f"(?i){format} tables have no metadata column _row_id"):
        table.scan(["_row_id"]).to_arrow()


@pytest.mark.spark
@pytest.mark.spec("I-102", "I-104")
def test_on_spark(spark, changed):
    table = bh.open(str(changed.root), spark=spark)
    columns = ["_deleted", *ALL, "_row_id"]
    frame = table.scan(columns).to_spark(spark)
    assert frame.columns == columns
    wanted = [(r["id"] in DEAD, r["id"], r["_file"], r["_pos"], r["_spec_id"], *r["_partition"].values(), None)
              for r in expected(changed)]  # fmt: skip
    found = frame.select("_deleted", "id", "_file", "_pos", "_spec_id", "_partition.*", "_row_id").orderBy("id")
    assert [tuple(r) for r in found.collect()] == wanted
    places = table.scan(["_pos", "id"], "id = 13").to_spark(spark).collect()
    assert [tuple(r) for r in places] == [(3, 13)]
