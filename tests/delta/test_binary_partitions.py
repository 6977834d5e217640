"""Binary partition values: text in the log, as delta-spark writes it."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError

ROWS = [b"\x01\x02\x03", "é".encode(), b"plain", None]


@pytest.mark.spec("D-283")
def test_bytes_that_are_text_round_trip(tmp_path):
    """delta-spark 4.0.1 writes these very strings: `\\u0001\\u0002\\u0003` for 010203, `é` for C3A9."""
    uri = str(tmp_path / "t")
    data = pa.table({"id": range(len(ROWS)), "b": pa.array(ROWS, pa.binary())})
    bh.write(data, uri, format="delta", partition_by="b")
    assert bh.open(uri).to_arrow().sort_by("id")["b"].to_pylist() == ROWS
    log = (tmp_path / "t/_delta_log/00000000000000000000.json").read_text().splitlines()
    strings = {a["add"]["partitionValues"]["b"] for a in map(json.loads, log) if "add" in a}
    assert strings == {"\x01\x02\x03", "é", "plain", None}


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """delta-spark turns each into U+FFFD and so loses them: a refusal is what keeps the value."""
    data = pa.table({"id": [1], "b": pa.array([b"\xff\x80"], pa.binary())})
    with pytest.raises(BoathouseError):
        bh.write(data, str(tmp_path / "t"), format="delta", partition_by="b")
    assert not (tmp_path / "t/_delta_log").exists()
