"""Identity columns, as they are declared."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.errors import InvalidArgumentError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Identity:
    """A bigint column whose values the table gives, each once: `start`, `start + step`, ...; `step` may be negative.

    Values rise, or fall, from write to write; some may be left out. `allow_explicit_insert`: new rows may bring a value
    of their own, about which nothing is checked. For Delta (PROTOCOL.md, "Identity Columns").

    Raises InvalidArgumentError for a step of 0 and for what is not a bigint.

    >>> from boathouse.types import Identity
    >>> orders = bh.create("lake/orders", "id bigint, item string", identity={"id": Identity(start=100, step=10)})
    >>> done = orders.append([{"item": "oar"}, {"item": "rope"}])
    >>> sorted(orders.to_arrow().column("id").to_pylist())
    [100, 110]
    """

    start: int = 1
    step: int = 1
    allow_explicit_insert: bool = False

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("step", self.step)):
            if not isinstance(value, int) or isinstance(value, bool) or not INT64_MIN <= value <= INT64_MAX:
                raise InvalidArgumentError(f"{name}={value!r} is not a bigint", advice="pass a whole number of 64 bits")
        if self.step == 0:
            raise InvalidArgumentError(
                "an identity column with step 0 would give one value only", advice="pass a positive or negative step"
            )
        if not isinstance(self.allow_explicit_insert, bool):
            raise InvalidArgumentError(f"allow_explicit_insert={self.allow_explicit_insert!r} is not True or False")
