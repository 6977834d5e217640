"""Checks what a manifest must contain, before its rows are read."""

from __future__ import annotations

from boathouse.errors import CorruptTableError
from boathouse.lance.file.schema import Node, tree
from boathouse.lance.messages import DataFragment, Manifest

_IDS = 1 << 32
"""The limit of fragment ids and of rows in a fragment: a row's address has 32 bits for each."""
_BYTES = 1 << 53
_LATEST_S = 253_402_300_799  # the end of year 9999


def check(manifest: Manifest, where: str) -> None:
    """Raises CorruptTableError naming the manifest."""
    try:
        _check(manifest)
    except CorruptTableError as error:
        if error.where is not None:
            raise
        raise CorruptTableError(error.message, where=where, advice=error.advice) from None


def _check(manifest: Manifest) -> None:
    stamp = manifest.timestamp
    if stamp is not None and not (0 <= stamp.seconds <= _LATEST_S and 0 <= stamp.nanos < 1_000_000_000):
        raise CorruptTableError(f"a manifest of {stamp.seconds} seconds and {stamp.nanos} nanoseconds after 1970")
    _unique_names(tree(manifest.fields), "the table")
    if manifest.fragments and not manifest.fields:
        raise CorruptTableError(f"a manifest of {len(manifest.fragments):,} fragments without fields")
    named: set[tuple[int | None, str]] = set()
    for fragment in manifest.fragments:
        _check_numbers(fragment)
        if not fragment.files:
            raise CorruptTableError(f"fragment {fragment.id} has no data file")
        for file in fragment.files:
            if (file.base_id, file.path) in named:
                raise CorruptTableError(f"the data file {file.path!r} is named twice")
            named.add((file.base_id, file.path))


def _check_numbers(fragment: DataFragment) -> None:
    if fragment.id >= _IDS or fragment.physical_rows > _IDS:
        raise CorruptTableError(
            f"fragment {fragment.id} of {fragment.physical_rows} rows, but at most 32 bits are possible"
        )
    deletion = fragment.deletion_file
    if deletion is not None and deletion.num_deleted_rows > _IDS:
        raise CorruptTableError(f"fragment {fragment.id} with {deletion.num_deleted_rows} deleted rows")
    for file in fragment.files:
        if file.file_size_bytes >= _BYTES:
            raise CorruptTableError(f"the data file {file.path!r} of {file.file_size_bytes} bytes")


def _unique_names(nodes: tuple[Node, ...], where: str) -> None:
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            raise CorruptTableError(f"{where} has two fields `{node.name}`")
        names.add(node.name)
        _unique_names(node.children, f"`{node.name}`")
