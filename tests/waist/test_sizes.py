"""`sizes()` are the sums over `files()`, in every format."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
import boathouse.delta.snapshot
from boathouse.delta.sizes import FEW


def sums(snapshot, small: int) -> tuple[int, int, int | None, int | None, int]:
    """The same counts, from FILES by this test's own means."""
    rows = [r for batch in snapshot.files() for r in batch.to_pylist()]
    known = all(r["rows"] is not None and r["deleted"] is not None for r in rows)
    deleted = sum(r["deleted"] for r in rows) if known else None
    return (
        len(rows),
        sum(r["size"] for r in rows if r["size"] is not None),
        sum(r["rows"] - r["deleted"] for r in rows) if known else None,
        deleted,
        len([r for r in rows if r["size"] is not None and r["size"] < small]),
    )


def check(uri: str, format: str) -> tuple[int, int, int | None, int | None, int]:
    """Of two thresholds, one of them between the files' sizes."""
    snapshot = bh.open(uri, format=format)._handle.snapshot
    sizes = sorted(s for batch in snapshot.files() for s in batch["size"].to_pylist() if s is not None)
    for small in (sizes[len(sizes) // 2] if sizes else 1, 16 << 20):
        found = bh.open(uri, format=format)._handle.snapshot.sizes(small)
        counted = (found.files, found.bytes, found.rows, found.deleted, found.small_files)
        assert counted == sums(snapshot, small)
    return counted


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "t")


def test_an_empty_table(uri, format_name, make_people):
    bh.create(uri, make_people(0, 1).schema, format=format_name)
    assert check(uri, format_name) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize("by", [(), "city"])
def test_files_of_several_sizes_and_deleted_rows(uri, format_name, traits, properties, make_people, by):
    if by and not traits.partitions:
        pytest.skip("no partitions")
    t = bh.create(uri, make_people(0, 1).schema, format=format_name, partition_by=by, properties=properties)
    for count in (3, 40, 500):
        t.append(make_people(0, count))
    files, size, rows, deleted, small = check(uri, format_name)
    assert (rows, deleted, small) == (543, 0, files) and files >= 3 and size > 0
    t.delete("id = 20")
    _, _, rows, deleted, _ = check(uri, format_name)
    if deleted is None:  # the metadata does not say how many rows files of positions delete
        assert rows is None and t._handle.snapshot.row_deletes("delete") == "positions" and t.count() == 541
    else:
        assert rows == 541
        assert deleted == (2 if traits.marks_deletes or properties else 0)
    t.overwrite(make_people(0, 2))
    assert check(uri, format_name)[2] == 2


@pytest.mark.parametrize("few", [0, FEW])
def test_a_delta_table_with_a_checkpoint(uri, make_people, monkeypatch, few):
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.setattr(boathouse.delta.snapshot, "FEW", few)
    t = bh.create(uri, make_people(0, 1).schema, format="delta", properties={"delta.enableDeletionVectors": "true"})
    for count in (3, 40):
        t.append(make_people(0, count))
    t.delete("id = 2")
    deltalake.DeltaTable(uri).create_checkpoint()
    assert check(uri, "delta")[2:4] == (41, 2)  # of 3 and of 40 rows
    t.append(make_people(0, 5))
    t.delete("id >= 1 and id < 4")
    assert check(uri, "delta")[2] == 1 + 37 + 2  # id 0; 0 and 4 to 39; 0 and 4
    t.overwrite(make_people(0, 1))
    assert check(uri, "delta")[0] == 1


def test_lance_files_of_another(uri):
    lance = pytest.importorskip("lance")
    rows = pa.table({"id": range(100)})
    for i in range(3):
        lance.write_dataset(rows, uri, mode="append" if i else "create", max_rows_per_file=40)
    lance.dataset(uri).delete("id % 10 = 3")
    assert check(uri, "lance")[2:4] == (270, 30)
