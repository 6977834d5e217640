"""Defaults of fields of structs, wherever these are: what existing rows have, and rows written without them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import BoathouseError, ExpressionError, InvalidArgumentError, SchemaMismatchError

STRUCT = pa.struct([("a", pa.int64())])
SCHEMA = pa.schema([("id", pa.int64()), ("s", STRUCT), ("l", pa.list_(STRUCT)), ("m", pa.map_(pa.string(), STRUCT)),
                    ("d", pa.struct([("s", STRUCT)]))])  # fmt: skip
PLACES = ("s", "l.element", "m.value", "d.s")


def rows(*ids):
    """The second row of each has nulls at every depth."""
    made = []
    for i in ids:
        one = {"a": i}
        whole = {"id": i, "s": one, "l": [one, None], "m": [("k", one), ("n", None)], "d": {"s": one}}
        made.append(whole)
        made.append({"id": -i, "s": None, "l": [], "m": None, "d": {"s": None}})
    return pa.Table.from_pylist(made, SCHEMA)


def values(table, name="x"):
    """The field of each struct of each row with a positive id."""
    found = {}
    for r in table.to_arrow().sort_by("id").to_pylist():
        if r["id"] > 0:
            assert r["l"][1] is None and dict(r["m"])["n"] is None
            found[r["id"]] = [r["s"][name], r["l"][0][name], dict(r["m"])["k"][name], r["d"]["s"][name]]
        else:
            assert (r["s"], r["l"], r["m"], r["d"]) == (None, [], None, {"s": None})
    return found


@pytest.fixture
def table(tmp_path):
    made = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"format-version": "3"})
    made.append(rows(1))
    return made


def with_defaults(table, default="5"):
    for place in PLACES:
        table.add_column(f"{place}.x", "int", default=default)


def head(table):
    return max(
        Path(table.uri.removeprefix("file://"), "metadata").glob("v*.metadata.json"),
        key=lambda p: int(p.name[1:].split(".")[0]),
    )


@pytest.mark.spec("I-057", "I-058", "I-059", "I-060", "I-061")
def test_fields_that_come_later(table):
    with_defaults(table)
    assert values(table) == {1: [5] * 4}
    before = set(table.files().column("path").to_pylist())
    table.append(rows(2))
    for place in PLACES:
        table.set_default(f"{place}.x", 9)
    table.append(rows(3))
    table.overwrite(rows(4), where="id = 4 OR id = -4")
    table.upsert(rows(5), on="id", deletes="equality")
    table.set_default("s.x", None)
    table.append(rows(6))
    expected = {1: [5] * 4, 2: [5] * 4, 3: [9] * 4, 4: [9] * 4, 5: [9] * 4, 6: [None, 9, 9, 9]}
    assert values(table) == expected
    # They are in the files, and no reader has to know of them.
    for path in set(table.files().column("path").to_pylist()) - before:
        names = [str(c.path) for c in pq.ParquetFile(path.removeprefix("file://")).schema]
        assert [n for n in names if n.endswith("x")] == ["s.x", "l.list.element.x", "m.key_value.value.x", "d.s.x"]
    table.optimize()
    assert values(table) == expected
    seen = StaticTable.from_metadata(f"file://{head(table)}").schema()
    assert {seen.find_field(f"{p}.x").initial_default for p in PLACES} == {5}
    assert [seen.find_field(f"{p}.x").write_default for p in PLACES] == [None, 9, 9, 9]


@pytest.mark.spec("I-057", "I-063")
def test_what_is_given_counts(table):
    with_defaults(table)
    whole = pa.struct([("a", pa.int64()), ("x", pa.int32())])
    given = {"id": [2, 3], "s": [{"a": 1, "x": 7}, {"a": 1, "x": None}]}
    table.append(pa.table(given, pa.schema([("id", pa.int64()), ("s", whole)])))
    assert [r["s"]["x"] for r in table.to_arrow().sort_by("id").to_pylist() if r["id"] > 1] == [7, None]
    table.add_column("s.r", "string", default="'r'", nullable=False)
    table.append(rows(4))
    assert [r["s"] and r["s"]["r"] for r in table.scan(where="id IN (1, 4)").to_arrow().to_pylist()] == ["r", "r"]
    table.set_default("s.r", None)
    with pytest.raises(SchemaMismatchError, match=r"`s\.r` is missing and cannot be null"):
        table.append(rows(5))
    with pytest.raises(InvalidArgumentError, match="required"):
        table.add_column("l.element.r", "int", nullable=False)
    with pytest.raises(BoathouseError, match="'words' is not a valid int"):
        table.add_column("s.y", "int", default="'words'")


@pytest.mark.spec("I-057")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_updates_and_merges(table, mode):
    """A field that is set leaves the others; a whole struct without one that has a default is refused, as it would be
    null."""
    table.set_properties({"write.update.mode": mode, "write.merge.mode": mode})
    with_defaults(table)
    for place in PLACES:
        table.set_default(f"{place}.x", 9)
    table.update({"s.a": "7", "d.s.a": "8"}, "id = 1")
    assert values(table) == {1: [5] * 4}
    head_before = head(table)
    files = sorted(p.name for p in head_before.parent.parent.rglob("*.parquet"))
    lacking = r"`s` is set to .*, whose structs lack `s\.x`, which is not null by default"
    with pytest.raises(ExpressionError, match=lacking):
        table.update({"s": "named_struct('a', 1)"}, "id = 1")
    merge = table.merge(rows(1, 2), "target.id = source.id")
    with pytest.raises(ExpressionError, match="structs lack"):
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    with pytest.raises(ExpressionError, match=r"`l\.element\.x`"):
        table.merge(rows(2), "target.id = source.id").when_not_matched_insert({"l": "source.l"}).execute()
    with pytest.raises(ExpressionError, match=r"`m\.value\.x`"):
        table.merge(rows(2), "target.id = source.id").when_not_matched_insert({"m": "source.m"}).execute()
    with pytest.raises(ExpressionError, match=r"`d\.s\.x`"):
        table.merge(rows(2), "target.id = source.id").when_not_matched_insert({"d": "source.d"}).execute()
    assert head(table) == head_before
    assert sorted(p.name for p in head_before.parent.parent.rglob("*.parquet")) == files
    table.merge(rows(2), "target.id = source.id").when_not_matched_insert(
        {"id": "source.id", "s": "named_struct('x', 3, 'a', source.id)", "d": "NULL"}
    ).execute()
    found = {r["id"]: (r["s"], r["d"]) for r in table.to_arrow().to_pylist()}
    assert found[2] == ({"a": 2, "x": 3}, None) and found[1][0] == {"a": 7, "x": 5}


def test_defaults_of_other_writers(table):
    """A struct, and a type that SQL has no text for."""
    table.add_column("s.t", "struct<u: int>")
    document = json.loads(head(table).read_bytes())
    current = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    members = next(f for f in current["fields"] if f["name"] == "s")["type"]["fields"]
    inner = members[1]["type"]["fields"][0]
    inner |= {"write-default": 4}
    members[1] |= {"write-default": {}}
    members.append({"id": 90, "name": "w", "required": False, "type": "time", "write-default": "22:31:08"})
    document["last-column-id"] = 90
    head(table).write_text(json.dumps(document))
    table = bh.open(table.uri)
    table.append(rows(2))
    found = next(r["s"] for r in table.to_arrow().to_pylist() if r["id"] == 2)
    assert (found["t"], str(found["w"])) == ({"u": 4}, "22:31:08")
    table.append(pa.table({"id": [3], "s": [{"a": 1, "t": {}}]}, pa.schema([("id", pa.int64()), ("s", pa.struct(
        [("a", pa.int64()), ("t", pa.struct([]))]))])))  # fmt: skip
    assert next(r["s"]["t"] for r in table.to_arrow().to_pylist() if r["id"] == 3) == {"u": 4}


@pytest.mark.spark
def test_on_spark(spark, table):
    """The executors write them."""
    with_defaults(table)
    frame = spark.createDataFrame(
        [(2, (2,), [(2,), None], {"k": (2,), "n": None}, ((2,),))],
        "id long, s struct<a: long>, l array<struct<a: long>>, m map<string, struct<a: long>>, "
        "d struct<s: struct<a: long>>",
    )
    table.append(frame)
    assert values(table) == {1: [5] * 4, 2: [5] * 4}
