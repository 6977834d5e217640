"""Which manifests a commit of new files merges, by the table's properties and the reference's rules: without it, every
commit would read and write a list that is longer by one row than the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from boathouse.errors import InvalidArgumentError

ENABLED: Final = "commit.manifest-merge.enabled"
MIN_COUNT: Final = "commit.manifest.min-count-to-merge"
TARGET_SIZE: Final = "commit.manifest.target-size-bytes"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MergeRule:
    """Manifests are merged up to `target_bytes`; the group that has the new one only if it has `min_count`."""

    enabled: bool = True
    min_count: int = 100
    target_bytes: int = 8 << 20

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MergeRule:
        """Raises InvalidArgumentError for a property that is no number."""
        usual = cls()
        return cls(
            properties.get(ENABLED, "true").lower() != "false",
            _number(properties, MIN_COUNT, usual.min_count),
            _number(properties, TARGET_SIZE, usual.target_bytes),
        )

    def groups(self, manifests: Sequence[T], size: Callable[[T], int]) -> list[Sequence[T]]:
        """Which of the manifests become one, the newest first, all of one spec. They are packed from the end, so that
        the oldest ones, once they are full, are left alone."""
        if not self.enabled:
            return [[m] for m in manifests]
        bins: list[list[T]] = []
        room = 0
        for m in reversed(manifests):
            if not bins or size(m) > room:
                bins.append([])
                room = self.target_bytes
            bins[-1].insert(0, m)
            room -= size(m)
        bins.reverse()
        if bins and len(bins[0]) < self.min_count:
            return [*([m] for m in bins[0]), *bins[1:]]
        return list(bins)


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(properties.get(name, default))
    except ValueError:
        raise InvalidArgumentError(
            f"table property {name} is {properties[name]!r}, which is not a number", advice="set it to a number"
        ) from None
