"""The sink: the one function through which rows become data files, in process and on executors.

It does everything that is not relational: routing by ACTION, a bitmap per unit, double matches; PartitionedWriter
writes the files.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.arrow.vector import only_where
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.compute.evaluate import mask
from boathouse.errors import ConstraintViolationError
from boathouse.ops.tasks.change_files import AFTER_UPDATE, BEFORE_UPDATE, DELETED, INSERTED, ChangeFiles
from boathouse.ops.tasks.key_files import KeyFiles
from boathouse.ops.tasks.numbering import Lane, Numbering
from boathouse.ops.tasks.partitioned import GATHERED_BYTES, PartitionedWriter
from boathouse.ops.tasks.sorted_rows import SortedWriter
from boathouse.registry import tasks
from boathouse.table.metadata_columns import VERSIONS_OF_ROWS
from boathouse.table.tasks import Rule, WriteContext
from boathouse.table.units import DELETE_FILE, plain_rows

ACTION = "boathouse:action"
INSERT, UPDATE, DELETE, COPY = "insert", "update", "delete", "copy"
"""The values of ACTION: insert, update (a new image) and copy go to data files; update and delete mark (UNIT_MARK,
POSITION_MARK) as deleted, unless the unit is null. Where the position is null the unit goes, its other rows copied or
deleted too."""
UNIT_MARK, POSITION_MARK = "boathouse:unit", "boathouse:position"
"""Where a row was. The names are not those of metadata columns, which columns of a table may have too."""
BEFORE = "boathouse:before:"
"""Before the name of a column: its value in the row as it was, where the table wants change files."""
_COUNTED = {INSERT: "inserted", UPDATE: "updated", DELETE: "deleted", COPY: "copied"}


class DeletedRows:
    """The positions deleted in each unit, or that it goes; the same row twice is an error (two source rows matched
    it)."""

    def __init__(self) -> None:
        self._positions: dict[int, list[np.ndarray]] = {}
        self._gone: set[int] = set()

    def add(self, units: pa.Array, positions: pa.Array) -> None:
        if positions.null_count:
            self._gone.update(pc.unique(units.filter(positions.is_null())).to_pylist())
            units, positions = (a.filter(positions.is_valid()) for a in (units, positions))
        unit = units.to_numpy(zero_copy_only=False)
        position = positions.to_numpy(zero_copy_only=False)
        for u in np.unique(unit):
            self._positions.setdefault(int(u), []).append(position[unit == u])

    def rows(self) -> Iterator[dict[str, object]]:
        for unit in sorted(self._gone):
            yield {"kind": DELETE_FILE, "unit": unit, "vector": None}
        for unit, found in sorted(self._positions.items()):
            positions = np.concatenate(found)
            bitmap = Bitmap.of(positions)
            if len(bitmap) != len(positions):
                raise matched_twice()
            yield {"kind": DELETE_FILE, "unit": unit, "vector": serialize64(bitmap), "rows": len(bitmap)}


def matched_twice(where: object = None) -> ConstraintViolationError:
    """The error for a row that two source rows change."""
    return ConstraintViolationError(
        "more than one source row matched the same target row",
        where=None if where is None else str(where),
        advice="make the source unique on the join keys, or narrow the clauses' conditions",
    )


class _Rules:
    """Counts the rows that violate each rule; after the first one nothing is written any more."""

    def __init__(self, context: WriteContext) -> None:
        self._context = context
        self._found: dict[str, tuple[Rule, int, object]] = {}

    def hold(self, rows: pa.RecordBatch) -> bool:
        """Whether no rule has been violated so far, these rows included."""
        for rule in self._context.rules:
            bad = pc.invert(mask(rule.predicate, rows))
            count = pc.sum(bad).as_py() or 0
            if count:
                _, before, first = self._found.get(rule.name, (rule, 0, None))
                first = first if before else rows.filter(bad).slice(0, 1).to_pylist()[0]
                self._found[rule.name] = (rule, before + count, first)
        return not self._found

    def check(self) -> None:
        """Raises ConstraintViolationError for the first rule that was violated."""
        for rule, count, first in self._found.values():
            others = "" if count == 1 else f", and {count - 1:,} more"
            raise ConstraintViolationError(
                f"a row does not satisfy {rule.name} ({rule.predicate}): {first}{others}",
                where=self._context.directory,
                advice=rule.advice,
            )


def sink_batches(
    batches: Iterable[pa.RecordBatch],
    context: WriteContext,
    gathered_bytes: int = GATHERED_BYTES,
    threads: int = 1,
    lane: Lane = Lane(),
) -> Iterator[pa.RecordBatch]:
    """Writes the rows and yields OUTCOMES. For `gathered_bytes` and `threads` see PartitionedWriter; `lane` has the
    ordinals of rows with identity columns.

    A failure is returned as a row whose `error` is the pickled exception, after rows for the files that were already
    finished, so that the driver can remove them and raise.
    """
    schema = tasks(context.format).outcomes_schema(context)
    kind = KeyFiles if context.content == "keys" else PartitionedWriter
    files = kind(context, gathered_bytes, threads)
    writer = SortedWriter(files, context) if context.order else files
    deleted, rules, changes = DeletedRows(), _Rules(context), ChangeFiles(context)
    numbering = Numbering(context.identities, lane)
    counts = dict.fromkeys(_COUNTED.values(), 0)
    try:
        for given in batches:
            batch = numbering.fill(given, _inserted(given)) if context.identities else given
            _route(batch, context, writer, deleted, rules, counts)
            if changes.wanted:
                _note(batch, context, changes)
        rules.check()
        metrics = plain_rows(schema, [{"kind": "metrics", **counts, "numbered": numbering.used}])
        outcomes = [plain_rows(schema, list(deleted.rows())), *writer.finish(), *changes.finish(schema), metrics]
    except Exception as error:
        writer.abort()
        changes.abort()
        failed = plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}])
        outcomes = [*writer.closed(), *changes.closed(schema), failed]
    except BaseException:  # an interrupt: the files will not be reported
        writer.abort(finished=True)
        changes.abort(finished=True)
        raise
    yield from pa.concat_tables(outcomes).to_batches()


def _route(
    batch: pa.RecordBatch,
    context: WriteContext,
    writer: PartitionedWriter | SortedWriter,
    deleted: DeletedRows,
    rules: _Rules,
    counts: dict[str, int],
) -> None:
    """Routes the rows by their action, and counts them."""
    if ACTION not in batch.schema.names:
        rows = conform(batch, context.rows, absent=context.absent)
        if rules.hold(rows):
            writer.write(rows)
        counts["inserted"] += batch.num_rows if context.content == "data" else 0
        return
    action = batch.column(ACTION)
    found = {value["values"]: value["counts"] for value in pc.value_counts(action).to_pylist()}
    for value, count in found.items():
        counts[_COUNTED[value]] += count
    if UNIT_MARK in batch.schema.names and (UPDATE in found or DELETE in found):
        marks = pc.or_(pc.equal(action, UPDATE), pc.equal(action, DELETE))
        gone = pc.and_(marks, pc.is_valid(batch.column(UNIT_MARK)))
        marked = batch.select([UNIT_MARK, POSITION_MARK]).filter(gone)
        deleted.add(marked.column(0), marked.column(1))
    if found.keys() == {COPY} and UNIT_MARK not in batch.schema.names:
        rows = batch.drop_columns([ACTION])
        # A change may add columns with its rows: copies are written under the same schema.
        writer.write(rows if rows.schema.equals(writer.schema) else conform(rows, context.rows))
        return
    kept = batch.filter(pc.not_equal(action, DELETE))
    if not kept.num_rows:
        return
    rows = conform(_carried(kept, context).select(_new(batch)), context.rows, absent=context.absent)
    # Copies of existing rows were checked when they were new.
    if rules.hold(rows.filter(pc.not_equal(kept.column(ACTION), COPY)) if context.rules else rows):
        writer.write(rows)


def _carried(batch: pa.RecordBatch, context: WriteContext) -> pa.RecordBatch:
    """What rows carry: a new one nothing, a changed one its id but not its version."""
    for f in context.carried:
        i = batch.schema.get_field_index(f.name)
        if i >= 0:
            kept = (COPY,) if f.name in VERSIONS_OF_ROWS else (COPY, UPDATE)
            stays = pc.is_in(batch.column(ACTION), pa.array(kept))
            batch = batch.set_column(i, f.name, only_where(stays, batch.column(i)))
    return batch


def _inserted(batch: pa.RecordBatch) -> pa.Array | None:
    """Which rows are inserted; None without ACTION, where all are."""
    return pc.equal(batch.column(ACTION), INSERT) if ACTION in batch.schema.names else None


def _new(batch: pa.RecordBatch) -> list[str]:
    """The columns of the rows as they shall be."""
    return [n for n in batch.schema.names if n not in (ACTION, UNIT_MARK, POSITION_MARK) and not n.startswith(BEFORE)]


def _note(batch: pa.RecordBatch, context: WriteContext, changes: ChangeFiles) -> None:
    """Writes the changed rows to change files; copied ones are not among them."""
    if ACTION not in batch.schema.names:
        changes.write(conform(batch, context.schema), INSERTED)
        return
    action = batch.column(ACTION)
    found = set(pc.unique(action).to_pylist())
    hidden = frozenset(context.hidden)
    new = [n for n in _new(batch) if n not in hidden]
    old = [n for n in batch.schema.names if n.startswith(BEFORE)]
    for kind, names, change in (
        (INSERT, new, INSERTED),
        (UPDATE, old, BEFORE_UPDATE),
        (UPDATE, new, AFTER_UPDATE),
        (DELETE, old, DELETED),
    ):
        if kind in found:
            rows = batch.filter(pc.equal(action, kind)).select(names)
            plain = rows.rename_columns([n.removeprefix(BEFORE) for n in names])
            changes.write(conform(plain, context.schema), change)


def pickle_error(error: BaseException) -> bytes:
    """The exception as bytes; one that cannot be pickled becomes a RuntimeError with its message."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
