"""The schema of a Parquet file outside of a table: its own columns, with variants found by annotation or by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from boathouse.arrow.schema import FIELD_ID, MARK, VARIANT_MARKS, VARIANT_STORAGE, from_arrow
from boathouse.errors import ColumnNotFoundError
from boathouse.parquet.errors import damage
from boathouse.parquet.fields import FileField, is_list
from boathouse.parquet.source import ParquetSource
from boathouse.parquet.thrift_footer import VariantGroup, annotated, read_footer_bytes
from boathouse.parquet.variants import METADATA
from boathouse.types import Schema

t = pa.types


def file_schema(source: ParquetSource, variants: Collection[str] = (), some: bool = False) -> Schema:
    """The columns of an open file. A group is a variant if it is annotated VARIANT (any version), or `variants` names
    it: by its path, dots between the names, `element`, `key` and `value` in lists and maps.

    Raises CorruptTableError, UnsupportedTypeError; ColumnNotFoundError for a name that the file does not have, unless
    it may have only `some` of them.
    """
    return from_arrow(marked_schema(source, _groups(source), variants, some))


def marked_schema(
    source: ParquetSource, groups: Sequence[VariantGroup], variants: Collection[str] = (), some: bool = False
) -> pa.Schema:
    """The file's Arrow schema with its variants, shredded or not, as marked `<metadata, value>`."""
    fields = source.resolver.fields
    known = {".".join(f.path): f for top in fields for f in top.walk()} if variants else {}
    missing = [name for name in variants if name not in known]
    if missing and not some:
        raise ColumnNotFoundError(
            f"no column `{missing[0]}` to be read as a variant", where=source.uri, advice=f"it has {', '.join(known)}"
        )
    found = {known[name].path for name in variants if name in known} | {
        _field_of(group, fields).path for group in groups
    }
    return pa.schema([_marked(a, f, found) for a, f in zip(source.schema, fields)])


def _groups(source: ParquetSource) -> tuple[VariantGroup, ...]:
    """The annotated groups; the footer is parsed for them only if there are groups."""
    if not any(f.children for f in source.resolver.fields):
        return ()
    with damage("not a readable Parquet file", source.uri):
        return annotated(read_footer_bytes(source.stream, source.stream.size()))


def _field_of(group: VariantGroup, fields: Sequence[FileField]) -> FileField:
    """The field of a group, found by its leaves: Arrow names the levels of lists and maps differently."""
    same: list[FileField] = []
    while holder := next((f for f in fields if f.first <= group.first < f.first + f.leaves and f.children), None):
        if (holder.first, holder.leaves) == (group.first, group.leaves):
            same.append(holder)
        fields = holder.children
    proper = [f for f in same if any(c.name == METADATA and not c.children for c in f.children)]
    return (proper or same)[-1]


def _marked(arrow: pa.Field, found: FileField, variants: Collection[tuple[str, ...]]) -> pa.Field:
    metadata = {k: v for k, v in (arrow.metadata or {}).items() if k not in (FIELD_ID, MARK)}
    if found.path in variants:
        return pa.field(arrow.name, VARIANT_STORAGE, arrow.nullable, {**metadata, **VARIANT_MARKS})
    type = arrow.type
    below = found.children
    if t.is_struct(type):
        type = pa.struct([_marked(f, c, variants) for f, c in zip(type, below)])
    elif t.is_map(type):
        type = pa.map_(_marked(type.key_field, below[0], variants), _marked(type.item_field, below[1], variants))
    elif is_list(type):
        type = pa.list_(_marked(type.value_field, below[0], variants))
    return pa.field(arrow.name, type, arrow.nullable, metadata or None)
