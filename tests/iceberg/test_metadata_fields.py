"""Fields of metadata, manifests and lists that other engines write: read, carried through our commits, or ignored."""

import copy
import gzip
import io
import json
import logging
import random
from pathlib import Path

import fastavro
import foreign_writer
import pyarrow as pa
import pytest
from foreign_writer import Foreign, optional, required

import boathouse as bh
from boathouse.errors import AmbiguousFormatError, CorruptTableError, MixedWritersError, UnsupportedFeatureError
from boathouse.iceberg.manifests.live_once import repeated
from boathouse.iceberg.manifests.records import manifest_file, read_entries, read_list
from makers.effort import counted_calls

DATA = pa.table({"id": list(range(6)), "p": ["a", "b"] * 3})
IDS = (1, 2)


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids)}, DATA.schema)


def ids_of(table, **scan):
    return sorted(table.scan(["id"], **scan).to_arrow()["id"].to_pylist())


def edit(eyes, change):
    document = eyes.document()
    change(document)
    eyes.head().write_text(json.dumps(document))


# --- the document


@pytest.mark.spec("I-034")
def test_version_2_without_a_sequence_number_is_refused(make):
    _, eyes = make(DATA)
    edit(eyes, lambda d: d.pop("last-sequence-number"))
    with pytest.raises(CorruptTableError, match="lacks last-sequence-number"):
        bh.open(str(eyes.root))


ORDERS = [
    {"order-id": 0, "fields": []},
    {"order-id": 3, "fields": [
        {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
        {"transform": "bucket[4]", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}]},
    {"order-id": 4, "fields": [{"transform": "truncate[3]", "source-id": 2, "direction": "desc",
                                "null-order": "nulls-first"}]},
]  # fmt: skip


@pytest.mark.spec("I-135", "I-317", "I-164")
def test_sort_orders_are_kept(make, seen):
    """The JSON of the appendix; files that we write are in the order and say so, and those of others keep theirs."""
    table, eyes = make(DATA)
    edit(eyes, lambda d: d.update({"sort-orders": copy.deepcopy(ORDERS), "default-sort-order-id": 3}))
    table = bh.open(str(eyes.root))
    table.append(rows(10))
    table.set_properties({"x": "y"})
    table.delete("id = 3")
    document = seen(eyes.root).document()
    assert document["sort-orders"] == ORDERS and document["default-sort-order-id"] == 3
    assert {f["sort_order_id"] for f in eyes.live()} == {3}
    (order,) = [o for o in eyes.pyiceberg().metadata.sort_orders if o.order_id == 3]
    assert [str(f.transform) for f in order.fields] == ["identity", "bucket[4]"]
    assert [(f.direction.value, f.null_order.value) for f in order.fields] == [
        ("asc", "nulls-first"), ("desc", "nulls-last")]  # fmt: skip


@pytest.mark.spec("I-136")
def test_order_0_is_the_unsorted_one(make):
    _, eyes = make(DATA)
    assert eyes.document()["sort-orders"] == [{"order-id": 0, "fields": []}]
    fields = ORDERS[1]["fields"]
    edit(eyes, lambda d: d.update({"sort-orders": [{"order-id": 0, "fields": fields}]}))
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6))
    with pytest.raises(CorruptTableError, match="sort order 0"):
        table.append(rows(10))


STATISTICS = [{
    "snapshot-id": 1, "statistics-path": "file:///nowhere/stats.puffin", "file-size-in-bytes": 413,
    "file-footer-size-in-bytes": 42, "key-metadata": None, "blob-metadata": [
        {"type": "apache-datasketches-theta-v1", "snapshot-id": 1, "sequence-number": 1, "fields": [1, 2],
         "properties": {"ndv": "6"}}]}]  # fmt: skip


@pytest.mark.spec("I-241", "I-245", "I-246", "I-247")
@pytest.mark.parametrize("broken", [False, True])
def test_statistics_files(make, tmp_path, broken):
    """Carried through our commits as they are; reads do without them, missing or broken."""
    _, eyes = make(DATA)
    wanted = copy.deepcopy(STATISTICS)
    wanted[0]["snapshot-id"] = wanted[0]["blob-metadata"][0]["snapshot-id"] = eyes.snapshot()["snapshot-id"]
    if broken:
        (tmp_path / "broken.puffin").write_bytes(b"PFA1nonsense")
        wanted[0]["statistics-path"] = f"file://{tmp_path}/broken.puffin"
    partitions = [{"snapshot-id": 5, "statistics-path": "file:///nowhere/p.parquet", "file-size-in-bytes": 7}]
    edit(eyes, lambda d: d.update({"statistics": wanted, "partition-statistics": partitions}))
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6)) and ids_of(table, where="id > 3") == [4, 5]
    table.append(rows(10))
    table.delete("id = 2")
    table.optimize()
    assert eyes.document()["statistics"] == wanted and eyes.document()["partition-statistics"] == partitions
    assert eyes.pyiceberg().metadata.statistics[0].blob_metadata[0].properties == {"ndv": "6"}


OF_VERSION_3 = {
    "format-version": 3, "next-row-id": 6,
    "partition-statistics": [{"snapshot-id": 5, "statistics-path": "file:///nowhere/p.parquet",
                              "file-size-in-bytes": 7}],
    "encryption-keys": [{"key-id": "k1", "encrypted-key-metadata": "AAEC", "encrypted-by-id": "master",
                         "properties": {"a": "b"}}],
}  # fmt: skip


@pytest.mark.spec("I-242")
def test_fields_of_version_3(make):
    """Carried through commits: keys are those of older files where the table has no master key, as in the
    reference."""
    _, eyes = make(DATA)
    edit(eyes, lambda d: d.update(OF_VERSION_3))
    before = eyes.document()
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6)) and ids_of(table, where="id > 3") == [4, 5]
    bh.open(str(eyes.root)).append(rows(10))
    after = eyes.document()
    assert after["next-row-id"] == OF_VERSION_3["next-row-id"] + 7
    for name in ("partition-statistics", "encryption-keys"):
        assert after[name] == OF_VERSION_3[name]
    assert ids_of(bh.open(str(eyes.root))) == [*range(6), 10] and before["snapshots"] == after["snapshots"][:-1]


KEYS_KEPT = {
    "append": lambda t: t.append(rows(20)), "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"p": "'x'"}, "id = 2"), "compaction": lambda t: t.optimize(),
    "properties": lambda t: t.set_properties({"a": "b"}), "a column": lambda t: t.add_column("c", "int"),
    "a branch": lambda t: t.refs.create_branch("b"), "an overwrite": lambda t: t.overwrite(rows(7)),
    "manifests": lambda t: t.rewrite_manifests(), "a partition field": lambda t: t.partition_by("p"),
}  # fmt: skip


@pytest.mark.spec("I-242", "I-336")
@pytest.mark.parametrize("what", KEYS_KEPT)
def test_keys_of_older_snapshots_are_kept(make, what):
    """A snapshot that is encrypted is refused when it is read, and stays as it is."""
    table, eyes = make(DATA)
    table.append(rows(10))
    edit(eyes, lambda d: d.update({**OF_VERSION_3, "next-row-id": 7}))
    edit(eyes, lambda d: d["snapshots"][0].update({"key-id": "k1"}))
    first = eyes.document()["snapshots"][0]
    KEYS_KEPT[what](bh.open(str(eyes.root)))
    after = eyes.document()
    assert after["encryption-keys"] == OF_VERSION_3["encryption-keys"] and after["snapshots"][0] == first
    assert all("key-id" not in s for s in after["snapshots"][1:]) and bh.open(str(eyes.root)).count() > 0
    with pytest.raises(UnsupportedFeatureError, match="encryption"):
        bh.open(str(eyes.root), version=first["snapshot-id"]).to_arrow()
    held = bh.open(str(eyes.root))
    with pytest.raises(UnsupportedFeatureError, match="encryption"):
        held.expire_snapshots(retain_last=100)
    assert eyes.document() == after


@pytest.mark.spec("I-336")
def test_a_table_with_a_master_key_is_not_written(make, tmp_path):
    """What is written would have to be encrypted: also in a table that is new, or would become one."""
    _, eyes = make(DATA)
    edit(eyes, lambda d: d.update({**OF_VERSION_3, "properties": {"encryption.key-id": "master"}}))
    before = sorted(p for p in eyes.root.rglob("*"))
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6))
    for act in KEYS_KEPT.values():
        with pytest.raises(UnsupportedFeatureError, match=r"not offered: encryption\.key-id is 'master'"):
            act(bh.open(str(eyes.root)))
    assert sorted(p for p in eyes.root.rglob("*")) == before
    given = {"encryption.key-id": "master", "format-version": "3"}
    other, _ = make(DATA, name="other")
    for act in (
        lambda: bh.create(str(tmp_path / "new"), DATA.schema, format="iceberg", properties=given),
        lambda: bh.write(DATA, str(tmp_path / "new"), "iceberg", properties=given),
        lambda: other.set_properties({"encryption.key-id": "master"}),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"encryption\.key-id is 'master'"):
            act()
    assert not list((tmp_path / "new").rglob("*")) and other.append(rows(10)).rows_added == 1


@pytest.mark.parametrize("name, value", [
    ("next-row-id", "6"), ("next-row-id", True), ("encryption-keys", {}),
    ("encryption-keys", ["k1"]), ("partition-statistics", [{"snapshot-id": 5}]),
    ("partition-statistics", [{"snapshot-id": "5", "statistics-path": "p"}]),
])  # fmt: skip
def test_broken_fields_of_version_3(make, name, value):
    _, eyes = make(DATA)
    edit(eyes, lambda d: d.update(OF_VERSION_3 | {name: value}))
    with pytest.raises(CorruptTableError, match=name.replace("-statistics", ".statistics")):
        bh.open(str(eyes.root))


@pytest.mark.spec("I-236")
def test_every_listed_snapshot_has_its_files(make):
    table, eyes = make(DATA, partition_by=["p"])
    expected = [6]
    for change, count in (
        (lambda: table.append(rows(10, 11)), 8), (lambda: table.delete("id < 2"), 6),
        (lambda: table.update({"id": "id + 100"}, "p = 'a'"), 6), (table.optimize, 6),
        (lambda: table.overwrite(rows(1)), 1),
    ):  # fmt: skip
        change()
        if len(eyes.document()["snapshots"]) > len(expected):
            expected.append(count)
    snapshots = eyes.document()["snapshots"]
    assert len(snapshots) == 5
    for snapshot, count in zip(snapshots, expected):
        assert bh.open(str(eyes.root), version=snapshot["snapshot-id"]).to_arrow().num_rows == count
        for manifest in eyes.manifests(snapshot):
            for entry in eyes.entries(manifest):
                if entry["status"] != 2:
                    assert Path(entry["data_file"]["file_path"].removeprefix("file://")).exists()


@pytest.mark.spec("I-244")
def test_a_thousand_snapshots_and_many_schemas(make):
    _, eyes = make(DATA)

    def grow(document):
        (snapshot,), (schema,) = document["snapshots"], document["schemas"]
        document["snapshots"] = [
            {**snapshot, "snapshot-id": i + 1, "schema-id": i % 370, "timestamp-ms": snapshot["timestamp-ms"] + i}
            for i in range(1000)
        ]
        document["schemas"] = [
            {**schema, "schema-id": i,
             "fields": [*schema["fields"], *({"id": 3 + n, "name": f"c{n}", "type": "long", "required": False}
                                             for n in range(i))]}
            for i in range(370)
        ]  # fmt: skip
        document["refs"] = {f"r{i}": {"snapshot-id": i + 1, "type": "tag"} for i in range(1000)}
        document["refs"]["main"] = {"snapshot-id": 1000, "type": "branch"}
        document.update({"current-snapshot-id": 1000, "current-schema-id": 369, "last-column-id": 400})
        document["last-updated-ms"] += 1000

    edit(eyes, grow)
    with counted_calls() as opening:
        table = bh.open(str(eyes.root))
        assert len(table.schema.names) == 371 and bh.open(str(eyes.root), ref="r4").schema.names[-1] == "c3"
    assert ids_of(table) == list(range(6))
    assert opening.count < 6_000_000


@pytest.mark.spec("I-243")
@pytest.mark.parametrize("name", ["v{}.gz.metadata.json", "v{}.metadata.json.gz"])
def test_gzip_under_both_names(make, name):
    table, eyes = make(DATA)
    for path in eyes.files():
        number = path.name[1:].split(".")[0]
        path.with_name(name.format(number)).write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6))
    (head,) = eyes.files("v2*")
    assert ids_of(bh.open(str(head))) == list(range(6))
    table.append(rows(10))
    (written,) = eyes.files("v3*")
    assert written.name == name.format(3) and written.read_bytes()[:2] == b"\x1f\x8b"
    written, _ = make(DATA, name="asked", properties={"write.metadata.compression-codec": "gzip"})
    assert written.count() == 6


# --- a catalog's table by its path


@pytest.mark.spec("I-252")
def test_a_catalogs_table_without_its_catalog(catalog, caplog):
    theirs = catalog.create_table("db.t", DATA.schema)
    for _ in range(2):
        theirs.append(DATA)
    head = Path(theirs.metadata_location.removeprefix("file://"))
    number = head.name.split("-")[0]
    for i, (id, later) in enumerate((("z" * 8, -5), ("a" * 8, 5))):
        document = json.loads(head.read_text())
        document["last-updated-ms"] += later
        document["properties"]["rival"] = str(i)
        head.with_name(f"{number}-{id}.metadata.json").write_text(json.dumps(document))
    with caplog.at_level(logging.WARNING, "boathouse"):
        table = bh.open(theirs.location())
    assert table.properties["rival"] == "1" and "only the catalog knows" in caplog.text
    assert sorted(ids_of(table)) == sorted([*range(6)] * 2)
    with pytest.raises(MixedWritersError, match="only the catalog may make a new version current") as caught:
        table.append(DATA)
    assert 'bh.open("catalog.namespace.table")' in str(caught.value)


@pytest.mark.spec("I-253")
def test_metadata_of_both_kinds(catalog):
    theirs = catalog.create_table("db.t", DATA.schema)
    theirs.append(DATA)
    head = Path(theirs.metadata_location.removeprefix("file://"))
    (head.parent / "v1.metadata.json").write_bytes(head.read_bytes())
    with pytest.raises(AmbiguousFormatError, match=r"a file-system table .*and of a catalog"):
        bh.open(theirs.location())
    assert ids_of(bh.open(str(head))) == ids_of(bh.open(str(head.parent / "v1.metadata.json"))) == list(range(6))


# --- manifests and lists


@pytest.mark.spec("I-149")
def test_numbers_of_entries():
    """Those of new entries are kept where they are given; old entries must have theirs."""
    fields = [
        required("status", "int", 0), optional("snapshot_id", "long", 1), optional("sequence_number", "long", 3),
        optional("file_sequence_number", "long", 4),
        required("data_file", {"type": "record", "name": "r2", "fields": [
            required("content", "int", 134), required("file_path", "string", 100),
            required("file_format", "string", 101), required("record_count", "long", 103),
            required("partition", {"type": "record", "name": "r102", "fields": []}, 102),
            required("file_size_in_bytes", "long", 104)]}, 2)]  # fmt: skip
    schema = {"type": "record", "name": "manifest_entry", "fields": fields}
    row = {"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "content": 0, "sequence_number": 9,
           "min_sequence_number": 1, "added_snapshot_id": 90}  # fmt: skip

    def entries(*found):
        out = io.BytesIO()
        file = {"content": 0, "file_path": "f", "file_format": "PARQUET", "record_count": 1, "partition": {},
                "file_size_in_bytes": 1}  # fmt: skip
        made = [{"status": s, "snapshot_id": None, "sequence_number": n, "file_sequence_number": m, "data_file": file}
                for s, n, m in found]  # fmt: skip
        fastavro.writer(out, schema, made, metadata={"content": "data"})
        return read_entries(out.getvalue(), manifest_file(dict(row), "l"), "m")

    (one, two) = entries((1, 4, 5), (1, None, None))
    assert (one["sequence_number"], one["file_sequence_number"]) == (4, 5)
    assert (two["sequence_number"], two["file_sequence_number"], two["snapshot_id"]) == (9, 9, 90)
    for numbers in ((None, None), (None, 3), (3, None)):
        with pytest.raises(CorruptTableError, match="is not new but has no"):
            entries((0, *numbers))


@pytest.fixture
def more_fields(monkeypatch):
    """more_fields(field, ...): the entries that `Foreign` writes have these fields of data files too."""
    real = foreign_writer.entry_schema

    def add(*fields):
        def schema(partition):
            found = copy.deepcopy(real(partition))
            found["fields"][-1]["type"]["fields"] += fields
            return found

        monkeypatch.setattr(foreign_writer, "entry_schema", schema)

    return add


@pytest.fixture
def foreign(tmp_path):
    bh.create(str(tmp_path / "t"), DATA.schema, format="iceberg")
    return Foreign(tmp_path / "t")


def opened(foreign):
    return bh.open(str(foreign.root))


DEPRECATED = [
    required("block_size_in_bytes", "long", 105), optional("file_ordinal", "int", 106),
    optional("sort_columns", {"type": "array", "items": "int", "element-id": 112}, 107),
]  # fmt: skip


@pytest.mark.spec("I-152")
def test_fields_of_old_writers(foreign, more_fields, seen):
    """Ignored, and not written again with the entries that a commit of ours carries on."""
    more_fields(*DEPRECATED)
    old = {"block_size_in_bytes": -5, "file_ordinal": 77, "sort_columns": [9, 9]}
    entries = [foreign.data(rows(*ids), IDS) for ids in ((1, 2), (3, 4))]
    for e in entries:
        e["data_file"] |= old
    foreign.commit(*entries)
    assert ids_of(opened(foreign)) == [1, 2, 3, 4] and ids_of(opened(foreign), where="id > 3") == [4]
    opened(foreign).delete("id = 1")
    assert ids_of(opened(foreign)) == [2, 3, 4]
    eyes, checked = seen(foreign.root), 0
    for manifest in eyes.manifests():
        _, header = eyes.avro(manifest["manifest_path"])
        data_file = next(f for f in header["avro.schema"]["fields"] if f["name"] == "data_file")["type"]
        assert not {105, 106, 107} & {f["field-id"] for f in data_file["fields"]}
        checked += 1
    assert checked == 2 and eyes.rows().num_rows == 3


@pytest.mark.spec("I-164", "I-139")
def test_sort_orders_of_files(foreign, more_fields, seen):
    """Kept for data files; on position deletes, where it must be null, ignored."""
    more_fields(optional("sort_order_id", "int", 140))
    entries = [foreign.data(rows(*ids), IDS) for ids in ((1, 2), (3, 4), (5, 6))]
    for e, order in zip(entries, (1, 0, None)):
        e["data_file"]["sort_order_id"] = order
    foreign.commit(*entries)
    deletes = foreign.positions([(entries[0]["data_file"]["file_path"], 0)])
    deletes["data_file"]["sort_order_id"] = 1
    foreign.commit(deletes)
    assert ids_of(opened(foreign)) == [2, 3, 4, 5, 6]
    opened(foreign).delete("id = 5")
    assert ids_of(opened(foreign)) == [2, 3, 4, 6]
    orders = {f["file_path"]: f["sort_order_id"] for f in seen(foreign.root).live()}
    assert [orders.get(e["data_file"]["file_path"], "gone") for e in entries] == [1, 0, "gone"]
    shown = opened(foreign).inspect.delete_files()
    assert shown.num_rows == 1 and ids_of(opened(foreign), where="id < 4") == [2, 3]


@pytest.mark.spec("I-161")
def test_key_metadata_of_files(foreign, more_fields, seen):
    """Null in our files; kept where it names no key; a file that needs one is refused by that name."""
    more_fields(optional("key_metadata", "bytes", 131))
    entries = [foreign.data(rows(*ids), IDS) for ids in ((1, 2), (3, 4))]
    for e in entries:
        e["data_file"]["key_metadata"] = b""
    foreign.commit(*entries)
    opened(foreign).delete("id = 1")
    assert ids_of(opened(foreign)) == [2, 3, 4]
    found = {f["file_path"]: f["key_metadata"] for f in seen(foreign.root).live()}
    assert found.pop(entries[1]["data_file"]["file_path"]) == b"" and list(found.values()) == [None]
    needs = foreign.data(rows(9), IDS)
    needs["data_file"]["key_metadata"] = b"a key"
    foreign.commit(needs)
    with pytest.raises(UnsupportedFeatureError, match="encryption is not offered") as caught:
        opened(foreign).to_arrow()
    assert caught.value.where == needs["data_file"]["file_path"]


@pytest.mark.spec("I-177")
def test_a_snapshot_with_a_list_and_manifests(make):
    """The list wins, and what we write has one only."""
    table, eyes = make(DATA)
    edit(eyes, lambda d: d["snapshots"][0].update(manifests=["file:///nowhere/m.avro"]))
    table = bh.open(str(eyes.root))
    assert ids_of(table) == list(range(6))
    table.append(rows(10))
    assert ids_of(table) == [*range(6), 10] and "manifests" not in eyes.snapshot()


@pytest.mark.spec("I-171")
@pytest.mark.parametrize("deletes", [False, True])
def test_a_file_that_is_live_twice(foreign, deletes):
    """In one manifest and in two; with verify=False its rows are read twice, as the lists say."""
    a, b = (foreign.data(rows(*ids), IDS, bounds=True) for ids in ((1, 2), (3,)))
    foreign.commit(a, b)
    foreign.commit(a)
    if deletes:
        foreign.commit(foreign.positions([(b["data_file"]["file_path"], 0)]))
    for where in (None, "id < 3"):
        with pytest.raises(CorruptTableError, match="live twice in one snapshot") as caught:
            opened(foreign).scan(where=where).to_arrow()
        assert caught.value.where == a["data_file"]["file_path"]
    with pytest.raises(CorruptTableError, match="live twice"):
        opened(foreign).delete("id = 1")
    assert ids_of(opened(foreign), where="id = 3") == ([] if deletes else [3])
    if not deletes:
        twice = bh.open(str(foreign.root), verify=False)
        assert ids_of(twice) == [1, 1, 2, 2, 3] and twice.count() == 5


def test_repeated_paths_among_many():
    """Whatever their length and chunks, and if only their beginnings differ."""
    chance = random.Random(4)
    for length in (1, 7, 8, 9, 63, 64, 65, 200, 255, 256, 300):
        some = [f"{i:x}".rjust(length, "x") for i in range(16 if length == 1 else 200)]
        some += [f"é{i}" + "z" * length for i in range(50)]
        chance.shuffle(some)
        cut = chance.randrange(len(some))
        for extra in ([], [some[chance.randrange(cut + 1)]]):
            parts = [
                pa.array(["skipped", *some[:cut]]).slice(1),
                pa.array([], pa.string()),
                pa.array(some[cut:] + extra),
            ]
            assert repeated(pa.chunked_array(parts)) == (extra[0] if extra else None)
    assert repeated(pa.chunked_array([], pa.string())) is None


@pytest.mark.spec("I-197")
def test_key_metadata_of_manifests(make):
    """Kept where it names no key; a table that needs keys is refused by name (the tests of encryption)."""
    _, eyes = make(DATA)
    path = Path(eyes.snapshot()["manifest-list"].removeprefix("file://"))
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        found, schema = list(reader), reader.writer_schema
    for row in found:
        row["key_metadata"] = b""
    with open(path, "wb") as file:
        fastavro.writer(file, schema, found)
    assert read_list(path.read_bytes(), "l")[0].row["key_metadata"] == b""
    table = bh.open(str(eyes.root))
    table.append(rows(10))
    kept = {m["manifest_path"]: m["key_metadata"] for m in eyes.manifests()}
    assert len(kept) == 2 and kept[found[0]["manifest_path"]] == b""
