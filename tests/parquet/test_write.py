"""Files as others see them: duckdb, pyarrow, the Parquet schema; and what is left when writing stops."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.filesystem import NativeFiles
from boathouse.arrow.schema import from_arrow, to_arrow
from boathouse.errors import (
    ConstraintViolationError,
    CorruptTableError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from boathouse.parquet.read import SourceColumn, scan_file
from boathouse.parquet.schema import Dialect, no_id, to_parquet_schema, variant_groups
from boathouse.parquet.thrift_footer import annotate
from boathouse.parquet.write import ParquetOptions, ParquetWriter
from boathouse.storage import StorageOptions
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DataType,
    DecimalType,
    DurationType,
    Field,
    FixedSizeListType,
    FixedType,
    IntegerType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimeType,
)

POINT = StructType((Field("x", INT32, id=21), Field("void", NULL, id=22), Field("u", UUID, id=23)))
INTS = ListType(Field("element", INT32, id=43))
SCHEMA = Schema(
    (
        Field("id", INT64, False, 1),
        Field("b", BOOLEAN, id=2),
        Field("i8", INT8, id=3),
        Field("f", FLOAT, id=4),
        Field("d9", DecimalType(9, 2), id=5),
        Field("d18", DecimalType(18, 2), id=6),
        Field("d38", DecimalType(38, 2), id=7),
        Field("s", STRING, id=8),
        Field("bin", BINARY, id=9),
        Field("fx", FixedType(4), id=10),
        Field("u", UUID, id=11),
        Field("d", DATE, id=12),
        Field("t", TimeType("us"), id=13),
        Field("ts", TIMESTAMP, id=14),
        Field("ntz", TIMESTAMP_NTZ, id=15),
        Field("n", NULL, id=16),
        Field("st", POINT, id=20),
        Field("li", ListType(Field("element", POINT, id=31)), id=30),
        Field("ma", MapType(Field("key", STRING, False, 41), Field("value", INTS, id=42)), id=40),
        Field("v", VARIANT, id=50),
    )
)  # fmt: skip
U = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
POINT_ROW = {"x": 1, "void": None, "u": U.bytes}
ROW: dict[str, Any] = {
    "id": 1, "b": True, "i8": -1, "f": 1.5, "d9": Decimal("1.25"), "d18": Decimal("-3.50"), "d38": Decimal("9.99"),
    "s": "é", "bin": b"\x00", "fx": b"abcd", "u": U.bytes, "d": dt.date(1969, 1, 1), "t": dt.time(1, 2, 3, 4),
    "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), "ntz": dt.datetime(2020, 1, 1), "n": None,
    "st": POINT_ROW, "li": [POINT_ROW, None, {"x": None, "void": None, "u": None}],
    "ma": [("k", [1, None]), ("e", None)],
    "v": {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"},
}  # fmt: skip
EMPTY = dict.fromkeys(ROW) | {"id": 2}


def write(files: Any, path: Path, schema: Schema, rows: list[dict[str, Any]], **options: Any) -> Any:
    batch = pa.RecordBatch.from_pylist(rows, to_arrow(schema))
    with ParquetWriter(files, str(path), to_parquet_schema(schema), ParquetOptions(**options)) as writer:
        writer.write(batch)
    return batch


@pytest.mark.spec("I-292", "I-051")
def test_the_physical_schema(files: Any, tmp_path: Path) -> None:
    write(files, tmp_path / "f.parquet", SCHEMA, [ROW, EMPTY])
    text = str(pq.ParquetFile(tmp_path / "f.parquet").schema)
    for line in (
        "required int64 field_id=1 id;",
        "optional int32 field_id=3 i8 (Int(bitWidth=8, isSigned=true));",
        "optional int32 field_id=5 d9 (Decimal(precision=9, scale=2));",
        "optional int64 field_id=6 d18 (Decimal(precision=18, scale=2));",
        "optional fixed_len_byte_array(16) field_id=7 d38 (Decimal(precision=38, scale=2));",
        "optional fixed_len_byte_array(16) field_id=11 u (UUID);",
        "field_id=13 t (Time(isAdjustedToUTC=false, timeUnit=microseconds",
        "field_id=14 ts (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
        "field_id=15 ntz (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "optional group field_id=30 li (List) {",
        "optional group field_id=31 element {",
        "optional group field_id=40 ma (Map) {",
        "required binary field_id=41 key (String);",
        "optional group field_id=42 value (List) {",
        "optional int32 field_id=43 element;",
        "optional fixed_len_byte_array(16) field_id=23 u (UUID);",
    ):
        assert line in text, line
    assert "void" not in text
    assert "field_id=16" not in text
    assert "int96" not in text


def test_duckdb_reads_the_same_rows(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    write(files, path, SCHEMA, [ROW, EMPTY])
    con = duckdb.connect()
    con.execute("set timezone = 'UTC'")
    query = f"select * exclude (v, ts), epoch_us(ts) as ts from '{path}' order by id"
    got = con.sql(query).to_arrow_table().to_pylist()
    assert got[0]["id"] == 1
    assert got[0]["ts"] == -1
    for name in ("b", "i8", "f", "d9", "d18", "d38", "s", "bin", "fx", "d", "t", "ntz"):
        assert got[0][name] == ROW[name], name
    u = got[0]["u"]
    assert str(u) == str(U)
    assert [e and e["x"] for e in got[0]["li"]] == [1, None, None]
    assert dict(got[0]["ma"]) == {"k": [1, None], "e": None}
    assert all(v is None for name, v in got[1].items() if name != "id")


def test_our_reader_gives_the_batch_back(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    batch = write(files, path, SCHEMA, [ROW, EMPTY] * 3, compression="zstd")
    columns = [SourceColumn(f.name, f.type, None, f.id, None, f.nullable) for f in SCHEMA]
    got = list(scan_file(files, str(path), columns))
    assert pa.Table.from_batches(got) == pa.Table.from_batches([batch])
    assert got[0].schema.equals(to_arrow(SCHEMA))


def test_physical_names_and_no_ids(files: Any, tmp_path: Path) -> None:
    schema = Schema((Field("a", StructType((Field("b", INT32, id=2),)), id=1),))
    dialect = Dialect(_col, no_id)
    assert to_parquet_schema(schema, dialect) == pa.schema([("col-a", pa.struct([("col-b", pa.int32())]))])
    assert to_parquet_schema(schema, dialect).field(0).metadata is None
    with ParquetWriter(files, str(tmp_path / "f.parquet"), to_parquet_schema(schema, dialect)) as writer:
        writer.write(pa.RecordBatch.from_pylist([{"a": {"b": 5}}], to_arrow(schema)))
    assert pq.read_table(tmp_path / "f.parquet").to_pylist() == [{"col-a": {"col-b": 5}}]


def _col(field: Field) -> str:
    return f"col-{field.name}"


VARIANTS = Schema(
    (
        Field("id", INT64, False, 1),
        Field("v", VARIANT, id=2),
        Field("l", ListType(Field("element", StructType((Field("v", VARIANT, False, 5),)), id=4)), id=3),
        Field("m", MapType(Field("key", STRING, False, 7), Field("value", VARIANT, id=8)), id=6),
        Field("z", STRING),
    )
)
SEVEN = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
VARIANT_ROWS: list[dict[str, Any]] = [
    {"id": 1, "v": SEVEN, "l": [{"v": SEVEN}], "m": [("k", SEVEN)], "z": "z" * 200},
    {"id": 2, "v": None, "l": None, "m": [("k", None)], "z": None},
]


@pytest.mark.spec("V-001")
def test_variants_are_annotated(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    assert variant_groups(to_parquet_schema(VARIANTS)) == (
        ("v",),
        ("l", "list", "element", "v"),
        ("m", "key_value", "value"),
    )
    batch = write(files, path, VARIANTS, VARIANT_ROWS, row_group_rows=1, metadata={"a": "b" * 300})
    text = str(pq.ParquetFile(path).schema)
    for line in ("optional group field_id=2 v (Variant(1)) {", "required group field_id=5 v (Variant(1)) {"):
        assert line in text
    assert "optional group field_id=8 value (Variant(1)) {" in text
    assert text.count("Variant(1)") == 3
    assert pq.read_metadata(path).metadata == {b"a": b"b" * 300}
    columns = [SourceColumn(f.name, f.type, None if f.id else (f.name,), f.id, None, f.nullable) for f in VARIANTS]
    assert pa.Table.from_batches(scan_file(files, str(path), columns)) == pa.Table.from_batches([batch])
    assert duckdb.sql(f"select v::json::int from '{path}' order by id").fetchall() == [(7,), (None,)]


@pytest.mark.spec("V-007")
def test_variants_need_not_be_annotated(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    stored = to_parquet_schema(VARIANTS, Dialect(annotate_variants=False))
    with ParquetWriter(files, str(path), stored) as writer:
        writer.write(pa.RecordBatch.from_pylist(VARIANT_ROWS, to_arrow(VARIANTS)))
    assert "Variant" not in str(pq.ParquetFile(path).schema)
    got = pa.Table.from_batches(scan_file(files, str(path), [SourceColumn("v", VARIANT)]))
    assert got["v"].to_pylist() == [SEVEN, None]


def test_a_footer_that_cannot_be_annotated_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [{"b": 1}]}), tmp_path / "f.parquet")
    data = (tmp_path / "f.parquet").read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    assert annotate(footer, []) == footer
    assert len(annotate(footer, [("a",)])) == len(footer) + 7
    with pytest.raises(CorruptTableError, match="no group"):
        annotate(footer, [("b",)])
    for size in range(30):
        with pytest.raises(CorruptTableError):
            annotate(footer[:size], [("a",)])


REFUSED: list[DataType] = [
    IntegerType(32, False),
    FixedSizeListType(Field("element", FLOAT), 3),
    DurationType(),
    DecimalType(50, 2),
    TimeType("ms"),
    ListType(Field("element", NULL)),
    StructType((Field("n", NULL),)),
]


@pytest.mark.parametrize("type", REFUSED, ids=str)
def test_types_without_a_place_are_refused(type: DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match="`x"):
        to_parquet_schema(Schema((Field("x", type),)))


def test_small_batches_are_gathered(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    schema = pa.schema([("a", pa.int64())])
    writer = ParquetWriter(files, str(path), schema, ParquetOptions(row_group_rows=1000))
    for start in range(0, 3500, 70):
        writer.write(pa.record_batch({"a": list(range(start, start + 70))}))
    assert writer.rows == 3500
    summary = writer.close()
    assert [summary.metadata.row_group(i).num_rows for i in range(4)] == [1000, 1000, 1000, 500]
    assert (summary.rows, summary.size) == (3500, path.stat().st_size)
    assert pq.read_table(path)["a"].to_pylist() == list(range(3500))
    writer = ParquetWriter(files, str(path), schema, ParquetOptions(row_group_rows=1000))
    writer.write(pa.record_batch({"a": list(range(2500))}))
    assert writer.close().metadata.num_row_groups == 3


def test_row_groups_close_by_bytes(files: Any, tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.string())])
    writer = ParquetWriter(files, str(tmp_path / "f.parquet"), schema, ParquetOptions(row_group_bytes=100_000))
    for _ in range(10):
        writer.write(pa.record_batch({"s": ["x" * 1000] * 60}))
    assert writer.close().metadata.num_row_groups == 5


def test_bytes_written_follows_the_file(files: Any, tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    writer = ParquetWriter(files, str(tmp_path / "f.parquet"), schema, ParquetOptions(row_group_rows=10_000))
    seen = [writer.bytes_written]
    for start in range(0, 100_000, 5_000):
        writer.write(pa.record_batch({"a": [(i * 2654435761) % 2**40 for i in range(start, start + 5_000)]}))
        seen.append(writer.bytes_written)
    size = writer.close().size
    assert seen[0] == 0
    assert seen[1] > 0
    assert 0.8 * size < seen[-1] < 1.2 * size


def test_dictionaries_only_where_values_repeat(files: Any, tmp_path: Path) -> None:
    rows = 200_000
    columns = {
        "few": [i % 10 for i in range(rows)],
        "many": [f"{i}" for i in range(rows)],
        "mostly_null": [f"{i}" if i % 50 == 0 else None for i in range(rows)],
        # Each value twice, so that it may be worth a dictionary: one of 100,000 texts, which would be given up.
        "large": [f"{i // 2:040}" for i in range(rows)],
        "nothing": pa.nulls(rows, pa.string()),
        "l": pa.array([[str(i % 3)] for i in range(rows)]),
        "s": pa.array([{"few": i % 3, "many": f"{i}", "u": bytes(16)} for i in range(rows)]),
        "m": pa.array([[(i % 3, f"{i}")] for i in range(rows)], pa.map_(pa.int32(), pa.string())),
    }
    table = pa.table(columns)
    writer = ParquetWriter(files, str(tmp_path / "f.parquet"), table.schema, ParquetOptions(row_group_rows=rows))
    for batch in table.to_batches(max_chunksize=30_000):
        writer.write(batch)
    group = writer.close().metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    assert {c.path_in_schema for c in chunks if not c.has_dictionary_page} == {
        "many", "mostly_null", "large", "s.many", "m.key_value.value",
    }  # fmt: skip


def test_an_empty_file_is_readable(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    summary = ParquetWriter(files, str(path), to_parquet_schema(SCHEMA)).close()
    assert summary.rows == 0
    assert duckdb.sql(f"select count(*) from '{path}'").fetchall() == [(0,)]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli", "uncompressed"])
def test_codecs(files: Any, tmp_path: Path, codec: str) -> None:
    path = tmp_path / "f.parquet"
    write(files, path, Schema((Field("a", DOUBLE),)), [{"a": 1.0}] * 100, compression=codec, metadata={"k": "v"})
    assert duckdb.sql(f"select sum(a) from '{path}'").fetchall() == [(100.0,)]
    found = pq.read_metadata(path)
    assert found.row_group(0).column(0).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert found.metadata == {b"k": b"v"}


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="zstd"):
        ParquetOptions(compression="lzo")


def test_abort_leaves_nothing(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(RuntimeError):
        with ParquetWriter(files, str(path), schema, ParquetOptions(row_group_rows=10)) as writer:
            writer.write(pa.record_batch({"a": list(range(25))}))
            assert path.exists()
            raise RuntimeError
    assert not path.exists()
    ParquetWriter(files, str(path), schema).abort()
    assert not path.exists()


def test_rows_that_do_not_fit_are_refused(files: Any, tmp_path: Path) -> None:
    schema = Schema((Field("a", INT32, False), Field("s", StructType((Field("b", INT32, False),)))))
    stored = to_parquet_schema(schema)
    loose = pa.schema([("a", pa.int32()), ("s", pa.struct([("b", pa.int32())]))])

    def attempt(rows: list[dict[str, Any]], held: pa.Schema = loose) -> None:
        with ParquetWriter(files, str(tmp_path / "f.parquet"), stored) as writer:
            writer.write(pa.RecordBatch.from_pylist(rows, held))

    attempt([{"a": 1, "s": {"b": 1}}, {"a": 2, "s": None}])
    with pytest.raises(ConstraintViolationError, match="`a`"):
        attempt([{"a": None, "s": None}])
    with pytest.raises(ConstraintViolationError, match="`b`"):
        attempt([{"a": 1, "s": None}, {"a": 1, "s": {"b": None}}])
    with pytest.raises(SchemaMismatchError, match="1 columns"):
        attempt([{"a": 1}], pa.schema([("a", pa.int32())]))
    with pytest.raises(SchemaMismatchError, match="`a`"):
        attempt([{"a": "x", "s": None}], pa.schema([("a", pa.string()), ("s", loose.field("s").type)]))


def test_other_layouts_are_taken(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    schema = Schema((Field("a", STRING), Field("l", ListType(Field("element", STRING)))))
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["x", None, "x"]).dictionary_encode(),
            pa.array([["p"], None, []], pa.large_list(pa.large_string())),
        ],
        names=["a", "l"],
    ).slice(1, 2)
    with ParquetWriter(files, str(path), to_parquet_schema(schema)) as writer:
        writer.write(batch)
    assert pq.read_table(path).to_pylist() == [{"a": None, "l": None}, {"a": "x", "l": []}]


NESTED = Schema(
    (
        Field("l", ListType(Field("element", POINT, id=2)), id=1),
        Field("m", MapType(Field("key", INT32, False, 4), Field("value", POINT, id=5)), id=3),
        Field("s", StructType((Field("p", POINT, id=7), Field("t", STRING, id=8))), id=6),
    )
)
UUIDS = st.none() | st.binary(min_size=16, max_size=16)
POINTS = st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-5, 5), "void": st.none(), "u": UUIDS})
NESTED_ROWS = st.fixed_dictionaries(
    {
        "l": st.none() | st.lists(POINTS, max_size=3),
        "m": st.none() | st.lists(st.tuples(st.integers(0, 9), POINTS), max_size=3),
        "s": st.none() | st.fixed_dictionaries({"p": POINTS, "t": st.none() | st.text(max_size=3)}),
    }
)


@settings(max_examples=60)
@given(st.lists(NESTED_ROWS, min_size=1, max_size=12), st.integers(0, 11), st.integers(1, 12), st.integers(1, 5))
def test_slices_of_nested_rows_round_trip(
    tmp_path_factory: Any, rows: list[Any], start: int, length: int, group: int
) -> None:
    path = tmp_path_factory.mktemp("nested") / "f.parquet"
    batch = pa.RecordBatch.from_pylist(rows, to_arrow(NESTED)).slice(start, length)
    files = _files()
    with ParquetWriter(files, str(path), to_parquet_schema(NESTED), ParquetOptions(row_group_rows=group)) as writer:
        writer.write(batch)
    columns = [SourceColumn(f.name, f.type, None, f.id) for f in NESTED]
    got = pa.Table.from_batches(scan_file(files, str(path), columns), to_arrow(NESTED))
    got.validate(full=True)
    assert got.to_pylist() == batch.to_pylist()
    theirs = duckdb.sql(f"select len(l) as l, cardinality(m)::int as m, s.p.x as x from '{path}'").fetchall()
    assert theirs == [
        (
            None if r["l"] is None else len(r["l"]),
            None if r["m"] is None else len(r["m"]),
            r["s"]["p"]["x"] if r["s"] and r["s"]["p"] else None,
        )
        for r in batch.to_pylist()
    ]


def _files() -> Any:
    class Files:
        def open_output(self, uri: str) -> pa.NativeFile:
            return pa.OSFile(uri, "wb")

        def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
            return pa.OSFile(uri, "rb")

    return Files()


def test_members_that_may_not_be_null_below_a_null_struct(tmp_path):
    """pyarrow counts them as null and would refuse to write; duckdb and pyarrow read them back."""
    inner = pa.struct(
        [
            pa.field("a", pa.int32(), False),
            pa.field("l", pa.list_(pa.string()), False),
            pa.field("t", pa.struct([pa.field("q", pa.string(), False)]), False),
        ]
    )
    rows = [{"a": 1, "l": ["x"], "t": {"q": "z"}}, None, {"a": 2, "l": [], "t": {"q": ""}}, None]
    table = pa.table({"s": pa.array(rows, inner), "ls": pa.array([[r] for r in rows], pa.list_(inner))})
    uri = f"file://{tmp_path}/x.parquet"
    with ParquetWriter(NativeFiles(StorageOptions()), uri, to_parquet_schema(from_arrow(table.schema))) as writer:
        for batch in table.slice(1).to_batches():
            writer.write(batch)
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == table.slice(1).to_pylist()
    assert duckdb.sql(f"select s.t.q from '{tmp_path}/x.parquet'").fetchall() == [(None,), ("",), (None,)]
