"""Nearest neighbours through the IVF indices of pylance: the same rows for the same partitions, with their real
distances; rows that the index does not have are compared as without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError
from boathouse.lance.indices import neighbours
from boathouse.ops.reads import indexed_neighbours
from boathouse.ops.reads import nearest as exact

from .overlaid import overlaid

lance = pytest.importorskip("lance")

SIZE = 16
KINDS = {
    "flat": ("IVF_FLAT", {}),
    "pq": ("IVF_PQ", {"num_sub_vectors": 4}),
    "pq4": ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 4}),
    "sq": ("IVF_SQ", {}),
    "hnsw_flat": ("IVF_HNSW_FLAT", {}),
    "hnsw_pq": ("IVF_HNSW_PQ", {"num_sub_vectors": 4}),
    "hnsw_sq": ("IVF_HNSW_SQ", {}),
}


def vectors(rows: int, seed: int = 3, dtype=np.float32) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(20, SIZE)) * 3
    return (centres[random.integers(0, 20, rows)] + random.normal(size=(rows, SIZE))).astype(dtype)


def table(values: np.ndarray, first: int = 0) -> pa.Table:
    held = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    ids = list(range(first, first + len(values)))
    return pa.table({"id": pa.array(ids, pa.int64()), "v": held, "s": [f"s{i % 5}" for i in ids]})


def pylances(kit, query, k: int, metric: str, nprobes: int, refine: int | None, where: str | None = None) -> list[int]:
    asked = {"column": "v", "q": query, "k": k, "metric": metric, "nprobes": nprobes, "refine_factor": refine}
    found = kit.dataset().to_table(columns=["id"], nearest=asked, filter=where, prefilter=True)
    return found.column("id").to_pylist()


@pytest.fixture
def asked(monkeypatch):
    """How many rows an index gave, by call; none where none was asked."""
    counts: list[int] = []
    before = neighbours.LanceVectorIndex.candidates

    def counted(self, vector, partitions):
        counts.append(0)
        for found in before(self, vector, partitions):
            counts[-1] += len(found[0])
            yield found

    monkeypatch.setattr(neighbours.LanceVectorIndex, "candidates", counted)
    return counts


CASES = [(kind, metric, stable) for kind in KINDS for metric in ("l2", "cosine", "dot") for stable in (False, True)]


@pytest.mark.few(5)
@pytest.mark.parametrize(("kind", "metric", "stable"), CASES)
def test_rows_are_those_of_pylance(kit, asked, kind, metric, stable):
    """Deleted rows are left out, those of newer fragments compared; of codes of 8 bits and whole vectors the very rows,
    else about as many of the nearest."""
    kit.pylance(table(vectors(2000)), max_rows_per_file=700, enable_stable_row_ids=stable)
    name, options = KINDS[kind]
    kit.dataset().create_index("v", name, num_partitions=8, metric=metric, **options)
    kit.dataset().delete("id % 7 = 3")
    kit.dataset().insert(table(vectors(100, seed=5), 2000))
    refine = None if "flat" in kind else 4
    t, ours, theirs = kit.open(), 0.0, 0.0
    for query in vectors(3, seed=11):
        whole = t.nearest("v", query, 2100, metric=metric, columns=["id"])
        best, real = whole.slice(0, 10), {r["id"]: r["_distance"] for r in whole.to_pylist()}
        for nprobes in (1, 3, 100):
            found = t.nearest("v", query, 10, metric=metric, nprobes=nprobes, refine_factor=refine)
            rows, expected = found["id"].to_pylist(), pylances(kit, query, 10, metric, nprobes, refine)
            if kind in ("flat", "pq", "sq"):
                assert sorted(rows) == sorted(expected)
            ours += len(set(rows) & set(best["id"].to_pylist()))
            theirs += len(set(expected) & set(best["id"].to_pylist()))
            far = found["_distance"].to_pylist()
            assert far == sorted(far)  # the product of a vector is rounded otherwise beside others
            np.testing.assert_allclose(far, [real[i] for i in rows], rtol=1e-5, atol=1e-5)
        if "flat" in kind:
            assert sorted(rows) == sorted(best["id"].to_pylist())
    assert ours >= theirs - 9, "a row in ten"
    assert len(asked) == 9 and 0 < min(asked) < max(asked) < 1800


@pytest.mark.parametrize("stable", [False, True])
def test_conditions_come_first(kit, asked, stable):
    kit.pylance(table(vectors(1500)), max_rows_per_file=400, enable_stable_row_ids=stable)
    kit.dataset().create_index("v", "IVF_FLAT", num_partitions=6)
    kit.open().append(table(vectors(50, seed=5), 1500))
    for query in vectors(1, seed=11):
        for where in ("s = 's2'", "id < 20 OR id > 1490", "id = 7", "id < 0"):
            few = kit.open().nearest("v", query, 5, where, nprobes=2)
            matching = kit.open().scan(where=where).to_arrow()["id"].to_pylist()
            assert set(few["id"].to_pylist()) <= set(matching)
            found = kit.open().nearest("v", query, 5, where, nprobes=6, columns=["id"])
            assert found["id"].to_pylist() == pylances(kit, query, 5, "l2", 6, None, where)
            assert found == kit.open().nearest("v", query, 5, where, columns=["id"]), where
    assert len(asked) == 8


@pytest.mark.parametrize("stable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_histories(kit, asked, stable):
    """After updates, compactions of both, overlays, appends and a second part of the index: with all partitions, the
    very rows of a search without it, also where those that moved, or have other vectors, are still in it."""
    kit.pylance(table(vectors(1200)), max_rows_per_file=300, enable_stable_row_ids=stable)
    kit.dataset().create_index("v", "IVF_FLAT", num_partitions=4)
    size = pa.list_(pa.float32(), SIZE)
    steps = [
        lambda: kit.open().update({"s": "'new'"}, where="id % 50 = 3"),
        lambda: kit.dataset().merge_insert("id").when_matched_update_all().execute(table(vectors(30, seed=8), 100)),
        lambda: kit.open().append(table(vectors(200, seed=9), 1200)),
        lambda: kit.open().delete("id % 9 = 1"),
        lambda: kit.open().optimize(),
        lambda: kit.dataset().optimize.optimize_indices(num_indices_to_merge=0),
        lambda: kit.dataset().delete("id % 9 = 2"),
        lambda: kit.dataset().optimize.compact_files(),
    ]
    if hasattr(lance.LanceOperation, "DataOverlay"):
        new = pa.table({"v": pa.array(vectors(3, seed=20).tolist(), size)})
        steps.insert(1, lambda: overlaid(kit, 2, new, [3, 5, 7], [1]))
    queries = [*vectors(1, seed=11), vectors(1200)[607], vectors(3, seed=20)[1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")
        for step in steps:
            step()
            t = kit.open()
            for query in queries:
                found = t.nearest("v", query, 12, nprobes=50)
                assert found == t.nearest("v", query, 12)
    assert len(asked) >= 4


@pytest.mark.parametrize(("metric", "dtype"), [("l2", np.float16), ("l2", np.float64), ("hamming", np.uint8)])
def test_other_elements(kit, asked, metric, dtype):
    values = vectors(600, dtype=dtype) if metric == "l2" else np.random.default_rng(1).integers(0, 256, (600, SIZE))
    kit.pylance(table(values.astype(dtype)))
    kit.dataset().create_index("v", "IVF_FLAT", num_partitions=4, metric=metric)
    for query in values[[3, 77]].astype(dtype):
        for nprobes in (1, 2):
            found = kit.open().nearest("v", query, 5, metric=metric, nprobes=nprobes)
            expected = pylances(kit, query, 5, metric, nprobes, None)
            real = {r["id"]: r["_distance"] for r in kit.open().nearest("v", query, 600, metric=metric).to_pylist()}
            assert [real[i] for i in found["id"].to_pylist()] == sorted(real[i] for i in expected)
        assert found["id"][0].as_py() in (3, 77)
    assert len(asked) == 4 and max(asked) < 600


def test_what_is_not_read_is_not_asked(kit, asked):
    """Another metric, another kind, none at all, and damage: every vector is compared."""
    kit.pylance(table(vectors(1000)), max_rows_per_file=500)
    query = vectors(1, seed=11)[0]
    best = kit.open().nearest("v", query, 7)

    def found(**options) -> pa.Table:
        return kit.open().nearest("v", query, 7, nprobes=1, **options)

    assert found() == best and not asked
    kit.dataset().create_index("v", "IVF_RQ", num_partitions=4)
    assert found() == best and not asked
    kit.dataset().create_index("v", "IVF_PQ", num_partitions=4, num_sub_vectors=4, replace=True)
    assert found(metric="cosine") == kit.open().nearest("v", query, 7, metric="cosine") and not asked
    assert found(refine_factor=3) is not None and len(asked) == 1
    (folder,) = [p for p in Path(kit.uri, "_indices").iterdir() if b"__pq_code" in (p / "auxiliary.idx").read_bytes()]
    for name in ("auxiliary.idx", "index.idx"):
        path = folder / name
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 10)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            rows = found()
            assert rows.num_rows == 7 and rows["_distance"].to_pylist() == sorted(rows["_distance"].to_pylist())
        path.write_bytes(whole[: len(whole) // 2])
        assert found() == best
        path.unlink()
        assert found() == best
        path.write_bytes(whole)
    shutil.rmtree(folder)
    assert found() == best


def test_memory_is_bounded(kit, asked, monkeypatch):
    """Partitions are read, and vectors compared, some rows at a time."""
    monkeypatch.setattr("boathouse.lance.indices.ivf._ELEMENTS", SIZE * 10)
    monkeypatch.setattr(indexed_neighbours, "_ELEMENTS", SIZE * 10)
    kit.pylance(table(vectors(500)))
    query = vectors(1, seed=11)[0]
    for kind in ("flat", "pq", "sq"):
        name, options = KINDS[kind]
        kit.dataset().create_index("v", name, num_partitions=2, replace=True, **options)
        found = kit.open().nearest("v", query, 20, nprobes=1, refine_factor=2)
        assert sorted(found["id"].to_pylist()) == sorted(pylances(kit, query, 20, "l2", 1, 2))
    monkeypatch.setattr("boathouse.lance.indices.ivf._CODE_BYTES", 10)
    kit.dataset().create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4, replace=True)
    assert kit.open().nearest("v", query, 20, nprobes=1) == kit.open().nearest("v", query, 20)


def test_wrong_numbers(kit):
    kit.pylance(table(vectors(10)))
    query = vectors(1)[0]
    for options in ({"nprobes": 0}, {"nprobes": True}, {"nprobes": 1.5}, {"nprobes": 2, "refine_factor": 0}):
        with pytest.raises(InvalidArgumentError, match="is not a number from 1 on"):
            kit.open().nearest("v", query, **options)
    with pytest.raises(InvalidArgumentError, match="without nprobes"):
        kit.open().nearest("v", query, refine_factor=3)


@pytest.mark.spark
def test_on_spark(kit, spark, asked, monkeypatch):
    """The index is read where the operation runs; executors compare what it does not have."""
    kit.pylance(table(vectors(1000)), max_rows_per_file=300)
    kit.dataset().create_index("v", "IVF_FLAT", num_partitions=4)
    kit.dataset().insert(table(vectors(200, seed=5), 1000))
    monkeypatch.setattr(exact, "_TASK_BYTES", 1)
    t = bh.open(kit.uri, spark=spark)
    for query, where in zip(vectors(2, seed=11), (None, "s = 's2'")):
        found = t.nearest("v", query, 8, where, nprobes=2, columns=["id"])
        assert found == kit.open().nearest("v", query, 8, where, nprobes=2, columns=["id"])
    assert len(asked) == 4
