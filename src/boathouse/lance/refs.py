"""Tags: `_refs/tags/{name}.json`, camelCase JSON with the tag's version. Branches are detected but not read.

Names are letters and digits of any script, `.`, `-` and `_`; in file names everything beyond ASCII is percent-encoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError, NotFoundError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.storage import join
from boathouse.table.context import TableContext

TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Tag:
    """`branch` None is the main line."""

    name: str
    version: int
    branch: str | None = None


def read_tag(context: TableContext, name: str) -> Tag:
    """The tag called `name`. Raises VersionNotFoundError, CorruptTableError."""
    if not name:
        raise _absent(context, name)
    uri = join(context.location.uri, TAGS, f"{quote(name, safe='')}.json")
    storage, key = context.stores.resolve(uri)
    try:
        data = storage.get(key)
    except NotFoundError:
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


def _absent(context: TableContext, name: str) -> Exception:
    if name in list_branches(context):
        return UnsupportedFeatureError(
            f"branches are not read: `{name}` is one",
            where=context.location.uri,
            advice=f"open {join(context.location.uri, 'tree', name)} as a table of its own",
        )
    tags = ", ".join(sorted(list_tags(context)))
    return VersionNotFoundError(
        f"there is no tag `{name}`", where=context.location.uri, advice=f"the tags are {tags or '(none)'}"
    )
