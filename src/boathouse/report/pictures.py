"""Pictures as SVG elements: no script, colours from the style sheet, a title where a pointer rests."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from boathouse.api.text import human_bytes, iso
from boathouse.report.facts import Ints
from boathouse.table.history import HistoryEntry

WIDTH: Final = 1000
LANES: Final = 8
"""Operations with a lane of their own; the rest share the last."""
_LABEL: Final = 170
_LANE: Final = 26


def timeline(commits: Sequence[HistoryEntry]) -> Element:
    """A dot a commit by time, in a lane for its operation."""
    common = [name for name, _ in Counter(c.operation for c in commits).most_common(LANES)]
    lanes = [*common, *(["others"] if any(c.operation not in common for c in commits) else [])]
    times = [c.timestamp_ms for c in commits]
    first, span = min(times), max(max(times) - min(times), 1)
    height = _LANE * len(lanes) + 40
    svg = _svg(height, f"{len(commits)} commits from {iso(first)} to {iso(first + span)}")
    for i, name in enumerate(lanes):
        y = _LANE * i + 18
        _text(svg, 0, y + 4, name, "label")
        _line(svg, _LABEL, y, WIDTH - 10, y)
    for commit in commits:
        x = _LABEL + 6 + (commit.timestamp_ms - first) / span * (WIDTH - _LABEL - 22)
        lane = common.index(commit.operation) if commit.operation in common else len(lanes) - 1
        dot = SubElement(svg, "circle", {"class": f"c{lane}"}, cx=f"{x:.1f}", cy=str(_LANE * lane + 18), r="5")
        SubElement(dot, "title").text = f"{commit.version}: {commit.operation}, {iso(commit.timestamp_ms)}"
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = _LABEL + 6 + share * (WIDTH - _LABEL - 22)
        _text(svg, x, height - 8, _time(first + int(share * span), span), "axis", anchor)
    return svg


def _time(ms: int, span: int) -> str:
    text = dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(" ", timespec="seconds").removesuffix("+00:00")
    return text if span < 3 * 86_400_000 else text[:10]


def size_histogram(sizes: Ints) -> Element:
    """How many files have so many bytes, in steps of powers of two."""
    known = sizes[sizes >= 0]
    steps = np.log2(np.maximum(known, 1)).astype(np.int64)
    low, high = int(steps.min()), int(steps.max())
    counts = np.bincount(steps - low, minlength=high - low + 1).tolist()
    labels = [human_bytes(2 ** (low + i)) for i in range(len(counts))]
    return columns(counts, labels, "files of at least this size, and less than twice of it")


def share_histogram(shares: Sequence[float], text: str) -> Element:
    """How many files have such a share, in ten steps."""
    counts = np.histogram(np.asarray(shares), bins=10, range=(0.0, 1.0))[0].tolist()
    return columns(counts, [f"{10 * i} %" for i in range(10)], text)


def columns(counts: Sequence[int], labels: Sequence[str], text: str) -> Element:
    """Columns with their count above and a label below; of many, every so many-th label."""
    height, floor = 190, 150
    svg = _svg(height, f"{text}: " + ", ".join(f"{label} {n}" for label, n in zip(labels, counts) if n))
    step, top = WIDTH / max(len(counts), 8), max(*counts, 1)
    every = -(-len(counts) // 14)
    for i, (count, label) in enumerate(zip(counts, labels, strict=True)):
        tall, x = (floor - 24) * count / top, i * step
        box = {"x": f"{x + 3:.1f}", "y": f"{floor - tall:.1f}", "width": f"{step - 6:.1f}", "height": f"{tall:.1f}"}
        bar = SubElement(svg, "rect", {"class": "bar", **box}, rx="2")
        SubElement(bar, "title").text = f"{count:,} files: {label}"
        if count and len(counts) <= 24:
            _text(svg, x + step / 2, floor - tall - 6, f"{count:,}", "axis", "middle")
        if i % every == 0:
            _text(svg, x + step / 2, floor + 18, label, "axis", "middle")
    _line(svg, 0, floor, WIDTH, floor)
    _text(svg, 0, height - 4, text, "axis")
    return svg


def _svg(height: int, label: str) -> Element:
    return Element("svg", {"aria-label": label}, viewBox=f"0 0 {WIDTH} {height}", role="img")


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float) -> None:
    SubElement(svg, "line", x1=str(x1), y1=str(y1), x2=str(x2), y2=str(y2))


def _text(svg: Element, x: float, y: float, text: str, kind: str, anchor: str = "start") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": kind}
    SubElement(svg, "text", place).text = text
