"""UpdateConfig: the table's properties."""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.manifests.messages import Overwrite, UpdateConfig, UpdateMap, UpdateMapEntry
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.table_options import check_properties
from boathouse.table.change import Change
from boathouse.table.edits import SetProperties
from boathouse.table.verdict import Rebase, Verdict


class UpdateConfigOperation(OurOperation):
    """Properties are set, and removed where their value is None."""

    name = "update_config"
    keeps_rows = True

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict:
        message: UpdateConfig = theirs.message
        return pair.same_properties(theirs, message.config_keys) or Rebase()

    def describes(self, change: Change) -> bool:
        return kinds_of(change) == {SetProperties}

    def build(self, build: Build) -> Built:
        for edit in build.change.all(SetProperties):
            check_properties(edit.properties, build.root)
        asked = {key: value for edit in build.change.all(SetProperties) for key, value in edit.properties.items()}
        config = {**build.base.config, **asked}
        manifest = replace(build.base, config={k: v for k, v in config.items() if v is not None})
        entries = tuple(UpdateMapEntry(key=k, value=v) for k, v in asked.items())
        return build.built(manifest, update_config=UpdateConfig(config=UpdateMap(entries=entries)))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if isinstance(theirs.message, Overwrite):
            return pair.same_properties(theirs, frozenset(theirs.message.config_upsert_values)) or Rebase()
        return Rebase()
