"""What tables of one format have and those of another lack.

Tests of all formats say by these names what they expect, and compare no format's name. A new format is one row of
`TRAITS`, and one of `PEERS` in tests/waist/peers.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from boathouse import registry
from boathouse.table import features as f
from boathouse.table.inspection import NAMES
from boathouse.table.snapshot import Capabilities

OF_STORED: Final[frozenset[type]] = frozenset({f.CommitRecords, f.Examination, f.LiveFiles, f.MetadataTables})
"""What every format has whose tables are files."""
COMMON_TABLES: Final = frozenset({"files", "data_files", "history", "snapshots", "partitions", "position_deletes"})


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The defaults are what most formats have. What the library itself says is asked of it: `capabilities`."""

    format: str
    offers: frozenset[type]
    """The features of `table.features` that a table without properties has, and `offers_new` those of one that is not
    created yet."""
    offers_new: frozenset[type] = frozenset()
    in_memory: bool = False
    """Its tables are of this process, and no other library reads them."""

    # Files
    document: str = ""
    """How the name of the file ends that makes a version, where it is a file."""
    dated_by: str = ""
    """The file whose time is that of a version, with a place for its number; empty: a version has a time of its own."""
    data_folder: str = ""
    data_suffix: str = ".parquet"
    file_format: str = "PARQUET"
    codecs: bool = True
    """A write may say how its files are compressed."""
    partition_folders: bool = True
    """The path of a file shows its partition."""

    # Statistics
    bounds: Literal["fields", "columns", "none"] = "fields"
    """What of a file has bounds: every field of its structs too, top-level columns, or nothing."""
    readable_metrics: bool = True
    metadata_tables: frozenset[str] = COMMON_TABLES

    # Columns
    dotted_names: bool = True
    spaced_names: bool = True
    """Names may have spaces in tables without properties."""
    fields_in_structs: bool = True
    """Columns can be added inside of structs."""
    maps: bool = True
    nanoseconds: bool = False
    widening: Mapping[str, str] | None = None
    """The properties with which columns can be widened; None: they cannot."""
    widens_partitions: bool = False
    renames: bool = False
    """Columns of tables without properties are renamed and dropped."""
    renaming: str = ""
    """The property that a refusal to rename or drop a column names."""

    # Rows
    altered_clones: bool = False
    """A shallow clone may replace a table, and have properties of its own."""
    marks_deletes: bool = False
    """Deleted rows are marked in tables without properties; otherwise the rest of their file is written again."""
    empty_units_go: bool = True
    """A unit of which every row is deleted is no longer there."""
    fixed_units: bool = False
    """A unit keeps its number whatever is appended, so that an append never stands in the way of another change."""
    overwrite_replaces: bool = False
    """An overwrite replaces the table: what was planned before it is refused."""
    native_on_spark: bool = True
    """Spark reads the files itself."""

    # Versions
    numbered: bool = True
    """Versions count up, so that the least is the first."""
    history_in_head: bool = False
    """The newest document tells every retained version: removing older ones forgets nothing."""
    creation_forgotten: bool = False
    """The commit that created a table is not in its history after some hundred others."""
    names_merges: bool = True
    """The history names a merge as what it was."""
    transactions_of_metadata: bool = True
    """A commit of metadata alone can carry an application's transaction."""
    records_vacuums: bool = False
    """What a vacuum removed is known to the next one, and the history says how it ended."""
    cleaned_at_once: Mapping[str, str] = field(default_factory=dict)
    """The properties with which the format's own library may clean a log right after a commit."""
    settles_lost_appends: bool = False
    """An append that was put below a cleaned log is known to be none of the table's."""
    checkpoints: Mapping[str, str] | None = None
    """The properties with which every third version has a checkpoint; None: there are none."""

    @property
    def capabilities(self) -> Capabilities:
        """Of new tables, as the library gives them."""
        return registry.load(self.format).capabilities

    @property
    def partitions(self) -> bool:
        return self.capabilities.partitions

    @property
    def lasting_ids(self) -> bool:
        return self.capabilities.lasting_ids

    def by(self, *columns: str) -> tuple[str, ...]:
        """These columns, by which a table is partitioned where the format has partitions."""
        return columns if self.partitions else ()


TRAITS: Final = {
    row.format: row
    for row in (
        Traits(
            format="toy",
            offers=frozenset({f.LiveFiles, f.MetadataTables, f.Restorable, f.Retention}),
            in_memory=True,
            data_folder="data",
            data_suffix=".arrow",
            file_format="LANCE",
            partition_folders=False,
            bounds="columns",
            readable_metrics=False,
            marks_deletes=True,
        ),
        Traits(
            format="delta",
            altered_clones=True,
            offers=OF_STORED
            | {
                f.ChangeFiles,
                f.Clonable,
                f.CompactableLog,
                f.Outlined,
                f.PropertySteps,
                f.ProtocolFeatures,
                f.Restorable,
                f.Retention,
            },
            offers_new=frozenset({f.Adoption}),
            document=".json",
            dated_by="_delta_log/{:020}.json",
            spaced_names=False,
            widening={"delta.enableTypeWidening": "true"},
            widens_partitions=True,
            renaming="delta.columnMapping.mode",
            records_vacuums=True,
            settles_lost_appends=True,
            cleaned_at_once={"delta.logRetentionDuration": "interval 0 seconds"},
            checkpoints={"delta.checkpointInterval": "3"},
        ),
        Traits(
            format="iceberg",
            offers=OF_STORED
            | {f.Adoption, f.CherryPicks, f.ColumnStatistics, f.Expiry, f.FileLists, f.KeyDeletes, f.PlanNotes}
            | {f.Orphans, f.RecordedPaths, f.Refs, f.Relocation, f.Restorable, f.RewritableDeletes},
            offers_new=frozenset({f.Adoption}),
            document=".metadata.json",
            data_folder="data",
            metadata_tables=frozenset(NAMES),
            widening={},
            renames=True,
            numbered=False,
            history_in_head=True,
            creation_forgotten=True,
            names_merges=False,
            transactions_of_metadata=False,
        ),
        Traits(
            format="lance",
            offers=OF_STORED
            | {f.Blobs, f.Clonable, f.ColumnFiles, f.Expiry, f.Orphans, f.RandomAccess, f.Refs, f.Restorable}
            | {f.Indices, f.VectorIndices, f.VersionFiles},
            document=".manifest",
            data_folder="data",
            data_suffix=".lance",
            file_format="LANCE",
            codecs=False,
            bounds="none",
            readable_metrics=False,
            metadata_tables=COMMON_TABLES | {"refs"},
            dotted_names=False,
            fields_in_structs=False,
            maps=False,
            nanoseconds=True,
            renames=True,
            marks_deletes=True,
            empty_units_go=False,
            fixed_units=True,
            overwrite_replaces=True,
            native_on_spark=False,
            names_merges=False,
        ),
    )
}
FORMATS: Final = tuple(TRAITS)
REAL: Final = tuple(name for name, traits in TRAITS.items() if not traits.in_memory)
"""Those that are stored in files, and that other libraries read."""
