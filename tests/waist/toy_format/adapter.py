"""The toy as a TableFormat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import DataFiles, data_files
from boathouse.bits import system
from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.compute.prune import Pruner
from boathouse.errors import TableNotFoundError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.expr.tree import columns as columns_of
from boathouse.table import change as ch
from boathouse.table import edits, features
from boathouse.table.attempt import Attempt, Winner
from boathouse.table.classify import classified
from boathouse.table.context import TableContext
from boathouse.table.history import HistoryEntry
from boathouse.table.inspection import CommonTables
from boathouse.table.location import NEWEST, At, CommitId
from boathouse.table.metadata_columns import OFFERED as OF_EVERY_FORMAT
from boathouse.table.metadata_columns import ROW_ID, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.sizes import SMALL_FILE, Sizes, counts_of
from boathouse.table.snapshot import Capabilities
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec, WriteContext
from boathouse.table.units import EQUALITY, LANCE, deletes_schema, files_schema, partition_type, stats_type
from boathouse.table.units import POSITION as POSITIONS
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict
from boathouse.types import INT64, Field, Partitioning, PartitionSpec, Schema
from boathouse.types.evolution import with_field
from toy_format import tasks as toy_tasks
from toy_format.restore import ToyRestore
from toy_format.retention import ToyLiveFiles, ToyRetention
from toy_format.state import TABLES, Deletes, Document, State, Unit

MAIN = "main"
STORED = "\0row id"


OFFERED = OF_EVERY_FORMAT | {ROW_ID}
CAPABILITIES = Capabilities(partitions=True, transforms=True)


@dataclass(frozen=True)
class NewToy:
    context: TableContext
    create: edits.CreateTable
    format: str = "toy"
    capabilities = CAPABILITIES

    schema = property(lambda s: s.create.schema)
    partitioning = property(lambda s: Partitioning((PartitionSpec(0, s.create.partition_by),)))
    properties = property(lambda s: s.create.properties)
    commits = property(lambda s: ToyCommits(s))

    def write_context(self, write_id: str) -> WriteContext:
        return _context(self, write_id)

    def newest(self, put: Attempt | None = None) -> ToySnapshot:
        return FORMAT.open(self.context)

    def offers(self, feature: type) -> None: ...


@dataclass(frozen=True)
class ToySnapshot:
    context: TableContext
    document: Document
    ref: str
    format: str = "toy"
    capabilities = CAPABILITIES

    location = property(lambda s: s.context.location)
    version = property(lambda s: s.document.version)
    timestamp_ms = property(lambda s: s.document.timestamp_ms)
    identity = property(lambda s: s.document.identity)
    token = property(lambda s: str(s.document.version))
    schema = property(lambda s: s.document.schema)
    partitioning = property(lambda s: s.document.partitioning)
    properties = property(lambda s: s.document.properties)
    commits = property(lambda s: ToyCommits(s))
    history = property(lambda s: ToyHistory(s.document, TABLES[s.location.uri]))

    def files(self, columns: Any = (), where: Any = None, map: Any = None, tally: Tally | None = None) -> Iterator:
        asked = list(columns)
        paths = asked + [p for p in (columns_of(where) if where is not None else ()) if p not in asked]
        kinds = [self.schema.field(p[0]).type for p in paths]
        schema = files_schema(partition_type(self.partitioning), stats_type(kinds), toy_tasks.NATIVE)
        batch = pa.RecordBatch.from_pylist([self._row(u, paths) for u in self.document.units], schema)
        if where is not None:
            keep = Pruner(where, paths).may_match(batch.column("stats"), batch.column("rows"))
            if tally is not None:
                tally.skip(f"bounds {where}", batch.num_rows - (pc.sum(keep).as_py() or 0))
            batch = batch.filter(keep)
        stats = batch.column("stats")
        kept = [stats.field(i) for i in range(len(asked))]
        asked_type = stats_type(kinds[: len(asked)])
        new = (
            pa.StructArray.from_arrays(kept, fields=list(asked_type))
            if asked
            else pa.array([{}] * len(batch), asked_type)
        )
        at = batch.schema.get_field_index("stats")
        yield batch.set_column(at, pa.field("stats", asked_type), new)

    def sizes(self, small: int = SMALL_FILE) -> Sizes:
        return Sizes.of(counts_of(self.files()), small)

    def _row(self, u: Unit, paths: Sequence[tuple[str, ...]]) -> dict[str, Any]:
        gone = set().union(*(d.rows.get(u.id, ()) for d in self.document.deletes if d.kind == "position"))
        equality = any(d.kind == "equality" and d.sequence > u.sequence for d in self.document.deletes)
        stats = {}
        for i, p in enumerate(paths):
            lower, upper, nulls = u.stats.get(p[0], (None, None, u.rows))
            exact = lower is not None
            stats[str(i)] = {"lower": lower, "upper": upper, "lower_exact": exact, "upper_exact": exact,
                             "nulls": nulls, "nans": None, "values": u.rows}  # fmt: skip
        parts = [
            {"path": p, "size": s, "format": LANCE, "fields": None, "columns": None} for p, s in zip(u.parts, u.sizes)
        ]
        return {"unit": u.id, "path": u.parts[0], "format": LANCE, "size": sum(u.sizes), "rows": u.rows,
                "deleted": None if equality else len(gone), "spec": u.spec,
                "partition": {str(k): v for k, v in u.partition.items()}, "sequence": u.sequence,
                "first_row_id": u.first_row_id, "parts": parts, "deletes": None, "stats": stats,
                "native": {"first_row_id": u.first_row_id}}  # fmt: skip

    def detail(self) -> Mapping[str, Any]:
        return {"protocol": "toy"}

    def plan(
        self, columns: Any = None, where: Any = None, hidden: Any = (), map: Any = None, classify: bool = False
    ) -> ScanPlan:
        check_offered(hidden, OFFERED, "Toy", self.location.uri)
        output = tuple(self.schema.names if columns is None else columns)
        keys = [d.key for d in self.document.deletes if d.kind == "equality"]
        needed = [*output, *(p[0] for p in (columns_of(where) if where is not None else ())), *keys]
        fields = [self.schema.field(n) for n in dict.fromkeys(needed)]
        lineage = (ReadColumn(STORED, INT64, True, (ROW_ID,)),) if ROW_ID in hidden else ()
        read = ReadSpec(
            "toy",
            data_files(self.context.stores),
            (*(ReadColumn(f.name, f.type, f.nullable, (f.name,), self.schema.index(f.name)) for f in fields), *lineage),
            output,
            tuple(hidden),
            where,
            stored={ROW_ID: STORED} if lineage else {},
        )
        tally, certain = Tally(), None
        if classify and where is not None:
            schema = files_schema(partition_type(self.partitioning), stats_type(()), toy_tasks.NATIVE)
            units, certain = classified(self.files(columns_of(where), where, map, tally), schema, where)
        else:
            units = pa.Table.from_batches(list(self.files((), where, map, tally)))
        units, deletes = _deletes(self.document, self.schema, units)
        return ScanPlan.of(read, units, deletes, where, tally, certain)

    def check_writable(self) -> None: ...

    def row_deletes(self, operation: str) -> str:
        return self.properties.get("toy.deletes", "vectors")

    def evolve(self, edits: Sequence[edits.SchemaEdit]) -> ToySnapshot:
        document = self.document
        for edit in edits:
            document = _apply(document, edit)
        return replace(self, document=replace(document, metadata_changed=self.document.metadata_changed))

    def write_context(self, write_id: str) -> WriteContext:
        return _context(self, write_id)

    def newest(self, put: Attempt | None = None) -> ToySnapshot:
        return FORMAT.open(self.context, At(ref=self.ref))

    def offers(self, feature: type) -> Any:
        match feature:
            case features.LiveFiles:
                return ToyLiveFiles(TABLES[self.location.uri])
            case features.MetadataTables:
                return CommonTables(self, metrics=False)
            case features.Restorable:
                return ToyRestore(self, lambda at: FORMAT.open(self.context, at))
            case features.Retention:
                return ToyRetention(self.document, TABLES[self.location.uri], self.location.uri)
        return None


def _context(target: Any, write_id: str) -> WriteContext:
    files = data_files(target.context.stores)
    directory = f"{target.context.location.uri}/data"
    spec = target.partitioning.current
    return WriteContext("toy", files, target.schema, spec, directory, write_id, carried=(Field(ROW_ID, INT64),))


PENDING: dict[str, Document] = {}


@dataclass(frozen=True)
class ToyCommits:
    """Commits on a snapshot, or the one that creates the table: by a swap of the head."""

    target: Any

    @property
    def state(self) -> State:
        return TABLES.setdefault(self.target.context.location.uri, State())

    def prepare(self, change: ch.Change) -> Attempt:
        head = self.target if isinstance(self.target, ToySnapshot) else None
        document = _next(
            change, head and head.document, self.state.next_version(), data_files(self.target.context.stores)
        )
        uri = f"memory://toy/{system.current().uuid4()}"
        PENDING[uri] = document
        commit = CommitId(document.version, str(document.version))
        return Attempt(uri, b"", commit, replaces=None if head is None else head.token)

    def publish(self, attempt: Attempt) -> Any:
        return "won" if self.state.swap(MAIN, attempt.replaces, PENDING.pop(attempt.uri)) else "lost"

    def confirm(self, attempt: Attempt, change: ch.Change) -> Any:
        return "won", self.target.newest()  # a swap succeeds on the head alone

    def after_commit(self, attempt: Any, change: Any) -> None: ...

    def winners(self, since: Any) -> list[Winner] | None:
        state, found, at = self.state, [], self.target.document
        while at.version != since.version:
            found.append(Winner(CommitId(at.version, str(at.version)), at.write_id, at))
            if at.parent is None or at.parent not in state.versions:
                return None
            at = state.versions[at.parent]
        return found[::-1]

    def check(self, change: ch.Change, winners: Any) -> Verdict:
        for w in winners:
            doc: Document = w.document
            if change.edit(edits.RestoreTo) is not None:
                return Replan((Conflict("concurrent-commit", w.version, "the table changed"),))
            if doc.metadata_changed:
                return Stop((Conflict("metadata-changed", w.version, "schema or properties changed"),))
            if any(doc.txns.get(t.app) == t.version for t in change.all(edits.SetTransaction)):
                return Stop((Conflict("transaction", w.version, "already applied"),))
            touched = {u.parts[0] for u in change.planned.document.units if u.id in doc.touched}
            if change.reads.whole or touched & change.reads.units:
                return Replan((Conflict("delete-delete", w.version, "a unit changed", tuple(touched)),))
            if change.reads.predicates and doc.added:
                return Replan((Conflict("concurrent-append", w.version, "rows were added"),))
        return Rebase()


@dataclass(frozen=True)
class ToyHistory:
    document: Document
    state: State

    def entries(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        at: Document | None = self.document
        left = -1 if limit is None else limit
        while at is not None and left != 0:
            left -= 1
            yield HistoryEntry(
                at.version,
                str(at.version),
                at.timestamp_ms,
                at.operation,
                write_id=at.write_id,
                message=at.message,
                metadata=at.metadata,
                parent=at.parent,
                data_change=at.operation not in ("replace", "vacuum-start", "vacuum-end"),
            )
            at = self.state.versions.get(at.parent)

    def find_write(self, write_id: str) -> int | None:
        return next((v for v, d in self.state.versions.items() if d.write_id == write_id), None)

    def app_version(self, app: str) -> int | None:
        return self.document.txns.get(app)


class Toy:
    name = "toy"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        uri = context.location.uri
        return uri in TABLES and MAIN in TABLES[uri].refs

    def open(self, context: TableContext, at: At = NEWEST) -> ToySnapshot:
        uri = context.location.uri
        state = TABLES.get(uri)
        ref = at.ref or MAIN
        if state is None or ref not in state.refs:
            raise TableNotFoundError("no toy here", where=uri)
        version = state.refs[ref] if at.version is None else at.version
        if at.timestamp_ms is not None:
            version = max((v for v, d in state.versions.items() if d.timestamp_ms <= at.timestamp_ms), default=-1)
        if version not in state.versions:
            raise VersionNotFoundError(f"no version {version}", where=uri)
        return ToySnapshot(context, state.versions[version], ref)

    def create(self, context: TableContext, create: edits.CreateTable) -> NewToy:
        return NewToy(context, create)


def _next(change: ch.Change, head: Document | None, version: int, files: DataFiles) -> Document:
    clock = system.current()
    if head is None:
        create = change.edit(edits.CreateTable)
        by = Partitioning((PartitionSpec(0, create.partition_by),))
        identity = str(clock.uuid4())
        head = Document(0, None, 0, identity, "", None, create.schema, by, create.properties, (), (), 0)
        parent = None
    else:
        parent = head.version
    doc = replace(head, version=version, parent=parent, timestamp_ms=clock.now_ms(), operation=change.operation,
                  write_id=change.write_id, touched=frozenset(), added=False, metadata_changed=False,
                  message=change.message, metadata=change.metadata)  # fmt: skip
    for edit in change.edits:
        doc = _with_files(doc, edit, files) if isinstance(edit, edits.AddDeletes) else _apply(doc, edit)
    return doc if change.data_change else replace(doc, added=False)


def _with_files(doc: Document, edit: edits.AddDeletes, files: DataFiles) -> Document:
    """The document with files of deletes, which are read when a plan needs them."""
    by_path = dict(zip(edit.units.column("path").to_pylist(), edit.units.column("unit").to_pylist()))
    assert set(edit.outcomes.column("unit_path").to_pylist()) == by_path.keys()
    new = tuple(
        Deletes("position", doc.version, toy_tasks.PositionFile(files, row["path"], by_path[row["unit_path"]]))
        for row in edit.outcomes.to_pylist()
    )
    return replace(doc, deletes=(*doc.deletes, *new), touched=doc.touched | frozenset(by_path.values()))


def _apply(doc: Document, edit: edits.Edit) -> Document:
    match edit:
        case edits.RemoveAll():
            return replace(doc, units=(), deletes=(), touched=frozenset(u.id for u in doc.units))
        case edits.RemoveFiles(units):
            gone = frozenset(units.column("unit").to_pylist())
            return replace(doc, units=tuple(u for u in doc.units if u.id not in gone), touched=doc.touched | gone)
        case edits.SetDeletes(units, vectors):
            ids = units.column("unit").to_pylist()
            rows = {u: tuple(deserialize64(v).positions().tolist()) for u, v in zip(ids, vectors)}
            new = Deletes("position", doc.version, rows)
            return replace(doc, deletes=(*doc.deletes, new), touched=doc.touched | frozenset(ids))
        case edits.AddFiles(outcomes):
            return _add(doc, outcomes, doc.version if edit.sequence is None else edit.sequence)
        case edits.RestoreTo(target, added, removed):
            there = target.document
            gone = frozenset([*removed.column("unit").to_pylist(), *added.column("unit").to_pylist()])
            compared = [(d.schema, d.partitioning, d.properties) for d in (there, doc)]
            return replace(doc, schema=there.schema, partitioning=there.partitioning, properties=there.properties,
                           units=there.units, deletes=there.deletes, touched=gone, added=added.num_rows > 0,
                           metadata_changed=compared[0] != compared[1])  # fmt: skip
        case edits.ReplaceSchema(schema, fields):
            spec = PartitionSpec(len(doc.partitioning.specs), fields or ())
            specs = Partitioning((*doc.partitioning.specs, spec), spec.id)
            return replace(doc, schema=schema, partitioning=specs, metadata_changed=True)
        case edits.AddColumn(name, type, parent):
            fields = with_field(doc.schema.fields, parent, Field(name, type))
            return replace(doc, schema=Schema(fields), metadata_changed=True)
        case edits.SetType(path):
            raise UnsupportedFeatureError(f"the toy cannot widen `{'.'.join(path)}`")
        case edits.SetTransaction(app, number):
            return replace(doc, txns={**doc.txns, app: number})
        case edits.SetProperties(properties):
            merged = {k: v for k, v in {**doc.properties, **properties}.items() if v is not None}
            return replace(doc, properties=merged, metadata_changed=True)
    return doc


def _add(doc: Document, outcomes: pa.Table, sequence: int) -> Document:
    units = list(doc.units)
    next_row = doc.next_row_id
    for i, o in enumerate(outcomes.to_pylist()):
        stats = {f.name: (s["lower"], s["upper"], s["nulls"]) for f, s in zip(doc.schema, o["stats"].values())}
        partition = {int(k): v for k, v in o["partition"].items()}
        paths, sizes = tuple(p["path"] for p in o["parts"]), tuple(p["size"] for p in o["parts"])
        unit = Unit(doc.version * 1000 + i, paths, sizes, o["rows"], sequence, next_row, o["spec"], partition, stats)
        units.append(unit)
        next_row += o["rows"]
    return replace(doc, units=tuple(units), next_row_id=next_row, added=True)


def _deletes(document: Document, schema: Schema, units: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The units with the numbers of their deletes, which are positions of one unit, or the values of a key."""
    rows: list[dict[str, Any]] = []
    of_unit: list[list[int]] = [[] for _ in range(units.num_rows)]
    counts: list[int | None] = [0] * units.num_rows
    ids, sequences = units.column("unit").to_pylist(), units.column("sequence").to_pylist()
    for d in document.deletes:
        if d.kind == "equality":
            for i, sequence in enumerate(sequences):
                if sequence < d.sequence:
                    of_unit[i].append(len(rows))
                    counts[i] = None
            table = pa.table({d.key: list(d.values)})
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            inline = sink.getvalue().to_pybytes()
            rows.append({"delete": len(rows), "kind": EQUALITY, "inline": inline, "keys": [schema.index(d.key)]})
    for i, unit in enumerate(ids):
        positions = sorted({p for d in document.deletes for p in d.rows.get(unit, ())})
        if positions:
            of_unit[i].append(len(rows))
            counts[i] = None if counts[i] is None else len(positions)
            inline = serialize64(Bitmap.of(np.array(positions)))
            rows.append({"delete": len(rows), "kind": POSITIONS, "inline": inline, "rows": len(positions)})
    at = units.schema.get_field_index("deletes")
    lists = pa.array([n or None for n in of_unit], pa.list_(pa.int32()))
    units = units.set_column(at, units.schema.field(at), lists)
    at = units.schema.get_field_index("deleted")
    units = units.set_column(at, units.schema.field(at), pa.array(counts, pa.int64()))
    return units, pa.Table.from_pylist(rows, schema=deletes_schema())


FORMAT = Toy()
