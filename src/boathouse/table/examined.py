"""What an examination asks of any format: whether a version can be planned, and whether its files are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import pyarrow as pa

from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.findings import Finding, damage
from boathouse.table.plan import ScanPlan

_REQUESTS: Final = 16
"""Look-ups at a time: they wait for the store."""
_TOGETHER: Final = 4096


def sizes_of(stores: Stores, uris: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Each file with its bytes, None if it is gone."""

    def size(uri: str) -> int | None:
        storage, key = stores.resolve(uri)
        try:
            return storage.head(key).size
        except NotFoundError:
            return None

    asked = list(uris)
    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
        for i in range(0, len(asked), _TOGETHER):
            part = asked[i : i + _TOGETHER]
            yield from zip(part, pool.map(size, part), strict=True)


class Listed(Protocol):
    """What is asked of a snapshot."""

    @property
    def format(self) -> str: ...
    @property
    def context(self) -> TableContext: ...
    def files(self) -> Iterator[pa.RecordBatch]:
        """FILES."""


def unplanned(format: str, plan: Callable[[], ScanPlan]) -> Iterator[Finding]:
    """What stops planning, and with it every reader of the version."""
    try:
        for _ in plan().parts():
            pass
    except CorruptTableError as error:
        yield Finding.of(f"{format}.unreadable", error)


def lost_files(snapshot: Listed) -> Iterator[Finding]:
    """Data files that are gone, or have another size than the metadata says."""
    recorded: dict[str, int | None] = {}
    for batch in snapshot.files():
        recorded.update(_recorded(batch))
    for uri, found in sizes_of(snapshot.context.stores, recorded):
        if found is None:
            yield damage(f"{snapshot.format}.missing-file", "a data file is missing", uri)
        elif recorded[uri] not in (None, found):
            yield damage(
                f"{snapshot.format}.file-size",
                f"a data file has {found:,} bytes, where {recorded[uri]:,} are stated",
                uri,
            )


def _recorded(batch: pa.RecordBatch) -> Iterator[tuple[str, int | None]]:
    """Every file of the units, with the size that is stated."""
    rows = zip(*(batch.column(n).to_pylist() for n in ("path", "size", "parts")), strict=True)
    for path, size, parts in rows:
        yield from ((p["path"], p["size"]) for p in parts) if parts else ((path, size),)
