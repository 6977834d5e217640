"""Tables of Glue and of Hive's metastore: the same as those of other catalogs (test_catalogs.py), on stand-ins that
speak the protocols of the services."""

import builtins
import json
import threading
from itertools import pairwise
from pathlib import Path

import catalog_servers
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    MissingRequirementError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])
KINDS = ("glue", "hive")


def rows(*ids):
    return pa.table({"id": list(ids), "city": [f"c{i % 2}" for i in ids]}, schema=SCHEMA)


def ids(table):
    return sorted(table.to_arrow().column("id").to_pylist())


@pytest.fixture(params=KINDS)
def served(request, tmp_path):
    with getattr(catalog_servers, request.param)() as (server, options):
        yield server, {**options, "warehouse": f"file://{tmp_path}/wh"}


@pytest.fixture
def server(served):
    return served[0]


@pytest.fixture
def options(served):
    return served[1]


@pytest.fixture
def opened(options):
    return bh.catalog("prod", **options)


@pytest.fixture
def theirs(opened):
    """PyIceberg's own catalog: the client of ours, since a client of Glue takes a second to be made."""
    made = opened._made.client
    made.create_namespace("db")
    made.create_namespace("other")
    made.create_table("db.t", SCHEMA).append(rows(1, 2, 3))
    for name in ("a", "b"):
        made.create_table(f"db.{name}", SCHEMA)
    return made


@pytest.fixture
def ours(theirs, opened):
    return opened


@pytest.mark.few(1)
def test_tables_come_and_go(opened):
    opened.create_namespace("db")
    t = opened.create("db.new", "id bigint, city string", partition_by="bucket(4, id)", properties={"owner": "me"})
    assert t.append(rows(1, 2)).rows_added == 2 and t.properties["owner"] == "me"
    assert [str(f.transform) for f in opened.open("db.new").partitioning.current] == ["bucket[4]"]
    done = t.upsert(rows(2, 3), on="city", deletes="equality")  # a spec without fields comes with the commit
    assert done.version and sorted(opened.open("db.new").to_arrow()["id"].to_pylist()) == [2, 3]
    with pytest.raises(AlreadyExistsError):
        opened.create("db.new", SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="does not create such a table"):
        opened.create("db.v", "id bigint, v variant", profile="modern")
    opened.drop("db.new")
    assert opened.tables() == [] and Path(t.uri.removeprefix("file://")).exists()


@pytest.mark.few(1)
@pytest.mark.spec("I-255")
def test_names_and_rows(ours, theirs, options):
    assert ours.namespaces() == ["db", "other"]
    assert ours.tables() == ["db.a", "db.b", "db.t"] and ours.tables("other") == []
    t = bh.open("prod.db.t", catalog_options=options)
    assert ids(t) == [1, 2, 3]
    theirs.load_table("db.t").append(rows(4))
    assert ids(t) == [1, 2, 3] and ids(t.refresh()) == [1, 2, 3, 4]
    first = [e.version for e in t.history() if e.version][-1]
    assert ids(ours.open("db.t", version=first)) == [1, 2, 3]
    for name in ("db.no", "nowhere.t", "db.too.deep"):
        with pytest.raises(TableNotFoundError, match=rf"prod\.{name}"):
            ours.open(name)
    with pytest.raises(UnsupportedFeatureError, match="views"):
        ours.views("db")


@pytest.mark.few(1)
@pytest.mark.spec("I-255")
@pytest.mark.feature("catalogs", format="iceberg")
def test_every_operation_through_the_catalog(ours, theirs):
    t = ours.open("db.t")
    t.append(rows(4, 5))
    t.delete("id = 1")
    t.merge(rows(5, 6), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    t.set_properties({"stage": "gold"})
    t.append(rows(7).append_column("n", pa.array([1])), merge_schema=True)
    t.overwrite(rows(9), where="id >= 7")
    assert ids(t) == [2, 3, 4, 5, 6, 9]
    seen = theirs.load_table("db.t")
    assert sorted(seen.scan().to_arrow().column("id").to_pylist()) == [2, 3, 4, 5, 6, 9]
    assert seen.properties["stage"] == "gold" and [f.name for f in seen.schema().fields] == ["id", "city", "n"]
    seen.append(pa.table({"id": [10], "city": ["c"], "n": [2]}))
    assert ids(ours.open("db.t")) == [2, 3, 4, 5, 6, 9, 10]
    numbers = [s.sequence_number for s in theirs.load_table("db.t").snapshots()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.few(1)
@pytest.mark.spec("I-254", "I-255")
def test_writers_at_the_same_time(ours, theirs, options):
    """Threads of ours and of PyIceberg: one winner of each swap, and no row is lost or there twice."""
    mine, other = ours.open("db.t"), ours.open("db.t")
    other.append(rows(4))
    theirs.load_table("db.t").append(rows(5))
    assert mine.append(rows(6)).retries >= 0 and ids(mine.refresh()) == [1, 2, 3, 4, 5, 6]

    failed = []

    def write(first):
        try:
            # A connection to Hive belongs to one thread.
            table = (bh.catalog("prod", **options) if options["type"] == "hive" else ours).open("db.t")
            for n in range(first, first + 2):
                table.append(rows(n))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in (10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    added = [n for first in (10, 20, 30) for n in range(first, first + 2)]
    assert ids(mine.refresh()) == [1, 2, 3, 4, 5, 6, *added]
    table = theirs.load_table("db.t")
    assert [s.sequence_number for s in table.snapshots()] == list(range(1, 11))
    line = [e.metadata_file for e in table.metadata.metadata_log] + [table.metadata_location]
    for before, after in pairwise(line):
        document = json.loads(Path(after.removeprefix("file://")).read_bytes())
        assert document["metadata-log"][-1]["metadata-file"] == before
    theirs.drop_table("db.t")
    theirs.create_table("db.t", SCHEMA)
    with pytest.raises(CommitConflictError, match="recreated"):
        mine.append(rows(7))


@pytest.mark.few(1)
@pytest.mark.spec("I-256")
def test_a_lost_answer_is_settled_by_the_snapshot(ours, server):
    """The metastore has made the swap, and the connection breaks. A client that sends it again on its own, as botocore
    does, is refused by what it has committed itself."""
    t = ours.open("db.t")
    server.lose = 1
    done = t.append(rows(4))
    assert server.lose == 0 and done.retries == 0
    assert ids(ours.open("db.t")) == [1, 2, 3, 4] and done.version == ours.open("db.t").version
    t.delete("id = 4")
    assert ids(ours.open("db.t")) == [1, 2, 3]


@pytest.mark.few(1)
@pytest.mark.spec("I-256")
def test_an_answer_that_cannot_be_settled_is_unknown(ours, server, tmp_path, monkeypatch):
    """The metastore is away after the swap, whatever it did."""
    monkeypatch.setattr("boathouse.iceberg.catalogs.pyiceberg._LOOKS", 2)
    t = ours.open("db.t")
    client = t._handle.snapshot.context.catalog.catalog.client
    server.lose = 1
    commit, load = client.commit_table, client.load_table

    def away(*args):
        raise ConnectionError("away")

    def swap(*args):
        client.load_table = away
        return commit(*args)

    client.commit_table = swap
    with pytest.raises(CommitUnknownError):
        t.append(rows(4))
    client.load_table, client.commit_table = load, commit
    assert ids(ours.open("db.t")) == [1, 2, 3, 4], "nothing is removed"


def test_tables_that_are_not_iceberg(ours, server, theirs):
    if isinstance(server, catalog_servers.Glue):
        server.tables["db", "plain"] = {"Name": "plain", "DatabaseName": "db", "VersionId": "0", "Parameters": {}}
        server.tables["db", "delta"] = {**server.tables["db", "plain"], "Parameters": {"table_type": "DELTA"}}
    else:
        server.tables["db", "plain"] = server.types.Table(tableName="plain", dbName="db", parameters={})
        server.tables["db", "delta"] = server.types.Table("delta", "db", parameters={"table_type": "DELTA"})
    assert ours.tables("db") == ["db.a", "db.b", "db.t"]
    for name in ("plain", "delta"):
        with pytest.raises(TableNotFoundError, match=rf"prod\.db\.{name}"):
            ours.open(f"db.{name}")


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_client_s_library(kind, monkeypatch):
    kept = builtins.__import__

    def imported(name, *args, **kwargs):
        if name.partition(".")[0] in ("boto3", "thrift", "hive_metastore") or name == f"pyiceberg.catalog.{kind}":
            raise ImportError(name)
        return kept(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", imported)
    with pytest.raises(MissingRequirementError, match=rf"pyiceberg\[{kind}\]"):
        bh.catalog("prod", type=kind, uri="thrift://127.0.0.1:1")


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_is_away(kind):
    made = getattr(catalog_servers, kind)()
    with made as (_, options):
        pass
    with pytest.raises(StorageError, match="prod") as caught:
        bh.catalog("prod", **options, **{"glue.max-retries": "0"}).tables()
    assert "stand-in-secret" not in str(caught.value)
