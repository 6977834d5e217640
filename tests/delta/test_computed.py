"""Generated columns and defaults: filled where they are absent, checked where they are given, followed by changes."""

import datetime as dt

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, ConstraintViolationError, InvalidArgumentError

DAY = "delta.generationExpression"


@pytest.fixture
def generated(raw, delta):
    """`day` follows `t` and partitions the table, `twice` follows `x`; `note` has a default."""

    def make(**properties):
        table = raw()
        protocol = {
            "minReaderVersion": 1, "minWriterVersion": 7,
            "writerFeatures": ["generatedColumns", "allowColumnDefaults", "changeDataFeed"],
        }  # fmt: skip
        fields = [
            delta.field("t", "timestamp"), delta.field("day", "date", **{DAY: "CAST(t AS DATE)"}),
            delta.field("x", "long"), delta.field("twice", "integer", **{DAY: "x * 2"}),
            delta.field("note", "string", CURRENT_DEFAULT="'none'"),
        ]  # fmt: skip
        table.commit(0, {"protocol": protocol}, delta.metadata(fields, ["day"], configuration=properties))
        return str(table)

    return make


def instant(day, hour=12):
    return dt.datetime(2024, 1, day, hour, tzinfo=dt.UTC)


def rows(n, **more):
    stamps = pa.array([instant(i + 1) for i in range(n)], pa.timestamp("us", "UTC"))
    return pa.table({"t": stamps, "x": pa.array(range(n), pa.int64()), **more})


def found(path, *columns):
    return sorted(tuple(r[c] for c in columns) for r in bh.open(path).to_arrow().to_pylist())


def as_source(data, spark):
    if spark is None:
        return data
    return spark.createDataFrame(
        data.to_pylist(), "t timestamp, x long" + ", note string" * ("note" in data.column_names)
    )


@pytest.mark.spec("D-250", "D-311")
@pytest.mark.parametrize("on", ["process", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.feature("generatedColumns", "allowColumnDefaults", format="delta")
@pytest.mark.route("generated columns")
def test_what_is_absent_is_filled(generated, delta, on, request):
    spark = request.getfixturevalue("spark") if on == "spark" else None
    path = generated()
    bh.open(path, spark=spark).append(as_source(rows(3), spark))
    expected = [(dt.date(2024, 1, i + 1), i, 2 * i, "none") for i in range(3)]
    assert found(path, "day", "x", "twice", "note") == expected
    assert sorted((r["day"], r["x"], r["twice"], r["note"]) for r in delta.rows(path)) == expected
    values = {a["add"]["partitionValues"]["day"] for a in delta.log(path)[1] if "add" in a}
    assert values == {"2024-01-01", "2024-01-02", "2024-01-03"}
    bh.open(path, spark=spark).overwrite(as_source(rows(1, note=["given"]), spark))
    assert found(path, "x", "twice", "note") == [(0, 0, "given")]


@pytest.mark.spec("D-250", "D-251")
def test_what_is_given_is_checked(generated, delta):
    path = generated()
    table = bh.open(path)
    table.append(rows(2, twice=pa.array([0, 2], pa.int32()), note=[None, "b"]))
    assert found(path, "x", "twice") == [(0, 0), (1, 2)]
    assert bh.open(path).to_arrow().column("note").null_count == 1
    nothing = pa.table({"t": pa.nulls(1, pa.timestamp("us", "UTC")), "x": pa.nulls(1, pa.int64())})
    table.append(nothing.append_column("twice", pa.nulls(1, pa.int32())))
    files = list(delta.log(path))
    for wrong in ([0, 3], [None, 2]):
        with pytest.raises(ConstraintViolationError, match="generation expression of twice"):
            table.append(rows(2, twice=pa.array(wrong, pa.int32())))
    assert list(delta.log(path)) == files


@pytest.mark.spec("D-252")
@pytest.mark.parametrize("on", ["process", pytest.param("spark", marks=pytest.mark.spark)])
def test_changes_of_the_source_are_followed(generated, delta, on, request):
    spark = request.getfixturevalue("spark") if on == "spark" else None
    path = generated(**{"delta.enableChangeDataFeed": "true"})
    bh.open(path).append(rows(4))
    table = bh.open(path, spark=spark)
    table.update({"x": "x + 10", "t": "timestamp'2024-01-03 01:00:00'"}, where="x = 1")
    assert (dt.date(2024, 1, 3), 11, 22) in found(path, "day", "x", "twice")
    source = as_source(pa.table({"t": pa.array([instant(9), instant(10)]), "x": [2, 7]}), spark)
    table.merge(source, on="target.x = source.x").when_matched_update(
        {"t": "source.t"}
    ).when_not_matched_insert_all().execute()
    expected = [
        (dt.date(2024, 1, 1), 0, 0, "none"), (dt.date(2024, 1, 3), 11, 22, "none"), (dt.date(2024, 1, 4), 3, 6, "none"),
        (dt.date(2024, 1, 9), 2, 4, "none"), (dt.date(2024, 1, 10), 7, 14, "none"),
    ]  # fmt: skip
    assert found(path, "day", "x", "twice", "note") == expected
    assert sorted((r["day"], r["x"], r["twice"], r["note"]) for r in delta.rows(path)) == expected
    changed = bh.open(path).changes(3, 3).to_arrow().to_pylist()
    assert sorted((r["_change_type"], r["x"], r["day"].day) for r in changed) == [
        ("insert", 7, 10), ("update_postimage", 2, 9), ("update_preimage", 2, 3),
    ]  # fmt: skip
    with pytest.raises(ConstraintViolationError, match="generation expression of twice"):
        table.update({"twice": "5"}, where="x = 0")


def test_values_that_come_with_the_source(generated):
    """A clause that assigns the column, beside one that does not."""
    path = generated()
    bh.open(path).append(rows(2))
    source = rows(3, twice=pa.array([0, 2, 4], pa.int32()))
    merge = bh.open(path).merge(source, on="target.x = source.x")
    merge.when_matched_update({"x": "target.x + 100"}).when_not_matched_insert_all().execute()
    assert found(path, "x", "twice") == [(2, 4), (100, 200), (101, 202)]
    with pytest.raises(ConstraintViolationError, match="generation expression of twice"):
        bad = rows(5, twice=pa.array([0, 2, 4, 6, 9], pa.int32()))
        bh.open(path).merge(bad, on="target.x = source.x").when_not_matched_insert_all().execute()


@pytest.mark.spec("D-199")
def test_columns_of_generation_expressions(generated):
    path = generated()
    bh.open(path).set_properties({"delta.columnMapping.mode": "name"})
    table = bh.open(path)
    for change in (lambda: table.drop_column("x"), lambda: table.rename_column("x", "y")):
        with pytest.raises(InvalidArgumentError, match="generation expression of twice") as error:
            change()
        assert error.value.advice == "drop `twice` first"
    table.drop_column("twice")
    table.rename_column("x", "y")
    table.append(rows(2).rename_columns(["t", "y"]))
    assert found(path, "day", "y") == [(dt.date(2024, 1, 1), 0), (dt.date(2024, 1, 2), 1)]


@pytest.mark.spec("D-253")
def test_expressions_that_we_lack(raw, delta):
    table = raw()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 4}
    fields = [delta.field("x", "long"), delta.field("g", "string", **{DAY: "soundex(CAST(x AS STRING))"})]
    table.commit(0, {"protocol": protocol}, delta.metadata(fields))
    with pytest.raises(BoathouseError, match="soundex"):
        bh.open(str(table)).append(pa.table({"x": [1]}))
    assert list(delta.log(table)) == [0] and not list(table.path.glob("*.parquet"))
    odd = raw()
    fields = [delta.field("x", "long"), delta.field("g", "string", **{DAY: 7})]
    odd.commit(0, {"protocol": protocol}, delta.metadata(fields))
    assert bh.open(str(odd)).count() == 0
    with pytest.raises(BoathouseError, match="no expression"):
        bh.open(str(odd)).append(pa.table({"x": [1]}))


@pytest.mark.spark
def test_rows_that_spark_writes_itself(generated, delta, spark):
    path = generated()
    frame = spark.createDataFrame(rows(1).to_pylist(), "t timestamp, x long")
    with pytest.raises(Exception, match="the table computes"):
        frame.write.format("boathouse").mode("append").save(path)
    assert list(delta.log(path)) == [0]


@pytest.mark.spark
def test_expressions_mean_the_same_without_ansi_mode(generated, spark):
    path = generated()
    table = bh.open(path, spark=spark)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        table.append(as_source(rows(2), spark))
        with pytest.raises(BoathouseError):
            table.update({"x": "2000000000"}, "x = 1")  # twice that is no integer
        assert table.update({"x": "20"}, "x = 1").rows_updated == 1
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert found(path, "x", "twice") == [(0, 0), (20, 40)]
