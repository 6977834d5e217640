"""One attempt at a change: the head's manifest, and what operations make new ones of.

A new manifest is the old one with fields replaced, so that unknown parts are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from boathouse.errors import InvalidArgumentError, SchemaMismatchError
from boathouse.lance.commit.evolve import evolved
from boathouse.lance.file.fields import Field
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.messages import DataFile, DataFragment, Manifest, Merge
from boathouse.lance.operations.lineage import Sources, with_lineage
from boathouse.lance.paths import DATA, table_version, version_numbers
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join, relative
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.edits import ReplaceSchema, SetNullable


@dataclass(frozen=True, slots=True)
class Built:
    """The next manifest. `operation` is the one field of Transaction's oneof that is set; `side` are auxiliary files
    already written. `begins` is the version with which a clone begins, that of its source."""

    document: ManifestFile
    operation: dict[str, Any]
    side: tuple[str, ...] = ()
    begins: int | None = None


@dataclass(frozen=True, slots=True)
class NewFragments:
    """Fragments as they are committed, and the next row id after them."""

    fragments: tuple[DataFragment, ...]
    next_row_id: int = 0


@dataclass(frozen=True, slots=True)
class Build:
    """One attempt at a change on `head` (None: a new table)."""

    change: Change
    head: LanceSnapshot | None
    context: TableContext

    @property
    def root(self) -> str:
        return self.context.location.uri

    @property
    def base(self) -> Manifest:
        assert self.head is not None
        return self.head.manifest

    @property
    def base_document(self) -> ManifestFile:
        assert self.head is not None
        return self.head.document

    def fields(self) -> tuple[Field, ...]:
        """The fields after the change's edits."""
        return self.evolved().fields

    def evolved(self) -> Manifest:
        """The head's manifest after the edits of the schema. One that is replaced depends on the planned version only,
        for which the files were written."""
        base, planned = self.base, self.change.planned
        if self.change.edit(ReplaceSchema) is not None and isinstance(planned, LanceSnapshot):
            base = replace(planned.manifest, schema_metadata=base.schema_metadata)
        return evolved(base, self.change.schema_edits, self.root)

    def removed(self) -> list[int]:
        """The ids of the fragments that the change removes."""
        units = self.change.removed
        return [] if units is None else list(dict.fromkeys(units.column("unit").to_pylist()))

    def with_fragments(self, kept: Iterable[DataFragment], new: NewFragments | None = None) -> Manifest:
        """The head's manifest with other fragments; the highest ids ever assigned never decrease."""
        fragments = (*kept, *(new.fragments if new is not None else ()))
        highest = max((*(f.id for f in fragments), next_fragment_id(self.base) - 1))
        next_row_id = self.base.next_row_id if new is None else new.next_row_id
        return replace(
            self.base,
            fragments=fragments,
            max_fragment_id=highest if highest >= 0 else None,
            next_row_id=next_row_id,
        )

    def numbered(self, files: Sequence[DataFragment], lost: Collection[int] = (), moved: bool = False) -> NewFragments:
        """The new fragments with their ids, and those of their rows if the table has them: rows that they were in
        before are in the fragments `lost` of the head; `moved` ones did not change."""
        base = self.base
        given, next_row_id = tuple(files), base.next_row_id
        if has_stable_row_ids(base):
            sources = Sources(self.head, [f for f in base.fragments if f.id in lost])
            given, next_row_id = with_lineage(given, base.version + 1, next_row_id, sources, moved)
        return NewFragments(numbered(given, next_fragment_id(base)), next_row_id)

    def built(self, manifest: Manifest, side: tuple[str, ...] = (), **operation: Any) -> Built:
        """The head's document with another manifest."""
        assert self.head is not None
        return Built(replace(self.head.document, manifest=manifest), operation, side)

    def merged(self, manifest: Manifest, fields: tuple[Field, ...], side: tuple[str, ...] = ()) -> Built:
        """Fragments and fields change together: of Lance's operations only a merge can express both."""
        manifest = replace(manifest, fields=fields)
        merge = Merge(
            fragments=manifest.fragments,
            schema=fields,
            schema_metadata=manifest.schema_metadata,
            preserves_nullability=all(edit.nullable for edit in self.change.all(SetNullable)),
        )
        return self.built(manifest, side, merge=merge)

    def new_files(self, fields: Sequence[Field], version: str | None = None) -> tuple[DataFragment, ...]:
        """The fragments of the files that the change adds, with id 0 for now; `version` is by default the table's.
        Raises SchemaMismatchError."""
        added = self.change.added
        return () if added is None else self.fragments_of(added, fields, version)

    def places(self) -> list[bytes | None]:
        """The addresses at which the rows of each of `new_files` were before, if that was asked."""
        added = self.change.added
        return [] if added is None else [row["native"]["places"] for row in _file_rows(added) if row["rows"]]

    def fragments_of(
        self, outcomes: pa.Table, fields: Sequence[Field], version: str | None = None
    ) -> tuple[DataFragment, ...]:
        """A fragment for each data file that has rows. Raises SchemaMismatchError."""
        planned = self.change.planned
        then = planned.manifest.fields if isinstance(planned, LanceSnapshot) else ()
        known = {f.id for f in (*fields, *then)}  # a column that was dropped concurrently stays in the file, unused
        version = version or table_version(self.base, self.root)
        return tuple(self._fragment(row, known, version) for row in _file_rows(outcomes) if row["rows"])

    def _fragment(self, row: dict[str, Any], known: set[int], version: str) -> DataFragment:
        path = relative(row["path"], join(self.root, DATA))
        parts = row["parts"]
        if not path or len(parts) != 1:
            raise InvalidArgumentError(f"{row['path']} is not a data file of this table", where=self.root)
        if row["native"]["version"] != version:
            raise SchemaMismatchError(
                f"{path} has version {row['native']['version']}, but the table has version {version}", where=self.root
            )
        if not set(parts[0]["fields"]) <= known:
            raise SchemaMismatchError(f"{path} has fields that the table does not have", where=self.root)
        major, minor = version_numbers(version)
        file = DataFile(
            path=path,
            fields=tuple(parts[0]["fields"]),
            column_indices=tuple(parts[0]["columns"]),
            file_major_version=major,
            file_minor_version=minor,
            file_size_bytes=row["size"],
        )
        return DataFragment(files=(file,), physical_rows=row["rows"], inline_row_ids=row["native"]["row_ids"])


def _file_rows(outcomes: pa.Table) -> list[dict[str, Any]]:
    """The outcomes that are data files, as Python values."""
    columns = outcomes.select(["kind", "path", "size", "rows", "parts", "native"])
    return [row for row in columns.to_pylist() if row["kind"] == "data"]


def numbered(fragments: Sequence[DataFragment], first: int) -> tuple[DataFragment, ...]:
    """The fragments with ids from `first` on."""
    return tuple(replace(f, id=first + i) for i, f in enumerate(fragments))


def next_fragment_id(manifest: Manifest) -> int:
    """One more than the highest id that any version assigned."""
    recorded = -1 if manifest.max_fragment_id is None else manifest.max_fragment_id
    return max((recorded, *(f.id for f in manifest.fragments))) + 1
