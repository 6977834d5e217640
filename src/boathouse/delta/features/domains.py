"""Domain metadata, of which writers must obey two: row ids and clustering columns.

PROTOCOL.md, "Domain Metadata", "Row Tracking", "Clustered Table".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.text import json_value
from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.features.row_ids import SUSPENDED, carried, is_tracked
from boathouse.delta.features.support import supports
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import ColumnNotFoundError, CorruptTableError, InvalidArgumentError
from boathouse.table.features import Clustering
from boathouse.types import BinaryType, BooleanType, Field, ListType, MapType, NullType, Schema, StructType, VariantType

Action = dict[str, Any]
ROW_TRACKING: Final = "delta.rowTracking"
CLUSTERING: Final = "delta.clustering"
_MARK: Final = "rowIdHighWaterMark"
_MOST: Final = 4
"""The most clustering columns that the reference takes."""
_UNORDERED: Final = (StructType, ListType, MapType, VariantType, NullType, BinaryType, BooleanType)
"""Types of which a file has no bounds."""


def domains(snapshot: DeltaSnapshot) -> Mapping[str, str]:
    """The configuration of each domain; one whose last action removes it is not there."""
    found: dict[str, str] = {}
    for action in snapshot.all_of("domainMetadata"):
        domain, configuration = action.get("domain"), action.get("configuration")
        if not isinstance(domain, str) or not isinstance(configuration, str):
            raise CorruptTableError(f"{action} is no domain metadata", where=snapshot.location.uri)
        found.pop(domain, None)
        if not action.get("removed"):
            found[domain] = configuration
    return found


def _member(snapshot: DeltaSnapshot, domain: str, key: str) -> Any:
    """A member of a domain's configuration, None if the table has no such domain."""
    text = domains(snapshot).get(domain)
    if text is None:
        return None
    found = json_value(text, snapshot.location.uri, f"the configuration of the domain {domain}")
    return found.get(key) if isinstance(found, dict) else None


def clustering(snapshot: DeltaSnapshot) -> tuple[tuple[str, ...], ...]:
    """The clustering columns, as paths of names; their statistics are written wherever they stand."""
    if not supports(snapshot.protocol, "clustering"):
        return ()
    recorded = _member(snapshot, CLUSTERING, "clusteringColumns")
    wanted = [(c,) if isinstance(c, str) else tuple(c) for c in recorded or () if isinstance(c, str | list)]
    names = dict(_leaves(snapshot.schema.fields))
    return tuple(names[physical] for physical in wanted if physical in names)


def clustered(snapshot: DeltaSnapshot) -> Clustering | None:
    """The clustering columns, and which implementation clustered a file; None without such columns."""
    columns = clustering(snapshot)
    return Clustering(columns, _providers) if columns else None


def clustering_detail(snapshot: DeltaSnapshot) -> Mapping[str, Any]:
    """What `info` says of clustering; nothing without such columns."""
    columns = clustering(snapshot)
    return {"clusteringColumns": [".".join(path) for path in columns]} if columns else {}


def _providers(units: pa.Table) -> pa.ChunkedArray:
    return pc.struct_field(units.column("native"), "clusteringProvider")


def check_columns(columns: Sequence[tuple[str, ...]], schema: Schema, partitioned: bool, where: str) -> None:
    """Raises ColumnNotFoundError, and InvalidArgumentError for columns that a table cannot be clustered by."""
    if columns and partitioned:
        raise InvalidArgumentError(
            "a table is partitioned or clustered, not both", where=where, advice="leave one of the two out"
        )
    if len(columns) > _MOST:
        raise InvalidArgumentError(
            f"the table would be clustered by {len(columns)} columns", where=where, advice=f"name at most {_MOST}"
        )
    leaves = dict(schema.walk())
    for path in columns:
        found = leaves.get(path)
        if found is None:
            raise ColumnNotFoundError(
                f"no column `{'.'.join(path)}` to cluster by",
                where=where,
                advice=f"there are {', '.join(schema.names)}",
            )
        if isinstance(found.type, _UNORDERED) or columns.count(path) > 1:
            why = "twice" if columns.count(path) > 1 else f"of type {found.type}"
            raise InvalidArgumentError(
                f"the table cannot be clustered by `{'.'.join(path)}` {why}", where=where, advice="name another column"
            )


def clustering_action(columns: Sequence[tuple[str, ...]], schema: Schema) -> Action:
    """What records the clustering columns, by their physical names."""
    names = {name: physical for physical, name in _leaves(schema.fields)}
    found = {"clusteringColumns": [list(names[path]) for path in columns], "domainName": CLUSTERING}
    return {"domainMetadata": {"domain": CLUSTERING, "configuration": orjson.dumps(found).decode(), "removed": False}}


def check_clustering(snapshot: DeltaSnapshot, path: tuple[str, ...]) -> None:
    """Raises InvalidArgumentError for a column, or a part of one, by which the table is clustered: it cannot be
    dropped."""
    if any(column[: len(path)] == path for column in clustering(snapshot)):
        raise InvalidArgumentError(
            f"the table is clustered by `{'.'.join(path)}`, so that it cannot be dropped",
            where=snapshot.location.uri,
            advice="change the clustering columns first: t.cluster_by(...)",
        )


def _leaves(fields: Sequence[Field]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The physical and logical path of each column that is not a struct, outside lists and maps."""
    for f in fields:
        if not isinstance(f.type, StructType):
            yield (physical_name(f),), (f.name,)
            continue
        for physical, name in _leaves(f.type.fields):
            yield (physical_name(f), *physical), (f.name, *name)


class RowIds:
    """Gives the files of one commit the ids of their rows, where rows are tracked: from the table's high-water mark of
    all commits. A file that is added again keeps what it has."""

    def __init__(self, newest: DeltaSnapshot | None, protocol: Protocol, metadata: Metadata, version: int) -> None:
        self._gives = supports(protocol, "rowTracking") and not metadata.flag(SUSPENDED)
        recorded = _member(newest, ROW_TRACKING, _MARK) if self._gives and newest is not None else None
        self._before = self._mark = recorded if isinstance(recorded, int) else -1
        self._version = version

    def given(self, added: Iterable[Action]) -> list[Action]:
        """The add actions with ids."""
        return [self._one(action) for action in added] if self._gives else list(added)

    def _one(self, action: Action) -> Action:
        rows = (orjson.loads(action["stats"]) if action.get("stats") else {}).get("numRecords")
        if action.get("baseRowId") is not None or not isinstance(rows, int):
            return action
        first, self._mark = self._mark + 1, self._mark + rows
        return {**action, "baseRowId": first, "defaultRowCommitVersion": self._version}

    def domain(self) -> list[Action]:
        """The action with the new mark, if there is one."""
        if self._mark == self._before:
            return []
        configuration = orjson.dumps({_MARK: self._mark}).decode()
        return [{"domainMetadata": {"domain": ROW_TRACKING, "configuration": configuration, "removed": False}}]


def preserved(newest: DeltaSnapshot | None, copied: bool) -> Action:
    """The tag of commitInfo that says whether rows kept their ids: copied ones do if files can store them."""
    if newest is None or not is_tracked(newest):
        return {}
    return {"tags": {f"{ROW_TRACKING}.preserved": "false" if copied and not carried(newest) else "true"}}
