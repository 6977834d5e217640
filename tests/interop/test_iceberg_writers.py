"""Our writes onto tables of iceberg-spark, of an older release and a newer one, which read them and write on."""

from __future__ import annotations

import copy
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from reference_spark import ICEBERG, Release, started

import boathouse as bh
from boathouse.errors import CorruptTableError

pytestmark = pytest.mark.slow
RELEASES = {
    "1.4": Release(
        "reference-spark-3.5",
        "3.5.5",
        ("org/apache/iceberg/iceberg-spark-runtime-3.5_2.12/1.4.3/iceberg-spark-runtime-3.5_2.12-1.4.3.jar",),
    ),
    "1.10": ICEBERG,
}


@pytest.fixture(scope="module", params=RELEASES)
def reference(request, tmp_path_factory):
    found = started(RELEASES[request.param], tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


@pytest.fixture
def table(reference, nasty, request):
    """A table by name in the reference, and by path."""
    return Table(reference, nasty, "t" + "".join(c if c.isalnum() else "_" for c in request.node.name))


class Table:
    def __init__(self, reference, nasty, name):
        self.reference = reference
        self.same = nasty.same
        self.name = f"ice.n.{name}"
        self.path = str(reference.root / "n" / name)

    def sql(self, *statements):
        self.reference.sql(*(s.format(t=self.name) for s in statements))

    def open(self):
        return bh.open(self.path)

    def agree(self, count=None):
        """Both read the same rows."""
        self.sql("REFRESH TABLE {t}")
        mine = self.open().to_arrow()
        self.same(mine, self.reference.rows(f"SELECT * FROM {self.name}"))
        assert count in (None, mine.num_rows)
        return mine

    def head(self):
        files = Path(self.path, "metadata").glob("v*.metadata.json")
        return max(files, key=lambda p: int(p.name[1:].split(".")[0]))

    def edit(self, change):
        path = self.head()
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))
        Path(self.path, "metadata", f".{path.name}.crc").unlink(missing_ok=True)


SOURCE = (
    "SELECT id, concat('v', id) AS s, CAST(id % 4 AS int) AS p, CAST(id AS decimal(9, 2)) AS d, "
    "timestamp_micros(id * 3600000000) AS ts FROM range({}, {})"
)


def rows(start, stop):
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [f"v{i}" for i in ids],
            "p": pa.array([i % 4 for i in ids], pa.int32()),
            "d": pa.array([Decimal(i) for i in ids], pa.decimal128(9, 2)),
            "ts": pa.array([i * 3_600_000_000 for i in ids], pa.timestamp("us", "UTC")),
        }
    )


def our_turn(table, start):
    """Append, delete by value and by partition, overwrite; the reference reads each."""
    n = table.open().count()
    table.open().append(rows(start, start + 10))
    table.agree(n + 10)
    n -= table.open().delete(f"id = 5 OR id = {start + 1}").rows_deleted
    table.agree(n + 10)
    table.open().delete("p = 2")
    table.agree()
    ones = pa.array([i % 4 == 1 for i in range(start + 10, start + 20)])
    table.open().overwrite(rows(start + 10, start + 20).filter(ones), where="p = 1")
    table.agree()


def their_turn(table, start):
    table.sql(
        "INSERT INTO {t} " + SOURCE.format(start, start + 10),
        f"DELETE FROM {{t}} WHERE id IN ({start + 1}, 1004)",
        f"UPDATE {{t}} SET s = 'updated' WHERE id = {start + 2}",
    )
    table.agree()


@pytest.mark.parametrize("by", ["", "PARTITIONED BY (p)", "PARTITIONED BY (p, bucket(3, d), days(ts), truncate(2, s))"])
@pytest.mark.parametrize("upgraded", [False, True], ids=["version 2", "upgraded from version 1"])
def test_turns(table, by, upgraded):
    version = 1 if upgraded else 2
    table.sql(
        f"CREATE TABLE {{t}} USING iceberg {by} TBLPROPERTIES ('format-version' = '{version}') AS "
        + SOURCE.format(0, 40),
        "INSERT INTO {t} " + SOURCE.format(40, 50),
        "DELETE FROM {t} WHERE id IN (1, 41)",
    )
    if upgraded:
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '2')")
    table.agree(48)
    our_turn(table, 1000)
    their_turn(table, 300)
    our_turn(table, 2000)
    table.open().overwrite(rows(0, 3))
    table.agree(3)
    their_turn(table, 400)


def test_turns_over_row_deletes_and_evolution(table):
    """Position deletes, a widened decimal that partitions, another spec, a renamed column."""
    table.sql(
        "CREATE TABLE {t} USING iceberg PARTITIONED BY (d) TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
        "'write.distribution-mode' = 'hash') AS " + SOURCE.format(0, 12),
        "DELETE FROM {t} WHERE id = 3",
        "ALTER TABLE {t} ALTER COLUMN d TYPE decimal(20, 2)",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('write.delete.mode', 'write.update.mode')",
    )
    table.agree(11)
    table.open().delete("id = 5")
    table.agree(10)
    table.open().delete("d = 7")
    table.agree(9)
    table.sql("ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)", "ALTER TABLE {t} DROP PARTITION FIELD d")
    wide = rows(50, 55).set_column(3, "d", pa.array([Decimal(10) ** 15 + i for i in range(5)], pa.decimal128(20, 2)))
    table.open().append(wide)
    table.agree(14)
    table.open().delete("id IN (1, 51)")
    table.agree(12)
    table.sql("DELETE FROM {t} WHERE id IN (0, 52)")
    table.agree(10)


def test_the_sign_of_zero_in_partitions(table):
    data = pa.table({"id": range(5), "p": [0.0, -0.0, math.nan, None, -0.0]})
    bh.write(data, table.path, format="iceberg", partition_by=["p"])
    found = table.agree(5)
    assert sorted(zip(found["id"].to_pylist(), map(repr, found["p"].to_pylist()))) == [
        (0, "0.0"), (1, "-0.0"), (2, "nan"), (3, "None"), (4, "-0.0")
    ]  # fmt: skip
    table.open().delete("id = 4")
    table.agree(4)


def test_a_sort_column_that_leaves(table):
    table.sql("CREATE TABLE {t} (id bigint, s string) USING iceberg", "ALTER TABLE {t} WRITE ORDERED BY s")
    table.open().append(rows(0, 3).select(["id", "s"]))
    table.agree(3)
    table.open().overwrite(rows(0, 4).select(["id"]), overwrite_schema=True)
    table.agree(4)
    table.sql("INSERT INTO {t} VALUES (77)")
    table.agree(5)


def test_ids_that_were_counted_too_low(table):
    table.sql(
        "CREATE TABLE {t} USING iceberg PARTITIONED BY (p) AS " + SOURCE.format(0, 6),
        "ALTER TABLE {t} DROP COLUMN ts",
    )
    table.edit(lambda d: d.update({"last-column-id": 2, "last-partition-id": 999}))
    table.open().append(rows(10, 12).drop_columns(["ts"]).append_column("n", pa.array(["new"] * 2)), merge_schema=True)
    assert table.agree(8)["n"].null_count == 6
    narrow = rows(0, 5).drop_columns(["ts"])
    table.open().overwrite(narrow, overwrite_schema=True, partition_by=["bucket(2, id)", "p"])
    table.agree(5)
    table.sql("DELETE FROM {t} WHERE id = 3")
    table.agree(4)


# What keeps us from writing keeps Java from reading.


def evolved(document, change):
    schema = copy.deepcopy(document["schemas"][-1])
    schema["schema-id"] += 1
    change(schema["fields"])
    document["schemas"].append(schema)
    document["current-schema-id"] = schema["schema-id"]


def two_main(document):
    document["refs"]["main"]["snapshot-id"] = document["snapshots"][0]["snapshot-id"]


def named_as_partition(document):
    name = document["partition-specs"][0]["fields"][0]["name"]
    new = {"id": document["last-column-id"] + 1, "name": name, "required": False, "type": "int"}
    document["last-column-id"] += 1
    evolved(document, lambda fields: fields.append(new))


def unsortable(document):
    document["sort-orders"].append(
        {
            "order-id": 1,
            "fields": [{"transform": "identity", "source-id": 99, "direction": "asc", "null-order": "nulls-first"}],
        }
    )
    document["default-sort-order-id"] = 1


DAMAGE = {
    "last sequence number": lambda d: d.update({"last-sequence-number": 1}),
    "duplicate id": lambda d: evolved(d, lambda f: f[1].update(id=1)),
    "duplicate name": lambda d: evolved(d, lambda f: f[1].update(name="id")),
    "duplicate spec": lambda d: d["partition-specs"].append(d["partition-specs"][0]),
    "duplicate order": lambda d: d["sort-orders"].append(d["sort-orders"][0]),
    "main elsewhere": two_main,
    "ref of no snapshot": lambda d: d["refs"].update(old={"snapshot-id": 77, "type": "tag"}),
    "ref of no kind": lambda d: d["refs"].update(old={"snapshot-id": d["current-snapshot-id"], "type": "twig"}),
    "identifier that may be null": lambda d: d["schemas"][0].update({"identifier-field-ids": [4]}),
    "source that left": lambda d: evolved(d, lambda f: f.pop(2)),
    "column named as a partition": named_as_partition,
    "log of another order": lambda d: d["snapshot-log"][0].update({"timestamp-ms": 2**45}),
    "metadata log of another order": lambda d: d["metadata-log"][0].update({"timestamp-ms": 2**45}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_we_hold_back_java_cannot_open(table, damage):
    table.sql(
        "CREATE TABLE {t} USING iceberg PARTITIONED BY (bucket(2, p)) AS " + SOURCE.format(0, 6),
        "INSERT INTO {t} " + SOURCE.format(6, 9),
    )
    table.agree(9)
    table.edit(DAMAGE[damage])
    assert table.reference.error(f"SELECT count(*) FROM {table.name}") is not None
    with pytest.raises(CorruptTableError):
        table.open().append(rows(10, 12))


def test_an_order_that_java_cannot_open_is_left_by_our_next_write(table):
    table.sql("CREATE TABLE {t} USING iceberg AS " + SOURCE.format(0, 6))
    table.edit(unsortable)
    assert table.reference.error(f"SELECT count(*) FROM {table.name}") is not None
    table.open().append(rows(10, 12))
    table.agree(8)
