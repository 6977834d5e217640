"""Reading concurrently with writers that clean up: a listed file may be gone when it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from boathouse.errors import CorruptTableError, NotFoundError, TableNotFoundError, VersionNotFoundError

T = TypeVar("T")
_TRIES = 5


def listed_again(read: Callable[[], T], where: str, gone: type[NotFoundError] = NotFoundError) -> T:
    """The result of `read`, which lists and then reads; it is called again while a listed file is missing.

    `gone` is the error that it raises then. Raises CorruptTableError if files are listed but always missing.
    """
    problem: NotFoundError | None = None
    for _ in range(_TRIES):
        try:
            return read()
        except gone as error:
            asked_for = isinstance(error, VersionNotFoundError) and gone is not VersionNotFoundError
            if isinstance(error, TableNotFoundError) or asked_for:
                raise
            problem = error
    raise CorruptTableError(
        f"a file is listed but cannot be read: {problem.message if problem else ''}",
        where=problem.where if problem and problem.where else where,
        advice="restore the file; if another writer keeps cleaning this table, stop it",
    ) from problem
