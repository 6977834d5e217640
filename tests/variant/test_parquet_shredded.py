"""Shredded variant files: written at every depth, read whole and by path, pruned by what their statistics say."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.arrow.filesystem import NativeFiles
from boathouse.arrow.schema import MARK, VARIANT_STORAGE, to_arrow
from boathouse.compute.evaluate import mask
from boathouse.errors import (
    ColumnNotFoundError,
    EvaluationError,
    InvalidArgumentError,
    MalformedVariant,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.parquet import read as parquet_read
from boathouse.parquet.resolve import SourceColumn
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.write import ParquetWriter
from boathouse.parquet.written_stats import StatsCollector
from boathouse.parquet_files import write as file_writing
from boathouse.storage import StorageOptions
from boathouse.types import INT64, STRING, VARIANT, Field, ListType, Schema
from boathouse.variant import Variant, parse_metadata, shredding_schema, unshred
from boathouse.variant import shred as shredded_by
from boathouse.variant.shredding.get import get
from makers import variants as gen

FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
EVENTS = [
    {"id": i, "type": "push" if i % 3 else "pull", "actor": {"login": f"u{i % 5}", "age": i / 2},
     "tags": ["a", "b"][: i % 3]}
    for i in range(40)
]  # fmt: skip
ODD: list[Any] = [..., None, 5, "text", [1, 2], {}, {"id": "12"}, {"id": None, "actor": 7}, {"other": 1, "id": 99},
       {"actor": {"login": None, "x": [1]}, "tags": "no"}]  # fmt: skip
VALUES = EVENTS[:20] + ODD
SHREDS = [
    None,
    "struct<id:tinyint,type:string,actor:struct<login:string,age:double>,tags:array<string>>",
    "struct<id:bigint,actor:struct<login:string>>",
    "struct<actor:string,tags:struct<x:int>,other:int>",
    "array<bigint>",
    "string",
    "struct<id:decimal(9,2),type:int>",
]


def variant_of(value: Any) -> Variant | None:
    return None if value is ... else value if isinstance(value, Variant) else Variant.from_python(value)


def column(values: list[Any]) -> pa.Array:
    made = [variant_of(v) for v in values]
    return pa.array([None if v is None else {"metadata": v.metadata, "value": v.value} for v in made], VARIANT_STORAGE)


def variants(array: Any) -> list[Variant | None]:
    return [None if r is None else Variant(r["metadata"], r["value"]) for r in array.to_pylist()]


def write(path: Path, values: list[Any], shred: Any = None, **options: Any) -> Path:
    schema = pa.schema([pa.field("k", pa.int64()), FIELD])
    table = pa.table([pa.array(range(len(values)), pa.int64()), column(values)], schema=schema)
    bh.write_parquet(table, path, shred=None if shred is None else {"v": shred}, **options)
    return path


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What a scan reads: the leaf columns of each read by their dotted paths, and the row groups kept of each file."""
    seen: dict[str, list[Any]] = {"leaves": [], "groups": []}
    read, kept = parquet_read._read, parquet_read._kept_groups

    def spy(source: Any, chunk: Any, leaves: tuple[int, ...], **how: Any) -> Any:
        seen["leaves"].append(tuple(source.metadata.schema.column(i).path for i in leaves))
        return read(source, chunk, leaves, **how)

    def spy_groups(*args: Any) -> list[int]:
        seen["groups"].append(kept(*args))
        return seen["groups"][-1]

    monkeypatch.setattr(parquet_read, "_read", spy)
    monkeypatch.setattr(parquet_read, "_kept_groups", spy_groups)
    return seen


def test_the_corpus_reads(corpora: Path) -> None:
    folder = corpora / "variant" / "shredded"
    cases = [c for c in json.loads((folder / "cases.json").read_text()) if "parquet_file" in c]
    assert len(cases) > 100
    for case in cases:
        if "error_message" in case:
            with pytest.raises(MalformedVariant):
                bh.read_parquet(folder / case["parquet_file"])
            continue
        got = variants(bh.read_parquet(folder / case["parquet_file"])["var"])
        for have, name in zip(got, case.get("variant_files") or [case["variant_file"]], strict=True):
            raw = b"" if name is None else (folder / name).read_bytes()
            size = parse_metadata(raw).size if raw else 0
            want = Variant(raw[:size], raw[size:]) if raw else None
            assert have == want, case["case_number"]
            assert (have and have.type) == (want and want.type), case["case_number"]


@pytest.mark.spec("V-001", "V-004", "V-071", "V-072")
def test_the_layout_that_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", VALUES, SHREDS[1])
    text = str(pq.ParquetFile(path).schema).replace(" field_id=-1", "")
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index("optional group v (Variant(1)) {")
    assert lines[start + 1 : start + 4] == [
        "required binary metadata;", "optional binary value;", "optional group typed_value {",
    ]  # fmt: skip
    for line in ("required group id {", "required group actor {", "required group tags {", "required group element {"):
        assert line in lines
    assert "optional group typed_value (List) {" in lines
    assert "repeated group list {" in lines


TYPES = {
    "boolean": ("boolean", "boolean typed_value"),
    "tinyint": ("int8", "int32 typed_value (Int(bitWidth=8, isSigned=true))"),
    "smallint": ("int16", "int32 typed_value (Int(bitWidth=16, isSigned=true))"), "int": ("int32", "int32 typed_value"),
    "bigint": ("int64", "int64 typed_value"), "float": ("float", "float typed_value"),
    "double": ("double", "double typed_value"),
    "decimal(9,2)": ("decimal4", "int32 typed_value (Decimal(precision=9, scale=2))"),
    "decimal(18,2)": ("decimal8", "int64 typed_value (Decimal(precision=18, scale=2))"),
    "decimal(38,2)": ("decimal16", "fixed_len_byte_array(16) typed_value (Decimal(precision=38, scale=2))"),
    "date": ("date", "int32 typed_value (Date)"),
    "time": ("time", "int64 typed_value (Time(isAdjustedToUTC=false, timeUnit=microseconds))"),
    "timestamp": ("timestamp", "int64 typed_value (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds,"),
    "timestamp_ntz": ("timestamp_ntz", "int64 typed_value (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds,"),
    "binary": ("binary", "binary typed_value;"), "string": ("string", "binary typed_value (String)"),
    "uuid": ("uuid", "fixed_len_byte_array(16) typed_value (UUID)"),
}  # fmt: skip


@pytest.mark.spec("V-069")
@pytest.mark.parametrize("type", TYPES)
def test_typed_columns_have_the_types_of_the_table(tmp_path: Path, type: str) -> None:
    kind, line = TYPES[type]
    exact = gen.scalars((kind,)).map(gen.encode)
    values: list[Any] = [5, None, ...]

    @settings(max_examples=20)
    @given(exact)
    def collect(v: Variant) -> None:
        values.append(v)

    collect()
    if kind.startswith("decimal"):
        values.append(gen.encode(gen.Tree(kind, (1234, 2))))
    path = write(tmp_path / "file.parquet", values, type)
    text = str(pq.ParquetFile(path).schema).replace(" field_id=-1", "")
    assert f"optional {line}" in text, text
    got = variants(bh.read_parquet(path)["v"])
    assert got == [variant_of(v) for v in values]
    assert [v and v.type for v in got] == [v if v is None else v.type for v in map(variant_of, values)]
    stored = pq.ParquetFile(path, arrow_extensions_enabled=False).read().column("v").combine_chunks()
    assert stored.field("typed_value").null_count < len(values)


@pytest.mark.spec("V-069")
@pytest.mark.parametrize("type", ["fixed(4)", "uint32", "map<string,int>", "time(9)", "decimal(39,2)"])
def test_other_types_are_refused(tmp_path: Path, type: str) -> None:
    with pytest.raises((UnsupportedTypeError, InvalidArgumentError)):
        write(tmp_path / "file.parquet", [1], type)
    assert not (tmp_path / "file.parquet").exists()


@pytest.mark.spec("V-005", "V-006", "V-081")
@pytest.mark.parametrize("shred", SHREDS[1:])
def test_every_depth_is_shredded_and_reads_back(tmp_path: Path, shred: str) -> None:
    v = column(VALUES)
    n = len(VALUES)
    parts = [pa.field("x", pa.int64()), FIELD]
    structs = pa.StructArray.from_arrays([pa.array(range(n)), v], fields=parts,
                                         mask=pa.array([i % 7 == 3 for i in range(n)]))  # fmt: skip
    offsets = pa.array([None if i % 5 == 2 else i for i in range(n + 1)], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, v, type=pa.list_(FIELD.with_name("element")))
    maps = pa.MapArray.from_arrays(offsets, pa.array([f"k{i}" for i in range(n)]), v,
                                   type=pa.map_(pa.string(), FIELD.with_name("value")))  # fmt: skip
    deep = pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", pa.struct(parts))))
    arrays = {"v": v, "plain": v, "struct": structs, "list": lists, "map": maps, "deep": deep}
    fields = [
        FIELD,
        FIELD.with_name("plain"),
        *(pa.field(k, arrays[k].type) for k in ("struct", "list", "map", "deep")),
    ]
    table = pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(fields))
    places = ["v", "struct.v", "list.element", "map.value", "deep.element.v"]
    path = tmp_path / "nested.parquet"
    bh.write_parquet(table, path, shred=dict.fromkeys(places, shred))
    text = str(pq.ParquetFile(path).schema)
    assert text.count("(Variant(1))") == 6
    assert pq.ParquetFile(path).schema_arrow.field("plain").type == VARIANT_STORAGE
    again = bh.read_parquet(path)

    def plain(value: Any) -> Any:
        if isinstance(value, dict) and "metadata" in value:
            found = Variant(value["metadata"], value["value"])
            return gen.tree_of(found)
        if isinstance(value, dict):
            return {k: plain(x) for k, x in value.items()}
        return [plain(x) for x in value] if isinstance(value, list | tuple) else value

    for name in arrays:
        assert plain(again[name].to_pylist()) == plain(table[name].to_pylist()), name


@pytest.mark.spec("V-079", "V-036")
def test_names_with_dots_empty_ones_and_those_that_differ_by_case(tmp_path: Path) -> None:
    values = [{"a.b": 1, "": "x", "a": {"b": 2}, "A": 3}, {"a": {"b": 5}}]
    path = write(tmp_path / "f.parquet", values, "struct<`a.b`:tinyint,a:struct<b:tinyint>,A:tinyint>")
    assert variants(bh.read_parquet(path)["v"]) == [variant_of(v) for v in values]
    wanted = {"d": "variant_get(v, '$[\"a.b\"]', 'int')", "e": "variant_get(v, '$[\"\"]', 'string')",
              "n": "variant_get(v, '$.a.b', 'int')", "u": "variant_get(v, '$.A', 'int')"}  # fmt: skip
    got = bh.read_parquet(path, columns=wanted).to_pydict()
    assert got == {"d": [1, None], "e": ["x", None], "n": [2, 5], "u": [3, None]}


CALLS = {
    "id": ("variant_get(v, '$.id', 'bigint')", "try_variant_get(v, '$.id', 'bigint')"),
    "login": ("variant_get(v, '$.actor.login', 'string')",) * 2,
    "tag": ("variant_get(v, '$.tags[0]', 'string')",) * 2,
    "actor": ("variant_get(v, '$.actor')",) * 2,
    "missing": ("variant_get(v, '$.nope.deep', 'int')",) * 2,
    "array": ("variant_get(v, '$[1]', 'bigint')",) * 2,
    "whole": ("to_json(v)",) * 2,
    "null": ("v IS NULL",) * 2,
    "vnull": ("is_variant_null(variant_get(v, '$.id'))",) * 2,
    "schema": ("schema_of_variant(v)",) * 2,
}


@pytest.mark.spec("V-078")
@pytest.mark.parametrize("shred", SHREDS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_a_path_gives_the_same_from_every_layout(tmp_path: Path, shred: Any, name: str) -> None:
    call = CALLS[name][1]
    plain = bh.read_parquet(write(tmp_path / "plain.parquet", VALUES), columns={"x": call})
    got = bh.read_parquet(write(tmp_path / "shredded.parquet", VALUES, shred), columns={"x": call})
    assert got.schema.equals(plain.schema)
    if pa.types.is_struct(got.schema.field("x").type):
        assert variants(got["x"]) == variants(plain["x"])
    else:
        assert got["x"].to_pylist() == plain["x"].to_pylist()


@pytest.mark.spec("V-078")
@pytest.mark.parametrize(
    ("columns", "where", "leaves"),
    [
        ({"x": "try_variant_get(v, '$.id', 'int')"}, None, ["id.value", "id.typed_value"]),
        ({"x": "variant_get(v, '$.actor.login', 'string')"}, None, ["actor.typed_value.login.value",
                                                                  "actor.typed_value.login.typed_value"]),
        ({"x": "variant_get(v, '$.other', 'int')"}, None, []),
        ({"x": "variant_get(v, '$.tags[1]', 'string')"}, None, ["tags.typed_value.list.element.value",
                                                              "tags.typed_value.list.element.typed_value"]),
        ({"x": "variant_get(v, '$.actor.x', 'int')"}, None, ["actor.value"]),
        (["k"], "try_variant_get(v, '$.id', 'bigint') = 3", ["id.value", "id.typed_value"]),
        (["k"], "v IS NOT NULL", None),
    ],
)  # fmt: skip
def test_only_the_leaves_of_the_path_are_read(
    tmp_path: Path, watched: Any, columns: Any, where: Any, leaves: Any
) -> None:
    mixed = [*EVENTS, {"id": "x", "actor": {"login": 5}, "tags": [1, 2]}, {"actor": 3, "other": 1}]
    path = write(tmp_path / "f.parquet", mixed, SHREDS[1])
    bh.read_parquet(path, columns=columns, where=where)
    read = {leaf for leaves in watched["leaves"] for leaf in leaves} - {"k"}
    residual = ["v.value"] if leaves == [] else []
    want = {"v.metadata", *residual, *(f"v.typed_value.{leaf}" for leaf in leaves or [])}
    assert read == want


@pytest.mark.spec("V-078")
@pytest.mark.parametrize(
    ("call", "leaves", "first"),
    [
        ("variant_get(v, '$.id', 'int')", ("v.typed_value.id.typed_value",), 0),
        ("variant_get(v, '$.id')", ("v.typed_value.id.typed_value",), {"type": "int8"}),
        ("variant_get(v, '$.other', 'int')", ("v.metadata",), None),
        ("variant_get(v, '$.id.deeper', 'int')", ("v.metadata",), None),
        ("v IS NULL", ("v.metadata",), False),
    ],
)
def test_neither_values_nor_metadata_are_read_where_all_is_typed(
    tmp_path: Path, watched: Any, call: str, leaves: tuple[str, ...], first: Any
) -> None:
    path = write(tmp_path / "f.parquet", EVENTS, SHREDS[1])
    got = bh.read_parquet(path, columns={"x": call})["x"].to_pylist()
    assert watched["leaves"] == [leaves]
    if isinstance(first, dict):
        assert [Variant(**r).type for r in got[:1]] == [first["type"]]
    else:
        assert got[0] == first
    assert len(got) == len(EVENTS)


@pytest.mark.spec("V-078")
def test_a_filter_reads_the_whole_value_of_none_but_the_row_groups_that_pass(tmp_path: Path, watched: Any) -> None:
    path = write(tmp_path / "f.parquet", EVENTS, SHREDS[1], row_group_rows=10)
    got = bh.read_parquet(
        path,
        columns=["v"],
        where="variant_get(v, '$.id', 'int') = 13 AND variant_get(v, '$.actor.login', 'string') = 'u3'",
    )
    assert variants(got["v"]) == [Variant.from_python(EVENTS[13])]
    assert watched["groups"] == [[1]]
    first, second = watched["leaves"]
    assert len(first) == 2 and len(second) == 14
    assert bh.read_parquet(path, columns=["v"], where="variant_get(v, '$.id', 'int') % 10 = 11").num_rows == 0
    assert max(map(len, watched["leaves"][2:])) == 1


def test_errors_of_casts_are_those_of_rows_that_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", [{"id": 1}, {"id": "x"}], SHREDS[1])
    with pytest.raises(EvaluationError):
        bh.read_parquet(path, where="variant_get(v, '$.id', 'int') > 0")
    assert bh.read_parquet(path, where="k = 0 AND variant_get(v, '$.id', 'int') > 0").num_rows == 1
    assert bh.read_parquet(path, where="try_variant_get(v, '$.id', 'int') > 0").num_rows == 1


# Pruning.


@pytest.mark.spec("V-077")
@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("variant_get(v, '$.id', 'int') > 31", [3]),
        ("variant_get(v, '$.id', 'bigint') BETWEEN 5 AND 12", [0, 1]),
        ("variant_get(v, '$.id', 'double') < 0.5", [0]),
        ("variant_get(v, '$.id', 'int') = 100", []),
        ("variant_get(v, '$.id', 'int') IN (1, 39)", [0, 3]),
        ("variant_get(v, '$.id') IS NULL", [0, 1, 2, 3]),
        ("variant_get(v, '$.id', 'int') IS NULL", []),
        ("variant_get(v, '$.actor.age', 'double') < 5", [0]),
        ("variant_get(v, '$.actor.login', 'string') < 'u'", []),
        ("variant_get(v, '$.id', 'string') > '31'", [0, 1, 2, 3]),
        ("variant_get(v, '$.type', 'string') = 'pull' AND variant_get(v, '$.id', 'int') < 10", [0]),
        ("variant_get(v, '$.tags[0]', 'string') = 'zzz'", [0, 1, 2, 3]),
        ("variant_get(v, '$.id', 'int') > 31 OR k = 0", [0, 3]),
        ("k = 15 AND variant_get(v, '$.id', 'int') IS NOT NULL", [1]),
    ],
)  # fmt: skip
def test_row_groups_are_pruned_by_typed_values(tmp_path: Path, watched: Any, where: str, groups: list[int]) -> None:
    path = write(tmp_path / "f.parquet", EVENTS, SHREDS[1], row_group_rows=10)
    got = bh.read_parquet(path, columns=["k"], where=where)
    assert watched["groups"] == [groups]
    plain = bh.read_parquet(write(tmp_path / "p.parquet", EVENTS), columns=["k"], where=where)
    assert got["k"].to_pylist() == plain["k"].to_pylist()


@pytest.mark.spec("V-077")
def test_statistics_are_not_used_where_a_value_is_not_null(tmp_path: Path, watched: Any) -> None:
    values = [{"id": 1}, {"id": 2}, {"id": "77"}, {"id": 4}]
    path = write(tmp_path / "f.parquet", values, "struct<id:tinyint>", row_group_rows=2)
    got = bh.read_parquet(path, columns=["k"], where="variant_get(v, '$.id', 'int') = 77")
    assert got["k"].to_pylist() == [2]
    assert watched["groups"] == [[1]]
    assert bh.read_parquet(path, columns=["k"], where="variant_get(v, '$.id', 'int') = 50").num_rows == 0
    assert watched["groups"][1] == [1]


PATHS = ["$.id", "$.a", "$.a.b", "$", "$.s", "$.f"]
ASKED = ["tinyint", "int", "bigint", "double", "string", "boolean", "date", "float", "decimal(9,2)", "timestamp"]
LITERALS = {"string": ["'a'", "'m'", "'12'"], "boolean": ["true"], "date": ["DATE'2020-01-01'"],
            "timestamp": ["TIMESTAMP'2020-01-01 00:00:00Z'"]}  # fmt: skip
LAYOUTS = [
    "struct<id:tinyint,a:struct<b:bigint>,s:string,f:double>", "struct<id:bigint,a:bigint,s:date,f:float>",
    "struct<id:int,a:struct<b:decimal(9,2)>,s:timestamp,f:decimal(18,4)>", "bigint", "struct<s:boolean>",
]  # fmt: skip


def rows(seed: int) -> list[Any]:
    source = random.Random(seed)
    scale = source.choice([3, 200, 2**40])

    def leaf() -> Any:
        kind = source.random()
        if kind < 0.6:
            return source.randrange(-scale, scale)
        if kind < 0.7:
            return source.choice([1.5, float("nan"), -0.0, 1e300, float("inf")])
        return source.choice([None, "a", "zz", "12", True, {"b": 1}, [1], ..., source.randrange(5)])

    def pruned(fields: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in fields.items() if v is not ...}

    def one() -> Any:
        if source.random() < 0.1:
            return leaf()
        deep = pruned({"b": leaf()}) if source.random() < 0.8 else leaf()
        return pruned({"id": leaf(), "a": deep, "s": leaf(), "f": leaf(), "more": leaf()})

    uniform = source.random() < 0.5
    return [{"id": i, "a": {"b": i * 2}, "s": f"t{i}", "f": i / 4} if uniform and source.random() < 0.8 else one()
            for i in range(12)]  # fmt: skip


@st.composite
def conditions(draw: Any) -> str:
    def one() -> str:
        path, type = draw(st.sampled_from(PATHS)), draw(st.sampled_from(ASKED))
        call = f"try_variant_get(v, '{path}', '{type}')"
        shape = draw(st.integers(0, 4))
        if shape == 0:
            return f"{call} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        literals = LITERALS.get(type, ["0", "5", "2", "-1", "100", "1.5D"])
        if shape == 1:
            return f"{call} IN ({', '.join(draw(st.lists(st.sampled_from(literals), min_size=1, max_size=3)))})"
        op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "!=", "<=>"]))
        return f"{call} {op} {draw(st.sampled_from(literals))}"

    first = one()
    return draw(
        st.sampled_from([first, f"NOT ({first})", f"{first} AND {one()}", f"{first} OR {one()}", f"k > 3 AND {first}"])
    )


@pytest.mark.spec("V-077")
@settings(max_examples=80)
@given(st.integers(0, 10**6), st.sampled_from(LAYOUTS), conditions())
def test_pruning_loses_no_row(tmp_path_factory: Any, seed: int, shred: str, where: str) -> None:
    path = tmp_path_factory.getbasetemp() / "pruned.parquet"
    values = rows(seed)
    write(path, values, shred, row_group_rows=3)
    whole = pa.table(
        [pa.array(range(12), pa.int64()), column(values)], schema=pa.schema([pa.field("k", pa.int64()), FIELD])
    )
    want = pc.filter(whole["k"], mask(parse(where), whole)).to_pylist()
    assert bh.read_parquet(path, columns=["k"], where=where)["k"].to_pylist() == want


# Several files.


@pytest.mark.spec("V-080")
def test_files_of_one_dataset_may_be_shredded_differently(tmp_path: Path) -> None:
    for i, shred in enumerate([*SHREDS, SHREDS[0]]):
        write(tmp_path / "data" / f"part-{i}.parquet", VALUES[i * 3 : i * 3 + 9], shred)
    (tmp_path / "data" / "_SUCCESS").write_text("")
    (tmp_path / "data" / "_tmp").mkdir()
    write(tmp_path / "data" / "_tmp" / "hidden.parquet", VALUES)
    want = [v for i in range(len(SHREDS) + 1) for v in VALUES[i * 3 : i * 3 + 9]]
    got = bh.read_parquet(tmp_path / "data")
    assert variants(got["v"]) == [variant_of(v) for v in want]
    ids = bh.read_parquet(tmp_path / "data", columns={"id": "try_variant_get(v, '$.id', 'int')"})["id"].to_pylist()
    assert ids == [_id(v) for v in want]
    some = bh.read_parquet(str(tmp_path / "data"), where="try_variant_get(v, '$.id', 'int') > 10", columns=["v"])
    assert variants(some["v"]) == [variant_of(v) for v in want if (_id(v) or 0) > 10]
    listed = bh.read_parquet([str(tmp_path / "data" / f"part-{i}.parquet") for i in (2, 1)])
    assert variants(listed["v"]) == [variant_of(v) for v in VALUES[6:15] + VALUES[3:12]]


def _id(value: Any) -> int | None:
    found = value.get("id") if isinstance(value, dict) else None
    return None if found is None else int(found)


def test_columns_that_a_file_lacks_are_null(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [1])
    pq.write_table(pa.table({"k": [5], "more": ["x"]}), tmp_path / "b.parquet")
    got = bh.read_parquet(tmp_path, where="more IS NULL OR variant_get(v, '$', 'int') IS NULL")
    assert got["k"].to_pylist() == [0, 5]
    assert got["more"].to_pylist() == [None, "x"]
    assert variants(got["v"]) == [Variant.from_python(1), None]
    assert bh.read_parquet(tmp_path, where="variant_get(v, '$', 'int') = 1")["k"].to_pylist() == [0]


def test_writers_may_differ_in_what_may_be_null(tmp_path: Path) -> None:
    for i, nullable in enumerate((False, True)):
        parts = [pa.field("x", pa.int64(), nullable), pa.field("l", pa.list_(pa.field("element", pa.int8(), nullable)))]
        struct = pa.array([{"x": i, "l": [1]}], pa.struct(parts))
        schema = pa.schema([pa.field("s", struct.type, nullable)])
        pq.write_table(pa.table([struct], schema=schema), tmp_path / f"{i}.parquet")
    write(tmp_path / "2.parquet", ["other"])
    got = bh.read_parquet(tmp_path, variants=["v"])
    assert got["s"].to_pylist() == [{"x": 0, "l": [1]}, {"x": 1, "l": [1]}, None]
    assert [f.nullable for f in got.schema.field("s").type] == [True, True]


@pytest.mark.spec("V-082")
@pytest.mark.parametrize("shred", SHREDS[1:3])
def test_a_shredded_file_without_the_annotation(tmp_path: Path, shred: str) -> None:
    path = write(tmp_path / "f.parquet", VALUES, shred)
    stored = pq.ParquetFile(path, arrow_extensions_enabled=False).read()
    pq.write_table(stored, path)
    assert "Variant" not in str(pq.ParquetFile(path).schema)
    assert "typed_value" in [f.name for f in bh.read_parquet(path).schema.field("v").type]
    got = bh.read_parquet(path, variants=["v"])
    assert variants(got["v"]) == [variant_of(v) for v in VALUES]
    ids = bh.read_parquet(path, columns={"id": "try_variant_get(v, '$.id', 'int')"}, variants=["v"])
    assert ids["id"].to_pylist() == [_id(v) for v in VALUES]


# Arguments.


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        bh.read_parquet(tmp_path / "nothing")
    with pytest.raises(NotFoundError):
        bh.read_parquet(tmp_path)
    with pytest.raises(InvalidArgumentError):
        bh.read_parquet([])
    path = write(tmp_path / "f.parquet", [1])
    for columns in (["nope"], {"x": "nope + 1"}):
        with pytest.raises(ColumnNotFoundError, match="nope"):
            bh.read_parquet(path, columns=columns)
    pq.write_table(pa.table({"k": ["text"]}), tmp_path / "g.parquet")
    with pytest.raises(SchemaMismatchError, match=r"`k` is bigint in .*f\.parquet.*string here.*g\.parquet"):
        bh.read_parquet(tmp_path)
    (tmp_path / "by" / "day=1").mkdir(parents=True)
    write(tmp_path / "by" / "day=1" / "f.parquet", [1])
    with pytest.raises(UnsupportedFeatureError, match="partition"):
        bh.read_parquet(tmp_path / "by")
    assert bh.read_parquet(path, columns=[]).num_rows == 1
    assert bh.read_parquet(path, columns=[], where="k > 5").num_rows == 0


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"v": column([1]), "k": [1]})
    for options, match in [
        ({"shred": "all"}, "auto"), ({"variants": ["w"]}, "no column `w`"),
        ({"variants": ["v"], "shred": {"k": "int"}}, "`k`, which is not a variant"), ({"compression": "zip"}, "codec"),
    ]:  # fmt: skip
        with pytest.raises((InvalidArgumentError, ColumnNotFoundError), match=match):
            bh.write_parquet(table, path, **options)
        assert not path.exists()
    with pytest.raises(MalformedVariant):
        broken = pa.array([{"metadata": b"\x11\0\0", "value": b"\x0c"}], VARIANT_STORAGE)
        bh.write_parquet(pa.table({"v": broken}), path, variants=["v"], shred={"v": "int"})
    assert not path.exists()


# Widths.


def test_widening_shreds_numbers_of_all_widths(tmp_path: Path, watched: Any) -> None:
    values = [{"n": 10**i, "d": Decimal(10**i).scaleb(-2)} for i in range(18)] + [
        {"n": "x", "d": Decimal("1.5")},
        {"n": None},
    ]
    table = pa.table({"k": range(len(values)), "v": column(values)})
    path = tmp_path / "f.parquet"
    for shred in ("auto", {"v": "struct<n:bigint,d:decimal(18,2)>"}):
        bh.write_parquet(table, path, variants=["v"], shred=shred, widen=True, row_group_rows=6)
        stored = pq.ParquetFile(path).read()["v"].combine_chunks().field("typed_value")
        assert stored.field("n").field("typed_value").to_pylist() == [10**i for i in range(18)] + [None, None]
        assert stored.field("d").field("typed_value").null_count == 2
        got = variants(bh.read_parquet(path)["v"])
        assert got == [variant_of(v) for v in values]
        assert {v.get("$.n").type for v in got[:18]} == {"int64"}
        where = "try_variant_get(v, '$.n', 'bigint') >= 1000000 AND k < 12"
        assert bh.read_parquet(path, columns=["k"], where=where)["k"].to_pylist() == list(range(6, 12))
        assert watched["groups"].pop() == [1]
    exact = write(tmp_path / "exact.parquet", values, "struct<n:bigint,d:decimal(18,2)>")
    kept = variants(bh.read_parquet(exact)["v"])
    assert [v.get("$.n").type for v in kept] == [variant_of(v).get("$.n").type for v in values]


NUMBERS = ("int8", "int16", "int32", "int64", "decimal4", "decimal8", "decimal16")
WIDER = ["tinyint", "smallint", "int", "bigint", "decimal(9,2)", "decimal(18,0)", "decimal(38,1)"]


@settings(max_examples=60)
@given(st.lists(gen.scalars(NUMBERS).map(gen.encode), max_size=8), st.sampled_from(WIDER))
def test_widened_numbers_stay_equal(values: list[Variant], type: str) -> None:
    narrow = shredded_by(column(values), type, widen=True)
    back = variants(unshred(narrow))
    assert back == values
    for before, after in zip(values, back, strict=True):
        assert NUMBERS.index(before.type) <= NUMBERS.index(after.type)
        assert before.type[:3] == after.type[:3]
        if before.type.startswith("decimal"):
            assert before.scalar == after.scalar


def test_statistics_of_a_written_file_skip_the_leaves_of_shredded_variants(tmp_path: Path) -> None:
    types = Schema(
        (Field("v", VARIANT), Field("k", INT64), Field("l", ListType(Field("element", VARIANT))), Field("z", STRING))
    )
    field = FIELD.with_name("element")
    v = column([{"a": 1}, ..., {"a": "x"}])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, None, 3], pa.int32()), v, type=pa.list_(field))
    columns = [v, pa.array([5, None, 7]), lists, pa.array(["b", "a", None])]
    batch = pa.RecordBatch.from_arrays(columns, schema=to_arrow(types))
    path, found = str(tmp_path / "f.parquet"), {}
    for how in ({}, {("v",): "struct<a:tinyint>", ("l", "element"): "struct<a:tinyint,b:string>"}):
        collector = StatsCollector(types)
        shredding = {place: shredding_schema(text) for place, text in how.items()}
        files = NativeFiles(StorageOptions.of(None))
        writer = ParquetWriter(files, path, to_parquet_schema(types), None, shredding)
        writer.write(batch)
        collector.update(batch)
        found[bool(how)] = collector.finish(writer.close().metadata)
    for plain, shredded in zip(found[False], found[True], strict=True):
        assert replace(plain, column_size=0) == replace(shredded, column_size=0)
    assert [s.nulls for s in found[True]] == [1, 1, 1, 1]


@pytest.mark.spec("V-089")
def test_values_beyond_sparks_limits_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writing, "PYSPARK_LIMIT", 100)
    monkeypatch.setattr(file_writing, "SPARK_LIMIT", 1000)
    path = tmp_path / "f.parquet"
    for size, match in ((500, r"`v` contains a variant of 505 bytes: pyspark's own"), (2000, "Spark cannot read it")):
        with pytest.warns(UserWarning, match=match) as seen:
            write(path, ["x", "x" * size, None, "x" * size])
        assert len(seen) == 1
    lists = pa.table({"l": pa.array([[{"metadata": b"\x11\0\0", "value": Variant.from_python("x" * 500).value}]],
                                    pa.list_(FIELD.with_name("element")))})  # fmt: skip
    with pytest.warns(UserWarning, match=r"`l\.element` contains"):
        bh.write_parquet(lists, path)


@pytest.mark.slow
@pytest.mark.spec("V-089")
def test_there_is_no_limit_of_our_own(tmp_path: Path) -> None:
    large = Variant.from_python({"text": "x" * (129 << 20), "n": 1})
    path = tmp_path / "f.parquet"
    with pytest.warns(UserWarning, match="Spark cannot read it"):
        write(path, [large], "struct<n:tinyint>", compression="zstd")
    assert variants(bh.read_parquet(path)["v"])[0].value == large.value


def test_a_filter_of_other_paths_than_the_columns_has_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", EVENTS, SHREDS[1])
    schema = Schema((Field("v", VARIANT), Field("k", INT64)))
    where = bind_predicate(parse("variant_get(v, '$.id', 'int') = 3"), schema)
    wanted = [SourceColumn("v", VARIANT, only=(("actor", "login"),)), SourceColumn("k", INT64)]
    files = NativeFiles(StorageOptions.of(None))
    (batch,) = parquet_read.scan_file(files, str(path), wanted, row_filter=where)
    assert batch.column("k").to_pylist() == [3]
    assert get(batch.column("v"), "$.actor.login", "string").to_pylist() == ["u3"]


def test_row_groups_too_large_for_memory_are_read_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_read, "_STREAM_BYTES", 100)
    monkeypatch.setattr(parquet_read, "_CHUNK_BYTES", 100)
    for name, call in CALLS.items():
        plain = bh.read_parquet(write(tmp_path / "p.parquet", VALUES), columns={"x": call[1]}, where="k > 2")
        for shred in SHREDS[1:3]:
            path = write(tmp_path / "s.parquet", VALUES, shred)
            got = bh.read_parquet(path, columns={"x": call[1]}, where="k > 2")
            if not pa.types.is_struct(got.schema.field("x").type):
                assert got["x"].to_pylist() == plain["x"].to_pylist(), name
    path = write(tmp_path / "s.parquet", EVENTS, SHREDS[1])
    got = bh.read_parquet(path, columns=["v"], where="variant_get(v, '$.id', 'int') = 13 OR v IS NULL")
    assert variants(got["v"]) == [variant_of(EVENTS[13])]
