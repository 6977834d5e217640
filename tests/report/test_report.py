"""The page of a table: every number as its API says, on tables that are ordinary, odd, slow and damaged."""

from __future__ import annotations

import datetime as dt
import random
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import boathouse as bh
from boathouse.cli.app import app
from boathouse.report import write
from boathouse.report.advice import advice
from boathouse.report.facts import gather
from makers.traits import REAL, TRAITS

TEXT = '<script>alert("x")</script> & \x00 \ud800'.encode("utf-8", "replace").decode()
COLUMNS = (
    "id bigint not null, country string, day date, price double, `a b` struct<x: bigint, `y z`: string>, l array<int>"
)
VOID = {"meta"}


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


def rows(number: int) -> list[dict]:
    chance = random.Random(number)
    return [
        {
            "id": 100 * number + i,
            "country": chance.choice(["NO", "DE", None, "<b>"]),
            "day": dt.date(2024, 1, 1) + dt.timedelta(number),
            "price": chance.choice([1.5, float("nan"), -0.0, None]),
            "a b": {"x": chance.randrange(9), "y z": TEXT},
        }
        for i in range(8)
    ]


@pytest.fixture
def table(format, tmp_path):
    t = bh.create(str(tmp_path / "t <&>"), COLUMNS, format=format, profile="modern")
    for number in range(22):
        t.append(rows(number), message=f"{number}: {TEXT}")
    t.delete("id % 5 = 0 and id < 500")
    t.set_properties({"who": TEXT})
    return t


class Page(HTMLParser):
    """The texts of a page whose elements are all closed, and which loads nothing."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe", "object")
        assert not any(name in ("src", "href") or name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            assert "url(" not in data and "@import" not in data
        elif data.strip():
            self.texts.append(data.strip())


def page_of(t) -> Page:
    return Page(write(t._handle, t.examine()))


def test_what_it_says(table):
    texts = page_of(table).texts
    about = table.detail()
    for number, name in ((about["rows"], "rows"), (about["files"], "files")):
        assert texts[texts.index(name) - 1] == f"{number:,}"
    assert about["location"] in texts
    assert any(f"version {about['version']}" in t for t in texts)
    assert "boathouse optimize " + about["location"] in texts and "table.small-files" in texts
    assert [t for t in texts if t.startswith("0: <script>alert") and "\x00" not in t]
    assert {"id", "country", "day", "price", "a b.x", "a b.y z"} <= set(texts)
    assert any("l array<int>" in t for t in texts)
    assert f"{len(list(table.history()))} commits." in texts


def test_the_share_of_files_that_a_condition_reads(table):
    """`read` is what scans with such conditions read, on the average of the files' lower bounds."""
    found = {c.name: c for c in gather(table._handle, []).columns}
    files = table.detail()["files"]
    if found["id"].covered == 0:
        assert found["id"].read is None  # the format keeps no bounds
        return
    assert found["id"].covered == 1 and (found["id"].lower, found["id"].upper) == (0, 2107)
    bounds = [b.column("stats") for b in table._handle.snapshot.files([("id",), ("a b", "x")])]
    for name, i, sql in (("id", 0, "id"), ("a b.x", 1, "`a b`.x")):
        values = [v for b in bounds for v in b.field(i).field("lower").to_pylist()]
        read = [len(table.scan(where=f"{sql} = {v}").files()) for v in values]
        assert found[name].read == pytest.approx(np.mean(read) / files), name
    nulls = sum(row["country"] is None for number in range(22) for row in rows(number))
    before = bh.open(table.uri, version=table.history()[2].version)
    assert {c.name: c.nulls for c in gather(before._handle, []).columns}["country"] == nulls
    # Of files with deleted rows either all rows count, or the format does not know how many are left.
    assert found["country"].nulls in (nulls, None)


def test_a_table_without_rows(format, tmp_path):
    t = bh.create(str(tmp_path / "t"), COLUMNS, format=format, profile="modern")
    facts = gather(t._handle, [])
    assert (len(facts.files.sizes), facts.partitions) == (0, ())
    assert {c.covered for c in facts.columns} == {None}
    assert "Nothing is wrong with the table, or makes it slow." in page_of(t).texts


def test_an_older_version(table):
    first = table.history()[-2].version
    page = page_of(bh.open(table.uri, version=first))
    assert any(f"version {first}" in t for t in page.texts) and "8" in page.texts


def test_partitions(format, tmp_path):
    if not TRAITS[format].capabilities.partitions:
        pytest.skip("the format has no partitions")
    t = bh.create(str(tmp_path / "t"), "id bigint, p string", format=format, partition_by=["p"])
    for i in range(30):
        t.append(pa.table({"id": range(20_000 if i == 3 else 1), "p": [f"p{i}"] * (20_000 if i == 3 else 1)}))
    facts = gather(t._handle, [])
    assert facts.partitions[0].name == "p=p3" and len(facts.partitions) == 30
    assert [p.rows for p in facts.partitions][:2] == [20_000, 1]
    assert "table.skewed" in [f.code for f in advice(facts)]
    assert "p=p3" in page_of(t).texts


def test_files_that_no_column_tells_apart(format, tmp_path):
    t = bh.create(str(tmp_path / "t"), "id bigint, s string", format=format)
    for _ in range(20):
        t.append(pa.table({"id": [1, 99], "s": ["a", "z"]}))
    (hint,) = advice(gather(t._handle, []))
    assert hint.code == ("table.no-statistics" if TRAITS[format].bounds == "none" else "table.unordered")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_command(table, tmp_path):
    out = tmp_path / "page.html"
    done = run("report", table.uri, "-o", out)
    assert done.exit_code == 0 and str(out) in done.stdout
    assert Page(out.read_text("utf-8")).texts[:-1] == Page(run("report", table.uri, "-o", "-").stdout).texts[:-1]
    assert run("report", table.uri, "-o", tmp_path / "no" / "page.html").exit_code == 2


def test_a_lost_file_is_on_the_page(table):
    name = table.scan().files()[0].rpartition("/")[2]
    lost = next(Path(unquote(table.uri.removeprefix("file://"))).rglob(name))
    lost.unlink()
    page = page_of(table)
    assert any(t.startswith("damage: ") for t in page.texts) and any(lost.name in t for t in page.texts)


@pytest.mark.slow
def test_in_a_browser(table, tmp_path):
    """Pictures of the page, light and dark, are in `tmp_path`."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    page = tmp_path / "page.html"
    page.write_text(write(table._handle, table.examine()), "utf-8")
    sizes = []
    for look in ("--force-dark-mode", "--hide-scrollbars"):
        picture = tmp_path / f"{look.strip('-')}.png"
        options = (
            "--headless --no-sandbox --disable-gpu --disable-background-networking --enable-logging=stderr --v=0 "
            "--window-size=1200,2400"
        )
        command = [browser, *options.split(), look, f"--user-data-dir={tmp_path / look}", f"--screenshot={picture}"]
        done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "CONSOLE" not in done.stderr, done.stderr
        sizes.append(picture.stat().st_size)
    assert min(sizes) > 30_000, "a blank page is smaller"
