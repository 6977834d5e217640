"""Histories that iceberg-spark writes, merge-on-read, over an evolving table: its rows at every snapshot, and changes
that lead from each to the next, which it does not give itself."""

import random
from collections import Counter

import pytest
from reference_spark import ICEBERG

import boathouse as bh

pytestmark = pytest.mark.slow
RELEASE = ICEBERG
MODES = ", ".join(f"'write.{n}.mode'='merge-on-read'" for n in ("delete", "update", "merge"))


def statement(chance, t, value):
    """A change of random rows."""
    ids = ", ".join(str(chance.randrange(12)) for _ in range(3))
    rows = ", ".join(f"({chance.randrange(12)}, '{chance.choice('ab')}', {i}.5D)" for i in range(3))
    return chance.choice([
        f"INSERT INTO {t} VALUES {rows}", f"INSERT INTO {t} VALUES {rows}, (NULL, 'b', NULL)",
        f"DELETE FROM {t} WHERE id IN ({ids})", f"UPDATE {t} SET {value} = {value} + 1 WHERE id IN ({ids})",
        f"UPDATE {t} SET p = 'b' WHERE id < 3",
        f"MERGE INTO {t} t USING (SELECT DISTINCT id, 'a' AS p FROM {t} WHERE id < 5) s ON t.id = s.id AND t.p = s.p "
        f"WHEN MATCHED AND t.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET {value} = 0 "
        f"WHEN NOT MATCHED THEN INSERT (id, p, {value}) VALUES (s.id + 20, s.p, 1)",
        f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE p = 'a' AND id > 2",
        f"CALL ice.system.rewrite_data_files(table => 'db.{t.rpartition('.')[2]}', options => map("
        "'rewrite-all', 'true'))",
    ])  # fmt: skip


def counted(table):
    return Counter(tuple(r.values())[:3] for r in table.to_pylist())


@pytest.mark.parametrize("seed", [1, 2])
def test_random_histories(reference, tmp_path, seed):
    chance, t = random.Random(seed), f"ice.db.t{seed}"
    version = chance.choice((2, 3))
    reference.sql(
        f"CREATE TABLE {t} (id INT, p STRING, x DOUBLE) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', {MODES})",
        f"INSERT INTO {t} VALUES (1, 'a', 1.0), (2, 'a', 2.0), (3, 'b', 3.0), (4, 'b', 4.0), (5, NULL, 5.0)",
    )
    evolution = {
        3: f"ALTER TABLE {t} ADD PARTITION FIELD bucket(3, id)", 6: f"ALTER TABLE {t} RENAME COLUMN x TO y",
        9: f"ALTER TABLE {t} DROP PARTITION FIELD p", 11: f"ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')",
    }  # fmt: skip
    for step in range(15):
        if step in evolution:
            reference.sql(evolution[step])
        reference.sql(statement(chance, t, "x" if step < 6 else "y"))
    uri = str(reference.root / "db" / f"t{seed}")
    table = bh.open(uri)
    versions = [e.version for e in table.history() if not e.metadata_only][::-1]
    assert len(versions) > 8
    by_commit = {}
    for c in table.changes(0).to_arrow().to_pylist():
        by_commit.setdefault(c["_commit_version"], []).append(c)
    rows = Counter()
    for version in versions:
        for c in by_commit.get(version, ()):
            rows[(c["id"], c["p"], c["y"])] += {"insert": 1, "delete": -1}[c["_change_type"]]
        theirs = counted(reference.rows(f"SELECT * FROM {t} VERSION AS OF {version}"))
        assert counted(bh.open(uri, version=version).to_arrow()) == theirs
        assert +rows == theirs and min(rows.values(), default=0) >= 0
    first, last = sorted(chance.sample(range(len(versions)), 2))
    some = table.changes(versions[first], versions[last]).to_arrow()
    assert set(some["_commit_version"].to_pylist()) == set(versions[first : last + 1]) & set(by_commit)
