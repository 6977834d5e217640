"""Metrics, sort orders, statistics and several changes at once: what we write of them beside what iceberg-spark writes
of the same rows, and each goes on with the other's table."""

import pytest
from reference_spark import ICEBERG

import boathouse as bh

pytestmark = pytest.mark.slow
RELEASE = ICEBERG
METRICS = "write.metadata.metrics"
ROWS = """SELECT id, IF(id % 7 = 0, null, concat(repeat('ü', CAST(id % 5 AS int)), 'x', repeat('y', 20))) AS text,
    IF(id % 11 = 0, double('NaN'), id / 4.0) AS d, CAST(id % 3 AS int) AS k,
    named_struct('a', id, 'b', concat('b', repeat('z', 30))) AS s FROM range(200)"""


def test_metrics_and_orders(reference):
    t = "ice.n.measured"
    reference.sql(
        f"CREATE TABLE {t} (id bigint, text string, d double, k int, s struct<a: bigint, b: string>) USING iceberg "
        f"TBLPROPERTIES ('{METRICS}.default'='counts', '{METRICS}.column.text'='truncate(3)', "
        f"'{METRICS}.column.s.b'='full', '{METRICS}.column.id'='none')",
        f"ALTER TABLE {t} WRITE ORDERED BY k DESC NULLS LAST, bucket(4, id), d",
        f"INSERT INTO {t} {ROWS}",
    )
    mine = bh.open(str(reference.root / "n" / "measured"))
    data = mine.to_arrow()
    mine.append(data.take(list(range(len(data) - 1, -1, -1))))
    files = reference.rows(
        f"SELECT sort_order_id, record_count, value_counts, null_value_counts, nan_value_counts, lower_bounds, "
        f"upper_bounds FROM {t}.files ORDER BY file_path"
    ).to_pylist()
    described = [{k: sorted(v) if isinstance(v, list) else v for k, v in f.items()} for f in files]
    # iceberg-spark sorts, and does not say so
    assert sorted(d.pop("sort_order_id") for d in described) == [0, 1]
    assert len(described) == 2 and described[0] == described[1]
    assert len(described[0]["lower_bounds"]) == 4, "text, s.b; k and d by the order"
    places = reference.rows(f"SELECT input_file_name() AS f, k, id, d FROM {t}").to_pylist()
    for name in {r["f"] for r in places}:
        ks = [r["k"] for r in places if r["f"] == name]
        assert ks == sorted(ks, reverse=True)


def test_statistics_of_each_other(reference):
    t = "ice.n.counted"
    count = "CALL ice.system.compute_table_stats(table => 'n.counted')"
    reference.sql(f"CREATE TABLE {t} USING iceberg AS {ROWS}", count)
    mine = bh.open(str(reference.root / "n" / "counted"))
    theirs = mine.statistics().sort_by("column").to_pylist()
    assert {r["column"] for r in theirs} >= {"id", "text", "k"}
    mine.compute_statistics([r["column"] for r in theirs])
    assert mine.statistics().sort_by("column").to_pylist() == theirs
    reference.sql(f"INSERT INTO {t} {ROWS}", count)
    assert len(mine.refresh().statistics()) == len(theirs)
    assert len(mine._handle.snapshot.metadata.document["statistics"]) == 2


def test_several_changes_and_what_sql_says_of_them(reference):
    t = "ice.n.evolved"
    reference.sql(f"CREATE TABLE {t} USING iceberg AS {ROWS}")
    mine = bh.open(str(reference.root / "n" / "evolved"))
    steps = mine.evolve().rename_column("text", "note").add_column("s.c", "int", first=True).widen_column("k", "bigint")
    steps.move_column("d").set_comment("which", "k").add_column("text", "date").execute()
    mine.partition_by("bucket(4, id)")
    mine.sort_by("note desc")
    mine.append(mine.scan(where="id < 10").to_arrow())
    reference.sql(f"INSERT INTO {t} SELECT * FROM {t} WHERE id BETWEEN 10 AND 20")
    found = reference.rows(f"SELECT d, id, note, k, s.c, s.b, text FROM {t} ORDER BY id, note").to_pylist()
    assert len(found) == 221 and mine.refresh().count() == 221
    columns = ["d", "id", "note", "k", "text"]
    ours = mine.scan(columns).to_arrow().to_pylist()
    mine_and_theirs = [sorted(str([r[c] for c in columns]) for r in rows) for rows in (ours, found)]
    assert mine_and_theirs[0] == mine_and_theirs[1]
    orders = reference.rows(f"SELECT sort_order_id FROM {t}.files WHERE spec_id = 1").to_pylist()
    assert {r["sort_order_id"] for r in orders} == {0, 1}, "ours says so, iceberg-spark's does not"
