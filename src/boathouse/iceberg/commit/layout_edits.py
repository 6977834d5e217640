"""Edits of how files are laid out: the partition spec and the sort order (spec, "Partition Evolution", "Sorting")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.commit.schema_draft import check_names
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.partitions import bind_spec, check_source, spec_fields_json
from boathouse.iceberg.metadata.rules import highest_partition_id
from boathouse.iceberg.metadata.updates import AddSortOrder, AddSpec, SetDefaultSortOrder, SetDefaultSpec
from boathouse.table.edits import SetPartitioning, SetSortOrder
from boathouse.types import PartitionField, PartitionSpec, Schema, Transform

VOID = Transform("void")


def set_partitioning(draft: Draft, edit: SetPartitioning, where: str) -> None:
    """New files are partitioned by these fields; old ones stay under the specs that they were written with."""
    metadata = draft.view(where)
    for f in edit.fields:
        if f.transform.name in ("void", "unknown"):
            raise UnsupportedFeatureError(f"partitioning by {f.transform} is not offered", where=where)
    spec = replacing_spec(metadata, edit.fields, metadata.schema)
    use_spec(draft, spec)
    check_names(draft.document, metadata.schema)


def use_spec(draft: Draft, spec: PartitionSpec) -> None:
    """The spec becomes the default one; it is added unless it is there."""
    if spec.id not in {int(s["spec-id"]) for s in draft.document["partition-specs"]}:
        draft.make(AddSpec({"spec-id": spec.id, "fields": spec_fields_json(spec)}), SetDefaultSpec())
    elif spec.id != draft.document["default-spec-id"]:
        draft.make(SetDefaultSpec(spec.id))


def replacing_spec(metadata: TableMetadata, partition_by: Sequence[PartitionField], schema: Schema) -> PartitionSpec:
    """The spec of these fields: one that is equal is used again, and equal fields keep their ids, also under another
    name."""
    specs = metadata.partitioning.specs
    highest = max(s.id for s in specs)
    last = highest_partition_id(metadata.document)
    bound, _ = bind_spec(partition_by, schema, highest + 1, last)
    named, known = _known(metadata)
    fields: list[PartitionField] = []
    for f in bound:
        key = (f.source_id, str(f.transform))
        id = named.get((*key, f.name), known.get(key))
        if id is None or any(other.id == id for other in fields):
            last += 1
            id = last
        fields.append(replace(f, id=id))
    if not metadata.format.sequence_numbers:
        fields = _in_place(metadata.partitioning.current, fields)
    for spec in specs:
        if [_meaning(f) for f in spec] == [_meaning(f) for f in fields]:
            return PartitionSpec(spec.id, tuple(spec))
    return PartitionSpec(highest + 1, tuple(fields))


def _meaning(field: PartitionField) -> tuple[object, ...]:
    """What decides whether specs are equal."""
    return field.name, field.source_id, field.transform


def _known(metadata: TableMetadata) -> tuple[dict[tuple[Any, ...], int], dict[tuple[Any, ...], int]]:
    """The ids of the fields of all specs, those of the current one first: by column, transform and name, and without
    the name."""
    partitioning = metadata.partitioning
    named: dict[tuple[Any, ...], int] = {}
    known: dict[tuple[Any, ...], int] = {}
    for spec in (partitioning.current, *reversed(partitioning.specs)):
        for f in spec:
            key = (f.source_id, str(f.transform))
            named.setdefault((*key, f.name), f.recorded_id)
            known.setdefault(key, f.recorded_id)
    return named, known


def _in_place(current: PartitionSpec, wanted: Sequence[PartitionField]) -> list[PartitionField]:
    """Version 1 finds partition values by their position: fields that go stay, without values, and new ones come at the
    end."""
    by_id = {f.id: f for f in wanted}
    taken = {f.name for f in wanted}
    found = []
    for f in current:
        kept = by_id.pop(f.recorded_id, None)
        name = f"{f.name}_{f.recorded_id}" if f.name in taken else f.name
        found.append(replace(f, name=name, transform=VOID, id=f.recorded_id) if kept is None else kept)
    return [*found, *by_id.values()]


def set_sort_order(draft: Draft, edit: SetSortOrder, where: str) -> None:
    """The order that new files should have; an equal one is used again, none is the unsorted order 0."""
    schema = draft.view(where).schema
    fields = list(_sort_fields(edit, schema))
    orders = draft.document["sort-orders"]
    for order in orders:
        if [_sorted_by(f) for f in order["fields"]] == [_sorted_by(f) for f in fields]:
            if order["order-id"] != draft.document["default-sort-order-id"]:
                draft.make(SetDefaultSortOrder(order["order-id"]))
            return
    id = max((int(o["order-id"]) for o in orders), default=0) + 1 if fields else 0
    draft.make(AddSortOrder({"order-id": id, "fields": fields}), SetDefaultSortOrder())


def _sort_fields(edit: SetSortOrder, schema: Schema) -> Iterator[dict[str, Any]]:
    paths = dict(schema.walk())
    for f in edit.fields:
        if f.source not in paths:
            raise InvalidArgumentError(f"`{'.'.join(f.source)}` is not a column")
        check_source(f.transform, f.source, schema)
        yield {
            "transform": str(f.transform),
            "source-id": paths[f.source].id,
            "direction": "desc" if f.descending else "asc",
            "null-order": "nulls-first" if f.nulls_first else "nulls-last",
        }


def _sorted_by(field: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(field.get(name) for name in ("transform", "source-id", "direction", "null-order"))
