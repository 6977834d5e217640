"""The verbs of the neighbours as statements: each does its work on a table of every format, by path, or is refused by
name with what to do instead; none is told that the table is not there."""

from __future__ import annotations

import datetime as dt

import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, TableNotFoundError
from makers.traits import REAL

pytestmark = pytest.mark.spark

DAY = dt.date(2026, 1, 1)
STATEMENTS: dict[str, int] = {
    "SELECT count(*) FROM {t}": 9,
    "SELECT count(*) FROM {t} VERSION AS OF {v}": 9,
    "SELECT count(*) FROM {t} TIMESTAMP AS OF current_timestamp()": 9,
    "INSERT INTO {t} (id, city) VALUES (100, 'x')": 10,
    "INSERT INTO {t} BY NAME SELECT 102L AS id": 10,
    "INSERT INTO {t} REPLACE WHERE id = 3 SELECT 3L, 5, 'y', DATE'2026-01-02', named_struct('a', 1)": 9,
    "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 5": 5,
    "UPDATE {t} SET n = n + 1, s.a = 7 WHERE id = 3": 9,
    "DELETE FROM {t} WHERE id IN (SELECT 5)": 8,
    "MERGE INTO {t} t USING (SELECT 9L AS id) u ON t.id = u.id WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)": 10,
    "ALTER TABLE {t} ADD COLUMNS (extra string COMMENT 'c')": 9,
    "ALTER TABLE {t} ADD COLUMN s.b int": 9,
    "ALTER TABLE {t} RENAME COLUMN n TO m": 9,
    "ALTER TABLE {t} ALTER COLUMN n TYPE bigint": 9,
    "ALTER TABLE {t} ALTER COLUMN n COMMENT 'number'": 9,
    "ALTER TABLE {t} ALTER COLUMN n FIRST": 9,
    "ALTER TABLE {t} ALTER COLUMN id SET NOT NULL": 9,
    "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL": 9,
    "ALTER TABLE {t} ALTER COLUMN city SET DEFAULT 'Bergen'": 9,
    "ALTER TABLE {t} DROP COLUMN n": 9,
    "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')": 9,
    "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id >= 0)": 9,
    "ALTER TABLE {t} CLUSTER BY (id)": 9,
    "ALTER TABLE {t} CREATE TAG v1": 9,
    "ALTER TABLE {t} CREATE BRANCH b1": 9,
    "ALTER TABLE {t} ADD PARTITION FIELD city": 9,
    "ALTER TABLE {t} WRITE ORDERED BY id": 9,
    "ALTER TABLE {t} SET IDENTIFIER FIELDS id": 9,
    "COMMENT ON TABLE {t} IS 'words'": 9,
    "OPTIMIZE {t}": 9,
    "OPTIMIZE {t} ZORDER BY (id)": 9,
    "REORG TABLE {t} APPLY (PURGE)": 9,
    "VACUUM {t} DRY RUN": 9,
    "DESCRIBE HISTORY {t}": 9,
    "DESCRIBE DETAIL {t}": 9,
    "DESCRIBE EXTENDED {t}": 9,
    "SHOW COLUMNS IN {t}": 9,
    "SHOW TBLPROPERTIES {t}": 9,
    "SHOW CREATE TABLE {t}": 9,
    "SHOW PARTITIONS {t}": 9,
    "SHOW INDEXES ON {t}": 9,
    "CREATE INDEX i ON {t} USING bitmap (city)": 9,
    "ALTER TABLE {t} CREATE INDEX IF NOT EXISTS i USING btree (id)": 9,
    "DROP INDEX IF EXISTS i ON {t}": 9,
    "RESTORE TABLE {t} TO VERSION AS OF {v}": 9,
    "SELECT * FROM table_changes('{t}', {v}, {v})": 9,
    "SELECT f.record_count FROM {t}.files f JOIN {t}.snapshots s ON true": 9,
    "SELECT * FROM {t}.history VERSION AS OF {v}": 9,
    "SELECT * FROM {t}.manifests": 9,
    "CREATE TABLE {u} LIKE {t}": 9,
    "CREATE TABLE {u} SHALLOW CLONE {t}": 9,
    "CREATE OR REPLACE TABLE {u} USING {f} AS SELECT * FROM {t}": 9,
    "CREATE OR REPLACE TEMPORARY VIEW walked AS SELECT * FROM {t}": 9,
    "CREATE VIEW walked AS SELECT * FROM {t}": 9,
    "DROP TABLE {t}": 9,
    "GENERATE symlink_format_manifest FOR TABLE {t}": 9,
    "ANALYZE TABLE {t} COMPUTE STATISTICS": 9,
    "MSCK REPAIR TABLE {t}": 9,
    "CACHE TABLE {t}": 9,
    "REFRESH TABLE {t}": 9,
    "EXPLAIN SELECT * FROM {t}": 9,
    "CALL system.rewrite_data_files(table => '{t}')": 9,
    "CALL system.expire_snapshots(table => '{t}', retain_last => 100)": 9,
    "TRUNCATE TABLE {t}": 0,
}
"""With the number of rows that the table has afterwards."""
EVERYWHERE = {
    "ALTER TABLE {t} ALTER COLUMN id SET NOT NULL", "CREATE VIEW walked AS SELECT * FROM {t}", "DROP TABLE {t}",
    "GENERATE symlink_format_manifest FOR TABLE {t}", "ANALYZE TABLE {t} COMPUTE STATISTICS", "MSCK REPAIR TABLE {t}",
    "CACHE TABLE {t}", "SHOW PARTITIONS {t}", "ALTER TABLE {t} SET IDENTIFIER FIELDS id",
}  # fmt: skip
ICEBERGS = {
    "ALTER TABLE {t} ADD PARTITION FIELD city", "ALTER TABLE {t} WRITE ORDERED BY id",
    "SELECT * FROM {t}.manifests",
    "CALL system.rewrite_data_files(table => '{t}')",
    "CALL system.expire_snapshots(table => '{t}', retain_last => 100)",
}  # fmt: skip
INDICES = {s for s in STATEMENTS if "INDEX" in s}
REFUSED = {
    "delta": EVERYWHERE | ICEBERGS | INDICES | {
        "ALTER TABLE {t} CREATE TAG v1", "ALTER TABLE {t} CREATE BRANCH b1",
        "ALTER TABLE {t} ALTER COLUMN city SET DEFAULT 'Bergen'",
    },
    "iceberg": EVERYWHERE | INDICES | {
        "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id >= 0)", "ALTER TABLE {t} CLUSTER BY (id)",
        "CREATE TABLE {u} SHALLOW CLONE {t}",
    },
    "lance": EVERYWHERE - {"ALTER TABLE {t} ALTER COLUMN id SET NOT NULL"} | ICEBERGS | {
        "ALTER TABLE {t} ADD COLUMN s.b int", "ALTER TABLE {t} ALTER COLUMN n FIRST",
        "ALTER TABLE {t} ALTER COLUMN city SET DEFAULT 'Bergen'", "ALTER TABLE {t} CLUSTER BY (id)",
        "ALTER TABLE {t} ADD CONSTRAINT pos CHECK (id >= 0)", "COMMENT ON TABLE {t} IS 'words'",
    },
}  # fmt: skip
"""What a format does not run."""


PROPERTIES = {
    "delta": {
        "delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true", "delta.enableChangeDataFeed": "true"
    },
}  # fmt: skip
COLUMNS = "id bigint, n int, city string, day date, s struct<a: int>"


def made(path: str, format: str) -> bh.Table:
    """A table of nine rows in three files."""
    t = bh.create(path, COLUMNS, format=format, profile="modern", properties=PROPERTIES.get(format))
    for k in range(3):
        ids = range(3 * k, 3 * k + 3)
        t.append([{"id": i, "n": i, "city": ["Kiel", "Oslo", None][i % 3], "day": DAY, "s": {"a": i}} for i in ids])
    return t


def refusal(spark, t: bh.Table, statement: str, other: str) -> str | None:
    """What a statement that is not run says; None for one that is."""
    names = {"t": f"{t.format}.`{t.uri}`", "u": f"{t.format}.`{other}`", "v": t.version, "f": t.format}
    try:
        bh.sql(spark, statement.format(**names)).collect()
    except BoathouseError as error:
        assert not isinstance(error, TableNotFoundError), statement
        assert error.advice or t.format in str(error).lower(), f"the refusal does not help: {error}"
        return str(error)
    return None


@pytest.mark.parametrize("format", REAL)
def test_every_statement_works_or_says_what_to_do(spark, tmp_path, format):
    for i, (statement, rows) in enumerate(STATEMENTS.items()):
        t = made(str(tmp_path / f"t{i}"), format)
        said = refusal(spark, t, statement, str(tmp_path / f"u{i}"))
        assert (said is not None) == (statement in REFUSED[format]), f"{statement}: {said or 'it works'}"
        assert t.refresh().count() == (rows if said is None else 9), statement
