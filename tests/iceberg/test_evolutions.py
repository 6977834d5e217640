"""Several changes of the schema in one commit make one schema, which pyiceberg reads, in folders and in catalogs."""

import json

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ResolveError
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import CommitConflictError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage.local import LocalStorage

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), False),
        ("city", pa.string()),
        ("s", pa.struct([("x", pa.int32()), ("l", pa.list_(pa.struct([("y", pa.float32())])))])),
    ]
)
ROWS = pa.table({"id": [1, 2], "city": ["Kiel", None], "s": [{"x": 1, "l": [{"y": 0.5}]}, None]}, SCHEMA)


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


@pytest.fixture
def table(tmp_path, version):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"format-version": version})
    t.append(ROWS)
    return t


def head(root):
    found = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return json.loads(found.read_bytes()), found


def every_kind(table, version):
    steps = table.evolve().widen_column("id", "bigint").set_identifiers("id").rename_column("city", "place")
    steps = steps.set_comment("where", "place").add_column("code", "string", after="id", comment="ISO")
    steps = steps.add_column("s.l.element.z", "int", first=True).widen_column("s.l.element.y", "double")
    steps = steps.move_column("s.x", after="l").rename_column("s.x", "w").add_column("other", "int", first=True)
    steps = steps.drop_column("other").set_nullable("s", True)
    return steps.add_column("n", "int", default=7, nullable=False) if version == "3" else steps


@pytest.mark.spec("I-069", "I-070", "I-074", "I-076")
@pytest.mark.feature("several changes of columns at once", format="iceberg")
def test_every_kind_of_change_is_one_schema(table, version, tmp_path):
    before, _ = head(tmp_path / "t")
    every_kind(table, version).execute(message="all at once")
    after, path = head(tmp_path / "t")
    assert len(after["schemas"]) == len(before["schemas"]) + 1
    assert after["current-schema-id"] == before["current-schema-id"] + 1
    assert after["last-column-id"] == before["last-column-id"] + (3 if version == "3" else 2)
    theirs = StaticTable.from_metadata(f"file://{path}")
    columns = [f.name for f in theirs.schema().fields]
    assert columns == ["id", "code", "place", "s", *(["n"] if version == "3" else [])]
    assert theirs.schema().identifier_field_ids == [1]
    assert theirs.schema().find_field("place").doc == "where" and theirs.schema().find_field("code").doc == "ISO"
    assert str(theirs.schema().find_type("id")) == "long"
    expected = {"id": 1, "code": None, "place": "Kiel", "s": {"l": [{"z": None, "y": 0.5}], "w": 1}}
    row = table.scan(where="id = 1").to_arrow().to_pylist()[0]
    assert row == expected | ({"n": 7} if version == "3" else {})
    if version != "3":
        assert theirs.scan(row_filter="id == 1").to_arrow().to_pylist() == [expected]
    table.append(
        pa.table({"id": [3], "code": ["NO"], "place": ["Oslo"], "s": pa.array([None], pa.struct([("w", pa.int32())]))})
    )
    assert table.count() == 3


def test_a_schema_that_comes_back_is_none_that_is_added(table, tmp_path):
    before, _ = head(tmp_path / "t")
    table.evolve().rename_column("city", "x").rename_column("x", "city").execute()
    after, _ = head(tmp_path / "t")
    assert after["schemas"] == before["schemas"] and after["current-schema-id"] == before["current-schema-id"]


def test_what_is_refused_leaves_no_document(table, version, tmp_path):
    before = sorted((tmp_path / "t" / "metadata").iterdir())
    for steps in (
        lambda e: e.rename_column("city", "c").set_nullable("c", False),
        lambda e: e.widen_column("id", "bigint").widen_column("city", "bigint"),
        lambda e: e.set_identifiers("id").drop_column("id"),
        lambda e: e.add_column("n", "int").set_identifiers("n"),
        lambda e: e.add_column("n", "int", nullable=False),
        *([] if version == "3" else [lambda e: e.drop_column("city").add_column("n", "int", default=1)]),
    ):
        with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)):
            steps(table.evolve()).execute()
        assert sorted((tmp_path / "t" / "metadata").iterdir()) == before
    assert table.to_arrow().schema.names == SCHEMA.names


@pytest.mark.parametrize("theirs", ["append", "rename_column"])
def test_concurrent_commits(table, tmp_path, monkeypatch, theirs):
    """A name that one of the changes frees is no conflict with rows, and a schema that changed is one."""
    other, real, done = bh.open(str(tmp_path / "t")), LocalStorage.put, []

    def put(self, key, data, *mode):
        if key.endswith("metadata.json") and not done:
            done.append(key)
            other.append(ROWS) if theirs == "append" else other.rename_column("s", "t")
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    steps = table.evolve().rename_column("city", "old").add_column("city", "int")
    if theirs == "append":
        steps.execute()
        assert table.count() == 4 and table.schema.names == ("id", "old", "s", "city")
    else:
        with pytest.raises(CommitConflictError):
            steps.execute()
        assert bh.open(str(tmp_path / "t")).schema.names == ("id", "city", "t")


@pytest.mark.spec("I-331")
def test_a_required_column_with_a_default(tmp_path):
    """Rows that are there have it, and a reader that knows no defaults refuses them, as `add_column` says."""
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"format-version": "3"})
    t.append(ROWS)
    t.add_column("n", "int", default=7, nullable=False)
    ids, n = pa.array([3], pa.int32()), pa.array([8], pa.int32())
    t.append(pa.table({"id": ids, "city": ["Oslo"], "n": n}))
    t.append(pa.table({"id": ids, "city": ["Oslo"]}))
    assert t.to_arrow()["n"].to_pylist().count(7) == 3
    document, _ = head(tmp_path / "t")
    field = document["schemas"][-1]["fields"][-1]
    assert field["required"] and field["initial-default"] == field["write-default"] == 7
    del field["initial-default"], field["write-default"]  # as a reader sees it that knows no defaults
    older = tmp_path / "t" / "metadata" / "older.metadata.json"
    older.write_text(json.dumps(document))
    with pytest.raises(ResolveError, match="n: required int"):
        StaticTable.from_metadata(f"file://{older}").scan().to_arrow()
    assert "older readers fail" in bh.Table.add_column.__doc__.replace("\n        ", " ")
