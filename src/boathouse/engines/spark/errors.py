"""Translates Spark's errors to the library's, where they mean the same."""

from __future__ import annotations

from pyspark.errors import (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    PySparkException,
)

from boathouse.errors import EvaluationError

_EVALUATION = (ArithmeticException, ArrayIndexOutOfBoundsException, DateTimeException, NumberFormatException)


def typed(error: PySparkException) -> Exception:
    """EvaluationError for what ANSI SQL calls a run-time error; any other error is unchanged."""
    if isinstance(error, _EVALUATION):
        return EvaluationError(str(error).splitlines()[0])
    return error
