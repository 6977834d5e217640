"""Tables and namespaces that come to a catalog, and go; PyIceberg's own client of it sees the same."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import NoSuchTableError

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InvalidArgumentError,
    MixedWritersError,
    ReadOnlyError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

pytest.importorskip("sqlalchemy")
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32())])


@pytest.fixture
def options(tmp_path):
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}


@pytest.fixture
def ours(options):
    made = bh.catalog("prod", **options)
    made.create_namespace("db")
    return made


@pytest.fixture
def theirs(ours, options):
    from pyiceberg.catalog import load_catalog

    return load_catalog("prod", **options)


def files(root):
    return sorted(p for p in Path(root).rglob("*") if p.is_file())


@pytest.mark.feature("tables of catalogs created, renamed and dropped", format="iceberg")
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_table_is_created_renamed_and_dropped(ours, theirs, tmp_path, version):
    t = ours.create("db.t", "id bigint not null, day date", partition_by="month(day)",
                    properties={"format-version": version, "owner": "me"})  # fmt: skip
    assert t.detail()["format-version"] == int(version) and t.properties["owner"] == "me" and t.count() == 0
    assert t.uri == f"file://{tmp_path}/wh/db/t"
    t.append(pa.table({"id": [1, 2], "day": pa.array([0, 100], pa.date32())}))
    assert [f.name for f in t.partitioning.current] == ["day_month"]
    found = theirs.load_table("db.t")
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert (found.metadata.format_version, str(found.schema().find_field("id").field_type)) == (int(version), "long")
    assert found.schema().find_field("id").required and "month(2)" in str(found.spec())
    ours.create_namespace("other")
    ours.rename("db.t", "other.u")
    assert ours.tables() == ["other.u"] and ours.open("other.u").count() == 2
    assert len(theirs.load_table("other.u").scan().to_arrow()) == 2
    with pytest.raises(TableNotFoundError):
        ours.open("db.t")
    kept = files(tmp_path / "wh")
    ours.drop("other.u")
    assert ours.tables() == [] and files(tmp_path / "wh") == kept
    with pytest.raises(NoSuchTableError):
        theirs.load_table("other.u")


def test_profiles_and_types_of_version_3(ours):
    t = ours.create("db.t", "id bigint, v variant", profile="modern")
    assert t.detail()["format-version"] == 3 and t.properties["write.delete.mode"] == "merge-on-read"
    t.append(pa.table({"id": [1]}))
    assert t.count() == 1 and ours.open("db.t").schema.names == ("id", "v")


def test_where_tables_are(ours, theirs, options, tmp_path):
    ours.create_namespace("placed", {"location": f"file://{tmp_path}/elsewhere", "note": "x"})
    assert ours.create("placed.t", SCHEMA).uri == f"file://{tmp_path}/elsewhere/t"
    assert ours.create("db.own", SCHEMA, location=f"file://{tmp_path}/own").uri == f"file://{tmp_path}/own"
    assert theirs.load_table("db.own").location() == f"file://{tmp_path}/own"
    bare = bh.catalog("bare", type="sql", uri=options["uri"])
    bare.create_namespace("db")
    with pytest.raises(InvalidArgumentError, match="location="):
        bare.create("db.t", SCHEMA)


def test_purge(ours, tmp_path):
    t = ours.create("db.t", SCHEMA)
    t.append(pa.table({"id": [1, 2], "day": [None, None]}, SCHEMA))
    t.delete("id = 1")
    t.set_properties({"gc.enabled": "false"})
    with pytest.raises(ReadOnlyError, match=r"gc\.enabled is false"):
        ours.drop("db.t", purge=True)
    t.set_properties({"gc.enabled": "true"})
    named = {p for p in files(tmp_path / "wh") if p.suffix != ".crc"}
    assert named
    ours.drop("db.t", purge=True)
    assert ours.tables() == [] and not [p for p in files(tmp_path / "wh") if p.suffix in (".parquet", ".avro")]
    with pytest.raises(TableNotFoundError):
        ours.drop("db.t", purge=True)


def test_register(ours, theirs, tmp_path):
    """A table of a folder becomes the catalog's, in every version; what is written by path is refused from then on only
    by those who see that the documents are a catalog's."""
    path = str(tmp_path / "folder")
    bh.create(path, SCHEMA, format="iceberg", properties={"format-version": "3"}).append(
        pa.table({"id": [1], "day": [None]}, SCHEMA)
    )
    t = ours.register("db.t", f"{path}/metadata/v2.metadata.json")
    assert t.count() == 1 and t.append(pa.table({"id": [2], "day": [None]}, SCHEMA)).rows_added == 1
    assert ours.open("db.t").count() == 2 and len(theirs.load_table("db.t").scan().to_arrow()) == 2
    with pytest.raises(AlreadyExistsError, match=r"prod\.db\.t"):
        ours.register("db.t", f"{path}/metadata/v2.metadata.json")
    with pytest.raises(TableNotFoundError, match="no metadata file"):
        ours.register("db.n", f"{path}/metadata/v9.metadata.json")
    assert "db.n" not in ours.tables()


def test_a_table_of_a_catalog_by_its_path_says_so(ours, caplog):
    t = ours.create("db.t", SCHEMA)
    with caplog.at_level("WARNING", "boathouse"):
        by_path = bh.open(t.uri)
    assert "belongs to a catalog" in caplog.text and by_path.count() == 0
    with pytest.raises(MixedWritersError, match=r"bh\.open\(\"catalog\.namespace\.table\"\)"):
        by_path.append(pa.table({"id": [1], "day": [None]}, SCHEMA))


def test_namespaces(ours, theirs):
    ours.create_namespace("db.deep", {"owner": "me"})
    assert ours.namespaces() == ["db", "db.deep"]
    assert ours.namespace_properties("db.deep")["owner"] == "me"
    ours.set_namespace_properties("db.deep", {"owner": None, "team": "us"})
    found = theirs.load_namespace_properties(("db", "deep"))
    assert ours.namespace_properties("db.deep") == dict(found) and found["team"] == "us" and "owner" not in found
    with pytest.raises(AlreadyExistsError):
        ours.create_namespace("db.deep")
    ours.create("db.deep.t", SCHEMA)
    with pytest.raises(InvalidArgumentError, match="is not empty"):
        ours.drop_namespace("db.deep")
    ours.drop("db.deep.t")
    ours.drop_namespace("db.deep")
    assert ours.namespaces() == ["db"]
    for call in (lambda: ours.drop_namespace("no"), lambda: ours.namespace_properties("no")):
        with pytest.raises(TableNotFoundError):
            call()


def test_what_is_refused_leaves_nothing_behind(ours, tmp_path):
    ours.create("db.t", SCHEMA)
    before = files(tmp_path / "wh")
    for name, arguments, error in (
        ("db.t", {}, AlreadyExistsError), ("no.t", {}, TableNotFoundError),
        ("no.t", {"location": f"{tmp_path}/wh/own"}, TableNotFoundError), ("t", {}, InvalidArgumentError),
        ("db.u", {"partition_by": "nothing"}, ColumnNotFoundError),
        ("db.u", {"properties": {"format-version": "4"}}, UnsupportedFeatureError),
        ("db.u", {"profile": "old"}, UnsupportedFeatureError),
    ):  # fmt: skip
        with pytest.raises(error):
            ours.create(name, SCHEMA, **arguments)
    for names, error in ((("db.no", "db.x"), TableNotFoundError), (("db.t", "no.x"), TableNotFoundError)):
        with pytest.raises(error):
            ours.rename(*names)
    ours.create("db.u", SCHEMA)
    with pytest.raises(AlreadyExistsError):
        ours.rename("db.t", "db.u")
    ours.drop("db.u", purge=True)
    with pytest.raises(TableNotFoundError):
        ours.drop("db.u")
    with pytest.raises(InvalidArgumentError):
        ours.drop("db.t", purge="yes")
    with pytest.raises(InvalidArgumentError):
        ours.create_namespace("a..b")
    assert files(tmp_path / "wh") == before and ours.tables() == ["db.t"]
