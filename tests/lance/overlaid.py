"""Overlays of a table, which pylance commits where its environment allows it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

lance = pytest.importorskip("lance")
LanceOperation = lance.LanceOperation


def file_of(uri: str, columns: pa.Table, ids: Sequence[int], version: str = "2.2") -> Any:
    """A data file of the table, of the fields with these ids, that no version names yet."""
    name = f"{uuid.uuid4().hex}.lance"
    with lance.file.LanceFileWriter(os.path.join(uri, "data", name), columns.schema, version=version) as writer:
        writer.write_batch(columns)
    return lance.fragment.DataFile(name, list(ids), list(range(len(ids))), 2, int(version[2:]))


def overlaid(kit, fragment: int, columns: pa.Table, offsets, ids: Sequence[int], version: str = "2.2") -> None:
    """These columns of the rows at the offsets of a fragment have other values: at the same ones, or at those of each
    field, of which `ids` are given."""
    overlay = LanceOperation.DataOverlayFile(file_of(kit.uri, columns, ids, version), offsets)
    made = LanceOperation.DataOverlay([LanceOperation.DataOverlayGroup(fragment, [overlay])])
    lance.LanceDataset.commit(kit.uri, made, read_version=kit.dataset().version)
