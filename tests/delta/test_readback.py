"""No commit is published that our own reader refuses."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.commit import transaction
from boathouse.errors import CorruptTableError


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_delete_from_a_table_whose_checkpoint_has_a_file_twice_is_held_back(tmp_path, vectors):
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": "2"}
    t = bh.create(str(path), pa.schema([("x", pa.int64())]), format="delta", properties=properties)
    t.append(pa.table({"x": [1, 2, 3]}))
    t.append(pa.table({"x": [4]}))
    file = path / "_delta_log" / f"{2:020}.checkpoint.parquet"
    found = pq.read_table(file)
    pq.write_table(pa.concat_tables([found, found.filter(found.column("add").is_valid())]), file)
    before = sorted(p.name for p in path.rglob("*"))
    with pytest.raises(CorruptTableError, match=r"nothing was committed.* twice"):
        bh.open(str(path)).delete("x = 1")
    assert sorted(p.name for p in path.rglob("*")) == before
    assert bh.open(str(path)).version == 2


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"domainMetadata": "x"}, "not an object"),
        ({"add": {"path": "a", "partitionValues": {}, "size": "1", "dataChange": True}}, "wrong type"),
        ({"remove": {"dataChange": True}}, "has no path"),
    ],
)
def test_what_cannot_be_replayed_is_held_back(tmp_path, monkeypatch, action, message):
    path = tmp_path / "t"
    t = bh.create(str(path), pa.schema([("x", pa.int64())]), format="delta")
    real = transaction.metadata_actions
    monkeypatch.setattr(transaction, "metadata_actions", lambda *args: [*real(*args), action])
    with pytest.raises(CorruptTableError, match=f"nothing was committed.*{message}"):
        t.append(pa.table({"x": [1]}))
    monkeypatch.undo()
    assert [p.name for p in path.glob("*.parquet")] == []
    assert bh.open(str(path)).version == 0
