"""Tables written by pyiceberg, read by us."""

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.iceberg import tasks
from boathouse.iceberg.adapter import FORMAT
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

pyiceberg = pytest.importorskip("pyiceberg")


@pytest.fixture
def catalog(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    made = SqlCatalog("t", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}/wh")
    made.create_namespace("db")
    return made


def opened(table, at=At()):
    location = Location(absolute(table.location()), absolute(table.metadata_location))
    return FORMAT.open(TableContext(location, Stores()), at)


def rows(snap, where=None, columns=None, hidden=()):
    predicate = None if where is None else bind_predicate(parse(where), snap.schema)
    plan = snap.plan(columns, predicate, hidden)
    batches = [b for t in plan.tasks() for b in tasks.read(t)]
    return pa.Table.from_batches(batches, plan.read.schema), plan


EVERYTHING = {
    "b": pa.array([True, False, None]),
    "i": pa.array([1, -(2**31), None], pa.int32()),
    "l": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
    "f": pa.array([1.5, math.inf, None], pa.float32()),
    "d": pa.array([-0.0, math.nan, None], pa.float64()),
    "dec": pa.array([Decimal("12345678901234567890.123"), Decimal("-0.001"), None], pa.decimal128(38, 3)),
    "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "t": pa.array([dt.time(22, 31, 8, 1), dt.time(0), None], pa.time64("us")),
    "ts": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2017, 11, 16, 17, 10, 34), None]),
    "tz": pa.array([1, -1, None], pa.timestamp("us", "UTC")),
    "s": pa.array(["", "ü💥\u0000", None]),
    "bin": pa.array([b"", b"\x00\xff", None]),
    "fix": pa.array([b"abc", b"\x00\x01\x02", None], pa.binary(3)),
    "st": pa.array(
        [{"x": 1, "y": "a"}, {"x": None, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])
    ),
    "li": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "ma": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int32())),
}


@pytest.mark.spec("I-042", "I-043", "I-044", "I-045", "I-046", "I-047", "I-048", "I-050", "I-052", "I-053")
def test_every_type_is_read(catalog):
    data = pa.table(EVERYTHING)
    table = catalog.create_table("db.all types", data.schema)
    table.append(data)
    got, _ = rows(opened(table))
    assert got.to_pylist().__repr__() == data.to_pylist().__repr__()


PARTITIONED = {
    "identity": "i",
    "bucket[4]": "i",
    "truncate[10]": "i",
    "truncate[2]": "s",
    "bucket[3]": "s",
    "year": "ts",
    "month": "ts",
    "day": "ts",
    "hour": "ts",
    "void": "s",
}


@pytest.mark.parametrize("transform", PARTITIONED)
@pytest.mark.spec("I-203", "I-012")
def test_partitioned_tables_give_every_row_and_prune(catalog, transform):
    source = PARTITIONED[transform]
    data = pa.table(
        {
            "i": pa.array([*range(-30, 30), None], pa.int64()),
            "s": [*(f"k{i}é" for i in range(60)), None],
            "ts": [*(dt.datetime(1969, 12, 30) + dt.timedelta(hours=7 * i) for i in range(60)), None],
        }
    )
    from pyiceberg.transforms import parse_transform

    table = catalog.create_table("db.p", data.schema)
    with table.update_spec() as update:
        update.add_field(source, parse_transform(transform), "part")
    table.append(data)
    snap = opened(table)
    got, whole = rows(snap)
    assert got.sort_by("i").to_pylist() == data.sort_by("i").to_pylist()
    for where, keep in CHECKS[source].items():
        found, plan = rows(snap, where)
        assert sorted(map(repr, found.to_pylist())) == sorted(repr(r) for r in data.to_pylist() if keep(r)), where
        if transform not in ("void",) and (not transform.startswith("bucket") or " = " in where):
            assert plan.units.num_rows < whole.units.num_rows or whole.units.num_rows == 1


CHECKS = {
    "i": {
        "i = 7": lambda r: r["i"] == 7,
        "i < -20": lambda r: r["i"] is not None and r["i"] < -20,
        "i IS NULL": lambda r: r["i"] is None,
        "i IN (3, 29)": lambda r: r["i"] in (3, 29),
    },
    "s": {
        "s = 'k7é'": lambda r: r["s"] == "k7é",
        "s IS NULL": lambda r: r["s"] is None,
        "s LIKE 'k5%'": lambda r: r["s"] is not None and r["s"].startswith("k5"),
    },
    "ts": {
        "ts < TIMESTAMP_NTZ '1970-01-01 00:00:00'": lambda r: r["ts"] is not None and r["ts"] < dt.datetime(1970, 1, 1),
        "ts > TIMESTAMP_NTZ '1970-01-05 03:30:00'": lambda r: (
            r["ts"] is not None and r["ts"] > dt.datetime(1970, 1, 5, 3, 30)
        ),
        "ts IS NULL": lambda r: r["ts"] is None,
    },
}


@pytest.mark.spec("I-051")
def test_uuid_columns(catalog):
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, UUIDType

    ids = [uuid.uuid4(), uuid.UUID(int=0)]
    table = catalog.create_table("db.u", Schema(NestedField(1, "u", UUIDType(), required=False)))
    table.append(pa.table({"u": pa.array([i.bytes for i in ids], pa.uuid())}))
    got, _ = rows(opened(table))
    assert [r["u"] for r in got.to_pylist()] == [i.bytes for i in ids]


@pytest.mark.spec("I-082", "I-183", "I-184")
def test_evolution_and_time_travel(catalog):
    table = catalog.create_table("db.e", pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.float32())]))
    table.append(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"], "c": pa.array([1.5], pa.float32())}))
    first = table.current_snapshot()
    with table.update_schema() as update:
        update.rename_column("c", "measurement")
        update.rename_column("b", "name")
        update.delete_column("a")
    with table.update_schema() as update:
        from pyiceberg.types import DoubleType, LongType

        update.add_column("a", LongType())
        update.update_column("measurement", DoubleType())
        update.move_first("measurement")
    got, _ = rows(opened(table))
    assert got.to_pylist() == [{"measurement": 1.5, "name": "x", "a": None}]
    old, _ = rows(opened(table, At(version=first.snapshot_id)))
    assert old.to_pylist() == [{"a": 1, "b": "x", "c": 1.5}]
    assert opened(table, At(timestamp_ms=first.timestamp_ms)).version == first.snapshot_id


def test_hidden_columns_and_empty_projection(catalog):
    table = catalog.create_table("db.h", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": [5, 6]}))
    table.append(pa.table({"a": [7, 8]}))
    got, plan = rows(opened(table), "a <> 5", ["a"], ("_unit", "_pos"))
    paths = dict(zip(plan.units["unit"].to_pylist(), plan.units["path"].to_pylist()))
    from pyarrow.parquet import read_table

    for r in got.to_pylist():
        assert read_table(paths[r["_unit"]][7:])["a"][r["_pos"]].as_py() == r["a"]
    _count, _ = rows(opened(table), None, [])
    assert sum(b.num_rows for t in opened(table).plan([]).tasks() for b in tasks.read(t)) == 4
