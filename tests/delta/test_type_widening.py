"""Type widening: every pair of the protocol read from files of the narrower type, and what is recorded of a change."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError

ENABLED = {
    "delta.enableTypeWidening": "true",
    "delta.feature.timestampNtz": "supported",
    "delta.checkpointInterval": "1000",
}
MAPPED = {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"}
I8, I16, I32, I64 = ([0, 1, -1, -(2 ** (b - 1)), 2 ** (b - 1) - 1] for b in (8, 16, 32, 64))
FLOATS = [3.4, -0.1, 1e-45, 3.4028234663852886e38, math.inf]
DATES = [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), dt.date(2024, 2, 29)]


def decimals(precision, scale):
    top = Decimal("9" * precision).scaleb(-scale)
    return [Decimal(0), top, -top, Decimal(1).scaleb(-scale), Decimal(-7).scaleb(-scale)]


def fixed(precision, scale):
    return pa.decimal128(precision, scale), decimals(precision, scale)


PAIRS = {
    "byte_short": (pa.int8(), I8, "smallint"),
    "byte_int": (pa.int8(), I8, "int"),
    "byte_long": (pa.int8(), I8, "bigint"),
    "byte_double": (pa.int8(), I8, "double"),
    "byte_decimal": (pa.int8(), I8, "decimal(10,0)"),
    "byte_decimal4": (pa.int8(), I8, "decimal(38,4)"),
    "short_int": (pa.int16(), I16, "int"),
    "short_long": (pa.int16(), I16, "bigint"),
    "short_double": (pa.int16(), I16, "double"),
    "short_decimal": (pa.int16(), I16, "decimal(12,2)"),
    "int_long": (pa.int32(), I32, "bigint"),
    "int_double": (pa.int32(), I32, "double"),
    "int_decimal": (pa.int32(), I32, "decimal(10,0)"),
    "int_decimal7": (pa.int32(), I32, "decimal(20,7)"),
    "long_decimal": (pa.int64(), I64, "decimal(20,0)"),
    "long_decimal4": (pa.int64(), I64, "decimal(24,4)"),
    "float_double": (pa.float32(), FLOATS, "double"),
    "decimal_wider": (*fixed(5, 2), "decimal(10,2)"),
    "decimal_scaled": (*fixed(5, 2), "decimal(9,4)"),
    "decimal_as_long": (*fixed(9, 2), "decimal(12,2)"),
    "decimal_as_bytes": (*fixed(18, 0), "decimal(20,0)"),
    "decimal_widest": (*fixed(18, 2), "decimal(38,6)"),
    "date_ntz": (pa.date32(), DATES, "timestamp_ntz"),
}


def wide(value, sql):
    """The value as the wider type holds it."""
    if value is None:
        return None
    if sql == "double":
        return float(np.float32(value)) if isinstance(value, float) else float(value)
    if sql.startswith("decimal"):
        return Decimal(value)
    return dt.datetime.combine(value, dt.time()) if sql == "timestamp_ntz" else value


def literal(value, sql):
    if sql == "double" and math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    text = value.isoformat(" ") if isinstance(value, dt.datetime) else repr(value) if sql == "double" else f"{value}"
    return f"CAST('{text}' AS {sql})"


def row(i, narrow=True):
    columns = {"id": pa.array([i], pa.int64())}
    for name, (type, values, _) in PAIRS.items():
        columns[name] = pa.array([None if i >= len(values) else values[i]], type)
    return pa.table(columns)


WANTED = [
    {"id": i} | {n: wide(values[i], sql) if i < len(values) else None for n, (_, values, sql) in PAIRS.items()}
    for i in range(6)
]


def narrow_table(path, properties=None, partition_by=()):
    """One file for each row, so that a bound that is wrong by a little loses one."""
    bh.write(row(0), path, format="delta", properties=ENABLED | (properties or {}), partition_by=partition_by)
    table = bh.open(path)
    for i in range(1, 6):
        table.append(row(i))
    return table


def widen(table):
    for name, (_, _, sql) in PAIRS.items():
        table.widen_column(name, sql)
    return table


def in_order(rows):
    return sorted(rows, key=lambda r: r["id"])


def same(found, wanted=WANTED):
    assert in_order(found) == wanted
    for mine, theirs in zip(in_order(found), wanted):
        assert [type(v) for v in mine.values()] == [type(v) for v in theirs.values()]


def conditions():
    """(condition, ids) for every value of every pair, as itself and on either side."""
    for name, (_, values, sql) in PAIRS.items():
        held = [wide(v, sql) for v in values]
        for value in held:
            for sign, holds in (("=", value.__eq__), ("<", value.__gt__), (">=", value.__le__)):
                ids = [i for i, other in enumerate(held) if holds(other)]
                yield f"{name} {sign} {literal(value, sql)}", ids


def check_conditions(table):
    for where, ids in conditions():
        assert sorted(table.scan(["id"], where).to_arrow().column("id").to_pylist()) == ids, where


def metadata_of(delta, path):
    return [a["metaData"] for entry in delta.log(path).values() for a in entry if "metaData" in a][-1]


def field_of(delta, path, name):
    fields = json.loads(metadata_of(delta, path)["schemaString"])["fields"]
    return next(f for f in fields if f["name"] == name)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "t")


@pytest.mark.spec("D-305")
@pytest.mark.parametrize("properties", [{}, pytest.param(MAPPED, marks=pytest.mark.slow)], ids=["plain", "mapped"])
@pytest.mark.feature("typeWidening", "widen columns", format="delta")
def test_every_pair_is_read(path, properties):
    table = widen(narrow_table(path, properties))
    same(table.to_arrow().to_pylist())
    check_conditions(table)
    # Files of both types, and rows that are changed in both.
    table.append(table.scan(where="id = 3").to_arrow().set_column(0, "id", pa.array([9])))
    table.update({"int_long": "int_long + 3000000000", "float_double": "0.1D"}, where="id IN (1, 9)")
    table.delete("float_double = CAST(CAST('3.4' AS FLOAT) AS DOUBLE) OR date_ntz = TIMESTAMP_NTZ'1969-12-31 00:00:00'")
    changed = {"int_long": WANTED[1]["int_long"] + 3_000_000_000, "float_double": 0.1}
    moved = {"id": 9, "int_long": WANTED[3]["int_long"] + 3_000_000_000, "float_double": 0.1}
    left = [WANTED[1] | changed, WANTED[3], WANTED[4], WANTED[5], WANTED[3] | moved]
    same(table.to_arrow().to_pylist(), left)
    table.optimize()
    same(table.to_arrow().to_pylist(), left)
    same(bh.open(path, version=5).to_arrow().to_pylist(), [
        {"id": i} | {n: v[i] if i < 5 and n != "float_double" else r for n, (_, v, _), r in zip(
            PAIRS, PAIRS.values(), list(WANTED[i].values())[1:])} for i in range(6)
    ])  # fmt: skip


@pytest.mark.spec("D-305")
@pytest.mark.spark
@pytest.mark.parametrize("properties", [pytest.param({}, marks=pytest.mark.slow), MAPPED], ids=["plain", "mapped"])
@pytest.mark.feature("typeWidening", "widen columns", format="delta")
def test_every_pair_is_read_on_spark(path, properties, spark):
    table = widen(narrow_table(path, properties))
    found = table.scan().to_spark(spark)
    same(found.toArrow().to_pylist())
    for name, (_, values, sql) in PAIRS.items():
        i, value = 1, wide(values[1], sql)
        # The condition by which our plan skips files, and the user's own, which Spark pushes into its reader.
        where = f"{name} = {literal(value, sql)}"
        wanted = [j for j, v in enumerate(values) if wide(v, sql) == value]
        assert i in wanted
        assert sorted(r.id for r in table.scan(["id"], where).to_spark(spark).collect()) == wanted, where
        assert sorted(r.id for r in found.where(where).select("id").collect()) == wanted, where
    table = bh.open(path, spark=spark)
    more = spark.sql("SELECT 9L AS id, 5000000000L AS int_long, 0.1D AS float_double")
    table.append(more)
    table.update({"short_int": "short_int + 100000"}, where="id = 1")
    table.delete("float_double = 0.1D OR byte_decimal4 = 127")
    found = in_order(table.to_spark(spark).toArrow().to_pylist())
    assert found == [WANTED[0], WANTED[1] | {"short_int": 100_001}, *WANTED[2:4], WANTED[5]]


@pytest.mark.spec("D-305")
@pytest.mark.parametrize("form", [pytest.param("text", marks=pytest.mark.slow), "struct"])
@pytest.mark.parametrize("when", [*(pytest.param(w, marks=pytest.mark.slow) for w in ("before", "after")), "both"])
def test_bounds_in_checkpoints_are_those_of_the_files(path, form, when):
    """Typed bounds that were written for the narrower column, or made of the text of its bounds for the wider one."""
    named = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    table = narrow_table(path, named if form == "struct" else {})
    if when != "after":
        write_checkpoint(table._handle.snapshot)
    table = widen(bh.open(path))
    if when != "before":
        write_checkpoint(table._handle.snapshot)
    table = bh.open(path)
    assert table.detail()["checkpoint"] == (5 if when == "before" else 5 + len(PAIRS))
    same(table.to_arrow().to_pylist())
    check_conditions(table)
    sharp = [w for w, ids in conditions() if " = " in w and len(ids) == 1 and not w.startswith(("float", "decimal_as"))]
    read = [len(table.scan(["id"], w).files()) for w in sharp]
    assert sum(read) <= 2 * len(read), "bounds of other types skip files too"


@pytest.mark.parametrize("text", ["3.4", "3.4000000953674316", "3.4028235E38", "1e300", "-1.4e-45", "0.0"])
def test_bounds_of_floats_hold_for_doubles(raw, delta, text):
    """A writer gives the shortest text of a float, which is another number as a double; or the double."""
    table = raw()
    value = float(text)
    held = pa.float32() if abs(value) < 3.5e38 else pa.float64()
    values = pa.array([value], held)
    size = table.file("f.parquet", pa.table({"x": values}))
    stats = f'{{"numRecords":1,"minValues":{{"x":{text}}},"maxValues":{{"x":{text}}},"nullCount":{{"x":0}}}}'
    changes = [{"fromType": "float", "toType": "double"}]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
    table.commit(
        0,
        {"protocol": protocol | features},
        delta.metadata([delta.field("x", "double", **{"delta.typeChanges": changes})]),
        table.add("f.parquet", stats=stats, size=size),
    )
    (found,) = bh.open(str(table)).to_arrow().column("x").to_pylist()
    assert found == float(values[0].as_py())
    for where in (f"x = {found!r}D", f"x >= {found!r}D", f"x <= {found!r}D"):
        assert bh.open(str(table)).scan(where=where).to_arrow().num_rows == 1, where
    assert bh.open(str(table)).scan(where=f"x > {found!r}D").to_arrow().num_rows == 0


@pytest.mark.spec("D-305")
def test_partition_values_of_the_narrower_type(path, delta):
    """They stay as the text that they are."""
    names = ["byte_int", "int_long", "int_double", "short_decimal", "long_decimal4", "decimal_scaled", "date_ntz"]
    columns = ["id", *names, "float_double"]
    bh.write(row(0).select(columns), path, format="delta", properties=ENABLED, partition_by=names)
    table = bh.open(path)
    for i in range(1, 6):
        table.append(row(i).select(columns))
    for name in names:
        table.widen_column(name, PAIRS[name][2])
    wanted = [{n: WANTED[i][n] for n in columns} for i in range(6)]
    floats = [None if r["float_double"] is None else r["float_double"] for r in wanted]
    assert [r["float_double"] for r in in_order(table.to_arrow().to_pylist())] == floats
    same(table.to_arrow().to_pylist(), wanted)
    for where, ids in conditions():
        if where.split(" ", 1)[0] in names:
            assert sorted(table.scan(["id"], where).to_arrow().column("id").to_pylist()) == ids, where
    # The same partition in both spellings.
    twice = table.scan(where="id = 1").to_arrow().set_column(0, "id", pa.array([11]))
    table.append(twice.select(columns))
    same(table.scan(where="date_ntz = TIMESTAMP_NTZ'0001-01-01 00:00:00'").to_arrow().to_pylist(),
         [wanted[1], wanted[1] | {"id": 11}])  # fmt: skip
    table.delete("int_double = 1")
    assert table.count() == 5
    with pytest.raises(UnsupportedFeatureError, match="partitioned by"):
        bh.write(row(0), f"{path}f", format="delta", properties=ENABLED, partition_by=["float_double"])
        bh.open(f"{path}f").widen_column("float_double", "double")


NESTED = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "e": pa.array([[[("k", Decimal("1.25"))]]], pa.list_(pa.map_(pa.string(), pa.decimal128(6, 2)))),
        "m": pa.array([[(1.5, 7)]], pa.map_(pa.float32(), pa.int32())),
        "s": pa.array(
            [{"a": 1, "l": [{"x": 2}]}],
            pa.struct([("a", pa.int8()), ("l", pa.list_(pa.struct([("x", pa.int16())])))]),
        ),
    }
)


@pytest.mark.spec("D-305")
@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_nested_changes_are_recorded_at_the_nearest_field(path, delta, properties):
    """As in the protocol's examples."""
    bh.write(NESTED, path, format="delta", properties=ENABLED | properties)
    table = bh.open(path)
    for column, type in (
        ("e.element.value", "decimal(10,4)"), ("m.key", "double"), ("m.value", "bigint"), ("M.VALUE", "decimal(20,0)"),
        ("s.a", "smallint"), ("s.a", "int"), ("s.l.element.x", "double"),
    ):  # fmt: skip
        table.widen_column(column, type)
    changes = "delta.typeChanges"
    assert field_of(delta, path, "e")["metadata"][changes] == [
        {"fromType": "decimal(6,2)", "toType": "decimal(10,4)", "fieldPath": "element.value"}
    ]
    assert field_of(delta, path, "m")["metadata"][changes] == [
        {"fromType": "float", "toType": "double", "fieldPath": "key"},
        {"fromType": "integer", "toType": "long", "fieldPath": "value"},
        {"fromType": "long", "toType": "decimal(20,0)", "fieldPath": "value"},
    ]
    struct = field_of(delta, path, "s")
    a, below = struct["type"]["fields"]
    assert a["metadata"][changes] == [
        {"fromType": "byte", "toType": "short"}, {"fromType": "short", "toType": "integer"}
    ]  # fmt: skip
    (x,) = below["type"]["elementType"]["fields"]
    assert x["metadata"][changes] == [{"fromType": "short", "toType": "double"}]
    assert changes not in struct["metadata"] and changes not in below["metadata"]
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "e": [[("k", Decimal("1.2500"))]], "m": [(1.5, Decimal(7))], "s": {"a": 1, "l": [{"x": 2.0}]}}
    ]
    assert [e.operation for e in table.history(1)] == ["CHANGE COLUMN"]
    # Other changes of the schema keep the record.
    table.add_column("later", "int")
    table.set_comment("c", "m")
    if properties:
        table.rename_column("m", "n")
    kept = field_of(delta, path, "n" if properties else "m")["metadata"]
    assert len(kept[changes]) == 3 and kept["comment"] == "c"
    assert bh.open(path).count() == 1


@pytest.mark.spec("D-305")
def test_writes_that_evolve_the_schema_widen(path, delta):
    narrow = pa.table({
        "i": pa.array([1], pa.int32()), "f": pa.array([3.4], pa.float32()),
        "d": pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        "s": pa.array([{"x": 1}], pa.struct([("x", pa.int8())])),
    })  # fmt: skip
    more = pa.table({
        "i": pa.array([2**40]), "f": pa.array([0.1]), "d": pa.array([Decimal("12345678.9")], pa.decimal128(9, 1)),
        "s": pa.array([{"x": 300}], pa.struct([("x", pa.int16())])),
    })  # fmt: skip
    bh.write(narrow, path, format="delta")
    table = bh.open(path)
    with pytest.raises(UnsupportedFeatureError, match=r"type widening is not enabled.*delta\.enableTypeWidening"):
        table.append(more, merge_schema=True)
    table.set_properties({"delta.enableTypeWidening": "true"})
    assert table.detail()["readerFeatures"] == ["typeWidening"]
    table.append(more, merge_schema=True)
    assert sorted(table.to_arrow().to_pylist(), key=str) == sorted([
        {"i": 1, "f": float(np.float32(3.4)), "d": Decimal("1.5"), "s": {"x": 1}}, *more.to_pylist()
    ], key=str)  # fmt: skip
    assert field_of(delta, path, "i")["metadata"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert table.version == 2, "the types change in the commit of the rows"
    table.set_properties({"delta.enableTypeWidening": "false"})
    wider = more.set_column(2, "d", pa.array([Decimal("1.5")], pa.decimal128(38, 1)))
    with pytest.raises(UnsupportedFeatureError, match="not enabled"):
        table.append(wider, merge_schema=True)
    assert table.count() == 2


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_a_merge_widens_keys_and_values(path, properties):
    narrow = pa.table({"k": pa.array([1, 2], pa.int32()), "x": pa.array([3.4, 1.5], pa.float32())})
    bh.write(narrow, path, format="delta", properties=ENABLED | properties)
    table = bh.open(path)
    table.upsert(pa.table({"k": [2, 2**40], "x": [0.1, 0.2], "new": ["n", "m"]}), on="k", merge_schema=True)
    assert sorted(table.to_arrow().to_pylist(), key=str) == [
        {"k": 1, "x": float(np.float32(3.4)), "new": None},
        {"k": 1099511627776, "x": 0.2, "new": "m"},
        {"k": 2, "x": 0.1, "new": "n"},
    ]


@pytest.mark.spec("D-305")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "int"), ("bigint", "double"), ("int", "float"), ("double", "float"), ("int", "decimal(9,0)"),
        ("int", "decimal(12,3)"), ("bigint", "decimal(19,0)"), ("decimal(5,2)", "decimal(6,4)"), ("int", "string"),
        ("decimal(5,2)", "decimal(5,3)"), ("decimal(5,2)", "decimal(6,1)"), ("date", "timestamp"), ("date", "string"),
        ("timestamp", "timestamp_ntz"), ("boolean", "int"), ("string", "binary"), ("decimal(5,0)", "bigint"),
        ("array<int>", "array<bigint>"), ("struct<a: int>", "struct<a: bigint>"),
    ],
)  # fmt: skip
def test_other_changes_are_refused(path, old, new):
    table = bh.create(path, f"id bigint, x {old}", properties=ENABLED)
    with pytest.raises((UnsupportedFeatureError, InvalidArgumentError), match="`x`"):
        table.widen_column("x", new)
    assert bh.open(path).version == 0


def test_what_is_in_the_way_is_named(path):
    table = bh.create(path, "a int, b int, `c.d` int", properties=ENABLED)
    table.add_constraint("positive", "a > 0")
    with pytest.raises(InvalidArgumentError, match="positive"):
        table.widen_column("a", "bigint")
    with pytest.raises(InvalidArgumentError, match="positive"):
        table.append(pa.table({"a": [2**40]}), merge_schema=True)
    with pytest.raises(ColumnNotFoundError, match="`zap`"):
        table.widen_column("zap", "bigint")
    version = table.version
    table.widen_column("b", "int")
    assert table.version == version, "nothing changes"
    table.widen_column("`c.d`", "bigint")
    plain = bh.create(f"{path}2", "a date", properties={"delta.enableTypeWidening": "true"})
    with pytest.raises(UnsupportedFeatureError, match=r"timestampNtz.*delta\.feature\.timestampNtz"):
        plain.widen_column("a", "timestamp_ntz")


@pytest.mark.spec("D-305")
@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fromType": "string", "toType": "integer"}, "`x` was string and became integer"),
        ({"fromType": "long", "toType": "double"}, "`x` was long"),
        ({"fromType": "void", "toType": "zap"}, "became zap"),
        ({"fromType": "timestamp", "toType": "date", "fieldPath": "element.key"}, r"`x\.element\.key`"),
    ],
)
def test_unknown_recorded_changes_refuse_reading(raw, delta, feature, change, said):
    def table(named):
        made = raw()
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": named, "writerFeatures": named}
        x = delta.field("x", "long", **{"delta.typeChanges": [{"fromType": "integer", "toType": "long"}, change]})
        made.commit(0, {"protocol": protocol}, delta.metadata([x]))
        return str(made)

    with pytest.raises(UnsupportedFeatureError, match=said):
        bh.open(table([feature]))
    assert bh.open(table([])).count() == 0, "without the feature the key means nothing"


def test_tables_of_the_preview_stay_such(raw, delta):
    """Its readers need the version of the change, and do not know the feature's final name."""
    made = raw()
    features = ["typeWidening-preview"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    fields = [delta.field("x", "integer")]
    made.commit(0, {"protocol": protocol}, delta.metadata(fields, configuration={"delta.enableTypeWidening": "true"}))
    table = bh.open(str(made))
    table.set_properties({"own": "1"})
    table.widen_column("x", "bigint")
    assert table.detail()["readerFeatures"] == features
    assert field_of(delta, made, "x")["metadata"]["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long", "tableVersion": 2}
    ]


def test_restore_and_changes_across_a_change(path):
    feed = {"delta.enableChangeDataFeed": "true"}
    bh.write(pa.table({"x": pa.array([1, 2], pa.int32())}), path, format="delta", properties=ENABLED | feed)
    table = bh.open(path)
    table.update({"x": "x + 10"}, where="x = 1")
    table.widen_column("x", "bigint")
    table.append(pa.table({"x": [2**40]}))
    found = table.changes(0).to_arrow()
    assert found.schema.field("x").type == pa.int64()
    kinds = sorted(zip(found.column("_change_type").to_pylist(), found.column("x").to_pylist()))
    assert kinds == [
        ("insert", 1), ("insert", 2), ("insert", 2**40), ("update_postimage", 11), ("update_preimage", 1)
    ]  # fmt: skip
    table.restore(version=1)
    assert (str(table.schema.fields[0].type), sorted(table.to_arrow().column("x").to_pylist())) == ("int", [2, 11])
    table.restore(version=3)
    assert sorted(table.to_arrow().column("x").to_pylist()) == [2, 11, 2**40]


def test_tables_of_the_reference(corpora):
    """Rows of the narrower types first, then wider ones (written by Spark 3.5)."""
    golden = corpora / "delta" / "golden"
    first, second = bh.open(str(golden / "type-widening" / "delta")).to_arrow().sort_by("byte_long").to_pylist()
    assert (first["byte_long"], second["byte_long"]) == (1, 2**63 - 1)
    assert first["float_double"] == float(np.float32(3.4)) and second["float_double"] == 1.234567890123
    assert first["date_timestamp_ntz"] == dt.datetime(2024, 9, 9)
    assert second["date_timestamp_ntz"] == dt.datetime(2024, 9, 9, 12, 34, 56, 123456)
    assert (first["decimal_decimal_greater_scale"], first["long_decimal"]) == (Decimal("67.89000"), Decimal(4))
    nested = bh.open(str(golden / "type-widening-nested" / "delta"))
    big = 2**63 - 1
    assert sorted(nested.to_arrow().to_pylist(), key=str) == [
        {"struct": {"a": 1}, "map": [(2, 3)], "array": [4, 5]},
        {"struct": {"a": big}, "map": [(big, big)], "array": [big, -big - 1]},
    ]
    assert nested.scan(where="struct.a > 1").count() == 1
