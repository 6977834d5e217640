"""What an operation costs: requests to the store, and row groups that are read."""

from __future__ import annotations

import pickle
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asked import asked as asked

import boathouse as bh
from boathouse import registry
from boathouse.errors import CommitConflictError, CommitUnknownError
from boathouse.ops.tasks import unit_rows
from boathouse.parquet.source import ParquetSource
from boathouse.parquet.write import ParquetOptions
from boathouse.table.attempt import Attempt
from boathouse.table.commit import FileCommitter
from makers.traits import REAL, TRAITS

WITH_BOUNDS = [name for name in REAL if TRAITS[name].bounds != "none"]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(["x"] * len(ids), pa.string())})


APPEND = {
    # The listing of the log, of its folder of commits that others stage, the entry, the listing that shows it, and the
    # version's checksum.
    "delta": {"list_dir": 3, "put": 2},
    # The two listings; the head's manifest list, whose manifests the new one carries; the manifest, the list, the
    # document, and the hint.
    "iceberg": {"list_dir": 2, "get": 1, "put": 4},
    # A third listing directly before the put (LanceCommitter); the transaction file and the manifest.
    "lance": {"list_dir": 3, "put": 2},
}


@pytest.mark.parametrize("commits", [2, 8])
@pytest.mark.parametrize("format", REAL)
def test_what_an_append_asks_of_the_store(tmp_path, asked, format, commits):
    """However many commits there are since the checkpoint: nothing that is known is read again."""
    t = bh.create(str(tmp_path / "t"), rows().schema, format=format)
    for i in range(commits):
        t.append(rows(i))
    asked.clear()
    t.append(rows(100))
    assert asked.of_table() == APPEND[format], asked.all
    assert asked.of_data() == {"close": 1}
    assert len(asked.all) == sum(APPEND[format].values()) + 1


WRITE = {
    # The three folders that mark a format. Opening: the listing, and of Delta the hint, the version's checksum and the
    # two entries, of others the newest metadata. Then what an append of a table asks for, without its first listing.
    "delta": {"list": 3, "list_dir": 3, "get": 4, "put": 2},
    "iceberg": {"list": 3, "list_dir": 2, "get": 2, "put": 4},
    "lance": {"list": 3, "list_dir": 3, "get": 1, "put": 2},
}


@pytest.mark.parametrize("format", REAL)
def test_what_an_append_to_a_path_asks_of_the_store(tmp_path, asked, format):
    """The table is opened once, and the write starts from that version."""
    t = bh.create(str(tmp_path / "t"), rows().schema, format=format)
    t.append(rows(0))
    asked.clear()
    bh.write(rows(1), str(tmp_path / "t"), format=format, mode="append")
    assert asked.of_table() == WRITE[format], asked.all
    assert asked.of_data() == {"close": 1}
    assert t.refresh().to_arrow().num_rows == 2


@pytest.mark.parametrize("format", REAL)
def test_what_a_change_of_properties_asks_of_the_store(tmp_path, asked, format):
    t = bh.create(str(tmp_path / "t"), rows().schema, format=format)
    t.append(rows(1))
    asked.clear()
    t.set_properties({"owner": "us"})
    wanted = {"delta": APPEND["delta"], "iceberg": {"list_dir": 2, "put": 2}, "lance": APPEND["lance"]}
    assert asked.of_table() == wanted[format], asked.all


def made(path: Path, format: str) -> bh.Table:
    """A table of three files of three rows, with distinct ranges of ids."""
    t = bh.create(str(path), rows().schema, format=format)
    for i in (0, 10, 20):
        t.append(rows(i, i + 1, i + 2))
    return t


def merge(t: bh.Table) -> None:
    t.merge(rows(21), "target.id = source.id").when_matched_update_all().execute()


CHANGES: dict[str, Callable[[bh.Table], Any]] = {"delete": lambda t: t.delete("id = 11"), "merge": merge}


@pytest.mark.parametrize("change", ["delete", "merge"])
@pytest.mark.parametrize("format", REAL)
def test_what_a_change_of_one_row_asks_of_the_store(tmp_path, asked, format, change):
    t = made(tmp_path / "t", format)
    asked.clear()
    CHANGES[change](t)
    wanted = {
        "delta": APPEND["delta"],
        # Beside an append's: the three manifests, and the rewritten one that marks the old file deleted.
        "iceberg": {"list_dir": 2, "get": 4, "put": 5},
        # Beside an append's: the file of deleted rows.
        "lance": {"list_dir": 3, "put": 3},
    }
    assert asked.of_table() == wanted[format], asked.all
    data = {key for _, key in asked.all if key.endswith(TRAITS[format].data_suffix)}
    read = 3 if TRAITS[format].bounds == "none" else 1
    written = (change == "merge") + (not TRAITS[format].marks_deletes)
    assert len(data) == read + written, "of three files those that may have the row"


def test_an_iceberg_delete_fetches_no_manifest_twice(tmp_path, asked):
    t = made(tmp_path / "t", "iceberg")
    for where in ("id = 11", "id > 21", "id % 2 = 0"):
        asked.clear()
        t.delete(where)
        fetched = Counter(key for name, key in asked.all if name == "get" and key.endswith(".avro"))
        assert fetched and set(fetched.values()) == {1}, fetched


@pytest.mark.parametrize("format", REAL)
def test_a_table_that_did_not_change_is_not_read_again(tmp_path, asked, format):
    """Neither after an own commit nor after reading."""
    made(tmp_path / "t", format)
    t = bh.open(str(tmp_path / "t"))
    for step in (lambda: None, lambda: t.append(rows(7))):
        step()
        before = t._handle.snapshot
        asked.clear()
        t.refresh()
        assert [name for name, _ in asked.all] in (["list_dir"], ["list"])
        assert t._handle.snapshot is before


@pytest.mark.parametrize("format", REAL)
def test_the_snapshot_after_a_commit_is_the_one_that_is_read(tmp_path, format):
    """It is made from what was committed, and has everything that a reader would find."""
    t = made(tmp_path / "t", format)
    for step in (
        lambda: t.append(rows(7)),
        lambda: t.delete("id = 7"),
        lambda: t.set_properties({"owner": "us"}),
        lambda: t.add_column("more", "int"),
        lambda: t.overwrite(rows(8)),
    ):
        step()
        ours, read = t._handle.snapshot, bh.open(str(tmp_path / "t"))._handle.snapshot
        for name in ("version", "token", "identity", "timestamp_ms", "schema", "partitioning", "properties", "ref"):
            assert getattr(ours, name) == getattr(read, name), name
        assert ours.detail() == read.detail()
        files = [pa.Table.from_batches(s.files()).drop(["unit"]).to_pylist() for s in (ours, read)]
        assert files[0] == files[1]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_recreated_right_after_the_put_is_not_taken_for_ours(tmp_path, format, monkeypatch):
    """The new table has an entry of the same name and size; the snapshot below it is another one. The entry stays."""
    path = tmp_path / "t"
    t = made(path, format)
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        outcome = real(self, attempt)
        monkeypatch.setattr(FileCommitter, "publish", real)
        shutil.rmtree(path)
        made(path, format).append(rows(50))
        return outcome

    monkeypatch.setattr(FileCommitter, "publish", publish)
    with pytest.raises((CommitConflictError, CommitUnknownError)):
        t.append(rows(99))
    assert sorted(bh.open(str(path)).to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 50]


@pytest.fixture
def groups(monkeypatch) -> set[tuple[str, int]]:
    """The row groups of Parquet files that are read from now on; files written have 10 rows in a group."""
    seen: set[tuple[str, int]] = set()
    read, batches, check = ParquetSource.read, ParquetSource.batches, ParquetOptions.__post_init__

    def small(self: ParquetOptions) -> None:
        object.__setattr__(self, "row_group_rows", 10)
        check(self)

    def counted_read(self: ParquetSource, groups: Any, *args: Any) -> Any:
        seen.update((self.uri, g) for g in groups)
        return read(self, groups, *args)

    def counted_batches(self: ParquetSource, rows: int, groups: Any, *args: Any) -> Any:
        seen.update((self.uri, g) for g in groups)
        return batches(self, rows, groups, *args)

    monkeypatch.setattr(ParquetOptions, "__post_init__", small)
    monkeypatch.setattr(ParquetSource, "read", counted_read)
    monkeypatch.setattr(ParquetSource, "batches", counted_batches)
    return seen


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id = 7", [7]),
        ("id = 7 and p = 'a'", [7]),
        ("p = 'b' and id between 105 and 108", [105, 106, 107, 108]),
        ("id = 207 and (p = 'b' or v = 'v207')", [207]),
    ],
)
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_filter_reads_one_row_group_beside_partition_columns(tmp_path, groups, format, where, ids):
    """Partition columns are constants of a file in Delta and columns of it in Iceberg; neither disables pruning."""
    data = pa.table(
        {"id": range(400), "p": [("a", "b")[i // 100 % 2] for i in range(400)], "v": [f"v{i}" for i in range(400)]}
    )
    t = bh.create(str(tmp_path / "t"), data.schema, format=format, partition_by=["p"])
    t.append(data)
    assert [pq.read_metadata(str(p)).num_row_groups for p in (tmp_path / "t").rglob("*.parquet")] == [20, 20]
    wanted = data.take(ids).to_pylist()
    assert t.scan(where=where).to_arrow().to_pylist() == wanted
    assert len(groups) == 1, groups
    groups.clear()
    tasks = [pickle.loads(pickle.dumps(task)) for task in t.scan(where=where).plan().tasks()]
    read = registry.tasks(format).read
    assert [row for task in tasks for batch in read(task) for row in batch.to_pylist()] == wanted
    assert len(groups) == 1, groups


@pytest.fixture
def chunks(monkeypatch, groups) -> Counter[tuple[str, int, str]]:
    """How often each column of each row group is read from now on, by the file's name; row groups have 10 rows."""
    seen: Counter[tuple[str, int, str]] = Counter()
    read, batches = ParquetSource.read, ParquetSource.batches

    def count(source: ParquetSource, groups: Any, leaves: Any) -> None:
        names = [source.resolver.leaf_at(leaf).name for leaf in leaves]
        seen.update((source.uri.rsplit("/", 1)[-1], g, name) for g in groups for name in names)

    def counted_read(self: ParquetSource, groups: Any, leaves: Any, *more: Any) -> Any:
        count(self, groups, leaves)
        return read(self, groups, leaves, *more)

    def counted_batches(self: ParquetSource, rows: int, groups: Any, leaves: Any, *more: Any) -> Any:
        count(self, groups, leaves)
        return batches(self, rows, groups, leaves, *more)

    monkeypatch.setattr(ParquetSource, "read", counted_read)
    monkeypatch.setattr(ParquetSource, "batches", counted_batches)
    return seen


@pytest.mark.parametrize("large", [False, True], ids=["kept", "too large to be kept"])
@pytest.mark.parametrize("format", WITH_BOUNDS)
def test_a_delete_that_copies_reads_every_column_once(tmp_path, chunks, format, large, monkeypatch):
    """Of a file in which no row matches, the predicate's columns alone; it is not written again."""
    if large:
        monkeypatch.setattr(unit_rows, "KEPT_BYTES", 200)
    properties = {"delta.enableDeletionVectors": "false"}
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("w", pa.string())])
    t = bh.create(str(tmp_path / "t"), schema, format=format, properties=properties)
    data = [
        pa.table({"id": range(k, k + 40), "v": range(40), "w": [f"w{i}" for i in range(40)]}, schema=schema)
        for k in (0, 100)
    ]
    for one in data:
        t.append(one)
    files = {p.name for p in (tmp_path / "t").rglob("*.parquet")}
    chunks.clear()
    result = t.delete("v * 10 + id = 187")
    assert (result.rows_deleted, result.rows_copied, result.files_added, result.files_removed) == (1, 39, 1, 1)
    untouched = {name for name in files if not any(n == name and column == "w" for n, _, column in chunks)}
    assert len(untouched) == 1
    searched = {(name, g, column) for name in files for g in range(4) for column in ("id", "v")}
    copied = {(name, g, "w") for name in files - untouched for g in range(4)}
    assert chunks.keys() == searched | copied
    twice = {(name, g, column) for name, g, column in searched if name not in untouched}
    assert {key for key, times in chunks.items() if times > 1} == (twice if large else set())
    left = [row for one in data for row in one.to_pylist() if row["v"] * 10 + row["id"] != 187]
    assert sorted(t.to_arrow().to_pylist(), key=lambda r: r["id"]) == left


@pytest.mark.parametrize("format", WITH_BOUNDS)
def test_a_delete_of_all_rows_of_a_file_reads_the_columns_of_its_predicate(tmp_path, chunks, format):
    properties = {"delta.enableDeletionVectors": "false"}
    data = pa.table({"id": range(20), "v": ["x"] * 20})
    t = bh.create(str(tmp_path / "t"), data.schema, format=format, properties=properties)
    t.append(data)
    chunks.clear()
    result = t.delete("id % 100 < 50")
    assert (result.rows_deleted, result.files_added, result.files_removed) == (20, 0, 1)
    assert {column for _, _, column in chunks} == {"id"}
