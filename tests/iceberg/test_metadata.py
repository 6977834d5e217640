"""Table metadata: the documents of others, and what we write."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.adapter import FORMAT
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})


def documents(corpora):
    for folder in ("java-resources", "rust-testdata/table_metadata"):
        yield from sorted((corpora / "iceberg" / folder).glob("TableMetadata*.json"))


def test_documents_of_java_and_rust(corpora):
    broken = {
        "TableMetadataV2CurrentSchemaNotFound", "TableMetadataV2MissingLastPartitionId",
        "TableMetadataV2MissingPartitionSpecs", "TableMetadataV2MissingSchemas", "TableMetadataV2MissingSortOrder",
        "TableMetadataV1NoValidSchema",
        "TableMetadataUnsupportedVersion",  # of Rust: a document without most fields
    }  # fmt: skip
    seen = 0
    for path in documents(corpora):
        data, name = path.read_bytes(), path.stem
        version = json.loads(data)["format-version"]
        seen += 1
        if name in broken and version in (1, 2, 3):
            with pytest.raises(CorruptTableError, match=r"lacks|among"):
                TableMetadata.parse(data, str(path))
        elif version not in (1, 2, 3):
            with pytest.raises(UnsupportedFeatureError, match=f"version {version}"):
                TableMetadata.parse(data, str(path))
        else:
            found = TableMetadata.parse(data, str(path))
            assert found.schema.fields and found.partitioning.current is not None
            recorded = json.loads(data)
            if version == 1:
                recorded.pop("snapshots", None)
                assert recorded.items() <= found.document.items()
            else:
                assert found.document == recorded
    assert seen > 15


@pytest.mark.spec("I-318", "I-319", "I-240")
def test_the_examples_of_snapshots_logs_and_refs(corpora):
    path = corpora / "iceberg/java-resources/TableMetadataV2Valid.json"
    found = TableMetadata.parse(path.read_bytes(), str(path))
    assert set(found.snapshots) == {3051729675574597004, 3055729675574597004}
    assert found.refs["main"]["snapshot-id"] == found.current_snapshot_id == 3055729675574597004
    assert [s["snapshot-id"] for s in found.ancestors(found.current_snapshot_id)] == [
        3055729675574597004,
        3051729675574597004,
    ]
    document = json.loads(path.read_bytes())
    document["snapshots"][0]["schema-id"] = "0"
    textual = TableMetadata(document, "x")
    assert textual.schema_of(document["snapshots"][0]) == textual.schemas[0]


@pytest.mark.spec("I-002")
@pytest.mark.parametrize("version", [4, 5, 99])
def test_newer_versions_are_refused_by_name(version, make):
    table, eyes = make(DATA)
    document = {**eyes.document(), "format-version": version}
    eyes.head().write_text(json.dumps(document))
    before = sorted(p.name for p in eyes.root.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match=f"version {version}"):
        bh.open(str(eyes.root), format="iceberg")
    with pytest.raises(BoathouseError):
        table.append(DATA)
    assert {p for p in before if "metadata.json" in p} == {p.name for p in eyes.files()}


@pytest.mark.spec("I-032", "I-327", "I-229", "I-231", "I-232", "I-233", "I-239", "I-234")
def test_what_a_v2_document_holds(make):
    table, eyes = make(DATA, partition_by=["s"], properties={"my.own": "x"})
    document = eyes.document()
    assert document["format-version"] == 2
    required = ["table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id", "schemas",
                "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
                "default-sort-order-id", "refs", "snapshots", "snapshot-log", "metadata-log"]  # fmt: skip
    assert all(k in document for k in required)
    assert "schema" not in document and "partition-spec" not in document
    assert document["sort-orders"] == [{"order-id": 0, "fields": []}] and document["default-sort-order-id"] == 0
    assert document["last-column-id"] == 2 and document["last-partition-id"] == 1000
    assert document["properties"] == {"my.own": "x"}
    first = eyes.document(eyes.files("v1.metadata.json")[0])
    assert first["table-uuid"] == document["table-uuid"] and "current-snapshot-id" not in first
    table.set_properties({"other": "1", "my.own": None})
    last = eyes.document()
    assert last["last-updated-ms"] > document["last-updated-ms"] > first["last-updated-ms"]
    assert last["properties"] == {"other": "1"} == dict(eyes.pyiceberg().properties)
    assert last["last-sequence-number"] == document["last-sequence-number"] == 1


@pytest.mark.spec("I-173", "I-174", "I-175", "I-178", "I-237", "I-240", "I-328")
def test_what_a_snapshot_holds(make):
    table, eyes = make(DATA)
    table.append(DATA)
    document = eyes.document()
    first, second = document["snapshots"]
    assert "parent-snapshot-id" not in first and second["parent-snapshot-id"] == first["snapshot-id"]
    for snap in (first, second):
        assert 0 < snap["snapshot-id"] < 2**63 and snap["summary"]["operation"] == "append"
        assert set(snap) >= {"sequence-number", "timestamp-ms", "manifest-list", "summary", "schema-id"}
        assert isinstance(snap["schema-id"], int) and "manifests" not in snap
    assert [s["sequence-number"] for s in (first, second)] == [1, 2]
    assert document["refs"] == {"main": {"type": "branch", "snapshot-id": second["snapshot-id"]}}
    log = [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in (first, second)]
    assert document["snapshot-log"] == log
    assert document["last-updated-ms"] == second["timestamp-ms"]
    assert len(document["metadata-log"]) == 2


@pytest.mark.spec("I-235", "I-240")
@pytest.mark.parametrize("spelling", [-1, None, "absent"])
def test_no_current_snapshot(make, spelling):
    _, eyes = make(DATA, append=False)
    document = eyes.document()
    if spelling != "absent":
        document["current-snapshot-id"] = spelling
    document["refs"] = None
    eyes.head().write_text(json.dumps(document))
    table = bh.open(str(eyes.root))
    assert table.version == 0 and table.to_arrow().num_rows == 0
    table.set_properties({"a": "b"})
    assert eyes.document().get("current-snapshot-id", None) in (None,) and -1 not in eyes.document().values()
    table.append(DATA)
    assert eyes.rows().num_rows == 3 and set(eyes.document()["refs"]) == {"main"}


@pytest.mark.spec("I-035", "I-319")
def test_unknown_fields_are_carried_through_our_commits(make):
    table, eyes = make(DATA)
    document = eyes.document()
    document["future"] = {"n": 2**53 + 1, "f": [1, None]}
    document["snapshots"][0]["future"] = 9007199254740993
    document["snapshots"][0]["summary"]["odd"] = "kept"
    document["refs"]["main"]["max-ref-age-ms"] = 5
    document["refs"]["main"]["future"] = True
    document["schemas"][0]["fields"][0]["future"] = "x"
    eyes.head().write_text(json.dumps(document))
    table.append(DATA)
    table.add_column("more", "int")
    table.set_properties({"p": "q"})
    after = eyes.document()
    assert after["future"] == {"n": 9007199254740993, "f": [1, None]}
    assert after["snapshots"][0] == document["snapshots"][0]
    assert after["refs"]["main"]["max-ref-age-ms"] == 5 and after["refs"]["main"]["future"] is True
    assert all(s["fields"][0]["future"] == "x" for s in after["schemas"])
    assert len(after["schemas"]) == 2 and eyes.rows().num_rows == 6


@pytest.mark.spec("I-229")
def test_a_changed_uuid_is_refused(make):
    table, eyes = make(DATA)
    document = {**eyes.document(), "table-uuid": "00000000-0000-0000-0000-000000000000"}
    (eyes.root / "metadata" / "v3.metadata.json").write_text(json.dumps(document))
    with pytest.raises(BoathouseError, match="recreated"):
        table.append(DATA)


@pytest.mark.spec("I-183", "I-184")
def test_time_travel(make):
    table, eyes = make(DATA)
    first = eyes.snapshot()
    table.add_column("more", "bigint")
    table.append(pa.table({"id": [4], "s": ["d"], "more": [1]}))
    uri = str(eyes.root)
    old = bh.open(uri, version=first["snapshot-id"])
    assert old.schema.names == ("id", "s") and old.to_arrow().num_rows == 3
    assert bh.open(uri).schema.names == ("id", "s", "more") and bh.open(uri).to_arrow().num_rows == 4
    context = TableContext(Location(absolute(uri)), Stores())
    for at, rows in ((first["timestamp-ms"], 3), (eyes.snapshot()["timestamp-ms"], 4)):
        found = FORMAT.open(context, At(timestamp_ms=at))
        assert sum(b.column("rows").to_pylist()[0] for b in found.files()) == rows
    with pytest.raises(bh.errors.VersionNotFoundError):
        FORMAT.open(context, At(timestamp_ms=first["timestamp-ms"] - 1))
    with pytest.raises(bh.errors.VersionNotFoundError):
        FORMAT.open(context, At(version=12345))


def test_time_travel_follows_the_log_not_the_parents(make):
    table, eyes = make(DATA)
    table.append(DATA)
    document = eyes.document()
    one, two = document["snapshots"]
    document["snapshot-log"].append({"snapshot-id": one["snapshot-id"], "timestamp-ms": two["timestamp-ms"] + 10})
    document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"] = one["snapshot-id"]
    document["last-updated-ms"] += 10
    eyes.head().write_text(json.dumps(document))
    context = TableContext(Location(absolute(str(eyes.root))), Stores())
    at = [FORMAT.open(context, At(timestamp_ms=two["timestamp-ms"] + d)).version for d in (0, 10)]
    assert at == [two["snapshot-id"], one["snapshot-id"]]


def test_branches_and_tags_are_read(make):
    table, eyes = make(DATA)
    table.append(DATA)
    document = eyes.document()
    first = document["snapshots"][0]["snapshot-id"]
    document["refs"]["old"] = {"snapshot-id": first, "type": "tag"}
    document["refs"]["dev"] = {"snapshot-id": first, "type": "branch"}
    eyes.head().write_text(json.dumps(document))
    context = TableContext(Location(absolute(str(eyes.root))), Stores())
    assert FORMAT.open(context, At(ref="old")).version == first
    assert FORMAT.open(context, At(ref="dev")).version == first
    with pytest.raises(bh.errors.VersionNotFoundError, match="dev, main, old"):
        FORMAT.open(context, At(ref="none"))


def test_the_metadata_log_is_trimmed(make):
    table, eyes = make(DATA, properties={"write.metadata.previous-versions-max": "2"})
    for _ in range(3):
        table.append(DATA)
    log = [Path(e["metadata-file"]).name for e in eyes.document()["metadata-log"]]
    assert log == ["v3.metadata.json", "v4.metadata.json"]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"format-version": "2"}', b'{"format-version": 2}', b"\x1f\x8bxx"]
)
def test_broken_documents_are_typed_errors(make, text):
    _, eyes = make(DATA)
    eyes.head().write_bytes(text)
    with pytest.raises(CorruptTableError) as caught:
        bh.open(str(eyes.root), format="iceberg")
    assert caught.value.where.endswith(eyes.head().name)
