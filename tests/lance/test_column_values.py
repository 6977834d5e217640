"""Columns with values for rows that are there: new data files beside the old ones in every fragment, which pylance
reads and goes on from, and the reverse."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ConstraintViolationError,
    EvaluationError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)

lance = pytest.importorskip("lance")

VERSIONS = ["2.0", "2.1", "2.2"]
NESTED = pa.table(
    {
        "a": pa.array(range(20), pa.int64()),
        "s": [f"v{i}" if i % 3 else None for i in range(20)],
        "n": pa.array([{"q": i, "l": [i] * (i % 3)} for i in range(20)]),
    }
)


def data(kit) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in (kit.root / "data").iterdir()}


def same(kit, **options) -> pa.Table:
    """The rows, as both read them."""
    dataset = kit.dataset(**options)
    dataset.validate()
    theirs = dataset.to_table()
    ours = kit.open(**options).to_arrow()
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist()) and ours.column_names == theirs.column_names
    return theirs


def files(kit) -> list[list[tuple[int, ...]]]:
    return [[file.fields for file in fragment.files] for fragment in kit.load().manifest.fragments]


def kind(kit, version=None) -> str:
    return type(kit.dataset().read_transaction(version or kit.load().version).operation).__name__


@pytest.fixture
def fragments(kit):
    """Four fragments of five rows, of which some are deleted, in the first and last place too."""
    kit.pylance(NESTED, max_rows_per_file=5)
    kit.dataset().delete("a IN (0, 6, 7, 9, 14)")
    return kit.open()


LEFT = [a for a in range(20) if a not in (0, 6, 7, 9, 14)]


# --- where values come from --------------------------------------------------------------------------


@pytest.mark.spec("L-025")
@pytest.mark.feature("add columns with values", format="lance")
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_columns_from_expressions(kit, version, stable):
    rows = NESTED if version != "2.0" else NESTED.select(["a", "s"])
    kit.pylance(rows, max_rows_per_file=5, data_storage_version=version, enable_stable_row_ids=stable)
    kit.dataset().delete("a IN (0, 6, 7, 9, 14)")
    before, table = data(kit), kit.open()
    result = table.add_columns({"b": "a * 2", "t": "coalesce(s, 'none')", "one": "1"}, message="computed")
    assert (result.version, result.files_added, result.rows_added, result.retries) == (3, 4, 0, 0)
    assert {name: data(kit)[name] for name in before} == before and len(data(kit)) == len(before) + 4
    assert kind(kit) == "Merge" and all(len(found) == 2 for found in files(kit))
    found = same(kit)
    assert found.column("b").to_pylist() == [a * 2 for a in LEFT] and found.column("one").to_pylist() == [1] * 15
    assert found.column("t").to_pylist() == [f"v{a}" if a % 3 else "none" for a in LEFT]
    assert [str(table.schema.field(n).type) for n in ("b", "t", "one")] == ["bigint", "string", "int"]
    fragment = kit.dataset().get_fragments()[1]
    assert (fragment.physical_rows, fragment.num_deletions, fragment.count_rows()) == (5, 3, 2)
    assert kit.dataset().to_table(filter="b = 10").num_rows == kit.read(where="b = 10").num_rows == 1
    assert kit.dataset().take([0, 6], columns=["b"]).to_pylist() == [{"b": 2}, {"b": 20}]
    assert same(kit, version=2).column_names == rows.column_names
    entry = table.history(1)[0]
    assert (entry.operation, entry.message, entry.parameters["columns"]) == (
        "add-columns", "computed", "b bigint, t string, one int",
    )  # fmt: skip


@pytest.mark.spec("L-025")
@pytest.mark.parametrize("stable", [False, True])
def test_either_library_goes_on(kit, stable):
    """Updates, deletes, appends, compactions and further columns of both."""
    kit.pylance(NESTED, max_rows_per_file=5, enable_stable_row_ids=stable)
    table = kit.open()
    table.add_columns({"b": "a * 2"})
    kit.dataset().delete("b = 6")
    kit.dataset().update({"s": "'theirs'"}, where="b = 8")
    table.update({"b": "b + 1"}, where="a = 5")
    kit.dataset().add_columns({"c": "b * 10"})
    table.add_columns({"d": "b + c"})
    table.append(pa.table({"a": [50], "s": ["x"], "n": [None], "b": [1], "c": [2], "d": [3]}, table.to_arrow().schema))
    kit.dataset().insert(pa.table({"a": [51], "s": ["y"]}))
    kit.dataset().merge(pa.table({"a": [1, 51], "m": ["one", "last"]}), "a")
    same(kit)
    table.optimize()
    kit.dataset().optimize.compact_files()
    found = {row["a"]: row for row in same(kit).to_pylist()}
    assert len(found) == 21 and 3 not in found
    assert [found[4][n] for n in ("s", "b", "c", "d", "m")] == ["theirs", 8, 80, 88, None]
    assert (found[5]["b"], found[5]["d"], found[1]["m"], found[51]["m"], found[51]["b"]) == (
        11,
        121,
        "one",
        "last",
        None,
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: pa.record_batch({"b": [a.as_py() * 2 for a in rows["a"]]}),
        lambda rows: pa.table({"b": pa.chunked_array([rows["a"], pa.array([], pa.int64())])}),
        lambda rows: {"b": np.asarray(rows["a"]) * 2, "c": pa.array(["c"] * rows.num_rows)},
        lambda rows: rows.to_pandas().assign(b=lambda f: f["a"] * 2)[["b"]],
    ],
    ids=["batch", "table", "dict", "pandas"],
)
def test_columns_from_functions(kit, fragments, function):
    fragments.add_columns(function, columns=["A"])
    b = same(kit).column("b").to_pylist()
    assert b in ([a * 2 for a in LEFT], LEFT)


def test_columns_from_nothing(kit):
    table = kit.create(pa.table({"k": [5, 6, 7]}))
    table.delete("k = 6")
    table.add_columns({"one": "1", "day": "date'2026-11-24'"})
    table.add_columns(lambda rows: {"n": [rows.num_rows] * rows.num_rows}, columns=[])
    day = dt.date(2026, 11, 24)
    assert same(kit).to_pylist() == [{"k": k, "one": 1, "day": day, "n": 2} for k in (5, 7)]


def test_beside_columns_that_are_not_written(kit):
    """A new column asks nothing of the others."""
    schema = pa.schema(
        [
            pa.field("k", pa.int64()),
            pa.field("b", pa.binary(2), True, {"ARROW:extension:name": "lance.bfloat16"}),
            pa.field("j", pa.string(), True, {"ARROW:extension:name": "arrow.json"}),
            pa.field("v", pa.large_binary(), True, {"lance-encoding:blob": "true"}),
        ]
    )
    rows = pa.table([range(5), [b"\0\x3f"] * 5, ['{"a":1}'] * 5, [b"v" * i for i in range(5)]], schema=schema)
    kit.pylance(rows, data_storage_version="2.1")
    kit.open().add_columns({"c": "k + cast(b as int)", "t": "upper(j)"})
    kit.open().cast_column("k", "string")
    found = kit.dataset().to_table(columns=["k", "c", "t"]).to_pylist()
    assert found == [{"k": str(i), "c": i, "t": '{"A":1}'} for i in range(5)]
    assert [f.readall() for f in kit.dataset().take_blobs("v", indices=[0, 4])] == [b"", b"v" * 4]


def test_what_functions_get(kit, fragments):
    """Live rows in order, one batch after another; by default of all columns, and the first once more."""
    seen = []

    def noted(rows):
        seen.append(rows)
        return {"b": rows["a"]}

    fragments.add_columns(noted)
    assert [r for rows in seen[1:] for r in rows["a"].to_pylist()] == LEFT
    assert seen[0].equals(seen[1]) and seen[0].schema.names == ["a", "s", "n"]


def test_functions_with_a_schema(kit, fragments):
    """Then they are called once for each row, and lists become what it says."""
    seen = []

    def vectors(rows):
        seen.extend(rows["a"].to_pylist())
        return {"v": [[0.5, 1]] * len(rows), "t": [None] * len(rows)}

    kind = pa.list_(pa.float32(), 2)
    fragments.add_columns(vectors, columns=["a"], schema=pa.schema([("v", kind), ("t", pa.string())]))
    assert seen == LEFT and kit.dataset().schema.field("v").type == kind
    assert same(kit).select(["v", "t"]).to_pylist() == [{"v": [0.5, 1.0], "t": None}] * 15
    fragments.add_columns(lambda rows: {"d": rows["a"].cast("int32")}, columns=["a"], schema="d bigint")
    assert same(kit).column("d").to_pylist() == LEFT


def test_functions_that_fail(kit, fragments):
    """Whatever goes wrong, nothing is left behind."""
    before = kit.files()
    calls = []

    def late(rows):
        calls.append(rows)
        if len(calls) > 3:
            raise ZeroDivisionError("in the fourth batch")
        return {"b": rows["a"]}

    def short(rows):
        return {"b": rows["a"][: -1 if calls.append(rows) or len(calls) > 2 else None]}

    def other(rows):
        calls.append(rows)
        return {"b" if len(calls) < 3 else "c": rows["a"]}

    def retyped(rows):
        calls.append(rows)
        return {"b": rows["a"] if len(calls) < 3 else ["text"] * len(rows)}

    for function, error, match in (
        (late, ZeroDivisionError, "fourth"),
        (short, SchemaMismatchError, "values of new columns for"),
        (other, SchemaMismatchError, "no values of the new column b for some rows"),
        (retyped, SchemaMismatchError, "`b`"),
        (lambda rows: 5, InvalidArgumentError, "gave no columns, but int"),
        (lambda rows: {"b": [None] * len(rows)}, InvalidArgumentError, "`b` has no type"),
        (lambda rows: {}, InvalidArgumentError, "no column to add"),
        (lambda rows: {"S": rows["a"]}, InvalidArgumentError, "already exists"),
    ):
        calls.clear()
        with pytest.raises(error, match=match):
            fragments.add_columns(function)
        assert kit.files() == before


@pytest.mark.parametrize("on", ["a", ["A"]])
def test_columns_from_a_join(kit, fragments, on):
    """As pylance's merge: a row without a match has nulls, rows of the data without one are left out."""
    given = pa.table(
        {"a": [5, 1, 99, 8, 0], "x": ["five", None, "no", "eight", "deleted"], "l": [[5], [1], [], [8], []]}
    )
    given = given.set_column(0, "a", given["a"].cast(pa.int32()))  # a narrower type than the table's
    fragments.add_columns(given, on=on)
    found = {row["a"]: (row["x"], row["l"]) for row in same(kit).to_pylist()}
    assert {a: v for a, v in found.items() if v != (None, None)} == {
        5: ("five", [5]),
        1: (None, [1]),
        8: ("eight", [8]),
    }
    stream = given.rename_columns(["a", "y", "m"])
    fragments.add_columns(pa.RecordBatchReader.from_batches(stream.schema, stream.to_batches()), on="a")
    assert same(kit).column("y") == same(kit).column("x")
    with pytest.raises(InvalidArgumentError, match="already exists"):
        fragments.add_columns(given, on="a")
    fragments.add_columns(pa.table({"s": ["v5", None], "z": [1, 2]}), on="s")
    assert same(kit).column("z").to_pylist() == [1 if a == 5 else None for a in LEFT], "null equals nothing"


def test_joins_by_several_keys_and_floats(kit):
    rows = pa.table({"f": [0.0, -0.0, math.nan, 1.0, None], "g": ["x", "y", "x", "x", "x"]})
    table = kit.create(rows)
    table.add_columns(pa.table({"f": [-0.0, math.nan, 1.0], "g": ["x", "x", "y"], "v": [1, 2, 3]}), on=["f", "g"])
    assert same(kit).column("v").to_pylist() == [1, None, 2, None, None]
    polars = pytest.importorskip("polars")
    table.add_columns(polars.DataFrame({"g": ["x", "y"], "w": [7, 8]}), on="g")
    assert same(kit).column("w").to_pylist() == [7, 8, 7, 7, 7]


def test_a_join_with_nothing(kit, fragments):
    fragments.add_columns(pa.table({"a": pa.array([], pa.int64()), "x": pa.array([], pa.list_(pa.string()))}), on="a")
    assert same(kit).column("x").null_count == 15


def test_joins_that_are_refused(kit, fragments):
    before = kit.files()
    for given, on, error, match in (
        (pa.table({"a": [1, 2, 1], "x": [1, 2, 3]}), "a", ConstraintViolationError, r"two rows .* \{'a': 1\}"),
        (pa.table({"a": ["1"], "x": [1]}), "a", SchemaMismatchError, "`a`"),
        (pa.table({"b": [1], "x": [1]}), "a", ColumnNotFoundError, "the data has no column `a`"),
        (pa.table({"b": [1], "x": [1]}), "b", ColumnNotFoundError, "no column `b`"),
        (pa.table({"a": [1]}), "a", InvalidArgumentError, "no columns but its keys"),
        (pa.table({"a": [1], "x": [None]}), "a", InvalidArgumentError, "`x` has no type"),
        (pa.table({"n": [{"q": 1}], "x": [1]}), "n", UnsupportedTypeError, "struct"),
        (pa.table({"a": [1], "x": [1]}), [], InvalidArgumentError, "names no column"),
    ):
        with pytest.raises(error, match=match):
            fragments.add_columns(given, on=on)
        assert kit.files() == before
    with pytest.raises(InvalidArgumentError, match="for a function"):
        fragments.add_columns({"b": "a"}, columns=["a"])
    with pytest.raises(InvalidArgumentError, match="are not values of columns"):
        fragments.add_columns(pa.table({"x": [1]}))


def test_expressions_that_are_refused(kit, fragments):
    before = kit.files()
    for values, error, match in (
        ({"b": "a +"}, ExpressionError, "a"),
        ({"b": "missing"}, ColumnNotFoundError, "missing"),
        ({"b": "null"}, InvalidArgumentError, "has no type"),
        ({"s": "a"}, InvalidArgumentError, "already exists"),
        ({"x.y": "a"}, InvalidArgumentError, "dots"),
        ({"b": "1 / (a - 15)"}, EvaluationError, "zero"),
        ({}, InvalidArgumentError, "are not values"),
    ):
        with pytest.raises(error, match=match):
            fragments.add_columns(values)
        assert kit.files() == before
    fragments.add_columns({"b": "1 / a"}, dry_run=True)
    assert kit.files() == before
    fragments.add_columns({"b": "1 div a"})
    assert same(kit).column("b").to_pylist() == [1 if a == 1 else 0 for a in LEFT], "the row with 0 is deleted"


# --- what is stored ----------------------------------------------------------------------------------

SHAPES = {
    "bool": [True, None, False],
    "tiny": pa.array([1, None, -128], pa.int8()),
    "unsigned": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "half": pa.array([np.float16(0.5), None, np.float16(-0.0)], pa.float16()),
    "float": [math.nan, -0.0, None],
    "decimal": [Decimal("1.50"), None, Decimal("-99.99")],
    "date": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
    "time": pa.array([0, None, 5], pa.time64("us")),
    "zoned": pa.array([0, None, -1], pa.timestamp("us", "UTC")),
    "binary": [b"", None, b"\0\xff" * 3000],
    "text": ["", None, "\U0001f6a3" * 2000],
    "list": [[], None, [1, None]],
    "deep": [[[1], None], [], None],
    "struct": pa.array([{"x": 1, "y": None}, {"x": None, "y": "b"}, None]),
    "whole struct": pa.array([{"x": 1, "y": None}, {"x": None, "y": "b"}, {"x": 3, "y": "c"}]),
    "vector": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
    "structs": [[{"x": 1}], [], [{"x": None}, {"x": 2}]],
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
}


@pytest.mark.few(14)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_of_new_columns(kit, shape, version):
    rows = pa.table({"k": pa.array(range(400), pa.int64())})
    kit.pylance(rows, max_rows_per_file=150, data_storage_version=version)
    kit.dataset().delete("k % 7 = 3 OR k > 390")
    values = SHAPES[shape] if isinstance(SHAPES[shape], pa.Array) else pa.array(SHAPES[shape])
    if shape in ("struct", "whole struct") and version == "2.0":  # a row without a match is null
        before = kit.files()
        with pytest.raises(UnsupportedFeatureError, match="null structs"):
            kit.open().add_columns(pa.table({"k": range(3), "v": values}), on="k")
        assert kit.files() == before
    else:
        kit.open().add_columns(pa.table({"k": range(3), "v": values}), on="k")
    if shape == "struct" and version == "2.0":
        return
    kit.open().add_columns(lambda b: {"w": values.take(pa.array([k % 3 for k in b["k"].to_pylist()]))}, columns=["k"])
    found = same(kit)
    whole = values.to_pylist()
    assert repr(found.column("w").to_pylist()) == repr([whole[k % 3] for k in found.column("k").to_pylist()])
    if "v" in found.column_names:
        assert found.column("v").null_count >= len(found) - 3
    assert kit.dataset().count_rows() == len(found) == 335


def test_a_fragment_of_many_batches(kit):
    """At most so many rows at once, and each deleted row has its place, wherever they are."""
    count = 300_000
    kit.pylance(pa.table({"k": np.arange(count)}), max_rows_per_file=count)
    kit.dataset().delete("k < 70000 OR (k > 100000 AND k < 240000 AND k != 170000) OR k % 5 = 2 OR k > 290000")
    left, sizes = kit.read().column(0).to_numpy(), []

    def doubled(rows):
        sizes.append(len(rows))
        return {"d": np.asarray(rows["k"]) * 2}

    kit.open().add_columns(doubled)
    assert max(sizes) <= 1 << 16 and len(sizes) > 3
    found = kit.dataset().to_table()
    kit.dataset().validate()
    assert (found.column("d").to_numpy() == left * 2).all() and (kit.read().column("d").to_numpy() == left * 2).all()
    every = kit.dataset().scanner(include_deleted_rows=True, with_row_id=True).to_table()
    assert len(every) == count and every.column("d").null_count == count - len(left), "a deleted row has no value"


def test_an_empty_table(kit, numbers):
    table = kit.create(numbers)
    table.delete("true")
    table.add_columns({"b": "a * 2"})
    table.add_columns(lambda rows: {"c": rows["a"]})
    table.append(pa.table({"a": [1], "s": ["x"], "b": [2], "c": [3]}))
    assert same(kit).to_pylist() == [{"a": 1, "s": "x", "b": 2, "c": 3}]


def test_versions_of_rows(kit):
    """With stable row ids the rows count as changed, as pylance has it; when they came stays."""
    pair = [kit, type(kit)(kit.root.parent / "theirs")]
    for one in pair:
        one.pylance(NESTED, max_rows_per_file=5, enable_stable_row_ids=True)
        one.dataset().update({"s": "'u'"}, where="a = 7")
    kit.open().add_columns({"b": "a + 1"})
    pair[1].dataset().add_columns({"b": "a + 1"})
    names = ["a", "b", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    ours, theirs = (one.dataset().to_table(columns=names).to_pylist() for one in pair)
    assert ours == theirs and {row["_row_last_updated_at_version"] for row in ours} == {3}
    assert kit.read(columns=["_row_version"]).column(0).to_pylist() == [3] * 20
    changed = kit.open().changes(3, 3).to_arrow().group_by("_change_type").aggregate([("b", "sum")]).to_pylist()
    assert {row["_change_type"]: row["b_sum"] for row in changed} == {"delete": None, "insert": sum(range(1, 21))}


# --- another type, null or not -----------------------------------------------------------------------


@pytest.mark.spec("L-025")
@pytest.mark.feature("cast columns", format="lance")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("stable", [False, True])
def test_a_column_of_another_type(kit, numbers, version, stable):
    """A new field with a new id in the same place; the old files stay as they are, and indices on the column go."""
    kit.pylance(numbers, max_rows_per_file=4, data_storage_version=version, enable_stable_row_ids=stable)
    kit.dataset().delete("a IN (0, 5, 9)")
    kit.dataset().create_scalar_index("a", "BTREE")
    kit.dataset().create_scalar_index("s", "BTREE")
    before, table = data(kit), kit.open()
    table.cast_column("A", "string")
    assert {name: data(kit)[name] for name in before} == before
    assert [(f.id, f.name, f.logical_type) for f in kit.load().manifest.fields] == [
        (2, "a", "string"),
        (1, "s", "string"),
    ]
    assert files(kit) == [[(0, 1), (2,)]] * 3
    assert same(kit).column("a").to_pylist() == ["1", "2", "3", "4", "6", "7", "8"]
    assert [i.field_names for i in kit.dataset().describe_indices()] == [["s"]]
    assert kit.dataset().to_table(filter="s = 'v7'").num_rows == 1
    table.cast_column("a", "smallint")
    kit.dataset().alter_columns({"path": "a", "data_type": pa.int64()})
    table.cast_column("a", "int")
    table.update({"a": "a + 1"}, where="a = 3")
    assert [f.id for f in kit.load().manifest.fields] == [5, 1]
    table.drop_column("s")
    assert all(len(found) <= 2 for found in files(kit))
    assert sorted(same(kit).column("a").to_pylist()) == [1, 2, 4, 4, 6, 7, 8]
    assert table.cast_column("a", "int").version is None, "which it is"
    assert same(kit, version=4).schema.field("a").type == pa.int64()
    table.optimize()
    assert same(kit).num_rows == 7


def test_casts_that_fail(kit):
    rows = pa.table({"t": ["1", "x", "3"], "n": pa.array([{"q": 1}] * 3), "l": pa.array([[{"q": 1}]] * 3)})
    table = kit.create(rows)
    before = kit.files()
    for name, type, error, match in (
        ("t", "int", EvaluationError, "x"),
        ("t", "array<int>", ExpressionError, "array"),
        ("l.item.q", "string", UnsupportedFeatureError, "in a list or map"),
        ("n.q", "array<int>", ExpressionError, "array"),
        ("n.z", "int", ColumnNotFoundError, "z"),
        ("z", "int", ColumnNotFoundError, "z"),
        ("t", "void", InvalidArgumentError, "has no type"),
    ):
        with pytest.raises(error, match=match):
            table.cast_column(name, type)
        assert kit.files() == before
    with pytest.raises(UnsupportedFeatureError, match="cast_column"):
        table.widen_column("t", "binary")
    table.delete("t = 'x'")
    table.cast_column("t", "int")
    assert same(kit).column("t").to_pylist() == [1, 3], "what is deleted is not cast"
    table.cast_column("n", "struct<q: double>")
    assert same(kit).column("n").to_pylist() == [{"q": 1.0}] * 2
    table.cast_column("n.q", "string")
    assert same(kit).column("n").to_pylist() == [{"q": "1.0"}] * 2


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_fields_of_structs_are_cast(kit, version, stable):
    """A file with the field alone, in its structs, of which some are null; the others stay where they are."""

    def inner(i: int) -> dict[str, object] | None:
        return {"x": i if i % 3 else None, "y": str(i), "z": {"w": i * 10} if i % 5 else None} if i % 4 else None

    rows = [{"k": i, "s": inner(i), "l": [{"q": i}]} for i in range(12)]
    data = pa.Table.from_pylist(rows)
    kit.pylance(data, max_rows_per_file=5, enable_stable_row_ids=stable, data_storage_version=version)
    kit.dataset().create_scalar_index("s.x", "BTREE", name="inner")
    kit.dataset().delete("k = 2")
    table = kit.open()
    table.cast_column("s.x", "string")
    table.cast_column("S.Z.w", "double")
    kit.dataset().alter_columns({"path": "s.x", "data_type": pa.large_string()})
    table.cast_column("s.x", "int")

    def wanted(i: int):
        found = inner(i)
        return found and found | {"z": found["z"] and {"w": float(i * 10)}}

    left = [{"k": i, "s": wanted(i), "l": [{"q": i}]} for i in range(12) if i != 2]
    assert same(kit).to_pylist() == left
    assert not kit.open().indices().num_rows, "an index on the field goes with it"
    held = [[f.fields for f in fragment.files] for fragment in kit.load().manifest.fragments]
    fields = {f.name: f.id for f in kit.load().manifest.fields}
    assert all((fields["x"],) in files and (fields["w"],) in files and len(files) == 3 for files in held)
    table.update({"s.x": "s.x + 1"}, where="k = 7")
    table.cast_column("s.z", "struct<w: string>")
    found = {row["k"]: row["s"] for row in same(kit).to_pylist()}
    assert (found[7]["x"], found[7]["z"], found[4]) == (8, {"w": "70.0"}, None)
    table.optimize()
    assert {row["k"]: row["s"] for row in same(kit).to_pylist()} == found
    with kit.overtaken_by(lambda: kit.dataset().delete("k = 7")):
        table.cast_column("s.x", "bigint")
    assert {row["k"] for row in same(kit).to_pylist()} == set(found) - {7}


@pytest.mark.spec("L-063")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_columns_are_replaced(kit, version, stable):
    """Files with the columns alone; the fields are tombstones in the old ones, and indices on them cover no row."""
    kit.pylance(NESTED, max_rows_per_file=8, enable_stable_row_ids=stable, data_storage_version=version)
    for column in ("a", "s"):
        kit.dataset().create_scalar_index(column, "BTREE")
    kit.dataset().delete("a = 2")
    table = kit.open()
    ids = kit.dataset().to_table(columns=["a"], with_row_id=True).column("_rowid").to_pylist()
    table.add_columns({"s": "concat('new ', a)"}, replace=True)
    assert kind(kit) == "DataReplacement" and table.history()[0].parameters["transaction"] == "data_replacement"
    left = [row | {"s": f"new {row['a']}"} for row in NESTED.to_pylist() if row["a"] != 2]
    assert same(kit).to_pylist() == left
    states = {r["name"]: r["units"] for r in table.indices().to_pylist()}
    assert states == {"a_idx": 3, "s_idx": 0}
    for where, count in (("s = 'new 7'", 1), ("s = 'v7'", 0), ("a = 7", 1)):
        assert kit.dataset().count_rows(filter=where) == table.scan(where=where).count() == count
    assert kit.dataset().to_table(columns=["a"], with_row_id=True).column("_rowid").to_pylist() == ids
    if stable:
        changed = table.scan(["_row_version"]).to_arrow().column(0).unique().to_pylist()
        assert changed == [table.version]
    table.add_columns(
        lambda rows: {"n": [{"q": -a, "l": [a]} for a in rows["a"].to_pylist()], "more": rows["a"]},
        columns=["a"],
        replace=True,
    )
    assert kind(kit) == "Merge", "with a new column"
    left = [row | {"n": {"q": -row["a"], "l": [row["a"]]}, "more": row["a"]} for row in left]
    assert same(kit).to_pylist() == left
    table.add_columns({"s": "null", "more": "more + 1", "a": "a"}, replace=True)
    assert all(len(found) == 2 for found in files(kit)), "a file of tombstones alone is no longer named"
    with kit.overtaken_by(lambda: kit.pylance(same(kit).slice(0, 1), mode="append")):
        table.add_columns({"more": "a * 2"}, replace=True)
    left = [row | {"s": None, "more": row["a"] * 2} for row in [*left, left[0]]]
    assert same(kit).to_pylist() == left
    table.optimize_indices()
    table.optimize()
    assert sorted(map(repr, same(kit).to_pylist())) == sorted(map(repr, left))


def test_what_is_not_replaced(kit, numbers):
    kit.pylance(numbers)
    table, before = kit.open(), kit.files()
    for call, error, match in (
        (lambda: table.add_columns({"s": "a"}), InvalidArgumentError, "already exists"),
        (lambda: table.add_columns({"S": "'x'"}, replace=True), InvalidArgumentError, "already exists"),
        (lambda: table.add_columns({"a": "s"}, replace=True), EvaluationError, "v1"),
        (lambda: table.add_columns({"a": "array(a)"}, replace=True), ExpressionError, "cannot be cast"),
        (lambda: table.add_columns(lambda rows: {"a": rows["s"]}, replace=True), SchemaMismatchError, "`a`"),
        (lambda: table.add_columns(numbers, on="a", replace=True), InvalidArgumentError, "would lose their values"),
    ):
        with pytest.raises(error, match=match):
            call()
        assert kit.files() == before


def test_fields_of_structs_in_files_of_2_0(kit):
    """pylance does not find them in a file of their own."""
    kit.pylance(pa.table({"s": [{"x": 1, "y": 2}]}), data_storage_version="2.0")
    files = kit.files()
    with pytest.raises(UnsupportedFeatureError, match="a field of a struct in a file of its own"):
        kit.open().cast_column("s.x", "string")
    assert kit.files() == files


@pytest.mark.parametrize("version", VERSIONS)
def test_a_column_that_cannot_be_null_is_cast(kit, version):
    """Also where the first rows, the last ones, and all rows of a batch are deleted."""
    schema = pa.schema([pa.field("k", pa.int32(), False, {"unit": "m"}), pa.field("v", pa.string())])
    rows = pa.table({"k": range(1000), "v": ["x"] * 1000}, schema)
    kit.pylance(rows, data_storage_version=version)
    kit.dataset().delete("k < 100 OR k > 800 OR k % 3 = 0")
    for type, arrow in (("bigint", pa.int64()), ("string", pa.string()), ("decimal(9,1)", pa.decimal128(9, 1)),
                        ("string", pa.string()), ("double", pa.float64()), ("int", pa.int32())):  # fmt: skip
        kit.open().cast_column("k", type)
        field = kit.dataset().schema.field("k")
        assert (field.type, field.nullable, field.metadata[b"unit"]) == (arrow, False, b"m")
        assert [int(float(k)) for k in same(kit).column("k").to_pylist()] == [k for k in range(100, 801) if k % 3]


def test_null_or_not(kit, numbers):
    table = kit.create(numbers)
    with pytest.raises(ConstraintViolationError, match="`s` is null in 4 rows"):
        table.set_nullable("s", False)
    table.set_nullable("a", False)
    table.set_nullable("a", False)
    assert [f.nullable for f in kit.dataset().schema] == [False, True] == [f.nullable for f in table.schema]
    assert kind(kit) == "Project" and not kit.load().document.transaction.project.preserves_nullability
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"a": pa.array([None], pa.int64()), "s": ["x"]}))
    kit.dataset().alter_columns({"path": "a", "nullable": True})
    kit.dataset().alter_columns({"path": "a", "nullable": False})
    table.set_nullable("a", True)
    assert kit.load().document.transaction.project.preserves_nullability
    table.append(pa.table({"a": pa.array([None], pa.int64()), "s": ["x"]}))
    assert same(kit).num_rows == 11
    table.delete("s IS NULL")
    table.set_nullable("s", False)
    kit.dataset().delete("a IS NULL")
    table.evolve().set_nullable("a", False).add_column("c", "int").rename_column("s", "t").execute()
    assert [(f.name, f.nullable) for f in kit.dataset().schema] == [("a", False), ("t", False), ("c", True)]
    assert same(kit).num_rows == 6


def test_nulls_that_come_meanwhile(kit, numbers):
    table = kit.create(numbers)
    with pytest.raises(ConstraintViolationError, match="`a` is null in 1 row"):
        with kit.overtaken_by(lambda: kit.dataset().insert(pa.table({"a": pa.array([None], pa.int64()), "s": ["x"]}))):
            table.set_nullable("a", False)
    kit.dataset().delete("a IS NULL")
    stale = kit.dataset()
    table.set_nullable("a", False)
    with pytest.raises(OSError):
        stale.insert(pa.table({"a": pa.array([None], pa.int64()), "s": ["x"]}))
    with pytest.raises(SchemaMismatchError):
        with kit.overtaken_by(lambda: kit.open().set_nullable("s", True) and kit.open().delete("s IS NULL") and
                              kit.open().set_nullable("s", False)):  # fmt: skip
            table.append(pa.table({"a": [1], "s": pa.array([None], pa.string())}))


def test_a_name_is_used_again(kit, fragments):
    """After a drop a column of the name is another one."""
    fragments.add_columns({"b": "a"})
    first = kit.load().manifest.fields[-1].id
    fragments.drop_column("b")
    fragments.add_columns({"b": "cast(a as string)"})
    assert kit.load().manifest.fields[-1].id == first + (0 if len(files(kit)[0]) == 2 else 1)
    assert same(kit).column("b").to_pylist() == [str(a) for a in LEFT]


# --- beside other commits ----------------------------------------------------------------------------


@pytest.mark.few(8)
@pytest.mark.spec("L-067", "L-070", "L-071")
@pytest.mark.parametrize("how", ["add", "cast"])
@pytest.mark.parametrize(
    ("action", "retries"),
    [
        (lambda kit: kit.dataset().insert(pa.table({"a": pa.array([70], pa.int64()), "s": ["new"]})), 1),
        (lambda kit: kit.dataset().delete("a = 3"), 1),
        (lambda kit: kit.dataset().update({"s": "'u'", "a": "a + 100"}, where="a = 5"), 1),
        (lambda kit: kit.dataset().optimize.compact_files(), 1),
        (lambda kit: kit.dataset().add_columns({"c": "a + 1"}), 1),
        (lambda kit: kit.open().add_columns({"c": "a + 1"}), 1),
        (lambda kit: kit.open().cast_column("s", "binary"), 1),
        (lambda kit: kit.dataset().drop_columns(["s"]), 1),
        (lambda kit: kit.dataset().create_scalar_index("s", "BTREE"), 0),
        (lambda kit: kit.dataset().update_config({"x": "1"}), 0),
        (lambda kit: kit.pylance(NESTED, mode="overwrite"), None),
        (lambda kit: kit.dataset(version=1).restore(), None),
    ],
    ids=["append", "delete", "update", "compact", "add", "ours", "cast", "drop", "index", "config", "over", "restore"],
)
def test_after_another_commit(kit, numbers, action, retries, how):
    """What changed rows or columns is followed by values computed again; what replaced the table by nothing."""
    table = kit.create(numbers)
    table.append(numbers)

    def ours():
        return table.add_columns({"b": "a * 2"}) if how == "add" else table.cast_column("a", "string")

    if retries is None:
        before = kit.files()
        with pytest.raises(CommitConflictError):
            with kit.overtaken_by(lambda: action(kit)):
                ours()
        assert {f for f in kit.files() - before if f.startswith("data/")} == {
            f"data/{file.path}" for fragment in kit.load().manifest.fragments for file in fragment.files
        } - before
        return
    with kit.overtaken_by(lambda: action(kit)):
        assert ours().retries == retries
    found = same(kit)
    if how == "add":
        assert found.column("b").to_pylist() == [a * 2 for a in found.column("a").to_pylist()]
    else:
        assert found.schema.field("a").type == pa.string()
    named = {f"data/{file.path}" for v in range(1, table.version + 1) for fragment in
             kit.load(at(v)).manifest.fragments for file in fragment.files}  # fmt: skip
    assert {f for f in kit.files() if f.startswith("data/")} == named, "files of the lost attempt are gone"


def at(version):
    from boathouse.table.location import At

    return At(version=version)


@pytest.mark.parametrize(
    ("action", "follows"),
    [
        (lambda d: d.insert(pa.table({"a": pa.array([70], pa.int64()), "s": ["new"]})), True),
        (lambda d: d.delete("a = 3"), True),
        (lambda d: d.update({"s": "'u'"}, where="a = 5"), True),
        (lambda d: d.create_scalar_index("s", "BTREE"), True),
        (lambda d: d.update_config({"x": "1"}), True),
        (lambda d: d.add_columns({"c": "a + 1"}), False),
        (lambda d: d.drop_columns(["s"]), False),
        (lambda d: d.optimize.compact_files(), False),
    ],
    ids=["append", "delete", "update", "index", "config", "add", "drop", "compact"],
)
def test_a_stale_handle_of_pylance(kit, numbers, action, follows):
    """As after its own merge: what it makes of ours is what it makes of one of its own."""
    table = kit.create(numbers)
    table.append(numbers)
    stale = kit.dataset()
    table.add_columns({"b": "a * 2"})
    if not follows:
        with pytest.raises(OSError, match=r"(?i)conflict|retry"):
            action(stale)
    else:
        action(stale)
    found = same(kit)
    assert set(found.column_names) == {"a", "s", "b"}
    pairs = zip(found.column("a").to_pylist(), found.column("b").to_pylist())
    assert all(b == a * 2 or (a == 70 and b is None) for a, b in pairs)


@pytest.mark.parametrize("first", ["append", "delete", "update", "merge", "optimize", "rename", "properties"])
def test_what_of_ours_follows(kit, numbers, first):
    """Rows that were planned before the columns came."""
    table = kit.create(numbers)
    table.append(numbers)
    action = {
        "append": lambda: table.append(numbers.slice(0, 1)),
        "delete": lambda: table.delete("a = 3"),
        "update": lambda: table.update({"s": "'u'"}, where="a = 5"),
        "merge": lambda: table.merge(numbers.slice(4, 1), "target.a = source.a").when_matched_delete().execute(),
        "optimize": lambda: table.optimize(),
        "rename": lambda: table.rename_column("s", "t"),
        "properties": lambda: table.set_properties({"x": "1"}),
    }[first]
    with kit.overtaken_by(lambda: kit.open().add_columns({"b": "a * 2"})):
        action()
    found = same(kit)
    assert found.num_rows == {"append": 21, "delete": 18, "merge": 18}.get(first, 20)
    wrong = [(a, b) for a, b in zip(found.column("a").to_pylist(), found.column("b").to_pylist()) if b != a * 2]
    assert wrong == ([(0, None)] if first == "append" else [])


# --- where it is not offered -------------------------------------------------------------------------


def test_tables_of_old_files(kit, numbers):
    kit.pylance(numbers, data_storage_version="0.1")
    before = kit.files()
    for ask in (lambda t: t.add_columns({"b": "a"}), lambda t: t.cast_column("a", "int")):
        with pytest.raises(UnsupportedFeatureError, match=r"0\.1"):
            ask(kit.open())
    assert kit.files() == before


@pytest.mark.spark
@pytest.mark.route("add columns with values")
@pytest.mark.feature("add columns with values", format="lance")
def test_columns_on_spark(kit, spark):
    """Expressions and functions run in the executors, a task a fragment; a join in process."""
    kit.pylance(NESTED, max_rows_per_file=5)
    kit.dataset().delete("a IN (0, 6, 7, 9, 14)")
    table, factor = bh.open(kit.uri, spark=spark), 3
    table.add_columns({"b": "a * 2"})
    table.add_columns(lambda rows: {"c": [a * factor for a in rows["a"].to_pylist()]}, columns=["a"])
    table.add_columns(pa.table({"a": [5], "d": ["five"]}), on="a")
    found = same(kit)
    assert found.select(["b", "c"]).to_pylist() == [{"b": a * 2, "c": a * 3} for a in LEFT]
    assert found.column("d").drop_null().to_pylist() == ["five"]
    with pytest.raises(EvaluationError):
        table.cast_column("s", "int")
    before = kit.files()
    with pytest.raises(ZeroDivisionError):
        table.add_columns(lambda rows: {"e": [1 // (a - 15) for a in rows["a"].to_pylist()]}, schema="e bigint")
    assert kit.files() == before


@pytest.mark.spark
@pytest.mark.feature("cast columns", format="lance")
def test_a_cast_on_spark(kit, spark, numbers):
    kit.pylance(numbers, max_rows_per_file=4)
    bh.open(kit.uri, spark=spark).cast_column("a", "string")
    assert same(kit).column("a").to_pylist() == [str(a) for a in range(10)]
