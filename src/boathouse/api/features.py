"""The method of a table that drops features of its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse.api.arguments import located
from boathouse.api.engines import engine_for
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.drop_feature import FeatureDropped


class Features(Part):
    """Features of Delta tables (PROTOCOL.md, "Table Features")."""

    _spark: Any

    @located
    def drop_feature(
        self,
        name: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Takes a feature out of the table's protocol, so that readers and writers need not know it any more.

        It is turned off first where that loses nothing: `deletionVectors` (the files with deleted rows are rewritten),
        `v2Checkpoint`, `rowTracking`, `inCommitTimestamp`, `icebergCompatV1` and `V2`. Others must be unused. A feature
        that readers know is dropped in a second commit, after a checkpoint; the versions before need readers that know
        it, and the table gets the feature `checkpointProtection`, which keeps the checkpoint.

        Raises InvalidArgumentError if the table has no such feature, UnsupportedFeatureError if it is used, if it never
        goes, and for other formats than Delta, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"{name!r} is not the name of a feature", advice="pass the name as a string")
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._run(engine_for(None, self._spark), FeatureDropped(name), options)
