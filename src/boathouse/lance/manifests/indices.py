"""The index section of a manifest: which indices a version has, as far as it is interpreted here."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from boathouse.bits.protobuf import Message, nested, repeated, scalar


@dataclass(frozen=True, kw_only=True)
class IndexId(Message):
    uuid: bytes = scalar(1, "bytes")

    @property
    def folder(self) -> str:
        """The name of the index's folder. Raises ValueError for an id that is not of 16 bytes."""
        return str(UUID(bytes=self.uuid))


@dataclass(frozen=True, kw_only=True)
class IndexMetadata(Message):
    """One index, or one part of it."""

    id: IndexId | None = nested(1, IndexId)
    fields: tuple[int, ...] = repeated(2, "int32")
    base_id: int | None = scalar(9, "uint32", optional=True)


@dataclass(frozen=True, kw_only=True)
class IndexSection(Message):
    indices: tuple[IndexMetadata, ...] = repeated(1, IndexMetadata)
