"""Equality deletes that are written: by which columns, and for which partitions (spec, "Equality Delete Files", "Scan
Planning")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boathouse import types as T
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.data_files.formats import delete_format
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.versions import PROPERTY
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.features import Keys

_KEYS = (
    T.BooleanType, T.IntegerType, T.DecimalType, T.StringType, T.BinaryType, T.FixedType, T.UUIDType, T.DateType,
    T.TimeType, T.TimestampType,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class IcebergKeyDeletes:
    """See `table.features.KeyDeletes`."""

    snapshot: IcebergSnapshot

    def keys(self, columns: Sequence[tuple[str, ...]]) -> Keys:
        """Deletes under a spec without fields apply to every partition; those under another one to its own only, which
        is enough where the key decides the partition, and no file is of an older spec."""
        metadata = self.snapshot.metadata
        if "equality" not in metadata.format.deletes:
            raise UnsupportedFeatureError(
                f"format version {metadata.format} has no equality deletes",
                where=metadata.uri,
                advice=f"upgrade the table: table.set_properties({{{PROPERTY!r}: '2'}}); or leave out deletes=",
            )
        delete_format(metadata.properties, metadata.uri)
        for problem in _problems(self.snapshot.schema, columns):
            raise UnsupportedFeatureError(
                f"equality deletes {problem}", where=metadata.uri, advice="leave out deletes=, or name other columns"
            )
        schema = self.snapshot.schema
        keys = T.Schema(tuple(schema.field(path[0]) for path in columns))
        decided = of_partition(self.snapshot, keys)
        return Keys(keys, metadata.partitioning.current if decided else unpartitioned(metadata))


def _problems(schema: T.Schema, columns: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for path in columns:
        name = ".".join(path)
        if len(path) > 1:
            yield f"by a field of a struct, `{name}`, are not offered"
            continue
        type = schema.field(path[0]).type
        if isinstance(type, T.FloatType):
            yield f"by `{name}` are not written: it is {type}, and engines do not agree which floats are equal"
        elif not isinstance(type, _KEYS) or isinstance(type, T.GeometryType | T.GeographyType):
            yield f"by `{name}`, which is {type}, do not exist"


def of_partition(snapshot: IcebergSnapshot, keys: T.Schema) -> bool:
    """Whether all rows with the same keys are in the same partition of the current spec."""
    spec = snapshot.partitioning.current
    decided = {(f.name,) for f in keys}
    if not all(f.source in decided for f in spec if f.transform.name != "void"):
        return False
    if all(f.transform.name == "void" for f in spec):
        return False
    return all(m.spec_id == spec.id for m in snapshot.listing.data_manifests if not m.empty)


def unpartitioned(metadata: TableMetadata) -> T.PartitionSpec:
    """The spec without fields: one that the table has, or the next one, which the commit adds."""
    specs = metadata.partitioning.specs
    found = next((s for s in specs if not s.fields), None)
    return T.PartitionSpec(max(s.id for s in specs) + 1, ()) if found is None else found
