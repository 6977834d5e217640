"""What a caller may get wrong: refused with a typed error that says what was expected."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import variant
from boathouse.errors import (
    ExpressionError,
    InvalidArgumentError,
    MalformedVariant,
    SchemaError,
    SchemaMismatchError,
    StorageError,
)
from boathouse.types.text import parse_type
from boathouse.variant import ShreddingSchema, Variant, VariantArray, VariantBuilder

ROWS = variant.from_json(pa.array(['{"a": 1}', None, "5"]))
EMPTY = b"\x11\x00\x00"


@pytest.mark.parametrize(
    ("append", "value"),
    [
        ("append_string", 5), ("append_binary", "x"), ("append_uuid", "x" * 16), ("append_int", "5"),
        ("append_double", "x"), ("append_float", "x"), ("append_boolean", 1), ("append_time", "x"),
        ("append_variant", 5), ("append_encoded", "x"), ("append_timestamp", datetime(2020, 1, 1)),
    ],
)  # fmt: skip
def test_builder(append: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        getattr(VariantBuilder(), append)(value)


@pytest.mark.parametrize("path", [5, None, b"$.a", {"a"}])
def test_paths(path: object) -> None:
    with pytest.raises(ExpressionError, match="is not a path"):
        Variant.from_python({"a": 1}).get(path)
    with pytest.raises(ExpressionError):
        variant.extract(ROWS, path, "int")
    with pytest.raises((ExpressionError, TypeError)):
        variant.parse_path(path)


@pytest.mark.parametrize("key", [None, 1.0, slice(0, 1)])
def test_keys(key: object) -> None:
    with pytest.raises(TypeError, match="integer"):
        Variant.from_python([1])[key]


def test_steps_of_datetime64_count() -> None:
    for step, unit in ((10, "us"), (7, "D"), (30, "s"), (5, "ns")):
        many = np.datetime64(4, f"{step}{unit}")
        assert Variant.from_python(many) == Variant.from_python(many.astype(f"datetime64[{unit}]"))


def test_types_and_schemas() -> None:
    for wrong in (5, None):
        with pytest.raises(InvalidArgumentError, match="shredding schema"):
            variant.shredding_schema(wrong)
    with pytest.raises(SchemaError, match="typed column"):
        ShreddingSchema("bigint")
    assert str(parse_type("array<" * 150 + "int" + ">" * 150)).count("array") == 150
    with pytest.raises(SchemaError, match="levels"):
        parse_type("array<" * 20_000 + "int" + ">" * 20_000)


def test_columns_that_hold_no_variants(tmp_path: Path) -> None:
    table = pa.table({"x": [1], "text": pa.array([{"metadata": "a", "value": "b"}])})
    with pytest.raises(SchemaMismatchError, match="`x` is int64"):
        variant.annotate(table, ["x"])
    with pytest.raises(InvalidArgumentError, match="list of names"):
        variant.annotate(table, "x")
    with pytest.raises(SchemaMismatchError, match="`x` is int64"):
        bh.write_parquet(table, tmp_path / "a.parquet", variants=["x"])
    for convert in (variant.to_spark, variant.from_spark):
        with pytest.raises(SchemaMismatchError, match="binary"):
            convert(table["text"])
    with pytest.raises(InvalidArgumentError, match="not a Variant"):
        VariantArray.from_variants([1])


def test_rows_without_their_bytes_are_told() -> None:
    lost = pa.StructArray.from_arrays(
        [pa.array([EMPTY] * 3), pa.array([b"\x00", b"\x00", None])], ["metadata", "value"]
    )
    chunked = pa.chunked_array([lost.slice(0, 2), lost.slice(2)])
    for read in (variant.to_spark, variant.from_spark, lambda column: list(VariantArray(column))):
        with pytest.raises(MalformedVariant) as caught:
            read(chunked)
        assert caught.value.row == 2


def test_unshred_takes_what_other_functions_take() -> None:
    shredded = variant.shred(ROWS, "struct<a:bigint>")
    repeated = pa.DictionaryArray.from_arrays(pa.array([2, 0, None]), shredded)
    assert variant.to_pylist(variant.unshred(repeated)) == [5, {"a": 1}, None]
    assert VariantArray(variant.unshred(VariantArray(ROWS))) == VariantArray(ROWS)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_takes_no_files_is_refused() -> None:
    with pytest.raises(StorageError):
        bh.write_parquet(pa.table({"x": [1]}), "/proc/a.parquet")
