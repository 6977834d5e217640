"""Version 3 as iceberg-spark writes it, and schemas that each side changes: both read the same."""

import json

import pyarrow as pa
import pytest
from reference_spark import ICEBERG

import boathouse as bh
from boathouse.variant import Variant

pytestmark = pytest.mark.slow
RELEASE = ICEBERG


def plain(rows):
    return sorted(rows, key=lambda row: json.dumps(row, default=str))


@pytest.mark.spec("I-102", "I-104", "I-333")
def test_metadata_columns_and_lineage(reference):
    """Over deletion vectors, updates, a second spec, and an upgrade from version 2."""
    t = "ice.n.lineage"
    reference.sql(
        f"CREATE TABLE {t} (id bigint, p string) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ('format-version'='2', "
        "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')",
        f"INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(0, 10)",
    )
    open = lambda: bh.open(str(reference.root / "n" / "lineage"))  # noqa: E731
    lineage = ("_row_id", "_last_updated_sequence_number")
    assert set(open().scan(lineage).to_arrow()["_row_id"].to_pylist()) == {None}
    reference.sql(
        f"ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')",
        f"INSERT INTO {t} SELECT id, concat('p', id % 2) FROM range(10, 20)",
        f"DELETE FROM {t} WHERE id IN (3, 4, 13)",
        f"ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)",
        f"UPDATE {t} SET p = 'p1' WHERE id IN (5, 12)",
        f"INSERT INTO {t} SELECT id, null FROM range(20, 24)",
        f"DELETE FROM {t} WHERE id = 21",
    )
    for columns in (["id", "p", *lineage], ["id", "_file", "_pos", "_spec_id", "_partition"],
                    ["id", "_deleted", "_pos"]):  # fmt: skip
        mine = open().scan(columns).to_arrow().to_pylist()
        theirs = reference.rows(f"SELECT {', '.join(columns)} FROM {t}").to_pylist()
        for row in (r for r in (*mine, *theirs) if "_file" in r):
            row["_file"] = row["_file"].rpartition("/")[2]
        assert plain(mine) == plain(theirs), columns


@pytest.mark.spec("I-055", "I-335")
def test_variants(reference):
    t = "ice.n.variants"
    texts = ('{"a": 1, "b": ["x", null]}', "7", "null", '{"a": "text"}', '{"a": 1099511627776}')
    values = ", ".join(f"({n}, parse_json('{text}'))" for n, text in enumerate(texts))
    reference.sql(
        f"CREATE TABLE {t} (id int, v variant) USING iceberg TBLPROPERTIES ('format-version'='3', "
        "'write.parquet.shred-variants'='true')",
        f"INSERT INTO {t} VALUES {values}, (9, null)",
        f"INSERT INTO {t} SELECT CAST(id + 10 AS int), parse_json(concat('{{\"a\": ', id, '}}')) FROM range(20)",
    )
    table = bh.open(str(reference.root / "n" / "variants"))
    found = {r["id"]: r["v"] for r in table.to_arrow().to_pylist()}
    shown = {
        k: None if v is None else json.loads(Variant(v["metadata"], v["value"]).to_json()) for k, v in found.items()
    }
    assert shown == {**{n: json.loads(text) for n, text in enumerate(texts)}, 9: None,
                     **{n + 10: {"a": n} for n in range(20)}}  # fmt: skip
    assert found[9] is None and found[2] is not None
    where = "try_variant_get(v, '$.a', 'bigint')"
    theirs = reference.rows(f"SELECT id FROM {t} WHERE {where} > 15 OR v IS NULL").column("id").to_pylist()
    mine = table.scan(["id"], f"{where} > 15 OR v IS NULL").to_arrow()["id"].to_pylist()
    assert sorted(mine) == sorted(theirs) == [4, 9, 26, 27, 28, 29]


@pytest.mark.spec("I-075", "I-076", "I-094")
def test_schemas_that_both_change(reference):
    t = "ice.n.both"
    reference.sql(
        f"CREATE TABLE {t} (id bigint, a string, s struct<x: int, y: array<struct<e: int, f: string>>>) USING iceberg",
        f"INSERT INTO {t} VALUES (1, 'one', named_struct('x', 1, 'y', array(named_struct('e', 2, 'f', 'three'))))",
    )
    table = bh.open(str(reference.root / "n" / "both"))

    def agree():
        reference.sql(f"REFRESH TABLE {t}")
        mine = bh.open(table.uri).to_arrow()
        theirs = reference.rows(f"SELECT * FROM {t}")
        assert mine.column_names == theirs.column_names
        assert plain(mine.to_pylist()) == plain(theirs.to_pylist())

    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["a"]}]
    table.set_properties({"schema.name-mapping.default": json.dumps(mapping)})
    table.rename_column("a", "b")
    table.rename_column("s.y.element.e", "g")
    table.drop_column("s.y.element.f")
    table.add_column("a", "int")
    table.widen_column("s.x", "bigint")
    agree()
    reference.sql(
        f"INSERT INTO {t} VALUES (2, 'two', named_struct('x', 1L << 40, 'y', array(named_struct('g', 5))), 7)",
        f"ALTER TABLE {t} RENAME COLUMN id TO tmp", f"ALTER TABLE {t} RENAME COLUMN b TO id",
        f"ALTER TABLE {t} RENAME COLUMN tmp TO b", f"ALTER TABLE {t} ALTER COLUMN a FIRST",
        f"ALTER TABLE {t} ADD COLUMN s.y.element.h string", f"ALTER TABLE {t} DROP COLUMN s.x",
    )  # fmt: skip
    agree()
    mine = bh.open(table.uri)
    mine.update({"a": "b"}, "id = 'one'")
    mine.drop_column("id")
    mine.rename_column("s", "t")
    agree()
    # Names that went to other columns were taken from the old ones, by each side.
    names = {f["field-id"]: set(f["names"]) for f in json.loads(mine.properties["schema.name-mapping.default"])}
    assert names == {1: {"tmp", "b"}, 2: {"id"}, 9: {"a"}, 3: {"t"}}


@pytest.mark.spec("I-057", "I-059")
def test_defaults_of_fields_of_structs(reference, nasty):
    """Ours, as iceberg-spark reads them in files without the fields, and beside rows that it writes."""
    t, path = "ice.n.nested_defaults", str(reference.root / "n" / "nested_defaults")
    struct = pa.struct([("a", pa.int64())])
    schema = pa.schema(
        [("id", pa.int64()), ("s", struct), ("l", pa.list_(struct)), ("m", pa.map_(pa.string(), struct))]
    )

    def rows(id):
        one = {"a": id}
        whole = {"id": id, "s": one, "l": [one, None], "m": [("k", one), ("n", None)]}
        return pa.Table.from_pylist([whole, {"id": -id, "s": None, "l": [], "m": None}], schema)

    def agree():
        reference.sql(f"REFRESH TABLE {t}")
        mine = bh.open(path).to_arrow()
        nasty.same(mine, reference.rows(f"SELECT * FROM {t}"))
        return mine

    table = bh.create(path, schema, format="iceberg", properties={"format-version": "3"})
    table.append(rows(1))
    for place in ("s", "l.element", "m.value"):
        table.add_column(f"{place}.x", "int", default=5)
        table.add_column(f"{place}.d", "date", default="DATE'2020-02-29'")
    assert agree().column("s").combine_chunks().field("x").to_pylist()[0] == 5
    table.append(rows(2))
    for place in ("s", "l.element", "m.value"):
        table.set_default(f"{place}.x", 9)
    table.append(rows(3))
    member = "named_struct('a', 4L, 'x', 4, 'd', DATE'2020-01-01')"
    reference.sql(f"INSERT INTO {t} VALUES (4, {member}, array({member}), map('k', {member}))")
    found = {r["id"]: r["s"] and r["s"]["x"] for r in agree().to_pylist() if r["id"] > 0}
    assert found == {1: 5, 2: 5, 3: 9, 4: 4}
    bh.open(path).optimize()
    assert agree().num_rows == 7
