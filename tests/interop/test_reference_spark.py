"""The reference implementations on an older Spark: they read our tables, and we read what they delete and merge."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_spark import Release, started

import boathouse as bh
from boathouse import variant
from boathouse.errors import UnsupportedFeatureError
from boathouse.types import Identity

pytestmark = pytest.mark.slow
RELEASE = Release(
    "reference-spark",
    "4.0.1",
    (
        "io/delta/delta-spark_2.13/4.0.1/delta-spark_2.13-4.0.1.jar",
        "io/delta/delta-storage/4.0.1/delta-storage-4.0.1.jar",
        "org/antlr/antlr4-runtime/4.13.1/antlr4-runtime-4.13.1.jar",
        "org/apache/iceberg/iceberg-spark-runtime-4.0_2.13/1.10.1/iceberg-spark-runtime-4.0_2.13-1.10.1.jar",
    ),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.schema.autoMerge.enabled": "false",
    },
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(RELEASE, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


@pytest.fixture
def place(reference, request):
    """(name, path) of a table that Delta knows by path and Iceberg by name."""
    name = "t" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    return name, str(reference.root / "n" / name)


def ours(path, format, make, partition_by=()):
    """Several files, an append, rows replaced, rows deleted."""
    bh.write(make(), path, format=format, partition_by=partition_by)
    table = bh.open(path)
    table.append(make(start=100))
    table.overwrite(make(start=200), where="id > 105")
    table.delete("id IN (1, 2, 100, 213)")
    return table


@pytest.mark.parametrize("by", [(), ("bool", "date", "text"), ("i64", "d38", "ntz", "ts")], ids=str)
def test_delta_spark_reads_ours(reference, place, nasty, by):
    _, path = place
    table = ours(path, "delta", nasty.delta, by)
    mine = table.to_arrow()
    theirs = reference.rows(f"SELECT * FROM delta.`{path}`")
    nasty.same(theirs.select(mine.column_names), mine)
    # It goes on from our commits, and so do we from its. (It cannot write folders of any text.)
    reference.sql(
        f"DELETE FROM delta.`{path}` WHERE id = 5",
        f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}` WHERE text IS NULL OR text = 'größe'",
    )
    table = bh.open(path, allow_mixed_writers=True)
    table.append(nasty.delta(start=500))
    theirs = reference.rows(f"SELECT count(*) AS n, count(text) AS t FROM delta.`{path}`").to_pylist()
    assert theirs == [{"n": table.count(), "t": table.scan([], "text IS NOT NULL").count()}]
    assert table.count() > mine.num_rows + nasty.rows


@pytest.mark.parametrize("mode", ["name", "id"])
def test_delta_spark_goes_on_with_our_mapped_tables(reference, place, mode):
    """Created, renamed, dropped and added by us, then by it, then by us: it checks ids, names and the highest id."""
    _, path = place
    t = f"delta.`{path}`"
    rows = pa.table({"a.b": [1, 2, 3], "p q": ["x", "y", None], "s": [{"c;d": 1, "l": [{"m": 1}]}, None, {"c;d": 3}]})
    properties = {"delta.columnMapping.mode": mode, "delta.enableDeletionVectors": "true"}
    bh.write(rows, path, format="delta", properties=properties, partition_by=["p q"])
    table = bh.open(path)
    table.rename_column("`a.b`", "id")
    table.rename_column("s.`c;d`", "e")
    table.add_column("more", "struct<u: int>")
    table.append(pa.table({"id": [4], "p q": ["y"], "new": ["n"]}), merge_schema=True)
    table.delete("id = 2")

    def agree():
        mine = bh.open(path).to_arrow().to_pylist()
        theirs = reference.rows(f"SELECT * FROM {t}").to_pylist()
        assert sorted(mine, key=str) == sorted(theirs, key=str)
        return {r["id"] for r in mine}

    assert agree() == {1, 3, 4}
    where = "id = 3 OR `p q` = 'x'"
    assert reference.rows(f"SELECT id FROM {t} WHERE {where}").num_rows == bh.open(path).scan(where=where).count() == 2
    reference.sql(
        f"ALTER TABLE {t} RENAME COLUMN `p q` TO p",
        f"ALTER TABLE {t} DROP COLUMN new",
        f"ALTER TABLE {t} ADD COLUMN new int",
        f"INSERT INTO {t} (id, p, new) VALUES (5, 'z', 7)",
        f"UPDATE {t} SET new = 1 WHERE id = 1",
    )  # fmt: skip
    assert agree() == {1, 3, 4, 5}
    table = bh.open(path, allow_mixed_writers=True)
    table.drop_column("s")
    table.overwrite(pa.table({"id": [9], "p": ["z"], "last": [1]}), overwrite_schema=True)
    table.restore(version=table.version - 2)
    assert agree() == {1, 3, 4, 5}
    table.add_column("once more", "int")
    reference.sql(f"INSERT INTO {t} (id, p, `once more`) VALUES (6, 'z', 8)", f"OPTIMIZE {t}")
    assert agree() == {1, 3, 4, 5, 6}


def test_delta_spark_goes_on_where_mapping_was_turned_on(reference, place):
    _, path = place
    t = f"delta.`{path}`"
    bh.write(pa.table({"a": [1, 2], "s": [{"b": 1}, None], "p": [1, 2]}), path, format="delta", partition_by=["p"])
    table = bh.open(path)
    table.set_properties({"delta.columnMapping.mode": "name"})
    reference.sql(f"ALTER TABLE {t} RENAME COLUMN a TO `x y`", f"INSERT INTO {t} VALUES (3, named_struct('b', 3), 1)")
    table = bh.open(path, allow_mixed_writers=True)
    table.rename_column("s.b", "c,d")
    assert sorted(table.to_arrow().to_pylist(), key=str) == sorted(
        reference.rows(f"SELECT * FROM {t}").to_pylist(), key=str
    )
    assert table.count() == 3


@pytest.mark.parametrize("by", [(), ("bool", "bucket(4, text)", "month(ts)"), ("truncate(2, text)", "d38")], ids=str)
def test_iceberg_spark_reads_ours(reference, place, nasty, by):
    name, path = place

    def make(start=0):
        return nasty.iceberg(start=start).drop_columns(["time"])  # Spark 4.0 has no type for it

    mine = ours(path, "iceberg", make, by).to_arrow()
    nasty.same(reference.rows(f"SELECT * FROM ice.n.{name}"), mine)
    for where in ("text = 'größe'", "i32 < 0", "ts < timestamp '1960-03-01'", "d38 = 0", "date = date '1582-10-14'"):
        mine = bh.open(path).scan(["id"], where).to_arrow()
        nasty.same(reference.rows(f"SELECT id FROM ice.n.{name} WHERE {where}"), mine)
    reference.sql(f"DELETE FROM ice.n.{name} WHERE id = 5", f"INSERT INTO ice.n.{name} SELECT * FROM ice.n.{name}")
    bh.open(path).append(make(500))
    counted = reference.rows(f"SELECT count(*) AS n FROM ice.n.{name}").to_pylist()
    assert counted == [{"n": bh.open(path).count()}]


def source(start=0):
    return (
        "SELECT id, concat('v', id) AS s, CAST(id % 3 AS int) AS p, timestamp_micros(-id) AS ts, "
        f"named_struct('x', id, 'l', array(id, null)) AS st FROM range({start}, {start + 60})"
    )


MERGE = (
    "MERGE INTO {t} t USING ({s}) s ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET t.s = 'merged' WHEN NOT MATCHED THEN INSERT *"
)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_we_read_delta_spark(reference, place, nasty, vectors):
    """Deletion vectors of DELETE, UPDATE and MERGE, checkpoints, OPTIMIZE."""
    _, path = place
    t = f"delta.`{path}`"

    def agree():
        nasty.same(bh.open(path).to_arrow(), reference.rows(f"SELECT * FROM {t}"))

    reference.sql(
        f"CREATE TABLE {t} USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}', "
        f"'delta.checkpointInterval' = '3') AS {source()}"
    )
    agree()
    reference.sql(f"DELETE FROM {t} WHERE id IN (3, 4, 50)")
    agree()
    reference.sql(f"UPDATE {t} SET s = 'updated' WHERE id BETWEEN 20 AND 25")
    agree()
    reference.sql(MERGE.format(t=t, s=source(40)))
    agree()
    assert bh.open(path).count() == 60 - 3 - 9 + 41
    if vectors == "true":
        assert sum(v or 0 for v in bh.open(path).files().column("deleted").to_pylist()) > 0
    # Ours on top of their vectors.
    bh.open(path, allow_mixed_writers=True).delete("id = 21 OR p = 2 AND id > 90")
    agree()
    reference.sql(f"OPTIMIZE {t}")
    agree()
    bh.open(path, allow_mixed_writers=True).append(
        bh.open(path).scan(where="id < 5").to_arrow().set_column(0, "id", pa.array([900, 901, 902]))
    )
    agree()


@pytest.mark.parametrize("mode", ["name", "id"])
def test_we_read_mapped_columns_of_delta_spark(reference, place, nasty, mode):
    _, path = place
    t = f"delta.`{path}`"
    reference.sql(
        f"CREATE TABLE {t} USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}') "
        f"AS {source()}",
        f"ALTER TABLE {t} RENAME COLUMN s TO `näme, with (odd) = chars`",
        f"ALTER TABLE {t} RENAME COLUMN st.x TO y",
        f"ALTER TABLE {t} DROP COLUMN ts",
        f"ALTER TABLE {t} ADD COLUMN later bigint",
        f"INSERT INTO {t} SELECT id + 100, s, p, st, id FROM ({source()}) WHERE id < 5",
        f"ALTER TABLE {t} RENAME COLUMN p TO part",
    )
    nasty.same(bh.open(path).to_arrow(), reference.rows(f"SELECT * FROM {t}"))
    got = bh.open(path).scan(["id"], "part = 1 AND st.y > 50").to_arrow()
    nasty.same(got, reference.rows(f"SELECT id FROM {t} WHERE part = 1 AND st.y > 50"))


@pytest.mark.parametrize("version", ["2", "3"])
def test_we_read_iceberg_spark(reference, place, nasty, version):
    """Position deletes (version 2) and deletion vectors (version 3) of DELETE, UPDATE and MERGE; evolution."""
    name, path = place
    t = f"ice.n.{name}"
    modes = ", ".join(f"'write.{o}.mode' = 'merge-on-read'" for o in ("delete", "update", "merge"))

    def agree():
        nasty.same(bh.open(path).to_arrow(), reference.rows(f"SELECT * FROM {t}"))

    reference.sql(
        f"CREATE TABLE {t} USING iceberg PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '{version}', {modes}) "
        f"AS {source()}"
    )
    agree()
    reference.sql(f"DELETE FROM {t} WHERE id IN (3, 4, 50)")
    try:
        agree()
    except UnsupportedFeatureError as error:
        assert version == "3" and "deletion vectors" in error.message
        return
    reference.sql(f"UPDATE {t} SET s = 'updated' WHERE id BETWEEN 20 AND 25")
    agree()
    reference.sql(MERGE.format(t=t, s=source(40)))
    agree()
    assert bh.open(path).count() == 60 - 3 - 9 + 41
    reference.sql(
        f"ALTER TABLE {t} ADD PARTITION FIELD bucket(3, s)",
        f"ALTER TABLE {t} DROP PARTITION FIELD p",
        f"ALTER TABLE {t} RENAME COLUMN s TO renamed",
        f"ALTER TABLE {t} ADD COLUMN st.z string",
        f"ALTER TABLE {t} ADD COLUMN later bigint",
        f"ALTER TABLE {t} ALTER COLUMN p TYPE bigint",
        f"INSERT INTO {t} SELECT id + 200, s, p, ts, named_struct('x', id, 'l', null, 'z', 'new'), id "
        f"FROM ({source()}) WHERE id < 7",
        f"DELETE FROM {t} WHERE id IN (201, 60)",
    )
    agree()
    for where in ("p = 1 AND id > 30", "renamed = 'merged'", "later IS NULL", "st.z = 'new'"):
        mine = bh.open(path).scan(["id"], where).to_arrow()
        nasty.same(mine, reference.rows(f"SELECT id FROM {t} WHERE {where}"))
    if version == "2":
        table = bh.open(path)
        table.set_properties({"write.delete.mode": "copy-on-write"})
        table.delete("id IN (22, 203)")
        agree()


def test_every_type_of_both(reference, nasty):
    """Values that the reference wrote itself from Parquet: as Delta and as Iceberg."""
    data = nasty.delta()
    file = reference.root / "all.parquet"
    pq.write_table(data, file)
    delta, iceberg = reference.root / "n" / "all_delta", reference.root / "n" / "all_iceberg"
    reference.sql(
        f"CREATE TABLE delta.`{delta}` USING delta PARTITIONED BY (d9, i64) AS SELECT * FROM parquet.`{file}`",
        f"CREATE TABLE ice.n.all_iceberg USING iceberg PARTITIONED BY (truncate(3, text), bucket(3, d38)) "
        f"AS SELECT * FROM parquet.`{file}`",
    )
    nasty.same(bh.open(str(delta)).to_arrow().select(data.column_names), data)
    narrow = pa.schema([f.with_type(pa.int32()) if f.name in ("i8", "i16") else f for f in data.schema])
    nasty.same(bh.open(str(iceberg)).to_arrow(), data.cast(narrow))


@pytest.mark.parametrize("form", ["text", "struct", "both"])
def test_delta_spark_reads_checkpoints_of_ours(reference, place, nasty, form):
    """By either form of statistics, with conditions that skip files; and its own commits go on top."""
    _, path = place
    t = f"delta.`{path}`"
    properties = {
        "delta.checkpoint.writeStatsAsJson": "false" if form == "struct" else "true",
        "delta.checkpoint.writeStatsAsStruct": "false" if form == "text" else "true",
        "delta.checkpointInterval": "5",
    }
    bh.write(nasty.delta(), path, format="delta", partition_by=["bool"], properties=properties)
    for i in range(1, 6):
        bh.open(path).append(nasty.delta(start=100 * i))
    log = Path(path) / "_delta_log"
    added = {f.name for f in pq.read_schema(log / f"{5:020d}.checkpoint.parquet").field("add").type}
    assert ("stats" in added, "stats_parsed" in added) == (form != "struct", form != "text")
    for version in range(5):
        (log / f"{version:020d}.json").unlink()

    def agree():
        nasty.same(bh.open(path).to_arrow(), reference.rows(f"SELECT * FROM {t}"))
        for where in ("id = 203", "id >= 400 AND bool", "text > 'g'", "d38 = 0", "date < date '1990-01-01'"):
            mine = bh.open(path).scan(["id"], where).to_arrow()
            nasty.same(mine, reference.rows(f"SELECT id FROM {t} WHERE {where}"))
        assert reference.rows(f"SELECT count(*) AS n FROM {t}").to_pylist() == [{"n": bh.open(path).count()}]

    agree()
    reference.sql(f"DELETE FROM {t} WHERE id = 203")
    for i in range(6, 10):
        bh.open(path, allow_mixed_writers=True).append(nasty.delta(start=100 * i))
    agree()
    assert None not in bh.open(path).files().column("rows").to_pylist()


@pytest.mark.parametrize(
    "properties", [{}, {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}]
)
def test_delta_spark_goes_on_with_our_widened_columns(reference, place, properties):
    """Types that we changed and that it changed, in files of every age; and what it says of the record."""
    _, path = place
    t = f"delta.`{path}`"
    given = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported", **properties}
    kinds = {"b": pa.int8(), "i": pa.int32(), "l": pa.int64(), "f": pa.float32(), "d": pa.decimal128(5, 2)}
    rows = {n: pa.array([1, 2, None] if n != "d" else ["1.25", "-2.5", None]).cast(k) for n, k in kinds.items()}
    nested = pa.array([{"l": [{"m": [(1, 1)]}]}, None, {"l": []}], pa.struct([
        ("l", pa.list_(pa.struct([("m", pa.map_(pa.int16(), pa.int32()))]))),
    ]))  # fmt: skip
    days = pa.array([0, -1, None], pa.int32()).cast(pa.date32())
    narrow = pa.table({"id": [1, 2, 3], "p": pa.array([1, 1, 2], pa.int32()), **rows, "day": days, "n": nested})
    bh.write(narrow, path, format="delta", properties=given, partition_by=["p"])
    table = bh.open(path)
    for name, type in (
        ("b", "smallint"), ("i", "bigint"), ("l", "decimal(20,0)"), ("f", "double"), ("d", "decimal(9,4)"),
        ("p", "bigint"), ("day", "timestamp_ntz"), ("n.l.element.m.key", "int"), ("n.l.element.m.value", "bigint"),
    ):  # fmt: skip
        table.widen_column(name, type)

    def agree():
        mine = bh.open(path).to_arrow()
        theirs = reference.rows(f"SELECT * FROM {t}").select(mine.column_names)
        assert sorted(mine.to_pylist(), key=str) == sorted(theirs.to_pylist(), key=str)
        return mine.num_rows

    assert agree() == 3
    for where in ("i = 2", "l = 1", "d < 0", "day < TIMESTAMP_NTZ'1970-01-01 00:00:00'", "p = 1 AND b = 1"):
        assert (
            reference.rows(f"SELECT id FROM {t} WHERE {where}").num_rows == bh.open(path).scan(where=where).count() == 1
        )
    reference.sql(
        f"ALTER TABLE {t} ALTER COLUMN b TYPE double",
        f"ALTER TABLE {t} ALTER COLUMN n.l.element.m.value TYPE decimal(22, 1)",
        f"INSERT INTO {t} (id, p, b, i, f) VALUES (4, 5000000000, 0.1D, 5000000000, 0.1D)",
        f"UPDATE {t} SET d = 99999.9999 WHERE id = 1",
    )
    assert agree() == 4
    table = bh.open(path, allow_mixed_writers=True)
    table.delete("b = 0.1D")
    table.append(pa.table({"id": [9], "d": pa.array(["1.5"]).cast(pa.decimal128(38, 4))}), merge_schema=True)
    assert agree() == 4
    reference.sql(f"OPTIMIZE {t}")
    assert agree() == 4


def test_delta_spark_goes_on_with_our_variants(reference, place):
    _, path = place
    t = f"delta.`{path}`"
    texts = ['{"a":1,"b":["x"]}', "null", None, '"text"']
    pair = pa.field("v", variant.from_json(pa.array(["1"])).type, metadata={b"boathouse:type": b"variant"})
    rows = pa.table([[1, 2, 3, 4], variant.from_json(pa.array(texts))], schema=pa.schema([("id", pa.int64()), pair]))
    bh.write(rows, path, format="delta", properties={"delta.enableDeletionVectors": "true"})
    bh.open(path).delete("id = 2")

    def agree(wanted):
        theirs = reference.rows(f"SELECT id, to_json(v) AS v FROM {t}").to_pylist()
        mine = bh.open(path).to_arrow()
        assert {r["id"]: r["v"] for r in theirs} == wanted
        assert dict(zip(mine.column("id").to_pylist(), variant.to_json(mine.column("v")).to_pylist())) == wanted

    agree({1: texts[0], 3: None, 4: texts[3]})
    reference.sql(
        f"INSERT INTO {t} SELECT 5, parse_json('[1,2]')",
        f"UPDATE {t} SET v = parse_json('{{}}') WHERE variant_get(v, '$.a', 'int') = 1",
    )
    agree({1: "{}", 3: None, 4: texts[3], 5: "[1,2]"})
    bh.open(path, allow_mixed_writers=True).append(rows.slice(0, 1).set_column(0, "id", pa.array([6])))
    agree({1: "{}", 3: None, 4: texts[3], 5: "[1,2]", 6: texts[0]})


def test_delta_spark_refuses_the_names_that_we_refuse(reference, place):
    _, path = place
    for i, character in enumerate(" ,;{}()\n\t="):
        t = f"delta.`{path}{i}`"
        said = reference.error(f"CREATE TABLE {t} (`a{character}b` int) USING delta")
        assert said is not None and "INVALID_CHARACTERS" in said, character
        said = reference.error(f"CREATE TABLE {t} (s struct<`a{character}b`: int>) USING delta")
        assert said is not None and "INVALID_CHARACTERS" in said, character


def test_delta_spark_goes_on_with_our_identity_columns(reference, place):
    """And we after it: no value twice, none that the other would not have given."""
    _, path = place
    t = f"delta.`{path}`"
    bh.create(path, "id bigint not null, down bigint, x bigint", identity={
        "id": Identity(10, 5), "down": Identity(0, -1, allow_explicit_insert=True),
    })  # fmt: skip
    bh.open(path).append(pa.table({"x": [1, 2, 3]}))
    reference.sql(f"INSERT INTO {t} (x) VALUES (4), (5)")
    bh.open(path, allow_mixed_writers=True).upsert(pa.table({"x": [5, 6]}), on="x")
    reference.sql(
        f"INSERT INTO {t} (down, x) VALUES (100, 7)",
        f"MERGE INTO {t} t USING (SELECT 8L AS x) s ON t.x = s.x WHEN NOT MATCHED THEN INSERT (x) VALUES (s.x)",
    )
    bh.open(path, allow_mixed_writers=True).append(pa.table({"x": [9]}))
    rows = bh.open(path).to_arrow().to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, reference.rows(f"SELECT * FROM {t}").to_pylist()))
    by_x = {r["x"]: r for r in rows}
    assert [by_x[x]["id"] for x in (1, 2, 3)] == [10, 15, 20] and by_x[7]["down"] == 100
    for name, step, start in (("id", 5, 10), ("down", -1, 0)):
        values = [r[name] for r in rows if r[name] != 100]
        assert len(set(values)) == len(values) and all((v - start) % step == 0 for v in values)
        later = [by_x[x][name] * step for x in (1, 4, 6, 8, 9)]
        assert later == sorted(later)
    assert "IDENTITY" in reference.error(f"INSERT INTO {t} (id, x) VALUES (1, 1)").upper()


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_delta_spark_goes_on_under_iceberg_compatibility(reference, place, version):
    """It checks the rules at every commit of its own."""
    _, path = place
    t = f"delta.`{path}`"
    rows = pa.table({"p": ["a", "b"], "x": pa.array([1, 2], pa.int64())})
    if version == "V2":
        rows = rows.append_column("l", pa.array([[1], None], pa.list_(pa.int32())))
        rows = rows.append_column("m", pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())))
    bh.write(rows, path, format="delta", partition_by="p", properties={f"delta.enableIcebergCompat{version}": "true"})
    bh.open(path).append(rows)
    reference.sql(f"INSERT INTO {t} SELECT * FROM {t} WHERE x = 1", f"UPDATE {t} SET x = 9 WHERE x = 2")
    bh.open(path, allow_mixed_writers=True).append(rows)
    mine = bh.open(path).to_arrow().to_pylist()
    assert sorted(map(str, mine)) == sorted(map(str, reference.rows(f"SELECT * FROM {t}").to_pylist()))
    assert sorted(r["x"] for r in mine) == [1, 1, 1, 1, 1, 2, 9, 9]


def test_delta_spark_after_we_dropped_features(reference, place):
    """It reads the table as one that never had vectors, older versions too, and goes on."""
    _, path = place
    t = f"delta.`{path}`"
    bh.write(pa.table({"x": range(10)}), path, format="delta", properties={"delta.enableDeletionVectors": "true"})
    bh.open(path).delete("x < 3")
    bh.open(path).set_properties({"delta.checkpointPolicy": "v2"})
    for name in ("v2Checkpoint", "deletionVectors"):
        bh.open(path).drop_feature(name)
    assert reference.rows(f"SELECT count(*) AS n FROM {t}").to_pylist() == [{"n": 7}]
    assert reference.rows(f"SELECT count(*) AS n FROM {t} VERSION AS OF 1").to_pylist() == [{"n": 7}]
    reference.sql(f"DELETE FROM {t} WHERE x = 9")
    assert sorted(bh.open(path).to_arrow()["x"].to_pylist()) == [3, 4, 5, 6, 7, 8]


def test_delta_spark_after_we_wrote_mapped_and_widened_files_again(reference, place):
    """Older versions stay what they were."""
    _, path = place
    t = f"delta.`{path}`"
    modes = {
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
        "delta.enableChangeDataFeed": "true",
    }
    bh.write(pa.table({"x": pa.array([1, 2, 3], pa.int16())}), path, format="delta", properties=modes)
    table = bh.open(path)
    table.rename_column("x", "y")
    table.widen_column("y", "bigint")
    table.append(pa.table({"y": [2**40]}))
    last = table.version
    for name in ("typeWidening", "columnMapping"):
        table.drop_feature(name)
    total = 2**40 + 6
    assert reference.rows(f"SELECT sum(y) AS n FROM {t}").to_pylist() == [{"n": total}]
    assert reference.rows(f"SELECT sum(y) AS n FROM {t} VERSION AS OF {last}").to_pylist() == [{"n": total}]
    reference.sql(f"UPDATE {t} SET y = 9 WHERE y = 3", f"INSERT INTO {t} VALUES (10)")
    assert sorted(bh.open(path).to_arrow()["y"].to_pylist()) == [1, 2, 9, 10, 2**40]


@pytest.fixture
def agree(reference):
    """Compares the row ids and versions of a table with those that delta-spark reads, and gives them by id."""

    def compare(path):
        theirs = reference.rows(
            f"SELECT id, _metadata.row_id AS r, _metadata.row_commit_version AS v FROM delta.`{path}` ORDER BY id"
        )
        ours = bh.open(path).scan(columns=["id", "_row_id", "_row_version"]).to_arrow().sort_by("id")
        assert ours.to_pylist() == [
            {"id": row["id"], "_row_id": row["r"], "_row_version": row["v"]} for row in theirs.to_pylist()
        ]
        return {row["id"]: (row["r"], row["v"]) for row in theirs.to_pylist()}

    return compare


@pytest.mark.spec("D-303")
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_tracked_rows_keep_their_ids_through_both(reference, agree, place, vectors):
    """Updates, merges, deletes, compactions, by turns: what we say of each row is what delta-spark says."""
    _, path = place
    t = f"delta.`{path}`"
    reference.sql(
        f"CREATE TABLE {t} (id BIGINT, s STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        f"'delta.enableDeletionVectors' = '{vectors}')",
        f"INSERT INTO {t} SELECT id, 'a' FROM range(0, 20, 1, 2)",
        f"INSERT INTO {t} SELECT id, 'b' FROM range(20, 30, 1, 1)",
    )

    first = agree(path)
    mixed = {"allow_mixed_writers": True}
    bh.open(path, **mixed).update({"s": "'ours'"}, where="id % 7 = 0")
    second = agree(path)
    assert {i: r for i, (r, _) in second.items()} == {i: r for i, (r, _) in first.items()}
    assert all((second[i] == first[i]) != (i % 7 == 0) for i in first)
    reference.sql(f"UPDATE {t} SET s = 'theirs' WHERE id % 5 = 0")
    third = agree(path)
    bh.open(path, **mixed).delete("id IN (1, 21)")
    source = pa.table({"id": [2, 22, 40], "s": ["m", "m", "n"]})
    bh.open(path, **mixed).upsert(source, on="id")
    fourth = agree(path)
    assert all(fourth[i] == third[i] for i in fourth if i not in (2, 22, 40))
    assert [fourth[i][0] for i in (2, 22)] == [third[i][0] for i in (2, 22)] and fourth[40][0] > 29
    bh.open(path, **mixed).optimize()
    assert agree(path) == fourth
    reference.sql(f"OPTIMIZE {t}", f"DELETE FROM {t} WHERE id = 3")
    bh.open(path, **mixed).optimize(zorder_by=["id"])
    assert agree(path) == {i: v for i, v in fourth.items() if i != 3}


@pytest.mark.spec("D-303")
@pytest.mark.parametrize("kind", ["plain", "vectors", "name", "id", "compatible"])
def test_row_tracking_is_turned_on_for_a_table_that_has_files(reference, agree, place, kind):
    """The ids that we give are those that delta-spark reads, and rows keep them through what both do."""
    _, path = place
    properties = {
        "vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
        "name": {"delta.columnMapping.mode": "name"},
        "id": {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
        "compatible": {"delta.enableIcebergCompatV2": "true"},
    }.get(kind, {})
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "s": ["a"] * 20, "p": [i % 2 for i in range(20)]})
    bh.write(rows, path, format="delta", partition_by=["p"], properties=properties)
    mixed = {"allow_mixed_writers": True}
    t = bh.open(path, **mixed)
    t.delete("id IN (3, 4)")
    t.set_properties({"delta.enableRowTracking": "true"})
    first = agree(path)
    assert len({r for r, _ in first.values()}) == 18
    t.update({"s": "'ours'"}, where="id % 7 = 0")
    t.optimize()
    second = agree(path)
    assert {i: r for i, (r, _) in second.items()} == {i: r for i, (r, _) in first.items()}
    assert all((second[i] == first[i]) != (i % 7 == 0) for i in first)
    reference.sql(f"UPDATE delta.`{path}` SET s = 'theirs' WHERE id % 5 = 0", f"OPTIMIZE delta.`{path}`")
    reference.sql(f"INSERT INTO delta.`{path}` VALUES (100, 'new', 0)")
    bh.open(path, **mixed).upsert(pa.table({"id": [2, 200], "s": ["m", "n"], "p": [0, 0]}), on="id")
    third = agree(path)
    assert {i: r for i, (r, _) in third.items() if i < 100} == {i: r for i, (r, _) in first.items()}
    assert len({r for r, _ in third.values()}) == 20
    bh.open(path, **mixed).set_properties({"delta.enableRowTracking": "false"})
    reference.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    assert agree(path) == third
