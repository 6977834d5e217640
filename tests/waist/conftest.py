"""Every suite of operations runs on the toy and on the three formats, in process and on Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from boathouse import registry
from makers.traits import FORMATS, REAL, TRAITS, Traits

MERGE_ON_READ = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
MARKED = {"delta-vectors": "delta", "iceberg-vectors": "iceberg", "iceberg-positions": "iceberg"}
"""Tables on which rows are deleted by vectors or by files of positions, and their format."""
PROPERTIES = {
    "delta-vectors": {"delta.enableDeletionVectors": "true"},
    "delta-mapped": {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "id"},
    "iceberg-vectors": {"format-version": "3", **MERGE_ON_READ},
    "iceberg-positions": MERGE_ON_READ,
}
"""What the tables of these names are created with, beside the format."""

LONG_ON_SPARK = (
    "test_update.py", "test_merge.py", "test_merge_columns.py", "test_compact.py", "test_changes.py", "test_zorder.py",
    "test_assigned_fields.py",
)  # fmt: skip
ALSO_ON_SPARK = {
    "test_operations.py": ("delta", "iceberg"), "test_evolve.py": ("delta",), "test_replans.py": ("delta",),
}  # fmt: skip
LONG = frozenset({"iceberg-positions"})
ALSO_MARKED = ("test_operations.py", "test_update.py")
"""Tables of these kinds are with the slow tests but for these suites, in process."""


def pytest_collection_modifyitems(items):
    """On Spark, operations that are the same for every format are tried on Delta, on the formats that are named, and on
    those of which the test proves a feature; on the others with the slow tests.
    Suites that do not create their tables with `properties` have no tables on which rows are marked."""
    items[:] = [i for i in items if not (_made_with(i) in MARKED and "properties" not in i.fixturenames)]
    for item in items:
        short = item.path.name in ALSO_MARKED and item.get_closest_marker("spark") is None
        if _made_with(item) in LONG and not short:
            item.add_marker(pytest.mark.slow)
        given = getattr(item, "callspec", None)
        if given is None or item.get_closest_marker("spark") is None:
            continue
        format = given.params.get("format_name", "delta")
        tried = ALSO_ON_SPARK.get(item.path.name, ("delta",) if item.path.name in LONG_ON_SPARK else None)
        proves = format in REAL and item.get_closest_marker("feature") is not None
        if tried is not None and given.params.get("engine_name") == "spark" and format not in tried and not proves:
            item.add_marker(pytest.mark.slow)


def _made_with(item) -> str | None:
    given = getattr(item, "callspec", None)
    return given.params.get("format_name") if given is not None else None


@pytest.fixture(autouse=True)
def _toy_registered(monkeypatch):
    monkeypatch.setitem(registry.FORMATS, "toy", "toy_format")


@pytest.fixture(params=(*FORMATS, *MARKED))
def format_name(request) -> str:
    return MARKED.get(request.param, request.param)


@pytest.fixture
def traits(format_name) -> Traits:
    """What the format has."""
    return TRAITS[format_name]


@pytest.fixture
def properties(request) -> dict[str, str]:
    """The properties of the tables that a test creates."""
    return PROPERTIES.get(_made_with(request.node) or "", {})


@pytest.fixture
def properties_of():
    """The properties of tables of a name such as `delta-vectors`."""
    return lambda name: PROPERTIES.get(name, {})


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine_name(request) -> str:
    return request.param


@pytest.fixture
def session(engine_name, request):
    """The Spark session, or None in process."""
    return request.getfixturevalue("spark") if engine_name == "spark" else None


@pytest.fixture
def to_data(session):
    """Turns an Arrow table into what the engine writes: itself, or a DataFrame."""
    return (lambda table: table) if session is None else session.createDataFrame


@pytest.fixture
def read(session):
    """All rows of a scan or table as sorted dicts, read by the engine."""

    def rows(scan) -> list[dict]:
        table = scan.to_arrow() if session is None else scan.to_spark(session).toArrow()
        return sorted(table.to_pylist(), key=lambda r: tuple((v is None, str(v)) for v in r.values()))

    return rows


def people(start: int, stop: int) -> pa.Table:
    """Rows with nulls, unicode and a column to partition by."""
    ids = list(range(start, stop))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([None if i % 7 == 3 else f"näme {i}" for i in ids], pa.string()),
            "score": pa.array([None if i % 5 == 0 else i / 2 for i in ids], pa.float64()),
            "city": pa.array([("Oslo", "São Paulo", "東京")[i % 3] for i in ids], pa.string()),
        }
    )


@pytest.fixture
def make_people():
    return people
