"""Partition values: strings and types."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.partition_values import civil_of, days_of, parse, text_of, timestamp_us
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
)  # fmt: skip

NAMES = {
    "string": STRING, "long": INT64, "integer": INT32, "short": INT16, "byte": INT8, "float": FLOAT, "double": DOUBLE,
    "boolean": BOOLEAN, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP, "timestamp_ntz": TIMESTAMP_NTZ,
    "decimal(12,5)": DecimalType(12, 5),
}  # fmt: skip


NTZ_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["timestampNtz"],
    }
}


def values_of(raw, delta, type, *strings):
    """What each text in a log is read as."""
    table = raw()
    protocol = NTZ_PROTOCOL if type == "timestamp_ntz" else delta.PROTOCOL
    actions = [protocol, delta.metadata([delta.field("p", type), delta.field("x", "long")], ["p"])]
    for i, text in enumerate(strings):
        table.file(f"{i}.parquet", pa.table({"x": [i]}))
        actions.append(table.add(f"{i}.parquet", {"p": text}))
    table.commit(0, *actions)
    rows = bh.open(str(table)).to_arrow().to_pylist()
    return [r["p"] for r in sorted(rows, key=lambda r: r["x"])]


def written(path, array, delta):
    """The text that our writer gives a value, and the value that deltalake reads."""
    bh.write(pa.table({"p": array, "x": [1] * len(array)}), str(path), format="delta", partition_by=["p"])
    strings = [a["add"]["partitionValues"]["p"] for a in delta.log(path)[0] if "add" in a]
    return strings, [r["p"] for r in delta.rows(path)]


@pytest.mark.spec("D-276")
@pytest.mark.parametrize("type", NAMES)
def test_an_empty_text_is_null(raw, delta, type):
    assert values_of(raw, delta, type, "", None) == [None, None]
    assert text_of(None, NAMES[type]) is None


@pytest.mark.spec("D-276")
def test_an_empty_text_is_written_as_null(tmp_path, delta):
    for i, values in enumerate((pa.array(["", None]), pa.array([b"", None]))):
        strings, _ = written(tmp_path / str(i), values, delta)
        assert set(strings) == {None}
        assert bh.open(str(tmp_path / str(i))).to_arrow().column("p").to_pylist() == [None, None]


@pytest.mark.spec("D-277")
def test_strings_are_raw(tmp_path, delta):
    values = ['say "hi"', "a\nb", "é😀", "__HIVE_DEFAULT_PARTITION__", " ", "null", "\\"]
    strings, seen = written(tmp_path / "t", pa.array(values), delta)
    assert sorted(strings) == sorted(values) == sorted(seen)
    assert sorted(bh.open(str(tmp_path / "t")).to_arrow().column("p").to_pylist()) == sorted(values)


@pytest.mark.spec("D-278")
@pytest.mark.parametrize(
    ("type", "strings", "values"),
    [
        ("byte", ["-128", "127"], [-128, 127]),
        ("short", ["-32768", "007"], [-32768, 7]),
        ("integer", ["-2147483648", "+5"], [-2147483648, 5]),
        ("long", ["-9223372036854775808", "9223372036854775807"], [-(2**63), 2**63 - 1]),
        (
            "double",
            ["1.0E20", "100000000000000000000", "-0", "1", "Infinity", "-inf"],
            [1e20, 1e20, -0.0, 1.0, float("inf"), -float("inf")],
        ),
        ("float", ["0.1", "3.4028235E38"], [pytest.approx(0.1, abs=1e-8), pytest.approx(3.4028235e38)]),
        (
            "decimal(12,5)",
            ["-2342342.23423", "-0.00001", "234", "1E+2", "0E-5"],
            [Decimal(s) for s in ("-2342342.23423", "-0.00001", "234.00000", "100.00000", "0.00000")],
        ),
    ],
)
def test_numbers(raw, delta, type, strings, values):
    assert values_of(raw, delta, type, *strings) == values


@pytest.mark.spec("D-278")
def test_numbers_are_compared_as_values(raw, delta):
    table = raw()
    actions = [delta.PROTOCOL, delta.metadata([delta.field("p", "double"), delta.field("x", "long")], ["p"])]
    for i, text in enumerate(("1.0E20", "100000000000000000000", "-0", "0.0", "NaN")):
        table.file(f"{i}.parquet", pa.table({"x": [i]}))
        actions.append(table.add(f"{i}.parquet", {"p": text}))
    table.commit(0, *actions)

    def found(where):
        return sorted(bh.open(str(table)).scan(where=where).to_arrow().column("x").to_pylist())

    assert found("p = 1e20") == [0, 1]
    assert found("p = 0") == [2, 3]
    assert found("p > 1e21") == [4]
    assert found("p = cast('NaN' as double)") == [4]


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("integer", "x"),
        ("byte", "128"),
        ("date", "2020-13-01"),
        ("timestamp", "soon"),
        ("boolean", "1"),
        ("decimal(12,5)", "1.123456"),
        ("double", ""),
    ],
)
def test_strings_that_are_no_value_are_refused(raw, delta, type, text):
    if not text:
        assert values_of(raw, delta, type, text) == [None]
        return
    with pytest.raises(CorruptTableError, match="partition value"):
        values_of(raw, delta, type, text)


@pytest.mark.spec("D-279")
def test_dates(tmp_path, raw, delta):
    values = [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    strings, seen = written(tmp_path / "t", pa.array(values), delta)
    assert sorted(strings) == ["0001-01-01", "1970-01-01", "9999-12-31"]
    assert sorted(seen) == sorted(values)
    assert values_of(raw, delta, "date", "1970-01-01", "0001-01-01", "9999-12-31", "2020-1-2") == [
        *values,
        dt.date(2020, 1, 2),
    ]


def test_days_of_any_year():
    for days in (-1_000_000, -719_163, -1, 0, 1, 60, 11_016, 2_932_896, 5_000_000):
        assert days_of(*civil_of(days)) == days
    assert civil_of(0) == (1970, 1, 1) and civil_of(-719_163) == (0, 12, 31)


@pytest.mark.spec("D-280")
def test_timestamps_written(tmp_path, delta):
    value = dt.datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)
    strings, seen = written(tmp_path / "t", pa.array([value], pa.timestamp("us", "UTC")), delta)
    assert strings == ["1970-01-01T00:00:00.123456Z"]
    assert [s.astimezone(dt.UTC) for s in seen] == [value]


@pytest.mark.spec("D-281")
def test_timestamps_of_others_are_utc(raw, delta, monkeypatch):
    second = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    micro = second.replace(microsecond=123456)
    strings = [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.123456",
        "1970-01-01T00:00:00.123456Z",
        "1970-01-01T02:00:00+02:00",
    ]
    assert values_of(raw, delta, "timestamp", *strings) == [second, micro, micro, second]
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    assert values_of(raw, delta, "timestamp", *strings) == [second, micro, micro, second]


def test_timestamp_strings():
    assert timestamp_us("1969-12-31 23:59:59.999999") == -1
    assert timestamp_us("1883-11-18T12:00:00.000-07:52:58") == timestamp_us("1883-11-18 19:52:58")
    assert text_of(0, TIMESTAMP_NTZ) == "1970-01-01 00:00:00.000000"
    for bad in ("1970-01-01 25:00:00", "1970-01-01 00:61:00", "x"):
        with pytest.raises(ValueError):
            timestamp_us(bad)


@pytest.mark.spec("D-282")
def test_booleans(tmp_path, raw, delta):
    strings, seen = written(tmp_path / "t", pa.array([True, False]), delta)
    assert sorted(strings) == ["false", "true"] and sorted(seen) == [False, True]
    assert values_of(raw, delta, "boolean", "true", "FALSE") == [True, False]


def test_binary(tmp_path, raw, delta):
    assert values_of(raw, delta, "binary", "\u0001\u0002\u0003", "é") == [b"\x01\x02\x03", "é".encode()]
    path = str(tmp_path / "t")
    bh.write(pa.table({"p": [b"\x01\x02\x03", "é".encode()], "x": [1, 2]}), path, format="delta", partition_by=["p"])
    adds = [a["add"] for a in delta.log(path)[0] if "add" in a]
    assert sorted(a["partitionValues"]["p"] for a in adds) == ["\u0001\u0002\u0003", "é"]
    assert sorted(bh.open(path).to_arrow().column("p").to_pylist()) == [b"\x01\x02\x03", "é".encode()]
    with pytest.raises(UnsupportedFeatureError, match="UTF-8"):
        text_of(b"\xff", BINARY)


@pytest.mark.parametrize("type", NAMES.values(), ids=list(NAMES))
def test_strings_parse_back(type):
    samples = {
        "string": ["a"],
        "boolean": [True, False],
        "binary": [b"a"],
        "date": [-1, 0, 20_000],
        "timestamp": [-1, 0, 10**15],
    }
    name = next(k for k, v in NAMES.items() if v == type)
    values = samples.get(name.removesuffix("_ntz"), [-1, 0, 5])
    if name in ("float", "double"):
        values = [0.1, -1e300 if name == "double" else -1.5, float("inf")]
    for value in values:
        found = parse(text_of(value, type), type, "t")
        assert found == (pytest.approx(value) if name == "float" else value)


@pytest.mark.parametrize("before", [["p"], [], ["q"]])
@pytest.mark.parametrize("after", [["p"], ["q"], ["q", "p"]])
def test_a_checkpoint_of_other_partition_columns_or_types(tmp_path, before, after):
    """Its adds are gone, but are chosen by their partition values before that is known."""
    rows = pa.table({"p": ["x", "y", None], "q": ["1", "z", "3"], "v": [1, 2, 3]})
    bh.write(rows, str(tmp_path), format="delta", partition_by=before)
    table = bh.open(str(tmp_path))
    write_checkpoint(table._handle.snapshot)
    table.overwrite(
        pa.table({"p": [1, 2, None], "q": [1, 2, 3], "v": [4, 5, 6]}), overwrite_schema=True, partition_by=after
    )
    table = bh.open(str(tmp_path))
    assert table.detail()["checkpoint"] == 0
    for where, wanted in (("q = 2", [5]), ("p IS NULL", [6]), ("p = 1 AND q < 3", [4]), ("q > 3", [])):
        assert table.scan(["v"], where).to_arrow().column("v").to_pylist() == wanted
        assert table.scan(where=where).count() == len(wanted)
    table.delete("q = 3")
    assert sorted(table.to_arrow().column("v").to_pylist()) == [4, 5]


def test_a_live_file_without_its_partition_value_is_damage(raw, delta):
    made = raw()
    size = made.file("f", pa.table({"x": [1]}))
    fields = [delta.field("x", "long"), delta.field("p", "integer")]
    for values in ({}, {"p": "zap"}):
        made.commit(0, delta.PROTOCOL, delta.metadata(fields, ["p"]), made.add("f", values, size=size))
        for where in (None, "p = 1", "x = 1"):
            with pytest.raises(CorruptTableError):
                bh.open(str(made)).scan(where=where).to_arrow()
