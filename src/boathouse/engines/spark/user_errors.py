"""Errors of this library that jobs written for Spark catch as Spark's own: AnalysisException and ParseException."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, TypeVar

from pyspark.errors import AnalysisException, ParseException

from boathouse import errors

T = TypeVar("T")
_ANALYSIS: Final = (
    errors.NotFoundError,
    errors.AlreadyExistsError,
    errors.SchemaError,
    errors.ExpressionError,
    errors.InvalidArgumentError,
    errors.UnsupportedFeatureError,
)


class spark_errors(ContextDecorator):
    """Within it, an error about what a statement says is also Spark's exception for it: ParseException for text that
    cannot be read, else AnalysisException. It stays the same object, of its own class too."""

    def __enter__(self) -> spark_errors:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, _ANALYSIS) and not isinstance(error, AnalysisException):
            told: Any = error
            told._errorClass, told._messageParameters, told._contexts = error.code, {}, []
            told._message = str(error)
            told.__class__ = _twin(told.__class__)


@lru_cache
def _twin(kind: type[errors.BoathouseError]) -> type[errors.BoathouseError]:
    theirs = ParseException if kind is errors.ExpressionError else AnalysisException

    def reduced(self: errors.BoathouseError) -> tuple[Any, ...]:
        return errors._rebuild, (kind, self.message, self.where, self.advice)

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind, theirs), {**names, "__reduce__": reduced})


def with_spark_errors(owner: type[T]) -> type[T]:
    """The class, whose public methods raise such errors."""
    for name, found in list(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(found, classmethod):
            setattr(owner, name, classmethod(_wrapped(found.__func__)))
        elif callable(found):
            setattr(owner, name, _wrapped(found))
    return owner


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return spark_errors()(function)
