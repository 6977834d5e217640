"""The storage that fails on purpose: conformance without faults, and each fault with its exact effect."""

import subprocess
import sys
from pathlib import Path

import pytest

from boathouse.bits import system
from boathouse.errors import StorageError, UndecidedError
from boathouse.storage import LocalStorage, MemoryStorage, PutMode, Stores
from boathouse.testing.faults import Fault, FaultyStorage, Plan
from boathouse.testing.storage import StorageConformance


class TestFaultyWithoutFaults(StorageConformance):
    @pytest.fixture
    def storage(self):
        return FaultyStorage(MemoryStorage("faulty"))


class TestFaultyLocal(StorageConformance):
    @pytest.fixture
    def storage(self):
        return FaultyStorage(LocalStorage(), Plan.seeded(1, rate=0.0))

    @pytest.fixture
    def prefix(self, tmp_path):
        return str(tmp_path).lstrip("/") + "/faulty"


def _write(storage: FaultyStorage, how: str) -> None:
    if how == "put":
        storage.put("k", b"new", PutMode.CREATE)
    else:
        with storage.open_write("k", PutMode.CREATE) as writer:
            writer.write(b"new")


@pytest.mark.parametrize("how", ["put", "open_write"])
@pytest.mark.parametrize(
    ("fault", "kind", "landed"),
    [(Fault.REFUSED, StorageError, False), (Fault.UNSENT, UndecidedError, False), (Fault.LOST, UndecidedError, True)],
)
def test_failing_writes(how: str, fault: Fault, kind: type[StorageError], landed: bool) -> None:
    inner = MemoryStorage("m")
    storage = FaultyStorage(inner, Plan.script(fault, at=2))
    storage.put("first", b"")
    with pytest.raises(StorageError) as caught:
        _write(storage, how)
    assert type(caught.value) is kind and caught.value.where == "memory://m/k"
    assert inner.exists("k") is landed
    storage.delete(["first"])
    assert [(op.name, op.write, op.fault) for op in storage.log] == [
        ("put", 1, None),
        ("put" if how == "put" else "close", 2, fault),
        ("delete", 3, None),
    ]


def test_failing_reads_count_only_their_own_kind() -> None:
    storage = FaultyStorage(MemoryStorage("m"), Plan.script(Fault.UNSENT, at=2, of="get"))
    storage.put("k", b"1")
    assert storage.get("k") == b"1" and storage.head("k").size == 1
    with pytest.raises(UndecidedError):
        storage.get("k")
    assert storage.get("k") == b"1"
    assert (storage.count("get"), storage.count(), storage.writes) == (3, 5, 1)


@pytest.mark.parametrize("verb", ["list", "list_dir"])
def test_stale_and_doubled_lists(verb: str) -> None:
    plan = Plan(others={(verb, 1): Fault.STALE, (verb, 2): Fault.DOUBLED, (verb, 4): Fault.STALE})
    storage = FaultyStorage(MemoryStorage("m"), plan)
    for key in ("d/c", "d/a", "d/b"):
        storage.put(key, b"")

    def keys() -> list[str]:
        found = storage.list("d") if verb == "list" else storage.list_dir("d")[1]
        return [info.key for info in found]

    assert keys() == ["d/a", "d/c"]
    assert keys() == ["d/a", "d/b", "d/b", "d/c"]
    assert keys() == ["d/a", "d/b", "d/c"]
    storage.delete(["d/b"])
    assert keys() == ["d/c"]  # the newest that is still there


def test_delay_is_on_the_injected_clock() -> None:
    storage = FaultyStorage(MemoryStorage("m"), Plan(writes={1: Fault.DELAYED}, delay=3600))
    with system.use(system.SeededSystem(1)) as clock:
        before = clock.monotonic()
        storage.put("k", b"1")
        assert clock.monotonic() - before >= 3600
    assert storage.get("k") == b"1"


def test_a_seed_replays() -> None:
    def run(seed: int) -> list[str]:
        storage = FaultyStorage(MemoryStorage("m"), Plan.seeded(seed, rate=0.4))
        with system.use(system.SeededSystem(seed)):
            for n in range(40):
                try:
                    storage.put(str(n), b"")
                    list(storage.list(""))
                except StorageError:
                    pass
        return [str(op) for op in storage.log]

    assert run(1) == run(1) != run(2)
    assert any("LOST" in line for line in run(1)) and any("STALE" in line for line in run(1))


def test_a_seeded_plan_leaves_others_alone() -> None:
    plan = Plan.seeded(3, rate=1.0, faults=[Fault.REFUSED], only=lambda operation: operation.key.startswith("bad"))
    storage = FaultyStorage(MemoryStorage("m"), plan)
    storage.put("good", b"")
    with pytest.raises(StorageError):
        storage.put("bad", b"")


def test_a_fault_that_cannot_be_is_refused() -> None:
    storage = FaultyStorage(MemoryStorage("m"), Plan.script(Fault.STALE, at=1))
    with pytest.raises(ValueError, match="STALE"):
        storage.put("k", b"")


@pytest.mark.parametrize(
    ("fault", "status", "landed"),
    [("CRASH", 137, ["1"]), ("CRASH_AFTER", 137, ["1", "2"]), ("KILL", -9, ["1"])],
)
@pytest.mark.parametrize("how", ["put", "open_write"])
def test_crashes(tmp_path: Path, fault: str, status: int, landed: list[str], how: str) -> None:
    script = (
        "import sys\n"
        "from boathouse.storage import Stores\n"
        "from boathouse.testing.faults import *\n"
        "stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan.script(Fault[sys.argv[2]], at=2)))\n"
        "storage, folder = stores.resolve(sys.argv[1])\n"
        "for n in '123':\n"
        "    storage.get_range(f'{folder}/0', 0, 1)\n"
        "    if sys.argv[3] == 'put': storage.put(f'{folder}/{n}', b'whole')\n"
        "    else:\n"
        "        with storage.open_write(f'{folder}/{n}') as writer: writer.write(b'whole')\n"
    )
    (tmp_path / "0").write_bytes(b"0")
    child = subprocess.run([sys.executable, "-c", script, str(tmp_path), fault, how])
    assert child.returncode == status
    storage, folder = Stores().resolve(tmp_path)
    found = [info.key[len(folder) + 1 :] for info in storage.list(folder)]
    assert found == ["0", *landed]
    assert all(storage.get(f"{folder}/{name}") == b"whole" for name in landed)
