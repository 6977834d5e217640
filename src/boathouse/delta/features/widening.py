"""A column gets a wider type: the schema says so and records it, and no file changes (PROTOCOL.md, "Type Widening")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.features.column_mapping import walk
from boathouse.delta.features.support import supports
from boathouse.delta.features.type_changes import CHANGES, FEATURE, PREVIEW, records, widens
from boathouse.delta.schema import parse_type, type_json
from boathouse.delta.schema_edits import nearest
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.table.edits import SetType
from boathouse.types import DataType
from boathouse.types.data_types import FLOAT

ENABLED: Final = "delta.enableTypeWidening"
_IDENTITY: Final = "delta.identity."
_KEYS: Final = {"element": "elementType", "key": "keyType", "value": "valueType"}


def widened(
    protocol: Protocol, metadata: Metadata, raw: Mapping[str, Any], edit: SetType, version: int
) -> dict[str, Any]:
    """The metaData with the wider type of a column, and a record of it. `version` is the one that the commit makes.

    Raises UnsupportedFeatureError if the table does not allow it or the protocol does not know the change,
    InvalidArgumentError for a path without a column.
    """
    name, where = ".".join(edit.path), metadata.where
    document = json.loads(raw["schemaString"])
    holder, below = nearest(document, edit.path, where)
    old = _inner(holder, below)
    if isinstance(old, Mapping):
        raise InvalidArgumentError(
            f"`{name}` is of the type {old['type']}, which is not changed as a whole", where=where
        )
    _check_allowed(protocol, metadata, edit, parse_type(old, where))
    if any(key.startswith(_IDENTITY) for key in holder.get("metadata") or {}):
        raise UnsupportedFeatureError(
            f"column `{name}` is an identity column, which stays a bigint", where=where, advice="leave its type"
        )
    change: dict[str, Any] = {"toType": type_json(edit.type, name), "fromType": old}
    if supports(protocol, PREVIEW):
        change["tableVersion"] = version
    if below:
        change["fieldPath"] = ".".join(below)
    _set(holder, below, change["toType"])
    holder["metadata"] = dict(holder.get("metadata") or {})
    holder["metadata"][CHANGES] = [*(holder["metadata"].get(CHANGES) or ()), change]
    return {**raw, "schemaString": json.dumps(document, ensure_ascii=False)}


def unwidened(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metaData without the changes of types: files have the types of the schema."""
    document = json.loads(raw["schemaString"])
    found = [f["metadata"] for _, f in walk(document) if CHANGES in (f.get("metadata") or {})]
    for metadata in found:
        del metadata[CHANGES]
    return {**raw, "schemaString": json.dumps(document, ensure_ascii=False)} if found else raw


def _check_allowed(protocol: Protocol, metadata: Metadata, edit: SetType, have: DataType) -> None:
    """Raises UnsupportedFeatureError unless the column of the type `have` may get the wider one."""
    name, where = ".".join(edit.path), metadata.where
    if not widens(have, edit.type):
        raise UnsupportedFeatureError(
            f"column `{name}` is {have}, which Delta does not widen to {edit.type}",
            where=where,
            advice="cast the data to the table's type, or write it into a new table",
        )
    if not (records(protocol) and metadata.flag(ENABLED)):
        raise UnsupportedFeatureError(
            f"column `{name}` cannot become {edit.type}: type widening is not enabled",
            where=where,
            advice=f"cast the data to the table's type, or set the property {ENABLED} to true: readers then need "
            f"the feature {FEATURE}",
        )
    partition = {(n.lower(),) for n in metadata.partition_columns}
    if have == FLOAT and tuple(n.lower() for n in edit.path) in partition:
        raise UnsupportedFeatureError(
            f"the table is partitioned by `{name}`, whose values are stored as text: the text of a float is another "
            f"number as a {edit.type}",
            where=where,
            advice="write the rows into a new table",
        )


def _inner(holder: Mapping[str, Any], below: Sequence[str]) -> Any:
    found = holder["type"]
    for step in below:
        found = found[_KEYS[step]]
    return found


def _set(holder: dict[str, Any], below: Sequence[str], type: Any) -> None:
    at, key = holder, "type"
    for step in below:
        at, key = at[key], _KEYS[step]
    at[key] = type
