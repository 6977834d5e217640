"""Records found by the folder of their paths are those that are found from block to block, whatever the files hold."""

import io
import random
from unittest import mock

import fastavro
import pytest

from boathouse.avro import columns as avro_columns
from boathouse.avro import container as avro
from boathouse.avro import landmarks as avro_landmarks
from boathouse.errors import CorruptTableError

PATH = ("data_file", "file_path")
WANTED = frozenset({
    ("status",), ("snapshot_id",), PATH, ("data_file", "record_count"), ("data_file", "sizes"), ("data_file", "bounds"),
    ("data_file", "note"), ("last",),
})  # fmt: skip
FOLDER = "s3://bucket/warehouse/db.db/events/data/"


def pairs(name, value):
    item = {
        "type": "record",
        "name": name,
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": value}],
    }
    return ["null", {"type": "array", "items": item}]


SCHEMA = {"type": "record", "name": "entry", "fields": [
    {"name": "status", "type": "int"},
    {"name": "snapshot_id", "type": ["null", "long"]},
    {"name": "data_file", "type": {"type": "record", "name": "file", "fields": [
        {"name": "content", "type": "int"},
        {"name": "file_path", "type": "string"},
        {"name": "record_count", "type": "long"},
        {"name": "sizes", "type": pairs("s", "long")},
        {"name": "bounds", "type": pairs("b", "bytes")},
        {"name": "note", "type": ["null", "string"]}]}},
    {"name": "last", "type": "long"}]}  # fmt: skip


def row(chance, i, folder=FOLDER):
    keys = range(chance.choice((0, 3, 3, 3, 16)))
    file = {
        "content": chance.choice((0, 0, 0, 1)),
        "file_path": f"{folder}{'x' * chance.choice((0, 1, 30, 100, 9000))}{i}.parquet",
        "record_count": chance.randrange(1 << chance.randrange(1, 60)),
        "sizes": chance.choice((None, [{"key": k, "value": chance.randrange(1 << 40)} for k in keys])),
        "bounds": chance.choice((None, [{"key": k, "value": chance.randbytes(8)} for k in keys])),
        "note": chance.choice((None, "", "note")),
    }
    # Numbers of 9 and of 10 bytes, as snapshots have.
    snapshot = chance.choice((None, chance.randrange(1 << 61), chance.randrange(1 << 62, 1 << 63)))
    return {"status": chance.choice((0, 1, 2)), "snapshot_id": snapshot, "data_file": file, "last": i}


def container_of(rows, interval):
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, rows, codec="deflate", sync_interval=interval)
    return avro.parse(out.getvalue(), "x")


def decoded(container, landmark=PATH):
    """The columns, and in how many blocks the landmark showed the records."""
    seen = []

    def find(*arguments):
        seen.append(avro_landmarks.find(*arguments))
        return seen[-1]

    own = avro.by_ids(container.schema, {}, "x")
    with mock.patch.object(avro_columns, "find", find):
        columns = avro_columns.read(container, own, WANTED, landmark)
    return columns, sum(int(f.blocks.sum()) for f in seen if f is not None)


def check(container, shown):
    columns, blocks = decoded(container)
    plain, none = decoded(container, None)
    assert none == 0
    assert columns.starts.tolist() == plain.starts.tolist()
    assert {p: c.tolist() for p, c in columns.places.items()} == {p: c.tolist() for p, c in plain.places.items()}
    assert columns.records() == plain.records()
    assert blocks == (len(container.blocks) if shown is None else shown)


@pytest.mark.few(4)
@pytest.mark.parametrize("interval", [2000, 30_000, 1 << 30])
@pytest.mark.parametrize("seed", range(4))
def test_records_of_every_shape(seed, interval):
    chance = random.Random(seed)
    check(container_of([row(chance, i) for i in range(2000)], interval), None)


def test_more_records_than_are_stepped_over_at_once():
    chance = random.Random(5)
    check(container_of([row(chance, i) for i in range(9000)], 8000), None)


def test_blocks_in_which_the_landmark_occurs_elsewhere_or_is_missing_are_read_as_ever():
    chance = random.Random(6)
    rows = [row(chance, i) for i in range(3000)]
    rows[700]["data_file"]["bounds"] = [{"key": 1, "value": FOLDER.encode()}]
    rows[2100]["data_file"]["file_path"] = "s3://elsewhere/f.parquet"
    container = container_of(rows, 4000)
    check(container, len(container.blocks) - 2)


def test_a_false_landmark_for_a_missing_one_is_not_believed():
    """The count is right, the places are not: nothing is taken from them."""
    chance = random.Random(7)
    rows = [row(chance, i) for i in range(500)]
    rows[300]["data_file"] |= {"file_path": "s3://elsewhere/f.parquet", "note": FOLDER}
    check(container_of(rows, 1 << 30), 0)
    rows[300]["data_file"] |= {"note": "x" * 70 + FOLDER}
    check(container_of(rows, 1 << 30), 0)


def test_paths_that_share_nothing_or_too_little():
    chance = random.Random(8)
    check(container_of([row(chance, i, f"{i}/") for i in range(500)], 4000), 0)
    check(container_of([row(chance, i, "data/") for i in range(500)], 4000), 0)


def test_few_records_a_block_and_none():
    chance = random.Random(9)
    check(container_of([row(chance, i) for i in range(500)], 1), 0)
    check(container_of([], 4000), 0)


@pytest.mark.parametrize("seed", range(150))
def test_damage_is_found_or_reads_as_without_landmarks(seed):
    chance = random.Random(seed)
    container = container_of([row(chance, i) for i in range(60)], 3000)
    blocks = [(n, bytearray(b)) for n, b in avro.payloads(container, avro.by_ids(container.schema, {}, "x"))]
    _, block = chance.choice(blocks)
    for _ in range(chance.choice((1, 1, 3))):
        block[chance.randrange(len(block))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    damaged = avro.Container(
        container.metadata | {"avro.codec": b"null"}, tuple((n, memoryview(bytes(b))) for n, b in blocks), "x", "null"
    )
    outcomes = []
    for landmark in (PATH, None):
        try:
            outcomes.append(repr(decoded(damaged, landmark)[0].records()))
        except CorruptTableError:
            outcomes.append("damage")
    assert outcomes[0] == outcomes[1]
