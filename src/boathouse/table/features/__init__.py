"""What tables of some formats offer beyond the core: each feature is one Protocol, or one value, which
`Target.offers` gives to whoever asks for it."""

from boathouse.table.features.adoption import Adoption
from boathouse.table.features.base import not_offered, required
from boathouse.table.features.blobs import Blobs
from boathouse.table.features.change_files import ChangeFiles
from boathouse.table.features.cherry_picks import CherryPicks, Picked
from boathouse.table.features.clone import Clonable
from boathouse.table.features.clustering import PROVIDER, Clustering
from boathouse.table.features.column_files import ColumnFiles
from boathouse.table.features.column_statistics import ColumnStatistics
from boathouse.table.features.commit_files import CommitFiles, CommitRecords
from boathouse.table.features.commit_retries import CommitRetries
from boathouse.table.features.examination import Depth, Examination
from boathouse.table.features.expiry import Expiry, ExpiryRule, HeldFile, VersionFiles
from boathouse.table.features.file_lists import FileLists
from boathouse.table.features.identifiers import Identifiers
from boathouse.table.features.indices import Indices, WantedIndex
from boathouse.table.features.key_deletes import KeyDeletes, Keys
from boathouse.table.features.log_files import CompactableLog
from boathouse.table.features.metadata_tables import MetadataTables
from boathouse.table.features.orphans import Orphans
from boathouse.table.features.outline import Outline, Outlined
from boathouse.table.features.plan_notes import PlanNotes
from boathouse.table.features.property_steps import PropertySteps, Step
from boathouse.table.features.protocol_features import FeatureDrop, ProtocolFeatures
from boathouse.table.features.random_access import Places, RandomAccess
from boathouse.table.features.recorded_paths import RecordedPaths
from boathouse.table.features.refs import Refs
from boathouse.table.features.relocation import Relocation, RewrittenPaths
from boathouse.table.features.restore import Restorable
from boathouse.table.features.retention import LiveFiles, Retention
from boathouse.table.features.rewritable_deletes import Rewritable, RewritableDeletes
from boathouse.table.features.staging import Staging
from boathouse.table.features.vector_indices import VectorIndex, VectorIndices

__all__ = [
    "PROVIDER",
    "Adoption",
    "Blobs",
    "ChangeFiles",
    "CherryPicks",
    "Clonable",
    "Clustering",
    "ColumnFiles",
    "ColumnStatistics",
    "CommitFiles",
    "CommitRecords",
    "CommitRetries",
    "CompactableLog",
    "Depth",
    "Examination",
    "Expiry",
    "ExpiryRule",
    "FeatureDrop",
    "FileLists",
    "HeldFile",
    "Identifiers",
    "Indices",
    "KeyDeletes",
    "Keys",
    "LiveFiles",
    "MetadataTables",
    "Orphans",
    "Outline",
    "Outlined",
    "Picked",
    "Places",
    "PlanNotes",
    "PropertySteps",
    "ProtocolFeatures",
    "RandomAccess",
    "RecordedPaths",
    "Refs",
    "Relocation",
    "Restorable",
    "Retention",
    "Rewritable",
    "RewritableDeletes",
    "RewrittenPaths",
    "Staging",
    "Step",
    "VectorIndex",
    "VectorIndices",
    "VersionFiles",
    "WantedIndex",
    "not_offered",
    "required",
]
