"""The demo's folder: it may be replaced or removed only if a demo created it."""

from __future__ import annotations

import shutil
from pathlib import Path

from boathouse.errors import AlreadyExistsError

MARKER = ".boathouse-demo"
_TEXT = "Created by the demo of boathouse, which replaces the folders delta, iceberg and lance beside this file.\n"
_MADE = ("delta", "iceberg", "lance")


def prepare(folder: Path) -> None:
    """An empty folder for the tables. Raises AlreadyExistsError if it contains something else."""
    _check(folder)
    clean(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).write_text(_TEXT)


def clean(folder: Path) -> bool:
    """Removes the files of a demo, and nothing else; false if there are none. Raises AlreadyExistsError."""
    _check(folder)
    if not (folder / MARKER).is_file():
        return False
    for name in _MADE:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
    (folder / MARKER).unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return True


def _check(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise AlreadyExistsError("this is a file", where=str(folder), advice="choose another folder with --to")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise AlreadyExistsError(
            "the folder contains something else, and was not created by the demo",
            where=str(folder),
            advice="choose another folder with --to",
        )
