"""What the parts of Table that write need of it."""

from __future__ import annotations

from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.write import Write
from boathouse.table.engine import Engine


class Part:
    """A part of Table with writing methods."""

    @property
    def uri(self) -> str:
        raise NotImplementedError

    def _run(self, engine: Engine, write: Write, options: WriteOptions, zoned: bool = False) -> WriteResult:
        raise NotImplementedError
