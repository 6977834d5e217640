"""Upsert without looking for the rows that it replaces: their keys are deleted from all that is older."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from boathouse.errors import ColumnNotFoundError, SchemaMismatchError
from boathouse.expr.tree import And, Column, Expr, IsNull, Not
from boathouse.ops.outcomes import data_files, delete_files
from boathouse.ops.rows.computed import completed
from boathouse.ops.rows.identity import advanced, numbered
from boathouse.ops.schema.evolve import evolution
from boathouse.ops.write import Planned, RowWork, Source, Start, WritePlan, row_work
from boathouse.table.change import Operation
from boathouse.table.edits import AddFiles, AddKeyDeletes, Edit
from boathouse.table.engine import Engine, Rel, Spread
from boathouse.table.features import KeyDeletes, required
from boathouse.table.tasks import keys_of
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class KeyUpsert:
    """Every row of the data becomes a row of the table, in place of those with the same values in the columns `on`; a
    key with a null is that of no other row.

    The table is not read, so that a row is replaced as a whole, and nobody knows how many are. Nothing concurrent is a
    conflict: what is committed in between is older, too. Raises ConstraintViolationError for two rows with the same
    key, SchemaMismatchError if the data lacks a column of the table, and what Append raises.
    """

    source: Source
    on: tuple[tuple[str, ...], ...]
    merge_schema: bool = False
    operation: ClassVar[Operation] = "merge"
    _pinned: list[Rel] = field(default_factory=list, compare=False, repr=False)

    def plan(self, start: Start) -> WritePlan:
        edits = evolution(start.snapshot.schema, self.source.schema) if self.merge_schema else ()
        keys = required(start.evolved(edits), KeyDeletes, "an upsert by equality deletes").keys(self.on)
        context = start.context(edits)
        self._check_whole(context.schema, context.directory)
        source = Source(self.source.schema, self._rows(start.engine))
        context = numbered(context, source)
        key_source = self._keys(start.engine, source, keys.schema)
        deleted = RowWork(key_source, keys_of(context, keys.schema, keys.spec), Spread("one"))
        rows = row_work(completed(start.engine, source, context), context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            deletes, added = delete_files(outcomes[0]), AddFiles(data_files(outcomes[1]))
            made: tuple[Edit, ...] = (*edits, added, *advanced(context, outcomes[1:]))
            if deletes.num_rows:
                made = (*made, AddKeyDeletes(deletes, keys.schema, everywhere=not keys.spec.fields))
            parameters = {"on": ", ".join(keys.schema.names), "deletes": "equality"}
            return Planned(start.change("merge", made, parameters=parameters))

        return WritePlan((deleted, rows), finish)

    def _rows(self, engine: Engine) -> Rel:
        """The source, the same rows in every plan and at both uses."""
        if not self._pinned:
            self._pinned.append(engine.pin(self.source.rel))
        return self._pinned[0]

    def _check_whole(self, schema: Schema, where: str) -> None:
        """Also columns with a default: the row that is replaced may have another value."""
        missing = [f.name for f in schema if not self.source.schema.places.at(f.name)]
        if missing:
            raise SchemaMismatchError(
                f"the data lacks `{missing[0]}`: rows that are not read are replaced as a whole",
                where=where,
                advice="give every column, or leave out deletes=, so that other columns keep their values",
            )

    def _keys(self, engine: Engine, source: Source, keys: Schema) -> Source:
        """The keys without nulls, under the table's names."""
        columns: list[tuple[str, Expr]] = []
        for f in keys:
            places = source.schema.places.at(f.name)
            if len(places) != 1:
                raise ColumnNotFoundError(f"the data has {len(places)} columns `{f.name}`, which is a key")
            columns.append((f.name, Column((source.schema.fields[places[0]].name,))))
        there = [Not(IsNull(column)) for _, column in columns]
        rel = engine.project(source.rel, columns, there[0] if len(there) == 1 else And(tuple(there)))
        return Source(engine.schema(rel), rel)
