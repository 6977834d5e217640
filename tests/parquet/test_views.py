"""Files whose Arrow schema declares views: columns are the same, whatever the layout."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.schema import from_arrow_field
from boathouse.bits.roaring import Bitmap
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.parquet import read as reading
from boathouse.parquet.read import SourceColumn, scan_file
from boathouse.parquet.source import open_source
from boathouse.parquet.views import has_views, without_views
from boathouse.types import FixedSizeListType, ListType, Schema

S, B, INT = pa.string_view(), pa.binary_view(), pa.int64()
LONG = "of more than twelve bytes"
COLUMNS = {
    "string": pa.array(["a", None, LONG, ""] * 5, S),
    "binary": pa.array([b"a", None, LONG.encode(), b""] * 5, B),
    "list of strings": pa.array([["a", None], None, [], [LONG]] * 5, pa.list_(S)),
    "large list": pa.array([["a", None], None, [], [LONG]] * 5, pa.large_list(S)),
    "fixed-size list": pa.array([["a", None], None, ["b", LONG], ["", ""]] * 5, pa.list_(S, 2)),
    "list view": pa.array([[1, None], None, [], [2]] * 5, pa.list_view(INT)),
    "large list view": pa.array([["a", None], None, [], [LONG]] * 5, pa.large_list_view(S)),
    "struct": pa.array([{"x": "a", "y": 1}, None, {"x": None, "y": None}, {"x": LONG, "y": 2}] * 5,
                       pa.struct([("x", S), ("y", INT)])),
    "map": pa.array([[("a", LONG)], None, [], [("b", None)]] * 5, pa.map_(S, S)),
    "deep": pa.array([[[("a", {"x": [LONG]})], None], None, [], [[("b", {"x": None})]]] * 5,
                     pa.list_view(pa.map_(S, pa.struct([("x", pa.large_list_view(S))])))),
}  # fmt: skip


def written(path, column):
    """Row groups of 7 rows, made one by one: Arrow cannot slice views in structs when it writes."""
    schema = pa.schema([("i", INT), ("c", column.type)])
    rows = pa.table({"i": pa.array(range(20), INT), "c": column}).to_pylist()
    with pq.ParquetWriter(path, schema) as out:
        for start in (0, 7, 14):
            out.write_table(pa.Table.from_pylist(rows[start : start + 7], schema))
    return str(path)


def as_list(field):
    """No table of Parquet files has vectors."""
    vector = isinstance(field.type, FixedSizeListType)
    return replace(field, type=ListType(field.type.element)) if vector else field


def scanned(files, path, where=None, **options):
    schema = pq.read_schema(path)
    fields = [as_list(from_arrow_field(f)) for f in schema]
    bound = None if where is None else bind_predicate(parse(where), Schema(tuple(fields)))
    columns = [SourceColumn(f.name, f.type) for f in fields]
    batches = list(scan_file(files, path, columns, row_filter=bound, **options))
    assert not any(has_views(t) for b in batches for t in b.schema.types)
    for batch in batches:
        batch.validate(full=True)
    return [row for b in batches for row in b.to_pylist()]


OLD = int(pa.__version__.split(".")[0]) < 26


@pytest.mark.parametrize("name", COLUMNS)
def test_every_way_through_a_file(files, tmp_path, name, monkeypatch):
    column = COLUMNS[name]
    try:
        path = written(tmp_path / "f.parquet", column)
        assert has_views(pq.read_schema(path).field("c").type)
    except (AssertionError, pa.ArrowNotImplementedError):
        if OLD:
            pytest.skip("this pyarrow writes no such views")
        raise
    expected = pa.table({"i": range(20), "c": column}).to_pylist()
    for stream in (reading._STREAM_BYTES, 1):
        monkeypatch.setattr(reading, "_STREAM_BYTES", stream)
        assert scanned(files, path) == expected
        assert scanned(files, path, deleted=Bitmap.of([0, 9, 19])) == [r for r in expected if r["i"] not in (0, 9, 19)]
        assert scanned(files, path, where="i % 3 = 1") == [r for r in expected if r["i"] % 3 == 1]
        assert scanned(files, path, where="c IS NULL") == [r for r in expected if r["c"] is None]
    assert bh.read_parquet(path, where="i % 3 = 1").to_pylist() == [r for r in expected if r["i"] % 3 == 1]


@pytest.mark.parametrize("name", COLUMNS)
def test_types(name):
    """Every other part of a type stays: names, nullability, metadata, sizes."""
    type = COLUMNS[name].type
    plain = without_views(type)
    assert not has_views(plain)
    assert from_arrow_field(pa.field("c", plain)) == from_arrow_field(pa.field("c", type))
    marked = pa.struct([pa.field("n", type, nullable=False, metadata={"PARQUET:field_id": "7"})])
    child = without_views(marked).field(0)
    assert (child.name, child.nullable, child.metadata) == ("n", False, {b"PARQUET:field_id": b"7"})
    assert without_views(pa.map_(pa.string(), S, keys_sorted=True)).keys_sorted


def test_conditions_on_views(files, tmp_path):
    path = written(tmp_path / "f.parquet", COLUMNS["string"])
    assert [r["i"] for r in scanned(files, path, where=f"c = '{LONG}'")] == [2, 6, 10, 14, 18]
    assert [r["i"] for r in scanned(files, path, where="c < 'b' AND i > 7")] == [8, 11, 12, 15, 16, 19]
    path = written(tmp_path / "g.parquet", COLUMNS["struct"])
    assert [r["i"] for r in scanned(files, path, where=f"c.x >= '{LONG}'")] == [2 + 4 * i + 1 for i in range(5)]


def test_repetitive_strings(files, tmp_path):
    """Files of this size are read through dictionaries, of which Arrow knows none of views."""
    words = [f"word {i % 5}" for i in range(1 << 17)]
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": pa.array(words, S), "d": pa.array(words)}), path)
    found = scanned(files, path, where="c = 'word 3'")
    assert len(found) == len(words) // 5 and all(r["c"] == r["d"] == "word 3" for r in found)


def test_other_files_are_untouched(files, tmp_path):
    path = str(tmp_path / "f.parquet")
    pq.write_table(pa.table({"c": ["a"], "d": [["b"]]}), path)
    source = open_source(files, path)
    assert not source.views
    source.close()
