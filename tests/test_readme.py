"""The README keeps its word: its Python runs, what it says of the formats is so, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def block(marker: str) -> str:
    (found,) = [b for b in blocks("python") if marker in b]
    return found


@pytest.mark.spark
@pytest.mark.route("README")
def test_the_pyspark_block_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark}
    exec(compile(block("spark.createDataFrame(\n"), "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "LGA" in shown and "EWR" not in shown
    assert names["bh"].open("lake/flights").count() == 3
    duckdb = pytest.importorskip("duckdb")
    files = names["bh"].open("lake/flights").scan().files()
    paths = [f.removeprefix("file://") for f in files]
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet({paths})").fetchall() == [(3,)]


@pytest.mark.spark
@pytest.mark.route("README: SQL")
def test_the_block_of_sql_and_delta_tables_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark}
    exec(compile(block("spark.createDataFrame(\n"), "README.md", "exec"), names)
    exec(compile(block("DeltaTable.forPath"), "README.md", "exec"), names)
    rows = sorted(names["bh"].open("lake/delta").to_arrow().to_pylist(), key=lambda r: r["origin"])
    assert [(r["origin"], r["delay"]) for r in rows] == [("EWR", 12.0), ("JFK", 0.0), ("LGA", 50.0), ("SFO", 5.0)]
    assert "48.0" in capsys.readouterr().out  # the version before the merge


def test_the_python_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(block("bh.create("), "README.md", "exec"), names)
    rows = sorted(names["t"].to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [(r["id"], r["city"], r["country"]) for r in rows] == [
        (1, "KIEL", None), (2, "BERGEN", None), (4, "Oslo", "NO"), (5, "Turku", "FI"),
    ]  # fmt: skip
    lance = pytest.importorskip("lance")
    assert lance.dataset("lake/cities").to_table().num_rows == 4


def test_the_state_of_the_formats_is_current(tool):
    assert tool("readme_state").updated(TEXT) == TEXT


def test_the_page_of_functions_is_current(tool):
    functions = tool("functions_doc")
    assert functions.PAGE.read_text() == functions.page()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_command_of_the_shell_block_is_there():
    from typer.main import get_command

    from boathouse.cli.app import app

    known = set(get_command(app).commands)
    named = set(re.findall(r"^boathouse (\w+)", "\n".join(blocks("bash")), re.MULTILINE))
    assert named
    assert named <= known


def test_every_exit_code_is_documented():
    from boathouse.cli.app import EXIT_CODES

    page = (ROOT / "docs" / "cli.md").read_text()
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert documented == {0, 130, *(code for _, code in EXIT_CODES)}


def test_every_command_has_its_line_in_the_page_of_the_command_line():
    from typer.main import get_command

    from boathouse.cli.app import app

    page = (ROOT / "docs" / "cli.md").read_text()
    commands = get_command(app).commands
    assert set(re.findall(r"^\| `boathouse (\w+)", page, re.MULTILINE)) == set(commands)
    options = {o for c in commands.values() for p in c.params for o in p.opts if o.startswith("--")}
    missing = sorted(o for o in options - {"--help", "--limit"} if o not in page)
    assert missing == []
