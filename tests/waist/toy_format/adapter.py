"""The toy as a TableFormat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.bits import entropy
from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.compute.prune import Pruner
from boathouse.errors import TableNotFoundError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.expr.tree import columns as columns_of
from boathouse.table import change as ch
from boathouse.table.format import Attempt, Capabilities, HistoryEntry, Winner
from boathouse.table.location import NEWEST, At, Location
from boathouse.table.plan import ScanPlan, Tally
from boathouse.table.tasks import POSITION, UNIT, ReadColumn, ReadSpec, ScanTask, WriteContext
from boathouse.table.units import LANCE, VECTOR, deletes_schema, files_schema, partition_type, stats_type
from boathouse.types import Field, Partitioning, PartitionSpec, Schema
from boathouse.types.evolution import with_field
from toy_format import tasks as toy_tasks
from toy_format.state import TABLES, Deletes, Document, State, Unit

MAIN = "main"


@dataclass(frozen=True)
class ToySnapshot:
    location: Location
    document: Document
    ref: str
    format: str = "toy"

    version = property(lambda s: s.document.version)
    timestamp_ms = property(lambda s: s.document.timestamp_ms)
    identity = property(lambda s: s.document.identity)
    token = property(lambda s: str(s.document.version))
    schema = property(lambda s: s.document.schema)
    partitioning = property(lambda s: s.document.partitioning)
    properties = property(lambda s: s.document.properties)

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


@dataclass(frozen=True)
class SwapCommitter:
    state: State
    ref: str

    def publish(self, attempt: Attempt) -> Any:
        return "won" if self.state.swap(self.ref, attempt.replaces, PENDING.pop(attempt.uri)) else "lost"


PENDING: dict[str, Document] = {}


class Toy:
    name = "toy"
    capabilities = Capabilities(deletes="vectors", partitions=True, transforms=True)

    def detect(self, location: Location, stores: Any) -> bool:
        return location.uri in TABLES and MAIN in TABLES[location.uri].refs

    def load(self, location: Location, stores: Any, at: At = NEWEST) -> ToySnapshot:
        state = TABLES.get(location.uri)
        ref = at.ref or MAIN
        if state is None or ref not in state.refs:
            raise TableNotFoundError("no toy here", where=location.uri)
        version = state.refs[ref] if at.version is None else at.version
        if at.timestamp_ms is not None:
            version = max((v for v, d in state.versions.items() if d.timestamp_ms <= at.timestamp_ms), default=-1)
        if version not in state.versions:
            raise VersionNotFoundError(f"no version {version}", where=location.uri)
        return ToySnapshot(location, state.versions[version], ref)

    def newest(self, snapshot: ToySnapshot, stores: Any) -> ToySnapshot:
        return self.load(snapshot.location, stores, At(ref=snapshot.ref))

    def plan(
        self,
        snapshot: ToySnapshot,
        stores: Any,
        columns: Any = None,
        where: Any = None,
        hidden: Any = (),
        map: Any = None,
    ) -> ScanPlan:
        output = tuple(snapshot.schema.names if columns is None else columns)
        needed = [*output, *(p[0] for p in (columns_of(where) if where is not None else ()) if p[0] not in output)]
        fields = [snapshot.schema.field(n) for n in dict.fromkeys(needed)]
        read = ReadSpec(
            "toy",
            data_files(stores),
            tuple(ReadColumn(f.name, f.type, f.nullable, (f.name,)) for f in fields),
            output,
            tuple(hidden),
            where,
        )
        tally = Tally()
        units = pa.Table.from_batches(list(snapshot.files((), where, map, tally)))
        units, deletes = _resolve(snapshot, read, units, map)
        return ScanPlan(snapshot, read, units, deletes, where, tally)

    def writable(self, snapshot: Any, stores: Any, allow_mixed_writers: bool = False) -> None: ...

    def rewritable(self, snapshot: Any, operation: str) -> None: ...

    def create(self, location: Location, create: ch.CreateTable, snapshot: Any = None) -> tuple[Schema, PartitionSpec]:
        return create.schema, PartitionSpec(
            0 if snapshot is None else len(snapshot.partitioning.specs), create.partition_by
        )

    def evolve(self, snapshot: ToySnapshot, edits: Sequence[ch.Edit]) -> ToySnapshot:
        document = snapshot.document
        for edit in edits:
            document = _apply(document, edit)
        return replace(snapshot, document=replace(document, metadata_changed=snapshot.document.metadata_changed))

    def write_context(
        self, location: Any, stores: Any, schema: Any, spec: Any, properties: Any, write_id: str, snapshot: Any = None
    ) -> WriteContext:
        return WriteContext("toy", data_files(stores), schema, spec, f"{location.uri}/data", write_id)

    def committer(self, location: Location, stores: Any) -> SwapCommitter:
        return SwapCommitter(TABLES.setdefault(location.uri, State()), MAIN)

    def head(self, change: ch.Change, stores: Any) -> ToySnapshot | None:
        return self.load(change.location, stores) if self.detect(change.location, stores) else None

    def winners(self, change: ch.Change, head: ToySnapshot, stores: Any) -> list[Winner] | None:
        state, found, at = TABLES[change.location.uri], [], head.document
        while at.version != change.planned.version:
            found.append(Winner(at.version, at.write_id, at))
            if at.parent is None or at.parent not in state.versions:
                return None
            at = state.versions[at.parent]
        return found[::-1]

    def check(self, change: ch.Change, winners: Any, head: Any, stores: Any) -> ch.Verdict:
        for w in winners:
            doc: Document = w.document
            if doc.metadata_changed:
                return ch.Stop((ch.Conflict("metadata-changed", w.version, "schema or properties changed"),))
            if change.txn and doc.txns.get(change.txn[0]) == change.txn[1]:
                return ch.Stop((ch.Conflict("transaction", w.version, "already applied"),))
            touched = {u.parts[0] for u in change.planned.document.units if u.id in doc.touched}
            if change.reads.whole or touched & change.reads.units:
                return ch.Replan((ch.Conflict("delete-delete", w.version, "a unit changed", tuple(touched)),))
            if change.reads.predicates and doc.added:
                return ch.Replan((ch.Conflict("concurrent-append", w.version, "rows were added"),))
        return ch.Rebase()

    def prepare(self, change: ch.Change, head: ToySnapshot | None, stores: Any) -> Attempt:
        state = TABLES.setdefault(change.location.uri, State())
        document = _next(change, None if head is None else head.document, state.next_version())
        uri = f"memory://toy/{entropy.current().uuid4()}"
        PENDING[uri] = document
        return Attempt(uri, b"", document.version, replaces=None if head is None else head.token)

    def look_back(self, attempt: Attempt, change: ch.Change, stores: Any) -> Any:
        return "won", self.head(change, stores)  # a swap succeeds on the head alone

    def published(self, attempt: Any, change: Any, stores: Any) -> None: ...

    def history(self, snapshot: ToySnapshot, stores: Any, limit: int | None = None) -> Iterator[HistoryEntry]:
        at: Document | None = snapshot.document
        while at is not None:
            yield HistoryEntry(
                at.version,
                at.timestamp_ms,
                at.operation,
                write_id=at.write_id,
                message=at.message,
                metadata=at.metadata,
            )
            at = TABLES[snapshot.location.uri].versions.get(at.parent)

    def find_write(self, location: Location, stores: Any, write_id: str) -> int | None:
        return next((v for v, d in TABLES[location.uri].versions.items() if d.write_id == write_id), None)

    def app_version(self, snapshot: ToySnapshot, stores: Any, app: str) -> int | None:
        return snapshot.document.txns.get(app)

    def referenced(self, location: Location, stores: Any) -> Iterator[str]:
        for d in TABLES[location.uri].versions.values():
            for u in d.units:
                yield from u.parts


def _next(change: ch.Change, head: Document | None, version: int) -> Document:
    clock = entropy.current()
    if head is None:
        create = change.edit(ch.CreateTable)
        by = Partitioning((PartitionSpec(0, create.partition_by),))
        identity = str(clock.uuid4())
        head = Document(0, None, 0, identity, "", None, create.schema, by, create.properties, (), (), 0)
        parent = None
    else:
        parent = head.version
    doc = replace(head, version=version, parent=parent, timestamp_ms=clock.now_ms(), operation=change.operation,
                  write_id=change.write_id, touched=frozenset(), added=False, metadata_changed=False,
                  message=change.message, metadata=change.metadata)  # fmt: skip
    if change.txn:
        doc = replace(doc, txns={**doc.txns, change.txn[0]: change.txn[1]})
    for edit in change.edits:
        doc = _apply(doc, edit)
    return doc


def _apply(doc: Document, edit: ch.Edit) -> Document:
    match edit:
        case ch.RemoveAll():
            return replace(doc, units=(), deletes=(), touched=frozenset(u.id for u in doc.units))
        case ch.RemoveUnits(units):
            gone = frozenset(units.column("unit").to_pylist())
            return replace(doc, units=tuple(u for u in doc.units if u.id not in gone), touched=doc.touched | gone)
        case ch.SetDeletes(units, vectors):
            ids = units.column("unit").to_pylist()
            rows = {u: tuple(deserialize64(v).positions().tolist()) for u, v in zip(ids, vectors)}
            new = Deletes("position", doc.version, rows)
            return replace(doc, deletes=(*doc.deletes, new), touched=doc.touched | frozenset(ids))
        case ch.AddFiles(outcomes):
            return _add(doc, outcomes)
        case ch.ReplaceSchema(schema, fields):
            spec = PartitionSpec(len(doc.partitioning.specs), fields or ())
            specs = Partitioning((*doc.partitioning.specs, spec), spec.id)
            return replace(doc, schema=schema, partitioning=specs, metadata_changed=True)
        case ch.AddColumn(name, type, parent):
            fields = with_field(doc.schema.fields, parent, Field(name, type))
            return replace(doc, schema=Schema(fields), metadata_changed=True)
        case ch.SetType(path):
            raise UnsupportedFeatureError(f"the toy cannot widen `{'.'.join(path)}`")
        case ch.SetProperties(properties):
            merged = {k: v for k, v in {**doc.properties, **properties}.items() if v is not None}
            return replace(doc, properties=merged, metadata_changed=True)
    return doc


def _add(doc: Document, outcomes: pa.Table) -> Document:
    units = list(doc.units)
    next_row = doc.next_row_id
    for i, o in enumerate(outcomes.to_pylist()):
        stats = {f.name: (s["lower"], s["upper"], s["nulls"]) for f, s in zip(doc.schema, o["stats"].values())}
        partition = {int(k): v for k, v in o["partition"].items()}
        paths, sizes = tuple(p["path"] for p in o["parts"]), tuple(p["size"] for p in o["parts"])
        unit = Unit(doc.version * 1000 + i, paths, sizes, o["rows"], doc.version, next_row, o["spec"], partition, stats)
        units.append(unit)
        next_row += o["rows"]
    return replace(doc, units=tuple(units), next_row_id=next_row, added=True)


def _resolve(snapshot: ToySnapshot, read: ReadSpec, units: pa.Table, map: Any) -> tuple[pa.Table, pa.Table]:
    """Position and equality deletes as one inline vector a unit."""
    rows, named = [], []
    for unit in units.to_pylist():
        positions: set[int] = set()
        for d in snapshot.document.deletes:
            if d.kind == "position":
                positions |= set(d.rows.get(unit["unit"], ()))
            elif d.sequence > unit["sequence"]:
                key = snapshot.schema.field(d.key)
                one = replace(
                    read,
                    columns=(ReadColumn(key.name, key.type, True, (key.name,)),),
                    output=(key.name,),
                    hidden=(UNIT, POSITION),
                    where=None,
                )
                at = units.column("unit").to_pylist().index(unit["unit"])
                plain = units.slice(at, 1).set_column(
                    units.schema.get_field_index("deletes"), "deletes", pa.array([None], pa.list_(pa.int32()))
                )
                for batch in toy_tasks.read(ScanTask(one, plain, deletes_schema().empty_table())):
                    hit = pc.is_in(batch.column(0), pa.array(d.values, batch.column(0).type))
                    positions |= set(batch.column(POSITION).filter(hit).to_pylist())
        named.append([len(rows)] if positions else None)
        if positions:
            inline = serialize64(Bitmap.of(np.array(sorted(positions))))
            rows.append({"delete": len(rows), "kind": VECTOR, "inline": inline, "rows": len(positions)})
    at = units.schema.get_field_index("deletes")
    counts = [deserialize64(rows[n[0]]["inline"]).positions().size if n else 0 for n in named]
    units = units.set_column(at, units.schema.field(at), pa.array(named, pa.list_(pa.int32())))
    at = units.schema.get_field_index("deleted")
    units = units.set_column(at, units.schema.field(at), pa.array(counts, pa.int64()))
    return units, pa.Table.from_pylist(rows, schema=deletes_schema())


FORMAT = Toy()
