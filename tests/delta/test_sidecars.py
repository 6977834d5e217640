"""Checkpoints of version 2 that we write: their names, their sidecars, and what of them the next one keeps."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.delta.checkpoint import reader as checkpoint
from boathouse.delta.checkpoint import sidecars as checkpoint_sidecars
from boathouse.delta.checkpoint import writer as checkpoint_write
from boathouse.errors import BoathouseError, CorruptTableError, InvalidArgumentError, StorageError

POLICY = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "4"}


@pytest.fixture
def few(monkeypatch):
    """Sidecars of at most four files."""
    monkeypatch.setattr(checkpoint_sidecars, "SIDECAR_ROWS", 4)
    monkeypatch.setattr(checkpoint_write, "_GROUP_ROWS", 4)
    monkeypatch.setattr(checkpoint, "BATCH_ROWS", 3)


class Table:
    """A table with a file a row."""

    def __init__(self, path: Path, **properties: str) -> None:
        self.path, self.log = str(path), path / "_delta_log"
        bh.write(pa.table({"x": [0]}), self.path, format="delta", properties={**POLICY, **properties})
        self.opened = bh.open(self.path)

    def append(self, *values: int) -> None:
        for x in values:
            self.opened.append(pa.table({"x": [x]}))

    def rows(self, **at: int) -> list[int]:
        return sorted(bh.open(self.path, **at).to_arrow().column("x").to_pylist())

    def checkpoint(self, version: int) -> Path:
        (found,) = self.log.glob(f"{version:020d}.checkpoint.*")
        return found

    def sidecars(self, version: int) -> dict[str, dict]:
        """Sidecar actions of a checkpoint by the name of their file."""
        column = pq.read_table(self.checkpoint(version)).column("sidecar")
        return {s["path"]: s for s in column.to_pylist() if s is not None}

    def held(self, name: str) -> list[tuple[str, str]]:
        """(kind, path) of the actions in a sidecar."""
        found = pq.read_table(self.log / "_sidecars" / name)
        assert found.column_names == ["add", "remove"]
        return [(k, r[k]["path"]) for r in found.to_pylist() for k in r if r[k] is not None]

    def without_entries(self, below: int) -> None:
        for version in range(below):
            (self.log / f"{version:020d}.json").unlink()


@pytest.mark.spec("D-298")
def test_the_policy_names_checkpoints_by_uuid(tmp_path, delta):
    table = Table(tmp_path / "t")
    protocol = next(a["protocol"] for a in delta.log(table.path)[0] if "protocol" in a)
    assert "v2Checkpoint" in protocol["readerFeatures"] and "v2Checkpoint" in protocol["writerFeatures"]
    table.append(*range(1, 6))
    name = table.checkpoint(4).name
    assert name.endswith(".parquet") and uuid.UUID(name.split(".")[2])
    found = pq.read_table(table.log / name)
    assert [r["version"] for r in found.column("checkpointMetadata").to_pylist() if r] == [4]
    assert "sidecar" not in found.column_names and len(found.column("add").drop_null()) == 5
    table.without_entries(4)
    assert table.rows() == list(range(6)) == sorted(r["x"] for r in delta.rows(table.path))


@pytest.mark.spec("D-298")
def test_every_tenth_has_the_classic_name(tmp_path, delta, few):
    table = Table(tmp_path / "t", **{"delta.checkpointInterval": "1"})
    table.append(*range(1, 12))
    classic = [p.name for p in table.log.glob("*.checkpoint.parquet")]
    assert classic == [f"{10:020d}.checkpoint.parquet"] and len(list(table.log.glob("*.checkpoint.*-*.parquet"))) == 10
    assert sum(len(table.held(name)) for name in table.sidecars(10)) == 11
    for path in (*table.log.glob("*.checkpoint.*-*.parquet"), table.log / "_last_checkpoint"):
        path.unlink()
    table.without_entries(10)
    assert table.rows() == list(range(12)) == sorted(r["x"] for r in delta.rows(table.path))


def test_the_policy_of_an_older_table(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(pa.table({"x": [0]}), path, format="delta")
    table = bh.open(path)
    table.set_properties({"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"})
    table.append(pa.table({"x": [1]}))
    (found,) = (tmp_path / "t" / "_delta_log").glob(f"{2:020d}.checkpoint.*-*.parquet")
    table.set_properties({"delta.checkpointPolicy": "classic"})
    table.append(pa.table({"x": [2]}))
    assert (found.parent / f"{4:020d}.checkpoint.parquet").exists()
    assert len(delta.rows(path)) == 3 == bh.open(path).count()
    with pytest.raises(InvalidArgumentError, match="not classic or v2"):
        table.set_properties({"delta.checkpointPolicy": "v3"})


@pytest.mark.spec("D-298", "D-046")
@pytest.mark.feature("v2Checkpoint", format="delta")
def test_many_files_are_in_sidecars(tmp_path, delta, few):
    table = Table(tmp_path / "t")
    table.append(*range(1, 7))
    table.opened.delete("x = 2")
    table.append(8)
    assert not list(table.log.glob(f"{4:020d}.checkpoint.parquet"))
    top = pq.read_table(table.checkpoint(8))
    assert len(top.column("add").drop_null()) == len(top.column("remove").drop_null()) == 0
    sidecars = table.sidecars(8)
    held = [table.held(name) for name in sidecars]
    assert sorted(len(h) for h in held) == [1, 3, 4]
    assert all(len({kind for kind, _ in h}) == 1 for h in held)
    assert {p for h in held for kind, p in h if kind == "add"} == {
        f.rpartition("/")[2] for f in bh.open(table.path).scan().files()
    }
    folder = table.log / "_sidecars"
    assert all(uuid.UUID(n.removesuffix(".parquet")) for n in sidecars)
    assert all(s["sizeInBytes"] == (folder / n).stat().st_size for n, s in sidecars.items())
    hint = json.loads((table.log / "_last_checkpoint").read_text())
    sizes = [table.checkpoint(8).stat().st_size, *(s["sizeInBytes"] for s in sidecars.values())]
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (8, top.num_rows + 8, 7)
    assert hint["sizeInBytes"] == sum(sizes)
    table.append(9)
    table.without_entries(8)
    assert table.rows() == [0, 1, 3, 4, 5, 6, 8, 9] == sorted(r["x"] for r in delta.rows(table.path))
    assert table.rows(version=8) == [0, 1, 3, 4, 5, 6, 8]


def test_unchanged_sidecars_are_kept(tmp_path, delta, few):
    table = Table(tmp_path / "t")
    table.append(*range(1, 9))
    first = table.sidecars(8)
    assert sorted(len(table.held(n)) for n in first) == [1, 4, 4]
    table.append(*range(9, 13))
    second = table.sidecars(12)
    kept = first.keys() & second.keys()
    assert [len(table.held(n)) for n in kept] == [4, 4] and {n: first[n] for n in kept} == {n: second[n] for n in kept}
    table.opened.delete("x = 0")  # a file of one of the kept ones
    table.append(14, 15, 16)
    third = table.sidecars(16)
    (gone,) = kept - third.keys()
    assert len(kept & third.keys()) == 1 and any(kind == "remove" for n in third for kind, _ in table.held(n))
    assert all(path not in dict(table.held(gone)).values() or kind == "add" for kind, path in table.held(gone))
    assert json.loads((table.log / "_last_checkpoint").read_text())["numOfAddFiles"] == 15
    table.without_entries(16)
    wanted = [*range(1, 13), 14, 15, 16]
    assert table.rows() == wanted == sorted(r["x"] for r in delta.rows(table.path))
    assert bh.open(table.path).count() == 15
    assert bh.open(table.path).scan(where="x > 11").count() == 4


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_files_that_changed_leave_their_sidecar(tmp_path, delta, few, vectors):
    table = Table(tmp_path / "t", **{"delta.enableDeletionVectors": vectors})
    for start in range(1, 8):
        table.opened.append(pa.table({"x": [10 * start, 10 * start + 1]}))
    table.append(99)
    table.opened.delete("x IN (11, 50)")
    table.opened.update({"x": "x + 1000"}, where="x = 70")
    table.append(1, 2)
    left = table.rows()
    assert left == sorted([0, 1, 2, 10, 20, 21, 30, 31, 40, 41, 51, 60, 61, 1070, 71, 99])
    assert any(r["path"] for r in table.sidecars(12).values())
    table.without_entries(12)
    assert table.rows() == left == sorted(r["x"] for r in delta.rows(table.path))
    again = bh.open(table.path)
    again.delete("x < 30")
    assert table.rows() == [x for x in left if x >= 30] == sorted(r["x"] for r in delta.rows(table.path))


def test_other_forms_of_statistics_are_rewritten(tmp_path, delta, few):
    table = Table(tmp_path / "t")
    table.append(*range(1, 9))
    table.opened.set_properties({"delta.checkpoint.writeStatsAsStruct": "true"})
    table.append(9, 10, 11)
    first, second = table.sidecars(8), table.sidecars(12)
    assert first and second and not first.keys() & second.keys()
    for name in second:
        added = pq.read_schema(table.log / "_sidecars" / name).field("add").type
        assert added.get_field_index("stats_parsed") >= 0
    table.without_entries(12)
    assert table.rows() == list(range(12)) == sorted(r["x"] for r in delta.rows(table.path))
    assert bh.open(table.path).scan(where="x = 5").explain()
    assert bh.open(table.path).scan(where="x = 5").count() == 1


def test_removed_files_expire_from_sidecars(tmp_path, few):
    table = Table(tmp_path / "t")
    table.append(*range(1, 7))
    table.opened.delete("x = 2")
    table.append(8)
    removed = [n for n in table.sidecars(8) for kind, _ in table.held(n) if kind == "remove"]
    assert len(removed) == 1

    class Later(system.System):
        def now_ms(self):
            return super().now_ms() + 8 * 86_400_000

    with system.use(Later()):
        table.append(9, 10, 11, 12)
    assert not [k for n in table.sidecars(12) for k, _ in table.held(n) if k == "remove"]


def test_a_checkpoint_that_fails_half_way_is_none(tmp_path, few, monkeypatch):
    table = Table(tmp_path / "t")
    table.append(1, 2, 3)
    write, calls = checkpoint_write.write_sidecar, []

    def failing(*args):
        calls.append(args)
        if len(calls) == 2:
            raise StorageError("no space")
        return write(*args)

    monkeypatch.setattr(checkpoint_write, "write_sidecar", failing)
    table.append(4)
    assert len(calls) == 2 and not list(table.log.glob("*.checkpoint.*")) and table.rows() == list(range(5))
    monkeypatch.setattr(checkpoint_write, "write_sidecar", write)
    table.append(5)
    assert len(table.sidecars(5)) == 2 and table.rows() == list(range(6))


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_files_in_both_places_are_refused(tmp_path, few, kind):
    """Readers of the one or of the other would see different rows."""
    table = Table(tmp_path / "t")
    table.append(1, 2, 3, 4)
    path = table.checkpoint(4)
    rows = [
        {k: v for k, v in r.items() if v is not None} for r in pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    ]
    (table.log / "_last_checkpoint").unlink()
    table.without_entries(4)
    add = pq.read_table(table.log / "_sidecars" / next(iter(table.sidecars(4)))).column("add").to_pylist()[0]
    path.unlink()
    if kind == "parquet":
        whole = Table(tmp_path / "other")
        whole.append(1, 2, 3, 4)
        schema = pq.read_schema(whole.checkpoint(4))
        extra = pa.Table.from_pylist([{"add": add}], schema)
        top = pq.read_table(whole.checkpoint(4))
        pq.write_table(pa.concat_tables([top, extra]), whole.checkpoint(4))
        whole.without_entries(4)
        table = whole
    else:
        rows.append(
            {"add": {"path": add["path"], "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": False}}
        )
        path.with_suffix(".json").write_text("".join(json.dumps(r) + "\n" for r in rows))
    with pytest.raises(CorruptTableError, match="both in itself and in sidecars"):
        bh.open(table.path)


@pytest.mark.parametrize("name", ["kernel-pagination-v2-checkpoint-json", "kernel-pagination-v2-checkpoint-parquet"])
def test_going_on_from_sidecars_of_others(corpora, tmp_path, delta, few, name):
    path = tmp_path / "t"
    shutil.copytree(corpora / "delta" / "java-kernel" / name, path)
    table = bh.open(str(path), allow_mixed_writers=True)
    before = table.count()
    for i in range(4):
        table.append(pa.table({"id": [10_000 + i]}))
    written = [p for p in (path / "_delta_log").glob("*.checkpoint.*-*.parquet") if p.name >= f"{5:020d}"]
    assert len(written) == 2
    for version in range(int(written[-1].name[:20])):
        (path / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)
    assert bh.open(str(path)).count() == before + 4 == len(delta.rows(path))


def test_damaged_sidecars_of_ours_are_an_error(tmp_path, few):
    table = Table(tmp_path / "t")
    table.append(1, 2, 3, 4)
    table.without_entries(4)
    for name in table.sidecars(4):
        path = table.log / "_sidecars" / name
        path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BoathouseError):
        bh.open(table.path).to_arrow()
