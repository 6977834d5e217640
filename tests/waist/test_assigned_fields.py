"""Fields of structs that updates and merges set, names with dots, and what schema evolution of a merge brings in."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.ops.rows.assign import column_path
from boathouse.types.text import parse_schema

ON = "target.id = source.id"
DEEP = pa.struct([("x", pa.int64()), ("in", pa.struct([("y", pa.int64()), ("tags", pa.list_(pa.string()))]))])


@pytest.fixture
def make(format_name, properties, tmp_path, session):
    """A table of these rows, opened for the engine."""

    def table(rows: pa.Table):
        uri = str(tmp_path / "t")
        bh.write(rows, uri, format=format_name, properties=properties)
        return bh.open(uri, format=format_name, spark=session)

    return table


def rows_of(table) -> dict:
    return {r["id"]: r for r in bh.open(table.uri, format=table.format).to_arrow().to_pylist()}


@pytest.fixture
def nested(make):
    deep = [{"x": 1, "in": {"y": 1, "tags": ["a"]}}, {"x": 2, "in": None}, None]
    return make(pa.table({"id": [1, 2, 3], "s": pa.array(deep, DEEP)}))


def test_fields_are_set_alone(nested):
    nested.update({"s.x": "id * 10", "`s`.`in`.y": "cast(id AS int)"}, "id < 3")
    assert {i: r["s"] for i, r in rows_of(nested).items()} == {
        1: {"x": 10, "in": {"y": 1, "tags": ["a"]}}, 2: {"x": 20, "in": {"y": 2, "tags": None}}, 3: None,
    }  # fmt: skip
    nested.update({"S.X": "7"}, "id = 3")
    assert rows_of(nested)[3]["s"] == {"x": 7, "in": None}
    nested.update({"s.in": "NULL"})
    assert [r["s"]["in"] for r in rows_of(nested).values()] == [None] * 3


def test_fields_in_a_merge(nested, to_data):
    source = to_data(pa.table({"id": [1, 3, 4], "v": [100, 300, 400]}))
    merge = nested.merge(source, ON).when_matched_update({"s.in.y": "source.v + coalesce(target.s.x, 0)"})
    merge = merge.when_not_matched_insert({"id": "source.id"}).when_not_matched_by_source_update({"s.x": "s.x + 1"})
    merge.execute()
    assert {i: r["s"] for i, r in rows_of(nested).items()} == {
        1: {"x": 1, "in": {"y": 101, "tags": ["a"]}},
        2: {"x": 3, "in": None},
        3: {"x": None, "in": {"y": 300, "tags": None}},
        4: None,
    }


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"s": "NULL", "s.x": "1"}, errors.InvalidArgumentError),
        ({"s.in.y": "1", "s.in": "NULL"}, errors.InvalidArgumentError),
        ({"s.x": "1", "S.x": "1"}, errors.InvalidArgumentError),
        ({"s.nope": "1"}, errors.ColumnNotFoundError),
        ({"s.x.y": "1"}, errors.ColumnNotFoundError),
        ({"s.in.tags.element": "1"}, errors.ColumnNotFoundError),
    ],
)
def test_what_cannot_be_set(nested, to_data, values, kind):
    with pytest.raises(kind):
        nested.update(values)
    with pytest.raises(kind):
        nested.merge(to_data(pa.table({"id": [1]})), ON).when_matched_update(values).execute()
    assert rows_of(nested)[1]["s"]["x"] == 1


def test_an_insert_sets_whole_columns(nested, to_data):
    merge = nested.merge(to_data(pa.table({"id": [9]})), ON).when_not_matched_insert({"id": "source.id", "s.x": "1"})
    with pytest.raises(errors.InvalidArgumentError, match="named_struct"):
        merge.execute()


def test_names_with_dots(make, traits, to_data):
    if not traits.dotted_names:
        pytest.skip("no names with dots")
    t = make(pa.table({"id": [1, 2], "a.b": [1, 2], "a": [{"c": 5}, {"c": 6}]}))
    t.update({"`a.b`": "`a.b` + 10", "a.c": "7"}, "id = 1")
    source = to_data(pa.table({"id": [2, 3], "a.b": [2, 3], "a": [{"c": 8}, {"c": 9}]}))
    with pytest.raises(errors.InvalidArgumentError, match="twice"):
        t.update({"`a.b`": "1", "a.b": "2"})
    t.merge(source, ON).when_matched_update({"`a.b`": "source.`a.b` * 2", "a.c": "source.a.c"}).execute()
    assert {i: (r["a.b"], r["a"]["c"]) for i, r in rows_of(t).items()} == {1: (11, 7), 2: (4, 8)}
    t.upsert(to_data(pa.table({"id": [20, 30], "a.b": [4, 5], "a": [{"c": 8}, {"c": 9}]})), on=["`a.b`", "a.c"])
    assert {i: (r["a.b"], r["a"]["c"]) for i, r in rows_of(t).items()} == {1: (11, 7), 20: (4, 8), 30: (5, 9)}


def test_schema_evolution_brings_what_clauses_assign(make, traits, to_data):
    t = make(pa.table({"id": [1, 2], "s": [{"x": 1}, {"x": 2}]}))
    news = pa.table({"id": [2, 3], "a": [1, 1], "b": [2, 2], "c": [3, 3], "s": [{"x": 5, "y": 6, "z": 7}] * 2})
    source = to_data(news)
    t.merge(source, ON, merge_schema=True).when_matched_delete("source.c = 0").execute()
    merge = t.merge(source, ON, merge_schema=True).when_matched_update({"B": "source.a + source.b"})
    merge.when_not_matched_insert({"id": "source.id"}).execute()
    assert t.schema.names == ("id", "s", "b") and t.schema.field("s").type.places.at("y") == ()
    assert {i: r["b"] for i, r in rows_of(t).items()} == {1: None, 2: 3, 3: None}
    if traits.fields_in_structs:
        t.merge(source, ON, merge_schema=True).when_matched_update({"s.y": "source.s.y"}, "source.id = 2").execute()
        assert t.schema.names == ("id", "s", "b")
        assert {i: r["s"] for i, r in rows_of(t).items()} == {1: {"x": 1, "y": None}, 2: {"x": 2, "y": 6}, 3: None}
    merge = t.merge(source, ON, merge_schema=True).when_not_matched_by_source_update({"a": "1"})
    with pytest.raises(errors.ColumnNotFoundError):
        merge.execute()
    t.merge(source, ON, merge_schema=True).when_not_matched_insert({"id": "source.id", "c": "c"}).execute()
    assert t.schema.names == ("id", "s", "b", "c")
    with pytest.raises(errors.ColumnNotFoundError):
        t.merge(source, ON).when_matched_update({"a": "source.a"}).execute()


def test_paths_are_spelled_as_in_the_schema():
    schema = parse_schema("id bigint, `a.b` int, S struct<`x.y`: int, z: int>")
    from_path = {
        "a.b": ("a.b",), "`a.b`": ("a.b",), "s.Z": ("S", "z"), "s.`x.y`": ("S", "x.y"), "ID": ("id",),
    }  # fmt: skip
    assert {name: column_path(name, schema) for name in from_path} == from_path
    for name in ("s.x", "a", "s.z.q", "id.x"):
        with pytest.raises(errors.ColumnNotFoundError):
            column_path(name, schema)
