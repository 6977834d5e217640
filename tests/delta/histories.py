"""Random histories of a table: who writes it, what they do, and the model, which is a list of rows."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import boathouse as bh
from boathouse.bits import system
from boathouse.delta.adapter import FORMAT
from boathouse.delta.log.cleanup import clean_log
from boathouse.errors import VersionNotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

MODE = "delta.columnMapping.mode"
NAMES = ("a", "a.b", "c d", "`", "x;y", "k=v", "(z)", "Ω", "tab\t", "nl\n", 'q"', "id.", "s")
FLAGS = ("delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.checkpoint.writeStatsAsStruct")
SETTINGS = {
    **dict.fromkeys(FLAGS, ("true", "false")),
    "delta.checkpoint.writeStatsAsJson": ("true", "false"),
    "delta.enableInCommitTimestamps": ("true", "false"),
    "delta.checkpointInterval": ("1", "2", "3", "5"),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.dataSkippingNumIndexedCols": ("0", "1", "32"),
}
Row = dict[str, Any]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def in_order(rows: Sequence[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


class Later(system.System):
    """A clock by which every version has expired."""

    def now_ms(self) -> int:
        return super().now_ms() + 40 * 86_400_000


class Writer(Protocol):
    """What can be done to a table; conditions and values are SQL text."""

    def append(self, rows: pa.Table, wider: bool = False) -> None: ...
    def replace(self, rows: pa.Table, where: str) -> None: ...
    def delete(self, where: str) -> None: ...
    def update(self, column: str, value: str, where: str) -> None: ...
    def merge(self, rows: pa.Table, key: str, where: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def drop(self, column: str) -> None: ...
    def add(self, column: str) -> None: ...
    def compact(self) -> None: ...
    def restore(self, version: int) -> None: ...
    def set(self, properties: Mapping[str, str]) -> None: ...


class Ours:
    """This library, in process or with a session on Spark."""

    def __init__(self, path: str, spark: Any = None) -> None:
        self.path, self.spark = path, spark

    @property
    def table(self) -> Any:
        return bh.open(self.path, spark=self.spark, allow_mixed_writers=True)

    def data(self, rows: pa.Table) -> Any:
        return rows if self.spark is None else self.spark.createDataFrame(rows)

    def append(self, rows: pa.Table, wider: bool = False) -> None:
        self.table.append(self.data(rows), merge_schema=wider)

    def replace(self, rows: pa.Table, where: str) -> None:
        self.table.overwrite(self.data(rows), where=where)

    def overwrite(self, rows: pa.Table) -> None:
        self.table.overwrite(self.data(rows), overwrite_schema=True)

    def delete(self, where: str) -> None:
        self.table.delete(where)

    def update(self, column: str, value: str, where: str) -> None:
        self.table.update({column: value}, where=where)

    def merge(self, rows: pa.Table, key: str, where: str) -> None:
        merge = self.table.merge(self.data(rows), f"target.{key} = source.{key}")
        merge.when_matched_delete(f"source.{where}").when_matched_update_all().when_not_matched_insert_all().execute()

    def rename(self, old: str, new: str) -> None:
        self.table.rename_column(quoted(old), new)

    def drop(self, column: str) -> None:
        self.table.drop_column(quoted(column))

    def add(self, column: str) -> None:
        self.table.add_column(quoted(column), "bigint")

    def compact(self) -> None:
        self.table.optimize()

    def restore(self, version: int) -> None:
        self.table.restore(version=version)

    def set(self, properties: Mapping[str, str]) -> None:
        self.table.set_properties(dict(properties))


class Reference:
    """delta-spark, in another process (`tests/interop/reference_spark.py`)."""

    def __init__(self, path: str, process: Any) -> None:
        self.t, self.process = f"delta.`{path}`", process

    def sql(self, *statements: str) -> None:
        self.process.sql(*statements)

    @staticmethod
    def _values(rows: pa.Table) -> tuple[str, str]:
        """The columns, and a query of the rows."""
        names = ", ".join(map(quoted, rows.column_names))
        texts = [", ".join("null" if v is None else str(v) for v in r.values()) for r in rows.to_pylist()]
        listed = ", ".join(f"({t})" for t in texts)
        casts = ", ".join(f"CAST({quoted(n)} AS bigint) AS {quoted(n)}" for n in rows.column_names)
        return names, f"SELECT {casts} FROM VALUES {listed} AS v({names})"

    def append(self, rows: pa.Table, wider: bool = False) -> None:
        names, query = self._values(rows)
        if wider:
            self.sql(f"ALTER TABLE {self.t} ADD COLUMN {quoted(rows.column_names[-1])} bigint")
        self.sql(f"INSERT INTO {self.t} ({names}) {query}")

    def replace(self, rows: pa.Table, where: str) -> None:
        names, query = self._values(rows)
        if self.process.rows(f"SELECT * FROM {self.t} LIMIT 0").num_columns > rows.num_columns:
            # It takes rows without the columns that it computes in plain inserts only.
            self.sql(f"DELETE FROM {self.t} WHERE {where}", f"INSERT INTO {self.t} ({names}) {query}")
            return
        self.sql(f"INSERT INTO {self.t} REPLACE WHERE {where} {query}")

    def delete(self, where: str) -> None:
        self.sql(f"DELETE FROM {self.t} WHERE {where}")

    def update(self, column: str, value: str, where: str) -> None:
        self.sql(f"UPDATE {self.t} SET {quoted(column)} = {value} WHERE {where}")

    def merge(self, rows: pa.Table, key: str, where: str) -> None:
        _, query = self._values(rows)
        every = ", ".join(f"t.{quoted(n)} = s.{quoted(n)}" for n in rows.column_names)
        names = ", ".join(map(quoted, rows.column_names))
        inserted = ", ".join(f"s.{quoted(n)}" for n in rows.column_names)
        self.sql(
            f"MERGE INTO {self.t} t USING ({query}) s ON t.{key} = s.{key} WHEN MATCHED AND s.{where} THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {every} WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({inserted})"
        )

    def rename(self, old: str, new: str) -> None:
        self.sql(f"ALTER TABLE {self.t} RENAME COLUMN {quoted(old)} TO {quoted(new)}")

    def drop(self, column: str) -> None:
        self.sql(f"ALTER TABLE {self.t} DROP COLUMN {quoted(column)}")

    def add(self, column: str) -> None:
        self.sql(f"ALTER TABLE {self.t} ADD COLUMN {quoted(column)} bigint")

    def compact(self) -> None:
        self.sql(f"OPTIMIZE {self.t}")

    def restore(self, version: int) -> None:
        self.sql(f"RESTORE TABLE {self.t} TO VERSION AS OF {version}")

    def set(self, properties: Mapping[str, str]) -> None:
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        self.sql(f"ALTER TABLE {self.t} SET TBLPROPERTIES ({listed})")

    def rows(self, at: str = "") -> list[Row]:
        return self.process.rows(f"SELECT * FROM {self.t}{at}").to_pylist()


@dataclass
class Life:
    """A table and its model. The first column is a key, the second may be the one that the table is partitioned by."""

    path: str
    random: random.Random
    writers: list[Writer] = field(default_factory=list)
    columns: list[str] = field(default_factory=lambda: ["key", "p"])
    rows: list[Row] = field(default_factory=list)
    partition: str | None = None
    generated: str | None = None
    """A column that is twice the key."""
    keys: int = 0
    done: list[str] = field(default_factory=list)
    """What happened, for the message of a failure."""

    def start(self) -> None:
        either = self.random.choice
        properties = {k: either(SETTINGS[k]) for k in self.random.sample(sorted(SETTINGS), 4)}
        mode = either(["name", "id", None])
        self.partition = either(["p", None])
        self.rows = self.made(4)
        given = properties if mode is None else {**properties, MODE: mode}
        by = [] if self.partition is None else [self.partition]
        bh.write(self.arrow(self.rows), self.path, format="delta", properties=given, partition_by=by)
        if mode is None:
            bh.open(self.path).set_properties({MODE: "name"})
        self.done.append(f"create {given} by {by}")
        self.begin()

    def begin(self) -> None:
        self.states = {bh.open(self.path).version: self.state()}

    def state(self) -> tuple[list[Row], list[str], str | None]:
        return copy.deepcopy((self.rows, self.columns, self.partition))

    def made(self, count: int) -> list[Row]:
        self.keys += count
        return [self.row(n) for n in range(self.keys - count, self.keys)]

    def row(self, key: int) -> Row:
        found = {c: self.random.choice([*range(10), None]) for c in self.columns} | {self.columns[0]: key}
        return self.computed(found)

    def computed(self, row: Row) -> Row:
        return row if self.generated is None else row | {self.generated: 2 * row[self.columns[0]]}

    def arrow(self, rows: list[Row]) -> pa.Table:
        names = [c for c in self.columns if c != self.generated]
        return pa.table({c: pa.array([r[c] for r in rows], pa.int64()) for c in names})

    def fresh(self) -> str:
        return self.random.choice([n for n in NAMES if n not in self.columns])

    @property
    def free(self) -> list[str]:
        """Columns that may be set."""
        return [c for c in self.columns[1:] if c != self.generated]

    def append(self, writer: Writer) -> None:
        new = self.made(2)
        writer.append(self.arrow(new))
        self.rows += new

    def delete(self, writer: Writer) -> None:
        column, value = self.random.choice(self.columns[1:]), self.random.randint(0, 9)
        writer.delete(f"{quoted(column)} = {value}")
        self.rows = [r for r in self.rows if r[column] != value]

    def delete_key(self, writer: Writer) -> None:
        if self.rows:
            key = self.random.choice(self.rows)[self.columns[0]]
            writer.delete(f"{quoted(self.columns[0])} = {key}")
            self.rows = [r for r in self.rows if r[self.columns[0]] != key]

    def update(self, writer: Writer) -> None:
        column, other = self.random.choice(self.free), self.random.choice(self.columns[1:])
        writer.update(column, f"coalesce({quoted(column)}, 0) + 1", f"{quoted(other)} < 4")
        hit = [r for r in self.rows if r[other] is not None and r[other] < 4]
        for r in hit:
            r[column] = (r[column] or 0) + 1

    def merge(self, writer: Writer) -> None:
        """Rows of the table are updated or, where the source says so, deleted; others are inserted."""
        key, says = self.columns[0], self.free[0]
        old = [self.row(r[key]) for r in self.random.sample(self.rows, min(3, len(self.rows)))]
        new = [*old, *self.made(1)]
        writer.merge(self.arrow(new), quoted(key), f"{quoted(says)} < 4")
        gone = {r[key] for r in old}
        kept = [r for r in old if r[says] is None or r[says] >= 4]
        self.rows = [r for r in self.rows if r[key] not in gone] + kept + new[len(old) :]

    def replace(self, writer: Writer) -> None:
        column, value = self.free[0], self.random.randint(0, 9)
        new = [r | {column: value} for r in self.made(2)]
        writer.replace(self.arrow(new), f"{quoted(column)} = {value}")
        self.rows = [r for r in self.rows if r[column] != value] + new

    def rename(self, writer: Writer) -> None:
        named = [c for c in self.columns if self.generated is None or c in self.free]
        old, new = self.random.choice(named), self.fresh()
        writer.rename(old, new)
        self.columns = [new if c == old else c for c in self.columns]
        self.rows = [{new if c == old else c: v for c, v in r.items()} for r in self.rows]
        self.partition = new if self.partition == old else self.partition

    def drop(self, writer: Writer) -> None:
        if len(self.columns) > 2 and (gone := self.columns[-1]) in self.free:
            writer.drop(gone)
            self.columns = self.columns[:-1]
            self.rows = [{c: v for c, v in r.items() if c != gone} for r in self.rows]

    def add(self, writer: Writer) -> None:
        if len(self.columns) > 6:
            return
        self.columns = [*self.columns, new := self.fresh()]
        self.rows = [{**r, new: None} for r in self.rows]
        if self.random.random() < 0.5:
            writer.add(new)
        else:
            rows = self.made(1)
            writer.append(self.arrow(rows), True)
            self.rows += rows

    def overwrite(self, writer: Writer) -> None:
        if not isinstance(writer, Ours) or self.generated is not None:
            return
        self.columns = [*self.columns[:2], self.fresh()]
        self.rows = self.made(3)
        writer.overwrite(self.arrow(self.rows))

    def compact(self, writer: Writer) -> None:
        writer.compact()

    def restore(self, writer: Writer) -> None:
        version = self.random.choice(sorted(self.states))
        writer.restore(version)
        self.rows, self.columns, self.partition = copy.deepcopy(self.states[version])

    def set(self, writer: Writer) -> None:
        key = self.random.choice(sorted(SETTINGS))
        writer.set({key: self.random.choice(SETTINGS[key])})

    def compact_log(self, writer: Writer) -> None:
        there = sorted(self.states)
        if isinstance(writer, Ours) and there[-1] > there[0]:
            writer.table.compact_log(self.random.choice(range(there[0], there[-1])), there[-1])

    def clean_log(self, writer: Writer) -> None:
        """What is left begins at a checkpoint, and is all that follows it."""
        snapshot = FORMAT.open(TableContext(Location(f"file://{self.path}"), Stores()))
        with system.use(Later()):
            clean_log(snapshot)
        versions = sorted(self.states)
        gone = [v for v in versions if not self.readable(v)]
        assert gone == versions[: len(gone)] and len(gone) < len(versions), (gone, versions)
        self.states = {v: s for v, s in self.states.items() if v not in gone}

    def readable(self, version: int) -> bool:
        try:
            bh.open(self.path, version=version)
        except VersionNotFoundError:
            return False
        return True

    def step(self) -> None:
        changes = (self.append, self.append, self.delete, self.delete_key, self.delete_key, self.update, self.merge)
        others = (self.replace, self.rename, self.drop, self.add, self.overwrite, self.compact, self.restore)
        of_log = (self.set, self.set, self.compact_log, self.clean_log)
        do, writer = self.random.choice((*changes, *others, *of_log)), self.random.choice(self.writers)
        self.done.append(f"{do.__name__} by {type(writer).__name__} of {self.columns}")
        do(writer)
        self.states[bh.open(self.path).version] = self.state()

    def agree(self, found: list[Row], what: str, wanted: list[Row] | None = None) -> None:
        wanted = self.rows if wanted is None else wanted
        assert in_order(found) == in_order(wanted), "\n".join([what, self.path, *self.done])

    def look(self, spark: Any = None) -> None:
        """The newest version with and without a condition, and an older one."""
        table = bh.open(self.path)
        self.agree(table.to_arrow().to_pylist(), "we read")
        assert table.schema.names == tuple(self.columns)
        assert table.count() == len(self.rows)
        column, value = self.random.choice(self.columns), self.random.randint(0, 9)
        where = f"{quoted(column)} = {value}"
        wanted = [r for r in self.rows if r[column] == value]
        self.agree(table.scan(where=where).to_arrow().to_pylist(), f"we read {where}", wanted)
        version = self.random.choice(sorted(self.states))
        older = bh.open(self.path, version=version)
        self.agree(older.to_arrow().to_pylist(), f"we read version {version}", self.states[version][0])
        if spark is not None:
            self.agree(table.to_spark(spark).toArrow().to_pylist(), "we read on Spark")
            found = table.scan(where=where).to_spark(spark).toArrow().to_pylist()
            self.agree(found, f"we read on Spark {where}", wanted)
            found = table.to_spark(spark).where(where).toArrow().to_pylist()
            self.agree(found, f"we read on Spark, later {where}", wanted)
            self.agree(older.to_spark(spark).toArrow().to_pylist(), "we read on Spark, older", self.states[version][0])
        times = [e.timestamp_ms for e in table.history()]
        assert times == sorted(times, reverse=True)

    def rebuilt(self) -> None:
        """The newest checkpoint alone, without the entries below it, has the same rows."""
        log = Path(self.path) / "_delta_log"
        hint = log / "_last_checkpoint"
        if not hint.exists():
            return
        version = json.loads(hint.read_text())["version"]
        held = {p: p.read_bytes() for p in log.glob("*.json") if p.stem.isdigit() and int(p.stem) < version}
        for path in held:
            path.unlink()
        self.agree(bh.open(self.path).to_arrow().to_pylist(), f"we read from the checkpoint of version {version}")
        for path, data in held.items():
            path.write_bytes(data)
