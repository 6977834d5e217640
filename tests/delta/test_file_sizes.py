"""How large files become: the table's property, and what a call asks for."""

from __future__ import annotations

import json
import time

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.write import file_size
from boathouse.errors import InvalidArgumentError, MixedWritersError

NOISE = pa.table({"x": np.random.default_rng(1).integers(0, 1 << 62, 600_000)})
"""About 4.8 MB that do not compress: until the first row group is stored, files are taken to be smaller than that."""


def sizes(path) -> list[int]:
    return bh.open(str(path)).files().column("size").to_pylist()


@pytest.mark.parametrize("text", ["1mb", "1m", "1MB", "1024k", "1048576", "1048576b"])
def test_the_property_is_obeyed(tmp_path, text):
    bh.write(NOISE, str(tmp_path / "t"), format="delta", properties={"delta.targetFileSize": text})
    bh.open(str(tmp_path / "t")).append(NOISE)
    found = sizes(tmp_path / "t")
    assert len(found) >= 4 and max(found) < 3 << 20


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_call_says_so_when_it_creates_too(tmp_path, format):
    bh.write(NOISE, str(tmp_path / "t"), format=format, target_file_bytes=1 << 20)
    found = sizes(tmp_path / "t")
    assert len(found) >= 2 and max(found) < 3 << 20
    assert bh.open(str(tmp_path / "t")).count() == NOISE.num_rows
    bh.write(NOISE, str(tmp_path / "one"), format=format)
    assert len(sizes(tmp_path / "one")) == 1


def test_sizes_as_spark_writes_them():
    for text, size in (
        ("1b", 1),
        ("2kb", 2048),
        (" 3 m ", 3 << 20),
        ("1g", 1 << 30),
        ("5TB", 5 << 40),
        ("1p", 1 << 50),
    ):
        assert file_size(text) == size
    for text in ("", "0", "mb", "-1", "1.5g", "1x", "1bb"):
        assert file_size(text) is None


def test_what_is_no_size_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="not a size"):
        bh.create(str(tmp_path / "t"), NOISE.schema, properties={"delta.targetFileSize": "large"})


@pytest.mark.spec("D-315")
def test_write_takes_what_its_error_advises(raw, delta):
    table = raw()
    info = {"commitInfo": {"timestamp": int(time.time() * 1000), "engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0"}}
    table.commit(0, info, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    rows = pa.table({"x": [1]})
    for mode in ("append", "overwrite"):
        with pytest.raises(MixedWritersError, match="allow_mixed_writers=True"):
            bh.write(rows, str(table), mode=mode)
    bh.write(rows, str(table), mode="append", allow_mixed_writers=True)
    bh.write(rows, str(table), mode="overwrite", allow_mixed_writers=True)
    assert bh.open(str(table)).to_arrow() == rows
    with pytest.raises(InvalidArgumentError, match="allow_mixed_writers"):
        bh.write(rows, str(table), mode="append", allow_mixed_writers="yes")
    assert json.loads(table.entry(2).read_text().splitlines()[0])["commitInfo"]["operation"] == "WRITE"
