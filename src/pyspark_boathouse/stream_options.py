"""Options of `spark.readStream` and `df.writeStream`, named as in delta-spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from pyspark_boathouse.options import WriteTarget, flag, path_of, sorted_out, whole

DEFAULT_FILES = 1000
"""delta-spark's own default of maxFilesPerTrigger."""
_OF_STREAMS = frozenset(
    {"startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger", "ignoredeletes",
     "skipchangecommits", "readchangefeed", "ignorechanges"}
)  # fmt: skip
_READ = _OF_STREAMS | {"path", "branch", "tableformat", "timezone", "allowforeignpaths"}
_OF_SPARK = frozenset({"checkpointlocation", "queryname"})
"""Spark passes its own options of a query along."""
_OF_A_BATCH = ("txnappid", "txnversion", "replacewhere", "partitionoverwritemode")
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?")
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def is_stream(options: Mapping[str, str]) -> bool:
    """Whether options that only a stream has are among these."""
    return any(str(name).lower() in _OF_STREAMS for name in dict(options))


@dataclass(frozen=True)
class StreamOptions:
    """Which table, where the stream begins, and what it gives. Plain values, since executors load them too."""

    path: str
    format: str | None = None
    ref: str | None = None
    timezone: str | None = None
    foreign_paths: bool = False
    version: int | None = None
    latest: bool = False
    timestamp: str | None = None
    files: int | None = None
    bytes: int | None = None
    changes: bool = False
    ignore_deletes: bool = False
    skip_changes: bool = False
    storage: Mapping[str, str] = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        return self.files is not None or self.bytes is not None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StreamOptions:
        """Raises InvalidArgumentError, UnsupportedFeatureError."""
        given, storage = sorted_out(options, _READ, _OF_SPARK)
        if flag(given, "ignorechanges"):
            raise UnsupportedFeatureError(
                "the option ignoreChanges is not offered: it gives rows again that a commit only rewrote",
                advice="set skipChangeCommits to true to pass over such commits, or readChangeFeed to true",
            )
        start = given.get("startingversion", "").strip().lower()
        if start and "startingtimestamp" in given:
            raise InvalidArgumentError(
                "the options startingVersion and startingTimestamp exclude each other", advice="give one of them"
            )
        return cls(
            path_of(given),
            given.get("tableformat"),
            given.get("branch"),
            given.get("timezone"),
            flag(given, "allowforeignpaths"),
            whole(given, "startingversion") if start not in ("", "latest") else None,
            start == "latest",
            given.get("startingtimestamp"),
            _count(given, "maxfilespertrigger"),
            _bytes(given, "maxbytespertrigger"),
            flag(given, "readchangefeed"),
            flag(given, "ignoredeletes"),
            flag(given, "skipchangecommits"),
            storage,
        )


def stream_target(options: Mapping[str, str], overwrite: bool) -> WriteTarget:
    """The target of a stream; its transactions are named by Spark. Raises InvalidArgumentError."""
    wanted = {k: v for k, v in dict(options).items() if str(k).lower() not in _OF_SPARK}
    for name in wanted:
        if str(name).lower() in _OF_A_BATCH:
            raise InvalidArgumentError(
                f"the option {name} is not one of a stream",
                advice="write the batches yourself with foreachBatch (docs/streams.md)",
            )
    return WriteTarget.of(wanted, overwrite)


def of_batch(target: WriteTarget, query: str, batch: int) -> WriteTarget:
    """The target of one batch of a query: its application transaction, so that it is written once."""
    return replace(target, options={**target.options, "txn": (query, batch)})


def _count(given: Mapping[str, str], name: str) -> int | None:
    found = whole(given, name)
    if found is not None and found < 1:
        raise InvalidArgumentError(f"the option {name} is {found}", advice="give a number of at least 1")
    return found


def _bytes(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip().lower())
    size = 0 if match is None else int(match[1]) << _POWERS[match[2]]
    if size < 1:
        raise InvalidArgumentError(f"the option {name} is {text!r}", advice="give for example 10485760, 10m or 1g")
    return size
