"""A data file that is gone: an error of its own, that says which table, version and file, and is not "no table"."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError
from makers.traits import REAL, TRAITS


@pytest.fixture(params=REAL)
def damaged(request, tmp_path) -> tuple[str, str, str]:
    """A table whose second file is gone: its path, its newest version, and the file's name."""
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1, 2, 3]}), uri, format=request.param)
    before = files(uri)
    t = bh.open(uri)
    t.append(pa.table({"id": [4, 5, 6]}))
    (gone,) = files(uri) - before
    gone.unlink()
    return uri, str(t.version), gone.name


def files(uri: str) -> set[Path]:
    return {p for p in Path(uri).rglob("*") if p.suffix in (".parquet", ".lance") and "_delta_log" not in p.parts}


def check(error: BaseException, damaged: tuple[str, str, str]) -> None:
    uri, version, name = damaged
    assert isinstance(error, MissingFileError) and isinstance(error, CorruptTableError)
    assert not isinstance(error, NotFoundError | FileNotFoundError | LookupError)
    text = str(error)
    assert f"version {version} of the table at file://{uri}" in text and "missing" in text and name in text
    assert error.code == "MISSING_FILE"


def test_in_process(damaged):
    t = bh.open(damaged[0])
    for read in (
        lambda: t.to_arrow(),
        lambda: list(t.scan(where="id > 4").to_batches()),
        lambda: t.delete("id in (2, 5)"),
    ):
        with pytest.raises(MissingFileError) as caught:
            read()
        check(caught.value, damaged)
    assert bh.open(damaged[0]).version == t.version


def test_the_rest_can_be_read(damaged):
    before = bh.open(damaged[0]).history()[1].version
    assert bh.open(damaged[0], version=before).to_arrow().num_rows == 3


def test_except_not_found_around_no_table_yet_does_not_take_it(damaged):
    def rows(uri: str) -> int:
        try:
            return bh.open(uri).to_arrow().num_rows
        except NotFoundError:
            return 0

    assert rows(damaged[0] + "-not-there") == 0
    with pytest.raises(MissingFileError):
        rows(damaged[0])


@pytest.mark.spark
@pytest.mark.route("missing files")
def test_on_spark(damaged, spark):
    t = bh.open(damaged[0], spark=spark)
    with pytest.raises(MissingFileError) as caught:
        t.delete("id in (2, 5)")
    check(caught.value, damaged)
    if not TRAITS[t.format].native_on_spark:  # read by tasks, whose errors reach the caller as Spark's
        with pytest.raises(Exception, match=f"version {damaged[1]} of the table at"):
            t.to_spark(spark).collect()
        return
    from pyspark.errors import IllegalArgumentException

    frame = t.to_spark(spark)
    assert frame.where("id < 4").count() == 3  # whose file is there
    with pytest.raises(IllegalArgumentException, match="MissingFileError") as caught:
        frame.collect()
    assert all(word in str(caught.value) for word in (f"version {damaged[1]} of the table at", damaged[2]))


@pytest.mark.spark
@pytest.mark.parametrize("format", REAL)
def test_no_setting_of_a_session_hides_a_file_that_is_gone(tmp_path, spark, format):
    """Not when a query is planned, and not when a plan that was made before is run again."""
    uri = str(tmp_path / "t")
    for ids in ([1, 2, 3], [4, 5, 6]):
        bh.write(pa.table({"id": ids}), uri, format=format, mode="append")
    settings = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
    for name in settings:
        spark.conf.set(name, "true")
    try:
        frame = bh.open(uri, spark=spark).to_spark(spark)
        kept = frame.where("id > 0")
        assert kept.count() == frame.count() == len(frame.collect()) == 6
        gone = sorted(files(uri))[0]
        gone.unlink()
        for read in (frame.collect, kept.count, kept.where("id < 100").collect, frame.toArrow):
            with pytest.raises(Exception, match=gone.name):
                read()
        with pytest.raises(Exception, match=gone.name):
            bh.open(uri, spark=spark).to_spark(spark).collect()
    finally:
        for name in settings:
            spark.conf.unset(name)
