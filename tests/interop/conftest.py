"""Tables of every type that the formats hold, with the values that break things, and an exact comparison."""

from __future__ import annotations

import datetime as dt
import math
import struct
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from reference_spark import started  # noqa: E402  # a module beside this one

ROWS = 14
INF, NAN = math.inf, math.nan
NINES = "9" * 38
TEXTS = ["", " ", "a" * 400, "🚣" * 90, "\x00", "größe", "\U0010ffff" * 40, "'\"\\`\n\t", "null", "ﷺ é"]
BYTES = [b"", b"\x00", b"\x00\xff" * 200, b"\xff" * 40, b"plain"]
DATES = [dt.date(1, 1, 1), dt.date(1582, 10, 14), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1, 1, 1, 0, 0, 0, 1),
    dt.datetime(1960, 2, 29, 12, 30, 15, 123456),
    dt.datetime(2024, 2, 29),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]
PARTITIONS = {
    "string": (pa.string(), ["a/b", "a=b", "ü%20", " ", "", "🚣", "a:b*?", "..", "null", "x" * 60, "__x", "'\""]),
    "long": (pa.int64(), [2**63 - 1, -(2**63), 0]),
    "int": (pa.int32(), [2**31 - 1, -(2**31), 0]),
    "boolean": (pa.bool_(), [True, False]),
    "date": (pa.date32(), DATES),
    "decimal": (
        pa.decimal128(38, 10),
        [Decimal(f"{NINES}E-10"), Decimal("-0.0000000001"), Decimal("-2342342.23423"), Decimal(0)],
    ),
    "timestamp": (pa.timestamp("us", "UTC"), TIMES),
    "timestamp_ntz": (pa.timestamp("us"), TIMES),
}


def around(values, rows=ROWS, start=0):
    """The values and a null, again and again."""
    both = [*values, None]
    return [both[(start + i) % len(both)] for i in range(rows)]


def deep(rows=ROWS, null_lists=True):
    """struct > list > struct > map, with nulls and empties at every level; null lists in structs if asked for."""
    kind = pa.struct(
        [
            (
                "s",
                pa.struct([("l", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("t", pa.string())])))]),
            ),
            ("x", pa.float64()),
        ]
    )
    values = [
        {
            "s": {"l": [{"m": [("k", 1), ("", None)], "t": "🚣"}, None, {"m": [], "t": None}, {"m": None, "t": ""}]},
            "x": NAN,
        },
        {"s": {"l": []}, "x": -0.0},
        {"s": {"l": None if null_lists else [None]}, "x": None},
        {"s": None, "x": INF},
        {"s": {"l": [None, None]}, "x": 0.0},
    ]
    return pa.array(around(values, rows), kind)


def lists(rows=ROWS):
    return pa.array(
        around([[[[1, None], []], None, []], [], [[]], [[None]], [[[2**31 - 1, -(2**31)]]]], rows),
        pa.list_(pa.list_(pa.list_(pa.int32()))),
    )


def maps(rows=ROWS):
    kind = pa.map_(pa.int32(), pa.map_(pa.string(), pa.list_(pa.struct([("d", pa.date32()), ("b", pa.binary())]))))
    leaf = [{"d": DATES[0], "b": b"\x00"}, None, {"d": None, "b": None}]
    values = [[(1, [("a", leaf), ("b", []), ("c", None)]), (2, None), (3, [])], [], [(-1, [("", [None])])]]
    return pa.array(around(values, rows), kind)


def common(rows=ROWS, start=0):
    """What Delta, Iceberg and Lance hold alike; `id` counts from `start`."""
    floats = [NAN, INF, -INF, -0.0, 0.0, 1.5]
    return {
        "id": pa.array(range(start, start + rows), pa.int64()),
        "bool": pa.array(around([True, False], rows), pa.bool_()),
        "i32": pa.array(around([2**31 - 1, -(2**31), 0], rows), pa.int32()),
        "i64": pa.array(around([2**63 - 1, -(2**63), 0], rows), pa.int64()),
        "f32": pa.array(around([*floats, 1e-45, 3.4028234663852886e38], rows), pa.float32()),
        "f64": pa.array(around([*floats, 5e-324, 1.7976931348623157e308], rows), pa.float64()),
        "d9": pa.array(
            around([Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("-0.01")], rows), pa.decimal128(9, 2)
        ),
        "d18": pa.array(around([Decimal(10**18 - 1), Decimal(1 - 10**18)], rows), pa.decimal128(18, 0)),
        "d38": pa.array(
            around([Decimal(f"{NINES}E-10"), Decimal(f"-{NINES}E-10"), Decimal(0)], rows), pa.decimal128(38, 10)
        ),
        "d3838": pa.array(around([Decimal(f"{NINES}E-38"), Decimal(f"-{NINES}E-38")], rows), pa.decimal128(38, 38)),
        "date": pa.array(around(DATES, rows), pa.date32()),
        "ts": pa.array(around(TIMES, rows), pa.timestamp("us", "UTC")),
        "ntz": pa.array(around(TIMES, rows), pa.timestamp("us")),
        "text": pa.array(around(TEXTS, rows), pa.string()),
        "bytes": pa.array(around(BYTES, rows), pa.binary()),
        "only_null": pa.array([None] * rows, pa.string()),
        "deep": deep(rows),
        "lists": lists(rows),
    }


def delta(rows=ROWS, start=0):
    more = {
        "i8": pa.array(around([127, -128, 0], rows), pa.int8()),
        "i16": pa.array(around([2**15 - 1, -(2**15)], rows), pa.int16()),
        "maps": maps(rows),
    }
    return pa.table(common(rows, start) | more)


def iceberg(rows=ROWS, start=0):
    more = {
        "time": pa.array(around([dt.time(0), dt.time(23, 59, 59, 999999)], rows), pa.time64("us")),
        "fixed": pa.array(around([b"\x00" * 5, b"\xff" * 5], rows), pa.binary(5)),
        "maps": maps(rows),
        "known_lists": deep(rows, null_lists=False),
    }
    return pa.table(common(rows, start) | more)


def lance(rows=ROWS, start=0):
    units = {f"ts_{u}": pa.array(around([-1, 0, 10**9], rows), pa.timestamp(u)) for u in ("s", "ms", "ns")}
    spans = {f"span_{u}": pa.array(around([-1, 2**60], rows), pa.duration(u)) for u in ("s", "ms", "us", "ns")}
    ints = {f"u{b}": pa.array(around([2**b - 1, 0], rows), getattr(pa, f"uint{b}")()) for b in (8, 16, 32, 64)}
    more = {
        "i8": pa.array(around([127, -128], rows), pa.int8()),
        "i16": pa.array(around([2**15 - 1, -(2**15)], rows), pa.int16()),
        "half": pa.array(
            [None if i % 5 == 4 else np.float16([1.5, NAN, -0.0, INF][i % 4]) for i in range(rows)], pa.float16()
        ),
        "t32": pa.array(around([0, 86_399_999], rows), pa.time32("ms")),
        "t64": pa.array(around([0, 86_399_999_999], rows), pa.time64("us")),
        "fixed": pa.array(around([b"\x00" * 5, b"\xff" * 5], rows), pa.binary(5)),
        "vector": pa.array(around([[0.0, -0.0, NAN, INF]], rows), pa.list_(pa.float32(), 4)),
        "d76": pa.array(around([Decimal("9" * 76 + "E-10"), Decimal("-0.1")], rows), pa.decimal256(76, 10)),
    }
    return pa.table(common(rows, start) | units | spans | ints | more)


def exact(value):
    """A value that equals another only if both are the same: NaN is itself, -0.0 is not 0.0."""
    if isinstance(value, float):
        return ("f", "nan" if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, np.floating):
        return exact(float(value))
    if isinstance(value, Decimal):
        return ("d", value.as_tuple())
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [exact(v) for v in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return ("tz", value.astimezone(dt.UTC).isoformat())
    return value


def same(got, want, order="id", but=()):
    """Equal rows by `order`, whatever the layout of strings and lists; columns in the same order, some left out."""
    got = got.drop_columns([n for n in but if n in got.column_names])
    want = want.drop_columns([n for n in but if n in want.column_names])
    assert got.column_names == want.column_names
    assert got.num_rows == want.num_rows
    mine, theirs = order_of(got, order), order_of(want, order)
    for name in want.column_names:
        a, b = values(got.column(name)), values(want.column(name))
        both = [(exact(a[i]), exact(b[j])) for i, j in zip(mine, theirs)]
        wrong = [pair for pair in both if pair[0] != pair[1]]
        assert not wrong, (name, wrong[:3])


def values(column):
    type_ = column.type
    if isinstance(type_, pa.BaseExtensionType):
        column = pa.chunked_array([c.storage for c in column.chunks], type_.storage_type)
    if (pa.types.is_timestamp(type_) and type_.unit == "ns") or pa.types.is_duration(type_):
        return column.cast(pa.int64()).to_pylist()
    return column.to_pylist()


def order_of(table, name):
    """Places of the rows in the order of a column without doubles."""
    keys = table.column(name).to_pylist()
    assert len({*keys}) == len(keys)
    return sorted(range(len(keys)), key=keys.__getitem__)


@pytest.fixture(scope="session")
def nasty():
    """Data by format, awkward partition values, and `same`."""
    return SimpleNamespace(
        rows=ROWS,
        delta=delta,
        iceberg=iceberg,
        lance=lance,
        partitions=PARTITIONS,
        around=around,
        same=same,
        values=values,
        exact=exact,
    )


@pytest.fixture(scope="module")
def reference(request, tmp_path_factory):
    """The module's `RELEASE` in a process of its own, with a namespace `db`."""
    found = started(request.module.RELEASE, tmp_path_factory.mktemp("reference"))
    found.sql("CREATE NAMESPACE ice.db")
    yield found
    found.close()
