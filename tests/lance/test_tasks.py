"""What runs on executors: imports, pickling, windows, late materialisation, writers."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from boathouse.arrow.filesystem import NativeFiles
from boathouse.errors import CorruptTableError, SchemaMismatchError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.lance import read as reading
from boathouse.lance import tasks
from boathouse.lance.file.reader import LanceFile

FORBIDDEN = ("obstore", "sqlglot", "google.protobuf", "fastavro", "orjson", "pyspark", "pandas", "lance")


def _plan(kit, columns=None, where=None, hidden=()):
    snapshot = kit.load()
    bound = bind_predicate(parse(where), snapshot.schema) if where else None
    return snapshot.plan(columns, bound, hidden)


def _rows(plan) -> pa.Table:
    batches = [batch for task in plan.tasks() for batch in tasks.read(task)]
    return pa.Table.from_batches(batches, plan.read.schema)


def test_executors_import_nothing_else():
    code = f"""
import sys
import boathouse.lance.tasks
found = [m for m in {FORBIDDEN!r} if m in sys.modules]
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tasks_and_contexts_travel(kit, numbers):
    table = kit.create(numbers)
    table.append(numbers)
    table.delete("a = 3")
    plan = _plan(kit, ["s", "a"], "a > 2", ("_unit", "_pos"))
    (task,) = plan.tasks()
    moved = pickle.loads(pickle.dumps(task))
    assert isinstance(moved.read.files, NativeFiles)
    found = pa.Table.from_batches(tasks.read(moved))
    assert found.schema == task.read.schema
    assert found.column("a").to_pylist() == [4, 5, 6, 7, 8, 9] * 2
    assert found.column("_pos").to_pylist() == [4, 5, 6, 7, 8, 9] * 2
    assert found.column("_unit").to_pylist() == [0] * 6 + [1] * 6
    context = kit.load().write_context("w")
    assert context.target_rows == 1 << 20
    writers = tasks.writers(pickle.loads(pickle.dumps(context)))
    writer = writers.open({})
    writer.write(numbers.to_batches()[0])
    assert writer.bytes_written > 0
    (row,) = writers.outcomes([writer.close()]).to_pylist()
    assert row["rows"] == 10 and row["parts"][0]["fields"] == [0, 1] and row["native"]["version"] == "2.2"


def test_an_aborted_writer_leaves_nothing(kit, numbers):
    kit.create(numbers)
    before = kit.files()
    writer = tasks.writers(kit.load().write_context("w")).open({})
    writer.write(numbers.to_batches()[0])
    assert kit.files() != before
    writer.abort()
    writer.abort()
    assert kit.files() == before


def test_many_windows(kit, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BATCH_ROWS", 1000)
    data = pa.table({"a": np.arange(12_345), "s": [f"s{i}" for i in range(12_345)]})
    table = kit.create(data)
    kit.dataset().add_columns({"b": "a * 2"})  # a second data file
    table.refresh().delete("a % 1000 < 10 OR a BETWEEN 4000 AND 6999")
    assert kit.read() == kit.dataset().to_table()
    assert _plan(kit).read.schema.names == ["a", "s", "b"]
    for where in ("b >= 8000", "a = 7500", "s = 's9999' AND b > 3", "a % 97 = 3"):
        theirs = kit.dataset().to_table(["b", "s"], filter=where)
        assert kit.read(columns=["b", "s"], where=where) == theirs


def test_the_other_columns_are_read_only_where_rows_remain(kit, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BATCH_ROWS", 1024)
    kit.create(pa.table({"a": np.arange(10_240), "s": [f"s{i}" for i in range(10_240)]}))
    taken, ranges = [], []
    take, read = LanceFile.take, LanceFile.read

    def spy_take(self, indices, columns=None):
        taken.append(len(indices))
        return take(self, indices, columns)

    def spy_read(self, columns=None, rows=None):
        ranges.append(rows)
        return read(self, columns, rows)

    monkeypatch.setattr(LanceFile, "take", spy_take)
    monkeypatch.setattr(LanceFile, "read", spy_read)
    assert _rows(_plan(kit, ["s"], "a = 5000")).to_pydict() == {"s": ["s5000"]}
    assert taken == [1] and ranges == []
    assert _rows(_plan(kit, ["s"], "a >= 9000")).num_rows == 1240
    assert [r.start for r in ranges] == [8192, 9216]
    assert _rows(_plan(kit, ["s"], "a < 0")).num_rows == 0
    assert _rows(_plan(kit, ["a"], "a = 1")).num_rows == 1 and len(taken) == 1


def test_constants_skip_everything(kit, numbers):
    kit.create(numbers)
    plan = _plan(kit, ["a"], "1 = 2")
    assert plan.units.num_rows == 0 or _rows(plan).num_rows == 0
    snapshot = kit.load()
    from boathouse.expr.tree import FALSE, Literal
    from boathouse.table.tally import Tally

    for where in (FALSE, Literal(None)):
        tally = Tally()
        assert list(snapshot.files(where=where, tally=tally)) == [] and tally.total == 1


def test_no_column_at_all(kit, numbers):
    kit.create(numbers).delete("a = 4")
    assert sum(b.num_rows for t in _plan(kit, []).tasks() for b in tasks.read(t)) == 9
    assert _rows(_plan(kit, [], None, ("_pos",))).column("_pos").to_pylist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert _plan(kit).rows == 9


def test_a_missing_data_file_is_corrupt(kit, numbers):
    kit.create(numbers)
    for path in (kit.root / "data").iterdir():
        path.unlink()
    with pytest.raises(CorruptTableError, match="needs a data file that is missing"):
        kit.read()


def test_dictionaries_that_overflow_are_a_mismatch(kit):
    kit.pylance(pa.table({"d": pa.array(["x", "y"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))}))
    table = kit.open()
    table.append(pa.table({"d": ["z", "x", None]}))
    assert kit.dataset().to_table().column("d").to_pylist() == ["x", "y", "z", "x", None]
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"d": [f"v{i}" for i in range(300)]}))
    assert kit.dataset().count_rows() == 5


@pytest.mark.spec("L-036")
def test_data_files_of_different_lengths_are_refused(kit, numbers):
    from dataclasses import replace

    kit.pylance(numbers)
    kit.pylance(numbers.slice(0, 4).rename_columns(["b", "c"]), mode="overwrite")
    old = kit.load(_at(1)).manifest
    files = (*old.fragments[0].files, replace(kit.load().manifest.fragments[0].files[0], fields=(2, 3)))
    fields = (*old.fields, *(replace(f, id=f.id + 2) for f in kit.load().manifest.fields))
    kit.edit(lambda m: replace(m, fields=fields, fragments=(replace(old.fragments[0], files=files),)))
    with pytest.raises(CorruptTableError, match="4 rows in fragment 0, which has 10"):
        kit.read()


def _at(version):
    from boathouse.table.location import At

    return At(version=version)
