"""The scalar indices of a version that conditions may be answered by, and their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles, data_files
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import deserialize32
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.schema import Node, arrow_type, tree
from boathouse.lance.manifests.indices import INDICES, IndexMetadata, IndexSection
from boathouse.lance.paths import base_uri
from boathouse.lance.read import plain_array
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join
from boathouse.types import DataType

BITMAP: Final = "BitmapIndexDetails"
BTREE: Final = "BTreeIndexDetails"
ZONE_MAP: Final = "ZoneMapIndexDetails"
BLOOM_FILTER: Final = "BloomFilterIndexDetails"
FRAGMENT_REUSE: Final = "FragmentReuseIndexDetails"
VERSIONS: Final = {BITMAP: (0,), BTREE: (0, 1), ZONE_MAP: (0,), BLOOM_FILTER: (0,)}
"""Of the files of each kind that is read, those first that know single rows. B-trees of version 1, which pylance makes
in tables with stable row ids, have addresses where those of version 0 have ids."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """One index on a top-level column, or one part of it: `type` is the column's, and `stored` that of its values in
    files, `fragments` are those of this version that it covers."""

    message: IndexMetadata
    column: str
    type: DataType
    stored: pa.DataType
    fragments: frozenset[int]
    folder: str
    files: DataFiles

    @property
    def kind(self) -> str:
        return self.message.kind

    @property
    def of_addresses(self) -> bool:
        """Whether it has addresses of rows in tables with stable row ids too."""
        return self.kind in (ZONE_MAP, BLOOM_FILTER) or bool(self.message.index_version)

    def open(self, name: str) -> LanceFile:
        """One of its files. Raises NotFoundError, CorruptTableError."""
        sizes = {f.path: f.size_bytes for f in self.message.files}
        return LanceFile.open(self.files, join(self.folder, name), sizes.get(name) or None)

    def size(self, name: str) -> int:
        """The bytes of a file, 0 if they are not recorded."""
        return next((f.size_bytes for f in self.message.files if f.path == name), 0)

    def batch(self, values: pa.ChunkedArray) -> pa.RecordBatch:
        """Values of the column, for a condition. Raises pyarrow's errors if they are not of its type."""
        return pa.record_batch([plain_array(values, to_arrow_type(self.type))], [self.column])


def usable(snapshot: LanceSnapshot) -> Iterator[StoredIndex]:
    """The indices of kinds that are read. Others are left aside, those of versions that are not known too, and all
    where rows were moved after an index was made without it being written again (a fragment reuse index).

    Raises CorruptTableError, ValueError for what is no index.
    """
    manifest, where = snapshot.manifest, snapshot.location.uri
    if snapshot.document.index is None:
        return
    section = IndexSection.decode(snapshot.document.index, where=where)
    if any(i.kind == FRAGMENT_REUSE for i in section.indices):
        return
    live = frozenset(f.id for f in manifest.fragments)
    columns = indexable(snapshot)
    files = data_files(snapshot.stores)
    for index in section.indices:
        known = (index.index_version or 0) in VERSIONS.get(index.kind, ()) and index.id is not None
        if not known or index.fragment_bitmap is None or len(index.fields) != 1 or index.fields[0] not in columns:
            continue
        assert index.id is not None
        assert index.fragment_bitmap is not None
        covered = live.intersection(deserialize32(index.fragment_bitmap, where=where).positions().tolist())
        node = columns[index.fields[0]]
        folder = join(base_uri(manifest, index.base_id, where, INDICES), index.id.folder)
        if covered:
            type = snapshot.schema.field(node.name).type
            yield StoredIndex(index, node.name, type, arrow_type(node), covered, folder, files)


def indexable(snapshot: LanceSnapshot) -> Mapping[int, Node]:
    """The top-level columns, by id, whose values indices have as the table has them."""
    nodes = tree(snapshot.manifest.fields, where=snapshot.location.uri)
    return {n.id: n for n in nodes if not n.extension and not n.is_blob and _is_simple(arrow_type(n))}


def _is_simple(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_null(kind)
