"""What users of delta-spark, Iceberg's procedures, pyiceberg, deltalake and pylance type: each line of the pages
"Moving from" does its work here, or is refused by name with what to do instead, on every format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError
from makers.traits import REAL

Walk = Callable[["Place"], object]
LINES: dict[str, Walk] = {}
DAY = dt.date(2026, 1, 1)


@dataclass
class Place:
    """A table of nine rows in three files, and a folder for more."""

    t: bh.Table
    format: str
    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def parquet(self) -> str:
        """A folder of Parquet files."""
        (self.folder / "raw" / "city=Kiel").mkdir(parents=True)
        pq.write_table(pa.table({"id": [100]}), self.folder / "raw" / "city=Kiel" / "one.parquet")
        return self.path("raw")


def line(name: str) -> Callable[[Walk], Walk]:
    def named(walk: Walk) -> Walk:
        assert name not in LINES
        LINES[name] = walk
        return walk

    return named


@pytest.fixture
def place(request, tmp_path):
    properties = {"delta": {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}}
    columns = "id bigint, n int, city string, day date, s struct<a: int>"
    t = bh.create(
        str(tmp_path / "t"), columns, format=request.param, profile="modern", properties=properties.get(request.param)
    )
    for k in range(3):
        ids = range(3 * k, 3 * k + 3)
        rows = [{"id": i, "n": i, "city": ["Kiel", "Oslo", None][i % 3], "day": DAY, "s": {"a": i}} for i in ids]
        t.append(rows)
    return Place(t, request.param, tmp_path)


NEWS = pa.table({"id": [8, 9], "city": ["Turku", "Turku"]})


@line("upsert, merge")
def _(p):
    assert p.t.upsert(NEWS, on="id").rows_updated == 1
    merge = p.t.merge(NEWS, "target.id = source.id").when_matched_update({"n": "target.n + 1"})
    assert merge.when_not_matched_by_source_delete().execute().rows_deleted == 8


@line("update")
def _(p):
    assert p.t.update({"n": "n + 1", "city": bh.lit("x")}, where="id = 3").rows_updated == 1


@line("delete")
def _(p):
    assert p.t.delete("city IS NULL").rows_deleted == 3


@line("compaction")
def _(p):
    assert p.t.optimize().files_removed == 3


@line("clean-up")
def _(p):
    p.t.optimize()
    p.t.vacuum(dry_run=True)


@line("expiry of versions")
def _(p):
    p.t.expire_snapshots(dt.datetime.now(dt.UTC), retain_last=1)


@line("orphans")
def _(p):
    p.t.remove_orphan_files(dry_run=True)


@line("append")
def _(p):
    assert p.t.append(NEWS).rows_added == 2


@line("dynamic partition overwrite")
def _(p):
    t = bh.create(p.path("by"), "id bigint, city string", format=p.format, partition_by=["city"])
    t.append([{"id": 1, "city": "Kiel"}, {"id": 2, "city": "Oslo"}])
    t.overwrite([{"id": 3, "city": "Kiel"}], partitions="dynamic")
    assert sorted(t.to_arrow()["id"].to_pylist()) == [2, 3]


@line("replaceWhere")
def _(p):
    p.t.overwrite(pa.table({"id": [1], "city": ["Oslo"]}), where="id = 1")
    assert p.t.count() == 9


@line("mergeSchema on append, on overwrite")
def _(p):
    more = pa.table({"id": [20], "extra": ["x"]})
    p.t.append(more, merge_schema=True)
    p.t.overwrite(more, merge_schema=True)
    assert "extra" in p.t.columns


@line("overwriteSchema")
def _(p):
    p.t.overwrite(pa.table({"x": [1.5]}), overwrite_schema=True)
    assert p.t.columns == ("x",) or list(p.t.columns) == ["x"]


@line("rename")
def _(p):
    p.t.rename_column("city", "town")


@line("drop")
def _(p):
    p.t.drop_column("n")


@line("widen")
def _(p):
    p.t.widen_column("n", "bigint")


@line("reorder")
def _(p):
    p.t.move_column("city", after="id")


@line("comment")
def _(p):
    p.t.set_comment("where", "city")


@line("nullability")
def _(p):
    p.t.set_nullable("id", False)


@line("constraints")
def _(p):
    p.t.add_constraint("positive", "id >= 0")


@line("default columns")
def _(p):
    p.t.add_column("c", "int", default=5)


@line("identity columns")
def _(p):
    from boathouse.types import Identity

    bh.create(p.path("i"), "id bigint, v string", format=p.format, identity={"id": Identity(1, 1)})


@line("changes between versions")
def _(p):
    begin = p.t.version
    p.t.delete("id = 1")
    kinds = p.t.changes(p.t.version).to_arrow()["_change_type"].to_pylist()
    assert begin != p.t.version and kinds == ["delete"]


@line("time travel")
def _(p):
    first = p.t.history()[-2]
    assert bh.open(p.t.uri, version=first.version).count() == 3
    assert bh.open(p.t.uri, timestamp=dt.datetime.now(dt.UTC)).count() == 9


@line("make tags, branches; write to a branch")
def _(p):
    p.t.refs.create_tag("old")
    p.t.refs.create_branch("audit")
    bh.open(p.t.uri, ref="audit").append(NEWS)
    assert (bh.open(p.t.uri, ref="audit").count(), bh.open(p.t.uri).count()) == (11, 9)


@line("restore, rollback")
def _(p):
    p.t.restore(p.t.history()[-2].version)
    assert p.t.count() == 3


@line("clone")
def _(p):
    p.t.clone(p.path("clone"))
    assert bh.open(p.path("clone")).count() == 9


@line("copy to another format")
def _(p):
    other = REAL[(REAL.index(p.format) + 1) % len(REAL)]
    bh.write(p.t, p.path("copy"), format=other)
    assert bh.open(p.path("copy")).count() == 9


@line("Parquet folder to table")
def _(p):
    bh.convert(p.parquet(), p.format, partition_by="city string")
    assert bh.open(p.path("raw")).count() == 1


@line("files added in place")
def _(p):
    p.t.add_files(p.parquet() + "/city=Kiel")


@line("metadata tables")
def _(p):
    assert p.t.inspect.files().num_rows == p.t.files().num_rows == 3
    assert p.t.inspect.snapshots().num_rows == p.t.inspect.history().num_rows


@line("manifests")
def _(p):
    p.t.inspect.manifests()


@line("Z-order, sort")
def _(p):
    p.t.optimize(zorder_by=["id"])
    p.t.optimize(sort_by=["city", "id desc"])


@line("cluster on write")
def _(p):
    p.t.sort_by("city")


@line("file size, compression")
def _(p):
    p.t.append(NEWS, target_file_bytes=1 << 20)


@line("nested projection, expressions, limit, head")
def _(p):
    assert p.t.scan(["s.a"]).to_arrow().num_rows == 9
    assert p.t.scan({"k": "n * 1.609"}, limit=2).to_arrow().num_rows == 2
    assert p.t.head(3).num_rows == p.t.scan().limit(3).count() == 3


@line("conditions as objects")
def _(p):
    import polars as pl

    assert p.t.scan(where=bh.col("id") > 6).count() == 2
    assert p.t.scan(where=pc.field("id") > 6).count() == 2
    assert p.t.scan(where=pl.col("id") > 6).count() == 2


@line("lazy polars, datasets")
def _(p):
    import polars as pl

    assert p.t.to_polars().filter(pl.col("id") > 6).collect().height == 2
    assert p.t.to_dataset().to_table(filter=pc.field("id") > 6).num_rows == 2


@line("duckdb")
def _(p):
    rel = p.t.to_duckdb()
    assert rel.filter("id > 6").fetchall().__len__() == 2


@line("take, sample")
def _(p):
    assert p.t.take([1, 2]).num_rows == p.t.sample(2).num_rows == 2


@line("vectors")
def _(p):
    v = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8, dtype=np.float32)), 2)
    bh.write(pa.table({"v": v}), p.path("v"), format=p.format)
    assert bh.open(p.path("v")).nearest("v", [0.0, 1.0], k=1).num_rows == 1


@line("indices")
def _(p):
    p.t.create_index("id")


@line("columns with values")
def _(p):
    p.t.add_columns({"twice": "n * 2"})


@line("several changes of columns")
def _(p):
    p.t.evolve().add_column("x", "int").add_column("y", "string").execute()


@line("statistics")
def _(p):
    p.t.compute_statistics()


@line("object stores")
def _(p):
    with pytest.raises(BoathouseError, match="regoin"):
        bh.open("s3://bucket/t", storage_options={"regoin": "x"})


REFUSED = {
    "delta": {
        "expiry of versions", "orphans", "nullability", "default columns", "make tags, branches; write to a branch",
        "files added in place", "manifests", "cluster on write", "take, sample", "vectors", "indices",
        "columns with values", "statistics",
    },
    "iceberg": {
        "constraints", "nullability", "identity columns", "clone", "take, sample", "vectors", "indices",
        "columns with values",
    },
    "lance": {
        "dynamic partition overwrite", "widen", "reorder", "constraints", "default columns",
        "identity columns", "Parquet folder to table", "files added in place", "manifests", "cluster on write",
        "statistics",
    },
}  # fmt: skip
"""The lines that a format does not offer; none is silent."""


@pytest.mark.parametrize("place", REAL, indirect=True)
@pytest.mark.parametrize("name", LINES)
def test_every_line_works_or_says_what_to_do(place, name):
    try:
        LINES[name](place)
    except BoathouseError as error:
        assert name in REFUSED[place.format], f"{name} is refused: {error}"
        assert error.advice or place.format in str(error).lower(), f"the refusal does not help: {error}"
        assert place.t.refresh().count() == 9, "something was written"
    else:
        assert name not in REFUSED[place.format], f"{name} works"
