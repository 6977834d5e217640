"""Dictionary columns of tables of file version 0.1: their values are in the manifest file, and each commit of ours
carries them over."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError
from boathouse.lance.file.fields import Dictionary

lance = pytest.importorskip("lance")


def coded(values, type, keys=pa.int8()):
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1], keys), pa.array(values, type))


WORDS = coded(["ab", "cde"], pa.string())
COLUMNS = {
    "string": WORDS,
    "binary": coded([b"ab", b"cde"], pa.binary(), pa.int32()),
    "large_string": coded(["ab", "cdé"], pa.large_string()),
    "int64": coded([70, -71], pa.int64(), pa.uint16()),
    "uint8": coded([7, 255], pa.uint8()),
    "null value": coded(["ab", None], pa.string()),
    "struct": pa.StructArray.from_arrays([WORDS, coded([1, 2], pa.int16())], ["x", "y"]),
    "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), WORDS),
}
OPERATIONS = {
    "delete": lambda t: t.delete("id = 1"),
    "delete a fragment": lambda t: t.delete("id < 2"),
    "properties": lambda t: t.set_properties({"k": "v"}),
    "column": lambda t: t.add_column("n", "int"),
    "several": lambda t: (t.add_column("n", "int"), t.delete("id = 1"), t.set_properties({"k": "v"}), t.delete("id=3")),
}


def table(column, **more):
    return pa.table({"id": [0, 1, 2, 3], "c": column, "d": coded([5, 6], pa.int32()), **more})


def agree(kit):
    """Both libraries read the same, which is not only nulls."""
    theirs = kit.dataset().to_table().to_pylist()
    assert kit.read().to_pylist() == theirs
    return theirs


@pytest.mark.few(14)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_carried_over(kit, name, operation):
    rows = table(COLUMNS[name])
    kit.pylance(rows, data_storage_version="0.1", max_rows_per_file=2)
    before = kit.dataset().to_table().to_pylist()
    OPERATIONS[operation](kit.open())
    after = agree(kit)
    kept = {row["id"]: row for row in after}
    assert [{k: kept[row["id"]][k] for k in row} for row in before if row["id"] in kept] == [
        row for row in before if row["id"] in kept
    ]
    assert len(after) == 4 - {"delete": 1, "delete a fragment": 2, "several": 2}.get(operation, 0)


def test_each_library_goes_on_with_the_other(kit):
    rows = table(WORDS)
    kit.pylance(rows, data_storage_version="legacy")
    kit.open().delete("id = 1")
    kit.pylance(rows.slice(2), mode="append")
    assert len(agree(kit)) == 5
    kit.open().set_properties({"k": "v"})
    kit.dataset().delete("id = 0")
    kit.open().delete("id = 3")
    kit.dataset().optimize.compact_files()
    kit.open().set_properties({"k": "w"})
    assert [(row["id"], row["c"], row["d"]) for row in agree(kit)] == [(2, "ab", 5), (2, "ab", 5)]
    for version in range(1, kit.open().version + 1):
        theirs = kit.dataset(version=version).to_table()
        assert kit.open(version=version).to_arrow().to_pylist() == theirs.to_pylist()


def test_no_values(kit):
    """pylance cannot read this column, but the others."""
    kit.pylance(table(pa.array([None] * 4, pa.string()).dictionary_encode()), data_storage_version="0.1")
    kit.open().set_properties({"k": "v"})
    kit.open().add_column("n", "int")
    assert kit.dataset().to_table(columns=["d"]).column("d").to_pylist() == [5, 6, 5, 6]


def test_a_commit_that_is_rebased(kit):
    """The values come from the head, where they are at another place than in the version that was opened."""
    kit.pylance(table(WORDS), data_storage_version="0.1")
    stale = kit.open()
    kit.dataset().create_scalar_index("id", "BTREE")
    kit.open().set_properties({"a" * 100: "b" * 100})
    stale.delete("id = 1")
    assert [row["c"] for row in agree(kit)] == ["ab", "ab", "cde"]
    assert kit.dataset().describe_indices()


def test_delete_of_all_rows(kit):
    kit.pylance(table(WORDS), data_storage_version="0.1")
    kit.open().delete()
    assert agree(kit) == []
    kit.pylance(table(WORDS), mode="append")
    assert [row["c"] for row in agree(kit)] == ["ab", "cde", "ab", "cde"]


@pytest.mark.parametrize("place", [Dictionary(offset=10**6, length=2), Dictionary(offset=1, length=2)], ids=str)
def test_values_that_are_not_there(kit, place):
    """Nothing is committed that nobody could read."""
    kit.pylance(table(WORDS), data_storage_version="0.1")
    kit.edit(lambda m: replace(m, fields=tuple(replace(f, dictionary=place) if f.name == "c" else f for f in m.fields)))
    files = sorted(kit.root.rglob("*"))
    for operation in OPERATIONS.values():
        with pytest.raises(CorruptTableError, match="dictionary column `c`"):
            operation(kit.open())
    assert sorted(kit.root.rglob("*")) == files
    assert kit.read(columns=["c"]).column("c").to_pylist() == ["ab", "cde", "ab", "cde"]  # data files have them too
