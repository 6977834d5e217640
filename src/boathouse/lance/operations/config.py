"""UpdateConfig: the table's properties, and the comments of columns, which are metadata of fields."""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.commit.projection import field_at
from boathouse.lance.manifests.messages import (
    Manifest,
    Merge,
    Overwrite,
    Project,
    UpdateConfig,
    UpdateMap,
    UpdateMapEntry,
)
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.schema import COMMENT_KEY
from boathouse.lance.table_options import check_properties
from boathouse.table.change import Change
from boathouse.table.edits import SetComment, SetProperties
from boathouse.table.verdict import Rebase, Verdict


class UpdateConfigOperation(OurOperation):
    """Properties are set, and removed where their value is None."""

    name = "update_config"
    keeps_rows = True

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict:
        message: UpdateConfig = theirs.message
        commented = _ids(pair.change, pair.planned) & message.field_metadata.keys()
        if commented:
            return pair.stop("metadata-changed", theirs, f"metadata of the same columns was set: {sorted(commented)}")
        return pair.same_properties(theirs, message.config_keys) or Rebase()

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds) and kinds <= {SetProperties, SetComment}

    def build(self, build: Build) -> Built:
        for edit in build.change.all(SetProperties):
            check_properties(edit.properties, build.root)
        asked = {key: value for edit in build.change.all(SetProperties) for key, value in edit.properties.items()}
        config = {**build.base.config, **asked}
        manifest = replace(build.evolved(), config={k: v for k, v in config.items() if v is not None})
        entries = tuple(UpdateMapEntry(key=k, value=v) for k, v in asked.items())
        fields: dict[int, UpdateMap] = {}
        for commented in build.change.all(SetComment):
            said = UpdateMapEntry(key=COMMENT_KEY, value=commented.comment)
            fields[field_at(build.base.fields, commented.path, build.root).id] = UpdateMap(entries=(said,))
        update = UpdateConfig(config=UpdateMap(entries=entries) if asked else None, field_metadata=fields)
        return build.built(manifest, update_config=update)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if isinstance(theirs.message, Merge | Project | Overwrite) and pair.change.edit(SetComment) is not None:
            return pair.schema_replan(theirs)
        if isinstance(theirs.message, Overwrite):
            return pair.same_properties(theirs, frozenset(theirs.message.config_upsert_values)) or Rebase()
        return Rebase()


def _ids(change: Change, planned: Manifest) -> frozenset[int]:
    """The fields on which a change comments."""
    return frozenset(field_at(planned.fields, edit.path, "").id for edit in change.all(SetComment))
