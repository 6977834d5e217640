"""The current schema of a draft, replaced: by one that is there already, or by a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boathouse.errors import InvalidArgumentError
from boathouse.iceberg.metadata.document import Json
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.schema_rules import IDENTIFIERS
from boathouse.iceberg.metadata.schemas import by_id, schema_json
from boathouse.iceberg.metadata.updates import AddSchema, MetadataUpdate, SetCurrentSchema
from boathouse.types import Schema


def set_schema(draft: Draft, schema: Schema) -> None:
    """Makes `schema` (with ids) the current one; an existing equal one is reused."""
    draft.make_schema(lambda document: list(_replacing(document, schema, draft)))


def _replacing(document: Json, schema: Schema, draft: Draft) -> Iterator[MetadataUpdate]:
    known = document["schemas"]
    wanted = schema_json(schema, max(int(s["schema-id"]) for s in known) + 1)
    for one in known:
        if one["fields"] == wanted["fields"] and _identifying(one) == _identifying(wanted):
            if one["schema-id"] != document["current-schema-id"]:
                yield SetCurrentSchema(one["schema-id"])
            return
    check_names(draft.document, schema)
    yield AddSchema(wanted)
    yield SetCurrentSchema()


def _identifying(schema: Mapping[str, Any]) -> set[int]:
    return set(schema.get(IDENTIFIERS) or ())


def check_names(document: Json, schema: Schema) -> None:
    """Raises InvalidArgumentError for a column with the name of a partition field of another column, even in an older
    spec: Java resolves each spec by name in the current schema, and then fails to open the table. So it does with two
    columns whose names are the same once they are joined by dots."""
    names: dict[str, int] = {}
    for id, (path, _) in by_id(schema).items():
        if names.setdefault(".".join(path), id) != id:
            raise InvalidArgumentError(
                f"there are two columns `{'.'.join(path)}`, one of them with a dot in its name",
                advice="give the column another name",
            )
    for spec in document["partition-specs"]:
        for field in spec["fields"]:
            if names.get(field["name"], field.get("source-id")) != field.get("source-id"):
                raise InvalidArgumentError(
                    f"a column cannot be called `{field['name']}`: a field of partition spec {spec['spec-id']} "
                    "has that name, for another column",
                    advice="give the column another name",
                )
