"""Checks what a manifest must contain, before its rows are read."""

from __future__ import annotations

from collections.abc import Iterator

from boathouse.errors import CorruptTableError
from boathouse.lance.file.schema import Node, tree
from boathouse.lance.manifests.messages import DataFragment, Manifest
from boathouse.table.findings import Finding, damage, placed, raise_first

_UNASSIGNED = -1
"""The id of a field that has none yet, which is in memory only."""
_IDS = 1 << 32
"""The limit of fragment ids and of rows in a fragment: a row's address has 32 bits for each."""
_BYTES = 1 << 53
_LATEST_S = 253_402_300_799  # the end of year 9999


def check(manifest: Manifest, where: str) -> None:
    """Raises CorruptTableError naming the manifest."""
    raise_first(placed(findings(manifest), where))


def findings(manifest: Manifest) -> Iterator[Finding]:
    """Whatever a manifest must not contain."""
    stamp = manifest.timestamp
    if stamp is not None and not (0 <= stamp.seconds <= _LATEST_S and 0 <= stamp.nanos < 1_000_000_000):
        yield damage("lance.time", f"a manifest of {stamp.seconds} seconds and {stamp.nanos} nanoseconds after 1970")
    try:
        yield from _repeated_names(tree(manifest.fields), "the table")
    except CorruptTableError as error:  # the fields are no tree
        yield Finding.of("lance.fields", error)
    if manifest.fragments and not manifest.fields:
        yield damage("lance.no-fields", f"a manifest of {len(manifest.fragments):,} fragments without fields")
    named: set[tuple[int | None, str]] = set()
    for fragment in manifest.fragments:
        yield from _wrong_numbers(fragment)
        if not fragment.files:
            yield damage("lance.fragment-without-file", f"fragment {fragment.id} has no data file")
        for file in fragment.files:
            if (file.base_id, file.path) in named:
                yield damage("lance.file-twice", f"the data file {file.path!r} is named twice")
            named.add((file.base_id, file.path))


def _wrong_numbers(fragment: DataFragment) -> Iterator[Finding]:
    if fragment.id >= _IDS or fragment.physical_rows > _IDS:
        text = f"fragment {fragment.id} of {fragment.physical_rows} rows, but at most 32 bits are possible"
        yield damage("lance.fragment-too-large", text)
    deletion = fragment.deletion_file
    if deletion is not None and deletion.num_deleted_rows > _IDS:
        yield damage("lance.deleted-rows", f"fragment {fragment.id} with {deletion.num_deleted_rows} deleted rows")
    for file in fragment.files:
        if _UNASSIGNED in file.fields:
            yield damage("lance.field-unassigned", f"the data file {file.path!r} has a field without an id")
        if file.file_size_bytes >= _BYTES:
            yield damage("lance.file-size", f"the data file {file.path!r} of {file.file_size_bytes} bytes")


def _repeated_names(nodes: tuple[Node, ...], where: str) -> Iterator[Finding]:
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            yield damage("lance.name-twice", f"{where} has two fields `{node.name}`")
        names.add(node.name)
        yield from _repeated_names(node.children, f"`{node.name}`")
