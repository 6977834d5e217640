"""CHECK constraints and invariants: every operation obeys them."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors

ROWS = pa.table({"id": [1, 2, 3], "x": [5, 6, None], "it's": ["a", "b", "c"]})


def actions(log, kind):
    return [a[kind] for a in log if kind in a]


@pytest.fixture
def made(tmp_path):
    bh.write(ROWS, str(tmp_path / "t"), format="delta")
    return bh.open(str(tmp_path / "t"))


@pytest.mark.spec("D-246", "D-248")
@pytest.mark.feature("CHECK constraints", format="delta")
def test_adding_one(made, delta):
    done = made.add_constraint("Positive", "id > 0 and `it's` <> 'z'", message="rule")
    log = delta.log(made.uri.removeprefix("file://"))[done.version]
    assert actions(log, "protocol") == [{"minReaderVersion": 1, "minWriterVersion": 3}]
    assert actions(log, "metaData")[0]["configuration"] == {"delta.constraints.Positive": "id > 0 and `it's` <> 'z'"}
    info = actions(log, "commitInfo")[0]
    assert info["operation"] == "ADD CONSTRAINT"
    assert info["operationParameters"] == {"name": "Positive", "expr": "id > 0 and `it's` <> 'z'"}
    made.append(pa.table({"id": [9], "x": [1], "it's": ["d"]}))
    with pytest.raises(errors.ConstraintViolationError, match="Positive"):
        made.append(pa.table({"id": [0], "x": [1], "it's": ["d"]}))
    with pytest.raises(errors.InvalidArgumentError, match="has a constraint `positive`"):
        made.add_constraint("positive", "id > 1")
    made.drop_constraint("POSITIVE")
    made.append(pa.table({"id": [0], "x": [1], "it's": ["d"]}))
    with pytest.raises(errors.InvalidArgumentError, match="no constraint"):
        made.drop_constraint("positive")
    assert len(delta.rows(made.uri.removeprefix("file://"))) == 5


@pytest.mark.spec("D-244")
def test_rows_that_violate_it_are_shown(made):
    for condition, said in (("id < 3", "id=3"), ("x > 0", "x=null"), ("`it's` > 'a'", "it's=a")):
        with pytest.raises(errors.ConstraintViolationError, match=f"1 row does not satisfy .*{said}"):
            made.add_constraint("c", condition)
    assert made.refresh().version == 0


def test_rows_are_shown_without_bytes_that_are_no_text(tmp_path):
    bh.write(pa.table({"id": [1, 2], "b": [b"ab", b"\x00\xff"]}), str(tmp_path / "t"), format="delta")
    for condition, said in (("b IS NULL", "2 rows do not.*a row"), ("id < 2 OR b IS NULL", "1 row does not.*id=2")):
        with pytest.raises(errors.ConstraintViolationError, match=said):
            bh.open(str(tmp_path / "t")).add_constraint("c", condition)


@pytest.mark.spec("D-247")
def test_conditions_that_are_none(made):
    with pytest.raises(errors.ColumnNotFoundError):
        made.add_constraint("c", "nope > 3")
    with pytest.raises(errors.ExpressionError):
        made.add_constraint("c", "id + 1")
    with pytest.raises(errors.ExpressionError):
        made.add_constraint("c", "id >")
    with pytest.raises(errors.InvalidArgumentError):
        made.add_constraint("", "id > 0")
    assert made.refresh().version == 0


@pytest.mark.spec("D-245", "D-249")
@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.feature("checkConstraints", format="delta")
def test_every_operation_obeys(made, vectors):
    made.set_properties({"delta.enableDeletionVectors": vectors})
    made.delete("x is null")
    made.add_constraint("c", "x > 4")
    version, rows = made.version, sorted(made.to_arrow()["id"].to_pylist())
    bad = pa.table({"id": [2, 7], "x": pa.array([9, None], pa.int64()), "it's": ["q", "r"]})
    merge = made.merge(bad, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all()
    for write in (
        lambda: made.append(bad),
        lambda: made.append(pa.table({"id": [7]})),
        lambda: made.overwrite(bad),
        lambda: made.overwrite(bad, where="id > 0"),
        lambda: made.update({"x": "x - 1"}),
        lambda: made.update({"x": "null"}, where="id = 1"),
        merge.execute,
    ):
        with pytest.raises(errors.ConstraintViolationError, match="does not satisfy c"):
            write()
    assert made.refresh().version == version and sorted(made.to_arrow()["id"].to_pylist()) == rows
    made.update({"x": "x + 1"})
    made.delete("id = 1")
    made.optimize()
    assert made.to_arrow().to_pylist() == [{"id": 2, "x": 7, "it's": "b"}]


@pytest.mark.spec("D-241", "D-242", "D-243")
@pytest.mark.feature("invariants", format="delta")
def test_invariants(raw, delta):
    def table(*fields, by=()):
        made = raw()
        made.commit(0, delta.PROTOCOL, delta.metadata(fields, by))
        return bh.open(str(made))

    def invariant(sql):
        return {"delta.invariants": json.dumps({"expression": {"expression": sql}})}

    t = table(delta.field("x", "long", **invariant("x > 3")))
    t.append(pa.table({"x": [5]}))
    for bad in (3, None):
        with pytest.raises(errors.ConstraintViolationError, match="the invariant of x"):
            t.append(pa.table({"x": pa.array([7, bad], pa.int64())}))
    inner = {"type": "struct", "fields": [delta.field("y", "long", **invariant("s.y > 3"))]}
    t = table(delta.field("s", inner), delta.field("p", "long", **invariant("p <> 1")), by=["p"])
    t.append(pa.table({"s": [{"y": 4}], "p": [2]}))
    for row in ({"s": {"y": 1}, "p": 2}, {"s": {"y": 4}, "p": 1}):
        with pytest.raises(errors.ConstraintViolationError):
            t.append(pa.Table.from_pylist([row]))
    assert t.count() == 1
    with pytest.raises(errors.InvalidArgumentError, match="is no CHECK constraint"):
        t.drop_constraint("the invariant of p")
    for text in ("x > 3", json.dumps({"expression": {"expression": "x >"}}), json.dumps({"expression": {}})):
        t = table(delta.field("x", "long", **{"delta.invariants": text}))
        assert t.count() == 0
        with pytest.raises(errors.UnsupportedFeatureError, match=r"invariant of|an invariant"):
            t.append(pa.table({"x": [5]}))


def test_constraints_of_others(tmp_path):
    path = str(tmp_path / "t")
    deltalake.write_deltalake(path, ROWS)
    deltalake.DeltaTable(path).alter.add_constraint({"small": "id < 100"})
    t = bh.open(path)
    t.append(pa.table({"id": [50], "x": [1], "it's": ["d"]}))
    with pytest.raises(errors.ConstraintViolationError, match="small"):
        t.append(pa.table({"id": [100], "x": [1], "it's": ["d"]}))
    t.add_constraint("named", "x is null or x > 0")
    with pytest.raises(Exception, match="failed validation"):
        deltalake.write_deltalake(path, pa.table({"id": [50], "x": [-1], "it's": ["d"]}), mode="append")
    deltalake.write_deltalake(path, pa.table({"id": [51], "x": [1], "it's": ["d"]}), mode="append")
    assert t.refresh().count() == 5


def test_one_that_cannot_be_checked_refuses_writing(raw, delta):
    made = raw()
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}
    configuration = {"delta.constraints.c": "soundex(x) = 'a'"}
    made.commit(0, protocol, delta.metadata([delta.field("x", "string")], configuration=configuration))
    t = bh.open(str(made))
    assert t.count() == 0
    with pytest.raises(errors.UnsupportedFeatureError, match=r"the constraint `c` .*soundex"):
        t.append(pa.table({"x": ["b"]}))
    t.drop_constraint("c")
    t.append(pa.table({"x": ["b"]}))
    assert t.count() == 1


def test_rows_that_come_while_it_is_added_are_seen(made, monkeypatch):
    other, met = bh.open(made.uri), []
    from boathouse.table.commit import FileCommitter

    publish = FileCommitter.publish

    def later(self, attempt):
        if not met:
            met.append(True)
            other.append(pa.table({"id": [-1], "x": [1], "it's": ["d"]}))
        return publish(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", later)
    with pytest.raises(errors.ConstraintViolationError, match="id=-1"):
        made.add_constraint("c", "id > 0")


def test_formats_without_constraints(tmp_path):
    for format in ("iceberg", "lance"):
        bh.write(ROWS, str(tmp_path / format), format=format)
        with pytest.raises(errors.UnsupportedFeatureError, match="set constraint is not offered"):
            bh.open(str(tmp_path / format)).add_constraint("c", "id > 0")


@pytest.mark.spark
@pytest.mark.feature("CHECK constraints", format="delta")
@pytest.mark.route("constraints")
def test_on_spark(made, spark):
    t = bh.open(made.uri, spark=spark)
    with pytest.raises(errors.ConstraintViolationError, match="id=3"):
        t.add_constraint("c", "id < 3")
    t.add_constraint("c", "id between 0 and 10 and id is not null")
    frame = spark.range(12, 14).selectExpr("id", "id as x", "'a' as `it's`")
    for write in (lambda: t.append(frame), lambda: t.update({"id": "id + 20"})):
        with pytest.raises(errors.ConstraintViolationError, match="does not satisfy c"):
            write()
    t.append(frame.selectExpr("id - 5 as id", "x", "`it's`"))
    assert t.count() == 5
