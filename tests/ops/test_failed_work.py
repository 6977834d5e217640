"""Work of which nothing is told: the files that its tasks have written are found by their names."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import registry
from boathouse.engines.local import LocalEngine
from boathouse.ops.tasks.sink import sink_batches
from boathouse.ops.write import TaskWork

TABLES = {
    "delta": {"partition_by": ["p"], "properties": {"delta.enableChangeDataFeed": "true"}},
    "iceberg": {"partition_by": ["p"]},
    "lance": {},
}
ROWS = pa.record_batch({"id": pa.array([1, 2, 3], pa.int64()), "p": pa.array([0, 1, 2], pa.int64())})


@pytest.fixture(params=TABLES)
def context(request, tmp_path):
    """How a write with the id "ours" writes files, into a table that has some of another write."""
    bh.create(str(tmp_path / "t"), "id bigint, p bigint", format=request.param, **TABLES[request.param])
    snapshot = bh.open(str(tmp_path / "t"))._handle.snapshot
    list(sink_batches([ROWS], snapshot.write_context("ours-too")))
    return snapshot.write_context("ours")


def stored(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_an_interrupt_leaves_no_file_of_the_write(context, tmp_path):
    before, written = stored(tmp_path), threading.Event()

    def work(task):
        if task == 1:
            written.wait(60)
            assert any("-ours." in path for path in stored(tmp_path))
            raise KeyboardInterrupt
        yield from sink_batches([ROWS], context)
        written.set()

    with pytest.raises(KeyboardInterrupt):
        TaskWork(work, [0, 1], [1, 1], context).perform(LocalEngine())
    assert stored(tmp_path) == before
    assert any("-ours-too." in path for path in before)


def test_every_kind_of_file_has_the_ending_of_its_write(context, tmp_path):
    before = stored(tmp_path)
    rows = pa.Table.from_batches(sink_batches([ROWS], context), registry.tasks(context.format).outcomes_schema(context))
    new = stored(tmp_path) - before
    assert new and all("-ours." in path for path in new)
    assert sorted(context.files.named(context.directory, "-ours.")) == sorted(
        {*rows.column("path").drop_null().to_pylist()}
    )
    if context.changes is not None:
        assert any(path.startswith("t/_change_data/") for path in new)
