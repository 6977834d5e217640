"""Where Spark, pyspark, DuckDB, polars and pyarrow leave the specification, or us; each with our answer beside.

A test that fails here says that another library has changed: the list in docs/variant.md is then to be brought up to
date, and what avoids the divergence may go. What a later release does no more is kept in files of the earlier one
(`files/`), since its files stay. The numbers are those of the traps in the project's notes on Variant.
"""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

import boathouse as bh
from boathouse.arrow.schema import VARIANT_STORAGE
from boathouse.errors import InvalidJsonError, MalformedVariant
from boathouse.parquet.thrift_footer import annotate, read_footer_bytes
from boathouse.variant import Variant, VariantBuilder
from boathouse.variant.spark import SPARK_VARIANT, to_spark

EMPTY = b"\x11\x00\x00"
REVERSED = {f"k{i:02d}": i for i in reversed(range(40))}
DUCKDB_2_0_0 = str(Path(__file__).parent / "files" / "duckdb-2.0.0-{}.parquet")
TWICE = Variant(b"\x01\x02\x00\x01\x02aa", bytes([2, 2, 0, 1, 0, 2, 4, 0x0C, 1, 0x0C, 2]))
BEYOND_BMP = '{"😀":1,"～":2}'


class _Bytes(NamedTuple):
    metadata: bytes
    value: bytes


def built(kind: str, value: Any) -> Variant:
    builder = VariantBuilder()
    getattr(builder, f"append_{kind}")(value)
    return builder.finish()


def storage(*values: Variant) -> pa.Array:
    return pa.array([{"metadata": v.metadata, "value": v.value} for v in values], VARIANT_STORAGE)


def read(path: Path) -> list[Variant | None]:
    rows = bh.read_parquet(path).column(0).to_pylist()
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in rows]


@pytest.fixture(scope="module")
def duckdb() -> Any:
    return pytest.importorskip("duckdb")


def of_duckdb(duckdb: Any, sql: str) -> list[Variant | None]:
    rows = duckdb.sql(f"select {sql}::variant v").to_arrow_table().column(0).to_pylist()
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in rows]


@pytest.fixture(scope="module")
def shown(spark: Any) -> Any:
    """Spark's answers over variants, row by row."""

    def answers(values: list[Variant], *expressions: str) -> list[tuple[Any, ...]]:
        table = pa.table([to_spark(storage(*values))], schema=pa.schema([pa.field("v", SPARK_VARIANT)]))
        return [tuple(row) for row in spark.createDataFrame(table).selectExpr(*expressions).collect()]

    return answers


def fails(shown: Any, v: Variant) -> str:
    with pytest.raises(Exception) as error:
        shown([v], "to_json(v)")
    return str(error.value)


# Field order: traps 1 and 2.


def reversed_by_duckdb() -> Variant:
    """An object whose fields DuckDB 2.0.0 left in the order of their insertion."""
    (theirs,) = read(Path(DUCKDB_2_0_0.format("reversed")))
    return theirs


@pytest.mark.spec("V-034")
def test_duckdb_keeps_the_order_of_insertion_and_we_find_every_key(duckdb: Any) -> None:
    theirs = reversed_by_duckdb()
    assert list(theirs.keys()) == list(REVERSED)
    assert [f.kind for f in theirs.validate()] == ["oddity"]
    (installed,) = of_duckdb(duckdb, f"'{json.dumps(REVERSED)}'::json")
    assert installed == theirs == Variant.from_python(REVERSED)
    assert all(theirs.get(f"$.{k}") == Variant.from_python(i) for k, i in REVERSED.items())
    assert list(Variant.from_python(REVERSED).keys()) == sorted(REVERSED)


@pytest.mark.spark
@pytest.mark.spec("V-034")
def test_spark_loses_keys_of_duckdbs_wide_objects(shown: Any) -> None:
    theirs = reversed_by_duckdb()
    expressions = [f"variant_get(v, '$.{k}', 'int')" for k in ("k00", "k05", "k39")]
    assert shown([theirs], *expressions, "is_valid_variant(v)") == [(None, None, None, True)]
    rewritten = Variant.from_python(theirs.to_python())
    assert shown([rewritten], *expressions) == [(0, 5, 39)]


@pytest.mark.spark
@pytest.mark.spec("V-020")
def test_spark_orders_names_by_utf_16(spark: Any) -> None:
    row = spark.sql(f"select parse_json('{BEYOND_BMP}') v").collect()[0][0]
    theirs, ours = Variant(row.metadata, row.value), Variant.from_json(BEYOND_BMP)
    assert list(theirs.keys()) == ["😀", "～"]
    assert list(ours.keys()) == ["～", "😀"]
    assert [f.kind for f in theirs.validate()] == ["oddity"]
    assert theirs == ours
    assert theirs.get("$.～") == ours.get("$.～")


# JSON: traps 9 and 24.


@pytest.mark.spec("V-064")
@pytest.mark.parametrize(
    ("text", "theirs", "ours"),
    [
        ("1", ("int64", 1), ("int8", 1)),
        ("1.10", ("double", 1.1), ("decimal4", Decimal("1.10"))),
        ("1e3", ("double", 1000.0), ("double", 1000.0)),
    ],
)
def test_duckdb_knows_int64_and_double_only(duckdb: Any, text: str, theirs: Any, ours: Any) -> None:
    (v,) = of_duckdb(duckdb, f"'{text}'::json")
    assert (v.type, v.to_python()) == theirs
    mine = Variant.from_json(text)
    assert (mine.type, mine.to_python()) == ours


@pytest.mark.spec("V-064")
def test_duckdb_refuses_integers_beyond_int64(duckdb: Any) -> None:
    with pytest.raises(duckdb.Error, match="UINT64"):
        of_duckdb(duckdb, "'12345678901234567890'::json")
    assert Variant.from_json("12345678901234567890").type == "decimal16"


@pytest.mark.spec("V-064")
def test_duplicate_keys_of_json(duckdb: Any) -> None:
    text = '{"a":1,"a":2}'
    (theirs,) = of_duckdb(duckdb, f"'{text}'::json")
    assert theirs.to_python() == {"a": 2}
    types = pytest.importorskip("pyspark.sql.types")
    assert types.VariantVal.parseJson(text).toJson() == '{"a":2}'
    with pytest.raises(InvalidJsonError, match=r"twice|duplicate|again"):
        Variant.from_json(text)


@pytest.mark.spec("V-064")
def test_pyspark_parses_nan(duckdb: Any) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    assert types.VariantVal.parseJson("NaN").toJson() == "nan"
    with pytest.raises(InvalidJsonError):
        Variant.from_json("NaN")


@pytest.mark.spark
@pytest.mark.spec("V-064")
def test_spark_takes_text_behind_the_value_and_drops_the_sign_of_zero(spark: Any) -> None:
    row = spark.sql("""select to_json(parse_json('{"a":1} x')), schema_of_variant(parse_json('-0.0')),
                       to_json(parse_json('-0.0')), to_json(parse_json('1.10'))""").collect()[0]
    assert tuple(row) == ('{"a":1}', "DECIMAL(1,0)", "0", "1.1")
    with pytest.raises(InvalidJsonError):
        Variant.from_json('{"a":1} x')
    assert Variant.from_json("1.10").to_json() == "1.10"


# Nulls: trap 19.


@pytest.mark.spec("V-008")
def test_duckdb_has_one_null(duckdb: Any, tmp_path: Path) -> None:
    assert of_duckdb(duckdb, "unnest(['null'::json::variant, null])") == [None, None]
    duckdb.sql(f"copy (select 'null'::json::variant v) to '{tmp_path / 'null.parquet'}'")
    assert read(tmp_path / "null.parquet") == [None]
    bh.write_parquet(pa.table({"v": storage(Variant.from_json("null"))}), tmp_path / "ours.parquet", variants=["v"])
    assert duckdb.sql(f"select v is null from '{tmp_path / 'ours.parquet'}'").fetchall() == [(True,)]
    assert read(tmp_path / "ours.parquet") == [Variant.from_json("null")]


# Types that others do not read: traps 10 and 12.


@pytest.mark.spark
@pytest.mark.spec("V-051", "V-054")
@pytest.mark.parametrize(("kind", "id"), [("time", 17), ("timestamp_nanos", 18), ("timestamp_ntz_nanos", 19)])
def test_spark_does_not_read_times_and_nanoseconds(shown: Any, kind: str, id: int) -> None:
    value = built(kind, 1_000_000_000)
    assert f"Unknown primitive type with id {id}" in fails(shown, value)
    types = pytest.importorskip("pyspark.sql.types")
    with pytest.raises(Exception, match="MALFORMED_VARIANT"):
        types.VariantVal(value.value, value.metadata).toPython()
    assert value.scalar == 1_000_000_000
    assert value.validate() == ()


# Bytes that are no variant: traps 9, 13, 14, 15.


@pytest.mark.spark
@pytest.mark.spec("V-035")
def test_spark_prints_duplicate_fields(shown: Any) -> None:
    assert shown([TWICE], "to_json(v)", "is_valid_variant(v)") == [('{"a":1,"a":2}', True)]
    with pytest.raises(MalformedVariant):
        TWICE.to_python()
    assert "error" in [f.kind for f in TWICE.validate()]


@pytest.mark.spark
@pytest.mark.spec("V-015")
def test_spark_replaces_what_is_no_utf_8(shown: Any) -> None:
    broken = Variant(EMPTY, bytes([1 | 2 << 2, 0xFF, 0xFE]))
    assert shown([broken], "to_json(v)", "is_valid_variant(v)") == [('"\ufffd\ufffd"', True)]
    with pytest.raises(MalformedVariant):
        broken.to_python()


@pytest.mark.spark
@pytest.mark.spec("V-013")
def test_spark_takes_broken_dictionaries_as_valid(shown: Any) -> None:
    not_at_zero = Variant(b"\x01\x01\x01\x02ab", b"\x0c\x01")
    too_many = _Bytes(b"\x01\x09\x00\x01a", b"\x0c\x01")
    answers = shown([not_at_zero, too_many], "to_json(v)", "is_valid_variant(v)")
    assert answers == [("1", True), ("1", True)]
    assert [f.kind for f in not_at_zero.validate()] == ["oddity"]
    with pytest.raises(MalformedVariant, match="do not fit into 5 bytes"):
        Variant(too_many.metadata, too_many.value)


@pytest.mark.spec("V-011", "V-083")
def test_pyspark_takes_other_versions_and_overflows_its_stack() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    assert types.VariantVal(b"\x0c\x01", b"\x12\x00\x00").toPython() == 1
    with pytest.raises(MalformedVariant, match="version"):
        Variant(b"\x12\x00\x00", b"\x0c\x01").to_python()
    deep = Variant.from_json("[" * 600 + "]" * 600)
    with pytest.raises(RecursionError):
        types.VariantVal(deep.value, deep.metadata).toPython()
    assert deep.validate() == ()


@pytest.mark.spec("V-089")
def test_pyspark_builds_nothing_above_16_mib(tmp_path: Path) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    text = '"' + "x" * (16 << 20) + '"'
    with pytest.raises(Exception, match="VARIANT_SIZE_LIMIT"):
        types.VariantVal.parseJson(text)
    large = Variant.from_json(text)
    path = tmp_path / "large.parquet"
    with pytest.warns(UserWarning, match=r"`v` contains a variant of 16,777,221 bytes: pyspark"):
        bh.write_parquet(pa.table({"v": storage(large)}), path, variants=["v"])
    assert read(path) == [large]


# Decimals, sharing, unknown types, metadata of scalars: traps 3, 8, 9, 12, 14.


def marked(*values: Any) -> pa.Table:
    """A table whose column `v` DuckDB takes for variants."""
    field = pa.field("v", VARIANT_STORAGE, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    rows = [{"metadata": v.metadata, "value": v.value} for v in values]
    return pa.table([pa.array(rows, VARIANT_STORAGE)], schema=pa.schema([field]))


def in_duckdb(duckdb: Any, *values: Any, sql: str = "v::json::varchar") -> list[Any]:
    with duckdb.connect() as connection:
        connection.register("given", marked(*values))
        return [row[0] for row in connection.sql(f"select {sql} from given").fetchall()]


# Three digits too many for four bytes; and ten digits behind the point of a decimal of nine, which the text allows.
TOO_MANY = Variant(EMPTY, b"\x20\x02" + (2_000_000_000).to_bytes(4, "little"))
DEEP_SCALE = Variant(EMPTY, b"\x20\x0a" + (5).to_bytes(4, "little"))


@pytest.mark.spec("V-048")
def test_duckdb_takes_decimals_with_too_many_digits_pyspark_refuses_scales_that_are_legal(duckdb: Any) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    assert in_duckdb(duckdb, TOO_MANY, DEEP_SCALE) == ["20000000.00", "0.0000000005"]
    for v in (TOO_MANY, DEEP_SCALE):
        with pytest.raises(Exception, match="MALFORMED_VARIANT"):
            types.VariantVal(v.value, v.metadata).toPython()
    with pytest.raises(MalformedVariant, match="too many digits"):
        TOO_MANY.to_python()
    assert DEEP_SCALE.to_python() == Decimal("5E-10")
    assert [f.kind for f in DEEP_SCALE.validate()] == ["oddity"]


@pytest.mark.spark
@pytest.mark.spec("V-048")
def test_spark_refuses_scales_that_are_legal(shown: Any) -> None:
    for v in (TOO_MANY, DEEP_SCALE):
        assert "MALFORMED_VARIANT" in fails(shown, v)


@pytest.mark.spec("V-035")
def test_pyspark_keeps_the_last_of_duplicates_duckdb_refuses_them(duckdb: Any) -> None:
    types = pytest.importorskip("pyspark.sql.types")
    assert types.VariantVal(TWICE.value, TWICE.metadata).toPython() == {"a": 2}
    with pytest.raises(duckdb.Error, match="more than once"):
        in_duckdb(duckdb, TWICE)


@pytest.mark.spec("V-084")
def test_pyspark_and_duckdb_expand_what_is_shared(duckdb: Any) -> None:
    """2^12 leaves of 98 bytes; nothing stops them at 2^24."""
    types = pytest.importorskip("pyspark.sql.types")
    value = b"\x0c\x01"
    for _ in range(12):
        value = b"\x07\x02" + bytes(4) + len(value).to_bytes(2, "little") + value
    bomb = Variant(EMPTY, value)
    assert len(value) == 98
    assert str(types.VariantVal(bomb.value, EMPTY).toPython()).count("1") == 4096
    assert in_duckdb(duckdb, bomb)[0].count("1") == 4096
    with pytest.raises(MalformedVariant, match="98 bytes expand to more than"):
        bomb.to_python()


@pytest.mark.spec("V-054")
def test_pyspark_and_duckdb_read_nothing_beside_an_unknown_type(duckdb: Any) -> None:
    v = Variant(b"\x11\x02\x00\x01\x02ab", bytes([2, 2, 0, 1, 0, 1, 3, 21 << 2, 12, 7]))
    types = pytest.importorskip("pyspark.sql.types")
    with pytest.raises(Exception, match="MALFORMED_VARIANT"):
        types.VariantVal(v.value, v.metadata).toPython()
    with pytest.raises(duckdb.Error, match=r"PrimitiveType \(21\)"):
        in_duckdb(duckdb, v, sql="v.b::int")
    assert v.get("$.b", "int") == 7


@pytest.mark.spec("V-013")
def test_pyspark_reads_scalars_without_metadata() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    for metadata in (b"", b"\x01\xff"):
        assert types.VariantVal(b"\x0c\x01", metadata).toPython() == 1
        with pytest.raises(MalformedVariant):
            Variant(metadata, b"\x0c\x01")


@pytest.mark.spec("V-015")
def test_pyspark_and_duckdb_refuse_what_is_no_utf_8(duckdb: Any) -> None:
    """As we do; of the engines at hand, Spark alone replaces it."""
    types = pytest.importorskip("pyspark.sql.types")
    broken = Variant(EMPTY, bytes([1 | 2 << 2, 0xFF, 0xFE]))
    with pytest.raises(UnicodeDecodeError):
        types.VariantVal(broken.value, broken.metadata).toPython()
    with pytest.raises(duckdb.Error, match="UTF8"):
        in_duckdb(duckdb, broken)


@pytest.mark.spec("V-051")
def test_duckdb_reads_instants_of_nanoseconds_and_cannot_hand_them_out(duckdb: Any) -> None:
    given = marked(built("timestamp_nanos", 5))
    with duckdb.connect() as connection:
        connection.register("given", given)
        connection.execute("set TimeZone = 'UTC'")
        assert connection.sql("select v::varchar from given").fetchall() == [("1970-01-01 00:00:00.000000005+00",)]
        with pytest.raises(duckdb.Error, match="TIMESTAMP_NANOS_TZ"):
            connection.sql("select v from given").to_arrow_table()


@pytest.mark.spec("V-020")
def test_pysparks_own_builder_orders_names_as_we_do() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    theirs = types.VariantVal.parseJson(BEYOND_BMP)
    assert Variant(theirs.metadata, theirs.value).keys() == ("～", "😀")


@pytest.mark.spark
@pytest.mark.spec("V-083")
def test_spark_takes_values_deeper_than_a_thousand_for_valid(shown: Any) -> None:
    """Its own JSON parser stops at 1,000; far deeper values end its process, so they are not tried here."""
    value = b"\x03\x00\x00"
    for _ in range(1_099):
        value = b"\x0f\x01" + bytes(4) + len(value).to_bytes(4, "little") + value
    deep = Variant(EMPTY, value)
    assert shown([deep], "is_valid_variant(v)") == [(True,)]
    with pytest.raises(MalformedVariant, match="1,000 nested"):
        deep.to_json()


# Shredded files: traps 17, 18, 19, 20, 22.


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: Any) -> Path:
    """A shredded field that stands in `value` too: invalid, and "engines should fail or take typed_value"."""
    groups = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.string())])
    stored = pa.struct([
        pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary()),
        pa.field("typed_value", pa.struct([pa.field("a", groups, False)])),
    ])  # fmt: skip
    residual = Variant.from_python({"a": "residual"})
    row = {"metadata": residual.metadata, "value": residual.value, "typed_value": {"a": {"typed_value": "typed"}}}
    path = tmp_path_factory.mktemp("overlap") / "overlap.parquet"
    pa.parquet.write_table(pa.table({"v": pa.array([row], stored)}), path)
    annotate_file(path)
    return path


def annotate_file(path: Path) -> None:
    data = path.read_bytes()
    with path.open("rb") as stream:
        old = read_footer_bytes(stream, len(data))
    new = annotate(old, [("v",)])
    path.write_bytes(data[: -8 - len(old)] + new + len(new).to_bytes(4, "little") + b"PAR1")


@pytest.mark.spec("V-075", "V-073")
def test_duckdb_takes_the_residual_of_a_field_that_stands_twice(duckdb: Any, overlapping: Path) -> None:
    assert duckdb.sql(f"select v::json::varchar from '{overlapping}'").fetchall() == [('{"a":"residual"}',)]
    assert [v.to_python() for v in read(overlapping)] == [{"a": "typed"}]


@pytest.mark.spark
@pytest.mark.spec("V-075", "V-073")
def test_spark_fails_on_a_field_that_stands_twice(spark: Any, overlapping: Path) -> None:
    with pytest.raises(Exception, match=r"MALFORMED_VARIANT|FAILED_READ_FILE"):
        spark.read.parquet(str(overlapping)).selectExpr("to_json(v)").collect()


@pytest.mark.spark
@pytest.mark.spec("V-034")
def test_spark_loses_keys_in_files_of_duckdb(spark: Any) -> None:
    """Of the residual of a partly shredded object, and of objects in arrays, with Spark's settings as they come."""
    path = DUCKDB_2_0_0.format("partly-shredded")
    paths = ["$.k00", "$.k05", "$.k39", "$.arr[0].k00", "$.arr[0].k05", "$.arr[0].k39"]
    frame = spark.read.parquet(path)
    row = frame.selectExpr(*(f"variant_get(v, '{p}', 'int')" for p in paths), "variant_get(v, '$.s', 'int')").first()
    assert None in row[:3] and None in row[3:6] and row[6] == 1
    ours = bh.read_parquet(path, columns={p: f"variant_get(v, '{p}', 'int')" for p in paths})
    assert [ours[p].to_pylist() for p in paths] == [[n] * 3 for n in (0, 5, 39, 0, 5, 39)]


@pytest.fixture(scope="module")
def case(corpora: Path) -> Any:
    return lambda number: corpora / "variant" / "shredded" / f"case-{number:03d}.parquet"


@pytest.mark.spec("V-076")
@pytest.mark.parametrize(("number", "theirs"), [(40, '["comedy"]'), (42, "34")])
def test_duckdb_reads_conflicts_of_value_and_typed_value(duckdb: Any, case: Any, number: int, theirs: str) -> None:
    rows = duckdb.sql(f"select var::json::varchar from '{case(number)}'").fetchall()
    assert rows == [(theirs,)]
    with pytest.raises(MalformedVariant, match="`var`"):
        bh.read_parquet(case(number))


@pytest.mark.spec("V-003")
def test_duckdb_needs_a_value_column(duckdb: Any, case: Any) -> None:
    with pytest.raises(duckdb.Error, match="Variant column must"):
        duckdb.sql(f"select var from '{case(41)}'").fetchall()
    rows = bh.read_parquet(case(41))["var"].to_pylist()
    assert [Variant(r["metadata"], r["value"]).to_python() for r in rows] == [["comedy", "drama"]]


@pytest.mark.spark
@pytest.mark.spec("V-068", "V-076")
def test_spark_reads_conflicts_and_fails_on_missing_elements(spark: Any, case: Any) -> None:
    for number, theirs in ((40, '["comedy"]'), (42, "34")):
        assert spark.read.parquet(str(case(number))).selectExpr("to_json(var)").collect()[0][0] == theirs
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        spark.read.parquet(str(case(85))).selectExpr("to_json(var)").collect()
    rows = bh.read_parquet(case(85))["var"].to_pylist()
    assert [Variant(r["metadata"], r["value"]).to_python() for r in rows] == [[None]]


@pytest.mark.spark
@pytest.mark.spec("V-045")
def test_spark_narrows_integers_that_were_shredded(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "int32.parquet"
    bh.write_parquet(pa.table({"v": storage(built("int32", 34))}), path, variants=["v"], shred={"v": "int"})
    row = spark.read.parquet(str(path)).collect()[0][0]
    assert Variant(row.metadata, row.value).type == "int8"
    assert [v.type for v in read(path)] == ["int32"]


@pytest.mark.spark
@pytest.mark.spec("V-036", "V-079")
def test_duckdb_renames_names_that_differ_by_case(spark: Any, duckdb: Any, tmp_path: Path) -> None:
    frame = spark.sql("""select parse_json(j) v from values ('{"a": 1}'), ('{"A": 2}') as t(j)""")
    frame.coalesce(1).write.parquet(str(tmp_path / "files"))
    (path,) = (tmp_path / "files").glob("*.parquet")
    assert duckdb.sql(f"select v::json::varchar from '{path}'").fetchall() == [('{"a_1":1}',), ('{"A":2}',)]
    assert [v.to_python() for v in read(path)] == [{"a": 1}, {"A": 2}]


@pytest.mark.spec("V-070", "V-079")
def test_duckdb_renames_empty_names_and_forgets_them_in_the_metadata() -> None:
    path = DUCKDB_2_0_0.format("empty-name")
    with pytest.raises(MalformedVariant, match="`element2` is not in the metadata"):
        bh.read_parquet(path)
    assert bh.read_parquet(path, columns={"a": "variant_get(v, '$.a', 'int')"})["a"].to_pylist() == [2, 2, 2]


@pytest.mark.spec("V-077")
def test_duckdb_leaves_values_of_the_shredded_type_in_value(duckdb: Any, tmp_path: Path) -> None:
    """So a null `typed_value` says nothing about types: row groups are pruned only if `value` is null throughout."""
    path = tmp_path / "mixed.parquet"
    texts = """case when i % 2 = 0 then '[1]' else '{"z": 1}' end"""
    duckdb.sql(f"copy (select {texts}::json::variant v from range(4) t(i)) to '{path}'")
    stored = pa.parquet.read_table(path).column(0).to_pylist()
    assert stored[1]["typed_value"]["z"]["typed_value"] is None
    assert stored[1]["typed_value"]["z"]["value"] == b"\x18" + (1).to_bytes(8, "little")
    assert bh.read_parquet(path, where="try_variant_get(v, '$.z', 'bigint') = 1").num_rows == 2


# Other readers: trap 26, and section 0 of the notes.


@pytest.mark.spec("V-001")
def test_deltalake_makes_a_struct_of_a_marked_column(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "table"), marked(Variant.from_python(1)))
    (field,) = deltalake.DeltaTable(str(tmp_path / "table")).schema().fields
    assert "variant" not in field.type.to_json()
    assert [f.name for f in field.type.fields] == ["metadata", "value"]


def test_polars_does_not_open_annotated_files(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "file.parquet"
    bh.write_parquet(pa.table({"k": [1], "v": storage(Variant.from_python(1))}), path, variants=["v"])
    with pytest.raises(polars.exceptions.ComputeError, match="LogicalType"):
        polars.read_parquet(path, columns=["k"])
    assert polars.read_parquet(path, columns=["k"], use_pyarrow=True).shape == (1, 1)
    assert polars.from_arrow(bh.read_parquet(path, columns=["k"])).shape == (1, 1)


_CRASH = """
import pyarrow as pa, pyarrow.parquet as pq, sys
class Theirs(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
                         "arrow.parquet.variant")
    def __arrow_ext_serialize__(self):
        return b""
    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()
rows = pa.array([{"metadata": b"\\x11\\0\\0", "value": b"\\0"}], Theirs().storage_type)
pq.write_table(pa.table({"v": pa.ExtensionArray.from_storage(Theirs(), rows)}), sys.argv[1])
"""


def test_pyarrow_crashes_writing_an_extension_type_of_this_name(tmp_path: Path) -> None:
    """Why nothing here registers or hands out the extension type: test_parquet_groups writes such a column."""
    run = subprocess.run(
        [sys.executable, "-c", _CRASH, str(tmp_path / "crash.parquet")], capture_output=True, check=False
    )
    assert run.returncode < 0, run.stderr.decode()
