"""Damaged and hostile metadata: the right rows, or an error of ours that says where, soon and in little memory.

`./run fuzz N` tries N mutations of each kind, the slow tests 500.
"""

import copy
import io
import json
import os
import random
import resource
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from metadata_tables import rows

import boathouse as bh
from boathouse.avro import container as avro
from boathouse.cli import survey
from boathouse.errors import BoathouseError
from boathouse.iceberg.manifests import entries
from boathouse.iceberg.manifests import reader as manifest_reader
from boathouse.table.inspection import NAMES
from makers.effort import counted_calls

SHORT = 12
EACH = int(os.environ.get("BOATHOUSE_FUZZ", "500"))
SEED = int(os.environ.get("BOATHOUSE_SEED", "7"))
DATA = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "p": ["a", "b", "a", None, "b", "a"],
        "n": pa.array(
            [[{"x": i, "y": "é"}] for i in range(6)], pa.list_(pa.struct({"x": pa.int32(), "y": pa.string()}))
        ),
        "d": pa.array([i / 2 for i in range(6)]),
    }
)
MOST_CALLS = 500_000
"""Of functions, for one table of a few rows."""
MEGABYTES = 1000
"""What the memory of the process may grow by."""


@pytest.fixture
def damaged(make, position_deletes):
    """A table of three data manifests and one of deletes, its files uncompressed; and the files a snapshot needs."""
    properties = {"write.avro.compression-codec": "uncompressed"}
    table, eyes = make(DATA.slice(0, 2), partition_by=["p", "bucket(4, id)"], properties=properties)
    table.append(DATA.slice(2, 2))
    table.append(DATA.slice(4))
    entry = next(e for m in eyes.manifests() for e in eyes.entries(m) if e["data_file"]["partition"]["p"] == "b")
    file = entry["data_file"]
    ids = [f["field-id"] for f in eyes.document()["partition-specs"][0]["fields"]]
    rows = pa.table({"file_path": [file["file_path"]], "pos": pa.array([0], pa.int64())})
    position_deletes(eyes, rows, dict(zip(ids, file["partition"].values())))
    snapshot = eyes.snapshot()
    listed = Path(snapshot["manifest-list"].removeprefix("file://"))
    kept = [Path(m["manifest_path"].removeprefix("file://")) for m in eyes.manifests()]
    return eyes, {"json": [eyes.head()], "list": [listed], "manifest": kept}


def look(root):
    """Everything that reads metadata; the ids of the table's rows."""
    table = bh.open(str(root))
    rows = table.to_arrow()
    table.count()  # what a manifest says; where that was changed, nothing tells
    table.scan(["id"], where="id > 1 AND p = 'b' AND d < 100.5").to_arrow()
    for what in (table.schema, table.history, table.detail, table.files, table.properties):
        str(what() if callable(what) else what)
    return sorted(rows["id"].to_pylist()) if "id" in rows.column_names else None


def outcome(root):
    """What `look` finds, or its error; anything else than an error of ours fails, and so does what takes many calls."""
    with counted_calls() as calls:
        try:
            found = look(root)
        except BoathouseError as error:
            assert str(error)
            found = error
        survey.describe(str(root), "iceberg", {})
    assert calls.count < MOST_CALLS
    return found


def places(value, path=()):
    yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from places(item, (*path, key))


def nested(depth, kind):
    found = "int"
    for _ in range(depth):
        found = {"list": {"type": "list", "element-id": 99, "element": found, "element-required": False},
                 "array": {"type": "array", "items": found}}[kind]  # fmt: skip
    return found


HOSTILE = (
    None, True, 0, -1, 2, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1, 1.5, "", "x", "9", "é" * 40, "a\0b", [], {},
    [None], [{}], {"type": "struct"}, "fixed[1099511627776]", "fixed[-1]", "decimal(99,1)", "decimal(9,99)", "struct",
    "list", "unknown", "geometry", "variant", "timestamp_ns", "bucket[99999999999]", "truncate[0]", "year", "void",
    "my[3]", "file:///etc/passwd", "/", "../../x", "s3://bucket/x", "hdfs://host/x", "://", 253_402_300_800_000,
    "record", "null", "array", ["null", "null"], ["int"], nested(300, "list"), nested(300, "array"),
)  # fmt: skip


def mutated(document, chooser):
    """A document with one to three of its members replaced, removed, doubled or exchanged."""
    found = copy.deepcopy(document)
    for _ in range(chooser.choice((1, 1, 1, 2, 3))):
        path = chooser.choice([p for p in places(found) if p])
        holder = found
        for key in path[:-1]:
            holder = holder[key]
        match chooser.randrange(6):
            case 0:
                del holder[path[-1]]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[path[-1]]))
            case 2:
                other = chooser.choice(list(places(document)))
                value = document
                for key in other:
                    value = value[key]
                holder[path[-1]] = copy.deepcopy(value)
            case _:
                holder[path[-1]] = copy.deepcopy(chooser.choice(HOSTILE))
    return found


def json_mutations(data, chooser):
    return json.dumps(mutated(json.loads(data), chooser)).encode()


def with_header(data, key, change):
    """An Avro file with another value in its header, its blocks as they are."""
    container = avro.parse(data, "x")
    entries = {k: change(v) if k == key else v for k, v in container.metadata.items()}
    out = bytearray(b"Obj\x01" + avro.long_bytes(len(entries)))
    for k, v in entries.items():
        out += avro.long_bytes(len(k)) + k.encode() + avro.long_bytes(len(v)) + v
    out += b"\0" + b"S" * 16
    for count, block in container.blocks:
        out += avro.long_bytes(count) + avro.long_bytes(len(block)) + bytes(block) + b"S" * 16
    return bytes(out)


def schema_mutations(data, chooser):
    return with_header(data, "avro.schema", lambda v: json.dumps(mutated(json.loads(v), chooser)).encode())


def value_mutations(data, chooser):
    """The records with other values of the same kind, written again."""
    reader = fastavro.reader(io.BytesIO(data))
    rows = list(reader)
    places_ = [p for p in places(rows) if p]
    for _ in range(chooser.choice((1, 1, 2))):
        path = chooser.choice(places_)
        holder = rows
        try:
            for key in path[:-1]:
                holder = holder[key]
            old = holder[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
        numbers = (0, -1, 1, 2, 3, 99, (1 << 31) - 1, -(1 << 31))
        match old:
            case bool():
                holder[path[-1]] = not old
            case int():
                holder[path[-1]] = chooser.choice(numbers)
            case str():
                holder[path[-1]] = chooser.choice(("", "x", old + "x", "a\0b", "/etc/passwd", "s3://b/k", "ORC"))
            case bytes():
                holder[path[-1]] = chooser.choice((b"", b"\xff", b"\xff" * 8, b"\0" * 4, b"x" * 40))
            case list() if old:
                old.append(copy.deepcopy(old[0]))
    out = io.BytesIO()
    header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    fastavro.writer(out, reader.writer_schema, rows, codec="null", metadata=header)
    return out.getvalue()


def byte_mutations(data, chooser):
    found = bytearray(data)
    for _ in range(chooser.choice((1, 1, 2, 8))):
        at = chooser.randrange(len(found))
        match chooser.randrange(4):
            case 0:
                found[at] ^= 1 << chooser.randrange(8)
            case 1:
                found[at : at + chooser.randrange(20)] = chooser.randbytes(chooser.randrange(20))
            case 2:
                found[at : at + 10] = b"\xff" * chooser.randrange(1, 30)
            case 3:
                found[at] = chooser.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        if not found:
            break
    return bytes(found)


KINDS = [
    ("json", json_mutations), ("json", byte_mutations), ("list", schema_mutations), ("list", value_mutations),
    ("list", byte_mutations), ("manifest", schema_mutations), ("manifest", value_mutations),
    ("manifest", byte_mutations),
]  # fmt: skip


def run(damaged, kind, change, count, seed):
    eyes, files = damaged
    expected = look(eyes.root)
    assert expected == [0, 1, 2, 3, 5] and bh.open(str(eyes.root)).count() == 5
    chooser = random.Random(seed)
    read = 0
    for _ in range(count):
        path = chooser.choice(files[kind])
        data = path.read_bytes()
        try:
            try:
                changed = change(data, chooser)
            except (ValueError, TypeError, OverflowError, KeyError, AttributeError):
                continue  # fastavro does not write it
            path.write_bytes(changed)
            read += not isinstance(outcome(eyes.root), BoathouseError)
        finally:
            path.write_bytes(data)
    assert look(eyes.root) == expected
    return read


@pytest.mark.few(4)
@pytest.mark.parametrize(("kind", "change"), KINDS, ids=[f"{k}-{c.__name__}" for k, c in KINDS])
@pytest.mark.parametrize("seed", [1])
def test_mutations(damaged, kind, change, seed):
    assert run(damaged, kind, change, SHORT, seed) < SHORT


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("kind", "change"), KINDS, ids=[f"{k}-{c.__name__}" for k, c in KINDS])
def test_many_mutations(damaged, kind, change):
    run(damaged, kind, change, EACH, SEED)


@pytest.fixture
def wide(make):
    """A table whose manifest has so many entries that it is decoded as columns, in several blocks; and the manifest."""
    n = 2 * entries.FEW + 9
    data = pa.table({
        "id": pa.array(range(n), pa.int64()), "p": [None if i % 9 == 4 else f"p{i}" for i in range(n)],
        "d": pa.array([None if i % 7 == 0 else i / 2 for i in range(n)]),
    })  # fmt: skip
    _, eyes = make(data, partition_by=["p", "bucket(64, id)"])
    (manifest,) = [Path(m["manifest_path"].removeprefix("file://")) for m in eyes.manifests()]
    with manifest.open("rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    assert len(rows) > entries.FEW
    with manifest.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="null", sync_interval=4000, metadata=header)
    assert len(avro.parse(manifest.read_bytes(), "x").blocks) > 3
    return eyes.root, manifest


def planned(root):
    """What the manifest says, as rows; or the error of ours that comes instead. Data files are not opened."""
    with counted_calls() as calls:
        try:
            table = bh.open(str(root))
            found = table.files().to_pylist()
            table.count()
            some = table.scan(["id"], where="id > 40 AND d < 50.5 AND p >= 'p3'").plan()
            found = (found, some.units.to_pylist())
        except BoathouseError as error:
            assert str(error)
            found = error
    assert calls.count < MOST_CALLS
    return found


def inspected(root, names):
    """Metadata tables, or the error of ours that comes instead."""
    found = {}
    with counted_calls() as calls:
        for name in names:
            try:
                table = bh.open(str(root)).inspect.to_arrow(name)
                table.validate(full=True)
                found[name] = rows(table)  # of a key that a map has twice, the last one
            except BoathouseError as error:
                assert str(error)
                found[name] = "refused"
    assert calls.count < MOST_CALLS
    return found


@pytest.mark.parametrize("change", [c for k, c in KINDS if k == "manifest"])
def test_metadata_tables_of_mutations(wide, change, monkeypatch):
    """Decoded as columns and record by record, with the same outcome."""
    root, manifest = wide
    data, chooser, tried = manifest.read_bytes(), random.Random(3), 0
    for _ in range(SHORT // 4):
        try:
            manifest.write_bytes(change(data, chooser))
        except (ValueError, TypeError, OverflowError, KeyError, AttributeError):
            continue  # fastavro does not write it
        monkeypatch.setattr(manifest_reader, "FEW", entries.FEW)
        found = inspected(root, ["entries"])
        monkeypatch.setattr(manifest_reader, "FEW", 1 << 40)
        one_by_one = inspected(root, ["entries"])
        assert repr(found) == repr(one_by_one)
        tried += 1
    assert tried


@pytest.mark.parametrize(("kind", "change"), KINDS, ids=[f"{k}-{c.__name__}" for k, c in KINDS])
def test_metadata_tables_of_small_damaged_files(damaged, kind, change):
    eyes, files = damaged
    chooser = random.Random(5)
    for _ in range(SHORT // 8):
        path = chooser.choice(files[kind])
        data = path.read_bytes()
        try:
            path.write_bytes(change(data, chooser))
            inspected(eyes.root, [n for n in NAMES if not n.endswith("_files")])
        except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:
            if path.read_bytes() != data:
                raise AssertionError(repr(error)) from error
        finally:
            path.write_bytes(data)


def run_wide(wide, change, count, seed, monkeypatch):
    """Mutations of a manifest, which is decoded as columns and record by record: with the same outcome."""
    root, manifest = wide
    data, chooser, refused, tried = manifest.read_bytes(), random.Random(seed), 0, 0
    few = entries.FEW
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        try:
            changed = change(data, chooser)
        except (ValueError, TypeError, OverflowError, KeyError, AttributeError):
            continue  # fastavro does not write it
        manifest.write_bytes(changed)
        monkeypatch.setattr(entries, "FEW", few)
        found = planned(root)
        monkeypatch.setattr(entries, "FEW", 1 << 40)
        one_by_one = planned(root)
        tried += 1
        refused += isinstance(found, BoathouseError)
        same = type(found) is type(one_by_one) and (
            isinstance(found, BoathouseError) or repr(found) == repr(one_by_one)
        )
        if not same:
            kept = manifest.rename(manifest.with_suffix(f".{number}"))
            raise AssertionError(f"{number}: {str(found)[:500]} is not {str(one_by_one)[:500]}; see {kept}")
    manifest.write_bytes(data)
    assert not isinstance(planned(root), BoathouseError)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10 < MEGABYTES
    return tried, refused


CHANGES = [schema_mutations, value_mutations, byte_mutations]


@pytest.mark.few(1)
@pytest.mark.parametrize("change", CHANGES)
def test_mutations_of_many_entries(wide, change, monkeypatch):
    tried, refused = run_wide(wide, change, max(SHORT // 2, 10), 1, monkeypatch)
    assert 0 < refused <= tried


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("change", CHANGES)
def test_many_mutations_of_many_entries(wide, change, monkeypatch):
    run_wide(wide, change, EACH, SEED, monkeypatch)
