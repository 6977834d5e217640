"""Features of a table's protocol, and what dropping one takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FeatureDrop:
    """What must be undone before a feature of the format can be dropped: `properties` that turn it off; if `purge`,
    files of which rows are marked as deleted; if `clear`, what the schema says for it, and with that every file
    (`ClearFeature`). `separate`: in a commit before."""

    properties: Mapping[str, str | None]
    purge: bool
    clear: bool
    separate: bool


class ProtocolFeatures(Protocol):
    """Of a snapshot."""

    def feature_drop(self, name: str) -> FeatureDrop:
        """What must be undone before the feature can be dropped by `SetFeature`.

        Raises InvalidArgumentError if the table lacks it, UnsupportedFeatureError if it is used, or never goes.
        """
