"""Tables for the command line, made by others where that is quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from boathouse.cli.app import app

ROWS = pa.table({"id": [1, 2, 3, 4], "city": ["Kiel", "Bergen", None, "Oslo"]})


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A folder with a table of each format: two versions of Delta by deltalake, Iceberg by us, Lance by pylance."""
    import deltalake

    import boathouse as bh
    import lance

    root = tmp_path_factory.mktemp("lake")
    deltalake.write_deltalake(root / "deep" / "er" / "delta", ROWS.slice(0, 2), partition_by=["city"])
    deltalake.write_deltalake(root / "deep" / "er" / "delta", ROWS.slice(2), mode="append")
    bh.write(ROWS, str(root / "iceberg"), "iceberg")
    lance.write_dataset(ROWS, str(root / "lance"))
    dataset = lance.dataset(str(root / "lance"))
    dataset.delete("id = 1")
    (root / "empty").mkdir()
    (root / "note.txt").write_text("not a table")
    return root


@pytest.fixture
def run():
    """Invokes the application in this process: (exit code, standard output)."""

    def invoke(*arguments: object):
        result = CliRunner().invoke(app, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout

    return invoke


@pytest.fixture
def asjson(run):
    """Invokes a command with --json: the document."""

    def invoke(*arguments: object):
        code, out = run(*arguments, "--json")
        assert code == 0, out
        return json.loads(out)

    return invoke


@pytest.fixture
def process():
    """Runs the command as a process of its own."""

    def start(*arguments: object, env: dict[str, str] | None = None, code: str | None = None):
        command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "boathouse.cli"]
        # The suite's own format, which tests on Spark register for the whole run, is none of a user's.
        inherited = {k: v for k, v in os.environ.items() if k != "BOATHOUSE_FORMATS"}
        return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, env=env or inherited)

    return start
