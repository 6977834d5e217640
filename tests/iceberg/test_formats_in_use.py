"""Operations on tables whose data files and delete files are ORC and Avro."""

import functools

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from file_writers import fields_of, split_orc
from foreign_writer import Foreign, current
from mixed_files import LEAVES
from pyiceberg.table import StaticTable
from written_formats import MODES, PLAIN, WRITTEN, formatted, ids_of, live, local, orc_types, rows

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.arrow.schema import to_arrow
from boathouse.avro import write as avro_write
from boathouse.errors import ConstraintViolationError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.types import (
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    Field,
    ListType,
    NullType,
    Schema,
    StructType,
)


def brought(root):
    """The changes by the number of their commit."""
    found = bh.open(str(root)).changes(0).to_arrow()
    numbers = {v: n for n, v in enumerate(dict.fromkeys(found["_commit_version"].to_pylist()))}
    kept = found.drop_columns(["_commit_version", "_commit_timestamp"]).to_pylist()
    return sorted(map(str, zip((numbers[v] for v in found["_commit_version"].to_pylist()), kept)))


def life_of(root, format, version, mode):
    """The rows after each step, and the changes of all."""
    more = dict.fromkeys(MODES, mode) | {"format-version": version}
    t = bh.create(str(root), PLAIN, format="iceberg", partition_by="bucket(2, id)",
                  properties=formatted(format, **more))  # fmt: skip
    steps = [
        lambda: t.append(rows(*range(20))),
        lambda: t.append(rows(*range(20, 40))),
        lambda: t.delete("id % 7 = 3"),
        lambda: t.update({"s": "'u'"}, "id % 5 = 0"),
        lambda: t.upsert(rows(1, 2, 50, 51), on="id"),
        lambda: t.overwrite(rows(4, 100), where="id = 4 or id = 100"),
        lambda: t.add_column("new", "int"),
        lambda: t.rename_column("s", "text"),
        lambda: t.append(pa.table({"id": [200], "new": pa.array([7], pa.int32())})),
        lambda: t.optimize(),
        lambda: t.delete("id = 200"),
    ]
    life = []
    for step in steps:
        step()
        life.append(sorted(bh.open(str(root)).to_arrow().to_pylist(), key=str))
    return [*life, brought(root)]


@pytest.fixture(scope="module")
def in_parquet(tmp_path_factory):
    """The life of a version and mode in Parquet, lived once."""
    return functools.cache(lambda *kind: life_of(tmp_path_factory.mktemp("parquet"), "parquet", *kind))


@pytest.mark.few(3)
@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("version, mode", [("1", "copy-on-write"), ("2", "copy-on-write"), ("2", "merge-on-read"),
                                           ("3", "merge-on-read")])  # fmt: skip
def test_every_operation(tmp_path, in_parquet, format, mode, version):
    """The rows after each, and what the commits brought, are those of the same life in Parquet; every new file is of
    the table's format."""
    assert life_of(tmp_path, format, version, mode) == in_parquet(version, mode)
    eyes = Foreign(tmp_path)
    listed = [e for row in eyes._avro(current(eyes)["manifest-list"]) for e in eyes._avro(row["manifest_path"])]
    formats = {(e["data_file"].get("content", 0), e["data_file"]["file_format"]) for e in listed}
    deletes = {"1": set(), "2": {(1, format.upper())}, "3": {(1, "PUFFIN")}}[version]
    assert formats == {(0, format.upper())} | (deletes if mode == "merge-on-read" else set())
    data = [e["data_file"]["file_path"] for e in listed if e["data_file"].get("content", 0) == 0]
    assert all(path.endswith(f".{format}") for path in data)


@pytest.mark.few(6)
@pytest.mark.spec("I-168", "I-268")
@pytest.mark.parametrize("asked", (None, "orc", "avro", "parquet"))
@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("granularity", ("file", "partition"))
def test_files_of_positions(tmp_path, format, asked, granularity):
    root = tmp_path / "t"
    more = {**MODES, "write.delete.granularity": granularity}
    more |= {} if asked is None else {"write.delete.format.default": asked}
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted(format, **more))
    t.append(rows(*range(10)))
    t.append(rows(*range(10, 20)))
    t.delete("id in (9, 0, 3, 15)")
    assert ids_of(root) == sorted(set(range(20)) - {0, 3, 9, 15})
    made = asked or format
    found = t.inspect.delete_files().to_pylist()
    assert len(found) == (2 if granularity == "file" else 1)
    gone = []
    for file in found:
        path = local(file["file_path"])
        assert file["file_format"] == made.upper() and path.name.endswith(f".{made}") and "-deletes-" in path.name
        gone += places(path)
    data = sorted(f["file_path"] for f in live(root) if f["content"] == 0)
    assert {p for p, _ in gone} == set(data) and sorted(n for _, n in gone) == [0, 3, 5, 9]
    if made == "orc":
        assert [f["iceberg.id"] for f in orc_types(path)[1:]] == ["2147483546", "2147483545"]


def places(path):
    """The rows of a file of positions."""
    if path.suffix == ".avro":
        with path.open("rb") as f:
            reader = fastavro.reader(f)
            fields = reader.writer_schema["fields"]
            assert [(x["name"], x["type"], x["field-id"]) for x in fields] == [
                ("file_path", "string", 2147483546), ("pos", "long", 2147483545)]  # fmt: skip
            return [(r["file_path"], r["pos"]) for r in reader]
    found = orc.ORCFile(path).read() if path.suffix == ".orc" else pq.read_table(path)
    return list(zip(found["file_path"].to_pylist(), found["pos"].to_pylist(), strict=True))


@pytest.mark.spec("I-268")
@pytest.mark.parametrize("format", WRITTEN)
def test_equality_deletes(tmp_path, format):
    root = tmp_path / "t"
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted(format))
    t.append(rows(*range(10)))
    t.upsert(pa.table({"id": [3, 30], "s": ["new", "new"], "x": [0.0, 0.0]}), on="id", deletes="equality")
    assert ids_of(root) == [*range(10), 30]
    assert bh.open(str(root)).scan(where="s = 'new'").to_arrow().num_rows == 2
    (file,) = t.inspect.delete_files().to_pylist()
    assert file["file_format"] == format.upper() and file["equality_ids"] == [1] and file["record_count"] == 2
    t.rewrite_deletes()
    assert ids_of(root) == [*range(10), 30]


@pytest.mark.parametrize("format", WRITTEN)
def test_pyiceberg_reads_it(tmp_path, format):
    """ORC; of Avro it reads metadata alone, and takes the files as they are listed."""
    root = tmp_path / "t"
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted(format))
    t.append(rows(*range(10)))
    t.delete("id = 4")
    theirs = StaticTable.from_metadata(f"file://{Foreign(root).head}")
    tasks = list(theirs.scan().plan_files())
    assert {t.file.file_format.name for t in tasks} == {format.upper()}
    if format == "orc":
        found = theirs.scan().to_arrow()
        assert sorted(found.to_pylist(), key=str) == sorted(bh.open(str(root)).to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("format", WRITTEN)
def test_evolution_after_writing(tmp_path, format):
    root = tmp_path / "t"
    inner = StructType((Field("a", INT32), Field("b", STRING)))
    schema = Schema((Field("i", INT32), Field("s", STRING), Field("st", inner)))
    t = bh.create(str(root), schema, format="iceberg", properties=formatted(format, **{"format-version": "3"}))
    first = {"i": 1, "s": "x", "st": {"a": 2, "b": "y"}}
    t.append(pa.Table.from_pylist([first], to_arrow(schema)))
    t.widen_column("i", "bigint")
    t.rename_column("s", "text")
    t.add_column("s", "int", default=5)
    t.drop_column("st.b")
    t.add_column("st.c", "string")
    t.append(pa.table({"i": [1 << 40]}))
    found = sorted(bh.open(str(root)).to_arrow().to_pylist(), key=str)
    assert found == [
        {"i": 1, "text": "x", "st": {"a": 2, "c": None}, "s": 5},
        {"i": 1 << 40, "text": None, "st": None, "s": 5},
    ]
    assert bh.open(str(root)).scan(where="i > 2").to_arrow().num_rows == 1


def test_stripes_are_offsets_and_files_roll(tmp_path):
    root = tmp_path / "t"
    more = {"write.orc.stripe-size-bytes": "20000", "write.target-file-size-bytes": "60000"}
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted("orc", **more))
    t.append(pa.Table.from_batches(rows(*range(20_000)).to_batches(max_chunksize=500)))
    found = live(root)
    assert len(found) > 1 and ids_of(root) == list(range(20_000))
    for file in found:
        path = local(file["file_path"])
        footer = split_orc(path.read_bytes())[1]
        stripes = [{n: v for n, _, v in fields_of(v)} for n, _, v in fields_of(footer) if n == 3]
        assert [s[1] for s in stripes] == file["split_offsets"] and len(stripes) > 1
        reader = orc.ORCFile(path)
        assert reader.nstripes == len(stripes) and reader.nrows == file["record_count"]
        assert path.stat().st_size == file["file_size_in_bytes"]
        parts = [reader.read_stripe(i).num_rows for i in range(reader.nstripes)]
        assert sum(parts) == file["record_count"]


def test_avro_files_roll(tmp_path):
    root = tmp_path / "t"
    more = {"write.target-file-size-bytes": "100000", "write.avro.compression-codec": "uncompressed"}
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted("avro", **more))
    t.append(pa.Table.from_batches(rows(*range(20_000)).to_batches(max_chunksize=500)))
    found = live(root)
    assert len(found) > 1 and ids_of(root) == list(range(20_000)) and {f["split_offsets"] for f in found} == {None}


@pytest.mark.parametrize("format", WRITTEN)
def test_a_file_that_is_not_finished_is_removed(tmp_path, monkeypatch, format):
    """After some of its rows were stored."""
    monkeypatch.setattr(avro_write, "_TOGETHER", 1000)
    root = tmp_path / "t"
    more = {"write.orc.stripe-size-bytes": "1000"}
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted(format, **more))
    before = {p for p in root.rglob("*") if p.is_file()}
    opened = []
    real = NativeFiles.open_output
    monkeypatch.setattr(NativeFiles, "open_output", lambda self, uri: opened.append(uri) or real(self, uri))
    broken = pa.table({"id": [1], "s": pa.array([b"\xff"]).view(pa.string()), "x": [1.0]})
    batches = [*rows(*range(1000)).to_batches(max_chunksize=100), *broken.to_batches()]
    with pytest.raises(ConstraintViolationError, match="not valid"):
        t.append(pa.Table.from_batches(batches))
    assert opened and {p for p in root.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name, asked", [
    ("write.orc.compression-codec", "lzo"), ("write.orc.compression-strategy", "best"),
    ("write.orc.stripe-size-bytes", "many"), ("write.avro.compression-codec", "brotli"),
    ("write.avro.compression-level", "high"), ("write.orc.stripe-size-bytes", "0"),
])  # fmt: skip
def test_properties_that_are_none(tmp_path, name, asked):
    root = tmp_path / "t"
    t = bh.create(str(root), PLAIN, format="iceberg", properties=formatted(name.split(".")[1]))
    t.set_properties({name: asked})
    with pytest.raises(InvalidArgumentError):
        t.append(rows(1))
    assert not list(root.rglob("*.orc")) and not list(root.rglob("data/*.avro"))


@pytest.mark.parametrize("format", ("parquet", *WRITTEN))
def test_a_table_of_unknown_columns_alone(tmp_path, format):
    root = tmp_path / "t"
    t = bh.create(str(root), Schema((Field("u", NullType()),)), format="iceberg",
                  properties=formatted(format, **{"format-version": "3"}))  # fmt: skip
    with pytest.raises(UnsupportedFeatureError, match="no column of the table is stored"):
        t.append(pa.table({"u": pa.nulls(3)}))


@pytest.mark.spark
@pytest.mark.feature("ORC and Avro files", format="iceberg", engine="spark")
@pytest.mark.parametrize("format", WRITTEN)
def test_on_spark(spark, tmp_path, format):
    """Tasks write, delete, copy and compact."""
    root = str(tmp_path / "t")
    kinds = {"id": INT64, "s": STRING, "t": TIMESTAMP, "l": ListType(Field("element", LEAVES["p9"]))}
    t = bh.create(root, Schema(tuple(Field(n, k) for n, k in kinds.items())), format="iceberg", spark=spark,
                  partition_by="bucket(2, id)", properties=formatted(format, **MODES))  # fmt: skip
    texts = ("id", "concat('s', id % 3) AS s", "timestamp_micros(id * 1234567890123 - 2500000000000001) AS t",
             "array(CAST(id AS decimal(9, 2)), NULL) AS l")  # fmt: skip
    frame = spark.range(0, 60).repartition(3).selectExpr(*texts)
    expected = {r.id: r for r in frame.collect()}
    t.append(frame)
    t.delete("id % 10 = 3")
    t.update({"s": "'u'"}, "id % 10 = 4")
    t.upsert(spark.range(7, 9).selectExpr(*texts), on="id", deletes="equality")
    found = {r.id: r for r in bh.open(root, spark=spark).to_spark().collect()}
    assert found.keys() == {i for i in expected if i % 10 != 3}
    assert all(found[i].t == expected[i].t and found[i].l == expected[i].l for i in found)
    assert {i for i in found if found[i].s == "u"} == {i for i in found if i % 10 == 4}
    kinds = {(f["content"], f["file_format"]) for f in live(root) + t.inspect.delete_files().to_pylist()}
    assert kinds == {(content, format.upper()) for content in (0, 1, 2)}
    t = bh.open(root, spark=spark)
    t.set_properties(dict.fromkeys(MODES, "copy-on-write"))
    t.delete("id = 0")
    t.optimize()
    assert ids_of(root) == sorted(found.keys() - {0})
    assert {f["file_format"] for f in live(root)} == {format.upper()}
