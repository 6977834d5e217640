"""Table metadata of format version 1, seen as that of version 2 (spec, Appendix E, "Reading v1 metadata for v2")."""

from __future__ import annotations

import uuid
from typing import Any, Final

Json = dict[str, Any]
_UNSORTED: Final = {"order-id": 0, "fields": []}
_LAST_UNPARTITIONED: Final = 999


def completed(document: Json) -> Json:
    """The document with the fields that version 2 requires and version 1 does not; what cannot be completed stays
    missing. Values of wrong types stay as they are, to be reported."""
    found = {**document}
    _with_schemas(found)
    _with_specs(found)
    if found.get("sort-orders") is None:
        found["sort-orders"] = [_UNSORTED]
    if found.get("default-sort-order-id") is None:
        found["default-sort-order-id"] = 0
    # No writer of version 1 counts: every snapshot and file has the number 0, also if a field says otherwise.
    found["last-sequence-number"] = 0
    if isinstance(found.get("snapshots"), list):
        found["snapshots"] = [{**s, "sequence-number": 0} if isinstance(s, dict) else s for s in found["snapshots"]]
    if found.get("table-uuid") is None and isinstance(found.get("location"), str):
        # The table's identity, by which a table that was dropped and recreated is noticed.
        found["table-uuid"] = str(uuid.uuid5(uuid.NAMESPACE_URL, found["location"]))
    return found


def _with_schemas(found: Json) -> None:
    schema = found.get("schema")
    if found.get("schemas") is None and isinstance(schema, dict):
        found["schemas"] = [{"schema-id": 0, **schema}]
        found["current-schema-id"] = found["schemas"][0]["schema-id"]
    elif found.get("current-schema-id") is None and isinstance(schema, dict):
        found["current-schema-id"] = schema.get("schema-id", 0)


def _with_specs(found: Json) -> None:
    fields = found.get("partition-spec")
    if isinstance(fields, dict):  # some writers put the whole spec there
        fields = fields.get("fields")
    if found.get("partition-specs") is None and fields is not None:
        found["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        found["default-spec-id"] = 0
    specs = found.get("partition-specs")
    if found.get("default-spec-id") is None and isinstance(specs, list) and all(isinstance(s, dict) for s in specs):
        # Optional in version 1: the newest spec.
        ids = [s.get("spec-id") for s in specs]
        found["default-spec-id"] = max((i for i in ids if isinstance(i, int)), default=None)
    if found.get("last-partition-id") is None:
        found["last-partition-id"] = max([_LAST_UNPARTITIONED, *_field_ids(found.get("partition-specs"))])


def _field_ids(specs: Any) -> list[int]:
    """The partition field ids; a field without one has that of its position."""
    ids = []
    for spec in specs if isinstance(specs, list) else ():
        fields = spec.get("fields") if isinstance(spec, dict) else None
        for i, field in enumerate(fields if isinstance(fields, list) else ()):
            id = field.get("field-id") if isinstance(field, dict) else None
            ids.append(id if isinstance(id, int) else _LAST_UNPARTITIONED + 1 + i)
    return ids
