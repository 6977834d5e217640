"""A table's metadata for another place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RewrittenPaths:
    """`latest_version` is the name of the newest metadata document, `file_list` where the list of copies to make is,
    without which nothing changes: lines of CSV, `copies`, each a file and where it belongs, the document last. Of
    `manifests` and `delete_files` it says how many were written anew."""

    latest_version: str
    file_list: str
    manifests: int
    delete_files: int
    copies: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"{self.latest_version}: {len(self.copies):,} files to copy, listed in {self.file_list}"


class Relocation(Protocol):
    """Of a table whose metadata names its files by their places."""

    def rewrite_paths(self, source: str, target: str, staging: str | None) -> RewrittenPaths:
        """Writes below `staging` (None: in the table's metadata) what names files below `source`, with `target` in its
        place. Raises InvalidArgumentError for a file that is elsewhere, UnsupportedFeatureError."""
