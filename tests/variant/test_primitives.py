"""The 21 primitive types: exact bytes, limits, Python, JSON; foreign readers agree (checklist V-044 to V-055)."""

from __future__ import annotations

import json
import math
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, InvalidArgumentError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant, VariantBuilder, build_metadata
from boathouse.variant.primitives import KINDS
from makers import variants as made

EMPTY = b"\x11\x00\x00"


def built(append) -> Variant:
    builder = VariantBuilder()
    append(builder)
    return builder.finish()


def raw(id: int, content: bytes) -> Variant:
    return Variant(EMPTY, bytes([id << 2]) + content)


def refused(value: Variant, match: str) -> None:
    inside = Variant(EMPTY, b"\x03\x01\x00" + bytes([len(value.buffer)]) + value.buffer)
    for whole in (value, inside):
        for reading in (whole.to_python, whole.to_json, lambda w=whole: hash(w)):
            with pytest.raises(MalformedVariant, match=match):
                reading()
        assert [f for f in whole.validate() if f.kind == "error"]
    with pytest.raises(MalformedVariant, match=match):
        value.scalar  # noqa: B018
    sibling = Variant(EMPTY, b"\x03\x02\x00\x02" + bytes([2 + len(value.buffer)]) + b"\x0c\x07" + value.buffer)
    assert sibling[0].scalar == 7


@pytest.mark.spec("V-044")
@pytest.mark.parametrize(
    ("obj", "encoded", "type", "text"),
    [(None, b"\x00", "null", "null"), (True, b"\x04", "boolean", "true"), (False, b"\x08", "boolean", "false")],
)
def test_null_and_booleans_are_a_header_alone(obj, encoded, type, text):
    value = Variant.from_python(obj)
    assert (value.value, value.type, value.scalar, value.to_python(), value.to_json()) == (
        encoded,
        type,
        obj,
        obj,
        text,
    )
    assert value.to_python() is obj


@pytest.mark.spec("V-045")
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_at_their_limits_keep_their_width(bits):
    id = {8: 3, 16: 4, 32: 5, 64: 6}[bits]
    for number in (-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1):
        value = built(lambda b, n=number: getattr(b, f"append_int{bits}")(n))
        assert value.value == bytes([id << 2]) + number.to_bytes(bits // 8, "little", signed=True)
        assert (value.type, value.scalar, value.to_python(), value.to_json()) == (
            f"int{bits}",
            number,
            number,
            str(number),
        )
        copy = built(lambda b, v=value: b.append_variant(v))
        assert copy.value == value.value
        nested = Variant.from_python([{"a": value}])
        assert nested[0]["a"].value == value.value
    for number in (-(1 << bits - 1) - 1, 1 << bits - 1):
        with pytest.raises(InvalidArgumentError):
            built(lambda b, n=number: getattr(b, f"append_int{bits}")(n))


@pytest.mark.parametrize(
    ("number", "type"),
    [
        (-128, "int8"), (127, "int8"), (128, "int16"), (-129, "int16"), (32_767, "int16"), (32_768, "int32"),
        (2**31, "int64"), (-(2**31), "int32"), (2**63 - 1, "int64"), (-(2**63), "int64"), (2**63, "decimal16"),
        (10**38 - 1, "decimal16"),
    ],
)  # fmt: skip
def test_python_integers_are_as_narrow_as_they_fit(number, type):
    value = Variant.from_python(number)
    assert value.type == type
    assert value.to_python() == number
    assert Variant.from_json(str(number)).value == value.value


SPECIAL = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1]


@pytest.mark.spec("V-046")
@pytest.mark.parametrize("number", SPECIAL)
def test_doubles_keep_their_bytes(number):
    value = Variant.from_python(number)
    assert value.value == b"\x1c" + struct.pack("<d", number)
    assert struct.pack("<d", value.to_python()) == struct.pack("<d", number)
    assert built(lambda b: b.append_variant(value)).value == value.value
    if math.isfinite(number):
        assert struct.pack("<d", float(value.to_json())) == struct.pack("<d", number)


@pytest.mark.spec("V-046")
@given(st.floats(width=32))
@settings(max_examples=100)
def test_floats_keep_their_bytes_and_read_back_from_json(number):
    value = Variant.from_python(np.float32(number))
    assert value.type == "float"
    assert value.value == b"\x38" + struct.pack("<f", number)
    if math.isfinite(number):
        assert value.to_python() == number
        assert np.float32(value.to_json()) == np.float32(number)
        assert len(value.to_json()) <= len(repr(number))


@pytest.mark.spec("V-046")
def test_payloads_of_nan_survive_a_copy():
    signalling = raw(14, b"\x01\x00\x80\x7f")
    assert math.isnan(signalling.to_python())
    assert built(lambda b: b.append_variant(signalling)).value == signalling.value


@pytest.mark.spec("V-046")
@pytest.mark.parametrize(("number", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
def test_json_of_what_json_has_not(number, name):
    for value in (Variant.from_python(number), Variant.from_python(np.float32(number))):
        with pytest.raises(EvaluationError, match=name):
            value.to_json()
        assert value.to_json(special="string") == f'"{name}"'
        assert value.to_json(special="null") == "null"
    with pytest.raises(InvalidArgumentError, match="special"):
        Variant.from_python(number).to_json(special="nan")


@pytest.mark.spec("V-047")
@pytest.mark.parametrize(
    ("type", "id", "width", "digits"), [("decimal4", 8, 4, 9), ("decimal8", 9, 8, 18), ("decimal16", 10, 16, 38)]
)
@pytest.mark.parametrize("scale", [0, 1, 9, 18, 37, 38])
def test_decimals(type, id, width, digits, scale):
    limit = 10**digits - 1
    for unscaled in (0, 1, -1, 110, limit, -limit):
        value = built(lambda b, u=unscaled: getattr(b, f"append_{type}")(u, scale))
        assert value.value == bytes([id << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)
        assert (value.type, value.scalar) == (type, (unscaled, scale))
        assert value.to_python().as_tuple() == Decimal(f"{unscaled}E-{scale}").as_tuple()
        assert Decimal(value.to_json()) == Decimal(f"{unscaled}E-{scale}")
        assert "E" not in value.to_json()
        odd = [f.message for f in value.validate()]
        assert odd == ([f"scale {scale} in a {type}"] if scale > digits else [])


@pytest.mark.spec("V-048")
def test_decimals_beyond_their_limits():
    for id, width in ((8, 4), (9, 8), (10, 16)):
        for scale in (39, 100, 255):
            refused(raw(id, bytes([scale]) + bytes(width)), f"scale {scale}")
    for id, width, unscaled in (
        (8, 4, 2_000_000_000),
        (8, 4, -(10**9)),
        (9, 8, 10**18),
        (10, 16, 10**38),
        (10, 16, -(2**127)),
    ):
        refused(raw(id, b"\x02" + unscaled.to_bytes(width, "little", signed=True)), "too many digits")
        with pytest.raises(InvalidArgumentError):
            built(lambda b, u=unscaled, w=width: getattr(b, f"append_decimal{w}")(u, 2))
    with pytest.raises(InvalidArgumentError, match="scale 39"):
        built(lambda b: b.append_decimal16(1, 39))
    with pytest.raises(InvalidArgumentError):
        built(lambda b: b.append_decimal16(1, -1))


@pytest.mark.spec("V-049")
@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("9" * 9, "decimal4"), ("9" * 10, "decimal8"), ("9" * 18, "decimal8"), ("9" * 19, "decimal16"),
        ("9" * 38, "decimal16"),
        ("0", "decimal4"), ("0.000000001", "decimal4"), ("1e-10", "decimal8"),
        ("1e-18", "decimal8"), ("1e-19", "decimal16"),
        ("1e-38", "decimal16"), ("-1.10", "decimal4"), ("1e8", "decimal4"), ("1e9", "decimal8"), ("1e37", "decimal16"),
    ],
)  # fmt: skip
def test_the_width_of_a_decimal_covers_digits_and_scale(text, type):
    value = Variant.from_python(Decimal(text))
    assert value.type == type
    assert value.to_python() == Decimal(text)
    assert value.validate() == ()


@pytest.mark.spec("V-049")
@pytest.mark.parametrize("text", ["9" * 39, "1e38", "1e-39", "NaN", "sNaN", "Infinity", "1e99999", "0." + "1" * 39])
def test_decimals_that_are_refused(text):
    with pytest.raises(InvalidArgumentError):
        Variant.from_python(Decimal(text))


@pytest.mark.spec("V-050")
@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"), (-1, "1969-12-31"), (20_194, "2025-04-16"), (-719_162, "0001-01-01"),
        (2_932_896, "9999-12-31"),
        (-719_163, "0000-12-31"), (-719_528, "0000-01-01"), (-719_529, "-0001-12-31"), (2_932_897, "+10000-01-01"),
        (11_016, "2000-02-29"), (-25_509, "1900-02-28"), (2**31 - 1, "+5881580-07-11"), (-(2**31), "-5877641-06-23"),
    ],
)  # fmt: skip
def test_dates(days, text):
    value = built(lambda b: b.append_date(days))
    assert value.value == b"\x2c" + days.to_bytes(4, "little", signed=True)
    assert value.scalar == days
    assert value.to_json() == f'"{text}"'
    if -719_162 <= days <= 2_932_896:
        assert value.to_python() == date.fromisoformat(text)
        assert Variant.from_python(date.fromisoformat(text)).value == value.value
    else:
        with pytest.raises(EvaluationError, match="years 1 to 9999"):
            value.to_python()


@given(st.dates())
def test_date_texts_are_those_of_python(day):
    assert Variant.from_python(day).to_json() == f'"{day.isoformat()}"'


TIMES = [
    (0, "1970-01-01T00:00:00.000000"),
    (-1, "1969-12-31T23:59:59.999999"),
    (-400_000_000_000_000, "1957-04-29T08:53:20.000000"),
    (1_744_821_296_780_000, "2025-04-16T16:34:56.780000"),
]


@pytest.mark.spec("V-050")
@pytest.mark.parametrize(("micros", "text"), TIMES)
def test_timestamps(micros, text):
    instant = built(lambda b: b.append_timestamp(micros))
    wall = built(lambda b: b.append_timestamp_ntz(micros))
    assert instant.value == b"\x30" + micros.to_bytes(8, "little", signed=True)
    assert wall.value == b"\x34" + micros.to_bytes(8, "little", signed=True)
    assert (instant.to_json(), wall.to_json()) == (f'"{text}Z"', f'"{text}"')
    assert instant.to_python() == datetime.fromisoformat(text + "+00:00")
    assert instant.to_python().tzinfo is UTC
    assert wall.to_python() == datetime.fromisoformat(text)
    assert wall.to_python().tzinfo is None
    assert Variant.from_python(instant.to_python()).value == instant.value
    assert Variant.from_python(wall.to_python()).value == wall.value


@pytest.mark.spec("V-050")
@pytest.mark.parametrize("micros", [2**63 - 1, -(2**63), 253_402_300_800_000_000, -62_135_596_800_000_001])
def test_timestamps_beyond_pythons_years(micros):
    for append in ("append_timestamp", "append_timestamp_ntz"):
        value = built(lambda b, a=append: getattr(b, a)(micros))
        with pytest.raises(EvaluationError, match="years 1 to 9999"):
            value.to_python()
        assert value.scalar == micros
        assert value.to_json()[1] in "+-0"
        assert built(lambda b, v=value: b.append_variant(v)).value == value.value


@pytest.mark.spec("V-050")
def test_arrow_holds_what_python_cannot():
    columns = pytest.importorskip("boathouse.variant.columns.extract")
    days, micros = [-(2**31), 2**31 - 1, -719_163], [-(2**63), 2**63 - 1, 253_402_300_800_000_000]
    dates = made.to_column([built(lambda b, d=d: b.append_date(d)) for d in days])
    assert columns.extract(dates, "$", "date").cast(pa.int32()).to_pylist() == days
    stamps = made.to_column([built(lambda b, m=m: b.append_timestamp(m)) for m in micros])
    assert columns.extract(stamps, "$", "timestamp").cast(pa.int64()).to_pylist() == micros


@pytest.mark.spec("V-051")
@pytest.mark.parametrize("nanos", [0, -1, 1_730_982_834_123_456_789, 2**63 - 1, -(2**63) + 1])
def test_nanoseconds(nanos):
    instant = built(lambda b: b.append_timestamp_nanos(nanos))
    wall = built(lambda b: b.append_timestamp_ntz_nanos(nanos))
    assert (instant.value[0] >> 2, wall.value[0] >> 2) == (18, 19)
    expected = np.datetime64(nanos, "ns")
    for value in (instant, wall):
        assert value.scalar == nanos
        assert value.to_python() == expected
        assert value.to_python().dtype == "datetime64[ns]"
    assert wall.to_json() == f'"{expected}"'
    assert instant.to_json() == f'"{expected}Z"'
    assert Variant.from_python(expected).value == wall.value


@pytest.mark.spec("V-051")
def test_the_one_nanosecond_that_is_nat_in_numpy_is_refused_not_lost():
    value = built(lambda b: b.append_timestamp_ntz_nanos(-(2**63)))
    with pytest.raises(EvaluationError, match="NaT"):
        value.to_python()
    assert value.scalar == -(2**63)
    assert value.to_json() == '"1677-09-21T00:12:43.145224192"'


@pytest.mark.spec("V-051")
@pytest.mark.parametrize(
    ("micros", "expected"),
    [(0, time(0)), (86_399_999_999, time(23, 59, 59, 999_999)), (45_234_123_456, time(12, 33, 54, 123_456))],
)
def test_times(micros, expected):
    value = built(lambda b: b.append_time(micros))
    assert value.value == b"\x44" + micros.to_bytes(8, "little")
    assert (value.scalar, value.to_python()) == (micros, expected)
    assert value.to_json() == f'"{expected.isoformat("microseconds")}"'
    assert Variant.from_python(expected).value == value.value


@pytest.mark.spec("V-051")
@pytest.mark.parametrize("micros", [86_400_000_000, -1, 2**63 - 1, -(2**63)])
def test_bad_times(micros):
    refused(raw(17, micros.to_bytes(8, "little", signed=True)), "not a time of day")
    with pytest.raises(InvalidArgumentError, match="not a time of day"):
        built(lambda b: b.append_time(micros))


@pytest.mark.spec("V-052")
@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff\xfe", b"x" * 64, bytes(70_000)])
def test_binary(content):
    value = Variant.from_python(content)
    assert value.value == b"\x3c" + len(content).to_bytes(4, "little") + content
    assert (value.type, value.scalar, value.to_python()) == ("binary", content, content)
    assert (
        Variant.from_python(bytearray(content)).value == Variant.from_python(memoryview(content)).value == value.value
    )


@pytest.mark.spec("V-052")
@pytest.mark.parametrize("id", [15, 16])
@pytest.mark.parametrize("length", [4, 255, 2**31 - 1, 2**31, 2**32 - 1])
def test_lengths_beyond_the_end(id, length):
    value = raw(id, length.to_bytes(4, "little") + b"abc")
    for reading in (value.to_python, lambda: value.scalar, lambda: value.value, value.to_json):
        with pytest.raises(MalformedVariant, match="beyond the end"):
            reading()
    assert [f.kind for f in value.validate()] == ["error"]
    exact = raw(id, (3).to_bytes(4, "little") + b"abc")
    assert exact.scalar == (b"abc" if id == 15 else "abc")


@pytest.mark.parametrize("content", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"a\xc0\x80"])
def test_strings_that_are_not_utf8(content):
    refused(Variant(EMPTY, bytes([len(content) << 2 | 1]) + content), "not UTF-8")
    refused(raw(16, len(content).to_bytes(4, "little") + content), "not UTF-8")


@pytest.mark.spec("V-053")
def test_uuids_are_big_endian():
    found = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    value = Variant.from_python(found)
    assert value.value == b"\x50" + bytes.fromhex("00112233445566778899aabbccddeeff")
    assert (value.scalar, value.to_python()) == (found.bytes, found)
    assert value.to_json() == f'"{found}"'


@pytest.mark.spec("V-054")
@pytest.mark.parametrize("id", range(21, 64))
def test_unknown_types_are_refused_by_name_and_their_siblings_stay_readable(id):
    unknown = bytes([id << 2]) + b"???"
    metadata = build_metadata(["a", "new", "z"])
    inner = b"\x03\x01\x00\x04" + unknown
    body = b"\x0c\x01" + inner + b"\x05z"
    value = Variant(metadata, bytes([0x02, 3, 0, 1, 2, 0, 2, 2 + len(inner), len(body)]) + body)
    assert value["a"].scalar == 1
    assert value.get("$.z").scalar == "z"
    assert value.keys() == ("a", "new", "z")
    assert value["new"].type == "array"
    assert [name for name, child in value.items() if name != "new" and child.to_python()] == ["a", "z"]
    for reading in (value.to_python, value.to_json, lambda: value["new"][0].scalar, lambda: value.get("$.new[0]").type):
        with pytest.raises(UnsupportedFeatureError, match=rf"type {id} at path \$\['new'\]\[0\]"):
            reading()
    assert [(f.kind, f.path) for f in value.validate()] == [("oddity", "$['new'][0]")]
    with pytest.raises(UnsupportedFeatureError, match=f"type {id}"):
        VariantBuilder().append_variant(value)


def test_names_of_the_types():
    assert len(KINDS) == 21
    for id in range(21):
        assert raw(id, bytes(20)).type == KINDS[id].name


def expected_tree(found: dict) -> made.Tree:
    """An entry of the corpus's expected.json."""
    type, content = found["type"], found.get("value")
    match type:
        case "object":
            return made.Tree("object", tuple(sorted((k, expected_tree(v)) for k, v in found["fields"].items())))
        case "array":
            return made.Tree("array", tuple(map(expected_tree, found["elements"])))
        case "decimal4" | "decimal8" | "decimal16":
            return made.Tree(type, (int(found["unscaled"]), found["scale"]))
        case "binary":
            return made.Tree(type, bytes.fromhex(found["hex"]))
        case "uuid":
            return made.Tree(type, uuid.UUID(content).bytes)
        case "float" | "double":
            return made.Tree(type, struct.pack("<f" if type == "float" else "<d", content))
    names = {
        "bool": "boolean", "date_days": "date", "time_micros": "time", "timestamp_micros_utc": "timestamp",
        "timestamp_micros_ntz": "timestamp_ntz", "timestamp_nanos_utc": "timestamp_nanos",
        "timestamp_nanos_ntz": "timestamp_ntz_nanos",
    }  # fmt: skip
    return made.Tree(names.get(type, type), content)


@pytest.mark.spec("V-055")
def test_every_pair_of_the_public_corpus(corpora):
    folder = corpora / "variant" / "encoding"
    expected = json.loads((folder / "expected.json").read_text())
    assert {path.stem for path in folder.glob("*.value")} == set(expected)
    assert len(expected) == 29
    for name, entry in expected.items():
        value = Variant((folder / f"{name}.metadata").read_bytes(), (folder / f"{name}.value").read_bytes())
        assert made.tree_of(value) == expected_tree(entry), name
        assert value.validate() == (), name
        again = Variant.from_python(value)
        assert again == value, name
        assert made.tree_of(again) == expected_tree(entry), name
        if "nanos" not in name:  # nanoseconds come back from Python without their zone
            assert Variant.from_python(value.to_python()) == value or "float" in name, name
        json.loads(value.to_json())


FOREIGN = {
    "null": None, "yes": True, "no": False, "i8": -5, "i16": 300, "i32": -70_000, "i64": 1 << 40,
    "dec4": Decimal("1.10"),
    "dec8": Decimal("-12345678.901"), "dec16": Decimal("12345678912345678.90"), "double": 1.5,
    "date": date(1969, 12, 31),
    "at": datetime(1957, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "wall": datetime(2026, 1, 2, 3, 4, 5, 6), "bytes": b"\0\xff",
    "text": "é" * 40, "short": "x", "list": [1, [2, {"deep": "～😀"}]], "empty": {}, "none": [],
}  # fmt: skip


def test_pyspark_reads_what_is_built():
    sql = pytest.importorskip("pyspark.sql.types")
    value = Variant.from_python({**FOREIGN, "f": np.float32(0.5)})
    assert sql.VariantVal(value.value, value.metadata).toPython() == {**FOREIGN, "f": 0.5}
    many = {f"k{i:03d}": i for i in range(300)}
    value = Variant.from_python(many)
    assert sql.VariantVal(value.value, value.metadata).toPython() == many


def test_what_pyspark_builds_is_read():
    sql = pytest.importorskip("pyspark.sql.types")
    text = '{"b": [1, 1.10, -0.0, 1e3, 12345678901234567890, "x", null, true], "a": {"é": {}}, "c": 300}'
    theirs = sql.VariantVal.parseJson(text)
    value = Variant(theirs.metadata, theirs.value)
    assert value.to_python() == theirs.toPython()
    assert value == Variant.from_json(text)
    assert made.tree_of(value) == made.tree_of(Variant.from_json(text))
    assert not [f for f in value.validate() if f.kind == "error"]


def test_duckdb_reads_what_is_built():
    duckdb = pytest.importorskip("duckdb")
    rows = {**FOREIGN, "uuid": uuid.UUID(int=5), "time": time(12, 33, 54, 123_456), "f": np.float32(0.5)}
    rows.pop("null")  # a variant null at the top is SQL NULL to DuckDB
    instant = rows.pop("at")  # as a Python value it would need pytz
    column = made.to_column([Variant.from_python(obj) for obj in rows.values()])
    field = pa.field("v", column.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", pa.table([column], pa.schema([field])))
        found = [row[0] for row in connection.sql("SELECT v FROM given").fetchall()]
        column = made.to_column([Variant.from_python(instant)])
        connection.register("instant", pa.table([column], pa.schema([field])))
        assert connection.sql("SELECT epoch_us(v::TIMESTAMPTZ) FROM instant").fetchall()[0][0] == -410_129_754_999_994
    for (name, expected), actual in zip(rows.items(), found):
        assert actual == expected or (name == "f" and actual == 0.5), name
