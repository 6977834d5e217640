"""Several changes of columns in one commit: what a format has of them, and nothing of them where one is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse.errors import (
    BoathouseError,
    ColumnNotFoundError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedFeatureError,
)
from makers.traits import REAL, TRAITS

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "city": ["Kiel", None]})


@pytest.fixture(params=REAL)
def format(request):
    return request.param


@pytest.fixture
def table(format, tmp_path):
    t = bh.create(str(tmp_path / "t"), ROWS.schema, format=format)
    t.append(ROWS)
    return t


def commits(table):
    return len(bh.open(table.uri, format=table.format).history())


@pytest.mark.feature("several changes of columns at once")
def test_several_columns_are_added_in_one_commit(table, format):
    before = commits(table)
    step = table.evolve().add_column("tags", "array<string>").add_column("seen", "date")
    assert commits(table) == before  # nothing happens before execute
    done = step.execute(message="new feed", metadata={"who": "me"})
    assert commits(table) == before + 1 and done.version in (None, table.version)
    assert bh.open(table.uri, format=format).history()[0].message == "new feed"
    table.append(pa.table({"id": [3], "city": ["Oslo"], "tags": [["a"]], "seen": pa.array([7], pa.date32())}))
    theirs = sorted(by_peer(table.uri, format).to_pylist(), key=lambda r: r["id"])
    assert [r["tags"] for r in theirs] == [None, None, ["a"]] and list(theirs[0]) == ["id", "city", "tags", "seen"]


def test_nothing_is_changed_where_one_is_refused(table, format):
    before, version, names = commits(table), table.version, table.schema.names
    refused = [
        (lambda e: e.add_column("b", "int").add_column("B", "int"), (InvalidArgumentError, BoathouseError)),
        (lambda e: e.add_column("b", "int").rename_column("nothing", "x"), BoathouseError),
        (lambda e: e.add_column("b", "int").widen_column("city", "int"), BoathouseError),
        (lambda e: e.add_column("b", "int").set_identifiers("nothing"), BoathouseError),
        (lambda e: e, InvalidArgumentError),
    ]
    for steps, error in refused:
        with pytest.raises(error):
            steps(table.evolve()).execute()
    for wrong in (lambda e: e.add_column("", "int"), lambda e: e.rename_column("id", 3), lambda e: e.set_comment(7)):
        with pytest.raises(InvalidArgumentError):
            wrong(table.evolve())
    with pytest.raises(SchemaError):
        table.evolve().add_column("b", "no type")
    assert table.evolve().add_column("b", "int").execute(dry_run=True).version is None
    assert commits(table) == before and table.version == version and table.schema.names == names


def test_other_columns_follow_each_other(table, format):
    """Each change sees the columns as those before it leave them."""
    if not TRAITS[format].fields_in_structs:
        with pytest.raises(UnsupportedFeatureError):
            table.evolve().add_column("s", "struct<a: int>").add_column("s.b", "string").execute()
        evolution = table.evolve().rename_column("city", "x").rename_column("id", "city").rename_column("x", "id")
        evolution.add_column("b", "int").rename_column("b", "c").add_column("gone", "int").drop_column("gone").execute()
        rows = [{"id": "Kiel", "city": 1, "c": None}, {"id": None, "city": 2, "c": None}]
        assert table.to_arrow().to_pylist() == by_peer(table.uri, format).to_pylist()
        assert sorted(table.to_arrow().to_pylist(), key=lambda r: r["city"]) == rows
        return
    if TRAITS[format].renaming:
        table.set_properties({TRAITS[format].renaming: "name"})
    before = commits(table)
    evolution = table.evolve().rename_column("city", "x").rename_column("id", "city").rename_column("x", "id")
    evolution = evolution.add_column("s", "struct<a: int>").add_column("s.b", "string").drop_column("s.a")
    evolution.add_column("gone", "int").drop_column("gone").set_comment("where", "id").execute()
    assert commits(table) == before + 1
    assert str(table.schema) == str(bh.open(table.uri, format=format).schema)
    assert sorted(table.to_arrow()["city"].to_pylist()) == [1, 2]
    theirs = sorted(by_peer(table.uri, format).to_pylist(), key=lambda r: r["city"])
    assert theirs[0] == {"city": 1, "id": "Kiel", "s": None}
    assert str(table.schema.field("s").type) == "struct<b:string>"
    with pytest.raises(ColumnNotFoundError):
        table.evolve().drop_column("gone").execute()
