"""Options of a batch that reads the changes of a table, `readChangeFeed`, named as in delta-spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boathouse.errors import InvalidArgumentError
from pyspark_boathouse.options import flag, whole
from pyspark_boathouse.stream_options import StreamOptions

_ENDS = ("endingversion", "endingtimestamp")


@dataclass(frozen=True)
class ChangeOptions:
    """Where the changes begin, as in a stream, and the last version of them: by default the newest."""

    stream: StreamOptions
    version: int | None = None
    timestamp: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ChangeOptions:
        """Raises InvalidArgumentError without a beginning, and for options that exclude each other."""
        given = {str(k).lower(): str(v) for k, v in dict(options).items()}
        ends = {name: given[name] for name in _ENDS if name in given}
        stream = StreamOptions.of(without_ends(given))
        if stream.version is None and stream.timestamp is None:
            raise InvalidArgumentError(
                "a batch of changes needs the option startingVersion or startingTimestamp",
                advice="give startingVersion 0 for all that the table still knows",
            )
        if len(ends) == 2:
            raise InvalidArgumentError(
                "the options endingVersion and endingTimestamp exclude each other", advice="give one of them"
            )
        return cls(stream, whole(ends, "endingversion"), ends.get("endingtimestamp"))


def gives_changes(options: Mapping[str, str]) -> bool:
    """Whether a batch with these options reads changes."""
    return flag({str(k).lower(): str(v) for k, v in dict(options).items()}, "readchangefeed")


def without_ends(options: Mapping[str, str]) -> dict[str, str]:
    """The options that a stream has too."""
    return {k: v for k, v in dict(options).items() if str(k).lower() not in _ENDS}
