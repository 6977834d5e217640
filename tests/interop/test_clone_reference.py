"""Shallow clones by delta-spark and by us: the same paths in the log, and either goes on with the other's."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from reference_spark import DELTA, started

import boathouse as bh

pytestmark = pytest.mark.slow

FOLDERS = ["a b+dü", "a b%20c+dü&=é'(x),;$!~@[]{}^#日"]
VALUES = ["a b", "50%", "x+y", "ü", "p/q", "é=1:2", "日"]
ROWS = [(i, k) for i in range(6) for k in VALUES]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(DELTA, tmp_path_factory.mktemp("reference"))
    # VACUUM lists the folders of a table in so many tasks.
    found.sql("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 2")
    yield found
    found.close()


@pytest.fixture(params=[False, True], ids=["files", "vectors"])
def vectors(request) -> bool:
    return request.param


@pytest.fixture(params=FOLDERS)
def folder(request, tmp_path) -> Path:
    return tmp_path / request.param


def made(folder: Path, vectors: bool, by: str = "`k+y`") -> bh.Table:
    """A table in the folder, in several files, without row 0."""
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    table = bh.create(
        str(folder / "s"), "id bigint, `k+y` string", partition_by=[by] if by else [], properties=properties
    )
    table.append([{"id": i, "k+y": k} for i, k in ROWS])
    table.delete("id = 0")
    return table


def sql(path: Path) -> str:
    return f"delta.`{path}`"


def paths(path: Path) -> set[tuple[str, str | None]]:
    lines = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    adds = [found["add"] for found in map(json.loads, lines) if "add" in found]
    return {(a["path"], (a.get("deletionVector") or {}).get("pathOrInlineDv")) for a in adds}


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def times(*wanted: int) -> list[int]:
    return sorted(i for i in wanted for _ in VALUES)


def check(reference, path: Path, wanted: list[int]) -> None:
    """The ids in the table, as delta-spark, deltalake and we read them."""
    assert ids(reference.rows(f"SELECT * FROM {sql(path)}")) == wanted
    table = bh.open(str(path))
    assert ids(table.to_arrow()) == wanted and table.count() == len(wanted)
    if "%" not in str(path):  # deltalake decodes the path of the table itself
        found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(path))).execute("select * from t")
        assert ids(pa.table(found)) == wanted


@pytest.mark.parametrize("by", ["`k+y`", ""], ids=["partitioned", "flat"])
def test_a_clone_has_the_paths_that_delta_spark_writes(reference, folder, vectors, by):
    source, ours, theirs = made(folder, vectors, by), folder / "ours", folder / "theirs"
    source.clone(str(ours))
    reference.sql(f"CREATE TABLE {sql(theirs)} SHALLOW CLONE {sql(folder / 's')}")
    assert paths(ours) == paths(theirs) and len(paths(ours)) == (len(VALUES) if by else 1)
    check(reference, ours, times(1, 2, 3, 4, 5))
    again, theirs_again = folder / "again", folder / "theirs again"
    bh.open(str(theirs)).clone(str(again))
    reference.sql(f"CREATE TABLE {sql(theirs_again)} SHALLOW CLONE {sql(ours)}")
    assert paths(again) == paths(theirs_again) == paths(ours)


def test_delta_spark_changes_our_clone(reference, folder, vectors):
    source, clone = made(folder, vectors), folder / "t"
    source.clone(str(clone))
    t = sql(clone)
    reference.sql(
        f"DELETE FROM {t} WHERE id = 1",
        f"UPDATE {t} SET id = 22 WHERE id = 2",
        f"MERGE INTO {t} t USING (SELECT explode(array(3L, 4L)) AS id) s ON t.id = s.id"
        " WHEN MATCHED AND s.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 44",
    )
    check(reference, clone, times(5, 22, 44))
    with_vectors = any(a["deletionVector"] for a in _adds(clone))
    assert with_vectors == vectors
    bh.open(str(clone), allow_mixed_writers=True).delete("id = 5")
    check(reference, clone, times(22, 44))
    reference.sql(f"RESTORE TABLE {t} TO VERSION AS OF 0", f"VACUUM {t}")
    check(reference, clone, times(1, 2, 3, 4, 5))
    check(reference, folder / "s", times(1, 2, 3, 4, 5))


def _adds(path: Path) -> list[dict]:
    lines = [json.loads(x) for f in sorted((path / "_delta_log").glob("*.json")) for x in f.read_text().splitlines()]
    return [{"deletionVector": None, **x["add"]} for x in lines if "add" in x]


def test_we_change_a_clone_by_delta_spark(reference, folder, vectors):
    made(folder, vectors)
    clone = folder / "t"
    reference.sql(f"CREATE TABLE {sql(clone)} SHALLOW CLONE {sql(folder / 's')}")
    table = bh.open(str(clone), allow_mixed_writers=True)
    table.delete("id = 1")
    table.update({"id": "id + 20"}, "id = 2")
    check(reference, clone, times(3, 4, 5, 22))
    reference.sql(f"DELETE FROM {sql(clone)} WHERE id IN (3, 22)")
    check(reference, clone, times(4, 5))
    table = bh.open(str(clone), allow_mixed_writers=True)
    table.restore(0)
    table.vacuum(0, enforce_retention_duration=False)
    check(reference, clone, times(1, 2, 3, 4, 5))
    check(reference, folder / "s", times(1, 2, 3, 4, 5))
