"""Lists of a fixed size inside structs, lists, maps and each other: written in slices and batches, read by others."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import UnsupportedTypeError

deltalake = pytest.importorskip("deltalake")
pyiceberg = pytest.importorskip("pyiceberg.table")
lance = pytest.importorskip("lance")

V, F = pa.list_(pa.int32(), 2), pa.list_(pa.float32(), 3)
STRUCT = pa.struct([("v", V), ("x", pa.int64())])
KINDS = {
    "vector": V,
    "of one": pa.list_(pa.int64(), 1),
    "of many": pa.list_(pa.float64(), 700),
    "of bools": pa.list_(pa.bool_(), 9),
    "of days": pa.list_(pa.date32(), 2),
    "of instants": pa.list_(pa.timestamp("us", "UTC"), 2),
    "in a struct": STRUCT,
    "in structs": pa.struct([("s", pa.struct([("f", F), ("v", V)])), ("t", pa.string())]),
    "in a list": pa.list_(V),
    "in lists": pa.list_(pa.list_(F)),
    "in a vector": pa.list_(V, 3),
    "in vectors": pa.list_(pa.list_(F, 1), 2),
    "in a list of vectors": pa.list_(pa.list_(V, 2)),
    "in a list of structs": pa.list_(STRUCT),
    "in a struct of lists": pa.struct([("l", pa.list_(V)), ("w", pa.list_(F, 2))]),
    "in a map": pa.map_(pa.string(), V),
    "in a map of structs": pa.map_(pa.string(), pa.struct([("w", pa.list_(V, 2))])),
}


def value(kind: pa.DataType, source: random.Random, nulls: float, required: bool = False) -> Any:
    t = pa.types
    if not required and source.random() < nulls:
        return None
    if t.is_fixed_size_list(kind):
        return [value(kind.value_type, source, nulls) for _ in range(kind.list_size)]
    if t.is_map(kind):
        return [(f"k{i}", value(kind.item_type, source, nulls)) for i in range(source.randrange(4))]
    if t.is_list(kind):
        return [value(kind.value_type, source, nulls) for _ in range(source.randrange(4))]
    if t.is_struct(kind):
        return {f.name: value(f.type, source, nulls) for f in kind}
    if t.is_boolean(kind):
        return source.random() < 0.5
    if t.is_string(kind):
        return f"text {source.randrange(9)}"
    return source.randrange(-9, 9) if t.is_integer(kind) else number(kind, source)


def number(kind: pa.DataType, source: random.Random) -> Any:
    whole = source.randrange(20_000)
    return (
        whole / 4
        if pa.types.is_floating(kind)
        else pa.scalar(whole, pa.int32())
        .cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
        .cast(kind)
        .as_py()
    )


def rows(kind: pa.DataType, count: int, nulls: float) -> pa.Table:
    source = random.Random(f"{kind} {count} {nulls}")
    made = [value(kind, source, nulls) for _ in range(count)]
    if nulls and count > 40:  # long runs of nulls, and none
        made[10:30] = [None] * 20
    return pa.table({"k": range(count), "c": pa.array(made, kind)})


def batches(table: pa.Table) -> pa.RecordBatchReader:
    """The table in uneven slices of its arrays, with empty ones among them."""
    (whole,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    cuts = [0, 0, 1, 1, 8, len(table) // 2, len(table) // 2, len(table)]
    parts = [whole.slice(a, b - a) for a, b in itertools.pairwise(cuts) if b >= a]
    return pa.RecordBatchReader.from_batches(table.schema, [whole.slice(0, 0), *parts, whole.slice(len(whole))])


def by_delta_rs(uri: str) -> pa.Table:
    return pa.table(deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select * from t"))


def by_pyiceberg(uri: str) -> pa.Table:
    return pyiceberg.StaticTable.from_metadata(bh.open(uri).detail()["metadata"]).scan().to_arrow()


READERS = {"delta": by_delta_rs, "iceberg": by_pyiceberg, "lance": lambda uri: lance.dataset(uri).to_table()}


def of_lists(kind: pa.DataType) -> pa.DataType:
    """The type with lists of any length instead."""
    t = pa.types
    if t.is_fixed_size_list(kind) or t.is_list(kind):
        return pa.list_(of_lists(kind.value_type))
    if t.is_map(kind):
        return pa.map_(kind.key_type, of_lists(kind.item_type))
    return pa.struct([(f.name, of_lists(f.type)) for f in kind]) if t.is_struct(kind) else kind


def create(uri: str, format: str, data: pa.Table) -> None:
    """An empty table for the rows; Delta and Iceberg have only lists of any length, and say so."""
    schema = data.schema
    if format != "lance":
        with pytest.raises(UnsupportedTypeError, match="vector<"):
            bh.create(uri, schema, format=format)
        schema = pa.schema([(f.name, of_lists(f.type)) for f in schema])
    bh.create(uri, schema, format=format)


def sorted_rows(table: pa.Table) -> list[Any]:
    return sorted(table.to_pylist(), key=in_order)


def in_order(row: dict[str, Any]) -> tuple[int, str]:
    return row["k"], str(row["c"])


def as_read(format: str, name: str, rows: list[Any]) -> list[Any]:
    """The rows as the other reader gives them: pyiceberg makes null lists and maps of structs empty, its own too."""
    if format != "iceberg" or name not in ("in a list of structs", "in a map of structs"):
        return rows
    return [{**r, "c": r["c"] or []} for r in rows]


def held_by_pylance(table: pa.Table, uri: str) -> None:
    """Skips what pylance does not write, or does not read when it wrote it."""
    try:
        found = lance.write_dataset(table, uri, data_storage_version="2.2").to_table()
    except BaseException as error:  # its panics are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        pytest.skip(f"pylance: {str(error)[:80]}")
    if found.to_pylist() != table.to_pylist():
        pytest.skip("pylance reads other values than it was given")


@pytest.mark.few(14)
@pytest.mark.parametrize("nulls", [pytest.param(0.0, marks=pytest.mark.slow), 0.25])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("format", READERS)
def test_written_and_read(tmp_path, format, name, nulls):
    uri, data = str(tmp_path / "t"), rows(KINDS[name], 300, nulls)
    if format == "lance":
        held_by_pylance(data, str(tmp_path / "theirs"))
        assert bh.open(str(tmp_path / "theirs")).to_arrow().to_pylist() == data.to_pylist()
    create(uri, format, data)
    bh.open(uri).append(batches(data.slice(3, 200)))
    bh.open(uri).append(data.slice(203))
    bh.open(uri).append(data.slice(0, 3))
    found = bh.open(uri).to_arrow()
    found.validate(full=True)
    assert sorted_rows(found) == data.to_pylist()
    assert sorted_rows(READERS[format](uri)) == as_read(format, name, data.to_pylist())
    some = bh.open(uri).scan(["c", "k"], where="k % 7 = 2 AND c IS NOT NULL").to_arrow()
    want = [r for r in data.to_pylist() if r["k"] % 7 == 2 and r["c"] is not None]
    assert sorted_rows(some) == want


@pytest.mark.few(12)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("format", READERS)
def test_changed(tmp_path, format, name):
    """Rows deleted and updated, and the files rewritten."""
    uri, data = str(tmp_path / "t"), rows(KINDS[name], 120, 0.25)
    if format == "lance":
        held_by_pylance(data, str(tmp_path / "theirs"))
    create(uri, format, data)
    bh.open(uri).append(batches(data))
    bh.open(uri).append(data.slice(40, 30))
    table = bh.open(uri)
    table.delete("k % 5 = 1")
    table = bh.open(uri)
    table.update({"k": "k + 1000"}, where="k % 4 = 0")
    want = [r for r in [*data.to_pylist(), *data.slice(40, 30).to_pylist()] if r["k"] % 5 != 1]
    want = [{**r, "k": r["k"] + 1000 * (r["k"] % 4 == 0)} for r in want]
    want.sort(key=in_order)
    assert sorted_rows(bh.open(uri).to_arrow()) == want
    bh.open(uri).optimize()
    assert sorted_rows(bh.open(uri).to_arrow()) == want
    assert sorted_rows(READERS[format](uri)) == sorted(as_read(format, name, want), key=in_order)


@pytest.mark.spark
@pytest.mark.parametrize("format", READERS)
def test_on_spark(spark, tmp_path, format):
    """Every kind as a column: read on Spark, and Spark's rows written back."""
    uri, count = str(tmp_path / "t"), 60
    columns = {f"c{i}": rows(kind, count, 0.25)["c"] for i, kind in enumerate(KINDS.values())}
    data = pa.table({"k": range(count), **columns})
    create(uri, format, data)
    bh.open(uri).append(batches(data))
    frame = bh.open(uri, spark=spark).to_spark(spark)
    assert frame.orderBy("k").toArrow().to_pylist() == data.to_pylist()
    bh.open(uri, spark=spark).append(frame.where("k % 3 = 1").coalesce(2))
    want = sorted([*data.to_pylist(), *(r for r in data.to_pylist() if r["k"] % 3 == 1)], key=lambda r: r["k"])
    assert sorted(bh.open(uri).to_arrow().to_pylist(), key=lambda r: r["k"]) == want
    bh.open(uri, spark=spark).delete("k % 4 = 2")
    want = [r for r in want if r["k"] % 4 != 2]
    assert bh.open(uri, spark=spark).to_spark(spark).orderBy("k").toArrow().to_pylist() == want
    if format == "lance":
        assert sorted(lance.dataset(uri).to_table().to_pylist(), key=lambda r: r["k"]) == want
