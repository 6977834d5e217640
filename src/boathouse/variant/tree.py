"""Containers before they are encoded: names and children first, ids and headers once all names are known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from boathouse.errors import InvalidArgumentError
from boathouse.variant.decode import read_scalar
from boathouse.variant.encode import encode_array, encode_object, encode_string
from boathouse.variant.metadata import Metadata, build_metadata, parse_metadata
from boathouse.variant.primitives import MAX_DEPTH, SHORT_STRING_MAX, STRING
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

Encoded = tuple[bytes, bytes]
"""The metadata and the value of a variant."""
_CACHED_NAMES = 1_000


class Node:
    """An object or array (`names` is None); `children` are encoded scalars and nodes, `encoded` is set at the end."""

    __slots__ = ("children", "encoded", "names")

    def __init__(self, names: list[str] | None) -> None:
        self.names = names
        self.children: list[bytes | Node] = []
        self.encoded = b""


def check_names(names: list[str]) -> None:
    """Raises InvalidArgumentError if a name occurs twice."""
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidArgumentError(f"the object has the field {twice!r} twice")


def assemble(root: bytes | Node, inner_first: Iterable[Node], metadata: Metadata | None = None) -> Encoded:
    """Metadata and value of a tree, given all its nodes with children before parents; names are checked to be
    unique.

    With `metadata` its ids are used, otherwise the smallest dictionary is created. Raises InvalidArgumentError for
    names that are not UTF-8 or not in the given metadata.
    """
    nodes = list(inner_first)
    names: set[str] = set()
    for node in nodes:
        if node.names:
            names.update(node.names)
    if metadata is None:
        metadata, ids = _smallest(tuple(sorted(names)))
    else:
        ids = {name: _id_of(name, metadata) for name in names}
    for node in nodes:
        values = [child if isinstance(child, bytes) else child.encoded for child in node.children]
        if node.names is None:
            node.encoded = encode_array(values)
        else:
            fields = sorted(zip(node.names, values))
            node.encoded = encode_object([ids[name] for name, _ in fields], [value for _, value in fields])
        node.children = []
    return metadata.raw, root if isinstance(root, bytes) else root.encoded


def _smallest(names: tuple[str, ...]) -> tuple[Metadata, dict[str, int]]:
    """The dictionary of the names, which are sorted (strings sort as their UTF-8 bytes do), and their ids."""
    if len(names) > _CACHED_NAMES:
        return _smallest_of.__wrapped__(names)
    return _smallest_of(names)


@lru_cache(maxsize=256)
def _smallest_of(names: tuple[str, ...]) -> tuple[Metadata, dict[str, int]]:
    return parse_metadata(build_metadata(names)), {name: id for id, name in enumerate(names)}


def _id_of(name: str, metadata: Metadata) -> int:
    found = metadata.ids(name)
    if not found:
        raise InvalidArgumentError(f"the given metadata does not have the name {name!r}")
    return found[0]


def variant_tree(value: VariantView, depth: int) -> tuple[bytes | Node, list[Node]]:
    """A variant as a tree with its exact types, and the nodes with children before parents.

    Raises InvalidArgumentError if more than `depth` are nested; MalformedVariant, UnsupportedFeatureError.
    """
    data = value.buffer
    root = Node(None)
    open_nodes, closed = [root], []
    finished, scalar = Event.END, Event.SCALAR
    for event, key, pos, end, level in walk(data, *value.span, value.dictionary):
        if event is finished:
            closed.append(open_nodes.pop())
            continue
        top = open_nodes[-1]
        if isinstance(key, str) and top.names is not None:
            top.names.append(key)
        if event is scalar:
            read_scalar(data, pos, end)
            top.children.append(_canonical_string(data[pos:end]))
            continue
        if level >= depth:
            raise InvalidArgumentError(f"more than {MAX_DEPTH:,} nested containers")
        node = Node([] if event is Event.OBJECT else None)
        top.children.append(node)
        open_nodes.append(node)
    return root.children[0], closed


def _canonical_string(value: bytes) -> bytes:
    """The short form for a long string of at most 63 bytes; every other scalar as it is."""
    if value[0] == STRING << 2 and len(value) <= 5 + SHORT_STRING_MAX:
        return encode_string(value[5:].decode())
    return value
