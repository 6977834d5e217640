"""What the Lance tests share: a table of pylance's, ways to open it, and manifests made by hand."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from boathouse.lance.adapter import FORMAT, LanceTable
from boathouse.lance.manifests.file import parse, serialise
from boathouse.lance.manifests.versions import parse_name
from boathouse.ops import run
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Location

lance = pytest.importorskip("lance")


class Kit:
    """Helpers around one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stores = Stores()

    @property
    def uri(self) -> str:
        return str(self.root)

    @property
    def location(self) -> Location:
        return Location(f"file://{self.root}")

    def pylance(self, data: pa.Table, **options):
        """Writes with pylance."""
        return lance.write_dataset(data, self.uri, **options)

    def dataset(self, **options):
        return lance.dataset(self.uri, **options)

    @property
    def context(self) -> TableContext:
        return TableContext(self.location, self.stores)

    def load(self, at: At = NEWEST) -> LanceTable:
        return FORMAT.open(self.context, at)

    def manifests(self) -> list[Path]:
        """Manifest files, newest first."""
        found = [p for p in (self.root / "_versions").iterdir() if parse_name(p.name)]
        return sorted(found, key=lambda p: -parse_name(p.name).version)

    def edit(self, change) -> None:
        """Rewrites the newest manifest in place: `change` maps the Manifest."""
        path = self.manifests()[0]
        document = parse(path.read_bytes(), where=str(path))
        path.write_bytes(serialise(replace(document, manifest=change(document.manifest))))

    def read(self, **options) -> pa.Table:
        """The newest rows through the public face."""
        import boathouse as bh

        return bh.open(self.uri, format="lance").scan(**options).to_arrow()

    def open(self, **options):
        import boathouse as bh

        return bh.open(self.uri, format="lance", **options)

    def create(self, data: pa.Table, **options):
        import boathouse as bh

        bh.write(data, self.uri, format="lance", **options)
        return self.open()

    @contextmanager
    def overtaken_by(self, action, seen: bool = True):
        """Within the block, `action` commits between the planning of our next write and its commit, whose first attempt
        looks for it if it is `seen`."""
        waiting = [action]
        commit = run.commit

        def late(target, change, fresh=False):
            if waiting:
                waiting.pop()()
                fresh = fresh and not seen
            return commit(target, change, fresh)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "commit", late)
            yield
        assert not waiting

    def files(self) -> set[str]:
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()}


@pytest.fixture
def kit(tmp_path) -> Kit:
    return Kit(tmp_path / "t")


@pytest.fixture
def numbers() -> pa.Table:
    return pa.table({"a": pa.array(range(10), pa.int64()), "s": [f"v{i}" if i % 3 else None for i in range(10)]})
