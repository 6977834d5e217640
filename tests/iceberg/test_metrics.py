"""Which metrics files have: what `write.metadata.metrics.*` says, as pyiceberg and the reference understand it."""

import logging
import math
import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import InvalidArgumentError
from boathouse.iceberg.manifests.values import truncated
from boathouse.iceberg.metadata import metrics_modes
from boathouse.iceberg.metadata.metrics_modes import Mode, modes
from boathouse.iceberg.metadata.schemas import fresh_schema
from boathouse.iceberg.metadata.versions import MODERN
from boathouse.types import Schema
from boathouse.types.text import parse_schema

PREFIX = "write.metadata.metrics."
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
ROWS = pa.table(
    {
        "id": pa.array([1, None, -3], pa.int64()),
        "f": pa.array([math.nan, -0.0, 2.5], pa.float64()),
        "text": ["äöü" * 10, "z" * 40, None],
        "raw": [b"\xff" * 20, b"\x00", b"b" * 20],
        "s": pa.array([{"x": "x" * 20, "n": {"y": 1.0}}, None, {"x": None, "n": {"y": math.nan}}],
                      pa.struct([("x", pa.string()), ("n", pa.struct([("y", pa.float32())]))])),
        "l": pa.array([[1, None], [], None], pa.list_(pa.int32())),
    }
)  # fmt: skip


def create(root, properties, data=ROWS):
    t = bh.create(str(root), data.schema, format="iceberg", properties=properties)
    t.append(data)
    return t


def recorded(root):
    """The metric maps of the only file by full column names, as pyiceberg reads them; bounds as bytes."""
    heads = {int(re.match(r"v(\d+)", p.name)[1]): p for p in (root / "metadata").glob("v*.metadata.json")}
    theirs = StaticTable.from_metadata(f"file://{heads[max(heads)]}")
    (row,) = theirs.inspect.files().to_pylist()
    names = theirs.schema()._lazy_id_to_name
    return {m: {names[k]: v for k, v in row[m] or []} for m in MAPS}, theirs


LEAVES = {"id", "f", "text", "raw", "s.x", "s.n.y", "l.element"}
FLOATS = {"f", "s.n.y"}


@pytest.mark.spec("I-166")
@pytest.mark.feature("metrics modes", format="iceberg")
@pytest.mark.parametrize("mode", ["none", "counts", "COUNTS", "truncate(1)", "Truncate(3)", "truncate(16)", "full"])
def test_the_default_mode(tmp_path, mode):
    create(tmp_path / "t", {f"{PREFIX}default": mode})
    found, theirs = recorded(tmp_path / "t")
    kind = mode.lower()
    counted = set() if kind == "none" else LEAVES
    for name in ("column_sizes", "value_counts", "null_value_counts"):
        assert set(found[name]) == counted, name
    assert set(found["nan_value_counts"]) == counted & FLOATS
    if counted:
        assert found["nan_value_counts"] == {"f": 1, "s.n.y": 1}
        assert found["null_value_counts"]["s.x"] == 2 and found["value_counts"]["l.element"] == 2
    if kind in ("none", "counts"):
        assert not found["lower_bounds"] and not found["upper_bounds"]
        return
    lower, upper = ({k: from_bytes(theirs.schema().find_type(k), v) for k, v in found[f"{b}_bounds"].items()}
                    for b in ("lower", "upper"))  # fmt: skip
    width = None if kind == "full" else int(kind[9:-1])
    assert (lower["id"], upper["id"]) == (-3, 1) and (lower["s.n.y"], upper["s.n.y"]) == (1.0, 1.0)
    assert math.copysign(1, lower["f"]) == -1 and lower["f"] == 0 and upper["f"] == 2.5
    assert lower["text"] == ("z" * 40 if width is None else "z" * width)
    assert lower["s.x"] == "x" * (width or 20) and lower["raw"] == b"\x00"
    high = ("äöü" * 10)[: width or 30]
    assert upper["text"] == (high if width is None else high[:-1] + chr(ord(high[-1]) + 1))
    # Twenty times 0xff: nothing that is shorter is greater, so the upper bound is left out.
    assert upper.get("raw") == (b"\xff" * 20 if width is None else None)
    assert "l.element" not in lower


@pytest.mark.spec("I-166")
@pytest.mark.parametrize("default", [None, "none", "counts", "full"])
def test_modes_of_columns_agree_with_pyiceberg(tmp_path, default):
    """What pyiceberg itself writes of flat columns under the same properties."""
    flat = ROWS.select(["id", "text", "raw"]).append_column("note", pa.array(["n" * 30] * 3))
    properties = {f"{PREFIX}column.text": "truncate(4)", f"{PREFIX}column.raw": "full", f"{PREFIX}column.id": "counts"}
    if default is not None:
        properties[f"{PREFIX}default"] = default
    create(tmp_path / "t", properties, flat)
    catalog = InMemoryCatalog("c", warehouse=f"file://{tmp_path}/theirs")
    catalog.create_namespace("db")
    other = catalog.create_table("db.t", flat.schema, properties=properties)
    other.append(flat)
    found, _ = recorded(tmp_path / "t")
    (row,) = other.inspect.files().to_pylist()
    names = other.schema()._lazy_id_to_name
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        assert found[name] == {names[k]: v for k, v in row[name] or []}, name


NESTED = "a struct<p: int, q: struct<r: string>>, b struct<p: int, q: struct<r: string>>, c int"
WITH_LISTS = "m map<int, array<string>>, l array<struct<x: int, y: array<int>>>, c int, v variant"


def with_ids(text):
    return fresh_schema(parse_schema(text), MODERN)[0]


def measured(schema: Schema, properties, sorted_by=()):
    by_id = {f.id: ".".join(p) for p, f in schema.walk()}
    return {by_id[id]: mode for id, mode in modes(schema, properties, sorted_by).items()}


@pytest.mark.spec("I-166")
@pytest.mark.parametrize(
    "text, order",
    [
        (NESTED, ["c", "a.p", "a.q.r", "b.p", "b.q.r"]),
        (WITH_LISTS, ["c", "v", "m.key", "m.value.element", "l.element.x", "l.element.y.element"]),
    ],
)
def test_the_first_columns_are_counted_as_the_reference_does(text, order):
    """Its own example of nested structs (TestMetricsConfig), and lists and maps in the order of its visitor: what a
    struct holds itself, then what the structs, lists and maps in it hold."""
    schema = with_ids(text)
    for limit in range(len(order) + 2):
        found = measured(schema, {metrics_modes.INFERRED: str(limit)})
        assert {name for name, mode in found.items() if mode.bounds} == set(order[:limit]), limit
        assert set(found) == set(order)


@pytest.mark.spec("I-166")
def test_a_hundred_columns_by_default(tmp_path):
    wide = pa.table({f"c{i}": [i] for i in range(105)} | {"s": [{"x": 1}]})
    create(tmp_path / "t", {}, wide)
    found, _ = recorded(tmp_path / "t")
    assert set(found["value_counts"]) == set(found["upper_bounds"]) == {f"c{i}" for i in range(100)}
    create(tmp_path / "u", {f"{PREFIX}default": "counts", f"{PREFIX}column.s.x": "full"}, wide)
    found, _ = recorded(tmp_path / "u")
    assert len(found["value_counts"]) == 106 and set(found["lower_bounds"]) == {"s.x"}


@pytest.mark.spec("I-166")
def test_what_rows_are_sorted_by_has_bounds():
    schema = with_ids("a int, b string, c string")
    assert measured(schema, {f"{PREFIX}default": "none"}, {"b"})["b"] == Mode("truncate", 16)
    assert measured(schema, {f"{PREFIX}default": "full"}, {"b"})["b"] == Mode("full")
    assert measured(schema, {f"{PREFIX}default": "counts", f"{PREFIX}column.b": "none"}, {"b"})["b"] == Mode("none")
    assert measured(schema, {metrics_modes.INFERRED: "1"}, {"c"})["c"] == Mode("truncate", 16)


def test_what_nobody_obeys_is_refused_when_it_is_set(tmp_path):
    t = create(tmp_path / "t", {})
    for key, value in (
        ("default", "all"), ("default", "truncate(0)"), ("default", "truncate"), ("column.id", "truncate(-1)"),
        ("max-inferred-column-defaults", "-1"), ("column.nothing", "full"), ("column.s.nothing", "none"),
        ("max-inferred-column-defaults", "many"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="metrics"):
            t.set_properties({PREFIX + key: value})
        with pytest.raises(InvalidArgumentError, match="metrics"):
            bh.create(str(tmp_path / "u"), ROWS.schema, format="iceberg", properties={PREFIX + key: value})
    assert not (tmp_path / "u").exists() and not any("metrics" in k for k in bh.open(str(tmp_path / "t")).properties)
    t.set_properties({f"{PREFIX}column.s.x": "none", f"{PREFIX}column.l.element": "counts"})
    t.set_properties({f"{PREFIX}column.nothing": None})


def test_what_others_have_set_is_ignored_as_the_reference_does(caplog):
    schema = with_ids("a int, b string")
    with caplog.at_level(logging.WARNING, "boathouse"):
        found = measured(schema, {f"{PREFIX}default": "all", f"{PREFIX}column.b": "some", metrics_modes.INFERRED: "-5"})
    assert found == {"a": Mode("truncate", 16), "b": Mode("truncate", 16)}
    assert len(caplog.records) == 3


@pytest.mark.spec("I-157", "I-166")
@given(st.text(st.characters(exclude_categories=("Cs",))), st.integers(1, 5))
@example("\ud7ff" * 3, 2)
@example("\U0010ffff" * 3, 2)
def test_truncated_bounds_are_bounds(text, width):
    """In the order of code points, which is that of their UTF-8."""
    lower, upper = truncated(text, text, width)
    assert len(lower) <= width and lower.encode() <= text.encode()
    if upper is not None:
        assert len(upper) <= width and upper.encode() >= text.encode()
        assert len(text) <= width or upper > text
    else:
        assert set(text[:width]) == {"\U0010ffff"}


@pytest.mark.spec("I-166")
@pytest.mark.spark
def test_files_of_spark_have_the_same_metrics(spark, tmp_path):
    properties = {f"{PREFIX}default": "counts", f"{PREFIX}column.text": "truncate(2)", f"{PREFIX}column.s.n.y": "full"}
    create(tmp_path / "t", properties)
    there = bh.create(str(tmp_path / "u"), ROWS.schema, format="iceberg", properties=properties)
    there.append(bh.open(str(tmp_path / "t")).to_spark(spark).coalesce(1))
    (mine, _), (other, _) = recorded(tmp_path / "t"), recorded(tmp_path / "u")
    del mine["column_sizes"], other["column_sizes"]
    assert mine == other and set(mine["lower_bounds"]) == {"text", "s.n.y"}
