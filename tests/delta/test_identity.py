"""Identity columns: values given once, in both engines, beside other writers, and up to the end of bigint."""

import json
import threading

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.engines import local
from boathouse.errors import (
    BoathouseError,
    CommitConflictError,
    ConstraintViolationError,
    CorruptTableError,
    EvaluationError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from boathouse.ops import write as write_op
from boathouse.ops.handle import Handle
from boathouse.ops.run import run
from boathouse.ops.tasks.numbering import Lane, Numbering
from boathouse.ops.tasks.sink import sink_batches
from boathouse.ops.write import Planned, WritePlan
from boathouse.table.edits import ReplaceSchema, SetType
from boathouse.table.tasks import IdentityColumn
from boathouse.types import DOUBLE, Field, Identity, Schema

LAST = 2**63 - 1
ENGINES = ["process", pytest.param("spark", marks=pytest.mark.spark)]
PARTS = ("start", "step", "allowExplicitInsert")


@pytest.fixture(params=ENGINES)
def session(request):
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture
def make(tmp_path):
    def created(identity=Identity(), schema="id bigint, x bigint", **options):
        path = str(tmp_path / f"t{len(list(tmp_path.iterdir()))}")
        bh.create(path, schema, identity={"id": identity}, **options)
        return path

    return created


def rows(*x, spark=None):
    return (
        pa.table({"x": pa.array(x, pa.int64())})
        if spark is None
        else spark.createDataFrame([(v,) for v in x], "x long")
    )


def recorded(delta, path, version=None):
    """What the newest metaData says of the column `id`."""
    log = delta.log(path)
    found = [a["metaData"] for v in sorted(log) if version is None or v <= version for a in log[v] if "metaData" in a]
    fields = json.loads(found[-1]["schemaString"])["fields"]
    return {k.removeprefix("delta.identity."): v for k, v in fields[0]["metadata"].items()}


def found(path, *columns):
    return sorted(tuple(r[c] for c in columns or ("id", "x")) for r in bh.open(path).to_arrow().to_pylist())


def by_deltalake(delta, path):
    return sorted((r["id"], r["x"]) for r in delta.rows(path))


@pytest.mark.spec("D-254", "D-168")
@pytest.mark.feature("identityColumns", format="delta")
@pytest.mark.route("identity columns")
def test_the_values_of_appends(make, delta, session):
    path = make(Identity(start=100, step=10))
    assert recorded(delta, path) == {"start": 100, "step": 10, "allowExplicitInsert": False}
    assert delta.log(path)[0][1]["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 6}
    table, before = bh.open(path, spark=session), 90
    for turn in range(3):
        table.append(rows(*range(turn * 7, turn * 7 + 7), spark=session))
        new = [id for id, x in found(path) if x // 7 == turn]
        assert len(set(new)) == 7 and all(id > before and (id - 100) % 10 == 0 for id in new)
        before = recorded(delta, path)["highWaterMark"]
        assert before == max(new) and sum("metaData" in a for a in delta.log(path)[turn + 1]) == 1
    assert by_deltalake(delta, path) == found(path)
    table.overwrite(rows(1, 2, spark=session))
    assert min(id for id, _ in found(path)) > before
    table.overwrite(rows(1, spark=session), where="x = 1")
    ids = {x: id for id, x in found(path)}
    assert ids[1] > ids[2] and recorded(delta, path)["highWaterMark"] >= ids[1]


@pytest.mark.spec("D-254")
def test_in_process_the_values_are_those_of_the_rows_in_order(make, monkeypatch):
    monkeypatch.setattr(local, "SINK_BYTES", 8)
    path = make()
    bh.open(path).append(rows(*range(100)))
    assert found(path) == [(i + 1, i) for i in range(100)] and bh.open(path).files().num_rows > 1
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("x", pa.int64())]), rows(7, 8, 9).to_batches(max_chunksize=1)
    )
    bh.open(path).append(reader)
    assert found(path)[100:] == [(101, 7), (102, 8), (103, 9)]


@pytest.mark.spec("D-254")
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_merge_and_update(make, delta, session, vectors):
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
    path = make(schema="id bigint not null, x bigint, note string", properties=properties)
    bh.open(path).append(rows(1, 2, 3))
    table = bh.open(path, spark=session)
    table.update({"x": "x + 10"}, where="x = 1")
    assert found(path) == [(1, 11), (2, 2), (3, 3)] and recorded(delta, path)["highWaterMark"] == 3
    table.upsert(rows(2, 5, 6, spark=session), on="x")
    after = {x: id for id, x in found(path)}
    assert {x: after[x] for x in (11, 2, 3)} == {11: 1, 2: 2, 3: 3}
    assert after[5] != after[6] and min(after[5], after[6]) > 3
    assert recorded(delta, path)["highWaterMark"] == max(after[5], after[6])
    changes = bh.open(path).changes(table.version, table.version).to_arrow().to_pylist()
    assert {(r["id"], r["x"]) for r in changes if r["_change_type"] == "insert"} == {(after[5], 5), (after[6], 6)}
    assert by_deltalake(delta, path) == found(path)
    version = table.version
    table.merge(rows(2, spark=session), "target.x = source.x").when_matched_delete().execute()
    assert table.version == version + 1 and not any("metaData" in a for a in delta.log(path)[version + 1])
    for refused in (
        lambda: table.update({"id": "7"}),
        lambda: table.merge(rows(1, spark=session), "target.x = source.x").when_matched_update({"ID": "7"}).execute(),
    ):
        with pytest.raises(ConstraintViolationError, match="identity column `id`: rows keep the value"):
            refused()


@pytest.mark.spec("D-255")
def test_steps(make, delta, session):
    path = make(Identity(start=-5, step=-3))
    for turn in range(2):
        bh.open(path, spark=session).append(rows(turn, turn, spark=session))
    ids = [id for id, _ in found(path)]
    assert all((id + 5) % 3 == 0 and id <= -5 for id in ids) and len(set(ids)) == 4
    assert recorded(delta, path)["highWaterMark"] == min(ids)
    first = {id for id, x in found(path) if x == 0}
    assert min(first) > max(id for id, x in found(path) if x == 1)
    with pytest.raises(InvalidArgumentError, match="step 0"):
        Identity(step=0)
    with pytest.raises(InvalidArgumentError, match="not a bigint"):
        Identity(start=2**63)


@pytest.mark.spec("D-255")
def test_declarations(tmp_path, raw, delta):
    path = str(tmp_path / "t")
    for schema, options, why in (
        ("id int", {}, "not bigint"),
        ("id bigint, x int", {"partition_by": "id"}, "cannot partition"),
        ("x int", {}, "id"),
    ):
        with pytest.raises(BoathouseError, match=why):
            bh.create(path, schema, identity={"id": Identity()}, **options)
    with pytest.raises(InvalidArgumentError, match="does not name identity columns"):
        bh.create(path, "id bigint", identity={"id": 1})
    for other in ("iceberg", "lance"):
        with pytest.raises(UnsupportedFeatureError, match="no identity columns"):
            bh.create(path, "id bigint", format=other, identity={"id": Identity()})
    assert not (tmp_path / "t").exists()
    for odd in ({"step": 0}, {"start": "1"}, {"allowExplicitInsert": "no"}, {"highWaterMark": 1.5}):
        table = raw()
        whole = {"start": 1, "step": 1, "allowExplicitInsert": False} | odd
        field = delta.field("id", "long", **{f"delta.identity.{k}": v for k, v in whole.items()})
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}
        table.commit(0, protocol, delta.metadata([field, delta.field("x", "long")]))
        assert bh.open(str(table)).count() == 0
        with pytest.raises(CorruptTableError, match="no identity column"):
            bh.open(str(table)).append(rows(1))


@pytest.mark.spec("D-254")
def test_a_copy_has_no_identity_columns(make, tmp_path, delta):
    path, copy = make(Identity(5, 5)), str(tmp_path / "copy")
    bh.open(path).append(rows(1))
    with pytest.raises(InvalidArgumentError, match="which is Delta's own"):
        bh.create(copy, bh.open(path).schema)
    plain = str(tmp_path / "plain")
    bh.write(bh.open(path), plain)
    assert "start" not in recorded(delta, plain)


@pytest.mark.spec("D-169", "D-254")
@pytest.mark.parametrize("writer", [5, 6, 7])
def test_from_writer_version_6_on(raw, delta, writer):
    """The keys mean nothing where the protocol lacks the feature."""
    table = raw()
    keys = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    protocol = {"minReaderVersion": 1, "minWriterVersion": writer}
    protocol |= {"writerFeatures": ["identityColumns"]} if writer == 7 else {}
    table.commit(
        0, {"protocol": protocol}, delta.metadata([delta.field("id", "long", **keys), delta.field("x", "long")])
    )
    bh.open(str(table)).append(rows(4))
    assert found(str(table)) == [(None if writer == 5 else 1, 4)]
    given = pa.table({"id": [9], "x": [1]})
    if writer == 5:
        bh.open(str(table)).append(given)
    else:
        with pytest.raises(ConstraintViolationError, match="new rows cannot bring values"):
            bh.open(str(table)).append(given)


@pytest.mark.spec("D-256")
def test_values_that_the_user_gives(make, delta, session):
    given = pa.table({"ID": [50, 2], "x": [1, 2]})
    if session is not None:
        given = session.createDataFrame(given.to_pylist(), "ID long, x long")
    path = make(Identity(allow_explicit_insert=True))
    table = bh.open(path, spark=session)
    table.append(given)
    assert found(path) == [(2, 2), (50, 1)] and "highWaterMark" not in recorded(delta, path)
    table.append(rows(3, spark=session))
    (value,) = (id for id, x in found(path) if x == 3)
    assert recorded(delta, path)["highWaterMark"] == value >= 1
    merge = table.merge(given, "target.x = source.x + 100")
    merge.when_not_matched_insert({"x": "source.x"}, where="source.x = 1").when_not_matched_insert_all().execute()
    assert recorded(delta, path)["highWaterMark"] > value and found(path, "id").count((2,)) >= 2
    strict = make()
    files = list(delta.log(strict))
    for refused in (
        lambda: bh.open(strict).append(given),
        lambda: bh.open(strict).overwrite(given),
        lambda: bh.open(strict).overwrite(given, where="x > 0"),
        lambda: (
            bh.open(strict, spark=session).merge(given, "target.x = source.x").when_not_matched_insert_all().execute()
        ),
    ):
        with pytest.raises(ConstraintViolationError, match="new rows cannot bring values") as error:
            refused()
        assert error.value.advice == "leave `id` out"
    assert list(delta.log(strict)) == files


@pytest.mark.spec("D-257")
def test_the_end_of_bigint(make, delta, tmp_path, session):
    path = make(Identity(start=LAST - 1))
    table = bh.open(path, spark=session)
    with pytest.raises(EvaluationError, match="beyond bigint"):
        table.append(rows(*range(20), spark=session))
    assert list(delta.log(path)) == [0]
    bh.open(path).append(rows(1, 2))
    assert found(path) == [(LAST - 1, 1), (LAST, 2)] and recorded(delta, path)["highWaterMark"] == LAST
    for refused in (
        lambda: table.append(rows(spark=session) if session is None else rows(1, spark=session)),
        lambda: table.upsert(rows(1, spark=session), on="x"),
    ):
        with pytest.raises(EvaluationError, match="no values left"):
            refused()
    assert len(delta.log(path)) == 2
    lowest = make(Identity(start=-(2**63), step=-LAST, allow_explicit_insert=True))
    bh.open(lowest).append(rows(1))
    with pytest.raises(EvaluationError, match="no values left"):
        bh.open(lowest).append(rows(1))
    bh.open(lowest).append(pa.table({"id": [3], "x": [3]}))
    wide = make(Identity(start=-(2**63), step=LAST))
    bh.open(wide).append(rows(1, 2, 3))
    assert [id for id, _ in found(wide)] == [-(2**63), -1, LAST - 1]


def commit(path, *edits):
    """A commit of edits that no public call makes."""

    class Odd:
        operation = "alter-columns"

        def plan(self, start):
            return WritePlan((), lambda _: Planned(start.change("alter-columns", edits)))

    table = bh.open(path)
    handle = table._handle
    assert isinstance(handle, Handle)
    return run(handle, local.LocalEngine(), Odd())


@pytest.mark.spec("D-258")
def test_what_never_changes(make, delta):
    path = make()
    bh.open(path).append(rows(1, 2))
    for key, value in (("start", 7), ("step", 2), ("allowExplicitInsert", True)):
        with pytest.raises(UnsupportedFeatureError, match=rf"{key} of the identity column `id` cannot change"):
            keys = {f"delta.identity.{k}": v for k, v in (recorded(delta, path) | {key: value}).items()}
            fields = (Field("id", bh.open(path).schema.field("id").type, metadata=keys), Field("x", DOUBLE))
            commit(path, ReplaceSchema(Schema(fields)))
        with pytest.raises(UnsupportedFeatureError, match=r"delta\.identity"):
            bh.open(path).set_properties({f"delta.identity.{key}": str(value)})
    with pytest.raises(UnsupportedFeatureError, match="type of the identity column `id` cannot change"):
        commit(path, SetType(("id",), DOUBLE))
    assert len(delta.log(path)) == 2


@pytest.mark.spec("D-258")
def test_a_schema_that_replaces_another(make, delta):
    """The column goes on, or is an identity column no longer, as with the reference."""
    path = make()
    bh.open(path).append(rows(1, 2))
    keys = {f"delta.identity.{k}": v for k, v in recorded(delta, path).items() if k in PARTS}
    old = bh.open(path).schema
    commit(path, ReplaceSchema(Schema((Field("id", old.field("id").type, metadata=keys), Field("y", DOUBLE)))))
    assert recorded(delta, path)["highWaterMark"] == 2
    bh.open(path).overwrite(pa.table({"id": [5], "z": [1]}), overwrite_schema=True)
    assert recorded(delta, path) == {} and found(path, "id", "z") == [(5, 1)]


@pytest.mark.spec("D-254")
def test_columns_are_renamed_and_dropped(make, delta):
    path = make()
    bh.open(path).set_properties({"delta.columnMapping.mode": "name"})
    table = bh.open(path)
    table.append(rows(1))
    table.rename_column("id", "key")
    table.append(rows(2))
    assert found(path, "key", "x") == [(1, 1), (2, 2)]
    table.restore(version=2)
    table.append(rows(3))
    assert found(path) == [(1, 1), (3, 3)]
    table.drop_column("id")
    table.append(rows(4))
    assert found(path, "x") == [(1,), (3,), (4,)]


@pytest.mark.spec("D-254")
def test_a_restored_version_gives_no_value_twice(make, delta):
    path = make()
    table = bh.open(path)
    table.append(rows(1))
    table.append(rows(2, 3))
    table.restore(version=1)
    assert recorded(delta, path)["highWaterMark"] == 3
    table.append(rows(4))
    assert found(path) == [(1, 1), (4, 4)]


@pytest.mark.spec("D-254")
def test_marks_of_others(raw, delta):
    """A mark that is no value of the column, or before its start."""
    for mark, step, first in ((7, 5, 11), (-100, 5, 1), (11, 5, 16), (-3, -2, -5), (5, -2, 1), (None, 5, 1)):
        table = raw()
        keys = {"delta.identity.start": 1, "delta.identity.step": step, "delta.identity.allowExplicitInsert": False}
        keys |= {} if mark is None else {"delta.identity.highWaterMark": mark}
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}
        table.commit(0, protocol, delta.metadata([delta.field("id", "long", **keys), delta.field("x", "long")]))
        bh.open(str(table)).append(rows(1, 2))
        assert [id for id, _ in found(str(table))] == sorted([first, first + step])


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets `act` happen once, after rows were written and before they are committed."""

    def arrange(act):
        real, calls = write_op.RowWork.perform, []

        def perform(work, engine):
            done = real(work, engine)
            if not calls:
                calls.append(1)
                act()
            return done

        monkeypatch.setattr(write_op.RowWork, "perform", perform)

    return arrange


@pytest.mark.spec("D-259")
@pytest.mark.parametrize("how", ["append", "overwrite", "merge"])
def test_the_loser_gives_other_values(make, delta, session, meanwhile, how):
    path = make()
    bh.open(path).append(rows(1))
    meanwhile(lambda: bh.open(path).append(rows(2, 3)))
    table, data = bh.open(path, spark=session), rows(4, 5, spark=session)
    if how == "merge":
        result = table.upsert(data, on="x")
    else:
        result = getattr(table, how)(data)
    ids = [id for id, _ in found(path)]
    assert result.retries == 1 and len(set(ids)) == len(ids) == (2 if how == "overwrite" else 5)
    assert all(id > 3 for id, x in found(path) if x in (4, 5))
    assert recorded(delta, path)["highWaterMark"] == max(ids) and by_deltalake(delta, path) == found(path)


@pytest.mark.spec("D-259")
def test_rows_that_can_be_read_once_lose(make, meanwhile):
    path = make()
    meanwhile(lambda: bh.open(path).append(rows(2)))
    reader = rows(4).to_reader()
    with pytest.raises(CommitConflictError):
        bh.open(path).append(reader)
    assert found(path) == [(1, 2)]


@pytest.mark.spec("D-259")
def test_who_gives_no_values_is_not_in_the_way(make, meanwhile, delta):
    """Neither a delete beside an append that moves the mark, nor an append of given values."""
    path = make(Identity(allow_explicit_insert=True))
    bh.open(path).append(rows(1, 2))
    meanwhile(lambda: bh.open(path).append(rows(3)))
    result = bh.open(path).append(pa.table({"id": [70], "x": [7]}).to_reader())
    assert result.version == 3 and recorded(delta, path)["highWaterMark"] == 3
    assert found(path) == [(1, 1), (2, 2), (3, 3), (70, 7)]
    table = bh.open(path)
    table.append(rows(9))
    table.delete("x = 1")
    table.append(rows(10))
    assert (5, 10) in found(path)


@pytest.mark.spec("D-259")
def test_many_writers(make, delta):
    path, errors = make(Identity(step=-2)), []

    def work(n):
        try:
            for i in range(3):
                bh.open(path).append(rows(*range(100 * n + 10 * i, 100 * n + 10 * i + 5)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    ids = [id for id, _ in found(path)]
    assert len(ids) == 60 and set(ids) == set(range(1, -119, -2))
    assert recorded(delta, path)["highWaterMark"] == min(ids) and by_deltalake(delta, path) == found(path)


@pytest.mark.spec("D-259")
def test_lanes():
    """Tasks that run again give the same values; no two tasks share one, however uneven they are."""
    column = IdentityColumn("id", 10, 5, False)
    given = {}
    for task, sizes in enumerate([(3, 0, 4), (), (1,), (50, 50)]):
        for _ in range(2):
            numbering = Numbering((column,), Lane(task, 4))
            values = [v for n in sizes for v in numbering.fill(rows(*range(n)).to_batches()[0] if n else
                      pa.RecordBatch.from_pylist([], rows().schema)).column("id").to_pylist()]  # fmt: skip
            assert given.setdefault(task, values) == values
            assert numbering.used == (task + 4 * (len(values) - 1) + 1 if values else 0)
    everything = [v for values in given.values() for v in values]
    assert len(set(everything)) == len(everything) == 108 and {(v - 10) % 5 for v in everything} == {0}


@pytest.mark.spark
@pytest.mark.spec("D-254", "D-259")
def test_more_partitions_than_lanes(make, spark, delta):
    path = make()
    frame = spark.range(0, 300, 1, 37).selectExpr("id AS x")
    bh.open(path, spark=spark).append(frame)
    ids = [id for id, _ in found(path)]
    assert len(set(ids)) == 300 and min(ids) == 1 and recorded(delta, path)["highWaterMark"] == max(ids)
    parted = make(schema="id bigint, x bigint, p bigint", partition_by="p")
    bh.open(parted, spark=spark).append(frame.selectExpr("x", "x % 3 AS p"))
    ids = [id for id, _ in found(parted)]
    assert len(set(ids)) == 300 and {f["partition"]["p"] for f in bh.open(parted).files().to_pylist()} == {0, 1, 2}


@pytest.mark.spark
@pytest.mark.spec("D-256")
def test_rows_that_spark_writes_itself(make, delta, spark):
    path = make(Identity(allow_explicit_insert=True))
    frame = spark.createDataFrame([(1,)], "x long")
    with pytest.raises(Exception, match="an identity column"):
        frame.write.format("boathouse").mode("append").save(path)
    frame.selectExpr("4L AS id", "x").write.format("boathouse").mode("append").save(path)
    assert found(path) == [(4, 1)] and "highWaterMark" not in recorded(delta, path)


@pytest.mark.spec("D-250", "D-254")
def test_beside_other_columns_that_the_table_fills(raw, delta):
    """Defaults, constraints on the value, two identity columns."""
    table = raw()
    keys = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    protocol = {
        "minReaderVersion": 1, "minWriterVersion": 7,
        "writerFeatures": ["identityColumns", "allowColumnDefaults", "checkConstraints", "generatedColumns"],
    }  # fmt: skip
    fields = [
        delta.field("id", "long", **keys), delta.field("x", "long"),
        delta.field("note", "string", CURRENT_DEFAULT="'none'"),
        delta.field("twice", "long", **{"delta.generationExpression": "x * 2"}),
        delta.field("down", "long", **(keys | {"delta.identity.step": -1, "delta.identity.start": 0})),
    ]  # fmt: skip
    table.commit(0, {"protocol": protocol}, delta.metadata(fields, configuration={"delta.constraints.few": "id < 4"}))
    path = str(table)
    bh.open(path).append(rows(7, 8))
    assert found(path, "id", "x", "note", "twice", "down") == [(1, 7, "none", 14, 0), (2, 8, "none", 16, -1)]
    with pytest.raises(ConstraintViolationError, match="few"):
        bh.open(path).append(rows(1, 2))
    assert recorded(delta, path)["highWaterMark"] == 2
    bh.open(path).upsert(rows(8, 9), on="x")
    assert found(path, "id", "x", "note", "twice", "down")[-1] == (3, 9, "none", 18, -2)


def test_nothing_is_left_of_rows_beyond_the_end(make, tmp_path):
    path = make(Identity(start=LAST))
    with pytest.raises(EvaluationError):
        bh.open(path).append(rows(1, 2))
    assert [p.name for p in (tmp_path / path.rsplit("/", 1)[1]).iterdir()] == ["_delta_log"]


def test_the_sink_reports_no_number_without_identity_columns(make):
    path = make(Identity(allow_explicit_insert=True))
    context = write_op.writing(bh.open(path)._handle.snapshot, "w", write_op.WriteOptions())
    given = pa.table({"id": [1], "x": [1]})
    outcomes = pa.Table.from_batches(list(sink_batches(given.to_batches(), context)))
    assert outcomes.column("numbered").to_pylist() == [None, 0]


def test_partitioned_by_another_writer(raw, delta):
    table = raw()
    keys = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 6}}
    table.commit(0, protocol, delta.metadata([delta.field("id", "long", **keys), delta.field("x", "long")], ["id"]))
    bh.open(str(table)).append(rows(5, 6))
    assert found(str(table)) == [(1, 5), (2, 6)]


@pytest.mark.spec("D-259")
def test_new_columns_beside_a_mark_that_moves(make, meanwhile, delta):
    """Files have physical names that follow from the schema, marks included: the rows are written again."""
    path = make(Identity(allow_explicit_insert=True), properties={"delta.columnMapping.mode": "name"})
    meanwhile(lambda: bh.open(path).append(rows(1)))
    data = pa.table({"id": [70], "x": [7], "new": ["n"]})
    result = bh.open(path).append(data, merge_schema=True)
    assert result.retries == 1
    assert found(path, "id", "x", "new") == [(1, 1, None), (70, 7, "n")]
