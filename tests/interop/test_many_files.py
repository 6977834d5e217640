"""Manifests of many files that iceberg-spark writes: decoded by columns, the records found by the folder of their
paths."""

from __future__ import annotations

from unittest import mock

import pytest
from reference_spark import ICEBERG

import boathouse as bh
from boathouse.avro import columns as avro_columns
from boathouse.avro import landmarks as avro_landmarks

pytestmark = pytest.mark.slow
RELEASE = ICEBERG


@pytest.mark.parametrize("codec", ["gzip", "uncompressed", "zstd"])
def test_many_files(reference, codec):
    name = f"ice.db.{codec}"
    reference.sql(
        f"CREATE TABLE {name} (id bigint, x double, s string) USING iceberg "
        f"TBLPROPERTIES ('write.avro.compression-codec' = '{codec}', 'write.distribution-mode' = 'none')",
        f"INSERT INTO {name} SELECT /*+ REPARTITION(400) */ id, id / 3, concat('a', id) FROM range(4000)",
    )
    found = []

    def find(*arguments):
        found.append(avro_landmarks.find(*arguments))
        return found[-1]

    with mock.patch.object(avro_columns, "find", find):
        files = bh.open(str(reference.root / "db" / codec)).files()
    assert [len(f.starts) for f in found] == [400]
    mine = zip(*(files.column(n).to_pylist() for n in ("path", "rows", "size")))
    theirs = reference.rows(f"SELECT file_path, record_count, file_size_in_bytes FROM {name}.files")
    paths = ((p if "://" in p else f"file://{p}", *rest) for p, *rest in zip(*theirs.to_pydict().values()))
    assert sorted(mine) == sorted(paths)
