"""The metadata tables of iceberg-spark and ours: the same columns and types in the same order, the same rows."""

from __future__ import annotations

import metadata_rows as tables
import pytest
from metadata_rows import MOST
from reference_spark import ICEBERG

import boathouse as bh

pytestmark = pytest.mark.slow
RELEASE = ICEBERG
TYPES = (
    "id int, `p.q` string, day date, ts timestamp, ntz timestamp_ntz, d decimal(20, 3), f float, x double, b boolean, "
    "bin binary, s struct<a: bigint, `c.d`: struct<e: string>>, l array<int>, m map<string, double>"
)
ROWS = (
    "(1, 'ü', DATE'1969-12-31', TIMESTAMP'2024-01-01 10:00:00.5', TIMESTAMP_NTZ'1960-01-01 00:00:00.000001', 1.5, "
    "1.5, -0.0, true, X'00ff', named_struct('a', 1L, 'c.d', named_struct('e', 'deep')), array(1, 2), map('k', 2.0D)), "
    "(2, null, null, null, null, null, CAST('NaN' AS float), CAST('NaN' AS double), null, null, null, null, null), "
    "(3, '', DATE'9999-12-31', TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'2024-02-29 23:59:59', -1e15, -0.0, "
    "CAST('Infinity' AS double), false, X'', named_struct('a', null, 'c.d', null), array(), map())"
)


def compared(reference, name, names):
    """Metadata tables of `ice.n.<name>`."""
    tables.compared(reference, f"ice.n.{name}", bh.open(str(reference.root / "n" / name)), names)


PROPERTIES = (
    "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read'"
)


@pytest.mark.parametrize("version", [2, 3])
def test_partitioned_and_evolved(reference, version):
    name, t = f"evolved{version}", f"ice.n.evolved{version}"
    reference.sql(
        f"CREATE TABLE {t} ({TYPES}) USING iceberg PARTITIONED BY (`p.q`, days(ts), truncate(2, bin), d) "
        f"TBLPROPERTIES ('format-version'='{version}', {PROPERTIES})",
        f"INSERT INTO {t} VALUES {ROWS}",
        f"INSERT INTO {t} VALUES {ROWS}",
        f"DELETE FROM {t} WHERE id = 2",
        f"ALTER TABLE {t} REPLACE PARTITION FIELD ts_day WITH hours(ts)",
        f"ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id) AS four",
        f"ALTER TABLE {t} ALTER COLUMN id TYPE bigint",
        f"INSERT INTO {t} VALUES {ROWS}",
        f"UPDATE {t} SET b = NOT b WHERE id = 1",
        f"ALTER TABLE {t} CREATE TAG then RETAIN 3 DAYS",
        f"ALTER TABLE {t} CREATE BRANCH side RETAIN 4 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 1 DAYS",
        f"INSERT INTO {t}.branch_side VALUES {ROWS}",
    )  # fmt: skip
    compared(reference, name, MOST)


def test_without_partitions(reference):
    t = "ice.n.plain"
    reference.sql(f"CREATE TABLE {t} ({TYPES}) USING iceberg TBLPROPERTIES ('format-version'='2', {PROPERTIES})")
    compared(reference, "plain", MOST)
    reference.sql(
        f"INSERT INTO {t} VALUES {ROWS}",
        f"INSERT INTO {t} SELECT * FROM {t} WHERE id <> 1",
        f"DELETE FROM {t} WHERE id = 3",
        "CALL ice.system.rewrite_manifests('n.plain')",
    )
    compared(reference, "plain", MOST)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by", ["", "PARTITIONED BY (p)"])
def test_position_deletes(reference, version, by):
    name = f"positions{version}{len(by)}"
    t = f"ice.n.{name}"
    reference.sql(
        f"CREATE TABLE {t} (id int, p string, x double) USING iceberg {by} "
        f"TBLPROPERTIES ('format-version'='{version}', {PROPERTIES})",
        f"INSERT INTO {t} VALUES (1, 'a', 0.5), (2, 'a', 1.5), (3, 'b', 2.5), (4, 'b', null), (5, null, 1.0)",
        f"DELETE FROM {t} WHERE id IN (1, 4)",
        f"DELETE FROM {t} WHERE id = 3",
    )
    compared(reference, name, ["position_deletes"])
    assert bh.open(str(reference.root / "n" / name)).inspect.position_deletes().num_rows == 3
