"""Tables of format versions 1 and 3, ours and iceberg-spark's in turn: the same rows, row ids and specs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from reference_spark import ICEBERG, started

import boathouse as bh
from boathouse.variant import Variant

pytestmark = pytest.mark.slow
STORED = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(ICEBERG, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


def rows(*ids, x=0.0):
    return pa.table({"id": list(ids), "p": [f"p{i % 2}" for i in ids], "x": [x] * len(ids)}, SCHEMA)


class Table:
    def __init__(self, reference, name):
        self.reference, self.name = reference, f"ice.n.{name}"
        self.path = str(reference.root / "n" / name)

    def sql(self, *statements):
        self.reference.sql(*(s.format(t=self.name) for s in statements))

    def theirs(self, columns="*"):
        self.sql("REFRESH TABLE {t}")
        return self.reference.rows(f"SELECT {columns} FROM {self.name}").sort_by("id")

    def agree(self):
        mine = bh.open(self.path).to_arrow().sort_by("id")
        assert mine.to_pydict() == self.theirs().to_pydict()
        return mine.column("id").to_pylist()

    def lineage(self):
        names = ["id", "_row_id", "_last_updated_sequence_number"]
        mine = bh.open(self.path).scan(names).to_arrow().sort_by("id").to_pydict()
        assert mine == self.theirs(", ".join(names)).to_pydict()
        return {k: v for k, *v in zip(*mine.values())}


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_in_turn(reference, version):
    t = Table(reference, f"turn{version}")
    properties = {"format-version": version}
    ours = bh.create(t.path, SCHEMA, format="iceberg", partition_by=["p"], properties=properties)
    ours.append(rows(1, 2, 3, 4))
    ours.append(rows(5, 6))
    assert t.agree() == [1, 2, 3, 4, 5, 6]
    t.sql("INSERT INTO {t} VALUES (7, 'p1', 7.0)", "UPDATE {t} SET x = 9 WHERE id = 2", "DELETE FROM {t} WHERE id = 3")
    assert t.agree() == [1, 2, 4, 5, 6, 7]
    ours = bh.open(t.path)
    ours.update({"x": "x + 1"}, "id in (2, 5)")
    ours.merge(
        rows(6, 8, x=3), "source.id = target.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    ours.delete("id = 1")
    ours.optimize()
    assert t.agree() == [2, 4, 5, 6, 7, 8]
    t.sql("ALTER TABLE {t} ADD COLUMN note string", "INSERT INTO {t} VALUES (9, 'p1', 1.0, 'n')")
    t.sql("CALL ice.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    bh.open(t.path).delete("id = 9")
    assert t.agree() == [2, 4, 5, 6, 7, 8]


def test_row_ids_in_turn(reference):
    t = Table(reference, "lineage")
    ours = bh.create(t.path, SCHEMA, format="iceberg", partition_by=["p"], properties={"format-version": "3"})
    ours.append(rows(1, 2, 3, 4))
    ours.update({"x": "5"}, "id = 1")
    before = t.lineage()
    assert None not in [n for pair in before.values() for n in pair]
    t.sql("INSERT INTO {t} VALUES (5, 'p1', 7.0)", "UPDATE {t} SET x = 9 WHERE id = 2")
    found = t.lineage()
    assert {k: v[0] for k, v in found.items() if k < 5} == {k: v[0] for k, v in before.items()}
    ours = bh.open(t.path)
    ours.merge(
        rows(2, 6, x=3), "source.id = target.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    ours.optimize()
    after = t.lineage()
    assert {k: v[0] for k, v in after.items() if k < 6} == {k: v[0] for k, v in found.items()}
    t.sql("CALL ice.system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    assert t.lineage() == after
    t.sql("MERGE INTO {t} USING (SELECT 6 AS id) s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET x = 1")
    assert {k: v[0] for k, v in t.lineage().items()} == {k: v[0] for k, v in after.items()}


def test_row_ids_after_an_upgrade(reference):
    t = Table(reference, "upgraded")
    t.sql("CREATE TABLE {t} (id bigint, p string, x double) TBLPROPERTIES ('format-version'='2')")
    t.sql("INSERT INTO {t} VALUES (1, 'a', 1.0), (2, 'a', 1.0)", "INSERT INTO {t} VALUES (3, 'b', 1.0)")
    bh.open(t.path).set_properties({"format-version": "3"})
    bh.open(t.path).update({"x": "2"}, "id = 1")
    found = t.lineage()
    assert len({v[0] for v in found.values()} - {None}) == 3
    t.sql("INSERT INTO {t} VALUES (4, 'b', 1.0)")
    assert {k: v for k, v in t.lineage().items() if k < 4} == found


def test_columns_and_layouts_of_ours(reference):
    t = Table(reference, "evolved")
    ours = bh.create(t.path, SCHEMA, format="iceberg", partition_by=["p"], properties={"format-version": "3"})
    ours.append(rows(1, 2))
    ours.add_column("c", "int", default=7, nullable=False, comment="seven", after="id")
    ours.add_column("d", "date", default="DATE'2020-02-29'")
    ours.partition_by("bucket(4, id)", part="p")
    ours.sort_by("id desc", "c")
    ours.append(pa.table({"id": [3, 4], "p": ["p1", "p0"], "x": [1.0, 2.0]}))
    ours.set_nullable("id", False, unchecked=True)
    ours.set_identifiers("id")
    ours.move_column("x")
    assert t.agree() == [1, 2, 3, 4]
    t.sql("INSERT INTO {t} VALUES (5.0, 5, 8, 'p1', DATE'2021-01-01')", "DELETE FROM {t} WHERE id = 1")
    ours = bh.open(t.path)
    ours.partition_by("p")
    ours.update({"c": "c + 1"}, "id = 5")
    assert t.agree() == [2, 3, 4, 5]
    assert sorted(t.theirs("id, c").column("c").to_pylist()) == [7, 7, 7, 9]
    t.sql("ALTER TABLE {t} ADD PARTITION FIELD truncate(1, p)", "INSERT INTO {t} VALUES (6.0, 6, 8, 'p1', NULL)")
    bh.open(t.path).delete("id = 2")
    assert t.agree() == [3, 4, 5, 6]


@pytest.mark.parametrize("shredded", ["false", "true"])
def test_variants_of_ours(reference, shredded):
    t = Table(reference, f"variants_{shredded}")
    properties = {"format-version": "3", "write.parquet.shred-variants": shredded}
    ours = bh.create(t.path, "id bigint, v variant", format="iceberg", properties=properties)
    texts = ['{"a": 1, "b": ["x", null]}', "7", None, '{"a": "text"}']
    made = [None if text is None else Variant.from_json(text) for text in texts]
    stored = [None if m is None else {"metadata": m.metadata, "value": m.value} for m in made]
    ours.append(pa.table({"id": [1, 2, 3, 4], "v": pa.array(stored, STORED)}))
    ours.update({"id": "id + 10"}, "id = 2")
    found = t.theirs("id, to_json(v) AS j")
    assert dict(zip(found.column("id").to_pylist(), found.column("j").to_pylist())) == {
        1: '{"a":1,"b":["x",null]}', 3: None, 4: '{"a":"text"}', 12: "7",
    }  # fmt: skip
    t.sql("INSERT INTO {t} SELECT 5, parse_json('{{\"a\": 5}}')")
    asked = bh.open(t.path).scan(["id"], "variant_get(v, '$.a', 'string') = '5'").to_arrow()
    assert asked.column("id").to_pylist() == [5]
