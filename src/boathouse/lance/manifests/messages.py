"""The protobuf messages of the table format (lance.table): Manifest, DataFragment, Transaction and their parts.

Only fields that are interpreted are declared; all others are kept as unknown bytes. Field and SchemaMessage are
those of the data files.
"""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.bits.protobuf import Message, mapping, nested, repeated, scalar
from boathouse.lance.file.fields import Field
from boathouse.lance.file.messages import AnyMessage
from boathouse.lance.manifests.indices import IndexFile, IndexId, IndexMetadata

ARROW_ARRAY, BITMAP = 0, 1
"""DeletionFile.file_type."""


@dataclass(frozen=True, kw_only=True)
class Timestamp(Message):
    """google.protobuf.Timestamp, UTC."""

    seconds: int = scalar(1, "int64")
    nanos: int = scalar(2, "int32")

    @property
    def ms(self) -> int:
        return self.seconds * 1000 + self.nanos // 1_000_000

    @staticmethod
    def of_ms(ms: int) -> Timestamp:
        return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


@dataclass(frozen=True, kw_only=True)
class WriterVersion(Message):
    library: str = scalar(1, "string")
    version: str = scalar(2, "string")
    prerelease: str = scalar(3, "string")
    build_metadata: str = scalar(4, "string")


@dataclass(frozen=True, kw_only=True)
class DataFormat(Message):
    """The version of every data file of the table, unless the mixed-versions flag is set."""

    file_format: str = scalar(1, "string")
    version: str = scalar(2, "string")


@dataclass(frozen=True, kw_only=True)
class BasePath(Message):
    """Another location for files. With `is_dataset_root`, data/ and _deletions/ are below `path`."""

    id: int = scalar(1, "uint32")
    name: str | None = scalar(2, "string", optional=True)
    is_dataset_root: bool = scalar(3, "bool")
    path: str = scalar(4, "string")


@dataclass(frozen=True, kw_only=True)
class DataFile(Message):
    """One file of a fragment. `path` is relative to data/; `file_size_bytes` 0 means unknown.

    `base_id` 0 is a base path and differs from an absent one.
    """

    path: str = scalar(1, "string")
    fields: tuple[int, ...] = repeated(2, "int32")
    column_indices: tuple[int, ...] = repeated(3, "int32")
    file_major_version: int = scalar(4, "uint32")
    file_minor_version: int = scalar(5, "uint32")
    file_size_bytes: int = scalar(6, "uint64")
    base_id: int | None = scalar(7, "uint32", optional=True)


@dataclass(frozen=True, kw_only=True)
class DeletionFile(Message):
    file_type: int = scalar(1, "enum")
    read_version: int = scalar(2, "uint64")
    id: int = scalar(3, "uint64")
    num_deleted_rows: int = scalar(4, "uint64")
    base_id: int | None = scalar(7, "uint32", optional=True)


@dataclass(frozen=True, kw_only=True)
class ExternalFile(Message):
    """Bytes of a file below the table's root."""

    path: str = scalar(1, "string")
    offset: int = scalar(2, "uint64")
    size: int = scalar(3, "uint64")


@dataclass(frozen=True, kw_only=True)
class FieldCoverage(Message):
    """A set of rows for each field of the file."""

    offset_bitmaps: tuple[bytes, ...] = repeated(1, "bytes")


@dataclass(frozen=True, kw_only=True)
class DataOverlayFile(Message):
    """Other values of some rows, which are portable 32-bit roaring bitmaps of positions: one for all fields, or one
    each."""

    data_file: DataFile | None = nested(1, DataFile)
    shared_offset_bitmap: bytes | None = scalar(2, "bytes", oneof="coverage")
    committed_version: int = scalar(3, "uint64")
    field_coverage: FieldCoverage | None = nested(4, FieldCoverage, oneof="coverage")


@dataclass(frozen=True, kw_only=True)
class DataFragment(Message):
    """`physical_rows` counts deleted rows too; 0 means that its writer did not record it.

    The ids of its rows, and the versions in which they came and were last changed, are sequences (`lance.lineage`)
    here, in another file, or columns of a data file, whose fields have reserved ids.
    """

    shared = True
    id: int = scalar(1, "uint64")
    files: tuple[DataFile, ...] = repeated(2, DataFile)
    deletion_file: DeletionFile | None = nested(3, DeletionFile)
    physical_rows: int = scalar(4, "uint64")
    inline_row_ids: bytes | None = scalar(5, "bytes", oneof="row_ids")
    external_row_ids: ExternalFile | None = nested(6, ExternalFile, oneof="row_ids")
    inline_updated: bytes | None = scalar(7, "bytes", oneof="updated")
    external_updated: ExternalFile | None = nested(8, ExternalFile, oneof="updated")
    inline_created: bytes | None = scalar(9, "bytes", oneof="created")
    external_created: ExternalFile | None = nested(10, ExternalFile, oneof="created")
    overlays: tuple[DataOverlayFile, ...] = repeated(11, DataOverlayFile)
    column_row_ids: Message | None = nested(12, Message, oneof="row_ids")
    column_updated: Message | None = nested(13, Message, oneof="updated")
    column_created: Message | None = nested(14, Message, oneof="created")

    @property
    def has_row_ids(self) -> bool:
        return (self.inline_row_ids, self.external_row_ids, self.column_row_ids) != (None, None, None)

    @property
    def has_lineage_columns(self) -> bool:
        return (self.column_row_ids, self.column_updated, self.column_created) != (None, None, None)


@dataclass(frozen=True, kw_only=True)
class Manifest(Message):
    fields: tuple[Field, ...] = repeated(1, Field)
    fragments: tuple[DataFragment, ...] = repeated(2, DataFragment)
    version: int = scalar(3, "uint64")
    version_aux_data: int = scalar(4, "uint64")
    schema_metadata: dict[str, bytes] = mapping(5, "string", "bytes")
    index_section: int | None = scalar(6, "uint64", optional=True)
    timestamp: Timestamp | None = nested(7, Timestamp)
    tag: str = scalar(8, "string")
    reader_feature_flags: int = scalar(9, "uint64")
    writer_feature_flags: int = scalar(10, "uint64")
    max_fragment_id: int | None = scalar(11, "uint32", optional=True)
    transaction_file: str = scalar(12, "string")
    writer_version: WriterVersion | None = nested(13, WriterVersion)
    next_row_id: int = scalar(14, "uint64")
    data_format: DataFormat | None = nested(15, DataFormat)
    config: dict[str, str] = mapping(16, "string", "string")
    base_paths: tuple[BasePath, ...] = repeated(18, BasePath)
    table_metadata: dict[str, str] = mapping(19, "string", "string")
    branch: str | None = scalar(20, "string", optional=True)
    transaction_section_21: int | None = scalar(21, "uint64", optional=True)
    transaction_section: int | None = scalar(23, "uint64", optional=True)


@dataclass(frozen=True, kw_only=True)
class ManifestHeader(Message):
    """What is asked of a manifest without reading its fragments."""

    timestamp: Timestamp | None = nested(7, Timestamp)
    reader_feature_flags: int = scalar(9, "uint64")


@dataclass(frozen=True, kw_only=True)
class Append(Message):
    fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)


@dataclass(frozen=True, kw_only=True)
class Delete(Message):
    updated_fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)
    deleted_fragment_ids: tuple[int, ...] = repeated(2, "uint64")
    predicate: str = scalar(3, "string")


@dataclass(frozen=True, kw_only=True)
class Overwrite(Message):
    fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)
    schema: tuple[Field, ...] = repeated(2, Field)
    schema_metadata: dict[str, bytes] = mapping(3, "string", "bytes")
    config_upsert_values: dict[str, str] = mapping(4, "string", "string")


@dataclass(frozen=True, kw_only=True)
class RewriteGroup(Message):
    old_fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)
    new_fragments: tuple[DataFragment, ...] = repeated(2, DataFragment)


@dataclass(frozen=True, kw_only=True)
class RewrittenIndex(Message):
    """An index that has other addresses of rows under a new id."""

    old_id: IndexId | None = nested(1, IndexId)
    new_id: IndexId | None = nested(2, IndexId)
    details: AnyMessage | None = nested(3, AnyMessage)
    version: int = scalar(4, "uint32")
    files: tuple[IndexFile, ...] = repeated(5, IndexFile)


@dataclass(frozen=True, kw_only=True)
class Rewrite(Message):
    """`old_fragments` and `new_fragments` are the form used before groups."""

    old_fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)
    new_fragments: tuple[DataFragment, ...] = repeated(2, DataFragment)
    groups: tuple[RewriteGroup, ...] = repeated(3, RewriteGroup)
    rewritten_indices: tuple[RewrittenIndex, ...] = repeated(4, RewrittenIndex)

    @property
    def replaced(self) -> tuple[DataFragment, ...]:
        return (*self.old_fragments, *(f for g in self.groups for f in g.old_fragments))

    @property
    def old_ids(self) -> frozenset[int]:
        return frozenset(f.id for f in self.replaced)


@dataclass(frozen=True, kw_only=True)
class Merge(Message):
    fragments: tuple[DataFragment, ...] = repeated(1, DataFragment)
    schema: tuple[Field, ...] = repeated(2, Field)
    schema_metadata: dict[str, bytes] = mapping(3, "string", "bytes")
    preserves_nullability: bool = scalar(4, "bool")


@dataclass(frozen=True, kw_only=True)
class Restore(Message):
    version: int = scalar(1, "uint64")


@dataclass(frozen=True, kw_only=True)
class ReserveFragments(Message):
    num_fragments: int = scalar(1, "uint32")


@dataclass(frozen=True, kw_only=True)
class Update(Message):
    """Replaced rows: deleted in `updated_fragments`, rewritten in `new_fragments`."""

    removed_fragment_ids: tuple[int, ...] = repeated(1, "uint64")
    updated_fragments: tuple[DataFragment, ...] = repeated(2, DataFragment)
    new_fragments: tuple[DataFragment, ...] = repeated(3, DataFragment)
    fields_modified: tuple[int, ...] = repeated(4, "uint32")
    fields_for_preserving_frag_bitmap: tuple[int, ...] = repeated(6, "uint32")
    update_mode: int = scalar(7, "enum")


@dataclass(frozen=True, kw_only=True)
class Project(Message):
    """`preserves_nullability`: no column became one that cannot be null; so in Merge."""

    schema: tuple[Field, ...] = repeated(1, Field)
    preserves_nullability: bool = scalar(2, "bool")


@dataclass(frozen=True, kw_only=True)
class UpdateMapEntry(Message):
    """`value` None removes the key."""

    key: str = scalar(1, "string")
    value: str | None = scalar(2, "string", optional=True)


@dataclass(frozen=True, kw_only=True)
class UpdateMap(Message):
    entries: tuple[UpdateMapEntry, ...] = repeated(1, UpdateMapEntry)
    replace: bool = scalar(2, "bool")


@dataclass(frozen=True, kw_only=True)
class UpdateConfig(Message):
    """Fields 1 and 2 are the form used before maps: config keys set, config keys removed."""

    upsert_values: dict[str, str] = mapping(1, "string", "string")
    delete_keys: tuple[str, ...] = repeated(2, "string")
    config: UpdateMap | None = nested(6, UpdateMap)
    table_metadata: UpdateMap | None = nested(7, UpdateMap)
    schema_metadata: UpdateMap | None = nested(8, UpdateMap)
    field_metadata: dict[int, UpdateMap] = mapping(9, "int32", UpdateMap)

    @property
    def config_keys(self) -> frozenset[str]:
        entries = self.config.entries if self.config else ()
        return frozenset((*self.upsert_values, *self.delete_keys, *(e.key for e in entries)))


@dataclass(frozen=True, kw_only=True)
class DataReplacementGroup(Message):
    fragment_id: int = scalar(1, "uint64")
    new_file: DataFile | None = nested(2, DataFile)


@dataclass(frozen=True, kw_only=True)
class DataReplacement(Message):
    replacements: tuple[DataReplacementGroup, ...] = repeated(1, DataReplacementGroup)


@dataclass(frozen=True, kw_only=True)
class DataOverlayGroup(Message):
    fragment_id: int = scalar(1, "uint64")
    overlays: tuple[DataOverlayFile, ...] = repeated(2, DataOverlayFile)


@dataclass(frozen=True, kw_only=True)
class DataOverlay(Message):
    """Overlays that fragments got after those that they had."""

    groups: tuple[DataOverlayGroup, ...] = repeated(1, DataOverlayGroup)


@dataclass(frozen=True, kw_only=True)
class CreateIndex(Message):
    new_indices: tuple[IndexMetadata, ...] = repeated(1, IndexMetadata)
    removed_indices: tuple[IndexMetadata, ...] = repeated(2, IndexMetadata)


@dataclass(frozen=True, kw_only=True)
class Clone(Message):
    is_shallow: bool = scalar(1, "bool")
    ref_name: str = scalar(2, "string")
    ref_version: int = scalar(3, "uint64")
    ref_path: str = scalar(4, "string")
    branch_name: str | None = scalar(5, "string", optional=True)


OPERATIONS = (
    "append",
    "delete",
    "overwrite",
    "create_index",
    "rewrite",
    "merge",
    "restore",
    "reserve_fragments",
    "update",
    "project",
    "update_config",
    "data_replacement",
    "clone",
    "update_bases",
    "data_overlay",
)
"""The known operations, by the names of their fields in Transaction."""


@dataclass(frozen=True, kw_only=True)
class Transaction(Message):
    """The changes of one commit, for concurrent writers. If no operation is set, it is an unknown one."""

    read_version: int = scalar(1, "uint64")
    uuid: str = scalar(2, "string")
    tag: str = scalar(3, "string")
    transaction_properties: dict[str, str] = mapping(4, "string", "string")
    append: Append | None = nested(100, Append, oneof="operation")
    delete: Delete | None = nested(101, Delete, oneof="operation")
    overwrite: Overwrite | None = nested(102, Overwrite, oneof="operation")
    create_index: CreateIndex | None = nested(103, CreateIndex, oneof="operation")
    rewrite: Rewrite | None = nested(104, Rewrite, oneof="operation")
    merge: Merge | None = nested(105, Merge, oneof="operation")
    restore: Restore | None = nested(106, Restore, oneof="operation")
    reserve_fragments: ReserveFragments | None = nested(107, ReserveFragments, oneof="operation")
    update: Update | None = nested(108, Update, oneof="operation")
    project: Project | None = nested(109, Project, oneof="operation")
    update_config: UpdateConfig | None = nested(110, UpdateConfig, oneof="operation")
    data_replacement: DataReplacement | None = nested(111, DataReplacement, oneof="operation")
    clone: Clone | None = nested(113, Clone, oneof="operation")
    update_bases: Message | None = nested(114, Message, oneof="operation")
    data_overlay: DataOverlay | None = nested(115, DataOverlay, oneof="operation")

    @property
    def operation(self) -> str | None:
        """The name of the operation; None if it is not one of OPERATIONS."""
        return next((name for name in OPERATIONS if getattr(self, name) is not None), None)
