"""Metadata made to harm: each is refused by an error of ours that names the file, in bounded time and memory."""

import gzip
import json
import tracemalloc
import zlib

import fastavro
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.avro import container as avro
from boathouse.errors import BoathouseError, CorruptTableError, ForeignPathError, UnsupportedFeatureError
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.metadata.name_mapping import NameMapping
from boathouse.iceberg.metadata.schemas import parse_schema
from boathouse.storage import Stores
from boathouse.storage.uris import foreign

pytestmark = pytest.mark.timeout(60)
DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a", "b", "a"]})


def edit(eyes, change):
    document = eyes.document()
    change(document)
    eyes.head().write_text(json.dumps(document))


def first(document, name):
    return document[name][0]


DOCUMENTS = {
    "refs that are numbers": lambda d: d.update(refs=7),
    "a ref that is a number": lambda d: d["refs"].update(main=7),
    "a ref with text for an id": lambda d: d["refs"]["main"].update({"snapshot-id": "x"}),
    "a timestamp as text": lambda d: first(d, "snapshots").update({"timestamp-ms": "now"}),
    "a timestamp after the year 9999": lambda d: first(d, "snapshots").update({"timestamp-ms": 1 << 60}),
    "an update after the year 9999": lambda d: d.update({"last-updated-ms": 1 << 60}),
    "a number for a manifest list": lambda d: first(d, "snapshots").update({"manifest-list": 7}),
    "a number for a summary": lambda d: first(d, "snapshots").update(summary=7),
    "a summary of numbers": lambda d: first(d, "snapshots").update(summary={"operation": 7}),
    "a fixed of 2^40": lambda d: d["schemas"][0]["fields"][0].update(type="fixed[1099511627776]"),
    "a fixed of very many digits": lambda d: d["schemas"][0]["fields"][0].update(type=f"fixed[{'9' * 9000}]"),
    "a decimal of very many digits": lambda d: d["schemas"][0]["fields"][0].update(type=f"decimal({'9' * 9000},1)"),
    "a partition field without transform": lambda d: first(d, "partition-specs")["fields"][0].pop("transform"),
    "a year of text": lambda d: first(d, "partition-specs")["fields"][0].update(transform="year"),
    "a schema without an id": lambda d: d["schemas"].append({"type": "struct", "fields": []}),
    "a spec without an id": lambda d: d["partition-specs"].append({"fields": []}),
    "a column id twice": lambda d: d["schemas"][0]["fields"][1].update(id=1),
    "a column name twice": lambda d: d["schemas"][0]["fields"][1].update(name="id"),
    "a column name twice, joined": lambda d: d["schemas"][0]["fields"].extend(
        [
            {"id": 7, "name": "s.a", "required": False, "type": "int"},
            {"id": 8, "name": "s", "required": False,
             "type": {"type": "struct", "fields": [{"id": 9, "name": "a", "required": False, "type": "int"}]}},
        ]
    ),
    "a column named by a number": lambda d: d["schemas"][0]["fields"][1].update(name=7),
    "an id as text": lambda d: d["schemas"][0]["fields"][1].update(id="2"),
    "main elsewhere": lambda d: d["refs"]["main"].update({"snapshot-id": 5}),
    "a current snapshot other than main": lambda d: (
        d["snapshots"].append({**d["snapshots"][0], "snapshot-id": 5}), d.update({"current-snapshot-id": 5})),
    "main without a current snapshot": lambda d: d.update({"current-snapshot-id": -1}),
    "a snapshot twice": lambda d: d["snapshots"].append(d["snapshots"][0]),
    "a schema twice": lambda d: d["schemas"].append(d["schemas"][0]),
    "a spec twice": lambda d: d["partition-specs"].append(d["partition-specs"][0]),
    "a partition field name twice": lambda d: first(d, "partition-specs")["fields"].append(
        {"source-id": 1, "field-id": 1009, "name": "p", "transform": "identity"}),
    "a sequence number that is not given out yet": lambda d: d.update({"last-sequence-number": 0}),
    "a property that is a number": lambda d: d["properties"].update(x=7),
    "true for a number": lambda d: d.update({"last-column-id": True}),
    "our own parameters, broken": lambda d: first(d, "snapshots")["summary"].update({"boathouse.parameters": "{"}),
    "our own metrics, not an object": lambda d: first(d, "snapshots")["summary"].update({"boathouse.metrics": "3"}),
    "an unpaired surrogate": lambda d: first(d, "snapshots")["summary"].update({"boathouse.metrics": '"\\ud800"'}),
    "a name mapping of numbers": lambda d: d["properties"].update(
        {"schema.name-mapping.default": '[{"field-id": 1, "names": [7]}]'}),
    "a name mapping with a text id": lambda d: d["properties"].update(
        {"schema.name-mapping.default": '[{"field-id": "x", "names": ["a"]}]'}),
    "a name mapping 600 deep": lambda d: d["properties"].update(
        {"schema.name-mapping.default": '[{"names":["a"],"fields":' * 600 + "[]" + "}]" * 600}),
    "a path with NUL": lambda d: first(d, "snapshots").update({"manifest-list": "file:///a\0b"}),
    "an empty path": lambda d: first(d, "snapshots").update({"manifest-list": ""}),
}  # fmt: skip


@pytest.mark.parametrize("what", DOCUMENTS)
def test_documents(make, what):
    _, eyes = make(DATA, partition_by=["p"])
    edit(eyes, DOCUMENTS[what])
    with pytest.raises(CorruptTableError) as caught:
        table = bh.open(str(eyes.root))
        table.history()
        table.to_arrow()
    assert str(eyes.root) in str(caught.value)


def test_a_name_mapping_that_is_nested_too_deeply():
    deep = b'[{"names":["a"],"fields":' * 600 + b"[]" + b"}]" * 600
    with pytest.raises(CorruptTableError, match="name mapping"):
        NameMapping.parse(deep.decode(), "x")


@pytest.mark.parametrize("depth", [101, 400, 50_000])
@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_a_schema_that_is_nested_deeply(make, depth, kind):
    parts = {
        "list": ('{"type":"list","element-id":9,"element-required":false,"element":', "}"),
        "struct": ('{"type":"struct","fields":[{"id":9,"name":"a","required":false,"type":', "}]}"),
        "map": ('{"type":"map","key-id":8,"key":"int","value-id":9,"value-required":false,"value":', "}"),
    }[kind]
    _, eyes = make(DATA)
    found = eyes.head().read_text()
    eyes.head().write_text(found.replace('"string"', parts[0] * depth + '"int"' + parts[1] * depth, 1))
    with pytest.raises((CorruptTableError, UnsupportedFeatureError), match=r"deep|not JSON"):
        bh.open(str(eyes.root)).to_arrow()


def test_types_nested_a_hundred_deep_are_read():
    deep = "int"
    for i in range(49):
        deep = {"type": "struct", "fields": [{"id": i + 2, "name": "a", "required": False, "type": deep}]}
    schema = parse_schema({"fields": [{"id": 1, "name": "a", "required": False, "type": deep}]})
    assert len(max((path for path, _ in schema.walk()), key=len)) == 50


def test_metadata_that_inflates_to_gigabytes(make):
    _, eyes = make(DATA)
    squeeze = zlib.compressobj(9, wbits=31)
    bomb = squeeze.compress(b" " * (1 << 20)) + b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(200))
    eyes.head().write_bytes(bomb + squeeze.flush())
    tracemalloc.start()
    with pytest.raises(CorruptTableError, match="inflate to more than") as caught:
        bh.open(str(eyes.root))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 << 20 and eyes.head().name in str(caught.value)


def test_metadata_that_is_gzip_is_read_whatever_its_name(make):
    _, eyes = make(DATA)
    eyes.head().write_bytes(gzip.compress(eyes.head().read_bytes()))
    assert bh.open(str(eyes.root)).count() == 3


def container(schema, blocks, codec=b"null"):
    out = bytearray(b"Obj\x01" + avro.long_bytes(2))
    for key, value in ((b"avro.schema", schema if isinstance(schema, bytes) else json.dumps(schema).encode()),
                       (b"avro.codec", codec)):  # fmt: skip
        out += avro.long_bytes(len(key)) + key + avro.long_bytes(len(value)) + value
    out += b"\0" + b"S" * 16
    for count, block in blocks:
        out += avro.long_bytes(count) + avro.long_bytes(len(block)) + block + b"S" * 16
    return bytes(out)


def decoded(data):
    found = avro.parse(data, "file:///x.avro")
    schema = avro.by_ids(found.schema, {}, "file:///x.avro")
    return [row for rows in avro.records(found, schema) for row in rows]


def record(*types):
    return {"type": "record", "name": "r", "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]}


def halving(depth):
    """A record of two of the next, which is a record of two of the next: few bytes, 2^depth fields."""
    found = "int"
    for i in range(depth):
        first = {"type": "record", "name": f"n{i}", "fields": [{"name": "a", "type": found}]}
        first["fields"].append({"name": "b", "type": f"n{i - 1}" if i else "int"})
        found = first
    return found


NOTHING = {"type": "record", "name": "n", "fields": []}
MANY = avro.long_bytes(1 << 40)
AVRO = {
    "records of no bytes": container(NOTHING, [(1 << 40, b"")]),
    "records of nulls": container(record("null"), [(1 << 40, b"")]),
    "an array of records of no bytes": container(record({"type": "array", "items": NOTHING}), [(1, MANY + b"\0")]),
    "an array of nulls": container(record({"type": "array", "items": "null"}), [(1, MANY + b"\0")]),
    "an array of fixed(0)": container(
        record({"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}), [(1, MANY + b"\0")]),
    "an array of more numbers than bytes": container(record({"type": "array", "items": "int"}), [(1, MANY + b"\0")]),
    "a map of more entries than bytes": container(record({"type": "map", "values": "int"}), [(1, MANY + b"\0")]),
    "more records than bytes": container(record("int"), [(1 << 40, b"\0\0")]),
    "a fixed that goes back": container(record({"type": "fixed", "name": "x", "size": -1}), [(1, b"\0")]),
    "a number without end": container(record("long"), [(1, b"\xff" * 100_000)]),
    "100,000 fields of no bytes": container(record(*["null"] * 100_000, "int"), [(100_000, b"\0" * 100_000)]),
    "a schema 50,000 deep": container(
        b'{"type":"array","items":' * 50_000 + b'"int"' + b"}" * 50_000, [(1, b"\0")]),
    "a schema 200 deep": container(b'{"type":"array","items":' * 200 + b'"int"' + b"}" * 200, [(1, b"\0")]),
    "a record in itself": container(record({"type": "array", "items": "r"}), [(1, b"\0")]),
    "names that double": container(halving(40), [(1, b"\0")]),
    "a schema that is not UTF-8": container(b'"\xff"', []),
    "a schema that is not JSON": container(b"{", []),
    "records that are numbers": container("int", [(1, b"\0")]),
    "text that is not UTF-8": container(record("string"), [(1, b"\x02\xff")]),
    "a union without branches": container(record([]), [(1, b"\0")]),
    "a field twice": container(
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}] * 2}, [(1, b"\0\0")]),
    "a file without its marker": container(record("int"), [])[:-5],
    "deflate that is cut": container(record("string"), [(1, zlib.compress(b"\x06abc")[2:5])], b"deflate"),
    "zstd that is cut": container(
        record("string"), [(1, pa.compress(b"\x06abc" * 99, "zstd", asbytes=True)[:20])], b"zstandard"),
    "snappy of 2^60": container(record("string"), [(1, b"\xff" * 8 + b"\x0f" + b"\0" * 20)], b"snappy"),
    "snappy without a checksum": container(record("string"), [(1, b"\x04")], b"snappy"),
    "snappy with another checksum": container(
        record("string"), [(1, pa.compress(b"\x06abc", "snappy", asbytes=True) + b"abcd")], b"snappy"),
    "not Avro": b"Parquet",
}  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("what", AVRO)
def test_avro(what):
    with pytest.raises(CorruptTableError) as caught:
        decoded(AVRO[what])
    assert caught.value.where == "file:///x.avro"


@pytest.mark.parametrize("codec", [b"xz", b"lzma", b"", b"Deflate"])
def test_an_unknown_codec_is_refused_even_without_blocks(codec):
    with pytest.raises(UnsupportedFeatureError, match="Avro codec"):
        decoded(container(record("int"), [], codec))


@pytest.mark.few(1)
@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_a_block_that_inflates_to_gigabytes(codec):
    size = 300 << 20
    body = {
        "deflate": lambda: zlib.compress(bytes(size), 9)[2:-4],
        "zstandard": lambda: pa.compress(bytes(size), "zstd", asbytes=True),
        "snappy": lambda: pa.compress(bytes(size), "snappy", asbytes=True)[:1000] + b"\0" * 4,
    }[codec]()
    data = container(record("string"), [(1, body)], codec.encode())
    tracemalloc.start()
    with pytest.raises(CorruptTableError, match="inflate to more than"):
        decoded(data)
    assert tracemalloc.get_traced_memory()[1] < 200 << 20
    tracemalloc.stop()


def test_what_fastavro_and_others_write_stays_readable():
    """Trailing bytes of a zlib checksum, empty records as a field, arrays in blocks with sizes."""
    schema = record("string", NOTHING, {"type": "array", "items": "int"})
    body = b"\x06abc" + b"\x03\x04\x02\x04" + b"\0"
    expected = [{"f0": "abc", "f1": {}, "f2": [1, 2]}]
    assert decoded(container(schema, [(1, body)])) == expected
    assert decoded(container(schema, [(1, zlib.compress(body)[2:-1])], b"deflate")) == expected
    assert decoded(container(schema, [])) == []


def rewritten(path, change):
    """An Avro file with its records and header changed by `change(rows, header)`, written by fastavro."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows, header = list(reader), {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema = reader.writer_schema
    change(rows, header)
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, metadata=header)


def listed(eyes):
    return eyes.root / "metadata" / eyes.snapshot()["manifest-list"].rpartition("/")[2]


def manifest_of(eyes):
    return eyes.root / "metadata" / eyes.manifests()[0]["manifest_path"].rpartition("/")[2]


@pytest.mark.parametrize("count", [2, 20_000])
def test_a_manifest_that_is_named_many_times(make, count):
    _, eyes = make(DATA)
    rewritten(listed(eyes), lambda rows, header: rows.extend(rows * (count - 1)))
    with pytest.raises(CorruptTableError, match=rf"{count:,} rows, but names only 1 manifests"):
        bh.open(str(eyes.root)).to_arrow()


def test_a_manifest_that_is_named_in_two_spellings(make):
    _, eyes = make(DATA)
    other = {"manifest_path": f"file:{manifest_of(eyes)}"}
    rewritten(listed(eyes), lambda rows, header: rows.append({**rows[0], **other}))
    with pytest.raises(CorruptTableError, match="names only 1"):
        bh.open(str(eyes.root)).to_arrow()


LISTS = {
    "deletes, of a manifest of data": lambda r: r.update(content=1),
    "an unknown content": lambda r: r.update(content=7),
    "a spec that is not there": lambda r: r.update(partition_spec_id=9),
    "a count below zero": lambda r: r.update(added_files_count=-1),
    "a sequence number below zero": lambda r: r.update(sequence_number=-1),
}


@pytest.mark.parametrize("what", LISTS)
def test_rows_of_a_manifest_list(make, what):
    _, eyes = make(DATA)
    rewritten(listed(eyes), lambda rows, header: LISTS[what](rows[0]))
    with pytest.raises(CorruptTableError) as caught:
        bh.open(str(eyes.root)).to_arrow()
    assert ".avro" in str(caught.value)


ENTRIES = {
    "an unknown status": lambda e: e.update(status=7),
    "position deletes among data": lambda e: e["data_file"].update(content=1),
    "rows below zero": lambda e: e["data_file"].update(record_count=-1),
    "a size below zero": lambda e: e["data_file"].update(file_size_in_bytes=-1),
    "a path that is empty": lambda e: e["data_file"].update(file_path=""),
    "a path with NUL": lambda e: e["data_file"].update(file_path="file:///a\0b"),
    "a format that is none": lambda e: e["data_file"].update(file_format="CSV"),
}


@pytest.mark.parametrize("what", ENTRIES)
def test_entries_of_a_manifest(make, what):
    _, eyes = make(DATA)
    rewritten(manifest_of(eyes), lambda rows, header: ENTRIES[what](rows[0]))
    with pytest.raises(CorruptTableError):
        bh.open(str(eyes.root)).to_arrow()


def test_partition_values_of_another_type(make):
    _, eyes = make(DATA, partition_by=["p"])
    other = manifests.read_list(listed(eyes).read_bytes(), "x")
    spec = [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]
    edit(eyes, lambda d: d["partition-specs"][0].update(fields=spec))
    assert other
    with pytest.raises(CorruptTableError, match=r"partition field `p` has a value that is not bigint"):
        bh.open(str(eyes.root)).to_arrow()


def test_a_data_file_of_deletes_is_no_data(make, position_deletes):
    _, eyes = make(DATA)
    rows = pa.table({"file_path": ["x"], "pos": pa.array([0], pa.int64())})
    position_deletes(eyes, rows, content=0)
    with pytest.raises(CorruptTableError, match="content 0 in a manifest of deletes"):
        bh.open(str(eyes.root)).to_arrow()


# --- paths


@pytest.mark.parametrize(
    ("uri", "home", "expected"),
    [
        ("file:///etc/passwd", "s3://b/t", True), ("s3://b/k", "file:///t", True), ("s3://other/k", "s3://b/t", False),
        ("file:///elsewhere", "file:///t", False), ("abfss://c@a.dfs.core.windows.net/k", "az://c/t", False),
        ("gs://b/k", "s3://b/t", True), ("memory://a/k", "file:///t", True),
    ],
)  # fmt: skip
def test_what_is_foreign(uri, home, expected):
    assert foreign(uri, home) is expected


def moved_to_memory(eyes, name, change=lambda path, data: data):
    """The table's files in a store in memory."""
    store, _ = Stores().resolve(f"memory://{name}/t")
    for path in sorted(eyes.root.rglob("*")):
        if path.is_file():
            relative = path.relative_to(eyes.root)
            store.put(f"t/{relative}", change(relative, path.read_bytes()))
    return f"memory://{name}/t"


def naming(member):
    """Metadata whose paths lie in memory, but for one kind of file, which stays on the local disk."""

    def change(eyes, name):
        local, there = f"file://{eyes.root}", f"memory://{name}/t"
        document = json.loads(eyes.head().read_text().replace(local, there))
        if member == "list":
            document["snapshots"][0]["manifest-list"] = f"file://{listed(eyes)}"
        eyes.head().write_text(json.dumps(document))
        kept = {"list": [], "manifest": ["manifest_path"], "data": ["file_path"]}[member]

        def replaced(rows, header):
            for row in rows:
                row = row.get("data_file", row)
                for key in ("manifest_path", "file_path"):
                    if key in row and key not in kept:
                        row[key] = row[key].replace(local, there)

        rewritten(listed_at, replaced)
        rewritten(manifest_at, replaced)

    def run(eyes, name):
        nonlocal listed_at, manifest_at
        listed_at, manifest_at = listed(eyes), manifest_of(eyes)
        change(eyes, name)
        return moved_to_memory(eyes, name)

    listed_at = manifest_at = None
    return run


@pytest.mark.parametrize("member", ["list", "manifest", "data"])
def test_a_table_in_a_store_names_a_local_file(make, member):
    _, eyes = make(DATA)
    uri = naming(member)(eyes, f"foreign-{member}")
    with pytest.raises(ForeignPathError, match="names a file elsewhere") as caught:
        bh.open(uri).to_arrow()
    assert caught.value.where.startswith(f"file://{eyes.root}") and "allow_foreign_paths=True" in str(caught.value)
    with pytest.raises(ForeignPathError):
        bh.open(uri).delete("id = 1")
    assert bh.open(uri, allow_foreign_paths=True).to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_the_error_shows_the_path_and_not_the_bytes(make):
    _, eyes = make(DATA)
    secret = eyes.root.parent / "secret"
    secret.write_bytes(b"password")
    edit(eyes, lambda d: d["snapshots"][0].update({"manifest-list": f"file://{secret}"}))
    uri = moved_to_memory(eyes, "secret")
    for allowed in (False, True):
        with pytest.raises(BoathouseError) as caught:
            bh.open(uri, allow_foreign_paths=allowed, relocated={f"file://{eyes.root}": uri}).to_arrow()
        assert str(secret) in str(caught.value) and "password" not in str(caught.value)


def test_a_local_table_names_a_file_in_a_store(make):
    _, eyes = make(DATA)
    edit(eyes, lambda d: d["snapshots"][0].update({"manifest-list": "memory://other/list.avro"}))
    with pytest.raises(ForeignPathError, match=r"memory://other/list\.avro"):
        bh.open(str(eyes.root)).to_arrow()


@pytest.mark.parametrize("path", ["hdfs://host/warehouse/x.avro", "ftp://host/x"])
def test_a_scheme_that_no_store_has_is_named(make, path):
    _, eyes = make(DATA)
    edit(eyes, lambda d: d["snapshots"][0].update({"manifest-list": path}))
    with pytest.raises(UnsupportedFeatureError, match="scheme") as caught:
        bh.open(str(eyes.root)).to_arrow()
    assert path in str(caught.value)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_the_options_are_true_or_false(make, value):
    _, eyes = make(DATA)
    with pytest.raises(BoathouseError, match="allow_foreign_paths"):
        bh.open(str(eyes.root), allow_foreign_paths=value)
    with pytest.raises(BoathouseError, match="verify"):
        bh.open(str(eyes.root), verify=value)


def test_delta_tables_name_no_local_file_either(tmp_path):
    """One rule for the formats: the data file of an add, and the file of a deletion vector."""
    uri = "memory://foreign-delta/t"
    bh.write(DATA, uri, format="delta")
    store, _ = Stores().resolve(uri)
    local = tmp_path / "x.parquet"
    name = next(o.key for o in store.list("t") if o.key.endswith(".parquet"))
    local.write_bytes(store.get(name))
    log = "t/_delta_log/00000000000000000000.json"
    store.put(log, store.get(log).replace(name.removeprefix("t/").encode(), f"file://{local}".encode()))
    with pytest.raises(ForeignPathError):
        bh.open(uri).to_arrow()
    assert bh.open(uri, allow_foreign_paths=True).to_arrow().num_rows == 3


def test_lance_tables_name_no_local_file_either(monkeypatch):
    """Data files that lie below a base path are held against the place of the table as those of other formats."""
    from boathouse.lance import fragments

    uri = "memory://foreign-lance/t"
    bh.write(DATA, uri, format="lance")
    monkeypatch.setattr(fragments, "data_uri", lambda manifest, file, root: f"file:///base/{file.path}")
    for read in (lambda t: t.to_arrow(), lambda t: t.delete("id = 1"), lambda t: t.scan(where="id = 1").to_arrow()):
        with pytest.raises(ForeignPathError, match="file:///base/"):
            read(bh.open(uri))
