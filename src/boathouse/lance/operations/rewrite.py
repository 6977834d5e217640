"""Rewrite: the same rows in other fragments, as a compaction makes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.manifests.messages import DataFragment, Rewrite, RewriteGroup
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.table.change import Change
from boathouse.table.edits import AddFiles, RemoveFiles
from boathouse.table.verdict import Verdict


class RewriteOperation(OurOperation):
    """The new fragments are at the end: Lance keeps fragments in the order of their ids."""

    name = "rewrite"
    keeps_rows = True

    def touched(self, message: Rewrite) -> frozenset[int]:
        return message.old_ids

    def brought(self, message: Rewrite) -> Iterable[DataFragment]:
        return (*message.new_fragments, *(f for g in message.groups for f in g.new_fragments))

    def replaced(self, message: Rewrite) -> Iterable[DataFragment]:
        return message.replaced

    def describes(self, change: Change) -> bool:
        """Raises UnsupportedFeatureError for a change that keeps the rows in another way."""
        if change.operation != "replace" and change.data_change:
            return False
        kinds = kinds_of(change)
        if kinds and not kinds <= {AddFiles, RemoveFiles}:
            raise UnsupportedFeatureError(
                f"a Lance commit that keeps the rows, of {', '.join(sorted(k.__name__ for k in kinds))}",
                where=change.location.uri,
                advice="a compaction removes whole fragments and adds files",
            )
        return bool(change.edits)

    def build(self, build: Build) -> Built:
        removed, base = {*build.removed()}, build.base
        old = tuple(f for f in base.fragments if f.id in removed)
        kept = (f for f in base.fragments if f.id not in removed)
        new = build.numbered(build.new_files(base.fields), lost=removed, moved=True)
        group = RewriteGroup(old_fragments=old, new_fragments=new.fragments)
        manifest = build.with_fragments(kept, new)
        if build.base_document.index is None:
            return build.built(manifest, rewrite=Rewrite(groups=(group,)))
        # It loads what reads and writes rows.
        from boathouse.lance.indices.moved import left_indices, moved_indices  # noqa: PLC0415
        from boathouse.lance.indices.moves import Moves  # noqa: PLC0415

        places = [raw for raw in build.places() if raw is not None]
        if len(places) < len(new.fragments):
            document = replace(build.base_document, manifest=manifest, index=left_indices(build, removed))
            return Built(document, {"rewrite": Rewrite(groups=(group,))})
        moved = moved_indices(build, Moves.of(new.fragments, places, frozenset(removed)))
        rewrite = Rewrite(groups=(group,), rewritten_indices=moved.rewritten)
        document = replace(build.base_document, manifest=manifest, index=moved.section)
        return Built(document, {"rewrite": rewrite}, moved.side)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.name in ("merge", "project"):
            return pair.schema_replan(theirs)
        return pair.after_fragments(theirs)
