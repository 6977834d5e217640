"""The Delta tables of the corpora on Spark: the rows that are read in process, or the same refusal."""

import json
from pathlib import Path

import pytest

import boathouse as bh
from boathouse import errors

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "delta_corpus.json").read_text())
OLDER = json.loads((HERE / "delta_corpus_versions.json").read_text())
ALWAYS = (
    "golden/checkpoint/delta",
    "golden/data-reader-array-complex-objects/delta",
    "golden/data-reader-escaped-chars/delta",
    "golden/deltalog-invalid-protocol-version/delta",
    "golden/dv-with-columnmapping/delta",
    "golden/kernel-timestamp-int96/delta",
    "golden/log-replay-special-characters-b/delta",
    "golden/parquet-all-types-legacy-format/delta",
    "golden/v2-checkpoint-parquet/delta",
    "java-kernel/column-mapping-id",
)
MISSING = "FILE_NOT_EXIST"
"""How Spark names a data file that is missing."""


def versions_of(name):
    """None is the newest, which comes first; of older ones with the same outcome the first."""
    yield None, EXPECTED[name]
    for key, wanted in OLDER.get(name, {}).items():
        yield int(key.partition("-")[0]), wanted


def refused(folder, wanted, spark, version):
    kind, words = wanted[:2]
    with pytest.raises(Exception) as error:
        bh.open(str(folder), format="delta", version=version).to_spark(spark).collect()
    if not isinstance(error.value, errors.BoathouseError):
        assert kind == "MissingFileError" and (MISSING in str(error.value) or words in str(error.value))
        return
    assert type(error.value).__name__ == kind and words in str(error.value)


def in_any_order(found):
    """Rows as text, whatever the order of rows and of the entries of maps."""
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in found)


def check(rows, spark, folder, version, wanted):
    if isinstance(wanted, list):
        refused(folder, wanted, spark, version)
        return
    table = bh.open(str(folder), format="delta", version=version)
    frame = table.to_spark(spark)
    if "variant" in frame.schema.simpleString():  # PySpark's toArrow fails on lists of variants with nulls
        ours = table.to_arrow().to_pylist(maps_as_pydicts="strict")
        theirs = [row.asDict(recursive=True) for row in frame.collect()]
        assert len(theirs) == wanted
        assert in_any_order(map(rows.plain, theirs)) == in_any_order(map(rows.plain, ours))
        return
    found = frame.toArrow()
    assert found.num_rows == wanted
    assert found.column_names == list(table.schema.names)
    rows.same(found, table.to_arrow())


@pytest.mark.parametrize("name", ALWAYS)
@pytest.mark.route("tables of other writers of Delta")
def test_newest(delta_corpus, rows, spark, name):
    check(rows, spark, delta_corpus / name, None, EXPECTED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_every_version(delta_corpus, rows, spark, name):
    for version, wanted in versions_of(name):
        check(rows, spark, delta_corpus / name, version, wanted)


@pytest.mark.slow
def test_by_the_name_of_the_format(delta_corpus, rows, spark):
    """`spark.read.format("boathouse")`, with an older version."""
    folder = delta_corpus / "golden" / "time-travel-start-start20-start40" / "delta"
    reader = spark.read.format("boathouse")
    assert [reader.option("versionAsOf", v).load(str(folder)).count() for v in range(3)] == [10, 20, 30]
