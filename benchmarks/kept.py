"""An Iceberg table of a file system, and its files when it was made: what is done to it can be undone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kept:
    """No metadata of the kept files names one that is removed."""

    path: Path
    files: frozenset[Path]

    @staticmethod
    def of(path: Path) -> Kept:
        return Kept(path, frozenset(p for p in path.rglob("*") if p.is_file()))

    def undo(self) -> None:
        for file in [p for p in self.path.rglob("*") if p.is_file() and p not in self.files]:
            file.unlink()
        newest = max(int(p.name[1:].split(".")[0]) for p in self.path.glob("metadata/v*.metadata.json"))
        (self.path / "metadata" / "version-hint.text").write_text(str(newest))
        for checksum in self.path.glob("metadata/.version-hint.text.crc"):
            checksum.unlink()
