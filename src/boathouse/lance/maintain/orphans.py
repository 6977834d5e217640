"""Files of a Lance table's folders that no version needs, as writers leave them that were killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.lance.deletions.files import DELETIONS
from boathouse.lance.maintain.lines import documents, lines
from boathouse.lance.maintain.needs import FOLDERS, Seen, below, folder_of, needs
from boathouse.lance.manifests.indices import INDICES
from boathouse.lance.manifests.versions import VERSIONS
from boathouse.lance.paths import DATA, TRANSACTIONS
from boathouse.lance.snapshot import LanceSnapshot

_GUARD_MS: Final = 7 * 24 * 3_600_000
_OWN: Final = re.compile(
    rf"{DATA}/(.+/)?(\.tmp[^/]*|[^/]+\.lance|[^/]+\.blob)"
    rf"|{DELETIONS}/[^/]+\.(arrow|bin)"
    rf"|{TRANSACTIONS}/[^/]+\.txn"
    rf"|{INDICES}/[0-9a-f-]{{36}}/.+"
    rf"|{VERSIONS}/(\.tmp.*|\d+\.manifest-.+)"
)
_UNFINISHED: Final = re.compile(rf"({VERSIONS}|{DATA}|{DELETIONS}|{TRANSACTIONS}|{INDICES})/.+#\d+")
"""What the object store of pylance writes before it gives a file on a disk its name."""


@dataclass(frozen=True, slots=True)
class LanceOrphans:
    """See `table.features.Orphans`."""

    snapshot: LanceSnapshot

    @property
    def guard_ms(self) -> int:
        return _GUARD_MS

    def kept(self) -> Iterator[pa.Array]:
        now = lines(self.snapshot)
        storage, key = self.snapshot.stores.resolve(now.root)
        every = [*((now.root, kept) for kept in now.own if kept.version is not None), *now.besides]
        found = dict.fromkeys(storage.uri(kept.key) for _, kept in every)
        seen = Seen()
        for root, _, document in documents(storage, every):
            found |= dict.fromkeys(uri for uri, _, _ in needs(document, root, seen))
        paths = {path if (path := below(uri, now.root)) is not None else uri for uri in found}
        folders = {path for path in paths if path.endswith("/")}
        start = len(key) + 1 if key else 0
        for folder in {path.partition("/")[0] for path in folders if "://" not in path}:
            inside = (info.key[start:] for info in storage.list(f"{key}/{folder}" if key else folder))
            paths |= {path for path in inside if folder_of(path) in folders}
        yield pa.array(sorted(paths - folders), pa.string())

    def searched(self, folder: str) -> bool:
        return folder == "" or folder.partition("/")[0] in FOLDERS | {VERSIONS}

    def own(self, path: str) -> bool:
        return (_OWN.fullmatch(path) or _UNFINISHED.fullmatch(path)) is not None
