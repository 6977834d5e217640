"""Datasets that others wrote between 2023 and 2025: read as pylance reads them, or refused with a typed error."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.lance.adapter import FORMAT
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.location import Location

lance = pytest.importorskip("lance")
ROOT = Path(os.environ.get("BOATHOUSE_CORPORA", Path(__file__).parents[3] / "shared" / "corpora")) / "lance/test_data"
DATASETS = sorted(str(p.parent.relative_to(ROOT)) for p in ROOT.rglob("_versions")) if ROOT.is_dir() else []

REFUSED = {"v0.10.5/corrupt_schema": "column `b` is in two files"}
"""Broken by an old bug that gave field ids twice: pylance reads values of a dropped column, we refuse."""

UNWRITABLE = {"v0.16.0/wrong_data_version_no_fix.lance": "fragment id 1 occurs twice"}


@pytest.mark.skipif(not DATASETS, reason="no corpora: set BOATHOUSE_CORPORA to the folder that holds them")
@pytest.mark.parametrize("name", DATASETS)
def test_as_pylance_or_refused(name):
    uri = str(ROOT / name)
    try:
        theirs = lance.dataset(uri).to_table()
    except (OSError, ValueError, RuntimeError):
        with pytest.raises(BoathouseError):
            bh.open(uri).to_arrow()
        return
    if name in REFUSED:
        with pytest.raises(CorruptTableError, match=REFUSED[name]):
            bh.open(uri).to_arrow()
        return
    ours = bh.open(uri).to_arrow()
    assert ours == theirs.cast(ours.schema)
    assert bh.open(uri).count() == theirs.num_rows


@pytest.mark.skipif(not DATASETS, reason="no corpora")
@pytest.mark.parametrize("name", DATASETS)
def test_every_version_opens(name):
    """Manifests of all ages: schema, history, files."""
    snapshot = FORMAT.open(TableContext(Location(f"file://{ROOT / name}"), Stores()))
    assert snapshot.schema.names and snapshot.detail()["data_version"] in ("0.1", "2.0")
    entries = list(snapshot.history.entries())
    assert entries[0].version == snapshot.version
    assert sum(1 for _ in snapshot.offers(LiveFiles).uris()) > 0


@pytest.mark.skipif(not DATASETS, reason="no corpora")
@pytest.mark.parametrize("name", DATASETS)
def test_old_tables_after_our_commits(name, tmp_path):
    """Deletes and properties need no new data file: tables of all ages take them, and pylance reads the result."""
    uri = str(tmp_path / "t")
    shutil.copytree(ROOT / name, uri)
    try:
        before = lance.dataset(uri).to_table()
    except (OSError, ValueError, RuntimeError):
        return
    table = bh.open(uri)
    if name in UNWRITABLE:
        with pytest.raises(CorruptTableError, match=UNWRITABLE[name]):
            table.set_properties({"x": "1"})
        return
    table.set_properties({"x": "1"})
    assert lance.dataset(uri).to_table() == before
    column = next((f.name for f in before.schema if pa.types.is_integer(f.type)), None)
    if column is None or before.num_rows < 2:
        return
    first = before.column(column)[0].as_py()
    table.delete(f"{column} = {first}")
    expected = before.filter(pc.not_equal(before.column(column), first))
    assert lance.dataset(uri).to_table() == expected
    if name not in REFUSED:
        assert bh.open(uri).to_arrow().cast(before.schema) == expected
    assert lance.dataset(uri).count_rows() == expected.num_rows == bh.open(uri).count()
