"""Parts of a manifest that are easily mistaken: sections at position 0, the next row id, ids of fields below 0,
dictionaries that cannot be, and fragments whose deleted rows are gone."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.lance.file.schema import fields_of
from boathouse.lance.manifests.file import parse, serialise

lance = pytest.importorskip("lance")

VERSIONS = ["legacy", "2.0", "2.1", "2.2"]


@pytest.mark.spec("L-012")
def test_an_index_section_at_position_0(kit, numbers):
    """Present there, in manifests of pylance and in ours, whose searches find every row; absent is another thing."""
    kit.pylance(numbers)
    assert kit.load().manifest.index_section is None and kit.load().document.index is None
    kit.dataset().create_scalar_index("a", "BTREE")
    theirs = kit.load()
    assert theirs.manifest.index_section == 0 and theirs.document.index
    assert kit.open().detail()["has_indices"]
    kit.open().append(pa.table({"a": [100], "s": ["new"]}))
    ours = kit.load()
    assert (ours.version, ours.manifest.index_section) == (3, 0) and ours.document.index == theirs.document.index
    assert [i.name for i in kit.dataset().describe_indices()] == ["a_idx"]
    for a in (7, 100):
        assert kit.dataset().to_table(filter=f"a = {a}").num_rows == 1
    without = parse(serialise(replace(ours.document, index=None)), where="m")
    assert without.manifest.index_section is None and without.index is None
    empty = parse(serialise(replace(ours.document, index=b"")), where="m")
    assert empty.manifest.index_section == 0 and empty.index == b""


@pytest.mark.spec("L-017")
def test_the_next_row_id_never_goes_back(kit, numbers):
    """Each library goes on where the other ended; without stable row ids it stays 0."""
    kit.pylance(numbers, enable_stable_row_ids=True)
    table, found = kit.open(), [kit.load().manifest.next_row_id]
    steps = (
        lambda: table.append(numbers),
        lambda: kit.dataset().insert(numbers),
        lambda: table.delete("a > 4"),
        lambda: table.update({"s": "'u'"}, where="a = 1"),
        lambda: table.overwrite(numbers.slice(0, 2)),
        lambda: kit.pylance(numbers.slice(0, 3), mode="overwrite"),
        lambda: table.restore(2),
        lambda: kit.dataset().insert(numbers),
    )
    for step in steps:
        step()
        found.append(kit.load().manifest.next_row_id)
    assert found == [10, 20, 30, 30, 30, 32, 35, 35, 45]
    ids = kit.dataset().to_table(with_row_id=True).column("_rowid").to_pylist()
    assert len({*ids}) == 30 and sorted(ids)[-10:] == [*range(35, 45)]
    assert sorted(kit.read(columns=["_row_id"]).column(0).to_pylist()) == sorted(ids)
    plain = type(kit)(kit.root.parent / "plain")
    plain.create(numbers).append(numbers)
    assert plain.load().manifest.next_row_id == 0


def renumbered(kit, ids):
    """The first data file with other ids of fields."""

    def edit(manifest):
        fragment = manifest.fragments[0]
        file = replace(fragment.files[0], fields=tuple(ids))
        return replace(manifest, fragments=(replace(fragment, files=(file, *fragment.files[1:])),))

    kit.edit(edit)


@pytest.mark.spec("L-031")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("id", [-2, -6, -(1 << 31)])
def test_columns_of_ids_below_0_are_not_read(kit, numbers, version, id):
    """A column under such an id is none of the table's: another file may have its values, else they are null."""
    kit.pylance(numbers.append_column("c", numbers.column("a")), data_storage_version=version)
    renumbered(kit, [0, 1, id])
    theirs = kit.dataset().to_table().to_pylist()
    assert kit.read().to_pylist() == theirs
    assert [row["c"] for row in theirs] == [None] * 10 and theirs[4]["s"] == "v4"
    assert kit.read(where="c IS NULL AND a > 7").num_rows == 2
    kit.open().delete("a = 3")
    assert kit.load().manifest.fragments[0].files[0].fields == (0, 1, id)
    assert kit.dataset().count_rows() == 9


@pytest.mark.spec("L-031")
def test_a_column_that_pylance_replaced(kit, numbers):
    """Its column in the old file is a tombstone: the values are those of the new file, and so after our commits."""
    kit.pylance(numbers.append_column("c", numbers.column("a")))
    values = pa.table({"c": pa.array([i * 11 for i in range(10)], pa.int64())})
    other = lance.write_dataset(values, str(kit.root.parent / "other"))
    fragment = other.get_fragments()[0]
    (file,) = fragment.data_files()
    (kit.root / "data" / file.path).write_bytes((kit.root.parent / "other/data" / file.path).read_bytes())
    file.fields = [2]
    made = lance.LanceOperation.DataReplacement([lance.LanceOperation.DataReplacementGroup(0, file)])
    lance.LanceDataset.commit(kit.uri, made, read_version=1)
    files = kit.load().manifest.fragments[0].files
    assert [f.fields for f in files] == [(0, 1, -2), (2,)]
    table = kit.open()
    table.update({"s": "'u'"}, where="c = 33")
    table.delete("c = 44")
    assert kit.read().to_pylist() == kit.dataset().to_table().to_pylist()
    assert sorted(kit.read(columns=["c"]).column(0).to_pylist()) == [i * 11 for i in range(10) if i != 4]
    table.optimize()
    assert kit.read(where="s = 'u'", columns=["c"]).column(0).to_pylist() == [33]
    assert kit.dataset().to_table(filter="c = 33").num_rows == 1


@pytest.mark.spec("L-031")
@pytest.mark.parametrize("version", ["legacy", "2.2"])
def test_a_field_without_an_id_is_damage(kit, numbers, version):
    kit.pylance(numbers, data_storage_version=version)
    renumbered(kit, [0, -1])
    with pytest.raises(CorruptTableError, match="has a field without an id"):
        kit.read()


NESTED = {
    "list": pa.array([[1], [2]], pa.list_(pa.int32())),
    "struct": pa.array([{"x": 1}, {"x": 2}]),
    "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "map": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int32())),
}


@pytest.mark.spec("L-041")
@pytest.mark.parametrize("values", NESTED.values(), ids=NESTED)
def test_dictionaries_of_nested_values(kit, values):
    """No file has them, as none of pylance's has; rows given so are written as the values that they are."""
    given = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], pa.int8()), values)
    rows = pa.table({"k": range(4), "d": given})
    with pytest.raises(OSError, match="dictionary"):
        kit.pylance(rows)
    with pytest.raises(UnsupportedTypeError, match="column `d`: a dictionary of"):
        fields_of(rows.schema)
    kit.create(rows)
    assert not kit.load().manifest.fields[1].logical_type.startswith("dict")
    assert kit.dataset().to_table().to_pylist() == rows.to_pylist() == kit.read().to_pylist()


@pytest.mark.spec("L-041")
@pytest.mark.parametrize("kind", ["list", "struct", "map", "large_list.struct", "fixed_size_list:float:2"])
def test_a_field_that_is_a_dictionary_of_nested_values(kit, numbers, kind):
    kit.create(numbers)
    kind = f"dict:{kind}:int8:false"
    kit.edit(lambda m: replace(m, fields=(m.fields[0], replace(m.fields[1], logical_type=kind))))
    for ask in (kit.read, lambda: kit.read(columns=["a"]), lambda: kit.open().delete("a = 1")):
        with pytest.raises(UnsupportedFeatureError, match=f"column `s`: a dictionary of nested values, '{kind}'"):
            ask()


@pytest.mark.spec("L-091")
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("who", ["ours", "theirs"])
def test_deleted_rows_go_from_the_files(kit, numbers, who, stable):
    """A compaction of a fragment with deleted rows: new files, addresses and coverage, and pylance's searches find
    every row that is left."""
    kit.pylance(numbers, enable_stable_row_ids=stable)
    kit.dataset().insert(pa.table({"a": pa.array(range(10, 20), pa.int64()), "s": ["w"] * 10}))
    kit.dataset().create_scalar_index("a", "BTREE")
    (kit.open() if who == "ours" else kit.dataset()).delete("a % 5 = 3")
    left = [a for a in range(20) if a % 5 != 3]
    before = kit.load().manifest
    if who == "ours":
        assert kit.open().optimize().files_removed == 2
    else:
        kit.dataset().optimize.compact_files()
    (fragment,) = kit.load().manifest.fragments
    assert (fragment.physical_rows, fragment.deletion_file, fragment.id > 1) == (16, None, True)
    assert kit.load().manifest.reader_feature_flags == 2 * stable
    assert {f.path for f in fragment.files}.isdisjoint(f.path for old in before.fragments for f in old.files)
    theirs = kit.dataset()
    found = theirs.to_table(with_row_address=True, with_row_id=True)
    assert found.column("a").to_pylist() == left == kit.read(columns=["a"]).column(0).to_pylist()
    assert found.column("_rowaddr").to_pylist() == [(fragment.id << 32) + i for i in range(16)]
    if stable:
        assert found.column("_rowid").to_pylist() == left
    for a in range(20):
        assert theirs.to_table(filter=f"a = {a}").num_rows == (a in left)
    if who == "ours":
        stats = theirs.stats.index_stats("a_idx")
        assert (stats["num_indexed_rows"], stats["num_unindexed_rows"]) == (16, 0)
        theirs.optimize.optimize_indices()
        assert kit.dataset().stats.index_stats("a_idx")["num_unindexed_rows"] == 0
    assert kit.open(version=before.version).count() == 16
