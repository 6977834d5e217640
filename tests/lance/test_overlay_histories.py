"""Histories by turns on tables with data overlay files: ours and pylance's commits on one table, which has the rows of
a model after each, by a scan and by conditions that an index may answer, in both."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from .overlaid import file_of, overlaid

lance = pytest.importorskip("lance")
if not hasattr(lance.LanceOperation, "DataOverlay"):
    pytest.skip("this pylance has no overlays", allow_module_level=True)

STRUCT = pa.struct([("x", pa.int64()), ("y", pa.string())])
VECTOR = pa.list_(pa.float32(), 3)
TYPES = {"k": pa.int64(), "i": pa.int64(), "d": pa.float64(), "s s": pa.string(), "n": STRUCT, "v": VECTOR}
FLOATS = [0.5, -0.0, 0.0, math.nan, math.inf, -math.inf, 5e-324, 1e308, None]
TEXTS = ["", "a", "\u00fc \U0001f40b", "x" * 300, "NULL", None]


class Model:
    """The rows by their key `k`, as dicts."""

    def __init__(self, kit, seed: int, version: str) -> None:
        self.kit, self.rng, self.version = kit, random.Random(seed), version
        self.rows: dict[int, dict[str, object]] = {}
        self.next = 0
        self.columns = dict(TYPES)
        self.past: dict[int, tuple[dict[str, pa.DataType], dict[int, dict[str, object]]]] = {}

    def value(self, name: str) -> object:
        rng = self.rng
        match name:
            case "d":
                found = rng.choice(FLOATS)
                return found if self.columns["d"] == pa.float64() else self.rounded(found)
            case "s s":
                return rng.choice(TEXTS)
            case "n":  # never null itself: what that means in an overlay is not certain
                return {"x": self.value("i"), "y": self.value("s s")}
            case "v":
                return [float(rng.randint(-9, 9)) for _ in range(3)]
        return rng.choice([None, 0, -(2**63), 2**63 - 1, *range(1, 30)])

    def data(self, keys: list[int]) -> pa.Table:
        """New rows of these keys."""
        rows = [{n: k if n == "k" else self.value(n) for n in self.columns} for k in keys]
        self.rows |= {row["k"]: row for row in rows}
        return pa.Table.from_pylist(rows, pa.schema(list(self.columns.items())))

    def new(self, count: int) -> pa.Table:
        self.next += count
        return self.data(list(range(self.next - count, self.next)))

    # Each step is made by us or by pylance.

    def overlay(self, by_us: bool) -> None:
        """Of one to three columns or fields: the same rows, or those of each. Some are deleted ones."""
        fragment = self.rng.choice(self.kit.dataset().get_fragments())
        keys = self.live(fragment)
        leaves = self.leaves()
        picked = sorted(self.rng.sample(sorted(leaves), self.rng.randint(1, min(3, len(leaves)))), key=leaves.get)
        rows = fragment.physical_rows
        count = self.rng.randint(1, min(rows, 9))
        sets = [sorted(self.rng.sample(range(rows), count)) for _ in picked]
        if self.rng.random() < 0.5:
            sets = [sets[0]] * len(picked)
        columns: dict[str, list] = {}
        for path, offsets in zip(picked, sets):
            top, _, member = path.partition(".")
            values = [self.value(top) for _ in offsets]
            for offset, value in zip(offsets, values):
                row = self.rows[keys[offset]] if offset in keys else None
                if row is not None and member:
                    row[top] = row[top] | {member: value[member]}
                elif row is not None:
                    row[top] = value
            if not member:
                columns[top] = pa.array(values, self.columns[top])
                continue
            part = pa.array([v[member] for v in values], STRUCT.field(member).type)
            before = columns.get(top)
            members = {f.name: before.field(f.name) for f in before.type} if before is not None else {}
            members |= {member: part}
            columns[top] = pa.StructArray.from_arrays(list(members.values()), list(members))
        ids = [leaves[p] for p in picked]
        if self.version == "2.0" and any("." in p for p in picked):  # the struct itself has a column
            at = next(i for i, p in enumerate(picked) if "." in p)
            ids.insert(at, self.ids()["n"])
            sets.insert(at, sets[at])
        offsets = sets[0] if all(s == sets[0] for s in sets) else sets
        overlaid(self.kit, fragment.fragment_id, pa.table(columns), offsets, ids, self.version)

    def leaves(self) -> dict[str, int]:
        """What an overlay covers as a whole, and its id: the key stays."""
        ids = self.ids()
        found = {p: i for p, i in ids.items() if p.partition(".")[0] in self.columns and p not in ("k", "n")}
        return found

    def ids(self) -> dict[str, int]:
        found: dict[int, str] = {}
        for f in self.kit.load().manifest.fields:  # parents come first
            found[f.id] = f"{found[f.parent_id]}.{f.name}" if f.parent_id in found else f.name
        return {path: id for id, path in found.items()}

    def append(self, by_us: bool) -> None:
        data = self.new(self.rng.choice([1, 7, 30]))
        if by_us:
            self.kit.open().append(data)
        else:
            self.kit.dataset().insert(data)

    def delete(self, by_us: bool) -> None:
        if "i" not in self.columns or self.rng.random() < 0.5:
            low = self.rng.randrange(self.next)
            condition, gone = f"k >= {low} AND k < {low + 5}", set(range(low, low + 5))
        else:
            value = self.rng.randint(1, 30)
            condition, gone = f"i = {value}", {k for k, r in self.rows.items() if r["i"] == value}
        (self.kit.open() if by_us else self.kit.dataset()).delete(condition)
        self.rows = {k: row for k, row in self.rows.items() if k not in gone}

    def update(self, by_us: bool) -> None:
        if "i" not in self.columns:
            return
        low, high = sorted(self.rng.sample(range(1, 31), 2))
        where = f"i >= {low} AND i < {high}"
        (self.kit.open() if by_us else self.kit.dataset()).update({"i": "i + 3"}, where=where)
        for row in self.rows.values():
            if row["i"] is not None and low <= row["i"] < high:
                row["i"] += 3

    def merge(self, by_us: bool) -> None:
        known = self.rng.sample(sorted(self.rows), min(4, len(self.rows)))
        self.next += 2
        data = self.data([*known, self.next - 2, self.next - 1])
        if by_us:
            merge = self.kit.open().merge(data, on="source.k = target.k")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            self.kit.dataset().merge_insert("k").when_matched_update_all().when_not_matched_insert_all().execute(data)

    def replace(self, by_us: bool) -> None:
        """Every value of a column, in a file beside the others: in all fragments, or in one."""
        if "i" not in self.columns:
            return
        if by_us:
            self.kit.open().add_columns({"i": "k - 5"}, replace=True)
            for k, row in self.rows.items():
                row["i"] = k - 5
            return
        dataset = self.kit.dataset()
        fragment = self.rng.choice(dataset.get_fragments())
        keys = self.live(fragment)
        values = pa.table({"i": pa.array([keys.get(at, 0) + 7 for at in range(fragment.physical_rows)], pa.int64())})
        file = file_of(self.kit.uri, values, [self.ids()["i"]], self.version)
        group = lance.LanceOperation.DataReplacementGroup(fragment.fragment_id, file)
        made = lance.LanceOperation.DataReplacement([group])
        lance.LanceDataset.commit(self.kit.uri, made, read_version=dataset.version)
        for k in keys.values():
            self.rows[k]["i"] = k + 7

    def live(self, fragment) -> dict[int, int]:
        """The keys of its rows by their places."""
        rows = fragment.to_table(columns=["k"], with_row_address=True)
        return {a & 0xFFFF_FFFF: k for k, a in zip(rows["k"].to_pylist(), rows["_rowaddr"].to_pylist())}

    def add(self, by_us: bool) -> None:
        name = f"c{len(self.columns)} {self.rng.randrange(1000)}"
        (self.kit.open() if by_us else self.kit.dataset()).add_columns({name: "k * 3"})
        self.columns[name] = pa.int64()
        for k, row in self.rows.items():
            row[name] = k * 3

    def drop(self, by_us: bool) -> None:
        others = [n for n in self.columns if n != "k"]
        if len(others) < 3:
            return
        name = self.rng.choice(others)
        if by_us:
            self.kit.open().drop_column(f"`{name}`")
        else:
            self.kit.dataset().drop_columns([name])
        del self.columns[name]
        for row in self.rows.values():
            del row[name]

    def cast(self, by_us: bool) -> None:
        """A column of other values in another file under another id."""
        if "d" not in self.columns or self.columns["d"] != pa.float64():
            return
        if by_us:
            self.kit.open().cast_column("d", "float")
        else:
            self.kit.dataset().alter_columns({"path": "d", "data_type": pa.float32()})
        self.columns["d"] = pa.float32()
        for row in self.rows.values():
            row["d"] = self.rounded(row["d"])

    @staticmethod
    def rounded(value):
        with np.errstate(over="ignore"):
            return None if value is None else float(np.float32(value))

    def compact(self, by_us: bool) -> None:
        if by_us:
            self.kit.open().optimize()
        else:
            self.kit.dataset().optimize.compact_files()

    def index(self, by_us: bool) -> None:
        if "i" not in self.columns:
            return
        kind = self.rng.choice(["btree", "bitmap", "zonemap"])
        if by_us:
            self.kit.open().create_index("i", kind, name="i_idx", replace=True)
        else:
            self.kit.dataset().create_scalar_index("i", kind.upper(), name="i_idx", replace=True)

    def reindex(self, by_us: bool) -> None:
        if by_us:
            self.kit.open().optimize_indices()
        else:
            self.kit.dataset().optimize.optimize_indices()

    def restore(self, by_us: bool) -> None:
        version = self.rng.choice(sorted(self.past))
        if by_us:
            self.kit.open().restore(version)
        else:
            self.kit.dataset(version=version).restore()
        columns, rows = self.past[version]
        self.columns, self.rows = dict(columns), {k: dict(r) for k, r in rows.items()}

    def check(self, step: str) -> None:
        dataset = self.kit.dataset()
        dataset.validate()
        wanted = [plain({n: row[n] for n in self.columns}) for _, row in sorted(self.rows.items())]
        for found in (dataset.to_table(), self.kit.read()):
            rows = sorted(found.to_pylist(), key=lambda r: r["k"])
            assert [plain({n: r[n] for n in self.columns}) for r in rows] == wanted, step
            assert set(found.column_names) == set(self.columns), step
        if "i" in self.columns:
            for value in self.rng.sample(range(1, 34), 3):
                keys = sorted(k for k, r in self.rows.items() if r["i"] == value)
                for found in (dataset.to_table(filter=f"i = {value}"), self.kit.read(where=f"i = {value}")):
                    assert sorted(found["k"].to_pylist()) == keys, step
            keys = sorted(k for k, r in self.rows.items() if r["i"] is None or r["i"] > 20)
            for found in (dataset.to_table(filter="i > 20 OR i IS NULL"), self.kit.read(where="i > 20 OR i IS NULL")):
                assert sorted(found["k"].to_pylist()) == keys, step
        version = self.kit.load().version
        self.past[version] = dict(self.columns), {k: dict(r) for k, r in self.rows.items()}


def plain(value):
    """A value whose equality is that of its bits."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value.hex() if isinstance(value, float) else value


STEPS = [
    "overlay", "overlay", "overlay", "append", "delete", "update", "merge", "replace", "add", "drop", "cast",
    "compact", "index", "index", "reindex", "restore",
]  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 100))])
def test_histories_of_overlays(kit, seed, monkeypatch):
    monkeypatch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")
    version, stable = ["2.0", "2.1", "2.2"][seed % 3], bool(seed % 2)
    model = Model(kit, seed, version)
    kit.pylance(model.new(60), enable_stable_row_ids=stable, max_rows_per_file=25, data_storage_version=version)
    model.overlay(False)
    model.check("the first overlay")
    for number in range(14):
        name, by_us = model.rng.choice(STEPS), model.rng.random() < 0.6
        getattr(model, name)(by_us)
        if not model.rows:
            return
        model.check(f"step {number}: {name} by {'us' if by_us else 'pylance'}")
