"""inventory: every table below a prefix, whatever state it is in."""

from __future__ import annotations

import shutil

import pytest

from boathouse.errors import NotFoundError


def test_every_table_is_found_with_its_figures(asjson, lake):
    rows = {r["path"].removeprefix(lake.as_uri() + "/"): r for r in asjson("inventory", lake)}
    assert {p: r["format"] for p, r in rows.items()} == {
        "deep/er/delta": "delta", "iceberg": "iceberg", "lance": "lance",
    }  # fmt: skip
    assert all(r["readable"] and r["writable"] and r["why"] is None for r in rows.values())
    assert [rows[p]["rows"] for p in ("deep/er/delta", "iceberg", "lance")] == [4, 4, 3]
    assert rows["lance"]["deleted_share"] == pytest.approx(0.25)
    assert rows["deep/er/delta"]["protocol"]["minReaderVersion"] == 1
    assert rows["deep/er/delta"]["engine"].startswith("delta-rs")
    assert rows["iceberg"]["protocol"] == {"format-version": 2}
    assert all(r["last_commit"].endswith("Z") for r in rows.values())


def test_the_depth_is_kept(asjson, lake):
    assert [r["format"] for r in asjson("inventory", lake, "--depth", 1)] == ["iceberg", "lance"]


def test_tables_that_cannot_be_written_or_read_say_why(asjson, run, lake, tmp_path):
    shutil.copytree(lake / "deep/er/delta", tmp_path / "new")
    log = tmp_path / "new" / "_delta_log" / "00000000000000000002.json"
    log.write_text('{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}\n')
    shutil.copytree(lake / "deep/er/delta", tmp_path / "refused")
    log = tmp_path / "refused" / "_delta_log" / "00000000000000000002.json"
    features = '"readerFeatures":[],"writerFeatures":["someFeature"]'
    log.write_text(f'{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,{features}}}}}\n')
    rows = {r["path"].rsplit("/", 1)[1]: r for r in asjson("inventory", tmp_path)}
    assert (rows["new"]["readable"], rows["new"]["writable"]) == (False, False)
    assert "9" in rows["new"]["why"]
    assert (rows["refused"]["readable"], rows["refused"]["writable"]) == (True, False)
    assert "someFeature" in rows["refused"]["why"]
    assert rows["refused"]["features"] == ["someFeature"]
    code, out = run("inventory", tmp_path)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["new", "refused"]


def test_text_names_tables_by_what_differs(run, lake):
    code, out = run("inventory", lake)
    assert code == 0
    assert out.splitlines()[0].startswith("3 tables below file:///")
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["deep/er/delta", "iceberg", "lance"]


def test_a_folder_without_tables_is_not_an_error(run, lake):
    (lake / "empty" / "x").mkdir(exist_ok=True)
    assert run("inventory", lake / "empty")[0] == 0
    assert "no Delta, Iceberg or Lance table" in run("inventory", lake / "empty")[1]


def test_a_prefix_that_is_not_there(run, lake):
    with pytest.raises(NotFoundError, match="does not exist"):
        run("inventory", lake / "nowhere")
    with pytest.raises(NotFoundError, match="single file"):
        run("inventory", lake / "note.txt")
