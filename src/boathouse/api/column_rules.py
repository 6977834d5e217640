"""The methods of a table that say what holds for columns, and how new files are laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boathouse.api.arguments import located, names
from boathouse.api.columns import constant
from boathouse.api.engines import LOCAL
from boathouse.api.evolution import Evolution
from boathouse.api.partition_by import partition_fields, sort_fields
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.schema.column_rules import ColumnMoved, DefaultChanged, IdentifiersSet, NullabilitySet
from boathouse.ops.table.layout import ClusteringSet, PartitioningSet, SortOrderSet


class ColumnRules(Part):
    """Columns are named as by `add_column`. What a format does not have of these, it refuses by name: Iceberg has them
    all, Delta the order of columns and their becoming nullable, Lance their nullability."""

    def evolve(self) -> Evolution:
        """Starts several changes of columns that are made in one commit, or not at all; nothing happens before
        `execute` of what it returns. What a format offers of them is what it offers of each alone. Raises nothing
        itself.

        >>> done = t.evolve().add_column("zip", "string").add_column("seen", "date").execute()
        >>> t.schema.names
        ('id', 'city', 'price', 'zip', 'seen')
        """
        return Evolution(self.uri, lambda write, options: self._run(LOCAL, write, options))

    @located
    def set_nullable(
        self,
        name: str,
        nullable: bool,
        *,
        unchecked: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Lets a column or a field of a struct be null, or no longer: in Iceberg then only with `unchecked`, as rows
        that are there are not looked at, and readers rely on it; in Delta a constraint does it.

        Raises ColumnNotFoundError, InvalidArgumentError for a column that identifies rows, UnsupportedFeatureError,
        CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = NullabilitySet(name, nullable, unchecked)
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def set_default(
        self,
        name: str,
        default: object,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Sets what a column has in rows that are written without it (Spark SQL text, or a value); None: null. Rows
        that are there do not change. Asks for format version 3 of Iceberg, or Delta's feature `allowColumnDefaults`
        (`t.set_properties({"delta.feature.allowColumnDefaults": "supported"})`), whose columns of structs have none.

        Raises ColumnNotFoundError, InvalidArgumentError for a value that the column cannot hold,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = DefaultChanged(name, constant(default))
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def move_column(
        self,
        name: str,
        *,
        after: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Places a column or a field of a struct right `after` a sibling, else first. No file is rewritten.

        Raises ColumnNotFoundError, UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        return self._run(LOCAL, ColumnMoved(name, after), WriteOptions.of(message, metadata, None, dry_run))

    @located
    def set_identifiers(
        self,
        columns: str | Sequence[str],
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Says which columns identify a row: `upsert` goes by them. They are required, and no floats; none: nothing
        does. Whether rows differ in them is not checked.

        Raises ColumnNotFoundError, InvalidArgumentError for a column that cannot identify a row,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = IdentifiersSet(tuple(names("columns", [columns] if isinstance(columns, str) else columns)))
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def partition_by(
        self,
        *by: str,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
        **named: str,
    ) -> WriteResult:
        """Partitions new files by these columns and transforms, which may be given names: `t.partition_by("city",
        day="days(ts)")`; none: not at all. Files that are there stay as they are, and are read under the
        partitioning that they were written with.

        Raises ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError for a transform that does not accept its
        column, UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = PartitioningSet(lambda schema, _: partition_fields(by, schema, named))
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def cluster_by(
        self,
        *columns: str,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Says by which columns, or fields of structs, at most four, rows are to be clustered; none: by none. No file
        is rewritten here: `optimize` rewrites those that are not clustered so. For Delta (liquid clustering), in tables
        that are not partitioned.

        Raises ColumnNotFoundError, InvalidArgumentError for a type without an order, and for a partitioned table,
        UnsupportedFeatureError for Iceberg and Lance, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = ClusteringSet(tuple(names("columns", columns)) if columns else ())
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))

    @located
    def sort_by(
        self,
        *by: str,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Says in which order the rows of new files are: columns and transforms, with `asc` or `desc`, `nulls first` or
        `nulls last` (`t.sort_by("city", "bucket(4, id) desc nulls last")`); none: in no order. Every write sorts by it,
        and the metadata says so of its files; those that are there stay as they are. On Spark each file of an append
        has a range of the order, unless the table is partitioned or `write.distribution-mode` says otherwise.

        Raises ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError, UnsupportedFeatureError,
        CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        if not all(isinstance(text, str) for text in by):
            raise InvalidArgumentError(f"{by!r} are not texts", advice="pass columns and transforms as strings")
        write = SortOrderSet(lambda schema: sort_fields(by, schema))
        return self._run(LOCAL, write, WriteOptions.of(message, metadata, None, dry_run))
