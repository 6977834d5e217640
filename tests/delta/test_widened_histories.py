"""Random histories in which columns get wider types too: mapped, with vectors, checkpoints of both forms, restored."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.schema import to_arrow
from boathouse.types.text import parse_schema

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from histories import Life, Ours, Row, Writer, quoted  # noqa: E402
from test_histories import table  # noqa: E402

WIDER = {
    "tinyint": ("smallint", "int", "bigint", "double", "decimal(12,2)"),
    "smallint": ("int", "bigint", "double", "decimal(10,0)"),
    "int": ("bigint", "double", "decimal(12,2)"),
    "bigint": ("decimal(20,0)", "decimal(24,4)"),
    "float": ("double",),
    "decimal(12,2)": ("decimal(14,2)", "decimal(14,4)"),
    "decimal(20,0)": ("decimal(24,4)", "decimal(38,10)"),
}


class Widening(Life):
    """The values of the model are whole numbers, which every type here holds."""

    def start(self) -> None:
        self.types = {"key": "bigint", "p": self.random.choice(["tinyint", "smallint"])}
        super().start()
        self.kinds = {bh.open(self.path).version: dict(self.types)}

    def arrow(self, rows: list[Row]) -> pa.Table:
        schema = to_arrow(parse_schema(", ".join(f"{quoted(c)} {self.types[c]}" for c in self.columns)))
        columns = []
        for f in schema:
            as_held = Decimal if pa.types.is_decimal(f.type) else float if pa.types.is_floating(f.type) else int
            columns.append(pa.array([None if r[f.name] is None else as_held(r[f.name]) for r in rows], f.type))
        return pa.table(columns, schema=schema)

    def step(self) -> None:
        super().step()
        self.kinds[bh.open(self.path).version] = dict(self.types)
        if self.random.random() < 0.4:
            self.widen(self.random.choice(self.writers))
        self.kinds[bh.open(self.path).version] = dict(self.types)

    def widen(self, writer: Writer) -> None:
        column = self.random.choice(self.columns[1:])
        wider = WIDER.get(self.types[column])
        if not wider:
            return
        self.types[column] = self.random.choice(wider)
        writer.set({"delta.enableTypeWidening": "true"})
        bh.open(self.path).widen_column(quoted(column), self.types[column])
        self.done.append(f"widen {column} to {self.types[column]}")
        self.states[bh.open(self.path).version] = self.state()

    def fresh(self) -> str:
        found = super().fresh()
        self.types[found] = self.random.choice(["tinyint", "smallint", "int", "float", "decimal(12,2)"])
        return found

    def add(self, writer: Writer) -> None:
        before = self.columns
        super().add(writer)
        if self.columns != before and str(bh.open(self.path).schema.fields[-1].type) == "bigint":
            self.types[self.columns[-1]] = "bigint"

    def rename(self, writer: Writer) -> None:
        before = self.columns
        super().rename(writer)
        self.types |= {new: self.types[old] for old, new in zip(before, self.columns)}

    def restore(self, writer: Writer) -> None:
        version = self.random.choice(sorted(self.states))
        writer.restore(version)
        self.rows, self.columns, self.partition = (type(v)(v) if v is not None else v for v in self.states[version])
        self.rows = [dict(r) for r in self.rows]
        self.types = dict(self.kinds[version])

    def agree(self, found: list[Row], what: str, wanted: Sequence[Row] | None = None) -> None:
        whole: list[Row] = [{c: None if v is None else int(v) for c, v in r.items()} for r in found]
        assert all(v is None or v == w for r, s in zip(found, whole) for v, w in zip(r.values(), s.values()))
        super().agree(whole, what, None if wanted is None else list(wanted))

    def look(self, spark: Any = None) -> None:
        super().look(spark)
        types = {f.name: str(f.type) for f in bh.open(self.path).schema}
        assert types == {c: self.types[c] for c in self.columns}, "\n".join(self.done)


def live(seed: int, steps: int, spark: Any = None) -> None:
    with table() as path:
        life = Widening(path, random.Random(seed), [Ours(path)] if spark is None else [Ours(path), Ours(path, spark)])
        life.start()
        for _ in range(steps):
            life.step()
            life.look(spark)
        life.rebuilt()


@pytest.mark.spec("D-305")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 60))])
def test_widened_histories(seed):
    live(seed, 20)


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_widened_histories_on_spark(spark, seed):
    live(seed, 6 if seed == 1 else 15, spark)
