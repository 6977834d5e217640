"""Tags and branches that are set and dropped: their files, which are no part of any version of the table.

A file that is put if absent decides between two that create the same; a tag is replaced, or a file removed, if it still
is what the change was planned on. So a branch has its file before its first version, which is put right after: what is
left of an interrupted creation is listed and can be dropped.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from boathouse.bits.system import current
from boathouse.errors import AlreadyExistsError, NotFoundError, StorageError, VersionNotFoundError
from boathouse.lance.commit.confirmation import committer
from boathouse.lance.commit.properties import MESSAGE, WRITE_ID
from boathouse.lance.commit.transaction import sealed
from boathouse.lance.external import opened
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import has_manifests, list_versions, missing_version
from boathouse.lance.operations.clone import cloned
from boathouse.lance.refs.files import list_branches, of_branch, of_main, parse_tag, read_branches, ref_uri
from boathouse.lance.snapshot import LanceSnapshot, load
from boathouse.storage import PutMode, Stores
from boathouse.table.attempt import Attempt, Published
from boathouse.table.change import Change
from boathouse.table.commit import FileCommitter
from boathouse.table.context import TableContext
from boathouse.table.edits import DropRef, RefEdit, SetRef
from boathouse.table.location import At, CommitId
from boathouse.table.refs import Ref
from boathouse.table.verdict import Conflict, Rebase, Replan, Verdict


@dataclass(frozen=True, slots=True)
class RefFile:
    """The `state` of an attempt at an edit of a ref: what happens to its file, whose bytes were `before`, None if there
    is none that the edit was planned on; and the first version of a branch that is created."""

    ref: Ref
    root: TableContext
    does: Literal["create", "replace", "drop"]
    before: bytes | None
    first: Attempt | None = None


def edit_of(change: Change) -> RefEdit | None:
    """The edit of a ref, which is all that such a change does."""
    return next((e for e in change.edits if isinstance(e, SetRef | DropRef)), None)


def check(edit: RefEdit, head: LanceSnapshot) -> Verdict:
    """Versions that were added meanwhile do not matter, only the ref itself."""
    ref = edit.ref if isinstance(edit, SetRef) else edit.replaces
    uri = ref_uri(_root(head), ref.name, ref.type)
    if _as_planned(_get(head.stores, uri), edit.replaces, uri):
        return Rebase()
    return Replan((Conflict("ref-changed", head.version, f"`{ref.name}` was changed concurrently"),))


def prepare(change: Change, edit: RefEdit, head: LanceSnapshot) -> Attempt:
    """Raises VersionNotFoundError for a version that is not retained any more, AlreadyExistsError for a branch in whose
    folder something is left, and what a clone of the version raises."""
    change.require(SetRef, DropRef)
    root = _root(head)
    ref = edit.ref if isinstance(edit, SetRef) else edit.replaces
    uri, commit = ref_uri(root, ref.name, ref.type), CommitId(None, f"{ref.type} {ref.name}")
    before = _get(root.stores, uri)
    before = before if _as_planned(before, edit.replaces, uri) else None
    if isinstance(edit, DropRef):
        return Attempt(uri, b"", commit, state=RefFile(ref, root, "drop", before))
    does: Literal["create", "replace"] = "create" if edit.replaces is None else "replace"
    metadata = {WRITE_ID: change.write_id, **change.metadata}
    if change.message is not None:
        metadata[MESSAGE] = change.message
    if ref.type == "tag":
        kept = {} if before is None else parse_tag(ref.name, before, uri).document
        body = _tag_document(ref, kept, _manifest_size(head, ref.version), metadata)
        return Attempt(uri, body, commit, state=RefFile(ref, root, does, before))
    body = _branch_document(ref, head, _manifest_size(head, ref.version), metadata)
    first = _first_version(change, ref, root, head)
    return Attempt(uri, body, commit, first.side, state=RefFile(ref, root, does, before, first))


def _first_version(change: Change, ref: Ref, root: TableContext, head: LanceSnapshot) -> Attempt:
    context = of_branch(root, ref.name)
    if has_manifests(context) and _get(root.stores, ref_uri(root, ref.name, ref.type)) is None:
        raise AlreadyExistsError(
            f"there are versions of a branch {ref.name!r} that is not listed, as after an interrupted creation or drop",
            where=context.location.uri,
            advice="choose another name, or remove this folder if nobody writes to it",
        )
    source = load(head.context, At(version=ref.version), type(head))
    return sealed(change, context, cloned(source, ref.name))


def publish(attempt: Attempt, stores: Stores) -> Published:
    """`Commits.publish`."""
    state = attempt.state
    assert isinstance(state, RefFile)
    if state.does != "create":
        return _exchange(attempt, state, stores)
    published = FileCommitter(stores).publish(attempt)
    if published != "won" or state.first is None:
        return published
    branch = of_branch(state.root, state.ref.name)
    try:
        _forget(branch)
        begun = committer(branch).publish(state.first)
    except StorageError:
        _remove(stores, attempt.uri)
        raise
    if begun == "lost":
        _remove(stores, attempt.uri)
    return begun


def _exchange(attempt: Attempt, state: RefFile, stores: Stores) -> Published:
    """Replaces or removes the file if it is still as it was. No store can do that at once: of two that replace a tag in
    the same moment, the later one is what stays."""
    if state.before is None or _get(stores, attempt.uri) != state.before:
        return "lost"
    storage, key = stores.resolve(attempt.uri)
    wanted = None if state.does == "drop" else attempt.body
    try:
        if wanted is None:
            storage.delete([key])
        else:
            storage.put(key, wanted, PutMode.OVERWRITE)
    except StorageError:
        try:
            now = _get(stores, attempt.uri)
        except StorageError:
            return "unknown"
        if now == state.before:
            raise
        return "won" if now == wanted else "unknown"
    return "won"


def after_commit(attempt: Attempt, stores: Stores) -> None:
    """The files of a branch go after it, but not those of branches whose folders are inside of its own."""
    state = attempt.state
    assert isinstance(state, RefFile)
    if state.does != "drop" or state.ref.type == "tag":
        return
    branch = of_branch(state.root, state.ref.name)
    storage, folder = stores.resolve(branch.location.uri)
    inside = [n for n in list_branches(state.root) if n.startswith(f"{state.ref.name}/")]
    kept = tuple(f"{stores.resolve(of_branch(state.root, name).location.uri)[1]}/" for name in inside)
    storage.delete([info.key for info in storage.list(folder) if not info.key.startswith(kept)])
    _forget(branch)


def _forget(branch: TableContext) -> None:
    """A branch that is made or was dropped has no versions: a manifest store may have those of an earlier one with its
    name, which pylance leaves there."""
    if store_name(branch) is not None:
        opened.store_of(branch).forget(branch.location.uri)


def _root(head: LanceSnapshot) -> TableContext:
    return of_main(head.context, head.manifest.branch)


def _get(stores: Stores, uri: str) -> bytes | None:
    storage, key = stores.resolve(uri)
    try:
        return storage.get(key)
    except NotFoundError:
        return None


def _as_planned(now: bytes | None, planned: Ref | None, where: str) -> bool:
    """Branches move by themselves; tags are where they were."""
    if now is None or planned is None:
        return (now is None) == (planned is None)
    if planned.type == "branch":
        return True
    tag = parse_tag(planned.name, now, where)
    return (tag.version, tag.branch) == (planned.version, planned.branch)


def _remove(stores: Stores, uri: str) -> None:
    storage, key = stores.resolve(uri)
    with suppress(StorageError):
        storage.delete([key])


def _manifest_size(head: LanceSnapshot, version: int) -> int:
    kept = list_versions(head.context)
    found = next((v for v in kept if v.version == version), None)
    if found is None:
        raise missing_version(head.location, version, kept)
    if found.size is not None:
        return found.size
    return head.stores.resolve(head.location.uri)[0].head(found.key).size


def _tag_document(ref: Ref, kept: Mapping[str, Any], size: int, metadata: Mapping[str, str]) -> bytes:
    """A tag that is replaced keeps when it was created, and whatever else its file says."""
    now = dt.datetime.fromtimestamp(current().now_ms() / 1000, dt.UTC).isoformat(timespec="milliseconds")
    now = now.replace("+00:00", "Z")
    return _json(
        {
            **kept,
            "branch": ref.branch,
            "version": ref.version,
            "createdAt": kept.get("createdAt") or now,
            "updatedAt": now,
            "manifestSize": size,
            "metadata": {**_map(kept.get("metadata")), **metadata},
        }
    )


def _branch_document(ref: Ref, head: LanceSnapshot, size: int, metadata: Mapping[str, str]) -> bytes:
    parent = head.manifest.branch
    branches = read_branches(_root(head))
    if parent is not None and parent not in branches:
        raise VersionNotFoundError(
            f"the branch {parent!r} was dropped", where=head.location.uri, advice="open the table itself"
        )
    above = branches[parent].line if parent is not None else ()
    line = [*(list(pair) for pair in above), [ref.version, current().uuid4().hex]]
    return _json(
        {
            "parentBranch": parent,
            "identifier": {"version_mapping": line},
            "parentVersion": ref.version,
            "createAt": current().now_ms() // 1000,
            "manifestSize": size,
            "metadata": dict(metadata),
        }
    )


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode()
