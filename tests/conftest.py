"""Fixtures for the whole suite: one Spark session, the corpora, the toy format."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
TOY = str(ROOT / "tests" / "waist")
if TOY not in sys.path:
    sys.path.insert(0, TOY)

# How long an example takes depends on what else the machine does.
settings.register_profile("boathouse", deadline=None)
settings.load_profile("boathouse")


ALL_ITEMS = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks, and before slow tests are left out
def pytest_collection_modifyitems(config, items):
    """Where two processes share the tests, one of them has all that need Spark, and so the one session."""
    config.stash[ALL_ITEMS] = tuple(items)
    if changing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"a test's name has an address, which differs between the two processes: {changing[0]}")
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
    if "BOATHOUSE_THOROUGH" not in os.environ:
        _with_fewer_examples(items)


def _with_fewer_examples(items):
    """A quarter of the examples that random tests ask for, but at least 10; `./run slow` tries them all."""
    for test in {getattr(item, "obj", None) for item in items}:
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None and asked.max_examples > 10:
            fewer = max(10, asked.max_examples // 4)
            test._hypothesis_internal_use_settings = settings(asked, max_examples=fewer)


@pytest.fixture
def all_items(request):
    """Every test, the slow ones too; skips where only some were collected."""
    if request.config.args != [str(ROOT / "tests")] and request.config.args != ["tests"]:
        pytest.skip("needs the whole suite")
    return request.config.stash[ALL_ITEMS]


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The one Spark session of the run: local[2], UTC, small."""
    sql = pytest.importorskip("pyspark.sql")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Workers see the toy format; boathouse itself travels by addArtifacts.
    os.environ["BOATHOUSE_FORMATS"] = "toy=toy_format"
    os.environ["PYTHONPATH"] = os.pathsep.join([TOY, *filter(None, [os.environ.get("PYTHONPATH")])])
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        sql.SparkSession.builder.master(os.environ.get("BOATHOUSE_SPARK_MASTER", "local[2]"))
        .appName("boathouse-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "1g")
        # Thousands of small queries: without this, half of the processors' time is spent in the JVM's second compiler.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Tables written by others; skips where they are absent."""
    found = Path(os.environ.get("BOATHOUSE_CORPORA", ROOT.parent / "shared" / "corpora"))
    if not found.is_dir():
        pytest.skip("no corpora: set BOATHOUSE_CORPORA to the folder that holds them")
    return found


@pytest.fixture(scope="session")
def tool():
    """Loads a module of tools/ by its name."""

    def load(name: str):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
