"""Locations of the files in a manifest: below the table's root, or below one of its base paths."""

from __future__ import annotations

from urllib.parse import unquote

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.lance.deletions.files import deletion_uri
from boathouse.lance.manifests.messages import BasePath, DataFile, DataFragment, Manifest
from boathouse.storage import absolute, join
from boathouse.storage.external import external

DATA = "data"
TRANSACTIONS = "_transactions"
LEGACY, V2_0, V2_1, V2_2, V2_3 = "0.1", "2.0", "2.1", "2.2", "2.3"
_FILE_VERSIONS = {
    (0, 0): LEGACY,
    (0, 1): LEGACY,
    (0, 2): LEGACY,
    (0, 3): V2_0,
    (2, 0): V2_0,
    (2, 1): V2_1,
    (2, 2): V2_2,
    (2, 3): V2_3,
}
_READ = (LEGACY, V2_0, V2_1, V2_2)


def file_version(file: DataFile, where: str) -> str:
    """The version of a data file. Raises UnsupportedFeatureError for an unsupported one."""
    pair = (file.file_major_version, file.file_minor_version)
    version = _FILE_VERSIONS.get(pair)
    if version not in _READ:
        raise UnsupportedFeatureError(
            f"data file {file.path} has version {pair[0]}.{pair[1]}",
            where=where,
            advice=f"the supported versions are {', '.join(_READ)}",
        )
    return version


def version_numbers(version: str) -> tuple[int, int]:
    """(major, minor) as DataFile records a version."""
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def table_version(manifest: Manifest, where: str) -> str:
    """The data file version of the table: as recorded, else that of its files."""
    if manifest.data_format is not None and manifest.data_format.version:
        version = manifest.data_format.version
        return {"0.3": V2_0, "0.2": LEGACY, "legacy": LEGACY}.get(version, version)
    found = {file_version(f, where) for fragment in manifest.fragments for f in fragment.files}
    if len(found) > 1:
        raise CorruptTableError(f"a table without a recorded data version has files of {sorted(found)}", where=where)
    if found:
        return found.pop()
    return V2_0 if (manifest.reader_feature_flags | manifest.writer_feature_flags) & 4 else LEGACY


def base_root(base: BasePath) -> str:
    """The folder that a base path names. pylance writes it as it was given, so as `s3+ddb://` too, and as a
    `file:` URI, which it decodes, where a path is raw."""
    place = external(base.path)[0]
    return absolute(unquote(place) if place[:5].lower() == "file:" else place)


def base_uri(manifest: Manifest, base_id: int | None, root: str, folder: str) -> str:
    """The folder that a file's path is relative to: `folder` of the root, or of the base path `base_id`."""
    if base_id is None:
        return join(root, folder)
    base = next((b for b in manifest.base_paths if b.id == base_id), None)
    if base is None:
        raise CorruptTableError(f"a file is in base path {base_id}, which is not recorded", where=root)
    uri = base_root(base)
    return join(uri, folder) if base.is_dataset_root else uri


def data_uri(manifest: Manifest, file: DataFile, root: str) -> str:
    """The absolute URI of a data file. Raises CorruptTableError for a path that leaves its folder."""
    parts = file.path.split("/")
    if not file.path or ".." in parts or parts[0] == "" or "\0" in file.path:
        raise CorruptTableError(f"a data file with the path {file.path!r}", where=root)
    return join(base_uri(manifest, file.base_id, root, DATA), file.path)


def transaction_uri(manifest: Manifest, root: str) -> str | None:
    """The absolute URI of a version's transaction file. Raises CorruptTableError for a path that leaves its folder."""
    name = manifest.transaction_file
    if not name:
        return None
    if "/" in name or "\0" in name or name == "..":
        raise CorruptTableError(f"a manifest with the transaction file {name!r}", where=root)
    return join(root, TRANSACTIONS, name)


def deletion_root(manifest: Manifest, fragment: DataFragment, root: str) -> str:
    """The root whose `_deletions` contains the fragment's deletion file."""
    file = fragment.deletion_file
    if file is None or file.base_id is None:
        return root
    base = next((b for b in manifest.base_paths if b.id == file.base_id), None)
    if base is None or not base.is_dataset_root:
        raise CorruptTableError(
            f"a deletion file is in base path {file.base_id}, which is not the root of a table", where=root
        )
    return base_root(base)


def deletion_file_uri(manifest: Manifest, fragment: DataFragment, root: str) -> str | None:
    """The absolute URI of a fragment's deletion file."""
    if fragment.deletion_file is None:
        return None
    return deletion_uri(deletion_root(manifest, fragment, root), fragment.id, fragment.deletion_file)
