"""Verifies what a commit is about to publish, with our own reader, before it is visible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.features.support import check_read, maps_columns
from boathouse.delta.features.type_changes import check_changes
from boathouse.delta.log.entry import ADD, REMOVE, Entry, actions_table, parse_entry
from boathouse.delta.log.tail import replay
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError
from boathouse.table.attempt import Attempt, held_back


def check_entry(attempt: Attempt, root: str, newest: DeltaSnapshot | None) -> None:
    """Raises CorruptTableError unless the entry can be replayed on the head, for what they say without the table's
    other files."""
    assert attempt.version is not None, "every commit of a Delta table makes a version"
    try:
        _replay(parse_entry(attempt.version, attempt.uri, attempt.body), root, newest)
    except CorruptTableError as error:
        raise held_back(error.message, error.where or attempt.uri, error.advice) from None


def _replay(entry: Entry, root: str, newest: DeltaSnapshot | None) -> None:
    protocol_action, described = entry.last("protocol"), entry.last("metaData")
    if newest is not None and protocol_action is None and described is None:
        protocol, metadata = newest.protocol, newest.metadata
    else:
        before: Mapping[str, Any] = {} if newest is None else newest.protocol.raw
        known: Mapping[str, Any] = {} if newest is None else newest.metadata.raw
        protocol = Protocol.parse(before if protocol_action is None else protocol_action, entry.uri)
        check_read(protocol, entry.uri)
        metadata = Metadata.parse(known if described is None else described, entry.uri, maps_columns(protocol))
        check_changes(protocol, metadata)
    fields = [metadata.schema.field(name) for name in metadata.partition_columns]
    found = replay([entry], root, [physical_name(f) for f in fields])
    for actions, schema in ((found.adds, ADD), (found.removes, REMOVE)):
        if actions:
            actions_table(list(actions.values()), schema, entry.uri)
