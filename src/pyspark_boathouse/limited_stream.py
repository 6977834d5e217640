"""A stream whose batches are limited, and that ends where it was when the query started if that is asked for; needs
PySpark 4.2 or later."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from pyspark_boathouse.stream_options import DEFAULT_FILES
from pyspark_boathouse.stream_reader import StreamReader
from pyspark_boathouse.told_errors import told_plainly


@told_plainly
class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):
    """Spark passes one limit back, or says that there is none; both options hold at once."""

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._files or DEFAULT_FILES)

    @property
    def _files(self) -> int | None:
        """The default holds if there is no limit at all."""
        return self.options.files if self.options.limited else DEFAULT_FILES

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # type: ignore[override]
        if isinstance(limit, ReadAllAvailable):
            return self.offset_after(start, None, None)
        return self.offset_after(start, self._files, self.options.bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.newest()
