"""What is written is in the table's sort order, compared with pyiceberg's transforms and an order of its own, and files
claim the order that they are in, and no other."""

import datetime as dt
import functools
import itertools
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.transforms import parse_transform

import boathouse as bh
from boathouse.arrow.ordering import OrderCheck, in_order, is_ordered, keys_of
from boathouse.arrow.schema import from_arrow
from boathouse.errors import InvalidArgumentError
from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.ops.tasks.sorted_rows import SortedWriter
from boathouse.types import SortField

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
FLOATS = [NEGATIVE_NAN, float("-inf"), -1.0, -0.0, 0.0, 1.0, float("inf"), float("nan")]
EPOCH = dt.datetime(1970, 1, 1)
SCHEMA = pa.schema(
    [
        ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()), ("n", pa.decimal128(9, 2)),
        ("t", pa.string()), ("b", pa.binary()), ("x", pa.binary(3)), ("o", pa.bool_()), ("day", pa.date32()),
        ("ts", pa.timestamp("us")), ("tz", pa.timestamp("us", "UTC")), ("time", pa.time64("us")),
        ("s", pa.struct([("y", pa.int64()), ("z", pa.struct([("w", pa.string())]))])), ("row", pa.int64()),
    ]
)  # fmt: skip
DRAWN = {
    "i": lambda r: r.choice([-(2**31), 2**31 - 1, -1, 0, 7, r.randrange(-50, 50)]),
    "l": lambda r: r.choice([-(2**63), 2**63 - 1, -1, 0, r.randrange(-50, 50)]),
    "f": lambda r: r.choice([*FLOATS, r.random()]),
    "d": lambda r: r.choice([*FLOATS, r.random()]),
    "n": lambda r: Decimal(r.choice([-999999800, 999999999, -1, 0, r.randrange(-9000, 9000)])).scaleb(-2),
    "t": lambda r: "".join(r.choice(["a", "b", "é", "\uffff", "💥", "\x00"]) for _ in range(r.randrange(4))),
    "b": lambda r: bytes(r.choice([0, 1, 127, 128, 255]) for _ in range(r.randrange(4))),
    "x": lambda r: bytes(r.choice([0, 127, 128, 255]) for _ in range(3)),
    "o": lambda r: r.random() < 0.5,
    "day": lambda r: dt.date(1970, 1, 1) + dt.timedelta(days=r.choice([-800, -1, 0, 1, 400, r.randrange(90)])),
    "ts": lambda r: EPOCH + dt.timedelta(hours=r.choice([-9000, -1, 0, 1, r.randrange(9000)])),
    "tz": lambda r: (EPOCH + dt.timedelta(hours=r.randrange(-900, 9000))).replace(tzinfo=dt.UTC),
    "time": lambda r: dt.time(r.randrange(24), r.randrange(60)),
    "s": lambda r: {"y": r.choice([None, 1, 2]), "z": r.choice([None, {"w": None}, {"w": "a"}, {"w": "b"}])},
}
TRANSFORMS = {
    "i": ["identity", "bucket[3]", "truncate[10]"], "l": ["identity", "bucket[3]", "truncate[7]"],
    "n": ["identity", "bucket[3]", "truncate[50]"], "t": ["identity", "bucket[3]", "truncate[1]"],
    "b": ["identity", "bucket[3]"], "day": ["identity", "year", "month", "day", "bucket[3]"],
    "ts": ["identity", "year", "month", "day", "hour", "bucket[3]"], "tz": ["identity", "day", "hour"],
    "time": ["identity", "bucket[3]"], "x": ["identity"], "o": ["identity"], "f": ["identity"], "d": ["identity"],
    "s.y": ["identity", "bucket[3]"], "s.z.w": ["identity", "truncate[1]"],
}  # fmt: skip


def drawn(r, rows=120):
    columns = {n: [None if r.random() < 0.15 else make(r) for _ in range(rows)] for n, make in DRAWN.items()}
    return pa.table({**columns, "row": list(range(rows))}, SCHEMA)


def words(transform, column):
    name, _, number = transform.rstrip("]").partition("[")
    return column if name == "identity" else f"{name}({number + ', ' if number else ''}{column})"


def an_order(r):
    found = []
    for column in r.sample(sorted(TRANSFORMS), r.randrange(1, 4)):
        transform, way, nulls = r.choice(TRANSFORMS[column]), r.choice(["asc", "desc"]), r.choice(["first", "last"])
        found.append((column, transform, way, nulls))
    return found


def internal(value):
    """What pyiceberg's transforms are given."""
    match value:
        case dt.datetime():
            return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - EPOCH.date()).days
        case dt.time():
            return (value.hour * 60 + value.minute) * 60_000_000
    return value


def comparable(value):
    if isinstance(value, float):
        (bits,) = struct.unpack(">q", struct.pack(">d", value))
        return bits if bits >= 0 else -(bits & (2**63 - 1)) - 1
    return value.encode() if isinstance(value, str) else value


@functools.cache
def by_pyiceberg(transform, type):
    return parse_transform(transform).transform(type)


def value_of(row, path, transform, type):
    for step in path.split("."):
        row = None if row is None else row[step]
    if row is None:
        return None
    if transform == "truncate[10]" or transform == "truncate[7]":
        width = int(transform[9:-1])
        return row - row % width  # pyiceberg's may leave the type's range as well
    return comparable(by_pyiceberg(transform, type)(internal(row)))


def misplaced(rows, order, schema):
    """The first neighbours that are not in the order."""
    made = [[value_of(r, c, t, schema.find_type(c)) for c, t, _, _ in order] for r in rows]
    for i, (before, after) in enumerate(itertools.pairwise(made)):
        for a, b, (_, _, way, nulls) in zip(before, after, order):
            if (a is None) != (b is None):
                if (b is None) != (nulls == "last"):
                    return i, before, after
                break
            if a is not None and a != b:
                if (a > b) != (way == "desc"):
                    return i, before, after
                break
    return None


def eyes(root):
    head = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return StaticTable.from_metadata(f"file://{head}")


def files(root):
    """(rows in their order, sort order id) of each data file, as pyiceberg finds them."""
    found = eyes(root).inspect.files().to_pylist()
    return [(rows_of(f["file_path"]), f["sort_order_id"]) for f in found]


def rows_of(path):
    return pq.ParquetFile(path.removeprefix("file://")).read().to_pylist()


@pytest.mark.few(3)
@pytest.mark.spec("I-135", "I-137", "I-138")
@pytest.mark.feature("sort orders", format="iceberg")
@pytest.mark.parametrize("seed", range(8))
def test_files_are_in_the_order(tmp_path, seed):
    r = random.Random(seed)
    order, data = an_order(r), drawn(r)
    by = r.choice([[], ["o"], ["bucket(2, l)", "truncate(1, t)"]])
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=by)
    t.sort_by(*(f"{words(tr, c)} {way} nulls {nulls}" for c, tr, way, nulls in order))
    t.append(data)
    t.update({"i": "7"}, "row % 10 = 3")
    t.delete("row % 10 = 4")
    theirs = eyes(tmp_path / "t").schema()
    found = files(tmp_path / "t")
    assert {id for _, id in found} == {1}
    assert [misplaced(rows, order, theirs) for rows, _ in found] == [None] * len(found)
    assert sorted(x["row"] for rows, _ in found for x in rows) == [i for i in range(120) if i % 10 != 4]


@pytest.mark.spec("I-138")
@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
def test_floats_are_in_the_order_of_the_specification(type):
    shuffled = random.Random(3).sample([*FLOATS, None], 9)
    rows = pa.record_batch({"f": pa.array(shuffled, type)})
    bits = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}[type]
    expected = pa.array(FLOATS, type).view(bits).to_pylist()
    for descending in (False, True):
        keys = keys_of(rows, from_arrow(rows.schema), [SortField(("f",), descending=descending, nulls_first=False)])
        found = rows.column(0).take(in_order(keys)).view(bits).to_pylist()
        assert found == [*(reversed(expected) if descending else expected), None]


@pytest.mark.spec("I-137", "I-139")
def test_no_other_order_is_claimed(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"write.delete.mode": "merge-on-read"})
    t.append(drawn(random.Random(1), 20))
    t.sort_by("row")
    t.append(drawn(random.Random(2), 20))
    t.sort_by("row desc")
    t.append(drawn(random.Random(3), 20))
    t.sort_by()
    t.append(drawn(random.Random(4), 20))
    claims = sorted((id or 0, [x["row"] for x in rows]) for rows, id in files(tmp_path / "t"))
    up, down = list(range(20)), list(range(19, -1, -1))
    assert claims == [(0, up), (0, up), (1, up), (2, down)]
    t.sort_by("row")
    t.delete("row = 3")  # files of positions, which have no order of the table's
    deletes = eyes(tmp_path / "t").inspect.delete_files().to_pylist()
    assert deletes and {f["sort_order_id"] for f in deletes} == {None}
    t.optimize(zorder_by=["i", "d"])
    assert {id for _, id in files(tmp_path / "t")} == {None}
    t.overwrite(drawn(random.Random(5), 20))
    assert {id for _, id in files(tmp_path / "t")} == {1}


def test_an_order_is_checked_where_a_file_is_written():
    """Also over batches, whatever wrote the rows."""
    schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
    order = [SortField(("s",)), SortField(("a",), descending=True)]

    def holds(*batches):
        check = OrderCheck(from_arrow(schema), order)
        for rows in batches:
            check.update(pa.record_batch({"a": [a for a, _ in rows], "s": [s for _, s in rows]}, schema))
        return check.holds

    assert holds() and holds([]) and holds([(1, "x")])
    assert holds([(2, "x"), (1, "x")], [], [(1, "x"), (9, "y")])
    assert not holds([(2, "x"), (1, "x")], [(2, "x")])
    assert not holds([(1, "x"), (1, None)])
    assert not holds([(1, "y")], [(1, "x")], [(1, "z")])


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_runs_that_do_not_fit_are_merged(tmp_path, seed):
    r = random.Random(seed)
    order, data = an_order(r), drawn(r, 400)
    by = ["o"] if seed % 2 else []
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=by)
    t.sort_by(*(f"{words(tr, c)} {way} nulls {nulls}" for c, tr, way, nulls in order))
    context = t._handle.snapshot.write_context("w")
    writer = SortedWriter(PartitionedWriter(context), context, run_bytes=r.choice([1, 1000, 20_000]))
    assert is_ordered([])
    for batch in data.cast(writer.schema).to_batches(max_chunksize=97):
        writer.write(batch)
    assert len(writer._runs) > 1
    outcomes = pa.concat_tables(writer.finish())
    rows = list(map(rows_of, outcomes["path"].to_pylist()))
    assert sorted(x["row"] for found in rows for x in found) == list(range(400))
    assert len(rows) == (3 if by else 1)
    assert [misplaced(found, order, eyes(tmp_path / "t").schema()) for found in rows] == [None] * len(rows)
    assert not writer._runs and writer._folder is None


def test_a_distribution_that_is_none(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"write.distribution-mode": "some"})
    with pytest.raises(InvalidArgumentError, match="none, hash or range"):
        t.append(drawn(random.Random(1), 3))


@pytest.mark.spark
@pytest.mark.parametrize("mode, by", [(None, []), ("none", []), ("hash", ["o"]), ("range", ["o"]), ("range", [])])
def test_files_of_spark(spark, tmp_path, mode, by):
    r = random.Random(8)
    data = drawn(r, 600).drop_columns(["time", "x", "f"])
    properties = {} if mode is None else {"write.distribution-mode": mode}
    t = bh.create(str(tmp_path / "t"), data.schema, format="iceberg", partition_by=by, properties=properties)
    order = [("s.y", "identity", "desc", "last"), ("d", "identity", "asc", "first"), ("l", "bucket[3]", "asc", "first")]
    t.sort_by(*(f"{words(tr, c)} {way} nulls {nulls}" for c, tr, way, nulls in order))
    plain = bh.create(str(tmp_path / "plain"), data.schema, format="iceberg")
    plain.append(data)
    frame = plain.to_spark(spark).repartition(3)
    settings = {"spark.sql.shuffle.partitions": "4", "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    before = {k: spark.conf.get(k) for k in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        t.append(frame)
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    found = files(tmp_path / "t")
    assert {id for _, id in found} == {1} and sum(len(rows) for rows, _ in found) == 600
    schema = eyes(tmp_path / "t").schema()
    assert [misplaced(rows, order, schema) for rows, _ in found] == [None] * len(found)
    if by:
        tasks = 2 if mode == "hash" else 4
        assert 3 <= len(found) <= 3 * tasks
        return
    ends = sorted(
        ((rows[0], rows[-1]) for rows, _ in found),
        key=functools.cmp_to_key(lambda a, b: 1 if misplaced([a[0], b[0]], order[:2], schema) else -1),
    )
    disjoint = all(misplaced([a[1], b[0]], order[:2], schema) is None for a, b in itertools.pairwise(ends))
    assert len(found) > 2 and disjoint == (mode != "none")


def test_a_rewrite_by_another_order_claims_none(tmp_path):
    """Files say that they are in an order of the table's only if they are."""
    t = bh.create(str(tmp_path / "t"), "id bigint, city string", format="iceberg")
    for i in range(3):
        t.append(pa.table({"id": [i, 9 - i], "city": ["a", "b"]}))

    def orders():
        head = max((tmp_path / "t/metadata").glob("v*.json"), key=lambda p: int(p.name[1:].split(".")[0]))
        return {f["sort_order_id"] for f in StaticTable.from_metadata(f"file://{head}").inspect.files().to_pylist()}

    t.optimize(sort_by=["id desc"])
    assert t.to_arrow()["id"].to_pylist() == [9, 8, 7, 2, 1, 0] and orders() == {None}
    t.sort_by("id")
    t.optimize(sort_by=["city desc"])
    assert orders() == {None} and t.to_arrow()["city"].to_pylist() == ["b"] * 3 + ["a"] * 3
    t.optimize(sort_by=[])
    assert orders() == {1} and t.to_arrow()["id"].to_pylist() == [0, 1, 2, 7, 8, 9]
    t.sort_by("city")
    t.optimize(sort_by=["id asc nulls first"])
    assert orders() == {1}  # an order that the table had
