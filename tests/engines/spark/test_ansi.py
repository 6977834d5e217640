"""What is given to us means what it means in ANSI mode, in sessions whose mode is off too."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import types as T
from boathouse.engines.spark import ansi
from boathouse.errors import ConstraintViolationError, EvaluationError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.types import Field, Schema
from makers.traits import REAL

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "i": pa.array([5, None, 2**31 - 1, 5], pa.int32()),
        "s": ["05", "05", "7", "x"],
        "ar": pa.array([[1], None, [], None], pa.list_(pa.int32())),
        "z": pa.array([-0.0, 0.0, 1.0, None]),
    }
)
SCHEMA = Schema((Field("id", T.INT64), Field("i", T.INT32), Field("s", T.STRING),
                 Field("ar", T.ListType(Field("element", T.INT32))), Field("z", T.DOUBLE)))  # fmt: skip
OTHERS = (
    "size(ar) < 1", "coalesce(i, s) = 5", "greatest(i, s) = 5", "CASE WHEN id > 1 THEN i ELSE s END = 5", "s IN (5, 7)",
    "s = 5", "i + 1 > 0", "1 / z > 0", "id / 0 = 1", "CAST(id * 1000 AS tinyint) > 0", "size(ar) IS NULL",
    "TRY_CAST(s AS int) = 5", "abs(i) > 0 AND id < 3", "CAST(z AS string) = '1.0'", "id % 0 = 1",
)  # fmt: skip
SAME = ("id > 2", "i = 5 AND s <> 'x'", "z < 1 OR s LIKE '0%'", "id IN (1, 2)", "z * 2 > 0.5D", "upper(s) = 'X'",
        "i < id", "TRY_CAST(s AS int) = 5", "coalesce(i, 7) = 7", "isnan(z)")  # fmt: skip


@pytest.fixture
def off(spark):
    """The session without ANSI mode."""
    spark.conf.set(ansi.SETTING, "false")
    yield spark
    spark.conf.unset(ansi.SETTING)


@pytest.fixture
def table(off, tmp_path, request):
    bh.write(ROWS, str(tmp_path / "t"), format=getattr(request, "param", "delta"))
    return bh.open(str(tmp_path / "t"), spark=off)


def outcome(run):
    """What it gives, or that it fails."""
    try:
        return run()
    except Exception:
        return "fails"


@pytest.mark.parametrize("table", REAL, indirect=True)
def test_conditions_of_a_scan(table):
    local = bh.open(table.uri)
    expected = {where: outcome(lambda w=where: local.scan(where=w).count()) for where in OTHERS + SAME}
    assert "fails" in expected.values()
    for where, wanted in expected.items():
        assert outcome(lambda w=where: table.scan(where=w).to_spark().count()) == wanted, where
        assert outcome(lambda w=where: table.delete(w, dry_run=True).rows_deleted) == wanted, where
    assert table.to_spark().where("size(ar) < 1").count() == 3  # what comes later is the session's own


def test_what_means_the_same_is_read_natively(table):
    for where in SAME:
        shown = str(table.scan(where=where).explain())
        assert "native" in shown or "no files" in shown, where
    refused = {"greatest(i, s) = 5"}  # by the types alone, wherever it runs
    for where in set(OTHERS) - set(SAME) - refused:
        shown = str(table.scan(where=where).explain())
        assert ansi.SETTING in shown or "no files" in shown, where


@pytest.mark.parametrize(
    ("where", "same"),
    [("CAST(i AS bigint) = id", True), ("CAST(id AS int) = i", False), ("CAST(i AS decimal(10,0)) = 5", True),
     ("z / 2 > 1", False), ("-i > 0", False), ("NOT (size(ar) = 1)", False)],
)  # fmt: skip
def test_which_conditions_mean_the_same(where, same):
    assert ansi.same_without(bind_predicate(parse(where), SCHEMA, "UTC")) == same


def test_values_of_updates_and_merges(table, off):
    for value in ("CAST(s AS int)", "i + 1", "CAST(id * 3000000000 AS int)", "CAST(1 / z AS int)", "element_at(ar, 3)"):
        with pytest.raises(EvaluationError):
            table.update({"i": value}, where="id IS NOT NULL")
    assert table.update({"i": "size(ar)"}, "id = 2").rows_updated == 1
    assert table.scan(["i"], "id = 2").to_arrow().to_pylist() == [{"i": None}]
    source = off.createDataFrame([(2, "x"), (5, "7")], "k bigint, v string")
    with pytest.raises(EvaluationError):
        table.merge(source, "target.id = source.k").when_matched_update({"i": "CAST(v AS int)"}).execute()
    with pytest.raises(EvaluationError):
        table.merge(source, "target.i = source.v").when_matched_delete().execute()
    done = (
        table.merge(source, "target.id = source.k")
        .when_matched_update({"i": "9"}, "size(target.ar) < 1")
        .when_not_matched_insert({"id": "k", "i": "v"})
        .execute()
    )
    assert (done.rows_updated, done.rows_added) == (0, 1)
    assert str(off.conf.get(ansi.SETTING)) == "false"


def test_the_users_own_frames_keep_their_meaning(table, off):
    """The rows of a source are computed as the session says."""
    source = off.createDataFrame([(7, "x")], "id bigint, t string").selectExpr("id", "CAST(t AS int) AS i")
    table.append(source)
    table.merge(source, "target.id = source.id").when_matched_update({"s": "'seen'"}).execute()
    assert table.scan(["i", "s"], "id = 7").to_arrow().to_pylist() == [{"i": None, "s": "seen"}]


def test_constraints(table, off):
    with pytest.raises(ConstraintViolationError):  # null, where it would be -1 < 2
        table.add_constraint("few", "size(ar) < 2")
    table.add_constraint("some", "coalesce(size(ar), 0) < 2")
    with pytest.raises(ConstraintViolationError):
        table.append(off.createDataFrame([(5, [1, 2])], "id bigint, ar array<int>"))
