"""Counts of a version's files from the log alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
import boathouse.delta.snapshot
from boathouse.delta.log.entry import ADD
from boathouse.delta.sizes import FEW
from boathouse.errors import CorruptTableError

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 1, "sizeInBytes": 36}


def snapshot(made):
    return bh.open(str(made))._handle.snapshot


def made_with(raw, delta, *adds):
    made = raw()
    meta = delta.metadata([delta.field("x", "long")])
    made.commit(0, delta.PROTOCOL, meta, *(made.add(f"{i}.parquet", **a) for i, a in enumerate(adds)))
    return made


def summed(snapshot) -> tuple[int, int | None, int | None]:
    rows = [r for batch in snapshot.files() for r in batch.to_pylist()]
    if any(r["rows"] is None for r in rows):
        return len(rows), None, None
    return len(rows), sum(r["rows"] - r["deleted"] for r in rows), sum(r["deleted"] for r in rows)


STATS = {
    '{"numRecords":7}': 7,
    '{"numRecords":7,"minValues":{"x":1}}': 7,
    '{"minValues":{"numRecords":9},"numRecords":7}': 7,
    '{ "numRecords" : 7 }': 7,
    '{"numRecords":999999999999999999}': 999999999999999999,
    '{"numRecords":7, damaged': 7,
    '{"minValues":{}}': None,
    '{"numRecords":-1}': None,
    '{"numRecords":"7"}': None,
    '{"numRecords":7.0}': None,
    '{"numRecords":true}': None,
    "not JSON": None,
    "[]": None,
    "": None,
    None: None,
}


@pytest.mark.parametrize("stats", STATS)
def test_rows_are_those_of_the_statistics_or_unknown(raw, delta, stats):
    made = made_with(raw, delta, {"stats": '{"numRecords":3}'}, {"stats": stats})
    found = snapshot(made).sizes()
    assert (found.files, found.rows, found.deleted) == summed(snapshot(made))
    assert found.rows == (None if STATS[stats] is None else STATS[stats] + 3)


def test_vectors_and_removed_files_and_unknown_sizes(raw, delta):
    made = raw()
    stats = {"stats": '{"numRecords":50}'}
    meta = delta.metadata([delta.field("x", "long")])
    made.commit(0, delta.PROTOCOL, meta, *(made.add(f"{c}.parquet", **stats) for c in "abc"))
    vector = {"deletionVector": {**VECTOR, "cardinality": 6}}
    removed = [{"remove": {"path": f"{c}.parquet", "dataChange": True}} for c in "ab"]
    made.commit(1, *removed, made.add("a.parquet", **stats, **vector), made.add("d.parquet", **stats, size=None))
    found = snapshot(made).sizes(small=2)
    assert (found.files, found.rows, found.deleted) == summed(snapshot(made)) == (3, 144, 6)
    assert (found.bytes, found.small_files) == (2, 2)


@pytest.mark.parametrize(
    ("add", "bytes"), [({"size": 5.0}, 5), ({"size": "5"}, None), ({"size": 1 << 64}, None), ({"stats": {}}, None)]
)
def test_other_types_are_converted_or_refused_as_for_reading(raw, delta, add, bytes):
    made = made_with(raw, delta, add)
    if bytes is not None:
        assert snapshot(made).sizes().bytes == sum(b["size"][0].as_py() for b in snapshot(made).files()) == bytes
        return
    with pytest.raises(CorruptTableError, match="wrong type"):
        list(snapshot(made).files())
    with pytest.raises(CorruptTableError, match="wrong type"):
        snapshot(made).sizes()


@pytest.mark.parametrize("few", [0, FEW])
@pytest.mark.parametrize("texts", [True, False])
def test_a_checkpoint_with_statistics_as_structs(raw, delta, monkeypatch, few, texts):
    """Files of a checkpoint count by their text if they have one, else by their struct; replaced ones do not count."""
    monkeypatch.setattr(boathouse.delta.snapshot, "FEW", few)
    made = raw()
    meta = delta.metadata([delta.field("x", "long")])
    made.commit(0, delta.PROTOCOL, meta, *(made.add(f"{c}%20.parquet") for c in "abc"))
    add = [{"path": f"{c}%20.parquet", "partitionValues": [], "size": 8, "modificationTime": 1, "dataChange": True,
            "stats": '{"numRecords":70}' if texts and c == "b" else None, "stats_parsed": {"numRecords": rows}}
           for c, rows in zip("abc", (5, 7, 9))]  # fmt: skip
    parsed = pa.struct([("numRecords", pa.int64())])
    fields = [ADD.field(n) for n in ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats")]
    form = {"provider": "parquet"}
    protocol = pa.array([delta.PROTOCOL["protocol"]] + [None] * 4)
    columns = {
        "protocol": protocol,
        "metaData": pa.array([None, {**meta["metaData"], "configuration": None, "format": form}, *[None] * 3]),
        "add": pa.array([None, None, *add], pa.struct([*fields, ("stats_parsed", parsed)])),
    }
    pq.write_table(pa.table(columns), made.log / f"{0:020d}.checkpoint.parquet")
    removed = {"remove": {"path": "a%20.parquet", "dataChange": True}}
    made.commit(1, removed, made.add("d.parquet", stats='{"numRecords":1}'))
    found = snapshot(made)
    assert found.checkpoint is not None
    sizes = found.sizes()
    assert (sizes.files, sizes.rows, sizes.deleted) == summed(found) == (3, 80 if texts else 17, 0)
    assert sizes.bytes == 17
