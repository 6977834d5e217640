"""The table properties of Delta that are obeyed here, or change nothing."""

from __future__ import annotations

from typing import Final

PROPERTIES: Final = frozenset(
    """delta.appendOnly delta.autoOptimize.autoCompact delta.autoOptimize.optimizeWrite delta.checkpointInterval
    delta.checkpointPolicy
    delta.checkpoint.writeStatsAsJson delta.checkpoint.writeStatsAsStruct delta.columnMapping.mode
    delta.dataSkippingNumIndexedCols delta.dataSkippingStatsColumns delta.deletedFileRetentionDuration
    delta.enableChangeDataFeed delta.enableDeletionVectors delta.enableExpiredLogCleanup
    delta.enableIcebergCompatV1 delta.enableIcebergCompatV2 delta.enableInCommitTimestamps
    delta.enableRowTracking delta.enableTypeWidening delta.enableVariantShredding
    delta.isolationLevel delta.logRetentionDuration
    delta.parquet.compression.codec delta.parquet.format.version delta.rowTrackingSuspended
    delta.sampleRetentionDuration
    delta.setTransactionRetentionDuration
    delta.targetFileSize delta.tuneFileSizesForRewrites""".split()  # noqa: SIM905
)
PROPERTY_NAMES: Final = {name.lower(): name for name in PROPERTIES}
