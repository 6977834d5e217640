"""The manifest: container, messages, unknown fields, broken bytes."""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits.protobuf import varint
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.lance.manifests.file import ManifestFile, parse, serialise
from boathouse.lance.manifests.messages import Manifest, Timestamp, WriterVersion
from boathouse.lance.manifests.versions import FEW, recent
from boathouse.lance.snapshot import read_transaction

UNKNOWN = varint(99 << 3 | 2) + varint(3) + b"new"


@pytest.mark.spec("L-007")
def test_the_container_is_exact(kit, numbers):
    kit.pylance(numbers)
    data = kit.manifests()[0].read_bytes()
    position, major, minor, magic = struct.unpack("<qHH4s", data[-16:])
    (length,) = struct.unpack_from("<I", data, position)
    assert (major, minor, magic) == (0, 2, b"LANC")
    assert position + 4 + length + 16 == len(data)
    document = parse(data, where="m")
    ours = serialise(document)
    assert ours[-8:] == data[-8:]
    assert parse(ours, where="m") == document
    kit.manifests()[0].write_bytes(ours)
    assert kit.dataset().to_table() == numbers


@pytest.mark.spec("L-021")
def test_sections_of_both_fields_are_read_and_23_is_written(kit, numbers):
    kit.pylance(numbers)
    path = kit.manifests()[0]
    document = parse(path.read_bytes(), where="m")
    assert document.manifest.transaction_section == 0  # position 0 is a value
    body = document.transaction.encode()
    old = replace(document.manifest, transaction_section=None, transaction_section_21=0)
    raw = old.encode()
    section = struct.pack("<I", len(body)) + body
    data = section + struct.pack("<I", len(raw)) + raw + struct.pack("<qHH4s", len(section), 0, 2, b"LANC")
    found = parse(data, where="m")
    assert found.transaction == document.transaction
    again = parse(serialise(found), where="m").manifest
    assert again.transaction_section == 0 and again.transaction_section_21 is None


def test_the_transaction_file_is_the_last_resort(kit, numbers):
    kit.pylance(numbers)
    document = kit.load().document
    bare = replace(document, transaction=None)
    assert read_transaction(kit.context, bare) == document.transaction
    nameless = replace(bare, manifest=replace(document.manifest, transaction_file=""))
    assert read_transaction(kit.context, nameless) is None


@pytest.mark.spec("L-006")
def test_corpus_manifests_survive_a_round_trip(corpora, tmp_path):
    seen = 0
    for root, _, names in os.walk(corpora / "lance" / "test_data"):
        for name in (n for n in names if n.endswith(".manifest") and "_versions" in root):
            data = Path(root, name).read_bytes()
            document = parse(data, where=name)
            again = parse(serialise(document), where=name)
            free = {"index_section": None, "transaction_section": None, "transaction_section_21": None}
            assert replace(again.manifest, **free) == replace(document.manifest, **free)
            assert (again.index, again.transaction) == (document.index, document.transaction)
            seen += 1
    assert seen > 30


@pytest.mark.spec("L-006", "L-010", "L-016", "L-019")
def test_unknown_and_unneeded_fields_survive_our_commit(kit, numbers):
    kit.pylance(numbers)
    kit.edit(
        lambda m: replace(
            m,
            unknown=UNKNOWN,
            version_aux_data=7,
            tag="old",
            config={"lance.some": "x"},
            table_metadata={"owner": "me"},
            writer_version=WriterVersion(library="somebody", version="not a version"),
            fragments=tuple(replace(f, unknown=UNKNOWN) for f in m.fragments),
            fields=tuple(replace(f, unknown=UNKNOWN) for f in m.fields),
        )
    )
    kit.open().append(numbers)
    after = kit.load().manifest
    assert after.version == 2
    assert (after.unknown, after.version_aux_data, after.tag) == (UNKNOWN, 7, "old")
    assert after.config == {"lance.some": "x"} and after.table_metadata == {"owner": "me"}
    assert after.fragments[0].unknown == UNKNOWN and after.fields[0].unknown == UNKNOWN
    assert after.writer_version.library == "boathouse" and after.writer_version.version
    assert kit.dataset().count_rows() == 20


@pytest.mark.spec("L-009")
def test_version_and_timestamp(kit, numbers):
    kit.create(numbers)
    snapshot = kit.load()
    theirs = kit.dataset().versions()[0]
    assert theirs["version"] == snapshot.version == 1
    assert abs(theirs["timestamp"].timestamp() * 1000 - snapshot.timestamp_ms) < 1000
    assert Timestamp.of_ms(1_700_000_000_123).ms == 1_700_000_000_123
    kit.edit(lambda m: replace(m, version=5))
    with pytest.raises(CorruptTableError, match="name of version 1 has version 5"):
        kit.load()


@pytest.mark.spec("L-011")
def test_schema_metadata(kit):
    data = pa.table({"a": [1]}).replace_schema_metadata({"key": "välue", "n": "1"})
    kit.pylance(data)
    assert kit.load().manifest.schema_metadata == {"key": "välue".encode(), "n": b"1"}
    assert kit.load().schema.metadata == {"key": "välue", "n": "1"}
    kit.edit(lambda m: replace(m, schema_metadata={**m.schema_metadata, "raw": b"\xff\x00"}))
    kit.open().append(pa.table({"a": [2]}))
    assert kit.load().manifest.schema_metadata == {"key": "välue".encode(), "n": b"1", "raw": b"\xff\x00"}


@pytest.mark.spec("L-008")
def test_fields_are_depth_first(kit):
    data = pa.table({"a": [1], "b": [{"c": ["x"], "d": 1.0}]})
    kit.create(data)
    fields = kit.load().manifest.fields
    assert [(f.id, f.parent_id, f.name) for f in fields] == [
        (0, -1, "a"),
        (1, -1, "b"),
        (2, 1, "c"),
        (3, 2, "item"),
        (4, 1, "d"),
    ]
    theirs = kit.dataset().lance_schema.fields()
    assert [f.id() for f in theirs] == [0, 1]
    assert [c.id() for c in theirs[1].children()] == [2, 4]


@pytest.mark.spec("L-037")
def test_other_numberings_of_fields_are_read(kit, numbers):
    kit.pylance(numbers)
    moved = {0: 40, 1: 7}
    kit.edit(
        lambda m: replace(
            m,
            fields=tuple(replace(f, id=moved[f.id]) for f in m.fields),
            fragments=tuple(
                replace(f, files=tuple(replace(d, fields=tuple(moved[i] for i in d.fields)) for d in f.files))
                for f in m.fragments
            ),
        )
    )
    assert [f.id for f in kit.load().schema] == [40, 7]
    assert kit.read() == numbers


def _footer(data: bytes, **changes) -> bytes:
    position, major, minor, magic = struct.unpack("<qHH4s", data[-16:])
    return data[:-16] + struct.pack(
        "<qHH4s", changes.get("position", position), major, minor, changes.get("magic", magic)
    )


@pytest.mark.spec("L-022")
@pytest.mark.parametrize(
    "broken",
    [
        lambda d: b"",
        lambda d: d[:10],
        lambda d: d[: len(d) // 2],
        lambda d: _footer(d, magic=b"PAR1"),
        lambda d: _footer(d, position=len(d)),
        lambda d: _footer(d, position=-1),
        lambda d: _footer(d, position=2**62),
        lambda d: struct.pack("<I", 2**31) + _footer(d, position=0)[4:],
        lambda d: d[:-20] + b"\xff\xff\xff\xff" + d[-16:],
    ],
    ids=["empty", "short", "half", "magic", "position-at-end", "negative", "far", "length", "protobuf"],
)
def test_broken_manifests_are_refused_never_an_older_version(kit, numbers, broken):
    kit.pylance(numbers)
    kit.pylance(numbers, mode="append")
    path = kit.manifests()[0]
    path.write_bytes(broken(path.read_bytes()))
    before = kit.files()
    with pytest.raises(CorruptTableError) as failure:
        kit.load()
    assert path.name in str(failure.value)
    with pytest.raises(BoathouseError):
        kit.open().append(numbers)
    assert kit.files() == before


def test_a_manifest_without_optional_fields_is_read(kit, numbers):
    kit.pylance(numbers)
    kit.edit(lambda m: replace(m, timestamp=None, writer_version=None, max_fragment_id=None))
    kit.edit(lambda m: replace(m, fragments=tuple(replace(f, physical_rows=7) for f in m.fragments)))
    assert kit.read() == numbers  # numbers of rows without a writer's version are not trusted
    snapshot = kit.load()
    assert snapshot.timestamp_ms == 0 and snapshot.detail()["writer"] is None
    kit.open().append(numbers)
    assert [(f.id, f.physical_rows) for f in kit.load().manifest.fragments] == [(0, 10), (1, 10)]


def test_sections_are_placed_before_the_manifest():
    document = ManifestFile(Manifest(version=3), b"index bytes", None)
    found = parse(serialise(document), where="m")
    assert found.index == b"index bytes" and found.manifest.index_section == 0 and found.transaction is None


def test_the_newest_of_more_manifests_than_are_looked_at(kit):
    """A name of the other scheme is found wherever it sorts."""
    t = bh.create(kit.uri, pa.schema([("a", pa.int64())]), format="lance")
    for i in range(FEW + 3):
        t.set_properties({"n": str(i)})
    listed = recent(kit.context)
    assert [v.version for v in listed[:2]] == [t.version, t.version - 1] and len(listed) == FEW
    shutil.copy(kit.manifests()[0], kit.root / "_versions" / "7.manifest")
    with pytest.raises(CorruptTableError, match="both naming schemes"):
        bh.open(kit.uri)
