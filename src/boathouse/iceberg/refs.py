"""Branches and tags of the metadata document (spec, "Snapshot References")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from boathouse.errors import CorruptTableError, VersionNotFoundError
from boathouse.iceberg.metadata.document import Json
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.location import Version
from boathouse.table.refs import Ancestor, Ref, RefType, Retention

_SETTINGS: Final = tuple((f.name, f.name.replace("_", "-")) for f in fields(Retention))


@dataclass(frozen=True, slots=True)
class IcebergRefs:
    """See `table.features.Refs`."""

    snapshot: IcebergSnapshot
    shared: ClassVar[bool] = True

    def named(self) -> Mapping[str, Ref]:
        metadata = self.snapshot.metadata
        return {name: ref_of(name, ref, metadata.uri) for name, ref in metadata.refs.items()}

    def ancestors(self, version: Version) -> tuple[Ancestor, ...]:
        metadata = self.snapshot.metadata
        found = tuple(
            Ancestor(int(s["snapshot-id"]), int(s["timestamp-ms"])) for s in metadata.ancestors(version or None)
        )
        if not found:
            what = f"snapshot {version} does not exist" if version else "the table has no snapshot yet"
            raise VersionNotFoundError(
                what, where=metadata.uri, advice="inspect.snapshots() lists the retained ones; an append makes one"
            )
        return found

    def at(self, name: str, type: RefType, version: Version) -> Ref:
        self.ancestors(version)
        return Ref(name, type, version)

    def check_drop(self, ref: Ref) -> None:
        """Versions are retained whatever branch they are of."""


def ref_of(name: str, ref: Mapping[str, Any], where: str) -> Ref:
    """Raises CorruptTableError for settings that are no numbers."""
    found: dict[str, int] = {}
    for setting, key in _SETTINGS:
        value = ref.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise CorruptTableError(f"the ref {name} has {key} {value!r:.80}", where=where)
        if value is not None:
            found[setting] = value
    type: RefType = "tag" if ref.get("type") == "tag" else "branch"
    return Ref(name, type, int(ref["snapshot-id"])).retaining(Retention(**found))


def ref_json(ref: Ref, before: Mapping[str, Any] | None) -> Json:
    """The ref as the document has it; fields of `before` that nothing is known of stay."""
    mine = {key for _, key in _SETTINGS}
    kept = {k: v for k, v in (before or {}).items() if k not in mine}
    settings = {key: getattr(ref, name) for name, key in _SETTINGS if getattr(ref, name) is not None}
    return {**kept, "snapshot-id": ref.version, "type": ref.type, **settings}
