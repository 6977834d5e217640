"""The pages keep their word: their code runs, block after block, in a folder of its own.

A comment `<!-- setup ... -->` is code that a page does not show; what needs a cloud or a session of its own comes after
`<!-- not run: reason -->`, and is compiled only.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from boathouse.cli.app import app

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(
    r"<!-- setup\n(?P<setup>.*?)-->|(?P<no><!-- not run: [^>]+ -->\n)?```(?P<kind>\w+)[^\n]*\n(?P<code>.*?)```",
    re.DOTALL,
)
ELSEWHERE = ("design", "checklists")
TESTED = {
    "names.md": "tests/api/test_names.py",
    "variant.md": "tests/variant/test_docs.py",
    "streams.md": "tests/engines/spark/test_streams.py",
}
"""Pages whose code other tests run, and say more of."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """(kind, code) in order: `python` and `bash` are run, `compiled` is not."""
    found = []
    for match in BLOCK.finditer(page.read_text("utf-8")):
        if match["setup"] is not None:
            found.append(("python", match["setup"]))
        else:
            found.append(("compiled" if match["no"] else match["kind"], match["code"]))
    # What a page sets up is there from its beginning.
    return sorted(found, key=lambda block: block[1] not in page_setups(page))


def page_setups(page: Path) -> set[str]:
    return {m["setup"] for m in BLOCK.finditer(page.read_text("utf-8")) if m["setup"] is not None}


def pages():
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        found = [b for b in blocks(page) if b[0] in ("python", "compiled", "bash")]
        if not found or page.parent.name in ELSEWHERE or name in TESTED:
            continue
        on_spark = any(kind == "python" and re.search(r"\bspark\b", code) for kind, code in found)
        yield pytest.param(page, id=name, marks=[pytest.mark.spark] if on_spark else [])


@pytest.mark.parametrize("page", list(pages()))
def test_the_code_of_a_page_runs(page, request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    names = {"__name__": "__main__"}
    if "spark" in {mark.name for mark in request.node.iter_markers()}:
        names["spark"] = request.getfixturevalue("spark")
    for kind, code in found:
        if 'format("boathouse")' in code:
            # Spark's data source and checkpoints know the folder in which the session began, not this one.
            code = re.sub(r'"(lake|checkpoints)/', rf'"{tmp_path}/\1/', code)
        if kind in ("python", "compiled"):
            compiled = compile(code, str(page.relative_to(DOCS)), "exec")
            if kind == "python":
                exec(compiled, names)
        elif kind == "bash":
            run_shell(code)


def run_shell(code: str) -> None:
    """The commands of the library among the lines."""
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["boathouse"] and "PATH" not in words:
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == 0, f"{line}: {done.output} {done.exception!r}"


def test_pages_that_other_tests_run_are_there():
    for page, test in TESTED.items():
        assert (DOCS / page).exists() and (DOCS.parent / test).exists()


def test_every_option_of_the_data_source_is_on_its_page():
    from pyspark_boathouse import options, stream_options

    page = (DOCS / "reference" / "data-source.md").read_text() + (DOCS / "streams.md").read_text()
    shown = {name.lower() for name in re.findall(r"`(\w+)`", page)}
    known = options._READ | options._WRITE | stream_options._OF_STREAMS - {"ignorechanges"}
    assert sorted(known - shown - {"path"}) == []


@pytest.mark.parametrize(
    ("format", "pattern"),
    [("iceberg", r'"((?:write|commit|history|gc|encryption)\.[a-z0-9.-]+[a-z])"'), ("delta", r"(delta\.enable\w+)")],
)
def test_the_page_of_properties_has_all_that_are_obeyed(format, pattern):
    page = (DOCS / "reference" / "properties.md").read_text()
    sources = "".join(p.read_text() for p in (DOCS.parent / "src" / "boathouse" / format).rglob("*.py"))
    named = set(re.findall(pattern, sources))
    assert named and sorted(name for name in named if name not in page) == []


@pytest.mark.parametrize("format", ["delta", "iceberg", "lance"])
def test_the_page_of_properties_names_what_there_is(format):
    page = (
        (DOCS / "reference" / "properties.md")
        .read_text()
        .partition(f"## {format.capitalize()}\n")[2]
        .partition("\n## ")[0]
    )
    sources = "".join(p.read_text() for p in (DOCS.parent / "src" / "boathouse").rglob("*.py"))
    cells = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    names = re.findall(r"`([^`]+)`", cells)
    known = [n for n in names if n in sources or n.removesuffix("NAME").rstrip(".") in sources]
    parts = [n for n in names if n not in known and all(part in sources for part in n.split("."))]
    assert sorted(set(names) - {*known, *parts}) == []


def test_every_error_has_a_code_of_its_own():
    """The page of errors is made of their docstrings."""
    from boathouse import errors

    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.BoathouseError)]
    codes = [k.code for k in kinds if not k.__name__.startswith("_")]
    assert len(set(codes)) == len(codes) > 20
