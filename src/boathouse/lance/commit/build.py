"""Builds the next manifest: that of the head with a change's edits applied, and the operation that describes them.

A new manifest is the old one with fields replaced, so that unknown parts are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from boathouse.bits.roaring import EMPTY, Bitmap, deserialize64
from boathouse.errors import InvalidArgumentError, SchemaMismatchError
from boathouse.lance import schema as schemas
from boathouse.lance.commit.evolve import evolved
from boathouse.lance.deletions import read_deletions, write_deletions
from boathouse.lance.file.fields import Field
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.messages import (
    Append,
    DataFile,
    DataFormat,
    DataFragment,
    Delete,
    Manifest,
    Merge,
    Overwrite,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
    UpdateMap,
    UpdateMapEntry,
)
from boathouse.lance.paths import DATA, V2_2, deletion_root, table_version, version_numbers
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join, relative
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, CreateTable, ReplaceSchema, SetDeletes, SetProperties


@dataclass(frozen=True, slots=True)
class Built:
    """`operation` is the one field of Transaction's oneof that is set; `side` are auxiliary files already written."""

    document: ManifestFile
    operation: dict[str, Any]
    side: tuple[str, ...] = ()


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

    def create(self) -> Built:
        """The first version, whose transaction is an overwrite."""
        edit = next(self.change.all(CreateTable))
        fields = schemas.from_schema(edit.schema)
        metadata = schemas.to_metadata(edit.schema)
        files = self.new_files(fields, V2_2)
        fragments = numbered(files, 0)
        manifest = Manifest(
            fields=fields,
            fragments=fragments,
            schema_metadata=metadata,
            max_fragment_id=fragments[-1].id if fragments else None,
            data_format=DataFormat(file_format="lance", version=V2_2),
            config=dict(edit.properties),
        )
        operation = Overwrite(
            fragments=files, schema=fields, schema_metadata=metadata, config_upsert_values=dict(edit.properties)
        )
        return Built(ManifestFile(manifest), {"overwrite": operation})

    def append(self) -> Built:
        fields = self.fields()
        files = self.new_files(fields, table_version(self.base, self.root))
        fragments = numbered(files, next_fragment_id(self.base))
        manifest = self._with((*self.base.fragments, *fragments))
        if fields != self.base.fields:
            return self._merged(manifest, fields)
        return self._built(manifest, append=Append(fragments=files))

    def overwrite(self) -> Built:
        """All fragments are removed, ids continue from the highest ever assigned; indices of removed fragments are
        dropped."""
        assert self.head is not None
        now = self.evolved()
        fields, metadata = now.fields, now.schema_metadata
        files = self.new_files(fields, table_version(self.base, self.root))
        fragments = numbered(files, next_fragment_id(self.base))
        manifest = replace(self._with(fragments), fields=fields, schema_metadata=metadata)
        operation = Overwrite(fragments=files, schema=fields, schema_metadata=metadata)
        return Built(ManifestFile(manifest, values=self.head.document.values), {"overwrite": operation})

    def rows(self) -> Built:
        """Removes rows, and may add others: a delete, or an update."""
        updated, removed, side = self._lose_rows()
        kept = [updated.get(f.id, f) for f in self.base.fragments if f.id not in removed]
        fields = self.fields()
        if self.change.edit(AddFiles) is None and fields == self.base.fields:
            predicate = self.change.parameters.get("predicate", "")
            delete = Delete(
                updated_fragments=tuple(updated.values()), deleted_fragment_ids=tuple(removed), predicate=predicate
            )
            return self._built(self._with(kept), side, delete=delete)
        files = self.new_files(fields, table_version(self.base, self.root))
        manifest = self._with((*kept, *numbered(files, next_fragment_id(self.base))))
        if fields != self.base.fields:
            return self._merged(manifest, fields, side)
        update = Update(
            removed_fragment_ids=tuple(removed),
            updated_fragments=tuple(updated.values()),
            new_fragments=files,
            fields_for_preserving_frag_bitmap=tuple(f.id for f in self.base.fields),
        )
        return self._built(manifest, side, update=update)

    def rewrite(self) -> Built:
        """The same rows in other fragments, at the end: Lance keeps fragments in the order of their ids."""
        removed = {*self._removed()}
        old = tuple(f for f in self.base.fragments if f.id in removed)
        kept = (f for f in self.base.fragments if f.id not in removed)
        files = self.new_files(self.base.fields, table_version(self.base, self.root))
        new = numbered(files, next_fragment_id(self.base))
        group = RewriteGroup(old_fragments=old, new_fragments=new)
        return self._built(self._with((*kept, *new)), rewrite=Rewrite(groups=(group,)))

    def config(self) -> Built:
        asked = {key: value for edit in self.change.all(SetProperties) for key, value in edit.properties.items()}
        config = {**self.base.config, **asked}
        manifest = replace(self.base, config={k: v for k, v in config.items() if v is not None})
        entries = tuple(UpdateMapEntry(key=k, value=v) for k, v in asked.items())
        return self._built(manifest, update_config=UpdateConfig(config=UpdateMap(entries=entries)))

    def add_columns(self) -> Built:
        """New columns without data: every row reads as null."""
        return self._merged(self.base, self.fields())

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

    def _merged(self, manifest: Manifest, fields: tuple[Field, ...], side: tuple[str, ...] = ()) -> Built:
        """Fragments and fields change together: of Lance's operations only a merge can express both."""
        manifest = replace(manifest, fields=fields)
        merge = Merge(fragments=manifest.fragments, schema=fields, schema_metadata=manifest.schema_metadata)
        return self._built(manifest, side, merge=merge)

    def new_files(self, fields: Sequence[Field], version: str) -> tuple[DataFragment, ...]:
        """The fragments of the files that the change adds, with id 0 for now. Raises SchemaMismatchError."""
        added = self.change.added
        if added is None:
            return ()
        planned = self.change.planned
        then = planned.manifest.fields if isinstance(planned, LanceSnapshot) else ()
        known = {f.id for f in (*fields, *then)}  # a column that was dropped concurrently stays in the file, unused
        return tuple(self._fragment(row, known, version) for row in file_rows(added) if row["rows"])

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
        return DataFragment(files=(file,), physical_rows=row["rows"])

    def _lose_rows(self) -> tuple[dict[int, DataFragment], list[int], tuple[str, ...]]:
        """(fragments with a new deletion file, ids to remove, files written)."""
        present = {f.id: f for f in self.base.fragments}
        removed = [i for i in self._removed() if i in present]
        updated: dict[int, DataFragment] = {}
        side: list[str] = []
        for id, rows in self._deleted().items():
            fragment = present.get(id)
            if fragment is not None and id not in removed:  # else a concurrent delete removed all of its rows
                self._delete_in(fragment, rows, updated, removed, side)
        return updated, removed, tuple(side)

    def _removed(self) -> list[int]:
        """The ids of the fragments that the change removes."""
        units = self.change.removed
        return [] if units is None else list(dict.fromkeys(units.column("unit").to_pylist()))

    def _deleted(self) -> dict[int, Bitmap]:
        """The newly deleted rows by the id of their fragment."""
        found: dict[int, Bitmap] = {}
        for edit in self.change.all(SetDeletes):
            for id, vector in zip(edit.units.column("unit").to_pylist(), edit.vectors):
                found[id] = found.get(id, EMPTY) | deserialize64(vector)
        return found

    def _delete_in(
        self,
        fragment: DataFragment,
        deleted: Bitmap,
        updated: dict[int, DataFragment],
        removed: list[int],
        side: list[str],
    ) -> None:
        assert self.head is not None
        before = EMPTY
        if fragment.deletion_file is not None:
            before = read_deletions(self.context.stores, deletion_root(self.base, fragment, self.root), fragment)
        rows = fragment.physical_rows or self.head.rows_of(fragment)
        after = before | deleted
        if len(after) and int(after.positions()[-1]) >= rows:
            raise InvalidArgumentError(f"row {int(after.positions()[-1])} of fragment {fragment.id}, which has {rows}")
        if len(after) == rows:
            removed.append(fragment.id)
        elif len(after) > len(before):
            file, uri = write_deletions(self.context.stores, self.root, fragment.id, self.base.version, after)
            side.append(uri)
            updated[fragment.id] = replace(fragment, deletion_file=file, physical_rows=rows)

    def _with(self, fragments: Sequence[DataFragment]) -> Manifest:
        """The head's manifest with other fragments; the highest id ever assigned never decreases."""
        highest = max((*(f.id for f in fragments), next_fragment_id(self.base) - 1))
        return replace(self.base, fragments=tuple(fragments), max_fragment_id=highest if highest >= 0 else None)

    def _built(self, manifest: Manifest, side: tuple[str, ...] = (), **operation: Any) -> Built:
        assert self.head is not None
        return Built(replace(self.head.document, manifest=manifest), operation, side)


def file_rows(outcomes: pa.Table) -> list[dict[str, Any]]:
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
