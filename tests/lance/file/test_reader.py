"""What pylance writes, read by us: every shape in every version, ranges, single rows, projections."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
import lance
from boathouse.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.lance.file.schema import Node, arrow_schema, fields_of, tree
from lance.file import LanceFileReader


@pytest.mark.few(60)
@pytest.mark.spec("L-104", "L-105", "L-106", "L-108", "L-109", "L-101", "L-102", "L-135")
@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0", "legacy"])
def test_every_shape(kit, shape, version):
    for n in (5, 1025):
        path, dataset = kit.pylance(kit.build(shape, n), version)
        want = dataset.to_table().column("a").combine_chunks()
        with kit.open(path) as file:
            check_all(kit, file, want)


def check_all(kit, file, want):
    n = len(want)
    assert file.num_rows == n
    assert kit.difference(file.read().column("a"), want) == ""
    rows = range(n // 3, n // 3 + max(1, n // 4)) if n else range(0)
    assert kit.difference(file.read(rows=rows).column("a"), want.slice(rows.start, len(rows))) == ""
    if n:
        rng = np.random.default_rng(n)
        for picked in (np.unique(rng.integers(0, n, 50)), rng.integers(0, n, 7)):
            assert kit.difference(file.take(picked).column("a"), want.take(pa.array(picked))) == ""
        batches = list(file.batches(batch_rows=max(1, n // 7)))
        assert max(b.num_rows for b in batches) <= max(1, n // 7)
        assert kit.difference(pa.chunked_array([b.column(0) for b in batches]), want) == ""


@pytest.mark.few(6)
@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
@pytest.mark.parametrize("name", ["null_int64", "hex", "null_string", "list_string", "list_list", "struct", "runs"])
def test_many_chunks(kit, name, version):
    path, dataset = kit.pylance(kit.build(name, 70_000), version)
    with kit.open(path) as file:
        check_all(kit, file, dataset.to_table().column("a").combine_chunks())


@pytest.mark.spec("L-099", "L-096")
def test_pages_of_columns_differ(kit):
    n = 1_300_000
    table = pa.table(
        {
            "a": pa.array(np.arange(n) * 7919 % 1_000_003 + 2**55),
            "b": np.arange(n) % 2 == 0,
            "c": [f"x{i}" for i in range(n)],
        }
    )
    path, _dataset = kit.pylance(table, max_rows_per_file=n)
    with kit.open(path) as file:
        for name in "abc":
            assert kit.difference(file.read([name]).column(name), table.column(name)) == ""
        picked = np.array([0, 1_048_575, 1_048_576, n - 1, 700_000])
        assert file.take(picked).equals(table.take(picked))
        assert file.read(rows=range(900_000, 1_100_000)).equals(table.slice(900_000, 200_000))


@pytest.mark.spec("L-098", "L-112", "L-093")
def test_reads_only_what_is_asked_for(kit):
    n = 20_000
    rng = np.random.default_rng(0)
    table = pa.table({f"c{i}": rng.random(n) for i in range(40)})
    path, _ = kit.pylance(table)
    files = kit.LocalFiles()
    with type(kit.open(path)).open(files, path, size=os.path.getsize(path)) as file:
        at_open = files.bytes
        assert at_open <= 64 << 10
        assert file.read(["c3"]).column(0).to_pylist() == table.column("c3").to_pylist()
        assert files.bytes - at_open < 2 * n * 8
        before = files.bytes
        assert file.take(np.array([5, 19_000]), ["c7"]).num_rows == 2
        assert files.bytes - before < 40_000


def test_fields_of_the_table_lead(kit):
    """Renamed fields, missing ones, members left out: by id, not by name."""
    table = pa.table({"a": pa.array([{"x": 1, "y": "p"}, None]), "b": [1, 2]})
    path, _ = kit.pylance(table)
    with kit.open(path) as file:
        a = file.node("a")
        only_y = Node(a.field, (a.children[1],))
        assert file.read([only_y]).column(0).to_pylist() == [{"y": "p"}, None]
        named = [
            ("a", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("b2", pa.int64()),
            ("new", pa.list_(pa.int8())),
        ]
        wider = tree(fields_of(pa.schema(named)))
        assert file.read(wider).to_pydict() == {
            "a": [{"x": 1, "y": "p"}, None], "b2": [1, 2], "new": [None, None],
        }  # fmt: skip
        assert file.read([], rows=range(1, 2)).num_rows == 1
        with pytest.raises(ColumnNotFoundError):
            file.node("c")
        for rows in (range(0, 3), range(-1, 1)):
            with pytest.raises(InvalidArgumentError):
                file.read(rows=rows)
        with pytest.raises(InvalidArgumentError):
            file.take(np.array([2]))


@pytest.mark.spec("L-032", "L-110")
def test_newer_versions_are_refused(kit):
    path, _ = kit.pylance(pa.table({"a": [1, 2, 3]}))
    raw = bytearray(Path(path).read_bytes())
    for minor in (3, 9):
        raw[-6] = minor
        with pytest.raises(UnsupportedFeatureError, match=f"2.{minor}"):
            kit.open(bytes(raw))


@pytest.mark.spec("L-106")
def test_blob_descriptors_name_the_bytes(kit):
    field = pa.field("a", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"abc", None, b"zz"], pa.large_binary())], schema=pa.schema([field]))
    for version in ("2.0", "2.1", "2.2"):
        path, dataset = kit.pylance(table, version)
        with kit.open(path) as file:
            found = file.read().column("a").to_pylist()
            assert found == dataset.to_table().column("a").to_pylist()
            assert file.read_bytes(found[2]["position"], found[2]["size"]) == b"zz"


def test_schema_round_trip():
    schema = pa.schema([
        pa.field("a", pa.list_(pa.struct([("x", pa.int32()), pa.field("y", pa.string(), False)])), metadata={"k": "v"}),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("f", pa.list_(pa.list_(pa.float16(), 2), 3)),
        ("s", pa.list_(pa.struct([("x", pa.int32())]), 2)),
        ("d", pa.dictionary(pa.int16(), pa.timestamp("us", "UTC"))),
        *((f"t{i}", t) for i, t in enumerate([
            pa.timestamp("ns", "+02:00"), pa.duration("s"), pa.time32("ms"), pa.date64(), pa.decimal256(60, 3),
            pa.binary(5), pa.large_string(), pa.large_binary(), pa.uint16(), pa.null(), pa.large_list(pa.bool_()),
        ])),
    ])  # fmt: skip
    assert arrow_schema(fields_of(schema)).equals(schema, check_metadata=True)


@pytest.mark.spec("L-042")
@pytest.mark.parametrize(
    "kind",
    [
        pa.month_day_nano_interval(),
        pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.decimal32(5, 1),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
)
def test_types_that_lance_cannot_hold(kind):
    with pytest.raises(TypeError, match=r"`c\.x`"):
        fields_of(pa.schema([("c", pa.struct([("x", kind)]))]))


@pytest.mark.parametrize("kind", ["uuid", "json"])
def test_extension_types(kit, kind):
    if kind == "uuid":
        array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))] * 3, pa.binary(16)))
    else:
        array = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None, "[]"]))
    path, _dataset = kit.pylance(pa.table({"a": array}))
    with kit.open(path) as file:
        got = file.read().column("a")
        assert file.schema.field("a").metadata[b"ARROW:extension:name"] in (b"arrow.uuid", b"lance.json")
        assert got.null_count == array.null_count
        if kind == "uuid":
            assert got.to_pylist() == array.storage.to_pylist()


def corpus():
    root = Path(os.environ.get("BOATHOUSE_CORPORA", Path(__file__).parents[3].parent / "shared" / "corpora"))
    return root / "lance" / "test_data"


@pytest.mark.spec("L-108")
def test_corpus(kit):
    if not corpus().is_dir():
        pytest.skip(f"no corpus at {corpus()}")
    compared = 0
    for root in sorted(
        {os.path.dirname(os.path.dirname(p)) for p in glob.glob(f"{corpus()}/**/_versions/*", recursive=True)}
    ):
        if "corrupt_schema" in root:  # its files disagree with their manifest
            continue
        dataset = lance.dataset(root)
        for fragment in dataset.get_fragments():
            part = fragment.metadata.files[0]
            path = f"{root}/data/{part.path}"
            if not os.path.exists(path) or fragment.metadata.deletion_file is not None:
                continue
            with kit.open(path) as file:
                names = [n.name for n in file.nodes if n.name in dataset.schema.names]
                want = fragment.to_table(columns=names)
                for name in names:
                    assert kit.difference(file.read([name]).column(0), want.column(name)) == "", (path, name)
            compared += 1
    assert compared >= 20


@pytest.mark.spec("L-100", "L-033")
def test_wrong_size_is_refused(kit):
    path, _ = kit.pylance(pa.table({"a": [1, 2, 3]}))
    size = os.path.getsize(path)
    for wrong in (size - 1, size + 1, 10):
        with pytest.raises(CorruptTableError):
            kit.open(path, size=wrong).read()


EMPTY = {
    "binary": (pa.binary(0), [b"", b"", b""]),
    "nulls": (pa.binary(0), [b"", None, b""]),
    "lists": (pa.list_(pa.binary(0)), [[b"", b""], [], None]),
    "vectors": (pa.list_(pa.binary(0), 2), [[b"", b""]] * 3),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("layout", ["fullzip", "miniblock"])
@pytest.mark.parametrize("name", EMPTY)
def test_values_without_bytes(tmp_path, name, layout, version):
    """Which pylance writes, and cannot read."""
    type, values = EMPTY[name]
    field = pa.field("c", type, metadata={"lance-encoding:structural-encoding": layout})
    table = pa.table([[1, 2, 3], pa.array(values, type)], schema=pa.schema([("i", pa.int64()), field]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    assert bh.open(str(tmp_path / "t")).to_arrow().to_pylist() == table.to_pylist()
    assert bh.open(str(tmp_path / "t")).scan(where="i = 2").to_arrow().to_pylist() == table.slice(1, 1).to_pylist()


@pytest.mark.parametrize("inner", [pa.float32(), pa.list_(pa.int8(), 0)], ids=["flat", "nested"])
def test_fixed_size_lists_without_items(kit, inner):
    """In files of 2.0, which older releases of pylance have written."""
    type = pa.list_(inner, 0)
    for values in ([[], [], []], [[], None, []]):
        column = pa.array(values, type)
        table = pa.table({"c": column, "l": pa.array([values, [], None], pa.list_(type)), "i": [1, 2, 3]})
        data, _ = kit.ours(table, version="2.0")
        with kit.open(data) as file:
            assert file.read().to_pylist() == table.to_pylist()
            assert file.take(np.array([0, 2])).to_pylist() == table.take([0, 2]).to_pylist()


def test_fixed_size_lists_without_items_are_not_written(tmp_path):
    with pytest.raises(UnsupportedTypeError, match="without elements"):
        bh.write(pa.table({"c": pa.array([[]], pa.list_(pa.int8(), 0))}), str(tmp_path / "t"), format="lance")


NULL_LISTS = {
    "flat": (pa.list_(pa.null(), 3), [[None] * 3, None, [None] * 3]),
    "without nulls": (pa.list_(pa.null(), 3), [[None] * 3] * 3),
    "nested": (pa.list_(pa.list_(pa.null(), 2), 2), [[[None] * 2, None], None, [[None] * 2] * 2]),
    "large": (pa.list_(pa.null(), 5000), [[None] * 5000, None, [None] * 5000]),
    "in lists": (pa.list_(pa.list_(pa.null(), 2)), [[[None] * 2, None], None, []]),
    "in structs": (pa.struct([("a", pa.list_(pa.null(), 2)), ("b", pa.int32())]), [{"a": [None] * 2, "b": 1}] * 3),
    "in null structs": (pa.struct([("a", pa.list_(pa.null(), 2))]), [{"a": [None] * 2}, None, {"a": None}]),
    "in maps": (pa.map_(pa.string(), pa.list_(pa.null(), 2)), [[("a", [None] * 2), ("b", None)], None, []]),
}
NOT_STORED = {("2.0", "in null structs"), ("2.0", "in maps"), ("2.1", "in maps")}
"""Which pylance refuses."""


@pytest.mark.few(13)
@pytest.mark.spec("L-040")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("layout", [None, "fullzip"])
@pytest.mark.parametrize("name", NULL_LISTS)
def test_fixed_size_lists_of_nulls(tmp_path, name, layout, version):
    if (version, name) in NOT_STORED:
        return
    type, values = NULL_LISTS[name]
    field = pa.field("c", type, metadata={"lance-encoding:structural-encoding": layout} if layout else None)
    table = pa.table([[1, 2, 3], pa.array(values, type)], schema=pa.schema([("i", pa.int64()), field]))
    table = pa.concat_tables([table] * 50)
    lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    ours = bh.open(str(tmp_path / "t"))
    assert ours.to_arrow().to_pylist() == lance.dataset(tmp_path / "t").to_table().to_pylist() == table.to_pylist()
    assert ours.scan(where="i = 2").to_arrow().to_pylist() == [table.slice(1, 1).to_pylist()[0]] * 50


@pytest.mark.few(3)
@pytest.mark.spec("L-040")
@pytest.mark.parametrize("name", NULL_LISTS)
def test_fixed_size_lists_of_nulls_are_written(tmp_path, name):
    """Onto tables of pylance, and as new ones; pylance reads, takes, filters and compacts them."""
    type, values = NULL_LISTS[name]
    table = pa.table({"i": [1, 2, 3], "c": pa.array(values, type)})
    many = pa.concat_tables([table.slice(1), table] * 60).combine_chunks()
    uri = str(tmp_path / "t")
    lance.write_dataset(table, uri, data_storage_version="2.2")
    ours = bh.open(uri)
    ours.append(many)
    ours.append(table.slice(2))
    ours.append(table.slice(0, 1))
    ours.delete("i = 1")
    bh.write(many, str(tmp_path / "new"), format="lance")
    rows = [r for r in (table.to_pylist() + many.to_pylist() + table.slice(2).to_pylist()) if r["i"] != 1]
    for path, expected in ((uri, rows), (str(tmp_path / "new"), many.to_pylist())):
        theirs = lance.dataset(path)
        theirs.validate()
        assert theirs.to_table().to_pylist() == bh.open(path).to_arrow().to_pylist() == expected
        assert theirs.take([0, 2]).to_pylist() == [expected[0], expected[2]]
        found = [r for r in expected if r["i"] == 3]
        assert theirs.to_table(filter="i = 3").to_pylist() == found
        assert bh.open(path).scan(where="i = 3").to_arrow().to_pylist() == found
    assert bh.open(uri).optimize().files_removed
    assert lance.dataset(uri).to_table().to_pylist() == rows
    lance.dataset(str(tmp_path / "new")).optimize.compact_files()
    assert bh.open(str(tmp_path / "new")).to_arrow().to_pylist() == many.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("name", NULL_LISTS)
def test_fixed_size_lists_of_nulls_in_older_files(kit, tmp_path, name, version):
    if (version, name) in NOT_STORED:
        return
    type, values = NULL_LISTS[name]
    table = pa.table({"i": [1, 2, 3], "c": pa.array(values, type)})
    table = pa.concat_tables([table.slice(1), table] * 20).combine_chunks()
    data, _ = kit.ours(table, version=version)
    with kit.open(data) as file:
        assert file.read().to_pylist() == table.to_pylist()
    (tmp_path / "theirs.lance").write_bytes(data)
    theirs = LanceFileReader(str(tmp_path / "theirs.lance"))
    assert theirs.read_all().to_table().to_pylist() == table.to_pylist()
    assert theirs.take_rows([0, 4, 6]).to_table().to_pylist() == table.take([0, 4, 6]).to_pylist()
