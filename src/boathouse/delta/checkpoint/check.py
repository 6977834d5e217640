"""Checks a checkpoint's columns, so that none of its files is missed (PROTOCOL.md, "Checkpoint Schema")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.masks import booleans, mask_of
from boathouse.delta.checkpoint.part import Part
from boathouse.delta.log.entry import ADD, REMOVE, check_vector
from boathouse.table.findings import Finding, damage

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_TEXTS: Final = frozenset((pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()))


def column_findings(part: Part) -> Iterator[Finding]:
    """Columns of actions on files that do not have the types that their names require."""
    schema = part.schema
    for kind, wanted in (("add", ADD), ("remove", REMOVE)):
        at = schema.get_field_index(kind)
        if at < 0 and kind == "remove":
            continue
        if at < 0 or not pa.types.is_struct(schema.field(at).type):
            found = "missing" if at < 0 else str(schema.field(at).type)
            yield _damaged(f"the column `{kind}` of the checkpoint is {found}, not a struct", part.uri)
            continue
        struct = schema.field(at).type
        for name in ("path", "partitionValues") if kind == "add" else ("path",):
            if struct.get_field_index(name) < 0:
                yield _damaged(f"the column `{kind}` of the checkpoint has no {name}", part.uri)
        if struct.get_field_index("path") >= 0 and part.nulls(kind, "path") > part.nulls(kind, "size") >= 0:
            yield _no_path(kind, part.uri)
        for f in struct:
            if f.name in wanted.names and not _castable(f.type, wanted.field(f.name).type):
                text = f"the column `{kind}.{f.name}` of the checkpoint is {f.type}"
                yield _damaged(f"{text}, not {wanted.field(f.name).type}", part.uri)


def _damaged(message: str, where: str) -> Finding:
    return damage("delta.checkpoint", message, where)


def _castable(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values keep their meaning: the kinds must be equal, widths may differ."""
    if pa.types.is_dictionary(found):
        return _castable(found.value_type, wanted)
    if pa.types.is_null(found):
        return True
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(found) and all(
            _castable(f.type, wanted.field(f.name).type) for f in found if wanted.get_field_index(f.name) >= 0
        )
    if pa.types.is_map(wanted):
        return pa.types.is_map(found) and all(
            _castable(a, b) for a, b in ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type))
        )
    if pa.types.is_string(wanted):
        return found in _TEXTS
    return bool(pa.types.is_integer(found) if pa.types.is_integer(wanted) else found == wanted)


def valid_rows(array: pa.Array) -> Mask:
    """Which values are not null."""
    return mask_of(pc.is_valid(array))


def pathless(actions: pa.StructArray, chosen: Mask, kind: str, where: str) -> Mask:
    """Actions with only nulls, which mean no action. Raises CorruptTableError for others without a path."""
    found = chosen & ~valid_rows(actions.field("path"))
    if found.any():
        rows = actions.filter(booleans(found & valid_rows(actions)))
        if any(rows.field(i).null_count < len(rows) for i in range(rows.type.num_fields)):
            raise _no_path(kind, where).error()
    return found


def _no_path(kind: str, where: str) -> Finding:
    return _damaged(f"an {kind} action of the checkpoint has no path", where)


def check_vectors(vectors: pa.StructArray, where: str) -> None:
    if vectors.null_count == len(vectors):
        return
    for vector in vectors.drop_null().to_pylist():
        check_vector({k: v for k, v in vector.items() if v is not None}, where)
