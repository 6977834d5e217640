"""Which manifests are written anew, so that each has files of few partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.commit.clustered import wanted
from boathouse.iceberg.metadata.partitions import unknown_transforms
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.edits import RewriteManifests


@dataclass(frozen=True, slots=True)
class IcebergFileLists:
    """See `table.features.FileLists`."""

    snapshot: IcebergSnapshot

    def rewriting(self, spec: int | None, fields: Sequence[str] | None) -> RewriteManifests | None:
        partitioning = self.snapshot.partitioning
        specs = {s.id: s for s in partitioning.specs}
        id = partitioning.current.id if spec is None else spec
        if id not in specs:
            raise InvalidArgumentError(
                f"there is no partition spec {id}", advice=f"there are {', '.join(map(str, sorted(specs)))}"
            )
        unknown = unknown_transforms(specs[id])
        if unknown:
            raise UnsupportedFeatureError(f"sorting by partition transform {unknown[0]} is not offered")
        names = [f.name for f in specs[id]]
        for name in fields or ():
            if name not in names:
                raise InvalidArgumentError(
                    f"{name!r} is not a field of partition spec {id}",
                    advice=f"it has {', '.join(names)}" if names else "it has none: leave sort_by out",
                )
        edit = RewriteManifests(id, tuple(names if fields is None else fields))
        return edit if wanted(self.snapshot, edit) else None
