"""Statistics of foreign files against their data, whoever wrote them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boathouse.parquet.footer import _Cursor
from boathouse.parquet.inspect import inspect_file
from boathouse.parquet.read import SourceColumn
from boathouse.parquet.stats import LeafStats, to_struct
from boathouse.table.units import stats_type
from boathouse.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    Field,
    ListType,
    StructType,
)

NAN = float("nan")
POINT = StructType((Field("l", ListType(Field("element", INT64))), Field("x", DOUBLE), Field("y", INT64)))
COLUMNS = [
    SourceColumn("absent", INT32),
    SourceColumn("i", INT64),
    SourceColumn("s", STRING),
    SourceColumn("f", FLOAT),
    SourceColumn("d", DecimalType(12, 3)),
    SourceColumn("st", POINT),
    SourceColumn("t", TIMESTAMP_NTZ),
    SourceColumn("day", DATE),
    SourceColumn("void", NULL),
]
LONG = "z" * 100
TABLE = pa.table(
    {
        "t": pa.array([dt.datetime(1969, 1, 1), None, dt.datetime(2020, 1, 1, 1, 2, 3, 4)], pa.timestamp("us")),
        "i": pa.array([3, None, -5], pa.int32()),
        "s": ["b", None, LONG],
        "f": pa.array([NAN, 0.0, 2.5], pa.float32()),
        "d": pa.array([Decimal("1.25"), Decimal("-3.00"), None], pa.decimal128(9, 2)),
        "day": [dt.date(1960, 1, 1), dt.date(2020, 1, 1), None],
        "st": pa.array(
            [{"x": NAN, "y": 1, "l": [1, None]}, None, {"x": None, "y": None, "l": []}],
            pa.struct({"x": pa.float64(), "y": pa.int32(), "l": pa.list_(pa.int64())}),
        ),
    }
)


def by_pyarrow(path: Path) -> None:
    pq.write_table(TABLE, path, row_group_size=2)


def by_pyarrow_int96(path: Path) -> None:
    pq.write_table(TABLE, path, use_deprecated_int96_timestamps=True)


def by_pyarrow_without_statistics(path: Path) -> None:
    pq.write_table(TABLE, path, write_statistics=False)


def by_duckdb(path: Path) -> None:
    con = duckdb.connect()
    con.register("source", TABLE)
    con.sql(f"copy source to '{path}' (format parquet)")


def by_polars(path: Path) -> None:
    polars.from_arrow(TABLE).write_parquet(path)  # type: ignore[union-attr]


WRITERS = [by_pyarrow, by_pyarrow_int96, by_pyarrow_without_statistics, by_duckdb, by_polars]


def inspected(files: Any, path: Path) -> dict[str, LeafStats]:
    stats = inspect_file(files, str(path), COLUMNS)
    assert to_struct(stats).type == stats_type([s.type for s in stats])
    return {".".join(s.path): s for s in stats}


@pytest.mark.parametrize("write", WRITERS, ids=lambda w: w.__name__)
def test_statistics_are_those_of_the_data(files: Any, tmp_path: Path, write: Any) -> None:
    write(tmp_path / "f.parquet")
    got = inspected(files, tmp_path / "f.parquet")
    counts = {name: (s.nulls, s.nans, s.values) for name, s in got.items()}
    assert counts == {
        "absent": (3, None, 3),
        "i": (1, None, 3),
        "s": (1, None, 3),
        "f": (0, 1, 3),
        "d": (1, None, 3),
        "st.l.element": (1, None, 2),
        "st.x": (2, 1, 3),
        "st.y": (2, None, 3),
        "t": (1, None, 3),
        "day": (1, None, 3),
        "void": (3, None, 3),
    }
    bounds = {
        n: (s.lower.as_py(), s.upper.as_py()) for n, s in got.items() if s.lower is not None and s.upper is not None
    }
    assert bounds.pop("s")[0] == "b"
    upper = got["s"].upper
    assert upper is not None
    assert upper.as_py() == LONG if got["s"].upper_exact else upper.as_py() >= LONG[: len(upper.as_py())]
    assert bounds == {
        "i": (-5, 3),
        "f": (0.0, 2.5),
        "d": (Decimal("-3.000"), Decimal("1.250")),
        "st.y": (1, 1),
        "t": (dt.datetime(1969, 1, 1), dt.datetime(2020, 1, 1, 1, 2, 3, 4)),
        "day": (dt.date(1960, 1, 1), dt.date(2020, 1, 1)),
    }
    assert math.copysign(1, bounds["f"][0]) == -1
    assert got["f"].lower_exact is True


@pytest.mark.spark
def test_files_by_spark(spark: Any, files: Any, tmp_path: Path) -> None:
    frame = spark.sql(
        "select id, if(id = 3, double('NaN'), double(id)) f, cast(id as string) s, "
        "timestamp_micros(id * 1000001 - 1) t from range(0, 10, 1, 1)"
    )
    frame.write.option("spark.sql.parquet.outputTimestampType", "INT96").parquet(str(tmp_path / "f"))
    (path,) = (tmp_path / "f").glob("*.parquet")
    columns = [
        SourceColumn("id", INT64),
        SourceColumn("f", DOUBLE),
        SourceColumn("s", STRING),
        SourceColumn("t", TIMESTAMP),
    ]
    id, f, s, t = inspect_file(files, str(path), columns)
    assert [(x.nulls, x.nans, x.values) for x in (id, f, s, t)] == [
        (0, None, 10),
        (0, 1, 10),
        (0, None, 10),
        (0, None, 10),
    ]
    bounds = [(x.lower and x.lower.as_py(), x.upper and x.upper.as_py()) for x in (id, f, s, t)]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert bounds == [
        (0, 9),
        (0.0, 9.0),
        ("0", "9"),
        (epoch - dt.timedelta(microseconds=1), epoch + dt.timedelta(microseconds=9 * 1000001 - 1)),
    ]
    assert s.upper_exact is True


def test_a_whole_footer_is_walked_over(tmp_path):
    """Names, statistics and key-value pairs are skipped by their lengths."""
    table = pa.table({"a": ["x" * 200, "y"], "b": [1, 2]}).replace_schema_metadata({"key": "v" * 300})
    pq.write_table(table, tmp_path / "f.parquet")
    data = (tmp_path / "f.parquet").read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    cursor = _Cursor(footer)
    cursor.skip(12)
    assert cursor.at == len(footer)
