"""Single rows, by their number, their stable id or their address: the ones that pylance takes, in the order asked."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    InvalidArgumentError,
    MissingFileError,
    UnsupportedFeatureError,
)
from boathouse.lance import places
from boathouse.lance.file.container import Source
from boathouse.lance.places import RowIds

lance = pytest.importorskip("lance")
N = 2_400


def wide(version: str, n: int = N) -> pa.Table:
    random = np.random.default_rng(7)

    def some(values, type=None):
        return pa.array([None if i % 11 == 3 else v for i, v in enumerate(values)], type)

    floats = random.random(n)
    floats[::50], floats[1::50], floats[2::50] = np.nan, -0.0, np.inf
    columns = {
        "i": pa.array(np.arange(n)),
        "r": some(random.integers(-(1 << 62), 1 << 62, n).tolist()),
        "small": pa.array(random.integers(0, 9, n), pa.int8()),
        "same": pa.array([5] * n, pa.int32()),
        "f": pa.array(floats),
        "half": some(random.random(n).tolist(), pa.float32()),
        "b": some((random.random(n) < 0.5).tolist()),
        "s": some([f"näme {x}" for x in random.integers(0, 1 << 40, n)]),
        "few": pa.array([f"w{x}" for x in random.integers(0, 5, n)]),
        "bin": pa.array([bytes([x % 256]) * (x % 7) for x in range(n)]),
        "day": pa.array([dt.date(2000, 1, 1) + dt.timedelta(x) for x in range(n)]),
        "ts": pa.array(random.integers(0, 1 << 50, n), pa.timestamp("us", "UTC")),
        "d": pa.array([Decimal(x) / 100 for x in range(n)], pa.decimal128(20, 2)),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(random.random(n * 8, np.float32)), 8),
        "wide": pa.FixedSizeListArray.from_arrays(pa.array(random.random(n * 80, np.float32)), 80),
        "l": pa.array([[x] * (x % 4) if x % 9 else None for x in range(n)], pa.list_(pa.int32())),
        "st": pa.array([{"x": x, "y": f"y{x}"} for x in range(n)]),
        "long": pa.array([f"{x:04}" * 100 for x in range(n)]),
    }
    if version == "0.1":  # which loses nulls
        columns = {name: columns[name] for name in ("i", "small", "f", "few", "day", "v")}
    return pa.table(columns)


def text(found: pa.Table) -> str:
    """Equal for equal values, NaN and the sign of zero included."""
    return repr(found.to_pylist())


@pytest.fixture(params=["0.1", "2.0", "2.1", "2.2"])
def made(request, kit):
    """Four fragments, with deletes in three of them."""
    kit.pylance(wide(request.param), data_storage_version=request.param, max_rows_per_file=N // 4)
    kit.dataset().delete("i < 40 OR i % 7 = 2 AND i < 1200 OR i = 2399")
    return kit


@pytest.mark.few(1)
@pytest.mark.spec("L-112")
@pytest.mark.feature("random access", format="lance")
def test_rows_by_number(made):
    """As pylance takes them, and as the scan has them: repeated, in any order, all columns and one."""
    t, theirs = made.open(), made.dataset()
    whole = t.to_arrow()
    random = np.random.default_rng(3)
    asked = [
        random.integers(0, len(whole), 40), random.integers(0, len(whole), 700), np.arange(len(whole))[::-1],
        np.array([len(whole) - 1, 0, 0, len(whole) - 1]), np.array([], np.int64), np.array([17]),
    ]  # fmt: skip
    for numbers in asked:
        found = t.take(numbers)
        found.validate(full=True)
        assert found.schema == whole.schema
        assert text(found) == text(whole.take(pa.array(numbers)))
        if len(numbers):
            assert text(found.select(["i", "f"])) == text(theirs.take(numbers, columns=["i", "f"]))
    for name in whole.schema.names:
        assert text(t.take(asked[0], [name])) == text(whole.select([name]).take(pa.array(asked[0])))
    for form in (list, tuple, pa.array, lambda a: pa.chunked_array([a[:3], a[3:]]), lambda a: a.astype(np.uint16)):
        assert t.take(form(asked[0]), ["i"]).equals(t.take(asked[0], columns=["I"]))
    assert t.take(range(3, 9), ["i", "few"]).equals(whole.select(["i", "few"]).slice(3, 6))
    assert t.take([1, 2], []).num_columns == 0


@pytest.mark.spec("L-112")
def test_rows_by_address(made):
    """Of tables without stable ids, as pylance's `_rowid`; a row that is not there is left out."""
    theirs = made.dataset().to_table(columns=["i"], with_row_id=True)
    t, ids = made.open(), theirs["_rowid"].to_numpy().astype(np.int64)
    picked = np.random.default_rng(5).integers(0, len(ids), 300)
    found = t.take(row_ids=ids[picked], columns=["i"])
    assert found["i"].to_pylist() == theirs["i"].take(pa.array(picked)).to_pylist()
    assert found["i"].to_pylist() == made.dataset()._take_rows(ids[picked].tolist(), columns=["i"])["i"].to_pylist()
    some = (0, 39, (1 << 32) - 1, 1 << 40, -1, 3 << 32 | 599, 2 << 32 | 600, 2 << 32 | 4000)
    gone = [id for id in some if id not in set(ids.tolist())]
    assert len(gone) >= 6
    assert t.take(row_ids=[*gone[:3], ids[9], *gone[3:], ids[4]], columns=["i"])["i"].to_pylist() == [
        theirs["i"][9].as_py(), theirs["i"][4].as_py(),
    ]  # fmt: skip
    assert t.take(row_ids=gone).num_rows == t.take(row_ids=[]).num_rows == 0


@pytest.mark.spec("L-112", "L-036")
def test_rows_by_stable_ids(kit):
    """They stay with their rows through updates, compactions and appends of both, and go with them."""
    kit.pylance(pa.table({"a": np.arange(1000), "s": [f"s{i}" for i in range(1000)]}), enable_stable_row_ids=True,
                max_rows_per_file=300)  # fmt: skip
    kit.dataset().delete("a % 10 = 3")
    kit.open().update({"s": "'new'"}, where="a % 4 = 0")
    kit.dataset().update({"s": "'theirs'"}, where="a % 50 = 1")
    kit.open().append(pa.table({"a": [5000, 5001], "s": ["x", "y"]}))
    for step in range(2):
        theirs = kit.dataset().to_table(with_row_id=True)
        by_id = dict(zip(theirs["_rowid"].to_pylist(), theirs.select(["a", "s"]).to_pylist(), strict=True))
        asked = np.random.default_rng(step).integers(0, 1010, 500)
        t = kit.open()
        found = t.take(row_ids=asked, columns=["s", "_row_id", "a"])
        assert found["_row_id"].to_pylist() == [i for i in asked.tolist() if i in by_id]
        assert found.select(["a", "s"]).to_pylist() == [by_id[i] for i in asked.tolist() if i in by_id]
        assert found.select(["a"]).equals(t.take(row_ids=asked, columns=["a"]))
        assert found["a"].to_pylist() == kit.dataset()._take_rows(asked.tolist(), columns=["a"])["a"].to_pylist()
        assert t.take(row_ids=[1 << 62, -4, 3], columns=["a"]).num_rows == 0, "row 3 was deleted"
        whole = t.scan(["a", "_row_id", "_row_version", "_pos"]).to_arrow()
        numbers = [*range(0, whole.num_rows, 7), 2, 2]
        assert t.take(numbers, ["a", "_row_id", "_row_version", "_pos"]).equals(whole.take(numbers))
        kit.open().optimize()


@pytest.mark.spec("L-120")
def test_a_million_ids(kit, monkeypatch):
    """The index is made once for a version, of stretches of ids; looking up decodes no file twice."""
    n = 200_000
    kit.pylance(pa.table({"a": np.arange(n)}), enable_stable_row_ids=True, max_rows_per_file=n // 4)
    kit.dataset().delete("a % 1000 = 7")
    t, decoded = kit.open(), []
    original = places.LancePlaces._ids_of
    monkeypatch.setattr(places.LancePlaces, "_ids_of", lambda self, unit: decoded.append(unit) or original(self, unit))
    asked = np.random.default_rng(1).integers(0, 2 * n, 1_000_000)
    wanted = asked[(asked < n) & (asked % 1000 != 7)]
    assert np.array_equal(t.take(row_ids=asked, columns=["a"])["a"].to_numpy(), wanted)
    assert t.take(row_ids=asked[:10]).num_rows == int(((asked[:10] < n) & (asked[:10] % 1000 != 7)).sum())
    assert decoded == [0, 1, 2, 3]
    assert len(places.LancePlaces.of(t._handle.snapshot)._index.first) == 200 + 4, "between deleted rows and files"


def test_an_index_of_ids():
    def units(*ids):
        return ((np.array(part, np.int64), np.array([], np.int64)) for part in ids)

    index = RowIds.of(units([7, 8, 9, 3], [], [20, 10, 11]))
    assert list(zip(index.first, index.count, index.unit, index.position)) == [
        (3, 1, 0, 3), (7, 3, 0, 0), (10, 2, 2, 1), (20, 1, 2, 0),
    ]  # fmt: skip
    found = index.find(np.array([11, 0, 9, 12, 20, 3, 99]))
    assert found.unit.tolist() == [2, 0, 2, 0] and found.position.tolist() == [2, 2, 0, 3]
    assert found.asked.tolist() == [0, 2, 4, 5]
    assert len(RowIds.of(units()).find(np.array([1])).asked) == 0
    with pytest.raises(CorruptTableError, match="two rows have the id 8"):
        RowIds.of(units([7, 8, 9], [8]))


@pytest.mark.spec("L-112")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_only_what_is_needed_is_read(kit, monkeypatch, version):
    """In bytes and in requests: a few pages of one column of the fragments that are asked for."""
    n = 120_000
    random = np.random.default_rng(2)
    table = {f"c{i}": random.random(n) for i in range(6)}
    table["s"] = pa.array(random.integers(0, 1 << 40, n)).cast(pa.string())
    kit.pylance(pa.table(table), data_storage_version=version, max_rows_per_file=n // 4)
    reads = []
    original = Source._read

    def read(self, offset, size):
        reads.append((self.uri, size))
        return original(self, offset, size)

    monkeypatch.setattr(Source, "_read", read)
    t, asked = kit.open(), [5, 29_000, 5, 100_000]
    assert t.take(asked, ["c3"])["c3"].to_pylist() == [table["c3"][i] for i in asked]
    assert len({uri for uri, _ in reads}) == 2 and len(reads) <= 2 * 6
    assert sum(size for _, size in reads) < 2 * (64 << 10) + 3 * (20 << 10), "two tails, and of each row its chunk"
    reads.clear()
    assert t.take(np.arange(0, 30_000, 600), ["s"])["s"].to_pylist() == table["s"][:30_000:600].to_pylist()
    assert len({uri for uri, _ in reads}) == 1 and len(reads) < 55
    reads.clear()
    t.take(row_ids=[1 << 32, 7 << 32], columns=[])
    assert len(reads) <= 2


def test_columns_of_several_files(kit):
    """Added columns are in files of their own; one that a fragment lacks is null there."""
    kit.pylance(pa.table({"a": np.arange(500)}), max_rows_per_file=200)
    kit.dataset().add_columns({"b": "a * 2"})
    kit.open().add_column("c", "string")
    kit.open().append(pa.table({"a": [900], "b": pa.nulls(1, pa.int64()), "c": ["x"]}))
    kit.open().rename_column("b", "bb")
    t = kit.open()
    asked = [500, 3, 450, 3]
    assert t.take(asked).to_pylist() == t.to_arrow().take(asked).to_pylist()
    assert t.take(asked, ["c", "bb"]).to_pylist()[:2] == [{"c": "x", "bb": None}, {"c": None, "bb": 6}]


def test_a_sample(made):
    t = made.open()
    rows = t.count()
    found = t.sample(100, ["i"], seed=4)["i"].to_pylist()
    assert len(set(found)) == 100 and found != sorted(found) and set(found) <= set(t.to_arrow()["i"].to_pylist())
    assert t.sample(100, ["i"], seed=4)["i"].to_pylist() == found != t.sample(100, ["i"], seed=5)["i"].to_pylist()
    assert t.sample(0).num_rows == 0 and t.sample(0).schema == t.to_arrow().schema
    assert sorted(t.sample(rows, ["i"])["i"].to_pylist()) == t.to_arrow()["i"].to_pylist()
    with pytest.raises(InvalidArgumentError, match=f"{rows + 1} rows of a version that has {rows}"):
        t.sample(rows + 1)
    for n, seed in ((-1, None), (1.5, None), (True, None), ("2", None), (1, -1), (1, "x")):
        with pytest.raises(InvalidArgumentError, match="is not a number"):
            t.sample(n, seed=seed)


def test_what_cannot_be_taken(kit, numbers):
    t = kit.create(numbers)
    for wrong in ([10], [0, -1], [1 << 62]):
        with pytest.raises(InvalidArgumentError, match=rf"there is no row {wrong[-1]}: version 1 has 10 rows"):
            t.take(wrong)
    grid = np.zeros((2, 2), np.int64)
    for wrong in ([1.0], [None], ["1"], "12", b"12", {1: 2}, [True], 5, [[1]], np.array([1.5]), grid, [1 << 64]):
        for name in ("positions", "row_ids"):
            with pytest.raises(InvalidArgumentError, match=f"{name} are not integers"):
                t.take(**{name: wrong})
    for arguments in ({}, {"positions": [1], "row_ids": [1]}):
        with pytest.raises(InvalidArgumentError, match="take needs positions or row_ids"):
            t.take(**arguments)
    with pytest.raises(ColumnNotFoundError):
        t.take([1], ["nothing"])
    with pytest.raises(InvalidArgumentError):
        t.take([1], ["a", "a"])
    with pytest.raises(UnsupportedFeatureError, match="_row_id"):
        t.take([1], ["_row_id"])
    assert t.take([], ["a"]).num_rows == 0
    empty = bh.create(str(kit.root.parent / "e"), "id bigint", format="lance")
    assert empty.take([]).num_rows == empty.sample(0).num_rows == empty.take(row_ids=[5]).num_rows == 0
    with pytest.raises(InvalidArgumentError, match="there is no row 0"):
        empty.take([0])
    for file in (kit.root / "data").iterdir():
        file.unlink()
    with pytest.raises(MissingFileError):
        t.take([1])


def test_a_version_stays_what_it_is(kit, numbers):
    """A handle takes rows of the version that it has read; older ones are opened by number."""
    t = kit.create(numbers)
    kit.dataset().delete("a < 5")
    assert t.take([0], ["a"])["a"].to_pylist() == [0] and kit.open().take([0], ["a"])["a"].to_pylist() == [5]
    t.append(numbers)
    assert t.take([0, 14], ["a"])["a"].to_pylist() == [5, 9]
    assert kit.open(version=1).take([9], ["a"])["a"].to_pylist() == [9]
