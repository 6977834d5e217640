"""Tags: `_refs/tags/{name}.json`, camelCase JSON with the tag's version and branch; and branches:
`_refs/branches/{name}.json`, each a table of its own in `tree/{name}`, which names the files of the main line by a base
path.

Names are letters and digits of any script, `.`, `-` and `_`, and in those of branches `/`; in file names `/` and
everything beyond ASCII is percent-encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError, InvalidArgumentError, NotFoundError, VersionNotFoundError
from boathouse.storage import join
from boathouse.table.context import TableContext
from boathouse.table.refs import MAIN, RefType

TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
_FOLDERS: Final = frozenset(("data", "_versions", "_deletions", "_transactions", "_indices", "_refs", "_blobs", TREE))
"""The folders of a table: in that of the branch `a`, a branch `a/data` would be among its files."""


@dataclass(frozen=True, slots=True)
class Tag:
    """`branch` None is the main line. `document` is all that the file says."""

    name: str
    version: int
    branch: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """`line` names it among all branches that there ever were: the version at which each of the branches that it comes
    from begins, and an id; itself last. Empty where the file does not say it, as those of older writers."""

    name: str
    parent: str | None
    parent_version: int
    line: tuple[tuple[int, str], ...] = ()

    def comes_from(self, other: Branch) -> bool:
        """Whether it begins at a version of the other branch."""
        if self.line and other.line:
            return len(self.line) > len(other.line) and self.line[: len(other.line)] == other.line
        return self.parent == other.name


def read_ref(context: TableContext, name: str) -> Tag | None:
    """The tag called `name`; None if it is a branch. Raises VersionNotFoundError, CorruptTableError."""
    if not name:
        raise _absent(context, name)
    uri = ref_uri(context, name, "tag")
    storage, key = context.stores.resolve(uri)
    try:
        data = storage.get(key)
    except NotFoundError:
        if name in list_branches(context):
            return None
        raise _absent(context, name) from None
    return parse_tag(name, data, uri)


def list_tags(context: TableContext) -> Mapping[str, Tag]:
    """All tags by name."""
    storage, folder = context.stores.resolve(join(context.location.uri, TAGS))
    found = {}
    for info in storage.list_dir(folder)[1]:
        file = info.key.rpartition("/")[2]
        if file.endswith(".json"):
            name = unquote(file.removesuffix(".json"))
            found[name] = parse_tag(name, storage.get(info.key), storage.uri(info.key))
    return found


def list_branches(context: TableContext) -> tuple[str, ...]:
    """The names of the branches."""
    return tuple(_branch_files(context))


def read_branches(context: TableContext) -> Mapping[str, Branch]:
    """All branches by name. Raises CorruptTableError."""
    storage, _ = context.stores.resolve(context.location.uri)
    found = {}
    for name, key in _branch_files(context).items():
        try:
            found[name] = parse_branch(name, storage.get(key), storage.uri(key))
        except NotFoundError:  # dropped since the listing
            continue
    return found


def _branch_files(context: TableContext) -> dict[str, str]:
    """The keys of the files of branches, by name. Some stores show an encoded `/` as a folder."""
    storage, folder = context.stores.resolve(join(context.location.uri, BRANCHES))
    keys = (info.key for info in storage.list(folder) if info.key.endswith(".json"))
    return {unquote(key[len(folder) + 1 :].removesuffix(".json")): key for key in keys}


def ref_uri(context: TableContext, name: str, type: RefType) -> str:
    """The file of a tag or branch."""
    return join(context.location.uri, TAGS if type == "tag" else BRANCHES, f"{quote(name, safe='')}.json")


def parse_tag(name: str, data: bytes, where: str) -> Tag:
    """Raises CorruptTableError."""
    try:
        document = json_value(data, where, "the tag")
        version, branch = document["version"], document.get("branch")
    except (TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(f"a tag that cannot be parsed: {error!r}", where=where) from error
    if not isinstance(version, int) or not (branch is None or isinstance(branch, str)):
        raise CorruptTableError(f"a tag of version {version!r} and branch {branch!r}", where=where)
    return Tag(name, version, None if branch == MAIN else branch, document)


def parse_branch(name: str, data: bytes, where: str) -> Branch:
    """Raises CorruptTableError."""
    try:
        document = json_value(data, where, "the branch")
        parent, version = document.get("parentBranch"), document["parentVersion"]
        line = tuple((at, id) for at, id in (document.get("identifier") or {}).get("version_mapping", ()))
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise CorruptTableError(f"a branch that cannot be parsed: {error!r}", where=where) from error
    if not isinstance(version, int) or not (parent is None or isinstance(parent, str)):
        raise CorruptTableError(f"a branch of version {version!r} of {parent!r}", where=where)
    return Branch(name, None if parent == MAIN else parent, version, line)


def check_name(name: str, type: RefType) -> None:
    """Raises InvalidArgumentError for a name that a tag or branch cannot have, by the rules of the format."""
    segments = name.split("/") if type == "branch" else [name]
    allowed = all(s and all(c.isalnum() or c in ".-_" for c in s) for s in segments)
    dotted = ".." in name or name.endswith(".lock") or (type == "tag" and (name[:1] == "." or name[-1:] == "."))
    if name == MAIN or not allowed or dotted or "." in segments:
        slash = ", with / between them" if type == "branch" else ""
        raise InvalidArgumentError(
            f"{name!r} cannot be the name of a {type} of a Lance table",
            advice=f"use letters, digits, `.`, `-` and `_`{slash}; neither `..` nor `.lock` at the end",
        )
    taken = next((s for s in segments[1:] if s in _FOLDERS), None)
    if taken is not None:
        raise InvalidArgumentError(
            f"the branch {name!r} would be in the folder `{taken}` of another one", advice="choose another name"
        )


def of_branch(context: TableContext, branch: str) -> TableContext:
    """Where a branch of the table is."""
    place = join(context.location.uri, TREE, branch)
    return replace(context, location=replace(context.location, uri=place))


def of_main(context: TableContext, branch: str | None) -> TableContext:
    """Where the table is whose `branch` (None: main line) is at this place."""
    below = f"/{TREE}/{branch}"
    uri = context.location.uri
    if branch is None or not uri.endswith(below):
        return context
    return replace(context, location=replace(context.location, uri=uri.removesuffix(below)))


def _absent(context: TableContext, name: str) -> Exception:
    tags, branches = ", ".join(sorted(list_tags(context))), ", ".join(sorted(list_branches(context)))
    return VersionNotFoundError(
        f"there is no tag or branch `{name}`",
        where=context.location.uri,
        advice=f"the tags are {tags or '(none)'}, the branches {branches or '(none)'}",
    )
