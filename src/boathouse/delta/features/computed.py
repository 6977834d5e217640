"""Computed columns: generated ones and defaults (PROTOCOL.md, "Generated Columns", "Default Columns")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from boathouse.delta.actions import Metadata
from boathouse.delta.features.support import supports
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError, ExpressionError, UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.expr.parse import parse
from boathouse.expr.tree import Cast, Column, walk
from boathouse.table.edits import SetDefault
from boathouse.table.tasks import ComputedColumn, RowCondition
from boathouse.types import FixedType, Schema

GENERATION: Final = "delta.generationExpression"
DEFAULT: Final = "CURRENT_DEFAULT"


def computed(snapshot: DeltaSnapshot) -> tuple[ComputedColumn, ...]:
    """The generated columns, and those with a default, as far as the protocol has the features."""
    keys = {"generatedColumns": GENERATION, "allowColumnDefaults": DEFAULT}
    found = []
    for feature, key in keys.items():
        if supports(snapshot.protocol, feature):
            found += [ComputedColumn(n, sql, key == GENERATION) for n, sql in _expressions(snapshot.metadata, key)]
    return tuple(found)


def with_generation(schema: Schema, generated: Mapping[str, str]) -> Schema:
    """The schema with the expressions of its generated columns. Raises ExpressionError, as `check_stored`."""
    for sql in generated.values():
        check_stored(sql)
    fields = (
        replace(f, metadata={**f.metadata, GENERATION: generated[f.name]}) if f.name in generated else f for f in schema
    )
    return replace(schema, fields=tuple(fields)) if generated else schema


def with_defaults(schema: Schema, defaults: Mapping[str, str]) -> Schema:
    """The schema with the defaults of its columns. Raises ExpressionError, as `check_stored`, and for one that is not
    the same in every row."""
    for name, sql in defaults.items():
        check_stored(sql)
        try:
            found = parse(sql)
        except ExpressionError:
            continue
        if any(isinstance(e, Column) for e in walk(found)):
            raise ExpressionError(
                f"the default of `{name}` names a column: {sql}", advice="generate the column from the others instead"
            )
    fields = (
        replace(f, metadata={**f.metadata, DEFAULT: defaults[f.name]}) if f.name in defaults else f for f in schema
    )
    return replace(schema, fields=tuple(fields)) if defaults else schema


def default_set(raw: Mapping[str, Any], edit: SetDefault, snapshot: DeltaSnapshot) -> dict[str, Any]:
    """The metaData with another default of a column. Raises ExpressionError, as `with_defaults`, and
    UnsupportedFeatureError for a field of a struct, a generated column, and a table whose protocol has no defaults."""
    where, name = snapshot.location.uri, ".".join(edit.path)
    if edit.default is not None and not supports(snapshot.protocol, "allowColumnDefaults"):
        raise UnsupportedFeatureError(
            f"column `{name}` cannot have a default: the table's protocol has no defaults",
            where=where,
            advice='add them: t.set_properties({"delta.feature.allowColumnDefaults": "supported"})',
        )
    document = json.loads(raw["schemaString"])
    found = next((f for f in document["fields"] if f["name"].lower() == edit.path[0].lower()), None)
    if found is None or len(edit.path) > 1:
        raise UnsupportedFeatureError(f"a default of the field `{name}` is not offered for Delta tables", where=where)
    metadata = {k: v for k, v in (found.get("metadata") or {}).items() if k != DEFAULT}
    if edit.default is not None:
        if GENERATION in metadata or "delta.identity.start" in metadata:
            raise UnsupportedFeatureError(f"`{name}` is generated, and cannot have a default too", where=where)
        with_defaults(Schema(()), {name: edit.default})
        metadata[DEFAULT] = edit.default
    found["metadata"] = metadata
    return {**raw, "schemaString": json.dumps(document, ensure_ascii=False)}


def generation(metadata: Metadata) -> Iterator[RowCondition]:
    """What the values of generated columns must be, also where the user gives them: null beside null is equal."""
    for name, sql in _expressions(metadata, GENERATION):
        type = metadata.schema.field(name).type
        yield RowCondition(f"the generation expression of {name}", f"{quote(name)} <=> CAST(({sql}) AS {type})", name)


def check_stored(sql: str) -> None:
    """Raises ExpressionError for an expression that the log must not hold: other engines do not parse it."""
    try:
        found = parse(sql)
    except ExpressionError:
        return
    if any(isinstance(e, Cast) and isinstance(e.to, FixedType) for e in walk(found)):
        raise ExpressionError(
            f"FIXED is no type of Spark, which reads the table's expressions: {sql}",
            advice="compare the length, as in length(b) = 16",
        )


def _expressions(metadata: Metadata, key: str) -> Iterator[tuple[str, str]]:
    for field in metadata.schema:
        sql = field.metadata.get(key)
        if sql is None:
            continue
        if not isinstance(sql, str):
            raise CorruptTableError(f"the {key} of `{field.name}` is no expression: {sql!r}", where=metadata.where)
        yield field.name, sql
