"""A SQL catalog: our document and one swap of its row, beside PyIceberg's own commits."""

import json
import os
import threading
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

import boathouse as bh
from boathouse.errors import CommitUnknownError, StorageError
from boathouse.iceberg.catalogs import sql

pytest.importorskip("sqlalchemy")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "city": [f"c{i % 2}" for i in ids]}, schema=SCHEMA)


@pytest.fixture
def options(tmp_path):
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


@pytest.fixture
def theirs(options, version):
    from pyiceberg.catalog import load_catalog

    made = load_catalog("prod", **options)
    made.create_namespace("db")
    made.create_table("db.t", SCHEMA, properties={"format-version": min(version, "2")})
    if version == "3":
        bh.catalog("prod", **options).open("db.t").set_properties({"format-version": "3"})
    return made


@pytest.fixture
def ours(theirs, options):
    return bh.catalog("prod", **options)


def ids(table):
    found = table.to_arrow() if hasattr(table, "to_arrow") else table.scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def files(root, ending):
    return {p for p in Path(root).rglob("*") if p.name.endswith(ending)}


@pytest.mark.spec("I-255")
def test_an_append_asks_for_the_row_and_swaps_it(ours, theirs, monkeypatch):
    asked = []
    for name in ("location", "swap"):
        real = getattr(sql.SqlRow, name)
        monkeypatch.setattr(sql.SqlRow, name, lambda self, *args, n=name, r=real: (asked.append(n), r(self, *args))[1])
    client = ours._made.client
    for name in ("load_table", "commit_table"):
        monkeypatch.setattr(type(client), name, lambda *args, n=name: pytest.fail(f"{n} was called"))
    t = ours.open("db.t")
    assert asked == ["location"]
    for n in (1, 2, 3):
        asked.clear()
        t.append(rows(n))
        assert asked == ["location", "swap"]
    monkeypatch.undo()
    assert ids(theirs.load_table("db.t")) == [1, 2, 3] == ids(t)


@pytest.mark.spec("I-254")
def test_in_turn_with_pyiceberg_every_document_follows_the_one_before(ours, theirs, version):
    t = ours.open("db.t")
    for n in range(0, 8, 2):
        t.append(rows(n))
        if version != "3":  # which pyiceberg does not write
            theirs.load_table("db.t").append(rows(n + 1))
    table = theirs.load_table("db.t")
    assert ids(table) == [*range(0, 8, 2 if version == "3" else 1)] == ids(ours.open("db.t"))
    line = [e.metadata_file for e in table.metadata.metadata_log] + [table.metadata_location]
    numbers = [int(os.path.basename(uri).split("-")[0]) for uri in line]
    assert numbers == [*range(len(line))]
    for before, after in pairwise(line):
        document = json.loads(Path(after.removeprefix("file://")).read_bytes())
        assert document["metadata-log"][-1]["metadata-file"] == before and document["format-version"] == int(version)
    with theirs.engine.connect() as connection:
        row = connection.exec_driver_sql("select metadata_location, previous_metadata_location from iceberg_tables")
        assert row.one() == (line[-1], line[-2])


@pytest.mark.few(1)
@pytest.mark.spec("I-254")
@pytest.mark.parametrize("version", ["1", "2"], indirect=True)
def test_both_libraries_at_the_same_time_lose_no_row(ours, theirs, options):
    from pyiceberg.catalog import load_catalog

    failed = []

    def mine(first):
        t = bh.catalog("prod", **options).open("db.t")
        for n in range(first, first + 6):
            t.append(rows(n))

    def other(first):
        catalog = load_catalog("prod", **options)
        for n in range(first, first + 6):
            for _ in range(200):
                try:
                    catalog.load_table("db.t").append(rows(n))
                    break
                except CommitFailedException:
                    continue

    def guarded(work, first):
        try:
            work(first)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=a) for a in ((mine, 0), (mine, 10), (other, 20), (other, 30))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    expected = sorted(n + i for n in (0, 10, 20, 30) for i in range(6))
    assert ids(theirs.load_table("db.t")) == expected == ids(ours.open("db.t"))


@pytest.mark.spec("I-256")
@pytest.mark.parametrize("kind", ["rows", "properties"])
@pytest.mark.parametrize("version", ["1", "2"], indirect=True)
def test_a_head_that_moved_is_followed_again(ours, theirs, monkeypatch, kind):
    real, thefts = sql.SqlRow.swap, [1]

    def swap(row, before, after):
        if thefts:
            thefts.pop()
            table = theirs.load_table("db.t")
            if kind == "rows":
                table.append(rows(9))
            else:
                table.transaction().set_properties(owner="them").commit_transaction()
        return real(row, before, after)

    monkeypatch.setattr(sql.SqlRow, "swap", swap)
    before = files(theirs.load_table("db.t").location().removeprefix("file://"), ".json")
    assert ours.open("db.t").append(rows(4)).retries == 1
    seen = theirs.load_table("db.t")
    assert ids(seen) == ([4, 9] if kind == "rows" else [4])
    assert seen.properties.get("owner") == (None if kind == "rows" else "them")
    # The document of the lost attempt is removed.
    assert len(files(seen.location().removeprefix("file://"), ".json") - before) == 2


@pytest.mark.spec("I-256")
@pytest.mark.parametrize("kind", ["rows", "properties"])
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_a_commit_without_an_answer(ours, theirs, monkeypatch, kind, committed):
    monkeypatch.setattr("boathouse.iceberg.catalogs.pyiceberg._LOOKS", 2)
    real = sql.Swap.commit

    def commit(swap):
        if committed:
            real(swap)
        else:
            swap._connection.close()
        raise ConnectionError("reset")

    monkeypatch.setattr(sql.Swap, "commit", commit)
    t = ours.open("db.t")
    write = (lambda: t.append(rows(1))) if kind == "rows" else (lambda: t.set_properties({"owner": "us"}))
    if committed:
        write()
        seen = theirs.load_table("db.t")
        assert ids(seen) == [1] if kind == "rows" else seen.properties["owner"] == "us"
    else:
        with pytest.raises(CommitUnknownError):
            write()
        if kind == "rows":
            assert len(files(theirs.load_table("db.t").location().removeprefix("file://"), ".parquet")) == 1


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_an_error_before_the_commit_leaves_nothing(ours, theirs, monkeypatch):
    def swap(row, before, after):
        raise OSError("database is locked")

    t = ours.open("db.t")
    root = theirs.load_table("db.t").location().removeprefix("file://")
    before = files(root, ".json")
    with monkeypatch.context() as patched:
        patched.setattr(sql.SqlRow, "swap", swap)
        with pytest.raises(StorageError, match="locked"):
            t.append(rows(1))
    assert files(root, ".json") == before and not files(root, ".parquet")
    t.append(rows(2))
    assert ids(theirs.load_table("db.t")) == [2]


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_the_folder_of_documents_is_that_of_the_property(ours, theirs, tmp_path):
    t = ours.open("db.t")
    t.set_properties({"write.metadata.path": f"file://{tmp_path}/wh/elsewhere/"})
    t.append(rows(1))
    theirs.load_table("db.t").append(rows(2))
    t.append(rows(3))
    table = theirs.load_table("db.t")
    assert ids(table) == [1, 2, 3] == ids(ours.open("db.t"))
    folders = [os.path.dirname(e.metadata_file) for e in table.metadata.metadata_log[-2:]]
    assert {*folders, os.path.dirname(table.metadata_location)} == {f"file://{tmp_path}/wh/elsewhere"}


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_locations_are_spelled_as_they_were(ours, theirs):
    with theirs.engine.begin() as connection:
        connection.exec_driver_sql("update iceberg_tables set metadata_location = substr(metadata_location, 8)")
    ours.open("db.t").append(rows(1))
    with theirs.engine.connect() as connection:
        found = connection.exec_driver_sql("select metadata_location, previous_metadata_location from iceberg_tables")
        assert all(text.startswith("/") for text in found.one())
    assert ids(theirs.load_table("db.t")) == [1]


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_a_catalog_that_commits_in_its_own_way_is_asked_to(ours, theirs, options):
    class Audited(SqlCatalog):
        commits = 0

        def commit_table(self, *args):
            Audited.commits += 1
            return super().commit_table(*args)

    made = ours._made
    client = Audited("prod", **options)
    bh.Catalog(type(made)(made.name, client, made.secrets)).open("db.t").append(rows(1))
    assert Audited.commits == 1 and ids(theirs.load_table("db.t")) == [1]


@pytest.mark.parametrize("version", ["2"], indirect=True)
def test_a_document_that_is_gone(ours, theirs):
    place = theirs.load_table("db.t").metadata_location
    Path(place.removeprefix("file://")).unlink()
    with pytest.raises(StorageError, match="metadata document that is not there"):
        ours.open("db.t")
