"""Translates Spark's errors to the library's, where they mean the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
    PythonException,
)

from boathouse import errors
from boathouse.errors import (
    BoathouseError,
    ColumnNotFoundError,
    EvaluationError,
    ExpressionError,
    UnsupportedFunctionError,
)

_EVALUATION = (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException, NumberFormatException)
_UNKNOWN = ("AMBIGUOUS_REFERENCE", "UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")
_OURS = re.compile(r"^boathouse\.errors\.(\w+): (.*)$", re.MULTILINE)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Errors of a query with the library's types."""
    try:
        yield
    except PySparkException as error:
        found = typed(error)
        if found is error:
            raise
        raise found from error


def typed(error: PySparkException) -> Exception:
    """EvaluationError for what ANSI SQL calls a run-time error, and the library's own error if a reader on an executor
    raised it; any other error is unchanged."""
    if isinstance(error, _EVALUATION):
        return EvaluationError(str(error).splitlines()[0])
    if isinstance(error, PythonException):
        return _ours(str(error)) or error
    return error


def _ours(text: str) -> BoathouseError | None:
    """The error at the end of a worker's traceback, of which Spark keeps only the text."""
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
