"""The reference's own handlers of the REST catalog protocol, over its JDBC catalog: they parse and check what our
commits send, and say which metadata is current."""

import os
import subprocess
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion
from reference_spark import ICEBERG

import boathouse as bh
from boathouse.errors import AlreadyExistsError, InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError

pytestmark = pytest.mark.slow
RELEASE = replace(ICEBERG, jars=(*ICEBERG.jars, "org/xerial/sqlite-jdbc/3.46.1.3/sqlite-jdbc-3.46.1.3.jar"))
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "city": [f"c{i % 2}" for i in ids]}, schema=SCHEMA)


def ids(table):
    return sorted(table.to_arrow()["id"].to_pylist())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("rest")


@pytest.fixture(scope="module")
def options(root):
    """How clients reach the server."""
    try:
        RELEASE.build()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the reference cannot be fetched: {error}")
    (spark,) = RELEASE.home.glob("venv/lib/python*/site-packages/pyspark/jars")
    jars = ":".join([*(str(RELEASE.home / "jars" / os.path.basename(j)) for j in RELEASE.jars), f"{spark}/*"])
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    program = os.path.join(os.path.dirname(__file__), "RestCatalog.java")
    with open(root / "log", "w") as log:
        process = subprocess.Popen(
            [java, "-cp", jars, program, f"file://{root}/wh", str(root / "catalog.db")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root,
        )  # fmt: skip
        line = process.stdout.readline()
        assert line.startswith("port "), (root / "log").read_text()[-3000:]
        yield {"type": "rest", "uri": f"http://127.0.0.1:{line.split()[1]}"}
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def theirs(options):
    made = load_catalog("prod", **options)
    made.create_namespace("db")
    return made


@pytest.mark.spec("I-255")
def test_every_operation(options, theirs):
    theirs.create_table("db.t", SCHEMA).append(rows(1, 2, 3))
    ours = bh.catalog("prod", **options)
    assert ours.namespaces() == ["db"] and "db.t" in ours.tables()
    table = ours.open("db.t")
    assert ids(table) == [1, 2, 3]
    table.append(rows(4, 5))
    table.delete("id = 2")
    table.update({"city": "'x'"}, "id = 3")
    table.merge(rows(5, 6), "target.id = source.id").when_not_matched_insert_all().execute()
    table.append(pa.table({"id": [7], "city": ["c"], "more": [1.5]}), merge_schema=True)
    table.set_properties({"owner": "me"})
    table.optimize()
    found = theirs.load_table("db.t")
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == ids(ours.open("db.t")) == [1, 3, 4, 5, 6, 7]
    assert found.properties["owner"] == "me" and found.schema().find_field("more").field_id == 3
    theirs.load_table("db.t").append(pa.table({"id": [8], "city": ["d"], "more": [None]}, found.schema().as_arrow()))
    assert ids(table.refresh()) == [1, 3, 4, 5, 6, 7, 8]


def test_tables_and_namespaces_come_and_go(options, theirs):
    """In every version: the server makes the documents."""
    ours = bh.catalog("prod", **options)
    ours.create_namespace("fresh", {"owner": "me"})
    ours.set_namespace_properties("fresh", {"owner": None, "team": "us"})
    assert ours.namespace_properties("fresh")["team"] == "us"
    for version in ("1", "2", "3"):
        t = ours.create(f"fresh.t{version}", "id bigint, city string", "bucket(2, id)", {"format-version": version})
        t.append(rows(1, 2, 3))
        t.delete("id = 2")
        assert (t.detail()["format-version"], ids(ours.open(f"fresh.t{version}"))) == (int(version), [1, 3])
    with pytest.raises(AlreadyExistsError):
        ours.create("fresh.t2", SCHEMA)
    ours.rename("fresh.t2", "fresh.renamed")
    t = ours.open("fresh.renamed")
    place = t.detail()["metadata"]
    ours.drop("fresh.renamed")
    assert "fresh.renamed" not in ours.tables()
    assert ids(ours.register("fresh.again", place)) == [1, 3]
    with pytest.raises(InvalidArgumentError, match="not empty"):
        ours.drop_namespace("fresh")
    for name in ours.tables("fresh"):
        ours.drop(name, purge=name == "fresh.again")
    ours.drop_namespace("fresh")
    assert "fresh" not in ours.namespaces()


def test_writers_at_the_same_time(options, theirs):
    theirs.create_table("db.many", SCHEMA)

    def write(first):
        table = bh.catalog("prod", **options).open("db.many")
        for n in range(first, first + 4):
            table.append(rows(n))

    threads = [threading.Thread(target=write, args=(10 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found = theirs.load_table("db.many")
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [10 * i + n for i in range(4) for n in range(4)]
    assert [s.sequence_number for s in found.metadata.snapshots] == list(range(1, 17))


@pytest.mark.spec("I-337")
def test_views(options, theirs):
    theirs.create_table("db.base", SCHEMA).append(rows(1))
    query = SQLViewRepresentation(type="sql", sql="SELECT id FROM base", dialect="spark")
    version = ViewVersion(
        schema_id=0, representations=[ViewRepresentation(query)], default_namespace=("db",),
        summary={"engine-name": "e"},
    )  # fmt: skip
    theirs.create_view("db.v", theirs.load_table("db.base").schema(), version)
    ours = bh.catalog("prod", **options)
    assert ours.views() == ["db.v"] and "db.v" not in ours.tables()
    view = ours.view("db.v")
    assert view.sql == {"spark": "SELECT id FROM base"} and view.schema.names == ("id", "city")
    with pytest.raises(UnsupportedFeatureError, match="this is a view, not a table: in spark: SELECT id FROM base"):
        ours.open("db.v")
    with pytest.raises(TableNotFoundError):
        ours.open("db.none")


@pytest.mark.spec("I-337")
def test_views_come_and_go(options, theirs, root):
    """Ours through the server, and in its JDBC catalog's database beside it: Java's parser reads what we wrote there,
    and we what it wrote."""
    rest = bh.catalog("prod", **options)
    rest.create_namespace("views")
    sql = bh.catalog("backend", type="sql", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}/wh")
    queries = {"spark": "SELECT id FROM base", "trino": "SELECT 1"}
    made = rest.create_view("views.a", queries, "id bigint not null", properties={"comment": "ours"})
    assert sql.view("views.a") == made and made.properties["comment"] == "ours"
    made = sql.create_view("views.b", queries, "id bigint, s struct<a: int, l: array<date>>", default_catalog="other")
    assert rest.view("views.b") == made and theirs.load_view("views.b").metadata.current_version_id == 1
    assert rest.views("views") == sql.views("views") == ["views.a", "views.b"]
    for name in ("views.a", "views.b"):
        for i, catalog in enumerate((rest, sql, rest, sql)):
            given = {"spark": f"SELECT {i}", "trino": f"SELECT {i}"}
            done = catalog.replace_view(name, given, "id bigint" if i % 2 else "id bigint, day date")
            assert done.version == i + 2 and done == rest.view(name) == sql.view(name)
        assert [v.version for v in done.versions] == [1, 2, 3, 4, 5] == [id for _, id in done.log]
        for catalog, version in ((rest, 1), (sql, 3)):
            back = catalog.rollback_view(name, version)
            assert back == rest.view(name) == sql.view(name) and back.version == version
        again = rest.replace_view(name, {"spark": "SELECT 3", "trino": "SELECT 3"}, "id bigint")
        assert (again.version, len(again.versions), again) == (5, 5, sql.view(name))
        with pytest.raises(InvalidArgumentError, match="has a query in trino"):
            sql.replace_view(name, "SELECT 9")
        settings = {"version.history.num-entries": "2", "comment": None, "replace.drop-dialect.allowed": "true"}
        assert sql.set_view_properties(name, settings) == rest.view(name)
        left = rest.replace_view(name, "SELECT 10")
        assert left == sql.view(name) and len(left.versions) == 2 and left.sql == {"spark": "SELECT 10"}
        left = sql.replace_view(name, "SELECT 11")
        assert left == rest.view(name) and [v.version for v in left.versions] == [left.version - 1, left.version]
    rest.rename_view("views.a", "views.c")
    sql.rename_view("views.b", "views.d")
    with pytest.raises(AlreadyExistsError):
        rest.rename_view("views.c", "views.d")
    with pytest.raises(AlreadyExistsError):
        rest.create_view("views.c", "SELECT 1", "id bigint")
    with pytest.raises(UnsupportedFeatureError, match="this is a view, not a table: in spark: SELECT 11"):
        sql.open("views.d")
    assert rest.tables("views") == sql.tables("views") == [] and rest.views("views") == ["views.c", "views.d"]
    sql.drop_view("views.c")
    rest.drop_view("views.d")
    for catalog in (rest, sql):
        with pytest.raises(TableNotFoundError):
            catalog.drop_view("views.c")
    assert rest.views("views") == []


@pytest.mark.spec("I-219", "I-338")
def test_branches(options, theirs):
    """Commits to three branches at the same time, moves of refs, and staged snapshots, as the reference's handlers
    apply them."""
    theirs.create_table("db.lines", SCHEMA, properties={"write.wap.enabled": "true"})
    main = bh.catalog("prod", **options).open("db.lines")
    main.append(rows(1))
    for name in ("a", "b"):
        main.refs.create_branch(name, min_snapshots_to_keep=2)

    def write(ref, first):
        table = bh.catalog("prod", **options).open("db.lines", ref=ref)
        for n in range(first, first + 4):
            table.append(rows(n))

    threads = [threading.Thread(target=write, args=args) for args in (("a", 10), ("b", 20), ("main", 30))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    found = theirs.load_table("db.lines")
    for ref, first in (("a", 10), ("b", 20), ("main", 30)):
        read = found.scan(snapshot_id=found.snapshot_by_name(ref).snapshot_id).to_arrow()["id"].to_pylist()
        assert sorted(read) == [1, *range(first, first + 4)]
    assert [s.sequence_number for s in found.metadata.snapshots] == list(range(1, 14))
    assert found.metadata.refs["b"].min_snapshots_to_keep == 2 and len(found.metadata.snapshot_log) == 5
    main.refresh().append(rows(40), metadata={"wap.id": "x"})
    main.append(rows(41))
    main.refs.publish("x")
    main.refs.create_tag("g")
    main.refs.drop_branch("b")
    assert ids(main) == [1, 30, 31, 32, 33, 40, 41] == ids(bh.catalog("prod", **options).open("db.lines", ref="g"))
    main.refs.rollback(main.refs.ancestors()[-1])
    main.refs.fast_forward("main", "g")
    assert set(theirs.load_table("db.lines").metadata.refs) == {"main", "a", "g"} and len(ids(main)) == 7
