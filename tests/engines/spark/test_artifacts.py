"""What travels to the workers: the package, with what Python keeps of it compiled."""

import os
import py_compile
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from boathouse.engines.spark.artifacts import archive, bytecode

IMPORT = """
import sys
sys.path.insert(0, sys.argv[1])
from boathouse.engines.spark import worker
print(worker.__file__, worker.bundle_ids.__code__.co_firstlineno)
"""


def imported(zip_, *options):
    ran = subprocess.run(
        [sys.executable, "-I", *options, "-c", IMPORT, zip_], capture_output=True, text=True, check=True
    )
    file, line = ran.stdout.split()
    return file.removeprefix(zip_), int(line)


def test_workers_import_bytecode():
    import boathouse.engines.spark.worker as worker

    py_compile.compile(worker.__file__)
    archive.cache_clear()
    file, line = imported(archive())
    assert file == "/boathouse/engines/spark/worker.pyc"
    # A worker that checks all bytecode against its source accepts it too.
    assert imported(archive(), "--check-hash-based-pycs", "always") == (file, line)
    assert line == worker.bundle_ids.__code__.co_firstlineno


def test_bytecode_of_another_source_stays(tmp_path):
    file = tmp_path / "m.py"
    file.write_text("x = 1\n")
    assert bytecode(file, file.read_bytes()) is None
    cached = py_compile.compile(str(file))
    assert bytecode(file, file.read_bytes()) is not None
    assert bytecode(file, b"x = 12\n") is None
    file.write_text("x = 2\n")
    os.utime(file, (1, 1))
    assert bytecode(file, file.read_bytes()) is None
    with open(cached, "r+b") as damaged:
        damaged.write(b"nope")
    assert bytecode(file, file.read_bytes()) is None
