"""Random histories of tables with column mapping against a model: rows are dicts, and deltalake reads the same ones."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh

MODE = "delta.columnMapping.mode"
NAMES = ("a", "a.b", "c d", "`", "x;y", "k=v", "(z)", "Ω", "tab\t", "nl\n", 'q"', "id.", "s")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@dataclass
class Life:
    """A table and its model. The first column is a key, the second may be the one that the table is partitioned by."""

    path: str
    random: random.Random
    columns: list[str] = field(default_factory=lambda: ["key", "p"])
    rows: list[dict[str, Any]] = field(default_factory=list)
    partition: str | None = None
    keys: int = 0

    def start(self) -> None:
        either = self.random.choice
        properties = {
            "delta.enableDeletionVectors": either(["true", "false"]),
            "delta.enableChangeDataFeed": either(["true", "false"]),
            "delta.checkpoint.writeStatsAsStruct": either(["true", "false"]),
            "delta.checkpoint.writeStatsAsJson": either(["true", "false"]),
            "delta.checkpointInterval": either(["2", "5"]),
        }
        mode = either(["name", "id", None])
        self.partition = either(["p", None])
        self.rows = self.made(4)
        given = properties if mode is None else {**properties, MODE: mode}
        by = [] if self.partition is None else [self.partition]
        bh.write(self.arrow(self.rows), self.path, format="delta", properties=given, partition_by=by)
        self.table = bh.open(self.path)
        if mode is None:
            self.table.set_properties({MODE: "name"})
        self.states = {self.table.version: self.state()}

    def state(self) -> tuple[Any, ...]:
        return copy.deepcopy((self.rows, self.columns, self.partition))

    def made(self, count: int) -> list[dict[str, Any]]:
        self.keys += count
        numbers = range(self.keys - count, self.keys)
        return [{c: self.random.randint(0, 9) for c in self.columns} | {self.columns[0]: n} for n in numbers]

    def arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.table({c: pa.array([r[c] for r in rows], pa.int64()) for c in self.columns})

    def fresh(self) -> str:
        return self.random.choice([n for n in NAMES if n not in self.columns])

    def append(self) -> None:
        new = self.made(2)
        self.table.append(self.arrow(new))
        self.rows += new

    def delete(self) -> None:
        column, value = self.random.choice(self.columns[1:]), self.random.randint(0, 9)
        self.table.delete(f"{quoted(column)} = {value}")
        self.rows = [r for r in self.rows if r[column] != value]

    def update(self) -> None:
        column, other = (self.random.choice(self.columns[1:]) for _ in range(2))
        self.table.update({column: "7"}, where=f"{quoted(other)} < 4")
        self.rows = [{**r, column: 7} if r[other] is not None and r[other] < 4 else r for r in self.rows]

    def upsert(self) -> None:
        new = [{**r, self.columns[1]: 8} for r in self.rows[:1]] + self.made(1)
        self.table.upsert(self.arrow(new), on=[self.columns[0]])
        self.rows = new + self.rows[1:]

    def rename(self) -> None:
        old, new = self.random.choice(self.columns), self.fresh()
        self.table.rename_column(quoted(old), new)
        self.columns = [new if c == old else c for c in self.columns]
        self.rows = [{new if c == old else c: v for c, v in r.items()} for r in self.rows]
        self.partition = new if self.partition == old else self.partition

    def drop(self) -> None:
        if len(self.columns) > 2:
            self.table.drop_column(quoted(gone := self.columns.pop()))
            self.rows = [{c: v for c, v in r.items() if c != gone} for r in self.rows]

    def add(self) -> None:
        self.columns = [*self.columns, new := self.fresh()]
        self.rows = [{**r, new: None} for r in self.rows]
        if self.random.random() < 0.5:
            self.table.add_column(quoted(new), "bigint")
        else:
            rows = self.made(1)
            self.table.append(self.arrow(rows), merge_schema=True)
            self.rows += rows

    def overwrite(self) -> None:
        self.columns = [*self.columns[:2], self.fresh()]
        self.rows = self.made(3)
        self.table.overwrite(self.arrow(self.rows), overwrite_schema=True)

    def compact(self) -> None:
        self.table.optimize()

    def restore(self) -> None:
        version = self.random.choice(sorted(self.states))
        self.table.restore(version=version)
        self.rows, self.columns, self.partition = copy.deepcopy(self.states[version])

    def step(self) -> None:
        steps = (self.append, self.delete, self.update, self.upsert, self.rename, self.rename, self.drop, self.add)
        self.random.choice((*steps, self.add, self.overwrite, self.compact, self.restore))()
        self.states[bh.open(self.path).version] = self.state()


@pytest.mark.spec("D-194", "D-196", "D-197")
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 40))])
def test_histories(delta, tmp_path: Path, seed):
    life = Life(str(tmp_path / "t"), random.Random(seed))
    life.start()
    for _ in range(12):
        life.step()
        table = bh.open(life.path)
        assert in_order(table.to_arrow().to_pylist()) == in_order(life.rows)
        assert in_order(delta.rows(life.path)) == in_order(life.rows)
        column, value = life.random.choice(life.columns), life.random.randint(0, 9)
        found = table.scan(where=f"{quoted(column)} = {value}").to_arrow().to_pylist()
        assert in_order(found) == in_order([r for r in life.rows if r[column] == value])
    version = life.random.choice(sorted(life.states))
    assert in_order(bh.open(life.path, version=version).to_arrow().to_pylist()) == in_order(life.states[version][0])
