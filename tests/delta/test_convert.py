"""A folder of Parquet files becomes a Delta table in place: what others wrote, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.storage import Stores

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "na me": ["a", None, "c", "d"],
        "amount": pa.array([Decimal("1.25"), None, Decimal("-3.50"), Decimal("0.00")], pa.decimal128(10, 2)),
        "at": pa.array([0, 1_500, None, 3_000_001], pa.timestamp("us", "UTC")),
        "x.y": [{"b": 1.5, "c": ["u"]}, {"b": None, "c": []}, None, {"b": 2.0, "c": None}],
        "year": pa.array([2020, 2020, 2021, None], pa.int32()),
        "ti tle": ["a b", "c/d", "ü=é", "50%"],
    }
)
BY = "year int, `ti tle` string"
NAMED = {"delta.columnMapping.mode": "name"}
"""Delta allows spaces in names with column mapping only."""


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request):
    return None if request.param == "local" else request.getfixturevalue("spark")


@pytest.fixture
def folder(tmp_path) -> Path:
    """ROWS as pyarrow writes them by partition, with hidden files beside them."""
    path = tmp_path / "földer 1"
    kind = ds.partitioning(ROWS.select(["year", "ti tle"]).schema, flavor="hive")
    ds.write_dataset(ROWS, path, format="parquet", partitioning=kind)
    for name in ("_SUCCESS", ".part.crc", "_temporary/0/part.parquet", ".hidden/a.csv"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("no Parquet")
    return path


def foreign(path: Path) -> list[dict]:
    table = deltalake.DeltaTable(str(path))
    return by_id(pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t")))


def by_id(rows: pa.Table) -> list[dict]:
    return sorted(rows.to_pylist(), key=lambda r: r["id"])


def adds(path: Path) -> dict[str, dict]:
    lines = (path / "_delta_log/00000000000000000000.json").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return {a["add"]["path"]: a["add"] for a in found if "add" in a}


def content(path: Path) -> dict[str, tuple[bytes, float]]:
    return {str(f): (f.read_bytes(), f.stat().st_mtime) for f in path.rglob("*") if f.is_file()}


@pytest.mark.feature("convert a folder of Parquet files in place", format="delta")
@pytest.mark.route("convert")
def test_the_rows_are_those_of_the_folder_and_no_file_changes(folder, session):
    before = content(folder)
    dry = bh.convert(str(folder), partition_by=BY, properties=NAMED, dry_run=True, spark=session)
    assert (dry.dry_run, dry.files_added, dry.rows_added, dry.version) == (True, 4, 4, None)
    assert content(folder) == before
    result = bh.convert(str(folder), partition_by=BY, properties=NAMED, spark=session)
    assert (result.operation, result.version, result.files_added, result.rows_added) == ("convert", 0, 4, 4)
    after = content(folder)
    assert {name: after[name] for name in before} == before
    assert {str(Path(n).parent) for n in after.keys() - before.keys()} == {str(folder / "_delta_log")}
    assert result.bytes_added == sum(len(data) for name, (data, _) in before.items() if name.endswith("part-0.parquet"))
    table = bh.open(str(folder), spark=session)
    assert by_id(table.to_arrow()) == by_id(ROWS) == foreign(folder)
    assert [f.name for f in table.partitioning.current] == ["year", "ti tle"]
    # duckdb reads the folder itself.
    hive = duckdb.sql(f"from read_parquet('{folder}/year*/*/*.parquet', hive_partitioning = true) order by id")
    assert hive.project('id, "na me", amount, year').fetchall() == [
        (r["id"], r["na me"], r["amount"], None if r["year"] is None else r["year"]) for r in by_id(ROWS)
    ]


def test_the_log_says_what_footers_are_sure_of(folder):
    bh.convert(str(folder), partition_by=BY, properties=NAMED, message="taken over")
    found = adds(folder)
    add = found["year=2020/ti%20tle=c%252Fd/part-0.parquet"]
    file = folder / "year=2020/ti tle=c%2Fd/part-0.parquet"
    assert add["partitionValues"] == {"year": "2020", "ti tle": "c/d"}
    assert (add["size"], add["modificationTime"]) == (file.stat().st_size, int(file.stat().st_mtime * 1000))
    stats = json.loads(add["stats"])
    assert stats["numRecords"] == 1
    assert stats["minValues"] == stats["maxValues"] | {"at": "1970-01-01T00:00:00.001Z"} == {
        "id": 2, "at": "1970-01-01T00:00:00.001Z"
    }  # fmt: skip
    # Nothing says that there is no NaN, so floats have no bounds.
    assert stats["nullCount"] == {"id": 0, "na me": 1, "amount": 1, "at": 0, "x.y": {"b": 1}}
    nothing = found["year=__HIVE_DEFAULT_PARTITION__/ti%20tle=50%2525/part-0.parquet"]
    assert nothing["partitionValues"] == {"year": None, "ti tle": "50%"}
    entry = bh.open(str(folder)).history()[0]
    assert (entry.operation, entry.message) == ("CONVERT", "taken over")
    assert entry.parameters["numFiles"] == 4 and json.loads(entry.parameters["partitionedBy"]) == ["year", "ti tle"]
    assert entry.metrics["numConvertedFiles"] == 4


def test_deltalake_makes_the_same_of_it(folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    for name in ("_temporary", ".hidden"):
        shutil.rmtree(other / name)
    kind = deltalake.schema.PrimitiveType
    fields = [deltalake.Field("year", kind("integer")), deltalake.Field("ti tle", kind("string"))]
    deltalake.convert_to_deltalake(str(other), partition_by=deltalake.Schema(fields), partition_strategy="hive")
    bh.convert(str(folder), partition_by=BY, properties=NAMED)
    ours, theirs = adds(folder), adds(other)
    assert _known(ours) == _known(theirs)


def _known(actions: dict[str, dict]) -> list[tuple]:
    return sorted(
        ((a["size"], a["modificationTime"], sorted(a["partitionValues"].items(), key=str)) for a in actions.values()),
        key=str,
    )


def test_the_table_is_written_on(folder):
    bh.convert(str(folder), partition_by=BY, properties=NAMED)
    table = bh.open(str(folder))
    table.append(ROWS.slice(0, 1).set_column(0, "id", pa.array([9], pa.int32())))
    table.delete("id = 3")
    table.vacuum(0, enforce_retention_duration=False)
    assert [r["id"] for r in foreign(folder)] == [1, 2, 4, 9]
    assert table.scan(where="id > 3").to_arrow().num_rows == 2


@pytest.mark.spark
def test_what_spark_wrote(spark, tmp_path):
    path = tmp_path / "spark"
    frame = spark.sql(
        "select cast(id as int) id, timestamp'2020-01-01 10:00:00.5' + make_interval(0,0,0,0,cast(id as int)) at, "
        "timestamp_ntz'2020-01-01 10:00:00' ntz, array(named_struct('a', id, 'b', null)) items, map('k', id) m, "
        "cast(id / 4 as decimal(20, 3)) d, timestamp'2021-05-05 01:02:03' + make_interval(0,0,0,0,cast(id % 2 as int))"
        " `p:t`, if(id = 3, null, concat('v=', id, '/ü %')) `q r` from range(4)"
    )
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame.repartition(1).write.partitionBy("p:t", "q r").parquet(str(path))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    bh.convert(str(path), partition_by="`p:t` timestamp, `q r` string", properties=NAMED, spark=spark)
    table = bh.open(str(path), spark=spark)
    assert str(table.schema.field("at").type) == "timestamp" and str(table.schema.field("ntz").type) == "timestamp_ntz"
    wanted = by_id(frame.toArrow())
    assert by_id(bh.open(str(path)).to_arrow()) == wanted == by_id(table.to_spark().toArrow())
    assert foreign(path) == wanted
    assert all("at" not in json.loads(a["stats"])["minValues"] for a in adds(path).values())


def test_timestamps_of_folders_are_of_the_zone(tmp_path):
    (tmp_path / "at=2020-07-01 10%3A00%3A00").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "at=2020-07-01 10%3A00%3A00/a.parquet")
    bh.convert(str(tmp_path), partition_by="at timestamp", timezone="Europe/Berlin")
    assert foreign(tmp_path)[0]["at"] == dt.datetime(2020, 7, 1, 8, tzinfo=dt.UTC)


def two(path: Path, first: dict, second: dict) -> Path:
    pq.write_table(pa.table({"id": [1], **first}), path / "a.parquet")
    pq.write_table(pa.table({"id": [2], **second}), path / "b.parquet")
    return path


def test_schemas_are_merged(tmp_path):
    one = {
        "only": ["x"], "wide": pa.array([1], pa.int16()), "f": pa.array([0.1], pa.float32()), "n": pa.nulls(1),
        "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)), "s": [{"a": 1}], "l": [[{"k": 1}]],
    }  # fmt: skip
    other = {
        "wide": [1 << 40], "f": [1e300], "n": ["text"], "d": pa.array([Decimal("2.25")], pa.decimal128(12, 2)),
        "s": [{"b": "t", "a": 2}], "l": [[{"k": 2, "j": None}]], "late": [True],
    }  # fmt: skip
    bh.convert(str(two(tmp_path, one, other)))
    schema = bh.open(str(tmp_path)).schema
    assert [str(schema.field(n).type) for n in ("wide", "f", "n", "d", "late")] == [
        "bigint", "double", "string", "decimal(12,2)", "boolean"
    ]  # fmt: skip
    found = by_id(bh.open(str(tmp_path)).to_arrow())
    assert found == foreign(tmp_path)
    assert found[0] | {"f": None} == {
        "id": 1, "only": "x", "wide": 1, "f": None, "n": None, "d": Decimal("1.50"), "s": {"a": 1, "b": None},
        "l": [{"k": 1, "j": None}], "late": None,
    }  # fmt: skip
    stats = json.loads(adds(tmp_path)["a.parquet"]["stats"])
    assert stats["nullCount"] == {
        "id": 0, "only": 0, "wide": 0, "f": 0, "n": 1, "d": 0, "s": {"a": 0, "b": 1}, "late": 1
    }  # fmt: skip
    assert stats["minValues"]["d"] == 1.5 and stats["minValues"]["wide"] == 1
    assert bh.open(str(tmp_path)).scan(where="d < 2 and s.b is null").to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"v": [1]}, {"v": ["1"]}, r"`v` is bigint in .*a\.parquet, but string here.*b\.parquet"),
        ({"v": [{"w": 1}]}, {"v": [{"w": [1]}]}, r"`v\.w` is bigint in .*a\.parquet, but array<bigint> here"),
        ({"v": pa.array([1], pa.timestamp("us"))}, {"v": pa.array([1], pa.timestamp("us", "UTC"))}, "timestamp_ntz"),
        ({"v": [1]}, {"V": [1]}, r"the column is `v` in .*a\.parquet, but `V` here"),
    ],
)
def test_files_that_do_not_fit_each_other(tmp_path, first, second, said):
    with pytest.raises(errors.SchemaMismatchError, match=said):
        bh.convert(str(two(tmp_path, first, second)))
    assert not (tmp_path / "_delta_log").exists()


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (None, r"name the partition columns `year`, `ti tle`; partition_by names none.*partition_by='year int, `ti"),
        ("year int", "partition_by names `year`"),
        ("year int, `ti tle` string, day date", "partition_by names .*`day`"),
        ("year int, `ti tle` date", "'a b' in the path of this file is not a date, which `ti tle` is"),
        ("year int, `ti tle` array<int>", "cannot be read from the name of a folder"),
    ],
)
def test_folders_that_do_not_fit(folder, by, said):
    with pytest.raises(errors.InvalidArgumentError, match=said):
        bh.convert(str(folder), partition_by=by)
    assert not (folder / "_delta_log").exists()


def test_partitions_that_no_folder_names(tmp_path):
    with pytest.raises(
        errors.InvalidArgumentError, match=r"partition columns none; .*names `y`.*[Ll]eave partition_by"
    ):
        bh.convert(str(two(tmp_path, {}, {})), partition_by="y int")


def test_what_is_no_folder_of_parquet_files(tmp_path):
    with pytest.raises(errors.NotFoundError, match="there are no files"):
        bh.convert(str(tmp_path / "absent"))
    two(tmp_path, {}, {})
    (tmp_path / "notes.txt").write_text("PAR1, or not")
    with pytest.raises(errors.CorruptTableError, match=r"not a readable Parquet file.*notes\.txt"):
        bh.convert(str(tmp_path))
    os.remove(tmp_path / "notes.txt")
    inner = tmp_path / "inner"
    bh.create(str(inner), "id bigint")
    with pytest.raises(errors.UnsupportedFeatureError, match=r"a Delta table is in this folder.*inner"):
        bh.convert(str(tmp_path))
    shutil.rmtree(inner)
    (tmp_path / "_spark_metadata").mkdir()
    (tmp_path / "_spark_metadata/0").write_text("v1")
    with pytest.raises(errors.UnsupportedFeatureError, match="a Spark stream wrote these files"):
        bh.convert(str(tmp_path))
    shutil.rmtree(tmp_path / "_spark_metadata")
    with pytest.raises(errors.UnsupportedFeatureError, match=r"no field ids.*[Ss]et it to name"):
        bh.convert(str(tmp_path), properties={"delta.columnMapping.mode": "id"})
    with pytest.raises(errors.UnsupportedFeatureError, match="not offered for lance tables"):
        bh.convert(str(tmp_path), format="lance")
    bh.convert(str(tmp_path))
    with pytest.raises(errors.AlreadyExistsError):
        bh.convert(str(tmp_path))
    table = bh.open(str(tmp_path))
    table.set_properties(NAMED)
    table.rename_column("id", "key")
    assert table.to_arrow()["key"].to_pylist() == [1, 2]


def test_names_that_need_column_mapping(tmp_path):
    two(tmp_path, {"a b": [1]}, {"a b": [2]})
    with pytest.raises(errors.SchemaError, match=r"`a b` contains ' '.*set the property"):
        bh.convert(str(tmp_path))
    bh.convert(str(tmp_path), properties=NAMED)
    table = bh.open(str(tmp_path))
    table.rename_column("a b", "c")
    table.append(pa.table({"id": [3], "c": [3]}))
    assert table.to_arrow()["c"].to_pylist() == [1, 2, 3] == [r["c"] for r in foreign(tmp_path)]


def test_statistics_that_are_missing_or_unsafe(tmp_path):
    rows = pa.table({"id": [1, 2], "f": [1.0, float("nan")], "b": [b"\xff", b"a"], "t": ["", "z"], "o": [True, False]})
    pq.write_table(rows, tmp_path / "none.parquet", write_statistics=False)
    pq.write_table(rows.slice(0, 0), tmp_path / "empty.parquet")
    pq.write_table(rows, tmp_path / "some.parquet", row_group_size=1)
    bh.convert(str(tmp_path))
    stats = {p: json.loads(a["stats"]) for p, a in adds(tmp_path).items()}
    assert stats["none.parquet"] == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}
    assert stats["empty.parquet"]["numRecords"] == 0 and stats["empty.parquet"]["minValues"] == {}
    assert stats["some.parquet"]["minValues"] == {"id": 1, "t": ""}
    assert stats["some.parquet"]["maxValues"] == {"id": 2, "t": "z"}
    table = bh.open(str(tmp_path))
    assert table.scan(where="f > 5").to_arrow()["id"].to_pylist() == [2, 2]
    assert table.scan(where="id = 2").to_arrow().num_rows == 2


def test_a_partition_column_may_be_hidden_by_its_name_and_be_in_the_files(tmp_path):
    (tmp_path / "_P=7/plain").mkdir(parents=True)
    pq.write_table(pa.table({"_p": ["other"], "id": [1]}), tmp_path / "_P=7/plain/a.parquet")
    bh.convert(str(tmp_path), partition_by="_p bigint")
    assert bh.open(str(tmp_path)).to_arrow().to_pylist() == [{"_p": 7, "id": 1}] == foreign(tmp_path)


def test_another_store():
    uri = "memory://convert/f"
    storage, key = Stores().resolve(uri)
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}), out)
    for i in range(3):
        storage.put(f"{key}/p={i}/a.parquet", out.getvalue().to_pybytes())
    assert bh.convert(uri, partition_by="p int").rows_added == 6
    assert bh.open(uri).scan(where="p = 1").to_arrow()["id"].to_pylist() == [1, 2]
