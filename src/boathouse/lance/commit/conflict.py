"""Conflict checks: whether a change may be rebased onto concurrent commits.

Fragment ids are permanent, so most pairs of commits do not overlap: an append is rebased onto anything except an
overwrite, a delete onto deletes (deletion files are merged in `prepare`). What each pair means is in `operations`. A
concurrent commit whose transaction is missing or unknown stops the change: its effects are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boathouse.errors import VersionNotFoundError
from boathouse.lance.commit.properties import WRITE_ID, app_version
from boathouse.lance.manifests.messages import Transaction
from boathouse.lance.manifests.versions import list_versions
from boathouse.lance.operations.base import OurOperation, Pair, Theirs
from boathouse.lance.operations.known import operation_of, ours
from boathouse.lance.snapshot import LanceSnapshot, read_manifest, read_transaction
from boathouse.table.attempt import Winner
from boathouse.table.change import Change
from boathouse.table.edits import ReplaceSchema
from boathouse.table.location import CommitId
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict
from boathouse.table.version import TableVersion


@dataclass(frozen=True, slots=True)
class Landed:
    """A concurrent commit as far as it is known. `transaction` None: it recorded none."""

    version: int
    transaction: Transaction | None


def winners(since: TableVersion, head: LanceSnapshot) -> Sequence[Winner] | None:
    """The commits after `since` up to the head, oldest first; None if one of them was cleaned up."""
    context = head.context
    wanted = range(since.version + 1, head.version + 1)
    if not wanted:
        return ()
    kept = {v.version: v for v in list_versions(context)}
    found = []
    for version in wanted:
        file = kept.get(version)
        if file is None:
            return None
        try:
            document = head.document if version == head.version else read_manifest(context, file)
        except VersionNotFoundError:
            return None
        transaction = read_transaction(context, document)
        properties = transaction.transaction_properties if transaction else {}
        found.append(Winner(CommitId(version, str(version)), properties.get(WRITE_ID), Landed(version, transaction)))
    return found


def check(change: Change, landed: Sequence[Winner], head: LanceSnapshot) -> Verdict:
    """The verdict over all concurrent commits: the first Stop, else the combined Replans, else Rebase."""
    assert isinstance(change.planned, LanceSnapshot)
    pair, operation = Pair(change, change.planned.manifest, head.manifest), ours(change)
    replans: list[Conflict] = []
    for winner in landed:
        verdict = _after(pair, operation, winner.document)
        if isinstance(verdict, Stop):
            return verdict
        if isinstance(verdict, Replan):
            replans += verdict.conflicts
    return Replan(tuple(replans)) if replans else Rebase()


def _after(pair: Pair, operation: OurOperation, landed: Landed) -> Verdict:
    """Whether our operation may follow one that landed."""
    known = None if landed.transaction is None else operation_of(landed.transaction)
    if landed.transaction is None or known is None:
        what = "recorded no transaction" if landed.transaction is None else "is of an unknown operation"
        return Stop((Conflict("unknown-operation", landed.version, f"version {landed.version} {what}"),))
    theirs = Theirs(landed.version, *known)
    if _same_application(pair.change, landed.transaction):
        return pair.stop("transaction", theirs, "the same application transaction was committed already")
    found = theirs.operation.before_any(pair, theirs)
    if found is not None:
        return found
    replaced = pair.change.edit(ReplaceSchema) is not None
    if pair.change.evolves and not replaced and pair.head.fields != pair.planned.fields:
        return pair.replan("schema-changed", theirs, "columns were added or changed, and so were ours")
    return operation.after(pair, theirs)


def _same_application(change: Change, transaction: Transaction) -> bool:
    if change.txn is None:
        return False
    app, version = change.txn
    done = app_version(transaction.transaction_properties, app)
    return done is not None and done >= version
