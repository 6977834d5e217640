"""`commit.retry.*`: how often, how long and after which waits a commit that lost is tried again."""

import json

import pyarrow as pa
import pytest
from rivals import with_rival

import boathouse as bh
from boathouse.bits import system
from boathouse.errors import CommitConflictError, InvalidArgumentError
from boathouse.iceberg.commit import transaction
from boathouse.table import commit as loop

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "a", "b", "b", "c", "c"]})


class Patient(system.SeededSystem):
    """Keeps every sleep, and draws no randomness that would lengthen it."""

    def __init__(self):
        super().__init__(1)
        self.sleeps = []

    def sleep(self, seconds):
        self.sleeps.append(round(seconds, 3))
        super().sleep(seconds)

    def random(self):
        return 0.0


@pytest.fixture
def clock():
    with system.use(Patient()) as made:
        yield made


def overtaken(monkeypatch, path, times):
    """Somebody else appends each time before a commit of ours is published, so many times."""
    inner, left, attempts = transaction.prepare, [times], []

    def prepare(change, head):
        attempt = inner(change, head)
        if change.operation == "append" and change.message == "ours":
            attempts.append(attempt)
            if left[0]:
                left[0] -= 1
                bh.open(path).append(ROWS.slice(0, 1))
        return attempt

    monkeypatch.setattr(transaction, "prepare", prepare)
    return attempts


@pytest.mark.spec("I-258")
@pytest.mark.parametrize(("asked", "losses", "tried", "wins"), [
    ("0", 1, 1, False), ("0", 0, 1, True), ("2", 2, 3, True), ("2", 3, 3, False), (None, 12, 13, True),
])  # fmt: skip
def test_the_number_of_retries(make, monkeypatch, clock, asked, losses, tried, wins):
    """Where the table says nothing, a commit is tried far longer than the reference does by default."""
    table, eyes = make(ROWS, properties={} if asked is None else {"commit.retry.num-retries": asked})
    attempts = overtaken(monkeypatch, table.uri, losses)
    if wins:
        assert table.append(ROWS, message="ours").retries == losses
    else:
        with pytest.raises(CommitConflictError, match=rf"busy: .*{tried} times in a row .*num-retries = {asked}"):
            table.append(ROWS, message="ours")
    assert len(attempts) == tried
    rows = 6 + losses + (6 if wins else 0)
    assert bh.open(table.uri).count() == rows == eyes.rows().num_rows
    assert {p.name for p in (eyes.root / "data").rglob("*.parquet")} == {
        e["file_path"].rsplit("/", 1)[-1] for e in eyes.live()
    }


@pytest.mark.spec("I-258")
def test_the_waits(make, monkeypatch, clock):
    """Each is twice the one before, up to the longest."""
    waits = {"commit.retry.min-wait-ms": "100", "commit.retry.max-wait-ms": "500"}
    table, _ = make(ROWS, properties=waits)
    overtaken(monkeypatch, table.uri, 5)
    clock.sleeps.clear()
    assert table.append(ROWS, message="ours").retries == 5
    assert clock.sleeps == [0.1, 0.2, 0.4, 0.5, 0.5]
    table.set_properties({"commit.retry.min-wait-ms": None, "commit.retry.max-wait-ms": "150"})
    overtaken(monkeypatch, table.uri, 3)
    clock.sleeps.clear()
    table.append(ROWS, message="ours")
    assert clock.sleeps == [0.1, 0.15, 0.15]


@pytest.mark.spec("I-258")
def test_the_time(make, monkeypatch, clock):
    """After it none is begun, but for the first retry, as in the reference."""
    asked = {"commit.retry.total-timeout-ms": "250", "commit.retry.min-wait-ms": "100"}
    table, _ = make(ROWS, properties=asked)
    attempts = overtaken(monkeypatch, table.uri, 9)
    with pytest.raises(CommitConflictError, match=r"total-timeout-ms = 250"):
        table.append(ROWS, message="ours")
    assert len(attempts) == 3
    table.set_properties({"commit.retry.min-wait-ms": "5000"})
    attempts = overtaken(monkeypatch, table.uri, 9)
    with pytest.raises(CommitConflictError, match="busy"):
        table.append(ROWS, message="ours")
    assert len(attempts) == 2


@pytest.mark.few(2)
@pytest.mark.spec("I-258")
@pytest.mark.parametrize(("retries", "losses"), [("0", 1), ("1", 1), ("1", 2), ("12", 12)])
def test_a_write_that_is_planned_again_counts_too(make, monkeypatch, clock, retries, losses):
    """Rows that the delete has to look at are added before each of its commits."""
    asked = {"commit.retry.num-retries": retries, "commit.retry.min-wait-ms": "100"}
    table, eyes = make(ROWS, properties=asked)
    clock.sleeps.clear()

    def act():
        return with_rival(
            monkeypatch, table, lambda t: t.delete("id = 0"), lambda t: t.append(ROWS.slice(0, 1)), losses
        )

    if int(retries) < losses:
        with pytest.raises(CommitConflictError, match="busy"):
            act()
        assert eyes.rows().num_rows == 6 + losses
    else:
        assert act().retries == losses
        assert eyes.rows()["id"].to_pylist().count(0) == 0
    assert len(clock.sleeps) == min(int(retries), losses)


def test_no_numbers(make, monkeypatch, clock, caplog):
    """Refused where they are set, and as if they were not there in tables of others."""
    table, eyes = make(ROWS)
    for key in ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms"):
        for value in ("many", "-1", "1.5", "", "9" * 30):
            with pytest.raises(InvalidArgumentError, match=rf"commit\.retry\.{key} would be '{value}'"):
                table.set_properties({f"commit.retry.{key}": value})
    with pytest.raises(InvalidArgumentError, match="num-retries"):
        bh.create(f"{eyes.root}2", ROWS.schema, format="iceberg", properties={"commit.retry.num-retries": "x"})
    eyes.head().write_text(json.dumps({**eyes.document(), "properties": {"commit.retry.num-retries": "many"}}))
    table = bh.open(str(eyes.root))
    assert table.properties["commit.retry.num-retries"] == "many"
    overtaken(monkeypatch, table.uri, 6)
    with caplog.at_level("WARNING", "boathouse"):
        assert table.append(ROWS, message="ours").retries == 6
    assert "commit.retry.num-retries is 'many', which is not a number: it is ignored" in caplog.text
    table.set_properties({"commit.retry.num-retries": "1"})
    assert loop.MAX_ATTEMPTS > 100
