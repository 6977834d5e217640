"""The updates of a table's metadata, under the names of the REST catalog's specification (TableUpdate).

A commit is a list of them: a table in a file system gets the document that they make (module apply), a catalog the list
itself, with the requirements under which it may be applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from boathouse.table.refs import MAIN as MAIN

Json = Mapping[str, Any]
LAST_ADDED: Final = -1
"""The id of what an earlier update of the same commit added: the catalog may assign another one."""


@dataclass(frozen=True, slots=True)
class AssignUuid:
    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    schema: Json


@dataclass(frozen=True, slots=True)
class SetCurrentSchema:
    schema_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class RemoveSchemas:
    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddSpec:
    spec: Json


@dataclass(frozen=True, slots=True)
class SetDefaultSpec:
    spec_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecs:
    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddSortOrder:
    sort_order: Json


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrder:
    sort_order_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSnapshot:
    snapshot: Json


@dataclass(frozen=True, slots=True)
class RemoveSnapshots:
    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SetSnapshotRef:
    """`ref` are the fields of the ref itself: its snapshot-id, its type, and what is retained of a branch or tag."""

    ref_name: str
    ref: Json


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRef:
    ref_name: str


@dataclass(frozen=True, slots=True)
class SetLocation:
    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    updates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatistics:
    statistics: Json


@dataclass(frozen=True, slots=True)
class RemoveStatistics:
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatistics:
    partition_statistics: Json


@dataclass(frozen=True, slots=True)
class RemovePartitionStatistics:
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class AddEncryptionKey:
    encryption_key: Json


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKey:
    key_id: str


MetadataUpdate = (
    AssignUuid | UpgradeFormatVersion | AddSchema | SetCurrentSchema | RemoveSchemas | AddSpec | SetDefaultSpec
    | RemovePartitionSpecs | AddSortOrder | SetDefaultSortOrder | AddSnapshot | RemoveSnapshots | SetSnapshotRef
    | RemoveSnapshotRef | SetLocation | SetProperties | RemoveProperties | SetStatistics | RemoveStatistics
    | SetPartitionStatistics | RemovePartitionStatistics | AddEncryptionKey | RemoveEncryptionKey
)  # fmt: skip


def action(update: MetadataUpdate) -> str:
    """The update's name in the specification."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", type(update).__name__).lower()


def to_json(update: MetadataUpdate) -> dict[str, Any]:
    """A TableUpdate."""
    found: dict[str, Any] = {"action": action(update)}
    for field in fields(update):
        value = getattr(update, field.name)
        if field.name == "ref":
            found.update(value)
        else:
            found[field.name.replace("_", "-")] = list(value) if isinstance(value, tuple) else value
    return found


def requirements(updates: Sequence[MetadataUpdate], before: Json | None, exact: bool = False) -> tuple[Json, ...]:
    """The TableRequirements under which the updates, made for the document `before` (None: a new table), are right.

    Ids that they assign must still be free, and their snapshots must follow the same one. With `exact` the schema and
    the partition spec too must be those of `before`: files were written with them.
    """
    if before is None:
        return ({"type": "assert-create"},)
    found: dict[str, Json] = {"": {"type": "assert-table-uuid", "uuid": before["table-uuid"]}}
    for update in updates:
        for name, requirement in _required(update, before):
            found.setdefault(name, requirement)
    if exact:
        found.setdefault(*_same(before, "current-schema-id"))
        found.setdefault(*_same(before, "default-spec-id"))
    return tuple(found.values())


def _required(update: MetadataUpdate, before: Json) -> Iterator[tuple[str, Json]]:
    match update:
        case RemoveSnapshots():
            # What expires was counted from these heads, and a branch or tag may have been moved back to it.
            for name in before.get("refs") or {}:
                yield _ref(name, before)
        case SetSnapshotRef(name) | RemoveSnapshotRef(name):
            yield _ref(name, before)
        case AddSchema():
            yield _same(before, "last-column-id", "last-assigned-field-id")
        case SetCurrentSchema():
            yield _same(before, "current-schema-id")
        case AddSpec():
            yield _same(before, "last-partition-id", "last-assigned-partition-id")
        case SetDefaultSpec():
            yield _same(before, "default-spec-id")
        case SetDefaultSortOrder():
            yield _same(before, "default-sort-order-id")
        case RemoveSchemas() | RemovePartitionSpecs():
            # What no snapshot needs may be needed by one that is committed meanwhile.
            yield _same(before, "current-schema-id" if isinstance(update, RemoveSchemas) else "default-spec-id")
            for name, ref in (before.get("refs") or {}).items():
                if ref.get("type", "branch") == "branch":
                    yield _ref(name, before)


def _same(before: Json, name: str, condition: str | None = None) -> tuple[str, Json]:
    condition = condition or name
    return name, {"type": f"assert-{condition}", condition: before[name]}


def _ref(name: str, before: Json) -> tuple[str, Json]:
    head = (before.get("refs") or {}).get(name, {}).get("snapshot-id")
    if head is None and name == MAIN and before.get("current-snapshot-id") != -1:
        head = before.get("current-snapshot-id")
    return f"ref {name}", {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": head}
