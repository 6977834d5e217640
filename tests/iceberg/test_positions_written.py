"""Merge-on-read in format version 2: files of position deletes, by their bytes and entries, and as pyiceberg reads
them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_writer import IDS, SCHEMA, Foreign, current, ids_of, rows, theirs
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.ops import write as write_op

MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
BY_PARTITION = {"write.delete.granularity": "partition"}
ON = "source.id = target.id"
PATH, POSITION = 2147483546, 2147483545


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


def create(root, schema=SCHEMA, partition_by=(), **more):
    return bh.create(str(root), schema, format="iceberg", partition_by=partition_by, properties=MODES | more)


def deletes(foreign, status=(0, 1)):
    """(manifest list row, entry) of row deletes."""
    listed = [row for row in foreign._avro(current(foreign)["manifest-list"]) if row["content"] == 1]
    found = [(row, e) for row in listed for e in foreign._avro(row["manifest_path"])]
    return [(row, e) for row, e in found if e["status"] in status]


def stored(entry):
    """The rows of a file of positions, and its footer."""
    path = entry["data_file"]["file_path"].removeprefix("file://")
    return pq.read_table(path).to_pydict(), pq.ParquetFile(path)


@pytest.mark.spec("I-168")
@pytest.mark.feature("position delete files", format="iceberg")
def test_a_file_of_positions_for_each_data_file(root):
    t = create(root)
    t.append(rows(*range(10)))
    t.append(rows(*range(10, 20)))
    foreign = Foreign(root)
    before = set(foreign.live())
    result = t.delete("id in (9, 0, 3, 15)")
    assert (result.rows_deleted, result.files_added, result.files_removed) == (4, 0, 0)
    assert set(foreign.live()) == before
    assert ids_of(root) == sorted(set(range(20)) - {0, 3, 9, 15}) == theirs(foreign)
    found = {e["data_file"]["referenced_data_file"]: e for _, e in deletes(foreign)}
    assert found.keys() == before
    for path, entry in found.items():
        file = entry["data_file"]
        data, footer = stored(entry)
        positions = [0, 3, 9] if len(data["pos"]) == 3 else [5]
        assert data == {"file_path": [path] * len(positions), "pos": positions}
        ids = [int(f.metadata[b"PARQUET:field_id"]) for f in footer.schema_arrow]
        assert ids == [PATH, POSITION]
        assert [(c.name, c.max_definition_level) for c in footer.schema] == [("file_path", 0), ("pos", 0)]
        bounds = [{"key": PATH, "value": path.encode()}]
        given = {k: v for k, v in file.items() if v is not None and k != "split_offsets"}
        assert given == {
            "content": 1, "file_path": file["file_path"], "file_format": "PARQUET", "partition": {},
            "record_count": len(positions), "file_size_in_bytes": footer_size(file), "lower_bounds": bounds,
            "upper_bounds": bounds, "referenced_data_file": path,
        }  # fmt: skip
        assert entry["sequence_number"] is None and file["file_path"].endswith(".parquet")
    counts = {k: v for k, v in current(foreign)["summary"].items() if k.startswith(("added", "removed", "total-d"))}
    size = sum(e["data_file"]["file_size_in_bytes"] for e in found.values())
    assert counts == {
        "added-delete-files": "2", "added-position-delete-files": "2", "added-position-deletes": "4",
        "added-files-size": str(size), "total-data-files": "2", "total-delete-files": "2",
    }  # fmt: skip
    assert current(foreign)["summary"]["operation"] == "delete"
    t.delete("id = 1")
    assert len(deletes(foreign)) == 3 and ids_of(root) == sorted(set(range(20)) - {0, 1, 3, 9, 15}) == theirs(foreign)
    changes = t.changes(t.history()[1].version).to_arrow().to_pylist()
    assert sorted((c["_change_type"], c["id"]) for c in changes) == [("delete", n) for n in (0, 1, 3, 9, 15)]


def footer_size(file):
    from pathlib import Path

    return Path(file["file_path"].removeprefix("file://")).stat().st_size


def test_one_file_for_a_partition(root):
    """Sorted by path and position; those of an older spec are for one data file each."""
    data = pa.table({"id": list(range(12)), "p": ["a", None, "ä/b"] * 4})
    t = create(root, data.schema, ["p"], **BY_PARTITION)
    t.append(data)
    t.append(data.set_column(0, "id", pa.array(range(12, 24), pa.int64())))
    foreign = Foreign(root)
    t.delete("id in (0, 3, 12, 15, 1)")
    expected = sorted(set(range(24)) - {0, 3, 12, 15, 1})
    assert ids_of(root) == expected == theirs(foreign)
    found = {e["data_file"]["partition"]["p"]: e for _, e in deletes(foreign)}
    assert found.keys() == {"a", None}
    shared, _ = stored(found["a"])
    pairs = list(zip(shared["file_path"], shared["pos"]))
    assert len(pairs) == 4 and len(set(shared["file_path"])) == 2 and pairs == sorted(pairs)
    assert [found["a"]["data_file"][k] for k in ("referenced_data_file", "lower_bounds", "upper_bounds")] == [None] * 3
    assert found[None]["data_file"]["referenced_data_file"] is not None
    bh.open(str(root)).partition_by("p", "bucket(2, id)")
    t = bh.open(str(root))
    t.delete("id in (2, 14)")
    assert ids_of(root) == sorted(set(expected) - {2, 14}) == theirs(foreign)
    new = [(row, e["data_file"]) for row, e in deletes(foreign) if e["data_file"]["partition"]["p"] == "ä/b"]
    assert len(new) == 2 and all(row["partition_spec_id"] == 0 and f["referenced_data_file"] for row, f in new)
    t.optimize()
    assert ids_of(root) == sorted(set(expected) - {2, 14}) == theirs(foreign)


@pytest.mark.spec("I-260", "I-261")
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_ids_and_order_as_others_read_them(root, granularity):
    """The bytes by pyarrow, and what PyIceberg makes of the file alone: positions by the path of each data file."""
    from pyiceberg.io.pyarrow import PyArrowFileIO, _read_deletes

    t = create(root, pa.schema([*SCHEMA]), ["p"], **{"write.delete.granularity": granularity})
    gone = {0: [6, 0, 3], 1: [9, 1], 2: [2]}
    for n in gone:
        t.append(rows(*range(n * 10, n * 10 + 10)))
    t.delete("id in ({})".format(", ".join(str(n * 10 + i) for n, found in gone.items() for i in found)))
    foreign = Foreign(root)
    by_file, files = {}, [f for f in theirs_tasks(foreign) if f.content == 1]
    assert len(files) == (3 if granularity == "file" else 1)
    for file in files:
        path = file.file_path.removeprefix("file://")
        table = pq.read_table(path)
        fields = {f.name: (int(f.metadata[b"PARQUET:field_id"]), str(f.type), f.nullable) for f in table.schema}
        assert fields == {"file_path": (PATH, "string", False), "pos": (POSITION, "int64", False)}
        pairs = list(zip(*table.to_pydict().values()))
        assert pairs == sorted(pairs)
        for data_path, positions in _read_deletes(PyArrowFileIO(), file).items():
            by_file[data_path] = positions.to_pylist()
    assert by_file.keys() == set(foreign.live())
    assert sorted(by_file.values()) == sorted(sorted(found) for found in gone.values())


def theirs_tasks(foreign):
    """Every live file as PyIceberg's metadata has it."""
    table = StaticTable.from_metadata(f"file://{foreign.head}")
    entries = (m.fetch_manifest_entry(table.io) for m in table.current_snapshot().manifests(table.io))
    return [e.data_file for found in entries for e in found]


@pytest.mark.spec("I-261")
def test_files_of_others_in_any_order(root):
    create(root).append(rows(*range(10)))
    foreign = Foreign(root)
    [path] = foreign.live()
    places = pa.table({"pos": pa.array([7, 0, 3, 0], pa.int64()), "file_path": [path] * 4})
    foreign.commit(foreign.parquet(places, (POSITION, PATH), 1))
    assert ids_of(root) == [1, 2, 4, 5, 6, 8, 9] == theirs(foreign)


def test_updates_and_merges(root):
    t = create(root)
    t.append(rows(*range(10)))
    foreign = Foreign(root)
    [first] = foreign.live()
    assert t.update({"x": "x + 100"}, "id = 6").rows_copied == 0
    merge = t.merge(rows(2, 3, 30, x=-1.0), ON).when_matched_delete("source.id = 2").when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    assert (result.rows_added, result.rows_updated, result.rows_deleted, result.rows_copied) == (1, 1, 1, 0)
    assert first in foreign.live() and len(deletes(foreign)) == 2
    found = t.scan(["id", "x"]).to_arrow().sort_by("id").to_pydict()
    assert found["id"] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 30] == theirs(foreign)
    assert found["x"] == [0.0, 1.0, -1.0, 4.0, 5.0, 106.0, 7.0, 8.0, 9.0, -1.0]
    t.purge()
    assert deletes(foreign) == [] and first not in foreign.live() and ids_of(root) == found["id"] == theirs(foreign)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.spec("I-262")
def test_data_files_are_named_as_the_metadata_names_them(root, version):
    """Java and pyiceberg compare the paths as texts: here without a scheme, as a catalog in a folder writes them."""
    create(root, **{"format-version": version})
    foreign = Foreign(root)
    plain = foreign.data(rows(*range(5)), IDS)
    plain["data_file"]["file_path"] = plain["data_file"]["file_path"].removeprefix("file://")
    foreign.commit(plain, foreign.data(rows(*range(5, 9)), IDS))
    t = bh.open(str(root))
    t.delete("id in (1, 6)")
    t.update({"x": "0"}, "id = 2")
    recorded = set(foreign.live())
    names = {e["data_file"]["referenced_data_file"] for _, e in deletes(foreign)}
    assert plain["data_file"]["file_path"] in names <= recorded
    assert ids_of(root) == [0, 2, 3, 4, 5, 7, 8] == theirs(foreign)
    if version == "2":
        for _, entry in deletes(foreign):
            assert set(stored(entry)[0]["file_path"]) == {entry["data_file"]["referenced_data_file"]}


@pytest.mark.spec("I-268")
def test_what_cannot_be_obeyed_is_refused_before_anything_is_written(root):
    t = create(root)
    t.append(rows(1, 2, 3))
    for properties, error, words in (
        ({"write.delete.format.default": "lance"}, UnsupportedFeatureError, "delete files are written as lance"),
        ({"write.delete.format.default": None, "write.delete.granularity": "table"}, InvalidArgumentError, "'table'"),
    ):
        t.set_properties(properties)
        before = sorted(root.rglob("*"))
        with pytest.raises(error, match=words):
            t.delete("id = 1")
        if error is UnsupportedFeatureError:
            with pytest.raises(error, match=words):
                t.upsert(rows(1), on="id", deletes="equality")
        assert sorted(root.rglob("*")) == before
    assert ids_of(root) == [1, 2, 3]


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets `act` happen once, after the first work of a write and before its commit."""

    def arrange(act):
        calls = []
        for kind in (write_op.RowWork, write_op.TaskWork):

            def perform(work, engine, real=kind.perform):
                done = real(work, engine)
                calls.append(1)
                if len(calls) == 1:
                    act()
                return done

            monkeypatch.setattr(kind, "perform", perform)

    return arrange


@pytest.mark.parametrize("other", ["delete", "optimize", "append"])
def test_concurrent_commits(root, meanwhile, other):
    t = create(root)
    t.append(rows(*range(10)))
    t.append(rows(*range(10, 20)))
    foreign = Foreign(root)
    act = {
        "delete": lambda: bh.open(str(root)).delete("id in (3, 4)"),
        "optimize": lambda: bh.open(str(root)).optimize(),
        "append": lambda: bh.open(str(root)).append(rows(3)),
    }[other]
    meanwhile(act)
    result = bh.open(str(root)).update({"x": "-7"}, "id in (2, 3)")
    wanted = {"delete": set(range(20)) - {3, 4}, "append": [*range(20), 3]}
    expected = sorted(wanted.get(other, range(20)))
    assert ids_of(root) == expected == theirs(foreign)
    changed = bh.open(str(root)).scan(["id"], where="x = -7").to_arrow()["id"].to_pylist()
    assert sorted(changed) == [n for n in expected if n in (2, 3)] and result.rows_updated == len(changed)
    live = set(foreign.live())
    assert {e["data_file"]["referenced_data_file"] for _, e in deletes(foreign)} <= live
    # The files of the lost attempt are gone.
    there = {f"file://{p}" for p in root.rglob("*.parquet")}
    named = set()
    for snapshot in foreign.document["snapshots"]:
        for row in foreign._avro(snapshot["manifest-list"]):
            named |= {e["data_file"]["file_path"] for e in foreign._avro(row["manifest_path"])}
    assert there == named


def test_files_of_positions_go_with_their_data_file(root):
    t = create(root)
    t.append(rows(*range(10)))
    t.append(rows(*range(10, 20)))
    foreign = Foreign(root)
    t.delete("id in (3, 14)")
    t.set_properties({"write.delete.mode": "copy-on-write"})
    t.delete("id = 4")
    assert [e["data_file"]["record_count"] for _, e in deletes(foreign)] == [1]
    summary = current(foreign)["summary"]
    assert (summary["removed-position-delete-files"], summary["total-delete-files"]) == ("1", "1")
    t.delete("id >= 10")
    assert deletes(foreign) == [] and ids_of(root) == [0, 1, 2, *range(5, 10)] == theirs(foreign)


def test_an_upgrade_meanwhile(root, meanwhile):
    """Version 3 gets no new file of positions: the delete is planned again, and writes a vector."""
    t = create(root)
    t.append(rows(*range(10)))
    meanwhile(lambda: bh.open(str(root)).set_properties({"format-version": "3"}))
    bh.open(str(root)).delete("id = 3")
    foreign = Foreign(root)
    assert [e["data_file"]["file_format"] for _, e in deletes(foreign)] == ["PUFFIN"]
    assert ids_of(root) == [0, 1, 2, *range(4, 10)] == theirs(foreign)
    assert not list(root.glob("data/*-deletes-*.parquet"))


def test_the_codec_of_files_of_positions(root):
    """As for data files, unless the table says otherwise."""
    codecs = {"write.parquet.compression-codec": "gzip"}
    t = create(root, **codecs)
    t.append(rows(*range(10)))
    foreign = Foreign(root)
    t.delete("id = 1")
    t.set_properties({"write.delete.parquet.compression-codec": "zstd", "write.delete.parquet.compression-level": "5"})
    t.update({"x": "0"}, "id = 2")
    found = [stored(e)[1].metadata.row_group(0).column(0).compression for _, e in deletes(foreign)]
    assert sorted(found) == ["GZIP", "ZSTD"]
    data = [pq.ParquetFile(p.removeprefix("file://")).metadata.row_group(0).column(0) for p in foreign.live()]
    assert {c.compression for c in data} == {"GZIP"}
