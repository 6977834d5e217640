"""Variants in the Parquet files of Delta tables, as delta-spark writes and reads them on Spark 4.0 and on 4.1, which
annotates them."""

import pyarrow as pa
import pytest
from reference_spark import DELTA, DELTA_41, started

import boathouse as bh
from boathouse import variant
from boathouse.parquet.thrift_footer import annotated, read_footer_bytes

pytestmark = pytest.mark.slow
TEXTS = ['{"a":1}', '{"a":2}', None, "null"]
SHRED = "delta.enableVariantShredding"


@pytest.fixture(scope="module", params=["4.0", "4.1"])
def reference(request, tmp_path_factory):
    found = started({"4.0": DELTA, "4.1": DELTA_41}[request.param], tmp_path_factory.mktemp("reference"))
    found.spark = request.param
    yield found
    found.close()


def groups(path):
    """The annotated groups of every data file."""
    found = []
    for file in path.glob("*.parquet"):
        with pa.OSFile(str(file)) as source:
            found += [(g.path, g.version) for g in annotated(read_footer_bytes(source, source.size()))]
    return found


def texts(path):
    found = bh.open(str(path)).to_arrow().sort_by("id")
    return variant.to_json(found.column("v").combine_chunks()).to_pylist()


@pytest.mark.spec("D-312")
def test_the_reference_annotates_from_spark_4_1_on(reference, tmp_path):
    t = f"delta.`{tmp_path}`"
    reference.sql(
        f"CREATE TABLE {t} (id BIGINT, v VARIANT) USING delta",
        f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, parse_json('{{\"a\":1}}') FROM range(2)",
    )
    assert groups(tmp_path) == ([] if reference.spark == "4.0" else [(("v",), 1)])
    assert texts(tmp_path) == ['{"a":1}'] * 2


@pytest.mark.spec("D-312")
@pytest.mark.parametrize("shred", ["false", "true"])
def test_who_reads_our_files(reference, tmp_path, shred):
    """Spark 4.0 reads no column of a file that has an annotated one."""
    pair = pa.field("v", variant.from_json(pa.array(["1"])).type, metadata={b"boathouse:type": b"variant"})
    rows = pa.table([[1, 2, 3, 4], variant.from_json(pa.array(TEXTS))], schema=pa.schema([("id", pa.int64()), pair]))
    bh.write(rows, str(tmp_path), format="delta", properties={SHRED: shred})
    assert groups(tmp_path) == ([(("v",), 1)] if shred == "true" else [])
    t = f"delta.`{tmp_path}`"
    if (reference.spark, shred) == ("4.0", "true"):
        for columns in ("id", "to_json(v)"):
            with pytest.raises(AssertionError, match="FAILED_READ_FILE"):
                reference.rows(f"SELECT {columns} AS c FROM {t}")
        return
    found = reference.rows(f"SELECT id, to_json(v) AS v FROM {t} ORDER BY id").to_pylist()
    assert [r["v"] for r in found] == TEXTS
    reference.sql(f"INSERT INTO {t} SELECT 5, parse_json('[1]')", f"DELETE FROM {t} WHERE id = 1")
    assert texts(tmp_path) == [*TEXTS[1:], "[1]"]
