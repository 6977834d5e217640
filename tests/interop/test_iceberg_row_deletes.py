"""Merge-on-read by ours and by iceberg-spark in turn: the same rows, row ids and counts after each step, one vector a
data file, and the other goes on."""

from __future__ import annotations

import pyarrow as pa
import pytest
from reference_spark import ICEBERG, started

import boathouse as bh
from boathouse.iceberg.commit.summaries import counts_of

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
TABLES = {
    "vectors": {"format-version": "3"},
    "positions": {"format-version": "2", "write.delete.granularity": "file"},
    "shared-positions": {"format-version": "2", "write.delete.granularity": "partition"},
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(ICEBERG, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


def rows(*ids, x=0.0):
    return pa.table({"id": list(ids), "p": [f"p{i % 2}" for i in ids], "x": [x] * len(ids)}, SCHEMA)


class Table:
    def __init__(self, reference, name, properties, by_theirs):
        self.reference, self.name = reference, f"ice.n.{name}"
        self.path = str(reference.root / "n" / name)
        self.lineage = properties["format-version"] == "3"
        if by_theirs:
            texts = ", ".join(f"'{k}'='{v}'" for k, v in (MODES | properties).items())
            self.sql(f"CREATE TABLE {{t}} (id bigint, p string, x double) PARTITIONED BY (p) TBLPROPERTIES ({texts})")
        else:
            bh.create(self.path, SCHEMA, format="iceberg", partition_by=["p"], properties=MODES | properties)

    def sql(self, *statements):
        self.reference.sql(*(s.format(t=self.name) for s in statements))

    def theirs(self, columns="*", of=""):
        self.sql("REFRESH TABLE {t}")
        return self.reference.rows(f"SELECT {columns} FROM {self.name}{of}")

    def agree(self, wanted):
        names = ["id", "p", "x", *(["_row_id", "_last_updated_sequence_number"] if self.lineage else [])]
        t = bh.open(self.path)
        mine = t.scan(names).to_arrow().sort_by("id").to_pydict()
        assert mine == self.theirs(", ".join(names)).sort_by("id").to_pydict()
        assert mine["id"] == sorted(wanted) and t.count() == len(wanted)
        self._counted(t)
        return dict(zip(mine["id"], mine["_row_id"])) if self.lineage else {}

    def _counted(self, t):
        """The totals of the newest summary are those of the live files, whoever wrote it; the other's table of files
        is ours."""
        summary = t._handle.snapshot.snapshot["summary"]
        columns = "content, file_path, record_count, file_size_in_bytes, content_size_in_bytes, referenced_data_file"
        files = self.theirs(columns, ".files").to_pylist()
        deletes = [f for f in files if f["content"] == 1]
        totals = {
            "total-data-files": len(files) - len(deletes), "total-delete-files": len(deletes),
            "total-records": sum(f["record_count"] for f in files if not f["content"]),
            "total-position-deletes": sum(f["record_count"] for f in deletes),
            "total-files-size": sum(f["content_size_in_bytes"] or f["file_size_in_bytes"] for f in files),
        }  # fmt: skip
        assert {k: counts_of(summary)[k] for k in totals} == totals
        mine = t.inspect.files().select(columns.split(", ")).to_pylist()
        assert sorted(mine, key=str) == sorted(files, key=str)
        if self.lineage:
            named = [f["referenced_data_file"] for f in deletes]
            assert len(set(named)) == len(named) and set(named) <= {f["file_path"] for f in files if not f["content"]}


@pytest.mark.spec("I-332")
@pytest.mark.parametrize("by_theirs", [False, True], ids=["ours", "theirs"])
@pytest.mark.parametrize("kind", TABLES)
def test_in_turn(reference, kind, by_theirs):
    t = Table(reference, f"{kind.replace('-', '_')}_{by_theirs}", TABLES[kind], by_theirs)
    bh.open(t.path).append(rows(*range(20)))
    t.sql("INSERT INTO {t} SELECT id, concat('p', id % 2), 1.0 FROM range(20, 40)")
    live = set(range(40))
    first = t.agree(live)
    bh.open(t.path).delete("id in (1, 2, 3, 25)")
    live -= {1, 2, 3, 25}
    t.agree(live)
    t.sql("DELETE FROM {t} WHERE id IN (4, 5, 26)")
    live -= {4, 5, 26}
    t.agree(live)
    assert bh.open(t.path).update({"x": "x + 100"}, "id in (6, 27)").rows_copied == 0
    kept = t.agree(live)
    assert all(kept[id] == first[id] for id in kept)
    t.sql("UPDATE {t} SET x = -1 WHERE id IN (6, 7, 28)")
    t.agree(live)
    merge = bh.open(t.path).merge(rows(8, 9, 28, 50, x=5.0), "source.id = target.id")
    merge.when_matched_delete("source.id = 9").when_matched_update_all().when_not_matched_insert_all().execute()
    live = (live - {9}) | {50}
    t.agree(live)
    t.sql("""MERGE INTO {t} USING (SELECT * FROM VALUES (10L, 1), (50L, 2), (51L, 3) AS v (id, n)) s ON {t}.id = s.id
        WHEN MATCHED AND n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 9
        WHEN NOT MATCHED THEN INSERT (id, p, x) VALUES (s.id, 'p1', 0)""")  # fmt: skip
    live = (live - {10}) | {51}
    before = t.agree(live)
    bh.open(t.path).delete("p = 'p0' and id < 20")
    live -= {n for n in live if n < 20 and n % 2 == 0}
    t.agree(live)
    t.sql("CALL ice.system.rewrite_position_delete_files(table => '{t}', options => map('rewrite-all', 'true'))")
    t.agree(live)
    bh.open(t.path).delete("id in (11, 51)")
    t.sql("DELETE FROM {t} WHERE id = 13")
    live -= {11, 13, 51}
    t.agree(live)
    bh.open(t.path).purge()
    after = t.agree(live)
    assert all(after[id] == before[id] for id in after)
    t.sql("DELETE FROM {t} WHERE id = 15")
    bh.open(t.path).delete("id = 30")
    t.sql("CALL ice.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    live -= {15, 30}
    t.agree(live)
    bh.open(t.path).optimize()
    bh.open(t.path).delete("id = 31")
    t.agree(live - {31})


@pytest.mark.spec("I-269")
def test_their_files_of_positions_become_our_vectors(reference):
    t = Table(reference, "upgraded", {"format-version": "2", "write.delete.granularity": "partition"}, True)
    for start in (0, 10):
        t.sql(f"INSERT INTO {{t}} SELECT id, 'p0', 1.0 FROM range({start}, {start + 10})")
    t.sql("DELETE FROM {t} WHERE id IN (1, 11)", "DELETE FROM {t} WHERE id = 2")
    bh.open(t.path).set_properties({"format-version": "3"})
    t.lineage = False  # the rows have no ids until the next commit
    bh.open(t.path).delete("id in (3, 12)")
    t.agree(set(range(20)) - {1, 2, 3, 11, 12})
    t.sql("DELETE FROM {t} WHERE id = 4")
    t.agree(set(range(20)) - {1, 2, 3, 4, 11, 12})
    formats = t.theirs("file_format, record_count", ".delete_files").to_pylist()
    assert sum(f["record_count"] for f in formats if f["file_format"] == "PUFFIN") == 6
    bh.open(t.path).optimize()
    t.agree(set(range(20)) - {1, 2, 3, 4, 11, 12})


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("by", ["p", "bucket(3, id)"])
def test_upserts_by_equality_deletes(reference, version, by):
    """Deletes of every partition, and of the one that the key decides, as the reference applies them; then as vectors
    or positions."""
    name = f"keys_{version}_{by[0]}"
    path = str(reference.root / "n" / name)
    t = bh.create(path, SCHEMA, format="iceberg", partition_by=[by], properties={"format-version": version})

    def agree():
        reference.sql(f"REFRESH TABLE ice.n.{name}")
        found = reference.rows(f"SELECT id, p, x FROM ice.n.{name}").sort_by("id").to_pydict()
        assert found == bh.open(path).to_arrow().sort_by("id").to_pydict()
        return found

    t.append(rows(*range(20)))
    t.upsert(rows(*range(15, 25), x=1.0), on="id", deletes="equality")
    more = pa.table({"id": [3, 16, None], "p": ["p7", None, "p1"], "x": [2.0] * 3}, SCHEMA)
    t.upsert(more, on="id", deletes="equality")
    assert agree()["x"] == [2.0 if n in (3, 16, 25) else float(n >= 15) for n in range(26)]
    reference.sql(f"INSERT INTO ice.n.{name} VALUES (3L, 'p3', 3.0)", f"DELETE FROM ice.n.{name} WHERE id = 20")
    t = bh.open(path)
    t.upsert(rows(3, 20, x=4.0), on="id", deletes="equality")
    assert agree()["x"].count(4.0) == 2
    t.rewrite_deletes()
    assert agree()["x"].count(4.0) == 2
    kinds = reference.rows(f"SELECT DISTINCT content FROM ice.n.{name}.files").to_pydict()["content"]
    assert 2 not in kinds
