"""The actions of a Delta table that is restored: live files and tombstones, by path and vector."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.checkpoint.writer import live_actions
from boathouse.delta.log.entry import ADD, REMOVE
from boathouse.delta.log.tail import unique_id

VECTORS = {"delta.enableDeletionVectors": "true"}
ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "city": ["Oslo", "東京"] * 10})


def keys(t, kind: str) -> set[tuple[str, str | None]]:
    """The live files or the tombstones of a version."""
    schema = ADD if kind == "add" else REMOVE
    found = [row for batch in live_actions(t._handle.snapshot, kind, schema) for row in batch.to_pylist()]
    made = [(row["path"], unique_id(row["deletionVector"])) for row in found]
    assert len(made) == len(set(made))
    return set(made)


def check(t, wanted: list[int]) -> None:
    theirs = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(t.uri)).execute("select id from t")
    for found in (bh.open(t.uri).to_arrow(), t.to_arrow(), pa.table(theirs)):
        assert sorted(found["id"].to_pylist()) == wanted


@pytest.mark.spec("D-173", "D-174", "D-176", "D-177")
@pytest.mark.parametrize(
    "properties", [{}, VECTORS, VECTORS | {"delta.columnMapping.mode": "id"}], ids=["rewritten", "vectors", "mapped"]
)
def test_files_and_vectors_of_deletes_of_a_delete_come_back(tmp_path, properties):
    """The vectors of the version are those that were in force then, not their union."""
    t = bh.create(str(tmp_path / "t"), ROWS.schema, "delta", partition_by="city", properties=properties)
    t.append(ROWS.slice(0, 10))
    t.append(ROWS.slice(10))
    t.delete("id = 4")
    first, wanted = t.version, [i for i in range(20) if i != 4]
    t.delete("id = 5")
    second, both = t.version, [i for i in wanted if i != 5]
    t.restore(first)
    check(t, wanted)
    live, gone = keys(t, "add"), keys(t, "remove")
    assert not live & gone  # what version `first` added, and then lost, is no tombstone any more
    assert live == keys(bh.open(t.uri, version=first), "add")
    assert gone > keys(bh.open(t.uri, version=first), "remove")
    assert gone >= keys(bh.open(t.uri, version=second), "add") - live
    deltalake.DeltaTable(t.uri).create_checkpoint()
    fresh = bh.open(t.uri)
    assert (keys(fresh, "add"), keys(fresh, "remove")) == (live, gone)
    check(fresh, wanted)
    fresh.restore(second)
    check(fresh, both)
    fresh.restore(first)
    fresh.delete("id = 6")
    check(fresh, [i for i in wanted if i != 6])
