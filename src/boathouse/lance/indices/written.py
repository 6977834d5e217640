"""The files of indices that a commit makes, and what its manifest says of them."""

from __future__ import annotations

import io
from typing import Final

import pyarrow as pa

from boathouse.bits.roaring import Bitmap, serialize32
from boathouse.bits.system import current
from boathouse.lance.file.messages import AnyMessage
from boathouse.lance.file.writer import LanceWriter
from boathouse.lance.indices.contents import Content
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.indices import INDICES, IndexFile, IndexId, IndexMetadata, ZoneMapDetails
from boathouse.lance.operations.build import Build
from boathouse.lance.operations.indices import column_field
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import PutMode, join
from boathouse.table.edits import SetIndex

_URLS: Final = {
    "btree": "/lance.table.BTreeIndexDetails",
    "bitmap": "/lance.table.BitmapIndexDetails",
    "zonemap": "/lance.table.ZoneMapIndexDetails",
}


def written(build: Build, edit: SetIndex) -> tuple[IndexMetadata, list[str]]:
    """What the manifest says of the index, whose files are written."""
    planned, clock = build.change.planned, current()
    assert isinstance(planned, LanceSnapshot)
    id = IndexId(uuid=clock.uuid4().bytes)
    content: Content = edit.content
    files, uris = put_files(build, id, content)
    live = {f.id for f in build.base.fragments}
    made = IndexMetadata(
        id=id,
        fields=(column_field(planned.manifest, edit),),
        name=edit.name,
        dataset_version=planned.version,
        fragment_bitmap=serialize32(Bitmap.of(sorted(live.intersection(edit.units)))),
        details=AnyMessage(type_url=_URLS[edit.kind], value=_details(edit, content)),
        index_version=int(edit.kind == "btree" and has_stable_row_ids(planned.manifest)),
        created_at=clock.now_ms(),
        files=files,
    )
    return made, uris


def put_files(build: Build, id: IndexId, content: Content) -> tuple[tuple[IndexFile, ...], list[str]]:
    """Writes the files of an index, and says their sizes and URIs. Raises StorageError."""
    files, uris = [], []
    for name, file in sorted(content.items()):
        uri = join(build.root, INDICES, id.folder, name)
        storage, key = build.context.stores.resolve(uri)
        sink = io.BytesIO()
        writer = LanceWriter(sink, file.rows.schema)
        writer.write(file.rows)
        files.append(IndexFile(path=name, size_bytes=writer.close(file.buffers).size))
        storage.put(key, sink.getvalue(), PutMode.CREATE)
        uris.append(uri)
    return tuple(files), uris


def _details(edit: SetIndex, content: Content) -> bytes:
    if edit.kind != "zonemap":
        return b""
    rows = next(iter(content.values())).rows
    kind = rows.schema.field("min").type
    wide = pa.types.is_decimal(kind) or any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )
    zone_rows = int(rows.schema.metadata[b"rows_per_zone"])
    return ZoneMapDetails(rows_per_zone=zone_rows, wide=int(wide), null_bitmap=1).encode()
