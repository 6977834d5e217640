"""Data files that are there become files of a table, in place: `t.add_files` and `bh.convert`."""

from __future__ import annotations

import hashlib
import json
import os
import random
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from rivals import with_rival

import boathouse as bh
from boathouse import errors

NAMES = "schema.name-mapping.default"
STRUCT = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))])
ROWS = pa.table(
    {
        "id": pa.array([3, 1, None], pa.int64()),
        "f": pa.array([1.5, float("nan"), -0.0]),
        "s": ["a", None, "ü"],
        "d": pa.array([Decimal("1.50"), Decimal("-7.00"), None], pa.decimal128(9, 2)),
        "st": pa.array([{"x": 1, "l": ["p"]}, None, {"x": None, "l": []}], STRUCT),
        "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    }
)  # fmt: skip


def theirs(path: str) -> pa.Table:
    """The rows by pyiceberg."""
    head = max(Path(path, "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return StaticTable.from_metadata(f"file://{head}").scan().to_arrow()


def avro(path: Path, rows: pa.Table) -> None:
    """By fastavro, as it writes any records."""
    names = {pa.int64(): "long", pa.string(): "string"}
    fields = [{"name": f.name, "type": ["null", names[f.type]]} for f in rows.schema]
    with open(path, "wb") as out:
        fastavro.writer(out, {"type": "record", "name": "row", "fields": fields}, rows.to_pylist())


def lines(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.select(sorted(table.column_names)).to_pylist()))


def contents(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a täble")


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source of 100%"
    folder.mkdir()
    return folder


@pytest.mark.spec("I-287", "I-300", "I-086")
@pytest.mark.feature("data files added in place", format="iceberg")
@pytest.mark.parametrize("version", ("1", "2", "3"))
def test_files_of_every_format_are_read_where_they_are(path, source, version):
    pq.write_table(ROWS, source / "a.parquet", row_group_size=2)
    t = bh.create(path, ROWS.schema, format="iceberg", properties={"format-version": version})
    done = t.add_files(source)
    assert (done.files_added, done.rows_added, done.operation) == (1, 3, "append")
    if version != "3":  # pyiceberg makes no plans of version 3
        assert lines(theirs(path)) == lines(ROWS)
    orc.write_table(ROWS, source / "b.orc")
    avro(source / "c", ROWS.select(["id", "s"]))
    before = contents(source)
    done = t.add_files([source / "b.orc", source / "c"])
    assert (done.files_added, done.rows_added, done.bytes_added) == (
        2, 6, sum(os.path.getsize(source / n) for n in ("b.orc", "c")),
    )  # fmt: skip
    assert lines(t.to_arrow()) == sorted(2 * lines(ROWS) + lines(pa.Table.from_pylist(
        [{"id": r["id"], "s": r["s"]} for r in ROWS.to_pylist()], ROWS.schema)))  # fmt: skip
    t.delete("id = 3")  # rewrites all three
    assert t.count() == 6 and contents(source) == before
    t.restore(done.version)
    assert {f["file_format"] for f in t.inspect.files().to_pylist()} == {"PARQUET", "ORC", "AVRO"}
    if version == "3":
        assert sorted(t.scan(["_row_id"]).to_arrow()["_row_id"].to_pylist()) == list(range(9))


def test_timestamps_in_orc(path, source):
    """pyarrow reads them as nanoseconds, which are no type of the table."""
    times = pa.table({"ts": pa.array([-1, 5, None], pa.timestamp("us")), "st": [{"at": None}] * 3}, pa.schema([
        ("ts", pa.timestamp("us")), ("st", pa.struct([("at", pa.timestamp("us"))]))]))  # fmt: skip
    orc.write_table(times, source / "a.orc")
    t = bh.create(path, times.schema, format="iceberg")
    t.add_files(source)
    assert t.to_arrow().to_pylist() == times.to_pylist()
    other = bh.create(path + "-2", "ts timestamp, st struct<at: timestamp_ntz>", format="iceberg")
    with pytest.raises(errors.SchemaMismatchError, match="`ts` is timestamp_ntz in the file, and timestamp in the"):
        other.add_files(source)


def test_the_table_gets_the_name_mapping_of_the_reference(path, source):
    """As MappingUtil.create makes it; one that is there stays."""
    pq.write_table(ROWS, source / "a.parquet")
    t = bh.create(path, ROWS.schema, format="iceberg")
    t.add_files(source)
    assert json.loads(t.properties[NAMES])[4:] == [
        {"field-id": 5, "names": ["st"], "fields": [
            {"field-id": 6, "names": ["x"]},
            {"field-id": 7, "names": ["l"], "fields": [{"field-id": 8, "names": ["element"]}]},
        ]},
        {"field-id": 9, "names": ["m"], "fields": [
            {"field-id": 10, "names": ["key"]}, {"field-id": 11, "names": ["value"]},
        ]},
    ]  # fmt: skip
    assert next(iter(t.history())).operation == "append" and len(t.inspect.metadata_log_entries()) == 2
    t.rename_column("s", "text")
    pq.write_table(ROWS, source / "b.parquet")
    t.add_files(source / "b.parquet")
    mapped = t.properties[NAMES]
    assert json.loads(mapped)[2] == {"field-id": 3, "names": ["s", "text"]}
    assert lines(theirs(path)) == lines(t.to_arrow()) and t.to_arrow()["text"].to_pylist().count("a") == 2
    pq.write_table(pa.table({"s": ["old"], "text": ["new"]}), source / "c.parquet")
    with pytest.raises(errors.SchemaMismatchError, match=r"`s` and `text` of the file are one column.*c\.parquet"):
        t.add_files(source / "c.parquet")


def test_statistics_are_those_of_the_footers(path, source):
    pq.write_table(ROWS, source / "a.parquet", row_group_size=2, compression="none")
    orc.write_table(ROWS, source / "b.orc")
    avro(source / "c.avro", ROWS.select(["id"]))
    pq.write_table(ROWS, source / "d.parquet", write_statistics=False)
    t = bh.create(path, ROWS.schema, format="iceberg", properties={"write.metadata.metrics.column.s": "counts"})
    t.add_files(source)
    found = {os.path.basename(f["file_path"]): f for f in t.inspect.files().to_pylist()}
    of = {name: f["readable_metrics"] for name, f in found.items()}
    chunk = pq.read_metadata(source / "a.parquet")
    assert of["a.parquet"]["id"] == {
        "column_size": sum(chunk.row_group(i).column(0).total_compressed_size for i in (0, 1)),
        "value_count": 3, "null_value_count": 1, "nan_value_count": None, "lower_bound": 1, "upper_bound": 3,
    }  # fmt: skip
    assert found["a.parquet"]["split_offsets"] == [4, chunk.row_group(1).column(0).dictionary_page_offset]
    bounds = {n: (of["a.parquet"][n]["lower_bound"], of["a.parquet"][n]["upper_bound"]) for n in of["a.parquet"]}
    assert repr(bounds.pop("f")) == "(-0.0, 1.5)"  # NaN is in no bound, and zeros are the wider ones
    assert bounds == {
        "id": (1, 3), "s": (None, None), "d": (Decimal("-7.00"), Decimal("1.50")), "st.x": (1, 1),
        "st.l.element": (None, None), "m.key": (None, None), "m.value": (None, None),
    }  # fmt: skip
    assert of["b.orc"]["id"] == of["a.parquet"]["id"] | {"column_size": of["b.orc"]["id"]["column_size"]}
    assert (of["b.orc"]["st.x"]["null_value_count"], of["b.orc"]["f"]["lower_bound"]) == (2, None)
    assert found["c.avro"]["record_count"] == 3 and of["c.avro"]["id"]["null_value_count"] is None
    assert of["d.parquet"]["id"]["lower_bound"] is None and of["d.parquet"]["id"]["value_count"] == 3
    for where, units, rows in (("id > 5", 2, 0), ("id IS NULL", 4, 4), ("d < -8", 3, 0)):
        assert f"reads {units} of 4 units" in str(t.scan(["id"], where=where).explain())
        assert t.scan(["id"], where=where).to_arrow().num_rows == rows


@pytest.mark.parametrize("hive", (("Kiel", 1), ("a b%2Fü", 2), ("__HIVE_DEFAULT_PARTITION__", 3)))
def test_folders_give_the_partition(path, source, hive):
    for city, n in (("Kiel", 1), ("a b%2Fü", 2), ("__HIVE_DEFAULT_PARTITION__", 3)):
        inside = source / f"city={city}" / "Y=2024"
        inside.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([n], pa.int32())}), inside / "part-0.snappy.parquet")
        (inside / "_SUCCESS").write_text("")
        (inside / ".part-0.crc").write_text("")
    t = bh.create(path, "id bigint, city string, y int", format="iceberg", partition_by=["city", "y"])
    wanted = {"Kiel": "Kiel", "a b%2Fü": "a b/ü"}.get(hive[0])
    done = t.add_files(source, {"city": wanted, "y": "02024"})
    assert done.files_added == 1
    row = {"id": hive[1], "city": wanted, "y": 2024}
    assert t.to_arrow().to_pylist() == [row] == theirs(path).select(["id", "city", "y"]).to_pylist()
    if wanted is not None:
        assert t.scan(where=f"city = '{wanted}' AND y = 2024").count() == 1
    with pytest.raises(errors.InvalidArgumentError, match="cannot be added: the table has it"):
        t.add_files(source)
    done = t.add_files([f for f in source.rglob("*.parquet") if f"city={hive[0]}" not in str(f)])
    assert done.files_added == 2 and lines(theirs(path)) == lines(t.to_arrow()) and t.count() == 3


def refused(t, error, match, *args, **kwargs):
    """Nothing is written, and the files stay."""
    place = Path(t.uri.removeprefix("file://"))
    before = contents(place.parent)
    with pytest.raises(error, match=match):
        t.add_files(*args, **kwargs)
    assert contents(place.parent) == before


FILES = {
    "a column more": ({"id": [1], "x": [1]}, r"has the column `x`, which the table does not have"),
    "another case": ({"ID": [1]}, "has the column `ID`"),
    "another type": ({"id": ["1"]}, "`id` is string in the file, and bigint in the table"),
    "a wider type": ({"id": [1], "i": pa.array([1], pa.int64())}, "`i` is bigint in the file, and int in the table"),
    "no sign": ({"id": pa.array([1], pa.uint32())}, "`id` is uint32 in the file"),
    "a zone": ({"id": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))}, "`at` is timestamp in the file"),
    "nanoseconds": ({"id": [1], "at": pa.array([1], pa.timestamp("ns"))}, r"`at` is timestamp_ntz\(ns\) in the file"),
    "milliseconds": (
        {"id": [1], "tm": pa.array([1], pa.time32("ms"))},
        r"`tm` is time\(3\) in the file, and time\(6\) in",
    ),
    "a field more": ({"id": [1], "st": [{"x": 1, "y": 1}]}, r"has the column `st\.y`"),
    "another element": ({"id": [1], "l": [["a"]]}, r"`l\.element` is string in the file"),
    "bytes": ({"id": [1], "s": [b"x"]}, "`s` is binary in the file, and string in the table"),
    "a null": ({"id": pa.array([None], pa.int64())}, "column `id` must have values, and has 1 nulls in the file"),
    "a required column less": ({"i": pa.array([1], pa.int32())}, "`id` must have values, and the file does not have"),
}


@pytest.mark.parametrize("what", FILES)
def test_columns_that_are_not_the_table_s(path, source, what):
    rows, message = FILES[what]
    t = bh.create(
        path, "id bigint NOT NULL, i int, at timestamp_ntz, tm time, s string, st struct<x: bigint>, l array<bigint>",
        format="iceberg",
    )  # fmt: skip
    good = pa.table({"id": [1], "i": pa.array([1], pa.int8()), "at": pa.array([7], pa.timestamp("ms")), "l": [[1]]})
    pq.write_table(good, source / "a.parquet")
    pq.write_table(pa.table(rows), source / "b.parquet")
    refused(t, errors.SchemaMismatchError, rf"{message}.*b\.parquet", source)
    assert t.add_files(source / "a.parquet").rows_added == 1
    assert lines(theirs(path)) == lines(t.to_arrow())


def test_folders_and_files_that_do_not_fit(path, source, tmp_path):
    pq.write_table(pa.table({"id": [1]}), source / "a.parquet")
    (source / "b.txt").write_text("id\n1\n")
    t = bh.create(path, "id bigint, p int", format="iceberg")
    refused(t, errors.UnsupportedFeatureError, r"neither Parquet nor ORC nor Avro.*b\.txt", source)
    refused(t, errors.CorruptTableError, r"b\.txt", source, format="parquet")
    refused(t, errors.NotFoundError, "no files to add", tmp_path / "nothing")
    refused(
        t,
        errors.InvalidArgumentError,
        "not partitioned by `p`.*It is not partitioned",
        source / "a.parquet",
        {"p": "1"},
    )
    refused(t, errors.InvalidArgumentError, "format='csv'", source, format="csv")
    refused(t, errors.InvalidArgumentError, "are no files", [])
    inside = source / "p=1"
    inside.mkdir()
    os.rename(source / "a.parquet", inside / "a.parquet")
    refused(
        t, errors.InvalidArgumentError, "says `p`, and the table is not partitioned", inside.parent, format="parquet"
    )
    t.partition_by("p")
    os.remove(source / "b.txt")
    refused(t, errors.NotFoundError, "no file is in the partition P=2", source, {"P": "2"})
    refused(t, errors.InvalidArgumentError, "'x' is not a int", source, {"p": "x"})
    refused(t, errors.InvalidArgumentError, "not partitioned by `q`.*It is by p", source, {"q": "1"})
    os.rename(inside, source / "p=one")
    refused(t, errors.InvalidArgumentError, r"'one' in the path of this file is not a int.*a\.parquet", source)
    os.rename(source / "p=one", source / "q=1")
    refused(t, errors.InvalidArgumentError, r"says `q`, and the table is partitioned by `p`", source)
    pq.write_table(pa.table({"id": [1]}), source / "c.parquet")
    refused(t, errors.InvalidArgumentError, "does not say `p`", source / "c.parquet")
    bh.create(str(source / "inner"), "id bigint")
    refused(t, errors.UnsupportedFeatureError, "Delta table is in this folder", source)
    t.partition_by(b="bucket(4, id)")
    refused(t, errors.UnsupportedFeatureError, r"partitioned by bucket\[4\] of `id`", source)


def test_a_partition_column_that_is_in_the_files_too(path, source):
    """Some readers take the value of the folder, some that of the file: they must be one."""
    t = bh.create(path, "id bigint, p int", format="iceberg", partition_by=["p"])
    places = {}
    for name, folder, values in (
        ("same", "p=1", [1, 1]), ("other", "p=1", [2, 2]), ("mixed", "p=1", [1, 2]), ("null", "p=1", [1, None]),
        ("nulls", "p=__HIVE_DEFAULT_PARTITION__", [None, None]),
    ):  # fmt: skip
        places[name] = source / name / folder / "a.parquet"
        places[name].parent.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2], "p": pa.array(values, pa.int32())}), places[name])
    for name in ("other", "mixed", "null"):
        refused(t, errors.SchemaMismatchError, rf"`p` has .* in the file, and its folder says 1.*{name}", places[name])
    t.add_files([places["same"], places["nulls"]])
    assert lines(theirs(path)) == lines(t.to_arrow())
    assert sorted(t.to_arrow()["p"].to_pylist(), key=str) == [1, 1, None, None]


@pytest.mark.spec("I-171", "I-172")
def test_a_file_is_added_once(path, source):
    pq.write_table(pa.table({"id": [1]}), source / "a.parquet")
    pq.write_table(pa.table({"id": [2]}), source / "b.parquet")
    t = bh.create(path, "id bigint", format="iceberg")
    assert t.add_files([source, source / "a.parquet"]).files_added == 2
    refused(t, errors.InvalidArgumentError, r"a\.parquet cannot be added: the table has it", source / "a.parquet")
    again = {"check_duplicate_files": False}
    refused(t, errors.InvalidArgumentError, "cannot be added: the table has it", source / "a.parquet", **again)
    t.delete("id = 1")
    refused(t, errors.InvalidArgumentError, "or had it and deleted it", source / "a.parquet")
    t.add_files(source / "a.parquet", **again)
    assert sorted(theirs(path)["id"].to_pylist()) == [1, 2]


def test_field_ids_of_files_are_those_of_the_table_or_refused(tmp_path, path):
    """Readers find columns by the ids of a file, whatever its names are."""
    other = str(tmp_path / "other")
    bh.write(pa.table({"id": [1], "s": ["x"]}), other, format="iceberg")
    (file,) = bh.open(other).files()["path"].to_pylist()
    for columns, message in (
        ("id bigint, s string", None), ("s string, id bigint", "the file's column `id` has the field id 1, which is"),
        ("id bigint", "the file's column `s` has the field id 2"),
    ):  # fmt: skip
        t = bh.create(f"{path}-{len(columns)}-{columns[0]}", columns, format="iceberg")
        if message is not None:
            with pytest.raises(errors.SchemaMismatchError, match=message):
                t.add_files(file)
            continue
        t.rename_column("s", "text")
        t.add_files(file)
        assert t.to_arrow().to_pylist() == [{"id": 1, "text": "x"}] == theirs(t.uri.removeprefix("file://")).to_pylist()
    with pytest.raises(errors.SchemaMismatchError, match="has the field id"):
        t = bh.create(f"{path}-x", "i bigint, s string", format="iceberg")
        t.add_files(file)


def test_a_concurrent_mapping_is_kept(path, source, monkeypatch):
    for name in "abc":
        pq.write_table(pa.table({"id": [ord(name)]}), source / f"{name}.parquet")
    t = bh.create(path, "id bigint, s string", format="iceberg")

    def add(name, **options):
        return lambda table: table.add_files(source / f"{name}.parquet", **options)

    assert with_rival(monkeypatch, t, add("a"), add("b")).retries == 1
    assert sorted(bh.open(path).to_arrow()["id"].to_pylist()) == [97, 98]
    with pytest.raises(errors.InvalidArgumentError, match="the table has it"):
        with_rival(monkeypatch, bh.open(path), add("c"), add("c"))
    with_rival(monkeypatch, bh.open(path), lambda t: t.delete("id = 99"), lambda t: t.set_properties({"x": "y"}))
    again = add("c", check_duplicate_files=False)
    with_rival(monkeypatch, bh.open(path), again, lambda t: t.append(pa.table({"id": [1]})))
    assert sorted(theirs(path)["id"].to_pylist()) == [1, 97, 98, 99]
    pq.write_table(pa.table({"id": [100]}), source / "d.parquet")
    with pytest.raises(errors.SchemaMismatchError, match="`id` is bigint in the file, and string"):
        with_rival(monkeypatch, bh.open(path), add("d"), lambda t: (t.drop_column("id"), t.add_column("id", "string")))


def test_types_that_parquet_annotates(path, source):
    """What writers of Arrow make of one column: large, dictionary and extension types, milliseconds."""
    given = pa.table(
        {
            "u": pa.array([b"0" * 16, None], pa.uuid()), "x": pa.array([b"abc", b"abd"], pa.binary(3)),
            "tm": pa.array([1, 86_399_999_999], pa.time64("us")), "tz": pa.array([-1, 5], pa.timestamp("ms", "UTC")),
            "s": pa.array(["a", "b"], pa.large_string()), "k": pa.array(["y", "x"]).dictionary_encode(),
            "o": pa.array([True, None]), "day": pa.array([0, -1], pa.date32()),
            "f": pa.array([1.5, None], pa.float32()),
            "n": pa.array([1, -1], pa.int16()), "w": pa.array([Decimal("1.10"), None], pa.decimal128(5, 2)),
        }
    )  # fmt: skip
    pq.write_table(given, source / "a.parquet")
    t = bh.create(
        path, "u uuid, x fixed(3), tm time, tz timestamp, s string, k string, o boolean, day date, f double, n bigint, "
        "w decimal(12, 2), absent map<string, array<uuid>>", format="iceberg",
    )  # fmt: skip
    t.add_files(source)
    (metrics,) = t.inspect.files()["readable_metrics"].to_pylist()
    rows = t.to_arrow()
    assert lines(theirs(path).cast(rows.schema)) == lines(rows) and rows["tm"].to_pylist()[1].second == 59
    for name in rows.column_names[:-1]:
        known = [v for v in rows[name].to_pylist() if v is not None]
        assert (metrics[name]["lower_bound"], metrics[name]["upper_bound"]) == (min(known), max(known)), name
        assert metrics[name]["null_value_count"] == rows[name].null_count


@pytest.mark.parametrize("seed", range(6))
def test_random_files(path, source, seed):
    """Whatever a writer of Parquet makes: the rows are there, for pyiceberg too, and no condition loses one."""
    drawn = random.Random(seed)
    numbers = [None, 0, -1, 2**31 - 1, -(2**31), 7]
    floats = [None, float("nan"), -0.0, 0.0, float("inf"), -1.5]
    texts = [None, "", "a" * 40, "ü\U0010ffff", "b"]
    tables = []
    for i in range(drawn.randint(1, 4)):
        count = drawn.choice([0, 1, 5, 30])
        columns = {
            "Ä b.c": pa.array(drawn.choices(numbers, k=count), drawn.choice([pa.int32(), pa.int64()])),
            "f": pa.array(drawn.choices(floats, k=count), drawn.choice([pa.float32(), pa.float64()])),
            "s": pa.array(drawn.choices(texts, k=count), pa.string()),
        }
        if drawn.random() < 0.3:
            del columns[drawn.choice(["f", "s"])]
        tables.append(pa.table(columns))
        pq.write_table(
            tables[-1], source / f"{i}.parquet", row_group_size=drawn.choice([1, 7, 100]),
            compression=drawn.choice(["none", "snappy", "zstd"]), use_dictionary=drawn.random() < 0.5,
            write_statistics=drawn.random() < 0.8, data_page_version=drawn.choice(["1.0", "2.0"]),
        )  # fmt: skip
    t = bh.create(path, pa.schema([("Ä b.c", pa.int64()), ("f", pa.float64()), ("s", pa.string())]), format="iceberg")
    t.add_files(source)
    mine = t.to_arrow()
    parts = [f.cast(pa.schema([mine.schema.field(n) for n in f.column_names])) for f in tables]
    whole = pa.concat_tables([*parts, mine.slice(0, 0)], promote_options="default")
    assert lines(mine) == lines(whole) == lines(theirs(path))
    for condition, expected in (
        ("`Ä b.c` = -1", pc.equal(mine["Ä b.c"], -1)), ("`Ä b.c` > 6", pc.greater(mine["Ä b.c"], 6)),
        ("f = 0", pc.equal(mine["f"], 0.0)), ("f < 0", pc.less(mine["f"], 0.0)),
        ("s > 'a'", pc.greater(mine["s"], "a")),
        ("s IS NULL", pc.is_null(mine["s"])), ("`Ä b.c` IS NOT NULL", pc.is_valid(mine["Ä b.c"])),
        ("isnan(f)", pc.is_nan(mine["f"])),
    ):  # fmt: skip
        assert t.scan(where=condition).count() == (pc.sum(expected).as_py() or 0), condition


@pytest.mark.feature("convert a folder of Parquet files in place", format="iceberg")
@pytest.mark.parametrize("version", ("1", "2", "3"))
def test_a_folder_becomes_a_table(source, version):
    for city, rows in (("Kiel", {"id": [1, 2], "small": pa.array([1, 2], pa.int8())}), ("Oslo", {"id": [3]})):
        (source / f"city={city}").mkdir()
        pq.write_table(pa.table(rows), source / f"city={city}" / "a.parquet")
    before = contents(source)
    folder, properties = str(source), {"format-version": version, "owner": "harbour"}
    dry = bh.convert(folder, "iceberg", "city string", properties, dry_run=True)
    assert (dry.files_added, dry.rows_added, contents(source)) == (2, 3, before)
    done = bh.convert(folder, "iceberg", "city string", properties, message="taken over")
    assert (done.files_added, done.rows_added) == (2, 3)
    t = bh.open(folder)
    assert contents(source).items() >= before.items() and t.properties["owner"] == "harbour"
    assert str(t.schema) == "id: bigint\nsmall: int\ncity: string" and NAMES in t.properties
    assert lines(t.to_arrow()) == lines(
        pa.table({"id": [1, 2, 3], "small": [1, 2, None], "city": ["Kiel", "Kiel", "Oslo"]})
    )
    if version != "3":
        assert lines(theirs(folder)) == lines(t.to_arrow())
    assert "reads 1 of 2 units" in str(t.scan(where="city = 'Oslo'").explain())
    assert "reads 1 of 2 units" in str(t.scan(where="id = 1").explain())
    t.append(pa.table({"id": [4], "small": pa.array([4], pa.int32()), "city": ["Oslo"]}))
    t.rename_column("id", "key")
    t.remove_orphan_files()
    assert (
        sorted(bh.open(folder).to_arrow()["key"].to_pylist()) == [1, 2, 3, 4]
        and contents(source).items() >= before.items()
    )
    if version != "3":
        assert lines(theirs(folder)) == lines(bh.open(folder).to_arrow())
    with pytest.raises(errors.AlreadyExistsError):
        bh.convert(folder, "iceberg", "city string")


def test_folders_that_become_no_table(source, tmp_path):
    other = tmp_path / "other"
    bh.write(pa.table({"s": ["x"], "id": [1]}), str(other), format="iceberg")
    (file,) = bh.open(str(other)).files()["path"].to_pylist()
    data = Path(file.removeprefix("file://"))
    (source / "p=1").mkdir()
    for rows, error, message in (
        ({"id": pa.array([1], pa.uint64())}, errors.UnsupportedTypeError, "`id`"),
        ({"at": pa.array([1], pa.timestamp("ns"))}, errors.UnsupportedTypeError, "`at`"),
        ({"p": [2]}, errors.SchemaMismatchError, "`p` is bigint in the file, and int in the table"),
        ({"p": pa.array([2], pa.int32())}, errors.SchemaMismatchError, "`p` has between 2 and 2 in the file"),
        (None, errors.SchemaMismatchError, "has the field id 1"),
    ):
        if rows is None:
            (source / "p=1" / "a.parquet").write_bytes(data.read_bytes())
            pq.write_table(pa.table({"id": [1], "s": ["x"]}), source / "p=1" / "0.parquet")
        else:
            pq.write_table(pa.table(rows), source / "p=1" / "a.parquet")
        before = contents(source)
        with pytest.raises(error, match=message):
            bh.convert(str(source), "iceberg", "p int")
        assert contents(source) == before


@pytest.mark.feature("snapshot of a folder of Parquet files", format="iceberg")
def test_a_table_elsewhere_of_the_files_of_a_folder(source, path):
    for city, ids in (("Kiel", [1, 2]), ("Oslo", [3])):
        (source / f"city={city}").mkdir()
        for i in ids:
            pq.write_table(pa.table({"id": [i]}), source / f"city={city}" / f"{i}.parquet")
    before = contents(source)
    done = bh.convert(str(source), "iceberg", "city string", {"gc.enabled": "true", "a": "b"}, to=path)
    assert (done.files_added, done.rows_added) == (3, 3) and contents(source) == before
    t = bh.open(path)
    assert lines(theirs(path)) == lines(t.to_arrow()) and t.count() == 3
    assert {k: t.properties.get(k) for k in ("gc.enabled", "snapshot", "a")} == {
        "gc.enabled": "false", "snapshot": "true", "a": "b",
    }  # fmt: skip
    t.append(pa.table({"id": [4], "city": ["Oslo"]}))
    t.delete("id = 3")
    t.optimize()
    t.purge()
    for remove in (t.expire_snapshots, t.remove_orphan_files, t.vacuum):
        with pytest.raises(errors.UnsupportedFeatureError, match=r"gc\.enabled"):
            remove()
    assert contents(source) == before and sorted(t.to_arrow()["id"].to_pylist()) == [1, 2, 4]
    assert lines(theirs(path)) == lines(t.to_arrow())
    with pytest.raises(errors.AlreadyExistsError):
        bh.convert(str(source), "iceberg", "city string", to=path)
    for inside in (str(source / "t"), str(source.parent), str(source)):
        with pytest.raises(errors.InvalidArgumentError, match="would be in the folder of its files"):
            bh.convert(str(source), "iceberg", "city string", to=inside)
    with pytest.raises(errors.UnsupportedFeatureError, match="files that stay another's"):
        bh.convert(str(source), "delta", "city string", to=path + "-2")
    assert contents(source) == before and not Path(path + "-2").exists()
