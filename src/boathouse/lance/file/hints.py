"""What the metadata of a field asks of the writer (file format, "Compression Configuration")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from boathouse.errors import InvalidArgumentError
from boathouse.lance.file.schema import Node

_PREFIX: Final = "lance-encoding:"
_LARGEST_CHUNK: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Hints:
    """`scheme` is zstd, lz4 or none; None: what the values suggest. `runs` is the largest ratio of runs to values that
    are written as runs; None: where these are the shortest form. Of the values in a dictionary at most one in `divisor`
    is different; it takes no more than `ratio` of their bytes. `split`: bytes of numbers are put together by their
    places before they are compressed."""

    scheme: str | None = None
    level: int | None = None
    runs: float | None = None
    split: str = "auto"
    divisor: int = 4
    ratio: float = 0.8
    words: str = "none"
    words_level: int | None = None
    chunk: int | None = None
    layout: str | None = None

    @classmethod
    def of(cls, node: Node) -> Hints:
        """Raises InvalidArgumentError, naming the field, for a value that none of the keys has."""
        given = node.field.metadata
        if not any(key.startswith(_PREFIX) for key in given):
            return NONE
        found: dict[str, Any] = {}
        for key, (name, read) in _KEYS.items():
            raw = given.get(_PREFIX + key)
            if raw is not None:
                text = raw.decode("utf-8", "replace").strip().lower()
                try:
                    found[name] = read(text)
                except ValueError as error:
                    raise InvalidArgumentError(
                        f"the metadata {_PREFIX}{key} of column `{node.name}` is {text!r}", advice=f"it is {error}"
                    ) from None
        return cls(**found)


def _one_of(*values: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"one of {', '.join(values)}")
        return text

    return read


def _scheme(text: str) -> str | None:
    # Symbol tables are read, not written: such a column is compressed as its values suggest.
    return None if text == "fsst" else _one_of("lz4", "zstd", "none")(text)


def _between(least: float, most: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return value

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text) if text.lstrip("-").isdecimal() else least - 1
        if not least <= value <= most:
            raise ValueError(f"a whole number from {least:,} to {most:,}")
        return value

    return read


_KEYS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "compression": ("scheme", _scheme),
    "compression-level": ("level", _whole(-7, 22)),
    "rle-threshold": ("runs", _between(0, 1)),
    "bss": ("split", _one_of("on", "off", "auto")),
    "dict-divisor": ("divisor", _whole(1, 1 << 40)),
    "dict-size-ratio": ("ratio", _between(0, 1)),
    "dict-values-compression": ("words", _one_of("lz4", "zstd", "none")),
    "dict-values-compression-level": ("words_level", _whole(-7, 22)),
    "minichunk-size": ("chunk", _whole(64, _LARGEST_CHUNK)),
    "structural-encoding": ("layout", _one_of("miniblock", "fullzip")),
}
NONE: Final = Hints()
