"""Every Arrow type there is goes through `conform`: it comes out whole in the table's plain layout, or is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from boathouse.arrow.conform import conform
from boathouse.arrow.layouts import plain_list, unwrapped
from boathouse.arrow.schema import from_arrow_field
from boathouse.errors import SchemaMismatchError, UnsupportedTypeError
from boathouse.types import INT32, Field, ListType, Schema
from makers.arrows import COMPARABLE, plain, plain_field, samples

REFUSED = {
    "union": pa.sparse_union([pa.field("a", pa.int32())]),
    "dense union": pa.dense_union([pa.field("a", pa.int32())]),
    "interval": pa.month_day_nano_interval(),
}
FITTING = (
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
    pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal32(5, 2), pa.decimal64(5, 2),
    pa.decimal128(5, 2), pa.decimal256(50, 2), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"),
    pa.timestamp("us", "UTC"), pa.duration("us"), pa.string(), pa.large_string(), pa.string_view(), pa.binary(),
    pa.large_binary(), pa.binary_view(), pa.binary(3), pa.struct([("a", pa.int32())]), pa.list_(pa.int32()),
    pa.large_list(pa.int32()), pa.list_(pa.int32(), 2), pa.list_view(pa.int32()), pa.large_list_view(pa.int32()),
    pa.map_(pa.string(), pa.int32()), pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int8(), pa.list_view(pa.string())),
    pa.run_end_encoded(pa.int32(), pa.string()), pa.uuid(), pa.bool8(), pa.json_(),
)  # fmt: skip
UNMADE = {"Type_INTERVAL_MONTHS", "Type_INTERVAL_DAY_TIME", "Type_MAX"}
"""Kinds that pyarrow names and makes no arrays of."""


def table_of(type: pa.DataType) -> Schema:
    return Schema((from_arrow_field(pa.field("c", type)),))


@settings(max_examples=200)
@given(samples(COMPARABLE))
def test_every_layout_comes_out_plain(sample):
    schema = Schema((from_arrow_field(plain_field("c", sample.shape)),))
    out = conform(pa.record_batch([sample.array], names=["c"]), schema).column(0)
    out.validate(full=True)
    assert out.equals(plain(sample.shape, sample.rows, by_name=False).cast(out.type))


@pytest.mark.parametrize("type", FITTING, ids=str)
def test_nulls_and_no_rows_of_every_type(type):
    for rows in (0, 3):
        array = pa.nulls(rows, type)
        out = conform(pa.record_batch([array], names=["c"]), table_of(type)).column(0)
        out.validate(full=True)
        assert out.to_pylist() == [None] * rows


@pytest.mark.parametrize("type", REFUSED.values(), ids=str)
def test_types_that_no_table_holds_are_refused_by_name(type):
    data = pa.record_batch([pa.nulls(1, type)], names=["c"])
    with pytest.raises(SchemaMismatchError, match="`c`"):
        conform(data, Schema((Field("c", INT32),)))
    with pytest.raises(UnsupportedTypeError, match="`c`"):
        table_of(type)


def test_no_kind_of_arrow_type_is_left_out():
    known = {t.id for t in (*FITTING, *REFUSED.values())}
    named = {name for name in dir(pa.lib) if name.startswith("Type_") and name not in UNMADE}
    assert {name for name in named if getattr(pa.lib, name) not in known} <= {"Type_EXTENSION"}


def test_list_views_that_overlap_and_run_backwards():
    values = pa.array(range(6), pa.int32())
    views = pa.ListViewArray.from_arrays(pa.array([4, 0, 1, 3]), pa.array([2, 3, 3, 0]), values)
    assert plain_list(views.slice(1)).to_pylist() == [[0, 1, 2], [1, 2, 3], []]
    out = conform(pa.record_batch([views], names=["c"]), table_of(pa.list_(pa.int32()))).column(0)
    out.validate(full=True)
    assert out.to_pylist() == [[4, 5], [0, 1, 2], [1, 2, 3], []]


@pytest.mark.parametrize("start, count", [(-1, 1), (2, 2), (0, 4), (1, -1)])
def test_list_views_outside_their_elements_are_refused(start, count):
    buffers = [None, pa.py_buffer(np.array([start], np.int32)), pa.py_buffer(np.array([count], np.int32))]
    views = pa.Array.from_buffers(pa.list_view(pa.int32()), 1, buffers, children=[pa.array([1, 2, 3], pa.int32())])
    with pytest.raises(SchemaMismatchError, match="outside its 3 elements"):
        conform(pa.record_batch([views], names=["c"]), Schema((Field("c", ListType(Field("element", INT32))),)))


def test_bool8_is_boolean():
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, -1, None], pa.int8()))
    assert unwrapped(array).to_pylist() == [False, True, True, None]
    assert str(table_of(array.type).fields[0].type) == "boolean"
