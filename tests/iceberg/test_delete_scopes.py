"""Which rows delete files reach: by sequence number, partition, path and column, whatever the query asks for."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_writer import PATH_ID, POSITION_ID, Foreign, bound, with_ids

import boathouse as bh
from boathouse.engines import local
from boathouse.iceberg import tasks as iceberg_tasks
from makers.effort import counted_calls

IDS = (1, 2, 3)
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids), "x": [float(i) for i in ids]}, SCHEMA)


def ids_of(foreign, **scan):
    return sorted(bh.open(str(foreign.root)).scan(["id"], **scan).to_arrow()["id"].to_pylist())


@pytest.fixture
def new(tmp_path):
    """new(partition_by) -> the writer of a new table."""

    def new(**options):
        root = tmp_path / "t"
        bh.create(str(root), SCHEMA, format="iceberg", **options)
        return Foreign(root)

    return new


def path_of(entry):
    return entry["data_file"]["file_path"]


def raw_positions(foreign, pairs, ids=(PATH_ID, POSITION_ID), row=None, **more):
    """A position delete file with these pairs as they are, in their order, and a column `row` if there is one."""
    table = pa.table({"file_path": [p for p, _ in pairs], "pos": pa.array([n for _, n in pairs], pa.int64())})
    if row is not None:
        table, ids = table.append_column("row", row), (*ids, 2147483544)
    return foreign.parquet(table, ids, 1, **more)


@pytest.mark.spec("I-209", "I-210")
def test_position_deletes_by_sequence_and_partition(new):
    """They reach files of the same commit and older ones, of the same spec and tuple; no newer one, no other place."""
    foreign = new(partition_by=["p"])
    a, b = (foreign.data(rows(*ids, p=p), IDS, {"p": p}) for ids, p in (((0, 1, 2), "a"), ((10, 11, 12), "b")))
    foreign.commit(a, b)
    same = foreign.data(rows(20, 21, 22), IDS, {"p": "a"})
    mine = [(path_of(a), 0), (path_of(same), 1), (path_of(b), 0)]
    foreign.commit(same, foreign.positions(mine, {"p": "a"}))
    assert ids_of(foreign) == [1, 2, 10, 11, 12, 20, 22]
    newer = foreign.data(rows(30, 31), IDS, {"p": "a"})
    foreign.commit(foreign.positions([(path_of(newer), 0), (path_of(b), 2)], {"p": "b"}))
    foreign.commit(newer)
    assert ids_of(foreign) == [1, 2, 10, 11, 20, 22, 30, 31]
    foreign.edit(lambda d: d["partition-specs"].append({"spec-id": 1, "fields": []}))
    foreign.commit(foreign.positions([(path_of(a), 1), (path_of(b), 0)]), spec=1)
    assert ids_of(foreign) == [1, 2, 10, 11, 20, 22, 30, 31], "another spec, though its tuple is empty"
    assert ids_of(foreign, where="p = 'a' AND id > 1") == [2, 20, 22, 30, 31]


@pytest.mark.spec("I-214")
def test_a_delete_file_for_one_data_file(new):
    """By `referenced_data_file`, which wins over the paths inside; and by equal bounds of the paths."""
    foreign = new()
    a, b = foreign.data(rows(0, 1, 2), IDS), foreign.data(rows(10, 11, 12), IDS)
    foreign.commit(a, b)
    both = [(path_of(a), 0), (path_of(b), 0)]
    foreign.commit(foreign.positions(both, referenced_data_file=path_of(a)))
    assert ids_of(foreign) == [1, 2, 10, 11, 12]
    same = [{"key": PATH_ID, "value": bound(path_of(b))}]
    only = [(path_of(b), 1), (path_of(b), 2)]
    foreign.commit(foreign.positions(only, lower_bounds=same, upper_bounds=same))
    assert ids_of(foreign) == [1, 2, 10]


@pytest.mark.spec("I-265")
def test_unsorted_shared_and_repeated_positions(new):
    """One file for several data files, several for one, in any order, each position any number of times."""
    foreign = new()
    a, b = foreign.data(rows(*range(10)), IDS), foreign.data(rows(*range(10, 20)), IDS)
    foreign.commit(a, b)
    mixed = [(path_of(b), 7), (path_of(a), 9), (path_of(b), 0), (path_of(a), 3), (path_of(b), 7), (path_of(a), 3)]
    foreign.commit(raw_positions(foreign, mixed), raw_positions(foreign, mixed[::-1]))
    foreign.commit(raw_positions(foreign, [(path_of(a), 4), (path_of(a), 3)]))
    assert ids_of(foreign) == [0, 1, 2, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 18, 19]
    table = bh.open(str(foreign.root))
    assert table.count() == 15 and table.scan(where="id IN (3, 4, 5, 17)").to_arrow()["id"].to_pylist() == [5]
    changed = sorted((c["_change_type"], c["id"]) for c in table.changes(table.version).to_arrow().to_pylist())
    assert changed == [("delete", 4)]


def test_columns_by_id_whatever_they_are_called(new):
    foreign = new()
    a = foreign.data(rows(0, 1, 2), IDS)
    foreign.commit(a)
    table = pa.table({"pos": [path_of(a)], "n": pa.array([9], pa.int64()), "file_path": pa.array([1], pa.int64())})
    foreign.commit(foreign.parquet(table, (PATH_ID, 77, POSITION_ID), 1))
    assert ids_of(foreign) == [0, 2]


@pytest.mark.spec("I-262")
@pytest.mark.parametrize("spelling", ["file:{}", "file:///{}", "{}", "file://localhost{}"])
def test_other_spellings_of_a_path(new, spelling):
    foreign = new()
    a = foreign.data(rows(0, 1, 2), IDS)
    foreign.commit(a)
    plain = path_of(a).removeprefix("file://")
    written = spelling.format(plain.lstrip("/") if "///" in spelling else plain)
    foreign.commit(raw_positions(foreign, [(written, 1), (path_of(a), 0)]))
    assert ids_of(foreign) == [2]
    more = {"referenced_data_file": written}
    foreign.commit(raw_positions(foreign, [(path_of(a), 2)], **more))
    assert ids_of(foreign) == []


@pytest.mark.spec("I-263")
@pytest.mark.parametrize("required", [False, True])
def test_the_deleted_rows_that_a_file_repeats_are_ignored(new, required):
    """The column `row` has other values than the data file: only path and position decide."""
    foreign = new()
    a = foreign.data(rows(0, 1, 2), IDS)
    foreign.commit(a)
    inner = pa.struct([pa.field("id", pa.int64(), not required, {b"PARQUET:field_id": b"1"})])
    row = pa.array([{"id": 2}, {"id": 0}], inner)
    table = pa.table({"file_path": [path_of(a)] * 2, "pos": pa.array([1, 9], pa.int64()), "row": row})
    fields = [f.with_metadata({b"PARQUET:field_id": str(i).encode()}) for f, i in
              zip(table.schema, (PATH_ID, POSITION_ID, 2147483544))]  # fmt: skip
    fields[2] = fields[2].with_nullable(not required)
    foreign.commit(foreign.parquet(table.cast(pa.schema(fields)), None, 1))
    assert ids_of(foreign) == [0, 2]


@pytest.mark.spec("I-264")
def test_positions_count_the_rows_as_written(new):
    """Row groups that a condition skips count as well."""
    foreign = new()
    data = rows(*range(100))
    path = foreign.root / "data" / "groups.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(with_ids(data, IDS), path, row_group_size=10)
    entry = foreign.entry(path, "PARQUET", 0, 100)
    foreign.commit(entry)
    gone = [0, 9, 10, 55, 56, 57, 99]
    foreign.commit(foreign.positions([(path_of(entry), n) for n in gone]))
    live = [n for n in range(100) if n not in gone]
    assert ids_of(foreign) == live
    for where, keep in (
        ("id >= 50 AND id < 60", lambda n: 50 <= n < 60), ("x > 94", lambda n: n > 94), ("id = 55", lambda n: n == 55),
        ("p = 'a' AND id < 12", lambda n: n < 12), ("p = 'b'", lambda n: False), ("abs(id - 56) < 3",
        lambda n: abs(n - 56) < 3),
    ):  # fmt: skip
        assert ids_of(foreign, where=where) == [n for n in live if keep(n)], where


@pytest.mark.spec("I-277")
def test_a_key_that_old_files_lack(new):
    """Their rows count as null."""
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2), IDS))

    def add(document):
        fields = [*document["schemas"][0]["fields"], {"id": 4, "name": "k", "type": "long", "required": False}]
        document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
        document.update({"current-schema-id": 1, "last-column-id": 4})

    foreign.edit(add)
    foreign.commit(foreign.data(pa.table({"id": [3, 4], "k": pa.array([None, 8], pa.int64())}), (1, 4)))
    foreign.commit(foreign.equality(pa.table({"k": [7]}), [4]))
    assert ids_of(foreign) == [1, 2, 3, 4]
    foreign.commit(foreign.equality(pa.table({"k": pa.array([None], pa.int64())}), [4]))
    assert ids_of(foreign) == [4] and ids_of(foreign, where="id < 4") == []


def statistics(ids, table):
    values = {i: [v for v in c.to_pylist() if v is not None] for i, c in zip(ids, table.columns)}
    return {
        "lower_bounds": [{"key": i, "value": bound(min(v))} for i, v in values.items() if v],
        "upper_bounds": [{"key": i, "value": bound(max(v))} for i, v in values.items() if v],
        "null_value_counts": [{"key": i, "value": c.null_count} for i, c in zip(ids, table.columns)],
        "value_counts": [{"key": i, "value": len(table)} for i in ids],
    }


@pytest.mark.spec("I-208")
@pytest.mark.parametrize("where", ["id = 9", "x = 9", "p = 'z' AND id = 9", "id = 9 OR id = 1", "id > 8", "id <> 9"])
def test_bounds_of_a_delete_file_never_lose_a_delete(new, where):
    """A delete file's metrics describe its own rows, all its columns: of those that are no keys, such as `p` here, they
    say nothing about the rows that it deletes."""
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2, 9, p="z"), IDS, bounds=True))
    foreign.commit(foreign.data(rows(9, 10, p="z"), IDS, bounds=True))
    low, wide = rows(1, 2, p="a"), rows(9, p="a")
    foreign.commit(foreign.equality(low, IDS, [1], **statistics(IDS, low)))
    foreign.commit(foreign.equality(wide.set_column(2, "x", pa.array([500.0])), IDS, [1], **statistics(IDS, wide)))
    expected = {"id > 8": [10], "id <> 9": [10]}.get(where, [])
    assert ids_of(foreign) == [10] and ids_of(foreign, where=where) == expected


@pytest.mark.spec("I-208")
def test_delete_files_whose_bounds_exclude_every_unit_are_not_read(new):
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2), IDS, bounds=True))
    foreign.commit(foreign.data(rows(9, 10), IDS, bounds=True))
    low = pa.table({"id": [1, 3]})
    entry = foreign.equality(low, [1], **statistics([1], low))
    foreign.commit(entry)
    assert ids_of(foreign) == [2, 9, 10]
    (foreign.root / "data" / path_of(entry).rpartition("/")[2]).unlink()
    assert ids_of(foreign, where="id = 9") == [9], "the file could not delete it"
    assert bh.open(str(foreign.root))._handle.snapshot.plan().deletes.num_rows == 1


@pytest.mark.spec("I-281")
def test_a_thousand_delete_files_over_a_thousand_data_files(new, monkeypatch):
    """The entries share one Parquet file of each kind: what is measured is planning, and that reading loads each of
    them once for a task."""
    foreign = new()
    data = [foreign.data(rows(n, n + 5000), IDS, bounds=True) for n in range(20)]
    entries = []
    for i in range(1000):
        copied = {**data[i % 20]["data_file"]}
        path = foreign.root / "data" / f"copy-{i}.parquet"
        path.hardlink_to(copied["file_path"].removeprefix("file://"))
        entries.append({"status": 1, "data_file": {**copied, "file_path": f"file://{path}"}})
    foreign.commit(*entries)
    key = pa.table({"id": [3, 5010]})
    one = foreign.equality(key, [1])
    deletes = []
    for i in range(1000):
        path = foreign.root / "data" / f"deletes-{i}.parquet"
        path.hardlink_to(path_of(one).removeprefix("file://"))
        deletes.append({"status": 1, "data_file": {**one["data_file"], "file_path": f"file://{path}"}})
    foreign.commit(*deletes)
    with counted_calls() as planning:
        plan = bh.open(str(foreign.root))._handle.snapshot.plan()
    assert plan.units.num_rows == 1000 and plan.deletes.num_rows == 1000
    assert plan.units.nbytes + plan.deletes.nbytes < 64 << 20
    assert planning.count < 3_000_000  # with each data file looked at for each delete file another million
    loaded, real = Counter(), iceberg_tasks.load_keys

    def load(read, delete, keys):
        loaded[delete["path"]] += 1
        return real(read, delete, keys)

    monkeypatch.setattr(iceberg_tasks, "load_keys", load)
    assert ids_of(foreign, where="id < 5") == sorted([0, 1, 2, 4] * 50)
    where = bh.open(str(foreign.root)).scan(["id"], "id < 5")
    tasks = len(list(where.plan().tasks(at_least=local._WORKERS)))
    assert len(loaded) == 1000 and set(loaded.values()) == {tasks}
