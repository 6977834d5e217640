"""Nearest neighbours: the rows and distances that pylance finds without an index, of every kind of vector."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boathouse as bh
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, MissingFileError
from boathouse.ops.tasks import nearest

lance = pytest.importorskip("lance")
FLOATS = {"float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64()}
METRICS = ("l2", "cosine", "dot")


def vectors(type: pa.DataType, rows: int, size: int, seed: int = 3, nulls: bool = True) -> pa.Array:
    random = np.random.default_rng(seed)
    if pa.types.is_floating(type):
        values = random.normal(size=rows * size).astype(type.to_pandas_dtype())
        values[:size], values[size], values[2 * size] = 0, np.nan, np.inf
        values[3 * size] = -0.0
    else:
        values = random.integers(-128 if type == pa.int8() else 0, 128, rows * size).astype(type.to_pandas_dtype())
    mask = pa.array(random.random(rows) < 0.1) if nulls else None
    return pa.FixedSizeListArray.from_arrays(pa.array(values), size, mask=mask)


def table(type: pa.DataType, rows: int = 500, size: int = 8, **options) -> pa.Table:
    found = vectors(type, rows, size, **options)
    return pa.table({"id": pa.array(range(rows), pa.int64()), "v": found, "s": [f"s{i % 7}" for i in range(rows)]})


def pylances(dataset, query, k: int, metric: str, where: str | None = None) -> pa.Table:
    asked = {"column": "v", "q": query, "k": k, "metric": metric, "use_index": False}
    return dataset.scanner(nearest=asked, filter=where, prefilter=True).to_table()


def agree(ours: pa.Table, theirs: pa.Table) -> None:
    """The same distances, and the same rows wherever a distance is that of one row."""
    assert ours.schema.names == theirs.schema.names
    assert ours.schema.field("_distance").type == theirs.schema.field("_distance").type == pa.float32()
    a, b = (np.asarray(t.column("_distance")) for t in (ours, theirs))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    if not len(a):
        return
    gaps = np.concatenate(([np.inf], np.diff(a), [np.inf])) > 1e-3 * (1 + np.abs(np.append(a, a[-1:])))
    alone = gaps[:-1] & gaps[1:]
    alone[-1:] = False  # the next one, which is not here, may be as far
    for name in ("id", "s"):
        assert ours.column(name).filter(pa.array(alone)) == theirs.column(name).filter(pa.array(alone))


CASES = list(itertools.product(("legacy", "2.0", "2.1", "2.2"), FLOATS, METRICS, (1, 8, 150), (False, True)))


@pytest.mark.feature("nearest neighbours", format="lance")
@pytest.mark.parametrize(
    ("version", "type", "metric", "size", "stable"),
    [pytest.param(*c, marks=[pytest.mark.slow] if n % 47 else []) for n, c in enumerate(CASES)],
)
def test_they_are_those_of_pylance(kit, version, type, metric, size, stable):
    data = table(FLOATS[type], size=size, nulls=version != "legacy")
    kit.pylance(data, data_storage_version=version, max_rows_per_file=120, enable_stable_row_ids=stable)
    kit.dataset().delete("id % 9 = 4")
    if version != "legacy":
        kit.open().update({"s": "'u'"}, where="id = 77")
    t, dataset = kit.open(), kit.dataset()
    query = np.random.default_rng(5).normal(size=size).astype(FLOATS[type].to_pandas_dtype())
    for k, where in ((1, None), (10, None), (10, "id > 250 AND s <> 's3'"), (1000, "id < 60"), (5, "id < 0")):
        agree(t.nearest("v", query, k, where=where, metric=metric), pylances(dataset, query, k, metric, where))


@pytest.mark.parametrize("type", FLOATS)
def test_nulls_nan_and_infinity(kit, type):
    values = [[1, 2], [3, 4], None, [np.nan, 1], [0, 0], [1, 2], [np.inf, 0], [-1, -2], [None, 1]]
    made = [None if v is None else [None if x is None else np.dtype(type).type(x) for x in v] for v in values]
    kit.pylance(pa.table({"id": range(9), "v": pa.array(made, pa.list_(FLOATS[type], 2)), "s": ["x"] * 9}))
    t, query = kit.open(), np.array([1, 2], type)
    for metric, ids in (
        ("l2", [0, 5, 8, 4, 1, 7, 6]),
        ("cosine", [0, 5, 1, 8, 7]),
        ("dot", [6, 1, 0, 5, 8, 4, 7]),
    ):
        found = t.nearest("v", query, 20, metric=metric)
        agree(found, pylances(kit.dataset(), query, 20, metric))
        assert found.column("id").to_pylist() == ids == pylances(kit.dataset(), query, 20, metric)["id"].to_pylist()
    assert not t.nearest("v", [0, 0], metric="cosine").num_rows  # no angle
    assert not t.nearest("v", [np.nan, 0]).num_rows
    assert t.nearest("V", [1, 2], 2, where="id > 0", columns=["id"]).to_pydict() == {"id": [5, 8], "_distance": [0, 2]}


def test_bytes(kit):
    data = table(pa.uint8(), size=4)
    kit.pylance(data)
    query = np.array([1, 200, 3, 0], np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        theirs = pylances(kit.dataset(), query, 400, "hamming")
    ours = kit.open().nearest("v", query, 400, metric="hamming")
    assert ours.column("_distance") == theirs.column("_distance")
    values = np.array([v or [0] * 4 for v in data.column("v").to_pylist()])
    valid = np.asarray(data.column("v").is_valid())
    for made, metric in ((np.abs(values - [1.5, 200, 3, 0]) ** 2, "l2"), (values * [1.5, 200, 3, 0], "dot")):
        expected = made.sum(axis=1) if metric == "l2" else 1 - made.sum(axis=1)
        order = np.argsort(np.where(valid, expected, np.inf), kind="stable")[:9]
        found = kit.open().nearest("v", [1.5, 200, 3, 0], 9, metric=metric)
        assert found.column("id").to_pylist() == order.tolist()
        np.testing.assert_allclose(found.column("_distance"), expected[order], rtol=1e-6)


def test_signed_bytes(kit):
    data = table(pa.int8(), size=3)
    kit.pylance(data, max_rows_per_file=100)
    rows = [r for r in data.to_pylist() if r["v"] is not None]
    nearest_one = min(rows, key=lambda r: sum((x - y) ** 2 for x, y in zip(r["v"], [-100, 100, 5])))
    assert kit.open().nearest("v", [-100, 100, 5], 1).column("id").to_pylist() == [nearest_one["id"]]


def test_of_rows_as_far_the_first_are_taken(kit):
    kit.pylance(pa.table({"id": range(60), "v": pa.array([[i % 3, 0] for i in range(60)], pa.list_(pa.float32(), 2))}))
    kit.open().append(pa.table({"id": [60], "v": pa.array([[0, 0]], pa.list_(pa.float32(), 2))}))
    found = kit.open().nearest("v", [0, 0], 23)
    assert found.column("id").to_pylist() == [*range(0, 60, 3), 60, 1, 4]


def test_other_columns_and_versions(kit):
    data = table(pa.float32())
    kit.pylance(data, enable_stable_row_ids=True)
    t = kit.open()
    t.delete("id = 3")
    query = data.column("v")[3].as_py()
    found = t.nearest("v", query, 2, columns=["s", "_row_id"])
    assert found.schema.names == ["s", "_row_id", "_distance"] and 3 not in found.column("_row_id").to_pylist()
    before = kit.open(version=1).nearest("v", pa.array(query, pa.float64()), 1)
    assert before.column("id").to_pylist() == [3] and before.column("_distance").to_pylist() == [0]
    assert t.nearest("v", query, 4, where=bh.col("id") < 2).num_rows <= 2
    assert kit.create(data.slice(0, 0), mode="overwrite").nearest("v", query).schema.names[-1] == "_distance"


def test_what_is_asked_wrongly(kit):
    data = table(pa.float32()).append_column("bits", vectors(pa.uint8(), 500, 8))
    data = data.append_column("l", pa.array([[1.0]] * 500))
    t = kit.create(data)
    ok = [0.0] * 8
    for call, message in (
        (lambda: t.nearest("s", ok), "column `s` of string has no vectors"),
        (lambda: t.nearest("l", ok), "has no vectors"),
        (lambda: t.nearest("v", [1.0]), "a query of 1 numbers for vectors of 8"),
        (lambda: t.nearest("v", [ok]), "no vector of numbers: 2 dimensions"),
        (lambda: t.nearest("v", "abc"), "no vector of numbers"),
        (lambda: t.nearest("v", [None] * 8), "no vector of numbers"),
        (lambda: t.nearest("v", ok, 0), "k=0 is not a number of rows"),
        (lambda: t.nearest("v", ok, True), "k=True"),
        (lambda: t.nearest("v", ok, metric="L1"), "'L1' is none of l2, cosine, dot, hamming"),
        (lambda: t.nearest("v", ok, metric="hamming"), "hamming compares bits of uint8"),
        (lambda: t.nearest("bits", [0.5] * 8, metric="hamming"), "has other numbers"),
        (lambda: t.nearest("bits", [256] * 8, metric="hamming"), "has other numbers"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    for columns in (["_distance"], ["nix"]):
        with pytest.raises(ColumnNotFoundError):
            t.nearest("v", ok, columns=columns)
    with pytest.raises(ColumnNotFoundError):
        t.nearest("w", ok)
    t.add_column("_distance", "float")
    with pytest.raises(InvalidArgumentError, match="which the distances are in"):
        t.nearest("v", ok)
    assert t.nearest("v", ok, 3, columns=["id"]).num_rows == 3
    for path in (kit.root / "data").iterdir():
        path.unlink()
    with pytest.raises(MissingFileError):
        t.nearest("v", ok, columns=["id"])


@pytest.mark.spark
@pytest.mark.route("nearest neighbours")
@pytest.mark.feature("nearest neighbours", format="lance")
def test_executors_compare(kit, spark, monkeypatch):
    kit.pylance(table(pa.float32()), max_rows_per_file=100)
    kit.dataset().delete("id = 7")
    query = np.arange(8, dtype=np.float32)
    monkeypatch.setattr("boathouse.ops.reads.nearest._TASK_BYTES", 1)  # a task a fragment
    for where in (None, "s = 's2' OR id > 400"):
        found = bh.open(kit.uri, spark=spark).nearest("v", query, 12, where=where, metric="cosine")
        agree(found, pylances(kit.dataset(), query, 12, "cosine", where))


@given(
    st.integers(1, 7),
    st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, np.inf, -np.inf, np.nan, -3.0]), max_size=12), max_size=9),
)
def test_the_nearest_of_many_batches(k, batches):
    best, n = nearest.Nearest(k), 0
    for batch in batches:
        best.add(np.array(batch, np.float32), np.full(len(batch), 2), np.arange(n, n + len(batch)))
        n += len(batch)
        assert len(best.distance) <= k  # nothing else is held
    all_of = np.array([d for batch in batches for d in batch], np.float32)
    order = np.argsort(all_of, kind="stable")
    expected = order[~np.isnan(all_of[order])][:k]
    assert best.position.tolist() == expected.tolist()
    np.testing.assert_array_equal(best.distance, all_of[expected])
