"""Row deletes by keys and files of positions that become vectors, in version 2 files of positions, without a new data
file. PyIceberg reads no equality deletes, so that it reads the tables afterwards only."""

import pyarrow as pa
import pytest
from foreign_writer import IDS, SCHEMA, Foreign, current, ids_of, rows, theirs

import boathouse as bh
from boathouse.errors import UnsupportedFeatureError
from boathouse.ops import write as write_op


def deletes(foreign):
    listed = [row for row in foreign._avro(current(foreign)["manifest-list"]) if row["content"] == 1]
    found = [e for row in listed for e in foreign._avro(row["manifest_path"])]
    return [e["data_file"] for e in found if e["status"] != 2]


def keys(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=[2, 3])
def version(request):
    return request.param


@pytest.fixture
def foreign(tmp_path, version):
    """Rows 0 to 29 in three files, with every kind of row delete; the rows that are left are `LEFT`."""
    root = tmp_path / "t"
    bh.create(str(root), SCHEMA, format="iceberg")
    foreign = Foreign(root)
    foreign.commit(*(foreign.data(rows(*range(n, n + 10)), IDS) for n in (0, 10, 20)))
    first, second, third = foreign.live()
    foreign.commit(foreign.equality(keys(3, 13, None), [1]), foreign.positions([(first, 1), (second, 2)]))
    foreign.commit(foreign.positions([(first, 1), (first, 5)], referenced_data_file=first))
    foreign.commit(foreign.positions([(third, 9)], referenced_data_file=third))
    foreign.commit(foreign.equality(pa.table({"p": ["nowhere"]}), [2]))
    foreign.commit(foreign.data(rows(40, 41), IDS))
    if version == 3:
        foreign.edit(lambda d: d.update({"format-version": 3, "next-row-id": 0}))
        foreign.commit(*foreign.vectors({third: [9, 0]}))
    return foreign


def left(version):
    return sorted((set(range(30)) - {1, 3, 5, 12, 13, 29} - ({20} if version == 3 else set())) | {40, 41})


@pytest.mark.feature("rewrite of row deletes", format="iceberg")
def test_deletes_of_every_kind(foreign, version):
    before, t = foreign.live(), bh.open(str(foreign.root))
    assert ids_of(foreign.root) == left(version)
    assert t.rewrite_deletes(dry_run=True).version is None
    done = t.rewrite_deletes(message="read faster")
    assert (done.rows_deleted, done.rows_added, done.files_added, done.files_removed) == (0, 0, 0, 0)
    assert foreign.live() == before
    assert ids_of(foreign.root) == left(version) == theirs(foreign) and t.count() == len(left(version))
    found = {f["referenced_data_file"]: f for f in deletes(foreign)}
    assert len(found) == len(deletes(foreign)) and None not in found
    assert [found[path]["record_count"] for path in before[:3]] == [3, 2, 2 if version == 3 else 1]
    assert {f["content"] for f in found.values()} == {1}
    assert {f["file_format"] for f in found.values()} == {"PUFFIN" if version == 3 else "PARQUET"}
    summary = current(foreign)["summary"]
    assert (summary["operation"], summary["removed-equality-deletes"]) == ("replace", "4")
    assert t.history()[0].message == "read faster"
    assert t.changes(t.version).to_arrow().num_rows == 0
    assert t.rewrite_deletes().version is None, "there is nothing left to do"
    t.optimize()
    assert ids_of(foreign.root) == left(version) == theirs(foreign) and deletes(foreign) == []


def test_a_file_without_rows_goes(foreign, version):
    first = foreign.live()[0]
    foreign.commit(foreign.equality(keys(*range(10)), [1]))
    t = bh.open(str(foreign.root))
    t.rewrite_deletes()
    assert first not in foreign.live() and first not in {f["referenced_data_file"] for f in deletes(foreign)}
    assert ids_of(foreign.root) == [n for n in left(version) if n > 9] == theirs(foreign)


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets `act` happen once, after the work and before the commit."""

    def arrange(act):
        calls = []
        real = write_op.TaskWork.perform

        def perform(work, engine):
            done = real(work, engine)
            calls.append(1)
            if len(calls) == 1:
                act()
            return done

        monkeypatch.setattr(write_op.TaskWork, "perform", perform)

    return arrange


@pytest.mark.few(3)
@pytest.mark.parametrize("what", ["keys", "positions", "rows", "a delete of ours"])
def test_commits_meanwhile(foreign, version, meanwhile, what):
    """Deletes that come meanwhile are kept, or rewritten too; rows that come are not deleted by what is older."""
    first = foreign.live()[0]
    modes = {"write.delete.mode": "merge-on-read"}
    bh.open(str(foreign.root)).set_properties(modes)
    expected = set(left(version))
    acts = {
        "keys": (lambda: foreign.commit(foreign.equality(keys(8, 28), [1])), expected - {8, 28}),
        "positions": (lambda: foreign.commit(foreign.positions([(first, 7)])), expected - {7}),
        "rows": (lambda: bh.open(str(foreign.root)).append(rows(3, 13)), expected | {3, 13}),
        "a delete of ours": (lambda: bh.open(str(foreign.root)).delete("id = 27"), expected - {27}),
    }
    if version == 3 and what == "positions":
        acts[what] = (lambda: foreign.commit(*foreign.vectors({foreign.live()[-1]: [1]})), expected - {41})
    act, wanted = acts[what]
    meanwhile(act)
    bh.open(str(foreign.root)).rewrite_deletes()
    assert ids_of(foreign.root) == sorted(wanted)
    bh.open(str(foreign.root)).rewrite_deletes()
    assert ids_of(foreign.root) == sorted(wanted) == theirs(foreign)


def test_it_is_refused_by_name(tmp_path):
    for i, options in enumerate(({"format": "iceberg", "properties": {"format-version": "1"}}, {"format": "delta"})):
        t = bh.create(str(tmp_path / str(i)), SCHEMA, **options)
        t.append(rows(1))
        with pytest.raises(UnsupportedFeatureError, match="rewriting row deletes is not offered"):
            t.rewrite_deletes()


@pytest.mark.spark
@pytest.mark.feature("rewrite of row deletes", format="iceberg")
def test_on_spark(foreign, version, spark):
    t = bh.open(str(foreign.root), spark=spark)
    t.rewrite_deletes()
    assert ids_of(foreign.root) == left(version) == theirs(foreign)
