"""Events as GitHub's archive has them, as JSON text and as the same variants (by Spark's parse_json), created once.

`events()`: 250,000 rows, 6 kinds of event, few distinct metadata. `distinct()`: the same with a unique key in every
row, so that no two rows share their metadata. `wide()`: 20,000 rows of 300 fields. `files()`: the events as Parquet:
text, and unshredded and shredded variants by Spark and DuckDB.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from harness import DATA

HOME = DATA / "variant-1"
ROWS = 250_000
WIDE_ROWS = 20_000
WIDE_FIELDS = 300
MARK = {b"ARROW:extension:name": b"arrow.parquet.variant"}
STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


@dataclass(frozen=True)
class Data:
    """One set: row i of `json` (string) and of `variant` (struct<metadata, value>) are the same value."""

    name: str
    json: pa.StringArray
    variant: pa.StructArray

    @property
    def bytes(self) -> int:
        return self.json.get_total_buffer_size() - 4 * (len(self.json) + 1)

    def marked(self) -> pa.Table:
        """The variants as a table that DuckDB scans as VARIANT: column `v`."""
        return pa.table([self.variant], pa.schema([pa.field("v", STORAGE, True, MARK)]))

    def text(self) -> pa.Table:
        return pa.table({"json": self.json})


def events() -> Data:
    return _data("events", lambda: _events(False))


def distinct() -> Data:
    return _data("distinct", lambda: _events(True))


def wide() -> Data:
    return _data("wide", _wide)


def files() -> dict[str, Path]:
    """Parquet files of `events()`: `text`, `spark` (unshredded), `spark-shredded`, `duckdb-shredded`.

    The column is `v` (`json` in `text`), rows in their order.
    """
    names = ("text", "spark", "spark-shredded", "duckdb-shredded")
    paths = {name: HOME / f"events-{name}.parquet" for name in names}
    if not paths["duckdb-shredded"].exists():
        import duckdb

        events()
        _with_spark("events", shredded=True).replace(paths["spark-shredded"])
        connection = duckdb.connect()
        connection.execute("set preserve_insertion_order = true; set threads = 1")
        query = f"select json::json::variant as v from '{paths['text']}'"
        connection.execute(f"copy ({query}) to '{paths['duckdb-shredded']}' (format parquet, compression zstd)")
    return paths


def _data(name: str, rows: Callable[[], Iterator[dict[str, object]]]) -> Data:
    target = HOME / f"{name}.arrow"
    if not target.exists():
        _make(name, rows, target)
    table = pa.ipc.open_file(pa.memory_map(str(target))).read_all()
    return Data(name, table["json"].chunk(0), table["v"].chunk(0))


def _make(name: str, rows: Callable[[], Iterator[dict[str, object]]], target: Path) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    text = pa.array([json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows()], pa.string())
    pq.write_table(pa.table({"json": text}), HOME / f"{name}-text.parquet", compression="zstd")
    variants = HOME / f"{name}-spark.parquet"
    _with_spark(name, shredded=False).replace(variants)
    column = pq.read_table(variants)["v"].combine_chunks()
    array = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    variant = pa.StructArray.from_arrays([array.field("metadata"), array.field("value")], fields=list(STORAGE))
    schema = pa.schema([pa.field("json", pa.string(), False), pa.field("v", STORAGE, True, MARK)])
    batch = pa.record_batch([text, variant], schema=schema)
    passing = target.with_suffix(".passing")
    with pa.ipc.new_file(str(passing), schema) as out:
        out.write_batch(batch)
    passing.replace(target)


def _with_spark(name: str, shredded: bool) -> Path:
    """The one file that Spark writes from a set's text; a single task, so that the rows keep their order."""
    from pyspark.sql import SparkSession

    folder = HOME / f"{name}-by-spark"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.files.maxPartitionBytes", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.variant.writeShredding.enabled", str(shredded).lower())
        .config("spark.sql.parquet.compression.codec", "zstd")
        .getOrCreate()
    )
    try:
        text = spark.read.parquet(str(HOME / f"{name}-text.parquet"))
        text.selectExpr("parse_json(json) as v").write.mode("overwrite").parquet(str(folder))
    finally:
        spark.stop()
    (file,) = folder.glob("*.parquet")
    return file


def _events(own_key: bool) -> Iterator[dict[str, object]]:
    chance = random.Random(20)
    for i in range(ROWS):
        kind = chance.choices(list(PAYLOADS), (50, 15, 12, 9, 8, 6))[0]
        actor, repo = chance.randrange(1, 90_000_000), chance.randrange(1, 600_000_000)
        login = f"{chance.choice(WORDS)}-{chance.choice(WORDS)}{actor % 1000}"
        event: dict[str, object] = {
            "id": 22_000_000_000 + i * 7,
            "type": kind,
            "actor": {"id": actor, "login": login, "url": f"https://api.github.com/users/{login}"},
            "repo": {"id": repo, "name": f"{login}/{chance.choice(WORDS)}"},
            "payload": PAYLOADS[kind](chance),
            "public": chance.random() < 0.98,
            "created_at": f"2026-11-{i * 28 // ROWS + 1:02}T{i % 24:02}:{i % 60:02}:{i % 59:02}Z",
        }
        if own_key:
            event["marks"] = {f"k{chance.getrandbits(48):012x}": i}
        yield event


def _wide() -> Iterator[dict[str, object]]:
    chance = random.Random(21)
    for i in range(WIDE_ROWS):
        row: dict[str, object] = {}
        for field in range(WIDE_FIELDS):
            kind, name = field % 6, f"field_{field:03}"
            if kind == 0:
                row[name] = i * 31 + field
            elif kind == 1:
                row[name] = f"{chance.choice(WORDS)} {chance.choice(WORDS)}"
            elif kind == 2:
                row[name] = chance.randrange(-10_000, 10_000) / 100
            elif kind == 3:
                row[name] = chance.random() < 0.5
            elif kind == 4:
                row[name] = chance.randrange(200) if chance.random() < 0.9 else None
            else:
                row[name] = chance.random()
        yield row


WORDS = (
    "oar", "scull", "cox", "stroke", "bow", "rigger", "slide", "shell", "blade", "catch", "feather", "regatta",
    "harbor", "dock", "launch", "ergo", "sweep", "quad", "four", "eight", "pair", "skeg", "rudder", "naïve", "früh",
)  # fmt: skip


def _sha(chance: random.Random) -> str:
    return f"{chance.getrandbits(160):040x}"


def _push(chance: random.Random) -> dict[str, object]:
    size = min(int(chance.paretovariate(1.5)), 2000)
    return {
        "push_id": chance.randrange(10_000_000_000, 11_000_000_000),
        "size": size,
        "distinct_size": max(size - chance.randrange(2), 0),
        "ref": f"refs/heads/{chance.choice(WORDS)}",
        "commits": [{"sha": _sha(chance), "message": " ".join(chance.choices(WORDS, k=5))} for _ in range(size % 3)],
    }


def _create(chance: random.Random) -> dict[str, object]:
    return {
        "ref": chance.choice(WORDS) if chance.random() < 0.7 else None,
        "ref_type": chance.choice(("branch", "tag", "repository")),
        "description": " ".join(chance.choices(WORDS, k=chance.randrange(3, 16))),
    }


def _issue(chance: random.Random) -> dict[str, object]:
    number = chance.randrange(1, 40_000)
    return {
        "action": chance.choice(("opened", "closed", "reopened")),
        "issue": {
            "number": number,
            "title": " ".join(chance.choices(WORDS, k=6)),
            "comments": chance.randrange(40),
            "labels": chance.sample(WORDS, chance.randrange(3)),
            "score": chance.randrange(1000) / 100,
        },
    }


def _watch(chance: random.Random) -> dict[str, object]:
    return {"action": "started", "rank": chance.random()}


def _pull(chance: random.Random) -> dict[str, object]:
    return {
        "number": chance.randrange(1, 40_000),
        "pull_request": {
            "merged": chance.random() < 0.4,
            "additions": chance.randrange(5000),
            "deletions": chance.randrange(5000),
            "head": {"sha": _sha(chance), "ref": chance.choice(WORDS)},
        },
    }


def _fork(chance: random.Random) -> dict[str, object]:
    return {"forkee": {"id": chance.randrange(600_000_000), "private": False, "size": chance.randrange(100_000)}}


PAYLOADS: dict[str, Callable[[random.Random], dict[str, object]]] = {
    "PushEvent": _push,
    "CreateEvent": _create,
    "IssuesEvent": _issue,
    "WatchEvent": _watch,
    "PullRequestEvent": _pull,
    "ForkEvent": _fork,
}


if __name__ == "__main__":
    for data in (events(), distinct(), wide()):
        kinds = len(data.variant.field("metadata").dictionary_encode().dictionary)
        print(f"{data.name}: {len(data.json):,} rows, {data.bytes / 1e6:.1f} MB of JSON, {kinds:,} metadata")
    for name, path in files().items():
        print(f"{name}: {path.stat().st_size / 1e6:.1f} MB")
