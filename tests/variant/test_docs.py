"""docs/variant.md and the README's section on variants keep their word: every snippet runs, in order."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "variant.md").read_text()
README = (ROOT / "README.md").read_text()


def snippets(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```python( spark)?\n(.*?)```", text, re.DOTALL)


def said(capsys: pytest.CaptureFixture[str], code: str) -> None:
    """What a line prints is what the comment behind it says."""
    printed = capsys.readouterr().out
    for comment in re.findall(r"print\(.*\)  # ([\[\d].*)", code):
        assert comment in printed, (comment, printed)


def run(code: str, names: dict[str, Any]) -> None:
    exec(compile(code, "docs/variant.md", "exec"), names)


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    local = [code for spark, code in snippets(PAGE) if not spark]
    assert len(local) >= 9
    for code in local:
        run(code, names)
        said(capsys, code)
    assert names["sizes"].to_pylist() == [3, None, None, None]
    assert names["tags"].to_pylist() == [["x"], None, None, None]


@pytest.mark.spark
def test_the_snippets_on_spark_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    for on_spark, code in snippets(PAGE):
        if on_spark or "duckdb" not in code:
            # Spark's working directory is that of its start.
            for name in ("events.parquet", "by_spark"):
                code = code.replace(f'"{name}"', repr(str(tmp_path / name)))
            run(code, names)
    assert "ada" in capsys.readouterr().out


def test_the_section_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = README.split("## Variant")[1].split("\n## ")[0]
    names: dict[str, Any] = {}
    ((_, code),) = snippets(section)
    run(code, names)
    assert "docs/variant.md" in section
    assert sys.modules["boathouse.variant"] is names["variant"]


def test_every_divergence_of_the_page_is_a_test() -> None:
    tests = (ROOT / "tests" / "variant" / "test_divergences.py").read_text()
    table = PAGE.split("## How other implementations differ")[1].split("\n## ")[0]
    rows = Counter(
        one.strip().lower()
        for who in re.findall(r"^\| (?!who|---)([^|]+) \|", table, re.MULTILINE)
        for one in who.split(",")
    )
    assert rows
    for who, count in rows.items():
        named = [name for name in re.findall(r"def test_(\w+)", tests) if who in re.split("_", name)]
        assert len(named) >= count, (who, count, named)
