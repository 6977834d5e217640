"""Overwrite: all fragments are replaced, and with them the schema and properties; creating a table is one too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boathouse.lance import schema as schemas
from boathouse.lance.manifests.features import STABLE_ROW_IDS
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.messages import DataFormat, DataFragment, Manifest, Overwrite
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built, numbered
from boathouse.lance.operations.lineage import Sources, with_lineage
from boathouse.lance.paths import V2_2
from boathouse.lance.table_options import options_of
from boathouse.table.change import Change
from boathouse.table.edits import AddFiles, CreateTable, RemoveAll, ReplaceSchema, SetProperties
from boathouse.table.verdict import Rebase, Verdict


class OverwriteOperation(OurOperation):
    """Ids of fragments continue from the highest ever assigned; indices of removed fragments are dropped."""

    name = "overwrite"
    replaces_table = True

    def brought(self, message: Overwrite) -> Iterable[DataFragment]:
        return message.fragments

    def describes(self, change: Change) -> bool:
        """It sets properties, but removes none."""
        kinds = kinds_of(change)
        removes = any(value is None for edit in change.all(SetProperties) for value in edit.properties.values())
        return RemoveAll in kinds and CreateTable not in kinds and not removes

    def build(self, build: Build) -> Built:
        assert build.head is not None
        now = build.evolved()
        fields, metadata = now.fields, now.schema_metadata
        files = build.new_files(fields)
        manifest = build.with_fragments((), build.numbered(files))
        set_now = {k: v for e in build.change.all(SetProperties) for k, v in e.properties.items() if v is not None}
        config = {**build.base.config, **set_now}
        manifest = replace(manifest, fields=fields, schema_metadata=metadata, config=config)
        operation = Overwrite(fragments=files, schema=fields, schema_metadata=metadata, config_upsert_values=set_now)
        return Built(ManifestFile(manifest, values=build.head.document.values), {"overwrite": operation})

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.name == "clone":
            return pair.table_replaced(theirs)
        if isinstance(theirs.message, Overwrite):
            same = pair.same_properties(theirs, frozenset(theirs.message.config_upsert_values))
            return same or pair.replan("concurrent-overwrite", theirs, "another overwrite won")
        return Rebase() if pair.change.edit(ReplaceSchema) is not None else pair.schema(theirs)


class CreateOperation(OverwriteOperation):
    """The first version."""

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return CreateTable in kinds and kinds <= {CreateTable, AddFiles}

    def build(self, build: Build) -> Built:
        edit = next(build.change.all(CreateTable))
        fields = schemas.from_schema(edit.schema)
        metadata = schemas.to_metadata(edit.schema)
        files = build.new_files(fields, V2_2)
        properties, stable = options_of(edit)
        fragments, next_row_id = numbered(files, 0), 0
        if stable:
            fragments, next_row_id = with_lineage(fragments, 1, 0, Sources(None, ()), moved=False)
        manifest = Manifest(
            fields=fields,
            fragments=fragments,
            schema_metadata=metadata,
            max_fragment_id=fragments[-1].id if fragments else None,
            data_format=DataFormat(file_format="lance", version=V2_2),
            config=properties,
            next_row_id=next_row_id,
            reader_feature_flags=STABLE_ROW_IDS if stable else 0,
            writer_feature_flags=STABLE_ROW_IDS if stable else 0,
        )
        operation = Overwrite(fragments=files, schema=fields, schema_metadata=metadata, config_upsert_values=properties)
        return Built(ManifestFile(manifest), {"overwrite": operation})
