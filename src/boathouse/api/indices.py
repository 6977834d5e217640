"""The methods of a table that make and drop indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import flag, located
from boathouse.api.engines import LOCAL, engine_for
from boathouse.api.table_part import Part
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.indices import IndexCreated, IndexDropped, IndicesRenewed
from boathouse.table.features import Indices as IndicesFeature
from boathouse.table.features import required


class Indices(Part):
    """Indices on columns: scans with conditions on such a column read the fragments and rows that they name."""

    _handle: Handle
    _spark: Any

    @located
    def indices(self) -> pa.Table:
        """The indices of this version, whoever made them: `name`, `columns`, `kind`, and how many `units` (files) each
        covers and does not (`uncovered`): those are read as without it.

        Raises UnsupportedFeatureError for other formats, CorruptTableError.
        """
        return required(self._handle.snapshot, IndicesFeature, "an index").recorded()

    @located
    def create_index(
        self,
        column: str,
        kind: str = "btree",
        name: str | None = None,
        *,
        replace: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes an index of a top-level column, called `{column}_idx` by default, which pylance uses as one of its own:
        `btree` for conditions that few rows satisfy, `bitmap` for columns of few different values, `zonemap`, the
        smallest, for values that lie together in files. No row changes. The column is read, and sorted in memory.

        Rows that come later are found without it until `optimize_indices`. Raises UnsupportedFeatureError for other
        formats, ColumnNotFoundError, UnsupportedTypeError for a column that is nested, InvalidArgumentError for another
        kind, or a name that there is (`replace=True` makes that index again), CommitConflictError, CommitUnknownError,
        ReadOnlyError, StorageError.

        >>> trips = bh.create("lake/indexed", "id bigint, city string", format="lance")
        >>> done = trips.append([{"id": i, "city": "Kiel"} for i in range(100)])
        >>> done = trips.create_index("id")
        >>> trips.indices().to_pylist()
        [{'name': 'id_idx', 'columns': ['id'], 'kind': 'btree', 'units': 1, 'uncovered': 0}]
        >>> trips.scan(where="id = 7").count()
        1
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        write = IndexCreated(column, kind, name, flag("replace", replace))
        return self._run(engine_for(None, self._spark), write, options)

    @located
    def optimize_indices(
        self,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Makes the B-trees, bitmaps and zone maps again that do not cover every row, in one commit; other indices stay
        as they are.

        Raises UnsupportedFeatureError for other formats, CommitConflictError, CommitUnknownError, ReadOnlyError,
        MissingFileError, CorruptTableError, StorageError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._run(engine_for(None, self._spark), IndicesRenewed(), options)

    @located
    def drop_index(
        self,
        name: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Drops an index of any kind; its files stay until the versions that have it expire. Raises
        InvalidArgumentError if there is none of this name, UnsupportedFeatureError for other formats,
        CommitConflictError, CommitUnknownError, ReadOnlyError, StorageError."""
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._run(LOCAL, IndexDropped(name), options)
