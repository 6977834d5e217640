"""A page of a column, encoded."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.lance.file import messages as m


class TooLarge(Exception):
    """A mini-block chunk would have more levels or bytes than its header can express: the page must be split at a
    row."""


@dataclass(frozen=True)
class EncodedPage:
    """`length` in rows (of a fixed-size list of structs: times its size)."""

    buffers: list[bytes]
    layout: m.PageLayout | m.ArrayEncoding
    length: int
