"""Columns found by id and by name, at every level, in files by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from boathouse.errors import CorruptTableError, SchemaMismatchError
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import SourceColumn, output_schema, scan_file
from boathouse.types import BINARY, DATE, DOUBLE, INT32, INT64, NULL, STRING, Field, ListType, MapType, StructType


def pf(name: str, type: pa.DataType, id: int | None = None, nullable: bool = True) -> pa.Field:
    return pa.field(name, type, nullable, {"PARQUET:field_id": str(id)} if id is not None else None)


def read(files: Any, path: Path, columns: list[SourceColumn], **options: Any) -> list[dict[str, Any]]:
    schema = output_schema(columns, options.get("positions", False))
    batches = list(scan_file(files, str(path), columns, **options))
    assert all(b.schema == schema for b in batches), (batches[0].schema, schema)
    for b in batches:
        b.validate(full=True)
    return pa.Table.from_batches(batches, schema).to_pylist()


@pytest.fixture
def with_ids(tmp_path: Path) -> Path:
    inner = pa.struct([pf("x", pa.int32(), 21), pf("y", pa.string(), 22)])
    schema = pa.schema(
        [
            pf("a", pa.int32(), 1),
            pf("b", pa.int32(), 2),
            pf("st", pa.struct([pf("p", pa.int32(), 3), pf("q", pa.int32(), 4)]), 5),
            pf("li", pa.list_(pf("element", inner, 20)), 6),
            pf("ma", pa.map_(pf("key", pa.string(), 30, False), pf("value", inner, 31)), 7),
        ]
    )
    rows = [
        {"a": 1, "b": 10, "st": {"p": 1, "q": 2}, "li": [{"x": 1, "y": "s"}, None], "ma": {"k": {"x": 5, "y": "t"}}},
        {"a": 2, "b": 20, "st": None, "li": None, "ma": None},
        {"a": None, "b": 30, "st": {"p": None, "q": 4}, "li": [], "ma": {}},
        {"a": 4, "b": None, "st": {"p": 5, "q": 6}, "li": [{"x": None, "y": "u"}], "ma": {"k": None, "l": {"x": 7}}},
    ]
    path = tmp_path / "ids.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=2, store_schema=False)
    return path


def test_swapped_names_are_told_apart_by_id(files: Any, with_ids: Path) -> None:
    columns = [SourceColumn("b", INT32, None, 1), SourceColumn("a", INT64, None, 2), SourceColumn("c", INT32, None, 99)]
    assert read(files, with_ids, columns) == [
        {"b": 1, "a": 10, "c": None},
        {"b": 2, "a": 20, "c": None},
        {"b": None, "a": 30, "c": None},
        {"b": 4, "a": None, "c": None},
    ]


def test_nested_fields_by_id(files: Any, with_ids: Path) -> None:
    swapped = StructType((Field("p", INT32, id=4), Field("new", STRING, id=77), Field("q", INT64, id=3)))
    item = StructType((Field("why", STRING, id=22), Field("void", NULL, id=78)))
    columns = [
        SourceColumn("st", swapped, None, 5),
        SourceColumn("li", ListType(Field("element", item, id=20)), None, 6),
        SourceColumn("ma", MapType(Field("key", STRING, False, 30), Field("value", item, id=31)), None, 7),
    ]
    assert read(files, with_ids, columns) == [
        {
            "st": {"p": 2, "new": None, "q": 1},
            "li": [{"why": "s", "void": None}, None],
            "ma": [("k", {"why": "t", "void": None})],
        },
        {"st": None, "li": None, "ma": None},
        {"st": {"p": 4, "new": None, "q": None}, "li": [], "ma": []},
        {
            "st": {"p": 6, "new": None, "q": 5},
            "li": [{"why": "u", "void": None}],
            "ma": [("k", None), ("l", {"why": None, "void": None})],
        },
    ]


def test_a_struct_without_any_known_field_keeps_its_nulls(files: Any, with_ids: Path) -> None:
    added = StructType((Field("n", INT32, id=90),))
    columns = [
        SourceColumn("st", added, None, 5),
        SourceColumn("li", ListType(Field("element", added, id=20)), None, 6),
    ]
    assert read(files, with_ids, columns) == [
        {"st": {"n": None}, "li": [{"n": None}, None]},
        {"st": None, "li": None},
        {"st": {"n": None}, "li": []},
        {"st": {"n": None}, "li": [{"n": None}]},
    ]


def test_a_nested_leaf_as_a_column(files: Any, with_ids: Path) -> None:
    by_id = [SourceColumn("q", INT32, None, 4), SourceColumn("p", INT32, None, 3)]
    by_path = [SourceColumn("q", INT32, ("st", "q")), SourceColumn("p", INT32, ("st", "p"))]
    for columns in (by_id, by_path):
        assert [(r["q"], r["p"]) for r in read(files, with_ids, columns)] == [(2, 1), (None, None), (4, None), (6, 5)]


def test_one_physical_column_twice(files: Any, with_ids: Path) -> None:
    p = StructType((Field("p", INT32),))
    q = StructType((Field("q", INT32),))
    rows = read(files, with_ids, [SourceColumn("one", p, ("st",)), SourceColumn("two", q, ("st",))])
    assert [r["two"] for r in rows] == [{"q": 2}, None, {"q": 4}, {"q": 6}]
    assert [r["one"] for r in rows] == [{"p": 1}, None, {"p": None}, {"p": 5}]


def test_defaults(files: Any, with_ids: Path) -> None:
    rows = read(files, with_ids, [SourceColumn("z", STRING, None, 50, "hi"), SourceColumn("y", INT64, ("y",), None, 7)])
    assert rows == [{"z": "hi", "y": 7}] * 4
    nested = StructType((Field("p", INT32, id=3), Field("new", INT32, id=60)))
    matching = Matching(default=_nine)
    rows = read(files, with_ids, [SourceColumn("st", nested, None, 5)], matching=matching)
    assert [r["st"] for r in rows] == [{"p": 1, "new": 9}, None, {"p": None, "new": 9}, {"p": 5, "new": 9}]


def _nine(field: Field) -> object:
    return 9


def test_names_exactly_then_ignoring_case(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "case.parquet"
    pq.write_table(pa.table({"Ab": [1], "aB": [2], "C.d": [3], "E": [4]}), path)
    assert read(files, path, [SourceColumn("aB", INT64), SourceColumn("e", INT64), SourceColumn("C.d", INT64)]) == [
        {"aB": 2, "e": 4, "C.d": 3}
    ]
    with pytest.raises(SchemaMismatchError, match="ambiguous") as caught:
        read(files, path, [SourceColumn("ab", INT64)])
    assert caught.value.where == str(path)


def test_names_with_dots_do_not_mix_with_nested_ones(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "dots.parquet"
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}]}), path)
    assert read(files, path, [SourceColumn("x", INT64, ("a.b",)), SourceColumn("y", INT64, ("a", "b"))]) == [
        {"x": 1, "y": 2}
    ]


def test_physical_names_below_the_top(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "physical.parquet"
    pq.write_table(pa.table({"col-1": [{"col-2": 5, "col-3": 6}]}), path)
    type = StructType((Field("b", INT64, metadata={"p": "col-3"}), Field("a", INT64, metadata={"p": "col-2"})))
    rows = read(files, path, [SourceColumn("s", type, ("col-1",))], matching=Matching(physical_name=_physical))
    assert rows == [{"s": {"b": 6, "a": 5}}]


def _physical(field: Field) -> str:
    return str(field.metadata["p"])


@pytest.mark.spec("D-183")
def test_a_file_without_ids(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    pq.write_table(pa.table({"old": [1, 2], "st": [{"n": 1}, {"n": 2}]}), path)
    nested = StructType((Field("m", INT64, id=12),))
    columns = [SourceColumn("new", INT64, None, 1), SourceColumn("st", nested, None, 2)]
    with pytest.raises(CorruptTableError, match="no ids") as caught:
        read(files, path, columns)
    assert caught.value.where == str(path)
    assert read(files, path, columns, matching=Matching(file_ids=_mapping)) == [
        {"new": 1, "st": {"m": 1}},
        {"new": 2, "st": {"m": 2}},
    ]
    assert read(files, path, [SourceColumn("x", INT64, ("old",), 1)]) == [{"x": 1}, {"x": 2}]


def _mapping(path: tuple[str, ...]) -> int | None:
    return {("old",): 1, ("st",): 2, ("st", "n"): 12}.get(path)


def test_types_that_do_not_fit_are_refused_with_names(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"s": ["x"], "n": [{"a": 1}], "d": [1.5]}), path)
    for name, type in (
        ("s", INT32),
        ("n", INT64),
        ("s", ListType(Field("element", STRING))),
        ("d", INT64),
        ("s", DATE),
    ):
        with pytest.raises(SchemaMismatchError) as caught:
            read(files, path, [SourceColumn(name, type)])
        assert f"`{name}`" in caught.value.message
        assert caught.value.where == str(path)
    with pytest.raises(SchemaMismatchError):
        read(files, path, [SourceColumn("n", StructType((Field("a", BINARY),)))])
    with pytest.raises(SchemaMismatchError):
        read(files, path, [SourceColumn("n", StructType((Field("a", ListType(Field("element", DOUBLE))),)))])
