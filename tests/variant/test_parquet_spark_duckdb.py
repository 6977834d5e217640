"""Variant files of ours read by Spark and DuckDB, and theirs by us, over generated values; each way shredded or not."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.variant import Variant

FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})


def column(values: list[Any]) -> pa.Array:
    made = [None if v is ... else v if isinstance(v, Variant) else Variant.from_python(v) for v in values]
    return pa.array([None if v is None else {"metadata": v.metadata, "value": v.value} for v in made], VARIANT_STORAGE)


def variants(array: Any) -> list[Variant | None]:
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in array.to_pylist()]


def some(random: random.Random, depth: int = 0) -> Any:
    """A value that JSON has and every engine reads: whole numbers, fractions of a few digits, texts, objects, arrays."""
    kind = random.random()
    if kind < 0.2 and depth < 4:
        return [some(random, depth + 1) for _ in range(random.randrange(4))]
    if kind < 0.6 and depth < 4:
        names = random.sample(["a", "b", "c", "id", "tags", "A", "deep", "naïve", ""], random.randrange(1, 5))
        return {name: some(random, depth + 1) for name in names}
    return random.choice([
        None, True, False, 0, -1, 127, 128, 40_000, -(2**31), 2**40, -(2**63), "", "text", "ü" * 40, "x" * 70,
        Decimal("1.5"), Decimal("-12345678.901"), "2026-11-20",
    ])  # fmt: skip


def generated(seed: int, rows: int) -> list[Any]:
    source = random.Random(seed)
    typical = [{"id": i, "a": {"b": f"t{i % 7}", "c": i / 4 if i % 3 else None}, "tags": ["x", "y"][: i % 3]}
               for i in range(rows)]  # fmt: skip
    return [t if source.random() < 0.5 else ... if source.random() < 0.1 else some(source) for t in typical]


def as_json(v: Variant | None) -> Any:
    """The value without its types: numbers by value, objects as dicts."""
    return None if v is None else json.loads(v.to_json(), parse_float=Decimal, parse_int=Decimal)


def of_text(text: str | None) -> Any:
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


LAYOUTS = [
    None,
    "auto",
    {"v": "struct<id:bigint,a:struct<b:string,c:double>,tags:array<string>>"},
    {"v": "struct<id:int,a:string>"},
    {"v": "array<struct<a:int,id:string>>"},
    {"v": "bigint"},
]


@pytest.mark.spark
@pytest.mark.spec("V-001")
@pytest.mark.parametrize("shred", LAYOUTS, ids=str)
def test_spark_reads_ours(spark: Any, tmp_path: Path, shred: Any) -> None:
    path = tmp_path / "ours.parquet"
    given = column(generated(7, 300))
    table = pa.table([pa.array(range(300)), given], schema=pa.schema([pa.field("k", pa.int64()), FIELD]))
    bh.write_parquet(table, path, shred=shred)
    frame = spark.read.parquet(str(path))
    assert frame.schema.simpleString() == "struct<k:bigint,v:variant>"
    rows = frame.orderBy("k").selectExpr("v is null", "to_json(v)", "is_variant_null(v)").collect()
    ours = variants(given)
    assert [r[0] for r in rows] == [v is None for v in ours]
    assert [r[2] for r in rows] == [v is not None and v.type == "null" for v in ours]
    assert [of_text(r[1]) for r in rows] == [as_json(v) for v in ours]
    assert variants(bh.read_parquet(path)["v"]) == ours


@pytest.mark.spec("V-001", "V-006")
@pytest.mark.parametrize("shred", LAYOUTS, ids=str)
def test_duckdb_reads_ours(tmp_path: Path, shred: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "ours.parquet"
    # DuckDB has no SQL NULL beside the variant null: test_divergences.
    given = column([None if v is ... else v for v in generated(8, 300)])
    schema = pa.schema([pa.field("k", pa.int64()), FIELD, FIELD.with_name("plain")])
    bh.write_parquet(pa.table([pa.array(range(300)), given, given], schema=schema), path, shred=shred)
    stored = pq.ParquetFile(path).schema_arrow
    assert stored.field("plain").type == VARIANT_STORAGE or shred == "auto"
    types = duckdb.sql(f"select * from '{path}'").types
    assert [str(t) for t in types] == ["BIGINT", "VARIANT", "VARIANT"]
    rows = duckdb.sql(f"select v::json::varchar, plain::json::varchar from '{path}' order by k").fetchall()
    for text, plain in rows:
        assert text == plain
    assert [of_text(r[0]) for r in rows] == [as_json(v) for v in variants(given)]
