"""A million keys of equality deletes over 100 Iceberg files: turned into vectors, or positions, beside a rewrite of the
table without them.

python benchmarks/iceberg_deletes.py [ROUNDS [KEYS]]: with a number of rounds nothing is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from harness import DATA, Case, alternate, fresh, record
from iceberg_made import delete_by_keys
from kept import Kept
from local import data

import boathouse as bh

FILES, KEYS = 100, 1_000_000
NAMES = ["l_orderkey", "l_linenumber"]
KINDS = {"vectors": "3", "positions": "2"}


def table(kind: str, keys: int) -> Kept:
    path, rows = fresh(DATA / f"iceberg-keys-{kind}"), data()
    made = bh.create(path, rows.schema, format="iceberg", properties={"format-version": KINDS[kind]})
    each = -(-rows.num_rows // FILES)
    for at in range(0, rows.num_rows, each):
        made.append(rows.slice(at, each))
    chosen = np.random.default_rng(1).choice(rows.num_rows, keys, replace=False)
    delete_by_keys(path, rows.select(NAMES).take(pa.array(np.sort(chosen))))
    assert bh.open(path).files().num_rows == FILES
    return Kept.of(Path(path))


def case(kind: str, keys: int, rounds: int) -> Case:
    kept, rows = table(kind, keys), data().num_rows
    ways: dict[str, Callable[[bh.Table], object]] = {
        "the table rewritten: t.purge()": lambda t: t.purge(),
        "t.rewrite_deletes()": lambda t: t.rewrite_deletes(),
    }

    def check(name: str, _: object) -> None:
        left = bh.open(str(kept.path))
        assert left.count() == rows - keys, name  # known without reading, once no key is left

    runners = {name: lambda way=way: way(bh.open(str(kept.path))) for name, way in ways.items()}
    title = f"{keys:,} keys of two columns over {FILES} files, into {kind}"
    found = alternate(title, runners, list(ways)[1], rounds, 1, "reported", kept.undo, check)
    fresh(kept.path)
    return found


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    keys = int(sys.argv[2]) if len(sys.argv) > 2 else KEYS
    cases = [case(kind, keys, rounds) for kind in KINDS]
    if len(sys.argv) == 1:
        record("Iceberg: a million keys of equality deletes turned into vectors", cases,
               f"TPC-H lineitem at scale 1, {FILES} files, one file of keys, in process.")  # fmt: skip


if __name__ == "__main__":
    main()
