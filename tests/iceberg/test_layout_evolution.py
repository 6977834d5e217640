"""Partition specs and sort orders that change: old files stay under theirs, and pyiceberg reads all of them."""

import datetime as dt
import json

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import BoathouseError, CommitConflictError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.timestamp("us"))])


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


def create(root, version="2", *by):
    return bh.create(str(root), SCHEMA, format="iceberg", partition_by=list(by), properties={"format-version": version})


def rows(*ids):
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(days=40 * i) for i in ids]
    return pa.table({"id": list(ids), "city": [f"c{i % 2}" for i in ids], "ts": times}, SCHEMA)


def head(root):
    return max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))


def document(root):
    return json.loads(head(root).read_bytes())


def specs(root):
    """Each spec as (name, transform, field id), and the current one's id."""
    found = document(root)
    fields = {s["spec-id"]: s["fields"] for s in found["partition-specs"]}
    return {i: [(f["name"], f["transform"], f["field-id"]) for f in fs] for i, fs in fields.items()}, found[
        "default-spec-id"
    ]


def ids(root, where=None):
    mine = sorted(bh.open(str(root)).scan(["id"], where).to_arrow().column("id").to_pylist())
    if where is None:
        theirs = StaticTable.from_metadata(f"file://{head(root)}").scan().to_arrow().column("id").to_pylist()
        assert sorted(theirs) == mine
    return mine


@pytest.mark.spec("I-130", "I-131", "I-114")
@pytest.mark.feature("partition evolution", format="iceberg")
def test_fields_come_and_go(root):
    t = create(root, "2", "city")
    t.append(rows(1, 2))
    t.partition_by("city", "months(ts)")
    t.append(rows(3, 4))
    t.partition_by("months(ts)")
    t.append(rows(5, 6))
    t.partition_by()
    t.append(rows(7))
    assert specs(root) == (
        {
            0: [("city", "identity", 1000)],
            1: [("city", "identity", 1000), ("ts_month", "month", 1001)],
            2: [("ts_month", "month", 1001)],
            3: [],
        },
        3,
    )
    # An equal spec is used again, and an equal field keeps its id.
    t.partition_by("city")
    assert specs(root)[1] == 0 and len(specs(root)[0]) == 4
    t.partition_by("city")
    t.partition_by("bucket(4, id)", "city")
    assert specs(root)[0][4] == [("id_bucket", "bucket[4]", 1002), ("city", "identity", 1000)]
    t.append(rows(8, 9))
    assert ids(root) == list(range(1, 10))
    for where, expected in (
        ("city = 'c0'", [2, 4, 6, 8]), ("ts < TIMESTAMP_NTZ'2020-05-01'", [1, 2, 3]), ("id = 8", [8]),
    ):  # fmt: skip
        assert ids(root, where) == expected
    pruned = bh.open(str(root)).scan(["id"], "city = 'c0' and id > 7").plan().units
    assert pruned.num_rows < bh.open(str(root)).files().num_rows
    t.update({"city": "'c7'"}, "id in (1, 5, 9)")
    t.delete("id = 2")
    t.optimize()
    assert ids(root) == [1, *range(3, 10)] and ids(root, "city = 'c7'") == [1, 5, 9]


def test_a_field_gets_another_name(root):
    t = create(root, "2", "bucket(4, id)")
    t.append(rows(1, 2))
    t.partition_by(part="bucket(4, id)")
    t.append(rows(3))
    assert specs(root)[0] == {0: [("id_bucket", "bucket[4]", 1000)], 1: [("part", "bucket[4]", 1000)]}
    assert ids(root) == [1, 2, 3] and ids(root, "id = 3") == [3]
    before = document(root)
    with pytest.raises(InvalidArgumentError, match="`city`"):
        t.partition_by(city="bucket(4, id)")
    with pytest.raises(BoathouseError):
        t.partition_by("hours(id)")
    with pytest.raises(InvalidArgumentError):
        t.partition_by("city", city="truncate(2, city)")
    assert document(root) == before
    # The name of a field of any spec is no new column's.
    with pytest.raises(BoathouseError, match="id_bucket"):
        t.add_column("id_bucket", "int")


@pytest.mark.spec("I-133")
def test_version_1_keeps_the_places(root):
    t = create(root, "1", "city", "months(ts)")
    t.append(rows(1, 2))
    t.partition_by("months(ts)")
    t.append(rows(3, 4))
    t.partition_by("bucket(2, id)", "months(ts)")
    t.append(rows(5))
    found, now = specs(root)
    assert found == {
        0: [("city", "identity", 1000), ("ts_month", "month", 1001)],
        1: [("city", "void", 1000), ("ts_month", "month", 1001)],
        2: [("city", "void", 1000), ("ts_month", "month", 1001), ("id_bucket", "bucket[2]", 1002)],
    }
    assert now == 2 and [f["transform"] for f in document(root)["partition-spec"]] == ["void", "month", "bucket[2]"]
    assert ids(root) == [1, 2, 3, 4, 5] and ids(root, "city = 'c1'") == [1, 3, 5]
    # The name of a field that has gone is free.
    t.partition_by("city", "months(ts)")
    assert specs(root)[1] in (0, 3)
    t.append(rows(6))
    t.set_properties({"format-version": "2"})
    t.partition_by("city")
    t.append(rows(7))
    t.delete("id = 1")
    assert ids(root) == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("transform", [
    "city", "bucket(3, city)", "truncate(1, city)", "years(ts)", "months(ts)", "days(ts)", "hours(ts)",
    "truncate(10, id)", "bucket(3, id)", "bucket(3, ts)",
])  # fmt: skip
def test_every_transform(root, transform):
    t = create(root)
    t.append(rows(1, 2))
    t.partition_by(transform)
    t.append(rows(3, 4, 15))
    assert ids(root) == [1, 2, 3, 4, 15] and ids(root, "id >= 4 and city = 'c1'") == [15]
    assert ids(root, "ts > TIMESTAMP_NTZ'2020-06-01'") == [4, 15]


@pytest.mark.parametrize("operation", ["append", "optimize"])
def test_a_concurrent_change_of_the_partitioning(root, operation, monkeypatch):
    """Files are written again under the spec that the head has."""
    t = create(root, "2", "city")
    t.append(rows(1, 2))
    t.append(rows(3, 4))
    real, raced = LocalStorage.put, []

    def put(self, key, data, *mode):
        if key.endswith("v4.metadata.json") and not raced:
            raced.append(key)
            bh.open(str(root)).partition_by("days(ts)")
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    if operation == "append":
        t.append(rows(5))
        assert ids(root) == [1, 2, 3, 4, 5]
    else:
        t.optimize()
        assert ids(root) == [1, 2, 3, 4]
    assert raced and specs(root)[1] == 1
    stale = bh.open(str(root))
    raced.append(0)

    def again(self, key, data, *mode):
        if key.endswith("v6.metadata.json") and len(raced) == 2:
            raced.append(key)
            bh.open(str(root)).partition_by("city")
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", again)
    with pytest.raises(CommitConflictError):
        stale.partition_by("hours(ts)")
    assert specs(root)[1] == 0


@pytest.mark.spec("I-135", "I-136")
def test_sort_orders_are_set(root, version):
    t = create(root, version)
    t.sort_by("city", "bucket(4, id) desc", "ts desc nulls first")
    order = {
        "order-id": 1, "fields": [
            {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
            {"transform": "bucket[4]", "source-id": 1, "direction": "desc", "null-order": "nulls-last"},
            {"transform": "identity", "source-id": 3, "direction": "desc", "null-order": "nulls-first"},
        ]}  # fmt: skip
    assert document(root)["sort-orders"] == [{"order-id": 0, "fields": []}, order]
    assert document(root)["default-sort-order-id"] == 1
    t.append(rows(3, 1, 2))
    assert set(bh.open(str(root)).inspect.files().column("sort_order_id").to_pylist()) == {1}
    theirs = StaticTable.from_metadata(f"file://{head(root)}").sort_order()
    assert [str(f.transform) for f in theirs.fields] == ["identity", "bucket[4]", "identity"]
    t.sort_by("id")
    t.sort_by()
    assert document(root)["default-sort-order-id"] == 0 and len(document(root)["sort-orders"]) == 3
    t.sort_by("city", "bucket(4, id) desc", "ts desc nulls first")
    assert document(root)["default-sort-order-id"] == 1 and len(document(root)["sort-orders"]) == 3
    assert ids(root) == [1, 2, 3]
    with pytest.raises(BoathouseError):
        t.sort_by("nothing")
    with pytest.raises(InvalidArgumentError):
        t.drop_column("city")


@pytest.mark.parametrize("format", ["delta", "lance"])
def test_other_formats_refuse_by_name(tmp_path, format):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format=format)
    for act in (
        lambda: t.partition_by("city"), lambda: t.sort_by("city"), lambda: t.set_identifiers("id"),
        lambda: t.add_column("c", "int", default=1),
        *([lambda: t.add_column("c", "int", after="id"), lambda: t.set_default("id", 1)] if format == "lance" else []),
        *([lambda: t.move_column("city")] if format == "lance" else []),
    ):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match="not offered"):
            act()


@pytest.mark.spec("I-110")
def test_names_of_partition_fields_are_no_other_columns(root, tmp_path):
    """Whichever comes first, the column or the field; an identity may have the name of its column."""
    schema = "id bigint, id_bucket int, ts timestamp, ts_day date, city string"
    for by in (["bucket(4, id)"], ["days(ts)"]):
        with pytest.raises(InvalidArgumentError, match="name of a different column"):
            bh.create(str(tmp_path / "no"), schema, format="iceberg", partition_by=by)
    t = bh.create(str(root), schema, format="iceberg", partition_by=["city"])
    for named in ({"id_bucket": "bucket(4, id)"}, {"city": "bucket(4, id)"}, {"ts_day": "id"}):
        with pytest.raises(InvalidArgumentError, match="name of a different column"):
            t.partition_by(**named)
    t.partition_by(x="bucket(4, id)")
    t.partition_by()  # a spec of the past counts, too
    for act in (
        lambda: t.add_column("x", "int"), lambda: t.rename_column("city", "x"),
        lambda: t.evolve().add_column("y", "int").rename_column("y", "x").execute(),
        lambda: t.append(pa.table({"id": [1], "x": [1]}), merge_schema=True),
        lambda: t.overwrite(pa.table({"id": [1], "x": [1]}), overwrite_schema=True),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="a column cannot be called `x`"):
            act()
    assert bh.open(str(root)).schema.names == ("id", "id_bucket", "ts", "ts_day", "city") and t.count() == 0
