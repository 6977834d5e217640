"""Bad input: each is a typed error that names the path and says what to do, and nothing has changed."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import boathouse as bh
from boathouse.bits import system
from boathouse.cli.app import app, exit_code
from boathouse.errors import (
    AlreadyExistsError,
    AmbiguousFormatError,
    BoathouseError,
    ColumnNotFoundError,
    CommitConflictError,
    ConstraintViolationError,
    CorruptTableError,
    EvaluationError,
    ExpressionError,
    InvalidArgumentError,
    NotFoundError,
    ReadOnlyError,
    SchemaError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
    VersionNotFoundError,
)
from boathouse.storage import Stores
from boathouse.testing.faults import Fault, FaultyStorage, Plan
from makers.traits import REAL

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", None], "st": [{"x": 1}, None, {"x": None}]})
DATA = {"delta": "*.parquet", "iceberg": "data/*.parquet", "lance": "data/*.lance"}


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below the root; of files also the size and the time of change."""
    found = [root, *root.rglob("*")]
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) if p.is_file() else (0, 0) for p in found}


class Watched:
    """A folder with a table `t`; `refuses` is the check of this module."""

    def __init__(self, root: Path, format: str):
        self.root, self.format, self.path = root, format, root / "t"
        self.uri = str(self.path)
        self.make()

    def make(self):
        bh.write(ROWS, self.uri, format=self.format)
        bh.open(self.uri).append(ROWS)

    def open(self):
        return bh.open(self.uri)

    def data(self) -> Path:
        return min(self.path.glob(DATA[self.format]))

    def refuses(self, kind, action, names=None):
        before = listing(self.root)
        with pytest.raises(kind) as caught:
            action()
        error = caught.value
        assert isinstance(error, BoathouseError)
        assert error.advice and str(error).strip()
        if names is not None:
            assert error.where and str(names) in error.where.replace("%20", " "), error.where
        assert listing(self.root) == before
        return error


@pytest.fixture(params=REAL)
def at(request, tmp_path) -> Watched:
    return Watched(tmp_path, request.param)


# Places.


@pytest.mark.parametrize("place", ["nowhere", "empty", "t/deep/er", "file.txt", "parquet", "hive", "hudi", "log"])
def test_places_without_a_table(at, place):
    path = at.root / place
    if place == "empty":
        path.mkdir()
    elif place == "file.txt":
        path.write_text("hello")
    elif place in ("parquet", "hive"):
        folder = path / "p=1" if place == "hive" else path
        folder.mkdir(parents=True)
        pq.write_table(ROWS, folder / "a.parquet")
    elif place == "hudi":
        (path / ".hoodie").mkdir(parents=True)
    elif place == "log":
        path = at.path / {"delta": "_delta_log", "iceberg": "metadata", "lance": "_versions"}[at.format]
    said = {
        "t/deep/er": "inside",
        "file.txt": "single file",
        "parquet": "Parquet",
        "hive": "Parquet",
        "hudi": "Hudi",
        "log": "inside",
    }.get(place, "not exist|empty")
    for format in (None, *REAL):
        error = at.refuses(TableNotFoundError, lambda format=format: bh.open(path, format=format), names=path)
    assert any(word in error.message for word in said.split("|")), error.message
    assert bh.detect(path) == ()
    done = CliRunner().invoke(app, ["info", str(path)])
    assert exit_code(done.exception) == 3
    assert place in ("t/deep/er", "log") or at.refuses(
        TableNotFoundError, lambda: bh.write(ROWS, path, mode="overwrite", where="id = 1"), names=path
    )


def test_the_wrong_format(at):
    other = REAL[REAL.index(at.format) - 1]
    error = at.refuses(TableNotFoundError, lambda: bh.open(at.uri, format=other), names=at.path)
    assert at.format in error.message.lower()
    at.refuses(AlreadyExistsError, lambda: bh.create(at.uri, "a int", format=other), names=at.path)
    at.refuses(AlreadyExistsError, lambda: bh.create(at.uri, "a int", format=at.format), names=at.path)
    at.refuses(AlreadyExistsError, lambda: bh.write(ROWS, at.uri, format=other), names=at.path)
    for mode in ("append", "overwrite"):
        at.refuses(TableNotFoundError, lambda mode=mode: bh.write(ROWS, at.uri, format=other, mode=mode), names=at.path)


def test_two_tables_under_one_root(tmp_path):
    at = Watched(tmp_path, "delta")
    other = Watched(tmp_path / "o", "lance")
    shutil.copytree(other.path, at.path, dirs_exist_ok=True)
    at.refuses(AmbiguousFormatError, at.open, names=at.path)
    at.refuses(AmbiguousFormatError, lambda: bh.write(ROWS, at.uri, mode="append"), names=at.path)
    assert exit_code(CliRunner().invoke(app, ["count", at.uri]).exception) == 2
    assert bh.open(at.uri, format="lance").count() == 6


def test_a_table_dropped_meanwhile(at):
    table, scan = at.open(), at.open().scan()
    shutil.rmtree(at.path)
    for action in (lambda: table.append(ROWS), lambda: table.delete("id = 1"), table.refresh, scan.to_arrow):
        at.refuses((NotFoundError, CommitConflictError, CorruptTableError), action, names=at.path)
    assert not at.path.exists()


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_recreated_meanwhile(tmp_path, format):
    """Lance tables have no identity of their own to tell them apart by."""
    at = Watched(tmp_path, format)
    table = at.open()
    shutil.rmtree(at.path)
    at.make()
    for action in (lambda: table.append(ROWS), lambda: table.overwrite(ROWS), lambda: table.delete("id = 1")):
        at.refuses(CommitConflictError, action, names=at.path)


# Arguments.


class Odd:
    def __repr__(self):
        return "Odd()"


def ids(value):
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))[:40].replace("\n", " ")


@pytest.mark.parametrize("uri", [None, 5, "", "  ", b"x", ["a"], Odd()], ids=ids)
def test_paths_that_are_none(uri, tmp_path):
    for action in (bh.open, bh.detect, lambda u: bh.create(u, "a int"), lambda u: bh.write(ROWS, u)):
        with pytest.raises(InvalidArgumentError) as caught:
            action(uri)
        assert caught.value.advice


OPEN = [
    ({"version": "x"}, InvalidArgumentError),
    ({"version": 1.5}, InvalidArgumentError),
    ({"version": True}, InvalidArgumentError),
    ({"version": [1]}, InvalidArgumentError),
    ({"version": -1}, VersionNotFoundError),
    ({"version": 10**6}, VersionNotFoundError),
    ({"version": 10**30}, VersionNotFoundError),
    ({"timestamp": "nonsense"}, InvalidArgumentError),
    ({"timestamp": 5}, InvalidArgumentError),
    ({"timestamp": "2026-13-01"}, InvalidArgumentError),
    ({"timestamp": "1900-01-01"}, VersionNotFoundError),
    ({"timestamp": "2026-01-01", "version": 1}, InvalidArgumentError),
    ({"ref": "nope"}, (VersionNotFoundError, InvalidArgumentError)),
    ({"ref": 5}, InvalidArgumentError),
    ({"ref": ""}, InvalidArgumentError),
    ({"format": "nope"}, InvalidArgumentError),
    ({"format": 5}, InvalidArgumentError),
    ({"format": ["delta"]}, InvalidArgumentError),
    ({"storage_options": 5}, InvalidArgumentError),
    ({"storage_options": "x"}, InvalidArgumentError),
    ({"storage_options": {"nonsense": "1"}}, InvalidArgumentError),
    ({"storage_options": {1: "x"}}, InvalidArgumentError),
]


@pytest.mark.parametrize(("given", "kind"), OPEN, ids=[ids(g) for g, _ in OPEN])
def test_arguments_of_open(at, given, kind):
    at.refuses(kind, lambda: bh.open(at.uri, **given), names=at.path)


def test_schemes_and_commands():
    with pytest.raises((InvalidArgumentError, UnsupportedFeatureError)) as caught:
        bh.open("foo://bar/x")
    assert caught.value.advice and "foo" in str(caught.value)


COLUMNS = ["a", 5, ["nope"], [5], [None], {"id": 1}, ["id", "id"], ["id", "ID"], ["st.nope"], ["id", ""]]


@pytest.mark.parametrize("columns", COLUMNS, ids=ids)
def test_columns_of_a_scan(at, columns):
    at.refuses((InvalidArgumentError, ColumnNotFoundError), lambda: at.open().scan(columns=columns), names=at.path)


WHERE = [
    5,
    b"x",
    ["id = 1"],
    Odd(),
    "nope = 1",
    "id +",
    "id",
    "id = 'x' AND",
    "foo(id) = 1",
    "id = 1; drop table x",
    "",
    "SELECT 1",
    "count(id) > 1",
    "st.y = 1",
    "s.x = 1",
    "id IN (SELECT 1)",
    "x'zz' = s",
    "st = 1",
    "id BETWEEN",
    "'unclosed",
    "id = 99999999999999999999999999999999999999999",
    "sum(id) OVER () = 1",
    "EXISTS (SELECT 1)",
    "?",
    "id = :x",
    "🚣",
    "(" * 300 + "id = 1" + ")" * 300,
    "id -> 1",
    "\x00",
]


@pytest.mark.few(2)
@pytest.mark.parametrize("where", WHERE, ids=ids)
def test_predicates(at, where):
    actions = [lambda: at.open().scan(where=where).to_arrow(), lambda: at.open().delete(where)]
    if where != "":
        actions.append(lambda: at.open().overwrite(ROWS, where=where))
    for action in actions:
        at.refuses(ExpressionError, action, names=at.path)
    if isinstance(where, str) and where and "\x00" not in where:
        for command in ("count", "plan", "head"):
            done = CliRunner().invoke(app, [command, at.uri, "--where", where])
            assert exit_code(done.exception) == 2


@pytest.mark.parametrize("where", ["id / 0 = 1", "cast(s AS int) = 1", "id = s", "id + 9223372036854775807 > 0"])
def test_predicates_that_fail_on_a_row(at, where):
    for action in (
        lambda: at.open().scan(where=where).to_arrow(),
        lambda: at.open().scan(where=where).count(),
        lambda: list(at.open().scan(where=where).to_batches()),
        lambda: at.open().delete(where),
        lambda: at.open().overwrite(ROWS, where=where),
    ):
        at.refuses(EvaluationError, action, names=at.path)


DATAS = [
    42,
    None,
    "x",
    [],
    [1],
    [{"id": 1}, 5],
    {},
    {"id": [1]},
    b"",
    [{}],
    ROWS.column("id"),
    pa.scalar(5),
    Odd(),
    pa.table({}),
    [{"id": {1: 2}}, {"id": [1]}],
]


@pytest.mark.parametrize("data", DATAS, ids=ids)
def test_data_that_is_none(at, data):
    for action in (
        lambda: at.open().append(data),
        lambda: at.open().overwrite(data),
        lambda: at.open().overwrite(data, overwrite_schema=True),
        lambda: bh.write(data, at.uri, mode="append"),
        lambda: bh.write(data, at.root / "new", format=at.format),
    ):
        at.refuses((InvalidArgumentError, SchemaMismatchError), action)
    assert not (at.root / "new").exists()


UNFIT = {
    "a column too many": ROWS.append_column("z", pa.array([1, 2, 3])),
    "text for a number": pa.table({"id": ["x"]}),
    "a number for text": pa.table({"id": [1], "s": [5.5]}),
    "a fraction for a whole number": pa.table({"id": [2.5]}),
    "a number too large": pa.table({"id": pa.array([2**64 - 1], pa.uint64())}),
    "a column twice": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"]),
    "a column twice but for case": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "ID"]),
    "a member of another type": pa.table({"id": [1], "st": [{"x": "no"}]}),
    "a member too many": pa.table({"id": [1], "st": [{"x": 1, "zz": 1}]}),
    "a struct for a number": pa.table({"id": [{"x": 1}]}),
}


@pytest.mark.parametrize("name", UNFIT)
def test_data_that_does_not_fit(at, name):
    data = UNFIT[name]
    for action in (
        lambda: at.open().append(data),
        lambda: at.open().overwrite(data),
        lambda: at.open().overwrite(data, where="id = 1"),
        lambda: bh.write(data, at.uri, mode="append"),
    ):
        kinds = (SchemaMismatchError, ConstraintViolationError, EvaluationError)
        at.refuses((*kinds, InvalidArgumentError) if "twice" in name else kinds, action, names=at.path)


def test_rows_outside_of_the_replaced_ones(at):
    at.refuses(ConstraintViolationError, lambda: at.open().overwrite(ROWS, where="id > 100"), names=at.path)


def test_columns_that_cannot_be_added(at):
    odd = pa.table({"id": [1], "new": pa.array([None], pa.month_day_nano_interval())})
    at.refuses(UnsupportedTypeError, lambda: at.open().append(odd, merge_schema=True), names="")
    for name, type_ in (
        (5, "int"),
        ("", "int"),
        (None, "int"),
        ("id", "int"),
        ("ID", "int"),
        ("n", 5),
        ("n", None),
        ("n", "nope"),
        ("n", "struct<"),
        ("n", "map<int>"),
        ("n", ""),
        ("n", "decimal(99,1)"),
    ):
        at.refuses(
            (InvalidArgumentError, SchemaError), lambda n=name, t=type_: at.open().add_column(n, t), names=at.path
        )


OPTIONS = [
    {"message": 5},
    {"metadata": {1: 2}},
    {"metadata": {"a": None}},
    {"metadata": "x"},
    {"metadata": 5},
    {"txn": 5},
    {"txn": "ab"},
    {"txn": ("a",)},
    {"txn": ("a", "b")},
    {"txn": ("", 1)},
    {"txn": ("a", 2**70)},
    {"txn": ("a", True)},
    {"dry_run": "x"},
    {"target_file_bytes": "x"},
    {"target_file_bytes": 0},
    {"target_file_bytes": -1},
]


@pytest.mark.parametrize("given", OPTIONS, ids=ids)
def test_options_of_writes(at, given):
    for action in (
        lambda: at.open().append(ROWS, **given),
        lambda: at.open().overwrite(ROWS, **given),
        lambda: at.open().delete("id = 1", **given),
        lambda: at.open().update({"id": "id"}, **given),
        lambda: at.open().merge(ROWS, "target.id = source.id").when_matched_delete().execute(**given),
        lambda: bh.write(ROWS, at.uri, mode="append", **given),
        lambda: bh.write(ROWS, at.root / "new", format=at.format, **given),
    ):
        at.refuses(InvalidArgumentError, action, names=at.root)


@pytest.mark.parametrize("given", [o for o in OPTIONS if "target_file_bytes" not in o], ids=ids)
def test_options_of_changes_of_metadata(at, given):
    actions = [
        lambda: at.open().add_column("n", "int", **given),
        lambda: at.open().set_properties({"a": "b"}, **given),
    ]
    if "txn" not in given and "dry_run" not in given:
        actions.append(lambda: bh.create(at.root / "new", "a int", format=at.format, **given))
    for action in actions:
        at.refuses(InvalidArgumentError, action, names=at.root)


@pytest.mark.parametrize("value", [5, "x", {1: 2}, {"a": 5}, [("a", "b")], {"": "x"}], ids=ids)
def test_properties(at, value):
    at.refuses(InvalidArgumentError, lambda: at.open().set_properties(value), names=at.path)
    new, kind = at.root / "n", InvalidArgumentError
    at.refuses(kind, lambda: bh.create(new, "a int", at.format, properties=value), names=at.root)
    at.refuses(kind, lambda: bh.write(ROWS, new, at.format, properties=value), names=at.root)


def test_other_arguments(at):
    for mode in ("bogus", 5, None, ["append"]):
        at.refuses(InvalidArgumentError, lambda mode=mode: bh.write(ROWS, at.uri, mode=mode), names=at.path)
    for limit in ("x", -1, 1.5, True):
        at.refuses(InvalidArgumentError, lambda limit=limit: at.open().history(limit), names=at.path)
    for write_id in (5, None, ""):
        at.refuses(InvalidArgumentError, lambda w=write_id: at.open().find_write(w), names=at.path)
    for profile in ("nope", 5):
        at.refuses(
            (InvalidArgumentError, UnsupportedFeatureError),
            lambda p=profile: bh.create(at.root / "n", "a int", format=at.format, profile=p),
            names=at.root,
        )
    at.refuses(InvalidArgumentError, lambda: at.open().append(ROWS, merge_schema="x"), names=at.path)
    at.refuses(InvalidArgumentError, lambda: at.open().to_spark(5), names=at.path)
    at.refuses(SchemaError, lambda: at.open().overwrite(ROWS, partition_by="id"), names=at.path)
    at.refuses(AlreadyExistsError, lambda: bh.write(ROWS, at.uri, mode="append", partition_by="id"), names=at.path)


PARTITION = [
    5,
    [5],
    ["nope"],
    "nope",
    ["id", "id"],
    {"id": 1},
    "bucket(id)",
    "bucket(0, id)",
    "bucket(x, id)",
    "nope(id)",
    "bucket(4, nope)",
    "st",
    "",
    "id)",
    "bucket(99999999999, id)",
    "day(s)",
    "truncate(2, st)",
    "st.nope",
]


@pytest.mark.parametrize("by", PARTITION, ids=ids)
def test_partitions_that_cannot_be(at, by):
    kinds = (InvalidArgumentError, ColumnNotFoundError, SchemaError, UnsupportedFeatureError)
    schema = "id bigint, s string, st struct<x:bigint>"
    at.refuses(kinds, lambda: bh.create(at.root / "n", schema, format=at.format, partition_by=by), names=at.root)
    at.refuses(kinds, lambda: bh.write(ROWS, at.root / "n", format=at.format, partition_by=by), names=at.root)
    at.refuses(kinds, lambda: at.open().overwrite(ROWS, overwrite_schema=True, partition_by=by), names=at.path)


SCHEMAS = [
    5,
    None,
    "nonsense",
    "id",
    "id int,",
    "id int, id int",
    "`` int",
    "id foo",
    [5],
    {"id": "int"},
    pa.int32(),
    Odd(),
    "a decimal(5,9)",
    "a decimal(99,1)",
    "a array<int",
    "a int b int",
    pa.schema([("a", pa.int32()), ("a", pa.int32())]),
    pa.schema([("", pa.int32())]),
    pa.field("a", pa.int32()),
    pa.schema([("a", pa.month_day_nano_interval())]),
    pa.schema([("st", pa.struct([]))]),
    pa.schema([("a", pa.dense_union([pa.field("x", pa.int32())]))]),
    pa.schema([("a", pa.decimal128(5, -2))]),
    pa.schema([("s", pa.struct([("x", pa.int32()), ("x", pa.int32())]))]),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=ids)
def test_schemas_that_cannot_be(at, schema):
    at.refuses(
        (InvalidArgumentError, SchemaError), lambda: bh.create(at.root / "n", schema, format=at.format), names=""
    )
    assert not (at.root / "n").exists()


FOREIGN = {
    "delta": [
        pa.uint64(),
        pa.float16(),
        pa.duration("us"),
        pa.time64("us"),
        pa.timestamp("ns"),
        pa.list_(pa.int8(), 3),
        pa.decimal256(60, 3),
        pa.binary(4),
    ],
    "iceberg": [
        pa.uint64(),
        pa.float16(),
        pa.duration("us"),
        pa.timestamp("ns"),
        pa.list_(pa.int8(), 3),
        pa.decimal256(60, 3),
        pa.null(),
        "variant",
    ],
    "lance": ["variant"],
}


@pytest.mark.parametrize(("format", "kind"), [(f, t) for f, types in FOREIGN.items() for t in types], ids=str)
def test_types_that_the_format_cannot_hold(tmp_path, format, kind):
    at = Watched(tmp_path, format)
    whole = f"a {kind}" if isinstance(kind, str) else pa.schema([("a", kind)])
    nested = f"a array<{kind}>" if isinstance(kind, str) else pa.schema([("a", pa.struct([("b", pa.list_(kind))]))])
    for schema in (whole, nested):
        error = at.refuses(
            (UnsupportedTypeError, UnsupportedFeatureError),
            lambda schema=schema: bh.create(at.root / "n", schema, format=format),
            names=at.root,
        )
        assert "`a" in error.message
        # Rows in nanoseconds are cast where nothing is lost.
        if not isinstance(schema, str) and kind != pa.timestamp("ns"):
            empty = schema.empty_table()
            refuse = (UnsupportedTypeError, UnsupportedFeatureError, SchemaMismatchError)
            at.refuses(refuse, lambda empty=empty: bh.write(empty, at.root / "n", format=format), names=at.root)
            at.refuses(refuse, lambda empty=empty: at.open().overwrite(empty, overwrite_schema=True), names=at.path)


@pytest.mark.parametrize("names", [("id", "ID"), ("ü", "Ü")])
def test_delta_names_that_differ_by_case_only(tmp_path, names):
    at = Watched(tmp_path, "delta")
    schema = pa.schema([(n, pa.int32()) for n in names])
    at.refuses(SchemaError, lambda: bh.create(at.root / "n", schema), names=at.root)
    at.refuses(SchemaError, lambda: bh.write(schema.empty_table(), at.root / "n"), names=at.root)


def test_read_only_mode(at, monkeypatch):
    table = at.open()
    monkeypatch.setenv("BOATHOUSE_READ_ONLY", "1")
    for action in (
        lambda: table.append(ROWS),
        lambda: table.delete(),
        lambda: table.overwrite(ROWS),
        lambda: table.add_column("n", "int"),
        lambda: table.set_properties({"a": "b"}),
        lambda: bh.write(ROWS, at.uri, mode="append"),
        lambda: bh.write(ROWS, at.root / "n", format=at.format),
        lambda: bh.create(at.root / "n", "a int", format=at.format),
    ):
        at.refuses(ReadOnlyError, action, names=at.root)
    assert table.count() == 6


def test_pinned_tables_are_read_only(at):
    pinned = bh.open(at.uri, version=at.open().version)
    for action in (
        lambda: pinned.append(ROWS),
        lambda: pinned.delete("id = 1"),
        lambda: pinned.set_properties({"a": "b"}),
    ):
        at.refuses(ReadOnlyError, action, names=at.path)


def test_a_dry_run_changes_nothing(at):
    before = listing(at.root)
    at.open().append(ROWS, dry_run=True)
    at.open().overwrite(ROWS, where="id = 1 OR id > 0", dry_run=True)
    at.open().delete("id = 1", dry_run=True)
    at.open().set_properties({"a": "b"}, dry_run=True)
    at.open().add_column("n", "int", dry_run=True)
    assert bh.write(ROWS, at.root / "new", format=at.format, dry_run=True).dry_run
    assert {k: v for k, v in listing(at.root).items() if Path(k).is_file()} == {
        k: v for k, v in before.items() if Path(k).is_file()
    }


# The store.


def test_a_store_that_refuses_writes(at, monkeypatch):
    """Every writing request is refused by the store: nothing has landed, and the error says so."""
    refusing = Plan(choose=lambda operation: Fault.REFUSED if operation.write else None)
    original = Stores.__init__

    def wrapped(self, options=None, *, wrap=None, home=None):
        original(self, options, wrap=lambda inner: FaultyStorage(inner, refusing), home=home)

    monkeypatch.setattr(Stores, "__init__", wrapped)
    for action in (lambda: at.open().set_properties({"a": "b"}), lambda: at.open().add_column("n", "int")):
        before = {k: v for k, v in listing(at.root).items() if Path(k).is_file()}
        with system.use(system.SeededSystem(1)), pytest.raises(StorageError) as caught:
            action()
        assert caught.value.advice and caught.value.where
        assert {k: v for k, v in listing(at.root).items() if Path(k).is_file()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(at):
    folders = [p for p in (at.path, *at.path.rglob("*")) if p.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        for action in (lambda: at.open().append(ROWS), lambda: at.open().delete("id = 1")):
            at.refuses(StorageError, action, names=at.path)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_file_where_a_folder_should_be(at):
    (at.root / "file").write_text("x")
    for action in (
        lambda: bh.create(at.root / "file", "a int", format=at.format),
        lambda: bh.write(ROWS, at.root / "file", format=at.format),
        lambda: bh.create(at.root / "file" / "t", "a int", format=at.format),
    ):
        at.refuses((StorageError, TableNotFoundError, AlreadyExistsError, InvalidArgumentError), action, names=at.root)


# Broken tables.

BROKEN_DATA = {
    "missing": lambda p: p.unlink(),
    "empty": lambda p: p.write_bytes(b""),
    "truncated": lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]),
    "garbage tail": lambda p: p.write_bytes(p.read_bytes()[:-60] + b"\xa5" * 60),
    "garbage footer": lambda p: p.write_bytes(p.read_bytes()[:-60] + b"\xff" * 52 + p.read_bytes()[-8:]),
    "garbage body": lambda p: p.write_bytes(
        p.read_bytes()[:4] + b"\xee" * (p.stat().st_size // 2) + p.read_bytes()[4 + p.stat().st_size // 2 :]
    ),
    "text": lambda p: p.write_text("hello, this is no data file of any kind at all"),
    "a folder": lambda p: (p.unlink(), p.mkdir()),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("how", BROKEN_DATA)
def test_broken_data_files(at, how):
    broken = at.data()
    BROKEN_DATA[how](broken)
    table = at.open()
    assert table.files().num_rows == 2
    for action in (
        table.to_arrow,
        lambda: list(table.scan().to_batches()),
        lambda: table.scan().to_reader().read_all(),
        lambda: table.scan(["id"], "id > 1").to_arrow(),
        lambda: table.scan(None, "s = 'a'").count(),
        lambda: table.delete("s = 'a'"),
        lambda: table.overwrite(ROWS.slice(0, 1), where="s = 'a'"),
    ):
        at.refuses((CorruptTableError, NotFoundError, StorageError), action, names=broken.name)
    assert exit_code(CliRunner().invoke(app, ["head", at.uri]).exception) in (3, 5, 6)


def entry(at, number) -> Path:
    return at.path / "_delta_log" / f"{number:020d}.json"


def protocol(reader, writer, features):
    return json.dumps({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}) + "\n"


BROKEN_LOGS = {
    "half": (lambda at: entry(at, 1).write_bytes(entry(at, 1).read_bytes()[:90]), CorruptTableError),
    "garbage": (lambda at: entry(at, 1).write_bytes(b"\x00\xff garbage"), CorruptTableError),
    "lists": (lambda at: entry(at, 1).write_text("[1]\n5\n"), CorruptTableError),
    "no first": (lambda at: entry(at, 0).unlink(), CorruptTableError),
    "gap": (lambda at: (shutil.copy(entry(at, 1), entry(at, 3)), None), CorruptTableError),
    "reader 99": (lambda at: entry(at, 2).write_text(protocol(99, 99, {})), UnsupportedFeatureError),
    "unknown feature": (
        lambda at: entry(at, 2).write_text(
            protocol(3, 7, {"readerFeatures": ["flyingCars"], "writerFeatures": ["flyingCars"]})
        ),
        UnsupportedFeatureError,
    ),
    "odd protocol": (lambda at: entry(at, 2).write_text(protocol("x", None, {})), CorruptTableError),
    "odd metadata": (
        lambda at: entry(at, 2).write_text('{"metaData":{"id":5,"schemaString":"{no"}}\n'),
        CorruptTableError,
    ),
    "garbage checkpoint": (
        lambda at: (
            (at.path / "_delta_log" / f"{1:020d}.checkpoint.parquet").write_bytes(b"garbage"),
            entry(at, 0).unlink(),
        ),
        CorruptTableError,
    ),
}


@pytest.mark.parametrize("how", BROKEN_LOGS)
def test_broken_delta_logs(tmp_path, how):
    at = Watched(tmp_path, "delta")
    stale = at.open()
    breaking, kind = BROKEN_LOGS[how]
    breaking(at)
    for action in (at.open, lambda: stale.append(ROWS), stale.refresh, lambda: bh.write(ROWS, at.uri, mode="append")):
        at.refuses(kind, action, names=at.path)
    code = 4 if kind is UnsupportedFeatureError else 5
    assert exit_code(CliRunner().invoke(app, ["info", at.uri]).exception) == code


def test_garbage_that_delta_can_do_without(tmp_path):
    """Checkpoints and the hint are shortcuts: the commits tell the same."""
    at = Watched(tmp_path, "delta")
    (at.path / "_delta_log" / f"{1:020d}.checkpoint.parquet").write_bytes(b"garbage")
    (at.path / "_delta_log" / "_last_checkpoint").write_bytes(b"\xff{")
    assert at.open().count() == 6
    at.open().append(ROWS)
    assert at.open().to_arrow().num_rows == 9


def test_an_unknown_writer_feature_is_read_and_not_written(tmp_path):
    at = Watched(tmp_path, "delta")
    entry(at, 2).write_text(protocol(1, 7, {"writerFeatures": ["flyingCars"]}))
    assert at.open().count() == 6
    error = at.refuses(UnsupportedFeatureError, lambda: at.open().append(ROWS), names=at.path)
    assert "flyingCars" in error.message
    at.refuses(UnsupportedFeatureError, lambda: at.open().delete("id = 1"), names=at.path)


def newest(at) -> Path:
    return max((at.path / "metadata").glob("v*.metadata.json"))


def edited(at, **members):
    document = json.loads(newest(at).read_text())
    for name, value in members.items():
        key = name.replace("_", "-")
        if value is None:
            document.pop(key)
        else:
            document[key] = value
    newest(at).write_text(json.dumps(document))


_NAMES = [
    "schemas",
    "partition_specs",
    "snapshots",
    "sort_orders",
    "current_snapshot_id",
    "refs",
    "properties",
    "format_version",
    "last_column_id",
    "current_schema_id",
    "default_spec_id",
    "last_sequence_number",
]
BROKEN_METADATA = {
    "half": lambda at: newest(at).write_bytes(newest(at).read_bytes()[:300]),
    "garbage": lambda at: newest(at).write_bytes(b"\x00\xffgarbage"),
    "empty": lambda at: newest(at).write_bytes(b""),
    "list": lambda at: newest(at).write_text("[]"),
    "odd type": lambda at: edited(
        at,
        schemas=[
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "nope"}]}
        ],
    ),
    **{f"{n}=junk": lambda at, n=n: edited(at, **{n: "junk"}) for n in _NAMES},
    **{f"{n}=[5]": lambda at, n=n: edited(at, **{n: [5]}) for n in _NAMES},
    **{f"no {n}": lambda at, n=n: edited(at, **{n: None}) for n in (*_NAMES[:2], "last_sequence_number", "table_uuid")},
}


@pytest.mark.parametrize("how", BROKEN_METADATA)
def test_broken_iceberg_metadata(tmp_path, how):
    at = Watched(tmp_path, "iceberg")
    stale = at.open()
    BROKEN_METADATA[how](at)
    for action in (at.open, lambda: stale.append(ROWS), stale.refresh):
        at.refuses((CorruptTableError, UnsupportedFeatureError), action, names=at.path)


def test_an_iceberg_version_from_the_future(tmp_path):
    at = Watched(tmp_path, "iceberg")
    edited(at, format_version=9)
    assert "9" in at.refuses(UnsupportedFeatureError, at.open, names=at.path).message


@pytest.mark.parametrize("how", ["missing", "half", "garbage", "empty"])
@pytest.mark.parametrize("which", ["list", "manifest"])
def test_broken_iceberg_manifests(tmp_path, which, how):
    at = Watched(tmp_path, "iceberg")
    for file in (at.path / "metadata").glob("*.avro"):
        if file.name.startswith("snap-") == (which == "list"):
            {
                "missing": file.unlink,
                "half": lambda f=file: f.write_bytes(f.read_bytes()[: f.stat().st_size // 2]),
                "garbage": lambda f=file: f.write_bytes(b"garbage"),
                "empty": lambda f=file: f.write_bytes(b""),
            }[how]()
    kinds = (CorruptTableError, NotFoundError)
    for action in (lambda: at.open().to_arrow(), lambda: at.open().count(), lambda: at.open().files()):
        at.refuses(kinds, action, names=at.path)
    writes = [lambda: at.open().delete("id = 1")]
    if which == "list":
        writes.append(lambda: at.open().append(ROWS))
    for action in writes:
        before = {k for k in listing(at.root) if Path(k).is_file()}
        with pytest.raises(kinds) as caught:
            action()
        assert caught.value.where and caught.value.advice
        assert {k for k in listing(at.root) if Path(k).is_file()} == before


def manifest(at) -> Path:
    return min((at.path / "_versions").glob("*.manifest"))


@pytest.mark.parametrize("how", ["half", "garbage", "empty", "body"])
def test_broken_lance_manifests(tmp_path, how):
    at = Watched(tmp_path, "lance")
    stale, whole = at.open(), manifest(at).read_bytes()
    broken = {
        "half": whole[: len(whole) // 2],
        "garbage": b"garbage" * 5,
        "empty": b"",
        "body": whole[:4] + b"\xff" * 40 + whole[44:],
    }
    manifest(at).write_bytes(broken[how])
    for action in (at.open, lambda: stale.append(ROWS), stale.refresh):
        at.refuses(CorruptTableError, action, names=at.path)


@pytest.mark.parametrize("side", ["reader", "writer"])
def test_unknown_lance_flags(tmp_path, side):
    from dataclasses import replace

    from boathouse.lance.manifests.file import parse, serialise

    at = Watched(tmp_path, "lance")
    document = parse(manifest(at).read_bytes(), where="m")
    flags = {f"{side}_feature_flags": 1 << 20}
    manifest(at).write_bytes(serialise(replace(document, manifest=replace(document.manifest, **flags))))
    if side == "reader":
        at.refuses(UnsupportedFeatureError, at.open, names=at.path)
    else:
        assert at.open().count() == 6
        at.refuses(UnsupportedFeatureError, lambda: at.open().append(ROWS), names=at.path)


@pytest.mark.parametrize("how", ["missing", "garbage", "half"])
def test_broken_lance_deletions(tmp_path, how):
    at = Watched(tmp_path, "lance")
    at.open().delete("id = 1")
    for file in (at.path / "_deletions").iterdir():
        {
            "missing": file.unlink,
            "garbage": lambda f=file: f.write_bytes(b"xx"),
            "half": lambda f=file: f.write_bytes(f.read_bytes()[: f.stat().st_size // 2]),
        }[how]()
    for action in (lambda: at.open().to_arrow(), lambda: at.open().delete("id = 2")):
        at.refuses((CorruptTableError, NotFoundError), action, names=at.path)
