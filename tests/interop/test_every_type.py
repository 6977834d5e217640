"""Every type, both ways: tables of ours read by the libraries of others, and theirs, changed by them, read by us."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
from boathouse.errors import EvaluationError, TableNotFoundError, UnsupportedTypeError
from boathouse.types import UUID, Field, Schema

deltalake = pytest.importorskip("deltalake")
pyiceberg = pytest.importorskip("pyiceberg.table")
lance = pytest.importorskip("lance")
PARTITIONS = ["string", "long", "int", "boolean", "date", "decimal", "timestamp", "timestamp_ntz"]
NAMES = {
    "delta": ["größe🚣", "dot.ted", 'quo"ted', "tick`", "Ünï", "a/b", "%20"],
    "iceberg": ["größe🚣", "dot_ted", 'quo"ted', "tick`", "with space", "a/b=c", "%20", "1st", "-", "x;{}()\n\t"],
    "lance": ["größe🚣", 'quo"ted', "with space", "a/b=c", "%20", "1st", "-", "x;{}()\n\t"],
}


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "tablé one")


def by_datafusion(uri, columns="*") -> pa.Table:
    """All rows as delta-rs reads them, in plain layouts."""
    rows = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute(f"select {columns} from t")
    return pa.table(rows)


def static(uri):
    """The Iceberg table at its newest metadata document, opened by pyiceberg."""
    newest = max(
        Path(uri, "metadata").glob("*.metadata.json"), key=lambda p: int(p.name.lstrip("v").split("-")[0].split(".")[0])
    )
    return pyiceberg.StaticTable.from_metadata(f"file://{newest}")


def by_pyiceberg(uri) -> pa.Table:
    return static(uri).scan().to_arrow()


def by_pylance(uri) -> pa.Table:
    return lance.dataset(uri).to_table()


LOST = {"iceberg": ("deep",)}
"""What a peer reads wrongly itself: pyiceberg makes null lists in structs empty, reading and writing."""
READERS = {"delta": by_datafusion, "iceberg": by_pyiceberg, "lance": by_pylance}


def history_of_changes(uri, format, make):
    """A table with several files, appends, an overwrite of some rows, a delete; returns the rows it must hold."""
    bh.write(make(), uri, format=format)
    table = bh.open(uri)
    for start in (100, 200):
        table.append(make(start=start), target_file_bytes=1)
    table.overwrite(make(start=200), where="id BETWEEN 200 AND 299")
    table.delete("id % 5 = 3 OR id = 200")
    want = pa.concat_tables([make(), make(start=100), make(start=200)])
    ids = want.column("id")
    gone = pc.or_(pc.equal(pc.subtract(ids, pc.multiply(pc.divide(ids, 5), 5)), 3), pc.equal(ids, 200))
    return table, want.filter(pc.invert(gone))


@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_ours_read_by_others(uri, format, nasty):
    make = getattr(nasty, format)
    table, want = history_of_changes(uri, format, make)
    nasty.same(table.to_arrow(), want)
    nasty.same(bh.open(uri).to_arrow(), want)
    nasty.same(READERS[format](uri), want, but=LOST.get(format, ()))
    assert bh.open(uri).count() == want.num_rows
    # Everything is replaced, and the peer sees it.
    table.overwrite(make(start=7))
    nasty.same(READERS[format](uri), make(start=7), but=LOST.get(format, ()))
    nasty.same(bh.open(uri).to_arrow(), make(start=7))


@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_names_of_columns(uri, format, nasty):
    data = pa.table(
        {"id": [1, 2, 3]}
        | {n: [f"{n}1", None, ""] for n in NAMES[format]}
        | {"nested": [dict.fromkeys(NAMES[format], 1), None, dict.fromkeys(NAMES[format])]}
    )
    bh.write(data, uri, format=format)
    table = bh.open(uri)
    table.append(data.set_column(0, "id", pa.array([4, 5, 6])))
    for name in NAMES[format]:
        quoted = "`" + name.replace("`", "``") + "`"
        assert table.scan(["id"], f"{quoted} = '{name}1'").to_arrow().num_rows == 2, name
        assert table.scan(["id"], f"nested.{quoted} = 1").count() == 2, name
    table.delete("id = 5")
    want = table.to_arrow()
    assert sorted(want.column("id").to_pylist()) == [1, 2, 3, 4, 6]
    nasty.same(READERS[format](uri), want)


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_partition_values(uri, format, kind, nasty):
    type_, values = nasty.partitions[kind]
    rows = 2 * len(values) + 2
    data = pa.table(
        {"id": range(rows), "p": pa.array(nasty.around(values, rows), type_), "v": [f"v{i}" for i in range(rows)]}
    )
    bh.write(data, uri, format=format, partition_by="p")
    table = bh.open(uri)
    # Delta knows no empty string as a partition value: it is null (PROTOCOL.md, "Partition Value Serialization").
    empty = pc.equal(data.column("p"), "") if kind == "string" and format == "delta" else None
    want = (
        data
        if empty is None
        else data.set_column(1, "p", pc.if_else(pc.fill_null(empty, False), None, data.column("p")))
    )
    nasty.same(table.to_arrow(), want)
    nasty.same(READERS[format](uri).select(["id", "p", "v"]), want)
    for value in {*want.column("p").to_pylist()}:
        hits = [i for i, v in zip(want.column("id").to_pylist(), want.column("p").to_pylist()) if v == value]
        assert sorted(table.scan(["id"], _equals(value)).to_arrow().column("id").to_pylist()) == hits, value
    partitions = {*map(str, data.column("p").to_pylist())}
    assert table.files().num_rows == len(partitions)
    table.append(data.set_column(0, "id", pa.array(range(100, 100 + rows))))
    gone = want.column("p").to_pylist()[0]
    table.delete(_equals(gone))
    kept = want.filter(pc.invert(pc.fill_null(pc.equal(want.column("p"), pa.scalar(gone, type_)), False)))
    again = kept.set_column(0, "id", pc.add(kept.column("id"), 100))
    nasty.same(table.to_arrow(), pa.concat_tables([kept, again]))
    nasty.same(READERS[format](uri).select(["id", "p", "v"]), pa.concat_tables([kept, again]))


def _equals(value) -> str:
    match value:
        case None:
            return "p IS NULL"
        case bool() | int():
            return f"p = {value}" if value != -(2**63) else "p < -9223372036854775807"
        case str():
            return "p = '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case dt.datetime() if value.tzinfo is not None:
            return f"p = timestamp '{value:%Y-%m-%dT%H:%M:%S.%f}Z'".replace("'1-", "'0001-")
        case dt.datetime():
            return f"p = timestamp_ntz '{value.isoformat()}'"
        case dt.date():
            return f"p = date '{value.isoformat()}'"
        case _:
            return f"p = {value:f}BD"


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_several_partition_columns(uri, format, nasty):
    rows = 24
    columns = {
        k: pa.array(nasty.around([v for v in values if v != ""][:2], rows), t)
        for k, (t, values) in nasty.partitions.items()
    }
    data = pa.table({"id": range(rows), **columns, "v": range(rows)})
    bh.write(data, uri, format=format, partition_by=list(columns))
    nasty.same(bh.open(uri).to_arrow(), data)
    nasty.same(READERS[format](uri).select(data.column_names), data)
    bh.open(uri).delete("string IS NULL AND long > 0 OR date < date '1900-01-01' AND boolean")
    nasty.same(READERS[format](uri).select(data.column_names), bh.open(uri).to_arrow())


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "by",
    [
        "bucket(4, text)",
        "truncate(3, text)",
        "truncate(7, i32)",
        "truncate(5, d38)",
        "year(date)",
        "month(ts)",
        "day(ntz)",
        "hour(ts)",
        "bucket(3, d38)",
        "bucket(3, bytes)",
        "bucket(5, ts)",
    ],
)
def test_iceberg_transforms(uri, by, nasty):
    data = nasty.iceberg().drop_columns(LOST["iceberg"])
    if by.startswith("truncate") and "text" not in by:
        # The lowest values truncate to less than their types hold: refused, and nothing is there.
        with pytest.raises(EvaluationError, match="truncate"):
            bh.write(data, uri, format="iceberg", partition_by=by)
        with pytest.raises(TableNotFoundError):
            bh.open(uri)
        i32, d38 = ([-1, -7, -8, None, 6, 7] * 3)[: nasty.rows], ([Decimal("-0.0000000001"), None] * 9)[: nasty.rows]
        data = data.set_column(data.schema.get_field_index("i32"), "i32", pa.array(i32, pa.int32()))
        data = data.set_column(data.schema.get_field_index("d38"), "d38", pa.array(d38, pa.decimal128(38, 10)))
    bh.write(data, uri, format="iceberg", partition_by=by)
    nasty.same(bh.open(uri).to_arrow(), data)
    nasty.same(by_pyiceberg(uri), data)
    for where, row_filter in (
        ("text = 'größe'", "text = 'größe'"),
        ("i32 > 5", "i32 > 5"),
        ("ts < timestamp '1960-03-01T00:00:00Z'", "ts < '1960-03-01T00:00:00+00:00'"),
        ("date = date '1582-10-14'", "date = '1582-10-14'"),
        ("ntz IS NULL", "ntz is null"),
    ):
        ours = bh.open(uri).scan(["id"], where).to_arrow()
        nasty.same(ours, static(uri).scan(row_filter=row_filter, selected_fields=("id",)).to_arrow())


def test_uuid_in_iceberg(uri):
    values = [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes, None]
    table = bh.create(uri, Schema((Field("u", UUID), Field("p", UUID))), format="iceberg", partition_by="p")
    table.append(pa.table({"u": pa.array(values, pa.binary(16)), "p": pa.array(values, pa.binary(16))}))
    theirs = by_pyiceberg(uri)
    got = [None if v is None else getattr(v, "bytes", v) for v in theirs.column("p").to_pylist()]
    assert sorted(got, key=str) == sorted(values, key=str)
    assert sorted(table.to_arrow().column("p").to_pylist(), key=str) == sorted(values, key=str)


def test_delta_read_by_polars(tmp_path, nasty):
    """polars reads deletion vectors and timestamps without zone through its own reader."""
    polars = pytest.importorskip("polars")
    uri = str(tmp_path / "plain")  # polars asks for files below "tabl%C3%A9"
    _, want = history_of_changes(uri, "delta", nasty.delta)
    plain = ["id", "bool", "i8", "i64", "f64", "d38", "date", "ts", "ntz", "text", "bytes", "lists"]
    theirs = polars.read_delta(uri).select(plain).to_arrow()
    nasty.same(theirs.cast(want.select(plain).schema), want.select(plain))


def test_iceberg_read_by_polars(uri, nasty):
    polars = pytest.importorskip("polars")
    _, want = history_of_changes(uri, "iceberg", nasty.iceberg)
    plain = ["id", "bool", "i64", "f64", "d38", "date", "ts", "ntz", "text", "bytes", "lists"]
    newest = static(uri).metadata_location
    theirs = polars.scan_iceberg(newest).select(plain).collect().to_arrow()
    nasty.same(theirs.cast(want.select(plain).schema), want.select(plain))


# Theirs, changed by them, read by us.


def test_delta_of_deltalake(uri, nasty):
    data = nasty.delta()
    deltalake.write_deltalake(uri, data, partition_by=["i16"])
    nasty.same(bh.open(uri).to_arrow().select(data.column_names), data)
    nasty.same(bh.open(uri).to_arrow(), by_datafusion(uri, ", ".join(f'"{n}"' for n in bh.open(uri).schema.names)))
    theirs = deltalake.DeltaTable(uri)
    deltalake.write_deltalake(theirs, nasty.delta(start=100), mode="append")
    theirs = deltalake.DeltaTable(uri)
    theirs.delete("id % 5 = 3")
    theirs.update(updates={"text": "'🚣 changed'", "i64": "-9223372036854775808"}, predicate="id % 7 = 1")
    source = nasty.delta(start=105)
    theirs.merge(source, "s.id = t.id", source_alias="s", target_alias="t").when_matched_update(
        {"d38": "s.d38", "f64": "s.f64"}
    ).when_not_matched_insert_all().execute()
    ours = bh.open(uri).to_arrow()
    names = ", ".join(f'"{n}"' for n in ours.column_names)
    assert ours.num_rows == len({*ours.column("id").to_pylist()}) > 28
    nasty.same(by_datafusion(uri, names), ours)
    theirs = deltalake.DeltaTable(uri)
    theirs.optimize.compact()
    theirs.create_checkpoint()
    nasty.same(bh.open(uri).to_arrow(), ours)
    # And a commit of ours on top of their checkpoint, seen by them.
    table = bh.open(uri)
    table.delete("id = 100")
    table.append(nasty.delta(start=500))
    nasty.same(by_datafusion(uri, names), table.to_arrow())
    theirs = deltalake.DeltaTable(uri)
    deltalake.write_deltalake(theirs, nasty.delta(start=900), mode="append")
    theirs.delete("id BETWEEN 500 AND 510")
    nasty.same(by_datafusion(uri, names), bh.open(uri).to_arrow())


@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_values_of_deltalake(uri, kind, nasty):
    type_, values = nasty.partitions[kind]
    # deltalake cannot write negative fractions ("-2342342.-2342300000"), nor the folder `p=..`.
    values = [v for v in values if v not in ("", "..") and not (isinstance(v, Decimal) and v < 0)]
    data = pa.table({"id": range(len(values) + 1), "p": pa.array([*values, None], type_)})
    deltalake.write_deltalake(uri, data, partition_by=["p"])
    nasty.same(bh.open(uri).to_arrow(), data)
    table = bh.open(uri)
    table.append(data.set_column(0, "id", pa.array(range(100, 101 + len(values)))))
    for value in data.column("p").to_pylist():
        assert table.scan(["id"], _equals(value)).count() == 2, value


@pytest.fixture
def catalog(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    found = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    found.create_namespace("n")
    return found


def opened(theirs):
    return bh.open(theirs.metadata_location)


def test_iceberg_of_pyiceberg(catalog, nasty):
    from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

    def make(start=0):
        return nasty.iceberg(start=start).drop_columns(LOST["iceberg"])

    data = make()
    theirs = catalog.create_table("n.t", schema=data.schema)
    theirs.append(data)
    nasty.same(opened(theirs).to_arrow(), data)
    with theirs.update_spec() as update:
        update.add_field("i32", IdentityTransform(), "i32_part")
        update.add_field("text", TruncateTransform(2), "text_part")
    theirs.append(make(100))
    theirs.delete("id = 3 or id = 104")
    with theirs.update_schema() as update:
        update.rename_column("text", "Ünï text")
        update.add_column("later", pyiceberg_type("string"))
        update.add_column(("known_lists", "new"), pyiceberg_type("long"))
        update.delete_column("bool")
        update.move_first("d38")
    with theirs.update_spec() as update:
        update.remove_field("i32_part")
        update.add_field("id", BucketTransform(3), "id_part")
    again = theirs.scan(row_filter="id >= 110").to_arrow()
    theirs.append(again.set_column(again.schema.get_field_index("id"), "id", pc.add(again.column("id"), 1000)))
    theirs.overwrite(theirs.scan(row_filter="id = 5").to_arrow(), overwrite_filter="id = 5 or id = 6")
    ours = opened(theirs).to_arrow()
    want = theirs.scan().to_arrow()
    assert ours.num_rows == 28 - 2 - 1 + 4
    nasty.same(ours, want)
    for where in ("id > 105", "`Ünï text` = 'größe'", "later is null and i32 < 0"):
        assert (
            opened(theirs).scan(["id"], where).count()
            == theirs.scan(row_filter=where.replace("`", '"'), selected_fields=("id",)).count()
        )


def test_iceberg_upsert_of_pyiceberg(catalog, nasty):
    data = nasty.iceberg().select(["id", "i32", "i64", "d38", "date", "ts", "text"])
    theirs = catalog.create_table("n.t", schema=data.schema)
    theirs.append(data)
    theirs.upsert(nasty.iceberg(start=7).select(data.column_names), join_cols=["id"])
    nasty.same(opened(theirs).to_arrow(), theirs.scan().to_arrow())
    assert opened(theirs).count() == 21


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", PARTITIONS)
def test_partition_values_of_pyiceberg(catalog, kind, nasty):
    from pyiceberg.transforms import IdentityTransform

    type_, values = nasty.partitions[kind]
    data = pa.table({"id": range(len(values) + 1), "p": pa.array([*values, None], type_)})
    theirs = catalog.create_table("n.t", schema=data.schema)
    with theirs.update_spec() as update:
        update.add_field("p", IdentityTransform(), "p")
    theirs.append(data)
    nasty.same(opened(theirs).to_arrow(), data)
    for value in data.column("p").to_pylist():
        assert opened(theirs).scan(["id"], _equals(value)).count() == 1, value


def pyiceberg_type(name):
    from pyiceberg import types

    return {"string": types.StringType(), "long": types.LongType()}[name]


def test_lance_of_ours_in_the_hands_of_pylance(uri, nasty):
    table, want = history_of_changes(uri, "lance", nasty.lance)
    theirs = lance.dataset(uri)
    theirs.validate()
    picked = theirs.take([0, 5, 17])
    assert nasty.values(picked.column("id")) == [nasty.values(theirs.to_table().column("id"))[i] for i in (0, 5, 17)]
    nasty.same(
        theirs.to_table(filter="id > 101 AND text IS NULL"), table.scan(None, "id > 101 AND text IS NULL").to_arrow()
    )
    lance.write_dataset(nasty.lance(start=300), uri, mode="append")
    lance.dataset(uri).delete("id IN (301, 101)")
    lance.dataset(uri).optimize.compact_files()
    after = pa.concat_tables([want, nasty.lance(start=300)])
    after = after.filter(pc.invert(pc.is_in(after.column("id"), pa.array([301, 101]))))
    nasty.same(bh.open(uri).to_arrow(), after)
    nasty.same(by_pylance(uri), after)
    bh.open(uri).append(nasty.lance(start=400))
    nasty.same(by_pylance(uri), pa.concat_tables([after, nasty.lance(start=400)]))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_lance_of_pylance(uri, version, nasty):
    whole = nasty.lance()
    # Maps came with files of version 2.2, null structs with 2.1.
    data = whole if version == "2.2" else whole.drop_columns(["deep"])
    lance.write_dataset(data, uri, data_storage_version=version, max_rows_per_file=5)
    nasty.same(bh.open(uri).to_arrow(), data)
    theirs = lance.dataset(uri)
    theirs.update({"text": "'🚣'"}, where="id < 3")
    changed = data.take([3, 4, 5, 6]).set_column(
        data.schema.get_field_index("i64"), data.schema.field("i64"), pa.array([-1] * 4)
    )
    more = pa.concat_tables([changed, data.take([0, 1]).set_column(0, data.schema.field(0), pa.array([900, 901]))])
    theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(more)
    theirs = lance.dataset(uri)
    theirs.delete("id = 6")
    theirs.add_columns({"twice": "id * 2"})
    theirs.drop_columns(["i16"])
    theirs.alter_columns({"path": "bytes", "name": "renamed 🚣"})
    nasty.same(bh.open(uri).to_arrow(), by_pylance(uri))
    lance.dataset(uri).optimize.compact_files()
    assert bh.open(uri).count() == 15
    nasty.same(bh.open(uri).to_arrow(), by_pylance(uri))


@pytest.mark.spark
@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
@pytest.mark.route("every type")
def test_through_spark(uri, format, nasty, spark):
    """What Spark has a type for; the others are refused by the column's name."""
    _, want = history_of_changes(uri, format, getattr(nasty, format))
    foreign = [n for n in want.column_names if n in ("time", "t32", "t64", "d76", "ts_ns")]
    if "d76" in foreign:
        with pytest.raises(UnsupportedTypeError, match="`d76`"):
            bh.open(uri).to_spark(spark)
    for name in (n for n in foreign if n != "d76"):
        found = bh.open(uri).scan(["id", name]).to_spark(spark).toArrow().sort_by("id")
        expected = want.select(["id", name]).sort_by("id")[name]
        assert found[name].to_pylist() == expected.cast(pa.int64() if name == "ts_ns" else pa.string()).to_pylist()
    # Spans of seconds and nanoseconds, and times of seconds, change their unit in Spark; its own names differ.
    shown = [n for n in want.column_names if n not in foreign and not n.startswith(("span_", "ts_"))]
    frame = bh.open(uri).scan(shown).to_spark(spark)
    assert frame.count() == want.num_rows
    # uint64 is decimal(20, 0) on Spark.
    nasty.same(frame.toArrow(), want.select(shown), but=("u64",))
