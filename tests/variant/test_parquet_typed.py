"""Each typed column of shredded files: written, read back exactly, seen by others; types outside the table; layouts."""

from __future__ import annotations

import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.errors import ConstraintViolationError, UnsupportedTypeError
from boathouse.parquet.thrift_footer import annotate, annotated, read_footer_bytes
from boathouse.types import TimestampType
from boathouse.variant import Variant, build_metadata, parse_metadata
from boathouse.variant.shredding.schema import ShreddedArray, ShreddedObject, ShreddingSchema
from makers.shredding import schemas_for
from makers.variants import Tree, columns, scalar_bytes, tree_of

EMPTY = b"\x11\x00\x00"
FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
LONGS = [-(2**63), -1, 0, 1_730_982_834_123_456, 2**63 - 1]
# Type -> contents at its limits, what shreds it, and what DuckDB calls it.
TYPED: dict[str, tuple[list[Any], Any, str | None]] = {
    "boolean": ([True, False], "boolean", "BOOL"),
    "int8": ([-128, 127], "tinyint", "INT8"),
    "int16": ([-(2**15), 2**15 - 1], "smallint", "INT16"),
    "int32": ([-(2**31), 2**31 - 1], "int", "INT32"),
    "int64": ([-(2**63), 2**63 - 1], "bigint", "INT64"),
    "float": ([struct.pack("<f", x) for x in (1.5, -0.0, float("nan"), float("inf"))], "float", "FLOAT"),
    "double": ([struct.pack("<d", x) for x in (0.1, -0.0, float("nan"), float("-inf"))], "double", "DOUBLE"),
    "decimal4": ([(110, 2), (-(10**9) + 1, 2)], "decimal(9,2)", "DECIMAL"),
    "decimal8": ([(110, 2), (10**18 - 1, 2)], "decimal(18,2)", "DECIMAL"),
    "decimal16": ([(110, 2), (1 - 10**38, 2), (10**38 - 1, 2)], "decimal(38,2)", "DECIMAL"),
    "date": ([-719_162, -1, 0, 2_932_896], "date", "DATE"),
    "time": ([0, 86_399_999_999], "time", "TIME_MICROS"),
    "timestamp": (LONGS, "timestamp", None),
    "timestamp_ntz": (LONGS, "timestamp_ntz", None),
    "timestamp_nanos": (LONGS, ShreddingSchema(TimestampType(True, "ns")), None),
    "timestamp_ntz_nanos": (LONGS, ShreddingSchema(TimestampType(False, "ns")), None),
    "binary": ([b"", b"\xff" * 70], "binary", "BLOB"),
    "string": (["", "～😀" * 20], "string", "VARCHAR"),
    "uuid": ([bytes(range(16))], "uuid", "UUID"),
}


def column(values: list[Variant | None]) -> pa.Table:
    rows = [v and {"metadata": v.metadata, "value": v.value} for v in values]
    return pa.table([pa.array(rows, VARIANT_STORAGE)], schema=pa.schema([FIELD]))


def variants(array: Any) -> list[Variant | None]:
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in array.to_pylist()]


def annotate_file(path: Path) -> None:
    data = path.read_bytes()
    with path.open("rb") as stream:
        old = read_footer_bytes(stream, len(data))
    new = annotate(old, [("v",)])
    path.write_bytes(data[: -8 - len(old)] + new + len(new).to_bytes(4, "little") + b"PAR1")


def exact(kind: str) -> list[Variant | None]:
    return [Variant(EMPTY, scalar_bytes(Tree(kind, content))) for content in TYPED[kind][0]]


def test_the_table_has_nineteen_types() -> None:
    assert len(TYPED) == 19


@pytest.mark.spec("V-069", "V-081", "V-047")
@pytest.mark.parametrize("kind", TYPED)
def test_every_type_of_the_table_goes_through_a_file(tmp_path: Path, kind: str) -> None:
    """At the top, in a field and in the elements of an array, beside values of other types."""
    path = tmp_path / "f.parquet"
    at_top = [*exact(kind), None, Variant(EMPTY, b"\x00"), Variant(EMPTY, b"\x09zz"), Variant.from_python([1])]
    inside = [Variant.from_python({"a": v, "l": [v, None, "zz"]}) for v in exact(kind)]
    typed = TYPED[kind][1] if isinstance(TYPED[kind][1], ShreddingSchema) else None
    if typed is None:
        nested: Any = f"struct<a:{TYPED[kind][1]},l:array<{TYPED[kind][1]}>>"
    else:
        nested = ShreddingSchema(pa_struct(typed))
    for values, shred in ((at_top, TYPED[kind][1]), (inside, nested)):
        bh.write_parquet(column(values), path, shred={"v": shred})
        found = variants(bh.read_parquet(path)["v"])
        assert [v and tree_of(v) for v in found] == [v and tree_of(v) for v in values]
        assert [v and v.value for v in found] == [v and v.value for v in values]
        stored = pq.ParquetFile(path, arrow_extensions_enabled=False).read()["v"].combine_chunks()
        if values is inside:
            stored = stored.field("typed_value").field("a")
        kept = [i for i, one in enumerate(values) if values is inside or (one is not None and one.type == kind)]
        assert [i for i in range(len(values)) if stored.field("typed_value")[i].is_valid] == kept


def pa_struct(leaf: ShreddingSchema) -> Any:
    return ShreddedObject((("a", leaf), ("l", ShreddingSchema(ShreddedArray(leaf)))))


@st.composite
def columns_with_schemas(draw: Any) -> tuple[list[Variant | None], ShreddingSchema]:
    rows = draw(columns())
    some = [tree_of(row) for row in rows if row is not None]
    return rows, draw(schemas_for(draw(st.sampled_from(some)) if some else None))


@pytest.mark.spec("V-081", "V-067", "V-008")
@settings(max_examples=25)
@given(columns_with_schemas(), st.booleans())
def test_any_column_goes_through_a_file_under_any_schema(
    tmp_path_factory: Any, drawn: tuple[list[Variant | None], ShreddingSchema], auto: bool
) -> None:
    rows, schema = drawn
    path = tmp_path_factory.getbasetemp() / "any.parquet"
    bh.write_parquet(column(rows), path, shred="auto" if auto else {"v": schema}, row_group_rows=3)
    found = variants(bh.read_parquet(path)["v"])
    assert [v and tree_of(v) for v in found] == [v and tree_of(v) for v in rows]
    assert found == rows
    assert [v and v.metadata for v in found] == [v and v.metadata for v in rows]


@pytest.mark.spec("V-069", "V-001")
@pytest.mark.parametrize("kind", [kind for kind in TYPED if TYPED[kind][2]])
def test_duckdb_sees_the_type_of_each_typed_column(tmp_path: Path, kind: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    values = [v for v in exact(kind) if v is not None]
    bh.write_parquet(column(list(values)), path, shred={"v": TYPED[kind][1]})
    kinds = duckdb.sql(f"select variant_typeof(v) from '{path}'").fetchall()
    if kind == "boolean":
        assert kinds == [("BOOL_TRUE",), ("BOOL_FALSE",)]
    else:
        assert {k[0].partition("(")[0] for k in kinds} == {TYPED[kind][2]}
    found = [row[0] for row in duckdb.sql(f"select v from '{path}'").fetchall()]
    assert repr(found) == repr([v.to_python() for v in values])


@pytest.mark.spark
@pytest.mark.spec("V-069", "V-001")
def test_spark_reads_the_typed_columns_that_it_knows(spark: Any, tmp_path: Path) -> None:
    kinds = [k for k in TYPED if k not in ("time", "timestamp_nanos", "timestamp_ntz_nanos", "uuid")]
    limits = {
        "timestamp": [0, -1],
        "timestamp_ntz": [0, -1],
        "float": TYPED["float"][0][:1],
        "double": TYPED["double"][0][:1],
    }
    asked = {"date": "unix_date(variant_get(v, '$', 'date'))",
             "timestamp": "unix_micros(variant_get(v, '$', 'timestamp'))",
             "timestamp_ntz": "unix_micros(cast(variant_get(v, '$', 'timestamp_ntz') as timestamp))"}  # fmt: skip
    for kind in kinds:
        contents = limits.get(kind, TYPED[kind][0])
        values = [Variant(EMPTY, scalar_bytes(Tree(kind, content))) for content in contents]
        path = tmp_path / f"{kind}.parquet"
        bh.write_parquet(column(list(values)), path, shred={"v": TYPED[kind][1]})
        get = asked.get(kind, f"variant_get(v, '$', '{TYPED[kind][1]}')")
        found = [row[0] for row in spark.read.parquet(str(path)).selectExpr(get).collect()]
        if kind in ("float", "double"):
            assert found == [v.to_python() for v in values], kind
        elif kind.startswith("decimal"):
            assert found == [
                Decimal(n).scaleb(-2) if abs(n) < 10**20 else v.to_python() for (n, _), v in zip(contents, values)
            ]
        else:
            assert [bytes(f) if isinstance(f, bytearray) else f for f in found] == contents, kind


@pytest.mark.spec("V-069")
@pytest.mark.parametrize(
    ("typed", "match"),
    [
        (pa.array([5], pa.uint32()), "uint32"), (pa.array([b"abcd"], pa.binary(4)), r"fixed\(4\)"),
        (pa.array([5], pa.uint8()), "uint8"), (pa.array([5], pa.time32("ms")), "time"),
    ],
)  # fmt: skip
def test_files_of_types_outside_the_table_are_refused(tmp_path: Path, typed: pa.Array, match: str) -> None:
    path = tmp_path / "f.parquet"
    fields = [
        pa.field("metadata", pa.binary(), False),
        pa.field("value", pa.binary()),
        pa.field("typed_value", typed.type),
    ]
    stored = pa.StructArray.from_arrays([pa.array([EMPTY]), pa.nulls(1, pa.binary()), typed], fields=fields)
    pq.write_table(pa.table({"v": stored}), path)
    annotate_file(path)
    with pytest.raises(UnsupportedTypeError, match=match):
        bh.read_parquet(path)
    with pytest.raises(UnsupportedTypeError, match=match):
        bh.read_parquet(path, columns={"x": "variant_get(v, '$', 'int')"})


@pytest.mark.spec("V-003", "V-067", "V-071")
def test_value_columns_may_be_missing_at_every_level(tmp_path: Path) -> None:
    """As other writers leave them out (cases 41, 131, 138 of the public corpus): at the top, in elements and fields."""
    element = pa.struct([pa.field("typed_value", pa.string())])
    fields = pa.struct([
        pa.field("a", pa.struct([pa.field("typed_value", pa.int32())])),
        pa.field("l", pa.struct([pa.field("typed_value", pa.list_(pa.field("element", element)))])),
    ])  # fmt: skip
    stored = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("typed_value", fields)])
    metadata = build_metadata(["a", "l"])
    rows = [
        {"metadata": metadata, "typed_value": {"a": {"typed_value": 1}, "l": {"typed_value": [{"typed_value": "x"}]}}},
        {"metadata": metadata, "typed_value": {"a": {"typed_value": None}, "l": {"typed_value": [{}]}}},
        None,
        {"metadata": metadata, "typed_value": None},
    ]  # fmt: skip
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": pa.array(rows, stored)}), path)
    for mark in (False, True):
        if mark:
            annotate_file(path)
        found = variants(bh.read_parquet(path, variants=["v"])["v"])
        assert [v and v.to_python() for v in found] == [{"a": 1, "l": ["x"]}, {"l": [None]}, None, None]
        assert found[2] is None and found[3] is not None and found[3].value == b"\x00"
        paths = {"a": "variant_get(v, '$.a', 'int')", "l": "variant_get(v, '$.l[0]', 'string')"}
        got = bh.read_parquet(path, columns=paths, variants=["v"]).to_pydict()
        assert got == {"a": [1, None, None, None], "l": ["x", None, None, None]}


@pytest.mark.spec("V-003", "V-004")
@pytest.mark.parametrize("shred", [None, "struct<a:tinyint>"])
def test_nullable_metadata_is_never_written(tmp_path: Path, shred: str | None) -> None:
    loose = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    rows = [{"metadata": build_metadata(["a"]), "value": Variant.from_python({"a": 1}).value}, None]
    path = tmp_path / "f.parquet"
    how = None if shred is None else {"v": shred}
    bh.write_parquet(pa.table({"v": pa.array(rows, loose)}), path, variants=["v"], shred=how)
    text = str(pq.ParquetFile(path).schema)
    assert "required binary field_id=-1 metadata;" in text
    assert ("required" if shred is None else "optional") + " binary field_id=-1 value;" in text
    assert [v and v.to_python() for v in variants(bh.read_parquet(path)["v"])] == [{"a": 1}, None]
    lacking = pa.array([rows[0], {"metadata": None, "value": b"\x00"}], loose)
    with pytest.raises(ConstraintViolationError, match="`metadata` is not null"):
        bh.write_parquet(pa.table({"v": lacking}), tmp_path / "bad.parquet", variants=["v"], shred=how)
    assert not (tmp_path / "bad.parquet").exists()


@pytest.mark.spec("V-070")
def test_the_metadata_that_is_written_holds_the_shredded_names_too(tmp_path: Path) -> None:
    values = [Variant.from_python({"a": {"b": i, "z": 1}, "l": [{"c": i}], f"r{i}": i}) for i in range(3)]
    path = tmp_path / "f.parquet"
    bh.write_parquet(column(list(values)), path, shred={"v": "struct<a:struct<b:tinyint>,l:array<struct<c:tinyint>>>"})
    stored = pq.ParquetFile(path).read()["v"].to_pylist()
    for i, row in enumerate(stored):
        assert set(parse_metadata(row["metadata"]).names()) == {"a", "b", "z", "l", "c", f"r{i}"}
        # Every `value` of the row is read with that one dictionary.
        assert Variant(row["metadata"], row["value"]).keys() == (f"r{i}",)
        assert Variant(row["metadata"], row["typed_value"]["a"]["value"]).to_python() == {"z": 1}
        assert row["typed_value"]["l"]["typed_value"][0]["typed_value"]["c"]["typed_value"] == i


@pytest.mark.spec("V-071", "V-074")
def test_nulls_of_elements_and_fields_as_they_are_stored(tmp_path: Path) -> None:
    values = [Variant.from_python(v) for v in ({"a": None, "l": [None, "x", 5]}, {"l": []}, {"l": None})]
    path = tmp_path / "f.parquet"
    bh.write_parquet(column(list(values)), path, shred={"v": "struct<a:string,l:array<string>>"})
    typed = [row["typed_value"] for row in pq.ParquetFile(path).read()["v"].to_pylist()]
    assert [t["a"] for t in typed] == [{"value": b"\x00", "typed_value": None}] + [
        {"value": None, "typed_value": None}
    ] * 2
    assert typed[0]["l"] == {"value": None, "typed_value": [
        {"value": b"\x00", "typed_value": None}, {"value": None, "typed_value": "x"},
        {"value": b"\x0c\x05", "typed_value": None},
    ]}  # fmt: skip
    assert typed[1]["l"] == {"value": None, "typed_value": []}
    assert typed[2]["l"] == {"value": b"\x00", "typed_value": None}


@pytest.mark.spark
@pytest.mark.spec("V-082", "V-007")
def test_files_that_spark_does_not_annotate(spark: Any, tmp_path: Path) -> None:
    """As Spark 4.0 wrote them; shredded, and not."""
    name = "spark.sql.parquet.variant.annotateLogicalType.enabled"
    frame = spark.sql("""select parse_json(j) v from values ('{"a": 1, "b": "x"}'), ('{"a": 2}'), (null) as t(j)""")
    spark.conf.set(name, "false")
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "shredded"))
        spark.conf.set("spark.sql.variant.writeShredding.enabled", "false")
        frame.coalesce(1).write.parquet(str(tmp_path / "plain"))
    finally:
        spark.conf.unset(name)
        spark.conf.unset("spark.sql.variant.writeShredding.enabled")
    for folder in ("shredded", "plain"):
        (path,) = (tmp_path / folder).glob("*.parquet")
        with path.open("rb") as stream:
            assert annotated(read_footer_bytes(stream, path.stat().st_size)) == ()
        assert ("typed_value" in str(pq.ParquetFile(path).schema)) == (folder == "shredded")
        found = variants(bh.read_parquet(path, variants=["v"])["v"])
        assert [v and v.to_python() for v in found] == [{"a": 1, "b": "x"}, {"a": 2}, None]
        got = bh.read_parquet(path, columns={"a": "variant_get(v, '$.a', 'int')"}, variants=["v"])
        assert got["a"].to_pylist() == [1, 2, None]
