"""Checks of the arguments of the public API, and the path in its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from boathouse.bits.names import Names
from boathouse.errors import BoathouseError, InvalidArgumentError

P = ParamSpec("P")
R = TypeVar("R")


class _HasUri(Protocol):
    @property
    def uri(self) -> str: ...


@contextmanager
def errors_at(where: object) -> Iterator[None]:
    """Adds this path to errors from the block that have none."""
    try:
        yield
    except BoathouseError as error:
        if error.where is None and where is not None:
            error.where = str(where)
        raise


def located(method: Callable[P, R]) -> Callable[P, R]:
    """A method of an object with a `uri`, which its errors name."""

    @wraps(method)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: _HasUri = args[0]  # type: ignore[assignment]
        with errors_at(owner.uri):
            return method(*args, **kwargs)

    return inside


def names(name: str, value: Sequence[str]) -> list[str]:
    """A sequence of distinct strings. Raises InvalidArgumentError."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        text = repr([value]) if isinstance(value, str) else "for example ['id', 'day']"
        raise InvalidArgumentError(f"{name}={value!r} is not a list of names", advice=f"pass a list: {text}")
    for item in value:
        if not isinstance(item, str):
            raise InvalidArgumentError(f"{name}={value!r}: {item!r} is not a name", advice="pass names as strings")
    twice = Names(value).repeated()
    if twice is not None:
        raise InvalidArgumentError(f"{name}={value!r}: {twice!r} is named twice", advice="name it once")
    return list(value)


def strings(name: str, value: Mapping[str, Any] | None, nulls: bool = False) -> dict[str, Any]:
    """A mapping of strings to strings; None is an empty one. `nulls`: values may be None. InvalidArgumentError."""
    if value is None and not nulls:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{name}={value!r} is not a dict", advice="pass a dict of strings to strings")
    for key, text in value.items():
        if not isinstance(key, str) or not key or not (isinstance(text, str) or (nulls and text is None)):
            raise InvalidArgumentError(f"{name}: {key!r}: {text!r} is not a string", advice="pass strings")
    return dict(value)


def flag(name: str, value: object) -> bool:
    """True or False, and nothing else. Raises InvalidArgumentError."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name}={value!r} is neither True nor False", advice="pass True or False")
    return value


def number(name: str, value: object) -> int:
    """A whole number from 0 on. Raises InvalidArgumentError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of rows", advice="pass for example 10")
    return value
