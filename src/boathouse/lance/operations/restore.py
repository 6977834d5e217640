"""Restore: the table is again what it was at an older version."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.fragments import units_of
from boathouse.lance.manifests import features
from boathouse.lance.manifests.messages import Restore
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built, next_fragment_id
from boathouse.lance.paths import data_uri, deletion_file_uri
from boathouse.lance.snapshot import LanceSnapshot, load
from boathouse.table.change import Change
from boathouse.table.edits import RestoreTo
from boathouse.table.location import At
from boathouse.table.verdict import Verdict

_STICKY = features.MIXED_VERSIONS | features.FRAGMENT_REUSE


class RestoreOperation(OurOperation):
    """Fragments, fields, config and indices are those of the version; ids that were given since are not given again."""

    name = "restore"
    replaces_table = True

    def describes(self, change: Change) -> bool:
        return kinds_of(change) == {RestoreTo}

    def build(self, build: Build) -> Built:
        target = next(build.change.all(RestoreTo)).target
        assert isinstance(target, LanceSnapshot)
        base, then = build.base, target.manifest
        highest = max(next_fragment_id(base), next_fragment_id(then)) - 1
        manifest = replace(
            then,
            max_fragment_id=highest if highest >= 0 else None,
            next_row_id=max(base.next_row_id, then.next_row_id),
            reader_feature_flags=then.reader_feature_flags | base.reader_feature_flags & _STICKY,
            writer_feature_flags=then.writer_feature_flags | base.writer_feature_flags & _STICKY,
        )
        return Built(replace(target.document, manifest=manifest), {"restore": Restore(version=then.version)})

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        return pair.replan("restore", theirs, f"a {theirs.operation.name} came before the restore")


@dataclass(frozen=True, slots=True)
class LanceRestore:
    """See `table.features.Restorable`."""

    snapshot: LanceSnapshot

    def restoration(self, at: At) -> RestoreTo | None:
        """Raises VersionNotFoundError, UnsupportedFeatureError for a version that could not be written."""
        head = self.snapshot
        target = load(head.context, at, type(head)).repaired()
        features.check_writable(target.manifest, head.location.uri)
        if features.has_stable_row_ids(head.manifest) != features.has_stable_row_ids(target.manifest):
            raise UnsupportedFeatureError(
                f"version {target.version} differs from version {head.version} in whether its rows have stable ids",
                where=head.location.uri,
                advice="copy its rows into a new table",
            )
        before, after = (units_of(s.manifest, s.location.uri, s.rows_of) for s in (head, target))
        added = after.filter(pc.invert(pc.is_in(_messages(after), _messages(before))))
        removed = before.filter(pc.invert(pc.is_in(_messages(before), _messages(after))))
        if not added.num_rows and not removed.num_rows and _described(head) == _described(target):
            return None
        size = pc.sum(after.column("size")).as_py() or 0
        return RestoreTo(target, added, removed, _needed(target), after.num_rows, size)


def _described(snapshot: LanceSnapshot) -> tuple[object, ...]:
    m = snapshot.manifest
    return m.fields, m.schema_metadata, m.config, m.table_metadata, m.data_format, snapshot.document.index


def _messages(units: pa.Table) -> pa.Array:
    return units.column("native").combine_chunks().field("fragment")


def _needed(snapshot: LanceSnapshot) -> tuple[str, ...]:
    """Every file of the version: what another version shares with it may have been removed too."""
    manifest, root = snapshot.manifest, snapshot.location.uri
    overlays = (o.data_file for fragment in manifest.fragments for o in fragment.overlays)
    files = (*(f for fragment in manifest.fragments for f in fragment.files), *(f for f in overlays if f is not None))
    found = [data_uri(manifest, file, root) for file in files]
    deletions = (deletion_file_uri(manifest, fragment, root) for fragment in manifest.fragments)
    return (*found, *(uri for uri in deletions if uri is not None))
