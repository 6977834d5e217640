"""Where the values of blob columns are: in the data file, beside it, or in a file of any other program (table format,
"Blob Columns")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa

from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.lance.blobs.rows import DEDICATED, EXTERNAL, INLINE, PACKED, beside
from boathouse.lance.file.schema import Node, tree
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.paths import DATA, base_uri, data_uri
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import absolute, join
from boathouse.table.features.blobs import Span
from boathouse.table.features.random_access import Numbers
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LanceBlobs:
    """See `table.features.Blobs`."""

    snapshot: LanceSnapshot

    def for_rows(self) -> Snapshot:
        snapshot = self.snapshot
        if not snapshot.for_rows and any(Node(f).is_blob for f in snapshot.manifest.fields):
            snapshot = replace(snapshot, for_rows=True)
        return cast("Snapshot", snapshot)

    def check(self, column: str) -> None:
        self._field(column)

    def spans(self, column: str, units: Numbers, stored: pa.ChunkedArray) -> Sequence[Span | None]:
        node, snapshot = self._field(column), self.snapshot
        fragments = snapshot.manifest.fragments
        files = {i: self._file(fragments[i], node) for i in set(units.tolist())}
        return [
            None if value is None else self._span(files[unit], value)
            for unit, value in zip(units.tolist(), stored.to_pylist(), strict=True)
        ]

    def _field(self, column: str) -> Node:
        nodes = {node.name: node for node in tree(self.snapshot.manifest.fields)}
        if column not in nodes or not nodes[column].is_blob:
            raise InvalidArgumentError(
                f"column `{column}` has no blobs",
                where=self.snapshot.location.uri,
                advice="read it by take() or scan()",
            )
        return nodes[column]

    def _file(self, fragment: DataFragment, node: Node) -> str | None:
        """The data file that has the column, None if the fragment was written before there was one."""
        found = next((f for f in fragment.files if node.id in f.fields), None)
        return None if found is None else data_uri(self.snapshot.manifest, found, self.snapshot.location.uri)

    def _span(self, file: str | None, stored: Mapping[str, Any]) -> Span | None:
        root, kind = self.snapshot.location.uri, stored.get("kind", INLINE)
        position, size = stored["position"], stored["size"]
        if file is None:
            raise CorruptTableError("a blob in a fragment without a file of its column", where=root)
        if kind == INLINE:
            null = "kind" not in stored and not size and position  # so do files of 2.0 store it
            return None if null else Span(file, position, size)
        if kind in (PACKED, DEDICATED):
            return Span(beside(file, stored["blob_id"]), position, size)
        if kind == EXTERNAL:
            return Span(self._external(stored["blob_uri"], stored["blob_id"]), position, size or None)
        raise UnsupportedFeatureError(f"blobs of kind {kind}", where=root, advice="use the pylance library for them")

    def _external(self, uri: str, base: int) -> str:
        """A path below a base path, or a URI."""
        manifest, root = self.snapshot.manifest, self.snapshot.location.uri
        if base:
            if not uri or uri.startswith("/") or ".." in uri.split("/"):
                raise CorruptTableError(f"a blob with the path {uri!r} below base path {base}", where=root)
            found = join(base_uri(manifest, base, root, DATA), uri)
        else:
            found = absolute(unquote(uri))
        self.snapshot.stores.check(found)
        return found
