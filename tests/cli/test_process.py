"""The command as a process: exit codes, what wrong paths say, what is not loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest

import boathouse as bh

HEAVY = ("pyarrow", "numpy", "pandas", "pyspark", "obstore", "fastavro", "sqlglot")
LOADED = """
import sys
sys.argv = ["boathouse", *sys.argv[1:]]
from boathouse.cli.app import main
try:
    main()
finally:
    print(*sorted({m.split(".")[0] for m in sys.modules}), file=sys.stderr)
"""


def loaded(done) -> set[str]:
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["info", "--help"]])
def test_help_loads_nothing_heavy(process, arguments):
    done = process(*arguments, code=LOADED)
    assert done.returncode == 0
    assert loaded(done).isdisjoint(HEAVY)


def test_help_lists_commands_and_exit_codes(process):
    out = process("--help").stdout
    for command in ("info", "schema", "history", "files", "inspect", "head", "count", "plan", "inventory"):
        assert command in out
    assert "130 interrupted" in " ".join(out.split())


@pytest.mark.parametrize("table", ["deep/er/delta", "iceberg", "lance"])
def test_info_loads_no_parser_and_no_engine(process, lake, table):
    done = process("info", lake / table, code=LOADED)
    assert done.returncode == 0
    assert loaded(done).isdisjoint(set(HEAVY) - {"pyarrow", "numpy"} | {"rich"})


@pytest.mark.parametrize(
    ("path", "arguments", "code", "words"),
    [
        ("nowhere", [], 3, "does not exist"),
        ("note.txt", [], 3, "single file"),
        ("deep/er/delta/_delta_log", [], 3, "is inside the delta table"),
        (".", [], 3, "there are tables below it: iceberg, lance"),
        ("lance", ["--format", "delta"], 3, "this is a Lance table, not a Delta table"),
        ("lance", ["--version", "77"], 3, "77"),
        ("lance", ["--format", "hudi"], 2, "hudi"),
        ("lance", ["--timestamp", "yesterday"], 2, "yesterday"),
        ("lance", ["--nonsense"], 2, "nonsense"),
    ],
)
def test_exit_codes_and_what_is_said(process, lake, path, arguments, code, words):
    done = process("info", lake / path, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in " ".join(done.stderr.replace("│", " ").split())


def test_a_condition_that_cannot_be_read_is_typed_wrongly(process, lake):
    done = process("count", lake / "lance", "--where", "nope = 1")
    assert done.returncode == 2
    assert "nope" in done.stderr


def test_corrupt_and_refused_tables(process, lake, tmp_path):
    for name, text in (("corrupt", "{"), ("refused", '{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}')):
        shutil.copytree(lake / "deep/er/delta", tmp_path / name)
        (tmp_path / name / "_delta_log" / "00000000000000000002.json").write_text(text + "\n")
    assert process("info", tmp_path / "corrupt").returncode == 5
    assert process("info", tmp_path / "refused").returncode == 4


def test_a_store_that_fails(process, tmp_path):
    env = os.environ | {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "*"}
    options = [
        "-o", "endpoint=http://127.0.0.1:9", "-o", "access_key_id=x", "-o", "secret_access_key=x", "-o", "region=x",
        "-o", "max_retries=1",
    ]  # fmt: skip
    done = process("info", "s3://bucket/table", *options, env=env)
    assert done.returncode in (3, 6)
    assert "boathouse:" in done.stderr


def test_json_on_standard_output_alone(process, lake):
    done = process("inventory", lake, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)) == 3


def strict(text: str):
    def refuse(name: str):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("format", ["delta", *(pytest.param(f, marks=pytest.mark.slow) for f in ("iceberg", "lance"))])
def test_json_has_no_nan(process, tmp_path, format):
    values = [float("nan"), float("inf"), float("-inf"), -0.0, 1.5, None]
    nested = pa.array([{"l": [v]} for v in values], pa.struct([("l", pa.list_(pa.float32()))]))
    bh.write(pa.table({"x": values, "s": nested}), str(tmp_path / "t"), format)
    for arguments in (["head"], ["files"], ["info"], ["plan", "--where", "x > 1"]):
        done = process(arguments[0], tmp_path / "t", *arguments[1:], "--json")
        assert done.returncode == 0, done.stderr
        found = strict(done.stdout)
        if arguments[0] == "head":
            assert [row["x"] for row in found] == ["NaN", "Infinity", "-Infinity", -0.0, 1.5, None]
            assert [row["s"]["l"][0] for row in found] == ["NaN", "Infinity", "-Infinity", -0.0, 1.5, None]


@pytest.mark.few(1)
@pytest.mark.parametrize("arguments", [["head", "-n", "100000", "--json"], ["head", "-n", "100000"], ["info"]])
@pytest.mark.parametrize("reads", [0, pytest.param(10, marks=pytest.mark.slow)])
def test_a_closed_pipe_ends_quietly_with_0(tmp_path, arguments, reads):
    bh.write(pa.table({"id": range(100_000), "text": ["x" * 50] * 100_000}), str(tmp_path / "t"))
    command = [sys.executable, "-m", "boathouse.cli", arguments[0], str(tmp_path / "t"), *arguments[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.read(reads)
        running.stdout.close()
        told = running.stderr.read()
        assert (running.wait(60), told) == (0, b"")
