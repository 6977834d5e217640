"""Peer and us in turn, in one process: medians, ratios, and peak memory of a separate run."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
DATA = Path(os.environ.get("BOATHOUSE_BENCH_DATA", Path.home() / ".cache" / "boathouse" / "bench"))
PACKAGES = ("boathouse", "pyarrow", "pyspark", "deltalake", "pyiceberg", "pylance", "duckdb")


@dataclass
class Case:
    """One measurement: seconds of every runner, by name; the ratio is that of `ours` to each of the others."""

    title: str
    ours: str
    seconds: dict[str, list[float]] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)
    target: str = ""

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, peer: str) -> float:
        return self.median(self.ours) / self.median(peer)

    def row(self) -> str:
        cells = [
            f"{name} {self.median(name):.3f} s ({min(runs):.3f} to {max(runs):.3f})"
            + (f", peak {self.peak[name]:,.0f} MiB" if name in self.peak else "")
            for name, runs in self.seconds.items()
        ]
        ratios = ", ".join(f"{self.ratio(p):.2f}x {p}" for p in self.seconds if p != self.ours)
        return f"| {self.title} | {'; '.join(cells)} | {ratios} | {self.target} |"


def alternate(
    title: str,
    runners: dict[str, Callable[[], object]],
    ours: str,
    rounds: int = 5,
    warm: int = 1,
    target: str = "",
    between: Callable[[], object] | None = None,
    check: Callable[[str, object], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Case:
    """Runs each runner once a round, in turn; the first `warm` rounds are not counted.

    `check` of the runner's name and its result is not timed; the time is wall-clock or, with `time.process_time`,
    processor time.
    """
    case = Case(title, ours, {name: [] for name in runners}, target=target)
    # The data of a benchmark may be millions of objects: a garbage collection between runs would evict the caches.
    gc.collect()
    gc.freeze()
    for i in range(warm + rounds):
        for name, runner in runners.items():
            if between is not None:
                between()
            gc.collect()
            started = clock()
            result = runner()
            seconds = clock() - started
            if check is not None:
                check(name, result)
            del result
            if i >= warm:
                case.seconds[name].append(seconds)
    gc.unfreeze()
    print(case.row(), flush=True)
    return case


Call = tuple[Callable[..., object], tuple[object, ...]]


def timed(calls: dict[str, Call]) -> dict[str, Callable[[], object]]:
    """The calls as runners for `alternate`."""
    return {name: (lambda f=f, a=a: f(*a)) for name, (f, a) in calls.items()}


def _child(function: Callable[..., object], arguments: tuple[object, ...], send: object) -> None:
    # Not ru_maxrss: a new process inherits that of its parent.
    Path("/proc/self/clear_refs").write_text("5")
    before, started = _high_water(), time.perf_counter()
    kept = function(*arguments)
    seconds, after = time.perf_counter() - started, _high_water()
    del kept
    send.send(((after - before) / 1024, seconds))  # type: ignore[attr-defined]


def _high_water() -> int:
    """The peak memory of this process since the peak was reset, in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def _fresh(name: str, call: Call) -> tuple[float, float]:
    """How much the peak resident memory grows (MiB) in a new process that makes the call once, and how long it takes.

    Imports of the call's module are already loaded.
    """
    context = get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(*call, send))
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        raise RuntimeError(f"{name}: the new process died") from None
    finally:
        process.join()


def peak_memory(case: Case, calls: dict[str, Call]) -> Case:
    """Adds how much the peak resident memory grows in a fresh process that makes each call once (MiB)."""
    for name, call in calls.items():
        try:
            case.peak[name] = _fresh(name, call)[0]
        except RuntimeError as error:  # a peer may need more memory than there is
            print(f"peak memory of {error}", file=sys.stderr)
    print(case.row(), flush=True)
    return case


def first_calls(title: str, calls: dict[str, Call], ours: str, rounds: int = 5, target: str = "") -> Case:
    """The calls in turn, each in its own process: the time of a script that makes the call once."""
    case = Case(title, ours, {name: [] for name in calls}, target=target)
    for _ in range(rounds):
        for name, call in calls.items():
            case.seconds[name].append(_fresh(name, call)[1])
    print(case.row(), flush=True)
    return case


def machine() -> str:
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    packages = []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except Exception:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {platform.python_version()}, {', '.join(packages)}"
    )


def record(section: str, cases: list[Case], notes: str = "") -> None:
    """Replaces the section of RESULTS.md with these cases."""
    lines = [
        f"## {section}",
        "",
        f"{time.strftime('%Y-%m-%d')}, {machine()}. Peer and us in turn in one process, medians (least to most).",
        "",
        "| what | seconds | ratio: ours to | target |",
        "|-|-|-|-|",
        *(case.row() for case in cases),
        "",
    ]
    if notes:
        lines += [notes, ""]
    text = RESULTS.read_text() if RESULTS.exists() else "# Benchmarks\n\nHow to run: `./run bench NAME`.\n\n"
    head, _, rest = text.partition(f"## {section}\n")
    tail = rest.split("\n## ", 1)
    after = f"\n## {tail[1]}" if len(tail) > 1 else ""
    RESULTS.write_text(head.rstrip() + "\n\n" + "\n".join(lines).rstrip() + "\n" + after)


def lineitem() -> Path:
    """TPC-H lineitem at scale 1 as one Parquet file, created once."""
    target = DATA / "lineitem.parquet"
    if not target.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        command = [Path(sys.executable).parent / "tpchgen-cli", "parquet", "-s", "1", "--tables=lineitem"]
        subprocess.run([*map(str, command), "--output-dir", str(DATA)], check=True)
    return target


def fresh(path: Path) -> str:
    """An unused path below the benchmark data."""
    if path.exists():
        subprocess.run(["rm", "-rf", str(path)], check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path)


def linked(base: Path, name: str) -> str:
    """The table `base` again, with the same files by hard links: what is done to it changes none of them."""
    target = Path(fresh(DATA / "rows" / name))
    for folder, _, files in os.walk(base):
        place = target / Path(folder).relative_to(base)
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            os.link(Path(folder) / file, place / file)
    return str(target)
