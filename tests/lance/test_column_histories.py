"""Histories of columns by turns: ours and pylance's commits on one table, which has the rows of a model after each."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

lance = pytest.importorskip("lance")


def struct_of(x: pa.DataType) -> pa.DataType:
    return pa.struct([("x", x), ("y", pa.string())])


class Model:
    """The rows by their key `k`, as dicts of the columns that there are."""

    def __init__(self, kit, seed: int, structs: bool) -> None:
        self.kit, self.rng = kit, random.Random(seed)
        self.columns: dict[str, pa.DataType] = {"k": pa.int64(), "s": pa.string()}
        if structs:
            self.columns["n"] = struct_of(pa.int64())
        self.rows: dict[int, dict[str, object]] = {}
        self.next = 0
        self.names = 0

    def new(self, count: int) -> pa.Table:
        keys = range(self.next, self.next + count)
        self.next += count
        rows = [{n: self.value(n, k) for n in self.columns} for k in keys]
        self.rows |= {row["k"]: row for row in rows}
        return pa.Table.from_pylist(rows, pa.schema(list(self.columns.items())))

    def value(self, name: str, key: int) -> object:
        if name == "k":
            return key
        kind = self.columns[name]
        if name == "n":
            x = None if key % 3 == 0 else str(key) if pa.types.is_string(kind.field("x").type) else key
            return {"x": x, "y": f"y{key}"} if key % 5 else None
        found = None if self.rng.random() < 0.2 else key % 100
        return found if found is None or not pa.types.is_string(kind) else str(found)

    def others(self) -> list[str]:
        return [n for n in self.columns if n not in ("k", "n")]

    def numbers(self) -> list[str]:
        return [n for n in self.others() if pa.types.is_integer(self.columns[n])]

    def fresh(self) -> str:
        self.names += 1
        return self.rng.choice([f"c{self.names}", f"Ü{self.names} x"])

    # Each step is made by us or by pylance.

    def append(self, by_us: bool) -> None:
        data = self.new(self.rng.choice([1, 7, 30]))
        if by_us:
            self.kit.open().append(data)
        else:
            self.kit.dataset().insert(data)

    def delete(self, by_us: bool) -> None:
        modulus, rest = self.rng.randint(2, 9), self.rng.randint(0, 3)
        (self.kit.open() if by_us else self.kit.dataset()).delete(f"k % {modulus} = {rest}")
        self.rows = {k: row for k, row in self.rows.items() if k % modulus != rest}

    def update(self, by_us: bool) -> None:
        if not self.numbers():
            return
        name, low = self.rng.choice(self.numbers()), self.rng.randrange(self.next)
        (self.kit.open() if by_us else self.kit.dataset()).update({name: "7"}, where=f"k >= {low} AND k < {low + 9}")
        for k in range(low, low + 9):
            if k in self.rows:
                self.rows[k][name] = 7

    def add(self, by_us: bool) -> None:
        """An expression, a function, or a join."""
        name, kind = self.fresh(), self.rng.choice(["expression", "function", "join"])
        self.columns[name] = pa.int64()
        if kind == "join":
            keys = [*self.rng.sample(sorted(self.rows), min(9, len(self.rows))), -1]
            data = pa.table({"k": pa.array(keys, pa.int64()), name: pa.array(keys, pa.int64())})
            if by_us:
                self.kit.open().add_columns(data, on="k")
            else:
                self.kit.dataset().merge(data, "k")
            for k, row in self.rows.items():
                row[name] = k if k in keys else None
            return
        for k, row in self.rows.items():
            row[name] = k * 3
        if kind == "expression":
            (self.kit.open() if by_us else self.kit.dataset()).add_columns({name: "k * 3"})
        elif by_us:
            self.kit.open().add_columns(lambda b: {name: [k * 3 for k in b["k"].to_pylist()]}, columns=["k"])
        else:
            made = lance.batch_udf(output_schema=pa.schema([(name, pa.int64())]))(
                lambda b: pa.record_batch([pa.array([k * 3 for k in b["k"].to_pylist()], pa.int64())], [name])
            )
            self.kit.dataset().add_columns(made, read_columns=["k"])

    def empty(self, by_us: bool) -> None:
        name = self.fresh()
        if by_us:
            self.kit.open().add_column(name, "bigint")
        else:
            self.kit.dataset().add_columns(pa.field(name, pa.int64()))
        self.columns[name] = pa.int64()
        for row in self.rows.values():
            row[name] = None

    def cast(self, by_us: bool) -> None:
        name = self.rng.choice(self.others())
        before = self.columns[name]
        text = pa.types.is_string(before)
        to = pa.int64() if text else self.rng.choice([pa.int32(), pa.int64(), pa.string()] if by_us else [pa.int32()])
        if to == before:
            return
        if by_us:
            self.kit.open().cast_column(f"`{name}`", {"int32": "int", "int64": "bigint"}.get(str(to), "string"))
        elif not text:
            self.kit.dataset().alter_columns({"path": name, "data_type": to})
        else:
            return
        self.columns[name] = to
        for row in self.rows.values():
            if row[name] is not None:
                row[name] = str(row[name]) if pa.types.is_string(to) else int(row[name])

    def cast_field(self, by_us: bool) -> None:
        if "n" not in self.columns:
            return
        before = self.columns["n"].field("x").type
        text = pa.types.is_string(before)
        to = pa.int64() if text else self.rng.choice([pa.int32(), pa.int64(), pa.string()] if by_us else [pa.int32()])
        if to == before or (text and not by_us):
            return
        if by_us:
            self.kit.open().cast_column("n.x", {"int32": "int", "int64": "bigint"}.get(str(to), "string"))
        else:
            self.kit.dataset().alter_columns({"path": "n.x", "data_type": to})
        self.columns["n"] = struct_of(to)
        for row in self.rows.values():
            if row["n"] is not None and row["n"]["x"] is not None:
                x = row["n"]["x"]
                row["n"] = row["n"] | {"x": str(x) if pa.types.is_string(to) else int(x)}

    def drop(self, by_us: bool) -> None:
        if len(self.columns) < 4:
            return
        name = self.rng.choice(self.others())
        if by_us:
            self.kit.open().drop_column(f"`{name}`")
        else:
            self.kit.dataset().drop_columns([name])
        del self.columns[name]
        for row in self.rows.values():
            del row[name]

    def compact(self, by_us: bool) -> None:
        if by_us:
            self.kit.open().optimize()
        else:
            self.kit.dataset().optimize.compact_files()

    def index(self, by_us: bool) -> None:
        self.kit.dataset().create_scalar_index("k", "BTREE", replace=True)

    def check(self, step: str) -> None:
        dataset = self.kit.dataset()
        dataset.validate()
        wanted = [{n: row[n] for n in self.columns} for _, row in sorted(self.rows.items())]
        for found in (dataset.to_table(), self.kit.read()):
            assert {f.name: f.type for f in found.schema} == self.columns, step
            assert sorted((r for r in found.to_pylist()), key=lambda r: r["k"]) == [
                {n: row[n] for n in found.column_names} for row in wanted
            ], step
        for key in self.rng.sample(range(self.next), 2):
            found = dataset.to_table(filter=f"k = {key}").to_pylist()
            assert len(found) == (key in self.rows), step


STEPS = ["append", "delete", "update", "add", "add", "empty", "cast", "cast", "cast_field", "drop", "compact", "index"]


@pytest.mark.few(1)
@pytest.mark.spec("L-025", "L-043")
@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 64))])
def test_histories_of_columns(kit, seed):
    version, stable = ["2.0", "2.1", "2.2"][seed % 3], bool(seed % 2)
    model = Model(kit, seed, structs=version != "2.0")
    kit.pylance(model.new(60), enable_stable_row_ids=stable, max_rows_per_file=25, data_storage_version=version)
    for number in range(12):
        name, by_us = model.rng.choice(STEPS), model.rng.random() < 0.6
        getattr(model, name)(by_us)
        if not model.rows:
            return
        model.check(f"step {number}: {name} by {'us' if by_us else 'pylance'}")
