"""ORC and Avro files that we write, deletes and all, as iceberg-spark reads them and goes on."""

from __future__ import annotations

import random
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from reference_spark import ICEBERG

import boathouse as bh
from boathouse.arrow.schema import to_arrow
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
)

pytestmark = pytest.mark.slow
RELEASE = ICEBERG
FORMATS = ("orc", "avro")
MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
ROWS = 400
YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
LEAVES = {
    "bo": BOOLEAN, "i": INT32, "l": INT64, "f": FLOAT, "d": DOUBLE, "s": STRING, "bi": BINARY, "x": FixedType(5),
    "da": DATE, "ts": TIMESTAMP_NTZ, "tz": TIMESTAMP, "p9": DecimalType(9, 2), "p18": DecimalType(18, 5),
    "p38": DecimalType(38, 10), "u": UUID,
}  # fmt: skip
NESTED = {
    "st": StructType((Field("a", INT32), Field("b", StructType((Field("c", STRING), Field("t", TIMESTAMP)))))),
    "li": ListType(Field("element", DecimalType(20, 2))),
    "ll": ListType(Field("element", ListType(Field("element", TIMESTAMP_NTZ)))),
    "ms": MapType(Field("key", STRING, False), Field("value", INT64)),
    "mi": MapType(Field("key", INT32, False), Field("value", StructType((Field("t", DATE), Field("f", DOUBLE))))),
}
SCHEMA = Schema(
    (Field("id", INT64, False), *(Field(n, t) for n, t in (LEAVES | NESTED).items()), Field("a.b `c", INT32))
)
NAN, INF = float("nan"), float("inf")


def moment(chance):
    """No moment of the last second before 1970, but that of a millisecond's beginning."""
    edges = (YEAR_1, YEAR_9999, 0, 1, -1_000_000, -999_001, -1_000_001, -1_500_000, -12_219_292_800_000_001)
    found = chance.choice((*edges, chance.randrange(YEAR_1, 0), chance.randrange(0, 10**16)))
    return found if not -999_000 <= found < 0 else 7


def value(type, chance):
    if chance.random() < 0.15:
        return None
    match type:
        case StructType(fields):
            return {f.name: value(f.type, chance) for f in fields}
        case ListType(element):
            return [value(element.type, chance) for _ in range(chance.choice((0, 1, 3)))]
        case MapType(key, item):
            keys = {1, 2, -7} if key.type == INT32 else {"k", "", "é"}
            return [(k, value(item.type, chance)) for k in sorted(keys)[: chance.randrange(4)]]
        case DecimalType(precision, scale):
            top = 10**precision - 1
            unscaled = chance.choice((0, 1, -1, top, -top, chance.randint(-top, top)))
            return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
        case FixedType(length):
            return chance.randbytes(length)
    if type == UUID:
        return chance.randbytes(16)
    if type in (TIMESTAMP, TIMESTAMP_NTZ):
        return moment(chance)
    if type in (FLOAT, DOUBLE):
        return chance.choice((0.0, -0.0, NAN, INF, -INF, 1.5, chance.randint(-99, 99) / 8))
    return chance.choice({
        BOOLEAN: (True, False), INT32: (0, -1, (1 << 31) - 1, -(1 << 31)), INT64: (0, -1, (1 << 63) - 1, -(1 << 63)),
        STRING: ("", "a\0b", "世🎈", "x" * 300), BINARY: (b"", b"\0\xff", b"y" * 99),
        DATE: (-719162, -141428, -1, 0, 20000, 2932896),
    }[type])  # fmt: skip


def column(type, values):
    """Dates and times are numbers, at any depth."""
    if pa.types.is_temporal(type):
        return pa.array(values, pa.int32() if pa.types.is_date(type) else pa.int64()).view(type)
    mask = pa.array([v is None for v in values], pa.bool_())
    if pa.types.is_struct(type):
        parts = [column(f.type, [None if v is None else v[f.name] for v in values]) for f in type]
        return pa.StructArray.from_arrays(parts, fields=list(type), mask=mask)
    if pa.types.is_list(type) or pa.types.is_map(type):
        ends = [0]
        for v in values:
            ends.append(ends[-1] + len(v or ()))
        flat = [x for v in values for x in v or ()]
        ends = pa.array(ends, pa.int32())
        if pa.types.is_map(type):
            parts = [column(type.key_type, [k for k, _ in flat]), column(type.item_type, [v for _, v in flat])]
            entries = pa.StructArray.from_arrays(parts, fields=[type.key_field, type.item_field])
            valid = pa.compute.invert(mask).buffers()[1]
            return pa.Array.from_buffers(type, len(values), [valid, ends.buffers()[1]], children=[entries])
        return pa.ListArray.from_arrays(ends, column(type.value_type, flat), type=type, mask=mask)
    return pa.array(values, type)


def data(first, count, chance):
    arrow = to_arrow(SCHEMA)
    columns = [column(f.type, [value(g.type, chance) for _ in range(count)]) for f, g in zip(arrow, SCHEMA)]
    return pa.table([pa.array(range(first, first + count)), *columns[1:]], schema=arrow)


class Both:
    """A table that we write and the reference reads."""

    def __init__(self, reference, nasty, name):
        self.reference, self.nasty = reference, nasty
        self.name, self.path = f"ice.n.{name}", str(reference.root / "n" / name)

    def open(self):
        return bh.open(self.path)

    def agree(self):
        mine, theirs = self.open().to_arrow(), self.reference.rows(f"SELECT * FROM {self.name}")
        self.nasty.same(mine, theirs, but=("u",))
        if "u" in mine.column_names:  # which Spark shows as text
            found = {r["id"]: r["u"] for r in theirs.select(["id", "u"]).to_pylist()}
            assert found == {
                r["id"]: r["u"] and str(uuid.UUID(bytes=bytes(r["u"]))) for r in mine.select(["id", "u"]).to_pylist()
            }
        return mine

    def same_rows(self, *conditions):
        """Conditions leave the same rows, with what each side skips of files."""
        for where in conditions:
            mine = self.open().scan(["id"], where=where).to_arrow()["id"].to_pylist()
            theirs = self.reference.rows(f"SELECT id FROM {self.name} WHERE {where}")["id"].to_pylist()
            assert sorted(mine) == sorted(theirs) and mine, where

    def formats(self):
        found = self.reference.rows(f"SELECT DISTINCT content, file_format FROM {self.name}.files").to_pylist()
        return {(r["content"], r["file_format"]) for r in found}


@pytest.mark.spec("I-268", "I-282", "I-284", "I-285", "I-286", "I-295", "I-296", "I-297")
@pytest.mark.parametrize("codec", ("default", "zstd", "snappy", "none"))
@pytest.mark.parametrize("format", FORMATS)
def test_a_life(reference, nasty, format, codec):
    """In version 2, with files of positions and of keys."""
    both, chance = Both(reference, nasty, f"ours_{format}_{codec}"), random.Random(codec)
    asked = {"none": {"orc": "none", "avro": "uncompressed"}[format]}.get(codec, codec)
    codecs = {} if codec == "default" else {f"write.{format}.compression-codec": asked}
    more = {**MODES, **codecs, "write.format.default": format, "write.orc.stripe-size-bytes": "60000"}
    t = bh.create(both.path, SCHEMA, format="iceberg", properties=more)
    t.append(data(0, ROWS, chance))
    t.append(data(ROWS, 30, chance))
    assert both.agree().num_rows == ROWS + 30 and both.formats() == {(0, format.upper())}
    both.same_rows(
        "d > 1.0", "f = 0", "d = double('NaN')", "ts < TIMESTAMP_NTZ '1970-01-01'", "tz >= TIMESTAMP '1969-01-01'",
        "da < DATE '1600-01-01'", "p38 > 0", "s = ''", "l IS NULL", "id > 410", "bi = X'00FF'",
    )  # fmt: skip
    if codec != "default":
        return
    t.delete("id % 10 = 3")
    t.update({"s": "'updated'"}, "id % 10 = 4")
    both.agree()
    t.upsert(data(5, 3, chance), on="id", deletes="equality")
    assert both.agree().num_rows == ROWS + 30 - 43
    assert both.formats() == {(content, format.upper()) for content in (0, 1, 2)}
    t.rename_column("s", "text")
    t.drop_column("bi")
    t.widen_column("i", "bigint")
    t.widen_column("f", "double")
    t.widen_column("p9", "decimal(20, 2)")
    t.rename_column("st.b", "bb")
    t.add_column("st.b", "string")
    t.add_column("s", "int")
    t.append(pa.table({"id": [900, 901], "s": pa.array([1, None], pa.int32()), "i": [1 << 40, None]}))
    both.agree()
    both.same_rows("i > 5000000000", "text = 'updated'", "f = 1.5", "s = 1")
    reference.sql(f"DELETE FROM {both.name} WHERE id % 10 = 6", f"UPDATE {both.name} SET i = 5 WHERE id = 900")
    count = both.agree().num_rows
    t = both.open()
    t.set_properties(dict.fromkeys(MODES, "copy-on-write"))
    t.delete("id = 901")
    t.optimize()
    assert both.agree().num_rows == count - 1 and {name for _, name in both.formats()} == {format.upper()}


@pytest.mark.spec("I-268")
@pytest.mark.parametrize("format", FORMATS)
def test_version_3(reference, nasty, format):
    """Defaults, row ids that files store, and vectors."""
    both, chance = Both(reference, nasty, f"ours_v3_{format}"), random.Random(3)
    more = {**MODES, "format-version": "3", "write.format.default": format}
    t = bh.create(both.path, SCHEMA, format="iceberg", properties=more)
    t.append(data(0, 60, chance))
    t.add_column("n", "int", default=7)
    t.append(data(60, 20, chance).append_column("n", pa.array(range(20), pa.int32())))
    t.delete("id % 7 = 2")
    t.update({"l": "42"}, "id % 7 = 3")
    t.optimize()
    assert both.agree()["n"].to_pylist().count(7) > 40
    assert both.formats() - {(1, "PUFFIN")} == {(0, format.upper())}
    if format == "orc":  # of which this release of the reference reads no stored row ids
        return
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    mine = both.open().scan(lineage).to_arrow()
    nasty.same(mine, reference.rows(f"SELECT {', '.join(lineage)} FROM {both.name}"))


@pytest.mark.spec("I-282")
def test_variants_in_avro(reference, nasty):
    both = Both(reference, nasty, "variants_avro")
    schema = Schema((Field("id", INT64), Field("v", VARIANT)))
    more = {"format-version": "3", "write.format.default": "avro"}
    t = bh.create(both.path, schema, format="iceberg", properties=more)
    seven = {"metadata": b"\x11\x00\x00", "value": b"\x0c\x07"}
    column = pa.array([seven, None], to_arrow(schema).field("v").type)
    t.append(pa.table([pa.array([1, 2]), column], schema=to_arrow(schema)))
    found = reference.rows(f"SELECT id, to_json(v) AS v FROM {both.name}").to_pylist()
    assert sorted(found, key=str) == [{"id": 1, "v": "7"}, {"id": 2, "v": None}]
