"""Removes files that no version needs, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.filesystem import OutputFiles
from boathouse.errors import BoathouseError

FAILED: Final = pa.schema([("uri", pa.string()), ("error", pa.string())])


@dataclass(frozen=True, slots=True)
class RemoveTask:
    """Some files, by URI."""

    files: OutputFiles
    uris: Sequence[str]


def remove_files(task: RemoveTask) -> Iterator[pa.RecordBatch]:
    """A row of FAILED for each file that could not be removed; the others are removed, missing ones ignored."""
    failed = []
    for uri in task.uris:
        try:
            task.files.delete(uri)
        except (BoathouseError, OSError) as error:
            failed.append({"uri": uri, "error": getattr(error, "message", None) or str(error)})
            continue
        if uri.startswith("file:"):
            folder, _, name = uri.rpartition("/")
            with suppress(BoathouseError, OSError):  # the checksum that Hadoop's local file system writes
                task.files.delete(f"{folder}/.{name}.crc")
    yield pa.RecordBatch.from_pylist(failed, FAILED)
