"""Mutated Lance tables: metadata and data files, read through the public face."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pyarrow as pa

import boathouse as bh
from boathouse.bits.protobuf import Message
from boathouse.errors import BoathouseError, NotFoundError
from boathouse.lance.manifests.file import parse, serialise
from boathouse.lance.manifests.messages import Manifest
from makers.effort import counted_calls

CALLS, MEGABYTES = 5_000_000, 1500
"""Of functions, for one read; of the peak of the process."""
INTEGERS = (0, 1, 2, 7, 127, 128, 255, 1 << 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 2**63 - 1)
WORDS = (
    "",
    "a",
    "\0",
    "../x",
    "é" * 40,
    "fixed_size_list:float:1099511627776",
    "dict:string:int8:false",
    "struct",
    "list",
)


@dataclass
class Tally:
    """What came of the mutations; `wrong` holds what must not be."""

    done: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


def bytes_changed(raw: bytes, rnd: random.Random) -> bytes:
    """Cut, shortened, or a few bytes changed, more often near the end where the metadata is."""
    out = bytearray(raw)
    kind = rnd.randrange(6)
    if kind == 0:
        return bytes(out[: rnd.randrange(len(out))])
    if kind == 1:
        at = rnd.randrange(len(out))
        del out[at : at + rnd.randrange(1, 9)]
        return bytes(out)
    span = len(out) if kind == 2 else min(len(out), 700 if kind == 3 else 120)
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(span)
        out[at if kind == 5 else len(out) - 1 - at] = rnd.choice([0, 1, 127, 128, 255, rnd.randrange(256)])
    return bytes(out)


def message_changed(message: Message, rnd: random.Random) -> Message:
    """One value somewhere in the message is another: a number, a text, a list of another length."""
    present = {f.name: getattr(message, f.name) for f in fields(message) if f.name != "unknown"}
    names = [n for n, v in present.items() if v not in (None, ())]
    if not names:
        return message
    name = rnd.choice(names)
    return replace(message, **{name: _value(present[name], rnd)})


def _value(value: object, rnd: random.Random) -> object:
    if isinstance(value, Message):
        return message_changed(value, rnd)
    if isinstance(value, tuple):
        items = list(value)
        if rnd.random() < 0.3:
            return tuple(items[: rnd.randrange(len(items))]) if rnd.random() < 0.5 else (*items, rnd.choice(items))
        at = rnd.randrange(len(items))
        items[at] = _value(items[at], rnd)
        return tuple(items)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rnd.choice([*INTEGERS, value + 1, max(value - 1, 0)])
    if isinstance(value, str):
        return rnd.choice([*WORDS, value[:-1], value + "x"])
    if isinstance(value, bytes):
        return bytes_changed(value, rnd) if value else b"\xff"
    return value


def manifest_changed(raw: bytes, rnd: random.Random) -> bytes:
    document = parse(raw, where="")
    manifest: Manifest = document.manifest
    for _ in range(rnd.randrange(1, 3)):
        manifest = message_changed(manifest, rnd)  # type: ignore[assignment]
    return serialise(replace(document, manifest=manifest))


def read_whole(uri: str) -> None:
    """Everything that reads: rows, a filter, a count, the history."""
    table = bh.open(uri, format="lance")
    table.schema  # noqa: B018
    table.count()
    rows = table.to_arrow()
    rows.validate()
    for column in rows.columns:
        if pa.types.is_temporal(column.type):  # Python's dates do not reach as far
            continue
        column.to_pylist()
    list(table.history())


def files_of(root: Path) -> Iterator[Path]:
    yield from sorted(
        p for p in root.rglob("*") if p.is_file() and p.suffix in (".manifest", ".lance", ".arrow", ".bin")
    )


def mutate(root: Path, rnd: random.Random, tally: Tally, count: int) -> None:
    """`count` mutations of the files of one table, one at a time; what is wrong goes to the tally."""
    files = list(files_of(root))
    for _ in range(count):
        path = rnd.choice(files)
        raw = path.read_bytes()
        seed = rnd.randrange(1 << 30)
        chosen = random.Random(seed)
        change = manifest_changed if path.suffix == ".manifest" and chosen.random() < 0.7 else bytes_changed
        try:
            damaged = change(raw, chosen)
        except (OverflowError, UnicodeEncodeError):
            continue
        path.write_bytes(damaged)
        try:
            _judge(f"{path.relative_to(root.parent)} seed {seed}", str(root), tally)
        finally:
            path.write_bytes(raw)


def _judge(name: str, uri: str, tally: Tally) -> None:
    tally.done += 1
    try:
        with counted_calls() as calls:
            read_whole(uri)
    except BoathouseError as error:
        tally.refused += 1
        if error.where is None and not isinstance(error, NotFoundError):
            tally.wrong.append(f"{name}: {type(error).__name__} without a place: {error}")
    except (pa.ArrowException, Exception) as error:
        tally.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    if calls.count > CALLS:
        tally.wrong.append(f"{name}: {calls.count} calls")


def peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
