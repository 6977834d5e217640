"""Jobs of ours that fail: what their tasks wrote is removed, and the error names the cause."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

import boathouse as bh
from boathouse.bits import system
from boathouse.bits.system import SeededSystem
from boathouse.engines.spark.errors import typed
from boathouse.errors import ConstraintViolationError, EvaluationError, JobError, MissingFileError
from boathouse.ops.write import TaskWork
from makers.failing_rows import failing_rows
from makers.traits import TRAITS
from pyspark_boathouse import DefaultSource

pytestmark = pytest.mark.spark

FAILURES = {
    "kill": (JobError, "A worker of Spark was lost: Python worker exited unexpectedly (crashed)"),
    "exit": (JobError, "A worker of Spark was lost: Python worker exited unexpectedly (crashed)"),
    "raise": (JobError, "KeyError: 'no such thing' (raised in a Python worker of Spark)"),
    "cast": (EvaluationError, '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "BIGINT"'),
    "overflow": (EvaluationError, "[ARITHMETIC_OVERFLOW]"),
    "constraint": (ConstraintViolationError, "a row does not satisfy the overwrite condition"),
}


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.route("failed jobs")
@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_files_of_a_failed_job_are_removed(spark, tmp_path, format, how):
    folder = tmp_path / "t %"
    bh.write(spark.range(3).selectExpr("id", "id AS v"), str(folder), format=format)
    table = bh.open(str(folder), spark=spark)
    before, version = files(folder), table.version
    rows = failing_rows(spark, str(folder), how)
    kind, first = FAILURES[how]
    with pytest.raises(kind) as caught:
        if how == "constraint":
            table.overwrite(rows, where="v >= 0")
        else:
            table.append(rows)
    assert str(caught.value).startswith(first)
    assert files(folder) == before
    assert bh.open(str(folder)).version == version
    table.append(spark.range(3, 5).selectExpr("id", "id AS v"))
    assert sorted(bh.open(str(folder)).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_files_of_a_lost_task_in_partitions_and_of_changes_are_removed(spark, engine, tmp_path, format):
    """The worker that dies is the one that writes: a task of our own, with partitions and change files."""
    folder = str(tmp_path / "t")
    more = {"delta": {"properties": {"delta.enableChangeDataFeed": "true"}}}.get(format, {})
    parts = ["p"] if TRAITS[format].partitions else []
    bh.create(folder, "id bigint, p bigint", format=format, partition_by=parts, **more)
    context = bh.open(folder)._handle.snapshot.write_context("ours")
    before = files(tmp_path)

    def work(task):
        import os
        import signal
        import time

        import pyarrow as pa

        from boathouse.ops.tasks.sink import sink_batches

        ids = pa.array(range(4), pa.int64())
        for found in sink_batches([pa.record_batch({"id": ids, "p": ids})], context):
            if task == 0:
                yield found
        if task == 0:
            open(f"{folder}-done", "w").close()
            return
        while not os.path.exists(f"{folder}-done"):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(JobError, match=r"^A worker of Spark was lost: "):
        TaskWork(work, [0, 1], [1, 1], context).perform(engine)
    assert files(tmp_path) == {*before, "t-done"}


@pytest.mark.parametrize("how", ["kill", "cast"])
def test_files_of_a_failed_job_of_the_data_source_are_removed(spark, tmp_path, how):
    folder = tmp_path / "t"
    bh.write(spark.range(3).selectExpr("id", "id AS v"), str(folder), format="iceberg")
    before = files(folder)
    with pytest.raises(Exception, match={"kill": "Python worker exited", "cast": "CAST_INVALID_INPUT"}[how]):
        failing_rows(spark, str(folder), how).write.format("boathouse").mode("append").save(str(folder))
    assert files(folder) == before


def test_a_commit_that_was_tried_is_not_aborted(tmp_path):
    """All tasks reported, and their commit failed: whether it did is not for the abort to say."""
    bh.create(str(tmp_path / "t"), "id bigint", format="delta")
    struct = StructType([StructField("id", LongType())])
    with system.use(SeededSystem(1)):
        writer = DefaultSource(options={"path": str(tmp_path / "t")}).writer(struct, overwrite=False)
        message = writer.write(iter([pa.record_batch({"id": pa.array([1], pa.int64())})]))
        written = files(tmp_path)
        writer.abort([message])
        assert files(tmp_path) == written
        writer.abort([message, None])
    assert [path for path in files(tmp_path) if path.endswith(".parquet")] == []


LOST = (
    "Job aborted due to stage failure: Task 1 in stage 4.0 failed 4 times, most recent failure: "
    "Lost task 1.3 in stage 4.0 (TID 5) (10.0.0.2 executor 1): "
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    1 / 0\nZeroDivisionError: division by zero\n'
)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: killed\nDriver",
            JobError,
            "A worker of Spark was lost: ExecutorLostFailure (executor 1 exited caused by one of the running tasks) "
            "Reason: killed",
        ),
        (
            "java.io.IOException: No space left on device\n\tat a.b(c)",
            JobError,
            "A task of Spark failed: No space left on device",
        ),
        (
            f"org.apache.spark.api.python.PythonException: {TRACEBACK}\n\tat a.b(c)",
            JobError,
            "ZeroDivisionError: division by zero (raised in a Python worker of Spark)",
        ),
        (
            'org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File "a.py"\n'
            "boathouse.errors.MissingFileError: version 1 needs a file [file:///t]\n\n\tat a.b(c)",
            MissingFileError,
            "version 1 needs a file [file:///t]",
        ),
        (
            "org.apache.spark.api.python.PythonException: boathouse.errors.MissingFileError: version 1 needs a file "
            "[file:///t]\n\n\tat a.b(c)",
            MissingFileError,
            "version 1 needs a file [file:///t]",
        ),
        (
            "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n== SQL ==\n\tat a.b(c)",
            EvaluationError,
            "[DIVIDE_BY_ZERO] Division by zero.",
        ),
    ],
)
def test_the_cause_is_found_in_the_text_of_a_failed_job(text, kind, message):
    error = typed(PySparkException(LOST + text))
    assert type(error) is kind and error.message == message


def test_a_file_that_is_gone_when_a_task_reads_it_is_named():
    """A file that was there when the query was planned."""
    text = (
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///t/a%20b.zstd.parquet. File "
        "does not exist. It is possible the underlying files have been updated.\nYou can"
    )
    error = typed(PySparkException(text))
    assert type(error) is MissingFileError and error.where == "file:///t/a%20b.zstd.parquet"


def test_a_cancelled_job_says_so():
    error = typed(PySparkException("Job 7 cancelled part of cancelled job group nightly"))
    assert isinstance(error, JobError) and error.message == "Job 7 cancelled part of cancelled job group nightly"


def test_stages_that_fail_together_give_the_first_ones_cause():
    text = (
        "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage materialization: \n"
        "  1. SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n"
        "  2. SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\tat a.b(c)"
    )
    error = typed(PySparkException(text))
    assert type(error) is EvaluationError and error.message == "[DIVIDE_BY_ZERO] Division by zero."
