"""Rows that bring columns of their own: one commit, on every format and both engines."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors
from boathouse.table.commit import FileCommitter
from makers.traits import REAL


def base() -> pa.Table:
    return pa.table(
        {"id": pa.array([1, 2], pa.int32()), "s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))}
    )


def wider() -> pa.Table:
    return base().append_column("extra", pa.array(["x", None]))


def nested() -> pa.Table:
    type = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    return pa.table({"id": pa.array([3], pa.int32()), "s": pa.array([{"a": 3, "b": {"c": "deep"}}], type)})


@pytest.fixture
def table(format_name, tmp_path, session, to_data) -> Any:
    path = str(tmp_path / "t")
    bh.write(to_data(base()), path, format=format_name)
    return bh.open(path, format=format_name, spark=session)


def commits(table: Any) -> int:
    return len(bh.open(table.uri, format=table.format).history())


def others(table: Any) -> list[dict[str, Any]]:
    """The rows by the reference reader."""
    return sorted(by_peer(table.uri, table.format).to_pylist(), key=lambda r: (r["id"], str(r)))


def test_an_append_with_new_columns_is_one_commit(table, to_data, read):
    before = commits(table)
    done = table.append(to_data(wider()), merge_schema=True)
    assert commits(table) == before + 1 and done.rows_added == 2 and done.version == table.version
    assert [r.get("extra") for r in others(table)].count("x") == 1
    assert len(read(table.scan(where="extra IS NULL"))) == 3


def test_an_append_that_fails_leaves_no_column(table, to_data):
    bad = wider().append_column("more", pa.array([1, 2])).append_column("odd", pa.array([b"", b""]).cast(pa.binary()))
    wrong = bad.set_column(0, "id", pa.array(["a", "b"]))
    names, version = table.schema.names, table.version
    with pytest.raises(errors.SchemaMismatchError):
        table.append(to_data(wrong), merge_schema=True)
    assert table.refresh().schema.names == names and table.version == version


def test_a_source_that_breaks_half_way_leaves_no_column(table, session):
    if session is not None:
        pytest.skip("a stream of batches is read in process")

    def broken() -> Any:
        yield wider().to_batches()[0]
        raise OSError("the stream ended")

    names, version = table.schema.names, table.version
    with pytest.raises(OSError, match="ended"):
        table.append(pa.RecordBatchReader.from_batches(wider().schema, broken()), merge_schema=True)
    assert table.refresh().schema.names == names and table.version == version


def test_overwrites_bring_columns_too(table, to_data, read):
    before = commits(table)
    table.overwrite(to_data(wider()), merge_schema=True)
    assert commits(table) == before + 1 and table.schema.names == ("id", "s", "extra")
    more = pa.table({"id": pa.array([2], pa.int32()), "last": pa.array([2.5])})
    table.overwrite(to_data(more), where="id = 2", merge_schema=True)
    assert commits(table) == before + 2
    assert [(r["id"], r["extra"], r["last"]) for r in others(table)] == [(1, "x", None), (2, None, 2.5)]
    assert len(read(table.scan(where="last > 2"))) == 1
    bh.write(to_data(more.append_column("w", pa.array([True]))), table.uri, format=table.format, mode="overwrite",
             merge_schema=True)  # fmt: skip
    assert others(table) == [{"id": 2, "s": None, "extra": None, "last": 2.5, "w": True}]
    with pytest.raises(errors.SchemaError):
        table.overwrite(to_data(more), merge_schema=True, overwrite_schema=True)


def test_fields_inside_structs(table, traits, to_data, read):
    if not traits.fields_in_structs:
        with pytest.raises(errors.UnsupportedFeatureError, match="inside a struct"):
            table.append(to_data(nested()), merge_schema=True)
        return
    table.append(to_data(nested()), merge_schema=True)
    assert others(table)[2]["s"] == {"a": 3, "b": {"c": "deep"}} and others(table)[0]["s"] == {"a": 1, "b": None}
    assert [r["id"] for r in read(table.scan(where="s.b.c = 'deep'"))] == [3]
    assert [r["s"] for r in read(table.scan(columns=["s", "id"], where="id = 1"))] == [{"a": 1, "b": None}]


def test_integers_become_bigint_where_the_format_can(table, traits, to_data, read):
    big = pa.table({"id": pa.array([2**40], pa.int64()), "s": pa.array([{"a": 2**33}], pa.struct([("a", pa.int64())]))})
    if traits.widening != {}:  # not without properties
        with pytest.raises(errors.UnsupportedFeatureError, match="`id`"):
            table.append(to_data(big), merge_schema=True)
        return
    before = commits(table)
    table.append(to_data(big), merge_schema=True)
    assert commits(table) == before + 1 and str(table.schema.field("id").type) == "bigint"
    assert [(r["id"], (r["s"] or {}).get("a")) for r in others(table)] == [(1, 1), (2, None), (2**40, 2**33)]
    assert {r["id"] for r in read(table.scan(where="id >= 2 AND id < 1099511627777"))} == {2, 2**40}
    assert [r["id"] for r in read(table.scan(where="s.a = 1"))] == [1]


def meanwhile(monkeypatch, step: Any) -> None:
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Any) -> Any:
        monkeypatch.setattr(FileCommitter, "publish", real)
        step()
        return real(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", publish)


@pytest.mark.parametrize("format", REAL)
@pytest.mark.parametrize("name", ["extra", "rival"])
def test_another_writer_adds_a_column_meanwhile(tmp_path, format, name, monkeypatch):
    """The same one or another: ids never clash, and each value stays in its column."""
    path = str(tmp_path / "t")
    bh.write(base(), path, format=format)
    t, other = bh.open(path), bh.open(path)
    meanwhile(monkeypatch, lambda: other.append(base().append_column(name, pa.array(["o", "o"])), merge_schema=True))
    t.append(wider(), merge_schema=True)
    assert set(t.schema.names) == {"id", "s", "extra", name}
    found = others(t)
    assert len(found) == 6 and sorted(str(r["extra"]) for r in found).count("x") == 1
    assert [r[name] for r in found].count("o") == 2 and found == others(bh.open(path))


def test_rows_that_can_be_read_once_are_not_written_twice(tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    bh.write(base(), path, format="iceberg")
    t, other = bh.open(path), bh.open(path)
    meanwhile(monkeypatch, lambda: other.add_column("rival", "string"))
    with pytest.raises(errors.CommitConflictError):
        t.append(wider().to_reader(), merge_schema=True)
    assert t.refresh().schema.names == ("id", "s", "rival") and t.count() == 2
