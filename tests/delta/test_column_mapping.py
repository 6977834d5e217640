"""Column mapping: tables that are written, created, turned into mapped ones, and whose columns are renamed and dropped.

deltalake's reader reads what we write, and we write onto tables of the reference.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.commit import transaction
from boathouse.delta.features.column_mapping import MAX_ID
from boathouse.delta.schema import parse_schema
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError

MODE = "delta.columnMapping.mode"
ID, NAME = "delta.columnMapping.id", "delta.columnMapping.physicalName"
ODD = "x,;{}()\n\t=y"
FRESH = re.compile(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ROWS = pa.table(
    {
        "a.b": pa.array([1, 2, 3], pa.int64()),
        "c`d": ["x", "y", None],
        "e f": [1.5, 2.5, None],
        ODD: pa.array([1, 1, 2], pa.int64()),
        "s": [{"q.r": 1, "l": [{"m": 1}]}, None, {"q.r": 3, "l": []}],
        "k": pa.array([[("a", {"v": 1})], [], None], pa.map_(pa.string(), pa.struct([("v", pa.int64())]))),
    }
)


PLAIN = ROWS.rename_columns({"e f": "e-f", ODD: "x/y"})
"""Names that a table without mapping may have."""


@pytest.fixture(params=["name", "id"])
def mode(request) -> str:
    return request.param


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "t")


def created(path, mode, rows=ROWS, partition_by=(), **properties):
    given = {MODE: mode, **{f"delta.{k}": v for k, v in properties.items()}}
    bh.write(rows, path, format="delta", properties=given, partition_by=list(partition_by))
    return bh.open(path)


def in_order(rows):
    return sorted(rows, key=str)


def agreed(delta, path):
    """The rows, which deltalake reads too."""
    ours = bh.open(path).to_arrow().to_pylist()
    assert in_order(ours) == in_order(delta.rows(path))
    return ours


def last(delta, path, kind):
    """The actions of a kind in the newest entry."""
    entries = delta.log(path)
    return [a[kind] for a in entries[max(entries)] if kind in a]


def metadata_of(delta, path):
    return [a["metaData"] for entry in delta.log(path).values() for a in entry if "metaData" in a][-1]


def fields(type, above=()):
    """Every struct field of schema JSON by its path."""
    if isinstance(type, dict):
        for f in type.get("fields", ()):
            yield (*above, f["name"]), f["metadata"]
            yield from fields(f["type"], (*above, f["name"]))
        for key, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
            yield from fields(type.get(key), (*above, name))


def mapped(metadata):
    """Path -> (id, physical name), of a metaData action."""
    found = fields(json.loads(metadata["schemaString"]))
    return {path: (f[ID], f[NAME]) for path, f in found}


def stored(schema, above=()):
    """Path -> field id, of a file's struct fields and columns."""
    for f in schema:
        here = (*above, f.name)
        if (f.metadata or {}).get(b"PARQUET:field_id") is not None:
            yield here, int(f.metadata[b"PARQUET:field_id"])
        for i in range(f.type.num_fields):
            yield from stored([f.type.field(i)], here)


@pytest.mark.spec("D-103", "D-181", "D-182", "D-192", "D-193")
def test_files_statistics_and_partition_values_have_physical_names(delta, path, mode):
    created(path, mode, partition_by=[ODD])
    names = mapped(metadata_of(delta, path))
    assert set(names) >= {("s", "l", "element", "m"), ("k", "value", "v"), (ODD,)}
    assert len({id for id, _ in names.values()}) == len({name for _, name in names.values()}) == len(names) == 10
    assert all(FRESH.fullmatch(name) for _, name in names.values())
    assert metadata_of(delta, path)["configuration"] == {MODE: mode, MAX_ID: "10"}
    adds = last(delta, path, "add")
    assert {a["partitionValues"][names[(ODD,)][1]] for a in adds} == {"1", "2"}
    ids = {name: id for id, name in names.values()}
    for add in adds:
        assert list(add["partitionValues"]) == [names[(ODD,)][1]]
        assert re.fullmatch(r"[0-9a-f]{2}/part-00000-[0-9a-f-]{73}\.c000\.zstd\.parquet", add["path"])
        stats = json.loads(add["stats"])
        assert set(stats["nullCount"]) == {names[(n,)][1] for n in ("a.b", "c`d", "e f", "s")}
        assert set(stats["minValues"][names[("s",)][1]]) == {names[("s", "q.r")][1]}
        found = dict(stored(pq.read_schema(Path(path) / add["path"])))
        assert {p[-1]: id for p, id in found.items()} == {n: i for n, i in ids.items() if n != names[(ODD,)][1]}
    assert in_order(agreed(delta, path)) == in_order(ROWS.to_pylist())
    for where, rows in (("`a.b` = 3", 1), (f"`{ODD}` = 1", 2), ("s.`q.r` > 2", 1)):
        scan = bh.open(path).scan(where=where)
        assert (scan.count(), len(scan.files())) == (rows, 1)


@pytest.mark.parametrize(
    ("properties", "protocol"),
    [
        ({}, {"minReaderVersion": 2, "minWriterVersion": 5}),
        ({"enableChangeDataFeed": "true"}, {"minReaderVersion": 2, "minWriterVersion": 5}),
        (
            {"enableDeletionVectors": "true"},
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["columnMapping", "deletionVectors"],
                "writerFeatures": ["appendOnly", "columnMapping", "deletionVectors", "invariants"],
            },
        ),
    ],
)
def test_a_new_table_has_the_lowest_protocol_that_maps(delta, path, properties, protocol):
    created(path, "name", **properties)
    [found] = last(delta, path, "protocol")
    assert {k: sorted(v) if isinstance(v, list) else v for k, v in found.items()} == protocol


@pytest.mark.spec("D-187")
@pytest.mark.parametrize(
    "name",
    [
        "golden/data-skipping-basic-stats-all-types-columnmapping-id",
        "golden/data-skipping-basic-stats-all-types-columnmapping-name",
        "golden/dv-with-columnmapping",
        "golden/table-with-columnmapping-mode-id",
        "golden/table-with-columnmapping-mode-name",
        "golden/data-reader-timestamp_ntz-name-mode",
        "golden/data-reader-timestamp_ntz-id-mode",
        "java-kernel/column-mapping-id",
        "java-kernel/data-reader-partition-values-column-mapping-name",
        "java-kernel/data-reader-primitives-column-mapping-name",
    ],
)
def test_tables_of_the_reference_are_appended_to(delta, corpora, tmp_path, name):
    shutil.copytree(corpora / "delta" / name, tmp_path / "t")
    path = str(next((tmp_path / "t").rglob("_delta_log")).parent)
    table = bh.open(path, allow_mixed_writers=True)
    rows = table.to_arrow()
    table.append(rows)
    assert in_order(agreed(delta, path)) == in_order(rows.to_pylist() * 2)


@pytest.mark.feature("columnMapping", format="delta")
def test_every_operation_on_a_mapped_table(delta, path, mode):
    """Vectors, change files, rewrites, compaction, vacuum, restore: deltalake reads the same rows after each."""
    feed = {"enableDeletionVectors": "true", "enableChangeDataFeed": "true"}
    rows = pa.table({"id": range(6), "p`q": ["a", "b"] * 3, "n.o": pa.array([None] * 6, pa.string())})
    table = created(path, mode, rows, ["p`q"], **feed)
    table.delete("id = 0")
    assert all("deletionVector" in a for a in last(delta, path, "add"))
    table.update({"n.o": "'new'"}, where="id = 1")
    [change, *_] = last(delta, path, "cdc")
    names = mapped(metadata_of(delta, path))
    assert list(change["partitionValues"]) == [names[("p`q",)][1]]
    assert re.match("_change_data/[0-9a-f]{2}/cdc-", change["path"])
    table.merge(pa.table({"id": [2, 9]}), "target.id = source.id").when_matched_delete().when_not_matched_insert(
        {"id": "source.id", "p`q": "'c'"}
    ).execute()
    assert {r["id"]: r["n.o"] for r in agreed(delta, path)} == {1: "new", 3: None, 4: None, 5: None, 9: None}
    changes = table.changes(2, 3).to_arrow().to_pylist()
    assert {(r["id"], r["n.o"], r["_change_type"]) for r in changes} == {
        (1, None, "update_preimage"), (1, "new", "update_postimage"), (2, None, "delete"), (9, None, "insert"),
    }  # fmt: skip
    table.optimize()
    table.overwrite(pa.table({"id": [5], "p`q": ["b"]}), where="id = 5")
    table.set_properties({"delta.enableDeletionVectors": "false"})
    table.delete("id = 4")
    assert {r["id"] for r in agreed(delta, path)} == {1, 3, 5, 9}
    table.restore(version=0)
    assert in_order(agreed(delta, path)) == in_order(rows.to_pylist())
    table.vacuum(0, enforce_retention_duration=False)
    assert {str(f) for f in Path(path).rglob("part-*")} == {u.removeprefix("file://") for u in table.scan().files()}
    assert in_order(agreed(delta, path)) == in_order(rows.to_pylist())


@pytest.mark.parametrize("as_json", ["true", "false"])
def test_checkpoints_have_values_and_statistics_by_physical_names(delta, path, mode, as_json):
    given = {"checkpoint.writeStatsAsStruct": "true", "checkpoint.writeStatsAsJson": as_json, "checkpointInterval": "2"}
    table = created(path, mode, partition_by=[ODD], **given)
    table.append(ROWS)
    table.append(ROWS)
    names = mapped(metadata_of(delta, path))
    [file] = Path(path).glob("_delta_log/*.checkpoint.parquet")
    adds = pq.read_table(file).column("add").drop_null().to_pylist()
    assert {a["partitionValues_parsed"][names[(ODD,)][1]] for a in adds} == {1, 2}
    low = [a["stats_parsed"]["minValues"] for a in adds]
    assert {m[names[("a.b",)][1]] for m in low} == {1, 3}
    assert {m[names[("s",)][1]][names[("s", "q.r")][1]] for m in low} == {1, 3}
    for version in (0, 1):
        (Path(path) / "_delta_log" / f"{version:020d}.json").unlink()
    assert in_order(agreed(delta, path)) == in_order(ROWS.to_pylist() * 3)
    assert len(bh.open(path).scan(where="`a.b` = 3").files()) == 3


@pytest.mark.spec("D-189", "D-190")
@pytest.mark.parametrize("before", [{}, {"delta.enableDeletionVectors": "true"}])
def test_mapping_is_turned_on(delta, path, before):
    bh.write(PLAIN, path, format="delta", properties=before, partition_by=["x/y"])
    table = bh.open(path)
    table.set_properties({MODE: "name"})
    assert last(delta, path, "add") == last(delta, path, "remove") == []
    names = mapped(metadata_of(delta, path))
    assert all(path[-1] == name for path, (_, name) in names.items())
    assert sorted(id for id, _ in names.values()) == list(range(1, 11))
    assert metadata_of(delta, path)["configuration"] == {**before, MODE: "name", MAX_ID: "10"}
    [protocol] = last(delta, path, "protocol")
    lists = [protocol.get(k) for k in ("readerFeatures", "writerFeatures")]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == ((3, 7) if before else (2, 5))
    assert all("columnMapping" in names for names in lists) if before else lists == [None, None]
    assert in_order(agreed(delta, path)) == in_order(PLAIN.to_pylist())
    table.append(PLAIN)
    table.rename_column("`a.b`", "id")
    table.add_column("a.b", "string")
    assert [r["a.b"] for r in agreed(delta, path)] == [None] * 6
    assert sorted(r["id"] for r in agreed(delta, path)) == [1, 1, 2, 2, 3, 3]


@pytest.mark.spec("D-188")
def test_mapping_is_turned_on_by_metadata_alone_where_the_protocol_suffices(delta, raw):
    made = raw()
    size = made.file("f.parquet", pa.table({"a": [1]}))
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 6}}
    made.commit(0, protocol, delta.metadata([delta.field("a", "long")]), made.add("f.parquet", stats=None, size=size))
    bh.open(str(made)).set_properties({MODE: "NAME"})
    assert not last(delta, made, "protocol") and metadata_of(delta, made)["configuration"][MODE] == "name"
    assert agreed(delta, str(made)) == [{"a": 1}]


@pytest.mark.spec("D-191")
@pytest.mark.parametrize(
    ("before", "after"), [(None, "id"), ("none", "id"), ("name", "id"), ("id", "name"), ("name", "none"), ("id", None)]
)
def test_no_other_change_of_the_mode(delta, path, before, after):
    bh.write(pa.table({"a": [1]}), path, format="delta", properties={} if before is None else {MODE: before})
    table = bh.open(path)
    with pytest.raises(UnsupportedFeatureError, match=f"cannot change from {before or 'none'} to {after or 'none'}"):
        table.set_properties({MODE: after})
    assert list(delta.log(path)) == [0]


def test_the_mode_that_is_there_may_be_set_again(delta, path, mode):
    table = created(path, mode)
    before = metadata_of(delta, path)
    table.set_properties({MODE: mode.upper(), "delta.appendOnly": "false"})
    after = metadata_of(delta, path)
    assert after["schemaString"] == before["schemaString"]
    assert after["configuration"] == {**before["configuration"], "delta.appendOnly": "false"}


@pytest.mark.spec("D-195")
def test_the_highest_id_is_not_the_users(path):
    for properties in ({MAX_ID: "7"}, {MODE: "name", MAX_ID: "7"}):
        with pytest.raises(InvalidArgumentError, match="maxColumnId is kept by the writers"):
            bh.create(path, "a int", properties=properties)
    table = created(path, "name")
    for value in ("99", None):
        with pytest.raises(InvalidArgumentError, match="maxColumnId is kept by the writers"):
            table.set_properties({MAX_ID: value})
    with pytest.raises(InvalidArgumentError, match=r"columnMapping\.mode is 'nmae'"):
        table.set_properties({MODE: "nmae"})


@pytest.mark.spec("D-184", "D-185", "D-194")
def test_added_columns_have_ids_and_names_of_their_own(delta, path, mode):
    table = created(path, mode)
    before = mapped(metadata_of(delta, path))
    table.add_column("s.`new.one`", "array<struct<z: int>>")
    table.append(pa.table({"a.b": [9], "w": [{"u": 1}], "s": [{"q.r": 7, "t": "x"}]}), merge_schema=True)
    after = mapped(metadata_of(delta, path))
    assert before.items() <= after.items()
    new = {p: v for p, v in after.items() if p not in before}
    assert set(new) == {("s", "new.one"), ("s", "new.one", "element", "z"), ("s", "t"), ("w",), ("w", "u")}
    assert sorted(id for id, _ in new.values()) == [11, 12, 13, 14, 15]
    assert metadata_of(delta, path)["configuration"][MAX_ID] == "15"
    assert len({name for _, name in after.values()}) == len(after) and all(FRESH.fullmatch(n) for _, n in new.values())
    rows = {r["a.b"]: r for r in agreed(delta, path)}
    assert rows[1]["w"] is None and rows[1]["s"] == {"q.r": 1, "l": [{"m": 1}], "new.one": None, "t": None}
    assert rows[9]["w"] == {"u": 1} and rows[9]["s"] == {"q.r": 7, "l": None, "new.one": None, "t": "x"}


@pytest.mark.spec("D-196")
def test_a_column_of_a_dropped_ones_name_is_empty(delta, path, mode):
    table = created(path, mode)
    for column, name, type in (("`a.b`", "a.b", "bigint"), ("s.`q.r`", "s.`q.r`", "bigint")):
        table.drop_column(column)
        assert not last(delta, path, "add") and not last(delta, path, "remove")
        table.add_column(name, type)
    rows = agreed(delta, path)
    assert [r["a.b"] for r in rows] == [None] * 3
    assert [r["s"] and r["s"]["q.r"] for r in rows] == [None] * 3
    assert metadata_of(delta, path)["configuration"][MAX_ID] == "12"
    [info] = [a["commitInfo"] for a in delta.log(path)[3] if "commitInfo" in a]
    assert (info["operation"], info["operationParameters"]["columns"]) == ("DROP COLUMNS", '["s.`q.r`"]')
    assert bh.open(path).scan(where="`a.b` = 1").to_arrow().num_rows == 0


@pytest.mark.spec("D-197")
@pytest.mark.feature("rename columns", "drop columns", format="delta", engine="either")
def test_renames_change_metadata_alone(delta, path, mode):
    table = created(path, mode, partition_by=[ODD], **{"dataSkippingStatsColumns": "`a.b`,s.`q.r`"})
    before = mapped(metadata_of(delta, path))
    renames = {
        "`a.b`": 'o"r;e', "s.`q.r`": "=x", "s.l.element.m": "`", "k.value.v": "v.w", f"`{ODD}`": "a b", "s": "S.t",
    }  # fmt: skip
    for column, name in renames.items():
        table.rename_column(column, name)
        assert not last(delta, path, "add") and not last(delta, path, "remove")
    after = mapped(metadata_of(delta, path))
    assert list(after.values()) == list(before.values())
    assert list(after) == [
        ('o"r;e',), ("c`d",), ("e f",), ("a b",), ("S.t",), ("S.t", "=x"), ("S.t", "l"), ("S.t", "l", "element", "`"),
        ("k",), ("k", "value", "v.w"),
    ]  # fmt: skip
    assert metadata_of(delta, path)["partitionColumns"] == ["a b"]
    assert metadata_of(delta, path)["configuration"]["delta.dataSkippingStatsColumns"] == '`o"r;e`,`S.t`.`=x`'
    rows = {r['o"r;e']: r for r in agreed(delta, path)}
    assert rows[1]["S.t"] == {"=x": 1, "l": [{"`": 1}]} and rows[3]["a b"] == 2 and rows[1]["k"] == [("a", {"v.w": 1})]
    for where in ('`o"r;e` = 3', "`a b` = 2", "`S.t`.`=x` = 3"):
        scan = bh.open(path).scan(where=where)
        assert [r['o"r;e'] for r in scan.to_arrow().to_pylist()] == [3]
    table.append(bh.open(path).to_arrow())
    assert len(agreed(delta, path)) == 6
    assert set(json.loads(last(delta, path, "add")[0]["stats"])["nullCount"]) == {
        before[("a.b",)][1],
        before[("s",)][1],
    }
    [info] = [a["commitInfo"] for a in delta.log(path)[1] if "commitInfo" in a]
    assert (info["operation"], info["operationParameters"]) == (
        "RENAME COLUMN", {"oldColumnPath": "`a.b`", "newColumnPath": '`o"r;e`'},
    )  # fmt: skip


@pytest.mark.spec("D-199")
def test_columns_that_a_condition_names_stay(delta, path, mode):
    table = created(path, mode)
    table.add_constraint("small", "coalesce(s.`q.r`, 0) < 100 and coalesce(`e f`, 0) < 9")
    before = list(delta.log(path))
    for column in ("s", "s.`q.r`", "`e f`"):
        with pytest.raises(InvalidArgumentError, match=r"renamed: the constraint `small` names it \(coalesce"):
            table.rename_column(column, "z")
        with pytest.raises(InvalidArgumentError, match="dropped: the constraint `small` names it"):
            table.drop_column(column)
    assert list(delta.log(path)) == before
    table.set_properties({"delta.dataSkippingStatsColumns": "`a.b`,`c``d`,s.l"})
    table.rename_column("s.l", "list")
    table.drop_column("`c``d`")
    assert metadata_of(delta, path)["configuration"]["delta.dataSkippingStatsColumns"] == "`a.b`,s.list"
    table.drop_constraint("small")
    table.rename_column("`e f`", "z")
    assert set(agreed(delta, path)[0]) == {"a.b", "z", ODD, "s", "k"}


@pytest.mark.spec("D-199")
def test_columns_that_an_invariant_names_stay(delta, raw):
    made = raw()
    more = {"delta.invariants": json.dumps({"expression": {"expression": "b > 0"}}), ID: 1, NAME: "a"}
    columns = [delta.field("a", "long", **more), delta.field("b", "long", **{ID: 2, NAME: "b"})]
    configuration = {MODE: "name", MAX_ID: "2"}
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    made.commit(0, protocol, delta.metadata(columns, configuration=configuration))
    with pytest.raises(InvalidArgumentError, match=r"dropped: the constraint `the invariant of a` names it \(b > 0\)"):
        bh.open(str(made)).drop_column("b")


def test_columns_that_cannot_be_dropped_or_renamed(delta, path, mode):
    rows = pa.table({"p": [1], "a": [2], "s": [{"x": 1}], "l": [[1]]})
    table = created(path, mode, rows, ["p"])
    refused = {
        (table.drop_column, "p"): "partitioned by `p`",
        (table.drop_column, "s.x"): "`s.x` cannot be dropped: files would have no column there",
        (table.rename_column, "a", "S"): "`a` cannot be renamed: there is a column `s`",
    }
    for (call, *args), words in refused.items():
        with pytest.raises(InvalidArgumentError, match=re.escape(words)):
            call(*args)
    for column, words in {
        "nope": "no column `nope`",
        "s.nope": "no column `nope` in `s`",
        "l.element": "part of array",
    }.items():
        with pytest.raises(ColumnNotFoundError, match=words):
            table.rename_column(column, "z")
    for column in ("s", "l"):
        table.drop_column(column)
    with pytest.raises(InvalidArgumentError, match="`a` cannot be dropped: files would have no column"):
        table.drop_column("a")
    table.rename_column("a", "A")
    assert agreed(delta, path) == [{"p": 1, "A": 2}]
    assert table.rename_column("A", "A").version is None


def test_without_mapping_nothing_is_renamed_or_dropped(delta, path):
    bh.write(pa.table({"a": [1], "b": [2]}), path, format="delta")
    table = bh.open(path)
    for call, what in ((lambda: table.rename_column("a", "z"), "renamed"), (lambda: table.drop_column("a"), "dropped")):
        with pytest.raises(UnsupportedFeatureError, match=f"`a` cannot be {what}.*no column mapping") as caught:
            call()
        assert f"set the property {MODE} to name" in caught.value.advice
    assert list(delta.log(path)) == [0]


def test_an_overwritten_schema_continues_columns_of_the_same_name_and_type(delta, path, mode):
    table = created(path, mode, partition_by=[ODD])
    before = mapped(metadata_of(delta, path))
    rows = pa.table({"A.B": pa.array([5], pa.int64()), "c`d": [1], "s": [{"q.r": 1, "more": 2}], "new": ["x"]})
    table.overwrite(rows, overwrite_schema=True, partition_by=["new"])
    after = mapped(metadata_of(delta, path))
    kept = {p for p in after if after[p] in before.values()}
    assert kept == {("A.B",), ("s", "q.r")} and after[("A.B",)] == before[("a.b",)]
    assert min(id for p, (id, _) in after.items() if p not in kept) == 11
    assert metadata_of(delta, path)["configuration"] == {MODE: mode, MAX_ID: "14"}
    assert agreed(delta, path) == rows.to_pylist()
    table.append(rows)
    assert agreed(delta, path) == rows.to_pylist() * 2


def test_restoring_never_gives_an_id_twice(delta, path, mode):
    table = created(path, mode)
    table.add_column("more", "int")
    first = mapped(metadata_of(delta, path))[("more",)]
    table.restore(version=0)
    assert metadata_of(delta, path)["configuration"][MAX_ID] == "11"
    assert table.restore(version=0).version is None
    table.add_column("more", "int")
    second = mapped(metadata_of(delta, path))[("more",)]
    assert (first[0], second[0]) == (11, 12) and first[1] != second[1]
    assert len(agreed(delta, path)) == 3


def test_restoring_a_version_without_mapping_keeps_it(delta, path):
    bh.write(PLAIN, path, format="delta")
    table = bh.open(path)
    table.set_properties({MODE: "name"})
    table.rename_column("`a.b`", "id")
    table.append(bh.open(path).to_arrow())
    table.restore(version=0)
    assert in_order(agreed(delta, path)) == in_order(PLAIN.to_pylist())
    names = mapped(metadata_of(delta, path))
    assert names[("a.b",)] == (11, "a.b") and metadata_of(delta, path)["configuration"] == {MODE: "name", MAX_ID: "20"}


def test_files_without_ids_are_not_restored_into_a_table_by_id(delta, raw):
    made = raw()
    size = made.file("f.parquet", pa.table({"a": [1]}))
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    made.commit(0, protocol, delta.metadata([delta.field("a", "long")]), made.add("f.parquet", size=size))
    column = delta.field("a", "long", **{ID: 1, NAME: "col-1"})
    removed = {"remove": {"path": "f.parquet", "deletionTimestamp": 1, "dataChange": True}}
    made.commit(1, removed, delta.metadata([column], configuration={MODE: "id", MAX_ID: "1"}))
    with pytest.raises(UnsupportedFeatureError, match="cannot change from id to none"):
        bh.open(str(made)).restore(version=0)


@pytest.mark.spec("D-170", "D-186")
@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 1, "minWriterVersion": 2},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["appendOnly"]},
    ],
)
def test_a_mode_that_the_protocol_does_not_support_means_nothing(delta, raw, protocol):
    made = raw()
    size = made.file("f.parquet", pa.table({"a": [1]}))
    column = delta.field("a", "long", **{ID: 1, NAME: "col-1"})
    meta = delta.metadata([column], configuration={MODE: "name", MAX_ID: "1"})
    made.commit(0, {"protocol": protocol}, meta, made.add("f.parquet", size=size))
    table = bh.open(str(made))
    assert table.to_arrow().to_pylist() == [{"a": 1}]
    table.append(pa.table({"a": [2]}))
    table.add_column("b", "int")
    with pytest.raises(UnsupportedFeatureError, match="no column mapping"):
        table.rename_column("a", "z")
    assert not last(delta, made, "protocol")
    assert in_order(bh.open(str(made)).to_arrow().to_pylist()) == [{"a": 1, "b": None}, {"a": 2, "b": None}]
    table.set_properties({MODE: "name"})
    assert mapped(metadata_of(delta, made)) == {("a",): (2, "a"), ("b",): (3, "b")}
    assert sorted(r["a"] for r in agreed(delta, str(made))) == [1, 2]


@pytest.mark.spec("D-180")
@pytest.mark.parametrize("configuration", [{}, {MODE: "none"}])
def test_without_a_mode_files_have_the_names_of_columns(delta, raw, configuration):
    made = raw()
    size = made.file("f.parquet", pa.table({"a": [1]}))
    column = delta.field("a", "long", **{ID: 1, NAME: "col-1"})
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    made.commit(0, protocol, delta.metadata([column], configuration=configuration), made.add("f.parquet", size=size))
    table = bh.open(str(made))
    table.append(pa.table({"a": [2]}))
    assert json.loads(last(delta, made, "add")[0]["stats"])["minValues"] == {"a": 2}
    assert in_order(agreed(delta, str(made))) == [{"a": 1}, {"a": 2}]


@pytest.mark.spec("D-160")
def test_reader_version_2_beside_a_list_for_writers(delta, raw):
    made = raw()
    size = made.file("f.parquet", pa.table({"col-1": [1]}))
    protocol = {"minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["columnMapping"]}
    column = delta.field("a", "long", **{ID: 1, NAME: "col-1"})
    meta = delta.metadata([column], configuration={MODE: "name", MAX_ID: "1"})
    made.commit(0, {"protocol": protocol}, meta, made.add("f.parquet", size=size))
    table = bh.open(str(made))
    table.append(pa.table({"a": [2]}))
    table.rename_column("a", "b")
    assert not last(delta, made, "protocol")
    assert in_order(agreed(delta, str(made))) == [{"b": 1}, {"b": 2}]


def test_a_table_made_of_a_mapped_one_has_names_of_its_own(delta, path, mode, tmp_path):
    created(path, mode, PLAIN)
    rows = bh.open(path).to_arrow()
    for name, properties in (("mapped", {MODE: mode}), ("plain", {})):
        other = str(tmp_path / name)
        bh.write(rows, other, format="delta", properties=properties)
        assert in_order(agreed(delta, other)) == in_order(PLAIN.to_pylist())
        assert ("columnMapping" in metadata_of(delta, other)["schemaString"]) == bool(properties)
    ours, theirs = (mapped(metadata_of(delta, p)) for p in (path, str(tmp_path / "mapped")))
    assert not {n for _, n in ours.values()} & {n for _, n in theirs.values()}


@pytest.mark.spec("D-198")
def test_the_example_of_the_draft():
    name, inner = "col-5f422f40-de70-45b2-88ab-1d5c90e94db1", "col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49"
    d = {"name": "d", "type": "integer", "nullable": False, "metadata": {ID: 5, NAME: inner}}
    array = {"type": "array", "elementType": {"type": "struct", "fields": [d]}, "containsNull": True}
    e = {"name": "e", "type": array, "nullable": True, "metadata": {ID: 4, NAME: name}}
    found = dict(parse_schema(json.dumps({"type": "struct", "fields": [e]}), "here").walk())
    assert (found[("e",)].id, found[("e",)].metadata[NAME]) == (4, name)
    assert (found[("e", "element", "d")].id, found[("e", "element", "d")].metadata[NAME]) == (5, inner)


@pytest.mark.spark
def test_spark_writes_columns_of_its_own_under_the_names_that_are_committed(delta, path, mode, spark):
    """The source's files are written before the commit, in other processes, under the names that it will have."""
    created(path, mode, pa.table({"id": [1], "s": [{"a.b": 1}]}))
    rows = spark.createDataFrame([(2, (2, "x"), "new")], "id long, s struct<`a.b`: long, c: string>, `n o` string")
    rows.write.format("boathouse").mode("append").option("mergeSchema", "true").save(path)
    wanted = [{"id": 1, "s": {"a.b": 1, "c": None}, "n o": None}, {"id": 2, "s": {"a.b": 2, "c": "x"}, "n o": "new"}]
    assert in_order(agreed(delta, path)) == wanted
    assert in_order(r.asDict(True) for r in spark.read.format("boathouse").load(path).collect()) == wanted
    table = bh.open(path, spark=spark)
    table.rename_column("`n o`", "x.y")
    table.rename_column("s.`a.b`", "a")
    table.update({"x.y": "concat('<', s.c, '>')"}, where="s.a = 2")
    wanted = [{"id": 1, "s": {"a": 1, "c": None}, "x.y": None}, {"id": 2, "s": {"a": 2, "c": "x"}, "x.y": "<x>"}]
    assert in_order(agreed(delta, path)) == wanted
    assert in_order(table.scan(where="s.a > 0").to_spark().toArrow().to_pylist()) == wanted


def test_concurrent_columns_have_different_ids(delta, path, mode, monkeypatch):
    """Ours was to be the same id: it is planned again, and the rows written under the new one."""
    table = created(path, mode, pa.table({"a": [1]}))
    before, raced = transaction.prepare, []

    def prepare(change, context, newest):
        found = before(change, context, newest)
        if not raced:
            raced.append(True)
            bh.open(path).add_column("theirs", "bigint")
        return found

    monkeypatch.setattr(transaction, "prepare", prepare)
    table.append(pa.table({"a": [2], "ours": ["x"]}), merge_schema=True)
    names = mapped(metadata_of(delta, path))
    assert {p: id for p, (id, _) in names.items()} == {("a",): 1, ("theirs",): 2, ("ours",): 3}
    assert in_order(agreed(delta, path)) == [
        {"a": 1, "theirs": None, "ours": None}, {"a": 2, "theirs": None, "ours": "x"},
    ]  # fmt: skip


def test_deltalake_writes_onto_our_tables(delta, path, mode):
    deltalake = pytest.importorskip("deltalake")
    table = created(path, mode, pa.table({"a b": [1], "p": ["x"], "s": [{"u.v": 1}]}), ["p"])
    table.rename_column("`a b`", "n")
    table.add_column("w", "int")
    rows = pa.table({"n": [2], "p": ["y"], "s": [{"u.v": 2}], "w": pa.array([7], pa.int32())})
    deltalake.write_deltalake(path, rows, mode="append")
    assert in_order(agreed(delta, path)) == [{"n": 1, "p": "x", "s": {"u.v": 1}, "w": None}, *rows.to_pylist()]
