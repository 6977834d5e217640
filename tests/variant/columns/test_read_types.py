"""Every primitive type at its limits through columns: exact bytes in and out of Arrow, Python, JSON, shredding; and the
classes of equal values in filters, joins and functions."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.compute.evaluate import mask
from boathouse.errors import EvaluationError
from boathouse.expr.parse import parse
from boathouse.types import TimestampType
from boathouse.variant import (
    Lenient,
    Variant,
    VariantArray,
    VariantBuilder,
    choose,
    extract,
    from_arrow,
    from_json,
    is_valid,
    schema_of,
    shred,
    to_arrow,
    to_json,
    to_pylist,
    unshred,
)
from boathouse.variant.edit import delete
from boathouse.variant.edit import set as set_at
from boathouse.variant.explode import explode
from boathouse.variant.schemas import schema_of as schema_of_one
from boathouse.variant.shredding.schema import ShreddingSchema
from makers.variants import Tree, python_values, scalar_bytes, to_column, tree_of

EMPTY = b"\x11\x00\x00"
LONGS = [-(2**63), -1, 0, 1, 2**63 - 1]
DOUBLES = [0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, float("inf"), float("-inf")]
FLOATS = [0.0, -0.0, 1e-45, 3.4028234663852886e38, 0.5, float("inf"), float("nan")]
NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
# The Arrow type of each, its contents, and the text of the type that shreds it where there is one.
TYPES: dict[str, tuple[pa.DataType, list[Any], str | None]] = {
    "boolean": (pa.bool_(), [True, False], "boolean"),
    "int8": (pa.int8(), [-128, -1, 0, 127], "tinyint"),
    "int16": (pa.int16(), [-(2**15), -1, 0, 2**15 - 1], "smallint"),
    "int32": (pa.int32(), [-(2**31), -1, 0, 2**31 - 1], "int"),
    "int64": (pa.int64(), LONGS, "bigint"),
    "double": (pa.float64(), [struct.pack("<d", d) for d in [*DOUBLES, float("nan")]], "double"),
    "float": (pa.float32(), [struct.pack("<f", f) for f in FLOATS], "float"),
    "date": (pa.date32(), [-(2**31), -719_163, -1, 0, 2_932_897, 2**31 - 1], "date"),
    "timestamp": (UTC, LONGS, "timestamp"),
    "timestamp_ntz": (NTZ, LONGS, "timestamp_ntz"),
    "timestamp_nanos": (pa.timestamp("ns", "UTC"), LONGS, None),
    "timestamp_ntz_nanos": (pa.timestamp("ns"), LONGS, None),
    "time": (pa.time64("us"), [0, 1, 86_399_999_999], "time"),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff" * 64, bytes(300)], "binary"),
    "string": (pa.string(), ["", "x", "é" * 31, "é" * 32, "～😀" * 50], "string"),
    "uuid": (pa.uuid(), [bytes(range(16)), bytes(16), b"\xff" * 16], "uuid"),
    **{
        f"{name} {scale}": (
            pa.decimal128(digits, scale),
            [0, 1, -1, 10**digits - 1, 1 - 10**digits],
            f"decimal({digits},{scale})",
        )
        for name, digits in (("decimal4", 9), ("decimal8", 18), ("decimal16", 38))
        for scale in (0, 2, digits)
    },
}


def trees(name: str) -> list[Tree]:
    kind, _, scale = name.partition(" ")
    return [Tree(kind, (one, int(scale)) if scale else one) for one in TYPES[name][1]]


def shredding(name: str) -> ShreddingSchema | str:
    text = TYPES[name][2]
    return ShreddingSchema(TimestampType(name == "timestamp_nanos", "ns")) if text is None else text


def contents(array: Any, name: str) -> list[Any]:
    """The Arrow array as the contents of trees, from its bytes and not by way of Python's dates."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_decimal(array.type):
        return [scaled(d, array.type.scale) for d in array.to_pylist()]
    if name in ("double", "float"):
        width = 8 if name == "double" else 4
        raw = array.buffers()[1].to_pybytes()
        return [raw[i : i + width] for i in range(array.offset * width, (array.offset + len(array)) * width, width)]
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if name == "date" else pa.int64()).to_pylist()
    return array.to_pylist()


def scaled(number: Decimal, scale: int) -> int:
    sign, digits, exponent = number.as_tuple()
    whole = int("".join(map(str, digits))) * 10 ** (scale + int(exponent))
    return -whole if sign else whole


def outcome(work: Any) -> Any:
    try:
        return repr(work())
    except EvaluationError:
        return EvaluationError


@pytest.mark.spec("V-044", "V-045", "V-046", "V-047", "V-050", "V-051", "V-052", "V-053", "V-069")
@pytest.mark.parametrize("name", TYPES)
def test_limits_of_each_type_in_columns(name: str) -> None:
    arrow = TYPES[name][0]
    raws = [scalar_bytes(tree) for tree in trees(name)]
    data = to_column([Variant(EMPTY, raw) for raw in raws])
    assert is_valid(data).to_pylist() == [True] * len(raws)

    found = extract(data, "$", arrow)
    assert found.type == arrow and found.null_count == 0
    assert contents(found, name) == TYPES[name][1]
    assert from_arrow(found).field("value").to_pylist() == raws
    whole = to_arrow(data, arrow)
    assert whole.type == arrow and contents(whole, name) == TYPES[name][1]

    for row, raw in enumerate(raws):
        one = Variant(EMPTY, raw)
        assert outcome(lambda row=row: to_pylist(data.slice(row, 1))[0]) == outcome(one.to_python)
        text = to_json(data.slice(row, 1), special="string")[0].as_py()
        assert text == one.to_json(special="string")
        json.loads(text)
        if name in ("double", "float") and text.startswith('"'):
            for reader in (one.to_json, lambda row=row: to_json(data.slice(row, 1))):
                with pytest.raises(EvaluationError):
                    reader()

    shredded = shred(data, shredding(name))
    assert shredded.field("typed_value").null_count == 0 and shredded.field("value").null_count == len(raws)
    assert unshred(shredded).field("value").to_pylist() == raws


@pytest.mark.spec("V-044")
def test_variant_nulls_are_rows_of_their_own() -> None:
    data = to_column([Variant(EMPTY, b"\x00"), None, Variant(EMPTY, b"\x04")])
    assert data.is_null().to_pylist() == [False, True, False]
    assert to_json(data).to_pylist() == ["null", None, "true"]
    assert extract(data, "$").to_pylist() == data.to_pylist()
    assert extract(data, "$", "boolean").to_pylist() == [None, None, True]
    assert unshred(shred(data, "boolean")).to_pylist() == data.to_pylist()
    assert from_json(pa.array(["null", None, "true"])).to_pylist() == data.to_pylist()


@pytest.mark.spec("V-055")
def test_the_public_corpus_as_one_column(corpora: Path) -> None:
    files = sorted((corpora / "variant" / "encoding").glob("*.value"))
    rows: list[Variant | None] = [Variant(f.with_suffix(".metadata").read_bytes(), f.read_bytes()) for f in files]
    assert len(rows) == 29
    data = to_column(rows)
    kinds = [tree_of(row) for row in rows if row is not None]
    assert repr(to_pylist(data)) == repr([row and row.to_python() for row in rows])
    assert to_json(data).to_pylist() == [row and row.to_json() for row in rows]
    for schema in (choose(data), "struct<id:tinyint,observation:struct<value:struct<humidity:smallint>>>", "string"):
        back = unshred(shred(data, schema)).to_pylist()
        assert [tree_of(Variant(**row)) for row in back] == kinds


@pytest.mark.spec("V-066")
@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), python_values()), max_size=6))
def test_any_python_values_make_a_column_as_they_make_variants(values: list[Any]) -> None:
    made = VariantArray.from_python(values)
    ones = [None if one is None else Variant.from_python(one) for one in values]
    assert list(made) == ones
    assert [v and tree_of(v) for v in made] == [v and tree_of(v) for v in ones]
    assert repr(made.to_pylist()) == repr([v and v.to_python() for v in ones])


ONE = [
    Variant(EMPTY, raw)
    for raw in (
        b"\x0c\x01", b"\x10\x01\x00", b"\x14\x01\x00\x00\x00", b"\x18" + (1).to_bytes(8, "little"),
        b"\x20\x02" + (100).to_bytes(4, "little"), b"\x24\x03" + (1000).to_bytes(8, "little"),
        b"\x28\x02" + (100).to_bytes(16, "little"),
    )
]  # fmt: skip


def table_of(values: list[Variant | None]) -> pa.Table:
    field = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
    kept = pa.array([v and {"metadata": v.metadata, "value": v.value} for v in values], VARIANT_STORAGE)
    return pa.table([pa.array(range(len(values))), kept], schema=pa.schema([pa.field("k", pa.int64()), field]))


@pytest.mark.spec("V-056")
def test_equal_numbers_are_one_in_filters_and_joins(tmp_path: Path) -> None:
    table = table_of([*ONE, Variant.from_python(2), Variant.from_python(Decimal("1.01"))])
    same = list(range(len(ONE)))
    for type, literal in (("int", "1"), ("decimal(10,2)", "1.00BD"), ("string", "'1'")):
        where = f"variant_get(v, '$', '{type}') = {literal}"
        want = same + ([8] if type == "int" else [])
        assert pc.filter(table["k"], mask(parse(where), table)).to_pylist() == want
        for i, shred_as in enumerate((None, {"v": "tinyint"}, {"v": "decimal(38,2)"}, "auto")):
            path = tmp_path / f"{type[:3]}{i}.parquet"
            bh.write_parquet(table, path, shred=shred_as)
            assert bh.read_parquet(path, columns=["k"], where=where)["k"].to_pylist() == want
    for type in ("bigint", "decimal(20,2)"):
        left = pa.table({"x": extract(table["v"].slice(0, 7), "$", type), "l": same})
        right = pa.table({"x": extract(table["v"].slice(0, 7), "$", type), "r": same})
        assert left.join(right, "x", join_type="inner").num_rows == 49
        assert left.group_by("x").aggregate([("l", "count")]).num_rows == 1
    assert VariantArray(table["v"].slice(0, 7)) == VariantArray.from_variants([ONE[0]] * 7)
    assert len(set(ONE)) == 1


@pytest.mark.spec("V-057")
def test_short_and_long_strings_are_one_in_every_function() -> None:
    names = VariantBuilder().append({"a": "hello", "b": "1"}).finish()
    long = Variant(
        names.metadata, b"\x02\x02\x00\x01\x00\x0a\x10" + b"\x40\x05\x00\x00\x00hello" + b"\x40\x01\x00\x00\x001"
    )
    assert names.value != long.value and names == long and hash(names) == hash(long)
    for function in (
        lambda v: v.get("$.a", "string"), lambda v: v.get("$.b", "int"), lambda v: v.cast("map<string,string>"),
        lambda v: set_at(v, "$.c", 1).value, lambda v: delete(v, "$.a").value, lambda v: v.to_json(),
        lambda v: [(p, k, c.to_python()) for p, k, c in explode(v)], lambda v: str(schema_of_one(v)),
    ):  # fmt: skip
        assert function(names) == function(long)
    for reader in (
        to_pylist, lambda d: to_json(d).to_pylist(), lambda d: str(schema_of(d)), lambda d: str(choose(d)),
        lambda d: extract(d, "$.b", "int").to_pylist(), lambda d: is_valid(d).to_pylist(),
        lambda d: shred(d, "struct<a:string,b:string>").to_pylist(), lambda d: to_arrow(d).to_pylist(),
    ):  # fmt: skip
        assert reader(to_column([names])) == reader(to_column([long]))


@pytest.mark.spec("V-058")
def test_floats_and_doubles_stay_apart_in_columns() -> None:
    single, double = Variant(EMPTY, b"\x38" + struct.pack("<f", 1.5)), Variant.from_python(1.5)
    data = to_column([single, double])
    assert VariantArray(data.slice(0, 1)) != VariantArray(data.slice(1, 1))
    assert shred(data, "double").field("typed_value").to_pylist() == [None, 1.5]
    assert shred(data, "float", widen=True).field("typed_value").to_pylist() == [1.5, None]
    back = unshred(shred(data, "double", widen=True)).to_pylist()
    assert [Variant(**row).type for row in back] == ["float", "double"]
    assert extract(data, "$", "double").to_pylist() == [1.5, 1.5]


@pytest.mark.spec("V-059")
def test_micros_and_nanos_of_one_instant_are_one_in_columns() -> None:
    micros = [0, -1, 1_730_982_834_123_456, -(10**14)]
    for zone in ("", "_ntz"):
        kinds = ((f"timestamp{zone}", 1), (f"timestamp{zone}_nanos", 1000))
        left, right = (
            to_column([Variant(EMPTY, scalar_bytes(Tree(kind, m * units))) for m in micros]) for kind, units in kinds
        )
        assert VariantArray(left) == VariantArray(right)
        assert left.field("value") != right.field("value")
        for type in (f"timestamp{zone}", pa.timestamp("ns", None if zone else "UTC"), "string", "date"):
            assert extract(left, "$", type).equals(extract(right, "$", type)), type


@pytest.mark.spec("V-089")
def test_values_beyond_sparks_limit_have_none_here(tmp_path: Path) -> None:
    """17 MiB: pyspark stops at 16."""
    large = Variant.from_python({"n": 1, "t": "x" * (17 << 20), "w": [2**40]})
    data = to_column([large, None, Variant.from_python({"n": 2})])
    assert extract(data, "$.w[0]", "bigint").to_pylist() == [2**40, None, None]
    assert extract(data, "$.t", "string")[0].as_py() == large["t"].scalar
    text = to_json(data)[0].as_py()
    assert text == large.to_json() and len(text) > 17 << 20
    assert from_json(pa.array([text]))[0].as_py() == data[0].as_py()
    assert to_pylist(data)[0]["t"] == large["t"].scalar
    assert is_valid(data).to_pylist() == [True, None, True]
    back = unshred(shred(data, "struct<n:tinyint,t:string>", lenient=Lenient()))
    assert back[0]["value"].as_py() == large.value
