"""Paths into a variant: the grammar of Spark's `variant_get`.

A path is `$`, then steps: `.name` (any characters but `.` and `[`), `['name']` (any but `'`), `["name"]` (any but
`"`), `[123]` (at most 2,147,483,647). There are no escapes and no optional spaces; names are case-sensitive, and `*` is
an ordinary name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from boathouse.errors import ExpressionError

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

MAX_INDEX = 2**31 - 1
_INDEX = re.compile(r"\[([0-9]+)\]")
_NAME = re.compile(r"\.([^.\[]+)")
_QUOTED = re.compile(r"""\['([^']*)'\]|\["([^"]*)"\]""")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_ADVICE = "write $, then .name, ['name'] or [0] for each step, for example $.a['b c'][0]"


def as_path(path: str | Sequence[Step]) -> Path:
    """The steps of a path string, or of a sequence of names and positions, which can hold any name.

    Raises ExpressionError.
    """
    if isinstance(path, str):
        return parse_path(path)
    if isinstance(path, bytes) or not isinstance(path, Sequence):
        raise ExpressionError(f"{path!r} is not a path", advice=_ADVICE)
    steps = tuple(path)
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, str | int):
            raise ExpressionError(f"{step!r} is not a step of a path", advice="use names (str) and positions (int)")
        if isinstance(step, int) and not 0 <= step <= MAX_INDEX:
            raise ExpressionError(f"the position {step} is not in 0..{MAX_INDEX:,}", advice="count from the start")
    return steps


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """`$.a['b'][0]` as `('a', 'b', 0)`. Raises ExpressionError, which names the position.

    >>> bh.variant.parse_path("$.a['b.c'][0]")
    ('a', 'b.c', 0)
    """
    if not isinstance(text, str):
        raise ExpressionError(f"{text!r} is not a path string", advice=_ADVICE)
    if not text.startswith("$"):
        raise _refused(text, 0, "a path starts with $")
    steps: list[Step] = []
    at = 1
    while at < len(text):
        if found := _NAME.match(text, at):
            steps.append(found[1])
        elif found := _INDEX.match(text, at):
            steps.append(_position(text, at, found[1]))
        elif found := _QUOTED.match(text, at):
            steps.append(found[1] if found[1] is not None else found[2])
        else:
            raise _refused(text, at, _reason(text, at))
        at = found.end()
    return tuple(steps)


def _position(text: str, at: int, digits: str) -> int:
    significant = digits.lstrip("0") or "0"
    if len(significant) > 10 or int(significant) > MAX_INDEX:
        raise _refused(text, at, f"the largest position is {MAX_INDEX:,}")
    return int(significant)


def _reason(text: str, at: int) -> str:
    rest = text[at:]
    if rest[0] == ".":
        return "a name follows the dot" if rest == "." else f"a name follows the dot, not {rest[1]!r}"
    if rest[0] != "[":
        return f"{rest[0]!r} does not start a step"
    if rest.startswith("[*"):
        return "[*] is not offered: a path leads to one value"
    if re.match(r"\[-\d", rest):
        return "positions count from the start, from 0"
    if rest[1:2] in ("'", '"'):
        return f"the name is not closed by {rest[1]}]"
    return "a bracket holds digits or a name in quotes"


def _refused(text: str, at: int, why: str) -> ExpressionError:
    return ExpressionError(f"{text!r} is not a path: {why} (character {at + 1})", advice=_ADVICE)


def format_path(path: Sequence[Step]) -> str:
    """The string of a path: `parse_path` returns the same steps.

    A name that the grammar cannot express (both quotes together with `.` or `[`) is shown between single quotes, with
    inner ones doubled, which `parse_path` refuses.

    >>> bh.variant.format_path(("a", "b.c", 0))
    "$.a['b.c'][0]"
    """
    return "$" + "".join(map(_step, path))


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if _PLAIN.fullmatch(step) or ("'" in step and '"' in step and _NAME.fullmatch("." + step)):
        return f".{step}"
    return quoted_step(step)


def quoted_step(name: str) -> str:
    """A name as `['name']` or `["name"]`."""
    if "'" in name and '"' not in name:
        return f'["{name}"]'
    return "['" + name.replace("'", "''") + "']"
