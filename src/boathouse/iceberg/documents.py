"""Edits of the table metadata document: each changes only the necessary parts of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from boathouse.bits import entropy
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.metadata import MAIN, Json, TableMetadata
from boathouse.iceberg.partitions import FIRST_FIELD_ID, spec_fields_json
from boathouse.iceberg.schema_rules import IDENTIFIERS
from boathouse.iceberg.schemas import Ids, by_id, fresh_ids, schema_json, storable
from boathouse.iceberg.validate import highest_column_id, highest_partition_id, sortable
from boathouse.table.edits import AddColumn, CreateTable, SetProperties
from boathouse.types import Field, PartitionSpec, Schema, StructType

OURS: Final = "boathouse"
"""A field that only this library writes: the id of the write that created this version of the metadata."""
_COLUMN_METRICS: Final = "write.metadata.metrics.column."
_NOT_STORED = frozenset({"format-version"})


def new_document(create: CreateTable, schema: Schema, spec: PartitionSpec, location: str) -> Json:
    """The metadata of a table without snapshots."""
    last = max((id for id in by_id(schema)), default=0)
    return {
        "format-version": 2,
        "table-uuid": str(entropy.current().uuid4()),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": entropy.current().now_ms(),
        "last-column-id": last,
        "current-schema-id": 0,
        "schemas": [schema_json(schema, 0)],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": spec_fields_json(spec)}],
        "last-partition-id": max((f.id for f in spec), default=FIRST_FIELD_ID - 1),
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {k: v for k, v in create.properties.items() if k not in _NOT_STORED},
        "snapshots": [],
        "refs": {},
        "snapshot-log": [],
        "metadata-log": [],
    }


def set_properties(document: Json, edit: SetProperties) -> None:
    properties = dict(document.get("properties") or {})
    for key, value in edit.properties.items():
        if key == "format-version":
            raise InvalidArgumentError("format-version is not a property", advice="upgrading a table is not offered")
        if value is None:
            properties.pop(key, None)
        else:
            properties[key] = value
    document["properties"] = properties


def add_column(document: Json, edit: AddColumn, where: str) -> None:
    """A new optional column at the end of the table or of a struct, with the next ids."""
    if not edit.nullable:
        raise InvalidArgumentError(f"column `{edit.name}` is required, but existing rows have no value")
    for what, given in (("a place", edit.after), ("a default", edit.default), ("a comment", edit.comment)):
        if given is not None:
            raise UnsupportedFeatureError(
                f"column `{edit.name}` is added with {what}, which is not offered for Iceberg tables",
                where=where,
                advice="leave it out",
            )
    metadata = TableMetadata(document, where)
    schema = metadata.schema
    ids = Ids(highest_column_id(document))
    path = ".".join((*edit.parent, edit.name))
    added = fresh_ids(Field(edit.name, storable(edit.type, path)), ids)
    set_schema(document, Schema(_with(schema.fields, edit.parent, added, path), schema.metadata))
    document["last-column-id"] = max(int(document["last-column-id"]), ids.last)


def _with(fields: tuple[Field, ...], parent: tuple[str, ...], added: Field, path: str) -> tuple[Field, ...]:
    if not parent:
        if any(f.name == added.name for f in fields):
            raise InvalidArgumentError(f"the column `{path}` already exists")
        return (*fields, added)
    found = []
    for f in fields:
        if f.name == parent[0]:
            if not isinstance(f.type, StructType):
                raise InvalidArgumentError(f"`{f.name}` is {f.type}, not a struct")
            f = replace(f, type=StructType(_with(f.type.fields, parent[1:], added, path)))
        found.append(f)
    if all(f.name != parent[0] for f in fields):
        raise InvalidArgumentError(f"there is no struct `{parent[0]}` for column `{path}`")
    return tuple(found)


def set_schema(document: Json, schema: Schema) -> None:
    """Makes `schema` (with ids) the current one; an existing equal one is reused."""
    wanted = schema_json(schema, 0)
    for known in document["schemas"]:
        if known["fields"] == wanted["fields"] and _identifying(known) == _identifying(wanted):
            document["current-schema-id"] = known["schema-id"]
            return
    check_names(document, schema)
    id = max(int(s["schema-id"]) for s in document["schemas"]) + 1
    document["schemas"] = [*document["schemas"], schema_json(schema, id)]
    document["current-schema-id"] = id
    _settle_ids(document)


def move_metrics(document: Json, old: tuple[str, ...], new: tuple[str, ...] | None) -> None:
    """The properties about metrics of a column, and of those below it, follow it to its new name; None: they go."""
    properties = dict(document.get("properties") or {})
    before = _COLUMN_METRICS + ".".join(old)
    for key in [k for k in properties if k == before or k.startswith(before + ".")]:
        value = properties.pop(key)
        if new is not None:
            properties[_COLUMN_METRICS + ".".join(new) + key[len(before) :]] = value
    document["properties"] = properties


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


def replace_schema(document: Json, schema: Schema, spec: PartitionSpec) -> None:
    """An overwrite's own schema and spec, both with ids."""
    set_schema(document, Schema(schema.fields))
    known = {int(s["spec-id"]) for s in document["partition-specs"]}
    if spec.id not in known:
        added = {"spec-id": spec.id, "fields": spec_fields_json(spec)}
        document["partition-specs"] = [*document["partition-specs"], added]
    document["default-spec-id"] = spec.id
    _settle_ids(document)


def _settle_ids(document: Json) -> None:
    """The last ids are the highest that exist, whatever an earlier writer recorded."""
    document["last-column-id"] = highest_column_id(document)
    document["last-partition-id"] = highest_partition_id(document)


def settle_sort_order(document: Json) -> None:
    """A sort order of columns that the current schema lacks is replaced by the unsorted one: other readers refuse
    it."""
    if sortable(document):
        return
    if all(int(o["order-id"]) != 0 for o in document["sort-orders"]):
        document["sort-orders"] = [*document["sort-orders"], {"order-id": 0, "fields": []}]
    document["default-sort-order-id"] = 0


def add_snapshot(document: Json, snapshot: Json, ref: str | None) -> None:
    """The snapshot becomes the head of the branch `ref`; on `main` it is added to the log."""
    name = ref or MAIN
    refs: dict[str, Any] = dict(document.get("refs") or {})
    if MAIN not in refs and document.get("current-snapshot-id") not in (None, -1):
        refs[MAIN] = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}
    before = refs.get(name, {"type": "branch"})
    if before.get("type", "branch") != "branch":
        raise InvalidArgumentError(f"{name!r} is a tag, which cannot be written to", advice="write to a branch")
    refs[name] = {**before, "snapshot-id": snapshot["snapshot-id"]}
    document["refs"] = refs
    document["snapshots"] = [*(document.get("snapshots") or []), snapshot]
    document["last-sequence-number"] = snapshot["sequence-number"]
    if name == MAIN:
        document["current-snapshot-id"] = snapshot["snapshot-id"]
        entry = {"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]}
        document["snapshot-log"] = [*(document.get("snapshot-log") or []), entry]


def finish(
    document: Json,
    previous: TableMetadata | None,
    timestamp_ms: int,
    write_id: str,
    described: Mapping[str, str] | None = None,
) -> None:
    """The parts of every version: its time, the log of earlier metadata files, and the write that created it.

    `described` is what a snapshot's summary would say, if there is none.
    """
    if document.get("current-snapshot-id") == -1:
        del document["current-snapshot-id"]
    document["last-updated-ms"] = timestamp_ms
    document[OURS] = {"write-id": write_id, "attempt": str(entropy.current().uuid4())}
    if described is not None:
        document[OURS]["summary"] = dict(described)
    if previous is None:
        return
    entry = {"metadata-file": previous.uri, "timestamp-ms": int(previous.document["last-updated-ms"])}
    keep = _keep(document.get("properties") or {})
    document["metadata-log"] = [*(document.get("metadata-log") or []), entry][-keep:]


def _keep(properties: Mapping[str, str]) -> int:
    try:
        return max(1, int(properties.get("write.metadata.previous-versions-max", "100")))
    except ValueError:
        return 100


def summary_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a commit of ours without a snapshot recorded of itself."""
    ours = document.get(OURS)
    found = ours.get("summary") if isinstance(ours, dict) else None
    return found if isinstance(found, dict) else {}


def written_by(document: Mapping[str, Any]) -> str | None:
    """The write that created this version of the metadata, if it was one of ours."""
    ours = document.get(OURS)
    return ours.get("write-id") if isinstance(ours, dict) else None
