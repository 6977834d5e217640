"""Picklable bundles of work: everything that an executor needs to read some units, or to write conforming files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from boathouse.arrow.schema import COMMENT, to_arrow_type
from boathouse.errors import MissingFileError, NotFoundError
from boathouse.expr.tree import Expr
from boathouse.parquet.matching import Matching
from boathouse.table.metadata_columns import FILE, METADATA_COLUMNS, PARTITION, POSITION
from boathouse.table.units import Content
from boathouse.types import DataType, Field, PartitionSpec, Schema, SortField, StructType
from boathouse.types.identity import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """One column to read: found by `field_id` if given, else by `physical` path; absent gives `default`.

    `partition` is the id of a partition field that holds the column's value for every row of a unit whose
    spec is in `constant_in`; such a column is not searched in the file. `constant_as` are other specs, each with the
    field that does so there. `doc` is the table's comment on it.
    """

    name: str
    type: DataType
    nullable: bool = True
    physical: tuple[str, ...] | None = None
    field_id: int | None = None
    default: object = None
    partition: int | None = None
    constant_in: tuple[int, ...] = ()
    constant_as: tuple[tuple[int, int], ...] = ()
    doc: str | None = None

    def partition_in(self, spec: int) -> int | None:
        """The partition field that holds the column's value in units of this spec."""
        return self.partition if spec in self.constant_in else dict(self.constant_as).get(spec)


@dataclass(frozen=True, slots=True)
class PartitionMember:
    """A member of the metadata column `_partition`: the partition field `id`, which these `specs` have."""

    name: str
    type: DataType
    id: int
    specs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """How units of one snapshot are read.

    `columns` holds all needed columns, including those for `where` and the keys of equality deletes; `output` names
    those to return, followed by the metadata columns `hidden`, some of which have the same value in all units
    (`constants`), and some of which files may store (`stored`: in the column of that name); `partition` are the
    members of `_partition`. `where` is bound to the columns and filters rows. `matching` says how fields are found in
    Parquet files, and `diverged` that names and field ids of some files differ from the table's. `version` describes
    the version for messages. `variants`: a column of the table is a variant, or has one, whether it is needed or not.
    `native` is the format's own, which only its tasks read.
    """

    format: str
    files: DataFiles
    columns: tuple[ReadColumn, ...]
    output: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    where: Expr | None = None
    matching: Matching = field(default_factory=Matching)
    diverged: bool = True
    constants: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)
    partition: tuple[PartitionMember, ...] = ()
    version: str = "this version of the table"
    variants: bool = False
    native: Any = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the batches that are returned, with the comments of columns."""
        by_name = {c.name: c for c in self.columns}
        fields = [_arrow_field(by_name[n]) for n in self.output]
        hidden = [pa.field(h, to_arrow_type(self.type_of(h)), METADATA_COLUMNS[h].nullable) for h in self.hidden]
        return pa.schema([*fields, *hidden])

    def type_of(self, hidden: str) -> DataType:
        """The type of a metadata column."""
        if hidden == PARTITION:
            return StructType(tuple(Field(m.name, m.type) for m in self.partition))
        return METADATA_COLUMNS[hidden].type


def _arrow_field(c: ReadColumn) -> pa.Field:
    comment = {} if c.doc is None else {COMMENT: c.doc}
    return pa.field(c.name, to_arrow_type(c.type, comments=True), c.nullable, comment or None)


@contextmanager
def data_files_of(version: str) -> Iterator[None]:
    """Wraps reading data files: a missing one is reported together with the version. Raises MissingFileError."""
    try:
        yield
    except NotFoundError as error:
        raise missing_data_file(version, error.where) from error


def missing_data_file(version: str, uri: str | None) -> MissingFileError:
    """The error for a missing data file."""
    return MissingFileError(f"{version} needs a data file that is missing", where=uri)


def version_words(version: object, uri: str) -> str:
    """A version of a table, for `ReadSpec.version`."""
    return f"version {version} of the table at {uri}"


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Some units of a plan: FILES rows (no statistics), and the DELETES rows that their `deletes` refer to.

    `selected` are, if given, the positions to read of each unit (portable 64-bit roaring bitmaps; None: every row).
    """

    read: ReadSpec
    units: pa.Table
    deletes: pa.Table
    selected: tuple[bytes | None, ...] = ()

    @property
    def cost(self) -> int:
        """Bytes on disk, for balancing tasks."""
        return sum(size or 0 for size in self.units.column("size").to_pylist())


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A constraint of the table as it is stored: Spark SQL text, which must be true for every new row.

    `column` is the generated column that it defines; it goes with it.
    """

    name: str
    sql: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column whose values the table computes where they are not given, by Spark SQL text in the row's columns.

    If `generated`, it is computed again whenever the row changes; otherwise it is a default of inserted rows.
    """

    name: str
    sql: str
    generated: bool


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """A bigint column whose values the table gives: `next`, `next + step`, ..., which may be beyond bigint.

    `explicit`: rows may bring a value of their own.
    """

    name: str
    next: int
    step: int
    explicit: bool

    def value(self, ordinal: int) -> int | None:
        """The value that many steps after the next one; None beyond bigint."""
        found = self.next + self.step * ordinal
        return found if INT64_MIN <= found <= INT64_MAX else None


@dataclass(frozen=True, slots=True)
class Rule:
    """A bound predicate that every new row must satisfy, and its name for messages."""

    name: str
    predicate: Expr
    advice: str | None = None


Distribution = Literal["none", "partition", "range"]
"""Rows go to workers as they come, those of a partition to one, or each worker gets a range of the order."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """How conforming files are written.

    `content` is what the files hold; those of changes, positions and keys have columns of their own (`recording` of a
    format, `positions_of`, `keys_of`). `schema` is the table's, and the batches have exactly its order and types.
    `spec` partitions them. `directory` is the URI below which the format names its files. `conditions` are the table's
    constraints; `rules` are these and the operation's own, bound, and are checked by the sink. `computed` are the
    columns that operations fill before the sink, `identities` those that the sink fills in inserted rows without a
    value.
    `absent` are the values that fields of structs have in rows whose structs lack them, by field id.
    `materialized`: files have the partition columns too, in a format that otherwise leaves them out. `options` are the
    format's own, plain picklable values. `changes` is how files of changed rows are written, if the table wants them:
    its schema has `_change_type` as the last column. `carried` are columns that stay with a row when it is copied or
    updated, which files store as the format's reserved fields: each has the name of a metadata column. Rows to write
    have them after the table's own columns (`rows`); null: the row is new, or has changed. `placed` are those that say
    where a row was, which rewrites carry too that keep the order of rows. `positions_per`: a file of
    the places of deleted rows is for one data file, or for those of a partition. `order` is that of the rows in each
    file; `distribution` is what the table says of how they meet in workers. `codec` is that of the files of this
    write, None: as the table says; not every format takes one. `beside`: a file may have others in the folder of its
    name without the suffix, which go with it.
    """

    format: str
    files: DataFiles
    schema: Schema
    spec: PartitionSpec
    directory: str
    write_id: str
    target_bytes: int = 128 << 20
    target_rows: int | None = None
    max_open_files: int = 32
    conditions: tuple[RowCondition, ...] = ()
    rules: tuple[Rule, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    identities: tuple[IdentityColumn, ...] = ()
    absent: Mapping[int, Any] = field(default_factory=dict)
    materialized: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: WriteContext | None = None
    carried: tuple[Field, ...] = ()
    placed: tuple[Field, ...] = ()
    content: Content = "data"
    positions_per: Literal["file", "partition"] = "file"
    order: tuple[SortField, ...] = ()
    distribution: Distribution | None = None
    codec: str | None = None
    takes_codec: bool = True
    beside: bool = False

    @property
    def rows(self) -> Schema:
        """The columns of the rows to write: the table's, and what they carry."""
        return Schema((*self.schema.fields, *self.carried)) if self.carried else self.schema

    @property
    def ending(self) -> str:
        """How the name of each file of this write ends, before its suffix, and that of no file of another write: the
        files of tasks that told nothing are found by it."""
        return f"-{self.write_id}"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The metadata columns to read of rows that are copied."""
        return tuple(f.name for f in self.carried)


def positions_of(context: WriteContext, spec: PartitionSpec) -> WriteContext:
    """How files of the places of deleted rows are written, for data files of a partition spec."""
    places = (METADATA_COLUMNS[name] for name in (FILE, POSITION))
    schema = Schema(tuple(Field(c.name, c.type, c.nullable) for c in places))
    return replace(_plain(context), schema=schema, spec=spec, content="positions")


def keys_of(context: WriteContext, keys: Schema, spec: PartitionSpec) -> WriteContext:
    """How files of the keys of deleted rows are written: columns of the table, each key once."""
    return replace(_plain(context), schema=keys, spec=spec, content="keys")


def _plain(context: WriteContext) -> WriteContext:
    return replace(
        context, conditions=(), rules=(), computed=(), identities=(), carried=(), placed=(), changes=None, order=()
    )


class FileWriter(Protocol):
    """One data file being written; a format's FileWriters open them."""

    @property
    def bytes_written(self) -> int:
        """The approximate size of the file so far, for rolling."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows; columns are those of `WriteContext.rows`, partition columns included."""

    def close(self) -> ClosedFile:
        """Finishes the file."""

    def abort(self) -> None:
        """Leaves nothing behind; never raises."""


class ClosedFile(Protocol):
    """A finished data file, in the representation of the FileWriters that opened it."""

    @property
    def paths(self) -> Sequence[str]:
        """The URIs of stored files, to be deleted if the write fails."""


class FileWriters(Protocol):
    """The files of one write: shared parts are computed once, and files are described many at a time."""

    def open(self, partition: Mapping[int, object]) -> FileWriter:
        """A new file for rows that all have these partition values (by partition field id)."""

    def outcomes(self, closed: Sequence[Any]) -> pa.Table:
        """OUTCOMES: a row for each of these files, whose kind is that of the context's content, in order; there is at
        least one."""


class TaskModule(Protocol):
    """The interface of a format's `tasks` module to executors. It imports no object store and no parser."""

    def read(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        """The rows of the task's units, in order, with the schema `task.read.schema`."""

    def load_keys(self, read: ReadSpec, delete: Mapping[str, Any], keys: Sequence[ReadColumn]) -> pa.Table:
        """The key columns of an equality delete, a row of DELETES; only formats that have such deletes offer it."""

    def writers(self, context: WriteContext) -> FileWriters:
        """The files of a write, opened one by one."""

    def outcomes_schema(self, context: WriteContext) -> pa.Schema:
        """The schema of OUTCOMES for this context: `table.units.outcomes_schema` with the format's `native`."""
