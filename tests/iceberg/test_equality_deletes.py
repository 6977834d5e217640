"""Equality deletes, written by the tests from the specification; no other reader at hand reads them."""

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from foreign_writer import IDS, SCHEMA, rows

import boathouse as bh
from boathouse.errors import BoathouseError, CorruptTableError, MissingFileError, UnsupportedFeatureError
from boathouse.iceberg.commit.commits import IcebergSnapshotCommits

NAN, INF = float("nan"), float("inf")


def keys(*ids):
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table, **scan):
    return sorted(table.scan(["id"], **scan).to_arrow()["id"].to_pylist())


def opened(foreign, **at):
    return bh.open(str(foreign.root), **at)


def attached(foreign):
    """The numbers of DELETES of each data file in the plan."""
    plan = opened(foreign)._handle.snapshot.plan()
    return plan.units.column("deletes").to_pylist()


ANIMALS = pa.schema([("id", pa.int64()), ("category", pa.string()), ("name", pa.string())])
ROWS = [(1, "marsupial", "Koala"), (2, "toy", "Teddy"), (3, None, "Grizzly"), (4, None, "Polar")]


@pytest.mark.spec("I-271", "I-272", "I-279")
@pytest.mark.parametrize(
    ("columns", "ids", "equality", "values", "gone"),
    [
        (["id"], [1], [1], [(3,)], 3),
        (["id", "category", "name"], [1, 2, 3], [1], [(3, "other", "Bear")], 3),
        (["id", "category"], [1, 2], [1, 2], [(4, None)], 4),
        (["category", "id"], [2, 1], [2, 1], [(None, 4), ("toy", 1)], 4),
    ],
)
@pytest.mark.feature("equality delete files", format="iceberg")
def test_the_examples_of_the_specification(new, columns, ids, equality, values, gone):
    foreign = new(ANIMALS)
    foreign.commit(foreign.data(pa.table(list(zip(*ROWS)), ANIMALS), IDS))
    schema = pa.schema([ANIMALS.field(c) for c in columns])
    foreign.commit(foreign.equality(pa.table(list(zip(*values)), schema), ids, equality))
    table = opened(foreign)
    assert ids_of(table) == sorted({1, 2, 3, 4} - {gone}) and table.count() == 3
    assert table.scan(["name"]).to_arrow()["name"].to_pylist() == [r[2] for r in ROWS if r[0] != gone]
    assert table.scan(["name"]).to_arrow().column_names == ["name"]


@pytest.mark.spec("I-211", "I-212")
def test_only_strictly_older_files(new):
    foreign = new()
    first = foreign.commit(foreign.data(rows(1, 2, 3), IDS))
    foreign.commit(foreign.data(rows(2, 4), IDS), foreign.equality(keys(2, 3, 4), [1]))
    foreign.commit(foreign.data(rows(3, 5), IDS))
    table = opened(foreign)
    assert ids_of(table) == [1, 2, 3, 4, 5] and table.count() == 5
    assert ids_of(opened(foreign, version=first)) == [1, 2, 3]
    assert ids_of(table, where="x < 3") == [1, 2]
    foreign.commit(foreign.equality(keys(3), [1]))
    assert ids_of(opened(foreign)) == [1, 2, 4, 5]
    changes = opened(foreign).changes(first).to_arrow().to_pylist()
    steps = {}
    for c in changes:
        steps.setdefault(c["_commit_version"], []).append((c["_change_type"], c["id"]))
    assert [sorted(s) for _, s in sorted(steps.items())] == [
        [("insert", 1), ("insert", 2), ("insert", 3)],
        [("delete", 3), ("insert", 4)],
        [("insert", 3), ("insert", 5)],
        [("delete", 3)],
    ]  # fmt: skip


@pytest.mark.spec("I-280", "I-213", "I-211")
def test_partitions(new):
    foreign = new(partition_by=["p"])
    entries = [foreign.data(rows(1, 2, p=p), IDS, {"p": p}) for p in ("a", "b", None)]
    foreign.commit(*entries)
    foreign.commit(foreign.equality(keys(1), [1], partition={"p": "a"}))
    table = opened(foreign)
    assert ids_of(table) == [1, 1, 2, 2, 2] and ids_of(table, where="p = 'a'") == [2]
    foreign.commit(foreign.equality(keys(2), [1], partition={"p": None}))
    assert ids_of(opened(foreign), where="p IS NULL") == [1] and ids_of(opened(foreign)) == [1, 1, 2, 2]
    foreign.edit(lambda d: d["partition-specs"].append({"spec-id": 1, "fields": []}))
    foreign.commit(foreign.equality(keys(1), [1]), spec=1)
    assert ids_of(opened(foreign)) == [2, 2]


def test_an_identity_partition_value_that_only_the_metadata_has(new):
    foreign = new(partition_by=["p"])
    foreign.commit(*(foreign.data(rows(1, 2).drop_columns(["p"]), (1, 3), {"p": p}) for p in ("a", "b")))
    foreign.edit(lambda d: d["partition-specs"].append({"spec-id": 1, "fields": []}))
    foreign.commit(foreign.equality(pa.table({"id": [1], "p": ["b"]}), (1, 2)), spec=1)
    found = opened(foreign).scan(["id", "p"]).to_arrow()
    assert sorted(zip(*found.to_pydict().values())) == [(1, "a"), (2, "a"), (2, "b")]
    assert ids_of(opened(foreign), where="p = 'b'") == [2]


@pytest.mark.spec("I-273")
def test_several_key_sets_and_position_deletes(new):
    foreign = new()
    foreign.commit(foreign.data(pa.table({"id": range(10), "p": list("aabbccddee"), "x": [0.5] * 10}, SCHEMA), IDS))
    (path,) = foreign.live()
    foreign.commit(foreign.equality(keys(1, 2), [1]), foreign.equality(pa.table({"p": ["e"]}), [2]))
    foreign.commit(
        foreign.positions([(path, 4)]), foreign.equality(pa.table({"p": ["d", "d"], "id": [6, 1]}, pa.schema(
            [("p", pa.string()), ("id", pa.int64())])), [2, 1]))  # fmt: skip
    foreign.commit(foreign.equality(keys(7), [1]))
    table = opened(foreign)
    assert ids_of(table) == [0, 3, 5] and table.count() == 3
    assert table.scan(["x"], where="x = 0.5").to_arrow().num_rows == 3


KINDS = {
    "int": (pa.int32(), [1, -(2**31), None], [2]),
    "long": (pa.int64(), [2**62, 0, None], [1]),
    "string": (pa.string(), ["", "é", None], ["a"]),
    "boolean": (pa.bool_(), [True, None], [False]),
    "date": (pa.date32(), [dt.date(1969, 12, 31), None], [dt.date(1970, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1, 1, 1), None], [dt.datetime(9999, 1, 1)]),
    "timestamptz": (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], [None]),
    "decimal": (pa.decimal128(20, 2), [Decimal("-1.00"), None], [Decimal("1.00")]),
    "binary": (pa.binary(), [b"", b"\xff", None], [b"\x00"]),
    "fixed": (pa.binary(3), [b"abc", None], [b"abd"]),
    "time": (pa.time64("us"), [dt.time(23, 59), None], [dt.time(0)]),
    "float": (pa.float32(), [NAN, -0.0, None], [0.0, 1.5]),
    "double": (pa.float64(), [0.0, float("inf"), NAN], [-0.0, None]),
}


@pytest.mark.spec("I-272")
@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_key_types(new, kind, bounds):
    """Null equals null and NaN equals NaN, as for Java; -0.0 and 0.0 differ."""
    type, gone, kept = KINDS[kind]
    schema = pa.schema([("k", type), ("n", pa.int64())])
    foreign = new(schema)
    values = [*gone, *kept]
    table = pa.table({"k": pa.array(values, type), "n": range(len(values))}, schema)
    bounds = bounds and kind in ("long", "string", "double")
    foreign.commit(foreign.data(table, (1, 2), bounds=bounds))
    foreign.commit(foreign.equality(pa.table({"k": pa.array(gone, type)}), [1]))
    found = opened(foreign).scan(["n"]).to_arrow()["n"].to_pylist()
    assert found == list(range(len(gone), len(values)))


def schema_of(document, change):
    """Adds a schema to the metadata and makes it current: `change` edits the fields."""
    old = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    fields = [dict(f) for f in old["fields"]]
    fields = change(fields) or fields
    id = max(s["schema-id"] for s in document["schemas"]) + 1
    document["schemas"] = [*document["schemas"], {"type": "struct", "schema-id": id, "fields": fields}]
    document["current-schema-id"] = id
    document["last-column-id"] = max(document["last-column-id"], *(f["id"] for f in fields))


@pytest.mark.spec("I-278")
def test_renamed_and_promoted_keys(new):
    schema = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("p", pa.string())])
    foreign = new(schema)
    foreign.commit(foreign.data(pa.table({"id": [1, 2, 3], "f": [0.1, 0.2, 0.3], "p": ["a", "b", "c"]}, schema), IDS))
    foreign.commit(foreign.equality(pa.table({"id": [1]}, pa.schema([("id", pa.int32())])), [1]))
    version = foreign.document["current-snapshot-id"]

    def change(fields):
        fields[0] |= {"name": "key", "type": "long"}
        fields[1] |= {"name": "id", "type": "double"}

    foreign.edit(lambda d: schema_of(d, change))
    wider = pa.schema([("key", pa.int64()), ("id", pa.float64()), ("p", pa.string())])
    foreign.commit(foreign.data(pa.table({"key": [2**40], "id": [0.1], "p": ["d"]}, wider), IDS))
    foreign.commit(foreign.equality(pa.table({"f": pa.array([0.2], pa.float32())}), [2]))
    foreign.commit(foreign.equality(pa.table({"key": [2**40, 7]}), [1]))
    assert opened(foreign).scan(["p"]).to_arrow()["p"].to_pylist() == ["c"]
    assert opened(foreign, version=version).scan(["p"]).to_arrow()["p"].to_pylist() == ["b", "c"]


@pytest.mark.spec("I-276")
def test_dropped_keys(new):
    """By field id, from the schema that had them; a new column of the same name is another one."""
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2, p="a"), IDS), foreign.data(rows(3, 4, p="b"), IDS))
    foreign.commit(foreign.equality(pa.table({"p": ["a"], "x": [2.0]}), [2, 3]))
    foreign.commit(foreign.equality(pa.table({"p": ["b"], "x": [3.0]}), [2, 3]))
    before = foreign.document["current-snapshot-id"]
    again = {"id": 4, "name": "p", "type": "string", "required": False}
    foreign.edit(lambda d: schema_of(d, lambda fields: [fields[0], fields[2], again]))
    narrow = pa.table({"id": [5, 6], "x": [2.0, 3.0], "p": ["a", "b"]})
    last = foreign.commit(foreign.data(narrow, (1, 3, 4)))
    table = opened(foreign)
    assert table.to_arrow().sort_by("id").to_pydict() == {
        "id": [1, 4, 5, 6], "x": [1.0, 4.0, 2.0, 3.0], "p": [None, None, "a", "b"]}  # fmt: skip
    assert ids_of(table, where="p IS NULL") == [1, 4] and table.count() == 4
    assert ids_of(opened(foreign, version=before)) == [1, 4]
    first = foreign.document["snapshots"][0]["snapshot-id"]
    changes = table.changes(first).to_arrow().to_pylist()
    assert sorted((c["_change_type"], c["id"]) for c in changes) == sorted(
        [("insert", n) for n in (1, 2, 3, 4, 5, 6)] + [("delete", n) for n in (2, 3)]
    )
    assert last


def test_compaction_after_a_key_was_dropped(new):
    """The new file lacks the key: a delete of null keys must not reach it."""
    foreign = new()
    for n in (1, 2, 3):
        foreign.commit(foreign.data(rows(n, p="a"), IDS))
    foreign.commit(foreign.equality(pa.table({"p": pa.array([None], pa.string())}), [2]))
    foreign.edit(lambda d: schema_of(d, lambda fields: [fields[0], fields[2]]))
    table = opened(foreign)
    assert ids_of(table) == [1, 2, 3]
    table.optimize()
    assert len(foreign.live()) == 1 and ids_of(opened(foreign)) == [1, 2, 3]


@pytest.mark.spec("I-068", "I-277")
def test_a_default_takes_part(new):
    foreign = new().upgrade()
    foreign.commit(foreign.data(rows(1, 2), IDS))
    field = {"id": 4, "name": "d", "type": "long", "required": False, "initial-default": 7, "write-default": 7}
    foreign.edit(lambda d: schema_of(d, lambda fields: [*fields, field]))
    foreign.commit(foreign.data(pa.table({"id": [3, 4], "d": pa.array([None, 8], pa.int64())}), (1, 4)))
    foreign.commit(foreign.equality(pa.table({"d": [7]}), [4]))
    assert ids_of(opened(foreign)) == [3, 4]
    foreign.commit(foreign.equality(pa.table({"d": pa.array([None], pa.int64())}), [4]))
    assert ids_of(opened(foreign)) == [4]


@pytest.mark.spec("I-275")
def test_a_key_in_a_struct(new):
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64()), ("b", pa.string())]))])
    foreign = new(schema)
    ids = {f["name"]: f["id"] for f in foreign.document["schemas"][0]["fields"][1]["type"]["fields"]}

    def numbered(type):
        fields = [pa.field(f.name, f.type, metadata={b"PARQUET:field_id": str(ids[f.name]).encode()}) for f in type]
        return pa.struct(fields)

    inner = numbered(schema.field("s").type)
    values = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, None, {"a": None, "b": "z"}]
    data = pa.table({"id": [1, 2, 3, 4], "s": pa.array(values, inner)})
    foreign.commit(foreign.data(data, (1, 2)))
    only = numbered([pa.field("a", pa.int64())])
    foreign.commit(foreign.equality(pa.table({"s": pa.array([{"a": 2}], only)}), [2], [ids["a"]]))
    assert ids_of(opened(foreign)) == [1, 3, 4]
    assert opened(foreign).scan(["s"], where="id < 3").to_arrow()["s"].to_pylist() == [{"a": 1, "b": "x"}]
    foreign.commit(foreign.equality(pa.table({"s": pa.array([{"a": None}], only)}), [2], [ids["a"]]))
    assert ids_of(opened(foreign)) == [1]


def bounds_of(ids, table):
    """Metrics of a delete file."""
    from foreign_writer import bound

    values = [[v for v in c.to_pylist() if v is not None] for c in table.columns]
    return {
        "lower_bounds": [{"key": i, "value": bound(min(v))} for i, v in zip(ids, values) if v],
        "upper_bounds": [{"key": i, "value": bound(max(v))} for i, v in zip(ids, values) if v],
        "null_value_counts": [{"key": i, "value": c.null_count} for i, c in zip(ids, table.columns)],
    }


def test_bounds_exclude_files(new):
    foreign = new()
    for start in (0, 10, 20):
        foreign.commit(foreign.data(rows(*range(start, start + 10)), IDS, bounds=True))
    foreign.commit(foreign.data(rows(40, None, p="b", x=1.0), IDS, bounds=True))
    table = keys(12, 27)
    foreign.commit(foreign.equality(table, [1], **bounds_of([1], table)))
    assert sorted(attached(foreign), key=str) == [None, None, [0], [0]]
    expected = {None, 40, *(set(range(30)) - {12, 27})}
    assert set(opened(foreign).scan(["id"]).to_arrow()["id"].to_pylist()) == expected
    table = keys(12, None)
    foreign.commit(foreign.equality(table, [1], **bounds_of([1], table)))
    assert sorted(attached(foreign), key=str) == [None, [0, 1], [0], [1]]
    assert None not in opened(foreign).scan(["id"]).to_arrow()["id"].to_pylist()


def test_writes_keep_the_meaning(new):
    foreign = new()
    foreign.commit(foreign.data(rows(*range(6)), IDS), foreign.data(rows(*range(6, 9)), IDS))
    foreign.commit(foreign.equality(keys(1, 2, 7), [1]))
    table = opened(foreign)
    table.append(rows(1, 20))
    assert ids_of(table) == [0, 1, 3, 4, 5, 6, 8, 20]
    assert table.delete("id = 4").rows_deleted == 1
    assert ids_of(opened(foreign)) == [0, 1, 3, 5, 6, 8, 20]
    table.update({"x": "x + 100"}, "id IN (1, 2, 6)")
    assert ids_of(table, where="x > 100") == [1, 6]
    merge = table.merge(rows(2, 7, 0, p="m"), "target.id = source.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert ids_of(table) == [0, 1, 2, 3, 5, 6, 7, 8, 20] == ids_of(opened(foreign))
    table.optimize()
    assert ids_of(opened(foreign)) == [0, 1, 2, 3, 5, 6, 7, 8, 20]
    foreign.commit(foreign.equality(keys(0), [1]))
    assert ids_of(opened(foreign)) == [1, 2, 3, 5, 6, 7, 8, 20]
    opened(foreign).overwrite(rows(0, 1, 2))
    assert ids_of(opened(foreign)) == [0, 1, 2]


def test_a_delete_of_all_that_is_left_of_a_file(new):
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2, 3), IDS))
    foreign.commit(foreign.equality(keys(2), [1]))
    result = opened(foreign).delete("x <> 2 AND p = 'a'")
    assert result.rows_deleted == 2 and result.rows_copied == 0 and foreign.live() == []


@pytest.mark.parametrize("write", ["delete", "update", "optimize", "append"])
def test_deletes_of_another_writer_in_between(new, monkeypatch, write):
    """They are committed after the plan: no row that they delete is copied, an appended one stays."""
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2, 3), IDS), foreign.data(rows(4, 5), IDS))
    real, calls = IcebergSnapshotCommits.prepare, []

    def prepare(self, change):
        attempt = real(self, change)
        if not calls:
            foreign.commit(foreign.equality(keys(1, 5), [1]))
        calls.append(change)
        return attempt

    monkeypatch.setattr(IcebergSnapshotCommits, "prepare", prepare)
    table = opened(foreign)
    if write == "append":
        table.append(rows(5, 6))
    elif write == "optimize":
        table.optimize()
    else:
        table.delete("id = 2") if write == "delete" else table.update({"x": "0"}, "id = 2")
    expected = {"delete": [3, 4], "append": [2, 3, 4, 5, 6]}.get(write, [2, 3, 4])
    assert len(calls) > 1 and ids_of(opened(foreign)) == expected


def test_damage(new):
    foreign = new()
    foreign.commit(foreign.data(rows(1, 2, 3), IDS))
    start = foreign.document

    def again(entry, error, words):
        foreign.commit(entry)
        with pytest.raises(error, match=words):
            opened(foreign).to_arrow()
        foreign.edit(lambda d: (d.clear(), d.update({**start, "last-sequence-number": 99})))
        foreign.edit(lambda d: d.update({"last-sequence-number": 1}))

    again(foreign.equality(pa.table({"p": ["a"]}), [2], [1]), CorruptTableError, "lacks its key column `id`")
    again(foreign.equality(keys(1), None, [1]), CorruptTableError, "has no ids")
    again(foreign.equality(keys(1), [9], [9]), UnsupportedFeatureError, "field 9")
    again(foreign.parquet(keys(1), [1], 2), CorruptTableError, "no equality_ids")
    wrong = pa.table({"id": ["x"]})
    again(foreign.equality(wrong, [1], [1]), BoathouseError, None)
    avro = foreign.equality(keys(1), [1])
    avro["data_file"]["file_format"] = "AVRO"
    again(avro, CorruptTableError, "not an Avro file")
    lance = foreign.equality(keys(1), [1])
    lance["data_file"]["file_format"] = "LANCE"
    again(lance, UnsupportedFeatureError, "LANCE delete files")
    gone = foreign.equality(keys(1), [1])
    Path(gone["data_file"]["file_path"].removeprefix("file://")).unlink()
    again(gone, MissingFileError, "delete file")
    cut = foreign.equality(keys(1), [1])
    path = Path(cut["data_file"]["file_path"].removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-20])
    again(cut, CorruptTableError, None)


CONDITIONS = {
    None: lambda r: True,
    "id >= 6": lambda r: r["id"] is not None and r["id"] >= 6,
    "p = 'b'": lambda r: r["p"] == "b",
    "x < 3": lambda r: r["x"] is not None and r["x"] < 3,
    "id IS NULL OR p <> 'a'": lambda r: r["id"] is None or (r["p"] is not None and r["p"] != "a"),
}


class Model:
    """Rows with the sequence number and partition of their file, next to a table of random deletes."""

    def __init__(self, foreign, seed, partitioned):
        self.foreign, self.random, self.partitioned = foreign, random.Random(seed), partitioned
        self.rows, self.vectors, self.sequence = [], {}, 0
        self.partition = {}

    def value(self, column):
        if self.random.random() < 0.15:
            return None
        return {"id": self.random.randrange(12), "p": self.random.choice("ab"),
                "x": self.random.choice([0.0, -0.0, NAN, 2.0, 5.0, INF, -INF, 5e-324])}[column]  # fmt: skip

    def part(self):
        return {"p": self.random.choice("ab")} if self.partitioned else None

    def step(self):
        """One commit: appended files, and deletes of every kind."""
        self.sequence += 1
        entries, dropped = [], set()
        for _ in range(self.random.randrange(1, 3)):
            entries.append(self.append())
        old = [r for r in self.rows if r["seq"] < self.sequence]
        if old and self.random.random() < 0.6:
            entries.append(self.equality(old))
        if old and self.random.random() < 0.3:
            entries += self.positions(old)
        if old and self.random.random() < 0.5:
            made, dropped = self.vector(old)
            entries += made
        self.foreign.commit(*entries, drop=lambda file: file["referenced_data_file"] in dropped)

    def append(self):
        part, n = self.part(), self.random.randrange(1, 7)
        made = [{c: self.value(c) for c in ("id", "p", "x")} for _ in range(n)]
        if part:
            made = [{**r, **part} for r in made]
        entry = self.foreign.data(pa.Table.from_pylist(made, SCHEMA), IDS, part, bounds=self.random.random() < 0.7)
        path = entry["data_file"]["file_path"]
        self.partition[path] = part
        self.rows += [
            {**r, "seq": self.sequence, "file": path, "pos": i, "equal": False, "at": False} for i, r in enumerate(made)
        ]
        return entry

    def equality(self, old):
        columns = self.random.choice([["id"], ["id", "p"], ["x"], ["p", "x"]])
        part = self.part()
        found = [{c: self.value(c) for c in columns} for _ in range(self.random.randrange(1, 4))]
        table = pa.Table.from_pylist(found, pa.schema([SCHEMA.field(c) for c in columns]))
        ids = [SCHEMA.get_field_index(c) + 1 for c in columns]
        told = {tuple(repr(f[c]) for c in columns) for f in found}
        for r in old:
            if self.partition[r["file"]] == part and tuple(repr(r[c]) for c in columns) in told:
                r["equal"] = True
        known = bounds_of(ids, table) if "x" not in columns and self.random.random() < 0.7 else {}
        return self.foreign.equality(table, ids, partition=part, **known)

    def positions(self, old):
        chosen = self.random.sample(old, min(3, len(old)))
        by_part = {}
        for r in chosen:
            r["at"] = r["at"] or r["file"] not in self.vectors
            part = self.partition[r["file"]]
            by_part.setdefault(str(part), (part, []))[1].append((r["file"], r["pos"]))
        return [self.foreign.positions(found, part) for part, found in by_part.values()]

    def vector(self, old):
        """A new vector has the old one's positions, and those of the position deletes before it."""
        path = self.random.choice(old)["file"]
        mine = [r for r in self.rows if r["file"] == path]
        for r in self.random.sample(mine, self.random.randrange(1, len(mine) + 1)):
            r["at"] = True
        self.vectors[path] = [r["pos"] for r in mine if r["at"]]
        return self.foreign.vectors({path: self.vectors[path]}, self.partition[path]), {path}

    def expected(self, condition):
        live = [r for r in self.rows if not r["equal"] and not r["at"] and CONDITIONS[condition](r)]
        return sorted(repr((r["id"], r["p"], r["x"])) for r in live)


def shown(table):
    return sorted(repr((r["id"], r["p"], r["x"])) for r in table.to_pylist())


@pytest.mark.few(1)
@pytest.mark.spec("I-211", "I-212", "I-213", "I-215")
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 24))])
def test_random_deletes_of_every_kind(new, seed, partitioned):
    foreign = new(**({"partition_by": ["p"]} if partitioned else {})).upgrade()
    model = Model(foreign, seed, partitioned)
    history = []
    for _ in range(7):
        model.step()
        table = opened(foreign)
        for condition in CONDITIONS:
            assert shown(table.scan(where=condition).to_arrow()) == model.expected(condition), condition
        column = model.random.choice(["id", "p", "x"])
        assert table.scan([column]).to_arrow().num_rows == table.count() == len(model.expected(None))
        history.append((foreign.document["current-snapshot-id"], model.expected(None)))
    for version, expected in history:
        assert shown(opened(foreign, version=version).to_arrow()) == expected
    # Changes take the two zeros for equal, as Spark's set operations do.
    state = []
    for version, expected in history:
        for c in opened(foreign, version=version).changes(version).to_arrow().to_pylist():
            row = repr((c["id"], c["p"], c["x"])).replace("-0.0", "0.0")
            (state.append if c["_change_type"] == "insert" else state.remove)(row)
        assert sorted(state) == sorted(row.replace("-0.0", "0.0") for row in expected)


@pytest.mark.spec("I-211")
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_random_writes_between_equality_deletes(new, seed, partitioned):
    """A delete reaches the rows that are there, wherever our writes have moved them, and none that come later."""
    foreign = new(**({"partition_by": ["p"]} if partitioned else {}))
    chance, expected = random.Random(seed), []
    for step in range(14):
        table = opened(foreign)
        ids = [chance.randrange(12) for _ in range(4)]
        part = chance.choice("ab")
        match chance.choice(["append", "append", "delete", "update", "optimize", "equality", "equality", "equality"]):
            case "append":
                table.append(rows(*ids, p=part, x=float(step)))
                expected += [(i, part, float(step)) for i in ids]
            case "delete":
                table.delete(f"id = {ids[0]} OR x = {ids[1]}")
                expected = [r for r in expected if r[0] != ids[0] and r[2] != ids[1]]
            case "update":
                table.update({"id": "id + 1"}, f"id >= {ids[0]}")
                expected = [(r[0] + (r[0] >= ids[0]), *r[1:]) for r in expected]
            case "optimize":
                table.optimize()
            case "equality":
                foreign.commit(foreign.equality(keys(*ids), [1], partition={"p": part} if partitioned else None))
                expected = [r for r in expected if r[0] not in ids or (partitioned and r[1] != part)]
        found = opened(foreign).to_arrow()
        assert sorted(zip(*found.to_pydict().values())) == sorted(expected)
