"""Methods of a table that read single rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.api.arguments import located
from boathouse.api.blob_file import BlobFile
from boathouse.api.conditions import Condition, condition
from boathouse.api.engines import LOCAL, engine_for, zone_of
from boathouse.api.neighbours import asked, probing
from boathouse.api.selected import chosen, parted
from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.expr.resolve import bind_predicate
from boathouse.ops.handle import Handle
from boathouse.ops.reads.blobs import blobs_of
from boathouse.ops.reads.nearest import DISTANCE, nearest_rows
from boathouse.ops.reads.taken import rows_identified, rows_numbered
from boathouse.table.features import Blobs, RandomAccess, required
from boathouse.table.features.random_access import Numbers
from boathouse.table.tasks import version_words


class Taking:
    """The part of Table for rows that are read one by one."""

    _handle: Handle
    _spark: Any
    _timezone: str | None

    @located
    def take(self, positions: Any = None, columns: Sequence[str] | None = None, *, row_ids: Any = None) -> pa.Table:
        """The rows at these positions, or with these ids, in the order asked for, repeated where they are asked for
        again; only the parts of the files are read that hold them. For Lance.

        `positions` count the rows of this version from 0, in the order of a scan; deleted rows are not counted.
        `row_ids` are those of `_row_id` in tables with stable row ids, else the addresses of rows, the fragment times
        2^32 plus the offset in it, as pylance's `_rowid`; an id that no row of this version has, as after a delete, is
        left out. Both are sequences of integers, numpy or Arrow arrays. `columns` are those of `scan`, all by default.
        With stable ids they are looked up in an index that is built once for a version, of its stretches of ids.

        Raises InvalidArgumentError for a position that no row has, or what is no integer, ColumnNotFoundError,
        UnsupportedFeatureError for other formats, MissingFileError, CorruptTableError, StorageError.

        >>> t = bh.create("lake/points", "id bigint, name string", format="lance")
        >>> done = t.append([{"id": i, "name": f"p{i}"} for i in range(100)])
        >>> t.take([70, 3, 3], columns=["name"]).to_pydict()
        {'name': ['p70', 'p3', 'p3']}
        """
        numbers, ids = _asked("take", positions, row_ids)
        snapshot = self._handle.snapshot
        output = None if columns is None else chosen(snapshot.schema, columns)
        stored, hidden = (None, ()) if output is None else parted(snapshot.schema, output)
        if ids is not None:
            found = rows_identified(snapshot, LOCAL, ids, stored, hidden)
        else:
            assert numbers is not None
            found = rows_numbered(snapshot, LOCAL, numbers, stored, hidden)
        return found.select(output) if hidden and output is not None else found

    @located
    def take_blobs(self, column: str, positions: Any = None, *, row_ids: Any = None) -> list[BlobFile | None]:
        """The values of a blob column in the rows at these positions, or with these ids, as files that fetch what is
        read of them, in the order asked for; None for null. For Lance, whose scans give of a blob where it is.

        `positions` and `row_ids` are those of `take`. Values are found in the data file, beside it, and in the files
        that others have named by a URI.

        Raises InvalidArgumentError for a column without blobs and a position that no row has, ColumnNotFoundError,
        ForeignPathError for a URI in another kind of store, UnsupportedFeatureError for other formats,
        MissingFileError, CorruptTableError, StorageError.
        """
        numbers, ids = _asked("take_blobs", positions, row_ids)
        snapshot = self._handle.snapshot
        required(snapshot, Blobs, "take_blobs")
        found = blobs_of(snapshot, LOCAL, snapshot.schema.field(column).name, numbers, ids)
        version = version_words(snapshot.version, self._handle.location.uri)
        stores = snapshot.context.stores
        return [None if span is None else BlobFile(stores, span, version) for span in found]

    @located
    def sample(self, n: int, columns: Sequence[str] | None = None, *, seed: int | None = None) -> pa.Table:
        """`n` different rows of this version, chosen at random and in random order; the same ones for the same `seed`.
        Only what holds them is read. For Lance.

        Raises InvalidArgumentError for more rows than there are, and otherwise as `take`.

        >>> t = bh.create("lake/dice", "id bigint", format="lance")
        >>> done = t.append([{"id": i} for i in range(100)])
        >>> t.sample(3, seed=1).num_rows
        3
        """
        for name, value in (("n", n), ("seed", 0 if seed is None else seed)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InvalidArgumentError(f"{name}={value!r} is not a number", advice="pass for example 10")
        rows = required(self._handle.snapshot, RandomAccess, "sample").rows
        if n > rows:
            raise InvalidArgumentError(f"{n} rows of a version that has {rows}", advice=f"ask for at most {rows}")
        random = np.random.default_rng(system.current().uuid4().int if seed is None else seed)
        return self.take(random.choice(rows, n, replace=False), columns)

    @located
    def nearest(
        self,
        column: str,
        query: Any,
        k: int = 10,
        where: Condition | None = None,
        metric: str = "l2",
        columns: Sequence[str] | None = None,
        *,
        nprobes: int | None = None,
        refine_factor: int | None = None,
    ) -> pa.Table:
        """The `k` rows whose vectors are nearest to `query`, nearest first, with their distance as the last column,
        `_distance`. Every vector is compared, unless `nprobes` is given. For Lance.

        `column` holds vectors of one length: of floats, or of integers of 8 bits. `query` is one more, as a sequence of
        numbers or an array; it is rounded to the type of the floats. `metric` is `l2`, the square of the Euclidean
        distance, `cosine`, 1 less the cosine of the angle, `dot`, 1 less the product, or `hamming`, the bits that
        differ between vectors of `uint8`. Rows are left out whose vector is null or has no distance, as with NaN in it,
        and those that do not satisfy `where`, so fewer than `k` may remain; of rows as far the first ones of a scan are
        taken. `columns` are those of `scan`, all by default. With a Spark session vectors are compared by executors.

        With `nprobes` most of the nearest are found, maybe not all, and faster where there are many: of an IVF index of
        pylance on the column, of the same metric, only so many partitions are looked at, those whose centroids are
        nearest. The rows in them that it thinks nearest, `refine_factor` (1) times `k`, are compared by their own
        vectors, so that distances are the real ones; more of them help where it has codes instead of vectors (IVF_PQ,
        IVF_SQ). Rows that it does not have are compared as without it, and all are if there is no such index, or none
        that is read.

        Raises InvalidArgumentError for a column without vectors, a query of another length, and rows that already have
        a column `_distance`, ColumnNotFoundError, ExpressionError, EvaluationError, UnsupportedFeatureError for other
        formats, MissingFileError, CorruptTableError, StorageError.

        >>> t = bh.create("lake/words", "word string, v vector<double,2>", format="lance")
        >>> done = t.append([{"word": "up", "v": [0.0, 1.0]}, {"word": "on", "v": [1.0, 0.0]}])
        >>> t.nearest("v", [0.1, 1], k=1, columns=["word"]).column("word").to_pylist()
        ['up']
        """
        snapshot, engine = self._handle.snapshot, engine_for(None, self._spark)
        required(snapshot, RandomAccess, "nearest")
        name, wanted = asked(snapshot.schema, column, query, k, metric)
        probes = probing(nprobes, refine_factor)
        output = [f.name for f in snapshot.schema.fields] if columns is None else chosen(snapshot.schema, columns)
        if DISTANCE in output:
            raise InvalidArgumentError(f"a column `{DISTANCE}`, which the distances are in", advice="pass columns=")
        stored, hidden = parted(snapshot.schema, output)
        bound = None
        if where is not None:
            zone = zone_of(engine, self._timezone, self._spark)
            bound = bind_predicate(condition(where, snapshot.schema), snapshot.schema, zone)
        found = nearest_rows(snapshot, engine, name, wanted, bound, stored, hidden, LOCAL, probes)
        return found.select([*output, DISTANCE])


def _asked(what: str, positions: Any, row_ids: Any) -> tuple[Numbers, None] | tuple[None, Numbers]:
    """The positions, or the ids. Raises InvalidArgumentError for both, none, or what is no integer."""
    if (positions is None) == (row_ids is None):
        raise InvalidArgumentError(f"{what} needs positions or row_ids", advice="pass one of them")
    if row_ids is None:
        return _integers("positions", positions), None
    return None, _integers("row_ids", row_ids)


def _integers(name: str, given: Any) -> Numbers:
    """Raises InvalidArgumentError for anything that is not a sequence of integers of 64 bits."""
    try:
        if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.ndim == 1:
            found = pa.array(given)
        elif isinstance(given, pa.Array | pa.ChunkedArray):
            found = given
        elif isinstance(given, str | bytes | dict):
            raise TypeError(type(given).__name__)
        else:
            found = pa.array(list(given))
        if pa.types.is_null(found.type) and not len(found):
            return np.empty(0, np.int64)
        if found.null_count or not pa.types.is_integer(found.type):
            raise TypeError(f"{'null' if found.null_count else found.type}")
        return np.asarray(found.cast(pa.int64()), np.int64)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise InvalidArgumentError(f"{name} are not integers: {error}", advice="pass for example [0, 5]") from error
