"""The sequences of a fragment as arrays, wherever it has them: inline, in another file, or in a column of a data file.

A fragment of a table with stable row ids has its ids for certain; versions that are not recorded are 1, as pylance
reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from boathouse.arrow.filesystem import DataFiles
from boathouse.errors import CorruptTableError
from boathouse.lance.file.fields import CREATED, ROW_ID, UPDATED, Field
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.schema import Node
from boathouse.lance.lineage.sequences import Numbers, decode_ids, decode_versions
from boathouse.lance.manifests.messages import DataFragment, ExternalFile
from boathouse.storage import Stores, join

Kind = Literal["row_ids", "updated", "created"]
FIELD_IDS: Final[Mapping[Kind, int]] = {"row_ids": ROW_ID, "created": CREATED, "updated": UPDATED}
FIRST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment with its number of rows and its parts as FILES has them, whose sequences none are external."""

    message: DataFragment
    rows: int
    parts: tuple[Mapping[str, Any], ...]
    files: DataFiles
    where: str

    def row_ids(self) -> Numbers:
        """Raises CorruptTableError if it has none."""
        found = self._numbers("row_ids")
        if found is None:
            raise CorruptTableError(f"fragment {self.message.id} has no row ids", where=self.where)
        return found

    def versions(self, kind: Literal["updated", "created"]) -> Numbers:
        found = self._numbers(kind)
        return np.full(self.rows, FIRST_VERSION, np.int64) if found is None else found

    def _numbers(self, kind: Kind) -> Numbers | None:
        inline: bytes | None = getattr(self.message, f"inline_{kind}")
        if inline is not None:
            return (decode_ids if kind == "row_ids" else decode_versions)(inline, self.rows, self.where)
        return None if getattr(self.message, f"column_{kind}") is None else self._column(FIELD_IDS[kind])

    def _column(self, id: int) -> Numbers:
        part = next((p for p in self.parts if id in p["fields"]), None)
        if part is None:
            raise CorruptTableError(
                f"no data file of fragment {self.message.id} has the column of field {id}", where=self.where
            )
        columns = {id: (part["columns"] or part["fields"])[part["fields"].index(id)]}
        node = Node(Field(id=id, name=f"field {id}", parent_id=-1, logical_type="uint64"))
        with LanceFile.open(self.files, part["path"], part["size"], columns=columns) as file:
            found = file.read([node]).column(0)
        if len(found) != self.rows or found.null_count:
            raise CorruptTableError(f"{len(found)} numbers of {self.rows} rows", where=part["path"])
        return found.to_numpy().astype(np.int64)


def inlined(fragment: DataFragment, stores: Stores, root: str) -> DataFragment:
    """The fragment with its external sequences inline. Raises CorruptTableError, NotFoundError."""
    for kind in FIELD_IDS:
        external: ExternalFile | None = getattr(fragment, f"external_{kind}")
        if external is not None:
            inline: dict[str, Any] = {f"external_{kind}": None, f"inline_{kind}": _bytes_of(external, stores, root)}
            fragment = replace(fragment, **inline)
    return fragment


def external_uri(file: ExternalFile, root: str) -> str:
    """The absolute URI of a file of sequences. Raises CorruptTableError for a path that leaves the table."""
    if ".." in file.path.split("/") or file.path.startswith("/"):
        raise CorruptTableError(f"row ids in the file {file.path!r}", where=root)
    return join(root, file.path)


def _bytes_of(file: ExternalFile, stores: Stores, root: str) -> bytes:
    uri = external_uri(file, root)
    storage, key = stores.resolve(uri)
    found = storage.get(key)[file.offset : file.offset + file.size]
    if len(found) < file.size:
        raise CorruptTableError(f"row ids at byte {file.offset} + {file.size} of a shorter file", where=uri)
    return found
