"""Iceberg tables written by DuckDB, Java and pyiceberg: the rows that their writers expect.

The queries of the corpus are run by DuckDB over the rows that we read.
"""

import json
import math
import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from boathouse.errors import (
    BoathouseError,
    ConstraintViolationError,
    CorruptTableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.iceberg import tasks
from boathouse.iceberg.adapter import FORMAT
from boathouse.iceberg.snapshot import head_metadata
from boathouse.parquet.schema import conform, to_parquet_schema
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

duckdb = pytest.importorskip("duckdb")
CORPORA = Path(os.environ.get("BOATHOUSE_CORPORA") or Path(__file__).parents[2] / "../shared/corpora").resolve()
ROOT = CORPORA / "iceberg" / "duckdb"
if not (ROOT / "expected.json").exists():
    pytest.skip("the corpora of Iceberg tables are not there", allow_module_level=True)

SCAN = re.compile(r"iceberg_scan\s*\(\s*'([^']*)'((?:\s*,\s*\w+\s*=\s*(?:'[^']*'|\"[^\"]*\"|[\w.]+))*)\s*\)", re.I)
OTHER = re.compile(r"iceberg_(metadata|snapshots|\w+_stats)|duckdb_logs|TEST_DIR|oracle|filename", re.I)
OPTION = re.compile(r"(\w+)\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([\w.]+))")


def queries():
    """(source file, number, query, rows, settings before it) of everything that only scans tables of the corpus."""
    for group in json.loads((ROOT / "expected.json").read_text()):
        settings = []
        for number, case in enumerate(group["cases"]):
            if "setup" in case:
                settings.append(case["setup"])
            query = case.get("query", "")
            others = re.search(
                r"iceberg_(metadata|snapshots|column_stats|partition_stats)|duckdb_logs|TEST_DIR", query, re.I
            )
            if "rows" not in case or others or "oracle" in query or not SCAN.search(query) or "filename" in query:
                continue
            yield pytest.param(
                query, case["rows"], case.get("sort", ""), tuple(settings), id=f"{group['source']}-{number}"
            )


def opened(path, options):
    place = Path(re.sub(r"\{WORKING_DIRECTORY\}|__WORKING_DIRECTORY__", str(ROOT), path))
    place = place if place.is_absolute() else ROOT / place
    root, metadata = place, None
    if place.name.endswith(".json"):
        root, metadata = place.parent.parent, place
    version = options.get("version", "?")
    if version != "?":
        names = [f"v{version}.metadata.json", f"{version}.metadata.json", f"v{version}.gz.metadata.json"]
        metadata = next(p for n in names if (p := root / "metadata" / n).exists())
    location = Location(absolute(root), None if metadata is None else absolute(metadata))
    at = At(version=int(options["snapshot_from_id"])) if "snapshot_from_id" in options else At()
    if "snapshot_from_timestamp" in options:
        pytest.skip("time travel by a text timestamp of DuckDB's")
    return FORMAT.open(TableContext(here(location), Stores()), at)


def here(location):
    """The location of a table whose metadata names the place where its writer had it."""
    recorded = head_metadata(TableContext(location, Stores())).location
    if recorded.startswith("file://data"):
        return location  # relative, whatever it looks like
    return replace(location, relocated=((absolute(recorded), location.uri),))


def table_of(snap):
    plan = snap.plan()
    if any(p.startswith("s3:") for p in plan.units["path"].to_pylist()):
        pytest.skip("the data files are elsewhere")
    schema = to_parquet_schema(snap.schema)
    batches = [conform(b, schema) for t in plan.tasks() for b in tasks.read(t)]
    return pa.Table.from_batches(batches, schema)


def same(mine, theirs):
    """Equal as text, but for how DuckDB's versions quote members of structs and round floats."""
    if mine == theirs or re.sub(r"['\\\\]", "", mine) == re.sub(r"['\\\\]", "", theirs):
        return True
    try:
        return math.isclose(float(mine), float(theirs), rel_tol=1e-6) and "." in mine
    except ValueError:
        return False


def plain(value):
    return "NULL" if value is None else str(value)


@pytest.mark.parametrize(("query", "expected", "sort", "settings"), list(queries()))
@pytest.mark.filterwarnings("ignore")
def test_rows(query, expected, sort, settings):
    connection = duckdb.connect()
    for text in settings:
        if re.match(r"\s*(re)?set\s+(timezone|calendar)", text, re.I):
            connection.execute(text)
    names = {}

    def replace(match):
        options = {k: a or b or c for k, a, b, c in OPTION.findall(match[2])}
        name = f"scanned_{len(names)}"
        names[name] = table_of(opened(match[1], options))
        return name

    try:
        text = SCAN.sub(replace, query)
    except ConstraintViolationError:
        assert "version=3.2" in query
        pytest.xfail("the name mapping is empty, so that a required column has no values: DuckDB makes them null")
    for name, table in names.items():
        connection.register(name, table)
    relation = connection.sql(text)
    casts = ", ".join(f'CAST("{c}" AS VARCHAR)' for c in relation.columns)
    got = [[plain(v) for v in row] for row in connection.sql(f"SELECT {casts} FROM relation").fetchall()]
    booleans = [i for i, t in enumerate(relation.types) if str(t) == "BOOLEAN"]
    for row in got:
        for i in booleans:
            row[i] = {"true": ("true", "1"), "false": ("false", "0")}.get(row[i], (row[i],))
    order = (lambda r: r) if "order by" in query.lower() and sort != "rowsort" else sorted
    loose = [[(v,) if isinstance(v, str) else v for v in r] for r in got]
    if order is sorted:
        loose, expected = sorted(loose), sorted(expected)
    assert len(loose) == len(expected)
    for mine, theirs in zip(loose, expected):
        for options, value in zip(mine, theirs):
            assert any(same(o, value) for o in options), (mine, theirs)


def folders():
    for metadata in sorted(ROOT.glob("data/persistent/**/metadata")):
        yield pytest.param(metadata.parent, id=str(metadata.parent.relative_to(ROOT / "data/persistent")))


@pytest.mark.parametrize("folder", list(folders()))
def test_every_table_is_read_or_refused_with_a_typed_error(folder):
    try:
        table_of(FORMAT.open(TableContext(here(Location(absolute(folder))), Stores())))
    except BoathouseError as error:
        known = (UnsupportedFeatureError, CorruptTableError, TableNotFoundError)
        assert isinstance(error, known), repr(error)


# What pyiceberg 0.12 says of the tables that it does not read.
NOT_READ_BY_PYICEBERG = {
    "big_query_error": "list indices",  # bounds of nested columns as BigQuery writes them
    "equality_deletes/warehouse/mydb/mytable": "equality deletes",
    "equality_deletes/warehouse/mydb/mytable_partitioned": "equality deletes",
    # The table's location is relative to another folder.
    **dict.fromkeys((f"iceberg/lineitem_iceberg{n}" for n in ("", "_gz", "_gz_no_hint", "_no_hint")), "No such file"),
    "iceberg_v1_deprecated/default/legacy_v1": "manifest-list",  # its snapshots name their manifests themselves
    "legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector": "magic bytes",
    # Values of identity partitions that only the metadata has.
    **dict.fromkeys((f"partition_{t}/default.db/partition_{t}" for t in (
        "fixed_length_binary", "time", "timestamp", "timestamptz")), "could not be found in the file"),
}  # fmt: skip


def canonical(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value + 0.0)
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    return tuple(map(canonical, value)) if isinstance(value, list | tuple) else repr(value)


@pytest.mark.spec("I-216")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("folder", list(folders()))
def test_the_rows_of_pyiceberg(folder, monkeypatch):
    """Equal, or pyiceberg does not read the table, for a reason that is listed; DuckDB's rows are the queries above."""
    monkeypatch.chdir(ROOT)  # locations are relative to it
    location = Location(absolute(folder))
    try:
        head = head_metadata(TableContext(location, Stores())).uri
    except TableNotFoundError:
        pytest.skip("a catalog of DuckDB's without metadata files")
    reason = NOT_READ_BY_PYICEBERG.get(str(folder.relative_to(ROOT / "data/persistent")))
    if reason is not None:
        with pytest.raises(Exception, match=reason):
            StaticTable.from_metadata(head).scan().to_arrow()
        return
    ours = table_of(FORMAT.open(TableContext(here(location), Stores())))
    theirs = StaticTable.from_metadata(head).scan().to_arrow()
    assert Counter(map(canonical, theirs.to_pylist())) == Counter(map(canonical, ours.to_pylist()))
