"""Statistics in checkpoints as text and as a struct: both are written when asked for, both are read, none is lost."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import z85
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.stats.bounds import StatsColumn, decode_stats
from boathouse.delta.stats.convert import ParsedLayout, found_in, texts_of
from boathouse.delta.stats.parsed import decode_parsed
from boathouse.errors import InvalidArgumentError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.types.text import parse_schema

JSON, STRUCT = "delta.checkpoint.writeStatsAsJson", "delta.checkpoint.writeStatsAsStruct"
FORMS = {"text": ("true", "false"), "struct": ("false", "true"), "both": ("true", "true"), "none": ("false", "false")}
UTC = dt.UTC
NESTED = pa.struct([("a", pa.int32()), ("b.c", pa.string())])


def batch(i: int) -> pa.Table:
    """Ten rows, all of whose values grow with `i`."""
    ids = range(10 * i, 10 * i + 10)
    when = [dt.datetime(2020 + i, 1, 1, 0, 0, 0, 123_456 + j, UTC) for j in range(10)]
    return pa.table(
        {
            "p": pa.array([f"p{i}"] * 10),
            "d": pa.array([dt.date(2020 + i, 1, 2)] * 10),
            "id": pa.array(ids, pa.int64()),
            "small": pa.array([i * 10 + j for j in range(10)], pa.int8()),
            "f": pa.array([i + j / 16 for j in range(10)], pa.float32()),
            "x": pa.array([-1e300 if j == 0 else i + j / 16 for j in range(10)], pa.float64()),
            "t": pa.array(when, pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(1960 + i, 1, 1 + j) for j in range(10)]),
            "s": pa.array([f"{i}-{j}-" + "é" * 40 for j in range(10)]),
            "m": pa.array([Decimal(f"{i}.{j:02d}") for j in range(10)], pa.decimal128(20, 2)),
            "big": pa.array([Decimal(10) ** 36 * i + j for j in range(10)], pa.decimal128(38, 0)),
            "n": pa.array([None] * 9 + [i], pa.int32()),
            "l": pa.array([[i]] * 10),
            "st": pa.array([{"a": i, "b.c": f"v{i}"}] * 10, NESTED),
        }
    )


def properties(form: str) -> dict[str, str]:
    as_json, as_struct = FORMS[form]
    return {JSON: as_json, STRUCT: as_struct, "delta.checkpointInterval": "1000"}


def checkpoint(path: Path) -> Path:
    """A checkpoint of the newest version, and nothing before it."""
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    written = Path(write_checkpoint(snapshot).removeprefix("file://"))
    for entry in (path / "_delta_log").iterdir():
        if entry.name[:20].isdigit() and int(entry.name[:20]) <= snapshot.version and entry != written:
            entry.unlink()
    return written


def make(path: Path, form: str) -> Path:
    bh.write(batch(0), str(path), format="delta", partition_by=["p", "d"], properties=properties(form))
    for i in range(1, 4):
        bh.open(str(path)).append(batch(i))
    return checkpoint(path)


def add_type(file: Path) -> dict[str, pa.DataType]:
    return {f.name: f.type for f in pq.read_schema(file).field("add").type}


CONDITIONS = {
    "id = 25": 1, "id < 10": 1, "small >= 30": 1, "f < 0.5": 1, "x > 3.1": 1, "day = date '1961-01-05'": 1,
    "t >= timestamp '2023-01-01'": 1, "s = '2'": 0, "s like '2-%'": 1, "m = 1.05": 1, "n is not null": 4, "n = 3": 1,
    "st.a = 2": 1, "st.`b.c` = 'v3'": 1, "big >= 2000000000000000000000000000000000000": 2, "p = 'p1'": 1,
    "d = date '2022-01-02'": 1, "id is null": 0,
}  # fmt: skip


def read_files(path: Path, where: str) -> int:
    return len(bh.open(str(path)).scan(where=where).files())


@pytest.mark.spec("D-050", "D-051", "D-052", "D-056")
@pytest.mark.parametrize("form", FORMS)
def test_both_properties_are_obeyed(tmp_path, form):
    found = add_type(make(tmp_path / "t", form))
    assert ("stats" in found) is (FORMS[form][0] == "true")
    assert ("stats_parsed" in found) is ("partitionValues_parsed" in found) is (FORMS[form][1] == "true")
    if "stats_parsed" in found:
        assert found["partitionValues_parsed"] == pa.struct([("p", pa.string()), ("d", pa.date32())])
        kinds = {f.name: f.type for f in found["stats_parsed"]}
        assert list(kinds) == ["numRecords", "tightBounds", "minValues", "maxValues", "nullCount", "nanCount"]
        wanted = {f.name: f.type for f in batch(0).schema if f.name not in ("p", "d", "l")}
        assert {f.name: f.type for f in kinds["minValues"]} == {f.name: f.type for f in kinds["maxValues"]} == wanted
        assert kinds["nullCount"].field("st").type == pa.struct([("a", pa.int64()), ("b.c", pa.int64())])


@pytest.mark.spec("D-053")
def test_a_table_without_partitions(tmp_path):
    bh.write(batch(0), str(tmp_path / "t"), format="delta", properties=properties("struct"))
    found = add_type(checkpoint(tmp_path / "t"))
    assert "stats_parsed" in found and "partitionValues_parsed" not in found
    assert read_files(tmp_path / "t", "id = 5") == 1 and read_files(tmp_path / "t", "id = 10") == 0


@pytest.mark.few(2)
@pytest.mark.spec("D-055")
@pytest.mark.parametrize("form", FORMS)
def test_same_rows_and_pruning_by_every_form(tmp_path, form):
    make(tmp_path / "t", form)
    table = bh.open(str(tmp_path / "t"))
    whole = pa.concat_tables([batch(i) for i in range(4)])
    assert table.to_arrow().sort_by("id") == whole.sort_by("id").cast(table.to_arrow().schema)
    rows = [r.as_py() for r in table.files().column("rows")]
    assert rows == ([None] * 4 if form == "none" else [10] * 4) and table.count() == 40
    for where, files in CONDITIONS.items():
        expected = bh.open(str(tmp_path / "t")).scan(where=where).to_arrow().num_rows
        found = read_files(tmp_path / "t", where)
        assert found == (files if form != "none" or (where[0] in "pd" and where[1] == " ") else 4), where
        assert bool(expected) is (files > 0), where


def test_statistics_go_from_form_to_form_and_none_is_lost(tmp_path):
    path = tmp_path / "t"
    make(path, "text")
    for i, form in enumerate(("struct", "both", "struct", "text", "struct"), 4):
        table = bh.open(str(path))
        table.set_properties({k: v for k, v in properties(form).items() if "Interval" not in k})
        table.append(batch(i))
        found = add_type(checkpoint(path))
        assert ("stats" in found, "stats_parsed" in found) == tuple(f == "true" for f in FORMS[form])
        assert bh.open(str(path)).count() == 10 * (i + 1)
        assert [r.as_py() for r in bh.open(str(path)).files().column("rows")] == [10] * (i + 1)
        for where, files in CONDITIONS.items():
            more = {"n is not null": i + 1, "big >= 2000000000000000000000000000000000000": i - 1, "x > 3.1": i - 2}
            grown = {"small >= 30": i - 2, "t >= timestamp '2023-01-01'": i - 2}
            assert read_files(path, where) == more.get(where, grown.get(where, files)), (form, where)


def test_files_with_vectors_keep_their_count(raw, delta):
    table = raw()
    data = (1681511377).to_bytes(4, "little") + serialize64(Bitmap.of([0, 6]))
    inline = z85.encode(data + bytes(-len(data) % 4))
    vector = {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": len(data), "cardinality": 2}
    names = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names}
    metadata = delta.metadata([delta.field("x", "long")], configuration={JSON: "false", STRUCT: "true"})
    stats = '{"numRecords":7,"minValues":{"x":1},"maxValues":{"x":9},"nullCount":{"x":1},"tightBounds":false}'
    table.commit(0, {"protocol": protocol}, metadata, table.add("f.parquet", deletionVector=vector, stats=stats))
    file = checkpoint(table.path)
    assert bh.open(str(table)).count() == 5
    (row,) = [r for r in pq.read_table(file).column("add").to_pylist() if r]
    assert row["stats_parsed"] == {
        "numRecords": 7, "tightBounds": False, "minValues": {"x": 1}, "maxValues": {"x": 9}, "nullCount": {"x": 1},
    }  # fmt: skip
    assert read_files(table.path, "x > 9") == 0 and read_files(table.path, "x is null") == 1


def test_the_properties_are_flags(tmp_path):
    with pytest.raises(InvalidArgumentError, match="not true or false"):
        bh.write(batch(0), str(tmp_path / "t"), format="delta", properties={STRUCT: "yes"})


TEXTS = {
    "bigint": [
        '{"minValues":{"x":-5},"maxValues":{"x":9223372036854775807}}',
        '{"minValues":{"x":"a"},"maxValues":{}}',
    ],
    "float": ['{"minValues":{"x":0.1},"maxValues":{"x":3.4028235e38},"nanCount":{"x":2}}', '{"minValues":{"x":"NaN"}}'],
    "double": ['{"minValues":{"x":-0.0},"maxValues":{"x":1e308}}'],
    "date": ['{"minValues":{"x":"0001-01-01"},"maxValues":{"x":"9999-12-31"}}'],
    "boolean": ['{"minValues":{"x":false},"maxValues":{"x":true}}'],
    "string": ['{"minValues":{"x":""},"maxValues":{"x":"%s"}}' % ("z" * 33), '{"minValues":{"x":"é"}}'],
    "decimal(38,4)": ['{"minValues":{"x":1.5},"maxValues":{"x":1234567890123456789.1234}}', '{"maxValues":{"x":1e30}}'],
    "timestamp": [
        '{"minValues":{"x":"2020-01-01T00:00:00.123Z"},"maxValues":{"x":"2020-01-01T00:00:00.123456Z"}}',
        '{"minValues":{"x":"1960-01-01T00:00:00.123Z"},"maxValues":{"x":"1883-11-18T12:00:00.001-07:53"}}',
        '{"minValues":{"x":"0001-01-02T00:00:00Z"},"maxValues":{"x":"9999-01-01 00:00:00"}}',
    ],
    "timestamp_ntz": ['{"minValues":{"x":"2020-01-01 00:00:00.1"},"maxValues":{"x":"2020-01-01T00:00:00.123456"}}'],
}


WIDTHS = ["", ',"tightBounds":false,"nullCount":{"x":3}', ',"tightBounds":true,"nullCount":{"x":0}']


@pytest.mark.parametrize("type", TEXTS)
@pytest.mark.parametrize("tight", WIDTHS)
def test_no_form_says_more_than_the_other(type, tight):
    """Bounds are as wide or wider after each way, and attained only if they were."""
    texts = [None, "no JSON", *(f'{{"numRecords":10,{t[1:-1]}{tight}}}' for t in TEXTS[type])]
    column = StatsColumn(parse_schema(f"x {type}").fields[0].type, ("x",))
    adds = pa.record_batch({"stats": pa.array(texts, pa.string())})
    parsed = ParsedLayout((column,), frozenset(found_in([adds]))).of(adds)
    assert [p.is_valid for p in parsed] == [False, False] + [True] * len(TEXTS[type])
    again = texts_of(pa.record_batch({"stats": pa.nulls(len(texts), pa.string()), "stats_parsed": parsed}), [column])
    first = decode_stats(adds.column("stats"), [column]).field(0).to_pylist()
    for other in (decode_parsed(parsed, [column]), decode_stats(again, [column])):
        for a, b in zip(first, other.field(0).to_pylist()):
            for key in ("rows", "nulls", "nans", "values"):
                assert a.get(key) == b.get(key), key
            for key, worse in (("lower", lambda x, y: y <= x), ("upper", lambda x, y: y >= x)):
                if b[key] is not None:
                    assert worse(a[key], b[key]), (a, b)
                assert a[key] is None or b[key] is not None, (a, b)
            assert not b["lower_exact"] or a["lower_exact"], (a, b)
            assert not b["upper_exact"] or a["upper_exact"], (a, b)


def test_the_reference_writes_structs_and_we_read_them(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "t"
    configuration = {JSON: "false", STRUCT: "true"}
    drop = ["small"]  # written as byte, whose statistics are integers there
    for i in range(4):
        data = batch(i).drop_columns(drop)
        deltalake.write_deltalake(str(path), data, partition_by=["p", "d"], mode="append", configuration=configuration)
    deltalake.DeltaTable(str(path)).create_checkpoint()
    for entry in (path / "_delta_log").glob("*.json"):
        entry.unlink()
    (file,) = (path / "_delta_log").glob("*.checkpoint.parquet")
    assert "stats" not in add_type(file) and "stats_parsed" in add_type(file)
    before = pa.Table.from_batches([*FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).files([("id",)])])
    assert before.column("rows").to_pylist() == [10] * 4
    assert {(s["0"]["lower"], s["0"]["upper"]) for s in before.column("stats").to_pylist()} == {
        (10 * i, 10 * i + 9) for i in range(4)
    }
    for where in ("id = 25", "day = date '1961-01-05'", "t >= timestamp '2023-01-01'", "m = 1.05", "st.a = 2", "n = 3"):
        assert read_files(path, where) == 1, where
    found = bh.open(str(path)).to_arrow().sort_by("id")
    assert found.drop_columns(["x", "f"]) == pa.concat_tables(
        [batch(i).drop_columns([*drop, "x", "f"]) for i in range(4)]
    ).cast(found.drop_columns(["x", "f"]).schema)
    table = bh.open(str(path))
    table.append(batch(4).drop_columns(drop))
    checkpoint(path)
    assert [r.as_py() for r in bh.open(str(path)).files().column("rows")] == [10] * 5
    assert read_files(path, "id = 25") == 1 and read_files(path, "m = 1.05") == 1


@pytest.mark.parametrize("form", ["text", "struct", "both"])
def test_the_reference_reads_ours(tmp_path, delta, form):
    make(tmp_path / "t", form)
    assert len(delta.rows(tmp_path / "t")) == 40
    for where, count in (("id = 25", 1), ("day >= date '1963-01-05'", 6), ("s like '2-%'", 10), ("m > 3", 9)):
        assert len(delta.rows(tmp_path / "t", f"select * from t where {where}")) == count, where
    deltalake = pytest.importorskip("deltalake")
    actions = pa.table(deltalake.DeltaTable(str(tmp_path / "t")).get_add_actions(flatten=True)).to_pylist()
    assert sorted((a["min.id"], a["max.id"], a["num_records"]) for a in actions) == [
        (10 * i, 10 * i + 9, 10) for i in range(4)
    ]


@pytest.mark.spark
def test_spark_reads_our_structs(tmp_path, spark):
    file = make(tmp_path / "t", "struct")
    adds = spark.read.parquet(str(file)).where("add is not null").select("add.*")
    wanted = ["numRecords", "minValues.t", "maxValues.day", "minValues.st.a", "maxValues.m"]
    parsed = [f"stats_parsed.{name}" for name in wanted]
    rows = adds.selectExpr(*parsed, "partitionValues_parsed.d", "to_json(stats_parsed)").orderBy("d").collect()
    assert [r[0] for r in rows] == [10] * 4 and [r[3] for r in rows] == list(range(4))
    assert [r[2] for r in rows] == [dt.date(1960 + i, 1, 10) for i in range(4)]
    assert [r[4] for r in rows] == [Decimal(f"{i}.09") for i in range(4)]
    assert [r[5] for r in rows] == [dt.date(2020 + i, 1, 2) for i in range(4)]
    assert json.loads(rows[1][6])["minValues"]["id"] == 10
