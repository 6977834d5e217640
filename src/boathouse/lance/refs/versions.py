"""Versions that are never cleaned up, however old: those of tags, and those at which branches begin."""

from __future__ import annotations

from collections.abc import Mapping

from boathouse.lance.refs.files import list_tags, read_branches
from boathouse.table.context import TableContext


def named(main: TableContext, line: str | None) -> Mapping[int, str]:
    """The versions of a line (None: the main one) that have a name, with it. Raises CorruptTableError."""
    branches = (b for b in read_branches(main).values() if b.parent == line)
    found = {b.parent_version: f"where the branch {b.name!r} begins" for b in branches}
    tags = (tag for tag in list_tags(main).values() if tag.branch == line)
    return found | {tag.version: f"that of the tag {tag.name!r}" for tag in tags}
