"""A storage that fails on purpose: scripted or drawn from a seed, replayable, with a log of every request.

storage = FaultyStorage(inner, Plan.script(Fault.LOST, at=3))          # the third write lands, its answer is lost
storage = FaultyStorage(inner, Plan.seeded(7, rate=0.2))               # 20 % of the writes fail in some way
stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan.script(Fault.CRASH, at=2)))    # in a child process
assert storage.count("get") == 2
"""

from __future__ import annotations

import builtins
import enum
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeVar

from boathouse.bits import system
from boathouse.errors import StorageError, UndecidedError
from boathouse.storage import Bytes, ObjectInfo, PutMode, Storage, Writer
from boathouse.storage.base import Wanted

T = TypeVar("T")

WRITES = frozenset({"put", "close", "delete"})
READS = frozenset({"get", "get_range", "get_ranges", "head", "exists"})
LISTS = frozenset({"list", "list_dir"})


class Fault(enum.Enum):
    """The faults of one operation."""

    REFUSED = "refused"  # no effect, StorageError
    UNSENT = "unsent"  # no effect, UndecidedError: the outcome is unknown
    LOST = "lost"  # full effect, UndecidedError: the response was lost
    DELAYED = "delayed"  # works, after a sleep on the injected clock
    STALE = "stale"  # a listing omits the newest key that this storage wrote, or else the last one
    DOUBLED = "doubled"  # a listing contains one entry twice
    CRASH = "crash"  # the process ends with status 137 before the operation takes effect
    CRASH_AFTER = "crash_after"  # the process ends once the operation has taken effect
    KILL = "kill"  # SIGKILL to this process, before the operation takes effect


_FOR_WRITES = (Fault.REFUSED, Fault.UNSENT, Fault.LOST, Fault.DELAYED)
_FOR_READS = (Fault.REFUSED, Fault.UNSENT, Fault.DELAYED)
_FOR_LISTS = (Fault.REFUSED, Fault.UNSENT, Fault.DELAYED, Fault.STALE, Fault.DOUBLED)


@dataclass(frozen=True, slots=True)
class Operation:
    """One request: its number among all and, for a write, among the writes (from 1; 0 for others)."""

    name: str  # put, close (of open_write), delete, get, get_range, get_ranges, head, exists, list, list_dir
    key: str  # the first key of a delete, the prefix of a listing
    number: int
    write: int
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Assigns faults to operations.

    `writes`: faults by number of the writing operation, from 1; `others`: by (name, number among those of that name,
    from 1); `choose` is called last. `delay` in seconds.
    """

    writes: Mapping[int, Fault] = field(default_factory=dict)
    others: Mapping[tuple[str, int], Fault] = field(default_factory=dict)
    choose: Callable[[Operation], Fault | None] | None = None
    delay: float = 1.0

    @classmethod
    def script(cls, fault: Fault, *, at: int, of: str | None = None) -> Plan:
        """One fault: at the `at`-th writing operation, or at the `at`-th operation named `of`."""
        return cls(writes={at: fault}) if of is None else cls(others={(of, at): fault})

    @classmethod
    def seeded(
        cls,
        seed: int,
        *,
        rate: float,
        faults: Iterable[Fault] = (*_FOR_LISTS, Fault.LOST),
        only: Callable[[Operation], bool] = lambda _operation: True,
    ) -> Plan:
        """Each operation for which `only` is true fails with probability `rate`, by one of the `faults` that fit it.

        The draw depends only on the seed, and on the name and number of the operation.
        """
        wanted = tuple(faults)

        def choose(operation: Operation) -> Fault | None:
            draw = random.Random(f"{seed}/{operation.name}/{operation.number}")
            fitting = [fault for fault in wanted if fault in _fitting(operation.name)]
            if not fitting or not only(operation) or draw.random() >= rate:
                return None
            return draw.choice(fitting)

        return cls(choose=choose)

    def fault(self, operation: Operation, nth: int) -> Fault | None:
        """The fault of this operation, the `nth` of its name."""
        found = self.writes.get(operation.write) if operation.write else None
        found = found or self.others.get((operation.name, nth))
        return found if found is not None or self.choose is None else self.choose(operation)


def _fitting(name: str) -> tuple[Fault, ...]:
    crashes = (Fault.CRASH, Fault.CRASH_AFTER, Fault.KILL)
    if name in WRITES:
        return (*_FOR_WRITES, *crashes)
    return (*(_FOR_LISTS if name in LISTS else _FOR_READS), *crashes)


class FaultyStorage:
    """Passes everything on to `inner`, except for the faults of `plan`; `log` has every operation in order.

    Counted as writing operations: `put`, `close` of a writer, and `delete` (one, however many keys). Opening and
    aborting a writer are not requests. A fault that does not fit an operation is an error of the test: ValueError.
    """

    def __init__(self, inner: Storage, plan: Plan | None = None) -> None:
        self.inner = inner
        self.plan = plan or Plan()
        self.log: builtins.list[Operation] = []
        self._recent: builtins.list[str] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"FaultyStorage({self.inner!r})"

    @property
    def atomic_create(self) -> bool:
        return self.inner.atomic_create

    @property
    def page(self) -> int:
        return self.inner.page

    @property
    def writes(self) -> int:
        """The number of writing operations so far."""
        return self._counts["*"]

    def count(self, *names: str) -> int:
        """The number of operations with these names so far; of all operations if none is given."""
        return sum(self._counts[name] for name in names) if names else len(self.log)

    def uri(self, key: str) -> str:
        return self.inner.uri(key)

    def get(self, key: str) -> bytes:
        return self._run("get", key, lambda: self.inner.get(key))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._run("get_range", key, lambda: self.inner.get_range(key, start, length))

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        return self._run("get_ranges", key, lambda: self.inner.get_ranges(key, ranges))

    def head(self, key: str) -> ObjectInfo:
        return self._run("head", key, lambda: self.inner.head(key))

    def exists(self, key: str) -> bool:
        return self._run("exists", key, lambda: self.inner.exists(key))

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectInfo]:
        fault, found = self._begin("list", prefix), self.inner.list(prefix, start_after)
        if fault is None:
            return found
        return iter(self._spoilt(fault, prefix, lambda: [*found]))

    def holds(self, prefix: str) -> bool:
        return next(self.list(prefix), None) is not None

    def list_dir(self, prefix: str, wanted: Wanted | None = None) -> tuple[Sequence[str], Sequence[ObjectInfo]]:
        fault = self._begin("list_dir", prefix)
        folders: Sequence[str] = ()

        def files() -> builtins.list[ObjectInfo]:
            nonlocal folders
            folders, found = self.inner.list_dir(prefix, wanted)
            return [*found]

        found = self._spoilt(fault, prefix, files)
        return folders, found

    def put(self, key: str, data: Bytes, mode: PutMode = PutMode.OVERWRITE) -> None:
        self._run("put", key, lambda: self.inner.put(key, data, mode))
        self._recent.append(key)

    def open_write(self, key: str, mode: PutMode = PutMode.OVERWRITE) -> Writer:
        return _FaultyWriter(self, key, self.inner.open_write(key, mode))

    def delete(self, keys: Iterable[str]) -> None:
        names = [*keys]
        self._run("delete", names[0] if names else "", lambda: self.inner.delete(names))

    def _begin(self, name: str, key: str) -> Fault | None:
        """Logs the operation and gives its fault."""
        with self._lock:
            self._counts.update([name, "*"] if name in WRITES else [name])
            write = self.writes if name in WRITES else 0
            operation = Operation(name, key, len(self.log) + 1, write)
            fault = self.plan.fault(operation, self.count(name))
            self.log.append(replace(operation, fault=fault))
        if fault is not None and fault not in _fitting(name):
            raise ValueError(f"the fault {fault.name} does not fit {name} of {key!r}")
        return fault

    def _run(self, name: str, key: str, request: Callable[[], T]) -> T:
        return self._meet(self._begin(name, key), key, request)

    def _meet(self, fault: Fault | None, key: str, request: Callable[[], T]) -> T:
        where = self.uri(key)
        if fault is Fault.CRASH:
            _die()
        elif fault is Fault.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault is Fault.REFUSED:
            raise StorageError("The store refused the request: injected fault.", where=where)
        elif fault is Fault.UNSENT:
            raise UndecidedError("The outcome of the request is unknown: injected fault.", where=where)
        elif fault is Fault.DELAYED:
            system.current().sleep(self.plan.delay)
        answer = request()
        if fault is Fault.LOST:
            raise UndecidedError("The outcome of the request is unknown: injected fault.", where=where)
        if fault is Fault.CRASH_AFTER:
            _die()
        return answer

    def _spoilt(
        self, fault: Fault | None, prefix: str, request: Callable[[], builtins.list[ObjectInfo]]
    ) -> builtins.list[ObjectInfo]:
        found = self._meet(fault, prefix, request)
        if fault is Fault.STALE and found:
            listed = {info.key for info in found}
            missing = next((key for key in reversed(self._recent) if key in listed), found[-1].key)
            return [info for info in found if info.key != missing]
        if fault is Fault.DOUBLED and found:
            again = len(found) // 2
            return [*found[: again + 1], *found[again:]]
        return found


class _FaultyWriter(Writer):
    def __init__(self, storage: FaultyStorage, key: str, inner: Writer) -> None:
        super().__init__(inner.uri)
        self._storage, self._key, self._inner = storage, key, inner

    def _append(self, data: Bytes) -> None:
        self._inner.write(data)

    def _publish(self) -> None:
        try:
            self._storage._run("close", self._key, self._inner.close)
            self._storage._recent.append(self._key)
        finally:
            self._inner.abort()  # after `close`: nothing

    def _discard(self) -> None:
        self._inner.abort()


def _die() -> NoReturn:
    os._exit(137)
