"""Commands on one table, over tables that others wrote."""

from __future__ import annotations

import pytest

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError


@pytest.fixture(params=["deep/er/delta", "iceberg", "lance"])
def table(request, lake):
    return lake / request.param


def rows_of(table):
    return 3 if table.name == "lance" else 4


def test_info_counts_what_others_wrote(asjson, table):
    info = asjson("info", table)
    assert (info["format"], info["rows"]) == (table.name, rows_of(table))
    assert [c["name"] for c in info["columns"]] == ["id", "city"]
    assert info["files"] >= 1 and info["bytes"] > 0 and info["small_files"] == info["files"]


def test_info_as_text_has_every_fact_on_a_line(run, table):
    code, out = run("info", table)
    assert code == 0
    facts = dict(line.split("  ", 1) for line in out.splitlines())
    assert facts["format"].strip() == table.name
    assert facts["columns"].strip() == "2"


def test_count_and_where(run, table):
    assert run("count", table) == (0, f"{rows_of(table)}\n")
    assert run("count", table, "--where", "id > 2 AND city IS NOT NULL") == (0, "1\n")


def test_head_gives_the_rows_asked_for(asjson, table):
    rows = asjson("head", table, "--columns", "city,id", "--where", "id >= 2")
    assert sorted(r["id"] for r in rows) == [2, 3, 4]
    assert {r["id"]: r["city"] for r in rows} == {2: "Bergen", 3: None, 4: "Oslo"}
    assert list(rows[0]) == ["city", "id"]
    assert len(asjson("head", table, "-n", 1)) == 1


def test_head_as_text_has_a_header(run, table):
    code, out = run("head", table, "--where", "id = 4")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [["id", "city"], ["4", "Oslo"]]


def test_schema_and_history_and_files(asjson, table):
    assert [c["path"] for c in asjson("schema", table)] == [["id"], ["city"]]
    history = asjson("history", table)
    assert len(history) == (1 if table.name == "iceberg" else 2)
    assert [h["timestamp_ms"] for h in history] == sorted((h["timestamp_ms"] for h in history), reverse=True)
    files = asjson("files", table)
    assert sum(f["rows"] - (f["deleted"] or 0) for f in files) == rows_of(table)
    assert len(asjson("files", table, "-n", 1)) == 1


def test_metadata_tables(asjson, run, table):
    files = asjson("inspect", table, "files")
    assert sorted(f["file_path"] for f in files) == sorted(f["path"] for f in asjson("files", table))
    assert len(asjson("inspect", table, "data_files", "-n", 1)) == 1
    snapshots = asjson("inspect", table, "snapshots")
    assert all(isinstance(s["summary"], dict) and s["committed_at"][4] == "-" for s in snapshots)
    code, out = run("inspect", table, "history")
    assert code == 0 and out.split()[:2] == ["made_current_at", "snapshot_id"]
    assert len(out.splitlines()) == len(snapshots) + 1
    with pytest.raises(InvalidArgumentError, match="'nothing' is not a metadata table"):
        run("inspect", table, "nothing")
    if table.name != "iceberg":
        with pytest.raises(UnsupportedFeatureError, match="manifests has no meaning"):
            run("inspect", table, "manifests")


def test_partitions_show_in_files(run, lake):
    code, out = run("files", lake / "deep/er/delta")
    assert code == 0
    assert sorted(line.split("\t")[-1] for line in out.splitlines()) == [
        "city=Bergen", "city=Kiel", "city=None", "city=Oslo",
    ]  # fmt: skip


def test_plan_says_what_is_skipped(asjson, run, lake):
    plan = asjson("plan", lake / "deep/er/delta", "--where", "city = 'Kiel'")
    assert plan["units"] == 1 and sum(plan["skipped"].values()) >= 3
    assert "reads 1 of" in run("plan", lake / "deep/er/delta", "--where", "city = 'Kiel'")[1]


def test_an_older_version(run, lake):
    assert run("count", lake / "deep/er/delta", "--version", 0) == (0, "2\n")
    assert run("count", lake / "lance", "--version", 1) == (0, "4\n")


def test_a_storage_option_must_have_a_value(run, lake):
    assert run("info", lake / "lance", "-o", "region")[0] == 2
