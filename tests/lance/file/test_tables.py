"""Tables that pylance made, of each file version: changed by us in every way, read by both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
import lance
from boathouse.errors import UnsupportedFeatureError, UnsupportedTypeError

ROWS = 70
NOT_WRITTEN = {"struct_empty", "vector_struct", "vector_struct3"}
"""What pylance writes in some version, and we write in none."""
MAPS = {"map", "map_list"}
NULL_STRUCTS = {"struct", "struct_struct", "struct_list", "list_struct", "struct_all_null"}
NOT_IN = {"2.0": NOT_WRITTEN | MAPS | NULL_STRUCTS, "2.1": NOT_WRITTEN | MAPS, "2.2": NOT_WRITTEN}


def rows(kit, shapes, first):
    """A key, and a column of each shape: its values over and over where there are fewer."""
    found = {"k": pa.array(range(first, first + ROWS), pa.int64())}
    for shape in shapes:
        column = kit.build(shape, ROWS).column("a").combine_chunks()
        found[shape] = column.take(pa.array(np.arange(ROWS) % len(column)))
    return pa.table(found)


def ordered(table):
    """By key; without dictionaries, which with nulls among their values are not combined."""
    plain = pa.table({
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns)
    })  # fmt: skip
    return plain.sort_by("k")


def plain(column, kind):
    column = column.combine_chunks()
    column = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    return column.cast(kind) if pa.types.is_timestamp(kind) else column


def check(kit, uri, expected):
    """The rows by their key, as both read them."""
    dataset, want = lance.dataset(uri), ordered(expected)
    dataset.validate()
    theirs = dataset.to_table()
    for got in (ordered(theirs), ordered(bh.open(uri).to_arrow())):
        assert got.column("k").to_pylist() == want.column("k").to_pylist()
        for name in want.schema.names[1:]:
            kind = want.schema.field(name).type
            assert (name, kit.difference(plain(got.column(name), kind), want.column(name))) == (name, "")
    places = [0, len(want) // 2, len(want) - 1]
    assert repr(dataset.take(places).to_pylist()) == repr([theirs.slice(i, 1).to_pylist()[0] for i in places])


def without(table, keys):
    return table.filter(pc.invert(pc.is_in(table.column("k"), pa.array(keys, pa.int64()))))


def history(kit, uri, shapes, first, version):
    """Appends, deletes, updates, merges and compacts as both."""
    table, second = bh.open(uri), rows(kit, shapes, 1000)
    table.append(second)
    expected = pa.concat_tables([first, second])
    check(kit, uri, expected)
    table.delete("k % 10 = 3")
    table.update({"k": "k + 5000"}, where="k % 10 = 4")
    expected = without(expected, range(3, 2000, 10))
    moved = [k + 5000 if k % 10 == 4 else k for k in expected.column("k").to_pylist()]
    expected = expected.set_column(0, "k", pa.array(moved, pa.int64()))
    check(kit, uri, expected)
    fresh = pa.array([0, 9001, 1001, 9002, 9003], pa.int64())
    source = pa.concat_tables([first.slice(0, 2), second.slice(50, 3)]).set_column(0, "k", fresh)
    table.merge(source, on="target.k = source.k").when_matched_update_all().when_not_matched_insert_all().execute()
    expected = pa.concat_tables([without(expected, [0, 1001]), source])
    check(kit, uri, expected)
    table.optimize()
    check(kit, uri, expected)
    lance.dataset(uri).delete("k = 1001")
    lance.write_dataset(rows(kit, shapes, 20_000).slice(0, 3), uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    assert bh.open(uri).count() == lance.dataset(uri).count_rows() == len(expected) + 2
    files = [file for fragment in lance.dataset(uri).get_fragments() for file in fragment.data_files()]
    assert {f"{f.file_major_version}.{f.file_minor_version}" for f in files} == {version}


@pytest.mark.few(1)
@pytest.mark.spec("L-058", "L-101", "L-108", "L-111")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_shape_in_one_table(kit, version):
    shapes = [s for s in kit.shapes if s not in NOT_IN[version]]
    first = rows(kit, shapes, 0)
    kit.pylance(first, version)
    history(kit, f"{kit.tmp}/d{kit.count}", shapes, first, version)


@pytest.mark.slow
@pytest.mark.spec("L-108", "L-111")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_shape_in_a_table_of_its_own(kit, plain_shape, version):
    if plain_shape in NOT_IN[version]:
        pytest.skip("not in this version")
    first = rows(kit, [plain_shape], 0)
    kit.pylance(first, version)
    history(kit, f"{kit.tmp}/d{kit.count}", [plain_shape], first, version)


@pytest.mark.parametrize("kind", sorted(NOT_WRITTEN))
def test_what_only_pylance_writes(kit, kind):
    first = kit.build(kind, 10)
    kit.pylance(first)
    table = bh.open(f"{kit.tmp}/d{kit.count}")
    before = sorted(p.name for p in (kit.tmp / f"d{kit.count}").rglob("*"))
    try:
        table.append(first)
    except (UnsupportedFeatureError, UnsupportedTypeError):
        assert sorted(p.name for p in (kit.tmp / f"d{kit.count}").rglob("*")) == before
    else:
        assert lance.dataset(table.uri).count_rows() == 20
