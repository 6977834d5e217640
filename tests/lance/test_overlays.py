"""Data overlay files, which pylance writes where its environment allows it, are read as it reads them."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError, MissingFileError, UnsupportedFeatureError
from boathouse.lance.file.writer import LanceWriter
from boathouse.lance.maintain.needs import Seen, needs

from .overlaid import overlaid

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


def paths_of(kit) -> dict[str, int]:
    """The ids of the fields, by their paths."""
    found: dict[int, str] = {}
    for f in kit.load().manifest.fields:  # parents come first
        found[f.id] = f"{found[f.parent_id]}.{f.name}" if f.parent_id in found else f.name
    return {path: id for id, path in found.items()}


@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_values_are_those_of_pylance(kit, stable):
    """Dense and sparse ones, of two of a cell the later one; of rows that are deleted, or not looked at; whole structs
    and vectors; conditions are asked of the new values, also where an index has the old ones."""
    kit.pylance(ROWS, max_rows_per_file=5, enable_stable_row_ids=stable)
    kit.dataset().create_scalar_index("a", "BTREE")
    id = paths_of(kit)
    overlaid(kit, 0, pa.table({"a": [100, 300]}), [1, 3], [id["a"]])
    overlaid(kit, 0, pa.table({"a": [101, None], "s": ["z", "w"]}), [1, 4], [id["a"], id["s"]])
    overlaid(kit, 1, pa.table({"a": [7000], "s": ["Q"]}), [[2], [3]], [id["a"], id["s"]])
    overlaid(kit, 1, pa.table({"v": pa.array([[9.0] * 3] * 2, pa.list_(pa.float32(), 3))}), [0, 4], [id["v"]])
    structs = pa.table({"n": [{"x": 5, "y": None}, {"x": 6, "y": 7}]})
    overlaid(kit, 1, structs, [1, 2], [id["n.x"], id["n.y"]])
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


def test_needed_files_name_them(kit):
    kit.pylance(ROWS, max_rows_per_file=5)
    overlaid(kit, 0, pa.table({"a": [100]}), [1], [0])
    needed = {uri for uri, _, _ in needs(kit.load().document, kit.location.uri, Seen())}
    assert {f"{kit.location.uri}/{name}" for name in kit.files() if name.startswith("data/")} <= needed


STRUCTS = pa.table(
    {
        "k": pa.array(range(6), pa.int64()),
        "n": [{"x": i, "y": -i, "o": {"z": f"z{i}", "w": [i]}} for i in range(6)],
        "l": [[{"x": i}] * (i % 3) for i in range(6)],
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_some_fields_of_structs(kit, version):
    """Each field is that of the newest overlay that has it, others stay; lists are covered as a whole. Files of 2.0
    have a column for the struct itself."""
    kit.pylance(STRUCTS, data_storage_version=version)
    id = paths_of(kit)
    every = version == "2.0"

    def one(columns: pa.Table, offsets, *paths: str) -> None:
        """Of these leaves."""
        ids = [i for p, i in id.items() if p in paths or (every and any(q.startswith(f"{p}.") for q in paths))]
        overlaid(kit, 0, columns, offsets, ids, version)

    one(pa.table({"n": [{"x": 10}, {"x": None}, {"x": 12}]}), [0, 1, 2], "n.x")
    one(pa.table({"n": [{"o": {"z": "new"}}, {"o": {"z": None}}]}), [1, 5], "n.o.z")
    one(pa.table({"n": [{"y": 7, "o": {"w": [1, 2]}}]}), [1], "n.y", "n.o.w.item")
    one(pa.table({"n": [{"x": 99}]}), [2], "n.x")
    one(pa.table({"l": [[{"x": 5}, {"x": 6}], []]}), [0, 4], "l.item.x")
    expected = kit.dataset().to_table().to_pylist()
    assert [r["n"]["x"] for r in expected] == [10, None, 99, 3, 4, 5]
    assert expected[1]["n"] == {"x": None, "y": 7, "o": {"z": "new", "w": [1, 2]}}
    assert kit.read().to_pylist() == expected
    assert kit.open().take([5, 1]).to_pylist() == [expected[5], expected[1]]
    assert kit.read(where="n.x = 99").to_pylist() == [expected[2]]
    kit.open().update({"k": "k + 100"}, where="n.x = 99 OR n.o.z = 'new'")
    kit.open().optimize()
    assert kit.load().manifest.fragments[0].overlays == ()
    left = sorted(({**r, "k": r["k"] + 100 * (i in (1, 2))} for i, r in enumerate(expected)), key=lambda r: r["k"])
    for found in (kit.dataset().to_table(), kit.read()):
        assert sorted(found.to_pylist(), key=lambda r: r["k"]) == left


def test_overlays_of_a_field_in_a_file_of_its_own(kit):
    """The column is in two data files and two overlays. pylance 14 takes one field for another where the order of the
    files is not that of the fields."""
    kit.pylance(pa.table({"n": [{"y": -i, "x": i} for i in range(5)]}))
    kit.open().cast_column("n.x", "string")
    overlaid(kit, 0, pa.table({"n": [{"x": "new"}, {"x": None}]}), [3, 4], [paths_of(kit)["n.x"]])
    overlaid(kit, 0, pa.table({"n": [{"y": 5}]}), [3], [paths_of(kit)["n.y"]])
    found = kit.dataset().to_table().to_pylist()
    assert found[2:] == [{"n": {"y": -2, "x": "2"}}, {"n": {"y": 5, "x": "new"}}, {"n": {"y": -4, "x": None}}]
    assert kit.read().to_pylist() == found


def test_columns_of_different_lengths(kit):
    """In one file, which pylance reads but has no call for to write."""
    kit.pylance(ROWS, max_rows_per_file=5)
    name = f"{uuid.uuid4().hex}.lance"
    with open(os.path.join(kit.uri, "data", name), "wb") as sink:
        schema = pa.schema([("a", pa.int64()), ("s", pa.string())])
        writer = LanceWriter(sink, schema)
        for column, values in zip(writer._columns, ([100, None, 300], ["only"])):
            column.add(pa.array(values, column.kind))
        writer._rows = 3
        writer.close()
    file = lance.fragment.DataFile(name, [0, 1], [0, 1], 2, 2)
    overlay = LanceOperation.DataOverlayFile(file, [[0, 2, 4], [3]])
    made = LanceOperation.DataOverlay([LanceOperation.DataOverlayGroup(1, [overlay])])
    lance.LanceDataset.commit(kit.uri, made, read_version=1)
    expected = kit.dataset().to_table().to_pylist()
    assert [r["a"] for r in expected[5:]] == [100, 6, None, 8, 300] and expected[8]["s"] == "only"
    assert kit.read().to_pylist() == expected


def test_what_is_not_read_is_refused(kit):
    """A part of a list, and structs that are null in one file alone: pylance 14 takes that of the data file, and later
    ones that of the overlay."""
    n = pa.array([{"x": 1, "y": 2}, None, {"x": 3, "y": 4}], pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    lists = pa.array([[{"x": 1, "y": 2}]] * 3)
    kit.pylance(pa.table({"k": range(3), "n": n, "m": n, "l": lists}))
    id = paths_of(kit)
    overlaid(kit, 0, pa.table({"n": [{"x": 5}]}), [1], [id["n.x"]])
    overlaid(kit, 0, pa.table({"m": pa.array([None], pa.struct([("x", pa.int64())]))}), [2], [id["m.x"]])
    overlaid(kit, 0, pa.table({"l": [[{"x": 5}]]}), [2], [id["l.item.x"]])
    for column, match in (
        ("n", "`n` is null in the data file and not"),
        ("m", "`m` is null in the data file and not"),
        ("l", "a part of column `l`"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=match):
            kit.read(columns=[column])
    assert kit.read(columns=["k"]).column(0).to_pylist() == [0, 1, 2]
    files = kit.files()
    with pytest.raises(UnsupportedFeatureError, match=r"a part of column|is null in the data file"):
        kit.open().update({"k": "7"}, where="k = 2")
    assert kit.files() == files
    kit.open().delete("k = 1")
    assert kit.read(columns=["n", "k"], where="k = 0").to_pylist() == [{"n": {"x": 1, "y": 2}, "k": 0}]


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
    with pytest.raises(CorruptTableError, match="pages of 1 rows in a file of 2"):
        kit.read()
    path.unlink()
    with pytest.raises(MissingFileError, match="version 2"):
        kit.read()
