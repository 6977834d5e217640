"""Files written by Spark: golden Delta tables against their expected rows, and fresh ones of every timestamp kind."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boathouse.arrow.schema import to_arrow
from boathouse.delta.schema import parse_schema
from boathouse.parquet.read import SourceColumn, output_schema, scan_file
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.write import ParquetWriter
from boathouse.types import (
    DATE,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DecimalType,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
)
from boathouse.variant import Variant

UTC = dt.UTC


def scan(files: Any, path: Path, columns: list[SourceColumn]) -> pa.Table:
    return pa.Table.from_batches(scan_file(files, str(path), columns), output_schema(columns))


def golden(corpora: Path, name: str) -> tuple[list[SourceColumn], list[Path], Path]:
    """A table of one commit: its data columns, its files and the folder of its expected rows."""
    folder = corpora / "delta" / "golden" / name
    log = folder / "delta" / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (meta,) = [a["metaData"] for a in actions if "metaData" in a]
    files = [folder / "delta" / unquote(a["add"]["path"]) for a in actions if "add" in a]
    fields = [f for f in parse_schema(meta["schemaString"], "log") if f.name not in meta["partitionColumns"]]
    return [SourceColumn(f.name, f.type) for f in fields], files, folder / "expected"


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "name",
    [
        "parquet-all-types",
        "parquet-all-types-legacy-format",
        "parquet-decimal-type",
        "parquet-decimal-dictionaries",
        "parquet-decimal-dictionaries-v2",
        "decimal-various-scale-precision",
        "data-reader-primitives",
        "data-reader-array-primitives",
        "data-reader-array-complex-objects",
        "data-reader-map",
        "data-reader-nested-struct",
        "kernel-timestamp-int96",
        "kernel-timestamp-pst",
        "kernel-timestamp-timestamp_micros",
        "kernel-timestamp-timestamp_millis",
    ],
)
def test_golden_tables(corpora: Path, files: Any, name: str) -> None:
    columns, paths, expected = golden(corpora, name)
    got = pa.concat_tables([scan(files, path, columns) for path in paths])
    selected = ", ".join(_as_is(c) for c in columns)
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    theirs = con.sql(f"select {selected} from read_parquet('{expected}/*.parquet')").to_arrow_table()
    assert got.num_rows == theirs.num_rows > 0
    if got.num_rows > 10_000:
        con.register("got", got)
        con.register("theirs", theirs)
        for one, other in (("got", "theirs"), ("theirs", "got")):
            assert con.sql(f"select * from {one} except all select * from {other} limit 5").fetchall() == []
        return
    assert _rows(got) == _rows(theirs)


def _as_is(column: SourceColumn) -> str:
    """duckdb reads INT96 as zoneless; the table says what it is."""
    if column.type == TIMESTAMP:
        return f'epoch_us("{column.name}"::timestamptz)::bigint as "{column.name}"'
    return f'"{column.name}"'


def _rows(table: pa.Table) -> list[str]:
    columns = []
    for column in table.columns:
        whole = column.combine_chunks()
        instant = pa.types.is_timestamp(whole.type) and whole.type.tz
        columns.append((whole.cast(pa.int64()) if instant else whole).to_pylist())
    return sorted(str([_plain(v) for v in row]) for row in zip(*columns))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


INSTANTS = [
    dt.datetime(1500, 1, 1, 12, tzinfo=UTC),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
    dt.datetime(2020, 2, 29, 1, 2, 3, 4_000, UTC),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC),
    None,
]


@pytest.mark.spark
@pytest.mark.spec("D-287")
def test_every_kind_of_timestamp_that_spark_writes(spark: Any, files: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pa.table({"t": pa.array(INSTANTS, pa.timestamp("us", "UTC"))})).coalesce(1)
    for kind, physical in (("INT96", "int96"), ("TIMESTAMP_MICROS", "int64"), ("TIMESTAMP_MILLIS", "int64")):
        out = tmp_path / kind
        frame.write.option("spark.sql.parquet.outputTimestampType", kind).parquet(str(out))
        for path in out.glob("*.parquet"):
            assert f"{physical} field_id=-1 t" in str(pq.ParquetFile(path).schema)
        got = [
            v
            for path in out.glob("*.parquet")
            for v in scan(files, path, [SourceColumn("t", TIMESTAMP)])["t"].to_pylist()
        ]
        assert sorted(got, key=str) == sorted(INSTANTS, key=str), kind
    naive = frame.selectExpr("cast(t as timestamp_ntz) as t")
    naive.write.parquet(str(tmp_path / "ntz"))
    (path,) = (tmp_path / "ntz").glob("*.parquet")
    got = scan(files, path, [SourceColumn("t", TIMESTAMP_NTZ)])["t"].to_pylist()
    assert [v and v.replace(tzinfo=UTC) for v in got] == INSTANTS


@pytest.mark.spark
def test_legacy_lists_and_maps_by_spark(spark: Any, files: Any, tmp_path: Path) -> None:
    frame = spark.sql(
        "select id, array(cast(id as int), null) l, array(named_struct('a', id, 'b', cast(id as string))) ls, "
        "map('k', id, 'n', null) m, cast(id as decimal(9,2)) d from range(0, 1000, 1, 1)"
    )
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try:
        frame.write.parquet(str(tmp_path / "legacy"))
    finally:
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    (path,) = (tmp_path / "legacy").glob("*.parquet")
    assert "array" in str(pq.ParquetFile(path).schema)
    schema = parse_schema(frame.schema.json(), "spark")
    got = scan(files, path, [SourceColumn(f.name, f.type, nullable=f.nullable) for f in schema])
    assert got.num_rows == 1000
    assert got.slice(7, 1).to_pylist() == [
        {"id": 7, "l": [7, None], "ls": [{"a": 7, "b": "7"}], "m": [("k", 7), ("n", None)], "d": Decimal("7.00")}
    ]
    pruned = StructType((Field("b", STRING), Field("z", STRING)))
    got = scan(files, path, [SourceColumn("ls", ListType(Field("element", pruned)))])
    assert got.slice(7, 1).to_pylist() == [{"ls": [{"b": "7", "z": None}]}]


@pytest.mark.spark
@pytest.mark.route("Parquet files")
def test_spark_reads_our_files(spark: Any, files: Any, tmp_path: Path) -> None:
    schema = Schema(
        (
            Field("id", INT64, id=1),
            Field("d", DecimalType(12, 3), id=2),
            Field("t", TIMESTAMP, id=3),
            Field("n", TIMESTAMP_NTZ, id=4),
            Field("day", DATE, id=5),
            Field("l", ListType(Field("element", StructType((Field("s", STRING, id=8),)), id=7)), id=6),
            Field("m", MapType(Field("key", STRING, False, 10), Field("value", INT64, id=11)), id=9),
        )
    )
    rows = [
        {
            "id": i,
            "d": i,
            "t": INSTANTS[i],
            "n": dt.datetime(1969, 1, 1),
            "day": dt.date(1969, 1, 1),
            "l": [{"s": "x"}, None],
            "m": [("k", i)],
        }
        for i in range(4)
    ]
    path = tmp_path / "ours.parquet"
    with ParquetWriter(files, str(path), to_parquet_schema(schema)) as writer:
        batch = pa.RecordBatch.from_pylist(rows, to_arrow(schema))
        writer.write(batch)
    frame = spark.read.parquet(str(path))
    assert frame.schema.simpleString() == (
        "struct<id:bigint,d:decimal(12,3),t:timestamp,n:timestamp_ntz,day:date,"
        "l:array<struct<s:string>>,m:map<string,bigint>>"
    )
    theirs = frame.toArrow()
    assert theirs.column("t").cast(pa.int64()).to_pylist() == batch.column("t").cast(pa.int64()).to_pylist()
    for name in ("id", "d", "n", "day", "l", "m"):
        assert theirs.column(name).to_pylist() == batch.column(name).to_pylist(), name
    assert frame.where("d >= 2").count() == 2


@pytest.mark.spark
def test_variants_by_spark(spark: Any, files: Any, tmp_path: Path) -> None:
    frame = spark.sql("select parse_json('{\"a\": 1}') v, id from range(0, 3, 1, 1)")
    frame.write.parquet(str(tmp_path / "shredded"))
    (path,) = (tmp_path / "shredded").glob("*.parquet")
    assert "typed_value" in str(pq.ParquetFile(path).schema)
    shredded = scan(files, path, [SourceColumn("v", VARIANT)])
    spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    try:
        frame.write.parquet(str(tmp_path / "plain"))
    finally:
        spark.conf.unset("spark.sql.variant.writeShredding.enabled")
    (path,) = (tmp_path / "plain").glob("*.parquet")
    got = scan(files, path, [SourceColumn("v", VARIANT)])
    assert [Variant(**r["v"]) for r in shredded.to_pylist()] == [Variant(**r["v"]) for r in got.to_pylist()]
    ours = tmp_path / "ours.parquet"
    schema = Schema((Field("v", VARIANT),))
    with ParquetWriter(files, str(ours), to_parquet_schema(schema)) as writer:
        for batch in got.to_batches():
            writer.write(batch)
    assert "v (Variant(1))" in str(pq.ParquetFile(ours).schema)
    again = spark.read.parquet(str(ours))
    assert again.schema.simpleString() == "struct<v:variant>"
    assert [r[0] for r in again.selectExpr("to_json(v)").collect()] == ['{"a":1}'] * 3
