"""Shallow clones: a new table of the files of another, which it names by absolute paths and never writes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.commit.known_files import added_again
from boathouse.delta.features.deletion_vectors import file_uri
from boathouse.delta.features.domains import ROW_TRACKING, domains
from boathouse.delta.features.support import check_write, supports, upgraded
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.log.cleanup import PROTECTED
from boathouse.delta.log.commit_times import SINCE_TIME, SINCE_VERSION
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import ForeignPathError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage import uris
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


def table_actions(edit: CloneTable, now: int) -> list[Action]:
    """The protocol, the metaData under a new id, and the domains, as they are in the source. Application transactions
    are those of the source's writers, and stay there."""
    source = edit.source
    assert isinstance(source, DeltaSnapshot)
    raw = source.metadata.raw
    configuration = {k: v for k, v in (raw.get("configuration") or {}).items() if k not in _OF_ITS_VERSIONS}
    id = str(system.current().uuid4())
    protocol = upgraded(source.protocol, source.metadata) or dict(source.protocol.raw)
    kept = domains(source) if supports(source.protocol, "domainMetadata") else {}
    return [
        {"protocol": protocol},
        {"metaData": {**raw, "id": id, "configuration": configuration, "createdTime": now}},
        *(
            {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}
            for name, text in kept.items()
            if name != ROW_TRACKING
        ),
    ]


def clone_adds(edit: CloneTable, data_change: bool) -> Iterator[Action]:
    """The add actions of the source's files, and their vectors, by absolute paths."""
    source = edit.source
    assert isinstance(source, DeltaSnapshot)
    root = source.location.uri
    files = edit.units.column("path").to_pylist()
    for uri, action in zip(files, added_again(edit.units, data_change), strict=True):
        found = {**action, "path": paths.encode_uri(uri)}
        if (vector := action.get("deletionVector")) is not None:
            found["deletionVector"] = _absolute(vector, root)
        yield found


def _absolute(vector: Mapping[str, Any], root: str) -> Action:
    uri = file_uri(vector, root)
    return dict(vector) if uri is None else {**vector, "storageType": "p", "pathOrInlineDv": paths.encode_uri(uri)}
