"""Feature flags: two words of bits in a manifest, for what a reader and what a writer must support.

Bits: 1 deletion files, 2 stable row ids, 4 an old mark of 2.x files, 8 config, 16 base paths, 32 no transaction
file, 64 data overlays, 128 covering indices, 256 mixed data file versions, 1024 fragment reuse index, 2048 row
lineage in files.
"""

from __future__ import annotations

from typing import Final

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.manifests.messages import Manifest, ManifestHeader

DELETION_FILES: Final = 1
STABLE_ROW_IDS: Final = 2
CONFIG: Final = 8
BASE_PATHS: Final = 16
NO_TRANSACTION_FILE: Final = 32
OVERLAYS: Final = 64
MIXED_VERSIONS: Final = 256
FRAGMENT_REUSE: Final = 1024
SPILLED_LINEAGE: Final = 2048

NAMES: Final = {
    DELETION_FILES: "deletion files",
    STABLE_ROW_IDS: "stable row ids",
    4: "2.x data files",
    CONFIG: "table config",
    BASE_PATHS: "base paths",
    NO_TRANSACTION_FILE: "no transaction file",
    OVERLAYS: "data overlay files",
    128: "covering indices",
    MIXED_VERSIONS: "mixed data file versions",
    512: "reserved",
    FRAGMENT_REUSE: "fragment reuse index",
    SPILLED_LINEAGE: "row lineage in data files",
}
READ: Final = 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256 | 1024 | 2048
"""Bits that a table may have to be read here."""
WRITE: Final = 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 256 | 1024 | 2048
"""Bits that a table may have to be written here."""


def check_readable(manifest: Manifest | ManifestHeader, where: str) -> None:
    """Raises UnsupportedFeatureError naming the first unsupported reader flag."""
    _refuse(manifest.reader_feature_flags & ~READ, "read", where)


def check_writable(manifest: Manifest, where: str) -> None:
    """Raises UnsupportedFeatureError naming the first flag, of either word, that is unsupported for writing."""
    _refuse((manifest.reader_feature_flags | manifest.writer_feature_flags) & ~WRITE, "written", where)


def flags_of(manifest: Manifest) -> tuple[int, int]:
    """(reader, writer) flags of a manifest to be committed: 1, 8, 64 and 2048 by content, all others unchanged."""
    used = DELETION_FILES if any(f.deletion_file is not None for f in manifest.fragments) else 0
    used |= SPILLED_LINEAGE if any(f.has_lineage_columns for f in manifest.fragments) else 0
    used |= OVERLAYS if any(f.overlays for f in manifest.fragments) else 0
    config = CONFIG if manifest.config else 0
    kept = ~(DELETION_FILES | CONFIG | OVERLAYS | SPILLED_LINEAGE)
    reader = manifest.reader_feature_flags & kept | used
    return reader, manifest.writer_feature_flags & kept | used | config


def has_stable_row_ids(manifest: Manifest) -> bool:
    """Whether every row has an id that stays with it."""
    return bool((manifest.reader_feature_flags | manifest.writer_feature_flags) & STABLE_ROW_IDS)


def describe(flags: int) -> tuple[str, ...]:
    """The names of the set flags, lowest first."""
    return tuple(NAMES.get(1 << i, f"flag {1 << i}") for i in range(64) if flags >> i & 1)


def _refuse(unknown: int, verb: str, where: str) -> None:
    if not unknown:
        return
    bit = unknown & -unknown
    name = NAMES.get(bit)
    raise UnsupportedFeatureError(
        f"a table with feature flag {bit}{f' ({name})' if name else ''} cannot be {verb}",
        where=where,
        advice="use the library that wrote it, or a newer version of this one",
    )
