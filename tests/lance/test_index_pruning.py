"""Indices that pylance made, of which scans with conditions read less: the rows are those of a scan without them."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boathouse as bh
from boathouse.compute.evaluate import mask
from boathouse.errors import CorruptTableError
from boathouse.expr.resolve import bind_predicate
from boathouse.lance.file.container import Source
from boathouse.lance.indices import row_ranges
from boathouse.lance.indices.row_ranges import count, decode
from boathouse.lance.indices.row_sets import decode_rows, encode_rows
from boathouse.lance.indices.stored import usable
from boathouse.lance.manifests.indices import IndexSection

lance = pytest.importorskip("lance")
IndexConfig = pytest.importorskip("lance.indices").IndexConfig

N = 2_000
KINDS = {
    "btree": {"zone_size": 50},
    "bitmap": {},
    "zonemap": {"rows_per_zone": 100},
    "bloomfilter": {"number_of_items": 100, "probability": 0.001},
}
UNFILTERED = ("b", "d", "dict")
"""Columns of types that Bloom filters are not made of."""


def columns(n: int = N, seed: int = 3) -> pa.Table:
    """Every type that scalar indices take, more or less in order, with nulls and what is hard to compare."""
    rng = np.random.default_rng(seed)
    near = np.arange(n) * 3 + rng.integers(0, 40, n)

    def some(values, type=None):
        return pa.array([None if i % 13 == 5 or i // 100 == 3 else v for i, v in enumerate(values)], type)

    floats = near * 0.25 - n
    floats[::97], floats[1::89], floats[2::83], floats[3::301] = np.nan, -0.0, 0.0, -np.nan
    floats[7::500], floats[8::500] = np.inf, -np.inf
    days = [dt.date(1960, 1, 1) + dt.timedelta(int(x)) for x in near]
    return pa.table(
        {
            "i": pa.array(np.arange(n)),
            "i8": some((near % 251 - 125).tolist(), pa.int8()),
            "i64": some([-(1 << 63), (1 << 63) - 1, *near.tolist()][:n], pa.int64()),
            "u32": some([(1 << 32) - 1, *near.tolist()][:n], pa.uint32()),
            "u64": some([(1 << 64) - 1, *near.tolist()][:n], pa.uint64()),
            "f32": some(floats.tolist(), pa.float32()),
            "f64": some(floats.tolist(), pa.float64()),
            "s": some([f"k{x:06}ä" if x % 40 else "" for x in near.tolist()]),
            "ls": some([f"{'long' * 80}{x:06}" for x in near.tolist()], pa.large_string()),
            "few": some([f"w{x // 900}" for x in near.tolist()]),
            "bin": some([bytes([255] * 3 + [x % 256]) for x in near.tolist()], pa.binary()),
            "b": some([x % 3000 > 2900 for x in near.tolist()]),
            "day": some(days, pa.date32()),
            "ts": some((near * 10**9).tolist(), pa.timestamp("us", "UTC")),
            "ts_s": some(near.tolist(), pa.timestamp("s")),
            "d": some([Decimal(int(x) - 2000) / 100 for x in near], pa.decimal128(20, 2)),
            "dict": some([f"d{x // 700}" for x in near.tolist()]).dictionary_encode(),
        }
    )


def indexed(uri, kind: str, table: pa.Table, **options) -> None:
    """A table with an index on each column that can have one of this kind."""
    dataset = lance.write_dataset(table, uri, max_rows_per_file=800, **options)
    for name in table.column_names:
        if kind == "bloomfilter" and name in UNFILTERED:
            continue
        dataset.create_scalar_index(name, IndexConfig(kind, KINDS[kind]), name=f"{name} {kind}")


def conditions(rng: random.Random, values: pa.Table, names, each: int):
    """Random conditions on the columns, with constants that rows have, or nearly have."""
    for name in names:
        known = [v for v in values[name].to_pylist() if v is not None]
        for _ in range(each):
            yield name, one_of(rng, bh.col(name), known)
    yield "s", bh.col("s").like("k0010%")


def one_of(rng: random.Random, column, known):
    a, b = (near(rng, rng.choice(known)) for _ in range(2))
    low, high = sorted((a, b), key=lambda v: (v != v, v))
    forms = [
        lambda: column.eq(a),
        lambda: column.is_in([a, b, *rng.choices(known, k=3)]),
        lambda: column.is_in([a, None]),
        lambda: (column >= low) & (column < high),
        lambda: column > high,
        lambda: column <= low,
        lambda: ~(column > low),
        lambda: column.ne(a),
        lambda: column.is_null(),
        lambda: column.is_null() | column.eq(a),
        lambda: ~column.is_null() & (column < low),
        lambda: column.eq(a) | (bh.col("i") < 40),
        lambda: column.eq(a) & (bh.col("i") > 900),
    ]
    return rng.choice(forms)()


def near(rng: random.Random, value):
    """The value, or one that is perhaps in no row."""
    if rng.random() < 0.5:
        return value
    match value:
        case bool() | bytes():
            return value
        case int():
            return max(min(value + rng.choice([-1, 1]), 120 if -128 <= value < 128 else (1 << 63) - 1), -128)
        case float():
            return rng.choice([value + 0.125, 0.0, -0.0, float("nan"), float("inf"), value])
        case str():
            return value + rng.choice(["", "z"])
        case Decimal():
            return value + Decimal("0.01")
        case _:
            return value + dt.timedelta(days=1)


def compare(t, rng: random.Random, names, each: int) -> tuple[int, int]:
    """Every condition gives the rows that it is true for among those of a scan without one. How many rows were left to
    be looked at, and how many there were."""
    whole = t.scan().to_arrow()
    left = total = 0
    for name, condition in conditions(rng, whole, names, each):
        bound = bind_predicate(condition, t.schema)
        expected = whole.filter(mask(bound, whole.select(sorted({"i", "s", name}))))
        found = t.scan(["i"], where=condition).to_arrow()
        assert found.column("i").to_pylist() == expected.column("i").to_pylist(), str(condition)
        left, total = left + looked_at(t, bound), total + len(whole)
    return left, total


def looked_at(t, bound) -> int:
    """The rows that a scan with this condition reads."""
    units = t._handle.snapshot.plan(where=bound).units
    native = units.column("native").combine_chunks().field("rows").to_pylist()
    return sum(r if n is None else count(decode(n)) for r, n in zip(units["rows"].to_pylist(), native))


SHORT = [("btree", True), ("bitmap", False), ("zonemap", False), ("bloomfilter", False)]


@pytest.mark.feature("conditions by indices", format="lance", engine="local")
@pytest.mark.parametrize(("kind", "stable"), SHORT)
def test_every_type(tmp_path, kind, stable, each=2, names=("i", "i64", "f64", "ls", "ts", "few", "s")):
    table = columns().select(names)
    indexed(str(tmp_path), kind, table, enable_stable_row_ids=stable)
    t = bh.open(str(tmp_path))
    assert t.scan(["i"]).to_arrow()["i"].to_pylist() == table["i"].to_pylist()
    left, total = compare(t, random.Random(f"{kind} {each}"), table.column_names, each)
    assert left < total * (0.9 if kind == "bloomfilter" else 0.75), "many of these conditions are of a few values"


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_more(tmp_path, kind, stable):
    test_every_type(tmp_path, kind, stable, 6, columns().column_names)


HISTORY = ["i", "i64", "f64", "s", "few"]
QUERY = np.full(4, 0.4, np.float32)


def exactly(value):
    """A value by which it is compared: NaN is itself, and zeros are two."""
    return repr(value) if isinstance(value, float) else value


class History:
    """Steps of ours and of pylance's on one table, with indices and without: `rows` are what it should hold, by `i`,
    and `ids` their stable ids."""

    def __init__(self, kit, seed: int) -> None:
        self.kit, self.rng, self.next = kit, random.Random(seed), 10_000
        self.stable, self.indexed = bool(seed % 2), seed % 3 != 0
        self.rows: dict[int, dict[str, object]] = {}
        self.ids: dict[int, int] = {}
        self.flawed = False
        """pylance compacted a table with stable ids: its index of vectors then finds rows that are gone."""
        version = ["2.2", "2.1", "2.0"][seed % 4 % 3]
        table = self.new(columns(600, seed).select(HISTORY))
        dataset = kit.pylance(
            table, max_rows_per_file=200, enable_stable_row_ids=self.stable, data_storage_version=version
        )
        if self.indexed:
            for kind, options in KINDS.items():
                for name in ("i64", "f64", "few"):
                    dataset.create_scalar_index(name, IndexConfig(kind, options), name=f"{name} {kind}")
            dataset.create_scalar_index("s", "INVERTED", name="words")
            self.vectors()
        self.check("the beginning")

    def vectors(self) -> None:
        self.kit.dataset().create_index("v", "IVF_FLAT", name="near", num_partitions=2, replace=True)
        self.flawed = False

    def new(self, table: pa.Table) -> pa.Table:
        """Rows that the model has from now on, each with a vector."""
        vectors = np.array([[self.rng.random() for _ in range(4)] for _ in range(len(table))], np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 4)
        table = table.append_column("v", column)
        self.rows |= {row["i"]: row for row in table.to_pylist()}
        return table

    def step(self) -> None:
        steps = ["append", "delete", "update", "upsert", "compact", "remove"]
        steps += ["optimize", "deferred", "index", "compact"] if self.indexed else []
        action, ours = self.rng.choice(steps), self.rng.random() < 0.5
        getattr(self, action)(ours)
        self.check(f"{action} by {'us' if ours else 'pylance'}")

    def fresh(self, count: int) -> pa.Table:
        table = columns(count, self.rng.randrange(99)).select(HISTORY)
        self.next += count
        return table.set_column(0, "i", pa.array(range(self.next - count, self.next)))

    def append(self, ours: bool) -> None:
        table = self.new(self.fresh(50))
        if ours:
            self.kit.open().append(table)
        else:
            self.kit.pylance(table, mode="append")

    def upsert(self, ours: bool) -> None:
        known = self.rng.sample(sorted(self.rows), 5)
        fresh = self.fresh(10)
        old = fresh.slice(0, 5).set_column(0, "i", pa.array(known))
        table = self.new(pa.concat_tables([old, fresh.slice(5)]))
        if ours:
            self.kit.open().upsert(table, on="i")
        else:
            self.kit.dataset().merge_insert("i").when_matched_update_all().when_not_matched_insert_all().execute(table)

    def some(self) -> tuple[str, list[int]]:
        modulus = self.rng.choice([3, 17, 90])
        return f"i % {modulus} = 0", [i for i in self.rows if i % modulus == 0]

    def delete(self, ours: bool) -> None:
        where, gone = self.some()
        if len(gone) < len(self.rows):
            self.kit.open().delete(where) if ours else self.kit.dataset().delete(where)
            self.lose(gone)

    def lose(self, gone) -> None:
        for i in gone:
            del self.rows[i]
            self.ids.pop(i, None)

    def remove(self, ours: bool) -> None:
        """Every row of a fragment."""
        fragment = self.rng.choice(self.kit.dataset().get_fragments())
        gone = fragment.to_table(["i"])["i"].to_pylist()
        where = f"i IN ({', '.join(map(str, gone))})"
        if len(gone) < len(self.rows):
            self.kit.open().delete(where) if ours else self.kit.dataset().delete(where)
            self.lose(gone)

    def update(self, ours: bool) -> None:
        column = self.rng.choice(["i64", "s", "f64"])
        value = {"i64": "i + 5", "s": "'k00107'", "f64": "f64 / 2"}[column]
        where, changed = self.some()
        if ours:
            self.kit.open().update({column: value}, where=where)
        else:
            self.kit.dataset().update({column: value}, where=where)
        for i in changed:
            before = self.rows[i]["f64"]
            made = {"i64": i + 5, "s": "k00107", "f64": None if before is None else before / 2}
            self.rows[i] = self.rows[i] | {column: made[column]}

    def compact(self, ours: bool) -> None:
        self.kit.open().optimize() if ours else self.kit.dataset().optimize.compact_files()
        self.flawed |= self.stable and not ours

    def deferred(self, _: bool) -> None:
        """Not offered with stable row ids; the fragment reuse index stays until it is no longer needed."""
        if not self.stable and self.rng.random() < 0.4:
            self.kit.dataset().optimize.compact_files(defer_index_remap=True)

    def optimize(self, ours: bool) -> None:
        self.kit.open().optimize_indices() if ours else self.kit.dataset().optimize.optimize_indices()

    def index(self, ours: bool) -> None:
        kind, name = self.rng.choice([*KINDS][: 3 if ours else None]), self.rng.choice(["i64", "f64", "few"])
        if ours:
            self.kit.open().create_index(name, kind, f"{name} {kind}", replace=True)
        elif self.rng.random() < 0.3:
            self.vectors()
        else:
            self.kit.dataset().create_scalar_index(name, kind.upper(), name=f"{name} {kind}", replace=True)

    def check(self, step: str) -> None:
        dataset, t = self.kit.dataset(), self.kit.open()
        dataset.validate()
        wanted = {i: tuple(map(exactly, row.values())) for i, row in self.rows.items()}
        theirs = dataset.to_table(with_row_id=True)
        known = theirs.column("_rowid").to_pylist()
        for found in (theirs.drop_columns(["_rowid"]), t.scan().to_arrow()):
            rows = found.select([*HISTORY, "v"]).to_pylist()
            assert {row["i"]: tuple(map(exactly, row.values())) for row in rows} == wanted, step
            assert len(rows) == len(wanted), step
        self.check_ids(dict(zip(theirs.column("i").to_pylist(), known)), t, step)
        self.check_searches(dataset, t, step)

    def check_ids(self, found: dict[int, int], t, step: str) -> None:
        some = self.rng.sample(sorted(found), min(5, len(found)))
        taken = t.take(row_ids=[found[i] for i in some], columns=["i"])
        assert taken["i"].to_pylist() == some, step
        if self.stable:
            ours = t.scan(["i", "_row_id"]).to_arrow()
            assert dict(zip(ours["i"].to_pylist(), ours["_row_id"].to_pylist())) == found, step
            assert {i: id for i, id in found.items() if i in self.ids} == self.ids, step
            self.ids = found

    def check_searches(self, dataset, t, step: str) -> None:
        compare(t, self.rng, ["i64", "f64", "few"], 1)
        for name in ("i64", "few", "f64"):
            numbers = [r[name] for r in self.rows.values() if r[name] not in (None, 0.0) and r[name] == r[name]]
            value = self.rng.choice(numbers)
            if value in (float("inf"), float("-inf"), -(1 << 63)):  # no literals of SQL
                continue
            where = f"{name} = {value!r}"
            rows = sorted(i for i, row in self.rows.items() if row[name] == value)
            assert sorted(dataset.to_table(["i"], filter=where)["i"].to_pylist()) == rows, (step, where)
            assert sorted(t.scan(["i"], where=where).to_arrow()["i"].to_pylist()) == rows, (step, where)
        near = sorted(self.rows, key=lambda i: sum((np.float32(self.rows[i]["v"]) - QUERY) ** 2))[:10]
        assert t.nearest("v", QUERY, 10, columns=["i"])["i"].to_pylist() == near, step
        asked = {"column": "v", "q": QUERY, "k": 10, "nprobes": 100, "use_index": not self.flawed}
        assert dataset.to_table(["i", "_distance"], nearest=asked)["i"].to_pylist() == near, step
        if self.indexed:
            words = dataset.to_table(["i", "_score"], full_text_query="k00107")["i"].to_pylist()
            assert sorted(words) == sorted(i for i, row in self.rows.items() if row["s"] == "k00107"), step


@pytest.mark.spec("L-003", "L-125")
@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 64))])
def test_histories_by_turns(kit, seed):
    history = History(kit, seed)
    for _ in range(8):
        history.step()


def large(uri: str, kind: str, n: int = 40_000) -> pa.Table:
    """Four fragments, in no order of `k`, with an index on it."""
    rng = np.random.default_rng(5)
    table = pa.table({"i": np.arange(n), "k": rng.permutation(n), "f": rng.random(n), "z": np.arange(n) // 10})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=n // 4)
    dataset.create_scalar_index("z" if kind == "zonemap" else "k", IndexConfig(kind, {"rows_per_zone": 1000}))
    return table


@pytest.mark.parametrize("kind", ["btree", "zonemap"])
def test_what_is_read(tmp_path, monkeypatch, kind):
    """One fragment of four, and of it a few rows; nothing of an index without a condition on its column."""
    uri = str(tmp_path)
    table = large(uri, kind)
    reads: list[tuple[str, int]] = []
    original = Source._read

    def read(self, offset, size):
        reads.append((self.uri, size))
        return original(self, offset, size)

    monkeypatch.setattr(Source, "_read", read)
    t, column = bh.open(uri), "z" if kind == "zonemap" else "k"
    value = table[column][12_345].as_py()
    found = t.scan(["i", "f"], where=f"{column} = {value}").to_arrow()
    assert found["i"].to_pylist() == [i for i, v in enumerate(table[column].to_pylist()) if v == value]
    data = [(uri, size) for uri, size in reads if "/data/" in uri]
    assert len({uri for uri, _ in data}) == 1, "the other fragments are left out"
    assert sum(size for _, size in data) < (64 << 10) + 100_000, "the tail of the file, and of each column some chunks"
    reads.clear()
    assert t.scan(["i"], where="f < 2").count() == len(table)
    assert t.scan(["i"]).to_arrow().num_rows == len(table)
    assert t.scan(["i"], where=f"{column} = 3 OR f > 2").count() == (10 if kind == "zonemap" else 1)
    assert not [uri for uri, _ in reads if "_indices" in uri], "the condition is not one on the column alone"
    explained = str(t.scan(where=f"{column} = {value}").explain())
    assert "reads 1 of 4 units" in explained and f"skips 3 by index {column}_idx" in explained


def test_an_index_is_not_read_for_many_rows(tmp_path):
    """Of a B-tree at most a quarter of the pages; then every fragment is read, as without it."""
    table = large(str(tmp_path), "btree")
    t = bh.open(str(tmp_path))
    bound = bind_predicate(bh.col("k") > 100, t.schema)
    assert looked_at(t, bound) == len(table)
    assert t.scan(["k"], where="k > 100").count() == len(table) - 101
    assert looked_at(t, bind_predicate(bh.col("k") < 100, t.schema)) == 100


def test_changes_are_read_without_an_index(tmp_path):
    """One that was made after rows were deleted does not know them."""
    uri = str(tmp_path)
    dataset = lance.write_dataset(pa.table({"a": np.arange(100)}), uri)
    dataset.delete("a = 7")
    dataset.create_scalar_index("a", "BITMAP")
    t = bh.open(uri)
    assert looked_at(t, bind_predicate(bh.col("a").eq(7), t.schema)) == 0
    assert t.changes(2, 3, where="a = 7").to_arrow()["_change_type"].to_pylist() == ["delete"]


def test_changes_of_rows_that_were_found_by_an_index(kit):
    """Fragments without such rows are not looked at; the other rows of a fragment stay as they are."""
    large(kit.uri, "btree")
    rows = kit.dataset().to_table().to_pylist()
    kit.open().delete("k = 17")
    kit.open().update({"f": "-1"}, where="k IN (30000, 5)")
    expected = [r | {"f": -1.0 if r["k"] in (5, 30_000) else r["f"]} for r in rows if r["k"] != 17]
    for found in (kit.read(), kit.dataset().to_table()):
        assert sorted(found.to_pylist(), key=lambda r: r["i"]) == expected
    kit.open().merge(pa.table({"k": [9], "f": [0.5]}), on="target.k = source.k").when_matched_update(
        {"f": "source.f"}
    ).execute()
    assert kit.read(where="k = 9").column("f").to_pylist() == [0.5]
    assert kit.dataset().to_table(filter="k = 9").column("f").to_pylist() == [0.5]


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "other": lambda path: path.write_bytes(b"x" * path.stat().st_size),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_indices_are_left_aside(tmp_path, kind, damage):
    """What cannot be read is not needed: the rows are those of the data files."""
    uri = str(tmp_path)
    dataset = lance.write_dataset(pa.table({"a": np.arange(300)}), uri, max_rows_per_file=100)
    dataset.create_scalar_index("a", IndexConfig(kind, {}))
    for path in (tmp_path / "_indices").rglob("*.lance"):
        DAMAGES[damage](path)
    assert bh.open(uri).scan(where="a = 150").to_arrow()["a"].to_pylist() == [150]


def test_indices_that_are_not_known_are_left_aside(kit):
    """Of another version, without details or coverage, or of a table whose fragments are not told apart."""
    dataset = kit.pylance(pa.table({"a": np.arange(300)}), max_rows_per_file=100)
    dataset.create_scalar_index("a", "BITMAP")
    t = kit.open()
    bound = bind_predicate(bh.col("a").eq(150), t.schema)
    assert looked_at(t, bound) == 1
    document = t._handle.snapshot.document
    section = IndexSection.decode(document.index)
    for change in ({"index_version": 7}, {"details": None}, {"fragment_bitmap": None}, {"fields": (0, 1)}):
        index = replace(section.indices[0], **change)
        other = replace(document, index=replace(section, indices=(index,)).encode())
        assert [*usable(replace(t._handle.snapshot, document=other))] == []
    fragments = document.manifest.fragments
    twice = replace(document.manifest, fragments=(*fragments[:2], replace(fragments[2], id=1)))
    snapshot = replace(t._handle.snapshot, document=replace(document, manifest=twice))
    assert snapshot.plan(where=bound).units.num_rows == 3


def test_moved_rows(kit):
    """With a fragment reuse index, which says where rows are now that an index has at other places, indices are left
    aside: what it covers is not to be found in it."""
    dataset = kit.pylance(pa.table({"a": np.arange(3000)}), max_rows_per_file=1000)
    dataset.create_scalar_index("a", "BTREE")
    kit.dataset().delete("a % 3 = 1")
    kit.dataset().optimize.compact_files(defer_index_remap=True)
    kit.pylance(pa.table({"a": [5000]}), mode="append")
    for value in (3, 2999, 5000, 4):
        expected = kit.dataset().to_table(filter=f"a = {value}")
        assert kit.read(where=f"a = {value}").to_pylist() == expected.to_pylist()


@pytest.mark.spark
@pytest.mark.feature("conditions by indices", format="lance", engine="spark")
def test_on_spark(tmp_path, spark):
    """Tasks have the rows to look at, as in process."""
    table = large(str(tmp_path), "btree")
    t = bh.open(str(tmp_path), spark=spark)
    wanted = [table["k"][i].as_py() for i in (5, 12_345, 39_999)]
    rows = t.scan(["i"], where=f"k IN ({', '.join(map(str, wanted))})").to_spark()
    assert sorted(r.i for r in rows.collect()) == [5, 12_345, 39_999]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=8), st.lists(st.integers(0, 60)))
def test_ranges(pairs, positions):
    """As sets of positions."""
    ranges = np.array([(a, a + n) for a, n in pairs], np.int64).reshape(-1, 2)
    members = {p for a, n in pairs for p in range(a, a + n)}
    joined = row_ranges.merged(ranges)
    assert row_ranges.positions_of(joined).tolist() == sorted(members)
    assert len(joined) < 2 or bool((joined[1:, 0] > joined[:-1, 1]).all())
    rest = row_ranges.without(50, ranges)
    assert row_ranges.positions_of(rest).tolist() == [p for p in range(50) if p not in members]
    others = row_ranges.of_positions(np.array(positions, np.int64))
    assert row_ranges.positions_of(others).tolist() == sorted(set(positions))
    assert row_ranges.positions_of(row_ranges.both(joined, others)).tolist() == sorted(members & set(positions))
    assert row_ranges.count(others) == len(set(positions))
    assert row_ranges.decode(row_ranges.encode(others)).tolist() == others.tolist()
    assert len(row_ranges.merged(others, 100)) == min(1, len(others))


@given(st.lists(st.integers(0, (1 << 62) - 1)))
def test_sets_of_rows(ids):
    found = [
        upper << 32 | position
        for upper, positions in decode_rows(encode_rows(np.array(ids, np.int64)), "here")
        for position in positions.tolist()
    ]
    assert found == sorted(set(ids))


def test_sets_of_rows_that_are_damaged():
    data = encode_rows(np.array([3, 5 << 32]))
    assert [(upper, None if p is None else p.tolist()) for upper, p in decode_rows(data, "")] == [(0, [3]), (5, [0])]
    assert [*decode_rows(b"\1\0\0\0\7\0\0\0\0\0\0\0", "")] == [(7, None)]
    for size in range(len(data)):
        with pytest.raises(CorruptTableError):
            list(decode_rows(data[:size], "here"))
    with pytest.raises(CorruptTableError, match="after a set of rows"):
        list(decode_rows(data + b"x", "here"))
