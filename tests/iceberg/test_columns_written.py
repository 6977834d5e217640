"""Columns added with defaults, places and comments, moved, widened, made required; identifiers; and the types of format
version 3, written. pyiceberg sees the same schema."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import BoathouseError, InvalidArgumentError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.types import INT32 as INT
from boathouse.types import NULL, UUID, VARIANT, Field, FixedType, GeometryType, Schema, TimestampType, TimeType
from boathouse.variant import Variant

NANOS = 1_500_000_000_123_456_789


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


def create(root, columns="id bigint, s struct<a: bigint>, d date", version="3", **properties):
    properties = {"format-version": version, **properties}
    return bh.create(str(root), columns, format="iceberg", properties=properties)


def head(root):
    return max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))


def document(root):
    return json.loads(head(root).read_bytes())


def current(root):
    found = document(root)
    return next(s for s in found["schemas"] if s["schema-id"] == found["current-schema-id"])


def field(root, name):
    return next(f for f in current(root)["fields"] if f["name"] == name)


def theirs(root):
    return StaticTable.from_metadata(f"file://{head(root)}")


def ids(*values):
    return pa.table({"id": list(values)})


DEFAULTS = {
    "int": (5, 5), "bigint": ("-3", -3), "double": (1.5, 1.5), "float": ("0.5", 0.5), "boolean": (True, True),
    "string": ("'x'", "x"), "date": ("DATE'2020-02-29'", dt.date(2020, 2, 29)),
    "decimal(5,2)": ("1.5", Decimal("1.50")), "binary": ("X'00FF'", b"\x00\xff"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2020-01-01 00:00:01'", dt.datetime(2020, 1, 1, 0, 0, 1)),
    "timestamp": ("TIMESTAMP'2020-01-01 00:00:01Z'", dt.datetime(2020, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
}  # fmt: skip


@pytest.mark.spec("I-057", "I-058", "I-059")
@pytest.mark.feature("column defaults", format="iceberg")
@pytest.mark.parametrize("type", DEFAULTS)
def test_a_default_is_what_rows_without_the_column_have(root, type):
    given, value = DEFAULTS[type]
    t = create(root, "id bigint")
    t.append(ids(1))
    t.add_column("c", type, default=given)
    added = field(root, "c")
    assert added["initial-default"] == added["write-default"] is not None
    t.append(ids(2))
    [new] = [p for p in t.files().column("path").to_pylist() if "c" in pq.read_schema(p.removeprefix("file://")).names]
    assert pq.read_table(new.removeprefix("file://")).column("c").to_pylist() == [value]
    t.set_default("c", None)
    t.append(ids(3))
    expected = {1: value, 2: value, 3: None}
    for found in (bh.open(str(root)).to_arrow(), theirs(root).scan().to_arrow()):
        assert dict(zip(found.column("id").to_pylist(), found.column("c").to_pylist())) == expected
    assert field(root, "c")["initial-default"] == added["initial-default"] and "write-default" not in field(root, "c")


@pytest.mark.spec("I-060", "I-062", "I-063", "I-064")
def test_rules_of_defaults(root):
    t = create(root, "id bigint, c int")
    t.append(ids(1))
    # Set when the column is there already: later rows alone.
    t.set_default("c", 7)
    assert "initial-default" not in field(root, "c") and field(root, "c")["write-default"] == 7
    t.append(ids(2))
    t.merge(ids(3), "source.id = target.id").when_not_matched_insert(values={"id": "source.id"}).execute()
    assert dict(bh.open(str(root)).to_arrow().sort_by("id").to_pydict()) == {"id": [1, 2, 3], "c": [None, 7, 7]}
    before = document(root)
    with pytest.raises(InvalidArgumentError, match="required"):
        t.add_column("r", "int", nullable=False)
    with pytest.raises(BoathouseError):
        t.add_column("r", "int", default="'words'")
    with pytest.raises(BoathouseError):
        t.add_column("r", "int", default="id")
    with pytest.raises(UnsupportedFeatureError, match="not offered"):
        t.add_column("r", "array<int>", default="array(1)")
    with pytest.raises(BoathouseError):
        t.set_default("id", "9223372036854775808")
    assert document(root) == before
    t.add_column("r", "int", nullable=False, default=1)
    assert field(root, "r")["required"]
    t.append(ids(4))
    t.set_default("r", None)
    with pytest.raises(BoathouseError):
        t.append(ids(5))
    assert sorted(zip(*bh.open(str(root)).scan(["id", "r"]).to_arrow().to_pydict().values())) == [
        (1, 1), (2, 1), (3, 1), (4, 1)
    ]  # fmt: skip


def test_a_default_that_sql_cannot_write_is_not_left_out(root):
    t = bh.create(str(root), Schema((Field("id", INT), Field("c", TimeType("us")))), format="iceberg", profile="modern")
    found = document(root)
    next(f for f in found["schemas"][0]["fields"] if f["name"] == "c")["write-default"] = "22:31:08"
    (root / "metadata" / "v2.metadata.json").write_text(json.dumps(found))
    t = bh.open(str(root))
    given = pa.table({"id": pa.array([1], pa.int32()), "c": pa.array([5], pa.time64("us"))})
    with pytest.raises(BoathouseError, match="the write default of c"):
        t.append(given.select(["id"]))
    t.append(given)
    assert bh.open(str(root)).count() == 1


def test_defaults_are_refused_below_version_3(root):
    t = create(root, "id bigint, c int", version="2")
    for act in (lambda: t.add_column("r", "int", default=1), lambda: t.set_default("c", 1)):
        with pytest.raises(UnsupportedFeatureError, match="format version 2") as caught:
            act()
        assert "format-version" in caught.value.advice


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_places_comments_and_order(root, version):
    t = create(root, version=version)
    t.append(pa.table({"id": [1], "s": [{"a": 2}], "d": [dt.date(2020, 1, 1)]}))
    t.add_column("f", "int", first=True, comment="the first")
    t.add_column("s.b", "string", after="a")
    t.add_column("s.z", "string", first=True)
    t.add_column("g", "int", after="id")
    assert [f["name"] for f in current(root)["fields"]] == ["f", "id", "g", "s", "d"]
    assert field(root, "f")["doc"] == "the first"
    assert [f["name"] for f in field(root, "s")["type"]["fields"]] == ["z", "a", "b"]
    t.move_column("d", after="f")
    t.move_column("s.b")
    t.move_column("id")
    t.set_comment("of a", "s.a")
    t.set_comment("a table")
    assert [f["name"] for f in current(root)["fields"]] == ["id", "f", "d", "g", "s"]
    assert [(f["name"], f.get("doc")) for f in field(root, "s")["type"]["fields"]] == [
        ("b", None), ("z", None), ("a", "of a")
    ]  # fmt: skip
    assert document(root)["properties"]["comment"] == "a table"
    expected = {"id": 1, "f": None, "d": dt.date(2020, 1, 1), "g": None, "s": {"b": None, "z": None, "a": 2}}
    assert bh.open(str(root)).to_arrow().to_pylist() == [expected] == theirs(root).scan().to_arrow().to_pylist()
    t.set_comment(None)
    assert "comment" not in document(root)["properties"]
    with pytest.raises(BoathouseError):
        t.move_column("d", after="nowhere")


def test_fields_of_elements_are_added(root):
    t = create(root, "id bigint, l array<struct<a: bigint>>, m map<string, struct<a: bigint>>")
    t.append(
        pa.table(
            {
                "id": [1],
                "l": [[{"a": 1}]],
                "m": pa.array([[("k", {"a": 1})]], pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
            }
        )
    )
    t.add_column("l.element.b", "string")
    t.add_column("m.value.b", "string")
    [row] = bh.open(str(root)).to_arrow().to_pylist()
    assert row == {"id": 1, "l": [{"a": 1, "b": None}], "m": [("k", {"a": 1, "b": None})]}
    assert theirs(root).schema().find_field("m.value.b").field_id == document(root)["last-column-id"]


@pytest.mark.spec("I-080")
def test_nullability(root):
    t = create(root)
    t.append(
        pa.table(
            {"id": [1, 2], "s": [{"a": 1}, None], "d": [None, None]},
            pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())])), ("d", pa.date32())]),
        )
    )
    with pytest.raises(UnsupportedFeatureError, match="may be null") as caught:
        t.set_nullable("id", False)
    assert "unchecked" in caught.value.advice and not field(root, "id")["required"]
    t.set_nullable("id", False, unchecked=True)
    assert field(root, "id")["required"]
    with pytest.raises(BoathouseError):
        t.append(pa.table({"id": pa.array([None], pa.int64())}))
    t.set_nullable("id", True)
    t.append(pa.table({"id": pa.array([None], pa.int64())}))
    assert bh.open(str(root)).count() == 3


def test_identifiers(root):
    t = create(root, "id bigint not null, x double not null, n bigint, s struct<a: bigint not null> not null")
    t.append(pa.table({"id": [1, 2], "x": [0.5, 0.5], "n": [1, 2], "s": [{"a": 1}, {"a": 2}]}))
    for name, why in (("x", "double"), ("n", "null"), ("s", "struct")):
        with pytest.raises(InvalidArgumentError, match=why):
            t.set_identifiers([name])
    t.set_identifiers(["id", "s.a"])
    assert current(root)["identifier-field-ids"] == [f["id"] for f in current(root)["fields"] if f["name"] == "id"] + [
        field(root, "s")["type"]["fields"][0]["id"]
    ]
    assert theirs(root).schema().identifier_field_names() == {"id", "s.a"}
    with pytest.raises(InvalidArgumentError, match="identifies"):
        t.set_nullable("s", True)
    t.set_identifiers("id")
    t.upsert(pa.table({"id": [2, 3], "x": [9.0, 9.0], "n": [2, 3], "s": [{"a": 1}, {"a": 2}]}))
    assert sorted(bh.open(str(root)).scan(["id", "x"]).to_arrow().to_pydict()["x"]) == [0.5, 9.0, 9.0]
    t.set_identifiers([])
    assert "identifier-field-ids" not in current(root)


@pytest.mark.spec("I-072")
@pytest.mark.parametrize("type", [TimestampType(utc=False), TimestampType(utc=False, unit="ns")])
def test_dates_become_timestamps_in_version_3(root, type):
    days = [dt.date(2020, 1, 1), None, dt.date(1969, 12, 31)]
    t = create(root, "id bigint, d date", version="2")
    t.append(pa.table({"id": [1, 2, 3], "d": days}))
    with pytest.raises((UnsupportedFeatureError, UnsupportedTypeError), match="format version 2"):
        t.widen_column("d", type)
    t.set_properties({"format-version": "3"})
    with pytest.raises(UnsupportedFeatureError, match="does not promote"):
        t.widen_column("d", TimestampType(utc=True))
    t.add_column("e", "date", default="DATE'2021-01-01'")
    t.widen_column("d", type)
    t.widen_column("e", TimestampType(utc=False))
    assert field(root, "e")["initial-default"] == "2021-01-01T00:00:00"
    found = bh.open(str(root)).scan(where="d is not null").to_arrow().sort_by("id")
    assert found.schema.field("d").type == pa.timestamp(type.unit)
    assert found.column("d").cast(pa.date32()).to_pylist() == [days[0], days[2]]
    if type.unit == "us":
        kept = bh.open(str(root)).scan(["id"], where="d >= TIMESTAMP_NTZ'1970-01-01 00:00:00'").to_arrow()
        assert kept.column("id").to_pylist() == [1]
    partitioned = bh.create(f"{root}2", "d date", format="iceberg", partition_by=["day(d)"], profile="modern")
    with pytest.raises(UnsupportedFeatureError, match="partitions"):
        partitioned.widen_column("d", type)


def test_unknown_becomes_any_type(root):
    t = bh.create(str(root), Schema((Field("id", INT), Field("u", NULL))), format="iceberg", profile="modern")
    t.append(pa.table({"id": pa.array([1], pa.int32())}))
    [path] = t.files().column("path").to_pylist()
    assert pq.read_schema(path.removeprefix("file://")).names == ["id"] and field(root, "u")["type"] == "unknown"
    t.widen_column("u", "struct<a: bigint>")
    t.append(pa.table({"id": pa.array([2], pa.int32()), "u": [{"a": 5}]}))
    assert bh.open(str(root)).to_arrow().sort_by("id").to_pydict() == {"id": [1, 2], "u": [None, {"a": 5}]}
    assert len({f.field_id for f in theirs(root).schema().fields}) == 2


def variants(type, *values):
    made = [None if v is None else Variant.from_python(v) for v in values]
    stored = [None if m is None else {"metadata": m.metadata, "value": m.value} for m in made]
    return pa.array(stored, pa.struct([("metadata", pa.binary()), ("value", pa.binary())])), type


@pytest.mark.feature("format version 3", format="iceberg")
@pytest.mark.parametrize("shredded", ["false", "true"])
def test_types_of_version_3_are_written(root, shredded):
    schema = Schema((
        Field("i", INT), Field("v", VARIANT), Field("n", TimestampType(False, "ns")),
        Field("z", TimestampType(True, "ns")), Field("t", TimeType("us")), Field("g", UUID), Field("f", FixedType(3)),
    ))  # fmt: skip
    t = bh.create(
        str(root), schema, format="iceberg",
        properties={"format-version": "3", "write.parquet.shred-variants": shredded},
    )  # fmt: skip
    times = pa.array([NANOS, None, -1])
    values, _ = variants(None, {"a": 1, "b": "x"}, {"a": 2, "b": "y"}, None)
    rows = pa.table({
        "i": pa.array([1, 2, 3], pa.int32()), "v": values, "n": times.view(pa.timestamp("ns")),
        "z": times.view(pa.timestamp("ns", "UTC")), "t": pa.array([1, None, 5], pa.time64("us")),
        "g": pa.array([b"1" * 16, None, b"2" * 16], pa.binary(16)), "f": pa.array([b"abc", None, b"def"], pa.binary(3)),
    })  # fmt: skip
    t.append(rows)
    t.update({"i": "i + 10"}, "i = 2")
    found = bh.open(str(root)).to_arrow().sort_by("i")
    assert found.column("i").to_pylist() == [1, 3, 12]
    assert found.column("n").cast(pa.int64()).to_pylist() == [NANOS, -1, None]
    assert found.column("z").cast(pa.int64()).to_pylist() == [NANOS, -1, None]
    assert found.column("f").to_pylist() == [b"abc", b"def", None]
    asked = bh.open(str(root)).scan(["i"], where="variant_get(v, '$.a', 'int') = 2").to_arrow()
    assert asked.column("i").to_pylist() == [12]
    kept = bh.open(str(root)).scan(["i"], where="n is null").to_arrow()
    assert kept.column("i").to_pylist() == [12]
    files = [pq.ParquetFile(p.removeprefix("file://")).schema for p in t.files().column("path").to_pylist()]
    assert all("VARIANT" in str(s).upper() or "metadata" in str(s) for s in files)
    assert any("typed_value" in str(s) for s in files) == (shredded == "true")


def test_types_that_are_refused(root):
    for type, version in (
        (GeometryType(None), "3"), (VARIANT, "2"), (TimestampType(True, "ns"), "2"), (NULL, "1"), (VARIANT, "1"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedTypeError, match=f"`c`.*format version {version}") as caught:
            bh.create(str(root), Schema((Field("c", type),)), format="iceberg", properties={"format-version": version})
        assert ("format-version 3" in caught.value.advice) == (version != "3")
