"""What other writers leave behind, and what they make of ours: members in several files, columns that are only read."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import CorruptTableError, SchemaMismatchError, UnsupportedTypeError

lance = pytest.importorskip("lance")

ROWS = pa.table(
    {
        "i": pa.array(range(50), pa.int64()),
        "s": pa.array([{"a": i, "b": f"b{i}"} if i % 5 else None for i in range(50)]),
        "n": pa.array([{"p": {"q": i, "r": i}} if i % 3 else None for i in range(50)]),
        "l": pa.array([[{"x": i, "y": str(i)}] * (i % 3) if i % 4 else None for i in range(50)]),
        "f": pa.array([{"v": [float(i), 1.0], "w": i} for i in range(50)]),
    }
)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("member", ["s.a", "n.p.q", "l.item.x", "f.w"])
def test_a_member_of_another_type(kit, version, member):
    """The member moves to a data file of its own; the column is put together from both."""
    kit.pylance(ROWS, data_storage_version=version)
    kit.dataset().alter_columns({"path": member, "data_type": pa.int32()})
    kit.dataset().delete("i = 8")
    theirs = kit.dataset().to_table()
    assert theirs.num_rows == 49
    assert kit.read().to_pylist() == theirs.to_pylist()
    assert kit.read(where="i = 7 OR i = 12").to_pylist() == ROWS.take([7, 12]).to_pylist()
    assert kit.read(where="i > 3", columns=[member.split(".")[0]]).num_rows == 45


def test_lists_of_different_lengths_in_two_files(kit):
    """Members of one list that come from files with other lists are damage."""
    other = ROWS.set_column(3, "l", pa.array([[{"x": 1, "y": "1"}]] * 50))
    source = kit.root.parent / "other"
    for rows, place in ((ROWS, kit.root), (other, source)):
        lance.write_dataset(rows.select(["i", "l"]), str(place), data_storage_version="2.2")
        lance.dataset(str(place)).alter_columns({"path": "l.item.x", "data_type": pa.int32()})
    ours, theirs = (
        max((place / "data").glob("*.lance"), key=lambda p: p.stat().st_mtime_ns) for place in (kit.root, source)
    )
    ours.write_bytes(theirs.read_bytes())
    kit.edit(lambda m: replace(m, fragments=tuple(_sized(f, 0) for f in m.fragments)))
    with pytest.raises(CorruptTableError, match="different"):
        kit.read()


def _sized(fragment, size):
    return replace(fragment, files=tuple(replace(f, file_size_bytes=size) for f in fragment.files))


@pytest.mark.spec("L-033")
@pytest.mark.parametrize("step", [-8, 8])
@pytest.mark.parametrize("version", ["legacy", "2.2"])
def test_a_recorded_size_that_is_wrong(kit, numbers, version, step):
    """Ignored for files of 0.1, as pylance ignores it; refused for newer ones, as pylance refuses it."""
    kit.pylance(numbers, data_storage_version=version)
    size = next((kit.root / "data").glob("*")).stat().st_size
    kit.edit(lambda m: replace(m, fragments=(_sized(m.fragments[0], size + step),)))
    if version == "legacy":
        assert kit.read() == kit.dataset().to_table()
    else:
        with pytest.raises(CorruptTableError, match=f"a file of {size} bytes, recorded with {size + step}"):
            kit.read()


READ_ONLY = pa.schema(
    [
        pa.field("k", pa.int64()),
        pa.field("b", pa.binary(2), True, {"ARROW:extension:name": "lance.bfloat16"}),
        pa.field("j", pa.string(), True, {"ARROW:extension:name": "arrow.json"}),
        pa.field("e", pa.struct([])),
    ]
)


def test_deletes_and_appends_of_columns_of_other_types(kit):
    bare = pa.array([{}] * 5, pa.struct([]))
    kit.pylance(pa.table([range(5), [b"\0\x3f"] * 5, ['{"a":1}'] * 5, bare], schema=READ_ONLY))
    table = kit.open()
    table.delete("k = 3")
    row = {"b": 0.5, "j": '{"a":1}', "e": {}}
    assert table.to_arrow().to_pylist() == [{"k": k, **row} for k in (0, 1, 2, 4)]
    table.delete("j LIKE '%a%' AND b = 0.5 AND k = 1")
    assert kit.dataset().count_rows() == 3
    table.append(table.to_arrow())
    assert kit.dataset().to_table().column("j").to_pylist() == ['{"a":1}'] * 6
    assert table.to_arrow().to_pylist() == [{"k": k, **row} for k in (0, 2, 4)] * 2


def test_scales_below_zero(kit):
    """decimal(5, -2) is read as the whole numbers that it means, and written as what it is."""
    values = pa.array([Decimal("3E2"), None, Decimal("-99999E2")], pa.decimal128(5, -2))
    kit.pylance(pa.table({"k": range(3), "d": values}))
    table = kit.open()
    assert str(table.schema.field("d").type) == "decimal(7,0)"
    assert table.to_arrow().column("d").to_pylist() == [Decimal(300), None, Decimal(-9999900)]
    assert table.scan(where="d > 299").to_arrow().num_rows == 1
    table.append(table.to_arrow())
    assert kit.dataset().to_table().column("d").combine_chunks() == pa.concat_arrays([values, values])
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"k": [1], "d": pa.array([Decimal(301)], pa.decimal128(7, 0))}))


def test_structs_without_members(kit):
    """pylance writes them; we read them and append to them, and make no new table with them."""
    bare = pa.struct([])
    whole = pa.table(
        {
            "k": pa.array(range(4), pa.int64()),
            "e": pa.array([{}] * 4, bare),
            "s": pa.array([{"x": {}, "y": i} for i in range(4)], pa.struct([("x", bare), ("y", pa.int32())])),
        }
    )
    kit.pylance(whole)
    assert kit.read().to_pylist() == whole.to_pylist()
    assert kit.read(where="k = 2", columns=["s"]).to_pylist() == [{"s": {"x": {}, "y": 2}}]
    with pytest.raises(UnsupportedTypeError, match="without fields"):
        bh.write(whole, str(kit.root.parent / "new"), format="lance")
    kit.pylance(whole.select(["k", "e"]), mode="overwrite")
    kit.open().append(whole.select(["k", "e"]))
    assert kit.dataset().to_table().column("e").to_pylist() == [{}] * 8


STRUCTS = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.float64())]), 2)


@pytest.mark.parametrize("kind", [STRUCTS, pa.list_(STRUCTS, 3), pa.struct([("v", STRUCTS)])])
def test_vectors_of_structs_are_not_made(kit, kind):
    """pylance cannot read them beside another column, so no table of ours has them."""
    with pytest.raises(UnsupportedTypeError, match="fixed-size list of structs"):
        bh.write(pa.table({"k": [1], "v": pa.nulls(1, kind)}), kit.uri, format="lance")
    assert not kit.root.exists() or kit.files() == set()


def test_vectors_of_vectors_are_what_pylance_reads(kit):
    inner = pa.list_(pa.float32(), 3)
    rows = [[[i, None, i + 0.25], None if i % 3 == 0 else [i, 1.0, 2.0]] if i % 5 else None for i in range(3000)]
    table = pa.table({"k": range(3000), "v": pa.array(rows, pa.list_(inner, 2))})
    kit.create(table)
    assert kit.dataset().to_table().to_pylist() == table.to_pylist() == kit.read().to_pylist()
    assert kit.dataset().take([7, 2999]).to_pylist() == table.take([7, 2999]).to_pylist()
