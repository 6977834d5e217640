"""Translates Spark's errors to the library's, where they mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
)

from boathouse import errors
from boathouse.errors import (
    BoathouseError,
    ColumnNotFoundError,
    EvaluationError,
    ExpressionError,
    JobError,
    MissingFileError,
    UnsupportedFunctionError,
)

_EVALUATION = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)
_UNKNOWN = ("AMBIGUOUS_REFERENCE", "UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")
_LOST_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (.*)")
_SEVERAL = re.compile(r"Multiple failures \(\d+\) in stage materialization:\s*1\. (\w+): (.*)")
_CANCELLED = re.compile(r"Job \d+ cancelled.*|Operation was cancelled.*|\[OPERATION_CANCELED\].*")
_JAVA_CLASS = re.compile(r"^(?:[\w$]+\.)+([\w$]+): ")
_TRACEBACK = "Traceback (most recent call last)"
_ANSI = ("SparkArithmeticException", "SparkArrayIndexOutOfBoundsException", "SparkDateTimeException",
         "SparkNumberFormatException", "SparkRuntimeException")  # fmt: skip
_CAUSE = re.compile(r"^(?:: |Caused by: )(?:[\w$]+\.)+[\w$]+: (.+)$", re.MULTILINE)
_WORKER_LOST = ("Python worker", "ExecutorLostFailure", "Executor heartbeat timed out")
_GONE = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S.*?)\. +File does not"
)
_OURS = re.compile(r"(?:^|PythonException: )boathouse\.errors\.(\w+): (.*)$", re.MULTILINE)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Errors of a query with the library's types."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = typed(error)
        if found is error:
            raise
        raise found from error


@contextmanager
def one_line() -> Iterator[None]:
    """Errors of a query as `typed_errors` has them, and what Spark says of a statement that is wrong as an
    ExpressionError of one line, without the plan."""
    try:
        with typed_errors():
            yield
    except (AnalysisException, IllegalArgumentException) as error:
        if isinstance(error, BoathouseError):
            raise
        raise ExpressionError(str(error).strip().partition("\n")[0].rstrip(" ;")) from None


def typed(error: PySparkException | Py4JJavaError) -> Exception:
    """EvaluationError for what ANSI SQL calls a run-time error, the library's own error if a reader on an executor, or
    what Spark asks when it plans, raised it, MissingFileError for a file that is gone since, and JobError for a job
    that failed in another way; any other error is unchanged."""
    text = str(error)
    if isinstance(error, _EVALUATION):
        return EvaluationError(text.splitlines()[0])
    if isinstance(error, PythonException):
        return _raised(text)
    if isinstance(error, IllegalArgumentException):
        return _ours(text) or error
    if (gone := _GONE.search(text)) is not None:
        return MissingFileError("the version that Spark reads needs a data file that is missing", where=gone[1])
    if (cause := _lost(text)) is not None:
        return cause
    return JobError(_innermost(text)) if isinstance(error, Py4JJavaError) else error


def _lost(text: str) -> BoathouseError | None:
    """What happened to the last task of an aborted job, or to the whole job; None if the text says nothing of it."""
    several = _SEVERAL.search(text)
    if several is not None and several[1] in _ANSI:
        return EvaluationError(several[2])
    task = _LOST_TASK.search(text)
    if task is None:
        job = _CANCELLED.search(text)
        return None if job is None else JobError(job[0])
    told = text[task.start(1) :].partition("\n\tat ")[0]
    if _TRACEBACK in told or _OURS.search(told):
        return _raised(told)
    kind, cause = _JAVA_CLASS.match(told), _JAVA_CLASS.sub("", task[1]).strip()
    if kind is not None and kind[1] in _ANSI:
        return EvaluationError(cause)
    if any(words in cause for words in _WORKER_LOST):
        advice = "see the logs of the executor; if memory ran out, give workers more of it, or write smaller parts"
        return JobError(f"A worker of Spark was lost: {cause}", advice=advice)
    return JobError(f"A task of Spark failed: {cause}")


def _raised(text: str) -> BoathouseError:
    """The exception at the end of a worker's traceback: what follows the last indented line."""
    ours = _ours(text)
    if ours is not None:
        return ours
    lines = [line for line in text.rstrip().splitlines() if not line.startswith(" SQLSTATE")]
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    told = "\n".join(lines[frames[-1] + 1 if frames else 0 :]).strip()
    return JobError(f"{told} (raised in a Python worker of Spark)")


def _innermost(text: str) -> str:
    """The last cause of a Java stack that has a message."""
    found = _CAUSE.findall(text)
    return found[-1] if found else text.splitlines()[0]


def _ours(text: str) -> BoathouseError | None:
    """The error at the end of a worker's traceback, or of a message, of which Spark keeps only the text."""
    found = _OURS.findall(text)
    kind = getattr(errors, found[-1][0], None) if found else None
    if kind is None:
        return None
    error: BoathouseError = kind(found[-1][1])
    error.advice = ""  # the text has it
    return error


def expression_error(error: AnalysisException) -> ExpressionError:
    """The error of an expression that Spark does not parse or resolve."""
    condition = (error.getCondition() or "").split(".")[0]
    first = str(error).splitlines()[0] or condition
    if condition in _UNKNOWN:
        return ColumnNotFoundError(first, advice="write a column as target.name or source.name in a join")
    if condition == "UNRESOLVED_ROUTINE":
        return UnsupportedFunctionError(first)
    return ExpressionError(first)
