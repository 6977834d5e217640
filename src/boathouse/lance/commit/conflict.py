"""Conflict checks: whether a change may be rebased onto concurrent commits.

Fragment ids are permanent, so most pairs of commits do not overlap: an append is rebased onto anything except an
overwrite, a delete onto deletes (deletion files are merged in `prepare`). A concurrent commit whose transaction is
missing or unknown stops the change: its effects are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from boathouse.errors import VersionNotFoundError
from boathouse.lance.commit.properties import WRITE_ID, app_version
from boathouse.lance.manifests.messages import DataFragment, Manifest, Transaction
from boathouse.lance.manifests.versions import list_versions
from boathouse.lance.snapshot import LanceSnapshot, read_manifest, read_transaction
from boathouse.table.attempt import Winner
from boathouse.table.change import Change
from boathouse.table.edits import (
    AddColumn,
    AddFiles,
    RemoveAll,
    RemoveFiles,
    ReplaceSchema,
    SetDeletes,
    SetProperties,
    SetTransaction,
)
from boathouse.table.location import CommitId
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict
from boathouse.table.version import TableVersion

Kind = Literal["append", "overwrite", "delete", "update", "rewrite", "config", "add-column"]
_HARMLESS = ("create_index", "reserve_fragments")


@dataclass(frozen=True, slots=True)
class Landed:
    """A concurrent commit as far as it is known. `transaction` None: it recorded none."""

    version: int
    transaction: Transaction | None

    @property
    def operation(self) -> str | None:
        return self.transaction.operation if self.transaction else None


def kind_of(change: Change) -> Kind:
    """The effects of a change on a table, from its edits."""
    kinds = {type(e) for e in change.edits}
    if change.operation == "replace" or not change.data_change:
        return "rewrite"
    if RemoveAll in kinds:
        return "overwrite"
    if kinds & {RemoveFiles, SetDeletes}:
        return "update" if AddFiles in kinds or change.schema_edits else "delete"
    if AddFiles in kinds or kinds == {SetTransaction}:
        return "append"
    return "add-column" if change.schema_edits else "config"


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
    pair = _Pair(kind_of(change), change, change.planned.manifest, head.manifest)
    replans: list[Conflict] = []
    for winner in landed:
        verdict = pair.against(winner.document)
        if isinstance(verdict, Stop):
            return verdict
        if isinstance(verdict, Replan):
            replans += verdict.conflicts
    return Replan(tuple(replans)) if replans else Rebase()


@dataclass(frozen=True)
class _Pair:
    """Our change, and the manifests on which it was planned and would be committed."""

    ours: Kind
    change: Change
    planned: Manifest
    head: Manifest
    touched: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        units = [e.units for e in self.change.all(RemoveFiles)] + [e.units for e in self.change.all(SetDeletes)]
        ids = (i for table in units for i in table.column("unit").to_pylist())
        object.__setattr__(self, "touched", frozenset(ids))

    def against(self, landed: Landed) -> Verdict:
        transaction, operation = landed.transaction, landed.operation
        if transaction is None or operation is None:
            what = "recorded no transaction" if transaction is None else "is of an unknown operation"
            return self._stop("unknown-operation", landed, f"version {landed.version} {what}")
        if self._same_application(transaction):
            return self._stop("transaction", landed, "the same application transaction was committed already")
        if operation in _HARMLESS:
            return Rebase()
        anew = self.change.edit(ReplaceSchema) is not None
        if self.change.evolves and not anew and self.head.fields != self.planned.fields:
            return self._replan("schema-changed", landed, "columns were added or changed, and so were ours")
        if operation == "update_config":
            return self._config(landed, transaction)
        rule: Callable[[Landed, Transaction, str], Verdict] = {
            "append": self._append,
            "overwrite": self._overwrite,
            "delete": self._rows,
            "update": self._rows,
            "rewrite": self._rows,
            "config": lambda *_: Rebase(),
            "add-column": self._add_column,
        }[self.ours]
        return rule(landed, transaction, operation)

    def _append(self, landed: Landed, transaction: Transaction, operation: str) -> Verdict:
        if operation in ("overwrite", "restore", "clone"):
            return self._began_anew(landed, operation)
        return self._schema(landed)

    def _overwrite(self, landed: Landed, transaction: Transaction, operation: str) -> Verdict:
        if operation == "clone":
            return self._began_anew(landed, operation)
        if operation == "overwrite":
            return self._replan("concurrent-overwrite", landed, "another overwrite won")
        if self.change.edit(ReplaceSchema) is not None:
            return Rebase()
        return self._schema(landed)

    def _rows(self, landed: Landed, transaction: Transaction, operation: str) -> Verdict:
        """Deletes, updates and compactions: rows of known fragments are removed."""
        if operation in ("overwrite", "restore", "clone"):
            return self._began_anew(landed, operation)
        if operation == "append":
            return Rebase()
        if self.ours != "delete" and operation in ("merge", "project"):
            return self._replan("schema-changed", landed, f"a {operation} changed the schema")
        hit = sorted(self.touched & touched_by(transaction))
        if not hit or operation in ("merge", "project"):
            return Rebase()
        if self.ours == "delete" and operation == "delete":
            return Rebase()
        kind = "delete-delete" if operation == "delete" else "concurrent-delete"
        return self._replan(kind, landed, f"a {operation} changed the same fragments: {', '.join(map(str, hit))}", hit)

    def _add_column(self, landed: Landed, transaction: Transaction, operation: str) -> Verdict:
        if operation in ("overwrite", "restore", "clone"):
            return self._began_anew(landed, operation)
        ours = {e.name.lower() for e in self.change.all(AddColumn)}
        both = sorted(ours & {f.name.lower() for f in self.head.fields if f.parent_id < 0})
        if both:
            return self._stop("schema-changed", landed, f"a {operation} added the same columns: {', '.join(both)}")
        return Rebase()

    def _config(self, landed: Landed, transaction: Transaction) -> Verdict:
        ours = {key for edit in self.change.all(SetProperties) for key in edit.properties}
        assert transaction.update_config is not None
        both = sorted(ours & transaction.update_config.config_keys)
        if both:
            return self._stop("metadata-changed", landed, f"the same properties were set: {', '.join(both)}")
        return Rebase()

    def _schema(self, landed: Landed) -> Verdict:
        """Files written for the planned schema fit the head's: its fields still exist, new ones may be null."""
        before = {f.id: f for f in self.planned.fields}
        names = {(f.parent_id, f.name) for f in self.planned.fields}
        for now in self.head.fields:
            then = before.get(now.id)
            if then is None:
                fits = now.nullable and (now.parent_id, now.name) not in names
            else:
                fits = then.logical_type == now.logical_type and (now.nullable or not then.nullable)
            if not fits:
                return self._replan("schema-changed", landed, f"column `{now.name}` was changed")
        return Rebase()

    def _same_application(self, transaction: Transaction) -> bool:
        if self.change.txn is None:
            return False
        app, version = self.change.txn
        done = app_version(transaction.transaction_properties, app)
        return done is not None and done >= version

    def _began_anew(self, landed: Landed, operation: str) -> Stop:
        return self._stop("table-overwritten", landed, f"version {landed.version} is a {operation} of the whole table")

    def _stop(self, kind: str, landed: Landed, message: str) -> Stop:
        return Stop((Conflict(kind, landed.version, message),))

    def _replan(self, kind: str, landed: Landed, message: str, fragments: Sequence[int] = ()) -> Replan:
        paths = {f.id: f.files[0].path for f in self.planned.fragments if f.files}
        return Replan((Conflict(kind, landed.version, message, tuple(paths[i] for i in fragments if i in paths)),))


def touched_by(transaction: Transaction) -> frozenset[int]:
    """The fragments that a transaction changed or removed, without new ones."""

    def ids(fragments: Sequence[DataFragment]) -> set[int]:
        return {f.id for f in fragments}

    if (delete := transaction.delete) is not None:
        return frozenset(ids(delete.updated_fragments) | set(delete.deleted_fragment_ids))
    if (update := transaction.update) is not None:
        return frozenset(ids(update.updated_fragments) | set(update.removed_fragment_ids))
    if transaction.rewrite is not None:
        return transaction.rewrite.old_ids
    if transaction.data_replacement is not None:
        return frozenset(r.fragment_id for r in transaction.data_replacement.replacements)
    if transaction.merge is not None:
        return frozenset(ids(transaction.merge.fragments))
    return frozenset()
