"""What versions need: the files that their manifests name, and folders of which they name no file: those of indices,
and of blobs beside a data file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from boathouse.errors import CorruptTableError
from boathouse.lance.deletions.files import DELETIONS
from boathouse.lance.file.schema import Node
from boathouse.lance.lineage.stored import FIELD_IDS, external_uri
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.indices import INDICES, IndexSection
from boathouse.lance.manifests.messages import DataFragment, ExternalFile, Manifest
from boathouse.lance.paths import DATA, TRANSACTIONS, base_uri, data_uri, deletion_file_uri, transaction_uri
from boathouse.storage import relative
from boathouse.table.features.expiry import HeldKind

FOLDERS: Final = frozenset({DATA, DELETIONS, INDICES, TRANSACTIONS})
"""Whose files belong to versions."""
Need = tuple[str, HeldKind, int | None]
"""URI, kind, size where it is recorded. A URI that ends with a slash is a folder, of which all is needed."""
Seen = dict[tuple[str, bool, int], DataFragment]
"""Fragments that are done with: manifests that follow each other share most of them."""


def needs(document: ManifestFile, root: str, seen: Seen) -> Iterator[Need]:
    """What a version of the table at `root` needs, in other tables too; what its fragments need, at least once with the
    same `seen`. Raises CorruptTableError."""
    manifest = document.manifest
    transaction = transaction_uri(manifest, root)
    if transaction is not None:
        yield transaction, "transaction", None
    blobs = any(Node(field).is_blob for field in manifest.fields)
    for fragment in manifest.fragments:
        if (root, blobs, id(fragment)) not in seen:
            yield from _of_fragment(fragment, manifest, root, blobs)
            if not manifest.base_paths:
                seen[root, blobs, id(fragment)] = fragment
    if document.index is None:
        return
    for index in IndexSection.decode(document.index, where=root).indices:
        try:
            folder = index.id.folder if index.id is not None else ""
        except ValueError as error:
            raise CorruptTableError(f"an index whose id is none: {error}", where=root) from None
        if folder:
            yield f"{base_uri(manifest, index.base_id, root, INDICES)}/{folder}/", "index", None


def _of_fragment(fragment: DataFragment, manifest: Manifest, root: str, blobs: bool) -> Iterator[Need]:
    for file in fragment.files:
        uri = data_uri(manifest, file, root)
        yield uri, "data", file.file_size_bytes or None
        if blobs:
            yield f"{uri.removesuffix('.lance')}/", "data", None
    for overlay in fragment.overlays:
        if overlay.data_file is not None:
            yield data_uri(manifest, overlay.data_file, root), "data", overlay.data_file.file_size_bytes or None
    deletion = deletion_file_uri(manifest, fragment, root)
    if deletion is not None:
        yield deletion, "position deletes", None
    for name in FIELD_IDS:
        external: ExternalFile | None = getattr(fragment, f"external_{name}")
        if external is not None:
            yield external_uri(external, root), "data", None


def below(uri: str, root: str) -> str | None:
    """`storage.relative`, quick for a URI that begins with the root."""
    start = f"{root}/"
    return uri[len(start) :] if uri.startswith(start) else relative(uri, root)


def folder_of(path: str) -> str | None:
    """The folder, as versions need it, of a file that no version names itself: of an index, or a blob."""
    parts = path.split("/")
    if parts[0] == INDICES and len(parts) > 2:
        return f"{INDICES}/{parts[1]}/"
    if parts[0] == DATA and len(parts) > 2 and parts[-1].endswith(".blob"):
        return path[: path.rindex("/") + 1]
    return None
