"""Memory: conformance, and sharing by name."""

import pytest

from boathouse.bits import system
from boathouse.storage import MemoryStorage, Stores
from boathouse.testing.storage import StorageConformance


class TestMemory(StorageConformance):
    @pytest.fixture
    def storage(self):
        return MemoryStorage("fresh")


def test_shared_by_name() -> None:
    one, key = Stores().resolve("memory://shared-by-name/a/b")
    two, _ = Stores().resolve("memory://shared-by-name/")
    other, _ = Stores().resolve("memory://another-name/")
    one.put(key, b"1")
    assert key == "a/b" and two.get("a/b") == b"1" and not other.exists("a/b")


def test_time_is_the_injected_clock() -> None:
    storage = MemoryStorage("clock")
    with system.use(system.SeededSystem(1, start_ms=5000)):
        storage.put("k", b"")
    assert storage.head("k").modified_ms == 5001
