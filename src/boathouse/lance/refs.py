"""Tags: `_refs/tags/{name}.json`, camelCase JSON with the tag's version and branch; and branches:
`_refs/branches/{name}.json`, each a table of its own in `tree/{name}`, which names the files of the main line by a base
path.

Names are letters and digits of any script, `.`, `-` and `_`; in file names everything beyond ASCII is percent-encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError, NotFoundError, VersionNotFoundError
from boathouse.storage import join
from boathouse.table.context import TableContext

TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Tag:
    """`branch` None is the main line."""

    name: str
    version: int
    branch: str | None = None


def read_ref(context: TableContext, name: str) -> Tag | None:
    """The tag called `name`; None if it is a branch. Raises VersionNotFoundError, CorruptTableError."""
    if not name:
        raise _absent(context, name)
    uri = join(context.location.uri, TAGS, f"{quote(name, safe='')}.json")
    storage, key = context.stores.resolve(uri)
    try:
        data = storage.get(key)
    except NotFoundError:
        if name in list_branches(context):
            return None
        raise _absent(context, name) from None
    return _parse(name, data, uri)


def list_tags(context: TableContext) -> Mapping[str, Tag]:
    """All tags by name."""
    storage, folder = context.stores.resolve(join(context.location.uri, TAGS))
    found = {}
    for info in storage.list_dir(folder)[1]:
        file = info.key.rpartition("/")[2]
        if file.endswith(".json"):
            name = unquote(file.removesuffix(".json"))
            found[name] = _parse(name, storage.get(info.key), storage.uri(info.key))
    return found


def list_branches(context: TableContext) -> tuple[str, ...]:
    """The names of the branches."""
    storage, folder = context.stores.resolve(join(context.location.uri, BRANCHES))
    files = (info.key.rpartition("/")[2] for info in storage.list_dir(folder)[1])
    return tuple(unquote(f.removesuffix(".json")) for f in files if f.endswith(".json"))


def _parse(name: str, data: bytes, where: str) -> Tag:
    try:
        document = json_value(data, where, "the tag")
        version, branch = document["version"], document.get("branch")
    except (TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(f"a tag that cannot be parsed: {error!r}", where=where) from error
    if not isinstance(version, int) or not (branch is None or isinstance(branch, str)):
        raise CorruptTableError(f"a tag of version {version!r} and branch {branch!r}", where=where)
    return Tag(name, version, branch)


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
