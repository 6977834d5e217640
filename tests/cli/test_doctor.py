"""`boathouse doctor`, on tables that are whole, slow and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError, TableNotFoundError
from makers.traits import REAL


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


@pytest.fixture
def table(format_name, tmp_path):
    t = bh.create(str(tmp_path / "t"), "id bigint", format=format_name, profile="modern")
    t.append([{"id": i} for i in range(10)])
    return t


def test_whole_tables(table, run):
    code, text = run("doctor", table.uri)
    assert code == 0 and "nothing was found" in text
    assert json.loads(run("doctor", table.uri, "--json")[1]) == []
    assert table.examine() == table.examine("metadata") == []
    with pytest.raises(InvalidArgumentError, match="depth='deep'"):
        table.examine("deep")


def test_slow_tables_are_mended(table, run):
    for i in range(20):
        table.append([{"id": 100 + i}])
    table.delete("id < 8")
    wanted = sorted(table.to_arrow().column("id").to_pylist())
    found = {f.code: f for f in table.examine()}
    assert found["table.small-files"].repair == "optimize" and found["table.small-files"].severity == "hint"
    assert set(found) <= {"table.small-files", "table.deleted-rows"}
    code, text = run("doctor", table.uri)
    assert code == 0 and "hint:" in text and "--repair runs optimize" in text
    code, text = run("doctor", table.uri, "--repair")
    assert code == 0 and "ran optimize" in text and "nothing was found" in text
    assert sorted(bh.open(table.uri).to_arrow().column("id").to_pylist()) == wanted


def test_lost_files(table, run):
    lost = Path(table.scan().files()[0].removeprefix("file://"))
    lost = lost if lost.exists() else next(Path(table.uri.removeprefix("file://")).rglob(lost.name))
    lost.unlink()
    (finding,) = [f for f in table.examine() if f.severity == "damage"]
    assert lost.name in f"{finding.where} {finding.message}"
    assert [f for f in table.examine("metadata") if f.severity == "damage"] == []
    code, text = run("doctor", table.uri)
    assert code == 5 and "damage:" in text and lost.name in text
    assert run("doctor", table.uri, "--repair")[0] == 5
    assert run("doctor", table.uri, "--metadata-only")[0] == 0


def test_what_cannot_be_opened(tmp_path, run):
    t = bh.create(str(tmp_path / "t"), "id bigint")
    (tmp_path / "t" / "_delta_log" / "00000000000000000000.json").write_text("{")
    code, text = run("doctor", t.uri, "--json")
    assert code == 5 and [f["severity"] for f in json.loads(text)] == ["damage"]
    with pytest.raises(TableNotFoundError):
        run("doctor", str(tmp_path / "nowhere"))
