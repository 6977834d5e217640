"""What is wrong in a column: raised at once with its row and byte, or noted so that the row becomes null."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from boathouse.bits.unaligned import Ints, Mask
from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant.primitives import budget

KEPT = 100


@dataclass(slots=True)
class Lenient:
    """Passed to a reader of columns, it makes malformed rows null and counts them.

    `count` is how many there were, over all calls that it is passed to; `rows` are the numbers of the first 100.

    >>> lenient = bh.variant.Lenient()
    >>> column = bh.variant.from_json(pa.array(['{"a": 1}', '{"a": ']), lenient=lenient)
    >>> lenient.count, lenient.rows
    (1, [1])
    """

    count: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, rows: Ints) -> None:
        """Notes rows that became null, by their numbers; for readers of columns."""
        self.count += len(rows)
        self.rows.extend(int(r) for r in rows[: max(0, KEPT - len(self.rows))])


class Faults:
    """The malformed rows of one operation over `rows` rows; `first_row` is the number of the first in messages."""

    __slots__ = ("bad", "first_row", "lenient", "rows", "spent")

    def __init__(self, rows: int, lenient: Lenient | None = None, first_row: int = 0) -> None:
        self.rows = rows
        self.lenient = lenient
        self.first_row = first_row
        self.bad: Mask | None = None
        self.spent: Ints | None = None

    def check(self, ok: Mask, row: Ints, offset: Ints, message: str) -> Mask | None:
        """None if all are `ok`. Else MalformedVariant for the first that is not, with its row and offset (bytes
        from the start of its value), or, if lenient, notes the rows and returns `ok`."""
        if ok.all():
            return None
        if self.lenient is None:
            first = int(np.argmin(ok))
            raise MalformedVariant(message, offset=int(offset[first]), row=self.first_row + int(row[first]))
        self.mark(row[~ok])
        return ok

    def unsupported(self, id: int, row: int, path: str = "$") -> None:
        """A primitive type of a later specification: raises, or notes the row if lenient."""
        if self.lenient is None:
            raise UnsupportedFeatureError(
                f"primitive type {id} of Variant at {path}, row {self.first_row + row:,}",
                advice="extract the paths beside it, or read leniently",
            )
        self.mark(np.array([row]))

    def mark(self, rows: Ints) -> None:
        if self.bad is None:
            self.bad = np.zeros(self.rows, np.bool_)
        self.bad[rows] = True

    def spend(self, row: Ints, cost: Ints, room: Ints) -> Mask | None:
        """Counts visits of values in rows `row`, each at its cost; `room` is the bytes of each row's value. As `check`.

        To be called before memory is allocated for what the visits find.
        """
        if self.spent is None:
            self.spent = np.zeros(self.rows, np.int64)
        self.spent += np.bincount(row, cost, self.rows).astype(np.int64)
        over = self.spent > budget(room)
        if not over.any():
            return None
        return self.check(~over[row], row, np.zeros_like(row), "its shared children expand the value without bound")

    def settle(self) -> Mask | None:
        """Reports the malformed rows to the Lenient, and returns them as a mask (None: no row)."""
        if self.bad is not None and self.lenient is not None:
            self.lenient.add(np.flatnonzero(self.bad) + self.first_row)
        return self.bad
