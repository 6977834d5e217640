"""Shallow clones: a new table of the files of another, which it names by absolute paths and never writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.delta.actions import MAPPING_MODE, Metadata, Protocol
from boathouse.delta.commit.known_files import added_again
from boathouse.delta.features.column_mapping import with_properties
from boathouse.delta.features.deletion_vectors import file_uri
from boathouse.delta.features.domains import ROW_TRACKING, domains
from boathouse.delta.features.row_tracking import named
from boathouse.delta.features.support import asked_by_name, check_write, supports, upgraded, without_names
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.log.cleanup import PROTECTED
from boathouse.delta.log.commit_times import SINCE_TIME, SINCE_VERSION, next_time, with_enablement
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.delta.write import check_properties
from boathouse.errors import ForeignPathError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage import uris
from boathouse.storage.hadoop import hadoop_uri
from boathouse.table.context import TableContext
from boathouse.table.edits import CloneTable, CreateTable
from boathouse.table.snapshot import Target
from boathouse.types import PartitionSpec, Schema

Action = dict[str, Any]
_OF_ITS_VERSIONS: Final = (SINCE_VERSION, SINCE_TIME, PROTECTED)
"""Properties that name versions of the source."""


@dataclass(frozen=True, slots=True)
class DeltaClone:
    """See `table.features.Clonable`."""

    snapshot: DeltaSnapshot
    draft: Callable[[TableContext, Schema, PartitionSpec, CreateTable], Target]
    alters: ClassVar[bool] = True

    def cloning(self, context: TableContext) -> tuple[Target, CloneTable]:
        """Raises what `_clone` raises."""
        source = self.snapshot
        spec = source.partitioning.current
        table = CreateTable(source.schema, spec.fields, source.properties)
        return self.draft(context, source.schema, spec, table), _clone(source, context.location.uri)


def _clone(source: DeltaSnapshot, target: str) -> CloneTable:
    """The edit that makes the table at the URI `target`.

    Raises InvalidArgumentError if one table were inside the other, ForeignPathError for files in a store that readers
    of the target refuse, UnsupportedFeatureError for features that a clone does not keep safe.
    """
    root = source.location.uri
    check_write(source.protocol, source.metadata, root)
    if supports(source.protocol, "rowTracking"):
        raise UnsupportedFeatureError(
            "a table with row tracking is not cloned: its rows name versions that the clone does not have",
            where=root,
            advice="write the rows into a new table",
        )
    if uris.relative(target, root) is not None or uris.relative(root, target) is not None:
        raise InvalidArgumentError(
            f"one table would be inside the other: {root}", where=target, advice="pass another path"
        )
    units = pa.Table.from_batches(list_files(source, (), None, None, all_stats=True), schema_of(source, ()))
    for uri in (root, *pc.unique(units.column("path")).to_pylist()):
        if uris.foreign(uri, target):
            raise ForeignPathError(
                "the clone would name files in a store of another kind",
                where=uri,
                advice="clone into a store of the same kind, or write the rows into a new table",
            )
    return CloneTable(source, units)


def table_actions(edit: CloneTable, now: int, where: str) -> list[Action]:
    """The protocol, the metaData under a new id, and the domains, as they are in the source, with the clone's own
    properties. Application transactions are those of the source's writers, and stay there."""
    source = edit.source
    assert isinstance(source, DeltaSnapshot)
    raw = _metadata(edit, where)
    after = Metadata.parse(raw, where, source.metadata.mappable or MAPPING_MODE in edit.properties)
    asked = asked_by_name(edit.properties)
    protocol = upgraded(source.protocol, after, asked=asked) or dict(source.protocol.raw)
    return [
        {"protocol": protocol},
        {"metaData": {**raw, "id": str(system.current().uuid4()), "createdTime": now}},
        *(_domain(name, text) for name, text in _domains(source).items()),
    ]


def replacing_actions(edit: CloneTable, newest: DeltaSnapshot, now: int) -> list[Action]:
    """What `table_actions` gives for a table that is there: it keeps its id, the features of its protocol, and its
    commit times if it records them."""
    where = newest.location.uri
    protocol, metadata, *cloned = table_actions(edit, now, where)
    before = newest.metadata.raw
    kept = {key: before[key] for key in ("id", "createdTime") if key in before}
    time = next_time(now, newest.timestamp_ms)
    raw = with_enablement({**metadata["metaData"], **kept}, newest.metadata, newest.version + 1, time)
    after = Metadata.parse(raw, where, True)
    asked = asked_by_name(edit.properties)
    more = upgraded(newest.protocol, after, Protocol.parse(protocol["protocol"], where), asked)
    named = {action["domainMetadata"]["domain"] for action in cloned}
    gone = [_domain(name, "", removed=True) for name in _domains(newest) if name not in named]
    return [*([] if more is None else [{"protocol": more}]), {"metaData": dict(raw)}, *cloned, *gone]


def _metadata(edit: CloneTable, where: str) -> Action:
    source = edit.source
    assert isinstance(source, DeltaSnapshot)
    raw = dict(source.metadata.raw)
    kept = {k: v for k, v in (raw.get("configuration") or {}).items() if k not in _OF_ITS_VERSIONS}
    raw["configuration"] = kept
    if not edit.properties:
        return raw
    check_properties(edit.properties, where)
    found = with_properties(raw, without_names(edit.properties), source.metadata)
    return dict(named(found, source.metadata, where))


def _domains(table: DeltaSnapshot) -> Mapping[str, str]:
    found = domains(table) if supports(table.protocol, "domainMetadata") else {}
    return {name: text for name, text in found.items() if name != ROW_TRACKING}


def _domain(name: str, configuration: str, removed: bool = False) -> Action:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": removed}}


def clone_adds(edit: CloneTable, data_change: bool) -> Iterator[Action]:
    """The add actions of the source's files, and their vectors, by absolute paths."""
    source = edit.source
    assert isinstance(source, DeltaSnapshot)
    root = source.location.uri
    files = edit.units.column("path").to_pylist()
    for uri, action in zip(files, added_again(edit.units, data_change), strict=True):
        found = {**action, "path": hadoop_uri(uri)}
        if (vector := action.get("deletionVector")) is not None:
            found["deletionVector"] = _absolute(vector, root)
        yield found


def _absolute(vector: Mapping[str, Any], root: str) -> Action:
    uri = file_uri(vector, root)
    return dict(vector) if uri is None else {**vector, "storageType": "p", "pathOrInlineDv": hadoop_uri(uri)}
