"""The files of a relation as its index gives them: held since the frame was made, or looked for by each query."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from boathouse.engines.spark.catalyst import Catalyst, Numbers
from boathouse.engines.spark.tuples import Constants, Tuples
from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.table.plan import Later

REMEMBERED_FILES: Final = 200_000
"""So many files of the last answers are kept, since a query may ask more than once, and the next one the same."""
_REMEMBERED: Final = 16
_PATH: Final = pa.schema([pa.field("path", pa.string(), False)])
CHECKED: Final = ("format", "spec", "deleted", "parts")
"""What `obstacle` looks at beside paths and sizes."""

Accepted = Callable[[Any], np.ndarray[Any, np.dtype[np.bool_]]]
"""An InternalRow[] of values of partition columns -> which of them a query wants."""


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Files for one query: their paths as Spark spells them, sizes in bytes, and for each the number of its values
    among `rows`, an InternalRow[]."""

    spelled: pa.Array
    sizes: Numbers
    numbers: Numbers
    rows: Any

    def chosen(self, kept: Any) -> Listing:
        """Some of the files, in the order of these indices."""
        return Listing(self.spelled.take(pa.array(kept)), self.sizes[kept], self.numbers[kept], self.rows)


class FileList(Protocol):
    """Files of one relation; asked by several threads."""

    @property
    def identity(self) -> str:
        """Equal for lists of the same files with the same values."""

    @property
    def words(self) -> str:
        """How many files there are."""

    @property
    def bytes(self) -> int:
        """Their sizes, at most."""

    def all(self) -> pa.Array:
        """The paths of all, as Spark spells them."""

    def matching(self, where: Expr | None, accepted: Accepted | None) -> Listing:
        """Those that may have a row that satisfies a condition, and whose values a query wants."""


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """The last few answers by their conditions."""

    _known: dict[Expr | None, pa.Table] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, where: Expr | None, ask: Callable[[Expr | None], pa.Table]) -> pa.Table:
        with self._lock:
            if where in self._known:
                return self._known[where]
        found = ask(where)
        with self._lock:
            self._known[where] = found
            while len(self._known) > _REMEMBERED or self._files > REMEMBERED_FILES:
                del self._known[next(iter(self._known))]
        return found

    @property
    def _files(self) -> int:
        return sum(t.num_rows for t in self._known.values())


@dataclass(frozen=True, eq=False)
class Held:
    """Files that were planned when the frame was made; `paths` are as the table spells them, `later` says which of
    them match conditions."""

    paths: pa.Array
    spelled: pa.Array
    sizes: Numbers
    tuples: Tuples
    rows: Any
    later: Later | None = None
    answers: _Answers = field(default_factory=_Answers)

    @cached_property
    def identity(self) -> str:
        found = sha256(self.sizes.tobytes())
        found.update(self.tuples.numbers.tobytes())
        # Serialized, since arrays that are slices of one have the same buffers.
        found.update(pa.record_batch([self.spelled], names=["path"]).serialize())
        return f"{found.hexdigest()} {self.tuples.digest}"

    @property
    def words(self) -> str:
        return f"{len(self.paths):,} files"

    @property
    def bytes(self) -> int:
        return int(self.sizes.sum())

    def all(self) -> pa.Array:
        return self.spelled

    def matching(self, where: Expr | None, accepted: Accepted | None) -> Listing:
        kept = np.ones(len(self.paths), np.bool_)
        if where is not None and (found := self._among(where)) is not None:
            kept &= pc.is_in(self.paths, value_set=found).to_numpy(zero_copy_only=False)
        if accepted is not None:
            kept &= accepted(self.rows)[self.tuples.numbers]
        return Listing(self.spelled, self.sizes, self.tuples.numbers, self.rows).chosen(np.flatnonzero(kept))

    def _among(self, where: Expr) -> pa.Array | None:
        """Paths of files that may match; None where the metadata cannot tell: it may be gone by now, while the files
        that were planned are not."""
        later = self.later
        if later is None:
            return None
        try:
            found = self.answers.of(where, lambda w: _found(later, w, _PATH))
        except BoathouseError:
            return None
        return found.column("path").combine_chunks()


@dataclass(frozen=True, eq=False)
class Searched:
    """Files that each query looks for in the metadata of the version, all of them of `later.outline`.

    `files` is the schema of FILES; `obstacle` says why Spark cannot read some files, or None; `spelled` gives paths as
    Spark knows them.
    """

    spark: SparkSession
    catalyst: Catalyst
    later: Later
    constants: Constants
    files: pa.Schema
    obstacle: Callable[[pa.Table], str | None]
    spelled: Callable[[pa.Table], pa.Table]
    answers: _Answers = field(default_factory=_Answers)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are asked for."""
        return pa.schema([self.files.field(n) for n in ("path", "size", "partition", *CHECKED)])

    @property
    def identity(self) -> str:
        return self.later.identity

    @property
    def words(self) -> str:
        assert self.later.outline is not None
        return f"about {self.later.outline.files:,} files"

    @property
    def bytes(self) -> int:
        assert self.later.outline is not None
        return self.later.outline.bytes

    def all(self) -> pa.Array:
        return self.spelled(self._units(None)).column("path").combine_chunks()

    def matching(self, where: Expr | None, accepted: Accepted | None) -> Listing:
        units = self.answers.of(where, self._units)
        tuples = self.constants.of(units)
        rows = self.catalyst.rows(self.constants.restored(self.spark, tuples))
        if accepted is not None:
            kept = pa.array(np.flatnonzero(accepted(rows)[tuples.numbers]))
            units, tuples = units.take(kept), Tuples(tuples.values, tuples.numbers[kept.to_numpy()])
        paths = self.spelled(units).column("path").combine_chunks()
        return Listing(paths, units.column("size").to_numpy(), tuples.numbers, rows)

    def _units(self, where: Expr | None) -> pa.Table:
        """Raises UnsupportedFeatureError for a file that Spark cannot read, and what reading metadata raises."""
        found = _found(self.later, where, self.schema).combine_chunks()
        said = self.obstacle(found) if found.num_rows else None
        if said is not None:
            raise UnsupportedFeatureError(
                said, advice="read it with scan(where=...).to_spark(), or in process with scan(where=...).to_arrow()"
            )
        return found.select(["path", "size", "partition"])


def _found(later: Later, where: Expr | None, schema: pa.Schema) -> pa.Table:
    """Columns of FILES of the units that may match."""
    return pa.Table.from_batches((b.select(schema.names) for b in later.units(where)), schema)
