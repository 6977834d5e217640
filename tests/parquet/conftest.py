"""A file system for tests that need none of the library's own."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest


class PlainFiles:
    """Paths as URIs, straight from the disk."""

    def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
        return pa.OSFile(uri, "rb")

    def open_output(self, uri: str) -> pa.NativeFile:
        return pa.OSFile(uri, "wb")

    def size(self, uri: str) -> int:
        return os.stat(uri).st_size

    def delete(self, uri: str) -> None:
        Path(uri).unlink(missing_ok=True)


@pytest.fixture
def files() -> PlainFiles:
    return PlainFiles()
