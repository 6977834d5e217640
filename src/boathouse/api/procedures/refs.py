"""The procedures of Iceberg that move branches, by the names, arguments and results that they have in iceberg-spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from boathouse.api.procedures.procedure import Called, Procedure, Row
from boathouse.table import features
from boathouse.table.features import required

_MOVED: Final = "previous_snapshot_id bigint, current_snapshot_id bigint"
_PICKED: Final = "source_snapshot_id bigint, current_snapshot_id bigint"


def _rollback_to_snapshot(called: Called) -> Iterator[Row]:
    before = called.table.version
    called.table.refs.rollback(called.given["snapshot_id"])
    yield before, called.table.version


def _rollback_to_timestamp(called: Called) -> Iterator[Row]:
    before = called.table.version
    called.table.refs.rollback(timestamp=called.given["timestamp"])
    yield before, called.table.version


def _set_current_snapshot(called: Called) -> Iterator[Row]:
    before = called.table.version
    called.table.refs.set_current(called.given.get("snapshot_id"), called.given.get("ref"))
    yield before, called.table.version


def _cherrypick_snapshot(called: Called) -> Iterator[Row]:
    source = called.given["snapshot_id"]
    called.table.refs.cherry_pick(source)
    yield source, called.table.version


def _publish_changes(called: Called) -> Iterator[Row]:
    name = called.given["wap_id"]
    source = required(called.table._handle.snapshot, features.CherryPicks, "publish_changes").staged(name)
    called.table.refs.publish(name)
    yield source, called.table.version


def _fast_forward(called: Called) -> Iterator[Row]:
    branch, refs = called.given["branch"], called.table.refs
    before = refs[branch].version if branch in refs else None
    refs.fast_forward(branch, called.given["to"])
    yield branch, before, refs[branch].version


def _ancestors_of(called: Called) -> Iterator[Row]:
    snapshot = called.table._handle.snapshot
    found = required(snapshot, features.Refs, "ancestors_of")
    for ancestor in found.ancestors(called.given.get("snapshot_id", snapshot.version)):
        yield ancestor.version, ancestor.timestamp_ms


PROCEDURES: Final = (
    Procedure("rollback_to_snapshot", "snapshot_id bigint NOT NULL", _MOVED, _rollback_to_snapshot),
    Procedure("rollback_to_timestamp", "timestamp timestamp NOT NULL", _MOVED, _rollback_to_timestamp),
    Procedure("set_current_snapshot", "snapshot_id bigint, ref string", _MOVED, _set_current_snapshot),
    Procedure("cherrypick_snapshot", "snapshot_id bigint NOT NULL", _PICKED, _cherrypick_snapshot),
    Procedure("publish_changes", "wap_id string NOT NULL", _PICKED, _publish_changes),
    Procedure(
        "fast_forward",
        "branch string NOT NULL, to string NOT NULL",
        "branch_updated string, previous_ref bigint, updated_ref bigint",
        _fast_forward,
    ),
    Procedure("ancestors_of", "snapshot_id bigint", "snapshot_id bigint, timestamp bigint", _ancestors_of),
)
