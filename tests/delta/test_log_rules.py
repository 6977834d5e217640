"""The log as others leave it: entries, checkpoints and the hint, each rule on a table made by hand."""

import json
import random
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.canonical import canonical, checksum
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import BoathouseError, CorruptTableError, VersionNotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location
from boathouse.testing.faults import FaultyStorage

ROWS = pa.table({"x": [0]})


def snapshot(path, version=None, stores=None):
    return FORMAT.open(TableContext(Location(f"file://{path}"), stores or Stores()), At(version=version))


def ids(path, **at):
    return sorted(bh.open(str(path), **at).to_arrow().column("x").to_pylist())


def checkpoint_name(version, part=None, parts=None):
    middle = "" if part is None else f".{part:010d}.{parts:010d}"
    return f"{version:020d}.checkpoint{middle}.parquet"


@pytest.fixture
def grown(raw, delta):
    """A table by hand: version n adds file f<n> with the row n. Checkpoints are made on request."""

    def make(versions):
        table = raw()
        for n in range(versions):
            size = table.file(f"f{n}", pa.table({"x": [n]}))
            add = table.add(f"f{n}")
            add["add"]["size"] = size
            first = [delta.PROTOCOL, delta.metadata([delta.field("x", "long")])] if n == 0 else []
            table.commit(n, {"commitInfo": {"operation": "WRITE"}}, *first, add)
        return table

    return make


def split(table, version, parts):
    """The checkpoint of a version, cut into parts as old writers did."""
    whole = table.log / checkpoint_name(version)
    rows = pq.read_table(whole)
    step = -(-rows.num_rows // parts)
    for part in range(parts):
        pq.write_table(rows.slice(part * step, step), table.log / checkpoint_name(version, part + 1, parts))
    whole.unlink()


def forget(table, *versions):
    for version in versions:
        table.entry(version).unlink()


def requests(path, act):
    """What `act(snapshot)` and the opening before it ask of the store, as (operation, file name)."""
    seen = []

    def wrap(inner):
        storage = FaultyStorage(inner)
        seen.append(storage)
        return storage

    act(snapshot(path, stores=Stores(wrap=wrap)))
    return [(op.name, op.key.rsplit("/", 1)[-1]) for storage in seen for op in storage.log]


@pytest.mark.spec("D-046")
def test_a_checkpoint_is_one_file_however_many_there_are(raw, delta):
    table = raw()
    adds = [table.add(f"f{n}") for n in range(100_000)]
    settings = {"delta.checkpointPartSize": "10", "delta.checkpointPolicy": "classic"}
    fields = delta.metadata([delta.field("x", "long")], configuration=settings)
    table.commit(0, delta.PROTOCOL, fields, *adds)
    write_checkpoint(snapshot(table.path))
    assert [f.name for f in table.log.glob("*.parquet")] == [checkpoint_name(0)]
    assert sum(batch.num_rows for batch in snapshot(table.path).files()) == 100_000


@pytest.mark.spec("D-021", "D-113")
def test_the_order_of_lines_means_nothing(grown):
    table = grown(3)
    table.commit(
        3,
        {"remove": {"path": "f0", "deletionTimestamp": 1, "dataChange": True}},
        {"txn": {"appId": "a", "version": 3}},
        {"cdc": {"path": "f0", "partitionValues": {}, "size": 1, "dataChange": False}},
        table.add("f1", stats='{"numRecords":1}'),
        {"commitInfo": {"operation": "MERGE"}},
    )
    before = [(ids(table, version=v), snapshot(table.path, v).transactions) for v in range(4)]
    assert before[3] == ([1, 2], {"a": 3})
    for seed in range(5):
        for version in range(4):
            lines = table.entry(version).read_text().splitlines()
            random.Random(seed).shuffle(lines)
            table.entry(version).write_text("\n".join(lines))
        assert [(ids(table, version=v), snapshot(table.path, v).transactions) for v in range(4)] == before


@pytest.mark.spec("D-025")
def test_other_files_in_the_log_are_ignored(grown):
    table = grown(3)
    for name in (f".{3:020d}.json.crc", "3.json.tmp", f"{3:020d}.json.bak", "3.json", f"_{3:020d}.json", "notes"):
        (table.log / name).write_text("{")
    (table.log / "4.json").mkdir()
    (table.log / f"{3:020d}").mkdir()
    assert bh.open(str(table)).version == 2 and ids(table) == [0, 1, 2]


@pytest.mark.spec("D-026")
def test_integers_are_not_floats(grown):
    table = grown(1)
    exact = 9_007_199_254_740_993
    add = table.add("huge")
    add["add"]["size"] = exact
    table.commit(1, add)
    files = pa.Table.from_batches(list(snapshot(table.path).files()))
    assert sorted(files.column("size").to_pylist())[-1] == exact
    write_checkpoint(snapshot(table.path))
    forget(table, 0)
    files = pa.Table.from_batches(list(snapshot(table.path).files()))
    assert sorted(files.column("size").to_pylist())[-1] == exact


@pytest.mark.spec("D-027", "D-016")
def test_a_hole_after_the_newest_checkpoint(grown):
    table = grown(6)
    write_checkpoint(snapshot(table.path, 3))
    forget(table, 2)
    assert [ids(table, version=v) for v in (0, 1, 3, 5)] == [[0], [0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]
    with pytest.raises(BoathouseError, match=f"{2:020d}"):
        bh.open(str(table), version=2)
    forget(table, 4)
    with pytest.raises(CorruptTableError, match=f"{4:020d}"):
        bh.open(str(table))


@pytest.mark.spec("D-028")
def test_entries_without_actions(grown):
    table = grown(2)
    table.commit(2, {"commitInfo": {"operation": "nothing"}})
    table.entry(3).write_bytes(b"")
    assert bh.open(str(table)).version == 3 and ids(table) == [0, 1]
    assert ids(table, version=2) == [0, 1]
    bh.open(str(table)).append(ROWS)
    assert bh.open(str(table)).version == 4 and ids(table) == [0, 0, 1]


@pytest.mark.spec("D-031")
def test_the_interval_of_checkpoints(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.checkpointInterval": "3"})
    for _ in range(9):
        bh.open(str(path)).append(ROWS)
    assert sorted(p.name for p in (path / "_delta_log").glob("*.parquet")) == [checkpoint_name(n) for n in (3, 6, 9)]


@pytest.mark.spec("D-037", "D-038", "D-036")
@pytest.mark.parametrize("older", [True, False])
def test_a_part_that_is_missing(grown, older):
    table = grown(8)
    if older:
        write_checkpoint(snapshot(table.path, 2))
        forget(table, 0, 1)
    write_checkpoint(snapshot(table.path, 5))
    split(table, 5, 3)
    (table.log / "_last_checkpoint").write_text(json.dumps({"version": 5, "size": 8, "parts": 3}))
    assert ids(table) == list(range(8)) and snapshot(table.path).checkpoint.version == 5
    (table.log / checkpoint_name(5, 2, 3)).unlink()
    assert ids(table) == list(range(8))
    used = snapshot(table.path).checkpoint
    assert used.version == 2 if older else used is None
    if older:
        forget(table, 4)
        with pytest.raises(CorruptTableError, match=f"{4:020d}"):
            bh.open(str(table))


@pytest.mark.spec("D-039")
def test_two_sets_of_parts(grown):
    table = grown(5)
    write_checkpoint(snapshot(table.path, 3))
    kept = (table.log / checkpoint_name(3)).read_bytes()
    split(table, 3, 3)
    (table.log / checkpoint_name(3)).write_bytes(kept)
    split(table, 3, 2)
    (table.log / checkpoint_name(3, 3, 3)).unlink()
    (table.log / "_last_checkpoint").unlink()
    forget(table, 0, 1, 2)
    assert ids(table) == list(range(5))


@pytest.mark.spec("D-040")
@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else"])
def test_a_damaged_checkpoint(grown, content):
    table = grown(5)
    write_checkpoint(snapshot(table.path, 3))
    (table.log / checkpoint_name(3)).write_bytes(content)
    assert ids(table) == list(range(5))
    forget(table, 1)
    with pytest.raises(CorruptTableError) as error:
        bh.open(str(table))
    assert str(table.log) in error.value.where or f"{1:020d}" in error.value.message


@pytest.mark.spec("D-041", "D-042", "D-067", "D-068")
@pytest.mark.parametrize("hint", [None, 4, 8])
def test_the_newest_checkpoint_that_is_not_above(grown, hint):
    table = grown(15)
    for version in (4, 8, 12):
        write_checkpoint(snapshot(table.path, version))
    (table.log / "_last_checkpoint").unlink()
    if hint is not None:
        (table.log / "_last_checkpoint").write_text(json.dumps({"version": hint, "size": 1}))
    for version, used in ((3, None), (4, 4), (7, 4), (10, 8), (12, 12), (14, 12), (None, 12)):
        found = snapshot(table.path, version).checkpoint
        assert (found and found.version) == used
        assert ids(table, version=version) == list(range((14 if version is None else version) + 1))
    for version in (4, 8):
        (table.log / checkpoint_name(version)).write_bytes(b"never read")
    read = requests(table.path, lambda s: list(s.files()))
    assert {name for op, name in read if op.startswith("get") and name.endswith(".json")} == {
        f"{13:020d}.json",
        f"{14:020d}.json",
    }


@pytest.mark.spec("D-045", "D-032")
def test_nothing_below_a_checkpoint(grown):
    table = grown(8)
    write_checkpoint(snapshot(table.path, 5))
    forget(table, *range(6))
    assert ids(table) == list(range(8)) and ids(table, version=5) == list(range(6))
    for version in range(5):
        with pytest.raises(VersionNotFoundError, match=str(version)):
            bh.open(str(table), version=version)
    bh.open(str(table)).append(ROWS)
    assert ids(table) == [0, *range(8)]
    write_checkpoint(snapshot(table.path, 8))
    forget(table, 6, 7, 8)
    assert ids(table) == [0, *range(8)]


@pytest.mark.spec("D-049", "D-062", "D-064", "D-108", "D-175")
def test_what_a_checkpoint_leaves_out_and_keeps(grown):
    table = grown(3)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
    removed = {
        "path": "f2", "deletionTimestamp": 9_999_999_999_999, "dataChange": True, "extendedFileMetadata": True,
        "partitionValues": {}, "size": 7, "deletionVector": vector, "stats": "{}", "tags": {"k": "v"},
    }  # fmt: skip
    cdc = {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}
    table.commit(3, cdc, {"commitInfo": {"operation": "X"}}, {"remove": removed}, table.add("f1", tags={"a": "b"}))
    write_checkpoint(snapshot(table.path))
    found = pq.read_table(table.log / checkpoint_name(3))
    assert set(found.column_names) == {"protocol", "metaData", "txn", "add", "remove"}
    types = found.schema
    assert {f.name for f in types.field("remove").type} == {
        "path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size", "deletionVector",
        "baseRowId", "defaultRowCommitVersion",
    }  # fmt: skip
    assert (
        types.field("add")
        .type.field("deletionVector")
        .type.equals(types.field("remove").type.field("deletionVector").type)
    )
    (kept,) = [r for r in found.column("remove").to_pylist() if r]
    assert {k: kept[k] for k in ("path", "deletionTimestamp", "size", "extendedFileMetadata")} == {
        k: removed[k] for k in ("path", "deletionTimestamp", "size", "extendedFileMetadata")
    }
    assert {k: v for k, v in kept["deletionVector"].items() if v is not None} == vector
    tags = {r["path"]: dict(r["tags"] or ()) for r in found.column("add").to_pylist() if r}
    # The removed f2 is another file than the live one: it has a vector.
    assert tags == {"f0": {}, "f1": {"a": "b"}, "f2": {}}


@pytest.mark.spec("D-058", "D-063", "D-059")
def test_checkpoints_with_more_and_fewer_columns(grown):
    table = grown(4)
    write_checkpoint(snapshot(table.path, 2))
    where = table.log / checkpoint_name(2)
    rows = pq.read_table(where).to_pylist()
    for row in rows:
        if row["add"]:
            row["add"] = {
                k: row["add"][k] for k in ("path", "partitionValues", "size", "modificationTime", "dataChange")
            }
            row["add"]["stats"] = json.dumps({"numRecords": 1, "nullCounts": {"x": 3}, "minValues": {"x": 0}})
            row["add"]["new"] = 1
            row["add"]["partitionValues"] = {"_": None}
        if row["protocol"]:
            row["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 2, "zap": "x"}
        row["unheardOf"] = {"a": 1} if row["add"] else None
        del row["remove"], row["txn"]
    whole = pa.Table.from_pylist(rows)
    at = whole.schema.get_field_index("add")
    entries = pa.map_(pa.string(), pa.string())
    adds = whole.column("add").combine_chunks()
    parts = [pa.nulls(len(adds), entries) if f.name == "partitionValues" else adds.field(f.name) for f in adds.type]
    parts = [
        pa.array([[] if v else None for v in adds.is_valid().to_pylist()], entries) if p.type == entries else p
        for p in parts
    ]
    rebuilt = pa.StructArray.from_arrays(parts, [f.name for f in adds.type], mask=adds.is_null())
    pq.write_table(whole.set_column(at, "add", rebuilt), where)
    forget(table, 0, 1, 2)
    assert ids(table) == [0, 1, 2, 3]
    bh.open(str(table)).append(ROWS)
    assert ids(table) == [0, 0, 1, 2, 3]


@pytest.mark.spec("D-066")
def test_the_listing_starts_at_the_hint(grown):
    table = grown(1)
    for version in range(1, 60):
        table.commit(version, {"commitInfo": {}})
    write_checkpoint(snapshot(table.path, 50))
    read = requests(table.path, lambda s: list(s.files()))
    assert sum(op.startswith("list") for op, _ in read) == 1
    assert {name for op, name in read if op.startswith("get") and name.endswith(".json")} == {
        f"{v:020d}.json" for v in range(51, 60)
    }


@pytest.mark.spec("D-069", "D-070", "D-071", "D-079")
@pytest.mark.parametrize(
    "hint",
    [
        b"", b"{", b"[]", b"null", b'"3"', b"\xff\xfe", b'{"version": 99}', b'{"version": -1}', b'{"version": 3.5}',
        b'{"version": "3"}', b'{"version": 3, "parts": 7}', b'{"version": 3, "parts": "x"}',
        b'{"version": 3, "size": 6, "size_in_bytes": 100, "num_of_add_files": 4}',
        b'{"version": 3, "size": 6, "checksum": "00000000000000000000000000000000"}',
        b'{"version": 2, "version": 3, "size": 6}',
        b'{"version": 3, "size": 6, "checkpointSchema": {"a": 1, "a": 2}}',
    ],
)  # fmt: skip
def test_a_hint_is_never_a_truth(grown, hint):
    table = grown(6)
    write_checkpoint(snapshot(table.path, 3))
    (table.log / "_last_checkpoint").write_bytes(hint)
    assert ids(table) == list(range(6)) and snapshot(table.path).checkpoint.version == 3
    forget(table, 0, 1, 2)
    assert ids(table) == list(range(6))


@pytest.mark.spec("D-073")
def test_numbers_of_the_hint_stay_text():
    assert '"a"=3.10' in canonical('{"a": 3.10}') and '"a"=1e3' in canonical('{"a": 1e3}')
    assert checksum('{"version": 3.10}') != checksum('{"version": 3.1}')


@pytest.mark.spec("D-004")
def test_a_copied_folder_is_a_table_of_its_own(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    bh.write(ROWS, str(first), format="delta")
    bh.open(str(first)).append(pa.table({"x": [1]}))
    shutil.copytree(first, second)
    assert ids(second) == [0, 1] and snapshot(second).metadata.id == snapshot(first).metadata.id
    bh.open(str(second)).append(pa.table({"x": [2]}))
    assert ids(second) == [0, 1, 2] and ids(first) == [0, 1] and bh.open(str(first)).version == 1


@pytest.mark.spec("D-006")
def test_changes_read_the_entries_of_their_range_alone(tmp_path, monkeypatch):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.checkpointInterval": "4"})
    for n in range(1, 12):
        bh.open(str(path)).append(pa.table({"x": [n]}))
    storages = []

    def wrap(inner):
        storages.append(FaultyStorage(inner))
        return storages[-1]

    original = Stores.__init__
    monkeypatch.setattr(
        Stores, "__init__", lambda self, *options, **more: original(self, *options, **more | {"wrap": wrap})
    )
    table = bh.open(str(path))
    before = sum(len(s.log) for s in storages)
    found = table.changes(5, 9).to_arrow()
    assert sorted(found.column("x").to_pylist()) == [5, 6, 7, 8, 9]
    names = [op.key.rsplit("/", 1)[-1] for s in storages for op in s.log if op.name.startswith("get")][before:]
    assert {n for n in names if n.endswith(".json")} <= {f"{v:020d}.json" for v in range(4, 10)}
