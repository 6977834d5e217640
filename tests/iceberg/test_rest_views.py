"""Views of a REST catalog: the requests that changes of them send, which a server of the tests takes by PyIceberg's
models and applies for itself, and what its client sees of them."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import CreateViewRequest
from pyiceberg.schema import Schema
from pyiceberg.view.metadata import ViewMetadata, ViewVersion

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

QUERY = "SELECT id FROM people"
UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"


class Server(BaseHTTPRequestHandler):
    """The requests about views; `views` by namespace and name, `conflicts` are answered before a commit succeeds."""

    def log_message(self, *args):
        pass

    def answer(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, kind):
        self.answer(status, {"error": {"message": "no", "type": kind, "code": status}})

    def view(self, key):
        if key not in self.views:
            self.refuse(404, "NoSuchViewException")
        else:
            self.answer(200, {"metadata-location": "s3://b/v.metadata.json", "metadata": self.views[key], "config": {}})

    def parts(self):
        return [unquote(p) for p in self.path.partition("?")[0].strip("/").split("/")[1:]]

    def do_GET(self):
        match self.parts():
            case ["config"]:
                config = {"defaults": {"view-endpoints-supported": self.offered}, "overrides": {"prefix": "a/b"}}
                self.answer(200, config)
            case ["a", "b", "namespaces"]:
                self.answer(200, {"namespaces": [] if "parent" in self.path else [["db"], ["x{y}"]]})
            case ["a", "b", "namespaces", space, "views"]:
                found = [n for s, n in self.views if s == space]
                self.answer(200, {"identifiers": [{"namespace": [space], "name": n} for n in found]})
            case ["a", "b", "namespaces", space, "views", name]:
                self.view((space, name))
            case _:
                self.refuse(404, "NoSuchTableException")

    def do_HEAD(self):
        *_, space, _, name = self.parts()
        self.answer(204 if (space, name) in self.views else 404)

    def do_DELETE(self):
        *_, space, _, name = self.parts()
        if self.views.pop((space, name), None) is None:
            self.refuse(404, "NoSuchViewException")
        else:
            self.answer(204)

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(given)
        match self.parts():
            case ["a", "b", "views", "rename"]:
                source, to = ((given[k]["namespace"][0], given[k]["name"]) for k in ("source", "destination"))
                if source not in self.views:
                    return self.refuse(404, "NoSuchViewException")
                if to in self.views:
                    return self.refuse(409, "AlreadyExistsException")
                self.views[to] = self.views.pop(source)
                return self.answer(204)
            case ["a", "b", "namespaces", space, "views"]:
                return self.create(space, given)
            case ["a", "b", "namespaces", space, "views", name]:
                return self.commit((space, name), given)

    def create(self, space, given):
        asked = CreateViewRequest.model_validate({"location": None, **given})
        if space not in ("db", "x{y}"):
            return self.refuse(404, "NoSuchNamespaceException")
        if (space, asked.name) in self.views:
            return self.refuse(409, "AlreadyExistsException")
        version = {**given["view-version"], "schema-id": 0}
        self.views[space, asked.name] = {
            "view-uuid": UUID, "format-version": 1, "location": asked.location or f"s3://b/{space}/{asked.name}",
            "schemas": [{**given["schema"], "schema-id": 0}], "current-version-id": 1, "versions": [version],
            "version-log": [{"timestamp-ms": version["timestamp-ms"], "version-id": 1}],
            "properties": given["properties"],
        }  # fmt: skip
        ViewMetadata.model_validate(self.views[space, asked.name])
        return self.view((space, asked.name))

    def commit(self, key, given):
        if key not in self.views:
            return self.refuse(404, "NoSuchViewException")
        assert given["requirements"] == [{"type": "assert-view-uuid", "uuid": UUID}]
        assert given["identifier"] == {"namespace": [key[0]], "name": key[1]}
        if self.conflicts:
            self.conflicts.pop()
            return self.refuse(409, "CommitFailedException")
        view = json.loads(json.dumps(self.views[key]))
        for update in given["updates"]:
            match update:
                case {"action": "add-schema", "schema": schema}:
                    Schema.model_validate(schema)
                    view["schemas"].append(schema)
                case {"action": "add-view-version", "view-version": version}:
                    ViewVersion.model_validate(version)
                    id = version["schema-id"]
                    view["versions"].append(
                        {**version, "schema-id": view["schemas"][-1]["schema-id"] if id < 0 else id}
                    )
                case {"action": "set-current-view-version", "view-version-id": id}:
                    view["current-version-id"] = view["versions"][-1]["version-id"] if id < 0 else id
                    view["version-log"].append({"timestamp-ms": 1, "version-id": view["current-version-id"]})
                case {"action": "set-properties", "updates": updates}:
                    view["properties"] |= updates
                case {"action": "remove-properties", "removals": removals}:
                    view["properties"] = {k: v for k, v in view["properties"].items() if k not in removals}
                case _:
                    return self.refuse(400, "IllegalArgumentException")
        self.views[key] = view
        return self.view(key)


@pytest.fixture
def server(request):
    offered = getattr(request, "param", "true")
    handler = type("Handler", (Server,), {"views": {}, "requests": [], "conflicts": [], "offered": offered})
    made = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    handler.options = {"type": "rest", "uri": f"http://127.0.0.1:{made.server_port}"}
    yield handler
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.spec("I-337")
def test_a_life(server):
    prod, theirs = bh.catalog("prod", **server.options), load_catalog("prod", **server.options)
    made = prod.create_view("db.v", {"spark": QUERY, "trino": "SELECT 1"}, "id bigint", properties={"comment": "c"})
    assert made == prod.view("db.v") and prod.views() == ["db.v"] and theirs.list_views("db") == [("db", "v")]
    assert (made.version, made.default_namespace, made.properties) == (1, ("db",), {"comment": "c"})
    assert theirs.view_exists("db.v") and theirs.load_view("db.v").metadata.current_version_id == 1
    made = prod.replace_view("db.v", {"spark": "SELECT id, a FROM people", "trino": "SELECT 2"}, "id bigint, a date")
    assert (made.version, made.schema.names, [v.version for v in made.versions]) == (2, ("id", "a"), [1, 2])
    assert server.requests[-1]["updates"][0]["schema"]["schema-id"] == 1
    assert server.requests[-1]["updates"][1]["view-version"]["schema-id"] == -1
    seen = theirs.load_view("db.v").metadata
    assert [v.version_id for v in seen.versions] == [1, 2] and seen.schemas[1].find_field("a").field_id == 2
    assert prod.rollback_view("db.v", 1).version == 1
    assert server.requests[-1]["updates"] == [{"action": "set-current-view-version", "view-version-id": 1}]
    sent = len(server.requests)
    assert prod.replace_view("db.v", {"spark": QUERY, "trino": "SELECT 1"}).version == 1
    assert len(server.requests) == sent
    assert prod.set_view_properties("db.v", {"comment": None, "x": "y"}).properties == {"x": "y"}
    prod.rename_view("db.v", "db.w")
    assert theirs.list_views("db") == [("db", "w")]
    with pytest.raises(AlreadyExistsError):
        prod.create_view("db.w", QUERY, "id bigint")
    with pytest.raises(InvalidArgumentError, match="has a query in trino"):
        prod.replace_view("db.w", QUERY)
    prod.drop_view("db.w")
    assert prod.views() == []


def test_fields_that_the_client_does_not_know(server):
    """They are read from the server's answer."""
    prod = bh.catalog("prod", **server.options)
    prod.create_view("db.v", QUERY, "id bigint", location="s3://mine/v")
    server.views["db", "v"]["versions"][0]["storage-table"] = {"namespace": ["db"], "name": "rows"}
    found = prod.view("db.v")
    assert (found.storage_table, found.location) == ("db.rows", "s3://mine/v")
    with pytest.raises(UnsupportedFeatureError, match="materialized view is not replaced"):
        prod.replace_view("db.v", QUERY)


def test_names_with_signs(server):
    prod = bh.catalog("prod", **server.options)
    prod.create_view("x{y}.a b/ä{0}", QUERY, "id bigint")
    assert prod.view("x{y}.a b/ä{0}").sql == {"spark": QUERY} and prod.views("x{y}") == ["x{y}.a b/ä{0}"]
    prod.replace_view("x{y}.a b/ä{0}", "SELECT 1")
    prod.rename_view("x{y}.a b/ä{0}", "db.%2F")
    prod.drop_view("db.%2F")
    assert server.views == {}


def test_what_is_not_there(server):
    prod = bh.catalog("prod", **server.options)
    for act in (
        lambda: prod.view("db.v"), lambda: prod.replace_view("db.v", QUERY), lambda: prod.drop_view("db.v"),
        lambda: prod.rename_view("db.v", "db.w"), lambda: prod.create_view("none.v", QUERY, "id bigint"),
        lambda: prod.set_view_properties("db.v", {"a": "b"}), lambda: prod.rollback_view("db.v", 1),
    ):  # fmt: skip
        with pytest.raises(TableNotFoundError):
            act()


def test_conflicts(server, monkeypatch):
    prod = bh.catalog("prod", **server.options)
    prod.create_view("db.v", QUERY, "id bigint")
    server.conflicts += [1, 2]
    assert prod.replace_view("db.v", "SELECT 1").version == 2 and server.conflicts == []
    server.conflicts += range(1000)
    with pytest.raises(CommitConflictError, match="changed 20 times"):
        prod.replace_view("db.v", "SELECT 2")


@pytest.mark.parametrize("server", ["false"], indirect=True)
def test_a_server_without_views(server):
    prod = bh.catalog("prod", **server.options)
    assert prod.views() == []
    for act in (
        lambda: prod.view("db.v"), lambda: prod.create_view("db.v", QUERY, "id int"), lambda: prod.drop_view("db.v"),
        lambda: prod.replace_view("db.v", QUERY), lambda: prod.rename_view("db.v", "db.w"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match="does not know views"):
            act()
    assert server.requests == []


def test_a_token_that_has_expired(server, monkeypatch):
    """A new one is asked for, and the request is sent again, once."""
    prod = bh.catalog("prod", **server.options)
    prod.create_view("db.v", QUERY, "id bigint")
    inner, left, fresh = server.commit, [1], []

    def commit(self, key, given):
        if left[0]:
            left[0] -= 1
            return self.refuse(419, "AuthorizationExpired")
        return inner(self, key, given)

    monkeypatch.setattr(server, "commit", commit)
    monkeypatch.setattr(type(prod._made.client), "_refresh_token", lambda self: fresh.append(self))
    assert prod.replace_view("db.v", "SELECT 1").version == 2 and len(fresh) == 1
    left[0] = 2
    with pytest.raises(StorageError, match="AuthorizationExpired"):
        prod.replace_view("db.v", "SELECT 2")


def test_a_failure_of_the_server(server, monkeypatch):
    prod = bh.catalog("prod", **server.options)
    monkeypatch.setattr(server, "create", lambda self, space, given: self.refuse(500, "InternalError"))
    with pytest.raises(StorageError, match="the catalog failed"):
        prod.create_view("db.v", QUERY, "id bigint")
