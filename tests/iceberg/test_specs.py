"""Several partition specs in one table: each manifest is read with its own."""

import fastavro
import pyarrow as pa
import pytest
from foreign_writer import Foreign

import boathouse as bh

IDS = (1, 2, 3)
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids), "x": [float(i) for i in ids]}, SCHEMA)


@pytest.fixture
def foreign(tmp_path):
    bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=["p"])
    return Foreign(tmp_path / "t")


def respec(foreign, id, *fields):
    """A new partition spec, the current one, of (field id, source id, name, transform)."""

    def edit(document):
        names = ("field-id", "source-id", "name", "transform")
        made = {"spec-id": id, "fields": [dict(zip(names, f)) for f in fields]}
        document["partition-specs"].append(made)
        document.update({"default-spec-id": id, "last-partition-id": max([1000, *(f[0] for f in fields)])})

    foreign.edit(edit)


def ids_of(foreign, **scan):
    return sorted(bh.open(str(foreign.root)).scan(["id"], **scan).to_arrow()["id"].to_pylist())


@pytest.mark.spec("I-134")
def test_one_field_id_for_values_of_two_types(foreign):
    """Version 1 gave ids by place, so that another spec may have another type under an id."""
    a, b = (foreign.data(rows(*ids, p=p), IDS, {"p": p}) for ids, p in (((1, 2), "a"), ((3, 4), "b")))
    foreign.commit(a, b)
    respec(foreign, 1, (1000, 1, "id_bucket", "bucket[4]"))
    c, d = (foreign.data(rows(n, p="c"), IDS, {"id_bucket": n % 4}) for n in (5, 8))
    foreign.commit(c, d, spec=1)
    respec(foreign, 2, (1000, 3, "x", "identity"), (1001, 2, "p", "identity"))
    foreign.commit(foreign.data(rows(9, p="d"), IDS, {"x": 9.0, "p": "d"}), spec=2)
    assert ids_of(foreign) == [1, 2, 3, 4, 5, 8, 9]
    for where, found in (("p = 'a'", [1, 2]), ("p = 'c'", [5, 8]), ("p >= 'c'", [5, 8, 9]), ("x = 9", [9]),
                         ("x < 4 OR p = 'd'", [1, 2, 3, 9]), ("id = 2 AND p = 'a'", [2])):  # fmt: skip
        assert ids_of(foreign, where=where) == found, where
    table = bh.open(str(foreign.root))
    assert table.scan(where="p = 'd'").explain() is not None
    foreign.commit(foreign.positions([(f["data_file"]["file_path"], 0) for f in (a, b)], {"p": "a"}))
    foreign.commit(foreign.equality(pa.table({"id": [5, 8, 9]}), [1], partition={"id_bucket": 0}), spec=1)
    assert ids_of(foreign) == [2, 3, 4, 5, 9]
    partitions = table.inspect.partitions()
    assert partitions.num_rows == 5 and set(partitions["spec_id"].to_pylist()) == {0, 1, 2}


def test_such_a_table_is_written(foreign, seen):
    """Appended to and deleted from: every manifest keeps the field ids of the metadata."""
    foreign.commit(*(foreign.data(rows(*ids, p=p), IDS, {"p": p}) for ids, p in (((1, 2), "a"), ((3, 4), "b"))))
    respec(foreign, 1, (1000, 1, "id_bucket", "bucket[4]"))
    table = bh.open(str(foreign.root))
    table.append(rows(5, 6, 7, 8, p="c"))
    table.delete("id IN (1, 6)")
    table.delete("p = 'b'")
    assert ids_of(foreign) == [2, 5, 7, 8]
    eyes = seen(foreign.root)
    for manifest in eyes.manifests():
        with open(manifest["manifest_path"].removeprefix("file://"), "rb") as file:
            reader = fastavro.reader(file)
            data_file = next(f for f in reader.writer_schema["fields"] if f["name"] == "data_file")["type"]
            partition = next(f for f in data_file["fields"] if f["name"] == "partition")["type"]
        expected = {0: "p", 1: "id_bucket"}[manifest["partition_spec_id"]]
        assert [(f["field-id"], f["name"]) for f in partition["fields"]] == [(1000, expected)]
    assert sorted(eyes.rows()["id"].to_pylist()) == [2, 5, 7, 8]


def test_values_that_only_the_metadata_has_under_two_field_ids(foreign):
    """Files of a Hive table lack their partition column, here under two specs that name it by two ids."""
    narrow = [rows(n).drop_columns(["p"]) for n in (1, 2, 3)]
    foreign.commit(foreign.data(narrow[0], (1, 3), {"p": "a"}))
    respec(foreign, 1, (1001, 1, "id_bucket", "bucket[4]"))
    foreign.commit(foreign.data(rows(7, p="z"), IDS, {"id_bucket": 1}), spec=1)
    respec(foreign, 2, (1002, 2, "p", "identity"))
    foreign.commit(*(foreign.data(t, (1, 3), {"p": p}) for t, p in zip(narrow[1:], ("b", None))), spec=2)
    found = bh.open(str(foreign.root)).scan(["id", "p"]).to_arrow()
    assert sorted(zip(*found.to_pydict().values())) == [(1, "a"), (2, "b"), (3, None), (7, "z")]
    table = bh.open(str(foreign.root))
    partition = {r["id"]: r["_partition"] for r in table.scan(["id", "_partition"]).to_arrow().to_pylist()}
    nothing = {"p_1000": None, "id_bucket": None, "p": None}  # the newest spec has the name
    assert partition == {1: {**nothing, "p_1000": "a"}, 2: {**nothing, "p": "b"}, 3: nothing,
                         7: {**nothing, "id_bucket": 1}}  # fmt: skip
    assert sorted(map(str, table.inspect.files()["partition"].to_pylist())) == sorted(map(str, partition.values()))
    for where, ids in (("p = 'b'", [2]), ("p = 'a'", [1]), ("p IS NULL", [3]), ("p > 'a'", [2, 7])):
        assert ids_of(foreign, where=where) == ids, where
    foreign.commit(foreign.equality(pa.table({"p": ["b", "a"]}), [2], partition={"p": "b"}), spec=2)
    assert ids_of(foreign) == [1, 3, 7]


def test_deletes_where_a_dropped_field_came_back(foreign):
    """As version 1 does it: the old field is void, and has no value in the tuple by which deletes find their files."""
    foreign.commit(foreign.data(rows(1), IDS, {"p": "a"}))
    respec(foreign, 1, (1000, 2, "p_1000", "void"), (1001, 2, "p", "identity"))
    data = foreign.data(rows(2, 3), IDS, {"p_1000": None, "p": "a"})
    foreign.commit(data, spec=1)
    place = {"p_1000": None, "p": "a"}
    foreign.commit(foreign.positions([(data["data_file"]["file_path"], 0)], place), spec=1)
    assert ids_of(foreign) == [1, 3] and ids_of(foreign, where="p = 'a' AND id > 1") == [3]
    foreign.commit(foreign.equality(pa.table({"id": [3, 1]}), [1], partition=place), spec=1)
    assert ids_of(foreign) == [1]


@pytest.mark.spark
def test_on_spark(spark, foreign):
    """Both ids of the partition column, and a file that stores it."""
    foreign.commit(foreign.data(rows(1).drop_columns(["p"]), (1, 3), {"p": "a"}))
    respec(foreign, 1, (1001, 1, "id_bucket", "bucket[4]"))
    foreign.commit(foreign.data(rows(7, p="z"), IDS, {"id_bucket": 1}), spec=1)
    respec(foreign, 2, (1002, 2, "p", "identity"))
    foreign.commit(foreign.data(rows(2).drop_columns(["p"]), (1, 3), {"p": "b"}), spec=2)
    found = bh.open(str(foreign.root), spark=spark).scan(["id", "p"]).to_spark(spark).collect()
    assert sorted(map(tuple, found)) == [(1, "a"), (2, "b"), (7, "z")]


@pytest.mark.parametrize("transform", ["identity", "truncate[1]", "bucket[4]"])
def test_a_partition_column_that_was_replaced_by_another_of_its_name(foreign, transform):
    """Old partition values say nothing about the new column."""
    kind = {"identity": "p", "truncate[1]": "p_trunc", "bucket[4]": "p_bucket"}[transform]
    if transform != "identity":
        respec(foreign, 1, (1001, 2, kind, transform))
    spec, value = (0, "a") if transform == "identity" else (1, "a" if "trunc" in transform else 3)
    foreign._avro_type = lambda field, types: "int" if field["transform"].startswith("bucket") else "string"
    foreign.commit(foreign.data(rows(1, 2), IDS, {kind: value}, bounds=True), spec=spec)
    respec(foreign, 2)

    def replace(document):
        fields = [f for f in document["schemas"][0]["fields"] if f["name"] != "p"]
        fields.append({"id": 4, "name": "p", "type": "string", "required": False})
        document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
        document.update({"current-schema-id": 1, "last-column-id": 4})

    foreign.edit(replace)
    new = pa.table({"id": [3, 4], "x": [3.0, 4.0], "p": ["a", "zz"]})
    foreign.commit(foreign.data(new, (1, 3, 4), {}, bounds=True), spec=2)
    for where, found in (("p IS NULL", [1, 2]), ("p = 'a'", [3]), ("p IS NULL OR p = 'zz'", [1, 2, 4]),
                         ("p = 'zz'", [4]), ("coalesce(p, 'zz') = 'zz'", [1, 2, 4])):  # fmt: skip
        assert ids_of(foreign, where=where) == found, where


def test_a_partition_column_that_was_renamed(foreign):
    """Its old name may be another column's by now; older versions are asked by the names that they had."""
    a, b = (foreign.data(rows(n, p=p), IDS, {"p": p}, bounds=True) for n, p in ((1, "a"), (2, "b")))
    old = foreign.commit(a, b)

    def rename(document):
        fields = [dict(f) for f in document["schemas"][0]["fields"]]
        fields[1]["name"], fields[2]["name"] = "x", "p"
        document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
        document["current-schema-id"] = 1
        document["partition-specs"][0]["fields"][0]["name"] = "part"

    foreign.edit(rename)
    assert ids_of(foreign, where="x = 'a'") == [1] and ids_of(foreign, where="p = 2") == [2]
    assert ids_of(foreign, where="p < 2 AND x <= 'a'") == [1]
    then = {"version": old}
    assert bh.open(str(foreign.root), **then).scan(["id"], where="p = 'a'").to_arrow()["id"].to_pylist() == [1]
    assert bh.open(str(foreign.root), **then).scan(["id"], where="x = 2").to_arrow()["id"].to_pylist() == [2]
    for where, version in (("x = 'a'", None), ("p = 'a'", old)):
        plan = bh.open(str(foreign.root), version=version).scan(where=where).plan()
        assert plan.units.num_rows == 1
