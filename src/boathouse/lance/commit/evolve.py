"""Schema evolution: the fields of files before they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.lance import schema as schemas
from boathouse.lance.commit import altered
from boathouse.lance.commit.projection import projected
from boathouse.lance.file.fields import Field
from boathouse.lance.file.schema import tree
from boathouse.lance.file.storable import check_storable
from boathouse.lance.manifests.messages import Manifest
from boathouse.lance.paths import LEGACY, table_version
from boathouse.lance.snapshot import S
from boathouse.table.change import words_of
from boathouse.table.edits import (
    AddColumn,
    CastColumn,
    DropColumn,
    RenameColumn,
    ReplaceSchema,
    SchemaEdit,
    SetComment,
    SetNullable,
    SetType,
)
from boathouse.table.edits.declared import require_none
from boathouse.types import Field as PlainField
from boathouse.types import Schema


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`: new fields get the next ids, as the commit on the same manifest will assign them."""
    manifest = evolved(snapshot.manifest, edits, snapshot.location.uri)
    return replace(snapshot, document=replace(snapshot.document, manifest=manifest))


def evolved(manifest: Manifest, edits: Sequence[SchemaEdit], where: str) -> Manifest:
    """The manifest with the fields after these edits, in order; its fragments are unchanged."""
    for edit in edits:
        match edit:
            case ReplaceSchema():
                manifest = _replaced(manifest, edit, where)
            case AddColumn():
                made = _column(edit, manifest, where)
                if table_version(manifest, where) != LEGACY:  # no file of 0.1 ever gets the column
                    _check_storable(made, manifest, where)
                manifest = replace(manifest, fields=(*manifest.fields, *made))
            case RenameColumn() | DropColumn():
                manifest = replace(manifest, fields=projected(manifest.fields, edit, where))
            case SetType():
                raise UnsupportedFeatureError(
                    f"column `{'.'.join(edit.path)}` cannot become {edit.type}: existing Lance files have the old type",
                    where=where,
                    advice="t.cast_column(...) writes the column again; or cast the data to the table's type",
                )
            case CastColumn():
                manifest = replace(manifest, fields=altered.cast(manifest.fields, edit, _next_id(manifest), where))
            case SetComment():
                manifest = replace(manifest, fields=altered.set_comment(manifest.fields, edit, where))
            case SetNullable():
                manifest = replace(manifest, fields=altered.set_nullable(manifest.fields, edit, where))
            case _:
                raise UnsupportedFeatureError(
                    f"{words_of(type(edit))} is not offered for Lance tables",
                    where=where,
                    advice="use the pylance library for it",
                )
    return manifest


def _replaced(manifest: Manifest, edit: ReplaceSchema, where: str) -> Manifest:
    """The fields stay the same ones if they are equivalent; metadata is replaced if the new schema has any."""
    require_none(edit, "Lance", where, "generated", "defaults")
    if edit.partition_by:
        raise schemas.no_partitions(where)
    fields = schemas.fields_for(edit.schema, manifest.fields, where=where)
    _check_storable(fields, manifest, where)
    return replace(
        manifest,
        fields=fields,
        schema_metadata=schemas.to_metadata(edit.schema) or manifest.schema_metadata,
    )


def _check_storable(fields: Sequence[Field], manifest: Manifest, where: str) -> None:
    """Raises UnsupportedFeatureError for columns that the table's data files could never hold."""
    check_storable(tree(fields), table_version(manifest, where), where)


def _column(edit: AddColumn, manifest: Manifest, where: str) -> tuple[Field, ...]:
    _check(edit, manifest.fields, where)
    return altered.numbered(
        schemas.from_schema(Schema((PlainField(edit.name, edit.type, doc=edit.comment),))), _next_id(manifest)
    )


def _next_id(manifest: Manifest) -> int:
    """An id that no field has, and none had whose values are still in files."""
    files = [file for fragment in manifest.fragments for file in fragment.files]
    files += [o.data_file for f in manifest.fragments for o in f.overlays if o.data_file is not None]
    return max((*(f.id for f in manifest.fields), *(i for file in files for i in file.fields)), default=-1) + 1


def _check(edit: AddColumn, fields: Sequence[Field], where: str) -> None:
    if edit.parent:
        raise UnsupportedFeatureError("a column inside a struct cannot be added to a Lance table", where=where)
    for what, value in (("a place", edit.after), ("a default", edit.default)):
        if value is not None:
            raise UnsupportedFeatureError(
                f"adding column `{edit.name}` with {what} is not offered for Lance tables", where=where
            )
    if not edit.nullable:
        raise InvalidArgumentError(f"column `{edit.name}` would be null in every row", advice="make it nullable")
    if any(f.parent_id < 0 and f.name.lower() == edit.name.lower() for f in fields):
        raise SchemaMismatchError(f"column `{edit.name}` already exists", where=where)
