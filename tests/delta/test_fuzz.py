"""Damaged metadata at random: whatever the bytes are, rows or a typed error come, and soon.

`./run fuzz N` tries N mutations of each kind of file, the slow tests 500.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits.checksum import crc32_bytes
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.delta.adapter import FORMAT
from boathouse.errors import BoathouseError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.location import Location
from makers.effort import counted_calls

EACH = int(os.environ.get("BOATHOUSE_FUZZ", "500"))
SEED = os.environ.get("BOATHOUSE_SEED", "")
CALLS = 300_000
"""Of functions, for all that is read of one table."""
DATA = pa.table({"p": ["a", "a", "b", None], "x": [1, 2, 3, 4], "s": ["é", "text", None, "q" * 40]})
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 7, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 70, -(1 << 70), 1.5, 1e308, "", "x", "\ud800", "\0",
    "%zz", "1E+999999999", "9" * 5000, "../../x", "file:///etc/hostname", "s3:///", "foo:bar", [], [[]], {},
    {"a": None}, [None],
)  # fmt: skip


def base(path: Path) -> Path:
    """Two commits, a vector in a file, a checkpoint of version 2, one more commit."""
    bh.write(DATA, str(path), format="delta", partition_by=["p"], properties={"delta.checkpointInterval": "1000"})
    bh.open(str(path)).append(DATA, txn=("app", 1))
    log = path / "_delta_log"
    entry = log / f"{1:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    payload = (1681511377).to_bytes(4, "little") + serialize64(Bitmap.of([1]))
    stored = b"\1" + len(payload).to_bytes(4, "big") + payload + crc32_bytes(payload)
    (path / "v.bin").write_bytes(stored)
    vector = {
        "storageType": "p", "pathOrInlineDv": f"file://{path}/v.bin", "offset": 1,
        "sizeInBytes": len(payload), "cardinality": 1,
    }  # fmt: skip
    add = next(a["add"] for a in actions if a.get("add", {}).get("partitionValues", {}).get("p") == "a")
    add["deletionVector"] = vector
    features = {
        "readerFeatures": ["deletionVectors", "v2Checkpoint"],
        "writerFeatures": ["deletionVectors", "v2Checkpoint"],
    }
    actions.insert(1, {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    entry.write_text("".join(json.dumps(a) + "\n" for a in actions))
    return path


def classic(path: Path) -> Path:
    """The table with a checkpoint of version 1 instead of its entries, and one entry after it."""
    from boathouse.delta.checkpoint.writer import write_checkpoint

    base(path)
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    write_checkpoint(snapshot)
    log = path / "_delta_log"
    entry = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    (log / f"{2:020d}.json").write_text(json.dumps(entry[0]) + "\n")
    for version in range(2):
        (log / f"{version:020d}.json").unlink()
    return path


def of_second_kind(path: Path, as_json: bool) -> Path:
    """The same with a V2 checkpoint and its sidecar."""
    classic(path)
    log = path / "_delta_log"
    whole = log / f"{1:020d}.checkpoint.parquet"
    table = pq.read_table(whole)
    files = table.select(["add", "remove"]).filter(pa.compute.is_valid(table.column("add")))
    (log / "_sidecars").mkdir()
    name = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
    pq.write_table(files, log / "_sidecars" / f"{name}.parquet", row_group_size=2)
    size = (log / "_sidecars" / f"{name}.parquet").stat().st_size
    sidecar = {"path": f"{name}.parquet", "sizeInBytes": size, "modificationTime": 1, "tags": {}}
    small = table.select(["protocol", "metaData", "txn"]).filter(pa.compute.is_null(table.column("add")))
    rows = [{k: v for k, v in r.items() if v is not None} for r in small.to_pylist(maps_as_pydicts="strict")]
    rows += [{"checkpointMetadata": {"version": 1}}, {"sidecar": sidecar}]
    if as_json:
        text = "".join(json.dumps(r) + "\n" for r in rows)
        (log / f"{1:020d}.checkpoint.{name}.json").write_text(text)
    else:
        extra = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])
        small = small.append_column("sidecar", pa.nulls(len(small), extra))
        last = pa.Table.from_pylist([{"sidecar": {k: v for k, v in sidecar.items() if k != "tags"}}], small.schema)
        pq.write_table(pa.concat_tables([small, last]), log / f"{1:020d}.checkpoint.{name}.parquet")
    whole.unlink()
    (log / "_last_checkpoint").unlink()
    return path


LAYOUTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "entry": (base, "_delta_log/00000000000000000001.json"),
    "first entry": (base, "_delta_log/00000000000000000000.json"),
    "vector": (base, "v.bin"),
    "checkpoint": (classic, "_delta_log/00000000000000000001.checkpoint.parquet"),
    "hint": (classic, "_delta_log/_last_checkpoint"),
    "json checkpoint": (lambda p: of_second_kind(p, True), "_delta_log/00000000000000000001.checkpoint.*.json"),
    "parquet v2": (lambda p: of_second_kind(p, False), "_delta_log/00000000000000000001.checkpoint.*.parquet"),
    "sidecar": (lambda p: of_second_kind(p, False), "_delta_log/_sidecars/*.parquet"),
}
WHOLE = sorted([(1, "a"), (2, "a"), (3, "b"), (4, None), (1, "a"), (3, "b"), (4, None)], key=str)


def rows(path: Path) -> list[tuple[Any, Any]]:
    found = bh.open(str(path)).to_arrow()
    return sorted(zip(found.column("x").to_pylist(), found.column("p").to_pylist()), key=str)


def everything(path: Path) -> None:
    """All that reads metadata."""
    table = bh.open(str(path))
    table.to_arrow().to_pylist()
    table.count()
    table.scan(where="p = 'a' and x > 1").to_arrow()
    table.scan(where="s >= 'q'").to_arrow()
    table.files()
    str(table.history())
    table.detail()
    list(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).offers(LiveFiles).uris())
    FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).history.app_version("app")


def mutations(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The bytes damaged: flipped, cut, repeated, replaced; JSON by its values too."""
    lines = data.splitlines() if data[:1] == b"{" else []
    # pyarrow ends the process where the footer's size statistics are damaged, so footers of Parquet are left alone.
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little") if data[:4] == b"PAR1" else len(data)
    while True:
        kind = chance.randrange(8 if lines else 5)
        at = chance.randrange(end)
        if kind == 0:
            out = bytearray(data)
            for _ in range(chance.choice((1, 1, 3, 16))):
                out[chance.randrange(end)] ^= 1 << chance.randrange(8)
            yield bytes(out)
        elif kind == 1:
            yield data[:at]
        elif kind == 2:
            out = bytearray(data)
            size = min(4, end - at)
            out[at : at + size] = chance.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\x80" * 4))[
                :size
            ]
            yield bytes(out)
        elif kind == 3:
            size = chance.randrange(1, 64)
            yield data[:at] + data[at : at + size] + data[at:]
        elif kind == 4:
            size = min(3, end - at)
            yield data[:at] + bytes(chance.randrange(256) for _ in range(size)) + data[at + size :]
        else:
            number = chance.randrange(len(lines))
            documents = [json.loads(line) for line in lines]
            documents[number] = changed(documents[number], chance)
            yield b"\n".join(json.dumps(d).encode() for d in documents)


def changed(document: Any, chance: random.Random) -> Any:
    """One value of a JSON document left out or replaced; texts that hold JSON are opened."""
    if isinstance(document, str) and document[:1] == "{" and chance.random() < 0.9:
        return json.dumps(changed(json.loads(document), chance))
    if isinstance(document, dict) and document and chance.random() < 0.85:
        key = chance.choice(list(document))
        if chance.random() < 0.2:
            return {k: v for k, v in document.items() if k != key}
        return {**document, key: changed(document[key], chance)}
    if isinstance(document, list) and document and chance.random() < 0.85:
        at = chance.randrange(len(document))
        return [*document[:at], changed(document[at], chance), *document[at + 1 :]]
    if chance.random() < 0.05:
        deep: Any = "string"
        for _ in range(chance.choice((50, 300, 900))):
            deep = chance.choice(({"type": "array", "containsNull": True, "elementType": deep}, [deep]))
        return deep
    return chance.choice(ODD)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mutations(tmp_path, layout):
    rows_or_a_typed_error_soon(tmp_path / "t", layout, 12, "")


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_many_mutations(tmp_path, layout):
    rows_or_a_typed_error_soon(tmp_path / "t", layout, EACH, SEED)


def rows_or_a_typed_error_soon(path: Path, layout: str, count: int, seed: str) -> None:
    make, pattern = LAYOUTS[layout]
    make(path)
    (damaged,) = path.glob(pattern)
    assert rows(path) == WHOLE
    everything(path)
    whole = damaged.read_bytes()
    chance = random.Random(layout + seed)
    refused = 0
    for number, bytes_ in zip(range(count), mutations(whole, chance)):
        damaged.write_bytes(bytes_)
        try:
            with counted_calls() as calls:
                everything(path)
        except BoathouseError as error:
            refused += 1
            assert error.where, f"{layout} {number}: {error!r} says no file"
        except BaseException as error:
            keep = Path(f"/tmp/fuzz-{layout.replace(' ', '-')}-{number}")
            shutil.copytree(path, keep, dirs_exist_ok=True)
            raise AssertionError(f"{layout} {number}: {type(error).__name__}: {error}; see {keep}") from error
        assert calls.count < CALLS, f"{layout} {number} took {calls.count} calls"
    assert refused or layout == "hint"
    damaged.write_bytes(whole)
    assert rows(path) == WHOLE
