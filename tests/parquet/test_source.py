"""An open file: texts read as dictionaries give what plain reading gives, and what is remembered of a schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.schema import FIELD_ID, from_arrow_type, to_arrow_type
from boathouse.errors import ColumnNotFoundError, CorruptTableError
from boathouse.parquet import source
from boathouse.parquet.fields import file_fields
from boathouse.parquet.read import SourceColumn, scan_file
from boathouse.parquet.thrift_footer import annotate, annotated
from boathouse.types import STRING, Field, ListType
from boathouse.variant import from_json, to_json

KINDS = ["push", "create", "watch", None]
ROWS = 9_000


def documents(repeating: bool = True) -> list[str]:
    """Rows whose `kind` repeats, or is mostly missing and else always new."""
    kinds = [KINDS[i % 4] if repeating else f"{i:064}" if i % 100 == 0 else None for i in range(ROWS)]
    return [json.dumps({"kind": kind, "n": i, "odd.name": "x"}) for i, kind in enumerate(kinds)]


def shredded(path: Path, texts: list[str], group_rows: int) -> Path:
    table = pa.table({"v": from_json(pa.array(texts))})
    bh.write_parquet(table, path, shred={"v": "struct<kind:string,n:tinyint,`odd.name`:string>"}, variants=["v"])
    plain = pq.ParquetFile(path, arrow_extensions_enabled=False).read()
    # The smallest dictionary, so that a column can go on without it.
    with pq.ParquetWriter(path, plain.schema, dictionary_pagesize_limit=256, data_page_size=1024) as writer:
        writer.write_table(plain, row_group_size=group_rows)
    return path


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked for as dictionaries; every file is large enough for that."""
    seen: list[Any] = []
    inner = source._reader

    def watched(stream: Any, **options: Any) -> Any:
        seen.append(options.get("read_dictionary"))
        return inner(stream, **options)

    monkeypatch.setattr(source, "_reader", watched)
    monkeypatch.setattr(source, "_WORTH_ANOTHER_READER", 100)
    return seen


@pytest.mark.parametrize("group_rows", [ROWS, 1000])
@pytest.mark.parametrize("repeating", [True, False])
def test_paths_to_repeating_texts(tmp_path: Path, readers: list[Any], group_rows: int, repeating: bool) -> None:
    texts = documents(repeating)
    path = shredded(tmp_path / "f.parquet", texts, group_rows)
    got = bh.read_parquet(
        path,
        columns={
            "kind": "variant_get(v, '$.kind', 'string')",
            "n": "variant_get(v, '$.n', 'int')",
            "odd": "variant_get(v, '$[\"odd.name\"]', 'string')",
        },
        variants=["v"],
    )
    rows = [json.loads(text) for text in texts]
    assert got["kind"].to_pylist() == [row["kind"] for row in rows]
    assert got["n"].to_pylist() == [row["n"] for row in rows]
    assert set(got["odd"].to_pylist()) == {"x"}
    assert got.schema.types == [pa.string(), pa.int32(), pa.string()]
    assert readers == [None], "only top-level columns are read as dictionaries"


def test_a_filter_over_repeating_texts(tmp_path: Path, readers: list[Any]) -> None:
    texts = documents()
    path = shredded(tmp_path / "f.parquet", texts, 1000)
    got = bh.read_parquet(
        path,
        columns={"n": "variant_get(v, '$.n', 'int')"},
        where="variant_get(v, '$.kind', 'string') = 'watch'",
        variants=["v"],
    )
    assert got["n"].to_pylist() == list(range(2, ROWS, 4))


def test_repeating_columns_at_the_top(tmp_path: Path, readers: list[Any], files: Any) -> None:
    path = tmp_path / "f.parquet"
    few = [KINDS[i % 4] for i in range(ROWS)]
    new = [f"{i:064}" for i in range(ROWS)]
    nested = [{"few": x} for x in few]
    table = pa.table({"few": few, "a.b": few, "new": new, "s": nested, "large": pa.array(few, pa.large_string())})
    table = table.append_column("view", pa.array(few, pa.string_view()))
    pq.write_table(table, path, row_group_size=1000)
    columns = [SourceColumn(name, STRING) for name in ("few", "a.b", "new", "large", "view")]
    batches = list(scan_file(files, str(path), columns))
    assert pa.Table.from_batches(batches).to_pydict() == {"few": few, "a.b": few, "new": new, "large": few, "view": few}
    assert readers == [None, ["few", "large"]]


def test_field_ids_are_part_of_what_is_remembered() -> None:
    def schema(id: bytes) -> pa.Schema:
        return pa.schema([pa.field("a", pa.struct([pa.field("b", pa.int32(), metadata={FIELD_ID: id})]))])

    assert schema(b"1") == schema(b"2"), "Arrow does not compare metadata"
    for number in (1, 2, 1):
        (top,) = file_fields(schema(str(number).encode()))
        assert (top.id, top.children[0].id) == (None, number)


def test_annotations_are_those_of_each_file(tmp_path: Path) -> None:
    for rows, name in ((1, "v"), (2, "v"), (2, "w"), (2, "vv")):
        group = pa.array([{"metadata": b"\1\0\0", "value": b"\0"}] * rows)
        path = tmp_path / f"{rows}{name}.parquet"
        pq.write_table(pa.table({"k": range(rows), name: group}), path)
        raw = path.read_bytes()
        size = int.from_bytes(raw[-8:-4], "little")
        plain = raw[-8 - size : -8]
        assert annotated(plain) == ()
        assert [g.path for g in annotated(annotate(plain, [(name,)]))] == [(name,)]


@pytest.mark.parametrize("pool", [None, "system"])
def test_the_pool_that_is_read_into(pool: str | None) -> None:
    code = "from boathouse.arrow.memory import read_pool; print(read_pool().backend_name)"
    env = {"ARROW_DEFAULT_MEMORY_POOL": pool} if pool else {}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    have = {"jemalloc"} if "jemalloc" in pa.supported_memory_backends() else {pa.default_memory_pool().backend_name}
    assert {done.stdout.strip()} == ({pool} if pool else have)


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    texts = [f'{{"kind": "{KINDS[i % 3]}", "n": {i % 9}}}' for i in range(ROWS)]
    path = shredded(tmp_path / "f.parquet", texts, ROWS)
    columns = {"kind": "variant_get(v, '$.kind', 'string')"}
    want = bh.read_parquet(path, columns=columns, variants=["v"])
    whole = to_json(bh.read_parquet(path, variants=["v"]).column("v")).to_pylist()
    assert [json.loads(text) for text in whole] == [json.loads(text) for text in texts]
    assert pa.types.is_struct(bh.read_parquet(path).schema.field("v").type)  # not named: a struct as any other
    other = shredded(tmp_path / "g.parquet", texts[::-1], ROWS)
    path.write_bytes(other.read_bytes())
    assert (
        bh.read_parquet(path, columns=columns, variants=["v"]).column(0).to_pylist() == want.column(0).to_pylist()[::-1]
    )
    with pytest.raises(ColumnNotFoundError, match="no column `w`"):
        bh.read_parquet(path, variants=["w"])


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(40) + b"\xff\xff\xff\x7fPAR1", bytes(5000)])
def test_what_has_no_footer(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(raw)
    with pytest.raises(CorruptTableError, match="not a readable Parquet file"):
        bh.read_parquet(path)


@pytest.mark.parametrize("says_types", [True, False])
@pytest.mark.parametrize("broken", [0, 1])
def test_an_index_outside_of_its_dictionary_is_damage(
    tmp_path: Path, readers: list[Any], files: Any, broken: int, says_types: bool
) -> None:
    path = tmp_path / "f.parquet"
    group = [{"metadata": b"\1\0\0", "typed_value": KINDS[i % 3]} for i in range(800)]
    type = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("typed_value", pa.string())])
    table = pa.table({"a": [KINDS[i % 3] for i in range(800)], "v": pa.array(group, type)})
    pq.write_table(table, path, compression="none", store_schema=says_types)
    chunk = pq.read_metadata(path).row_group(0).column(0 if broken == 0 else 2)
    raw = bytearray(path.read_bytes())
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    raw[end - 20 : end - 10] = b"\xff" * 10  # three values take two bits
    path.write_bytes(raw)
    columns = ({"a": "a"}, {"v": "variant_get(v, '$', 'string')"})
    with pytest.raises(CorruptTableError, match=r"(?i)index .* dictionary") as found:
        bh.read_parquet(path, columns=columns[broken], variants=["v"])
    assert path.name in str(found.value)
    condition = ("a = 'push'", "variant_get(v, '$', 'string') = 'push'")[broken]
    with pytest.raises(CorruptTableError, match=r"(?i)index .* dictionary"):
        bh.read_parquet(path, columns=columns[1 - broken], where=condition, variants=["v"])
    whole = bh.read_parquet(path, columns=columns[1 - broken], variants=["v"])
    assert whole.column(0).to_pylist() == [KINDS[i % 3] for i in range(800)]
    assert broken or readers[1] is not None


@pytest.mark.parametrize("type", [pa.string(), pa.list_(pa.string())])
def test_wild_indices_of_columns_that_were_dictionaries_when_written(
    tmp_path: Path, files: Any, type: pa.DataType
) -> None:
    path = tmp_path / "f.parquet"
    values = pa.array([KINDS[i % 3] for i in range(800)]).dictionary_encode()
    if pa.types.is_list(type):
        values = pa.ListArray.from_arrays(pa.array(range(801), pa.int32()), values)
    pq.write_table(pa.table({"a": values}), path, compression="none")
    column = [SourceColumn("a", STRING if type == pa.string() else ListType(Field("element", STRING)))]
    want = [KINDS[i % 3] if type == pa.string() else [KINDS[i % 3]] for i in range(800)]
    assert pa.Table.from_batches(scan_file(files, str(path), column))["a"].to_pylist() == want
    chunk = pq.read_metadata(path).row_group(0).column(0)
    raw = bytearray(path.read_bytes())
    end = chunk.dictionary_page_offset + chunk.total_compressed_size
    raw[end - 20 : end - 10] = b"\xff" * 10
    path.write_bytes(raw)
    with pytest.raises(CorruptTableError, match="dictionary"):
        list(scan_file(files, str(path), column))


TEXTS = [
    pa.string(),
    pa.binary(),
    pa.struct([pa.field("a", pa.string()), pa.field("b", pa.binary(), False), pa.field("n", pa.int32())]),
    pa.list_(pa.string()),
    pa.list_(pa.field("element", pa.struct([pa.field("of", pa.list_(pa.binary())), pa.field("n", pa.int8())]), False)),
    pa.map_(pa.string(), pa.string()),
    pa.struct([pa.field("m", pa.map_(pa.int32(), pa.list_(pa.string())))]),
    pa.list_(pa.int32()),
]


def some(type: pa.DataType, random: Random, nullable: bool = True) -> object:
    """A value of a type, often null and often empty."""
    if nullable and random.random() < 0.2:
        return None
    if pa.types.is_string(type) or pa.types.is_binary(type):
        text = random.choice(["", "a", "üñï", "x" * 40]) + str(random.random())
        return text if pa.types.is_string(type) else text.encode()
    if pa.types.is_struct(type):
        return {f.name: some(f.type, random, f.nullable) for f in type}
    if pa.types.is_map(type):
        keys = [some(type.key_type, random, False) for _ in range(random.choice([0, 1, 3]))]
        return [(key, some(type.item_type, random)) for key in keys]
    if pa.types.is_list(type):
        field = type.value_field
        return [some(field.type, random, field.nullable) for _ in range(random.choice([0, 1, 3]))]
    return random.randrange(100)


@pytest.mark.few(5)
@pytest.mark.parametrize("type", TEXTS, ids=str)
@pytest.mark.parametrize("says_types", [False, True])
def test_texts_of_many_rows(
    tmp_path: Path, files: Any, type: pa.DataType, says_types: bool, readers: list[Any]
) -> None:
    random = Random(str(type))
    array = pa.array([some(type, random) for _ in range(ROWS)], type)
    few = pa.array([KINDS[i % 4] for i in range(ROWS)])
    path = str(tmp_path / "f.parquet")
    table = pa.table({"few": few, "x": array})
    pq.write_table(table, path, row_group_size=4000, use_dictionary=["few"], store_schema=says_types)
    columns = [SourceColumn("x", from_arrow_type(type)), SourceColumn("few", STRING)]
    got = pa.Table.from_batches(list(scan_file(files, path, columns)))
    got.validate(full=True)
    assert got["x"].type == to_arrow_type(from_arrow_type(type))
    assert got["x"].to_pylist() == array.to_pylist()
    assert got["few"].to_pylist() == few.to_pylist()
    assert readers == [None, ["few"]]


def test_a_store_is_asked_once(readers: list[Any]) -> None:
    few = [KINDS[i % 4] for i in range(ROWS)]
    made = pa.BufferOutputStream()
    pq.write_table(pa.table({"few": few, "n": range(ROWS), "m": range(ROWS)}), made)

    class Store:
        def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
            return pa.BufferReader(made.getvalue())

    quick = source.open_source(Store(), "s3://b/f.parquet").with_dictionaries([0, 1])  # type: ignore[arg-type]
    found = quick.read([0], [0, 1], False)
    assert set(found.column_names) == {"few", "n"} and pa.types.is_dictionary(found["few"].type)
    assert readers == [None, ["few"]]
