"""Variant columns of Delta tables: written, shredded where the table says so, changed, and read by others."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.schema import VARIANT_MARKS, VARIANT_STORAGE
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.engines.spark import route
from boathouse.errors import InvalidArgumentError, SchemaError, UnsupportedFeatureError
from boathouse.parquet.thrift_footer import annotated, read_footer_bytes
from boathouse.variant import Variant, from_json, to_json

SHRED = {"delta.enableVariantShredding": "true"}
MAPPED = {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
SHAPES = {"plain": {}, "shredded": SHRED, "mapped": SHRED | MAPPED, "feed": FEED}
TEXTS = ['{"a":1,"b":"x"}', '{"a":2,"b":"y"}', None, "null", '{"a":3000000000}', '"text"', "[1,{},null]", "1.5"]


def variants(texts):
    return from_json(pa.array(texts, pa.string()))


def rows(texts=TEXTS, start=0):
    ids = pa.array(range(start, start + len(texts)), pa.int64())
    schema = pa.schema([("id", pa.int64()), pa.field("v", VARIANT_STORAGE, metadata=VARIANT_MARKS)])
    return pa.table([ids, variants(texts)], schema=schema)


def texts_of(table):
    """id -> JSON."""
    return dict(zip(table.column("id").to_pylist(), to_json(table.column("v")).to_pylist()))


def as_numbered(texts, start=0):
    return {start + i: t for i, t in enumerate(texts)}


def files_of(path):
    return [p for p in Path(str(path)).rglob("*.parquet") if "_delta_log" not in p.parts]


def members(path):
    """The fields of the variant group in each data file."""
    return [
        {f.name for f in next(f.type for f in pq.read_schema(p) if pa.types.is_struct(f.type))} for p in files_of(path)
    ]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "t")


@pytest.mark.spec("D-312")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("on", ["process", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.feature("variantType", format="delta")
@pytest.mark.route("variants in Delta")
def test_every_operation(path, shape, on, request):
    spark = request.getfixturevalue("spark") if on == "spark" else None

    def data(texts, start=0):
        if spark is None:
            return rows(texts, start)
        pairs = [(start + i, t) for i, t in enumerate(texts)]
        return spark.createDataFrame(pairs, "id long, t string").selectExpr("id", "parse_json(t) AS v")

    def agree(wanted):
        assert texts_of(bh.open(path).to_arrow()) == wanted
        if spark is not None:
            frame = bh.open(path).to_spark(spark).selectExpr("id", "to_json(v) AS t")
            assert {r.id: r.t for r in frame.collect()} == wanted

    def matching(where):
        if spark is None:
            return set(bh.open(path).scan(["id"], where).to_arrow().column("id").to_pylist())
        return {r.id for r in bh.open(path).scan(["id"], where).to_spark(spark).collect()}

    bh.write(data(TEXTS), path, format="delta", properties=SHAPES[shape])
    table = bh.open(path, spark=spark)
    assert str(table.schema.field("v").type) == "variant"
    wanted = as_numbered(TEXTS)
    agree(wanted)
    table.append(data(['{"a":10,"c":[1,2]}', '{"c":{"d":1}}'], 20))
    wanted |= {20: '{"a":10,"c":[1,2]}', 21: '{"c":{"d":1}}'}
    agree(wanted)
    assert matching("try_variant_get(v, '$.a', 'bigint') > 1") == {1, 4, 20}
    assert matching("try_variant_get(v, '$.b', 'string') = 'y' OR try_variant_get(v, '$.c.d', 'int') = 1") == {1, 21}
    assert matching("v IS NULL") == {2} and matching("is_variant_null(v)") == {3}
    table.update({"v": "parse_json('{\"new\": true}')"}, where="try_variant_get(v, '$.a', 'int') = 1")
    wanted[0] = '{"new":true}'
    agree(wanted)
    table.delete("try_variant_get(v, '$.a', 'bigint') = 3000000000 OR id = 5")
    del wanted[4], wanted[5]
    agree(wanted)
    table.upsert(data(['{"m":1}', "2"], 20), on="id")
    table.upsert(data(["{}"], 30), on="id")
    wanted |= {20: '{"m":1}', 21: "2", 30: "{}"}
    agree(wanted)
    table.optimize()
    agree(wanted)
    table.overwrite(data(["7"], 40), where="id >= 40")
    agree(wanted | {40: "7"})
    if shape == "feed":
        found = table.changes(3).to_arrow()
        kinds = zip(found.column("_change_type").to_pylist(), to_json(found.column("v")).to_pylist())
        assert ("delete", '"text"') in set(kinds)
    assert any("typed_value" in m for m in members(path)) == (SHRED.items() <= SHAPES[shape].items())


@pytest.mark.spec("D-312")
def test_protocol_and_files(path, delta):
    """A plain struct of two binaries: readers of the protocol know the type from the schema alone."""
    bh.write(rows(), path, format="delta")
    (protocol,) = [a["protocol"] for a in delta.log(path)[0] if "protocol" in a]
    assert protocol["readerFeatures"] == ["variantType"] and protocol["minReaderVersion"] == 3
    assert "variantType" in protocol["writerFeatures"] and protocol["minWriterVersion"] == 7
    (add,) = [a["add"] for a in delta.log(path)[0] if "add" in a]
    stats = json.loads(add["stats"])
    assert stats["nullCount"] == {"id": 0, "v": 1} and set(stats["minValues"]) == {"id"}
    (file,) = files_of(path)
    stored = pq.ParquetFile(file)
    assert {f.name: str(f.type) for f in stored.schema_arrow.field("v").type} == {
        "metadata": "binary",
        "value": "binary",
    }
    assert "Variant" not in str(stored.schema)


@pytest.mark.spec("D-312")
@pytest.mark.feature("variantShredding", format="delta")
def test_shredded_only_while_the_property_is_true(path):
    bh.write(rows(), path, format="delta", properties=SHRED)
    table = bh.open(path)
    assert {"variantType", "variantShredding"} <= set(table.detail()["readerFeatures"])
    assert [m >= {"metadata", "value", "typed_value"} for m in members(path)] == [True]
    table.set_properties({"delta.enableVariantShredding": "false"})
    table.append(rows(start=100))
    assert sorted("typed_value" in m for m in members(path)) == [False, True]
    table.set_properties({"delta.enableVariantShredding": None})
    table.append(rows(start=200))
    assert sorted("typed_value" in m for m in members(path)) == [False, False, True]
    assert texts_of(table.to_arrow()) == as_numbered(TEXTS) | as_numbered(TEXTS, 100) | as_numbered(TEXTS, 200)
    # Where a path is shredded, row groups are skipped by it.
    assert table.scan(where="try_variant_get(v, '$.a', 'bigint') = 2").count() == 3


def test_the_property_alone_does_not_shred(raw, delta):
    """Without the feature, readers may not know of shredding."""
    made = raw()
    features = ["variantType"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    fields = [delta.field("id", "long"), delta.field("v", "variant")]
    made.commit(0, {"protocol": protocol}, delta.metadata(fields, configuration=SHRED))
    bh.open(str(made)).append(rows())
    assert members(made) == [{"metadata", "value"}]
    assert bh.open(str(made)).detail()["readerFeatures"] == features


@pytest.mark.parametrize("feature", ["variantShredding", "variantShredding-preview"])
@pytest.mark.parametrize("type", ["variantType", "variantType-preview"])
def test_previews_are_written_as_such(raw, delta, type, feature):
    made = raw()
    features = [type, feature]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    fields = [delta.field("id", "long"), delta.field("v", "variant")]
    made.commit(0, {"protocol": protocol}, delta.metadata(fields, configuration=SHRED))
    table = bh.open(str(made))
    table.append(rows())
    table.set_properties({"own": "1"})
    table.add_column("w", "struct<v: variant>")
    assert sorted(table.detail()["readerFeatures"]) == sorted(features)
    assert [m >= {"typed_value"} for m in members(made)] == [True]
    assert texts_of(table.to_arrow()) == as_numbered(TEXTS)


def test_nested_variants(path):
    pair = pa.field("v", VARIANT_STORAGE, metadata=VARIANT_MARKS)
    one, two, three = (v for v in variants(['{"a":1}', "2", "null"]).to_pylist())
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "s": pa.array([{"v": one}, None], pa.struct([pair])),
            "l": pa.array([[one, None, three], []], pa.list_(pair.with_name("element"))),
            "m": pa.array([[("k", two)], None], pa.map_(pa.string(), pair.with_name("value"))),
        }
    )
    for name, properties in (("plain", {}), ("shredded", SHRED | MAPPED)):
        schema = "id bigint, s struct<v: variant>, l array<variant>, m map<string, variant>"
        opened = bh.create(f"{path}{name}", schema, properties=properties)
        opened.append(table)
        assert [str(f.type) for f in opened.schema][1:] == [
            "struct<v:variant>", "array<variant>", "map<string,variant>"
        ]  # fmt: skip
        first, second = sorted(opened.to_arrow().to_pylist(), key=lambda r: r["id"])

        def plain(found):
            return None if found is None else Variant(found["metadata"], found["value"]).to_python()

        assert plain(first["s"]["v"]) == {"a": 1} and second["s"] is None
        assert [plain(v) for v in first["l"]] == [{"a": 1}, None, plain(three)] and second["l"] == []
        assert [(k, plain(v)) for k, v in first["m"]] == [("k", 2)] and second["m"] is None
        opened.delete("id = 1")
        assert opened.count() == 1


@pytest.mark.spec("D-312")
@pytest.mark.parametrize(
    "bound", ["0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu", "garbage ü", {"x": 1}, 7, None]
)
def test_bounds_of_variants_of_others_are_kept_and_decide_nothing(raw, delta, bound):
    made = raw()
    features = ["variantType", "variantShredding", "deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    fields = [delta.field("id", "long"), delta.field("v", "variant")]
    size = made.file("f.parquet", rows())
    stats = {
        "numRecords": len(TEXTS), "minValues": {"id": 0, "v": bound}, "maxValues": {"id": 7, "v": bound},
        "nullCount": {"id": 0, "v": 1},
    }  # fmt: skip
    configuration = {"delta.enableDeletionVectors": "true", "delta.checkpoint.writeStatsAsStruct": "true"}
    made.commit(
        0, {"protocol": protocol}, delta.metadata(fields, configuration=configuration),
        made.add("f.parquet", size=size, stats=json.dumps(stats)),
    )  # fmt: skip
    table = bh.open(str(made))
    assert table.scan(where="try_variant_get(v, '$.a', 'bigint') = 3000000000").to_arrow().num_rows == 1
    assert len(table.scan(where="v IS NOT NULL").files()) == 1 and table.scan(where="id > 7").files() == []
    table.delete("id = 1")
    (add,) = [a["add"] for a in delta.log(made)[1] if "add" in a]
    kept = json.loads(add["stats"])
    assert kept["minValues"] == stats["minValues"] and kept["nullCount"] == stats["nullCount"]
    write_checkpoint(table._handle.snapshot)
    again = bh.open(str(made))
    assert again.detail()["checkpoint"] == 1
    assert texts_of(again.to_arrow()) == {i: t for i, t in as_numbered(TEXTS).items() if i != 1}


def test_what_a_variant_cannot_be(path):
    with pytest.raises(SchemaError, match=r"`v`.*cannot partition"):
        bh.write(rows(), path, format="delta", partition_by=["v"])
    table = bh.create(path, "id bigint")
    with pytest.raises(UnsupportedFeatureError, match=r"variantType.*delta\.feature\.variantType"):
        table.add_column("v", "variant")
    table.set_properties({"delta.feature.variantType": "supported"})
    assert "variantType" in table.detail()["readerFeatures"] and table.properties == {}
    table.add_column("v", "variant")
    table.append(rows())
    table.append(pa.table({"id": [99]}))
    assert texts_of(table.to_arrow()) == as_numbered(TEXTS) | {99: None}
    with pytest.raises(InvalidArgumentError, match="not dropped"):
        table.set_properties({"delta.feature.variantType": None})
    with pytest.raises(UnsupportedFeatureError, match="zap"):
        table.set_properties({"delta.feature.zap": "supported"})


def test_tables_of_others(corpora, tmp_path):
    """Written by Spark and by Databricks; a variant in every place."""
    for name in ("golden/spark-variant-checkpoint/delta", "java-kernel/spark-shredded-variant-preview-delta"):
        table = bh.open(str(corpora / "delta" / name))
        found = texts_of(table.scan(where="id = 7").to_arrow())
        assert found == {7: '{"key":7}'}
        rows_of = table.to_arrow()
        assert rows_of.num_rows == 102
        assert table.scan(where="variant_get(v, '$.key', 'int') >= 50").count() == sum(
            1 for t in to_json(rows_of.column("v")).to_pylist() if t and json.loads(t)["key"] >= 50
        )
    # Its repository has the files under other names than its log.
    name, prefix = "spark-variant-stable-feature-checkpoint", "test%file%prefix-"
    shutil.copytree(corpora / "delta" / "java-kernel" / name, tmp_path / "t")
    for file in (tmp_path / "t").glob("part-*"):
        os.chmod(tmp_path / "t", 0o755)
        file.rename(file.with_name(prefix + file.name))
    table = bh.open(str(tmp_path / "t"))
    assert table.to_arrow().num_rows == 20_000
    assert table.scan(where="variant_get(v, '$.k', 'int') = 5001").count() == 1


@pytest.mark.spec("D-312")
@pytest.mark.parametrize("shape", ["plain", "shredded"])
def test_duckdb_reads_our_files(path, shape):
    """Only files that shred are annotated: Spark 4.0 reads no column of an annotated file, and no shredded variant."""
    duckdb = pytest.importorskip("duckdb")
    bh.write(rows(), path, format="delta", properties=SHAPES[shape])
    (file,) = files_of(path)
    with pa.OSFile(str(file)) as source:
        found = annotated(read_footer_bytes(source, source.size()))
    assert [(g.path, g.version) for g in found] == ([(("v",), 1)] if shape == "shredded" else [])
    whole = "v" if shape == "shredded" else "variant_bytes_to_variant(v.metadata || v.value)"
    query = (
        f"SELECT id, typeof(x), x.a FROM (SELECT id, {whole} AS x FROM '{file}') WHERE id IN (0, 1, 2, 4) ORDER BY id"
    )
    assert sorted(duckdb.sql(query).fetchall()) == [
        (i, "VARIANT", a) for i, a in ((0, 1), (1, 2), (2, None), (4, 3000000000))
    ]
    kind = duckdb.sql(f"SELECT DISTINCT typeof(v) FROM '{file}'").fetchall()
    assert kind == [("VARIANT",)] if shape == "shredded" else kind[0][0].startswith("STRUCT(metadata BLOB")
    theirs = {r["id"] for r in duckdb.sql(f"SELECT id FROM '{file}' WHERE v IS NOT NULL").to_arrow_table().to_pylist()}
    assert {0, 1, 4, 5, 6, 7} <= theirs and 2 not in theirs


@pytest.mark.spark
def test_spark_that_knows_no_annotation_does_not_read_files_that_may_have_one(path, spark, monkeypatch):
    bh.write(rows(), path, format="delta", properties=SHRED)
    scan = bh.open(path, spark=spark).scan(columns=["id"])
    assert "native" in str(scan.explain())
    monkeypatch.setattr(route, "_READS_ANNOTATED", (99, 0))
    assert "cannot read any column of a file in which a variant is annotated" in str(scan.explain())
    assert sorted(r.id for r in scan.to_spark().collect()) == list(range(len(TEXTS)))


@pytest.mark.spec("D-312")
def test_deltalake_reads_ours(path, delta):
    """It shows the struct that is stored."""
    bh.write(rows(), path, format="delta")
    bh.open(path).append(rows(start=100))
    theirs = {r["id"]: r["v"] for r in delta.rows(path)}
    found = {i: None if v is None else to_json(pa.array([v], VARIANT_STORAGE))[0].as_py() for i, v in theirs.items()}
    assert found == as_numbered(TEXTS) | as_numbered(TEXTS, 100)
