"""The fields of a Parquet file as a tree, with their ids and the numbers of their leaf columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import pyarrow as pa

from boathouse.arrow.schema import FIELD_ID
from boathouse.bits.names import Names
from boathouse.errors import SchemaMismatchError


@dataclass(frozen=True)
class FileField:
    """A field of the file: `first` is its first leaf's column number, `leaves` how many it has."""

    path: tuple[str, ...]
    type: pa.DataType
    id: int | None
    first: int
    leaves: int
    children: tuple[FileField, ...] = ()

    @property
    def name(self) -> str:
        return self.path[-1]

    @cached_property
    def places(self) -> Names:
        """The name index of the children."""
        return Names(c.name for c in self.children)

    @cached_property
    def ids(self) -> dict[int | None, FileField]:
        """The children by their ids."""
        return {c.id: c for c in reversed(self.children)}

    def walk(self) -> Iterator[FileField]:
        yield self
        for child in self.children:
            yield from child.walk()


def file_fields(schema: pa.Schema, file_ids: Callable[[tuple[str, ...]], int | None] | None = None) -> list[FileField]:
    """The fields of a file from its Arrow schema; without any field id in it, ids are taken from `file_ids`."""
    fields = list(_stored(_Serialized(schema)))
    if file_ids is not None and not has_ids(fields):
        fields = _from_arrow(list(schema), (), 0, lambda f, path: file_ids(path))
    return fields


class _Serialized:
    """A schema by its bytes: Arrow compares schemas as equal that differ only in metadata, where field ids are."""

    __slots__ = ("bytes", "schema")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema, self.bytes = schema, schema.serialize().to_pybytes()

    def __hash__(self) -> int:
        return hash(self.bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Serialized) and self.bytes == other.bytes


@lru_cache(maxsize=16)
def _stored(of: _Serialized) -> tuple[FileField, ...]:
    """The fields with the ids in the file; most files of a table share one schema."""
    return tuple(_from_arrow(list(of.schema), (), 0, lambda f, path: _stored_id(f)))


def has_ids(fields: list[FileField]) -> bool:
    return any(f.id is not None for top in fields for f in top.walk())


def _stored_id(arrow: pa.Field) -> int | None:
    stored = (arrow.metadata or {}).get(FIELD_ID)
    return int(stored) if stored is not None and int(stored) >= 0 else None


def _from_arrow(
    arrow: list[pa.Field], above: tuple[str, ...], first: int, id_of: Callable[[pa.Field, tuple[str, ...]], int | None]
) -> list[FileField]:
    out = []
    for f in arrow:
        path = (*above, f.name)
        children = tuple(_from_arrow(_below(f.type), path, first, id_of))
        leaves = sum(c.leaves for c in children) or 1
        out.append(FileField(path, f.type, id_of(f, path), first, leaves, children))
        first += leaves
    return out


def _below(type: pa.DataType) -> list[pa.Field]:
    """The fields below an Arrow type as read from Parquet, lists and maps with the names of the specification."""
    if isinstance(type, pa.BaseExtensionType):
        return []
    if pa.types.is_struct(type):
        return list(type)
    if pa.types.is_map(type):
        return [type.key_field.with_name("key"), type.item_field.with_name("value")]
    if is_list(type):
        return [type.value_field.with_name("element")]
    return []


def is_list(type: pa.DataType) -> bool:
    p = pa.types
    return bool(
        p.is_list(type) or p.is_large_list(type) or p.is_fixed_size_list(type) or p.is_list_view(type)
        or p.is_large_list_view(type)
    )  # fmt: skip


def find(fields: Sequence[FileField], places: Names, name: str) -> FileField | None:
    """The field called `name`: exactly, else ignoring case. Raises SchemaMismatchError if it is ambiguous."""
    hits = [fields[i] for i in places.exactly(name)[:1] or places.loosely(name)]
    if len(hits) > 1:
        raise SchemaMismatchError(f"column `{name}` is ambiguous in the file: {', '.join(f.name for f in hits)}")
    return hits[0] if hits else None
