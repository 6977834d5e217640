"""Random histories against a model: we read it on both engines, deltalake and delta-spark read the same, and write too.

A failure prints what happened; `BOATHOUSE_LIVES` is how many histories the slow tests try.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boathouse.delta.checkpoint import reader as checkpoint
from boathouse.delta.checkpoint import sidecars as checkpoint_sidecars
from boathouse.delta.checkpoint import writer as checkpoint_write

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "interop"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from histories import Life, Ours, Reference  # noqa: E402
from reference_spark import DELTA, started  # noqa: E402

LIVES = int(os.environ.get("BOATHOUSE_LIVES", "100"))
RANDOM = st.randoms(use_true_random=False)


def lives(count: int, **more: object) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
    return settings(max_examples=count, deadline=None, suppress_health_check=checks, print_blob=True, **more)


@contextmanager
def table():
    """A folder for a table, whose checkpoints have sidecars of at most four files."""
    folder = tempfile.mkdtemp(prefix="boathouse-history-")
    with (
        mock.patch.object(checkpoint_sidecars, "SIDECAR_ROWS", 4),
        mock.patch.object(checkpoint_write, "_GROUP_ROWS", 4),
        mock.patch.object(checkpoint, "BATCH_ROWS", 3),
    ):
        yield os.path.join(folder, "t")
    shutil.rmtree(folder)


def live(chance: random.Random, by_deltalake: Callable, steps: int, spark: object = None) -> None:
    with table() as path:
        life = Life(path, chance, [Ours(path)] if spark is None else [Ours(path), Ours(path, spark)])
        life.start()
        for _ in range(steps):
            life.step()
            life.look(spark)
            life.agree(by_deltalake(path), "deltalake reads")
        life.rebuilt()


@pytest.mark.spec("D-194", "D-196", "D-197", "D-298")
@lives(4, derandomize=True)
@given(RANDOM)
def test_histories(delta, chance):
    live(chance, delta.rows, 10)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@lives(LIVES)
@given(RANDOM)
def test_many_histories(delta, chance):
    live(chance, delta.rows, 25)


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_histories_on_spark(delta, spark, seed):
    live(random.Random(seed), delta.rows, 6 if seed == 1 else 15, spark)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(DELTA, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


class Together(Life):
    """Created by delta-spark, with what only it creates."""

    def start(self) -> None:
        writer = next(w for w in self.writers if isinstance(w, Reference))
        either = self.random.choice
        self.partition, self.generated = either(["p", None]), either(["double", None])
        properties = {
            "delta.columnMapping.mode": either(["name", "id"]),
            "delta.enableRowTracking": either(["true", "false"]),
            "delta.enableDeletionVectors": either(["true", "true", "false"]),
            "delta.checkpointPolicy": either(["v2", "classic"]),
            "delta.checkpointInterval": either(["2", "3", "5"]),
        }
        made = "key bigint, p bigint"
        if self.generated is not None:
            self.columns.append(self.generated)
            made += ", double bigint GENERATED ALWAYS AS (key * 2)"
        self.tracked = properties["delta.enableRowTracking"] == "true"
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        by = "" if self.partition is None else " PARTITIONED BY (p)"
        writer.sql(f"CREATE TABLE {writer.t} ({made}) USING delta{by} TBLPROPERTIES ({listed})")
        self.done.append(f"create {properties}{by} {made}")
        self.rows = self.made(4)
        writer.append(self.arrow(self.rows))
        self.begin()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(int(os.environ.get("BOATHOUSE_LIVES", "12"))))
def test_histories_with_delta_spark(reference, seed):
    """It reads every version of ours and writes in turn: vectors, merges, OPTIMIZE, checkpoints with sidecars."""
    with table() as path:
        theirs = Reference(path, reference)
        life = Together(path, random.Random(seed), [Ours(path), theirs])
        life.start()
        for _ in range(14):
            life.step()
            life.look()
            life.agree(theirs.rows(), "delta-spark reads")
        version = life.random.choice(sorted(life.states))
        life.agree(theirs.rows(f" VERSION AS OF {version}"), f"delta-spark reads {version}", life.states[version][0])
        if life.tracked:
            ids = reference.rows(f"SELECT DISTINCT _metadata.row_id AS id FROM {theirs.t}").column("id")
            assert len(ids) == len(life.rows) and ids.null_count == 0
        life.rebuilt()
