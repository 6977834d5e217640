"""Conflict checks: whether a change may be rebased onto the commits since it was planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.delta import paths
from boathouse.delta.actions import Protocol
from boathouse.delta.features.identity import without_marks
from boathouse.delta.features.support import writer_features
from boathouse.delta.files import Lister
from boathouse.delta.log.entry import ADD, Entry, actions_table
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.expr.tree import Expr
from boathouse.table.attempt import Winner
from boathouse.table.change import Change
from boathouse.table.edits import AdvanceIdentity, RemoveAll, RemoveFiles, RestoreTo, SetDeletes
from boathouse.table.tally import Tally
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict

_SHOWN = 10
_TRACKING = frozenset(("rowTracking", "domainMetadata"))


def check(change: Change, winners: Sequence[Winner], head: DeltaSnapshot) -> Verdict:
    """Serializable: a concurrent commit may not add a row that the change would have read, or remove a file that it
    read."""
    if change.edit(RestoreTo) is not None and winners:
        text = "the table changed, so other files separate it from the version to restore"
        return Replan((Conflict("concurrent-commit", winners[-1].version, text),))
    stop: list[Conflict] = []
    replan: list[Conflict] = []
    for winner in winners:
        stop += _identity(change, winner)
        replan += _metadata(change, winner)
        replan += _files(change, winner, head)
    if stop:
        return Stop(tuple(stop))
    return Replan(tuple(replan)) if replan else Rebase()


def _identity(change: Change, winner: Winner) -> list[Conflict]:
    """Conflicts that only the user can resolve."""
    entry: Entry = winner.document
    planned = change.planned
    assert isinstance(planned, DeltaSnapshot)
    found = []
    protocol = entry.last("protocol")
    if protocol is not None and protocol != dict(planned.protocol.raw) and not _only_tracks(protocol, planned):
        found.append(Conflict("protocol-changed", winner.version, "the table's protocol was changed"))
    if change.txn is not None and any(t.get("appId") == change.txn[0] for t in entry.actions.get("txn", ())):
        text = f"application {change.txn[0]!r} committed another transaction"
        found.append(Conflict("transaction", winner.version, text))
    return found


def _only_tracks(protocol: dict[str, Any], planned: DeltaSnapshot) -> bool:
    """Whether a protocol adds no more to the planned one than row tracking, which changes nothing that was planned: ids
    are given while a commit is prepared."""
    found = Protocol.parse(protocol, planned.location.uri)
    before, after = (frozenset((*writer_features(p), *p.reader_features)) for p in (planned.protocol, found))
    more = after - before
    return found.min_reader == planned.protocol.min_reader and before <= after and more <= _TRACKING


def _metadata(change: Change, winner: Winner) -> list[Conflict]:
    """Never rebased: what was computed under the old schema, partitioning or properties is computed again.

    But for marks of identity columns, which concern only those who give values, too, and those whose files have
    physical names that follow from the schema.
    """
    entry: Entry = winner.document
    recorded, planned = entry.last("metaData"), change.planned
    if recorded is None:
        return []
    assert isinstance(planned, DeltaSnapshot)
    concerned = change.edit(AdvanceIdentity) is not None or change.schema_edits
    if not concerned and without_marks(recorded) == without_marks(planned.metadata.raw):
        return []
    text = "the table's schema, partitioning or properties were changed"
    return [Conflict("metadata-changed", winner.version, text)]


def _files(change: Change, winner: Winner, head: DeltaSnapshot) -> list[Conflict]:
    entry: Entry = winner.document
    if change.reads.blind and not _removed_by(change) and change.edit(RemoveAll) is None:
        return []
    root = change.location.uri
    added: list[dict[str, Any]] = []
    removed: list[str] = []
    for is_add, action in entry.files():
        if is_add:
            added.append(action)
        else:
            removed.append(paths.decode(action["path"], root))
    return [
        *_deleted(change, winner, head, removed),
        *_said_again(change, winner, [paths.decode(a["path"], root) for a in added if not a.get("dataChange", True)]),
        *_appended(change, winner, head, [a for a in added if a.get("dataChange", True)]),
    ]


def _removed_by(change: Change) -> set[str]:
    """Files that the change itself removes or rewrites."""
    found: set[str] = set()
    for edit in change.edits:
        if isinstance(edit, RemoveFiles | SetDeletes):
            found |= set(edit.units.column("path").to_pylist())
    return found


def _deleted(change: Change, winner: Winner, head: DeltaSnapshot, removed: list[str]) -> list[Conflict]:
    ours = _removed_by(change)
    twice = [p for p in removed if p in ours]
    if twice:
        text = "files that the change removes have already been removed"
        return [Conflict("delete-delete", winner.version, text, tuple(twice[:_SHOWN]))]
    whole = change.reads.whole or change.edit(RemoveAll) is not None
    read = removed if whole else [p for p in removed if p in change.reads.units]
    if read:
        text = "files that the change read were removed"
        return [Conflict("concurrent-delete", winner.version, text, tuple(read[:_SHOWN]))]
    return []


def _said_again(change: Change, winner: Winner, added: list[str]) -> list[Conflict]:
    """Files that the change removes or marks, as the log had them, of which another commit says more."""
    ours = _removed_by(change)
    hits = [p for p in added if p in ours]
    if not hits:
        return []
    text = "files that the change removes were added again"
    return [Conflict("delete-delete", winner.version, text, tuple(hits[:_SHOWN]))]


def _appended(change: Change, winner: Winner, head: DeltaSnapshot, added: list[dict[str, Any]]) -> list[Conflict]:
    if not added or change.isolation == "snapshot":
        return []
    root = change.location.uri
    if change.reads.whole or change.edit(RemoveAll) is not None:
        hits = [paths.decode(a["path"], root) for a in added]
    else:
        hits = sorted({p for e in change.reads.predicates for p in _matching(e, added, head)})
    if not hits:
        return []
    where = _partitions(hits, added, head)
    text = f"rows were added that the change would have read{where}"
    return [Conflict("concurrent-append", winner.version, text, tuple(hits[:_SHOWN]))]


def _matching(predicate: Expr, added: list[dict[str, Any]], head: DeltaSnapshot) -> list[str]:
    """The added files that may contain a row that matches the predicate, by partition values and bounds."""
    table = actions_table(added, ADD, head.location.uri).combine_chunks()
    lister = Lister.of(head, (), predicate, Tally())
    batch = table.to_batches()[0]
    live = np.ones(batch.num_rows, bool)
    if lister.by_partition is not None:
        live &= lister.choose(batch.column("partitionValues"))
    keys = paths.keys_of(batch.column("path"), lister.root)
    units = pa.array(np.arange(batch.num_rows))
    return [p for found in lister.emit(units, batch, keys, live) for p in found.column("path").to_pylist()]


def _partitions(hits: list[str], added: list[dict[str, Any]], head: DeltaSnapshot) -> str:
    wanted, root = set(hits), head.location.uri
    names = {physical_name(f): f.name for f in head.schema}
    found = {
        ", ".join(f"{names.get(k, k)}={v}" for k, v in (a.get("partitionValues") or {}).items())
        for a in added
        if paths.decode(a["path"], root) in wanted
    }
    named = sorted(f for f in found if f)[:3]
    return f" in partition {'; '.join(named)}" if named else ""
