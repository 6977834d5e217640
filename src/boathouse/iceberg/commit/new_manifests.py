"""Manifests that a commit makes, and its rows of the manifest list."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from boathouse.bits import system
from boathouse.iceberg.manifests.entries import LiveFiles
from boathouse.iceberg.manifests.records import DATA, ManifestFile, Row
from boathouse.iceberg.manifests.rewrite import NewManifests
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.storage import join
from boathouse.types import PartitionSpec

_CODECS: Final = {"gzip": "deflate", "zstd": "zstandard", "uncompressed": "null"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest of the new snapshot, as its row of the list says.

    One of the head that did not change is `source`; a new one has `data`, which is not written yet, and its entries,
    if they are added by this commit. A `lasting` one is the same at every attempt.
    """

    row: Row
    source: ManifestFile | None = None
    data: bytes = b""
    added: pa.Table | None = None
    lasting: bool = False

    @property
    def size(self) -> int:
        return int(self.row["manifest_length"])


@dataclass
class ManifestMaker:
    """Encodes the manifests of one attempt at a commit, whose snapshot has this id and sequence number, below `folder`;
    `metadata` is what the commit makes of the table's."""

    metadata: TableMetadata
    snapshot_id: int
    sequence: int
    write_id: str
    folder: str
    named: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.version = self.metadata.format
        self.uuid = str(system.current().uuid4())
        codec = self.metadata.properties.get("write.avro.compression-codec", "gzip").lower()
        self.codec = _CODECS.get(codec, "deflate")

    def name_of(self, entries: pa.Table, spec: PartitionSpec) -> str:
        written = [self.write_id, str(spec.id), self.codec, str(self.version)]
        if not self.version.sequence_numbers:
            written.append(str(self.snapshot_id))
        names = "\n".join([*written, *entries.column("file_path").to_pylist()])
        return f"{hashlib.sha256(names.encode()).hexdigest()[:32]}-m0.avro"

    def new_name(self) -> str:
        self.named += 1
        return f"{self.uuid}-m{self.named - 1}.avro"

    def encode(self, name: str, entries: pa.Table, spec: PartitionSpec, content: int = DATA) -> Listed:
        """A new manifest."""
        data, row = self.new.encoded(self.uri(name), entries, spec, content)
        return Listed(row, data=data)

    def uri(self, name: str) -> str:
        return join(self.folder, name)

    @property
    def new(self) -> NewManifests:
        """What is the same in all of them."""
        id = int(self.metadata.document["current-schema-id"])
        return NewManifests(self.snapshot_id, self.sequence, self.version, self.codec, self.metadata.schema, id)

    def keeps(self, live: LiveFiles) -> bool:
        return self.new.keeps(live)
