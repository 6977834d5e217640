"""Equality deletes on Spark: rows are those of the in-process reader, by Spark's own reader where a join can tell."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_writer import IDS, rows
from test_equality_deletes import KINDS, ids_of, keys, opened

import boathouse as bh
from boathouse.engines.spark import equality
from boathouse.errors import MissingFileError

pytestmark = pytest.mark.spark
WHOLE = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("p", pa.string())])


def via(foreign, spark):
    """How Spark reads the table, after comparing its rows with those in process."""
    table = bh.open(str(foreign.root), spark=spark)
    found = table.to_spark().toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, opened(foreign).to_arrow().to_pylist()))
    return str(table.scan().explain())


@pytest.mark.spec("I-211")
@pytest.mark.feature("equality delete files", format="iceberg")
@pytest.mark.route("equality deletes")
def test_on_spark(spark, new):
    foreign = new()
    foreign.commit(foreign.data(rows(*range(6)), IDS), foreign.data(rows(*range(6, 9)), IDS))
    first = next(p for p in foreign.live() if pq.read_table(p.removeprefix("file://")).num_rows == 6)
    foreign.commit(foreign.positions([(first, 0)]), foreign.equality(keys(1, 7, None), [1]))
    foreign.commit(foreign.equality(pa.table({"p": ["a"], "x": [3.0]}), [2, 3]))
    table = bh.open(str(foreign.root), spark=spark)
    assert "equality deletes by `x`: Spark takes 0.0 and -0.0 for equal" in via(foreign, spark)
    found = [r.id for r in table.scan(["id"]).to_spark(spark).collect()]
    assert sorted(found) == ids_of(bh.open(str(foreign.root)))
    assert sorted(found) == [2, 4, 5, 6, 8]
    assert [r.id for r in table.scan(["id"], where="x >= 8").to_spark(spark).collect()] == [8]
    table.delete("id = 4")
    assert ids_of(bh.open(str(foreign.root))) == sorted(set(found) - {4})


@pytest.mark.spec("I-272")
def test_key_types_natively(spark, new):
    """A column of each type, and deletes by each beside the number of the row."""
    kinds = {k: v for k, v in KINDS.items() if k not in ("time", "float", "double")}
    schema = pa.schema([("n", pa.int64()), *((k, type) for k, (type, _, _) in kinds.items())])
    foreign = new(schema)
    values = [(kind, v) for kind, (_, gone, kept) in kinds.items() for v in (*gone, *kept)]
    made = [{"n": n, kind: value} for n, (kind, value) in enumerate(values)]
    foreign.commit(foreign.data(pa.Table.from_pylist(made, schema), range(1, len(schema) + 1)))
    left = {r["n"] for r in made}
    for id, (kind, (type, gone, _)) in enumerate(kinds.items(), 2):
        # The first deleted value beside the numbers of rows that have another one deletes nothing.
        deleted = [r for r in made if r.get(kind) in gone and kind in r]
        left -= {r["n"] for r in deleted}
        others = [{"n": r["n"], kind: gone[0]} for r in made if r["n"] in left]
        table = pa.Table.from_pylist([*deleted, *others], pa.schema([("n", pa.int64()), (kind, type)]))
        foreign.commit(foreign.equality(table, [1, id]))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        scan = bh.open(str(foreign.root), spark=spark).scan(["n"])
        assert "native" in str(scan.explain())
        assert {r.n for r in scan.to_spark(spark).collect()} == left and len(left) > len(kinds) // 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_random_deletes_natively(spark, new, seed, partitioned):
    """Appends, and deletes by one or several columns, with nulls, of a partition or of all, and by positions."""
    chance = random.Random(seed)
    foreign = new(WHOLE, **({"partition_by": ["p"]} if partitioned else {}))
    part_of = {}

    def some(count, names):
        pools = {"id": [*range(8), None], "n": [0, 1, None], "p": ["a", "b", None]}
        made = [{n: chance.choice(pools[n]) for n in names} for _ in range(count)]
        return pa.Table.from_pylist(made, pa.schema([WHOLE.field(n) for n in names]))

    def part():
        return {"p": chance.choice(["a", "b", None])} if partitioned else None

    for _ in range(3):
        entries = []
        for _ in range(2):
            p, table = part(), some(20, WHOLE.names)
            if p:
                table = table.set_column(2, WHOLE.field(2), pa.array([p["p"]] * 20, pa.string()))
            # Files of a partition may lack its column.
            lacks = partitioned and chance.random() < 0.5
            entries.append(foreign.data(table.drop_columns(["p"]) if lacks else table, (1, 2) if lacks else IDS, p))
            part_of[entries[-1]["data_file"]["file_path"]] = p
        foreign.commit(*entries)
        names = chance.choice([["id"], ["id", "n"], ["n", "p"], ["p"]])
        deletes = foreign.equality(some(3, names), [WHOLE.get_field_index(n) + 1 for n in names], partition=part())
        path = chance.choice(sorted(part_of))
        foreign.commit(deletes, foreign.positions([(path, 2), (path, 5)], part_of[path]))
        assert "native" in via(foreign, spark)
    table = bh.open(str(foreign.root), spark=spark)
    for where in ("id = 3", "n IS NULL AND p = 'a'", "id > 4 OR p IS NULL"):
        found = table.scan(["n"], where=where).to_spark(spark).collect()
        assert sorted(repr(r.n) for r in found) == sorted(
            repr(v) for v in opened(foreign).scan(["n"], where=where).to_arrow()["n"].to_pylist()
        )


def test_what_a_join_is_too_large_for(spark, new, monkeypatch):
    foreign = new()
    for n in range(3):
        foreign.commit(foreign.data(rows(n, n + 1), IDS))
        foreign.commit(foreign.equality(keys(n), [1]))
    assert "native" in via(foreign, spark)
    monkeypatch.setattr(equality, "MAX_COMBINATIONS", 2)
    assert "equality deletes in 3 combinations" in via(foreign, spark)
    monkeypatch.setattr(equality, "MAX_KEYS", 2)
    assert "equality deletes with 3 keys are too many to broadcast" in via(foreign, spark)


def test_a_dropped_key_and_rows_written_since(spark, new):
    foreign = new()
    foreign.commit(foreign.data(rows(1, p="a"), IDS), foreign.data(rows(2, p="b"), IDS))
    foreign.commit(foreign.equality(pa.table({"p": ["a"]}), [2]))
    bh.open(str(foreign.root)).drop_column("p")
    bh.open(str(foreign.root), spark=spark).append(spark.createDataFrame([(3, 3.0)], "id bigint, x double"))
    via(foreign, spark)
    assert ids_of(opened(foreign)) == [2, 3]


def test_a_delete_file_that_is_missing(spark, new):
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2), IDS))
    entry = foreign.equality(keys(1), [1])
    foreign.commit(entry)
    (foreign.root / "data" / entry["data_file"]["file_path"].rpartition("/")[2]).unlink()
    with pytest.raises(MissingFileError, match="a delete file that the table's metadata names is missing"):
        bh.open(str(foreign.root), spark=spark).to_spark()
