"""Paths of added files that the table knows already. A data file is added once: what a path is that was deleted and
comes back depends on who reads (spec, "Snapshots": its deletes may apply again, and expiring the commit that deleted it
removes it)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from boathouse.errors import InvalidArgumentError
from boathouse.iceberg.manifests.live_once import repeated
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import AddFiles


def check_new(change: Change, head: IcebergSnapshot | None) -> None:
    """Raises InvalidArgumentError for a path that is added twice, that the change removes, or, of files that were there
    before the write, that the manifests of `head` have, live or deleted, unless these may come back. Those that were
    just written have names of their own."""
    added = change.added
    if added is None:
        return
    where = str(change.location)
    twice = repeated(added.column("path"))
    if twice is not None:
        raise _refused(twice, "the commit adds it twice", where)
    if change.removed is not None:
        paths = added.column("path")
        back = paths.filter(pc.is_in(paths, change.removed.column("path").combine_chunks()))
        if len(back):
            raise _refused(back[0].as_py(), "the commit removes it", where)
    for edit in change.all(AddFiles):
        if edit.found and head is not None:
            found = frozenset(edit.outcomes.column("path").to_pylist())
            for path in _known(head, edit.again):
                if path in found:
                    why = "the table has it" if edit.again else "the table has it, or had it and deleted it"
                    raise _refused(path, why, where)


def _known(head: IcebergSnapshot, live_only: bool) -> Iterator[str]:
    """The URIs of all data files that the manifests of a snapshot name."""
    listing = head.listing
    for source in listing.data_manifests:
        uri = head.paths.uri(source.path)
        files = listing.reader.entries(source, uri, listing.verify).files(live_only)
        yield from head.paths.uris(files.paths()).to_pylist()


def _refused(path: str, why: str, where: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the data file {path} cannot be added: {why}", where=where, advice="add a copy of the file under another name"
    )
