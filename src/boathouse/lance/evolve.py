"""Schema evolution with rows: the fields of files before they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.lance import schema as schemas
from boathouse.lance.file.messages import Field
from boathouse.lance.messages import Manifest
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.change import AddColumn, SetType
from boathouse.types import Field as PlainField
from boathouse.types import Schema


def evolve(snapshot: LanceSnapshot, edits: Sequence[AddColumn | SetType]) -> LanceSnapshot:
    """`TableFormat.evolve`: new fields get the next ids, as the commit on the same manifest will assign them."""
    manifest = replace(snapshot.manifest, fields=evolved_fields(snapshot.manifest, edits, snapshot.location.uri))
    return replace(snapshot, document=replace(snapshot.document, manifest=manifest))


def evolved_fields(manifest: Manifest, edits: Sequence[AddColumn | SetType], where: str) -> tuple[Field, ...]:
    """The manifest's fields with the new columns at the end."""
    fields = list(manifest.fields)
    for edit in edits:
        if isinstance(edit, SetType):
            raise UnsupportedFeatureError(
                f"column `{'.'.join(edit.path)}` cannot become {edit.type}: existing Lance files have the old type",
                where=where,
                advice="cast the data to the table's type",
            )
        fields += _column(edit, manifest, fields, where)
    return tuple(fields)


def _column(edit: AddColumn, manifest: Manifest, fields: Sequence[Field], where: str) -> tuple[Field, ...]:
    if edit.parent:
        raise UnsupportedFeatureError("a column inside a struct cannot be added to a Lance table", where=where)
    if not edit.nullable:
        raise InvalidArgumentError(f"column `{edit.name}` would be null in every row", advice="make it nullable")
    if any(f.parent_id < 0 and f.name.lower() == edit.name.lower() for f in fields):
        raise SchemaMismatchError(f"column `{edit.name}` already exists", where=where)
    made = schemas.from_schema(Schema((PlainField(edit.name, edit.type),)))
    used = (i for fragment in manifest.fragments for file in fragment.files for i in file.fields)
    first = max((*(f.id for f in fields), *used), default=-1) + 1
    return tuple(replace(f, id=f.id + first, parent_id=f.parent_id + first if f.parent_id >= 0 else -1) for f in made)
