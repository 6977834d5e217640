"""Random histories that pyiceberg writes: a schema and a partitioning that change, every way to change rows, branches
and tags, an upgrade. Rows are the same at every snapshot and under conditions."""

import datetime as dt
import random
import re
from collections import Counter
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from pyiceberg import expressions as ice
from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

import boathouse as bh

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
# The last two: it cannot compare a partition value that is null, and writes no partition without rows.
REFUSED = (ValueError, NotImplementedError, ValidationError, TypeError, ZeroDivisionError)
INF = float("inf")
DAYS = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1960, 2, 29), dt.date(2024, 2, 29)]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(1960, 2, 29, 12, 30, 15)]
FLOATS = [float("nan"), -0.0, 0.0, 1.5, -2.25, INF, -INF, 2.0**-149, 3.4028234663852886e38]
VALUES = {
    IntegerType: [0, 1, -1, -7, 5, 2**31 - 1], LongType: [0, 1, -1, -7, 5, 2**63 - 1], FloatType: FLOATS,
    DoubleType: FLOATS, DecimalType: [Decimal(v) for v in ("0.00", "-0.01", "12345.67", "-7.50")],
    StringType: ["", "a", "a", "b", "ab", "longer than sixteen characters", "é🚣"], BooleanType: [True, False],
    DateType: DAYS, TimestampType: TIMES, TimestamptzType: [t.replace(tzinfo=dt.UTC) for t in TIMES],
    BinaryType: [b"", b"x", b"longer than sixteen bytes"],
}  # fmt: skip
WIDER = {IntegerType: LongType(), FloatType: DoubleType(), DecimalType: DecimalType(20, 2)}
NAMES = ("a", "b", "c", "E", "f g", "né")
STEPS = ("append", "append", "append", "overwrite", "delete", "delete", "upsert", "dynamic", *("schema",) * 4, "spec",
         "spec", "branch", "tag", "rollback")  # fmt: skip


def schema():
    inner = StructType(NestedField(20, "c", FloatType()), NestedField(21, "t", DateType()))
    st = StructType(
        NestedField(22, "a", IntegerType()), NestedField(23, "b", StringType()), NestedField(24, "s", inner)
    )
    leaves = [IntegerType(), FloatType(), DoubleType(), DecimalType(9, 2), DateType(), TimestampType(),
              TimestamptzType(), BooleanType(), BinaryType()]  # fmt: skip
    types = [LongType(), StringType(), *leaves, st, ListType(30, IntegerType(), False),
             MapType(31, StringType(), 32, IntegerType(), False)]  # fmt: skip
    names = ("k", "p", "i", "f", "d", "n", "day", "ts", "tz", "bo", "bi", "st", "li", "m")
    return Schema(*(NestedField(i + 1, n, t) for i, (n, t) in enumerate(zip(names, types))))


def value(chance, type):
    if chance.random() < 0.15:
        return None
    match type:
        case StructType():
            return {f.name: value(chance, f.field_type) for f in type.fields}
        case ListType():
            return [value(chance, type.element_type) for _ in range(chance.randrange(3))]
        case MapType():
            return [(f"k{n}", value(chance, type.value_type)) for n in range(chance.randrange(3))]
    return chance.choice(VALUES[type.__class__])


class History:
    """A table that changes at random. What pyiceberg refuses is left out."""

    def __init__(self, catalog, seed):
        self.chance, self.keys, self.done, self.asked = random.Random(seed), 0, [], []
        version = self.chance.choice(("1", "2"))
        self.table = catalog.create_table("db.t", schema(), properties={"format-version": version})
        self.append("main")

    def step(self):
        name = self.chance.choice(STEPS)
        branches = [n for n, ref in self.table.refs().items() if ref.snapshot_ref_type == "branch"]
        try:
            getattr(self, name)(self.chance.choice(["main", *branches]))
            self.done.append(name)
            self.ask()
        except REFUSED as error:
            print(f"{name} is refused: {error}")

    def ask(self):
        """Its rows under a condition, while the schema is that of the snapshot: it binds conditions to the newest. It
        loses NaN where it does not count them, and keeps nulls of columns that a file lacks."""
        snapshot = self.table.current_snapshot()
        first = [f for f in self.fields() if f.field_id <= self.table.schemas()[0].highest_field_id]
        sql, made = condition(self.chance, plain(first))
        if snapshot.schema_id == self.table.schema().schema_id and "isnan" not in sql:
            self.asked.append((snapshot.snapshot_id, sql, self.table.scan(made).to_arrow()))

    def fields(self):
        return self.table.schema().fields

    def rows(self, keys):
        rows = [{f.name: value(self.chance, f.field_type) for f in self.fields()} | {"k": key} for key in keys]
        return pa.Table.from_pylist(rows, self.table.schema().as_arrow())

    def new(self, number):
        self.keys += number
        return range(self.keys - number + 1, self.keys + 1)

    # --- rows

    def append(self, branch):
        self.table.append(self.rows(self.new(self.chance.randint(2, 7))), branch=branch)

    def overwrite(self, branch):
        self.table.overwrite(self.rows(self.new(3)), condition(self.chance, plain(self.fields()))[1], branch=branch)

    def delete(self, branch):
        self.table.delete(condition(self.chance, plain(self.fields()))[1], branch=branch)

    def upsert(self, branch):
        old = self.chance.sample(range(1, self.keys + 1), min(3, self.keys))
        self.table.upsert(self.rows([*old, *self.new(2)]), ["k"], branch=branch)

    def dynamic(self, branch):
        self.table.dynamic_partition_overwrite(self.rows(self.new(3)), branch=branch)

    # --- the schema, the partitioning and the refs

    def schema(self, branch):
        chance, above, own = self.chance, *self.chance.choice(list(structs(self.fields())))
        free = [n for n in NAMES if n not in {f.name for f in own}]
        some = chance.choice(own)
        path, other = (*above, some.name), (*above, chance.choice(own).name)
        with self.table.update_schema() as update:
            match chance.choice(("add", "add", "drop", "rename", "first", "after", "widen", "widen")):
                case "add" if free:
                    new = chance.choice(list(VALUES))
                    update.add_column((*above, chance.choice(free)), new(9, 2) if new is DecimalType else new())
                case "drop" if some.name != "k" and some.field_id not in self.sources() and len(own) > 1:
                    update.delete_column(path)
                case "rename" if free and some.name != "k":
                    update.rename_column(path, chance.choice(free))
                case "first":
                    update.move_first(path)
                case "after" if other != path:
                    update.move_after(path, other)
                case _ if type(some.field_type) in WIDER and some.field_type != DecimalType(20, 2):
                    update.update_column(path, WIDER[type(some.field_type)])

    def sources(self):
        return {f.source_id for spec in self.table.specs().values() for f in spec.fields}

    def spec(self, branch):
        fields = [f.name for f in self.table.spec().fields if str(f.transform) != "void"]
        with self.table.update_spec() as update:
            if fields and self.chance.random() < 0.5:
                update.remove_field(self.chance.choice(fields))
            else:
                path, type = self.chance.choice(plain(self.fields()))
                # It writes rows with a zero to the partitions of both zeros.
                transforms = [] if type in (FloatType(), DoubleType()) else ["identity", "bucket[3]"]
                if type in (IntegerType(), LongType(), StringType()):
                    transforms.append("truncate[2]")
                if isinstance(type, DateType | TimestampType | TimestamptzType):
                    transforms += ["year", "month", "day"]
                if transforms:
                    update.add_field(path[0], parse_transform(self.chance.choice(transforms)))

    def branch(self, branch):
        manage = self.table.manage_snapshots()
        manage.create_branch(self.table.current_snapshot().snapshot_id, f"b{len(self.table.refs())}").commit()

    def tag(self, branch):
        manage = self.table.manage_snapshots()
        manage.create_tag(self.table.current_snapshot().snapshot_id, f"g{len(self.table.refs())}").commit()

    def rollback(self, branch):
        past = [e.snapshot_id for e in self.table.history()][-3:]
        self.table.manage_snapshots().rollback_to_snapshot(self.chance.choice(past)).commit()

    def upgrade(self):
        if self.table.format_version == 1:
            with self.table.transaction() as changes:
                changes.upgrade_table_version(2)


def structs(fields, above=()):
    yield above, fields
    for f in fields:
        if isinstance(f.field_type, StructType):
            yield from structs(f.field_type.fields, (*above, f.name))


def leaves(fields):
    for above, own in structs(fields):
        yield from (((*above, f.name), f.field_type) for f in own if type(f.field_type) in VALUES)


def plain(fields):
    """The leaves in no struct: pyiceberg has no conditions on others."""
    return [(path, type) for path, type in leaves(fields) if len(path) == 1]


# --- conditions


def condition(chance, over, depth=0):
    """A condition over some leaves, as our text and as pyiceberg's expression."""
    match chance.choice(("one", "one", "and", "or")) if depth < 2 else "one":
        case "one":
            return comparison(chance, *chance.choice(over))
        case both:
            (a, x), (b, y) = (condition(chance, over, depth + 1) for _ in range(2))
            return f"({a}) {both.upper()} ({b})", (ice.And if both == "and" else ice.Or)(x, y)


def comparison(chance, path, type):
    """Forms that mean the same in both: pyiceberg's NOT IN keeps nulls, its <> those of a partition, its NaN is not the
    greatest, its infinity is beyond the floats, its IN tells zeros apart by their sign."""
    one, two = (chance.choice([v for v in VALUES[type.__class__] if v == v and v not in (INF, -INF)]) for _ in range(2))
    name, quoted, shown = ".".join(path), ".".join(f"`{p}`" for p in path), literal(one)
    floats = isinstance(type, FloatType | DoubleType)
    signs = {"=": ice.EqualTo, "<>": unequal, "<": ice.LessThan, "<=": ice.LessThanOrEqual}
    if not floats:
        signs |= {">": ice.GreaterThan, ">=": ice.GreaterThanOrEqual}
    forms = [(f"{quoted} {sign} {shown}", made(name, one)) for sign, made in signs.items()]
    if floats:
        forms.append((f"isnan({quoted})", ice.IsNaN(name)))
    else:
        opposite = {"=": unequal, "<>": ice.EqualTo}
        forms += [
            (
                f"NOT ({quoted} {sign} {shown})",
                opposite[sign](name, one) if sign in opposite else ice.Not(made(name, one)),
            )
            for sign, made in signs.items()
        ]
        forms.append((f"{quoted} IN ({shown}, {literal(two)})", ice.In(name, {one, two})))
    forms += [(f"{quoted} IS NULL", ice.IsNull(name)), (f"{quoted} IS NOT NULL", ice.NotNull(name))]
    if isinstance(type, StringType):
        forms.append((f"{quoted} LIKE 'a%'", ice.StartsWith(name, "a")))
    return chance.choice(forms)


def unequal(name, value):
    return ice.And(ice.NotNull(name), ice.NotEqualTo(name, value))


def literal(value):
    match value:
        case bool() | int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value}' AS double)"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            return f"TIMESTAMP '{text}Z'" if value.tzinfo else f"TIMESTAMP_NTZ '{text}'"
        case dt.date():
            return f"DATE '{value}'"
    return f"'{value}'"


# --- the comparison


def same(mine, theirs, what):
    assert mine.column_names == theirs.column_names, what
    one, two = (Counter(map(repr, t.to_pylist())) for t in (mine, theirs))
    assert one == two, (what, "only ours", one - two, "only theirs", two - one)


def history_of(catalog, seed):
    found = History(catalog, seed)
    while len(found.done) < 14:
        found.step()
        if len(found.done) == 8:
            found.upgrade()
    return found


def check(history, root, read, snapshots):
    """`read(table, columns, where)` gives our rows. Conditions are DuckDB's on the rows of pyiceberg."""
    table, chance = history.table, history.chance
    for snapshot in snapshots:
        id, fields = snapshot.snapshot_id, table.schemas()[snapshot.schema_id].fields
        mine, everything = bh.open(root, version=id), table.scan(snapshot_id=id).to_arrow()
        same(read(mine, None, None), everything, id)
        connection = duckdb.connect()
        connection.register("everything", everything)
        for _ in range(4):
            sql, _ = condition(chance, list(leaves(fields)))
            names = chance.sample([f.name for f in fields if f.name != "k"], 2)
            rows = connection.sql(f"SELECT k FROM everything WHERE {for_duckdb(sql)}").fetchall()
            found = read(mine, ["k", *names], sql)
            assert found.column_names == ["k", *names]
            assert Counter(found["k"].to_pylist()) == Counter(k for (k,) in rows), (id, sql)


def for_duckdb(sql):
    sql = re.sub(r"X'(\w*)'", r"unhex('\1')", sql.replace("`", '"'))
    return re.sub(r"TIMESTAMP ('[^']*Z')", r"TIMESTAMPTZ \1", sql).replace("TIMESTAMP_NTZ", "TIMESTAMP")


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 25))])
def test_random_histories(catalog, adopt, seed):
    history = history_of(catalog, seed)
    table, root = history.table, adopt(history.table)
    check(history, root, lambda t, c, w: t.scan(c, w).to_arrow(), table.snapshots())
    for id, sql, theirs in history.asked:
        same(bh.open(root, version=id).scan(where=sql).to_arrow(), theirs, sql)
    for name, ref in table.refs().items():
        mine = bh.open(root, ref=name)
        assert mine.version == ref.snapshot_id
        if table.snapshot_by_id(ref.snapshot_id).schema_id == table.schema().schema_id:
            same(mine.to_arrow(), table.scan(snapshot_id=ref.snapshot_id).to_arrow(), name)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(30, 34))
def test_random_histories_on_spark(spark, catalog, adopt, seed):
    history = history_of(catalog, seed)
    root = adopt(history.table)
    some = history.chance.sample(history.table.snapshots(), 3)

    def read(table, columns, where):
        found = table.scan(columns, where).to_spark(spark).toArrow()
        if where is not None:
            later = table.to_spark(spark).where(where).select(*columns).toArrow()
            assert Counter(map(repr, later.to_pylist())) == Counter(map(repr, found.to_pylist())), where
        return found

    check(history, root, read, some)
