"""What importing costs, what the front door holds, and the sizes that keep the house readable."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import boathouse as bh
from boathouse.api.evolution import Evolution
from boathouse.api.merge import MergeBuilder
from boathouse.api.scan import Scan

SRC = Path(bh.__file__).parent
HEAVY = ("pyspark", "pyarrow", "numpy", "obstore", "sqlglot", "fastavro", "google.protobuf", "typer", "rich")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_loads_nothing_heavy():
    loaded = "[m for m in sys.modules if m.startswith('boathouse.')]"
    code = f"import sys, boathouse; print([m for m in {HEAVY!r} if m in sys.modules], len({loaded}))"
    assert run(code) == "[] 0"


@pytest.mark.parametrize("module", ["delta", "iceberg", "lance"])
def test_executor_modules_load_numpy_and_pyarrow_only(module):
    names = ("obstore", "sqlglot", "fastavro", "google.protobuf", "orjson", "pyspark", "typer", "rich")
    modules = f"boathouse.{module}.tasks, boathouse.ops.tasks.sink"
    code = f"import sys, {modules}; print([m for m in {names!r} if m in sys.modules])"
    assert run(code) == "[]"


def test_the_front_door_is_small_and_lazy():
    assert len(bh.__all__) <= 20
    for name in bh.__all__:
        assert getattr(bh, name) is not None
    with pytest.raises(AttributeError):
        bh.nonsense  # noqa: B018
    assert set(bh.__all__) <= set(dir(bh))


def test_everything_public_says_what_it_raises():
    functions = [f for name in bh.__all__ if inspect.isfunction(f := getattr(bh, name))]
    for owner in (bh.Table, Scan, MergeBuilder, Evolution):
        functions += [f for name, f in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")]
    assert len(functions) > 40
    silent = [f.__qualname__ for f in functions if not re.search(r"[Rr]aises\s", f.__doc__ or "")]
    assert not silent


def test_modules_stay_readable():
    long = {
        str(path.relative_to(SRC)): lines
        for path in SRC.rglob("*.py")
        if (lines := path.read_text().count("\n")) > 450 and "one module because" not in path.read_text()[:2000].lower()
    }
    assert not long, "split these modules, or say in the docstring that it is one module because ..."
