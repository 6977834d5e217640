"""What statistics, files and values of others are believed, and what ours promise."""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import z85
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.delta.stats.bounds import StatsColumn, decode_stats
from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.types import INT64

VECTORS = {"delta.enableDeletionVectors": "true"}


def found(path, where):
    return sorted(bh.open(str(path)).scan(where=where).to_arrow().column("x").to_pylist())


def adds(delta, path):
    return [a["add"] for entry in delta.log(path).values() for a in entry if "add" in a]


def with_stats(raw, delta, stats, type="long", rows=None):
    """One file with these statistics."""
    table = raw()
    rows = pa.table({"x": [1, 2, 3]}) if rows is None else rows
    table.file("f", rows)
    text = stats if stats is None or isinstance(stats, str) else json.dumps(stats)
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", type)]), table.add("f", stats=text))
    return table


@pytest.mark.spec("D-263")
def test_bounds_are_tight_unless_said_otherwise():
    text = '{"numRecords":3,%s"minValues":{"c":1},"maxValues":{"c":3},"nullCount":{"c":0}}'
    for more, tight in (("", True), ('"tightBounds":true,', True), ('"tightBounds":false,', False)):
        array = decode_stats(pa.array([text % more]), [StatsColumn(INT64, ("c",))])
        one = array.field("0").to_pylist()[0]
        assert (one["lower_exact"], one["upper_exact"]) == (tight, tight)


@pytest.mark.spec("D-264")
def test_bounds_after_vectors_are_wide_but_kept(tmp_path, delta):
    chance = np.random.default_rng(3)
    for n in range(4):
        path = tmp_path / f"t{n}"
        values = chance.integers(-100, 100, 50)
        bh.write(pa.table({"x": values}), str(path), format="delta", properties=VECTORS)
        (before,) = [json.loads(a["stats"]) for a in adds(delta, path)]
        assert (before["minValues"]["x"], before["maxValues"]["x"]) == (values.min(), values.max())
        assert before.get("tightBounds", True) is True
        bh.open(str(path)).delete(f"x <= {np.sort(values)[10]}")
        after = json.loads(adds(delta, path)[-1]["stats"])
        assert after["tightBounds"] is False and after["numRecords"] == 50
        assert after["minValues"]["x"] <= values.min() and after["maxValues"]["x"] >= values.max()


@pytest.mark.spec("D-265")
@pytest.mark.parametrize(("nulls", "is_null"), [(0, []), (4, [0, 0, 0]), (2, [0])])
def test_null_counts_under_wide_bounds(raw, delta, nulls, is_null):
    """Physical rows are counted: of four, the vector hides the last, so 2 says nothing certain of three."""
    values = {0: [1, 2, 3, 4], 4: [None] * 4, 2: [None, 2, 3, None]}[nulls]
    payload = (1681511377).to_bytes(4, "little") + serialize64(Bitmap.of([3]))
    padded = payload + bytes(-len(payload) % 4)
    vector = {
        "storageType": "i", "pathOrInlineDv": z85.encode(padded), "sizeInBytes": len(payload), "cardinality": 1,
    }  # fmt: skip
    stats = {"numRecords": 4, "nullCount": {"x": nulls}, "tightBounds": False}
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }  # fmt: skip
    table = raw()
    size = table.file("f", pa.table({"x": pa.array(values, pa.int64())}))
    add = table.add("f", stats=json.dumps(stats), deletionVector=vector)
    add["add"]["size"] = size
    table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]), add)
    opened = bh.open(str(table))
    assert opened.scan(where="x is null").to_arrow().num_rows == len(is_null)
    assert opened.scan(where="x is null").count() == len(is_null)
    assert opened.scan(where="x is not null").count() == 3 - len(is_null)


@pytest.mark.spec("D-271", "D-284")
def test_decimals_of_others(raw, delta):
    exact = Decimal("12345678901234567890123456.789012345678")
    rows = pa.table({"x": pa.array([exact, Decimal(1)], pa.decimal128(38, 12))})
    for low, high in (
        ("1", "12345678901234567890123456.789012345678"),
        ("1E0", "1.2345678901234567890123456789012345678E25"),
        ("1.0", "1.2345678901234568e25"),  # deltalake's, rounded down as a float may be
    ):
        text = f'{{"numRecords":2,"minValues":{{"x":{low}}},"maxValues":{{"x":{high}}},"nullCount":{{"x":0}}}}'
        table = with_stats(raw, delta, text, "decimal(38,12)", rows)
        assert len(found(table, "x > 12345678901234567890123456.5")) == 1
        assert len(found(table, f"x = {exact}")) == 1
        assert len(found(table, "x < 2")) == 1
    for value in map(Decimal, ("98765432109876543.333333333333", "-12345678901234567.123456789012")):
        bound = repr(float(value))
        text = f'{{"numRecords":1,"minValues":{{"x":{bound}}},"maxValues":{{"x":{bound}}},"nullCount":{{"x":0}}}}'
        one = with_stats(raw, delta, text, "decimal(38,12)", pa.table({"x": pa.array([value], pa.decimal128(38, 12))}))
        for where in (f"x = {value}", f"x >= {value}", f"x <= {value}"):
            assert found(one, where) == [value]
    partitioned = raw()
    partitioned.file("f", pa.table({"y": [1]}))
    fields = [delta.field("x", "decimal(12,5)"), delta.field("y", "long")]
    partitioned.commit(0, delta.PROTOCOL, delta.metadata(fields, ["x"]), partitioned.add("f", {"x": "-2342342.23423"}))
    assert found(partitioned, "x < 0") == [Decimal("-2342342.23423")]


@pytest.mark.spec("D-272")
@pytest.mark.parametrize(
    "stats",
    [
        {"numRecords": 3, "minValues": {"gone": 9}, "maxValues": {"gone": 9}, "nullCount": {"gone": 3}},
        {"numRecords": 3, "minValues": {"x": "9"}, "maxValues": {"x": [9]}, "nullCount": {"x": "none"}},
        {"numRecords": 3, "minValues": {"x": {"y": 9}}, "maxValues": 4, "nullCount": None},
        {"numRecords": 3, "minValues": {"x": 1.5}, "maxValues": {"x": True}},
        '{"numRecords":3,"minValues":{"x":9',
        "[]", "null", "9", "",
    ],
)  # fmt: skip
def test_statistics_that_mean_nothing(raw, delta, stats):
    table = with_stats(raw, delta, stats)
    assert found(table, "x = 2") == [2] and found(table, "x > 1") == [2, 3]
    assert found(table, "x is null") == [] and bh.open(str(table)).count() == 3


@pytest.mark.spec("D-273")
def test_types_that_have_null_counts_alone(tmp_path, delta):
    data = pa.table({
        "bin": pa.array([b"a", None]), "list": pa.array([[1], None]), "bool": [True, None],
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    bh.write(data, str(tmp_path / "t"), format="delta")
    (stats,) = [json.loads(a["stats"]) for a in adds(delta, tmp_path / "t")]
    assert stats["minValues"] == stats["maxValues"] == {}
    assert set(stats["nullCount"]) <= {"bin", "list", "bool", "map"} and stats["nullCount"]["bin"] == 1


@pytest.mark.spec("D-275")
def test_the_columns_that_have_statistics(tmp_path, delta):
    data = pa.table({f"c{i}": [i] for i in range(40)})

    def counted(name, **properties):
        path = tmp_path / name
        bh.write(data, str(path), format="delta", properties=properties)
        (stats,) = [json.loads(a["stats"]) for a in adds(delta, path)]
        for column in ("c1", "c7", "c39"):
            assert bh.open(str(path)).scan(where=f"{column} = {column[1:]}").count() == 1
            assert bh.open(str(path)).scan(where=f"{column} = -5").to_arrow().num_rows == 0
        return list(stats["minValues"])

    assert counted("all") == [f"c{i}" for i in range(32)]
    assert counted("few", **{"delta.dataSkippingNumIndexedCols": "2"}) == ["c0", "c1"]
    assert counted("none", **{"delta.dataSkippingNumIndexedCols": "0"}) == []
    assert counted("every", **{"delta.dataSkippingNumIndexedCols": "-1"}) == [f"c{i}" for i in range(40)]
    named = {"delta.dataSkippingStatsColumns": "c39, c7", "delta.dataSkippingNumIndexedCols": "1"}
    assert sorted(counted("named", **named)) == ["c39", "c7"]


@pytest.mark.spec("D-054")
def test_a_table_whose_checkpoints_keep_no_statistics(tmp_path):
    off = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "false"}
    path = tmp_path / "t"
    bh.write(pa.table({"x": [0]}), str(path), format="delta", properties={**off, "delta.checkpointInterval": "2"})
    for n in (1, 2):
        bh.open(str(path)).append(pa.table({"x": [n]}))
    rows = pq.read_table(path / "_delta_log" / f"{2:020d}.checkpoint.parquet").column("add").to_pylist()
    assert all("stats_parsed" not in r and r.get("stats") is None for r in rows if r)
    for entry in (path / "_delta_log").glob("*.json"):
        if int(entry.stem) < 2:
            entry.unlink()
    assert found(path, "x > 0") == [1, 2] and bh.open(str(path)).count() == 3


@pytest.mark.spec("D-060")
def test_a_checkpoint_names_the_features(tmp_path):
    path = tmp_path / "t"
    properties = {**VECTORS, "delta.checkpointInterval": "1"}
    bh.write(pa.table({"x": [0, 1]}), str(path), format="delta", properties=properties)
    bh.open(str(path)).delete("x = 0")
    rows = pq.read_table(path / "_delta_log" / f"{1:020d}.checkpoint.parquet").column("protocol").to_pylist()
    (protocol,) = [r for r in rows if r]
    assert protocol["readerFeatures"] == ["deletionVectors"] and "deletionVectors" in protocol["writerFeatures"]


@pytest.mark.spec("D-296")
def test_lists_and_maps_of_old_writers(raw, delta):
    """Two levels, `array` and `bag`, and a map whose entries are named `map`."""
    item = pa.field("array", pa.int64())
    rows = pa.table({"x": [1, 2], "l": pa.array([[1, 2], []], pa.list_(item))})
    fields = [
        delta.field("x", "long"),
        delta.field("l", {"type": "array", "elementType": "long", "containsNull": True}),
    ]
    for compliant in (True, False):
        table = raw()
        pq.write_table(rows, table.path / "f", use_compliant_nested_type=compliant)
        table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f"))
        assert bh.open(str(table)).to_arrow().column("l").to_pylist() == [[1, 2], []]
        bh.open(str(table)).append(bh.open(str(table)).to_arrow())
        (ours,) = list(table.path.glob("*.parquet"))
        assert pq.ParquetFile(ours).schema.column(1).path == "l.list.element"


@pytest.mark.spec("D-297")
@pytest.mark.parametrize(("precision", "as_integer"), [(8, True), (8, False), (16, True), (16, False), (30, False)])
def test_decimals_in_every_physical_type(raw, delta, precision, as_integer):
    values = [Decimal("-1.25"), None, Decimal("99.99")]
    rows = pa.table({"x": pa.array(values, pa.decimal128(precision, 2))})
    table = raw()
    pq.write_table(rows, table.path / "f", store_decimal_as_integer=as_integer)
    physical = pq.ParquetFile(table.path / "f").schema.column(0).physical_type
    assert physical == (("INT32" if precision < 10 else "INT64") if as_integer else "FIXED_LEN_BYTE_ARRAY")
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", f"decimal({precision},2)")]), table.add("f"))
    assert bh.open(str(table)).to_arrow().column("x").to_pylist() == values
    assert found(table, "x > 0") == [Decimal("99.99")]


@pytest.mark.spec("D-234")
def test_files_of_another_type(raw, delta):
    table = raw()
    table.file("f", pa.table({"x": ["text"]}))
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f"))
    with pytest.raises(BoathouseError) as error:
        bh.open(str(table)).to_arrow()
    told = f"{error.value.message} {error.value.where}"
    assert "`x`" in told and "f" in told and "string" in told and "int64" in told


@pytest.mark.spec("D-310", "D-314")
@pytest.mark.feature("catalogManaged", format="delta")
def test_features_to_come_are_refused_by_name(raw, delta):
    for name in ("catalogManaged", "catalogOwned-preview", "geospatial", "collations-preview", "timestampNanos"):
        table = raw()
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [name], "writerFeatures": [name]}
        table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]))
        with pytest.raises(UnsupportedFeatureError, match=name):
            bh.open(str(table))
    for name in ("materializePartitionColumns", "collations", "adaptiveMetadata"):
        table = raw()
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [name]}
        table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]))
        with pytest.raises(UnsupportedFeatureError, match=name):
            bh.open(str(table)).append(pa.table({"x": [1]}))
    for type in ("geometry", "interval year to month", "timestamp_nanos"):
        table = raw()
        table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", type)]))
        with pytest.raises(BoathouseError, match=type.split()[0]):
            bh.open(str(table))


@pytest.mark.spec("D-313")
def test_codecs(tmp_path):
    def codec(name, **properties):
        path = tmp_path / name
        bh.write(pa.table({"x": [1]}), str(path), format="delta", properties=properties)
        (file,) = path.glob("*.parquet")
        column = pq.ParquetFile(file).metadata.row_group(0).column(0)
        return column.compression

    assert codec("default") == "ZSTD"
    for name in ("snappy", "gzip", "zstd", "uncompressed"):
        assert codec(name, **{"delta.parquet.compression.codec": name}) == name.upper()
    with pytest.raises(BoathouseError, match="codec"):
        codec("unknown", **{"delta.parquet.compression.codec": "zap"})


@pytest.mark.spec("D-237")
@pytest.mark.feature("appendOnly", format="delta")
def test_append_only_tables(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(pa.table({"x": [1]}), path, format="delta", properties={"delta.appendOnly": "true"})
    table = bh.open(path)
    table.append(pa.table({"x": [2]}))
    table.optimize()
    files = sorted((tmp_path / "t").glob("*.parquet"))
    rows = pa.table({"x": [1]})
    for act in (
        lambda: table.delete("x = 1"),
        lambda: table.update({"x": "5"}),
        lambda: table.overwrite(rows),
        lambda: table.merge(rows, on="target.x = source.x").when_matched_update_all().execute(),
    ):
        with pytest.raises(BoathouseError, match="appendOnly"):
            act()
    assert sorted((tmp_path / "t").glob("*.parquet")) == files
    assert sorted(bh.open(path).to_arrow().column("x").to_pylist()) == [1, 2]
