"""Partition specs and transforms: JSON, values, paths, refusals, and what pruning may skip."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.arrow.transforms import hash_array, transform
from boathouse.errors import BoathouseError, UnsupportedTypeError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.iceberg.manifests.columns import of_entries
from boathouse.iceberg.manifests.pruning import PartitionPruner
from boathouse.iceberg.manifests.records import Summary
from boathouse.iceberg.manifests.values import encode, physical_list, to_avro
from boathouse.iceberg.manifests.writer import summaries
from boathouse.iceberg.metadata.partitions import (
    accepts,
    bind_spec,
    human,
    parse_specs,
    parse_transform,
    partition_path,
    spec_fields_json,
)
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    DecimalType,
    Field,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    PartitionField,
    PartitionSpec,
    Schema,
    StructType,
    TimeType,
    Transform,
)  # fmt: skip

TRANSFORMS = ["identity", "bucket[16]", "truncate[20]", "year", "month", "day", "hour", "void"]
DEC = DecimalType(9, 2)


@pytest.mark.spec("I-316", "I-106")
def test_transform_strings_and_spec_json_round_trip():
    for text in [*TRANSFORMS, "zorder[1,2]", "bucket[0]"]:
        assert str(parse_transform(text)) == text
    assert parse_transform("zorder[1,2]").name == "unknown"
    schema = Schema((Field("ts", TIMESTAMP, id=4), Field("id", INT64, id=1)))
    fields = [
        {"source-id": 4, "field-id": 1000, "name": "ts_day", "transform": "day"},
        {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"},
    ]
    specs = parse_specs([{"spec-id": 0, "fields": fields}], [schema], 0)
    assert spec_fields_json(specs.current) == fields


@pytest.mark.spec("I-314")
def test_source_ids_of_an_unknown_transform_are_read_and_refused_for_writes(make, seen):
    data = pa.table({"a": [1, 2], "b": [3, 4]})
    _, eyes = make(data)
    document = eyes.document()
    field = {"source-ids": [1, 2], "field-id": 1000, "name": "ab", "transform": "zorder"}
    document["partition-specs"].append({"spec-id": 1, "fields": [field]})
    document["default-spec-id"] = 1
    import json

    eyes.head().write_text(json.dumps(document))
    table = bh.open(str(eyes.root))
    assert table.scan(where="a > 1").to_arrow().to_pydict() == {"a": [2], "b": [4]}
    with pytest.raises(BoathouseError, match="zorder"):
        table.append(data)


@pytest.mark.spec("I-117", "I-125", "I-109")
def test_transforms_refuse_sources_they_do_not_take(tmp_path):
    takes = {
        "bucket": {INT32, INT64, DEC, DATE, TimeType(), TIMESTAMP, TIMESTAMP_NTZ, STRING, UUID, FixedType(3), BINARY},
        "truncate": {INT32, INT64, DEC, STRING, BINARY},
        "year": {DATE, TIMESTAMP, TIMESTAMP_NTZ},
        "hour": {TIMESTAMP, TIMESTAMP_NTZ},
    }
    every = [BOOLEAN, INT32, INT64, FLOAT, DOUBLE, DEC, DATE, TimeType(), TIMESTAMP, TIMESTAMP_NTZ, STRING, UUID,
             FixedType(3), BINARY]  # fmt: skip
    for name, known in takes.items():
        assert {t for t in every if accepts(Transform(name, 4), t)} == known
    for shapes in (GeometryType(), GeographyType("OGC:CRS84", "karney")):
        assert not [name for name in (*takes, "identity") if accepts(Transform(name, 4), shapes)]
    nested = Schema((
        Field("st", StructType((Field("x", INT64, id=2),)), id=1),
        Field("li", ListType(Field("element", INT64, id=4)), id=3),
        Field("ma", MapType(Field("key", STRING, False, id=6), Field("value", INT64, id=7)), id=5),
    ))  # fmt: skip
    for path in (("st",), ("li",), ("ma",), ("li", "element"), ("ma", "value")):
        with pytest.raises(UnsupportedTypeError):
            bind_spec([PartitionField("p", path, Transform("identity"), 0, INT64)], nested, 0, 999)
    with pytest.raises(BoathouseError, match="bucket"):
        bh.create(
            str(tmp_path / "t"), pa.schema([("d", pa.float64())]), format="iceberg", partition_by=["bucket(4, d)"]
        )
    assert not (tmp_path / "t").exists()


@pytest.mark.spec("I-108", "I-111", "I-112", "I-107", "I-169")
def test_nested_sources_and_field_ids(make):
    data = pa.table({"st": pa.array([{"x": 1}, {"x": 2}, None], pa.struct([("x", pa.int64())])), "v": [1, 2, 3]})
    table, eyes = make(data, partition_by=["st.x", "bucket(4, v)"])
    spec = eyes.document()["partition-specs"][0]
    assert [f["field-id"] for f in spec["fields"]] == [1000, 1001]
    assert eyes.document()["last-partition-id"] == 1001
    assert table.scan(where="st.x = 2").to_arrow().num_rows == 1
    assert eyes.rows().num_rows == 3
    _, schema = eyes.avro(eyes.manifests()[0]["manifest_path"])
    data_file = next(f for f in schema["avro.schema"]["fields"] if f["name"] == "data_file")["type"]
    partition = next(f for f in data_file["fields"] if f["field-id"] == 102)["type"]
    assert [f["field-id"] for f in partition["fields"]] == [1000, 1001]
    _, plain = make(data, name="plain")
    assert plain.document()["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert plain.live()[0]["partition"] == {}


@pytest.mark.spec("I-107")
def test_a_mixed_batch_is_split(make):
    data = pa.table({"p": [1, 2, 1, None, 2], "v": [0, 1, 2, 3, 4]})
    _, eyes = make(data, partition_by=["p"])
    import pyarrow.parquet as pq

    for file in eyes.live():
        held = pq.read_table(file["file_path"].removeprefix("file://")).column("p").to_pylist()
        assert set(held) == set(file["partition"].values()) and len(held) == file["record_count"]
    assert len(eyes.live()) == 3


def values_of(name, type, values):
    from boathouse.arrow.schema import to_arrow_type

    t = parse_transform(name)
    return transform(pa.array(values, to_arrow_type(type)), t, type).to_pylist()


@pytest.mark.spec("I-115", "I-118", "I-119", "I-120", "I-121", "I-122", "I-123", "I-126", "I-127")
def test_transform_values():
    assert values_of("truncate[10]", INT32, [1, -1, 0, -10, 9, None]) == [0, -10, 0, -10, 0, None]
    assert values_of("truncate[10]", INT64, [1, -1]) == [0, -10]
    assert values_of("truncate[50]", DEC, [Decimal("10.65"), Decimal("-10.65")]) == [
        Decimal("10.50"),
        Decimal("-11.00"),
    ]
    assert values_of("truncate[3]", STRING, ["iceberg", "💥💥💥💥", "e\u0301e\u0301", "x", ""]) == [
        "ice", "💥💥💥", "e\u0301e", "x", ""]  # fmt: skip
    assert values_of("truncate[3]", BINARY, [b"\x01\x02\x03\x04", b"\x01"]) == [b"\x01\x02\x03", b"\x01"]
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    for source in (TIMESTAMP_NTZ,):
        assert values_of("year", source, [before, dt.datetime(1971, 2, 1), None]) == [-1, 1, None]
        assert values_of("month", source, [before, dt.datetime(1971, 2, 1)]) == [-1, 13]
        assert values_of("hour", source, [before, dt.datetime(1970, 1, 2, 3)]) == [-1, 27]
        assert values_of("day", source, [before]) == [dt.date(1969, 12, 31)]
    assert values_of("year", DATE, [dt.date(1969, 12, 31)]) == [-1]
    assert values_of("void", STRING, ["a", None]) == [None, None]
    for name in TRANSFORMS:
        source = TIMESTAMP if name in ("year", "month", "day", "hour") else INT64
        assert values_of(name, source, [None]) == [None]


@pytest.mark.spec("I-116", "I-301", "I-302", "I-303", "I-304", "I-305", "I-307", "I-308", "I-309")
def test_hash_vectors():
    import uuid

    from boathouse.arrow.schema import to_arrow_type

    def hashed(value, type):
        return int(hash_array(pa.array([value], to_arrow_type(type)), type)[0])

    stamp = dt.datetime(2017, 11, 16, 22, 31, 8)
    pacific = dt.timezone(dt.timedelta(hours=-8))
    vectors = [
        (34, INT32, 2017239379), (34, INT64, 2017239379), (Decimal("14.20"), DEC, -500754589),
        (Decimal("14.20"), DecimalType(38, 2), -500754589), (dt.date(2017, 11, 16), DATE, -653330422),
        (dt.time(22, 31, 8), TimeType(), -662762989), (stamp, TIMESTAMP_NTZ, -2047944441),
        (stamp.replace(microsecond=1), TIMESTAMP_NTZ, -1207196810),
        (dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=pacific), TIMESTAMP, -2047944441),
        ("iceberg", STRING, 1210000089), ("", STRING, 0), (b"\x00\x01\x02\x03", BINARY, -188683207),
        (b"\x00\x01\x02\x03", FixedType(4), -188683207),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, UUID, 1488055340),
    ]  # fmt: skip
    for value, type, expected in vectors:
        assert hashed(value, type) == expected, (value, type)
    import mmh3
    from pyiceberg.utils import __name__ as _  # noqa: F401

    assert hashed("zażółć 💥", STRING) == mmh3.hash("zażółć 💥".encode())
    assert values_of("bucket[16]", INT64, [34, 0]) == [3, 12]
    assert values_of("bucket[16]", STRING, ["iceberg", ""]) == [9, 0]


@pytest.mark.spec("I-106")
def test_partition_paths_are_readable_and_encoded():
    def field(name, type, how="identity"):
        t = parse_transform(how)
        return PartitionField(name, (name,), t, 1000, t.result(type), 1)

    cases = [
        (field("a b", STRING), "x/y z", "a+b=x%2Fy+z"), (field("p", STRING), None, "p=null"),
        (field("p", DATE), dt.date(2017, 12, 1), "p=2017-12-01"),
        (field("p", TIMESTAMP_NTZ, "hour"), 420051, "p=2017-12-02-03"),
        (field("p", TIMESTAMP_NTZ, "month"), -1, "p=1969-12"), (field("p", TIMESTAMP_NTZ, "year"), 47, "p=2017"),
        (field("p", BINARY), b"\x00\xff", "p=AP8%3D"), (field("p", DEC), Decimal("14.20"), "p=14.20"),
        (field("p", BOOLEAN), True, "p=true"),
    ]  # fmt: skip
    for f, value, expected in cases:
        assert partition_path(PartitionSpec(0, (f,)), {1000: value}) == expected
    assert human(field("u", UUID), bytes(16)) == "00000000-0000-0000-0000-000000000000"


SOURCES = {
    INT64: st.integers(-200, 200),
    DEC: st.integers(-20000, 20000).map(lambda v: Decimal(v) / 100),
    STRING: st.text("abc\u00e9\U0001f4a5", max_size=5),
    DATE: st.integers(-800, 800).map(lambda d: dt.date(1970, 1, 1) + dt.timedelta(d)),
    TIMESTAMP_NTZ: st.integers(-(10**14), 10**14).map(lambda m: dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=m)),
    DOUBLE: st.sampled_from([-0.0, 0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]),
}  # fmt: skip


def literal(value):
    match value:
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return f"'{value}'"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
    return str(value)


@st.composite
def cases(draw):
    type = draw(st.sampled_from(list(SOURCES)))
    options = [
        t
        for t in ("identity", "bucket[5]", "truncate[3]", "year", "month", "day", "hour", "void")
        if accepts(parse_transform(t), type)
    ]
    rows = draw(st.lists(st.none() | SOURCES[type], min_size=1, max_size=12))
    value = literal(draw(SOURCES[type] | st.sampled_from([r for r in rows if r is not None] or [draw(SOURCES[type])])))
    templates = ["c = {}", "c <> {}", "c < {}", "c <= {}", "c > {}", "c >= {}", "c IN ({}, NULL)", "c IS NULL",
                 "c IS NOT NULL", "NOT (c = {})", "c <=> {}", "c = {} OR c IS NULL", "c NOT IN ({})"]  # fmt: skip
    if type == STRING:
        templates += ["c LIKE 'a%'", "NOT (c LIKE 'ab%')", "c LIKE '%'"]
    return type, draw(st.sampled_from(options)), rows, draw(st.sampled_from(templates)).format(value)


@settings(max_examples=250)
@given(cases())
@pytest.mark.spec("I-129", "I-203", "I-128")
def test_partition_pruning_never_loses_a_row(case):
    from boathouse.arrow.schema import to_arrow_type
    from boathouse.compute.evaluate import mask

    type, name, rows, text = case
    schema = Schema((Field("c", type, id=1),))
    how = parse_transform(name)
    field = PartitionField("p", ("c",), how, 1000, how.result(type), 1)
    spec = PartitionSpec(0, (field,))
    where = bind_predicate(parse(text), schema)
    array = pa.array(rows, to_arrow_type(type))
    keep = mask(where, pa.record_batch([array], ["c"])).to_pylist()
    parts = physical_list(transform(array, how, type), field.type)
    pruner = PartitionPruner(where, spec, schema)
    if not pruner.useful:
        return
    files = pruner.files([{1000: p} for p in parts], [1] * len(rows))
    for row, part, matches, may in zip(rows, parts, keep, files):
        assert may or not matches, (row, part, text)
    entries = [{"data_file": {"partition": {"f1000": to_avro(p, field.type)}}} for p in parts]
    found = [
        Summary(s["contains_null"], s["contains_nan"], s["lower_bound"], s["upper_bound"])
        for s in summaries(of_entries(entries, spec), spec)
    ]
    assert pruner.manifests([found]) == [True] or not any(keep)


@pytest.mark.spec("I-195", "I-194", "I-193", "I-196")
def test_partition_summaries():
    def of(type, values, how="identity"):
        t = parse_transform(how)
        field = PartitionField("p", ("c",), t, 1000, t.result(type), 1)
        entries = [{"data_file": {"partition": {"f1000": v}}} for v in values]
        spec = PartitionSpec(0, (field,))
        return summaries(of_entries(entries, spec), spec)[0]

    zero = of(DOUBLE, [0.0, -0.0])
    assert (zero["lower_bound"], zero["upper_bound"]) == (encode(-0.0, DOUBLE), encode(0.0, DOUBLE))
    assert of(DOUBLE, [math.nan, None]) == {
        "contains_null": True, "contains_nan": True, "lower_bound": None, "upper_bound": None}  # fmt: skip
    assert of(STRING, ["b", "a"])["lower_bound"] == b"a"
    assert of(INT64, [7, 3], "bucket[16]")["upper_bound"] == b"\x07\x00\x00\x00"
    assert of(TIMESTAMP, [19000], "day")["lower_bound"] == (19000).to_bytes(4, "little")


@pytest.mark.spec("I-310")
def test_hashes_that_are_defined_though_nothing_buckets_by_them():
    from boathouse.arrow.schema import to_arrow_type

    def hashed(value, type):
        return int(hash_array(pa.array([value], to_arrow_type(type)), type)[0])

    assert hashed(True, BOOLEAN) == 1392991556
    for type in (FLOAT, DOUBLE):
        assert hashed(1.0, type) == -142385009
        assert hashed(0.0, type) == hashed(-0.0, type) == 1669671676
    import struct

    nans = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000000, 0xFFF8000000000001)]
    assert hashed(nans[0], DOUBLE) == hashed(nans[1], DOUBLE)
