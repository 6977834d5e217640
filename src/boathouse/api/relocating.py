"""The method of a table that writes its metadata for another place."""

from __future__ import annotations

from boathouse.api.arguments import located
from boathouse.api.detection import locate
from boathouse.api.opening import path_text
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle, check_read_only
from boathouse.table.features import Relocation, RewrittenPaths, required


class Relocating:
    """The part of Table for its place."""

    _handle: Handle

    @property
    def uri(self) -> str:
        raise NotImplementedError

    @located
    def rewrite_table_path(
        self, source_prefix: str, target_prefix: str, staging_location: str | None = None
    ) -> RewrittenPaths:
        """Writes the metadata that the table would have at another place: Iceberg names every file by where it is, so a
        table that is copied or moved can be read there (`relocated=`), and written only with metadata of its own.

        The newest document, all lists and manifests of its versions, and their files of deleted positions are written
        with `target_prefix` instead of `source_prefix`, the folder that has all of the table's files, below
        `staging_location` (by default a folder in the table's metadata). The table itself stays as it is. What
        is returned lists the copies to make, also of data files, and so does the CSV file that it names; the new
        table is there once the last of them, its document, is made. A table that was copied already is opened with
        `relocated=`: what is at its place then is not listed. The log of earlier documents is left out.

        Raises InvalidArgumentError for a file that is not below `source_prefix`, UnsupportedFeatureError for other
        formats, for snapshots without manifest lists, and for deleted positions in ORC or Avro, AlreadyExistsError if
        the staging folder is in use, CorruptTableError, MissingFileError, ReadOnlyError, StorageError.
        """
        for name, text in (("source_prefix", source_prefix), ("target_prefix", target_prefix)):
            if not isinstance(text, str) or not text.strip("/ "):
                raise InvalidArgumentError(f"{name}={text!r} is no folder", advice="pass a path or URI as a string")
        check_read_only(self.uri)
        snapshot = self._handle.snapshot
        found = required(snapshot, Relocation, "rewrite_table_path")
        staging = None if staging_location is None else locate(path_text(staging_location)).uri
        return found.rewrite_paths(_folder(source_prefix), _folder(target_prefix), staging)


def _folder(text: str) -> str:
    """A folder's URI; one of a store that is not known here is taken as it is."""
    return text if "://" in text else locate(path_text(text)).uri
