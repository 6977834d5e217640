"""Columns of variants against DuckDB with one thread, pyspark's VariantVal, and Spark in local[2].

Every result of every runner is checked: the first in full against `json.loads` of the text, the others against the
first (Spark's, which are not collected, by a sum beforehand). `variant.py TOPIC ...` runs some of the topics without
recording; `--quick` makes one round.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from multiprocessing import get_context
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import variant_data
from harness import Case, alternate, record
from pyspark.sql.types import VariantVal
from variant_data import Data

import boathouse as bh
from boathouse.variant.columns.decode import to_pylist
from boathouse.variant.columns.from_arrow import from_arrow
from boathouse.variant.columns.from_json import from_json
from boathouse.variant.columns.to_json import to_json
from boathouse.variant.extraction import extract

OURS = "boathouse"
ROUNDS = 5
PYSPARK_ROWS = 20_000


def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    found.execute("set threads = 1")
    return found


class Check:
    """Checks the first result of each runner in full, the later ones by equality with it."""

    def __init__(self, full: Callable[[Any], bool], same: Callable[[Any, Any], bool] = lambda a, b: bool(a == b)):
        self.full, self.same = full, same
        self.first: dict[str, Any] = {}

    def __call__(self, name: str, result: Any) -> None:
        if name not in self.first:
            assert self.full(result), f"{name} is wrong"
            self.first[name] = result
        assert self.same(self.first[name], result), f"{name} differs from its first result"


def column_of(result: Any) -> pa.Array:
    """The only column of a table, or the array, in one chunk."""
    if isinstance(result, pa.Table):
        result = result.column(0)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def equal_to(expected: pa.Array) -> Check:
    def full(result: Any) -> bool:
        return column_of(result).cast(expected.type).equals(expected)

    return Check(full)


def loads(text: str) -> Any:
    """JSON with the types of variants: decimals are decimals, numbers with an exponent doubles."""
    return json.loads(text, parse_float=lambda digits: float(digits) if "e" in digits.lower() else Decimal(digits))


def case(
    title: str,
    runners: dict[str, Callable[[], Any]],
    check: Check,
    target: str,
    rows: int,
    clock: Callable[[], float] = time.process_time,
    more: int = 1,
) -> Case:
    """`more` times the usual rounds, for runs of a few milliseconds."""
    title, rounds = f"{title}, {rows:,} rows", ROUNDS * more
    found = alternate(title, runners, OURS, rounds=rounds, target=target, check=check, clock=clock)
    print("   ", ", ".join(f"{name} {found.median(name) / rows * 1e6:.2f} us a row" for name in runners), flush=True)
    return found


def extraction() -> list[Case]:
    cases = []
    for data, paths in (
        (variant_data.events(), {"$.payload.size": "bigint", "$.actor.login": "varchar"}),
        (variant_data.distinct(), {"$.payload.size": "bigint", "$.actor.login": "varchar"}),
        (variant_data.wide(), {"$.field_150": "bigint", "$.field_151": "varchar"}),
    ):
        db = connection()
        db.register("arrow", data.marked())
        db.register("text", data.text())
        db.execute("create table own as select v from arrow")
        for path, type in paths.items():
            cases.append(_extraction(data, db, path, type))
    return cases


def _extraction(data: Data, db: duckdb.DuckDBPyConnection, path: str, type: str) -> Case:
    steps = path[2:].split(".")

    def pick(row: Any) -> Any:
        for step in steps:
            row = row.get(step) if isinstance(row, dict) else None
        return row

    expected = pa.array([pick(json.loads(text)) for text in data.json.to_pylist()])
    dotted = path.replace("$", "v")
    ours = "bigint" if type == "bigint" else "string"
    runners = {
        OURS: lambda: extract(data.variant, path, ours),
        "DuckDB, Arrow variant": lambda: db.sql(f"select {dotted}::{type} from arrow").to_arrow_table(),
        "DuckDB, own variant": lambda: db.sql(f"select {dotted}::{type} from own").to_arrow_table(),
        "DuckDB, JSON text": lambda: db.sql(f"select (json->>'{path}')::{type} from text").to_arrow_table(),
    }
    target = "at most 0.25x DuckDB's Arrow variant, 1.0x its JSON text"
    return case(f"extract {path} as {ours}, {data.name}", runners, equal_to(expected), target, len(data.json))


def building() -> list[Case]:
    data = variant_data.events()
    nested = pa.json.read_json(
        pa.BufferReader("\n".join(data.json.to_pylist()).encode()), pa.json.ReadOptions(block_size=1 << 30)
    )
    # DuckDB does not export timestamps of seconds within variants, which pyarrow makes from these.
    at = nested.schema.get_field_index("created_at")
    nested = nested.set_column(at, "created_at", nested["created_at"].cast(pa.timestamp("us")))
    flat = pa.table(
        {
            "id": nested["id"],
            "type": nested["type"],
            "score": pc.multiply(nested["id"].cast(pa.float64()), 0.001),
        }
    )
    targets = {"flat {int64, string, double}": (flat, "at most 0.5x"), "nested events": (nested, "reported")}
    return [_building(name, table, target) for name, (table, target) in targets.items()]


def _building(name: str, table: pa.Table, target: str) -> Case:
    struct = table.combine_chunks().to_struct_array()
    struct = struct.chunk(0) if isinstance(struct, pa.ChunkedArray) else struct
    expected = struct.to_pylist()
    db = connection()
    db.register("t", pa.table({"s": struct}))
    runners = {
        OURS: lambda: from_arrow(struct),
        "DuckDB": lambda: db.sql("select s::variant as v from t").to_arrow_table(),
    }
    check = Check(lambda result: to_pylist(column_of(result)) == expected)
    return case(f"from_arrow, {name}", runners, check, target, len(struct))


def json_text() -> list[Case]:
    cases = []
    for data in (variant_data.events(), variant_data.distinct(), variant_data.wide()):
        db = connection()
        db.register("arrow", data.marked())
        db.register("text", data.text())
        db.execute("create table own as select v from arrow")
        expected = [json.loads(text) for text in data.json.to_pylist()]
        texts = Check(lambda result, e=expected: [json.loads(one) for one in column_of(result).to_pylist()] == e)
        variants = Check(
            lambda result, e=expected: [json.loads(one) for one in to_json(column_of(result)).to_pylist()] == e
        )
        runners: dict[str, Callable[[], Any]] = {
            OURS: lambda d=data: from_json(d.json),
            "DuckDB": lambda db=db: db.sql("select json::json::variant as v from text").to_arrow_table(),
        }
        size = f"{data.bytes / 1e6:.0f} MB"
        found = case(f"from_json, {data.name} ({size})", runners, variants, "at least 20 MB/s", len(data.json))
        print(f"    {data.bytes / 1e6 / found.median(OURS):.0f} MB/s", flush=True)
        cases.append(found)
        runners = {
            OURS: lambda d=data: to_json(d.variant),
            "DuckDB, Arrow variant": lambda db=db: db.sql("select v::json::varchar from arrow").to_arrow_table(),
            "DuckDB, own variant": lambda db=db: db.sql("select v::json::varchar from own").to_arrow_table(),
        }
        found = case(f"to_json, {data.name} ({size})", runners, texts, "aim at 1.0x", len(data.json))
        print(f"    {data.bytes / 1e6 / found.median(OURS):.0f} MB/s", flush=True)
        cases.append(found)
    return cases


def decoding() -> list[Case]:
    cases = []
    for data in (variant_data.events(), variant_data.distinct(), variant_data.wide()):
        rows = PYSPARK_ROWS if data.name != "wide" else PYSPARK_ROWS // 20
        variants = data.variant.slice(0, rows)
        pairs = [VariantVal(row["value"], row["metadata"]) for row in variants.to_pylist()]
        expected = [loads(text) for text in data.json.slice(0, rows).to_pylist()]
        runners: dict[str, Callable[[], Any]] = {
            OURS: lambda v=variants: to_pylist(v),
            "pyspark's toPython": lambda p=pairs: [one.toPython() for one in p],
        }
        check = Check(lambda result, e=expected: result == e)
        target = "at most 0.33x, aim at 0.2x"
        cases.append(case(f"to Python objects, {data.name}", runners, check, target, rows))
    return cases


def shredded() -> list[Case]:
    data = variant_data.events()
    rows = len(data.json)

    def values() -> Iterator[Any]:
        """Created again each time: so many live objects would fragment the memory of what is measured."""
        return (json.loads(text.as_py()) for text in data.json)

    size = pa.array([row["payload"].get("size") for row in values()])
    login = pa.array([row["actor"]["login"] for row in values()])
    kind = pa.array([row["type"] for row in values()])
    cases = []
    db = connection()
    for by, path in ((name, variant_data.files()[name]) for name in ("spark-shredded", "duckdb-shredded", "spark")):
        written = {"spark": "unshredded, by Spark"}.get(by, f"shredded, by {by.split('-')[0]}")
        for steps, type, ours, expected in (
            ("payload.size", "bigint", "bigint", size),
            ("actor.login", "varchar", "string", login),
            ("type", "varchar", "string", kind),
        ):
            columns = {"x": f"variant_get(v, '$.{steps}', '{ours}')"}
            runners: dict[str, Callable[[], Any]] = {
                OURS: lambda p=path, c=columns: bh.read_parquet(str(p), columns=c),
                "DuckDB": lambda p=path, s=steps, t=type: db.sql(f"select v.{s}::{t} from '{p}'").to_arrow_table(),
            }
            target = "at most 0.5x" if by != "spark" else "reported"
            title = f"Parquet {written}: $.{steps}"
            cases.append(case(title, runners, equal_to(expected), target, rows, more=3))
        runners = {
            OURS: lambda p=path: bh.read_parquet(str(p)),
            "DuckDB": lambda p=path: db.sql(f"select v from '{p}'").to_arrow_table(),
        }
        check = Check(
            lambda result: all(
                json.loads(text.as_py()) == row for text, row in zip(to_json(column_of(result)), values(), strict=True)
            )
        )
        cases.append(case(f"Parquet {written}: whole rows", runners, check, "at most 1.0x", rows))
    return cases


def spark() -> list[Case]:
    """Spark's own functions, over cached text and variants; a job takes 0.2 to 0.3 s by itself."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    try:
        paths = variant_data.files()
        text = session.read.parquet(str(paths["text"])).repartition(2).cache()
        variants = session.read.parquet(str(paths["spark"])).repartition(2).cache()
        return _beside_spark(text, variants)
    finally:
        session.stop()


def _beside_spark(text: Any, variants: Any) -> list[Case]:
    """The data frames are those of `events()`. Spark's results are not collected: they are checked by a sum
    beforehand."""
    data = variant_data.events()
    assert text.count() == variants.count() == len(data.json)
    values = [json.loads(one) for one in data.json.to_pylist()]
    sizes = pa.array([row["payload"].get("size") for row in values])

    def noop(frame: Any, expression: str) -> None:
        frame.selectExpr(expression).write.format("noop").mode("overwrite").save()

    cases = []
    for title, ours, full, frame, expression, size in (
        (
            "from_json and Spark's parse_json",
            lambda: from_json(data.json),
            lambda found: [json.loads(one) for one in to_json(found).to_pylist()] == values,
            text,
            "parse_json(json)",
            "variant_get({}, '$.payload.size', 'bigint')",
        ),
        (
            "to_json and Spark's",
            lambda: to_json(data.variant),
            lambda found: [json.loads(one) for one in found.to_pylist()] == values,
            variants,
            "to_json(v)",
            "cast(get_json_object({}, '$.payload.size') as bigint)",
        ),
        (
            "extract $.payload.size and Spark's variant_get",
            lambda: extract(data.variant, "$.payload.size", "bigint"),
            lambda found: found.equals(sizes),
            variants,
            "variant_get(v, '$.payload.size', 'bigint')",
            "{}",
        ),
    ):
        total = frame.selectExpr(f"sum({size.format(expression)}) as x").collect()[0]["x"]
        assert total == pc.sum(sizes).as_py(), f"Spark's {expression} is wrong"
        runners: dict[str, Callable[[], Any]] = {OURS: ours, "Spark local[2]": lambda f=frame, e=expression: noop(f, e)}
        check = Check(lambda result, full=full: result is None or full(result))
        cases.append(case(title, runners, check, "reported", len(data.json), time.perf_counter))
    return cases


TOPICS = {
    "extraction": extraction,
    "building": building,
    "json": json_text,
    "decoding": decoding,
    "shredded": shredded,
    "spark": spark,
}


def _one_thread() -> None:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _topic(name: str, rounds: int) -> list[Case]:
    global ROUNDS
    ROUNDS = rounds
    return TOPICS[name]()


def main(arguments: list[str]) -> None:
    global ROUNDS
    if "--quick" in arguments:
        ROUNDS = 1
    wanted = [name for name in arguments if not name.startswith("-")]
    # Each in its own process, so that memory left by one does not affect the next.
    with get_context("spawn").Pool(1, _one_thread, maxtasksperchild=1) as pool:
        cases = {name: pool.apply(_topic, (name, ROUNDS)) for name in wanted or TOPICS}
    if arguments:
        return
    notes = (
        "Processor time, one thread; wall-clock time beside Spark (two threads). Each topic (extract, from_arrow, "
        "JSON, Python objects, Parquet, Spark) in its own process. Data: benchmarks/variant_data.py (events: "
        "250,000 rows as GitHub's archive has them; distinct: the same, no two rows with the same metadata; wide: "
        "20,000 rows of 300 fields). All bounds are checked; so is every result (Spark's by a sum). The "
        "Parquet files are read repeatedly: from the second time on their footers are cached (parquet/source.py)."
    )
    record("Variant: whole columns", [case for found in cases.values() for case in found], notes)


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    main(sys.argv[1:])
