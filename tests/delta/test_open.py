"""Opening and reading: layouts, versions, places that are no table."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.errors import BoathouseError, CorruptTableError, TableNotFoundError, VersionNotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

X = pa.table({"x": [1, 2]})


def ids(table):
    return sorted(table.to_arrow().column("x").to_pylist())


@pytest.mark.spec("D-002")
def test_an_open_version_stays_while_others_commit(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    for _ in range(5):
        bh.open(path).append(X)
    opened = bh.open(path)
    assert opened.version == 5
    script = (
        "import sys, pyarrow as pa, boathouse as bh\n"
        "for _ in range(3): bh.open(sys.argv[1]).append(pa.table({'x': [9]}))\n"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert opened.version == 5
    assert len(ids(opened)) == 12
    assert len(ids(bh.open(path))) == 15


@pytest.mark.spec("D-003")
def test_deleted_rows_are_there_in_older_versions(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    bh.open(path).delete("x >= 1")
    assert ids(bh.open(path)) == []
    assert ids(bh.open(path, version=0)) == [1, 2]


@pytest.mark.spec("D-005")
def test_the_log_alone_says_everything(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("p", pa.string()), ("x", pa.int64())]), partition_by=["p"], properties={"a": "b"})
    bh.open(path).append(pa.table({"p": ["q"], "x": [1]}))
    moved = tmp_path / "elsewhere"
    os.rename(path, moved)
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    found = bh.open(str(moved))
    assert found.schema.names == ("p", "x")
    assert [f.name for f in found.partitioning.current] == ["p"]
    assert dict(found.properties) == {"a": "b"}
    assert found.to_arrow().to_pylist() == [{"p": "q", "x": 1}]


@pytest.mark.spec("D-008")
def test_files_anywhere_below_the_root(raw, delta):
    table = raw()
    actions = [delta.PROTOCOL, delta.metadata([delta.field("x", "long")])]
    for i, name in enumerate(("f.parquet", "a/b/c/f.parquet", "p=1/f.parquet")):
        table.file(name, pa.table({"x": [i]}))
        actions.append(table.add(name))
    table.commit(0, *actions)
    assert ids(bh.open(str(table))) == [0, 1, 2]


@pytest.mark.spec("D-009", "D-010")
@pytest.mark.parametrize("name", ["p=1/f.parquet", "f.parquet"])
def test_partition_values_come_from_the_log(raw, delta, name):
    table = raw()
    table.file(name, pa.table({"x": [7]}))
    fields = [delta.field("p", "integer"), delta.field("x", "long")]
    table.commit(0, delta.PROTOCOL, delta.metadata(fields, ["p"]), table.add(name, {"p": "2"}))
    assert bh.open(str(table)).to_arrow().to_pylist() == [{"p": 2, "x": 7}]


@pytest.mark.spec("D-017")
def test_places_that_are_no_table(tmp_path):
    path = tmp_path / "t"
    bh.write(pa.table({"p": [1], "x": [1]}), str(path), format="delta", partition_by=["p"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "parquet").mkdir()
    pq.write_table(X, tmp_path / "parquet" / "f.parquet")
    (tmp_path / "ice" / "metadata").mkdir(parents=True)
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    for place, said, advice in (
        (path / "_delta_log", "log folder", f"{path}"),
        (path / "p=1", "inside", f"{path}"),
        (tmp_path / "empty", "empty", "check"),
        (tmp_path / "parquet", "Parquet", "create"),
        (tmp_path / "ice", "Iceberg", "iceberg"),
    ):
        with pytest.raises(TableNotFoundError) as error:
            FORMAT.open(TableContext(Location(f"file://{place}"), Stores()))
        assert said in error.value.message
        assert advice in (error.value.advice or "")
        with pytest.raises(TableNotFoundError) as error:
            bh.open(str(place), format="delta")
        assert error.value.advice


@pytest.mark.spec("D-019")
def test_last_line_without_newline_and_blank_lines(raw, delta):
    table = raw()
    table.file("f.parquet", X)
    actions = [delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f.parquet")]
    lines = [json.dumps(a) for a in actions]
    for text in ("\n".join(lines), "\n\n" + "\n \n".join(lines) + "\n\n", "\r\n".join(lines) + "\r\n"):
        table.entry(0).write_text(text, newline="")
        assert ids(bh.open(str(table))) == [1, 2]


@pytest.mark.spec("D-029")
def test_every_cut_of_an_entry_is_refused(raw, delta):
    table = raw()
    for name in ("f.parquet", "g.parquet"):
        table.file(name, X)
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    table.commit(1, table.add("f.parquet"), table.add("g.parquet"))
    whole = table.entry(1).read_bytes()
    first = whole.index(b"\n") + 1
    for end in {*range(first + 1, len(whole) - 1, 7), 10, first - 2, len(whole) - 2}:
        table.entry(1).write_bytes(whole[:end])
        with pytest.raises(CorruptTableError) as error:
            bh.open(str(table)).to_arrow()
        assert "line" in error.value.message and error.value.where.endswith("1.json")


def test_a_broken_line_in_the_middle_is_refused(raw, delta):
    table = raw()
    table.file("f.parquet", X)
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f.parquet"))
    lines = table.entry(0).read_text().splitlines()
    table.entry(0).write_text("\n".join([lines[0], lines[1], '{"add":{"path":}', lines[2]]))
    with pytest.raises(CorruptTableError, match="line 3"):
        bh.open(str(table)).to_arrow()


@pytest.mark.spec("D-148")
def test_unknown_actions_and_fields_are_ignored(raw, delta):
    table = raw()
    table.file("f.parquet", X)
    protocol = {"protocol": {**delta.PROTOCOL["protocol"], "new": {"a": [1]}}}
    add = table.add("f.parquet", None, surprise={"deep": [None]})
    table.commit(0, protocol, delta.metadata([delta.field("x", "long")], color="red"), {"hologram": {"x": 1}}, add)
    table.commit(
        1,
        {"hologram": [1, 2]},
        {"commitInfo": {"operation": "X", "odd": [1]}},
        {"txn": {"appId": "a", "version": 1, "q": 0}},
    )
    table.commit(2, {"remove": {"path": "gone.parquet", "dataChange": True, "later": {}}})
    assert ids(bh.open(str(table))) == [1, 2]
    for version in range(3):
        assert ids(bh.open(str(table), version=version)) == [1, 2]


@pytest.mark.spec("D-179")
def test_removes_never_appear(raw, delta):
    table = raw()
    for name in ("f.parquet", "g.parquet"):
        table.file(name, X)
    remove = {"remove": {"path": "f.parquet", "deletionTimestamp": 1, "dataChange": True}}
    table.commit(
        0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f.parquet"), table.add("g.parquet")
    )
    table.commit(1, remove)
    found = bh.open(str(table))
    assert [p.rpartition("/")[2] for p in found.files().column("path").to_pylist()] == ["g.parquet"]
    assert ids(found) == [1, 2]


def test_gaps_and_versions_that_are_not_there(raw, delta):
    table = raw()
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    table.commit(2, {"commitInfo": {}})
    with pytest.raises(CorruptTableError, match=r"00000000000000000001\.json"):
        bh.open(str(table))
    assert bh.open(str(table), version=0).version == 0
    with pytest.raises(VersionNotFoundError):
        bh.open(str(table), version=9)
    with pytest.raises(BoathouseError):
        bh.open(str(table), version=-1)


def test_time_travel_by_time(raw, delta):
    table = raw()
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    for version in (1, 2, 3):
        table.commit(version, {"commitInfo": {"operation": "W"}})
    for version, seconds in ((0, 1000), (1, 2000), (2, 2000), (3, 3000)):
        os.utime(table.entry(version), (seconds, seconds))

    def at(ms):
        return FORMAT.open(TableContext(Location(f"file://{table}"), Stores()), At(timestamp_ms=ms))

    assert [at(ms).version for ms in (1_000_000, 1_999_999, 2_000_000, 2_000_001, 3_000_000, 9_999_999)] == [
        0,
        0,
        1,
        2,
        3,
        3,
    ]
    assert at(2_500_000).timestamp_ms == 2_000_001
    with pytest.raises(VersionNotFoundError):
        at(999_999)


@pytest.mark.spec("D-099")
def test_paths_are_decoded_once(raw, delta):
    table = raw()
    table.file("special p@#h", X)
    table.file("a%20b", pa.table({"x": [3]}))
    actions = [table.add("special%20p@%23h"), table.add("a%2520b")]
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), *actions)
    assert ids(bh.open(str(table))) == [1, 2, 3]


@pytest.mark.spec("D-100")
def test_folder_of_a_value_with_a_slash(raw, delta, tmp_path):
    table = raw()
    table.file("x=A%2FA/f.parquet", pa.table({"y": [1]}))
    fields = [delta.field("x", "string"), delta.field("y", "long")]
    table.commit(0, delta.PROTOCOL, delta.metadata(fields, ["x"]), table.add("x=A%252FA/f.parquet", {"x": "A/A"}))
    assert bh.open(str(table)).to_arrow().to_pylist() == [{"x": "A/A", "y": 1}]
    ours = str(tmp_path / "ours")
    bh.write(pa.table({"x": ["A/A"], "y": [1]}), ours, format="delta", partition_by=["x"])
    (add,) = [a["add"] for a in delta.log(ours)[0] if "add" in a]
    assert add["partitionValues"] == {"x": "A/A"} and add["path"].startswith("x=A%252FA/")
    assert bh.open(ours).to_arrow().to_pylist() == [{"x": "A/A", "y": 1}] == delta.rows(ours)


@pytest.mark.spec("D-233")
def test_files_that_lack_columns(raw, delta):
    inner = {"type": "struct", "fields": [delta.field("a", "long"), delta.field("b", "string")]}
    listed = {"type": "array", "elementType": inner, "containsNull": True}
    mapped = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    fields = [
        delta.field("x", "long"),
        delta.field("s", inner),
        delta.field("l", listed),
        delta.field("m", mapped),
        delta.field("n", "date"),
    ]
    old = pa.table(
        {
            "x": [1],
            "s": pa.array([{"a": 1}], pa.struct([("a", pa.int64())])),
            "l": pa.array([[{"a": 2}]], pa.list_(pa.struct([("a", pa.int64())]))),
            "m": pa.array([[("k", {"a": 3})]], pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
        }
    )
    table = raw()
    table.file("f.parquet", old)
    table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f.parquet"))
    assert bh.open(str(table)).to_arrow().to_pylist() == [
        {"x": 1, "s": {"a": 1, "b": None}, "l": [{"a": 2, "b": None}], "m": [("k", {"a": 3, "b": None})], "n": None}
    ]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("protocol", "readerFeatures"),
        ("protocol", "minReaderVersion"),
        ("metaData", "partitionColumns"),
        ("metaData", "configuration"),
        ("metaData", "schemaString"),
        ("add", "path"),
        ("add", "partitionValues"),
        ("add", "size"),
        ("add", "deletionVector"),
    ],
)
@pytest.mark.parametrize("value", [7, [7], "x", {"a": 7}])
def test_values_of_the_wrong_kind_are_errors_of_the_table(raw, delta, kind, key, value):
    table = raw()
    table.file("f.parquet", X)
    fields = [delta.field("x", "long"), delta.field("p", "string")]
    actions = [delta.PROTOCOL, delta.metadata(fields, ["p"]), table.add("f.parquet", {"p": "a"})]
    actions = [json.loads(json.dumps(a)) for a in actions]
    next(a for a in actions if kind in a)[kind][key] = value
    table.commit(0, *actions)
    try:
        bh.open(str(table)).to_arrow()
    except BoathouseError as error:
        assert error.where
