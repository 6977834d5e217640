"""Data overlay files, which pylance writes where its environment allows it: read, and kept; not written."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError, MissingFileError, UnsupportedFeatureError
from boathouse.lance.maintain.needs import Seen, needs

lance = pytest.importorskip("lance")
LanceOperation = lance.LanceOperation
if not hasattr(LanceOperation, "DataOverlay"):
    pytest.skip("this pylance has no overlays", allow_module_level=True)

ROWS = pa.table(
    {
        "a": pa.array(range(10), pa.int64()),
        "s": [f"v{i}" if i % 3 else None for i in range(10)],
        "n": [{"x": i, "y": -i} for i in range(10)],
        "v": pa.array([[float(i)] * 3 for i in range(10)], pa.list_(pa.float32(), 3)),
    }
)


@pytest.fixture(autouse=True)
def allowed(monkeypatch):
    monkeypatch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")


def overlaid(kit, fragment: int, columns: pa.Table, offsets, ids: list[int]) -> None:
    """These columns of the rows at the offsets have other values."""
    name = f"{uuid.uuid4().hex}.lance"
    with lance.file.LanceFileWriter(os.path.join(kit.uri, "data", name), columns.schema) as writer:
        writer.write_batch(columns)
    file = lance.fragment.DataFile(name, ids, list(range(len(ids))), 2, 2)
    overlay = LanceOperation.DataOverlayFile(file, offsets)
    made = LanceOperation.DataOverlay([LanceOperation.DataOverlayGroup(fragment, [overlay])])
    lance.LanceDataset.commit(kit.uri, made, read_version=kit.dataset().version)


def ids_of(kit) -> dict[str, int]:
    return {f.name: f.id for f in kit.load().manifest.fields}


@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_values_are_those_of_pylance(kit, stable):
    """Dense and sparse ones, of two of a cell the later one; of rows that are deleted, or not looked at; whole structs
    and vectors; conditions are asked of the new values, also where an index has the old ones."""
    kit.pylance(ROWS, max_rows_per_file=5, enable_stable_row_ids=stable)
    kit.dataset().create_scalar_index("a", "BTREE")
    id = ids_of(kit)
    overlaid(kit, 0, pa.table({"a": [100, 300]}), [1, 3], [id["a"]])
    overlaid(kit, 0, pa.table({"a": [101, None], "s": ["z", "w"]}), [1, 4], [id["a"], id["s"]])
    overlaid(kit, 1, pa.table({"a": [7000], "s": ["Q"]}), [[2], [3]], [id["a"], id["s"]])
    overlaid(kit, 1, pa.table({"v": pa.array([[9.0] * 3] * 2, pa.list_(pa.float32(), 3))}), [0, 4], [id["v"]])
    structs = pa.table({"n": [{"x": 5, "y": None}, {"x": 6, "y": 7}]})
    overlaid(kit, 1, structs, [1, 2], [id["x"], id["y"]])
    expected = kit.dataset().to_table().to_pylist()
    t = kit.open()
    assert t.to_arrow().to_pylist() == expected
    assert [r["a"] for r in expected] == [0, 101, 2, 300, None, 5, 6, 7000, 8, 9]
    for where in ("a = 101", "a = 1", "a > 250", "a IS NULL", "s = 'Q'", "s = 'v8'", "a = 5"):
        assert t.scan(where=where).to_arrow().to_pylist() == kit.dataset().to_table(filter=where).to_pylist(), where
    assert t.take([7, 1, 8]).to_pylist() == [expected[i] for i in (7, 1, 8)]
    assert t.scan(["s"]).to_arrow().column(0).to_pylist() == [r["s"] for r in expected]
    assert t.nearest("v", [9.0] * 3, 3, columns=["a"])["a"].to_pylist() == [5, 9, 8]
    assert t.count() == 10 and t.scan(where="s = 'w'").count() == 1
    kit.dataset().delete("s = 'z' OR s = 'v5'")
    left = [r for r in expected if r["s"] not in ("z", "v5")]
    assert kit.open().to_arrow().to_pylist() == left == kit.dataset().to_table().to_pylist()
    assert kit.open(version=2).to_arrow().to_pylist() == ROWS.to_pylist()
    changes = kit.open().changes(3, 3).to_arrow().to_pylist()
    assert sorted((c["a"], c["_change_type"]) for c in changes) == [
        (1, "delete"), (3, "delete"), (100, "insert"), (300, "insert"),
    ]  # fmt: skip
    kit.dataset().optimize.compact_files()
    assert kit.open().to_arrow().to_pylist() == left


def test_many_rows(kit, monkeypatch):
    """In windows, of which some have no covered row."""
    monkeypatch.setattr("boathouse.lance.read.MAX_BATCH_ROWS", 1 << 10)
    n = 20_000
    kit.pylance(pa.table({"a": range(n), "s": [str(i) for i in range(n)]}))
    at = [*range(3000, 9000, 7), n - 1]
    overlaid(kit, 0, pa.table({"s": [f"new {i}" for i in at]}), at, [1])
    expected = kit.dataset().to_table()
    assert kit.open().to_arrow().to_pylist() == expected.to_pylist()
    some = [3000, 3001, n - 1, 8999]
    assert kit.open().take(some).to_pylist() == expected.take(some).to_pylist()
    assert kit.open().scan(["s"], where="a >= 2990 AND a < 3010").to_arrow().to_pylist() == [
        {"s": s} for s in expected.column("s").to_pylist()[2990:3010]
    ]


def test_nothing_is_written(kit, tmp_path):
    kit.pylance(ROWS, max_rows_per_file=5)
    overlaid(kit, 0, pa.table({"a": [100]}), [1], [0])
    files, t = kit.files(), kit.open()
    for write in (
        lambda: t.append(ROWS), lambda: t.delete("a = 1"), t.optimize, lambda: t.add_columns({"b": "a"}),
        lambda: t.clone(str(tmp_path / "clone")), lambda: t.restore(1),
    ):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match="data overlay files"):
            write()
        assert kit.files() == files
    needed = {uri for uri, _, _ in needs(kit.load().document, kit.location.uri, Seen())}
    assert {f"{kit.location.uri}/{name}" for name in files if name.startswith("data/")} <= needed


def test_what_is_not_read_is_refused(kit):
    """Parts of a column, beside which the others are."""
    kit.pylance(ROWS, max_rows_per_file=5)
    id = ids_of(kit)
    overlaid(kit, 0, pa.table({"n": [{"x": 5}]}), [1], [id["x"]])
    with pytest.raises(UnsupportedFeatureError, match="some fields of column `n`"):
        kit.read()
    assert kit.read(columns=["a"]).column(0).to_pylist() == list(range(10))


def test_files_below_a_base_path(kit, tmp_path):
    kit.pylance(ROWS, max_rows_per_file=5)
    base = tmp_path / "base"
    base.mkdir()
    kit.dataset().add_bases([lance.DatasetBasePath(str(base), name="base")])
    overlaid(kit, 0, pa.table({"a": [100]}), [1], [0])

    def elsewhere(manifest):
        first, *others = manifest.fragments
        overlay = replace(
            first.overlays[0], data_file=replace(first.overlays[0].data_file, base_id=manifest.base_paths[0].id)
        )
        return replace(manifest, fragments=(replace(first, overlays=(overlay,)), *others))

    file = kit.load().manifest.fragments[0].overlays[0].data_file.path
    Path(kit.uri, "data", file).rename(base / file)
    kit.edit(elsewhere)
    assert kit.read(columns=["a"]).column(0).to_pylist() == [0, 100, *range(2, 10)]


def test_damaged_ones(kit):
    kit.pylance(ROWS, max_rows_per_file=5)
    overlaid(kit, 0, pa.table({"a": [100, 101]}), [1, 2], [0])
    overlay = kit.load().manifest.fragments[0].overlays[0]
    path = Path(kit.uri, "data", overlay.data_file.path)
    with lance.file.LanceFileWriter(str(path), pa.schema([("a", pa.int64())])) as writer:
        writer.write_batch(pa.table({"a": [100]}))
    with pytest.raises(CorruptTableError, match="1 values for 2 rows"):
        kit.read()
    path.unlink()
    with pytest.raises(MissingFileError, match="version 2"):
        kit.read()
