"""Views of a SQL catalog: created, replaced, rolled back, renamed and dropped; their documents by the specification."""

import json
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidArgumentError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.iceberg.catalogs.sql_views import SqlViews

pytest.importorskip("sqlalchemy")
QUERY = "SELECT id, name FROM people"
COLUMNS = "id bigint not null, name string"


@pytest.fixture
def options(tmp_path):
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}


@pytest.fixture
def prod(options):
    made = bh.catalog("prod", **options)
    made.create_namespace("db")
    made.create("db.t", "id bigint")
    return made


def row(tmp_path, name):
    """The row of a name: type, location and the one before."""
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        query = "select iceberg_type, metadata_location, previous_metadata_location from iceberg_tables"
        return connection.execute(f"{query} where table_name = ?", (name,)).fetchone()


def document(tmp_path, name="v"):
    return json.loads(Path(row(tmp_path, name)[1].removeprefix("file://")).read_bytes())


@pytest.mark.spec("I-337")
@pytest.mark.feature("views", format="iceberg")
def test_a_view_is_created_and_read(prod, tmp_path):
    made = prod.create_view(
        "db.v", {"spark": QUERY, "trino": "SELECT * FROM people"}, COLUMNS, default_catalog="other",
        properties={"comment": "all of them"},
    )  # fmt: skip
    assert made == prod.view("db.v") and prod.views() == prod.views("db") == ["db.v"] and prod.tables() == ["db.t"]
    assert made.sql == {"spark": QUERY, "trino": "SELECT * FROM people"} and made.schema.names == ("id", "name")
    assert (made.version, made.default_namespace, made.default_catalog) == (1, ("db",), "other")
    assert made.engine.startswith("boathouse ") and made.properties == {"comment": "all of them"}
    assert made.location == f"file://{tmp_path}/wh/db/v" and made.storage_table is None
    kind, place, before = row(tmp_path, "v")
    assert kind == "VIEW" and before is None and Path(place.removeprefix("file://")).name.startswith("00000-")
    found = document(tmp_path)
    assert found["format-version"] == 1 and found["version-log"] == [
        {"timestamp-ms": found["versions"][0]["timestamp-ms"], "version-id": 1}
    ]  # fmt: skip
    assert found["schemas"] == [{"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"}]}]  # fmt: skip
    assert "default-namespace" in found["versions"][0] and len(found["view-uuid"]) == 36
    with pytest.raises(UnsupportedFeatureError, match="this is a view, not a table: in spark: SELECT id, name"):
        prod.open("db.v")
    with pytest.raises(UnsupportedFeatureError, match="this is a view"):
        bh.open(place)


@pytest.mark.spec("I-337")
def test_versions(prod, tmp_path):
    prod.create_view("db.v", QUERY, COLUMNS)
    first = document(tmp_path)
    second = prod.replace_view("db.v", "SELECT id, name FROM others")
    assert (second.version, second.schema.names) == (2, ("id", "name")) and len(document(tmp_path)["schemas"]) == 1
    third = prod.replace_view("db.v", "SELECT id FROM others", "id bigint", default_namespace="db.inner")
    assert (third.version, third.schema.names, third.default_namespace) == (3, ("id",), ("db", "inner"))
    assert [v.version for v in third.versions] == [1, 2, 3] == [id for _, id in third.log]
    assert third.at(1).sql == {"spark": QUERY} and third.at(2).schema.names == ("id", "name")
    found = document(tmp_path)
    assert [s["schema-id"] for s in found["schemas"]] == [0, 1] and found["view-uuid"] == first["view-uuid"]
    # Older documents stay; the row names the one before.
    _, place, before = row(tmp_path, "v")
    assert [Path(p).name[:6] for p in (before, place)] == ["00001-", "00002-"]
    assert Path(before.removeprefix("file://")).exists()
    back = prod.rollback_view("db.v", 1)
    assert (back.version, back.sql) == (1, {"spark": QUERY}) and [id for _, id in back.log] == [1, 2, 3, 1]
    # The same definition is the same version, and nothing is written for the one that is current.
    place = row(tmp_path, "v")[1]
    assert prod.replace_view("db.v", QUERY) == back == prod.rollback_view("db.v", 1)
    assert row(tmp_path, "v")[1] == place
    again = prod.replace_view("db.v", "SELECT id, name FROM others")
    assert again.version == 2 and len(again.versions) == 3
    with pytest.raises(VersionNotFoundError, match="no version 9") as caught:
        prod.rollback_view("db.v", 9)
    assert "1, 2, 3" in caught.value.advice
    with pytest.raises(VersionNotFoundError, match="no version 9"):
        again.at(9)


@pytest.mark.spec("I-337")
@pytest.mark.parametrize(("kept", "versions", "log"), [(None, 10, 10), ("3", 3, 3), ("1", 1, 1)])
def test_how_many_versions_are_kept(prod, tmp_path, kept, versions, log):
    """The newest ones by their ids, and the current one; the log begins after versions that are gone."""
    prod.create_view("db.v", "SELECT 0", COLUMNS)
    if kept is not None:
        prod.set_view_properties("db.v", {"version.history.num-entries": kept})
    for i in range(1, 13):
        last = prod.replace_view("db.v", f"SELECT {i}")
    assert last.version == 13 and len(last.versions) == versions and len(last.log) == log
    assert [v.version for v in last.versions] == list(range(14 - versions, 14))
    if kept == "3":
        prod.rollback_view("db.v", 11)
        more = prod.replace_view("db.v", "SELECT 'more'")
        assert (more.version, [v.version for v in more.versions]) == (14, [12, 13, 14])
        assert [id for _, id in more.log] == [14]


@pytest.mark.spec("I-337")
def test_dialects(prod):
    prod.create_view("db.v", {"spark": QUERY, "Trino": "SELECT 1"}, COLUMNS)
    with pytest.raises(InvalidArgumentError, match="has a query in Trino, and the new version has none") as caught:
        prod.replace_view("db.v", "SELECT 2")
    assert "replace.drop-dialect.allowed" in caught.value.advice and prod.view("db.v").version == 1
    assert prod.replace_view("db.v", {"SPARK": QUERY, "trino": "SELECT 2"}).version == 2
    prod.set_view_properties("db.v", {"replace.append-dialect.allowed": "true"})
    assert prod.replace_view("db.v", "SELECT 3").sql == {"spark": "SELECT 3", "trino": "SELECT 2"}
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        prod.set_view_properties("db.v", {"replace.drop-dialect.allowed": "true"})
    prod.set_view_properties("db.v", {"replace.drop-dialect.allowed": "true", "replace.append-dialect.allowed": None})
    assert prod.replace_view("db.v", "SELECT 4").sql == {"spark": "SELECT 4"}
    for sql, words in (({}, "no query"), ({"spark": " "}, "no query in spark"), ({"a": "x", "A": "y"}, "one dialect")):
        with pytest.raises(InvalidArgumentError, match=words):
            prod.replace_view("db.v", sql)
        with pytest.raises(InvalidArgumentError, match=words):
            prod.create_view("db.w", sql, COLUMNS)
    assert prod.views() == ["db.v"]


def test_properties(prod):
    prod.create_view("db.v", QUERY, COLUMNS, properties={"comment": "a", "x": "y"})
    found = prod.set_view_properties("db.v", {"comment": "b", "x": None})
    assert found.properties == {"comment": "b"} == prod.view("db.v").properties and found.version == 1
    for value in ("0", "-1", "many", "", "9" * 30):
        with pytest.raises(InvalidArgumentError, match=r"version\.history\.num-entries would be"):
            prod.set_view_properties("db.v", {"version.history.num-entries": value})
        with pytest.raises(InvalidArgumentError):
            prod.create_view("db.w", QUERY, COLUMNS, properties={"version.history.num-entries": value})


@pytest.mark.spec("I-337")
def test_names(prod, options, tmp_path):
    prod.create_namespace("other")
    view = prod.create_view("db.v", QUERY, COLUMNS)
    prod.rename_view("db.v", "other.w")
    assert prod.views() == ["other.w"] and prod.view("other.w") == view
    # A replaced view stays in its place, whatever its name is by now.
    prod.replace_view("other.w", "SELECT 1")
    assert row(tmp_path, "w")[1].startswith(f"file://{tmp_path}/wh/db/v/metadata/00001-")
    prod.create_view("db.v", QUERY, COLUMNS, location=str(tmp_path / "mine"))
    for act in (
        lambda: prod.create_view("db.v", QUERY, COLUMNS), lambda: prod.rename_view("db.v", "other.w"),
    ):  # fmt: skip
        with pytest.raises(AlreadyExistsError, match="there is a view of this name"):
            act()
    for act in (lambda: prod.create_view("db.t", QUERY, COLUMNS), lambda: prod.rename_view("db.v", "db.t")):
        with pytest.raises(AlreadyExistsError, match="there is a table of this name"):
            act()
    with pytest.raises(AlreadyExistsError):
        prod.create("db.v", "id bigint")
    gone = (
        lambda: prod.view("db.none"), lambda: prod.drop_view("db.none"), lambda: prod.replace_view("db.none", QUERY),
        lambda: prod.rename_view("db.none", "db.x"), lambda: prod.rollback_view("db.none", 1),
        lambda: prod.set_view_properties("db.none", {"a": "b"}), lambda: prod.drop_view("db.t"),
        lambda: prod.view("db.t"), lambda: prod.views("none"), lambda: prod.create_view("none.v", QUERY, COLUMNS),
        lambda: prod.rename_view("db.v", "none.v"), lambda: prod.drop("db.v"),
    )  # fmt: skip
    for act in gone:
        with pytest.raises(TableNotFoundError):
            act()
    for name in ("v", ".v", "db.", ""):
        with pytest.raises(InvalidArgumentError):
            prod.create_view(name, QUERY, COLUMNS)
    with pytest.raises(InvalidArgumentError, match="not a namespace"):
        prod.create_view("db.x", QUERY, COLUMNS, default_namespace="a..b")
    prod.drop_view("other.w")
    prod.drop_view("db.v")
    assert prod.views() == [] and prod.tables() == ["db.t"]
    # PyIceberg's own client of the catalog sees none of them among the tables.
    from pyiceberg.catalog import load_catalog

    prod.create_view("db.v", QUERY, COLUMNS)
    theirs = load_catalog("prod", **options)
    assert theirs.list_tables("db") == [("db", "t")] and not theirs.table_exists("db.v")


def test_a_view_that_others_change_meanwhile(prod, monkeypatch):
    """What was asked is done again, on what they left."""
    prod.create_view("db.v", QUERY, COLUMNS)
    inner, left = SqlViews.commit, [2]

    def commit(self, parts, document, token, updates):
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(SqlViews, "commit", inner)
            prod.set_view_properties("db.v", {f"x{left[0]}": "theirs"})
            monkeypatch.setattr(SqlViews, "commit", commit)
        return inner(self, parts, document, token, updates)

    monkeypatch.setattr(SqlViews, "commit", commit)
    made = prod.replace_view("db.v", "SELECT 1")
    assert made.properties == {"x1": "theirs", "x0": "theirs"} and made.version == 2
    assert len(list(Path(made.location.removeprefix("file://"), "metadata").iterdir())) == 4
    left[0] = 1000
    with pytest.raises(CommitConflictError, match="changed 20 times"):
        prod.replace_view("db.v", "SELECT 2")
    left[0] = 0
    assert prod.view("db.v").version == 2


def test_fields_that_nothing_is_known_of_stay(prod, tmp_path):
    prod.create_view("db.v", QUERY, COLUMNS)
    place = Path(row(tmp_path, "v")[1].removeprefix("file://"))
    found = json.loads(place.read_bytes())
    found["new-field"] = {"a": 1}
    found["versions"][0]["newer"] = 7
    found["versions"][0]["representations"].append({"type": "plan", "plan": "..."})
    place.write_text(json.dumps(found))
    prod.replace_view("db.v", "SELECT 1")
    after = document(tmp_path)
    assert after["new-field"] == {"a": 1} and after["versions"][0] == found["versions"][0]
    found = {
        **after,
        "versions": [{**v, "storage-table": {"namespace": ["db"], "name": "t"}} for v in after["versions"]],
    }
    Path(row(tmp_path, "v")[1].removeprefix("file://")).write_text(json.dumps(found))
    with pytest.raises(UnsupportedFeatureError, match="a materialized view is not replaced"):
        prod.replace_view("db.v", "SELECT 2")
    assert prod.set_view_properties("db.v", {"a": "b"}).storage_table == "db.t"
    Path(row(tmp_path, "v")[1].removeprefix("file://")).unlink()
    with pytest.raises(StorageError, match="names a metadata document that is not there"):
        prod.view("db.v")
    prod.drop_view("db.v")


def test_a_database_without_types_of_rows(tmp_path):
    """That of older clients (schema V0)."""
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute(
            "create table iceberg_tables (catalog_name varchar(255), table_namespace varchar(255), "
            "table_name varchar(255), metadata_location varchar(1000), previous_metadata_location varchar(1000), "
            "primary key (catalog_name, table_namespace, table_name))"
        )
        connection.execute(
            "create table iceberg_namespace_properties (catalog_name varchar(255), namespace varchar(255), "
            "property_key varchar(255), property_value varchar(1000), "
            "primary key (catalog_name, namespace, property_key))"
        )
    old = bh.catalog("old", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")
    old.create_namespace("db")
    old.create("db.t", "id bigint").append(pa.table({"id": [1]}))
    for act in (old.views, lambda: old.view("db.v"), lambda: old.create_view("db.v", QUERY, COLUMNS),
                lambda: old.drop_view("db.t")):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match="no column iceberg_type"):
            act()
    assert old.tables() == ["db.t"] and old.open("db.t").count() == 1
    with pytest.raises(TableNotFoundError):
        old.open("db.none")
