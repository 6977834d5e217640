"""Files that Spark and DuckDB shred by themselves, rebuilt here and compared with what they hold unshredded."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from boathouse.errors import MalformedVariant
from boathouse.variant import Variant
from boathouse.variant.shredding.get import get
from boathouse.variant.shredding.schema import from_storage
from boathouse.variant.shredding.unshred import unshred


def rows(empty, objects, count=400):
    """JSON of mixed shapes: typed fields, other types in the same fields, rare fields, nested lists and objects."""
    chance = random.Random(7)
    for i in range(count):
        row = {
            "id": 10_000_000_000 + i,
            "name": chance.choice(["oar", "früh", "～", "😀", "x" * 80]),
            "price": chance.choice([1.25, 99.5, 1e30]),
            "on": chance.random() < 0.5,
            "tags": [chance.choice(["a", "b", None, 3]) for _ in range(chance.randrange(4))],
            "at": {"x": chance.randrange(10**9), empty: {"deep": [{"y": i}]}, "a.b": None},
        }
        if chance.random() < 0.3:
            row["A"] = row["name"]
            row["a"] = i
        if chance.random() < 0.05:
            row[f"rare{i}"] = {"z": [i]}
        if chance.random() < 0.1:
            row["id"] = chance.choice(["text", None, {"o": 1}, [1], 1.5])
        yield row if objects or chance.random() > 0.05 else chance.choice([5, "text", [1, [2]], {}, []])


def rebuilt(path):
    """The variants of a shredded file, which must be one."""
    column = pq.read_table(path)["v"]
    assert from_storage(column.type).is_shredded
    return column, [None if row is None else Variant(**row) for row in unshred(column).to_pylist()]


def plain(path):
    return [None if row is None else Variant(**row) for row in pq.read_table(path)["v"].to_pylist()]


def write_texts(folder, empty, objects=False):
    target = folder / "texts.jsonl"
    texts = [json.dumps(row, ensure_ascii=False) for row in rows(empty, objects)]
    target.write_text("".join(json.dumps({"j": text}) + "\n" for text in texts))
    return target, texts


@pytest.mark.spec("V-069", "V-073")
def test_duckdb_shreds_and_we_rebuild(tmp_path):
    duckdb = pytest.importorskip("duckdb", minversion="2.0")
    home, lines = write_texts(tmp_path, "e.e")
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    source = f"read_json('{home}', columns={{j: 'VARCHAR'}})"
    connection.execute(f"copy (select j::json::variant as v from {source}) to '{tmp_path}/v.parquet'")
    column, found = rebuilt(tmp_path / "v.parquet")
    assert [variant.to_python() for variant in found] == [json.loads(text) for text in lines]
    dicts = [v if isinstance(v := json.loads(text), dict) else {} for text in lines]
    assert get(column, "$.name", "string").to_pylist() == [v.get("name") for v in dicts]
    assert get(column, "$.at['e.e'].deep[0].y", "int").to_pylist() == [
        v["at"]["e.e"]["deep"][0]["y"] if v else None for v in dicts
    ]
    assert get(column, "$.A", "string").to_pylist() == [v.get("A") for v in dicts]
    assert get(column, "$.a", "int").to_pylist() == [v.get("a") for v in dicts]


def test_duckdb_renames_an_empty_name_so_that_its_metadata_lacks_it():
    """DuckDB 2.0.0; later releases do not."""
    column = pq.read_table(Path(__file__).parents[1] / "files" / "duckdb-2.0.0-empty-name.parquet")["v"]
    assert [name for name, _ in from_storage(column.type).typed.fields] != ["", "a"]
    with pytest.raises(MalformedVariant, match="is not in the metadata"):
        unshred(column)


@pytest.mark.parametrize("text", ['{"":1,"b":2}', '{"z":1,"a":{"b":[{"y":1,"x":2}]}}'])
def test_files_of_the_installed_duckdb_are_read_whole_or_refused(tmp_path, text):
    duckdb = pytest.importorskip("duckdb", minversion="2.0")
    duckdb.connect().execute(f"copy (select '{text}'::json::variant as v) to '{tmp_path}/v.parquet'")
    try:
        (rebuilt,) = unshred(pq.read_table(tmp_path / "v.parquet")["v"]).to_pylist()
    except MalformedVariant as refused:
        assert "is not in the metadata" in str(refused)
    else:
        assert Variant(rebuilt["metadata"], rebuilt["value"]) == Variant.from_json(text)


@pytest.mark.spec("V-069")
def test_duckdb_shreds_as_it_is_told_and_we_rebuild_the_exact_types(tmp_path):
    duckdb = pytest.importorskip("duckdb", minversion="2.0")
    connection = duckdb.connect()
    connection.execute("""
        create table t as select {
            'i8': i::tinyint, 'i16': i::smallint, 'i32': i::int, 'i64': i::bigint, 'f': i::float, 'd': i / 3,
            'n': (i / 4)::decimal(9, 2), 'w': (i / 4)::decimal(18, 2), 'q': (i / 4)::decimal(38, 2),
            't': date '1957-01-01' + i::int, 'ts': timestamp '1957-01-01' + interval (i) second,
            'tz': timestamptz '2024-01-01 00:00:00+00', 'tod': time '12:34:56', 's': 'text', 'b': 'raw'::blob,
            'u': '00112233-4455-6677-8899-aabbccddeeff'::uuid, 'l': [i, i + 1], 'o': {'p': i % 2 = 0}
        }::variant as v from range(50) r(i)
    """)
    connection.execute(f"copy t to '{tmp_path}/v.parquet'")
    _, found = rebuilt(tmp_path / "v.parquet")
    kinds = {name: child.type for name, child in found[3].items()}
    assert kinds == {
        "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f": "float", "d": "double", "n": "decimal4",
        "w": "decimal8", "q": "decimal16", "t": "date", "ts": "timestamp_ntz", "tz": "timestamp", "tod": "time",
        "s": "string", "b": "binary", "u": "uuid", "l": "array", "o": "object",
    }  # fmt: skip
    first = found[3]
    assert first["n"].scalar == (75, 2)
    assert first["q"].scalar == (75, 2)
    assert first["u"].scalar.hex() == "00112233445566778899aabbccddeeff"
    assert first["t"].to_python().isoformat() == "1957-01-04"
    assert first["tod"].scalar == 45_296_000_000
    assert [v["l"].to_python() for v in found] == [[i, i + 1] for i in range(50)]
    assert [v["o"]["p"].to_python() for v in found] == [i % 2 == 0 for i in range(50)]


@pytest.mark.spark
@pytest.mark.spec("V-069", "V-073", "V-079")
@pytest.mark.route("variants shredded by Spark")
def test_spark_shreds_by_default_and_we_rebuild(spark, tmp_path):
    if not spark.version.startswith(("4.2", "4.3", "4.4", "5")):
        pytest.skip("this Spark does not shred by default")
    # Of a column that holds anything but objects at its top, Spark shreds nothing.
    home, lines = write_texts(tmp_path, "", objects=True)
    frame = spark.read.schema("j string").json(str(home)).coalesce(1).selectExpr("parse_json(j) as v")
    frame.write.parquet(str(tmp_path / "shredded"))
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    try:
        frame.write.parquet(str(tmp_path / "plain"))
    finally:
        spark.conf.unset("spark.sql.variant.writeShredding.enabled")
    (shredded,), (whole,) = ((tmp_path / name).glob("*.parquet") for name in ("shredded", "plain"))
    column, found = rebuilt(shredded)
    assert found == plain(whole)
    assert len(found) == len(lines)
    answers = spark.read.parquet(str(tmp_path / "plain")).selectExpr(
        "try_variant_get(v, '$.id', 'bigint') id", "try_variant_get(v, '$.at.x', 'string') x",
        "try_variant_get(v, '$.tags[1]', 'string') tag", "try_variant_get(v, '$.price', 'double') price",
    ).toArrow()  # fmt: skip
    questions = {"id": "$.id", "x": "$.at.x", "tag": "$.tags[1]", "price": "$.price"}
    for name, type in (("id", "bigint"), ("x", "string"), ("tag", "string"), ("price", "double")):
        assert get(column, questions[name], type, safe=True).to_pylist() == answers[name].to_pylist(), name
