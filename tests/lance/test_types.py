"""Every type that pylance writes, end to end: read as pylance reads it; appended to, or refused by name."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.lance.columns.jsonb import from_text, to_text

TEXTS = [
    '{"a":1,"b":[1,-2,300,-70000,5000000000,1.5,true,false,null,"x\\"é"],"c":{}}',
    "[]", '"s"', "1", "-1", "0", "1.25", "null", "true", "false", "1e300", "0.1", "[[],[[]]]", '""', "255", "256",
    "-0.0", "12345.678901234567", "18446744073709551615", "-129", '{"":{"":[]}}',
]  # fmt: skip
ARRAYS = {
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    **{str(t): pa.array([1, None, 3], t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): pa.array([1, None, 3], t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "halffloat": pa.array([np.float16(1.5), None, np.float16(-2)], pa.float16()),
    "float": pa.array([1.5, None, float("inf")], pa.float32()),
    "double": pa.array([1.5, None, -0.0]),
    "string": pa.array(["a", None, "é"]),
    "large_string": pa.array(["a", None, "é"], pa.large_string()),
    "binary": pa.array([b"a", None, b""]),
    "large_binary": pa.array([b"a", None, b""], pa.large_binary()),
    "date32": pa.array([-1, None, 20_000], pa.date32()),
    "date64": pa.array([86_400_000, None, 0], pa.date64()),
    "time32": pa.array([1, None, 3], pa.time32("ms")),
    "time64": pa.array([1, None, 3], pa.time64("ns")),
    **{f"timestamp {u}": pa.array([1, None, -3], pa.timestamp(u)) for u in ("s", "ms", "us", "ns")},
    "zone": pa.array([1, None, -3], pa.timestamp("us", "Asia/Tokyo")),
    "utc": pa.array([1, None, -3], pa.timestamp("us", "UTC")),
    **{f"duration {u}": pa.array([1, None, -3], pa.duration(u)) for u in ("s", "ms", "us", "ns")},
    "decimal128": pa.array([Decimal("1.25"), None, Decimal("-99")], pa.decimal128(20, 2)),
    "decimal256": pa.array([Decimal("1.25"), None, Decimal("-99")], pa.decimal256(60, 2)),
    "fixed_size_binary": pa.array([b"abc", None, b"xyz"], pa.binary(3)),
    "fixed_size_list": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "fixed_size_list of null": pa.array([[None, None], None, [None, None]], pa.list_(pa.null(), 2)),
    "list of fixed_size_list of null": pa.array([[[None], None], None, []], pa.list_(pa.list_(pa.null(), 1))),
    "nested fixed_size_list": pa.array([[[1.0, 2.0]], None, [[3.0, 4.0]]], pa.list_(pa.list_(pa.float32(), 2), 1)),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int16())),
    "large_list": pa.array([[1, None], None, []], pa.large_list(pa.int16())),
    "struct": pa.array([{"x": 1, "y": None}, None, {"x": None, "y": "q"}]),
    "list.struct": pa.array([[{"x": 1}, None], None, []]),
    "map": pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int32())),
    "dict": pa.array(["a", None, "a"]).dictionary_encode(),
    "dict of int": pa.array([7, None, 7]).dictionary_encode(),
    "json": pa.array(['{"a":[1,null]}', None, '"x"'], pa.json_()),
    "uuid": pa.array([bytes(range(16)), None, bytes(16)], pa.uuid()),
}


@pytest.mark.few(16)
@pytest.mark.spec("L-040")
@pytest.mark.parametrize("name", ARRAYS)
def test_read_and_appended(kit, name):
    kit.pylance(pa.table({"id": [1, 2, 3], "c": ARRAYS[name]}))
    theirs = kit.dataset().to_table()
    ours = kit.read()
    wanted = theirs.column("c")
    if isinstance(wanted.type, pa.BaseExtensionType):
        wanted = wanted.combine_chunks().storage
    type = ours.schema.field("c").type
    # pyarrow does not cast fixed-size lists of nulls, not even to their own type.
    wanted = wanted if wanted.type == type else wanted.cast(type)
    assert ours.column("c").to_pylist() == wanted.to_pylist()
    assert kit.read(columns=["c"], where="id = 1").to_pylist() == ours.select(["c"]).slice(0, 1).to_pylist()
    kit.open().append(ours)
    after = kit.dataset().to_table()
    assert after.schema == theirs.schema
    assert after.column("c").to_pylist() == theirs.column("c").to_pylist() * 2
    kit.dataset().validate()


@pytest.mark.spec("L-040")
def test_brain_floats(kit):
    from lance.arrow import bfloat16_array

    kit.pylance(pa.table({"c": bfloat16_array([1.1, None, -3.0, 1e30])}))
    assert kit.read().column("c").to_pylist()[1:3] == [None, -3.0]
    assert abs(kit.read().column("c").to_pylist()[0] - 1.1) < 0.01
    values = [1.00390625, 1.01171875, float("nan"), float("inf"), -0.0, None, 3.4e38, 1e-45]
    t = kit.open()
    t.append(pa.table({"c": pa.array(values, pa.float32())}))
    t.update({"c": "0.5f"}, where="c = -3.0")
    theirs = kit.dataset().to_table().column("c").to_pylist()
    ours = kit.read().column("c").to_pylist()
    assert [str(v) for v in map(_number, theirs)] == [str(v) for v in map(_number, ours)]
    at = ours.index(1.0)
    assert ours[at + 1] == 1.015625 and str(ours[at + 4]) == "-0.0" and ours[at + 6] == float("inf"), "to the even ones"
    kit.dataset().validate()


def _number(value):
    return None if value is None else np.float32(str(value))


def test_json_values(kit):
    kit.pylance(pa.table({"j": pa.array([*TEXTS, None], pa.json_())}))
    ours = kit.read().column("j").to_pylist()
    theirs = kit.dataset().to_table().column("j").to_pylist()
    assert ours[-1] is None
    for mine, other, text in zip(ours, theirs, TEXTS):
        assert json.loads(mine) == json.loads(other) == json.loads(text)
    assert kit.read(where="j = '[]'").num_rows == 1


def test_json_is_written_as_pylance_writes_it(kit):
    """By every operation."""
    more = ['{"bb":1,"a":[127,128,-128,-129,65535,65536,4294967296,-5000000000]}', "1e2", "1" * 30, '{"B":{},"":0}']
    kit.pylance(pa.table({"id": range(len(TEXTS + more) + 1), "j": pa.array([*TEXTS, *more, None], pa.json_())}))
    t = kit.open()
    theirs = kit.dataset().to_table().column("j").to_pylist()
    assert [None if x is None else to_text(from_text(x, column="j"), where="") for x in theirs] == theirs
    t.append([{"id": 100, "j": ' {"z": [1, 2.50], "a": "\\u00fc"} '}, {"id": 101, "j": None}])
    t.update({"j": "'[1]'"}, where="id = 3")
    t.delete("id = 5")
    t.optimize()
    theirs = kit.dataset().to_table().to_pylist()
    assert theirs == kit.read().to_pylist()
    assert {r["id"]: r["j"] for r in theirs}[100] == '{"a":"ü","z":[1,2.5]}'
    kit.dataset().validate()
    before = kit.files()
    for text, why in (
        ("{", "Expecting"),
        ("NaN", "no value"),
        ('{"a":1,"a":2}', "twice"),
        ("[" * 300 + "]" * 300, "deep"),
    ):
        with pytest.raises(SchemaMismatchError, match=f"JSON column `j` is not JSON: .*{why}"):
            kit.open().append([{"id": 1, "j": text}])
    assert kit.files() == before


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('{"bb":1,"a":2,"ab":3,"B":4}', "40000004" "10000001100000011000000210000002" + "20000002" * 4
         + "42616162" "6262" "5004" "5002" "5003" "5001"),
        ('"s"', "200000001000000173"), ("1", "20000000200000025001"), ("[]", "80000000"), ("{}", "40000000"),
        ("null", "2000000000000000"), ("1e2", "2000000020000009604059000000000000"), ("-129", "200000002000000340ff7f"),
        ("128", "20000000200000025080"), ("256", "2000000020000003500100"), ("-128", "20000000200000024080"),
        ("18446744073709551615", "200000002000000950ffffffffffffffff"),
    ],
)  # fmt: skip
def test_the_bytes_of_json(text, stored):
    """Those that pylance stores."""
    assert from_text(text, column="c").hex() == stored


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\x80\0\0\1", b"\0\0\0\0", b"\x80\0\0\0x", b"\x20\0\0\0\x20\0\0\x09\x60"]
)
def test_broken_json(data):
    with pytest.raises(CorruptTableError, match="JSON"):
        to_text(data, where="f")


def test_deep_json_is_refused():
    data = b"\x80\0\0\0"
    for _ in range(600):
        data = b"\x80\0\0\1" + (0x50000000 + len(data)).to_bytes(4, "big") + data
    with pytest.raises(UnsupportedFeatureError, match="deep"):
        to_text(data, where="f")


def test_blob_columns_are_read_as_descriptors_which_are_not_written(kit):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    kit.pylance(pa.table([pa.array([b"a" * 10, None, b"c" * 100], pa.large_binary())], pa.schema([field])))
    theirs = kit.dataset().to_table().column("b").to_pylist()
    assert [v and v["size"] for v in kit.read().column("b").to_pylist()] == [v and v["size"] for v in theirs]
    with pytest.raises(SchemaMismatchError, match="`b`"):
        kit.open().append(kit.read())
