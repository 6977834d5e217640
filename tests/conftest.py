"""Fixtures for the whole suite: one Spark session, the corpora, the toy format."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

ROOT = Path(__file__).parent.parent
TOY = str(ROOT / "tests" / "waist")
if TOY not in sys.path:
    sys.path.insert(0, TOY)

# How long an example takes depends on what else the machine does.
settings.register_profile("thorough", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
THOROUGH = "BOATHOUSE_THOROUGH" in os.environ
settings.load_profile("thorough" if THOROUGH else "quick")


# The runner of commands builds all of them again for each that it invokes.
typer.testing._get_command = functools.cache(typer.testing._get_command)

ALL_ITEMS = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks, and before slow tests are left out
def pytest_collection_modifyitems(config, items):
    """Which tests `./run test` leaves to `./run spark`, and which of two processes runs what.

    Where two processes share the tests, one of them has all that need Spark, and so the one session."""
    config.stash[ALL_ITEMS] = tuple(items)
    if changing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"a test's name has an address, which differs between the two processes: {changing[0]}")
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
    _leave_one_of_each_route(items)
    _leave_few_cases(items)
    if not THOROUGH:
        _with_fewer_examples(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file go to one process, so that it makes the fixtures of the file once."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).partition("::")[0]

    return ByFile(config, log) if config.getoption("dist") == "loadgroup" else None


def _leave_one_of_each_route(items):
    """Marks all Spark tests but one of each route: where a test has parameters the first, if possible of Delta."""
    on_spark = [item for item in items if item.get_closest_marker("spark") is not None]
    tests, first = {}, {}
    for item in on_spark:
        route, test = item.get_closest_marker("route"), item.nodeid.partition("[")[0]
        if route is None or item.get_closest_marker("slow") is not None:
            continue
        name = route.args[0]
        if tests.setdefault(name, test) != test:
            raise pytest.UsageError(f"the route {name!r} has two tests, and needs one: {tests[name]} and {test}")
        if name not in first or (_of_delta(item) and not _of_delta(first[name])):
            first[name] = item
    chosen = {id(item) for item in first.values()}
    for item in on_spark:
        if id(item) not in chosen:
            item.add_marker(pytest.mark.more_spark)


def _leave_few_cases(items):
    """Of a test that is marked `few(n)`, n cases run by default, in which as many values of parameters occur as can be.

    Its cases on Spark are left to `./run spark`."""
    cases = defaultdict(list)
    for item in items:
        few, *others = (item.get_closest_marker(name) for name in ("few", "spark", "slow"))
        if few is not None and not any(others):
            cases[item.nodeid.partition("[")[0]].append(item)
    for alike in cases.values():
        seen: set[tuple[str, int]] = set()
        for _ in range(alike[0].get_closest_marker("few").args[0]):
            chosen = max(alike, key=lambda item: len(_values(item) - seen), default=None)
            if chosen is not None:
                seen |= _values(chosen)
                alike.remove(chosen)
        for item in alike:
            item.add_marker(pytest.mark.slow)


def _values(item):
    """What the parameters of a test are. Cases that are made of the same lists have the same objects."""
    return {(name, id(value)) for name, value in item.callspec.params.items()}


def _of_delta(item):
    return hasattr(item, "callspec") and "delta" in item.callspec.params.values()


def _with_fewer_examples(items):
    """A tenth of the examples that random tests ask for, but at least 10; `./run slow random` tries them all."""
    for test in {getattr(item, "obj", None) for item in items}:
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None and asked.max_examples > 10:
            fewer = max(10, asked.max_examples // 10)
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


@pytest.fixture(autouse=True)
def written_by_tasks(request, monkeypatch):
    """Frames of tests are small: tasks write them, as they write large ones, unless a test is `held`."""
    marked = request.node.get_closest_marker
    if marked("spark") is not None and marked("held") is None and importlib.util.find_spec("pyspark") is not None:
        monkeypatch.setattr("boathouse.engines.spark.held.MOST_ROWS", -1)


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
        sys.modules[name] = module  # where dataclasses look for the types of annotations
        spec.loader.exec_module(module)
        return module

    return load
