"""Tables on S3 in sessions that know its store as `s3a`: read natively by that name. No JAR: Hadoop's own overlay
file system stands in for the S3 client, over a copy of the bucket on disk."""

from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.engines.spark.route import cause, respelled
from boathouse.engines.spark.session import facts
from boathouse.storage import Stores
from makers.stand_ins import s3_stand_in

pytestmark = pytest.mark.spark
OVERLAY = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto.server", reason="the S3 stand-in needs moto[server]")
    with s3_stand_in() as server:
        yield server


def copy(uri: str, options: dict[str, str], root: Path) -> None:
    storage, key = Stores(options).resolve(uri)
    for entry in storage.list(key):
        path = root / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(storage.get(entry.key))


@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.route("S3A")
def test_read_natively_by_s3a(spark, s3, tmp_path, format):
    bucket = s3.bucket()
    uri = f"s3://{bucket}/lake/t"
    rows = pa.table({"id": range(20), "p": [i % 3 for i in range(20)]})
    bh.write(rows, uri, format, partition_by=["p"], storage_options=s3.options)
    table = bh.open(uri, storage_options=s3.options, spark=spark)
    told = table.scan().explain()
    assert f"Spark cannot reach s3://{bucket}: " in str(told)
    assert "An error occurred while calling" not in str(told)
    assert 'No FileSystem for scheme "s3"' in str(told)

    copy(uri, s3.options, tmp_path)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.impl", OVERLAY)
    hadoop.set(f"fs.viewfs.mounttable.{bucket}.linkFallback", f"file://{tmp_path}")
    facts(spark).stores.clear()
    try:
        assert "native" in str(table.scan().explain())
        frame = table.scan(where="id > 5").to_spark()
        assert all(name.startswith("s3a://") for name in frame.inputFiles())
        want = [r for r in rows.to_pylist() if r["id"] > 5]
        assert sorted(frame.toArrow().to_pylist(), key=lambda r: r["id"]) == want
    finally:
        hadoop.unset("fs.s3a.impl")
        facts(spark).stores.clear()


def test_respelled():
    assert respelled("s3://bucket/a:b/c d", "s3a") == "s3a://bucket/a:b/c d"


def test_the_cause_is_what_went_wrong():
    text = "An error occurred while calling o43.parquet.\n: org.x.UnsupportedFileSystemException: No FileSystem\n\tat a"
    assert cause(RuntimeError(text)) == "org.x.UnsupportedFileSystemException: No FileSystem"
    assert cause(RuntimeError("[CODE] what\nmore")) == "[CODE] what"
    assert cause(RuntimeError("")) == "RuntimeError"
