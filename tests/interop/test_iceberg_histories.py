"""Random histories that iceberg-spark writes: every version, format and mode of deletes, a schema and a partitioning
that change, upgrades, branches. Rows are the same at every snapshot, on both engines, and under conditions."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from dataclasses import replace

import pyarrow.compute as pc
import pytest
import random_tables as draw
from reference_spark import ICEBERG

import boathouse as bh

pytestmark = pytest.mark.slow
RELEASE = replace(
    ICEBERG,
    conf={"spark.sql.adaptive.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"},
)
COLUMNS = """k bigint, p string, i int, f float, d double, n decimal(9, 2), day date, ts timestamp, tn timestamp_ntz,
    bo boolean, bi binary, st struct<a: int, b: string, s: struct<c: float, t: date>>, li array<int>,
    ls array<struct<x: int, y: string>>, m map<string, struct<v: int>>"""
CHANGES = ("insert", "insert", "delete", "delete", "update", "update", "merge", "merge", "overwrite")
UPKEEP = ("data files", "data files", "position deletes", "manifests", "rollback", "cherrypick", "fast forward")
STEPS = (*CHANGES, *CHANGES, *UPKEEP, *("schema",) * 8, *("spec",) * 4, *("settings",) * 4, "branch", "branch", "tag",
         "order", "default", "default")  # fmt: skip
FORMATS = ("parquet", "orc", "avro")
DEFAULTS = (("int", -7), ("string", "né"), ("double", 1.5), ("date", "1969-12-31"), ("decimal(9, 2)", "-7.50"),
            ("timestamp", "1960-02-29T12:30:15.123456"))  # fmt: skip


class History:
    """A table that changes at random. What the reference refuses is left out."""

    def __init__(self, reference, seed):
        self.reference, self.chance = reference, random.Random(seed)
        self.name, self.root = f"ice.db.t{seed}", reference.root / "db" / f"t{seed}"
        self.log, self.refused, self.keys = [], [], 0
        # Java 1.10 reads no defaults of fields that a file in ORC lacks.
        self.formats = self.chance.choice((FORMATS, FORMATS[::2]))
        version = self.chance.choice((1, 2, 3))
        options = {
            "format-version": version, "write.distribution-mode": "none",
            "write.metadata.compression-codec": self.chance.choice(("none", "gzip")),
            "write.metadata.metrics.default": self.chance.choice(("full", "truncate(2)", "counts", "none")),
            "commit.manifest.min-count-to-merge": self.chance.choice((2, 100)), **self.modes(version),
        }  # fmt: skip
        by = self.chance.choice(
            ("", "p", "bucket(2, k), days(ts)", "truncate(1, p), i", "bucket(2, st.a), months(day)")
        )
        parts = f"PARTITIONED BY ({by})" if by else ""
        assert self.run(f"CREATE TABLE {self.name} ({COLUMNS}) USING iceberg {parts} TBLPROPERTIES ({listed(options)})")
        assert self.run(self.insert(self.name))

    # --- what the table is

    def heads(self):
        return sorted((self.root / "metadata").glob("*.metadata.json"), key=lambda p: draw.digits(p.name))

    @property
    def document(self):
        data = self.heads()[-1].read_bytes()
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)

    @property
    def fields(self):
        document = self.document
        return next(s["fields"] for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])

    def branches(self):
        return [name for name, ref in self.document["refs"].items() if ref["type"] == "branch" and name != "main"]

    def target(self):
        """The table, now and then a branch of it."""
        names = self.branches()
        return f"{self.name}.branch_{self.chance.choice(names)}" if names and self.chance.random() < 0.3 else self.name

    # --- steps

    def run(self, statement):
        if statement is None:
            return False
        if "orc" in self.formats:
            # Java's ORC reads zeros of both signs, if there is nothing else, as the first of them.
            statement = statement.replace("'0.0'", "'-0.0'")
        error = self.reference.error(statement)
        (self.refused if error else self.log).append(statement)
        print(statement, "" if error is None else f"-- refused: {error[:300]}")
        return error is None

    def step(self):
        kind = self.chance.choice(STEPS)
        if kind == "default":
            return self.add_default()
        return self.run(getattr(self, kind.replace(" ", "_"))(self.target()))

    def rows(self, number):
        made = []
        for _ in range(number):
            self.keys += 1
            made.append(f"({draw.row(self.chance, self.fields, self.keys)})")
        return ", ".join(made)

    def where(self):
        keys = ", ".join(str(self.chance.randint(1, self.keys)) for _ in range(3))
        return self.chance.choice((f"k IN ({keys})", f"k % 5 = {self.chance.randrange(5)}",
                                   draw.condition(self.chance, self.fields, 1)))  # fmt: skip

    def insert(self, t):
        files, rows = self.chance.randint(1, 3), self.rows(self.chance.randint(3, 8))
        return f"INSERT INTO {t} SELECT /*+ REPARTITION({files}) */ * FROM VALUES {rows}"

    def delete(self, t):
        return f"DELETE FROM {t} WHERE {self.where()}"

    def update(self, t):
        path, type = self.chance.choice([v for v in draw.leaves(self.fields) if v[0] != ("k",)])
        return f"UPDATE {t} SET {draw.dotted(path)} = {draw.value(self.chance, type)} WHERE {self.where()}"

    def merge(self, t):
        names = ", ".join(f"`{f['name']}`" for f in self.fields)
        old = ", ".join(f"({draw.row(self.chance, self.fields, key)})"
                        for key in self.chance.sample(range(1, self.keys + 1), min(4, self.keys)))  # fmt: skip
        absent = f"WHEN NOT MATCHED BY SOURCE AND t.k % 7 = {self.chance.randrange(7)} THEN DELETE"
        return (
            f"MERGE INTO {t} t USING (SELECT * FROM VALUES {old}, {self.rows(2)} AS v({names})) s ON t.k = s.k "
            f"WHEN MATCHED AND t.k % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
            + self.chance.choice(("", absent))
        )

    def overwrite(self, t):
        mode = self.chance.choice(("dynamic", "dynamic", "static"))
        self.reference.sql(f"SET spark.sql.sources.partitionOverwriteMode={mode}")
        return self.chance.choice((f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE k % 4 <> 1",
                                   f"INSERT OVERWRITE {t} SELECT * FROM VALUES {self.rows(4)}"))  # fmt: skip

    def call(self, procedure, arguments=""):
        return f"CALL ice.system.{procedure}('db.{self.root.name}'{arguments})"

    def data_files(self, t):
        where = self.chance.choice(("", ", where => 'k > 5'"))
        options = ", options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
        return self.call("rewrite_data_files", where + options).replace("('", "(table => '", 1)

    def position_deletes(self, t):
        options = ", options => map('rewrite-all', 'true')"
        return self.call("rewrite_position_delete_files", options).replace("('", "(table => '", 1)

    def manifests(self, t):
        return self.call("rewrite_manifests")

    def rollback(self, t):
        past = [e["snapshot-id"] for e in self.document["snapshot-log"]][-4:]
        return self.call("rollback_to_snapshot", f", {self.chance.choice(past)}")

    def cherrypick(self, t):
        document = self.document
        mine = {e["snapshot-id"] for e in document["snapshot-log"]}
        others = [s["snapshot-id"] for s in document["snapshots"] if s["snapshot-id"] not in mine]
        return self.call("cherrypick_snapshot", f", {self.chance.choice(others)}") if others else None

    def fast_forward(self, t):
        names = self.branches()
        return self.call("fast_forward", f", 'main', '{self.chance.choice(names)}'") if names else None

    def branch(self, t):
        return f"ALTER TABLE {self.name} CREATE OR REPLACE BRANCH b{self.chance.randrange(3)}"

    def tag(self, t):
        return f"ALTER TABLE {self.name} CREATE TAG g{len(self.document['refs'])}"

    def order(self, t):
        return f"ALTER TABLE {self.name} WRITE LOCALLY ORDERED BY k DESC"

    def schema(self, t):
        # Java reads no more of a table that lost the source of a partition field, and no older snapshots of one that
        # widened the source of an identity transform.
        parts = [f for spec in self.document["partition-specs"] for f in spec["fields"]]
        kept, narrow = {f["source-id"] for f in parts}, {f["source-id"] for f in parts if f["transform"] == "identity"}
        return draw.schema_change(self.chance, self.name, self.fields, kept, narrow)

    def spec(self, t):
        document = self.document
        spec = next(s for s in document["partition-specs"] if s["spec-id"] == document["default-spec-id"])
        return draw.spec_change(self.chance, self.name, self.fields, spec)

    def modes(self, version):
        """Formats of files, and of deletes where the version has row deletes."""
        modes = ("copy-on-write", "merge-on-read", "merge-on-read") if version > 1 else ("copy-on-write",)
        found = {f"write.{n}.mode": self.chance.choice(modes) for n in ("delete", "update", "merge")}
        found["write.delete.granularity"] = self.chance.choice(("file", "partition"))
        return found | {f"write.{n}format.default": self.chance.choice(self.formats) for n in ("", "delete.")}

    def settings(self, t, newer=0):
        version = min(3, self.document["format-version"] + newer)
        options = {"format-version": version, **self.modes(version)}
        return f"ALTER TABLE {self.name} SET TBLPROPERTIES ({listed(options)})"

    def upgrade(self):
        assert self.run(self.settings(self.name, newer=1))

    def add_default(self):
        """A column with a default, which the reference reads, but has no SQL for: by a new document."""
        document, own = self.document, self.fields
        name = f"d{len(document['schemas'])}"
        if document["format-version"] < 3 or "orc" in self.formats or any(f["name"] == name for f in own):
            return False
        type, value = self.chance.choice(DEFAULTS)
        document["last-column-id"] += 1
        document["schemas"].append({
            "type": "struct", "schema-id": max(s["schema-id"] for s in document["schemas"]) + 1,
            "fields": [*own, {"id": document["last-column-id"], "name": name, "required": False, "type": type,
                              "initial-default": value, "write-default": value}],
        })  # fmt: skip
        document["current-schema-id"] = document["schemas"][-1]["schema-id"]
        number = draw.digits(self.heads()[-1].name) + 1
        (self.root / "metadata" / f"v{number}.metadata.json").write_text(json.dumps(document))
        self.log.append(f"-- {name} {type} DEFAULT {value}")
        print(self.log[-1])
        return True


def listed(options):
    return ", ".join(f"'{k}'='{v}'" for k, v in options.items())


def history_of(reference, seed):
    history = History(reference, seed)
    chance = history.chance
    upgrades = chance.sample(range(4, 24), 2)
    while len(history.log) < 28:
        if upgrades and len(history.log) > min(upgrades):
            upgrades.remove(min(upgrades))
            history.upgrade()
        history.step()
    return history


class Point:
    """A snapshot or a ref: its fields, how the reference names it and how we open it."""

    def __init__(self, document, snapshot=None, ref=None):
        self.branch = ref is not None and document["refs"][ref]["type"] == "branch"
        id = document["refs"][ref]["snapshot-id"] if snapshot is None else snapshot
        of = next(s for s in document["snapshots"] if s["snapshot-id"] == id)
        self.schema_id = document["current-schema-id"] if self.branch else of["schema-id"]
        self.fields = next(s["fields"] for s in document["schemas"] if s["schema-id"] == self.schema_id)
        self.sql = f"VERSION AS OF {id if ref is None else repr(ref)}"
        self.options = {"version": id} if ref is None else {"ref": ref}

    def __repr__(self):
        return self.sql


def points_of(document):
    found = [Point(document, s["snapshot-id"]) for s in document["snapshots"]]
    return found + [Point(document, ref=name) for name in document["refs"]]


def read_by_reference(history, chance):
    """(point, conditions, rows with a column c<n> for each condition) of every point. Spark evaluates the conditions
    after the scan, so that what the reference skips by its metadata is of no matter."""
    groups = {}
    for point in points_of(history.document):
        groups.setdefault(point.schema_id, []).append(point)
    for points in groups.values():
        conditions = [draw.condition(chance, points[0].fields) for _ in range(5)]
        flags = ", ".join(f"coalesce({c}, false) AS c{n}" for n, c in enumerate(conditions))
        for start in range(0, len(points), 10):
            some = points[start : start + 10]
            parts = [f"SELECT *, {flags}, {n} AS point FROM {history.name} {p.sql}" for n, p in enumerate(some)]
            found = history.reference.rows(" UNION ALL ".join(parts))
            for n, point in enumerate(some):
                yield point, conditions, found.filter(pc.equal(found["point"], n)).drop_columns("point")


def counted(table, exact):
    return Counter(map(repr, map(exact, table.to_pylist())))


def same(mine, theirs, exact, what):
    assert mine.column_names == theirs.column_names, what
    assert mine.schema.types == theirs.schema.types, what
    one, two = counted(mine, exact), counted(theirs, exact)
    assert one == two, (what, "only ours", one - two, "only theirs", two - one)


def judge(history, point, conditions, theirs, exact, read):
    """`read(columns, where)` gives our rows."""
    names = [f["name"] for f in point.fields]
    rows = theirs.select(names)
    same(read(None, None), rows, exact, point)
    for n, where in enumerate(conditions):
        some = history.chance.choice((None, history.chance.sample(names, min(2, len(names)))))
        same(read(some, where), rows.filter(theirs[f"c{n}"]).select(some or names), exact, (point, some, where))


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(20))
def test_random_histories(reference, spark, nasty, seed):
    history = history_of(reference, seed)
    chance = history.chance
    uri = str(history.root)
    found = list(read_by_reference(history, chance))
    for point, conditions, theirs in found:
        table = bh.open(uri, **point.options)
        judge(history, point, conditions, theirs, nasty.exact, lambda c, w, t=table: t.scan(c, w).to_arrow())
    heads = [p for p in found if p[0].branch]
    for point, conditions, theirs in heads + chance.sample(found, 2):
        table = bh.open(uri, spark=spark, **point.options)
        judge(history, point, conditions, theirs, nasty.exact, lambda c, w, t=table: t.scan(c, w).to_spark().toArrow())
