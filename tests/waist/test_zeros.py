"""-0.0 and 0.0 are equal in conditions and two values in partitions, as the formats compare them bit by bit."""

import math

import deltalake
import pyarrow as pa
import pytest
from peers import by_peer, newest_metadata
from pyiceberg.table import StaticTable

import boathouse as bh

ZEROS = [0.0, -0.0, math.nan, -0.0, 0.0, None, 1.5, math.nan]
BITS = {32: pa.float32(), 64: pa.float64()}


def rows(bits):
    return pa.table({"id": pa.array(range(len(ZEROS)), pa.int64()), "p": pa.array(ZEROS, BITS[bits])})


def signs(found):
    return [repr(v) for _, v in sorted(zip(found["id"].to_pylist(), found["p"].to_pylist()))]


@pytest.fixture(params=["delta", "iceberg"])
def partitioned(request, to_data, tmp_path):
    """A function: a table with the zeros in two partitions, of doubles of this many bits."""

    def make(bits):
        uri = str(tmp_path / "t")
        bh.write(to_data(rows(bits)), uri, format=request.param, partition_by=["p"])
        return uri

    make.format = request.param
    return make


@pytest.mark.parametrize("bits", BITS)
def test_each_zero_comes_back_with_its_sign(partitioned, session, bits):
    uri = partitioned(bits)
    table = bh.open(uri)
    assert signs(table.to_arrow()) == list(map(repr, ZEROS))
    if session is not None:
        assert signs(table.to_spark(session).toArrow()) == list(map(repr, ZEROS))
    assert table.scan(where="p = 0").count() == 4 == table.scan(where="p = -0.0D").count()
    table.delete("id IN (0, 1)")
    assert signs(table.to_arrow()) == list(map(repr, ZEROS))[2:]


def delta_partitions(uri):
    return [a["p"] for a in pa.table(deltalake.DeltaTable(uri).get_add_actions())["partition"].to_pylist()]


def iceberg_partitions(uri):
    return [task.file.partition[0] for task in StaticTable.from_metadata(newest_metadata(uri)).scan().plan_files()]


PARTITIONS = {"delta": delta_partitions, "iceberg": iceberg_partitions}
"""The values of `p` that the format's own library finds in the metadata, one a file."""


@pytest.mark.parametrize("bits", BITS)
def test_foreign_readers_see_the_signs(partitioned, bits):
    uri = partitioned(bits)
    assert signs(by_peer(uri, partitioned.format)) == list(map(repr, ZEROS))
    assert {"0.0", "-0.0"} <= set(map(repr, PARTITIONS[partitioned.format](uri)))


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_batches_share_a_file_for_each_value(tmp_path, format):
    """A value that comes again in a later batch goes on in its file, NaN too."""
    reader = pa.RecordBatchReader.from_batches(rows(64).schema, rows(64).to_batches(max_chunksize=2))
    result = bh.write(reader, str(tmp_path / "t"), format=format, partition_by=["p"])
    assert result.files_added == len({repr(v) for v in ZEROS})
