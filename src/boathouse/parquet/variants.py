"""Variant groups of a file: how a table's variant is assembled from them, whole or only the parts that some paths need.

A group is `metadata`, `value` and, where it is shredded, `typed_value`, found by name (VariantShredding.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import VARIANT_STORAGE
from boathouse.errors import BoathouseError, MalformedVariant, SchemaMismatchError
from boathouse.parquet.fields import FileField
from boathouse.variant.primitives import NULL_VALUE
from boathouse.variant.shredding.unshred import unshred

VariantPath = tuple[str | int, ...]
METADATA, VALUE, TYPED = "metadata", "value", "typed_value"
_PARTS = (METADATA, VALUE, TYPED)
t = pa.types


@dataclass(frozen=True, slots=True)
class WholeVariant:
    """A variant as `<metadata, value>`, from any layout in the file."""

    name: str
    leaves: tuple[int, ...]
    stored: pa.DataType
    shredded: bool

    @property
    def straight(self) -> bool:
        return bool(self.stored == VARIANT_STORAGE)

    def apply(self, array: pa.Array) -> pa.Array:
        """Raises MalformedVariant naming the column, and the errors of `variant.shredding.unshred`."""
        _require_metadata(array, self.name)
        if not self.shredded:
            return _plain(array)
        try:
            return _plain(unshred(array))
        except BoathouseError as error:
            if f"`{self.name}`" not in error.message:
                error.message = f"`{self.name}`: {error.message}"
            raise


@dataclass(frozen=True, slots=True)
class VariantParts:
    """The parts of a shredded variant that some paths need: the file's group without its other leaves.

    The result is valid for `variant.shredding.get` of these paths, and of no others.
    """

    name: str
    leaves: tuple[int, ...]
    straight: bool = False

    def apply(self, array: pa.Array) -> pa.Array:
        _require_metadata(array, self.name)
        # Only the residual is read. Where it is null, everything is shredded, and a path into a variant null has no
        # value.
        return array if array.type.get_field_index(TYPED) >= 0 else _plain(array)


def whole_variant(found: FileField) -> WholeVariant:
    """The node of a variant column. Raises SchemaMismatchError naming a group that is not a variant."""
    parts = _parts(found)
    return WholeVariant(
        ".".join(found.path), tuple(range(found.first, found.first + found.leaves)), found.type, TYPED in parts
    )


def nothing_known(leaf: int) -> bool:
    """For files whose leaf columns were not checked for being all null."""
    return False


def variant_parts(
    found: FileField, paths: Sequence[VariantPath], is_empty: Callable[[int], bool] = nothing_known
) -> VariantParts:
    """The node that reads what `paths` need; without paths only whether the rows are null.

    `is_empty` identifies leaf columns that certainly hold only nulls: they are not read, and neither is `metadata` if
    only typed columns of primitives remain. Raises SchemaMismatchError naming a group that is not a variant.
    """
    metadata = _parts(found)[METADATA].first
    leaves: set[int] = set()
    todo: list[tuple[FileField, list[VariantPath]]] = [(found, list(paths))] if paths else []
    while todo:
        group, wanted = todo.pop()
        parts = {c.name: c for c in group.children if c.name in _PARTS}
        typed, value = parts.get(TYPED), parts.get(VALUE)
        empty = value is None or is_empty(value.first)
        if typed is not None and not typed.children and () in wanted and empty:
            leaves.add(typed.first)
        elif typed is None or () in wanted:
            leaves.update(
                (metadata, *(leaf for part in (value, typed) if part is not None for leaf in _leaves_of(part)))
            )
        if typed is None:
            continue
        for step in dict.fromkeys(path[0] for path in wanted if path):
            below = member(typed, step)
            if below is not None:
                # A shredded field is never in `value` too: the specification lets readers rely on that.
                todo.append((below, [path[1:] for path in wanted if path and path[0] == step]))
            elif value is not None and not empty:
                leaves.update((metadata, value.first))
    return VariantParts(".".join(found.path), tuple(sorted(leaves)) or (metadata,))


def member(typed: FileField, step: str | int) -> FileField | None:
    """The group of an object's field, or of an array's elements, in a `typed_value`; None if `value` holds it."""
    if isinstance(step, str):
        return next((c for c in typed.children if c.name == step), None) if t.is_struct(typed.type) else None
    return typed.children[0] if typed.children and not t.is_struct(typed.type) else None


def _leaves_of(f: FileField) -> range:
    return range(f.first, f.first + f.leaves)


def _parts(found: FileField) -> dict[str, FileField]:
    """The parts of a variant group by name. Raises SchemaMismatchError."""
    name = ".".join(found.path)
    parts = {c.name: c for c in found.children} if t.is_struct(found.type) else {}
    if METADATA not in parts or (VALUE not in parts and TYPED not in parts) or set(parts) - set(_PARTS):
        raise SchemaMismatchError(
            f"`{name}` is {found.type} in the file, variant in the table",
            advice="a variant is a group of metadata, value and typed_value",
        )
    for part in (METADATA, VALUE):
        if part in parts and not _is_bytes(parts[part].type):
            raise SchemaMismatchError(
                f"`{name}.{part}` is {parts[part].type} in the file, and a variant's {part} is binary",
                advice="read the column as a struct if it is not a variant",
            )
    return parts


def _is_bytes(type: pa.DataType) -> bool:
    if t.is_dictionary(type):
        return _is_bytes(type.value_type)
    return bool(t.is_binary(type) or t.is_large_binary(type) or t.is_binary_view(type))


def _require_metadata(array: pa.Array, name: str) -> None:
    index = array.type.get_field_index(METADATA)
    metadata = array if index < 0 else array.field(index)
    if not metadata.null_count:
        return
    bad = pc.and_(metadata.is_null(), array.is_valid()).to_numpy(zero_copy_only=False)
    if bad.any():
        raise MalformedVariant(
            f"the metadata of `{name}` is null in a row that is not",
            row=int(np.flatnonzero(bad)[0]),
            advice="every variant has its metadata: rewrite the file",
        )


def _plain(array: pa.Array) -> pa.Array:
    """`<metadata, value>` as the table holds it; a missing value is the variant null."""
    if array.type == VARIANT_STORAGE:
        return array
    metadata = _bytes(array.field(array.type.get_field_index(METADATA)))
    index, null = array.type.get_field_index(VALUE), pa.scalar(NULL_VALUE, pa.binary())
    value = pa.repeat(null, len(array)) if index < 0 else _bytes(array.field(index))
    if value.null_count:
        value = value.fill_null(null)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([metadata, value], fields=list(VARIANT_STORAGE), mask=mask)


def _bytes(array: pa.Array) -> pa.Array:
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == pa.binary() else array.cast(pa.binary())
