"""Views: by path, and in a REST catalog that the tests serve, through PyIceberg's own client."""

import copy
import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pyarrow as pa
import pytest
from foreign_writer import Foreign

import boathouse as bh
from boathouse.api.catalog import Catalog
from boathouse.errors import CorruptTableError, StorageError, TableNotFoundError, UnsupportedFeatureError

SPARK = "SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM events\nGROUP BY 2"
# The example of the specification.
VIEW = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg", "current-version-id": 1,
    "properties": {"comment": "Daily event counts"},
    "versions": [{
        "version-id": 1, "timestamp-ms": 1573518431292, "schema-id": 1, "default-catalog": "prod",
        "default-namespace": ["default"], "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
        "representations": [{"type": "sql", "sql": SPARK, "dialect": "spark"}]}],
    "schemas": [{
        "schema-id": 1, "type": "struct", "fields": [
            {"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"},
            {"id": 2, "name": "event_date", "required": False, "type": "date"}]}],
    "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
}  # fmt: skip


def changed(**changes):
    view = copy.deepcopy(VIEW)
    version = view["versions"][0]
    for name, value in changes.items():
        (version if name.replace("_", "-") in version or name == "storage_table" else view)[name.replace("_", "-")] = (
            value
        )
    return view


@pytest.fixture
def stored(tmp_path):
    def stored(view, name="00000-6f47.metadata.json"):
        (tmp_path / "v" / "metadata").mkdir(parents=True, exist_ok=True)
        path = tmp_path / "v" / "metadata" / name
        path.write_text(json.dumps(view))
        return path

    return stored


@pytest.mark.spec("I-337")
@pytest.mark.feature("views", format="iceberg")
def test_a_view_by_its_path(stored):
    """It says what it is, with its SQL and the dialect."""
    path = stored(VIEW)
    for uri in (path, path.parent.parent):
        with pytest.raises(UnsupportedFeatureError, match="this is a view, not a table: in spark: SELECT") as caught:
            bh.open(str(uri))
        assert SPARK in str(caught.value) and "an engine that has spark SQL" in str(caught.value)
    assert bh.detect(str(path.parent.parent)) == ("iceberg",)


@pytest.mark.spec("I-337")
def test_dialects_and_materialized_views(stored):
    both = [{"type": "sql", "sql": SPARK, "dialect": "spark"}, {"type": "sql", "sql": "SELECT 1", "dialect": "trino"}]
    path = stored(changed(representations=[*both, {"type": "plan", "plan": "..."}]))
    with pytest.raises(UnsupportedFeatureError, match="in trino: SELECT 1") as caught:
        bh.open(str(path))
    assert "spark or trino SQL" in str(caught.value)
    path = stored(changed(storage_table={"namespace": ["default"], "name": "event_agg_rows"}))
    with pytest.raises(UnsupportedFeatureError, match="this is a materialized view") as caught:
        bh.open(str(path))
    assert "the table with its rows, default.event_agg_rows" in str(caught.value)
    path = stored(changed(representations=[]))
    with pytest.raises(UnsupportedFeatureError, match="no SQL"):
        bh.open(str(path))
    path = stored(changed(representations=[{"type": "sql", "sql": "x" * 5000, "dialect": "spark"}]))
    with pytest.raises(UnsupportedFeatureError) as caught:
        bh.open(str(path))
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"current_version_id": 7}, "no version-id 7"), ({"schema_id": 9}, "no schema-id 9"),
        ({"versions": None}, "lacks versions"), ({"schemas": {}}, "has schemas"),
        ({"representations": [{"type": "sql", "sql": "SELECT 1"}]}, "lacks its SQL or dialect"),
        ({"representations": [{"sql": "SELECT 1"}]}, "no type"), ({"default_namespace": "x"}, "has default-namespace"),
        ({"representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}] * 2}, "two queries in spark"),
        ({"storage_table": "x"}, "storage-table"), ({"format_version": True}, "format-version"),
    ],
)  # fmt: skip
def test_damaged_views(stored, changes, words):
    with pytest.raises(CorruptTableError, match=words):
        bh.open(str(stored(changed(**changes))))


def test_another_version_of_the_format(stored):
    with pytest.raises(UnsupportedFeatureError, match="view format version 2"):
        bh.open(str(stored(changed(format_version=2))))


class Rest(BaseHTTPRequestHandler):
    """The requests of a REST catalog that reading needs, with one table and one view."""

    tables, views, endpoints = {}, {}, None

    def log_message(self, *args):
        pass

    def _answer(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        parts = [unquote(p) for p in self.path.partition("?")[0].strip("/").split("/")[1:]]
        identified = {"tables": self.tables, "views": self.views}
        match parts:
            case ["config"]:
                self._answer({"defaults": {}, "overrides": {}, **self.endpoints})
            case ["namespaces"]:
                self._answer({"namespaces": [["db"]] if "parent" not in self.path else []})
            case ["namespaces", "db", kind]:
                self._answer({"identifiers": [{"namespace": ["db"], "name": n} for n in identified[kind]]})
            case ["namespaces", "db", kind, name] if name in identified[kind]:
                self._answer(identified[kind][name])
            case _:
                kind = "View" if "views" in parts else "Table"
                self._answer({"error": {"message": "none", "type": f"NoSuch{kind}Exception", "code": 404}}, 404)


@pytest.fixture
def rest(tmp_path, request):
    """A catalog of this library on such a server; `endpoints` are those that it says it has."""
    bh.create(str(tmp_path / "t"), pa.schema([("id", pa.int64())]), format="iceberg")
    foreign = Foreign(tmp_path / "t")
    foreign.commit(foreign.data(pa.table({"id": [1, 2]}), (1,)))
    get = [f"GET /v1/{{prefix}}/namespaces{p}" for p in (
        "", "/{namespace}", "/{namespace}/tables", "/{namespace}/tables/{table}", "/{namespace}/views",
        "/{namespace}/views/{view}")]  # fmt: skip
    table = {"metadata-location": f"file://{foreign.head}", "metadata": foreign.document, "config": {}}
    view = {"metadata-location": "s3://bucket/v.metadata.json", "metadata": VIEW, "config": {}}
    members = {"tables": {"t": table}, "views": {"event_agg": view}}
    handler = type("Handler", (Rest,), {**members, "endpoints": {"endpoints": get[: getattr(request, "param", 6)]}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield bh.catalog("prod", type="rest", uri=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.spec("I-337")
def test_a_catalog_lists_views(rest):
    assert rest.tables() == ["db.t"] and rest.views() == rest.views("db") == ["db.event_agg"]
    view = rest.view("db.event_agg")
    assert view.sql == {"spark": SPARK} and view.schema.names == ("event_count", "event_date")
    assert (view.default_catalog, view.default_namespace) == ("prod", ("default",)) and view.engine == "Spark 3.3.2"
    assert view.properties["comment"] == "Daily event counts" and view.storage_table is None
    with pytest.raises(UnsupportedFeatureError, match="this is a view, not a table: in spark") as caught:
        rest.open("db.event_agg")
    assert "prod.db.event_agg" in str(caught.value)
    with pytest.raises(TableNotFoundError):
        rest.view("db.none")
    with pytest.raises(TableNotFoundError):
        rest.open("db.none")


def test_rows_through_the_rest_client(rest):
    assert rest.open("db.t").to_arrow()["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("rest", [4], indirect=True)
def test_a_catalog_without_views(rest):
    assert rest.views() == [] and rest.tables() == ["db.t"]
    with pytest.raises((UnsupportedFeatureError, StorageError)):
        rest.view("db.event_agg")
    with pytest.raises(TableNotFoundError):
        rest.open("db.event_agg")


def test_a_client_that_knows_none(tmp_path):
    from pyiceberg.catalog.noop import NoopCatalog

    (tmp_path / "wh").mkdir()
    sql = bh.catalog("s", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    sql._made.client.create_namespace("db")
    with pytest.raises(TableNotFoundError):
        sql.open("db.none")
    other = Catalog(replace(sql._made, client=NoopCatalog("n")))
    for act in (
        lambda: other.views("db"), lambda: other.view("db.v"), lambda: other.create_view("db.v", SPARK, "id int"),
        lambda: other.replace_view("db.v", SPARK), lambda: other.rename_view("db.v", "db.w"),
        lambda: other.drop_view("db.v"), lambda: other.set_view_properties("db.v", {}),
    ):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match=r"\(NoopCatalog\) does not know views"):
            act()
