"""Variant groups in Parquet footers and schemas: found, annotated, refused where they are none."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    InvalidArgumentError,
    MalformedVariant,
    SchemaMismatchError,
)
from boathouse.parquet.thrift_footer import annotate, annotated, read_footer_bytes
from boathouse.variant import Variant

VALUES = [{"a": 1, "b": "x"}, None, [1, {"c": None}], 5, {"a": "q", "é": {"deep": [True]}}, "text"]
WITH_VERSION, WITHOUT = bytes([0x0C, 0x20, 0x13, 0x01, 0x00, 0x00]), bytes([0x0C, 0x20, 0x00, 0x00])


def column(values: list[Any], type: pa.DataType = VARIANT_STORAGE) -> pa.Array:
    made = [None if v is ... else Variant.from_python(v) for v in values]
    return pa.array([None if v is None else {"metadata": v.metadata, "value": v.value} for v in made], type)


def python(array: Any) -> list[Any]:
    """`...` for SQL NULL, Python values else."""
    return [... if r is None else Variant(r["metadata"], r["value"]).to_python() for r in array.to_pylist()]


def footer(path: Path) -> bytes:
    with path.open("rb") as stream:
        return read_footer_bytes(stream, path.stat().st_size)


def with_footer(path: Path, change: Any) -> None:
    data = path.read_bytes()
    old = footer(path)
    new = change(old)
    path.write_bytes(data[: -8 - len(old)] + new + len(new).to_bytes(4, "little") + b"PAR1")


def nested(values: list[Any]) -> pa.Table:
    """The values at the top, in a list, as values of a map, in a struct, in a list of structs; nulls at every level."""
    v = column(values)
    n = len(values)
    field = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
    offsets = pa.array([0, None, *range(1, n), n][: n + 1], pa.int32())
    element = field.with_name("element")
    lists = pa.ListArray.from_arrays(offsets, v, type=pa.list_(element))
    keys = pa.array([f"k{i}" for i in range(n)])
    maps = pa.MapArray.from_arrays(offsets, keys, v, type=pa.map_(pa.string(), field.with_name("value")))
    mask = pa.array([i == 2 for i in range(n)])
    parts = [pa.field("x", pa.int64()), field]
    structs = pa.StructArray.from_arrays([pa.array(range(n)), v], fields=parts, mask=mask)
    deep = pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", pa.struct(parts))))
    names = ["v", "list", "map", "struct", "deep"]
    types = [field, *(pa.field(name, a.type) for name, a in zip(names[1:], (lists, maps, structs, deep)))]
    return pa.Table.from_arrays([v, lists, maps, structs, deep], schema=pa.schema(types))


PATHS = [("v",), ("list", "list", "element"), ("map", "key_value", "value"), ("struct", "v"),
         ("deep", "list", "element", "v")]  # fmt: skip


@pytest.mark.spec("V-001", "V-005")
def test_groups_are_annotated_and_found_at_every_depth(tmp_path):
    path = tmp_path / "nested.parquet"
    table = nested(VALUES)
    bh.write_parquet(table, path)
    found = annotated(footer(path))
    assert [(g.path, g.leaves, g.version) for g in found] == [(p, 2, 1) for p in PATHS]
    assert str(pq.ParquetFile(path).schema).count("(Variant(1))") == 5
    again = bh.read_parquet(path)
    assert again.to_pylist() == table.to_pylist()
    for name in table.column_names:
        assert again.column(name).null_count == table.column(name).null_count


@pytest.mark.spec("V-001", "V-007")
@pytest.mark.parametrize("how", ["a version", "no version", "none"])
def test_annotations_of_any_version_and_none(tmp_path, how):
    path = tmp_path / "file.parquet"
    values = [*VALUES, ...]
    bh.write_parquet(pa.table({"id": range(7), "v": column(values)}), path, variants=["v"])
    if how == "no version":
        with_footer(path, lambda f: f.replace(WITH_VERSION, WITHOUT))
        assert [g.version for g in annotated(footer(path))] == [None]
    if how == "none":
        pq.write_table(pa.table({"id": range(7), "v": column(values)}), path)
        assert annotated(footer(path)) == ()
        assert bh.read_parquet(path).schema.field("v").metadata is None
        with pytest.raises(ColumnNotFoundError, match=r"w.*as a variant"):
            bh.read_parquet(path, variants=["w"])
    got = bh.read_parquet(path, variants=["v"] if how == "none" else None)
    assert got.schema.field("v").metadata[MARK] == b"variant"
    assert python(got.column("v")) == values
    assert bh.read_parquet(path, columns=["id"], where="v IS NULL", variants=["v"])["id"].to_pylist() == [6]


@pytest.mark.spec("V-007")
def test_an_unannotated_variant_inside_others_is_named_by_its_path(tmp_path):
    path = tmp_path / "plain.parquet"
    table = nested(VALUES)
    bare = pa.Table.from_batches([pa.RecordBatch.from_arrays(b.columns, names=table.column_names)
                                  for b in table.to_batches()])  # fmt: skip
    pq.write_table(bare, path)
    named = ["v", "list.element", "map.value", "struct.v", "deep.element.v"]
    assert bh.read_parquet(path, variants=named).to_pylist() == table.to_pylist()


@pytest.mark.spec("V-002")
@pytest.mark.parametrize("order", list(itertools.permutations(["metadata", "value"])))
@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary()])
def test_the_parts_are_found_by_name(tmp_path, order, type):
    path = tmp_path / "order.parquet"
    stored = pa.struct([pa.field(name, type, False) for name in order])
    pq.write_table(pa.table({"v": column(VALUES, stored)}), path)
    assert python(bh.read_parquet(path, variants=["v"]).column("v")) == VALUES
    bh.write_parquet(pa.table({"v": column(VALUES, stored)}), path, variants=["v"])
    assert [f.name for f in pq.ParquetFile(path).schema_arrow.field("v").type] == ["metadata", "value"]
    assert python(bh.read_parquet(path).column("v")) == VALUES


@pytest.mark.spec("V-003")
@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"metadata": pa.int32(), "value": pa.binary()}, r"`v\.metadata` is int32"),
        ({"metadata": pa.binary(), "value": pa.string()}, r"`v\.value` is string"),
        ({"metadata": pa.binary()}, r"`v` is struct<metadata: binary>"),
        ({"value": pa.binary()}, r"`v` is struct<value: binary>"),
        ({"metadata": pa.binary(), "value": pa.binary(), "more": pa.int8()}, r"`v` is struct"),
    ],
)
def test_groups_that_are_no_variants_are_refused(tmp_path, parts, match):
    path = tmp_path / "bad.parquet"
    some = {pa.int32(): 1, pa.binary(): b"\0", pa.string(): "t", pa.int8(): 1}
    pq.write_table(pa.table({"v": pa.array([{k: some[t] for k, t in parts.items()}], pa.struct(parts.items()))}), path)
    with pytest.raises(SchemaMismatchError, match=match) as error:
        bh.read_parquet(path, variants=["v"])
    assert str(path) in str(error.value)
    with_footer(path, lambda f: annotate(f, [("v",)]))
    with pytest.raises(SchemaMismatchError, match=match):
        bh.read_parquet(path)


@pytest.mark.spec("V-003")
def test_nullable_metadata_is_read_where_it_is_there(tmp_path):
    path = tmp_path / "nullable.parquet"
    loose = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    pq.write_table(pa.table({"v": column([*VALUES, ...], loose)}), path)
    assert python(bh.read_parquet(path, variants=["v"]).column("v")) == [*VALUES, ...]
    pq.write_table(pa.table({"v": pa.array([{"metadata": b"\x11\0\0", "value": b"\0"}, None,
                                            {"metadata": None, "value": b"\0"}], loose)}), path)  # fmt: skip
    with pytest.raises(MalformedVariant, match="metadata of `v` is null") as error:
        bh.read_parquet(path, variants=["v"])
    assert error.value.row == 2


@pytest.mark.spec("V-004")
def test_an_unshredded_value_is_required(tmp_path):
    path = tmp_path / "required.parquet"
    bh.write_parquet(pa.table({"v": column([*VALUES, ...])}), path, variants=["v"])
    text = str(pq.ParquetFile(path).schema)
    assert "optional group field_id=-1 v (Variant(1)) {" in text
    assert "required binary field_id=-1 metadata;" in text
    assert "required binary field_id=-1 value;" in text


@pytest.mark.spec("V-008")
def test_sql_null_variant_null_and_a_missing_field_stay_apart(tmp_path):
    path = tmp_path / "nulls.parquet"
    values = [..., None, {}, {"a": None}]
    bh.write_parquet(pa.table({"v": column(values)}), path, variants=["v"])
    got = bh.read_parquet(path).column("v")
    assert python(got) == values
    assert [r and r["value"].hex() for r in got.to_pylist()] == [None, "00", "020000", "020100000100"]


@pytest.mark.parametrize("cut", [0, 3, 8, 11])
def test_files_that_end_too_early(tmp_path, cut):
    path = tmp_path / "cut.parquet"
    bh.write_parquet(pa.table({"v": column(VALUES)}), path, variants=["v"])
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CorruptTableError):
        bh.read_parquet(path)


def test_a_registered_extension_type_changes_nothing(tmp_path):
    class Theirs(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(VARIANT_STORAGE, "arrow.parquet.variant")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Theirs:
            return cls()

    path = tmp_path / "file.parquet"
    bh.write_parquet(nested(VALUES), path)
    pa.register_extension_type(Theirs())
    try:
        assert python(bh.read_parquet(path).column("v")) == VALUES
        extended = pa.table({"v": pa.ExtensionArray.from_storage(Theirs(), column(VALUES))})
        bh.write_parquet(extended, path)
    finally:
        pa.unregister_extension_type("arrow.parquet.variant")
    assert python(bh.read_parquet(path).column("v")) == VALUES


def thrift(elements: list[tuple[str, int]]) -> bytes:
    """A footer with nothing but a schema: names and numbers of children, groups called `v` annotated VARIANT."""

    def number(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)

    out = b"\x29\xfc" + number(len(elements))
    for name, children in elements:
        out += b"\x48" + number(len(name)) + name.encode()
        if children:
            out += b"\x15" + number(children << 1)
        out += (b"\x5c" + WITHOUT if name == "v" else b"") + b"\x00"
    return out + b"\x00"


def test_groups_are_counted() -> None:
    flat = [("root", 3), ("a", 0), ("v", 2), ("metadata", 0), ("g", 2), ("x", 0), ("v", 1), ("y", 0), ("z", 0)]
    found = annotated(thrift(flat))
    assert [(g.path, g.first, g.leaves) for g in found] == [(("v",), 1, 3), (("v", "g", "v"), 3, 1)]
    many = [("root", 20_000), *[("v", 1), ("x", 0)] * 20_000]
    assert len(annotated(thrift(many))) == 20_000
    with pytest.raises(CorruptTableError, match="announces"):
        annotated(thrift([("root", 2), ("v", 1)]))
    with pytest.raises(CorruptTableError, match="levels"):
        annotated(thrift([("root", 1), *[("v", 1)] * 50_000, ("x", 0)]))


@settings(max_examples=300)
@given(st.data())
def test_broken_footers_are_refused_and_never_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "good.parquet"
    if not path.exists():
        bh.write_parquet(nested(VALUES), path)
    good = bytearray(footer(path))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(good) - 1))
        good[at] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from([0x1C, 0x19, 0x1B, 0xFC, 0xF9])))
    if data.draw(st.booleans()):
        del good[data.draw(st.integers(0, len(good) - 1)) :]
    try:
        found = annotated(bytes(good))
        assert all(g.first >= 0 and g.leaves > 0 for g in found)
        annotate(bytes(good), [])
    except CorruptTableError:
        pass


@pytest.mark.parametrize("opening", [b"\x19\x1c" + b"\x19" * 5000, b"\x1c" * 5000, b"\x1b\x01\xbb" * 2000])
def test_footers_nested_without_end(opening: bytes) -> None:
    with pytest.raises(CorruptTableError):
        annotated(opening)


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.parquet"
    bh.write_parquet(pa.table({"x": [1, 2]}), path)
    before = path.read_bytes()

    def failing() -> Any:
        yield pa.record_batch({"x": [3]})
        raise RuntimeError("the source is lost")

    source = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), failing())
    with pytest.raises(RuntimeError, match="lost"):
        bh.write_parquet(source, path, row_group_rows=1)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["a.parquet"]
    bh.write_parquet(bh.read_parquet(path, where="x = 2"), path)
    assert bh.read_parquet(path).to_pylist() == [{"x": 2}]


@pytest.mark.parametrize("options", [{"row_group_rows": 0}, {"row_group_rows": -1}, {"compression": None}])
def test_impossible_options_are_refused(options: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        bh.write_parquet(pa.table({"x": [1, 2]}), tmp_path / "a.parquet", **options)
    assert not list(tmp_path.iterdir())
