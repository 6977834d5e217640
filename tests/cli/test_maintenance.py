"""Commands that change a table's files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import system


class NextWeek(system.System):
    def now_ms(self) -> int:
        return super().now_ms() + 8 * 86_400_000


@pytest.fixture
def table(tmp_path):
    """Delta with three versions; the newest has one file of two, and three rows of two."""
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1, 2]}), uri)
    bh.open(uri).overwrite(pa.table({"id": [3, 4, 5]}))
    return tmp_path / "t"


def parquet(table) -> int:
    return len(list(table.glob("*.parquet")))


def test_vacuum(run, asjson, table):
    assert run("vacuum", table) == (0, "removed 0 files, 0 B\n")
    with system.use(NextWeek()):
        code, out = run("vacuum", table, "--dry-run")
        assert code == 0 and len(out.split()) == 1 and (table / out.strip()).exists()
        dry = asjson("vacuum", table, "--dry-run", "--lite")
        assert dry["paths"] == [out.strip()] and dry["dry_run"] and dry["mode"] == "lite"
        done = asjson("vacuum", table)
    assert done["paths"] == dry["paths"] and done["bytes_removed"] == dry["bytes_removed"] > 0
    assert len(done["versions"]) == 2 and done["failed"] == [] and parquet(table) == 1
    assert bh.open(str(table)).count() == 3


def test_a_short_retention_is_an_error(run, table):
    with pytest.raises(bh.errors.InvalidArgumentError, match="less than the table's 168"):
        run("vacuum", table, "--retention", 1)
    assert run("vacuum", table, "--retention", 1, "--allow-short-retention")[0] == 0
    assert parquet(table) == 2


def test_restore(run, asjson, table):
    code, out = run("restore", table, "--version", 0, "--dry-run")
    assert (code, bh.open(str(table)).version) == (0, 1) and "dry run" in out and "1 file added" in out
    done = asjson("restore", table, "--version", 0)
    assert (done["version"], done["files_added"], done["files_removed"]) == (2, 1, 1)
    assert bh.open(str(table)).count() == 2
    assert asjson("restore", table, "--version", 0)["version"] is None
    with pytest.raises(bh.errors.VersionNotFoundError):
        run("restore", table, "--version", 9)
    with pytest.raises(bh.errors.InvalidArgumentError, match="a version or a timestamp"):
        run("restore", table)


def test_convert(run, asjson, tmp_path):
    folder = tmp_path / "day=2024-01-02"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), folder / "a.parquet")
    with pytest.raises(bh.errors.InvalidArgumentError, match="partition_by names none"):
        run("convert", tmp_path)
    dry = asjson("convert", tmp_path, "--partition-by", "day date", "--dry-run")
    assert (dry["version"], dry["files_added"], dry["rows_added"]) == (None, 1, 2)
    code, out = run("convert", tmp_path, "--partition-by", "day date")
    assert code == 0 and "version 0" in out
    assert bh.open(tmp_path).scan(where="day = date'2024-01-02'").to_arrow()["id"].to_pylist() == [1, 2]


def test_convert_to_another_format(asjson, tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    done = asjson("convert", tmp_path, "--format", "iceberg")
    assert (done["files_added"], done["rows_added"], bh.open(tmp_path).format) == (1, 2, "iceberg")


def test_optimize(run, asjson, table):
    bh.open(table).append(pa.table({"id": [9, 1]}))
    code, out = run("optimize", table, "--dry-run")
    assert code == 0 and "2 files removed" in out
    done = asjson("optimize", table, "--zorder-by", "id")
    assert (done["files_removed"], done["files_added"], done["rows_copied"]) == (2, 1, 5)
    assert sorted(bh.open(table).to_arrow()["id"].to_pylist()) == [1, 3, 4, 5, 9]
    assert asjson("optimize", table)["version"] is None


def test_purge(run, asjson, table):
    t = bh.open(table)
    t.set_properties({"delta.enableDeletionVectors": "true"})
    t.delete("id = 4")
    code, out = run("purge", table, "--dry-run")
    assert code == 0 and "1 file removed" in out
    done = asjson("purge", table)
    assert (done["files_removed"], done["files_added"], done["rows_copied"]) == (1, 1, 2)
    assert sorted(bh.open(table).to_arrow()["id"].to_pylist()) == [3, 5]
    assert asjson("purge", table)["version"] is None
