"""What a user of the data source reads of an error: its message alone, without the frames that raised it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from typing import Any, Final, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader

from boathouse.errors import BoathouseError

T = TypeVar("T")
_HIDE: Final = "SPARK_HIDE_TRACEBACK"
"""Read by a worker of Spark when it reports an error; after that the process ends, so no other error is affected."""


def told_plainly(owner: type[T]) -> type[T]:
    """The class, of whose own methods the library's errors are told in a line; other errors keep their frames.

    What makes a reader of streams is left out: PySpark replaces an error there by one of its own, and only frames show
    what was raised first.
    """
    makes = ("streamReader", "__init__") if issubclass(owner, DataSourceStreamReader) else ("streamReader",)
    for name, found in list(vars(owner).items()):
        if isfunction(found) and name not in makes and (name == "__init__" or not name.startswith("_")):
            setattr(owner, name, _generator(found) if isgeneratorfunction(found) else _plain()(found))
    return owner


@contextmanager
def _plain() -> Iterator[None]:
    try:
        yield
    except BoathouseError:
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        if main is not None and main.name.startswith("pyspark."):
            os.environ[_HIDE] = "1"
        raise


def _generator(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def rows(*args: Any, **named: Any) -> Iterator[Any]:
        with _plain():
            yield from function(*args, **named)

    return rows
