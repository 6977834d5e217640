"""What files of each version can hold, as far as the types of the columns say."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file.schema import Node

WRITTEN = ("2.0", "2.1", "2.2")
"""The versions that are written."""


def check_storable(nodes: Iterable[Node], version: str, where: str | None = None) -> None:
    """Raises UnsupportedFeatureError for a version that is not written, and for a column that it has no layout for."""
    if version not in WRITTEN:
        raise UnsupportedFeatureError(
            f"writing Lance data files of version {version}",
            where=where,
            advice="copy the rows into a new table, which has version 2.2",
        )
    tops = list(nodes)
    for top in (node for node in tops if node.is_blob):
        if (top.logical_type == "struct") != (version == "2.2"):
            raise UnsupportedFeatureError(
                f"`{top.name}`, a blob of another version, in a file of version {version}",
                where=where,
                advice="write into a new table, which has version 2.2",
            )
    for node in (below for top in tops if not top.is_blob for below in top.walk()):
        if node.is_blob:
            raise UnsupportedFeatureError(
                f"writing `{node.name}` as a blob inside another column", where=where, advice="drop the field metadata"
            )
        if node.is_packed and (version == "2.0" or any(not _packs(child, version) for child in node.children)):
            raise UnsupportedFeatureError(
                f"`{node.name}` as a packed struct of such fields, in a file of version {version}",
                where=where,
                advice="drop the field metadata",
            )
        if version != "2.2" and (node.logical_type == "map" or _is_vector_of_fields(node)):
            raise UnsupportedFeatureError(
                f"`{node.name}`, a {node.logical_type}, in a file of version {version}",
                where=where,
                advice="write into a new table, which has version 2.2",
            )


def _packs(child: Node, version: str) -> bool:
    """Whether a field has a place in a packed row: numbers, from 2.2 on also texts and vectors of numbers."""
    kind = child.logical_type
    if child.children or kind in ("bool", "null") or kind.startswith("dict:") or ":bool:" in kind:
        return False
    long = kind.startswith("fixed_size_list:") or kind.endswith(("string", "binary"))
    return version == "2.2" or not long


def _is_vector_of_fields(node: Node) -> bool:
    return bool(node.children) and node.logical_type.startswith("fixed_size_list")
