"""Columns of a table that have the names of metadata columns keep their values, whatever is done to the table."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import UnsupportedFeatureError
from boathouse.table.metadata_columns import METADATA_COLUMNS


@pytest.fixture
def local_only(engine_name):
    if engine_name != "local":
        pytest.skip("nothing here depends on the engine")


@pytest.mark.few(12)
@pytest.mark.parametrize("name", METADATA_COLUMNS)
def test_values_stay(local_only, format_name, tmp_path, name):
    """Rows are marked, copied, sorted; what cannot tell the column from the metadata column is refused."""
    path, found = str(tmp_path / "t"), {}
    bh.create(path, pa.schema({name: pa.int64(), "k": pa.int64()}), format=format_name)
    if name in bh.open(path, format=format_name)._handle.snapshot.write_context("").hidden:
        pytest.skip("its rows carry ids of that name")

    def opened():
        return bh.open(path, format=format_name)

    def check():
        rows = opened().scan([name, "k"]).to_arrow().to_pylist()
        assert {row["k"]: row[name] for row in rows} == found and len(rows) == len(found)

    for keys in (range(3), range(3, 6), range(6, 8)):
        opened().append(pa.table({name: [10 * k for k in keys], "k": keys}))
        found |= {k: 10 * k for k in keys}
    opened().delete("k = 1")
    opened().delete(f"`{name}` = 40")
    del found[1], found[4]
    check()
    opened().optimize(zorder_by=["k"])
    check()
    opened().append(pa.table({name: [80], "k": [8]}))
    opened().optimize()
    found[8] = 80
    check()
    with contextlib.suppress(UnsupportedFeatureError):
        opened().update({name: "99"}, "k = 2")
        found[2] = 99
    with contextlib.suppress(UnsupportedFeatureError):
        opened().upsert(pa.table({name: [5], "k": [0]}), on="k")
        found[0] = 5
    check()
