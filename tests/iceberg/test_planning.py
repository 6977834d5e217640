"""Planning: what is asked of storage, and that conditions on tables of several specs give the rows that a brute-force
search finds."""

import copy
import datetime as dt
import math
import random
from collections import Counter
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from foreign_writer import Foreign

import boathouse as bh
from boathouse import registry
from boathouse.api.table import Table
from boathouse.ops.handle import Handle
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.testing.faults import FaultyStorage, Plan

duckdb = pytest.importorskip("duckdb")


@pytest.mark.spec("I-008")
@pytest.mark.parametrize("count", [10, 1000])
def test_one_partition_of_many_manifests(make, count):
    """Metadata, manifest list, the one manifest, its file: the same number whatever the table has."""
    table, eyes = make(pa.table({"id": [1, 2], "p": ["b", "b"]}), partition_by=["p"])
    table.append(pa.table({"id": [3], "p": ["a"]}))
    path = Path(eyes.snapshot()["manifest-list"].removeprefix("file://"))
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
    other = next(r for r in rows if r["partitions"][0]["lower_bound"] == b"b")
    for i in range(count - 2):
        row = copy.deepcopy(other)
        value = f"b{i:04d}".encode()
        row["partitions"][0].update(lower_bound=value, upper_bound=value)
        rows.append({**row, "manifest_path": f"file://{eyes.root}/metadata/none-{i}.avro"})
    with open(path, "wb") as file:
        fastavro.writer(file, schema, rows)
    logged = []

    def wrap(inner):
        logged.append(FaultyStorage(inner, Plan()))
        return logged[-1]

    context = TableContext(Location(f"file://{eyes.root}"), Stores(wrap=wrap))
    opened = Table(Handle(registry.load("iceberg").open(context)))
    found = opened.scan(where="p = 'a'")
    assert found.to_arrow().to_pylist() == [{"id": 3, "p": "a"}]
    asked = Counter(o.name for s in logged for o in s.log)
    assert asked == {"list_dir": 1, "get": 3, "get_range": 2}
    assert len(opened._handle.snapshot.listing.data_manifests) == count
    assert "manifest summaries" in str(found.explain())


# --- conditions

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("d", pa.date32()), ("x", pa.float64())])
IDS = (1, 2, 3, 4)
SPECS = [
    [(1000, 2, "s", "identity")], [(1001, 1, "id_bucket", "bucket[3]")], [(1002, 3, "d_month", "month")],
    [(1003, 2, "s_trunc", "truncate[1]"), (1004, 1, "id_trunc", "truncate[10]")], [],
]  # fmt: skip
FLOATS = [None, 0.0, -0.0, 2.5, -3.0, math.inf, -math.inf, math.nan, 5e-324, 1e308]
STRINGS = ["", "a", "ab", "b", "bé", "c", None]


def row(chance):
    day = dt.date(1970, 1, 1) + dt.timedelta(chance.randrange(-70, 70))
    return {"id": chance.choice([None, *range(-20, 40)]), "s": chance.choice(STRINGS),
            "d": chance.choice([None, day, day]), "x": chance.choice(FLOATS)}  # fmt: skip


def condition(chance, depth=2):
    if depth and chance.random() < 0.6:
        inner = [condition(chance, depth - 1) for _ in range(2)]
        return f"({inner[0]} {chance.choice(['AND', 'OR'])} {inner[1]})" if chance.random() < 0.8 else f"NOT {inner[0]}"
    column = chance.choice(["id", "s", "d", "x"])
    found = row(chance)
    value = {"id": repr(found["id"] or 7), "s": repr(found["s"] or "a"), "d": f"DATE '{found['d'] or '1970-01-15'}'",
             "x": f"CAST('{2.5 if found['x'] is None else found['x']}' AS DOUBLE)"}[column]  # fmt: skip
    if chance.random() < 0.25:
        return f"{column} IS {chance.choice(['', 'NOT '])}NULL"
    if column == "s" and chance.random() < 0.3:
        return f"s LIKE '{chance.choice('abc')}%'"
    if column == "id" and chance.random() < 0.3:
        return f"id IN ({value}, 3, 11)"
    return f"{column} {chance.choice(['=', '<', '<=', '>', '>=', '<>'])} {value}"


def tuple_of(fields, found, chance):
    """The partition values of rows like `found`, which is made to fit."""
    values = {}
    for _, source, name, transform in fields:
        column = SCHEMA.names[source - 1]
        value = found[column]
        if transform == "identity":
            values[name] = value
        elif transform.startswith("truncate") and value is not None:
            values[name] = value[:1] if isinstance(value, str) else value - value % 10
        elif transform == "month" and value is not None:
            values[name] = (value.year - 1970) * 12 + value.month - 1
        else:
            values[name] = None
    return values


def fits(found, fields, values):
    return all(
        tuple_of([f], found, None)[f[2]] == values[f[2]] for f in fields if not f[3].startswith("bucket")
    ) and not any(f[3].startswith("bucket") and found["id"] is not None for f in fields)


@pytest.mark.spec("I-205", "I-134")
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 25))])
def test_conditions_by_brute_force(tmp_path, seed):
    """What is left of a condition for each file, over specs, bounds, row deletes and columns that files lack: the rows
    that DuckDB finds among all of them."""
    chance = random.Random(seed)
    bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg")
    foreign = Foreign(tmp_path / "t")
    names = ("field-id", "source-id", "name", "transform")

    def respec(document):
        document["partition-specs"] += [
            {"spec-id": i + 1, "fields": [dict(zip(names, f)) for f in fields]} for i, fields in enumerate(SPECS)
        ]
        document.update({"default-spec-id": 1, "last-partition-id": 1004})

    foreign.edit(respec)
    live = []
    foreign._avro_type = lambda field, types: (
        "int" if field["transform"] in ("month", "bucket[3]") else {1: "long", 2: "string"}[field["source-id"]]
    )
    for _ in range(5):
        spec = chance.randrange(len(SPECS))
        fields, entries, gone = SPECS[spec], [], []
        for _ in range(chance.randrange(1, 3)):
            pool = [row(chance) for _ in range(300)]
            values = tuple_of(fields, {**pool[0], "id": None} if spec == 1 else pool[0], chance)
            mine = [r for r in pool if fits(r, fields, values)][: chance.randrange(1, 9)]
            if not mine:
                continue
            if chance.random() < 0.3:  # written before `x` was added
                mine = [{**r, "x": None} for r in mine]
                data = foreign.data(pa.Table.from_pylist(mine, SCHEMA).drop_columns("x"), IDS[:3], values)
            else:
                data = foreign.data(pa.Table.from_pylist(mine, SCHEMA), IDS, values)
            entries.append(data)
            if chance.random() < 0.5:
                at = chance.randrange(len(mine))
                gone.append((data["data_file"]["file_path"], at, values))
                del mine[at]
            live += mine
        deletes = [foreign.positions([(path, at)], values) for path, at, values in gone]
        foreign.commit(*entries, *deletes, spec=spec + 1)
    everything = pa.Table.from_pylist(live, SCHEMA)
    table, skipped = bh.open(str(foreign.root)), 0
    assert table.to_arrow().num_rows == everything.num_rows
    connection = duckdb.connect()
    connection.register("everything", everything)
    for _ in range(10):
        where = condition(chance)
        theirs = connection.sql(f"SELECT * FROM everything WHERE {where}").fetchall()
        scan = table.scan(where=where)
        ours = [tuple(r.values()) for r in scan.to_arrow().to_pylist()]
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), where
        skipped += len(foreign.live()) - scan.plan().units.num_rows
    assert skipped > 0, "no condition left any file out"


@pytest.mark.parametrize("wide", [False, True])
def test_truncated_values_that_java_lets_wrap_around(tmp_path, wide):
    """truncate[10] of -2147483648 is below the integers; the column may have become a bigint since."""
    schema = pa.schema([("i", pa.int64() if wide else pa.int32())])
    bh.create(str(tmp_path / "t"), schema, format="iceberg", partition_by=["truncate(10, i)"])
    foreign = Foreign(tmp_path / "t")
    rows = {2147483646: [-(2**31), -(2**31) + 1], 2147483640: [2**31 - 1], 0: [3, 5]}
    files = [foreign.data(pa.table({"i": v}, schema), (1,), {"i_trunc": at}) for at, v in rows.items()]
    foreign.commit(*files)
    table = bh.open(str(foreign.root))

    def ints(where=None):
        return sorted(table.scan(where=where).to_arrow()["i"].to_pylist())

    assert ints("i <= 5") == [-(2**31), -(2**31) + 1, 3, 5] and ints("i > 5") == [2**31 - 1]
    assert ints(f"i = {-(2**31)}") == [-(2**31)]
    assert table.scan(where="i = 3").plan().units.num_rows == 2
    table.delete("i > 100")
    assert ints() == [-(2**31), -(2**31) + 1, 3, 5]


@pytest.mark.few(5)
@pytest.mark.spec("I-204")
@pytest.mark.parametrize(
    ("by", "where", "left"),
    [
        ("s", "s = 'ab'", None), ("s", "s = 'ab' AND id >= 1", "id >= 1L"), ("s", "s >= 'a' AND s IS NOT NULL", None),
        ("s", "s = 'ab' OR id = 1", None), ("month(d)", "d >= DATE '2024-03-01' AND d < DATE '2024-04-01'", None),
        ("month(d)", "d >= DATE '2024-03-01' AND d < DATE '2024-03-31'", "d < DATE'2024-03-31'"),
        ("month(d)", "d > DATE '2024-03-01'", "d > DATE'2024-03-01'"), ("month(d)", "d IS NOT NULL", None),
        ("truncate(10, id)", "id < 20 AND id >= 0", None), ("truncate(10, id)", "id < 19", "id < 19L"),
        ("truncate(1, s)", "s LIKE 'a%'", "startswith(s, 'a')"), ("truncate(1, s)", "s = 'a'", "s = 'a'"),
        ("bucket(4, id)", "id = 3", "id = 3L"), ("x", "x > 1", None), ("x", "NOT (x > 1)", None),
    ],
)  # fmt: skip
def test_what_partitions_decide_is_not_evaluated_again(tmp_path, by, where, left):
    """The partition says it of every row: what is left of the condition is all that tasks know, and what they read."""
    days = [dt.date(2024, 3, 1), dt.date(2024, 3, 31), dt.date(2024, 4, 1), None]
    values = {"id": [1, 3, 12, 25], "s": ["ab", "ac", "b", None], "d": days, "x": [0.5, 2.5, None, float("nan")]}
    data = pa.table(values, SCHEMA)
    table = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=[by])
    table.append(data)
    scan = table.scan(["id"], where=where)
    plan = scan.plan()
    assert (None if plan.read.where is None else str(plan.read.where)) == left
    assert [c.name for c in plan.read.columns] == [
        "id",
        *([] if left is None or "id" in left else ["s" if "s" in left else "d"]),
    ]
    connection = duckdb.connect()
    connection.register("data", data)
    theirs = connection.sql(f"SELECT id FROM data WHERE {where}").fetchall()
    assert sorted(scan.to_arrow()["id"].to_pylist()) == sorted(i for (i,) in theirs)
    assert scan.count() == len(theirs)
    assert sorted(table.scan(where=where).to_arrow()["id"].to_pylist()) == sorted(i for (i,) in theirs)
