"""What an operation in process shows of itself on a terminal."""

from __future__ import annotations

import io
import re
import threading
import time
from contextlib import redirect_stderr

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits import progress

SCHEMA = pa.schema([("id", pa.int64())])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    made = Terminal()
    for name, value in {"TERM": "xterm", "COLUMNS": "200", "LINES": "50"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "BOATHOUSE_PROGRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    return made


def slow(batches: int = 8, rows: int = 70_000) -> pa.RecordBatchReader:
    """Rows that come late enough for the display to be there."""

    def given():
        for i in range(batches):
            time.sleep(0.06)
            yield pa.record_batch([pa.array(range(i * rows, (i + 1) * rows))], schema=SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, given())


def test_a_long_write_shows_its_rows(terminal, tmp_path):
    path = tmp_path / "odd [red] name"
    with redirect_stderr(terminal):
        bh.write(slow(), path)
    assert "odd [red] name" in terminal.shown or "odd%20" in terminal.shown
    assert "create file://" in terminal.shown
    assert re.search(r"[0-9]0,000 rows", terminal.shown)
    assert bh.open(path).count() == 560_000
    assert progress._one.acquire(blocking=False), "the terminal is free again"
    progress._one.release()


def test_rows_in_memory_are_counted_of_their_number(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr("boathouse.engines.local.SINK_BYTES", 4 << 20)
    told = []
    monkeypatch.setattr(progress.Progress, "_update", lambda self: told.append((self._done, self._total, self._unit)))
    with redirect_stderr(terminal):
        bh.write(pa.table({"id": range(2_000_000)}), tmp_path)
    assert told[-1] == (2_000_000, 2_000_000, "rows")


def test_a_compaction_shows_its_tasks(terminal, tmp_path, monkeypatch):
    for i in range(12):
        bh.write(pa.table({"id": range(i * 50_000, i * 50_000 + 50_000)}), tmp_path, mode="append")
    told = []
    monkeypatch.setattr(progress.Progress, "_update", lambda self: told.append((self._done, self._total, self._unit)))
    with redirect_stderr(terminal):
        bh.open(tmp_path).optimize(target_file_bytes=200_000)
    tasks = [(done, total) for done, total, unit in told if unit == "tasks" and total > 1]
    assert tasks[0][0] == 0 and tasks[-1][0] == tasks[-1][1]


@pytest.mark.parametrize("how", ["0", "no", "not a terminal"])
def test_silent(terminal, tmp_path, monkeypatch, how):
    if how == "not a terminal":
        monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    else:
        monkeypatch.setenv("BOATHOUSE_PROGRESS", how)
    with redirect_stderr(terminal):
        bh.write(slow(3), tmp_path)
    assert terminal.getvalue() == ""


def test_what_ends_at_once_is_not_shown(terminal, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 60.0)
    before = threading.active_count()
    with redirect_stderr(terminal):
        bh.write(pa.table({"id": [1]}), tmp_path)
    assert terminal.getvalue() == ""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(5)
    assert threading.active_count() <= before


def test_an_error_leaves_the_terminal_free(terminal, tmp_path):
    def failing():
        time.sleep(0.2)
        yield pa.record_batch([pa.array([1])], schema=SCHEMA)
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"), redirect_stderr(terminal):
        bh.write(pa.RecordBatchReader.from_batches(SCHEMA, failing()), tmp_path)
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h"), "the cursor is shown again"
    with redirect_stderr(terminal):
        bh.write(slow(4), tmp_path / "t")
    assert "create" in terminal.shown


def test_of_two_at_once_one_is_shown(terminal, tmp_path):
    def write(name: str) -> None:
        bh.write(slow(5), tmp_path / name)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("first", "second")]
    with redirect_stderr(terminal):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [name in terminal.shown for name in ("/first", "/second")].count(True) == 1
    assert bh.open(tmp_path / "first").count() == bh.open(tmp_path / "second").count() == 350_000
