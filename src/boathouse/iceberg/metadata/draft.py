"""A commit's updates while they are made, and the parts of a document that only a table in a file system has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.iceberg.metadata import commit_retries, metrics_modes
from boathouse.iceberg.metadata import updates as u
from boathouse.iceberg.metadata.apply import apply_all
from boathouse.iceberg.metadata.document import Json, TableMetadata
from boathouse.iceberg.metadata.encryption import require_plain
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, mapping_of
from boathouse.iceberg.metadata.partitions import FIRST_FIELD_ID, spec_fields_json
from boathouse.iceberg.metadata.rules import sortable
from boathouse.iceberg.metadata.schemas import schema_json
from boathouse.iceberg.metadata.updates import MAIN, MetadataUpdate
from boathouse.iceberg.metadata.versions import PROPERTY, FormatVersion, asked_version
from boathouse.table.edits import CreateTable, SetProperties
from boathouse.types import PartitionSpec, Schema

OURS: Final = "boathouse"
"""A field that only this library writes: the id of the write that created this version of the metadata."""
_NOT_STORED = frozenset({PROPERTY})
_UNSORTED: Final = 0
COMMENT: Final = "comment"
"""The property that describes the table."""
_BORROWED: Final = {"gc.enabled": "false", "snapshot": "true"}
"""What the reference sets in a table of the files of another one."""
_OF_SCHEMAS: Final = (u.AddSchema, u.SetCurrentSchema)


class Draft:
    """The updates of one commit so far, and the document that they make of the one before it.

    Every edit of metadata adds updates; nothing else changes the document.
    """

    def __init__(self, document: Json) -> None:
        self._before = document
        self.document = document
        self.updates: list[MetadataUpdate] = []

    def make(self, *updates: MetadataUpdate) -> None:
        """Raises what `apply` raises."""
        self.document = apply_all(self.document, updates)
        self.updates += updates

    def make_schema(self, wanted: Callable[[Json], Sequence[MetadataUpdate]]) -> None:
        """Replaces the current schema by the updates that are `wanted` of a document. A commit of several edits makes
        one schema, in the place of the first: specs and orders that came after refer to its fields by id."""
        made = [i for i, update in enumerate(self.updates) if isinstance(update, _OF_SCHEMAS)]
        if not made:
            self.make(*wanted(self.document))
            return
        rest = [update for update in self.updates if not isinstance(update, _OF_SCHEMAS)]
        before = apply_all(self._before, rest[: made[0]])
        self.updates = [*rest[: made[0]], *wanted(before), *rest[made[0] :]]
        self.document = apply_all(self._before, self.updates)

    def view(self, where: str) -> TableMetadata:
        """The document as it is now."""
        return TableMetadata(self.document, where)


def begun(metadata: TableMetadata, now: int) -> Draft:
    """A commit on a table. What it does has the time of the commit."""
    return Draft({**metadata.document, "last-updated-ms": now})


def created(
    create: CreateTable, schema: Schema, spec: PartitionSpec, location: str, now: int, version: FormatVersion
) -> Draft:
    """The first commit of a table, without snapshots so far."""
    draft = Draft(_empty(version, now))
    draft.make(
        u.AssignUuid(str(system.current().uuid4())),
        u.UpgradeFormatVersion(version.number),
        u.SetLocation(location),
        u.AddSchema(schema_json(schema, 0)),
        u.SetCurrentSchema(),
        u.AddSpec({"spec-id": 0, "fields": spec_fields_json(spec)}),
        u.SetDefaultSpec(),
        u.AddSortOrder({"order-id": _UNSORTED, "fields": []}),
        u.SetDefaultSortOrder(),
    )
    properties = {k: v for k, v in create.properties.items() if k not in _NOT_STORED}
    metrics_modes.check(properties, schema)
    commit_retries.check(properties)
    if create.adopts:
        properties.setdefault(NAME_MAPPING, mapping_of(schema).text())
    if create.borrows:
        properties |= _BORROWED
    if create.comment is not None:
        properties[COMMENT] = create.comment
    if properties:
        draft.make(u.SetProperties(properties))
    return draft


def _empty(version: FormatVersion, now: int) -> Json:
    return {
        "format-version": version.number, "last-updated-ms": now, "last-column-id": 0, "schemas": [],
        "partition-specs": [], "last-partition-id": FIRST_FIELD_ID - 1, "sort-orders": [], "properties": {},
        "snapshots": [], "refs": {}, "snapshot-log": [], "metadata-log": [], **version.new_fields(),
    }  # fmt: skip


def set_properties(draft: Draft, edit: SetProperties) -> None:
    """Sets properties, and removes those whose value is None; `format-version` upgrades the table. Raises
    UnsupportedFeatureError for a lower version, or a master key; InvalidArgumentError for values that nobody obeys."""
    if PROPERTY in edit.properties:
        version = asked_version(edit.properties[PROPERTY])
        if version.number != draft.document[PROPERTY]:
            draft.make(u.UpgradeFormatVersion(version.number))
    asked = {k: v for k, v in edit.properties.items() if k not in _NOT_STORED}
    before = draft.document.get("properties") or {}
    changed = {k: v for k, v in asked.items() if v is not None and before.get(k) != v}
    gone = tuple(k for k, v in asked.items() if v is None and k in before)
    if any(k.startswith(metrics_modes.PREFIX) for k in changed):
        metrics_modes.check(changed, draft.view("").schema)
    commit_retries.check(changed)
    require_plain(changed)
    if changed:
        draft.make(u.SetProperties(changed))
    if gone:
        draft.make(u.RemoveProperties(gone))


def settle_sort_order(draft: Draft) -> None:
    """A sort order of columns that the current schema lacks is replaced by the unsorted one: other readers refuse
    it."""
    if sortable(draft.document):
        return
    if all(int(o["order-id"]) != _UNSORTED for o in draft.document["sort-orders"]):
        draft.make(u.AddSortOrder({"order-id": _UNSORTED, "fields": []}))
    draft.make(u.SetDefaultSortOrder(_UNSORTED))


def add_snapshot(draft: Draft, snapshot: Json, ref: str | None, staged: bool = False) -> None:
    """The snapshot becomes the head of the branch `ref`; on `main` it is added to the log. A staged one is of no
    branch."""
    name = ref or MAIN
    before = (draft.document.get("refs") or {}).get(name, {"type": "branch"})
    if before.get("type", "branch") != "branch":
        raise InvalidArgumentError(f"{name!r} is a tag, which cannot be written to", advice="write to a branch")
    if staged:
        draft.make(u.AddSnapshot(snapshot))
        return
    head = {**before, "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
    draft.make(u.AddSnapshot(snapshot), u.SetSnapshotRef(name, head))


def finished(
    document: Json, previous: TableMetadata | None, write_id: str, described: Mapping[str, str] | None = None
) -> Json:
    """The next version of a table in a file system: with the log of earlier metadata files, and the write that created
    it. `described` is what a snapshot's summary would say, if there is none."""
    ours: Json = {"write-id": write_id, "attempt": str(system.current().uuid4())}
    if described is not None:
        ours["summary"] = dict(described)
    found = {**document, OURS: ours}
    if found.get("current-snapshot-id") == -1:
        del found["current-snapshot-id"]
    if previous is not None:
        entry = {"metadata-file": previous.uri, "timestamp-ms": int(previous.document["last-updated-ms"])}
        keep = _keep(document.get("properties") or {})
        found["metadata-log"] = [*(document.get("metadata-log") or []), entry][-keep:]
    return found


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
