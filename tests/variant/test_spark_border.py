"""Variant columns inside Spark's Arrow functions: what arrives is read as it is, what goes back is value first."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.engines.spark.exchange import from_spark_batch, to_spark_batch
from boathouse.errors import InvalidArgumentError, SchemaMismatchError
from boathouse.variant import Variant
from boathouse.variant.spark import SPARK_VARIANT, from_spark, is_spark_variant, to_spark

VALUES = [{"a": 1, "b": ["x", None]}, None, ..., 7, "text"]
FOREIGN = ("obstore", "google.protobuf", "fastavro", "sqlglot", "orjson", "typer", "rich", "duckdb", "deltalake")


def column(values: list[Any], type: pa.DataType = VARIANT_STORAGE) -> pa.Array:
    made = [None if v is ... else Variant.from_python(v) for v in values]
    return pa.array([None if v is None else {"metadata": v.metadata, "value": v.value} for v in made], type)


@pytest.mark.spec("V-002")
@pytest.mark.parametrize(
    "bytes", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]
)
@pytest.mark.parametrize("names", [("metadata", "value"), ("value", "metadata")])
def test_any_layout_becomes_value_first_and_comes_back(bytes: pa.DataType, names: tuple[str, str]) -> None:
    whole = column(VALUES)
    dictionary = pa.types.is_dictionary(bytes)
    parts = {n: whole.field(n).dictionary_encode() if dictionary else whole.field(n).cast(bytes) for n in names}
    given = pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=whole.is_null())
    sent = to_spark(given)
    assert sent.type == SPARK_VARIANT
    assert [f.name for f in sent.type] == ["value", "metadata"]
    assert is_spark_variant(sent.type)
    assert from_spark(sent).equals(whole)
    assert to_spark(given.slice(1, 3)).to_pylist() == sent.to_pylist()[1:4]
    assert from_spark(to_spark(pa.chunked_array([given, given.slice(2)]))).num_chunks == 2


def test_what_is_no_column_of_variants_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="a column of variants is a struct"):
        to_spark(pa.array([1]))
    with pytest.raises(SchemaMismatchError, match="unshred"):
        to_spark(pa.array([{"metadata": b"", "value": b"", "typed_value": 1}]))
    with pytest.raises(InvalidArgumentError, match="list is not an Arrow array"):
        to_spark([1])


def test_batches_change_variants_at_every_depth() -> None:
    field = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
    v = column(VALUES)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 3, 4, 5], pa.int32()), v, type=pa.list_(field))
    batch = pa.RecordBatch.from_arrays(
        [v, lists], schema=pa.schema([field, pa.field("l", lists.type)])
    )  # fmt: skip
    sent = to_spark_batch(batch)
    assert is_spark_variant(sent.schema.field("v").type)
    assert is_spark_variant(sent.schema.field("l").type.value_type)
    again = from_spark_batch(sent)
    assert again.to_pylist() == batch.to_pylist()
    assert again.schema.field("v").metadata[MARK] == b"variant"


@pytest.mark.spark
@pytest.mark.spec("V-002")
@pytest.mark.route("variants in mapInArrow")
def test_map_in_arrow(spark: Any) -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType, VariantType

    from boathouse.engines.spark.artifacts import ship

    ship(spark)
    foreign = FOREIGN

    def work(batches: Any) -> Any:
        import sys

        import pyarrow as pa

        from boathouse.engines.spark.exchange import from_spark_batch
        from boathouse.variant import Variant, extract
        from boathouse.variant.spark import to_spark

        for batch in batches:
            given = batch.column("v")
            ids = extract(given, "$.a", "bigint")
            texts = [None if r is None else Variant(r["metadata"], r["value"]).to_json() for r in given.to_pylist()]
            plain = from_spark_batch(batch).column("v")
            # No assert in here: pytest rewrites it, and workers have no pytest.
            order = ",".join(f.name for type in (given.type, plain.type) for f in type)
            loaded = order + ",".join(m for m in foreign if m in sys.modules)
            yield pa.RecordBatch.from_arrays(
                [to_spark(plain), ids, pa.array(texts), pa.array([loaded] * len(texts))], ["v", "a", "text", "loaded"]
            )

    frame = spark.sql(
        """select parse_json(j) v from values ('{"a": 1, "b": ["x", null]}'), ('null'), (null), ('7') as t(j)"""
    )
    schema = StructType([StructField("v", VariantType()), StructField("a", LongType()),
                         StructField("text", StringType()), StructField("loaded", StringType())])  # fmt: skip
    rows = (
        frame.coalesce(1)
        .mapInArrow(work, schema)
        .selectExpr("to_json(v)", "v is null", "a", "text", "loaded")
        .collect()
    )
    assert [r[0] for r in rows] == ['{"a":1,"b":["x",null]}', "null", None, "7"]
    assert [r[1] for r in rows] == [False, False, True, False]
    assert [r[2] for r in rows] == [1, None, None, None]
    assert [None if r[3] is None else json.loads(r[3]) for r in rows] == [{"a": 1, "b": ["x", None]}, None, None, 7]
    assert {r[4] for r in rows} == {"value,metadata,metadata,value"}


@pytest.mark.spark
@pytest.mark.spec("V-002")
def test_arrow_udf(spark: Any) -> None:
    functions = pytest.importorskip("pyspark.sql.functions")
    if not hasattr(functions, "arrow_udf"):
        pytest.skip("no arrow_udf before Spark 4.1")
    from boathouse.engines.spark.artifacts import ship

    ship(spark)

    def size(v: pa.Array) -> pa.Array:
        from boathouse.variant import extract

        return extract(v, "$.a", "int")

    def again(v: pa.Array) -> pa.Array:
        from boathouse.variant.spark import from_spark, to_spark

        return to_spark(from_spark(v))

    frame = spark.sql("""select parse_json(j) v from values ('{"a": 1}'), ('{"a": "12"}'), (null), ('7') as t(j)""")
    rows = frame.coalesce(1).select(
        functions.arrow_udf(size, "int")("v").alias("a"), functions.arrow_udf(again, "variant")("v").alias("v")
    ).selectExpr("a", "to_json(v)").collect()  # fmt: skip
    assert [r[0] for r in rows] == [1, 12, None, None]
    assert [r[1] for r in rows] == ['{"a":1}', '{"a":"12"}', None, "7"]


@pytest.mark.spark
def test_a_table_of_ours_becomes_a_data_frame(spark: Any) -> None:
    table = pa.table([to_spark(column(VALUES))], schema=pa.schema([pa.field("v", SPARK_VARIANT)]))
    frame = spark.createDataFrame(table)
    assert frame.schema.simpleString() == "struct<v:variant>"
    assert [r[0] for r in frame.selectExpr("to_json(v)").collect()] == [
        '{"a":1,"b":["x",null]}',
        "null",
        None,
        "7",
        '"text"',
    ]
