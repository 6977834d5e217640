"""Iceberg tables whose variant groups hold `value` before `metadata`, as Trino writes them; at every depth, shredded or
not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.parquet.thrift_footer import MAGIC, annotate, annotated, read_footer_bytes
from boathouse.variant import Variant

FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
SHRED = "struct<id:bigint,a:struct<b:string>,tags:array<string>>"
ORDERS = {"plain": ("value", "metadata"), "shredded": ("value", "metadata", "typed_value"),
          "typed first": ("typed_value", "value", "metadata")}  # fmt: skip
VALUES: list[Any] = [
    {"id": 1, "a": {"b": "x", "c": 2}, "tags": ["t", "u"]}, {"id": "one", "a": 7, "tags": []}, None, 7, ...,
    {"a": {"b": None}, "more": [1, {"é": True}]}, [1, [2]], "text", {}, {"id": 2**40, "tags": ["t", 3]},
]  # fmt: skip
PATHS = [("v",), ("s", "v"), ("l", "list", "element"), ("m", "key_value", "value"), ("d", "list", "element", "v")]
PLACES = ["v", "s.v", "l.element", "m.value", "d.element.v"]


def nested() -> pa.Table:
    """The values at the top, in a struct, a list, a map and a list of structs; nulls at every level."""
    n = len(VALUES)
    made = [None if v is ... else Variant.from_python(v) for v in VALUES]
    v = pa.array([None if x is None else {"metadata": x.metadata, "value": x.value} for x in made], VARIANT_STORAGE)
    offsets = pa.array([0, None, *range(2, n), n], pa.int32())
    parts = [pa.field("x", pa.int64()), FIELD]
    mask = pa.array([i == 2 for i in range(n)])
    structs = pa.StructArray.from_arrays([pa.array(range(n)), v], fields=parts, mask=mask)
    arrays = {
        "id": pa.array(range(n)), "v": v, "s": structs,
        "l": pa.ListArray.from_arrays(offsets, v, type=pa.list_(FIELD.with_name("element"))),
        "m": pa.MapArray.from_arrays(offsets, pa.array([f"k{i}" for i in range(n)]), v,
                                     type=pa.map_(pa.string(), FIELD.with_name("value"))),
        "d": pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", pa.struct(parts)))),
    }  # fmt: skip
    fields = [FIELD if name == "v" else pa.field(name, a.type) for name, a in arrays.items()]
    return pa.Table.from_arrays([*arrays.values()], schema=pa.schema(fields))


def ordered(field: pa.Field, like: pa.Field | None, order: tuple[str, ...]) -> pa.Field:
    """The field with variant groups in the given order, and with the field ids of `like`."""
    type, t = field.type, pa.types
    old = None if like is None else like.type
    if t.is_struct(type):
        names = [f.name for f in type]
        if "metadata" in names:
            names = list(order)
        known = {} if old is None else {f.name: f for f in old}
        type = pa.struct([ordered(type.field(name), known.get(name), order) for name in names])
    elif t.is_map(type):
        key, value = (None, None) if old is None else (old.key_field, old.item_field)
        type = pa.map_(ordered(type.key_field, key, order), ordered(type.item_field, value, order))
    elif t.is_list(type):
        type = pa.list_(ordered(type.value_field, None if old is None else old.value_field, order))
    return pa.field(field.name, type, field.nullable, None if like is None else like.metadata)


def rewrite(path: Path, layout: str) -> None:
    """The rows as the data file, its variants in the order of the layout and annotated, with field ids."""
    bh.write_parquet(nested(), path, shred=None if layout == "plain" else dict.fromkeys(PLACES, SHRED))
    stored, ids = pq.read_table(path), with_ids()
    schema = pa.schema([ordered(f, ids.field(f.name), ORDERS[layout]) for f in stored.schema])
    pq.write_table(pa.Table.from_pylist(stored.to_pylist(), schema), path)
    data = path.read_bytes()
    with path.open("rb") as stream:
        footer = read_footer_bytes(stream, len(data))
    new = annotate(footer, PATHS)
    path.write_bytes(data[: -8 - len(footer)] + new + len(new).to_bytes(4, "little") + MAGIC)
    assert [g.path for g in annotated(new)] == PATHS
    assert tuple(f.name for f in pq.read_schema(path).field("v").type) == ORDERS[layout]


def with_ids() -> pa.Schema:
    """The schema of `nested` with the field ids of the table."""

    def numbered(field: pa.Field, id: int) -> pa.Field:
        return field.with_metadata({"PARQUET:field_id": str(id)})

    names = nested().schema
    parts = pa.struct([numbered(names.field("s").type.field(i), 4 + i) for i in range(2)])
    deep = pa.struct([numbered(names.field("s").type.field(i), 12 + i) for i in range(2)])
    map_type = names.field("m").type
    types = {
        "id": pa.field("id", pa.int64()), "v": names.field("v"), "s": pa.field("s", parts),
        "l": pa.field("l", pa.list_(numbered(names.field("l").type.value_field, 7))),
        "m": pa.field("m", pa.map_(numbered(map_type.key_field, 9), numbered(map_type.item_field, 14))),
        "d": pa.field("d", pa.list_(numbered(pa.field("element", deep), 11))),
    }  # fmt: skip
    return pa.schema([numbered(f, id) for f, id in zip(types.values(), (1, 2, 3, 6, 8, 10))])


def _field(id: int, name: str, type: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "required": False, "type": type}


def _struct(first: int) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(first, "x", "long"), _field(first + 1, "v", "variant")]}


COLUMNS = [
    _field(2, "v", "variant"), _field(3, "s", _struct(4)),
    _field(6, "l", {"type": "list", "element-id": 7, "element": "variant", "element-required": False}),
    _field(8, "m", {"type": "map", "key-id": 9, "key": "string", "value-id": 14, "value": "variant",
                    "value-required": False}),
    _field(10, "d", {"type": "list", "element-id": 11, "element": _struct(12), "element-required": False}),
]  # fmt: skip


@pytest.fixture
def made(make, request):
    """The path of a table of one file with the layout that the test asks for; it was created without variants."""
    _, eyes = make(nested().select(["id"]))
    rewrite(Path(eyes.live()[0]["file_path"].removeprefix("file://")), request.param)
    document = eyes.document()
    document.update({"format-version": 3, "next-row-id": len(VALUES), "last-column-id": 14})
    document["snapshots"][0].update({"first-row-id": 0, "added-rows": len(VALUES)})
    document["schemas"][0]["fields"] += COLUMNS
    eyes.head().write_text(json.dumps(document))
    return str(eyes.root)


ID = "try_variant_get(v, '$.id', 'bigint')"


def shown(value: Any) -> Any:
    """A column's values with each variant as JSON."""
    match value:
        case {"metadata": _, "value": _}:
            return json.loads(Variant(value["metadata"], value["value"]).to_json())
        case dict():
            return {k: shown(v) for k, v in value.items()}
        case list():
            return [shown(v) for v in value]
        case tuple():
            return (value[0], shown(value[1]))
    return value


@pytest.mark.spec("V-002", "V-072")
@pytest.mark.parametrize("made", ORDERS, indirect=True)
def test_in_process(made):
    table = bh.open(made)
    assert shown(table.to_arrow().to_pylist()) == shown(nested().to_pylist())
    assert table.scan(["id"], where=f"{ID} > 0").to_arrow()["id"].to_pylist() == [0, 9]


@pytest.mark.spark
@pytest.mark.spec("V-002", "V-072")
@pytest.mark.parametrize("via", ["native", "tasks"])
@pytest.mark.parametrize("made", ORDERS, indirect=True)
def test_on_spark(spark, made, via):
    from boathouse.engines.spark.native import native_frame
    from boathouse.engines.spark.task_frames import scan_frame

    table = bh.open(made, spark=spark)
    plan = table.scan().plan()
    frame = native_frame(spark, plan) if via == "native" else scan_frame(spark, [plan])
    expected = shown(nested().to_pylist())
    rows = frame.selectExpr(
        "id", "to_json(v)", "s is null", "to_json(s.v)", "transform(l, e -> to_json(e))",
        "transform(map_values(m), e -> to_json(e))", "transform(d, e -> to_json(e.v))", "transform(d, e -> e.x)",
        "v is null",
    ).orderBy("id").collect()  # fmt: skip
    for row, want in zip(rows, expected, strict=True):
        assert (row[2], row[8]) == (want["s"] is None, want["v"] is None and VALUES[want["id"]] is ...)
        texts = (
            want["v"], want["s"] and want["s"]["v"], want["l"], want["m"] and [x for _, x in want["m"]],
            want["d"] and [e and e["v"] for e in want["d"]],
        )  # fmt: skip
        for found, value in zip((row[1], row[3], row[4], row[5], row[6]), texts, strict=True):
            assert of_text(found) == value
        assert row[7] == (want["d"] and [e and e["x"] for e in want["d"]])
    # Spark reads only the parts of a variant that these paths need.
    parts = frame.selectExpr("id", ID, "variant_get(s.v, '$.a.b', 'string')", "variant_get(v, '$.tags[0]', 'string')")
    assert [tuple(r) for r in parts.where(f"{ID} > 0").orderBy("id").collect()] == [
        (0, 1, "x", "t"), (9, 2**40, None, "t")]  # fmt: skip
    scanned = table.scan(where=f"{ID} > 0").to_spark(spark)
    assert sorted(r.id for r in scanned.select("id").collect()) == [0, 9]


def of_text(found: Any) -> Any:
    if isinstance(found, list):
        return [of_text(x) for x in found]
    return None if found is None else json.loads(found)
