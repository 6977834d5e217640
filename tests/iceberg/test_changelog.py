"""Changes between snapshots of tables that other engines write: merge-on-read, overwrites, compactions, evolution."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from foreign_writer import IDS, SCHEMA, Foreign, rows

import boathouse as bh
from boathouse.errors import UnsupportedFeatureError, VersionNotFoundError


class Logged(Foreign):
    """A writer that also removes data files, and names the operation of its snapshots."""

    def commit(self, *entries, gone=(), operation="overwrite", drop=None, **more):
        """A snapshot; the data files `gone` are left out of it, and the delete files for which `drop` is true."""
        if gone:
            self._data_gone = set(gone)
        id = super().commit(*entries, drop=drop or (lambda file: False), **more)
        self._data_gone = set()

        def named(document):
            document["snapshots"][-1]["summary"]["operation"] = operation

        self.edit(named)
        return id

    _data_gone = frozenset()

    def _kept(self, document, drop, sequence):
        """Data manifests with a file that goes are written again without it, as EXISTING entries."""
        found = []
        for row in super()._kept(document, drop, sequence):
            entries = self._avro(row["manifest_path"]) if row["content"] == 0 else []
            if not any(e["data_file"]["file_path"] in self._data_gone for e in entries):
                found.append(row)
                continue
            kept = []
            for e in entries:
                if e["status"] != 2 and e["data_file"]["file_path"] not in self._data_gone:
                    known = e["sequence_number"] if e["sequence_number"] is not None else row["sequence_number"]
                    owner = e["snapshot_id"] if e["snapshot_id"] is not None else row["added_snapshot_id"]
                    kept.append({**e, "status": 0, "snapshot_id": owner, "sequence_number": known,
                                 "file_sequence_number": known})  # fmt: skip
            if kept:
                found.append(
                    self._manifest(document, kept, 0, row["partition_spec_id"], sequence, row["added_snapshot_id"])
                )
        return found


@pytest.fixture
def new(tmp_path):
    def new(schema=SCHEMA, **options):
        root = tmp_path / "t"
        bh.create(str(root), schema, format="iceberg", **options)
        return Logged(root)

    return new


def opened(foreign, **at):
    return bh.open(str(foreign.root), **at)


def path_of(entry):
    return entry["data_file"]["file_path"]


def steps(table, *between, **options):
    """[(type, id), ...] by commit."""
    found = {}
    for c in table.changes(*between, **options).to_arrow().to_pylist():
        found.setdefault(c["_commit_version"], []).append((c["_change_type"], c["id"]))
    return {version: sorted(changes) for version, changes in found.items()}


def test_every_kind_of_delete_and_a_compaction(new):
    foreign = new().upgrade()
    a, b = foreign.data(rows(0, 1, 2, 3), IDS), foreign.data(rows(10, 11), IDS)
    first = foreign.commit(a, b, operation="append")
    second = foreign.commit(foreign.positions([(path_of(a), 0), (path_of(b), 1)]), operation="delete")
    third = foreign.commit(foreign.equality(pa.table({"id": [1]}), [1]), foreign.data(rows(1, x=9.0), IDS))
    fourth = foreign.commit(*foreign.vectors({path_of(a): [0, 3]}), operation="delete")
    whole = foreign.data(rows(1, 2, 10), IDS)
    fifth = foreign.commit(whole, gone=foreign.live(), drop=lambda file: True, operation="replace")
    sixth = foreign.commit(foreign.data(rows(2, 7), IDS), gone=[path_of(whole)])
    table = opened(foreign)
    assert steps(table, first) == {
        first: [("insert", n) for n in (0, 1, 2, 3, 10, 11)],
        second: [("delete", 0), ("delete", 11)],
        third: [("delete", 1), ("insert", 1)],
        fourth: [("delete", 3)],
        sixth: [("delete", 1), ("delete", 10), ("insert", 7)],
    }
    assert steps(table, fifth, fifth) == {} and steps(table, third, fifth).keys() == {third, fourth}
    found = table.changes(third, third).to_arrow()
    assert found.column_names == ["id", "p", "x", "_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted(zip(found["_change_type"].to_pylist(), found["x"].to_pylist())) == [("delete", 1.0), ("insert", 9.0)]
    assert steps(table, first, where="id = 1", columns=["id"]) == {
        first: [("insert", 1)], third: [("delete", 1), ("insert", 1)], sixth: [("delete", 1)]}  # fmt: skip


def test_a_vector_that_takes_over_position_deletes_changes_nothing(new):
    """The upgrade of a table: the positions of the old delete file, which goes, are in the vector."""
    foreign = new()
    a = foreign.data(rows(0, 1, 2, 3), IDS)
    foreign.commit(a, operation="append")
    foreign.commit(foreign.positions([(path_of(a), 1)]), operation="delete")
    foreign.upgrade()
    moved = foreign.commit(*foreign.vectors({path_of(a): [1]}), drop=lambda file: file["file_format"] == "PARQUET")
    last = foreign.commit(*foreign.vectors({path_of(a): [1, 2]}), drop=lambda file: True)
    assert steps(opened(foreign), moved) == {last: [("delete", 2)]}


def test_equality_deletes_that_a_compaction_applies(new):
    """A replacement of equality deletes by positions, as Flink's tables get it: the operation is what says that no row
    changed; where it is another one, the rows are compared."""
    foreign = new()
    a, b = foreign.data(rows(0, 1, 2), IDS), foreign.data(rows(10, 11), IDS)
    foreign.commit(a, b)
    foreign.commit(foreign.equality(pa.table({"id": [1, 10]}), [1]))
    start = foreign.commit(
        foreign.positions([(path_of(a), 1), (path_of(b), 0)]), drop=lambda file: file["content"] == 2
    )
    assert steps(opened(foreign), start) == {}
    again = foreign.data(rows(0, 2, 11), IDS)
    foreign.commit(again, gone=[path_of(a), path_of(b)], drop=lambda file: True)
    last = foreign.commit(foreign.data(rows(5), IDS), gone=[path_of(again)])
    assert steps(opened(foreign), start) == {last: [("delete", 0), ("delete", 2), ("delete", 11), ("insert", 5)]}


def test_appended_rows(catalog, new):
    """As pyiceberg's incremental scan finds them: without the commits that did anything else."""
    theirs = catalog.create_table("db.t", SCHEMA)
    versions = []
    for change in (
        lambda: theirs.append(rows(1, 2)), lambda: theirs.append(rows(3, 4)), lambda: theirs.delete("id = 3"),
        lambda: theirs.append(rows(5)), lambda: theirs.overwrite(rows(6)), lambda: theirs.append(rows(7, 7)),
    ):  # fmt: skip
        change()
        versions.append(theirs.current_snapshot().snapshot_id)
    table = bh.open(theirs.location())
    for i, first in enumerate(versions):
        for j in range(i, len(versions)):
            parent = None if i == 0 else versions[i - 1]
            scan = theirs.incremental_append_scan(
                from_snapshot_id_exclusive=parent, to_snapshot_id_inclusive=versions[j]
            )
            ours = table.changes(first, versions[j], appends_only=True).to_arrow()
            assert sorted(ours["id"].to_pylist()) == sorted(scan.to_arrow()["id"].to_pylist())
            assert set(ours["_change_type"].to_pylist()) <= {"insert"}


def test_appended_rows_between_deletes(new):
    """Later deletes do not concern them, and commits that also delete are passed over."""
    foreign = new().upgrade()
    a = foreign.data(rows(1, 2), IDS)
    first = foreign.commit(a, operation="append")
    foreign.commit(foreign.positions([(path_of(a), 0)]), operation="delete")
    third = foreign.commit(foreign.data(rows(3, 4), IDS), operation="append")
    foreign.commit(foreign.equality(pa.table({"id": [3]}), [1]), foreign.data(rows(3), IDS))
    foreign.commit(foreign.data(rows(2, 3, 4), IDS), gone=foreign.live(), drop=lambda f: True, operation="replace")
    found = steps(opened(foreign), 0, appends_only=True, where="id > 1")
    assert found == {first: [("insert", 2)], third: [("insert", 3), ("insert", 4)]}
    assert repr(opened(foreign).changes(0, appends_only=True)).startswith("appends of iceberg")


def test_rows_that_are_there_several_times(new):
    """Of five equal rows two are deleted: two changes."""
    foreign = new()
    a, b = foreign.data(rows(7, 7, 7), IDS), foreign.data(rows(7, 7, 8), IDS)
    foreign.commit(a, b)
    made = foreign.commit(foreign.data(rows(7, 7, 7, 8, 9), IDS), gone=[path_of(a), path_of(b)])
    assert steps(opened(foreign), made) == {made: [("delete", 7), ("delete", 7), ("insert", 9)]}


def rename(foreign, change):
    def edit(document):
        old = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
        fields = change([dict(f) for f in old["fields"]])
        id = max(s["schema-id"] for s in document["schemas"]) + 1
        document["schemas"].append({"type": "struct", "schema-id": id, "fields": fields})
        document["current-schema-id"] = id
        document["last-column-id"] = max(document["last-column-id"], *(f["id"] for f in fields))

    foreign.edit(edit)


def test_across_the_evolution_of_the_schema(new):
    """Columns are found by id: a renamed one has its values, another one of the old name has none."""
    foreign = new()
    a = foreign.data(rows(1, 2, 8), IDS)
    first = foreign.commit(a, operation="append")
    gone = foreign.commit(foreign.equality(pa.table({"p": ["a"], "id": [8]}), (2, 1)))

    def change(fields):
        fields[1]["name"], fields[2]["name"] = "x", "size"
        return [fields[2], fields[0], fields[1], {"id": 4, "name": "p", "type": "int", "required": False}]

    rename(foreign, change)
    more = pa.table({"id": [3], "x": ["b"], "size": [0.5], "p": pa.array([4], pa.int32())})
    second = foreign.commit(foreign.data(more, (1, 2, 3, 4)), operation="append")
    third = foreign.commit(foreign.positions([(path_of(a), 0)]), operation="delete")
    table = opened(foreign)
    found = table.changes(first).to_arrow()
    assert found.column_names[:4] == ["size", "id", "x", "p"]
    shown = [(c["_commit_version"], c["_change_type"], c["id"], c["x"], c["size"], c["p"]) for c in found.to_pylist()]
    assert sorted(shown) == sorted([
        (first, "insert", 1, "a", 1.0, None), (first, "insert", 2, "a", 2.0, None),
        (first, "insert", 8, "a", 8.0, None), (gone, "delete", 8, "a", 8.0, None), (second, "insert", 3, "b", 0.5, 4),
        (third, "delete", 1, "a", 1.0, None)])  # fmt: skip
    wanted = {first: [("insert", 2), ("insert", 8)], gone: [("delete", 8)]}
    assert steps(table, first, where="x = 'a' AND size > 1") == wanted
    old = table.changes(first, first).to_arrow()
    assert old.column_names[:3] == ["id", "p", "x"] and old["p"].to_pylist() == ["a"] * 3


def test_nested_fields_by_id(new):
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("s", inner)])
    foreign = new(schema)
    (_, s) = foreign.document["schemas"][0]["fields"]
    a, b = (f["id"] for f in s["type"]["fields"])
    numbered = pa.struct([
        pa.field(f.name, f.type, metadata={b"PARQUET:field_id": str(i).encode()}) for f, i in zip(inner, (a, b))
    ])  # fmt: skip
    values = pa.array([{"a": 1, "b": "x"}], numbered)
    first = foreign.commit(foreign.data(pa.table({"id": [1], "s": values}), (1, 2)), operation="append")

    def change(fields):
        fields[1]["type"] = {**s["type"], "fields": [
            {"id": b, "name": "a", "type": "string", "required": False},
            {"id": a, "name": "n", "type": "long", "required": False}]}  # fmt: skip
        return fields

    rename(foreign, change)
    foreign.commit(foreign.data(pa.table({"id": [2]}), (1,)), operation="append")
    found = opened(foreign).changes(first).to_arrow()
    assert found["s"].to_pylist() == [{"a": "x", "n": 1}, None]


def test_a_column_that_became_another_type_is_refused(new):
    foreign = new()
    first = foreign.commit(foreign.data(rows(1), IDS), operation="append")
    rename(foreign, lambda fields: [{**fields[0], "type": "string"}, *fields[1:]])
    foreign.commit(foreign.data(pa.table({"id": ["x"]}), (1,)), operation="append")
    with pytest.raises(UnsupportedFeatureError, match="cannot be read with the schema"):
        opened(foreign).changes(first).to_arrow()


def test_across_partition_specs(new):
    foreign = new(partition_by=["p"])
    a, b = (foreign.data(rows(1, 2, p=p), IDS, {"p": p}) for p in "ab")
    first = foreign.commit(a, b, operation="append")

    def respec(document):
        document["partition-specs"].append({"spec-id": 1, "fields": []})
        document["default-spec-id"] = 1

    foreign.edit(respec)
    second = foreign.commit(foreign.equality(pa.table({"id": [1]}), [1]), spec=1)
    third = foreign.commit(foreign.data(rows(2, p="a"), IDS), gone=[path_of(a), path_of(b)], spec=1)
    found = opened(foreign).changes(first).to_arrow().to_pylist()
    shown = sorted((c["_commit_version"], c["_change_type"], c["id"], c["p"]) for c in found)
    assert shown == sorted([
        *((first, "insert", n, p) for n in (1, 2) for p in "ab"), *((second, "delete", 1, p) for p in "ab"),
        (third, "delete", 2, "b")])  # fmt: skip


def test_between_any_two_snapshots_of_a_line(new):
    """A branch has its own line; a rolled back snapshot is on none; an expired one is named."""
    foreign = new()
    first = foreign.commit(foreign.data(rows(1), IDS), operation="append")
    second = foreign.commit(foreign.data(rows(2), IDS), operation="append")

    def back(document):
        document["refs"]["other"] = {"snapshot-id": second, "type": "branch"}
        document["refs"]["main"]["snapshot-id"] = document["current-snapshot-id"] = first

    foreign.edit(back)
    third = foreign.commit(foreign.data(rows(3), IDS), operation="append")
    assert steps(opened(foreign), 0) == {first: [("insert", 1)], third: [("insert", 3)]}
    assert steps(opened(foreign, ref="other"), first) == {first: [("insert", 1)], second: [("insert", 2)]}
    with pytest.raises(VersionNotFoundError, match=f"version {second} is not among"):
        opened(foreign).changes(second).to_arrow()
    assert steps(opened(foreign), second, second) == {second: [("insert", 2)]}
    foreign.edit(lambda d: d.update(snapshots=[s for s in d["snapshots"] if s["snapshot-id"] != first]))
    with pytest.raises(VersionNotFoundError, match=f"version {first}, which the changes start from, is gone"):
        opened(foreign).changes(third).to_arrow()


class Model:
    """Random commits of every kind next to a list of live rows."""

    def __init__(self, foreign, seed):
        self.foreign, self.chance = foreign, random.Random(seed)
        self.files, self.next, self.vectors, self.changes = {}, 0, {}, {}

    def live(self):
        return Counter(i for ids in self.files.values() for i in ids if i is not None)

    def step(self):
        before, kind = self.live(), self.chance.choice(["append", "positions", "equality", "vector", "overwrite",
                                                        "replace", "upsert"])  # fmt: skip
        id = getattr(self, kind if self.files else "append")()
        after = self.live()
        self.changes[id] = sorted([("delete", i) for i in (before - after).elements()]
                                  + [("insert", i) for i in (after - before).elements()])  # fmt: skip

    def data(self, ids=None):
        ids = ids if ids is not None else [self.chance.randrange(15) for _ in range(self.chance.randrange(1, 6))]
        entry = self.foreign.data(rows(*ids), IDS)
        self.files[path_of(entry)] = list(ids)
        return entry

    def append(self):
        return self.foreign.commit(self.data(), self.data(), operation="append")

    def some(self, path):
        """Positions of a file, deleted ones perhaps among them."""
        n = len(self.files[path])
        return sorted(self.chance.sample(range(n), self.chance.randrange(1, n + 1)))

    def positions(self):
        chosen = self.chance.sample(sorted(self.files), min(2, len(self.files)))
        # Position deletes do not reach files with vectors.
        pairs = [(path, n) for path in chosen if path not in self.vectors for n in self.some(path)]
        for path, n in pairs:
            self.files[path][n] = None
        return self.foreign.commit(*([self.foreign.positions(pairs)] if pairs else []), operation="delete")

    def equality(self, more=()):
        ids = [self.chance.randrange(15) for _ in range(2)]
        for path, found in self.files.items():
            if path not in {path_of(e) for e in more}:
                self.files[path] = [None if i in ids else i for i in found]
        entry = self.foreign.equality(pa.table({"id": ids}), [1])
        return self.foreign.commit(*more, entry, operation="overwrite")

    def upsert(self):
        return self.equality([self.data()])

    def vector(self):
        path = self.chance.choice(sorted(self.files))
        known = {n for n, i in enumerate(self.files[path]) if i is None}
        self.vectors[path] = sorted(known | set(self.some(path)))
        for n in self.vectors[path]:
            self.files[path][n] = None
        made = self.foreign.vectors({path: self.vectors[path]})
        return self.foreign.commit(
            *made, drop=lambda file: file["referenced_data_file"] == path and file["file_format"] == "PUFFIN"
        )

    def without(self):
        return self.chance.sample(sorted(self.files), self.chance.randrange(1, len(self.files) + 1))

    def overwrite(self):
        gone = self.without()
        kept = [i for path in gone for i in self.files.pop(path) if i is not None and self.chance.random() < 0.6]
        return self.foreign.commit(self.data([*kept, 99]), gone=gone)

    def replace(self):
        """The rows stay: those of some files, in one."""
        gone = self.without()
        kept = [i for path in gone for i in self.files.pop(path) if i is not None]
        made = [self.data(kept)] if kept else []
        return self.foreign.commit(*made, gone=gone, operation="replace")


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 20))])
def test_random_histories(new, seed):
    model = Model(new().upgrade(), seed)
    for _ in range(12):
        model.step()
    table, line = opened(model.foreign), list(model.changes)
    assert Counter(table.to_arrow()["id"].to_pylist()) == model.live()
    expected = {version: changes for version, changes in model.changes.items() if changes}
    assert steps(table, 0) == expected
    for _ in range(3):
        first, last = sorted(model.chance.sample(range(len(line)), 2))
        between = {v: expected[v] for v in line[first : last + 1] if v in expected}
        assert steps(table, line[first], line[last]) == between


@pytest.mark.spark
def test_on_spark(spark, new):
    foreign = new().upgrade()
    a, b = foreign.data(rows(0, 1, 2), IDS), foreign.data(rows(10, 11), IDS)
    first = foreign.commit(a, b, operation="append")
    foreign.commit(foreign.positions([(path_of(b), 1)]), *foreign.vectors({path_of(a): [2]}))
    foreign.commit(foreign.equality(pa.table({"id": [1]}), [1]), foreign.data(rows(1, x=9.0), IDS))
    foreign.commit(foreign.data(rows(0, 10), IDS), gone=[path_of(a), path_of(b)], operation="replace")
    changes = opened(foreign).changes(first)
    names = ["_commit_version", "_change_type", "id", "x"]
    found = sorted(tuple(r[n] for n in names) for r in changes.to_spark(spark).collect())
    assert found == sorted(zip(*(changes.to_arrow()[n].to_pylist() for n in names))) and len(found) == 9
