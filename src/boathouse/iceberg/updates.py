"""A commit as edits and conditions in the form of the REST catalog's specification (CommitTableRequest).

A table in a file system needs neither: there the next document is put if absent. A catalog takes these instead of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boathouse.iceberg.metadata import MAIN, Json, TableMetadata

_LAST_ADDED = -1
"""The id of what an earlier update of the same commit added: the catalog may assign another one."""


def updates(before: TableMetadata | None, after: TableMetadata) -> tuple[Json, ...]:
    """The TableUpdates that make the document `before` (None: a new table) into `after`."""
    return tuple(_updates(before, after))


def _updates(before: TableMetadata | None, after: TableMetadata) -> Iterator[Json]:
    old: Json = {} if before is None else before.document
    new = after.document
    if before is None:
        yield {"action": "assign-uuid", "uuid": after.uuid}
        yield {"action": "upgrade-format-version", "format-version": after.version}
        yield {"action": "set-location", "location": after.location}
    yield from _added(old, new, "schemas", "schema-id", "current-schema-id", "schema")
    yield from _added(old, new, "partition-specs", "spec-id", "default-spec-id", "spec")
    yield from _added(old, new, "sort-orders", "order-id", "default-sort-order-id", "sort-order")
    yield from _properties(old.get("properties") or {}, new.get("properties") or {})
    known = {} if before is None else before.snapshots
    for id, snapshot in after.snapshots.items():
        if id not in known:
            yield {"action": "add-snapshot", "snapshot": snapshot}
    refs = {} if before is None else before.refs
    for name, ref in after.refs.items():
        if refs.get(name) != ref:
            yield {"action": "set-snapshot-ref", "ref-name": name, **ref}


_ACTIONS = {
    "schema": ("add-schema", "set-current-schema", "schema-id"),
    "spec": ("add-spec", "set-default-spec", "spec-id"),
    "sort-order": ("add-sort-order", "set-default-sort-order", "sort-order-id"),
}


def _added(old: Json, new: Json, many: str, id: str, chosen: str, one: str) -> Iterator[Json]:
    """Schemas, specs or sort orders that are new, and the choice of the current one."""
    add, choose, argument = _ACTIONS[one]
    known = {v[id] for v in old.get(many) or []}
    last = None
    for value in new[many]:
        if value[id] not in known:
            last = value[id]
            yield {"action": add, one: value}
    if new[chosen] != old.get(chosen):
        yield {"action": choose, argument: _LAST_ADDED if new[chosen] == last else new[chosen]}


def _properties(old: Json, new: Json) -> Iterator[Json]:
    changed = {k: v for k, v in new.items() if old.get(k) != v}
    gone = sorted(k for k in old if k not in new)
    if changed:
        yield {"action": "set-properties", "updates": changed}
    if gone:
        yield {"action": "remove-properties", "removals": gone}


def requirements(before: TableMetadata | None, after: TableMetadata, ref: str | None) -> tuple[Json, ...]:
    """The TableRequirements under which the updates may be applied to a head other than `before`.

    Ids that the commit assigned must still be free, and its snapshot must follow the same one.
    """
    if before is None:
        return ({"type": "assert-create"},)
    found: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": before.uuid}]
    old, new = before.document, after.document
    if len(after.snapshots) > len(before.snapshots):
        name = ref or MAIN
        head = before.refs.get(name, {}).get("snapshot-id")
        found.append({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": head})
    for what, condition in (
        ("last-column-id", "last-assigned-field-id"),
        ("current-schema-id", "current-schema-id"),
        ("last-partition-id", "last-assigned-partition-id"),
        ("default-spec-id", "default-spec-id"),
        ("default-sort-order-id", "default-sort-order-id"),
    ):
        if old[what] != new[what]:
            found.append({"type": f"assert-{condition}", condition: old[what]})
    return tuple(found)
