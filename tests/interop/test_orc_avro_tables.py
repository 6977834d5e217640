"""Tables whose files iceberg-spark writes in ORC and Avro, deletes and all, with Parquet between them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from reference_spark import ICEBERG

import boathouse as bh

pytestmark = pytest.mark.slow
RELEASE = ICEBERG
COLUMNS = """
    id bigint NOT NULL, bo boolean, i int, f float, d double, s string, bi binary, da date, ts timestamp_ntz,
    tz timestamp, d9 decimal(9, 2), d38 decimal(38, 10), st struct<a: int, b: struct<c: string, t: timestamp>>,
    li array<int>, ll array<struct<x: string, y: array<bigint>>>, ms map<string, int>, mi map<int, struct<z: date>>
"""
# Timestamps of several signs with and without fractions, nulls at every depth.
SOURCE = """
    SELECT id, id % 2 = 0, CAST(id AS int), CAST(id / 3 AS float), if(id % 7 = 0, double('NaN'), -id / 7),
        if(id % 5 = 0, NULL, repeat(concat('s', id), CAST(id % 40 AS int))), CAST(CAST(id AS string) AS binary),
        date_add(DATE '1969-12-20', CAST(id AS int)),
        CAST(timestamp_micros((id - 50) * 1234567 * 100003) AS timestamp_ntz), timestamp_micros((id - 50) * 999999),
        CAST(id AS decimal(9, 2)) / 4, -CAST(id AS decimal(38, 10)) / 3,
        if(id % 6 = 0, NULL, struct(CAST(id AS int), if(id % 4 = 0, NULL, struct('c', timestamp_micros(-id))))),
        if(id % 9 = 0, NULL, sequence(0, CAST(id % 5 AS int))),
        array(struct('x', array(id, NULL)), NULL, struct(NULL, NULL), struct('y', array())),
        if(id % 8 = 0, NULL, map('k', CAST(id AS int), 'n', NULL)),
        map(CAST(id AS int), struct(DATE '2020-01-01'), -1, NULL)
    FROM range({}, {})
"""


@pytest.mark.spec("I-005", "I-011", "I-267", "I-282", "I-295", "I-296", "I-297")
@pytest.mark.parametrize("format", ("orc", "avro"))
def test_a_life(reference, nasty, format):
    name, path = f"ice.n.{format}", str(reference.root / "n" / format)

    def agree():
        mine = bh.open(path).to_arrow()
        nasty.same(mine, reference.rows(f"SELECT * FROM {name}"))
        return mine

    reference.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg TBLPROPERTIES ('format-version' = '2', "
        f"'write.format.default' = '{format}', 'write.delete.format.default' = '{format}', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')",
        f"INSERT INTO {name} {SOURCE.format(0, 100)}",
    )
    assert agree().num_rows == 100
    reference.sql(f"DELETE FROM {name} WHERE id % 10 = 3", f"UPDATE {name} SET s = 'updated' WHERE id % 10 = 4")
    agree()
    reference.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default' = 'parquet')",
        f"INSERT INTO {name} {SOURCE.format(100, 150)}",
        f"ALTER TABLE {name} ALTER COLUMN i TYPE bigint", f"ALTER TABLE {name} ALTER COLUMN f TYPE double",
        f"ALTER TABLE {name} ALTER COLUMN d9 TYPE decimal(20, 2)", f"ALTER TABLE {name} RENAME COLUMN s TO text",
        f"ALTER TABLE {name} ADD COLUMN s int", f"ALTER TABLE {name} DROP COLUMN bi",
        f"ALTER TABLE {name} RENAME COLUMN st.b TO bb", f"ALTER TABLE {name} ADD COLUMN st.b string FIRST",
        f"ALTER TABLE {name} ADD COLUMN ll.element.z int", f"ALTER TABLE {name} RENAME COLUMN mi.value.z TO zz",
    )  # fmt: skip
    agree()
    reference.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)", f"DELETE FROM {name} WHERE id % 10 = 6")
    found = agree()
    table = bh.open(path)
    for where in ("id > 120", "text = 'updated'", "st.bb.c = 'c' AND i < 50", "ts < TIMESTAMP_NTZ '1970-01-01'"):
        mine = table.scan(["id"], where=where).to_arrow()["id"].to_pylist()
        theirs = reference.rows(f"SELECT id FROM {name} WHERE {where}")["id"].to_pylist()
        assert sorted(mine) == sorted(theirs) and 0 < len(mine) < found.num_rows
    # Java loses rows here: it counts no nulls of the structs around a field in ORC.
    assert table.scan(["id"], where="st.bb.c IS NULL").to_arrow().num_rows == sum(
        v is None or v["bb"] is None for v in found["st"].to_pylist()
    )
    # What we write goes on in Parquet, which the reference reads.
    table.set_properties({"write.delete.mode": "copy-on-write"})
    table.delete("id = 1 OR id = 141")
    assert agree().num_rows == found.num_rows - 2
    bh.open(path).optimize()
    assert agree().num_rows == found.num_rows - 2


@pytest.mark.spec("I-300")
@pytest.mark.parametrize("format", ("orc", "parquet"))
def test_files_of_hive_tables_that_were_added(reference, nasty, format):
    """Spark's own writers, whose files have no ids; the table gets a name mapping."""
    folder, name = reference.root / f"plain-{format}", f"ice.n.added_{format}"
    source = "SELECT id, CAST(id AS string) AS s, struct(id AS a, array(id) AS b) AS st FROM range(20)"
    reference.sql(
        f"CREATE TABLE IF NOT EXISTS spark_catalog.default.plain_{format} USING {format} "
        f"LOCATION '{folder}' AS {source}",
        f"CREATE TABLE {name} (id bigint, s string, st struct<a: bigint, b: array<bigint>>) USING iceberg",
        f"CALL ice.system.add_files('n.added_{format}', '`{format}`.`{folder}`')",
        f"ALTER TABLE {name} RENAME COLUMN s TO text",
    )
    mine = bh.open(str(reference.root / "n" / f"added_{format}")).to_arrow()
    assert mine.num_rows == 20 and mine["text"].null_count == 0 and mine["st"].type == pa.struct(
        [("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.int64())))])  # fmt: skip
    nasty.same(mine, reference.rows(f"SELECT * FROM {name}"))
