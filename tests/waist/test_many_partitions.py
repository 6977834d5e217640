"""Rows for many partitions: one file a partition where the rows are in memory, few open files where they are not."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from peers import by_peer

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.arrow.schema import from_arrow
from boathouse.errors import StorageError
from boathouse.ops.tasks import partitioned, routing
from boathouse.ops.tasks.routing import same, split
from boathouse.types import PartitionField, PartitionSpec, Schema
from boathouse.types.partitioning import IDENTITY

FORMATS = ("delta", "iceberg")


def rows(count: int = 2_000, partitions: int = 300, chunk: int = 37) -> pa.Table:
    """In chunks; `n` counts the rows, and a few partitions are null."""
    place = np.random.default_rng(7).integers(0, partitions, count)
    table = pa.table(
        {
            "p": pa.array([None if v == 3 else f"p {v}" for v in place]),
            "n": np.arange(count),
            "f": pa.array([math.nan if v == 5 else None if v == 6 else v / 4 for v in place]),
            "s": pa.array([None if i % 11 == 0 else f"text {i}" for i in range(count)]),
        }
    )
    return pa.concat_tables([table.slice(i, chunk) for i in range(0, count, chunk)])


def by_columns(schema: Schema, names: list[str]) -> PartitionSpec:
    fields = (PartitionField(n, (n,), IDENTITY, 1000 + i, schema.field(n).type) for i, n in enumerate(names))
    return PartitionSpec(1, tuple(fields))


def data_files(path: str) -> list[Path]:
    return sorted(Path(path).rglob("*.parquet"))


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
def test_rows_in_memory_make_a_file_a_partition(tmp_path, format):
    path, data = str(tmp_path / "t"), rows()
    bh.write(data, path, format=format, partition_by="p")
    files = data_files(path)
    assert len(files) == pc.count_distinct(data["p"], "all").as_py()
    for file in files:
        numbers = pq.read_table(file, columns=["n"], partitioning=None)["n"].to_pylist()
        assert numbers == sorted(numbers)
    for found in (bh.open(path).to_arrow(), by_peer(path, format)):
        found = found.select(data.column_names).cast(data.schema).sort_by("n")
        assert repr(found.to_pylist()) == repr(data.to_pylist())
    assert bh.open(path).scan(where="f = 10.25").to_arrow().num_rows == pc.sum(pc.equal(data["f"], 10.25)).as_py()


def test_statistics_of_every_file_are_its_own(tmp_path):
    path = str(tmp_path / "t")
    bh.write(rows(), path, format="delta", partition_by="p")
    log = tmp_path / "t/_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    added = [a["add"] for a in actions if "add" in a]
    by_name = {file.name: file for file in data_files(path)}
    assert len(added) == len(by_name)
    for add in added:
        file = pq.read_table(by_name[add["path"].rpartition("/")[2]], partitioning=None)
        stats = json.loads(add["stats"])
        assert stats["numRecords"] == file.num_rows
        assert stats["nullCount"] == {name: file[name].null_count for name in file.column_names}
        nan = pc.sum(pc.is_nan(file["f"])).as_py() or 0
        assert stats["nanCount"] == {"f": nan}
        bounded = {n for n in file.column_names if file[n].null_count < file.num_rows and not (n == "f" and nan)}
        assert set(stats["minValues"]) == set(stats["maxValues"]) == bounded
        for name in bounded:
            assert stats["minValues"][name] == pc.min(file[name]).as_py()
            assert stats["maxValues"][name] == pc.max(file[name]).as_py()


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_is_gathered_within_bounds(tmp_path, format, monkeypatch):
    open_at_once = []
    write = partitioned.PartitionedWriter._write_partition
    held = []
    monkeypatch.setattr(
        partitioned.PartitionedWriter,
        "_write_partition",
        lambda self, values, part: (write(self, values, part), open_at_once.append(len(self._open))),
    )
    put = partitioned.PartitionedWriter.write
    monkeypatch.setattr(
        partitioned.PartitionedWriter,
        "write",
        lambda self, batch: (put(self, batch), held.append(self._waiting_bytes)),
    )
    limit = 10_000
    monkeypatch.setattr("boathouse.engines.local.GATHERED_BYTES", limit)
    path, data = str(tmp_path / "t"), rows()
    stream = pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
    bh.write(stream, path, format=format, partition_by="p")
    assert max(held) < limit and max(open_at_once) <= 32
    assert 300 < len(data_files(path)) < 1_900  # a file a batch and partition were 1,991
    assert repr(bh.open(path).to_arrow().sort_by("n").to_pylist()) == repr(data.to_pylist())


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
def test_files_of_a_partition_roll(tmp_path, format):
    path, data = str(tmp_path / "t"), rows(400_000, 2, 10_000)
    bh.create(path, data.schema, format=format, partition_by="p")
    bh.open(path).append(data, target_file_bytes=100_000)
    assert len(data_files(path)) > 4
    found = bh.open(path).to_arrow()
    assert found.num_rows == 400_000 and pc.sum(found["n"]) == pc.sum(data["n"])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("nth", [1, 20, 150])
def test_a_file_that_cannot_be_written_takes_the_others_with_it(tmp_path, format, nth, monkeypatch):
    opened = itertools.count(1)
    open_output = NativeFiles.open_output

    def failing(self: NativeFiles, uri: str) -> pa.NativeFile:
        if next(opened) == nth:
            raise StorageError("The disk is full.", where=uri)
        return open_output(self, uri)

    monkeypatch.setattr(NativeFiles, "open_output", failing)
    path = str(tmp_path / "t")
    with pytest.raises(StorageError, match="The disk is full"):
        bh.write(rows(), path, format=format, partition_by="p")
    assert next(opened) > nth and data_files(path) == []


def test_values_that_look_alike_are_told_apart():
    values = [0.0, -0.0, math.nan, None, -math.nan, 1.0, None, -0.0]
    table = pa.table({"p": pa.array(values), "q": pa.array([None, None, "", "", "", None, "", None]), "n": range(8)})
    schema = from_arrow(table.schema)
    spec = by_columns(schema, ["p", "q"])
    for batches in (table.to_batches(), table.to_batches(max_chunksize=1), table.to_batches(max_chunksize=3)):
        found: dict[object, list[int]] = {}
        for key, part in split(batches, spec, schema):
            found.setdefault(same(key), []).extend(part.column("n").to_pylist())
        assert found == {
            ("0.0", None): [0], ("-0.0", None): [1, 7], ("nan", ""): [2, 4], (None, ""): [3, 6], ("1.0", None): [5]
        }  # fmt: skip


def test_keys_beyond_64_bits_do_not_collide():
    count = 3_000
    random = np.random.default_rng(5)
    names = [f"k{i}" for i in range(7)]
    table = pa.table({n: random.permutation(count) for n in names} | {"n": np.arange(count)})
    schema = from_arrow(table.schema)
    spec = by_columns(schema, names)
    parts = list(split(table.to_batches(max_chunksize=700), spec, schema))
    assert len(parts) == count
    by_row = table.select(names).to_pylist()
    for key, part in parts:
        assert key == tuple(by_row[part.column("n")[0].as_py()].values())


def test_more_text_than_one_array_holds_is_taken_in_halves(monkeypatch):
    concat = pa.concat_arrays

    def narrow(arrays, *more):
        if sum(len(a) for a in arrays) > 10:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")
        return concat(arrays, *more)

    monkeypatch.setattr(routing.pa, "concat_arrays", narrow)
    table = rows(200, 5, 20)
    schema = from_arrow(table.schema)
    spec = by_columns(schema, ["p"])
    found: dict[object, list[int]] = {}
    for key, part in split(table.to_batches(), spec, schema):
        assert part.num_rows <= 10
        found.setdefault(key[0], []).extend(part.column("n").to_pylist())
    assert found == {p: [r["n"] for r in table.to_pylist() if r["p"] == p] for p in table["p"].unique().to_pylist()}
