"""The metadata tables of a table, under the names of Iceberg's reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import located, names
from boathouse.api.engines import session, spark_engine
from boathouse.errors import ColumnNotFoundError
from boathouse.ops.handle import Handle
from boathouse.table.features import MetadataTables, required
from boathouse.table.inspection import check_name


class Inspect:
    """The metadata tables of one version of a table, as Arrow: `t.inspect.files()`, `t.inspect.to_spark("files")`.

    Names, columns and types are those of Iceberg's reference. Delta and Lance tables answer `files`, `data_files`,
    `history`, `snapshots`, `partitions` and `position_deletes`, Lance also `refs`, with the columns that they know; the
    others raise UnsupportedFeatureError. Every table raises CorruptTableError, MissingFileError, StorageError.

    >>> t.inspect.files().select(["record_count", "file_format"]).to_pylist()
    [{'record_count': 3, 'file_format': 'PARQUET'}]
    """

    def __init__(self, handle: Handle, spark: Any = None) -> None:
        self._handle = handle
        self._spark = spark

    @property
    def uri(self) -> str:
        """The root folder of the table, as a URI."""
        return self._handle.location.uri

    @located
    def to_arrow(self, name: str) -> pa.Table:
        """The metadata table called `name`: `t.inspect.to_arrow("files")` is `t.inspect.files()`.

        Raises InvalidArgumentError for another name, UnsupportedFeatureError for one that the format does not have,
        CorruptTableError, MissingFileError, StorageError.
        """
        return required(self._handle.snapshot, MetadataTables, "inspect").inspect(check_name(name))

    @located
    def to_spark(self, name: str, columns: Sequence[str] | None = None, spark: Any = None) -> Any:
        """A metadata table, or some of its columns, as a Spark DataFrame.

        Raises UnsupportedTypeError for a type that Spark does not have (a time of day in `readable_metrics`),
        ColumnNotFoundError, InvalidArgumentError without a session or for another name, UnsupportedFeatureError for one
        that the format does not have, CorruptTableError, MissingFileError, StorageError.
        """
        engine = spark_engine(session(self._spark if spark is None else spark))
        found = self.to_arrow(name)
        if columns is not None:
            wanted = names("columns", columns)
            missing = next((c for c in wanted if c not in found.column_names), None)
            if missing is not None:
                there = ", ".join(found.column_names)
                raise ColumnNotFoundError(f"`{name}` has no column `{missing}`", advice=f"its columns are {there}")
            found = found.select(wanted)
        return engine.source(found)

    def entries(self) -> pa.Table:
        """The entries of the manifests, those of deleted files included."""
        return self.to_arrow("entries")

    def files(self) -> pa.Table:
        """The live data and delete files."""
        return self.to_arrow("files")

    def data_files(self) -> pa.Table:
        """The live data files."""
        return self.to_arrow("data_files")

    def delete_files(self) -> pa.Table:
        """The live delete files."""
        return self.to_arrow("delete_files")

    def history(self) -> pa.Table:
        """Which version was made the current one, and when."""
        return self.to_arrow("history")

    def metadata_log_entries(self) -> pa.Table:
        """The metadata files that the table records, with the snapshot that was current."""
        return self.to_arrow("metadata_log_entries")

    def snapshots(self) -> pa.Table:
        """The retained snapshots and what made them."""
        return self.to_arrow("snapshots")

    def refs(self) -> pa.Table:
        """Branches and tags."""
        return self.to_arrow("refs")

    def manifests(self) -> pa.Table:
        """The manifests of this version."""
        return self.to_arrow("manifests")

    def partitions(self) -> pa.Table:
        """Rows, files and bytes of each partition."""
        return self.to_arrow("partitions")

    def all_data_files(self) -> pa.Table:
        """The data files of all retained snapshots; a file may be there more than once."""
        return self.to_arrow("all_data_files")

    def all_delete_files(self) -> pa.Table:
        """The delete files of all retained snapshots; a file may be there more than once."""
        return self.to_arrow("all_delete_files")

    def all_files(self) -> pa.Table:
        """The files of all retained snapshots; a file may be there more than once."""
        return self.to_arrow("all_files")

    def all_manifests(self) -> pa.Table:
        """The manifests of every retained snapshot, with the snapshot that lists each."""
        return self.to_arrow("all_manifests")

    def all_entries(self) -> pa.Table:
        """The entries of the manifests of all retained snapshots."""
        return self.to_arrow("all_entries")

    def position_deletes(self) -> pa.Table:
        """The positions of deleted rows, with the delete file that has them."""
        return self.to_arrow("position_deletes")

    def __repr__(self) -> str:
        h = self._handle
        return f"metadata tables of {h.snapshot.format} table {h.location}, version {h.snapshot.version}"
