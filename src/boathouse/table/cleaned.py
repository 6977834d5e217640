"""Reading beside writers that clean up: a file that was listed may be gone when it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from boathouse.errors import CorruptTableError, NotFoundError, TableNotFoundError, VersionNotFoundError

T = TypeVar("T")
_TRIES = 5


def listed_again(read: Callable[[], T], where: str, gone: type[NotFoundError] = NotFoundError) -> T:
    """What `read`, which lists and then reads, returns; it is called again while a listed file is gone.

    `gone` is the error by which it says so. Raises CorruptTableError where files are listed and never there.
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
        f"a file is listed and cannot be read: {problem.message if problem else ''}",
        where=problem.where if problem and problem.where else where,
        advice="restore the file; if another writer cleans this table without pause, stop it",
    ) from problem
