"""Datasets that others wrote between 2023 and 2025: read as pylance reads them, or refused with a typed error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.lance.adapter import FORMAT
from boathouse.storage import Stores
from boathouse.table.location import Location

lance = pytest.importorskip("lance")
ROOT = Path(os.environ.get("BOATHOUSE_CORPORA", Path(__file__).parents[3] / "shared" / "corpora")) / "lance/test_data"
DATASETS = sorted(str(p.parent.relative_to(ROOT)) for p in ROOT.rglob("_versions")) if ROOT.is_dir() else []

REFUSED = {"v0.10.5/corrupt_schema": "column `b` lies in two files"}
"""Broken by an old bug that gave field ids twice: pylance reads values of a dropped column, we refuse."""


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
    location, stores = Location(f"file://{ROOT / name}"), Stores()
    snapshot = FORMAT.load(location, stores)
    assert snapshot.schema.names and snapshot.detail()["data_version"] in ("0.1", "2.0")
    entries = list(FORMAT.history(snapshot, stores))
    assert entries[0].version == snapshot.version
    assert sum(1 for _ in FORMAT.referenced(location, stores)) > 0
