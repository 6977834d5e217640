"""Tables of catalogs: read and written through them, beside PyIceberg, and with answers that get lost."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.types import StringType

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    CommitConflictError,
    CommitUnknownError,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
)
from boathouse.iceberg import snapshot

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "city": [f"c{i % 2}" for i in ids]}, schema=SCHEMA)


@pytest.fixture
def options(tmp_path):
    (tmp_path / "wh").mkdir()
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}


@pytest.fixture
def theirs(options):
    from pyiceberg.catalog import load_catalog

    made = load_catalog("prod", **options)
    made.create_namespace("db")
    made.create_namespace("db.deep")
    table = made.create_table("db.t", SCHEMA)
    table.append(rows(1, 2, 3))
    made.create_table("db.deep.u", SCHEMA)
    return made


@pytest.fixture
def ours(theirs, options):
    return bh.catalog("prod", **options)


def ids(table):
    return sorted(table.to_arrow().column("id").to_pylist())


@pytest.mark.spec("I-255")
def test_names_and_rows(ours, theirs):
    assert ours.name == "prod"
    assert ours.namespaces() == ["db", "db.deep"]
    assert ours.tables() == ["db.deep.u", "db.t"] and ours.tables("db") == ["db.t"]
    t = ours.open("db.t")
    assert ids(t) == [1, 2, 3]
    theirs.load_table("db.t").append(rows(4))
    assert ids(t) == [1, 2, 3] and ids(t.refresh()) == [1, 2, 3, 4]
    first = [e.version for e in t.history() if e.version][-1]
    assert ids(ours.open("db.t", version=first)) == [1, 2, 3]


@pytest.mark.spec("I-255")
@pytest.mark.feature("catalogs", format="iceberg")
def test_every_operation_through_the_catalog(ours, theirs):
    t = ours.open("db.t")
    t.append(rows(4, 5))
    t.delete("id = 1")
    t.update({"city": "'x'"}, where="id = 2")
    t.merge(rows(5, 6), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    t.set_properties({"owner": "us"})
    t.append(rows(7).append_column("n", pa.array([1])), merge_schema=True)
    t.overwrite(rows(9), where="id >= 7")
    t.optimize()
    assert ids(t) == [2, 3, 4, 5, 6, 9]
    seen = theirs.load_table("db.t")
    assert sorted(seen.scan().to_arrow().column("id").to_pylist()) == [2, 3, 4, 5, 6, 9]
    assert seen.properties["owner"] == "us" and [f.name for f in seen.schema().fields] == ["id", "city", "n"]
    seen.append(pa.table({"id": [10], "city": ["c"], "n": [2]}))
    assert ids(ours.open("db.t")) == [2, 3, 4, 5, 6, 9, 10]
    numbers = [s.sequence_number for s in theirs.load_table("db.t").snapshots()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.spec("I-254")
@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_are_marked_through_the_catalog(ours, theirs, version):
    """Also by a writer whose version is not the newest any more."""
    properties = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
    t = ours.open("db.t")
    t.set_properties({"format-version": version, **properties})
    t.append(rows(*range(4, 12)))
    [first] = t.scan(["id", "_file"], where="id = 5").to_arrow()["_file"].to_pylist()
    before = set(t.files()["path"].to_pylist())
    behind = ours.open("db.t")
    assert t.delete("id in (5, 2)").files_removed == 0
    assert behind.delete("id in (5, 6)").rows_deleted == 1
    assert ours.open("db.t").update({"city": "'new'"}, "id = 7").rows_copied == 0
    assert ids(ours.open("db.t")) == [1, 3, 4, *range(7, 12)] == ids_of_theirs(theirs)
    t = ours.open("db.t")
    assert before <= set(t.files()["path"].to_pylist())
    live = [f for f in t.inspect.delete_files().to_pylist() if f["referenced_data_file"] == first]
    assert sum(f["record_count"] for f in live) == 3 and len(live) == (1 if version == "3" else 3)
    t.rewrite_deletes()
    t.optimize()
    assert ours.open("db.t").inspect.delete_files().num_rows == 0
    assert ids(ours.open("db.t")) == [1, 3, 4, *range(7, 12)] == ids_of_theirs(theirs)


def ids_of_theirs(catalog):
    return sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist())


def test_one_winner_of_each_swap(ours, theirs, tmp_path):
    """Every metadata document follows the one that was current; those of losers are never in that line."""
    mine, other = ours.open("db.t"), ours.open("db.t")
    for n in range(4, 10, 2):
        mine.append(rows(n))
        other.append(rows(n + 1))
    table = theirs.load_table("db.t")
    line = [e.metadata_file for e in table.metadata.metadata_log] + [table.metadata_location]
    names = [os.path.basename(uri) for uri in line]
    assert [int(re.fullmatch(r"(\d{5})-[0-9a-f-]{36}\.metadata\.json", n)[1]) for n in names] == list(range(8))
    assert len(set(line)) == 8 and sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(1, 10))
    for before, after in pairwise(line):
        document = json.loads(Path(after.removeprefix("file://")).read_bytes())
        assert document["metadata-log"][-1]["metadata-file"] == before


def test_writers_at_the_same_time(ours, theirs):
    """Each loses to the other, reads the catalog's head again, and goes on from it."""
    mine, other = ours.open("db.t"), ours.open("db.t")
    other.append(rows(4))
    theirs.load_table("db.t").append(rows(5))
    done = mine.append(rows(6))
    assert ids(mine.refresh()) == [1, 2, 3, 4, 5, 6] and done.retries >= 0
    other.delete("id = 1")
    assert ids(mine.refresh()) == [2, 3, 4, 5, 6]
    theirs.drop_table("db.t")
    theirs.create_table("db.t", SCHEMA)
    with pytest.raises(CommitConflictError, match="recreated"):
        mine.append(rows(7))


class Client:
    """A catalog's client whose answers to commits get lost, or that refuses some."""

    def __init__(self, client, before=(), after=()):
        self.client, self.before, self.after = client, list(before), list(after)

    def __getattr__(self, name):
        return getattr(self.client, name)  # no SqlCatalog, so that commits go by `commit_table`

    def commit_table(self, *args):
        if self.before and (error := self.before.pop(0)) is not None:
            raise error
        done = self.client.commit_table(*args)
        if self.after and (error := self.after.pop(0)) is not None:
            raise error
        return done


def through(ours, **answers):
    made = ours._made
    return bh.Catalog(type(made)(made.name, Client(made.client, **answers), made.secrets))


LOST = [CommitStateUnknownException("no answer"), ConnectionError("reset"), TimeoutError("late")]


@pytest.mark.spec("I-256")
@pytest.mark.parametrize("error", LOST, ids=lambda e: type(e).__name__)
def test_a_lost_answer_is_settled_by_the_snapshot(ours, error):
    t = through(ours, after=[error]).open("db.t")
    done = t.append(rows(4))
    assert ids(ours.open("db.t")) == [1, 2, 3, 4]
    assert done.version == ours.open("db.t").version


@pytest.mark.spec("I-256")
def test_an_answer_that_cannot_be_settled_is_unknown(ours, tmp_path, monkeypatch):
    monkeypatch.setattr("boathouse.iceberg.catalogs.pyiceberg._LOOKS", 2)
    before = sorted(p.name for p in tmp_path.rglob("*.parquet"))
    t = through(ours, before=[TimeoutError("late")]).open("db.t")
    with pytest.raises(CommitUnknownError):
        t.append(rows(4))
    assert len(sorted(p.name for p in tmp_path.rglob("*.parquet"))) == len(before) + 1, "nothing is removed"


@pytest.mark.spec("I-256")
@pytest.mark.parametrize("kind", ["properties", "rows"])
def test_without_an_answer_only_another_snapshot_proves_it_lost(ours, theirs, monkeypatch, kind):
    """After a commit of properties, the request that is still on its way may succeed: it is unknown."""
    monkeypatch.setattr("boathouse.iceberg.catalogs.pyiceberg._LOOKS", 2)

    class Slow(Client):
        def commit_table(self, *args):
            if self.before:
                self.before.pop()
                table = theirs.load_table("db.t")
                if kind == "rows":
                    table.append(rows(9))
                else:
                    table.transaction().set_properties(owner="them").commit_transaction()
                raise TimeoutError("late")
            return self.client.commit_table(*args)

    made = ours._made
    t = bh.Catalog(type(made)(made.name, Slow(made.client, before=[1]), made.secrets)).open("db.t")
    if kind == "rows":
        assert t.append(rows(4)).retries == 1 and ids(ours.open("db.t")) == [1, 2, 3, 4, 9]
    else:
        with pytest.raises(CommitUnknownError):
            t.append(rows(4))


def test_a_refusal_is_tried_again_on_the_new_head(ours):
    t = through(ours, before=[CommitFailedException("stale"), CommitFailedException("stale")]).open("db.t")
    assert t.append(rows(4)).retries == 2
    assert ids(t) == [1, 2, 3, 4]


def test_a_table_of_a_catalog_is_not_written_by_its_path(ours, theirs):
    place = theirs.load_table("db.t").location()
    with pytest.raises(BoathouseError, match="catalog"):
        bh.open(place).append(rows(4))


def test_what_is_not_there(ours, options):
    with pytest.raises(TableNotFoundError, match=r"prod\.db\.no"):
        ours.open("db.no")
    with pytest.raises(TableNotFoundError):
        ours.tables("nowhere")
    with pytest.raises(InvalidArgumentError, match=r"namespace\.table"):
        ours.open("t")
    with pytest.raises(InvalidArgumentError, match="no catalog 'nobody'"):
        bh.catalog("nobody")
    with pytest.raises(InvalidArgumentError):
        bh.open("t", catalog_options=options)


def test_by_one_name(ours, options, tmp_path, monkeypatch):
    assert ids(bh.open("prod.db.t", catalog_options=options)) == [1, 2, 3]
    for key, value in options.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{key.upper()}", value)
    code = "import boathouse as bh; print(bh.open('prod.db.t').count(), bh.catalog('prod').tables('db'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.stdout == "3 ['db.t']\n", done.stderr
    monkeypatch.chdir(tmp_path)
    bh.write(rows(5), "other.db.t", format="delta")
    assert bh.open("other.db.t").format == "delta", "a path comes first"


def test_secrets_are_not_shown(tmp_path):
    secret = "hunter2hunter2"
    uri = f"postgresql+nodriver://user:{secret}@host/db"
    with pytest.raises((StorageError, InvalidArgumentError)) as caught:
        bh.catalog("prod", type="sql", uri=uri).tables()
    assert secret not in str(caught.value) and secret not in repr(bh.Catalog)


@pytest.mark.spark
@pytest.mark.feature("catalogs", format="iceberg")
@pytest.mark.route("Iceberg catalogs")
def test_on_spark(ours, spark):
    t = ours.open("db.t", spark=spark)
    t.append(spark.createDataFrame([(4, "x")], "id bigint, city string"))
    assert sorted(r.id for r in t.to_spark().collect()) == [1, 2, 3, 4]


class Counting(Client):
    """A catalog's client that counts what it is asked for."""

    def __init__(self, client):
        super().__init__(client)
        self.asked = []

    def load_table(self, *args):
        self.asked.append("load")
        return self.client.load_table(*args)

    def commit_table(self, *args):
        self.asked.append("commit")
        return self.client.commit_table(*args)


@pytest.fixture
def counted(ours):
    client = Counting(ours._made.client)
    return bh.Catalog(type(ours._made)(ours._made.name, client, ours._made.secrets)), client.asked


def test_an_append_is_one_load_and_one_commit(counted, theirs, monkeypatch):
    """The answer to the commit is the new head: no document is read for it."""
    catalog, asked = counted
    t = catalog.open("db.t")
    assert asked == ["load"]
    read = []
    real = snapshot.read_metadata
    monkeypatch.setattr(snapshot, "read_metadata", lambda uri, *rest: (read.append(uri), real(uri, *rest))[1])
    for n in range(4, 7):
        asked.clear()
        done = t.append(rows(n))
        assert asked == ["load", "commit"] and read == []
        assert done.commit == os.path.basename(theirs.load_table("db.t").metadata_location)
        assert ids(t) == [*range(1, n + 1)]
    assert t._handle.snapshot.token == theirs.load_table("db.t").metadata_location
    assert next(e.commit for e in t.history()) == done.commit
    theirs.load_table("db.t").append(rows(7))
    asked.clear()
    t.append(rows(8))
    assert asked == ["load", "commit"] and len(read) == 1 and ids(t) == [*range(1, 9)]


@pytest.mark.parametrize("kind", ["rows", "properties", "schema"])
def test_a_head_that_moved_since_it_was_loaded(ours, theirs, kind):
    """The catalog's requirements notice another snapshot; what none of them is about is asked first."""

    class Late(Client):
        def commit_table(self, *args):
            if self.after:
                self.after.pop()(theirs.load_table("db.t"))
            return self.client.commit_table(*args)

    def widen(table):
        with table.update_schema() as update:
            update.add_column("more", StringType())

    theft = {
        "rows": lambda table: table.append(rows(7)),
        "properties": lambda table: table.transaction().set_properties(owner="them").commit_transaction(),
        "schema": widen,
    }[kind]
    made = ours._made
    t = bh.Catalog(type(made)(made.name, Late(made.client, after=[theft]), made.secrets)).open("db.t")
    done = t.append(rows(4))
    assert ids(ours.open("db.t")) == ([1, 2, 3, 4, 7] if kind == "rows" else [1, 2, 3, 4])
    assert done.retries == (0 if kind == "properties" else 1)
    seen = theirs.load_table("db.t")
    assert seen.properties.get("owner") == ("them" if kind == "properties" else None)
    assert len(seen.schema().fields) == (3 if kind == "schema" else 2)


def test_options_that_describe_no_catalog(tmp_path):
    """A wrong argument is no error of a store."""
    wrong = (
        {"type": "nope"}, {"type": "sql"}, {"type": "rest", "uri": "no scheme"}, {"warehouse": "x"},
        {"type": "sql", "uri": "nothing://x"}, {"type": "sql", "uri": "not a uri"}, {"py-catalog-impl": "a.b.C"},
    )  # fmt: skip
    for options in wrong:
        with pytest.raises(InvalidArgumentError, match="describe a catalog") as error:
            bh.catalog("prod", **options)
        assert "type=" in str(error.value)
        with pytest.raises(InvalidArgumentError):
            bh.open("prod.db.t", catalog_options=options)
    with pytest.raises(TableNotFoundError, match="configure the catalog 'nope' for PyIceberg"):
        bh.open("nope.db.t")


def test_write_by_name(ours, theirs, options):
    done = bh.write(rows(4), "prod.db.t", mode="append", catalog_options=options)
    assert ids(ours.open("db.t")) == [1, 2, 3, 4] and done.version == ours.open("db.t").version
    bh.write(rows(9), "prod.db.t", mode="overwrite", where="id > 8", catalog_options=options)
    assert sorted(theirs.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 9]
    assert bh.write(rows(7), "prod.db.t", mode="ignore", catalog_options=options).skipped
    with pytest.raises(AlreadyExistsError):
        bh.write(rows(7), "prod.db.t", catalog_options=options)
    with pytest.raises(TableNotFoundError, match=r"Create it first, by bh\.catalog"):
        bh.write(rows(7), "prod.db.nothing", mode="append", catalog_options=options)
    with pytest.raises(InvalidArgumentError, match="Iceberg"):
        bh.write(rows(7), "prod.db.t", format="delta", mode="append", catalog_options=options)
    with pytest.raises(InvalidArgumentError, match="not a name in a catalog"):
        bh.write(rows(7), "t", mode="append", catalog_options=options)
