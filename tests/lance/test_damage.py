"""Damaged and hostile Lance metadata and data: typed errors that name the file, in bounded work and memory."""

from __future__ import annotations

import os
import random
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.lance.file.fields import Field
from boathouse.lance.manifests.file import parse, serialise
from makers.effort import counted_calls

from .fuzzing import CALLS, MEGABYTES, Tally, mutate, peak_megabytes

lance = pytest.importorskip("lance")
VERSIONS = ("legacy", "2.0", "2.1", "2.2")


def corrupt(kit, match: str) -> CorruptTableError:
    """What opening and reading raises; it names the manifest, and takes few calls."""
    with pytest.raises(CorruptTableError, match=match) as caught, counted_calls() as calls:
        kit.read()
    assert caught.value.where and "_versions" in caught.value.where
    assert calls.count < CALLS
    return caught.value


def retyped(logical_type: str):
    def change(manifest):
        fields = (replace(manifest.fields[0], logical_type=logical_type), *manifest.fields[1:])
        return replace(manifest, fields=fields)

    return change


@pytest.mark.spec("L-022")
@pytest.mark.parametrize(
    "logical_type, match",
    [
        (f"fixed_size_list:int32:{1 << 40}", "has no size up to"),
        ("fixed_size_list:int32:-4", "has no size up to"),
        ("fixed_size_list:" * 5000 + "int32" + ":2" * 5000, "nested more than 100 deep"),
        ("fixed_size_list:fixed_size_list:int32:65536:65536", "more than 268,435,456 items"),
        (f"fixed_size_binary:{1 << 40}", "does not parse"),
        ("decimal:128:99:2", "does not parse"),
        ("timestamp:year:-", "does not parse"),
    ],
)
def test_types_that_cannot_be(kit, numbers, logical_type, match):
    kit.pylance(numbers)
    kit.edit(retyped(logical_type))
    error = corrupt_schema(kit, match)
    assert len(str(error)) < 1000


def corrupt_schema(kit, match: str) -> CorruptTableError:
    with pytest.raises(CorruptTableError, match=match) as caught:
        kit.read()
    assert str(kit.root) in (caught.value.where or "")
    return caught.value


def test_fields_nested_without_end(kit, numbers):
    kit.pylance(numbers)
    deep = [Field(name=f"f{i}", id=i, parent_id=i - 1, logical_type="struct", nullable=True) for i in range(5000)]
    kit.edit(lambda m: replace(m, fields=tuple(deep)))
    corrupt(kit, "nested more than 100 deep")


def test_a_path_with_nul(kit, numbers):
    kit.pylance(numbers)

    def change(manifest):
        first = manifest.fragments[0]
        files = (replace(first.files[0], path="a\0b.lance"),)
        return replace(manifest, fragments=(replace(first, files=files),))

    kit.edit(change)
    with pytest.raises(CorruptTableError, match="path"):
        kit.read()


def test_one_file_in_many_fragments(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, fragments=tuple(replace(m.fragments[0], id=i) for i in range(20_000))))
    corrupt(kit, "is named twice")


def test_many_fields(kit, numbers):
    """Legal, and read in steps that grow with their number alone."""
    kit.pylance(numbers)
    steps = [_steps(partial(_with_fields, kit, count)) for count in (250, 1000)]
    assert steps[1] < 6 * steps[0]


def _with_fields(kit, count: int) -> None:
    fields = [Field(name=f"f{i}", id=i, parent_id=-1, logical_type="int64", nullable=True) for i in range(count)]
    kit.edit(lambda m: replace(m, fields=(*m.fields[:1], *fields[1:])))
    assert len(kit.open().schema.names) == count
    assert kit.read(columns=[f"f{count - 1}"]).num_rows == 10


def _steps(act) -> int:
    """How many functions are called, by which a loop in a loop shows whatever else the machine does."""
    called = 0

    def count(frame, event, argument):
        nonlocal called
        called += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return called


def test_a_fragment_without_files(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, fragments=(replace(m.fragments[0], files=()),)))
    corrupt(kit, "fragment 0 has no data file")


def test_rows_without_fields(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, fields=()))
    corrupt(kit, "without fields")


def test_names_twice(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, fields=(m.fields[0], replace(m.fields[1], name="a"))))
    corrupt(kit, "two fields `a`")
    nested = pa.table({"s": pa.array([{"x": 1, "y": 2}])})
    shutil.rmtree(kit.root)
    kit.pylance(nested)
    kit.edit(lambda m: replace(m, fields=(*m.fields[:2], replace(m.fields[2], name="x"))))
    corrupt(kit, "`s` has two fields `x`")


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda m: replace(m, timestamp=replace(m.timestamp, seconds=1 << 60)), "after 1970"),
        (lambda m: replace(m, fragments=(replace(m.fragments[0], id=1 << 63),)), "32 bits"),
        (lambda m: replace(m, fragments=(replace(m.fragments[0], physical_rows=1 << 63),)), "32 bits"),
    ],
)
def test_numbers_beyond_all(kit, numbers, change, match):
    kit.pylance(numbers)
    kit.edit(change)
    corrupt(kit, match)


def test_a_transaction_file_elsewhere(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, transaction_file="../../outside.txn", transaction_section=None))
    path = kit.manifests()[0]
    document = parse(path.read_bytes(), where="")
    path.write_bytes(serialise(replace(document, transaction=None)))
    with pytest.raises(CorruptTableError, match="transaction file"):
        list(kit.open().history())


@pytest.mark.parametrize("version", VERSIONS)
def test_text_that_is_not_utf8(kit, version):
    """Three flipped bytes in a data file are found when the column is read, plain or within lists."""
    words = pa.array([f"needle{i}" for i in range(50)])
    table = pa.table({"s": words, "l": pa.array([[f"needle{i}"] for i in range(50)])})
    kit.pylance(table, data_storage_version=version)
    path = next((kit.root / "data").glob("*.lance"))
    raw = path.read_bytes()
    places = [i for i in range(len(raw)) if raw.startswith(b"needle7", i)]
    damaged = []
    for place in places:
        path.write_bytes(raw[:place] + b"\xff\xfe\xfd" + raw[place + 3 :])
        for column in ("s", "l"):
            try:
                assert kit.read(columns=[column]).column(column).to_pylist() == table.column(column).to_pylist()
            except CorruptTableError as error:
                assert path.name in (error.where or "") and "UTF8" in error.message
                damaged.append(column)
    assert {*damaged} == {"l", "s"}


def test_a_name_that_is_not_utf8(kit, numbers):
    kit.pylance(numbers)
    path = kit.manifests()[0]
    raw = path.read_bytes()
    at = raw.rindex(b"int64")
    path.write_bytes(raw[:at] + b"\xff\xff\xff64" + raw[at + 5 :])
    error = corrupt(kit, "utf-8")
    assert path.name in error.where


@pytest.mark.few(2)
@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_beyond_the_file(kit, numbers, version):
    """Whatever part of the metadata points outside of the file: it is damage of that file."""
    kit.pylance(numbers, data_storage_version=version)
    path = next((kit.root / "data").glob("*.lance"))
    raw = path.read_bytes()
    refused = 0
    for at in range(max(0, len(raw) - 220), len(raw) - 8):
        path.write_bytes(raw[:at] + b"\xff\xff\xff\x7f" + raw[at + 4 :])
        try:
            kit.read()
        except BoathouseError as error:
            assert path.name in (error.where or "")
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("scheme", ["zstd", "lz4"])
def test_compressed_blocks_that_claim_too_much(kit, scheme):
    """What blocks say they inflate to is held against a budget before any memory is taken."""
    asked = {"lance-encoding:compression": scheme}
    words = pa.array([f"a word {i % 50} of some length" for i in range(3000)])
    field = pa.field("s", pa.string(), False, asked)
    kit.pylance(pa.table([words], schema=pa.schema([field])), data_storage_version="2.1")
    path = next((kit.root / "data").glob("*.lance"))
    raw, refused = path.read_bytes(), 0
    before = peak_megabytes()
    for at in range(0, min(len(raw) - 200, 4096), 8):
        claim = b"\xff\xff\xff\xff\xff\x00\x00\x00" if scheme == "zstd" else b"\xff\xff\xff\xff"
        path.write_bytes(raw[:at] + claim + raw[at + len(claim) :])
        try:
            kit.read()
        except BoathouseError as error:
            refused += "inflate to more than" in error.message
    assert refused > 0
    assert peak_megabytes() - before < MEGABYTES


TYPES = pa.table(
    {
        "i": pa.array(range(300), pa.int64()),
        "s": [f"v{i}é" if i % 7 else None for i in range(300)],
        "few": pa.array(["red", "green"] * 150).dictionary_encode(),
        "l": pa.array([list(range(i % 4)) if i % 5 else None for i in range(300)]),
        "st": pa.array([{"x": i, "y": str(i)} for i in range(300)]),
        "v": pa.array([[float(i), 1.0, 2.0] for i in range(300)], pa.list_(pa.float32(), 3)),
        "long": ["x" * (300 + i) for i in range(300)],
        "d": pa.array(range(300), pa.timestamp("us")),
    }
)


def fuzz(root: Path, count: int, seed: int) -> Tally:
    rnd, tally = random.Random(seed), Tally()
    for version in VERSIONS:
        place = root / version
        lance.write_dataset(TYPES, str(place), data_storage_version=version, max_rows_per_file=200)
        lance.dataset(str(place)).delete("i % 9 = 4")
        mutate(place, rnd, tally, count // len(VERSIONS))
    return tally


@pytest.mark.spec("L-022", "L-100", "L-110")
def test_mutations(tmp_path):
    """A short form; the slow tests try 500 of each version, `./run fuzz N` so many."""
    before = peak_megabytes()
    tally = fuzz(tmp_path, 120, 9)
    assert tally.wrong == []
    assert tally.done > 100 and tally.refused > tally.done // 4
    assert peak_megabytes() - before < MEGABYTES


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_many_mutations(tmp_path):
    before = peak_megabytes()
    each = int(os.environ.get("BOATHOUSE_FUZZ", "500"))
    tally = fuzz(tmp_path, each * len(VERSIONS), int(os.environ.get("BOATHOUSE_SEED", "1")))
    assert tally.wrong == []
    assert peak_megabytes() - before < MEGABYTES
