"""Row tracking is turned on, for a new table or one that has files (PROTOCOL.md, "Writer Requirements for Row
Tracking").

A table that has files takes commits of three kinds, as with the reference: the features, so that every writer gives
new files ids; the files that are there again, with ids; the property. A file that has none yet gets them with the
property.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.checkpoint.reader import Wanted, read_files
from boathouse.delta.commit.known_files import added_again, counting_rows
from boathouse.delta.features.row_ids import ENABLED, ID_COLUMN, SUSPENDED, VERSION_COLUMN, is_enabled
from boathouse.delta.features.support import ASKED, supports
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.log.entry import ADD, REMOVE
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import InvalidArgumentError
from boathouse.table.edits import GiveRowIds, SetProperties
from boathouse.table.features import Step

Action = dict[str, Any]
FILES_AT_ONCE: Final = 100_000
"""The most files of one commit, as with the reference."""
_IDS: Final = ("baseRowId", "defaultRowCommitVersion")
_PREFIXES: Final = {ID_COLUMN: "_row-id-col-", VERSION_COLUMN: "_row-commit-version-col-"}


@dataclass(frozen=True, slots=True)
class DeltaPropertySteps:
    """See `table.features.PropertySteps`."""

    snapshot: DeltaSnapshot

    def before(self, properties: Mapping[str, str | None]) -> Step | None:
        """What precedes the property that turns row tracking on; None for other properties."""
        snapshot, asked = self.snapshot, str(properties.get(ENABLED)).strip().lower() == "true"
        if not asked or is_enabled(snapshot.protocol, snapshot.metadata) or not any(_unnumbered(snapshot)):
            return None
        _check_unsuspended({**snapshot.metadata.configuration, **properties}, snapshot.location.uri)
        if not supports(snapshot.protocol, "rowTracking"):
            return Step("set-properties", SetProperties({f"{ASKED}rowTracking": "supported"}))
        if snapshot.metadata.flag(SUSPENDED):
            return Step("set-properties", SetProperties({SUSPENDED: "false"}))
        return Step("backfill", GiveRowIds(FILES_AT_ONCE))


def named(raw: Mapping[str, Any], head: Metadata | None, where: str) -> Mapping[str, Any]:
    """The metaData with the names of the columns for what rows keep, if it turns row tracking on: those of the `head`,
    or new ones. Raises InvalidArgumentError if it suspends it, too."""
    configuration = {str(k): v for k, v in (raw.get("configuration") or {}).items()}
    if str(configuration.get(ENABLED)).strip().lower() != "true":
        return raw
    _check_unsuspended(configuration, where)
    before = {} if head is None else head.configuration
    names = {k: before.get(k) or configuration.get(k) or f"{p}{system.current().uuid4()}" for k, p in _PREFIXES.items()}
    return {**raw, "configuration": configuration | names}


def names_kept(raw: Mapping[str, Any], head: Metadata) -> Mapping[str, Any]:
    """The metaData of an older version with the names that columns have got since."""
    configuration = raw.get("configuration") or {}
    since = {k: v for k in _PREFIXES if (v := head.configuration.get(k)) is not None and k not in configuration}
    return {**raw, "configuration": {**configuration, **since}} if since else raw


def _check_unsuspended(configuration: Mapping[str, str | None], where: str) -> None:
    if str(configuration.get(SUSPENDED)).strip().lower() == "true":
        raise InvalidArgumentError(
            f"{ENABLED} and {SUSPENDED} cannot both be true", where=where, advice=f"set {SUSPENDED} to false"
        )


def files_without_ids(newest: DeltaSnapshot, most: int | None = None) -> Iterator[Action]:
    """Live files whose rows have no ids, to be added again: at most so many.

    A file whose statistics do not say how many rows it has is opened.
    """
    for units in _unnumbered(newest):
        chosen = units.slice(0, most)
        rows = chosen.select(["path", "size", "rows"]).to_pylist()
        for action, row in zip(added_again(chosen, False), rows, strict=True):
            yield action if row["rows"] is not None else counting_rows(action, row, newest.context.stores)
        if most is not None and not (most := most - chosen.num_rows):
            return


def with_ids_before(newest: DeltaSnapshot, added: Iterable[Action]) -> Iterator[Action]:
    """Add actions of an older version with the ids that their files got later."""
    found = list(added)
    lacking = [a for a in found if a.get("baseRowId") is None]
    if not lacking or not supports(newest.protocol, "rowTracking"):
        yield from found
        return
    root = newest.location.uri
    since = _ids_of(newest, pa.array([paths.key_of(a["path"], root) for a in lacking], pa.string()))
    for action in found:
        yield {**since.get(paths.key_of(action["path"], root), {}), **action}


def _ids_of(newest: DeltaSnapshot, keys: pa.Array) -> dict[str, Action]:
    found: dict[str, Action] = {}
    for batch in _last_actions(newest):
        files = paths.keys_of(batch.column("path"), newest.location.uri)
        with_ids = pc.and_(pc.is_in(files, keys), pc.is_valid(batch.column("baseRowId")))
        rows = batch.select(_IDS).filter(with_ids).to_pylist()
        found |= dict(zip(files.filter(with_ids).to_pylist(), rows, strict=True))
    return found


def _last_actions(newest: DeltaSnapshot) -> Iterator[pa.RecordBatch]:
    """What the log has of files, those that were removed first."""
    if newest.checkpoint is not None:
        for kind, schema in (("remove", REMOVE), ("add", ADD)):
            wanted = Wanted(kind, pa.schema([schema.field(n) for n in ("path", "deletionVector", *_IDS)]))
            yield from (batch for _, batch in read_files(newest.checkpoint, wanted))
    for table in (newest.tail.removes, newest.tail.adds):
        yield from table.combine_chunks().to_batches()


def _unnumbered(snapshot: DeltaSnapshot) -> Iterator[pa.Table]:
    schema = schema_of(snapshot, ())
    for batch in list_files(snapshot, (), None, None, all_stats=True):
        none = batch.filter(pc.is_null(batch.column("first_row_id")))
        if none.num_rows:
            yield pa.Table.from_batches([none], schema)


def turned_on(newest: DeltaSnapshot | None, protocol: Protocol, metadata: Metadata) -> bool:
    """Whether a commit with this protocol and metadata turns row tracking on for the table."""
    before = newest is not None and is_enabled(newest.protocol, newest.metadata)
    return is_enabled(protocol, metadata) and not before
