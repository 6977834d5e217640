"""Sketches of the distinct values of columns (Puffin specification, "apache-datasketches-theta-v1"): values are hashed
in the binary form that bounds have. Runs on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.layouts import plain
from boathouse.arrow.ordering import leaf_of
from boathouse.arrow.schema import from_arrow
from boathouse.arrow.transforms import byte_strings
from boathouse.bits.theta import Sketch, hashed
from boathouse.iceberg.manifests.values import minimal_bytes, physical_list
from boathouse.iceberg.tasks import read
from boathouse.table.tasks import ScanTask

COUNTED = (
    T.BooleanType, T.IntegerType, T.FloatType, T.DecimalType, T.DateType, T.TimeType, T.TimestampType, T.StringType,
    T.FixedType, T.UUIDType, T.BinaryType,
)  # fmt: skip


def sketch_units(task: ScanTask, paths: tuple[tuple[str, ...], ...]) -> Iterator[pa.RecordBatch]:
    """One batch with a column for each path, in order: the sketch of its values in the live rows of the units."""
    found: list[list[Sketch]] = [[] for _ in paths]
    for batch in read(task):
        schema = from_arrow(batch.schema)
        for sketches, path in zip(found, paths, strict=True):
            sketches[:] = [Sketch.union([*sketches, sketch_of(*leaf_of(batch, schema, path))])]
    columns = [pa.array([Sketch.union(sketches).to_bytes()], pa.binary()) for sketches in found]
    yield pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(paths))])


def sketch_of(array: pa.Array, type: T.DataType) -> Sketch:
    """The sketch of the values of an array; nulls are none."""
    return Sketch.of(hashed(*_encoded(plain(array, type).drop_null(), type)))


def _encoded(values: pa.Array, type: T.DataType) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The single-value binary form of each value, or of each distinct one."""
    match type:
        case T.BooleanType():
            return _fixed(values.cast(pa.uint8()).to_numpy(zero_copy_only=False))
        case T.IntegerType():
            return _fixed(values.to_numpy(zero_copy_only=False))
        case T.FloatType():
            numbers = np.array(values.to_numpy(zero_copy_only=False))
            numbers[np.isnan(numbers)] = np.nan
            return _fixed(numbers)
        case T.DateType() | T.TimeType() | T.TimestampType():
            wide = pa.int32() if values.type.bit_width == 32 else pa.int64()
            return _fixed(values.view(wide).to_numpy(zero_copy_only=False))
        case T.DecimalType():
            words = [minimal_bytes(v) for v in physical_list(pc.unique(values), type)]  # type: ignore[arg-type]
            return byte_strings(pa.array(words, pa.binary()))
    return byte_strings(values if pa.types.is_fixed_size_binary(values.type) else pc.unique(values))


def _fixed(numbers: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    width = numbers.dtype.itemsize
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(-1), np.arange(len(numbers) + 1, dtype=np.int64) * width


def merged(batches: Sequence[pa.RecordBatch], columns: int) -> list[Sketch]:
    """The sketches of all tasks, column by column."""
    return [Sketch.union(Sketch.parse(b.column(i)[0].as_py()) for b in batches) for i in range(columns)]
