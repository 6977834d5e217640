"""Operations end to end: summaries, pruning, projection, row deletes; judged by pyiceberg."""

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.errors import CorruptTableError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.iceberg import tasks
from boathouse.iceberg.adapter import FORMAT
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import of_entries
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID, POSITION_ID
from boathouse.iceberg.metadata.document import dump
from boathouse.iceberg.metadata.draft import add_snapshot, begun, finished
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.location import Location

DATA = pa.table({"id": pa.array(range(8), pa.int64()), "p": ["a", "b"] * 4, "x": [float(i) for i in range(8)]})


def opened(root, metadata=None):
    location = Location(absolute(str(root)), None if metadata is None else absolute(metadata))
    return FORMAT.open(TableContext(location, Stores()))


def plan(root, where=None, columns=None, hidden=(), classify=False):
    snap = opened(root)
    predicate = None if where is None else bind_predicate(parse(where), snap.schema)
    return snap.plan(columns, predicate, hidden, classify=classify)


def read(plan):
    return pa.Table.from_batches([b for t in plan.tasks() for b in tasks.read(t)], plan.read.schema)


def recount(eyes):
    live = eyes.live()
    return {
        "total-data-files": len(live), "total-records": sum(f["record_count"] for f in live),
        "total-files-size": sum(f["file_size_in_bytes"] for f in live), "total-delete-files": 0,
        "total-position-deletes": 0, "total-equality-deletes": 0,
    }  # fmt: skip


@pytest.mark.spec("I-178", "I-180", "I-181", "I-182")
@pytest.mark.feature("format version 2", format="iceberg")
def test_summaries_and_operations(make):
    table, eyes = make(DATA, partition_by=["p"])
    steps = [
        (lambda: table.append(DATA), "append",
         {"added-data-files": 2, "added-records": 8, "changed-partition-count": 2}),
        (lambda: table.delete("p = 'a'"), "delete",
         {"deleted-data-files": 2, "deleted-records": 8, "changed-partition-count": 1}),
        (lambda: table.delete("id = 1"), "overwrite",
         {"deleted-data-files": 2, "deleted-records": 8, "added-records": 6, "changed-partition-count": 1}),
        (lambda: table.overwrite(DATA), "overwrite", {"added-data-files": 2, "added-records": 8}),
        (lambda: table.overwrite(DATA.slice(0, 1), where="p = 'a'"), "overwrite",
         {"added-data-files": 1, "deleted-data-files": 1, "added-records": 1, "deleted-records": 4}),
        (lambda: table.delete("true"), "delete", {"deleted-data-files": 2}),
    ]  # fmt: skip
    for step, operation, counts in steps:
        before = {f["file_path"]: f for f in eyes.live()}
        step()
        after = {f["file_path"]: f for f in eyes.live()}
        summary = eyes.snapshot()["summary"]
        assert summary["operation"] == operation
        assert {k: int(summary[k]) for k in counts} == counts
        added, gone = set(after) - set(before), set(before) - set(after)
        assert int(summary.get("added-files-size", 0)) == sum(after[p]["file_size_in_bytes"] for p in added)
        assert int(summary.get("removed-files-size", 0)) == sum(before[p]["file_size_in_bytes"] for p in gone)
        assert {k: int(summary[k]) for k in recount(eyes)} == recount(eyes)
        assert eyes.rows().num_rows == sum(f["record_count"] for f in eyes.live()) == table.count()
    assert all(isinstance(v, str) for v in summary.values())


def test_history_says_who_and_why(make):
    table, eyes = make(DATA)
    table.append(DATA, message="nightly", metadata={"job": "7"}, txn=("etl", 3))
    newest = next(iter(opened(eyes.root).history.entries()))
    assert (newest.message, newest.metadata, newest.operation) == ("nightly", {"job": "7"}, "append")
    assert newest.engine.startswith("boathouse/") and newest.metrics["added-records"] == 8
    assert newest.write_id == eyes.snapshot()["summary"]["boathouse.write-id"]
    table.append(DATA, txn=("etl", 3))
    assert table.count() == 16
    assert eyes.pyiceberg().history()[-1].snapshot_id == newest.version


@pytest.mark.spec("I-201", "I-193", "I-012", "I-200")
def test_manifests_and_files_are_skipped_and_counted(make):
    table, eyes = make(DATA, partition_by=["p"])
    table.append(pa.table({"id": pa.array([100], pa.int64()), "p": ["z"], "x": [9.0]}))
    found = plan(eyes.root, "p = 'z'")
    assert found.units.num_rows == 1 and read(found)["id"].to_pylist() == [100]
    tests = {k.split()[0]: v for k, v in found.tally.skipped.items()}
    assert tests == {"manifest": 2}
    both = plan(eyes.root, "p = 'a' AND id > 100")
    assert both.units.num_rows == 0 and {k.split()[0] for k in both.tally.skipped} == {
        "manifest",
        "partition",
        "bounds",
    }
    lost = next(m for m in eyes.manifests() if m["partitions"][0]["lower_bound"] == b"a")["manifest_path"]
    Path(lost.removeprefix("file://")).unlink()
    assert read(plan(eyes.root, "p = 'z'")).num_rows == 1
    with pytest.raises(CorruptTableError, match="is missing"):
        plan(eyes.root)


@pytest.mark.spec("I-202", "I-012")
def test_predicates_are_converted_with_each_manifests_own_spec(catalog):
    import datetime as dt

    from pyiceberg.transforms import DayTransform, MonthTransform

    data = pa.table({"t": [dt.datetime(2024, 1, 1) + dt.timedelta(days=i) for i in range(60)], "i": list(range(60))})
    theirs = catalog.create_table("db.t", data.schema)
    theirs.append(data.slice(0, 10))
    with theirs.update_spec() as update:
        update.add_field("t", MonthTransform(), "m")
    theirs.append(data.slice(10, 30))
    with theirs.update_spec() as update:
        update.remove_field("m")
        update.add_field("t", DayTransform(), "d")
    theirs.append(data.slice(40))
    snap = opened(theirs.location(), theirs.metadata_location)
    assert len(snap.partitioning.specs) == 3
    for where, low, high in (
        ("t >= TIMESTAMP_NTZ '2024-02-20'", 50, 60), ("t < TIMESTAMP_NTZ '2024-01-05'", 0, 4),
        ("t > TIMESTAMP_NTZ '2024-01-30' AND t <= TIMESTAMP_NTZ '2024-02-11'", 30, 42), ("i = 45", 45, 46),
    ):  # fmt: skip
        found = snap.plan(None, bind_predicate(parse(where), snap.schema))
        expected = list(range(low, high)) if "2024-01-30" not in where else list(range(30, 42))
        assert sorted(read(found)["i"].to_pylist()) == expected, where
        assert found.units.num_rows < 23


@pytest.mark.spec("I-206", "I-207")
def test_bounds_never_lose_a_row_and_strict_ones_never_claim_one(make):
    random.seed(3)
    strings = ["", "a", "ab" * 20, "b" * 17, "💥" * 20, None]
    files = []
    for k in range(8):
        n = random.choice([1, 3])
        files.append(pa.table({
            "id": pa.array([random.choice([None, k, 2 * k, -k]) for _ in range(n)], pa.int64()),
            "d": pa.array([random.choice([None, math.nan, -0.0, k * 1.0, -math.inf]) for _ in range(n)], pa.float64()),
            "s": pa.array([random.choice(strings) for _ in range(n)], pa.string()),
        }))  # fmt: skip
    table, eyes = make(files[0])
    for data in files[1:]:
        table.append(data)
    whole = pa.concat_tables(files)
    from boathouse.compute.evaluate import mask
    from boathouse.compute.prune import Pruner
    from boathouse.expr.tree import columns as columns_of

    wheres = ["id = 4", "id < 0", "id > 6", "id IN (2, 14)", "id IS NULL", "id IS NOT NULL", "isnan(d)", "d = 0",
              "d > 3", "d < 0", "s = 'a'", "s LIKE 'ab%'", "s > 'b'", "s IS NULL", "NOT (s LIKE 'ab%')", "id <> 3",
              "d >= -0.0D", f"s = '{'ab' * 20}'", f"s >= '{'b' * 17}'", "id = 4 OR s IS NULL"]  # fmt: skip
    for where in wheres:
        bound = bind_predicate(parse(where), table.schema)
        expected = whole.filter(mask(bound, whole))
        assert sorted(map(repr, read(plan(eyes.root, where)).to_pylist())) == sorted(map(repr, expected.to_pylist())), (
            where
        )
        paths = columns_of(bound)
        pruner = Pruner(bound, paths)
        for batch in table._handle.snapshot.files(paths):
            sure = pruner.must_match(batch.column("stats"), batch["rows"])
            for path, certain in zip(batch["path"].to_pylist(), sure.to_pylist()):
                if certain:
                    rows = pq.read_table(path.removeprefix("file://"))
                    rows = pa.table({n: rows[n] for n in ("id", "d", "s")})
                    assert mask(bound, rows).to_pylist() == [True] * rows.num_rows, where


@pytest.mark.spec("I-207", "I-181")
def test_a_metadata_only_delete_removes_whole_files_and_reads_none(make):
    table, eyes = make(DATA.slice(0, 4))
    table.append(DATA.slice(4))
    kept = {f["file_path"] for f in eyes.live()}
    import os

    for path in kept:
        os.rename(path.removeprefix("file://"), path.removeprefix("file://") + ".away")
    result = table.delete("id < 4")
    assert result.files_removed == 1 and eyes.snapshot()["summary"]["operation"] == "delete"
    assert len(eyes.live()) == 1 and {f["file_path"] for f in eyes.live()} < kept
    for path in kept:
        os.rename(path.removeprefix("file://") + ".away", path.removeprefix("file://"))
    assert sorted(eyes.rows()["id"].to_pylist()) == [4, 5, 6, 7]


@pytest.mark.spec("I-083", "I-082")
def test_columns_that_swap_names(catalog):
    theirs = catalog.create_table("db.s", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    theirs.append(pa.table({"a": [1, 2], "b": [10, 20]}))
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with theirs.update_schema() as update:
            update.rename_column(old, new)
    theirs.append(pa.table({"b": [3], "a": [30]}))
    snap = opened(theirs.location(), theirs.metadata_location)
    for where, expected in (
        ("b = 1", [{"b": 1, "a": 10}]),
        ("a > 15 AND b < 3", [{"b": 2, "a": 20}]),
        ("a = 30", [{"b": 3, "a": 30}]),
    ):
        found = snap.plan(None, bind_predicate(parse(where), snap.schema))
        assert read(found).to_pylist() == expected


@pytest.mark.spec("I-085")
def test_an_identity_partition_value_stands_for_a_missing_column(make):
    table, eyes = make(DATA, partition_by=["p"])
    for file in eyes.live():
        path = file["file_path"].removeprefix("file://")
        pq.write_table(pq.read_table(path).drop_columns(["p"]), path)
    again = bh.open(str(eyes.root)).to_arrow().sort_by("id")
    assert again.to_pydict() == DATA.to_pydict()
    assert bh.open(str(eyes.root)).scan(["id"], where="p = 'b'").to_arrow()["id"].to_pylist() == [1, 3, 5, 7]
    assert table.version


def delete_rows(eyes, deletes, *, sequence=None, spell=lambda p: p, spec=None, referenced=False, content=1, name="del"):
    """Adds position delete files, as another engine would: {partition p: [(data path, position), ...]}."""
    snap = opened(eyes.root)
    metadata = snap.metadata
    document = metadata.document
    spec = spec or snap.partitioning.current
    number = metadata.last_sequence_number + 1
    entries = []
    for i, (p, found) in enumerate(deletes.items()):
        path = eyes.root / "data" / f"{name}-{number}-{i}.parquet"
        ids = [{b"PARQUET:field_id": str(k).encode()} for k in (FILE_PATH_ID, POSITION_ID)]
        schema = pa.schema(
            [pa.field("file_path", pa.string(), False, ids[0]), pa.field("pos", pa.int64(), False, ids[1])]
        )
        pq.write_table(
            pa.table({"file_path": [spell(f) for f, _ in found], "pos": [n for _, n in found]}, schema), path
        )
        bound = {FILE_PATH_ID: spell(found[0][0]).encode()}
        entries.append({
            "status": 1, "snapshot_id": None, "sequence_number": sequence, "file_sequence_number": None, "data_file": {
                "content": content, "file_path": f"file://{path}", "file_format": "PARQUET",
                "partition": {f"f{f.id}": p for f in spec}, "record_count": len(found),
                "file_size_in_bytes": path.stat().st_size, "column_sizes": None, "value_counts": None,
                "null_value_counts": None, "nan_value_counts": None, "lower_bounds": bound if referenced else None,
                "upper_bounds": bound if referenced else None, "key_metadata": None, "split_offsets": None,
                "equality_ids": [1] if content == 2 else None, "sort_order_id": None}})  # fmt: skip
    folder, id = f"file://{eyes.root}/metadata", number * 1000
    data = manifest_writer.write(of_entries(entries, spec), spec, metadata.schema, 0, 1, "deflate")
    (eyes.root / "metadata" / f"d{number}.avro").write_bytes(data)
    row = manifest_writer.list_row(
        f"{folder}/d{number}.avro", len(data), spec, of_entries(entries, spec), 1, number, id
    )
    rows = [m.row for m in snap.listing.manifest_files] + [row]
    (eyes.root / "metadata" / f"l{number}.avro").write_bytes(manifest_writer.write_list(rows, {}, "deflate"))
    stamp = document["last-updated-ms"] + 1
    draft = begun(metadata, stamp)
    add_snapshot(draft, {
        "snapshot-id": id, "parent-snapshot-id": snap.version, "sequence-number": number, "timestamp-ms": stamp,
        "summary": {"operation": "delete"}, "schema-id": 0,
        "manifest-list": f"{folder}/l{number}.avro"}, None)  # fmt: skip
    number = int(eyes.head().name[1:].split(".")[0]) + 1
    (eyes.root / "metadata" / f"v{number}.metadata.json").write_bytes(dump(finished(draft.document, metadata, "x")))


def placed(eyes):
    """id -> (data file path, position, partition) for every physical row."""
    found = {}
    for file in eyes.live():
        for i, id in enumerate(pq.read_table(file["file_path"].removeprefix("file://"))["id"].to_pylist()):
            found[id] = (file["file_path"], i, next(iter(file["partition"].values()), None))
    return found


@pytest.mark.parametrize("referenced", [False, True])
@pytest.mark.feature("position delete files", format="iceberg")
def test_position_deletes(make, referenced):
    _table, eyes = make(DATA, partition_by=["p"])
    at = placed(eyes)
    delete_rows(eyes, {"a": [at[0][:2], at[4][:2], at[0][:2]], "b": [at[7][:2], (at[7][0], 99)]}, referenced=referenced)
    expected = [1, 2, 3, 5, 6]
    found = plan(eyes.root, hidden=("_unit", "_pos"))
    assert sorted(read(found)["id"].to_pylist()) == expected == sorted(eyes.rows()["id"].to_pylist())
    assert sorted(found.units["deleted"].to_pylist()) == [1, 2] and found.rows == 5
    assert next(opened(eyes.root).files()).column("deleted").to_pylist() == [None, None]
    assert read(plan(eyes.root, "id >= 4", ["id"]))["id"].to_pylist() in ([6, 5], [5, 6])
    again = bh.open(str(eyes.root))
    assert again.count() == 5
    again.append(pa.table({"id": pa.array([100], pa.int64()), "p": ["a"], "x": [0.0]}))
    again.delete("id = 5")
    assert sorted(eyes.rows()["id"].to_pylist()) == [1, 2, 3, 6, 100] == sorted(again.to_arrow()["id"].to_pylist())
    again.overwrite(DATA)
    assert sorted(eyes.rows()["id"].to_pylist()) == list(range(8))
    assert [
        m for m in eyes.manifests() if m["content"] == 1 and m["added_files_count"] + m["existing_files_count"]
    ] == []


def test_position_deletes_of_other_partitions_and_older_ones_do_not_apply(make):
    _, eyes = make(DATA, partition_by=["p"])
    at = placed(eyes)
    delete_rows(eyes, {"b": [at[0][:2]]})
    delete_rows(eyes, {"a": [at[2][:2]]}, sequence=0)
    assert sorted(read(plan(eyes.root))["id"].to_pylist()) == list(range(8))
    delete_rows(eyes, {"a": [at[2][:2]]}, sequence=1)
    assert 2 not in read(plan(eyes.root))["id"].to_pylist()


@pytest.mark.spec("I-028")
@pytest.mark.parametrize("spell", [lambda p: p.replace("file://", "file:"), lambda p: p.removeprefix("file://")])
def test_position_deletes_match_whatever_the_spelling(make, spell):
    _, eyes = make(DATA, partition_by=["p"])
    at = placed(eyes)
    delete_rows(eyes, {"a": [at[0][:2]]}, spell=spell)
    assert sorted(read(plan(eyes.root))["id"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]


def test_referenced_names_every_file(make):
    table, eyes = make(DATA, partition_by=["p"])
    table.delete("p = 'a'")
    found = set(opened(eyes.root).offers(LiveFiles).uris())
    there = {f"file://{p}" for p in eyes.root.rglob("*") if p.is_file()}
    assert there <= found


def test_a_schema_may_be_replaced(make):
    table, eyes = make(DATA, partition_by=["p"])
    new = pa.table({"x": ["t"], "id": pa.array([5], pa.int64()), "y": [True]})
    table.overwrite(new, overwrite_schema=True, partition_by=["y"])
    assert eyes.rows().to_pydict() == new.to_pydict() == table.to_arrow().to_pydict()
    fields = {f["name"]: f["id"] for f in eyes.document()["schemas"][-1]["fields"]}
    assert fields["id"] == 1 and fields["x"] > 3 and fields["y"] > 3
    assert (
        eyes.document()["default-spec-id"] == 1
        and eyes.document()["partition-specs"][1]["fields"][0]["field-id"] == 1001
    )
    old = bh.open(str(eyes.root), version=eyes.document()["snapshots"][0]["snapshot-id"])
    assert old.to_arrow().sort_by("id").to_pydict() == DATA.to_pydict()


def test_delete_files_are_read_through_the_engines_map(make):
    import pickle

    from boathouse.engines.local import LocalEngine

    _, eyes = make(DATA, partition_by=["p"])
    at = placed(eyes)
    delete_rows(eyes, {"a": [at[0][:2]], "b": [at[1][:2]]})
    delete_rows(eyes, {"a": [at[2][:2], at[0][:2]]})
    sent = []

    def run(fn, work):
        sent.extend(pickle.loads(pickle.dumps(list(work))))
        return LocalEngine().map(pickle.loads(pickle.dumps(fn)), sent)

    snap = opened(eyes.root)
    found = snap.plan(map=run)
    assert len(sent) == 3 and sorted(read(found)["id"].to_pylist()) == [3, 4, 5, 6, 7]
    task = pickle.loads(pickle.dumps(list(found.tasks())))
    assert sum(b.num_rows for t in task for b in tasks.read(t)) == 5
