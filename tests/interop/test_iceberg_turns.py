"""Random histories of one table, ours and iceberg-spark in turn: versions 1 to 3, every mode of deletes, a schema and a
partitioning that change, branches, upkeep; by path, and in a SQL catalog that both know. After each step the rows are
what the step says, and both read the same rows, row ids, refs and metadata tables."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pyarrow as pa
import pytest
import turn_steps as steps
from metadata_rows import MOST, compared
from reference_spark import ICEBERG, started

import boathouse as bh
from boathouse.errors import BoathouseError
from boathouse.iceberg.commit.summaries import counts_of

FORMATS = (("parquet",), ("parquet",), ("parquet", "avro"), ("parquet", "orc", "avro"))
"""Of data files and delete files, of which a table has some. Tables of both have Parquet."""
LINEAGE = ["_row_id", "_last_updated_sequence_number"]
TURNS = 10
REFUSED = (
    r"does not come from version", r"is partitioned by", r"is below the range of decimal",
)  # fmt: skip
"""What ours may say no to, since a step is drawn without regard to it."""
TABLES = {
    "refs": "name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms",
    "snapshots": "committed_at, snapshot_id, parent_id, operation, manifest_list, summary",
    "history": "made_current_at, snapshot_id, parent_id, is_current_ancestor",
    "files": "content, file_path, file_format, spec_id, record_count, file_size_in_bytes, equality_ids, sort_order_id, "
             "first_row_id, referenced_data_file, content_offset, content_size_in_bytes",
    "entries": "status, snapshot_id, sequence_number, file_sequence_number, data_file.file_path AS path",
    "manifests": "content, path, length, partition_spec_id, added_snapshot_id, added_data_files_count, "
                 "existing_data_files_count, deleted_data_files_count, added_delete_files_count, "
                 "existing_delete_files_count, deleted_delete_files_count",
    "partitions": "spec_id, record_count, file_count, total_data_file_size_in_bytes, position_delete_record_count, "
                  "position_delete_file_count, equality_delete_record_count, equality_delete_file_count",
}  # fmt: skip
"""Columns of metadata tables that are compared after each step; all are at the end."""
TIMES = ("committed_at", "made_current_at")


class Ours:
    """This library, on a table that `open` opens at a ref."""

    def __init__(self, open, exact):
        self.open, self.exact = open, exact

    def take(self, step):
        """What is refused, or None."""
        try:
            step.ours(self.open(None if step.ref == "main" else step.ref))
        except BoathouseError as error:
            assert any(re.search(text, str(error)) for text in REFUSED), step.title
            return str(error)
        return None

    def hit(self, step):
        return set(self.open(step.ref).scan(["k"], step.where).to_arrow()["k"].to_pylist())

    def rows(self, names, refs):
        """By branches, or by the numbers of snapshots."""
        opened = {ref: self.open(**{"version" if isinstance(ref, int) else "ref": ref}) for ref in refs}
        return {ref: table.scan(names).to_arrow() for ref, table in opened.items()}

    def metadata(self):
        table = self.open()
        found = {}
        for name, columns in TABLES.items():
            mine = table.inspect.to_arrow(name)
            if name == "partitions" and "spec_id" not in mine.column_names:
                mine = mine.append_column("spec_id", pa.nulls(len(mine)))
            if name == "entries":
                mine = mine.append_column("path", pa.compute.struct_field(mine["data_file"], "file_path"))
            names = [c.rpartition(" ")[2] for c in columns.split(", ")]
            found[name] = sorted(json.dumps(_plain(row), sort_keys=True) for row in mine.select(names).to_pylist())
        return found


class Theirs:
    """iceberg-spark, in the catalog `catalog`."""

    def __init__(self, reference, catalog, name, exact):
        self.reference, self.exact = reference, exact
        self.words = {"{table}": f"{catalog}.db.{name}", "{system}": f"{catalog}.system", "{arg}": f"db.{name}"}
        self.name = self.words["{table}"]

    def take(self, step):
        place = self.name if step.ref == "main" else f"{self.name}.branch_{step.ref}"
        for told in step.theirs:
            for word, text in (self.words | {"{t}": place}).items():
                told = told.replace(word, text)
            if (error := self.reference.error(told)) is not None:
                return error
        return None

    def hit(self, step):
        asked = f"SELECT k FROM {self.name} VERSION AS OF '{step.ref}' WHERE {step.where}"
        return set(self.reference.rows(asked)["k"].to_pylist())

    def rows(self, names, refs):
        listed = ", ".join(f"`{n}`" for n in names)
        asked = [f"SELECT {listed}, {ref!r} AS __ref FROM {self.name} VERSION AS OF {ref!r}" for ref in refs]
        found = self.reference.rows(" UNION ALL ".join(asked))
        return {ref: found.filter(pa.compute.equal(found["__ref"], ref)).drop_columns("__ref") for ref in refs}

    def has_specs(self):
        """`partitions` of a table that was never partitioned says nothing of specs."""
        return self.reference.error(f"SELECT spec_id FROM {self.name}.partitions") is None

    def metadata(self):
        def of(name):
            columns = [f"unix_micros({c}) AS {c}" if c in TIMES else c for c in TABLES[name].split(", ")]
            if name == "partitions" and not self.has_specs():
                columns = [c for c in columns if c != "spec_id"]
            return f"SELECT '{name}' AS what, to_json(struct({', '.join(columns)})) AS row FROM {self.name}.{name}"

        found = {name: [] for name in TABLES}
        for row in self.reference.rows(" UNION ALL ".join(map(of, TABLES))).to_pylist():
            found[row["what"]].append(json.dumps(_plain(json.loads(row["row"])), sort_keys=True))
        return {name: sorted(rows) for name, rows in found.items()}


def _plain(row):
    found = {}
    for name, value in row.items():
        if name in TIMES and not isinstance(value, int):
            value = round(value.timestamp() * 1e6)
        found[name] = dict(value) if name == "summary" else value
    return {name: value for name, value in found.items() if value is not None}


class History:
    """A table, those who change it in turn, and what must be in it."""

    def __init__(self, chance, open, sides, exact, scratch, formats, spark=None):
        self.chance, self.open, self.sides, self.exact = chance, open, sides, exact
        self.has_ids = len(sides) == 1 or formats == ("parquet",)
        version = open()._handle.snapshot.metadata.document["format-version"]
        self.drawer = steps.Drawer(chance, formats, scratch, spark)
        self.rows, self.ids, self.refused, self.log = {"main": {}}, {}, [], [f"version {version}"]
        self.drawer.look(open(), self.rows)
        assert self.take(self.drawer.append(), self.sides[0]), self.refused

    def turn(self, number):
        side = self.sides[number % len(self.sides)]
        while True:
            step = self.drawer.step()
            if step is None or (step.theirs if isinstance(side, Theirs) else step.ours) is None:
                continue
            if self.take(step, side):
                return

    def take(self, step, side):
        """False if it was refused, and then nothing is different."""
        said = f"{type(side).__name__} {step.ref}: {step.title}"
        other = self.sides[(self.sides.index(side) + 1) % len(self.sides)]
        hit = set() if step.where is None else other.hit(step)
        before = self.open()._handle.snapshot.metadata.uri
        error = side.take(step)
        if error is not None:
            assert self.open()._handle.snapshot.metadata.uri == before, said
            self.refused.append(f"{said}: {error}")
            print("refused:", self.refused[-1][:300])
            return False
        self.log.append(said)
        print(said)
        self.check(step, hit, step.same_ids and not (step.forgets and isinstance(side, Theirs)))
        return True

    def check(self, step, hit, same_ids):
        table = self.open()
        refs = sorted(n for n, r in table._handle.snapshot.metadata.document["refs"].items() if r["type"] == "branch")
        # Rows of a file in Avro or ORC the reference gives the first id of the file, all of them.
        has_ids = table._handle.snapshot.metadata.document["format-version"] == 3 and self.has_ids
        lineage = LINEAGE if has_ids else []
        mine = self.read([*table.schema.names, *lineage], refs)
        rows = {ref: steps.by_key(mine[ref].drop_columns(lineage)) for ref in refs}
        assert all(len(rows[ref]) == len(mine[ref]) for ref in refs)
        ids = {ref: {r["k"]: [r[n] for n in lineage] for r in mine[ref].to_pylist()} for ref in refs if lineage}
        for ref in refs:
            self.expected(step, ref, hit, rows, ids, same_ids)
        self.rows, self.ids = rows, ids
        self.drawer.look(table, rows)
        self.totals(table)
        first, *rest = [side.metadata() for side in self.sides]
        for second in rest:
            assert first == second

    def read(self, names, refs):
        """Rows by branches or by snapshots, which all sides read alike."""
        mine, *others = [side.rows(names, refs) for side in self.sides]
        for theirs in others:
            for ref in refs:
                assert mine[ref].schema.types == theirs[ref].schema.types, ref
                self.alike(mine[ref], theirs[ref], ref)
        return mine

    def alike(self, mine, theirs, where):
        rows = [steps.by_key(table) for table in (mine, theirs)]
        assert len(mine) == len(theirs) and rows[0].keys() == rows[1].keys(), where
        differ = [(k, name, value, rows[1][k][name]) for k, row in rows[0].items() for name, value in row.items()
                  if self.exact(value) != self.exact(rows[1][k][name])]  # fmt: skip
        assert not differ, (where, "key, column, ours, theirs", differ[:4])

    def end(self):
        """Every snapshot that is left, with the columns of its time."""
        document = self.open()._handle.snapshot.metadata.document
        names = {s["schema-id"]: [f["name"] for f in s["fields"]] for s in document["schemas"]}
        for schema in names:
            ids = [s["snapshot-id"] for s in document["snapshots"] if s["schema-id"] == schema]
            if ids:
                self.read(names[schema], ids)

    def expected(self, step, ref, hit, rows, ids, same_ids):
        """The rows of a branch are what the step makes of those before, and keep their ids."""
        if ref == step.moved:
            assert self.same(rows[ref], rows["main"])
            return
        here = step.every_branch or ref == step.ref
        if here and step.expected is None:
            return
        wanted = step.expected(self.rows[ref], hit) if here else self.rows[ref]
        assert self.same(rows[ref], wanted), (ref, step.title)
        found, before = ids.get(ref, {}), self.ids.get(ref, {})
        given = [id for id, _ in found.values() if id is not None]
        assert len(set(given)) == len(given), ref
        if same_ids or ref != step.ref:
            kept = [k for k in found if k in before and before[k][0] is not None]
            assert {k: found[k][0] for k in kept} == {k: before[k][0] for k in kept}, (ref, step.title)
            if step.upkeep or ref != step.ref:
                assert {k: found[k][1] for k in kept} == {k: before[k][1] for k in kept}, (ref, step.title)

    def same(self, rows, wanted):
        assert rows.keys() == wanted.keys()
        differ = [(rows[k], wanted[k]) for k in rows if self.exact(_sorted(rows[k])) != self.exact(_sorted(wanted[k]))]
        assert not differ, differ[:3]
        return True

    def totals(self, table):
        """What the newest summary says is what the live files are."""
        snapshot = table._handle.snapshot.snapshot
        if snapshot is None:
            return
        files = table.inspect.files().to_pylist()
        deletes = [f for f in files if f["content"]]
        totals = {
            "total-data-files": len(files) - len(deletes), "total-delete-files": len(deletes),
            "total-records": sum(f["record_count"] for f in files if not f["content"]),
            "total-position-deletes": sum(f["record_count"] for f in deletes if f["content"] == 1),
            "total-equality-deletes": sum(f["record_count"] for f in deletes if f["content"] == 2),
            "total-files-size": sum(f["content_size_in_bytes"] or f["file_size_in_bytes"] for f in files),
        }  # fmt: skip
        assert {k: counts_of(snapshot["summary"]).get(k) for k in totals} == totals


def _sorted(row):
    return dict(sorted(row.items()))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_ours_alone(nasty, tmp_path, seed):
    """The short one: the rows and ids are those that the steps ask for."""
    chance = random.Random(1000 + seed)
    version, by, formats = seed + 1, chance.choice(steps.LAYOUTS), chance.choice(FORMATS)
    options = {**steps.properties(chance, formats, version), "format-version": str(version)}
    path = str(tmp_path / "t")
    bh.create(path, steps.COLUMNS, format="iceberg", partition_by=by, properties=options)

    def open(ref=None, version=None):
        return bh.open(path, ref=ref, version=version)

    history = History(chance, open, [Ours(open, nasty.exact)], nasty.exact, tmp_path, formats)
    for number in range(TURNS):
        history.turn(number)
    history.end()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    root = tmp_path_factory.mktemp("reference")
    jars = (*ICEBERG.jars, "org/xerial/sqlite-jdbc/3.46.1.3/sqlite-jdbc-3.46.1.3.jar")
    conf = {
        "spark.sql.catalog.sq": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.sq.type": "jdbc",
        "spark.sql.catalog.sq.uri": f"jdbc:sqlite:{root}/catalog.db", "spark.sql.catalog.sq.jdbc.schema-version": "V1",
        "spark.sql.catalog.sq.warehouse": f"file://{root}/sq", "spark.sql.catalog.sq.cache-enabled": "false",
        "spark.sql.adaptive.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }  # fmt: skip
    found = started(replace(ICEBERG, jars=jars, conf=conf), root)
    found.sql("CREATE NAMESPACE ice.db", "CREATE NAMESPACE sq.db")
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_in_turn(reference, nasty, tmp_path, request, seed):
    """From seed 20 on with files in Avro, from 30 in ORC too; of every four tables one is changed by ours on Spark."""
    chance = random.Random(seed)
    version, by = 1 + seed % 3, chance.choice(steps.LAYOUTS)
    formats = FORMATS[seed // 10]
    spark = request.getfixturevalue("spark") if seed % 4 == 3 else None
    options = {**steps.properties(chance, formats, version), "format-version": str(version)}
    in_catalog = chance.random() < 0.25
    name, catalog = f"t{seed}", "sq" if in_catalog else "ice"
    path = str(reference.root / "db" / name)
    names = bh.catalog("sq", type="sql", uri=f"sqlite:///{reference.root}/catalog.db",
                       warehouse=f"file://{reference.root}/sq")  # fmt: skip

    def open(ref=None, version=None):
        at = {"ref": ref, "version": version, "spark": spark}
        return names.open(f"db.{name}", **at) if in_catalog else bh.open(path, **at)

    if chance.random() < 0.5:
        more = {"partition_by": by, "properties": options}
        if in_catalog:
            names.create(f"db.{name}", steps.COLUMNS, **more)
        else:
            bh.create(path, steps.COLUMNS, format="iceberg", **more)
    else:
        parts = f"PARTITIONED BY ({', '.join(by)})" if by else ""
        reference.sql(f"CREATE TABLE {catalog}.db.{name} ({steps.COLUMNS}) USING iceberg {parts} "
                      f"TBLPROPERTIES ({steps.listed(options)})")  # fmt: skip
    sides = [Ours(open, nasty.exact), Theirs(reference, catalog, name, nasty.exact)]
    first = chance.randrange(2)
    history = History(chance, open, sides, nasty.exact, tmp_path, formats, spark)
    for number in range(TURNS):
        history.turn(first + number)
    history.end()
    compared(reference, f"{catalog}.db.{name}", open(), MOST)
