"""Stable row ids: sequences in every form, what writes of ours do with them, ours and pylance's writes by turns."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boathouse as bh
from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.lance.lineage import sequences
from boathouse.lance.lineage.sequences import decode_ids, decode_versions, encode_ids, encode_versions, forms_of
from boathouse.lance.manifests.messages import ExternalFile

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def theirs(kit) -> dict[int, tuple[object, ...]]:
    """Row id -> (a, s, created, last updated), as pylance reads them."""
    dataset = kit.dataset()
    dataset.validate()
    found = dataset.scanner(columns=["a", "s", *LINEAGE]).to_table().to_pylist()
    rows = {r["_rowid"]: (r["a"], r["s"], *(r[name] for name in LINEAGE[1:])) for r in found}
    assert len(rows) == len(found), "ids are unique"
    return rows


def ours(kit) -> dict[int, tuple[object, ...]]:
    found = kit.read(columns=["a", "s", "_row_id", "_row_version"]).to_pylist()
    return {r["_row_id"]: (r["a"], r["s"], r["_row_version"]) for r in found}


def check(kit, expected: dict[int, tuple[object, ...]]) -> None:
    assert theirs(kit) == expected
    assert ours(kit) == {id: (a, s, updated) for id, (a, s, _, updated) in expected.items()}


def rows_of(start: int, count: int) -> pa.Table:
    return pa.table({"a": pa.array(range(start, start + count), pa.int64()), "s": [f"v{i}" for i in range(count)]})


# --- sequences ---------------------------------------------------------------------------------------


@pytest.mark.spec("L-117")
@given(st.data())
def test_ids_round_trip(data):
    ids = data.draw(st.lists(st.integers(0, 2**62) | st.integers(0, 200), unique=True, max_size=60))
    ids = sorted(ids) if data.draw(st.booleans()) else ids
    array = np.array(ids, np.int64)
    assert decode_ids(encode_ids(array), len(ids), "x").tolist() == ids
    versions = np.array(data.draw(st.lists(st.integers(1, 4), max_size=30)), np.int64)
    assert decode_versions(encode_versions(versions), len(versions), "x").tolist() == versions.tolist()


FORMS = {
    "range": np.arange(3, 3000),
    "range_with_holes": np.setdiff1d(np.arange(20_000), np.arange(5, 20_000, 500)),
    "range_with_bitmap": np.flatnonzero(np.random.default_rng(3).random(3000) < 0.5),
    "sorted_array": np.cumsum(np.random.default_rng(4).integers(1, 5000, 400)),
    "array": np.random.default_rng(5).permutation(3000),
}


@pytest.mark.few(5)
@pytest.mark.spec("L-117", "L-118")
@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("first", [0, 70_000, 5_000_000_000])
def test_pylance_reads_each_form(kit, form, first):
    """The smallest form of these ids, at ids of 2, 4 and 8 bytes."""
    ids = FORMS[form].astype(np.int64) + first
    encoded = encode_ids(ids)
    assert set(forms_of(encoded)) == {form}
    kit.pylance(pa.table({"a": np.arange(len(ids)), "s": ["x"] * len(ids)}), enable_stable_row_ids=True)

    def named(m):
        (fragment,) = m.fragments
        return replace(m, fragments=(replace(fragment, inline_row_ids=encoded),), next_row_id=first + 10_000_000)

    kit.edit(named)
    assert [*theirs(kit)] == [*ours(kit)] == ids.tolist()
    kit.open().delete("a % 7 = 3")
    kit.open().update({"s": "'new'"}, where="a % 11 = 1")
    kit.open().optimize()
    left = {id: a for a, id in enumerate(ids.tolist()) if a % 7 != 3}
    assert {id: row[0] for id, row in theirs(kit).items()} == left
    assert {id for id, row in ours(kit).items() if row[1] == "new"} == {id for id, a in left.items() if a % 11 == 1}


def test_arrays_of_wide_ids():
    wide = np.array([5, 2**40, 9, 2**33], np.int64)
    assert decode_ids(encode_ids(wide), 4, "x").tolist() == wide.tolist()
    far = np.arange(1000, dtype=np.int64) * 2**33
    assert decode_ids(encode_ids(far), 1000, "x").tolist() == far.tolist()


def _segment(**form) -> bytes:
    return sequences._Ids(segments=(sequences._Segment(**form),)).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        b"",
        _segment(range=sequences._Range(start=0, end=2**60)),
        _segment(range=sequences._Range(start=9, end=3)),
        _segment(range=sequences._Range(start=2**63, end=2**63 + 10)),
        _segment(range=sequences._Range(start=0, end=9)),
        _segment(array=sequences._Array(u16=sequences._Small(offsets=b"123"))),
        _segment(array=sequences._Array(u64=sequences._Large(values=b"\xff" * 80))),
        _segment(range_with_holes=sequences._WithHoles(start=0, end=2**60)),
        _segment(range_with_bitmap=sequences._WithBitmap(start=0, end=2**60, bitmap=b"\xff")),
        _segment(),
    ],
)
def test_broken_sequences(kit, numbers, raw):
    """Refused where ids are needed, in little memory; rows are read without them."""
    kit.pylance(numbers, enable_stable_row_ids=True)
    kit.edit(lambda m: replace(m, fragments=(replace(m.fragments[0], inline_row_ids=raw),)))
    assert kit.read().num_rows == 10
    before = kit.files()
    for ask in (lambda: kit.read(columns=["_row_id"]), lambda: kit.open().update({"s": "'x'"}, where="a = 1")):
        with pytest.raises(CorruptTableError):
            ask()
    assert kit.files() == before


@pytest.mark.spec("L-119")
def test_external_sequences(kit, numbers):
    kit.pylance(numbers, enable_stable_row_ids=True)
    ids, since = encode_ids(np.arange(10) * 3), encode_versions(np.arange(1, 11))
    (kit.root / "ids.bin").write_bytes(b"..." + ids + since)
    kit.edit(
        lambda m: replace(
            m,
            next_row_id=40,
            fragments=(
                replace(
                    m.fragments[0],
                    inline_row_ids=None,
                    inline_updated=None,
                    external_row_ids=ExternalFile(path="ids.bin", offset=3, size=len(ids)),
                    external_updated=ExternalFile(path="ids.bin", offset=3 + len(ids), size=len(since)),
                ),
            ),
        )
    )
    expected = {3 * i: (i, numbers.column("s")[i].as_py(), i + 1) for i in range(10)}
    assert ours(kit) == expected
    kit.open().update({"s": "'new'"}, where="a = 4")
    kit.open().optimize()
    assert ours(kit) == {**expected, 12: (4, "new", 2)}
    assert theirs(kit)[12] == (4, "new", 1, 2)
    kit.edit(lambda m: replace(m, fragments=(_external(m.fragments[0], "ids.bin", 900),)))
    with pytest.raises(CorruptTableError, match="shorter file"):
        ours(kit)
    kit.edit(lambda m: replace(m, fragments=(_external(m.fragments[0], "../ids.bin", 1),)))
    with pytest.raises(CorruptTableError, match=r"ids\.bin"):
        ours(kit)


def _external(fragment, path, size):
    return replace(fragment, inline_row_ids=None, external_row_ids=ExternalFile(path=path, size=size))


@pytest.mark.spec("L-127")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_sequences_in_columns(kit, numbers, version):
    """What pylance spills into data files is read, kept by updates and compactions of ours, and its flag goes."""
    kit.pylance(numbers, enable_stable_row_ids=True, data_storage_version=version)
    config = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "0"}
    kit.dataset().update_config(config)
    kit.pylance(numbers, mode="append")
    kit.dataset().update({"s": "'n'"}, where="a = 4")
    kit.dataset().optimize.compact_files()
    assert kit.load().manifest.fragments[0].has_lineage_columns
    expected = theirs(kit)
    check(kit, expected)
    version = kit.open().update({"s": "'m'"}, where="a = 7").version
    expected = {id: (a, "m", c, version) if a == 7 else (a, s, c, u) for id, (a, s, c, u) in expected.items()}
    check(kit, expected)
    assert kit.load().manifest.reader_feature_flags & 2048
    kit.open().optimize()
    check(kit, expected)
    assert not kit.load().manifest.reader_feature_flags & 2048


def test_versions_that_are_not_recorded(kit, numbers):
    """Older releases wrote ids alone; pylance reads 1."""
    kit.pylance(numbers, enable_stable_row_ids=True)
    kit.pylance(numbers, mode="append")
    kit.edit(
        lambda m: replace(m, fragments=tuple(replace(f, inline_updated=None, inline_created=None) for f in m.fragments))
    )
    expected = theirs(kit)
    assert {row[2:] for row in expected.values()} == {(1, 1)}
    check(kit, expected)
    kit.open().optimize()
    check(kit, expected)


# --- operations --------------------------------------------------------------------------------------


@pytest.mark.spec("L-113", "L-115", "L-116", "L-121")
def test_what_each_operation_does_with_ids(kit):
    kit.pylance(rows_of(0, 6), enable_stable_row_ids=True)
    table = kit.open()
    expected = {i: (i, f"v{i}", 1, 1) for i in range(6)}
    check(kit, expected)
    table.append(rows_of(10, 6))
    expected |= {6 + i: (10 + i, f"v{i}", 2, 2) for i in range(6)}
    check(kit, expected)
    table.delete("a = 3 OR a = 13")
    del expected[3], expected[9]
    check(kit, expected)
    table.update({"s": "'n'"}, where="a = 4 OR a = 14")
    expected |= {4: (4, "n", 1, 4), 10: (14, "n", 2, 4)}
    check(kit, expected)
    source = pa.table({"a": pa.array([5, 99, 14], pa.int64()), "s": ["x", "y", "z"]})
    table.merge(source, on="target.a = source.a").when_matched_update_all().when_not_matched_insert_all().execute()
    expected |= {5: (5, "x", 1, 5), 12: (99, "y", 5, 5), 10: (14, "z", 2, 5)}
    check(kit, expected)
    table.optimize()
    check(kit, expected)
    assert table.version == 6
    table.optimize(zorder_by=["s"])
    check(kit, expected)
    table.add_column("n", "int")
    check(kit, expected)
    table.overwrite(pa.table({"a": pa.array([5], pa.int64()), "s": ["w"]}), where="a = 5")
    del expected[5]
    expected[13] = (5, "w", 9, 9)
    check(kit, expected)
    table.overwrite(rows_of(0, 2))
    check(kit, {14: (0, "v0", 10, 10), 15: (1, "v1", 10, 10)})
    kit.pylance(rows_of(7, 1), mode="append")
    check(kit, {14: (0, "v0", 10, 10), 15: (1, "v1", 10, 10), 16: (7, "v0", 11, 11)})
    manifest = kit.load().manifest
    assert (manifest.next_row_id, manifest.reader_feature_flags, manifest.writer_feature_flags) == (17, 2, 2)


@pytest.mark.spec("L-114")
def test_ids_after_a_lost_race(kit):
    kit.pylance(rows_of(0, 3), enable_stable_row_ids=True)
    with kit.overtaken_by(lambda: kit.pylance(rows_of(10, 2), mode="append")):
        assert kit.open().append(rows_of(20, 2)).retries == 0
    found = theirs(kit)
    assert {id: row[0] for id, row in found.items()} == {0: 0, 1: 1, 2: 2, 3: 10, 4: 11, 5: 20, 6: 21}
    assert found[5][2:] == (3, 3)
    with kit.overtaken_by(lambda: kit.dataset().update({"s": "'x'"}, where="a = 1")):
        kit.open().update({"s": "'y'"}, where="a = 2")
    with kit.overtaken_by(lambda: kit.dataset().optimize.compact_files()):
        kit.open().update({"s": "'z'"}, where="a = 20")
    stale = kit.dataset()
    kit.open().append(rows_of(30, 1))
    kit.open().delete("a = 0")
    late = pa.table({"a": pa.array([40], pa.int64()), "s": ["v"]})
    stale.insert(late)
    values = {id: row[:2] for id, row in theirs(kit).items()}
    old = {1: (1, "x"), 2: (2, "y"), 3: (10, "v0"), 4: (11, "v1"), 5: (20, "z"), 6: (21, "v1")}
    assert values == {**old, 7: (30, "v0"), 8: (40, "v")}
    check(kit, theirs(kit))


@pytest.mark.parametrize(
    "options", [{"properties": {"enable_stable_row_ids": "true", "x": "1"}}, {"profile": "modern"}]
)
def test_new_tables_with_ids(kit, options):
    bh.create(kit.uri, rows_of(0, 3).schema, format="lance", **options).append(rows_of(0, 3))
    check(kit, {i: (i, f"v{i}", 2, 2) for i in range(3)})
    assert kit.load().manifest.next_row_id == 3 and "enable_stable_row_ids" not in kit.open().properties
    kit.pylance(rows_of(3, 1), mode="append")
    assert theirs(kit)[3] == (3, "v0", 3, 3)
    before = kit.files()
    with pytest.raises(InvalidArgumentError, match="new table"):
        kit.open().set_properties({"enable_stable_row_ids": "false"})
    assert kit.files() == before


def test_new_tables_without_ids(kit):
    with pytest.raises(InvalidArgumentError, match="'yes'"):
        bh.create(kit.uri, rows_of(0, 1).schema, format="lance", properties={"enable_stable_row_ids": "yes"})
    plain = bh.create(
        kit.uri, rows_of(0, 1).schema, format="lance", profile="modern", properties={"enable_stable_row_ids": "false"}
    )
    plain.append(rows_of(0, 1))
    assert kit.load().manifest.reader_feature_flags == 0
    with pytest.raises(UnsupportedFeatureError, match="no metadata column _row_id"):
        plain.scan(columns=["a", "_row_id"]).to_arrow()


def test_a_column_that_is_called_like_the_ids(kit):
    kit.pylance(pa.table({"_row_id": [7]}), enable_stable_row_ids=True)
    assert kit.read().to_pylist() == [{"_row_id": 7}]
    with pytest.raises(UnsupportedFeatureError, match="`_row_id`"):
        kit.open().append(pa.table({"_row_id": [8]}))


# --- histories ---------------------------------------------------------------------------------------


class Model:
    """What each row is, by its id; operations of both libraries in turn."""

    def __init__(self, kit, seed: int) -> None:
        self.kit, self.rng = kit, random.Random(seed)
        self.rows: dict[int, tuple[object, ...]] = {}
        self.past: dict[int, dict[int, tuple[object, ...]]] = {}
        self.next = self.key = 0

    def new(self, count: int) -> pa.Table:
        self.key += count
        return pa.table(
            {
                "a": pa.array(range(self.key - count, self.key), pa.int64()),
                "s": pa.array([self.rng.choice(["x", "", None, "ü" * 40]) for _ in range(count)], pa.string()),
            }
        )

    def step(self, name: str, by_us: bool) -> None:
        getattr(self, name)(by_us)
        check(self.kit, self.rows)
        self.past[self.kit.load().version] = dict(self.rows)
        for key in self.rng.sample(range(self.key), 4):
            found = self.kit.dataset().to_table(filter=f"a = {key}").column("s").to_pylist()
            assert found == [s for a, s, *_ in self.rows.values() if a == key], (name, by_us, key)

    def _added(self, data: pa.Table) -> None:
        """The order in which new rows get ids is the writer's."""
        version, found = self.kit.load().version, theirs(self.kit)
        fresh = set(found) - set(self.rows)
        assert fresh == set(range(self.next, self.next + len(data)))
        self.next += len(data)
        by_key = {found[id][0]: id for id in fresh}
        for row in data.to_pylist():
            self.rows[by_key[row["a"]]] = (row["a"], row["s"], version, version)

    def append(self, by_us: bool) -> None:
        data = self.new(self.rng.choice([1, 3, 40]))
        if by_us:
            self.kit.open().append(data)
        else:
            self.kit.pylance(data, mode="append")
        self._added(data)

    def delete(self, by_us: bool) -> None:
        where = f"a % {self.rng.randint(2, 9)} = {self.rng.randint(0, 3)}"
        modulus, rest = (int(word) for word in (where.split()[2], where.split()[4]))
        (self.kit.open() if by_us else self.kit.dataset()).delete(where)
        self.rows = {id: row for id, row in self.rows.items() if row[0] % modulus != rest}

    def update(self, by_us: bool) -> None:
        low = self.rng.randrange(self.key)
        high = low + self.rng.choice([1, 5, 1000])
        (self.kit.open() if by_us else self.kit.dataset()).update(
            {"s": f"'u{low}'"}, where=f"a >= {low} AND a < {high}"
        )
        version = self.kit.load().version
        for id, (a, _, created, _) in [*self.rows.items()]:
            if low <= a < high:
                self.rows[id] = (a, f"u{low}", created, version)

    def merge(self, by_us: bool) -> None:
        known = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
        fresh = self.new(2)
        keys = [self.rows[id][0] for id in known]
        old = pa.table({"a": pa.array(keys, pa.int64()), "s": pa.array(["m"] * len(keys), pa.string())})
        source = pa.concat_tables([old, fresh])
        if by_us:
            builder = self.kit.open().merge(source, on="target.a = source.a")
            builder.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            self.kit.dataset().merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(source)
        version = self.kit.load().version
        for id in known:
            self.rows[id] = (self.rows[id][0], "m", self.rows[id][2], version)
        self._added(fresh)

    def compact(self, by_us: bool) -> None:
        if by_us:
            self.kit.open().optimize()
        else:
            self.kit.dataset().optimize.compact_files()

    def index(self, by_us: bool) -> None:
        self.kit.dataset().create_scalar_index("a", "BTREE", replace=True)

    def overwrite(self, by_us: bool) -> None:
        data = self.new(5)
        if by_us:
            self.kit.open().overwrite(data)
        else:
            self.kit.pylance(data, mode="overwrite")
        self.rows = {}
        self._added(data)

    def restore(self, by_us: bool) -> None:
        version = self.rng.choice(sorted(self.past))
        if by_us:
            self.kit.open().restore(version)
        else:
            self.kit.dataset(version=version).restore()
        self.rows = dict(self.past[version])


STEPS = ["restore", "append", "append", "delete", "update", "update", "merge", "compact", "index", "overwrite"]


@pytest.mark.spec("L-113", "L-115", "L-116", "L-121", "L-125")
@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 43))])
def test_histories_by_turns(kit, seed):
    model = Model(kit, seed)
    data = model.new(60)
    kit.pylance(
        data, enable_stable_row_ids=True, max_rows_per_file=25, data_storage_version=["2.0", "2.1", "2.2"][seed % 3]
    )
    model._added(data)
    model.past[1] = dict(model.rows)
    for number in range(14):
        name = model.rng.choice(STEPS if 3 < number < 10 else STEPS[1:-1])
        model.step(name, by_us=model.rng.random() < 0.6)


@pytest.mark.spark
def test_ids_stay_on_spark(kit, spark):
    kit.pylance(rows_of(0, 6), enable_stable_row_ids=True)
    table = bh.open(kit.uri, spark=spark)
    source = spark.createDataFrame([(4, "m"), (50, "n")], "a bigint, s string")
    table.merge(source, on="target.a = source.a").when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize()
    expected = {i: (i, f"v{i}", 1, 1) for i in range(6)} | {4: (4, "m", 1, 2), 6: (50, "n", 2, 2)}
    check(kit, expected)
