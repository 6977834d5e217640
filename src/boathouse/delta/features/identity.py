"""Identity columns: how the schema states them, and how their marks move (PROTOCOL.md, "Identity Columns").

Everything here edits a metaData action: `raw` is copied, never changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from boathouse.delta.actions import Metadata
from boathouse.delta.features.support import supports
from boathouse.delta.schema import PHYSICAL_NAME
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError, InvalidArgumentError, SchemaError, UnsupportedFeatureError
from boathouse.table.edits import AdvanceIdentity
from boathouse.table.tasks import IdentityColumn
from boathouse.types import INT64, Field, Identity, Schema

START: Final = "delta.identity.start"
STEP: Final = "delta.identity.step"
EXPLICIT: Final = "delta.identity.allowExplicitInsert"
MARK: Final = "delta.identity.highWaterMark"
_FIXED: Final = (START, STEP, EXPLICIT)

Raw = Mapping[str, Any]


def declared(schema: Schema, identities: Mapping[str, Identity], where: str) -> Schema:
    """The schema of a new table with these identity columns; one that its fields have begins again.

    Raises InvalidArgumentError, SchemaError for a column that is not a bigint.
    """
    wanted = {schema.field(name).name: identity for name, identity in identities.items()}
    if len(wanted) < len(identities):
        raise InvalidArgumentError(f"a column is named twice in identity={list(identities)}", where=where)
    fields = []
    for f in schema:
        metadata = {k: v for k, v in f.metadata.items() if k != MARK}
        if (identity := wanted.get(f.name)) is not None:
            recorded = (identity.start, identity.step, identity.allow_explicit_insert)
            metadata |= dict(zip(_FIXED, recorded, strict=True))
        fields.append(replace(f, metadata=metadata))
        if START in metadata:
            _column(fields[-1], where)
            _check_type(fields[-1], where)
    return Schema(tuple(fields), schema.metadata)


def check_partitioning(schema: Schema, partition: Sequence[str], where: str) -> None:
    """Raises SchemaError for an identity column by which a new table is partitioned: each file would have one row."""
    for name in partition:
        if START in schema.field(name).metadata:
            raise SchemaError(
                f"the identity column `{name}` cannot partition a table", where=where, advice="leave it out"
            )


def identities(snapshot: DeltaSnapshot) -> tuple[IdentityColumn, ...]:
    """The identity columns, if the protocol has the feature. Raises CorruptTableError."""
    if not supports(snapshot.protocol, "identityColumns"):
        return ()
    return tuple(_column(f, snapshot.location.uri) for f in snapshot.schema if START in f.metadata)


def _column(field: Field, where: str) -> IdentityColumn:
    """The column and its next value: the first of `start + k * step`, k not negative, that is beyond the mark."""
    start, step, mark = (_long(field, key, where) for key in (START, STEP, MARK))
    explicit = field.metadata.get(EXPLICIT, False)
    if start is None or not step or not isinstance(explicit, bool):
        raise _odd(field, where)
    steps = 0 if mark is None else max(0, (mark - start) // step + 1)
    return IdentityColumn(field.name, start + step * steps, step, explicit)


def _long(field: Field, key: str, where: str) -> int | None:
    found = field.metadata.get(key)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool)):
        raise _odd(field, where)
    return found


def _odd(field: Field, where: str) -> CorruptTableError:
    recorded = {k: v for k, v in field.metadata.items() if k.startswith("delta.identity.")}
    return CorruptTableError(f"`{field.name}` is no identity column with {recorded}", where=where)


def _check_type(field: Field, where: str) -> None:
    if field.type != INT64:
        raise SchemaError(
            f"the identity column `{field.name}` is {field.type}, not bigint", where=where, advice="make it a bigint"
        )


def advanced(raw: Raw, edit: AdvanceIdentity) -> dict[str, Any]:
    """The metaData with the mark behind values that were given."""
    document = json.loads(raw["schemaString"])
    for f in document["fields"]:
        if f["name"] == edit.name:
            f["metadata"] = {**(f.get("metadata") or {}), MARK: edit.mark}
    return _with_schema(raw, document)


def without_marks(raw: Raw) -> dict[str, Any]:
    """What the metaData says apart from marks, for comparison."""
    document = json.loads(raw["schemaString"])
    for f in _columns(document):
        f["metadata"].pop(MARK, None)
    return {**raw, "schemaString": document}


def kept(raw: Raw, head: Metadata) -> Raw:
    """The metaData, whose schema is an older or another one, as the next after `head`: no value is given twice, and
    what defines an identity column stays. Raises UnsupportedFeatureError if that differs."""
    if START not in raw["schemaString"]:
        return raw
    document, marked = json.loads(raw["schemaString"]), False
    now = {_key(f): f["metadata"] for f in _columns(json.loads(head.raw["schemaString"]))}
    for f in _columns(document):
        if (later := now.get(_key(f))) is None:
            continue
        _check_same(f["name"], later, f["metadata"], head.where)
        marks = [m for m in (f["metadata"].get(MARK), later.get(MARK)) if isinstance(m, int)]
        furthest = max(marks, key=lambda m: m * later[STEP], default=None)
        if furthest is not None and furthest != f["metadata"].get(MARK):
            f["metadata"][MARK] = furthest
            marked = True
    return _with_schema(raw, document) if marked else raw


def _check_same(name: str, before: Mapping[str, Any], after: Mapping[str, Any], where: str) -> None:
    """Raises UnsupportedFeatureError if the column's start, step or allowExplicitInsert changes."""
    for key in _FIXED:
        if before.get(key) != after.get(key):
            raise UnsupportedFeatureError(
                f"{key} of the identity column `{name}` cannot change from {before.get(key)} to {after.get(key)}",
                where=where,
                advice="write the rows into a new table",
            )


def check_type_kept(head: Metadata, path: Sequence[str]) -> None:
    """Raises UnsupportedFeatureError for an identity column, whose type never changes."""
    if len(path) == 1 and any(f.name.lower() == path[0].lower() and START in f.metadata for f in head.schema):
        raise UnsupportedFeatureError(
            f"the type of the identity column `{path[0]}` cannot change",
            where=head.where,
            advice="write the rows into a new table",
        )


def _columns(document: Any) -> Iterator[dict[str, Any]]:
    """The fields that are identity columns."""
    return (f for f in document["fields"] if START in (f.get("metadata") or {}))


def _key(field: Mapping[str, Any]) -> object:
    """What a column keeps when it is renamed."""
    return field["metadata"].get(PHYSICAL_NAME, field["name"])


def _with_schema(raw: Raw, document: Any) -> dict[str, Any]:
    return {**raw, "schemaString": json.dumps(document, ensure_ascii=False)}
