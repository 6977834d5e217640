"""The method of a table that takes data files in place."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.api.arguments import flag, located, strings
from boathouse.api.detection import locate
from boathouse.api.engines import engine_for
from boathouse.api.opening import path_text
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.ops.files.add_files import FilesAdded
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.table.units import AVRO, ORC, PARQUET

FORMATS: Final = {"parquet": PARQUET, "orc": ORC, "avro": AVRO}


class AddingFiles(Part):
    """The part of Table for files that are there already."""

    _handle: Handle
    _spark: Any

    @located
    def add_files(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        partition_filter: Mapping[str, str | None] | None = None,
        *,
        format: str | None = None,
        check_duplicate_files: bool = True,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Adds data files where they are, in one commit: `source` is a folder, or files, of Parquet, ORC or Avro. No
        file is read but for its footer, and none is moved or rewritten: from now on they are the table's, and its
        maintenance removes them when no version needs them. For Iceberg; `format` is `parquet`, `orc` or `avro`, by
        default each file shows its own.

        Columns are found by name, at every depth: a table that has no name mapping (`schema.name-mapping.default`) gets
        one by this commit. Files with field ids are found by these. A column that a file lacks is null; one that the
        table lacks is refused, and so is a type that is not the column's or narrower. In a table partitioned by columns
        the folders' names give the values (`city=Kiel/a.parquet`), and `partition_filter`, as `{"city": "Kiel"}`, says
        which partitions are added. Statistics are those of the footers. A file that the table has is refused, and one
        that it had and deleted, too, unless `check_duplicate_files=False`. Files and folders whose names begin with `_`
        or `.` are left out.

        Raises NotFoundError for no files, InvalidArgumentError for folders that do not fit the partitioning, and for a
        file that is there already, SchemaMismatchError and UnsupportedTypeError, which name the file,
        UnsupportedFeatureError for a table partitioned by transforms, and other formats, CorruptTableError,
        ForeignPathError for files in another kind of store, CommitConflictError, CommitUnknownError, ReadOnlyError,
        StorageError; nothing was written then.

        >>> import os, pyarrow.parquet as pq
        >>> os.makedirs("drop")
        >>> pq.write_table(pa.table({"id": [1, 2], "city": ["Kiel", "Oslo"]}), "drop/a.parquet")
        >>> ports = bh.create("lake/ports", "id bigint, city string", format="iceberg")
        >>> done = ports.add_files("drop")
        >>> done.files_added, done.rows_added, ports.count()
        (1, 2, 2)
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        given = [source] if isinstance(source, str | os.PathLike) else source
        if not isinstance(given, Sequence) or not given:
            raise InvalidArgumentError(f"{source!r} are no files", advice="pass a folder, a file, or a list of files")
        if format is not None and format not in FORMATS:
            raise InvalidArgumentError(f"format={format!r} is not one of files", advice="it is parquet, orc or avro")
        write = FilesAdded(
            tuple(locate(path_text(place)).uri for place in given),
            {} if partition_filter is None else strings("partition_filter", partition_filter, nulls=True),
            None if format is None else FORMATS[format],
            flag("check_duplicate_files", check_duplicate_files),
        )
        self._handle.check_open()
        return self._run(engine_for(None, self._spark), write, options, zoned=True)
