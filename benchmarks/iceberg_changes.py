"""Delete, update and merge of Iceberg tables whose rows are marked, in process, against iceberg-spark in its own.

Both are warm: its session is open, and its table's files were read before. What it is told to do, and what it answers,
takes no time that counts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from harness import DATA, Case, alternate, fresh, lineitem, record
from iceberg_spark import ICEBERG
from kept import Kept
from local import data
from row_changes import KEYS, news

import boathouse as bh

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "interop"))
from reference_spark import Reference

MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
KINDS = {"vectors": {"format-version": "3"}, "positions": {"format-version": "2"}}
ONE_PERCENT = "l_orderkey % 100 = 7"
FILES = 8


def ours(kind: str) -> Kept:
    path, rows = DATA / f"iceberg-{kind}", data()
    if not path.exists():
        table = bh.create(fresh(path), rows.schema, format="iceberg", properties=MODES | KINDS[kind])
        each = -(-rows.num_rows // FILES)
        for at in range(0, rows.num_rows, each):
            table.append(rows.slice(at, each))
    return Kept.of(path)


def theirs(reference: Reference, kind: str) -> Kept:
    name = f"ice.bench.{kind}"
    texts = ", ".join(f"'{k}'='{v}'" for k, v in (MODES | KINDS[kind]).items())
    source = f"SELECT /*+ REPARTITION({FILES}) */ * FROM parquet.`{lineitem()}`"
    reference.sql(f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ({texts}) AS {source}")
    return Kept.of(reference.root / "bench" / kind)


def cases(reference: Reference, kind: str, rounds: int) -> list[Case]:
    mine, other, rows = ours(kind), theirs(reference, kind), news()
    name, source = f"ice.bench.{kind}", reference.root / "news.parquet"
    pq.write_table(rows, source)
    on = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)
    merge = f"MERGE INTO {name} t USING parquet.`{source}` s ON {on} WHEN MATCHED THEN UPDATE SET *"
    work: dict[str, tuple[str, Callable[[bh.Table], object], float]] = {
        "delete 1 % of the rows, scattered": (
            f"DELETE FROM {name} WHERE {ONE_PERCENT}", lambda t: t.delete(ONE_PERCENT), 0.2),
        "update 1 %, scattered": (
            f"UPDATE {name} SET l_quantity = l_quantity + 1 WHERE {ONE_PERCENT}",
            lambda t: t.update({"l_quantity": "l_quantity + 1"}, ONE_PERCENT), 0.2),
        "merge 60,000 rows, half of them new": (
            f"{merge} WHEN NOT MATCHED THEN INSERT *", lambda t: t.upsert(rows, on=KEYS), 0.2),
        "the same without reading the table, by equality deletes": (
            f"{merge} WHEN NOT MATCHED THEN INSERT *", lambda t: t.upsert(rows, on=KEYS, deletes="equality"), 0.2),
    }  # fmt: skip

    def undo() -> None:
        mine.undo()
        other.undo()

    found = []
    for title, (statement, call, most) in work.items():
        runners = {
            "iceberg-spark": lambda s=statement: reference.sql(s),
            "boathouse": lambda c=call: c(bh.open(str(mine.path))),
        }
        found.append(
            alternate(f"{title}, {kind}", runners, "boathouse", rounds, target=f"at most {most}x", between=undo)
        )
    undo()
    return found


def main() -> None:
    """`python benchmarks/iceberg_changes.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    release = replace(ICEBERG, conf={"spark.driver.memory": "6g"})
    release.build()
    root = Path(tempfile.mkdtemp(dir=DATA))
    reference = Reference(root, release)
    try:
        measured = [case for kind in KINDS for case in cases(reference, kind, rounds)]
    finally:
        reference.close()
        shutil.rmtree(root)
    if len(sys.argv) == 1:
        record(f"In process: changes of an Iceberg table by marks, against {Path(ICEBERG.jars[0]).stem}", measured,
               f"TPC-H lineitem at scale 1, {FILES} files; iceberg-spark on local[2], one session.")  # fmt: skip


if __name__ == "__main__":
    main()
