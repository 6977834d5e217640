"""Statistics of pages, which only files of version 0.1 have: they are never used, so whatever they say no row is lost,
and no aggregate comes from them."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.engines.local import LocalEngine
from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.fields import Field
from boathouse.lance.file.legacy import LegacyReader
from boathouse.lance.file.schema import tree
from boathouse.table.features import ColumnStatistics

lance = pytest.importorskip("lance")


@dataclass(frozen=True, kw_only=True)
class StatisticsMetadata(Message):
    """The schema of the statistics: a struct for each field, named by its id; then where their pages are."""

    fields: tuple[Field, ...] = repeated(1, Field)
    ids: tuple[int, ...] = repeated(2, "int32")
    page_table_position: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class Metadata(m.LegacyMetadata):
    statistics: StatisticsMetadata | None = nested(5, StatisticsMetadata)


class Bytes:
    uri = "m"

    def __init__(self, path):
        self.path, self.data = path, np.frombuffer(path.read_bytes(), np.uint8)
        self.size = len(self.data)

    def read(self, at, count):
        return self.data[at : at + count]

    @property
    def metadata(self) -> Metadata:
        at = struct.unpack("<qHH4s", self.data[-16:].tobytes())[0]
        size = int.from_bytes(self.data[at : at + 4].tobytes(), "little")
        return Metadata.decode(self.data[at + 4 : at + 4 + size].tobytes())

    def with_statistics(self, found: StatisticsMetadata | None) -> None:
        """The file with another description of its statistics."""
        body = replace(self.metadata, statistics=found).encode()
        end = struct.pack("<I", len(body)) + body + struct.pack("<qHH4s", self.size, 0, 2, b"LANC")
        self.path.write_bytes(self.data.tobytes() + end)


def the_file(kit) -> Bytes:
    (path,) = (kit.root / "data").glob("*.lance")
    return Bytes(path)


def statistics(kit) -> dict[int, pa.StructArray]:
    """What the file says of its batches, by the id of the field: null_count, min_value, max_value."""
    source = the_file(kit)
    metadata, reader = source.metadata, LegacyReader(source)
    found = metadata.statistics
    nodes = tree(found.fields)
    reader._nodes = {node.id: node for top in nodes for node in top.walk()}
    reader._first_id, batches = 0, len(metadata.batch_offsets) - 1
    reader._batches = [0, batches]
    raw = source.read(found.page_table_position, 16 * len(reader._nodes)).tobytes()
    reader._pages = np.frombuffer(raw, np.int64).reshape(-1, 1, 2)
    return {int(node.name): reader.read(node, range(batches))[0] for node in nodes}


HIGH = "\U0010ffff" * 100
ROWS = pa.table(
    {
        "i": pa.array([None] * 4, pa.int8()),
        "u": pa.array([None] * 4, pa.uint16()),
        "l": pa.array([None] * 4, pa.int64()),
        "d": pa.array([None] * 4, pa.date32()),
        "t": pa.array([None] * 4, pa.timestamp("us")),
        "nan": pa.array([math.nan] * 4),
        "none": pa.array([None] * 4, pa.float32()),
        "zero": pa.array([math.nan, -0.0, 0.0, -0.0]),
        "f": pa.array([math.nan, 3.0, -2.0, math.nan]),
        "s": pa.array(["x" * 300, "a", HIGH, "b"]),
        "b": pa.array([b"\xff" * 200, b"a", b"q" * 70, b"q" * 70 + b"z"]),
    }
)
IDS = {name: i for i, name in enumerate(ROWS.column_names)}
CONDITIONS = {
    "i": {"i = 0": 4, "i <= 0": 4, "i IS NULL": 0, "i > -128": 4, "i < 127": 4},
    "u": {"u = 0": 4, "u < 1": 4, "u > 65534": 0},
    "l": {"l = 0": 4, "l >= 0": 4, "l > 9223372036854775806": 0},
    "d": {"d = DATE'1970-01-01'": 4, "d < DATE'1970-01-02'": 4},
    "t": {"t = TIMESTAMP_NTZ'1970-01-01 00:00:00'": 4},
    "nan": {"nan = double('NaN')": 4, "nan > 1e308": 4, "nan IS NULL": 0, "nan < 0": 0},
    "none": {"none = 0": 4, "none >= 0": 4},
    "zero": {"zero = 0": 3, "zero = -0.0": 3, "zero <= -0.0": 3, "zero > 0": 1, "zero = double('NaN')": 1},
    "f": {"f > 2": 3, "f = double('NaN')": 2, "f >= 3": 3, "f < -1": 1},
    "s": {"s > 'w'": 2, "s > 'xx'": 2, "s = 'a'": 1, "s >= 'y'": 1},
    "b": {"b > X'fe'": 1, "b = X'61'": 1, "b > X'7171'": 3},
}
"""And of how many rows each is true, NaN being the greatest: 0.1 reads nulls of numbers and dates as 0."""


@pytest.fixture
def table(kit):
    kit.pylance(ROWS, data_storage_version="0.1", max_rows_per_group=2)
    return kit.open()


def bounds(array: pa.StructArray) -> list[tuple[object, object]]:
    low, high = array.field(1), array.field(2)
    if pa.types.is_date(low.type):
        low, high = low.cast(pa.int32()), high.cast(pa.int32())
    return [(a.as_py(), b.as_py()) for a, b in zip(low, high)]


@pytest.mark.spec("L-129", "L-130", "L-131", "L-132")
@pytest.mark.parametrize("name", CONDITIONS)
def test_no_condition_loses_a_row(kit, table, name):
    """Neither where the bounds are the extremes, nor where NaN, zeros or long values are left out of them."""
    for condition, rows in CONDITIONS[name].items():
        asked = table.scan(where=condition)
        assert (asked.count(), asked.to_arrow().num_rows, len(asked.files())) == (rows, rows, 1), condition


@pytest.mark.spec("L-130")
def test_bounds_of_what_is_null_alone(kit, table):
    """As they are in the file; the rows have zeros, since 0.1 loses nulls of these types."""
    found = statistics(kit)
    assert bounds(found[IDS["i"]]) == [(-128, 127)] * 2
    assert bounds(found[IDS["u"]]) == [(0, 65535)] * 2
    assert bounds(found[IDS["l"]]) == [(-(1 << 63), (1 << 63) - 1)] * 2
    assert bounds(found[IDS["d"]]) == [(-(1 << 31), (1 << 31) - 1)] * 2
    assert found[IDS["i"]].field(0).to_pylist() == [2, 2]
    assert table.scan(columns=["i", "l"]).to_arrow().to_pylist() == [{"i": 0, "l": 0}] * 4


@pytest.mark.spec("L-131")
def test_bounds_of_floats(kit, table):
    found = statistics(kit)
    assert bounds(found[IDS["nan"]]) == [(-math.inf, math.inf)] * 2
    assert bounds(found[IDS["none"]]) == [(-math.inf, math.inf)] * 2
    signs = [(math.copysign(1, a), math.copysign(1, b)) for a, b in bounds(found[IDS["zero"]])]
    assert signs == [(-1, 1)] * 2
    assert bounds(found[IDS["f"]]) == [(3, 3), (-2, -2)]
    assert table.scan(where="f = double('NaN')").count() == 2, "which no bounds contain"


@pytest.mark.spec("L-132")
def test_bounds_that_are_cut_off(kit, table):
    found = statistics(kit)
    assert bounds(found[IDS["s"]]) == [("a", "x" * 63 + "y"), ("b", None)]
    assert bounds(found[IDS["b"]]) == [(b"a", None), (b"q" * 64, b"q" * 63 + b"r")]
    assert table.scan(where=f"s = '{HIGH}'").count() == 1
    assert table.scan(where=f"b = X'{'71' * 70}7a'").count() == 1


@pytest.mark.spec("L-133")
def test_aggregates_come_from_rows(kit):
    """Not from bounds, which here are wrong."""
    kit.pylance(pa.table({"a": pa.array(range(10), pa.int64())}), data_storage_version="0.1")
    source = the_file(kit)
    at = source.metadata.statistics.page_table_position
    pages = np.frombuffer(source.read(at, 64).tobytes(), np.int64).reshape(-1, 2)
    data = bytearray(source.data.tobytes())
    for position, values in ((pages[2, 0], -5), (pages[3, 0], 3)):
        struct.pack_into("<q", data, position, values)
    source.path.write_bytes(bytes(data))
    assert bounds(statistics(kit)[0]) == [(-5, 3)]
    table, snapshot, engine = kit.open(), kit.load(), LocalEngine()
    asked = [("low", "min", "a"), ("high", "max", "a"), ("rows", "count_all", "1")]
    assert engine.summary(engine.scan(snapshot.plan()), asked).to_pylist() == [{"low": 0, "high": 9, "rows": 10}]
    assert pc.max(table.to_arrow().column("a")).as_py() == 9
    assert table.scan(where="a > 3").count() == 6
    assert snapshot.offers(ColumnStatistics) is None
    (files,) = snapshot.files(columns=[("a",)])
    assert files.column("stats").to_pylist() == [None]


def without(name: str, found: StatisticsMetadata) -> StatisticsMetadata:
    return replace(found, fields=tuple(f for f in found.fields if f.name != name))


EXTRA = Field(name="distinct_count", id=99, parent_id=0, logical_type="fixed_size_list:struct:-3")
CHANGES = {
    "none": lambda found: None,
    "empty": lambda found: StatisticsMetadata(),
    "no minimum": lambda found: without("min_value", found),
    "no count": lambda found: without("null_count", found),
    "not of every field": lambda found: replace(found, fields=found.fields[4:], ids=found.ids[4:]),
    "more": lambda found: replace(found, fields=(*found.fields, EXTRA), ids=(*found.ids, 99)),
    "elsewhere": lambda found: replace(found, page_table_position=1 << 62),
}


@pytest.mark.spec("L-134", "L-129")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_statistics_of_another_shape(kit, table, change):
    before = table.to_arrow()
    source = the_file(kit)
    source.with_statistics(change(source.metadata.statistics))
    again = kit.open()
    assert repr(again.to_arrow().to_pylist()) == repr(before.to_pylist())
    assert again.scan(where="f > 2").count() == 3 and again.scan(where="l = 0").count() == 4
    again.delete("s = 'a'")
    assert kit.open().count() == kit.dataset().count_rows() == 3


@pytest.mark.spec("L-134")
def test_no_statistics_are_written(kit, table):
    """Nothing is written in 0.1, and files of later versions have none."""
    data = {p: p.read_bytes() for p in (kit.root / "data").iterdir()}
    with pytest.raises(UnsupportedFeatureError, match=r"0\.1"):
        table.append(table.to_arrow())
    table.delete("s = 'a'")
    table.rename_column("s", "text")
    assert {p: p.read_bytes() for p in (kit.root / "data").iterdir()} == data
    bh.write(ROWS, str(kit.root.parent / "new"), format="lance")
    made = type(kit)(kit.root.parent / "new")
    (files,) = made.load().files(columns=[(name,) for name in ROWS.column_names])
    assert files.column("stats").to_pylist() == [None]
