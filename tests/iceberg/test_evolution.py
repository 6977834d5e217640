"""Schemas that change, ours and pyiceberg's; columns that identify rows; reserved field ids."""

import copy
import json
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.schema import to_arrow
from boathouse.errors import CorruptTableError, InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING
from boathouse.iceberg.metadata.rules import walk
from boathouse.table.change import Change
from boathouse.table.edits import RenameColumn
from boathouse.table.verdict import Rebase, Stop
from boathouse.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    DecimalType,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
)

types = pytest.importorskip("pyiceberg.types")
INT, LONG = pa.int32(), pa.int64()


def rows_of(table, **scan):
    return table.scan(**scan).to_arrow().to_pylist()


@pytest.mark.spec("I-069")
def test_every_change_is_a_new_schema(make):
    table, eyes = make(pa.table({"a": pa.array([1], INT)}))
    first = eyes.document()
    table.add_column("b", "string")
    table.widen_column("a", "bigint")
    document = eyes.document()
    assert [s["schema-id"] for s in document["schemas"]] == [0, 1, 2] and document["current-schema-id"] == 2
    assert document["schemas"][0] == first["schemas"][0] and document["last-column-id"] == 2
    # What is the current schema already is not added again, and one that was the current is taken up again.
    table.widen_column("a", "bigint")
    table.append(pa.table({"a": pa.array([2], LONG), "b": ["x"]}), merge_schema=True)
    assert [s["schema-id"] for s in eyes.document()["schemas"]] == [0, 1, 2]
    table.overwrite(pa.table({"a": pa.array([3], LONG)}), overwrite_schema=True)
    table.overwrite(pa.table({"a": pa.array([3], LONG)}), overwrite_schema=True)
    document = eyes.document()
    assert len(document["schemas"]) == 4 and document["current-schema-id"] == 3
    assert eyes.rows().to_pylist() == [{"a": 3}] == rows_of(bh.open(str(eyes.root)))


WIDE = Schema((
    Field("i", INT32), Field("f", FLOAT), Field("d", DecimalType(9, 2)),
    Field("s", StructType((Field("i", INT32), Field("l", ListType(Field("element", FLOAT)))))),
    Field("m", MapType(Field("key", INT32, False), Field("value", DecimalType(4, 1)))),
))  # fmt: skip


@pytest.mark.spec("I-070")
@pytest.mark.feature("widen columns", format="iceberg", engine="either")
def test_promotions_are_of_metadata_alone(tmp_path, seen):
    root = tmp_path / "t"
    table = bh.create(str(root), WIDE, format="iceberg")
    data = pa.table({
        "i": pa.array([-(1 << 31), None], INT), "f": pa.array([0.1, None], pa.float32()),
        "d": pa.array([Decimal("1234567.89"), None], pa.decimal128(9, 2)), "s": [{"i": 7, "l": [0.5, None]}, None],
        "m": [[(5, Decimal("999.9"))], []]}, to_arrow(WIDE))  # fmt: skip
    table.append(data)
    before = sorted(p.name for p in (root / "data").rglob("*"))
    for column, type in (("i", "bigint"), ("f", "double"), ("d", "decimal(38,2)"), ("s.i", "bigint"),
                         ("s.l.element", "double"), ("m.key", "bigint"), ("m.value", "decimal(5,1)")):  # fmt: skip
        table.widen_column(column, type)
    assert sorted(p.name for p in (root / "data").rglob("*")) == before
    expected = [
        {"i": -(1 << 31), "f": pa.scalar(0.1, pa.float32()).as_py(), "d": Decimal("1234567.89"),
         "s": {"i": 7, "l": [0.5, None]}, "m": [(5, Decimal("999.9"))]},
        {"i": None, "f": None, "d": None, "s": None, "m": []}]  # fmt: skip
    found = bh.open(str(root)).to_arrow()
    assert found.to_pylist() == expected and seen(root).rows().to_pylist() == expected
    assert found.schema.field("m").type.key_type == LONG and found.schema.field("d").type == pa.decimal128(38, 2)
    for where in ("i = -2147483648", "f > 0.09 AND f < 0.11", "d = 1234567.89", "s.i = 7"):
        assert rows_of(table, where=where) == expected[:1], where
    table.append(pa.table({"i": pa.array([1 << 40], LONG), "d": pa.array([Decimal(10**35)], pa.decimal128(38, 2))}))
    assert rows_of(table, columns=["i"], where="i > 0") == [{"i": 1 << 40}] and seen(root).rows().num_rows == 3


@pytest.mark.spec("I-071", "I-078")
def test_changes_of_type_that_are_refused(tmp_path, seen):
    root = tmp_path / "t"
    fields = (*WIDE.fields, Field("t", STRING), Field("day", DATE), Field("n", INT64), Field("one", StructType((
        Field("x", INT32),))))  # fmt: skip
    table = bh.create(str(root), Schema(fields), format="iceberg")
    before = seen(root).document()
    for column, type in (
        ("d", "decimal(8,2)"), ("d", "decimal(10,3)"), ("n", "int"), ("i", "string"), ("i", "double"), ("f", "float"),
        ("i", "int"), ("i", "struct<x:int>"), ("one", "int"), ("one", "struct<x:bigint>"), ("s", "struct<i:int>"),
        ("day", "timestamp_ntz"), ("day", "timestamp"), ("t", "binary"), ("m.value", "decimal(4,0)"),
        ("s.l", "array<double>"),
    ):  # fmt: skip
        if (column, type) in (("f", "float"), ("i", "int")):
            table.widen_column(column, type)
            continue
        with pytest.raises(UnsupportedFeatureError, match=f"`{column}`"):
            table.widen_column(column, type)
    finer = pa.array([Decimal("1.234")], pa.decimal128(9, 3))
    for data in (pa.table({"n": ["x"]}), pa.table({"i": [{"x": 1}]}), pa.table({"one": pa.array([1], INT)}),
                 pa.table({"t": [{"x": 1}]}), pa.table({"d": finer})):  # fmt: skip
        with pytest.raises((SchemaMismatchError, UnsupportedFeatureError)):
            table.append(data, merge_schema=True)
    assert seen(root).document() == before


@pytest.fixture
def theirs(catalog, adopt):
    """theirs(schema) -> (pyiceberg's table, how to open it here)."""

    def make(schema):
        made = catalog.create_table("db.t", schema)
        return made, lambda: bh.open(adopt(catalog.load_table("db.t")), format="iceberg")

    return make


@pytest.mark.spec("I-075")
def test_a_name_that_comes_back_is_another_column(theirs):
    table, opened = theirs(pa.schema([("id", LONG), ("x", pa.string()), ("s", pa.struct([("a", LONG), ("b", LONG)]))]))
    table.append(pa.table({"id": [1], "x": ["old"], "s": [{"a": 5, "b": 6}]}))
    with table.update_schema() as update:
        update.delete_column("x")
        update.delete_column(("s", "a"))
    with table.update_schema() as update:
        update.add_column("x", types.StringType())
        update.add_column(("s", "a"), types.LongType())
    table.append(pa.table({"id": [2], "x": ["new"], "s": pa.array([{"b": 8, "a": 7}])}))
    ours = opened()
    found = {r["id"]: r for r in rows_of(ours)}
    assert found == {1: {"id": 1, "x": None, "s": {"b": 6, "a": None}}, 2: {"id": 2, "x": "new", "s": {"b": 8, "a": 7}}}
    assert rows_of(ours, columns=["id"], where="x = 'old'") == [] == rows_of(ours, columns=["id"], where="s.a = 5")
    assert rows_of(ours, columns=["id"], where="x IS NULL") == [{"id": 1}]
    # The first version has its own schema.
    first = bh.open(ours.uri, format="iceberg", version=table.metadata.snapshots[0].snapshot_id)
    assert rows_of(first) == [{"id": 1, "x": "old", "s": {"a": 5, "b": 6}}]


@pytest.mark.spec("I-075")
def test_our_columns_that_come_back(make):
    table, eyes = make(pa.table({"a": pa.array([1], INT), "b": ["old"]}))
    table.overwrite(pa.table({"a": pa.array([2], INT)}), overwrite_schema=True)
    table.add_column("b", "string")
    ids = [{f["name"]: f["id"] for f in s["fields"]} for s in eyes.document()["schemas"]]
    assert ids == [{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 3}] and eyes.document()["last-column-id"] == 3
    assert rows_of(table) == [{"a": 2, "b": None}] == eyes.rows().to_pylist()


@pytest.mark.spec("I-076")
def test_renamed_and_moved_columns(theirs):
    columns = [("id", LONG), ("a", pa.string()), ("s", pa.struct([("x", LONG), ("y", LONG)])),
             ("l", pa.list_(pa.struct([("p", LONG), ("q", LONG)])))]  # fmt: skip
    table, opened = theirs(pa.schema(columns))
    table.append(pa.table({"id": [1], "a": ["one"], "s": [{"x": 1, "y": 2}], "l": [[{"p": 3, "q": 4}]]}))
    with table.update_schema() as update:
        update.rename_column("a", "b")
        update.rename_column(("s", "x"), "y2")
        update.move_first(("s", "y"))
        update.rename_column(("l", "element", "p"), "r")
    with table.update_schema() as update:
        update.move_after("id", "s")
        update.move_first("l")
    ours = opened()
    expected = {"l": [{"r": 3, "q": 4}], "b": "one", "s": {"y": 2, "y2": 1}, "id": 1}
    assert rows_of(ours) == [expected] == table.scan().to_arrow().to_pylist()
    assert list(ours.schema.names) == ["l", "b", "s", "id"] and [f.id for f in ours.schema] == [4, 2, 3, 1]
    assert rows_of(ours, columns=["s"], where="b = 'one' AND s.y2 = 1") == [{"s": {"y": 2, "y2": 1}}]
    # What we write then has the new names and order, and the old ids.
    ours.append(pa.table({"id": [2], "b": ["two"]}))
    assert sorted(r["b"] for r in rows_of(ours)) == ["one", "two"]


DEEP = pa.table({
    "id": pa.array([1, 2], LONG), "a": ["x", None], "s": [{"k": 1, "t": {"u": "v"}}, None],
    "l": pa.array([[{"e": 1, "f": 2}], []], pa.list_(pa.struct([("e", INT), ("f", INT)]))),
    "m": pa.array([[("k", {"w": 5, "z": 6})], []], pa.map_(pa.string(), pa.struct([("w", INT), ("z", INT)]))),
})  # fmt: skip


@pytest.mark.spec("I-075", "I-076", "I-083")
@pytest.mark.feature("rename columns", "drop columns", format="iceberg", engine="either")
def test_our_renames_and_drops_touch_no_file(make):
    table, eyes = make(DEEP)
    files, ids = eyes.live(), {path: f.id for path, f in table.schema.walk()}
    with pytest.raises(InvalidArgumentError, match=r"two columns `s\.k`"):
        table.rename_column("a", "s.k")
    table.rename_column("a", "s.n")
    table.rename_column("s.t", "T")
    table.rename_column("s.T.u", "k")
    table.rename_column("l.element.e", "a")
    table.rename_column("m.value.w", "z2")
    table.drop_column("m.value.z")
    table.drop_column("s.k")
    expected = [
        {"id": 1, "s.n": "x", "s": {"T": {"k": "v"}}, "l": [{"a": 1, "f": 2}], "m": [("k", {"z2": 5})]},
        {"id": 2, "s.n": None, "s": None, "l": [], "m": []},
    ]
    assert rows_of(bh.open(str(eyes.root))) == expected == eyes.rows().to_pylist() and eyes.live() == files
    now = {path: f.id for path, f in table.schema.walk()}
    assert now[("s.n",)] == ids[("a",)] and now[("s", "T", "k")] == ids[("s", "t", "u")]
    assert rows_of(table, columns=["id"], where="s.T.k = 'v' AND `s.n` = 'x'") == [{"id": 1}]
    # Names change places, and what was dropped comes back as another column.
    for old, new in (("id", "tmp"), ("s.n", "id"), ("tmp", "a")):
        table.rename_column(f"`{old}`", new)
    table.add_column("m2", "int")
    table.append(pa.table({"a": pa.array([3], LONG), "id": ["new"], "m2": pa.array([7], INT)}))
    table.delete("a = 2")
    table.update({"m2": "a + 1"}, "id = 'x'")
    found = sorted((r["a"], r["id"], r["m2"]) for r in rows_of(bh.open(str(eyes.root))))
    assert found == [(1, "x", 2), (3, "new", 7)] == sorted((r["a"], r["id"], r["m2"]) for r in eyes.rows().to_pylist())
    assert [s["schema-id"] for s in eyes.document()["schemas"]] == list(range(len(eyes.document()["schemas"])))


@pytest.mark.spec("I-077")
def test_columns_that_are_needed_are_not_dropped(make, keyed):
    data = pa.table({"id": pa.array([1], LONG), "p": ["a"], "o": pa.array([2], INT), "s": [{"q": "b", "r": 1}]})
    table, eyes = make(data, name="other", partition_by=["p", "bucket(4, s.q)"])
    document = eyes.document()
    order = {"order-id": 1, "fields": [
        {"source-id": 3, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}  # fmt: skip
    document["sort-orders"].append(order)
    document["default-sort-order-id"] = 1
    eyes.head().write_text(json.dumps(document))
    before = eyes.document()
    for column, words in (("p", "partition spec 0"), ("s.q", "partition spec 0"), ("s", "partition spec 0"),
                          ("o", "the sort order")):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=f"`{column}` cannot be dropped: {words}"):
            table.drop_column(column)
    assert eyes.document() == before
    table.drop_column("s.r")
    table.rename_column("p", "part")
    assert rows_of(table) == [{"id": 1, "part": "a", "o": 2, "s": {"q": "b"}}] == eyes.rows().to_pylist()
    assert len(table.scan(where="part = 'b'").files()) == 0
    with pytest.raises(InvalidArgumentError, match="the last column of its struct"):
        table.drop_column("s.q")
    table, _ = keyed(ID, SK)
    for column in ("id", "s"):
        with pytest.raises(InvalidArgumentError, match="the identifier fields of the table needs it"):
            table.drop_column(column)


def test_wrong_renames(make):
    table, eyes = make(pa.table({"a": pa.array([1], LONG), "b": ["x"], "p": ["y"]}), partition_by=["p"])
    table.rename_column("p", "q")
    before = eyes.document()
    for call, words in ((lambda: table.rename_column("a", "b"), "`b` already exists"),
                        (lambda: table.rename_column("a", "p"), "partition spec 0")):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=words):
            call()
    table.rename_column("a", "a")
    assert eyes.document() == before
    table.drop_column("b")
    assert rows_of(table) == [{"a": 1, "q": "y"}]


@pytest.mark.spec("I-094")
def test_our_renames_come_into_the_mapping(make):
    table, eyes = make(pa.table({"a": pa.array([1], LONG), "s": [{"x": 1, "y": 2}]}))
    mapping = [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["s"], "fields": [
        {"field-id": 3, "names": ["x"]}]}]  # fmt: skip
    metrics = {"write.metadata.metrics.column.a": "none", "write.metadata.metrics.column.s.x": "full"}
    table.set_properties({NAME_MAPPING: json.dumps(mapping), **metrics})
    table.rename_column("a", "b")
    table.rename_column("s.x", "z")
    table.rename_column("s", "t")
    table.drop_column("b")
    properties = eyes.document()["properties"]
    assert json.loads(properties[NAME_MAPPING]) == [{"field-id": 1, "names": ["a", "b"]}, {
        "field-id": 2, "names": ["s", "t"], "fields": [{"field-id": 3, "names": ["x", "z"]}]}]  # fmt: skip
    assert {k: v for k, v in properties.items() if "metrics" in k} == {"write.metadata.metrics.column.t.z": "full"}


@pytest.mark.spec("I-018")
def test_a_rename_against_another_change_of_the_schema(make):
    table, eyes = make(pa.table({"a": pa.array([1], LONG), "b": ["x"]}))
    snapshot = table._handle.snapshot
    change = Change("iceberg", snapshot.location, snapshot, "w", "alter-columns", (RenameColumn(("a",), "c"),))
    bh.open(str(eyes.root)).append(pa.table({"a": pa.array([2], LONG), "b": ["y"]}))
    assert isinstance(snapshot.newest().commits.check(change, snapshot.newest().commits.winners(snapshot)), Rebase)
    other = bh.open(str(eyes.root))
    other.rename_column("a", "t")
    other.rename_column("b", "a")
    verdict = snapshot.newest().commits.check(change, snapshot.newest().commits.winners(snapshot))
    assert isinstance(verdict, Stop) and verdict.conflicts[0].kind == "schema-changed"


@pytest.mark.spec("I-081")
def test_names_that_differ_in_case(make):
    table, eyes = make(pa.table({"a": pa.array([1], LONG), "A": pa.array([2], LONG)}))
    assert rows_of(table) == [{"a": 1, "A": 2}] == eyes.rows().to_pylist()
    assert rows_of(table, columns=["A"], where="a = 1") == [{"A": 2}] and rows_of(table, where="A = 1") == []
    table.append(pa.table({"A": pa.array([4], LONG), "a": pa.array([3], LONG)}))
    assert rows_of(table, where="a = 3") == [{"a": 3, "A": 4}]


@pytest.mark.spark
@pytest.mark.spec("I-081")
def test_names_that_differ_in_case_on_spark(spark, make):
    _, eyes = make(pa.table({"a": pa.array([1, 3], LONG), "A": pa.array([2, 4], LONG)}))
    table = bh.open(str(eyes.root), spark=spark)
    assert [r[0] for r in table.scan(["A"], "a = 3").to_spark(spark).collect()] == [4]
    frame = table.to_spark(spark)
    assert frame.columns == ["a", "A"] and sorted(tuple(r) for r in frame.collect()) == [(1, 2), (3, 4)]
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        frame.select("a").collect()


# --- columns that identify rows

KEYED = Schema((
    Field("id", INT64, False), Field("v", STRING), Field("s", StructType((Field("k", STRING, False),)), False),
    Field("o", StructType((Field("k", STRING, False),))), Field("f", FLOAT, False), Field("d", DOUBLE, False),
    Field("l", ListType(Field("element", INT32, False)), False),
    Field("m", MapType(Field("key", STRING, False), Field("value", INT32, False)), False), Field("n", INT64),
))  # fmt: skip
ID, _, S, SK, _, OK, F, D, L, ELEMENT, M, KEY, VALUE, N = range(1, 15)


def keyed_rows(*values):
    return pa.table({
        "id": pa.array([k for k, _, _ in values], LONG), "v": [v for _, _, v in values],
        "s": [{"k": k} for _, k, _ in values], "f": pa.array([0.0] * len(values), pa.float32()),
        "d": [0.0] * len(values), "l": pa.array([[]] * len(values), pa.list_(INT)),
        "m": pa.array([[]] * len(values), pa.map_(pa.string(), INT))})  # fmt: skip


@pytest.fixture
def keyed(tmp_path, seen):
    """keyed(*ids) -> the table with these identifier fields, and eyes on it."""

    def make(*ids):
        root = tmp_path / "t"
        bh.create(str(root), KEYED, format="iceberg")
        eyes = seen(root)
        document = eyes.document()
        assert dict(by_path(document))["s.k"] == SK and dict(by_path(document))["n"] == N
        document["schemas"][0]["identifier-field-ids"] = list(ids)
        eyes.head().write_text(json.dumps(document))
        return bh.open(str(root)), eyes

    return make


def by_path(document):
    return [(c.name, c.id) for c in walk(document["schemas"][-1])]


@pytest.mark.spec("I-097")
def test_identifier_fields_are_kept(keyed):
    table, eyes = keyed(ID, SK)
    table.append(keyed_rows((1, "a", "x")))
    table.add_column("more", "int")
    table.widen_column("more", "bigint")
    table.append(keyed_rows((2, "a", "y")).append_column("new", pa.array(["z"])), merge_schema=True)
    schemas = eyes.document()["schemas"]
    assert len(schemas) == 4 and all(s["identifier-field-ids"] == [ID, SK] for s in schemas)
    assert table.schema.metadata["identifier-field-ids"] == [ID, SK]
    assert sorted(eyes.pyiceberg().schema().identifier_field_ids) == [ID, SK] and eyes.rows().num_rows == 2


@pytest.mark.spec("I-098")
@pytest.mark.parametrize("id", (F, D, N, ELEMENT, KEY, VALUE, OK, S, L, M, 99))
def test_columns_that_cannot_identify_rows(keyed, id):
    table, eyes = keyed(ID, id)
    before = copy.deepcopy(eyes.document())
    # Nothing of it concerns the rows.
    assert rows_of(table) == []
    for write in (lambda: table.append(keyed_rows((1, "a", "x"))), lambda: table.add_column("c", "int"),
                  lambda: table.upsert(keyed_rows((1, "a", "x")))):  # fmt: skip
        with pytest.raises(CorruptTableError, match=r"has the identifier field .*, which (cannot identify|does not)"):
            write()
    assert eyes.document() == before


@pytest.mark.spec("I-099")
def test_equal_identifiers_are_accepted(keyed):
    table, eyes = keyed(ID)
    table.append(keyed_rows((1, "a", "x"), (1, "a", "x")))
    table.append(keyed_rows((1, "b", "y")))
    assert [r["id"] for r in rows_of(table)] == [1, 1, 1] and eyes.rows().num_rows == 3


@pytest.mark.spec("I-100")
def test_an_upsert_goes_by_the_identifier_fields(keyed):
    table, eyes = keyed(ID, SK)
    table.append(keyed_rows((1, "a", "old"), (1, "b", "stays"), (2, "a", "stays too")))
    result = table.upsert(keyed_rows((1, "a", "new"), (3, "a", "added")))
    assert (result.rows_updated, result.rows_added) == (1, 1)
    found = sorted((r["id"], r["s"]["k"], r["v"]) for r in rows_of(table))
    assert found == [(1, "a", "new"), (1, "b", "stays"), (2, "a", "stays too"), (3, "a", "added")]
    # What is asked for goes before.
    table.upsert(keyed_rows((2, "z", "by id")), on="id")
    assert [(r["s"]["k"], r["v"]) for r in rows_of(table, where="id = 2")] == [("z", "by id")]
    assert eyes.rows().num_rows == 4


@pytest.mark.spec("I-100")
@pytest.mark.parametrize("format", ("delta", "iceberg", "lance"))
def test_an_upsert_without_keys(tmp_path, format):
    data = pa.table({"id": pa.array([1], LONG)})
    table = bh.create(str(tmp_path / "t"), data.schema, format=format)
    for on, words in ((None, "does not say which columns"), ([], "names no column")):
        with pytest.raises(InvalidArgumentError, match=words):
            table.upsert(data, on)


@pytest.mark.spec("I-101")
@pytest.mark.parametrize("id", (2147483448, 2147483540, 2147483646, 2147483647))
def test_reserved_field_ids(make, id):
    _, eyes = make(pa.table({"a": pa.array([1], LONG)}))
    document = eyes.document()
    inner = {"id": 2147483447, "name": "x", "type": "int", "required": False}
    document["schemas"][0]["fields"].append({"id": 5, "name": "s", "required": False, "type": {
        "type": "struct", "fields": [inner]}})  # fmt: skip
    eyes.head().write_text(json.dumps(document))
    assert rows_of(bh.open(str(eyes.root))) == [{"a": 1, "s": None}]
    inner["id"] = id
    eyes.head().write_text(json.dumps(document))
    with pytest.raises(CorruptTableError, match=rf"`s.x` has the field id {id}, above 2147483447"):
        bh.open(str(eyes.root))
