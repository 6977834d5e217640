"""The index section of a manifest: which indices a version has, as far as it is interpreted here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.lance.file.messages import AnyMessage

INDICES: Final = "_indices"
"""The folder that has one of each index."""


@dataclass(frozen=True, kw_only=True)
class IndexId(Message):
    uuid: bytes = scalar(1, "bytes")

    @property
    def folder(self) -> str:
        """The name of the index's folder. Raises ValueError for an id that is not of 16 bytes."""
        return str(UUID(bytes=self.uuid))


@dataclass(frozen=True, kw_only=True)
class IndexFile(Message):
    path: str = scalar(1, "string")
    size_bytes: int = scalar(2, "uint64")


@dataclass(frozen=True, kw_only=True)
class IndexMetadata(Message):
    """One index, or one part of it: parts have the same name, and cover different fragments.

    `fragment_bitmap` are the fragments that it covers, a portable 32-bit roaring bitmap; `dataset_version` is that
    which its values were read from.
    """

    id: IndexId | None = nested(1, IndexId)
    fields: tuple[int, ...] = repeated(2, "int32")
    name: str = scalar(3, "string")
    dataset_version: int = scalar(4, "uint64")
    fragment_bitmap: bytes | None = scalar(5, "bytes", optional=True)
    details: AnyMessage | None = nested(6, AnyMessage)
    index_version: int | None = scalar(7, "int32", optional=True)
    created_at: int | None = scalar(8, "uint64", optional=True)
    base_id: int | None = scalar(9, "uint32", optional=True)
    files: tuple[IndexFile, ...] = repeated(10, IndexFile)

    @property
    def kind(self) -> str:
        """The last part of the details' type, such as `BTreeIndexDetails`; empty where an old writer gave none."""
        return self.details.type_url.rpartition(".")[2] if self.details is not None else ""


@dataclass(frozen=True, kw_only=True)
class ZoneMapDetails(Message):
    """`wide`: strings, binaries and decimals have bounds, which early writers left out; `null_bitmap`: the file has the
    set of the rows that are null."""

    rows_per_zone: int = scalar(1, "uint64")
    wide: int | None = scalar(2, "uint32", optional=True)
    null_bitmap: int | None = scalar(3, "uint32", optional=True)


@dataclass(frozen=True, kw_only=True)
class IndexSection(Message):
    indices: tuple[IndexMetadata, ...] = repeated(1, IndexMetadata)
