"""What others see of our columns: the C interface, marks on fields, and that nothing is registered."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse.variant.arrays as arrays
from boathouse.arrow.schema import VARIANT_MARKS, VARIANT_STORAGE, from_arrow, is_variant_field, to_arrow
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, MalformedVariant, SchemaMismatchError
from boathouse.types import VARIANT, Field, ListType, Schema, StructType
from boathouse.variant import Variant
from boathouse.variant.arrays import VariantArray, annotate
from boathouse.variant.columns.from_json import from_json
from boathouse.variant.columns.to_json import to_json

VALUES = [{"a": 1, "b": ["x", None]}, None, "text", 1.5]


@pytest.fixture
def made():
    return VariantArray.from_python(VALUES)


def table_of(array):
    return pa.table([array.storage], pa.schema([arrays.field("v")]))


def test_rows(made):
    assert len(made) == 4 and made.null_count == 1
    assert made[0] == Variant.from_python(VALUES[0]) and made[1] is None and made[-1] == Variant.from_python(1.5)
    assert [row if row is None else row.to_python() for row in made] == VALUES == made.to_pylist()
    assert made[1:3].to_pylist() == VALUES[1:3] and made[::-2].to_pylist() == VALUES[::-2]
    assert len(made[3:1]) == 0
    assert made.to_json().to_pylist() == ['{"a":1,"b":["x",null]}', None, '"text"', "1.5"]
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            made[wrong]
    assert "VariantArray of 4 rows" in repr(made) and "None" in repr(made)


def test_equality_is_that_of_the_values(made):
    assert made == VariantArray.from_python(VALUES) and made != made[:3] and made != VALUES
    one, other = Variant(b"\x11\x00\x00", b"\x0c\x01"), Variant(b"\x11\x00\x00", b"\x20\x02\x64\x00\x00\x00")
    assert VariantArray.from_variants([one]) == VariantArray.from_variants([other])
    with pytest.raises(TypeError):
        hash(made)


def test_chunks_are_kept(made):
    storage = pa.chunked_array([made.storage.slice(0, 1), made.storage.slice(0, 0), made.storage.slice(1)])
    chunked = VariantArray(storage)
    assert chunked == made and chunked[3] == made[3] and chunked[1:].to_pylist() == VALUES[1:]
    assert chunked.to_json().num_chunks == 2
    assert pa.chunked_array(chunked).equals(storage)
    assert pa.array(chunked).equals(made.storage)
    assert len(pa.array(VariantArray(pa.chunked_array([], VARIANT_STORAGE)))) == 0


def test_malformed_metadata_is_told_when_a_row_is_asked_for(made):
    wrong = pa.StructArray.from_arrays([pa.array([b"\x00"]), pa.array([b"\x00"])], ["metadata", "value"])
    array = VariantArray(wrong)
    with pytest.raises(MalformedVariant):
        array[0]


@pytest.mark.parametrize(
    "other",
    [
        pa.array([1]),
        pa.array([{"metadata": b"", "value": 1}]),
        pa.array([{"metadata": b""}]),
        pa.array([{"metadata": b"", "value": b"", "typed_value": 1}]),
        pa.chunked_array([], pa.int8()),
    ],
)
def test_what_is_no_column_of_variants_is_refused(other):
    with pytest.raises(SchemaMismatchError):
        VariantArray(other)
    with pytest.raises(InvalidArgumentError):
        VariantArray([1])


def test_others_see_the_extension(made):
    series = polars.Series("v", made)
    assert "arrow.parquet.variant" in str(series.dtype)
    assert VariantArray(series.to_arrow()) == made
    assert VariantArray(series) == made
    table = table_of(made)
    assert "arrow.parquet.variant" in str(polars.from_arrow(table).schema["v"])
    seen = duckdb.from_arrow(table)
    assert str(seen.types[0]) == "VARIANT"
    assert seen.select("v.a::int").fetchall()[0] == (1,)
    back = seen.to_arrow_table()
    assert is_variant_field(back.schema.field("v")) and VariantArray(back["v"])[0] == made[0]


def test_dictionary_encoded_and_view_storage_is_exported_too(made):
    storage = made.storage
    metadata, value = storage.field("metadata"), storage.field("value")
    views = pa.StructArray.from_arrays(
        [metadata.cast(pa.binary_view()), value.cast(pa.binary_view())], ["metadata", "value"], mask=storage.is_null()
    )
    assert VariantArray(views) == made
    assert VariantArray(pa.array(VariantArray(views))) == made
    coded = pa.StructArray.from_arrays(
        [metadata.dictionary_encode(), value], ["metadata", "value"], mask=storage.is_null()
    )
    assert VariantArray(pa.array(VariantArray(coded))) == made


def test_nothing_is_registered_and_files_can_be_written(tmp_path):
    """In a process of its own: pyarrow crashes on writing an extension type of that name."""
    script = f"""
        import pyarrow as pa, pyarrow.parquet as pq
        import boathouse.variant.arrays as arrays
        from boathouse.variant.columns.to_json import to_json
        made = arrays.VariantArray.from_python([dict(a=1), None])
        pa.array(made), pa.chunked_array(made)
        table = pa.table([made.storage], pa.schema([arrays.field("v")]))
        pq.write_table(table, {str(tmp_path / "t.parquet")!r})
        back = pq.read_table({str(tmp_path / "t.parquet")!r})
        assert isinstance(back.schema.field("v").type, pa.StructType), back.schema
        assert to_json(back["v"]).to_pylist() == ['{{"a":1}}', None]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        again = pa.ipc.open_stream(sink.getvalue()).read_all()
        assert again.schema.equals(table.schema, check_metadata=True)
        assert isinstance(again.schema.field("v").type, pa.StructType)
        try:
            pa.unregister_extension_type("arrow.parquet.variant")
        except KeyError:
            print("not registered")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "not registered"), done.stderr


def test_a_registered_type_of_others_is_read(made):
    class Registered(pa.ExtensionType):
        def __init__(self, storage=VARIANT_STORAGE):
            super().__init__(storage, "arrow.parquet.variant")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls(storage)

    pa.register_extension_type(Registered())
    try:
        found = pa.array(made)
        assert isinstance(found, pa.ExtensionArray)
        assert VariantArray(found) == made and to_json(found).equals(made.to_json())
        assert next(iter(from_arrow(pa.schema([pa.field("v", found.type)])))).type == VARIANT
        assert annotate(pa.table({"v": found})).schema.field("v").type == found.type
    finally:
        pa.unregister_extension_type("arrow.parquet.variant")


@pytest.mark.parametrize("marks", [{b"boathouse:type": b"variant"}, {b"ARROW:extension:name": b"arrow.parquet.variant"},
                                   {b"ARROW:extension:name": b"parquet.variant"}])  # fmt: skip
def test_either_mark_makes_a_variant(marks):
    field = pa.field("v", VARIANT_STORAGE, metadata=marks)
    assert next(iter(from_arrow(pa.schema([field])))).type == VARIANT
    other = pa.field("v", VARIANT_STORAGE, metadata={b"ARROW:extension:name": b"\xff"})
    assert next(iter(from_arrow(pa.schema([other])))).type != VARIANT


def test_schemas_bear_both_marks_at_any_depth():
    schema = Schema((
        Field("v", VARIANT),
        Field("s", StructType((Field("l", ListType(Field("element", VARIANT))),))),
    ))  # fmt: skip
    found = to_arrow(schema)
    for field in (found.field("v"), found.field("s").type.field("l").type.value_field):
        assert field.metadata == VARIANT_MARKS
    assert from_arrow(found) == schema


def test_annotate(made):
    storage = made.storage
    listed = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), storage)
    inner = pa.field("element", VARIANT_STORAGE, metadata={"boathouse:type": "variant"})
    plain = pa.table({"v": pa.array([None, storage[0].as_py()], VARIANT_STORAGE), "n": [1, 2]})
    table = plain.append_column(pa.field("l", pa.list_(inner)), listed.cast(pa.list_(inner)))
    assert "VARIANT" not in str(duckdb.from_arrow(table).types)
    found = annotate(table, ["v"])
    assert [str(type) for type in duckdb.from_arrow(found).types] == ["VARIANT", "BIGINT", "VARIANT[]"]
    assert found.schema.field("n").metadata is None
    assert duckdb.from_arrow(found).select("l[1].a::int").fetchall() == [(1,), (None,)]
    batch = annotate(table.to_batches()[0], ["v"])
    assert isinstance(batch, pa.RecordBatch) and is_variant_field(batch.schema.field("v"))
    with pytest.raises(ColumnNotFoundError):
        annotate(table, ["w"])
    with pytest.raises(InvalidArgumentError):
        annotate(made)


def test_files_of_duckdb_and_ours_are_read_with_marks(made, tmp_path):
    table = table_of(made)
    pq.write_table(table, tmp_path / "t.parquet")
    back = pq.read_table(tmp_path / "t.parquet")
    assert VariantArray(back["v"]) == made
    assert VariantArray(pq.read_table(tmp_path / "t.parquet", read_dictionary=["v.metadata"])["v"]) == made


def test_annotate_finds_what_can_only_be_variants():
    """By the type and by every value; without a row nothing tells, and names alone do not."""
    variants = from_json(pa.array(["1", None, '{"a": [2]}']))
    alike = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c"}, {"metadata": b"text", "value": b"y"}, None])
    table = pa.table({"v": variants, "alike": alike, "none": pa.nulls(3, variants.type), "t": ["a", "b", "c"]})
    found = annotate(table)
    assert [is_variant_field(f) for f in found.schema] == [True, False, False, False]
    assert found.column("v").equals(table.column("v")) and annotate(found).schema == found.schema
    named = annotate(table, ["none"]).schema
    assert [is_variant_field(f) for f in named] == [True, False, True, False]
