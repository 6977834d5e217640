"""Clone: a table, or a branch of one, begins with the files of a version of another one, which it names by a base path.

It begins under that version's number, which the versions of its rows are counted on from.
"""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.lineage.stored import inlined
from boathouse.lance.manifests.features import BASE_PATHS
from boathouse.lance.manifests.indices import IndexSection
from boathouse.lance.manifests.messages import BasePath, Clone, DataFile, DataFragment, DataOverlayFile
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.paths import base_root
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import uris
from boathouse.table.change import Change
from boathouse.table.edits import CloneTable
from boathouse.table.verdict import Verdict


class CloneOperation(OurOperation):
    name = "clone"
    replaces_table = True

    def describes(self, change: Change) -> bool:
        return kinds_of(change) == {CloneTable}

    def build(self, build: Build) -> Built:
        source = next(build.change.all(CloneTable)).source
        assert isinstance(source, LanceSnapshot)
        return cloned(source)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        return pair.table_replaced(theirs)


def cloned(source: LanceSnapshot, branch: str | None = None) -> Built:
    """The first manifest of the branch, or of a table elsewhere. Sequences of row ids in files of the source, which no
    base path leads to, are inline in it."""
    source = source.repaired()
    manifest, root = source.manifest, source.location.uri
    base, paths = _base(source)
    fragments = tuple(_based(inlined(f, source.stores, root), base) for f in manifest.fragments)
    document = replace(
        source.document,
        manifest=replace(
            manifest,
            fragments=fragments,
            base_paths=paths,
            branch=branch,
            reader_feature_flags=manifest.reader_feature_flags | BASE_PATHS,
            writer_feature_flags=manifest.writer_feature_flags | BASE_PATHS,
        ),
        index=_based_indices(source.document.index, base, root),
    )
    operation = Clone(
        is_shallow=True,
        ref_name=manifest.branch or "",
        ref_version=manifest.version,
        ref_path=_spelt(root),
        branch_name=branch,
    )
    return Built(document, {"clone": operation}, begins=manifest.version)


def _base(source: LanceSnapshot) -> tuple[int, tuple[BasePath, ...]]:
    """The id of the source's folder among the base paths, and these."""
    known, root = source.manifest.base_paths, source.location.uri
    for path in known:
        if path.is_dataset_root and base_root(path) == root:
            return path.id, known
    id = max((p.id for p in known), default=-1) + 1
    return id, (*known, BasePath(id=id, name=source.manifest.branch, is_dataset_root=True, path=_spelt(root)))


def _spelt(uri: str) -> str:
    """As pylance writes it: a folder of the local disk by its path."""
    return f"/{uris.split(uri)[2]}" if uri.startswith("file:///") else uri


def _based(fragment: DataFragment, base: int) -> DataFragment:
    """The fragment in a table elsewhere: what was below the root is below a base path."""

    def file(found: DataFile) -> DataFile:
        return found if found.base_id is not None else replace(found, base_id=base)

    def overlay(found: DataOverlayFile) -> DataOverlayFile:
        return found if found.data_file is None else replace(found, data_file=file(found.data_file))

    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        deletion = replace(deletion, base_id=base)
    files, overlays = tuple(map(file, fragment.files)), tuple(map(overlay, fragment.overlays))
    return replace(fragment, files=files, overlays=overlays, deletion_file=deletion)


def _based_indices(section: bytes | None, base: int, where: str) -> bytes | None:
    if section is None:
        return None
    found = IndexSection.decode(section, where=where)
    indices = tuple(i if i.base_id is not None else replace(i, base_id=base) for i in found.indices)
    return replace(found, indices=indices).encode()
