"""The change data feed: files of changed rows, written and found (PROTOCOL.md, "Change Data Files")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.delta import paths
from boathouse.delta.features.support import supports
from boathouse.delta.files import Lister
from boathouse.delta.log.entry import ADD, actions_table
from boathouse.delta.log.replay import read_entry
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import SchemaError
from boathouse.table.metadata_columns import CHANGE_TYPE, CHANGES
from boathouse.table.tally import Tally
from boathouse.table.tasks import WriteContext
from boathouse.types import STRING, Field, Schema

FEED: Final = "delta.enableChangeDataFeed"


def is_recorded(snapshot: DeltaSnapshot) -> bool:
    """Whether writers record changed rows: the table supports the feature, and its property is true."""
    return supports(snapshot.protocol, "changeDataFeed") and snapshot.metadata.flag(FEED)


def recording(context: WriteContext) -> WriteContext:
    """The context with change files, which lie in a folder of their own and have no statistics."""
    fields = (*context.schema.fields, Field(CHANGE_TYPE, STRING))
    options = {**context.options, "indexed": 0, "stats_columns": None, "clustered": ()}
    plain = replace(context, conditions=(), rules=(), computed=(), identities=(), carried=())
    changes = replace(plain, schema=Schema(fields), options=options, content="changes")
    return replace(context, changes=changes)


def check_names(schema: Schema, where: str) -> None:
    """Raises SchemaError for a column with a name of the feed's own."""
    taken = [f.name for f in schema if f.name.lower() in CHANGES]
    if taken:
        raise SchemaError(
            f"the column `{taken[0]}` has a name of the change data feed",
            where=where,
            advice=f"rename the column, or leave out {FEED}",
        )


@dataclass(frozen=True, slots=True)
class DeltaChangeFiles:
    """See `table.features.ChangeFiles`."""

    snapshot: DeltaSnapshot

    def change_files(self, version: int) -> pa.Table | None:
        """FILES of the change files of one commit; None if it has none, so that its adds and removes are its changes.

        Raises CorruptTableError, NotFoundError.
        """
        snapshot = self.snapshot
        known = (e for e in snapshot.entries if e.version == version and e.first is None)
        entry = next(known, None) or read_entry(snapshot.log, version)
        found = entry.change_files()
        if not found:
            return None
        batch = actions_table(found, ADD, entry.uri).combine_chunks().to_batches()[0]
        lister = Lister.of(snapshot, (), None, Tally())
        units = pa.array(np.arange(batch.num_rows))
        live = np.ones(batch.num_rows, bool)
        return pa.Table.from_batches(lister.emit(units, batch, paths.keys_of(batch.column("path"), lister.root), live))
