"""What the library takes it does, or refuses by name: pandas, paths below home, members of structs, methods to come."""

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    BoathouseError,
    InvalidArgumentError,
    MissingRequirementError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from makers.traits import REAL, TRAITS

pd = pytest.importorskip("pandas")
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "t")


def nanoseconds(*texts: str):
    return pd.DataFrame({"id": range(len(texts)), "t": pd.Series(texts).astype("datetime64[ns]")})


def test_nanoseconds_are_cast_where_nothing_is_lost(uri, format):
    frame = nanoseconds("2020-01-01 00:00:00.123456", "1969-12-31 23:59:59.999999")
    bh.write(frame, uri, format=format)
    kind = "timestamp_ntz(ns)" if TRAITS[format].nanoseconds else "timestamp_ntz"
    assert str(bh.open(uri).schema.field("t").type) == kind
    bh.open(uri).append(frame)
    found = bh.open(uri).to_pandas()
    assert sorted(found["t"].astype("datetime64[ns]")) == sorted([*frame["t"], *frame["t"]])
    bh.open(uri).overwrite(frame.rename(columns={"t": "u"}), overwrite_schema=True)
    assert [f.name for f in bh.open(uri).schema] == ["id", "u"]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_nanoseconds_that_would_be_lost_are_refused_by_value(uri, format):
    frame = nanoseconds("2020-01-01 00:00:00.123456789")
    with pytest.raises(SchemaMismatchError, match=r"`t`.*1577836800123456789"):
        bh.write(frame, uri, format=format)
    assert not list(Path(uri).glob("**/*.json"))
    table = bh.create(uri, "id bigint, t timestamp_ntz", format)
    with pytest.raises(SchemaMismatchError, match=r"`t`.*1577836800123456789"):
        table.append(frame)
    assert bh.open(uri).count() == 0


def test_nanoseconds_inside_of_nested_columns(uri):
    kind = pa.struct([("l", pa.list_(pa.timestamp("ns", "UTC")))])
    bh.write(pa.table({"s": pa.array([{"l": [1000]}], kind)}), uri)
    assert str(bh.open(uri).schema.field("s").type) == "struct<l:array<timestamp>>"


def test_a_named_index_is_kept_as_a_column(uri, format):
    frame = pd.DataFrame({"x": [1.5, 2.5]}, index=pd.Index(["a", "b"], name="key"))
    bh.write(frame, uri, format=format)
    assert bh.open(uri).to_arrow().to_pydict() == {"key": ["a", "b"], "x": [1.5, 2.5]}
    bh.open(uri).append(frame.reset_index())
    assert bh.open(uri).count() == 4


def test_levels_without_a_name_are_no_columns(uri):
    index = pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=[None, "key"])
    bh.write(pd.DataFrame({"x": [1, 2]}, index=index), uri)
    assert bh.open(uri).to_arrow().to_pydict() == {"key": ["a", "b"], "x": [1, 2]}
    with pytest.raises(InvalidArgumentError, match="key"):
        bh.open(uri).append(pd.DataFrame({"key": ["c"], "x": [3]}, index=pd.Index(["c"], name="key")))


def test_to_pandas_without_pandas(uri, monkeypatch):
    table = bh.create(uri, "id bigint")
    monkeypatch.setitem(sys.modules, "pandas", None)
    for read in (table.to_pandas, table.scan().to_pandas):
        with pytest.raises(MissingRequirementError, match="pandas is not installed"):
            read()


def test_paths_below_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    bh.write(pa.table({"id": [1]}), "~/lake/t")
    assert bh.open(str(tmp_path / "home" / "lake" / "t")).count() == 1
    assert bh.open(Path("~/lake/t")).count() == 1
    bh.create("~/lake/u", "id bigint")
    assert not (tmp_path / "~").exists()
    bh.write(pa.table({"id": [1]}), "./~/t")
    assert (tmp_path / "~" / "t").is_dir()


STRUCT = pa.table(
    {"s": pa.array([{"a": 1, "t": {"b": 2}}], pa.struct([("a", pa.int64()), ("t", pa.struct([("b", pa.int64())]))]))}
)


def test_columns_are_added_inside_of_structs(uri, format):
    bh.write(STRUCT, uri, format=format)
    table = bh.open(uri)
    try:
        table.add_column("s.c", "int")
    except UnsupportedFeatureError:
        assert not TRAITS[format].fields_in_structs
        assert [f.name for f in bh.open(uri).schema] == ["s"]
        return
    table.add_column("S.t.`d.e`", "string")
    assert bh.open(uri).to_arrow().to_pylist() == [{"s": {"a": 1, "t": {"b": 2, "d.e": None}, "c": None}}]
    for taken in ("s.c", "s.A", "s.t.b"):
        with pytest.raises(InvalidArgumentError, match="already exists in the table"):
            table.add_column(taken, "int")
    with pytest.raises(InvalidArgumentError, match=r"`s\.a` is bigint, so it has no fields.*backticks"):
        table.add_column("s.a.x", "int")
    with pytest.raises(BoathouseError, match="no column `nope`"):
        table.add_column("s.nope.x", "int")


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_dot_in_a_name_of_its_own(uri, format):
    bh.write(STRUCT, uri, format=format)
    table = bh.open(uri)
    table.add_column("`s.c`", "int")
    table.add_column("x.y", "int")
    assert [f.name for f in bh.open(uri).schema] == ["s", "s.c", "x.y"]
    with pytest.raises(InvalidArgumentError, match="already exists in the table"):
        table.add_column("x.y", "int")


def test_columns_are_renamed_and_dropped_where_files_do_not_have_their_names(uri, format):
    bh.write(pa.table({"id": [1], "x": [2]}), uri, format=format)
    table = bh.open(uri)
    if TRAITS[format].renames:
        table.rename_column("x", "y")
        table.drop_column("id")
        assert bh.open(uri).to_arrow().to_pydict() == {"y": [2]}
        return
    for call in (lambda: table.rename_column("x", "y"), lambda: table.drop_column("x")):
        with pytest.raises(UnsupportedFeatureError) as caught:
            call()
        assert caught.value.where.startswith(table.uri) and caught.value.advice
        mode = "delta.columnMapping.mode"
        assert (mode in str(caught.value)) == (mode == TRAITS[format].renaming)
    assert bh.open(uri).to_arrow().column_names == ["id", "x"]


def test_columns_are_widened(uri, format):
    rows = pa.table({"x": pa.array([1], pa.int32()), "l": pa.array([[1.5, None]], pa.list_(pa.float32()))})
    widening = TRAITS[format].widening
    bh.write(rows, uri, format=format, properties=widening)
    table = bh.open(uri)
    if widening is None:
        with pytest.raises(UnsupportedFeatureError):
            table.widen_column("x", "bigint")
        return
    table.widen_column("X", "bigint")
    table.widen_column("l.element", "double")
    table.append(pa.table({"x": [2**40], "l": [[0.1]]}))
    found = bh.open(uri).scan(where="x > 0").to_arrow()
    assert [str(f.type) for f in table.schema] == ["bigint", "array<double>"]
    assert sorted(zip(found.column("x").to_pylist(), found.column("l").to_pylist())) == [
        (1, [1.5, None]),
        (2**40, [0.1]),
    ]
    with pytest.raises(UnsupportedFeatureError, match="`x`"):
        table.widen_column("x", "int")
    with pytest.raises(InvalidArgumentError, match="7 is not a type"):
        table.widen_column("x", 7)


WORDS = {
    "update": "update", "merge": "merge", "rename_column": "rename columns", "drop_column": "drop columns",
    "changes": "change feed", "optimize": "compaction", "vacuum": "vacuum", "restore": "restore",
    "widen_column": "widen columns",
}  # fmt: skip


def test_the_readme_lists_what_comes_later():
    text = (ROOT / "README.md").read_text()
    line = re.search(r"^Not offered yet, for any format: (.*)\.$", text, re.M)[1].split(", ")
    assert not set(WORDS.values()) & set(line)
    assert all(callable(getattr(bh.Table, name)) for name in WORDS)


def test_the_extra_for_spark_brings_a_pandas_that_pyspark_supports():
    line = re.search(r"^spark = (.*)$", (ROOT / "pyproject.toml").read_text(), re.M)[1]
    assert "pandas>=2.2,<3" in line
