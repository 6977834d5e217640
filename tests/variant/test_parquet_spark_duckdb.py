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
from boathouse.types import INT32
from boathouse.variant import Variant
from boathouse.variant.cast import cast_exact

FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})


def column(values: list[Any]) -> pa.Array:
    made = [None if v is ... else v if isinstance(v, Variant) else Variant.from_python(v) for v in values]
    return pa.array([None if v is None else {"metadata": v.metadata, "value": v.value} for v in made], VARIANT_STORAGE)


def variants(array: Any) -> list[Variant | None]:
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in array.to_pylist()]


def some(random: random.Random, depth: int = 0) -> Any:
    """A value that JSON has and every engine reads: whole numbers, short fractions, texts, objects, arrays."""
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
@pytest.mark.route("variants read by Spark")
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


@pytest.mark.spark
@pytest.mark.spec("V-005", "V-072")
@pytest.mark.parametrize("shred", [None, "struct<id:tinyint,a:struct<b:string>,tags:array<string>>"])
def test_spark_reads_ours_at_every_depth(spark: Any, tmp_path: Path, shred: Any) -> None:
    v = column(generated(9, 40))
    offsets = pa.array([None if i % 5 == 2 else i for i in range(41)], pa.int32())
    parts = [pa.field("x", pa.int64()), FIELD]
    structs = pa.StructArray.from_arrays([pa.array(range(40)), v], fields=parts,
                                         mask=pa.array([i % 7 == 3 for i in range(40)]))  # fmt: skip
    arrays = {
        "s": structs,
        "l": pa.ListArray.from_arrays(offsets, v, type=pa.list_(FIELD.with_name("element"))),
        "m": pa.MapArray.from_arrays(offsets, pa.array([f"k{i}" for i in range(40)]), v,
                                     type=pa.map_(pa.string(), FIELD.with_name("value"))),
        "d": pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", pa.struct(parts)))),
    }  # fmt: skip
    path = tmp_path / "nested.parquet"
    places = ["s.v", "l.element", "m.value", "d.element.v"]
    bh.write_parquet(pa.table(arrays), path, shred=None if shred is None else dict.fromkeys(places, shred))
    frame = spark.read.parquet(str(path))
    assert frame.schema.simpleString() == (
        "struct<s:struct<x:bigint,v:variant>,l:array<variant>,m:map<string,variant>,d:array<struct<x:bigint,v:variant>>>"
    )
    rows = frame.selectExpr(
        "s is null", "to_json(s.v)", "transform(l, e -> to_json(e))", "transform(map_values(m), e -> to_json(e))",
        "transform(d, e -> to_json(e.v))",
    ).collect()  # fmt: skip

    def shown(value: Any) -> Any:
        if isinstance(value, list):
            return [shown(x) for x in value]
        return None if value is None else as_json(Variant(value["metadata"], value["value"]))

    table = bh.read_parquet(path).to_pydict()
    assert [r[0] for r in rows] == [s is None for s in table["s"]] == structs.is_null().to_pylist()
    assert [of_text(r[1]) for r in rows] == [s and shown(s["v"]) for s in arrays["s"].to_pylist()]
    for i, values in ((2, arrays["l"].to_pylist()), (3, [m and [x for _, x in m] for m in arrays["m"].to_pylist()]),
                      (4, [d and [s and s["v"] for s in d] for d in arrays["d"].to_pylist()])):  # fmt: skip
        assert [r[i] and [of_text(t) for t in r[i]] for r in rows] == [v and shown(v) for v in values]


def texts(values: list[Any]) -> list[str | None]:
    return [None if v is ... else Variant.from_python(v).to_json() for v in values]


@pytest.mark.spark
@pytest.mark.spec("V-001", "V-008", "V-080")
@pytest.mark.route("variants written by Spark")
def test_we_read_sparks(spark: Any, tmp_path: Path) -> None:
    """Spark shreds by itself, by what the rows of a file hold; we see what it sees."""
    source = random.Random(11)
    whole = [v if v is ... or not isinstance(v, dict) else {**v, "more": some(source)} for v in generated(11, 400)]
    given = texts([v if isinstance(v, dict) or v is ... else {"id": 1, "more": v} for v in whole])
    rows = spark.createDataFrame(list(enumerate(given)), "k int, j string").repartitionByRange(3, "k")
    frame = rows.selectExpr("k", "parse_json(j) v", "array(parse_json(j)) l", "struct(parse_json(j) v) s")
    frame.write.parquet(str(tmp_path / "files"))
    stored = "".join(str(pq.ParquetFile(p).schema) for p in (tmp_path / "files").glob("*.parquet"))
    assert "typed_value" in stored
    got = bh.read_parquet(tmp_path / "files").sort_by("k")
    assert got.schema.field("l").type.value_field.metadata[MARK] == b"variant"
    want = [None if t is None else Variant.from_json(t) for t in given]
    assert variants(got["v"]) == want
    assert [Variant(**r["v"]) if r["v"] else None for r in got["s"].to_pylist()] == want
    assert [Variant(**r[0]) if r[0] else None for r in got["l"].to_pylist()] == want
    calls = {"id": "try_variant_get(v, '$.id', 'int')", "b": "variant_get(v, '$.a.b', 'string')",
             "t": "variant_get(v, '$.tags[1]', 'string')", "n": "is_variant_null(v)"}  # fmt: skip
    theirs = spark.read.parquet(str(tmp_path / "files")).orderBy("k").selectExpr(*calls.values()).collect()
    ours = bh.read_parquet(tmp_path / "files", columns={"k": "k", **calls}).sort_by("k")
    for i, name in enumerate(calls):
        assert ours[name].to_pylist() == [r[i] for r in theirs], name


@pytest.mark.spec("V-001", "V-034")
@pytest.mark.parametrize("how", ["", ", shredding {'v': 'STRUCT(id BIGINT, a STRUCT(b VARCHAR))'}"])
@pytest.mark.parametrize("mixed", [False, True])
def test_we_read_duckdbs(tmp_path: Path, how: str, mixed: bool) -> None:
    duckdb = pytest.importorskip("duckdb")
    values = [v for v in generated(12, 400) if v is not ... and (mixed or (isinstance(v, dict) and "id" in v))]
    # Without a schema, DuckDB renames empty names: test_divergences.
    given = [t for t in texts(values) if how or '"":' not in t]
    rows = pa.table({"k": range(len(given)), "j": given})
    path = tmp_path / "theirs.parquet"
    con = duckdb.connect()
    con.register("rows", rows)
    con.sql(f"copy (select k, j::json::variant v from rows order by k) to '{path}' (format parquet{how})")
    assert "typed_value" in str(pq.ParquetFile(path).schema)
    got = variants(bh.read_parquet(path)["v"])
    # DuckDB has doubles for decimals, and no SQL NULL beside variant null.
    want = [None if t == "null" else json.loads(t) for t in given]
    assert [v if v is None else json.loads(v.to_json()) for v in got] == want
    ids = bh.read_parquet(path, columns={"id": "try_variant_get(v, '$.id', 'int')"})["id"].to_pylist()
    whole = [None if v is None else v.get("$.id") for v in got]
    assert ids == [None if v is None else cast_exact(v, INT32, safe=True) for v in whole]
    assert len({i for i in ids if i is not None}) > 100
