"""What we write, read by pylance and by us: every shape, sizes, slices, pages, a dataset around the file."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance
from boathouse.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.lance.file import messages as m
from boathouse.lance.file.container import Container, Source
from boathouse.lance.file.schema import fields_of
from boathouse.lance.file.writer import LanceWriter
from lance.file import LanceFileReader


def check(kit, table, **options):
    kit.check(table, **options)


@pytest.mark.few(40)
@pytest.mark.spec("L-104", "L-107")
def test_every_shape(kit, plain_shape):
    for n in (0, 1, 5, 1025):
        check(kit, kit.build(plain_shape, n))
    check(kit, kit.build(plain_shape, 1100).slice(7, 1030))


NOT_IN = {
    "2.0": {"struct", "struct_struct", "struct_list", "list_struct", "struct_all_null", "map", "map_list"}
    | {"vector_struct", "vector_struct3"},
    "2.1": {"map", "map_list", "vector_struct", "vector_struct3"},
}


@pytest.mark.spec("L-101", "L-103", "L-092")
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_older_versions(kit, plain_shape, version):
    table = kit.build(plain_shape, 1025)
    if plain_shape in NOT_IN[version]:
        with pytest.raises(UnsupportedFeatureError, match=f"version {version}"):
            kit.ours(table, version=version)
    else:
        check(kit, table, version=version)
        check(kit, table.slice(3, 4), version=version)


def test_chunks_of_2_1_stay_small(kit):
    """One long string among short ones, and long runs of absent lists: chunks are at most 32 KiB there."""
    words = [f"w{i}" for i in range(5000)]
    words[2500] = "x" * 100_000
    check(kit, pa.table({"a": words}), version="2.1")
    lists = pa.array([[1], [2]] + [None, []] * 20_000 + [[3]] * 100, pa.list_(pa.int32()))
    check(kit, pa.table({"a": lists}), version="2.1")


@pytest.mark.spec("L-104", "L-107")
@pytest.mark.parametrize(
    "name", ["null_int64", "sequence", "hex", "null_bool", "category", "list_string", "list_list", "list_struct", "map"]
)
def test_many_chunks(kit, name):
    check(kit, kit.build(name, 70_000))


@pytest.mark.spec("L-099")
@pytest.mark.parametrize("name", ["int64", "null_string", "list_list", "struct_list", "embedding", "dictionary", "map"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_many_pages_from_many_batches(kit, name, version):
    if name in NOT_IN.get(version, ()):
        pytest.skip("refused, as test_older_versions shows")
    table = kit.build(name, 3000)
    sink = io.BytesIO()
    writer = LanceWriter(sink, table.schema, page_bytes=2000, version=version)
    for start in range(0, len(table), 700):
        writer.write(table.slice(start, 700))
    writer.close()
    container = Container(Source(pa.BufferReader(sink.getvalue()), "memory", None))
    assert len(container.column(0).pages) > 2
    path = str(kit.tmp / "pages.lance")
    (kit.tmp / "pages.lance").write_bytes(sink.getvalue())
    assert kit.difference(LanceFileReader(path).read_all().to_table().column("a"), table.column("a")) == ""
    with kit.open(path) as file:
        assert kit.difference(file.read().column("a"), table.column("a")) == ""
        picked = np.random.default_rng(0).integers(0, len(table), 40)
        assert kit.difference(file.take(picked).column("a"), table.column("a").take(pa.array(picked))) == ""


@pytest.mark.spec("L-093", "L-094", "L-095", "L-097")
def test_container(kit):
    table = pa.table({"a": [1, 2, 3], "b": pa.array([{"x": "p", "y": [1.5]}] * 3)}).replace_schema_metadata({"k": "v"})
    raw, summary = kit.ours(table)
    assert (summary.fields, summary.column_indices, summary.version) == ([0, 2, 4], [0, 1, 2], "2.2")
    first, columns_at, globals_at, n_global, n_columns, major, minor = struct.unpack("<QQQIIHH", raw[-40:-4])
    assert (n_global, n_columns, major, minor, raw[-4:]) == (1, 3, 2, 2, b"LANC")
    position, size = struct.unpack("<QQ", raw[globals_at : globals_at + 16])
    descriptor = m.FileDescriptor.decode(raw[position : position + size])
    assert position % 64 == 0
    assert descriptor.length == 3
    assert [(f.name, f.id, f.parent_id) for f in descriptor.schema.fields] == [
        ("a", 0, -1), ("b", 1, -1), ("x", 2, 1), ("y", 3, 1), ("item", 4, 3),
    ]  # fmt: skip
    assert descriptor.schema.metadata == {"k": b"v"}
    for i in range(3):
        position, size = struct.unpack("<QQ", raw[columns_at + 16 * i : columns_at + 16 * i + 16])
        assert i or position == first
        column = m.ColumnMetadata.decode(raw[position : position + size])
        assert column.encoding.direct is not None
        for page in column.pages:
            assert all(offset % 64 == 0 for offset in page.buffer_offsets)
            assert page.length == 3
            assert page.priority == 0


@pytest.mark.spec("L-111")
def test_pylance_works_on_a_dataset_of_our_file(kit):
    """Scan, filter, take, validate, delete, append, compact, index."""
    n = 5000
    table = pa.table({
        "id": np.arange(n), "s": [f"name-{i * 7919 % n}" for i in range(n)],
        "l": pa.array([None if i % 5 == 0 else [i, None][: i % 3] for i in range(n)], pa.list_(pa.int32())),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(n * 4, dtype="f4")), 4),
    })  # fmt: skip
    raw, summary = kit.ours(table)
    root = kit.tmp / "t"
    (root / "data").mkdir(parents=True)
    (root / "data" / "ours.lance").write_bytes(raw)
    file = lance.fragment.DataFile("ours.lance", summary.fields, summary.column_indices, 2, 2, summary.size)
    fragment = lance.fragment.FragmentMetadata(0, [file], n)
    dataset = lance.LanceDataset.commit(str(root), lance.LanceOperation.Overwrite(table.schema, [fragment]))
    dataset.validate()
    assert dataset.to_table().equals(table)
    assert dataset.count_rows("id >= 100 AND s LIKE 'name-1%'") == sum(
        i >= 100 and s.startswith("name-1") for i, s in enumerate(table.column("s").to_pylist())
    )
    dataset.delete("id % 10 = 3")
    dataset = lance.write_dataset(table.slice(0, 10), dataset.uri, mode="append")
    dataset.create_scalar_index("id", "BTREE")
    dataset.optimize.compact_files()
    assert dataset.count_rows() == n - n // 10 + 10
    assert dataset.to_table(filter="id = 4321").column("s").to_pylist() == [table.column("s")[4321].as_py()]


def test_ids_of_the_table_are_kept(kit):
    schema = pa.schema([("a", pa.struct([("x", pa.int32())])), ("b", pa.string())])
    fields = fields_of(schema, first_id=40)
    table = pa.table({"a": [{"x": 1}], "b": ["z"]}, schema=schema)
    raw, summary = kit.ours(table, fields=fields)
    assert summary.fields == [41, 42]
    with kit.open(raw) as file:
        assert file.fields == fields


@pytest.mark.spec("L-092", "L-056")
def test_refusals(kit):
    schema = pa.schema([("a", pa.int64())])
    for version in ("2.3", "0.1", "3.0"):
        with pytest.raises(UnsupportedFeatureError, match="version"):
            LanceWriter(io.BytesIO(), schema, version=version)
    with pytest.raises(UnsupportedTypeError, match="`a`"):
        LanceWriter(io.BytesIO(), pa.schema([("a", pa.month_day_nano_interval())]))
    writer = LanceWriter(io.BytesIO(), schema)
    with pytest.raises(SchemaMismatchError, match="`a` is string"):
        writer.write(pa.table({"a": ["x"]}))
    with pytest.raises(SchemaMismatchError):
        writer.write(pa.table({"b": [1]}))
    writer.write(pa.table({"a": [1]}))
    assert writer.close().rows == 1
    with pytest.raises(InvalidArgumentError):
        writer.close()
    with pytest.raises(UnsupportedFeatureError, match="without fields"):
        kit.ours(pa.table({"a": pa.array([{}, None], pa.struct([]))}))


def test_more_absent_lists_than_a_chunk_holds(kit):
    many = pa.array([[1]] + [None, []] * 70_000 + [[2]], pa.list_(pa.int32()))
    check(kit, pa.table({"a": many}))


scalars = {
    pa.int32(): st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1),
    pa.string(): st.text(max_size=5) | st.just("x" * 300),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(allow_nan=False),
    pa.list_(pa.int16(), 2): st.lists(st.none() | st.integers(-9, 9), min_size=2, max_size=2),
    pa.binary(3): st.binary(min_size=3, max_size=3),
}
kinds = st.recursive(
    st.sampled_from(list(scalars)),
    lambda inner: (
        st.builds(pa.list_, inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda ks: pa.struct([(f"m{i}", k) for i, k in enumerate(ks)]))
        | st.builds(pa.map_, st.just(pa.string()), inner)
    ),
    max_leaves=4,
)


def values(kind):
    if pa.types.is_list(kind):
        present = st.lists(values(kind.value_type), max_size=3)
    elif pa.types.is_struct(kind):
        present = st.fixed_dictionaries({f.name: values(f.type) for f in kind})
    elif pa.types.is_map(kind):
        present = st.dictionaries(st.text(max_size=2), values(kind.item_type), max_size=2).map(
            lambda d: list(d.items())
        )
    else:
        present = scalars[kind]
    return st.none() | present


@pytest.mark.spec("L-104")
@settings(max_examples=80)
@given(st.data())
def test_nested_round_trips(tmp_path_factory, data):
    kind = data.draw(kinds)
    rows = data.draw(st.lists(values(kind), max_size=12)) * data.draw(st.sampled_from([1, 1, 40]))
    table = pa.table({"a": pa.array(rows, kind)})
    path = tmp_path_factory.getbasetemp() / "nested.lance"
    with path.open("wb") as sink:
        writer = LanceWriter(sink, table.schema, page_bytes=data.draw(st.sampled_from([50, 8 << 20])))
        writer.write(table)
        writer.close()
    want = table.column("a").to_pylist()
    assert LanceFileReader(str(path)).read_all().to_table().column("a").to_pylist() == want
    from boathouse.lance.file.reader import LanceFile

    class Files:
        def open_input(self, uri):
            return pa.OSFile(uri)

    with LanceFile.open(Files(), str(path)) as file:
        got = file.read().column("a")
        got.validate(full=True)
        assert got.to_pylist() == want
        if rows:
            picked = np.arange(0, len(rows), 2)[::-1]
            assert file.take(picked).column("a").to_pylist() == [want[i] for i in picked]
