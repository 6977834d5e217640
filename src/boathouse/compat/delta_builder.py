"""The builder of new tables, as in `delta.tables`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from boathouse.api.arguments import errors_at
from boathouse.api.create import create_table
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import LOCAL
from boathouse.api.named_tables import check_same, entry_of, under_name
from boathouse.api.opening import open_handle, path_text
from boathouse.api.partition_by import clustering_path, partition_fields
from boathouse.api.session_settings import with_defaults
from boathouse.bits.names import steps
from boathouse.compat.arguments import column_names, not_offered
from boathouse.engines.spark.schema import from_spark
from boathouse.engines.spark.user_errors import with_spark_errors
from boathouse.errors import ArgumentTypeError, InvalidArgumentError, TableNotFoundError
from boathouse.expr.parse import parse
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.run import run
from boathouse.ops.table.create import already_there
from boathouse.ops.table.replace_table import TableReplaced
from boathouse.storage import Stores
from boathouse.table.edits import CreateTable
from boathouse.types import DataType as OurType
from boathouse.types import Field, Identity, Schema
from boathouse.types.text import parse_type

T = TypeVar("T")


@dataclass
class IdentityGenerator:
    """The values of an identity column: `start`, `start + step`, ..."""

    start: int = 1
    step: int = 1


@dataclass
class _Described:
    """What the builder was told."""

    name: str | None = None
    location: str | None = None
    comment: str | None = None
    columns: list[Field] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    clustering: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)

    def table(self) -> CreateTable:
        schema = Schema(tuple(self.columns))
        partitions = partition_fields(self.partitions, schema) if self.partitions else ()
        properties, generated = dict(self.properties), dict(self.generated)
        return CreateTable(
            schema,
            partitions,
            properties,
            identities=dict(self.identities),
            comment=self.comment,
            generated=generated,
            cluster_by=tuple(clustering_path(schema, name) for name in self.clustering),
        )


@with_spark_errors
class DeltaTableBuilder(Generic[T]):
    """A table that is being described; nothing happens before `execute`."""

    def __init__(self, spark: SparkSession, mode: str, opened: Callable[[Handle, Sequence[str]], T]) -> None:
        """`opened` makes the result of a handle and the parts of the table's name."""
        self._spark, self._mode, self._opened = spark, mode, opened
        self._asked = _Described()

    def tableName(self, identifier: str) -> DeltaTableBuilder[T]:
        """The table's name in Spark's metastore, or ``delta.`/path` ``."""
        self._asked.name = _text(identifier, "Identifier")
        return self

    def location(self, location: str) -> DeltaTableBuilder[T]:
        """The folder of the table; without it Spark chooses that of a new name, and removes it with the name."""
        self._asked.location = _text(location, "Location")
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[T]:
        """The table's description."""
        self._asked.comment = _text(comment, "Table comment")
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder[T]:
        """One column; `generatedAlwaysAs` is an expression over the others, or an IdentityGenerator, as
        `generatedByDefaultAs`, which lets rows bring values of their own."""
        name = _text(colName, "Column name")
        if not isinstance(dataType, str | DataType):
            raise ArgumentTypeError(f"Column data type must be str or DataType, found {dataType!r}")
        if not isinstance(nullable, bool):
            raise ArgumentTypeError(f"Column nullable must be bool, found {nullable!r}")
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise InvalidArgumentError("generatedByDefaultAs cannot be set with generatedAlwaysAs")
        metadata = {}
        generator = generatedByDefaultAs if generatedAlwaysAs is None else generatedAlwaysAs
        if isinstance(generator, IdentityGenerator):
            self._asked.identities[name] = Identity(generator.start, generator.step, generatedAlwaysAs is None)
        elif generatedByDefaultAs is not None:
            raise ArgumentTypeError(f"generatedByDefaultAs must be IdentityGenerator, found {generatedByDefaultAs!r}")
        elif generatedAlwaysAs is not None:
            made_by = _text(generatedAlwaysAs, "Column generation expression")
            parse(made_by)
            self._asked.generated[name] = made_by
        if comment is not None:
            metadata["comment"] = _text(comment, "Column comment")
        type = parse_type(dataType) if isinstance(dataType, str) else _type_of(dataType)
        self._asked.columns.append(Field(name, type, nullable, doc=comment, metadata=metadata))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder[T]:
        """The columns of a schema."""
        if not isinstance(cols, StructType | list) or not all(isinstance(c, StructField) for c in cols):
            raise ArgumentTypeError(f"Schema must be StructType or a list of StructField, found {cols!r}")
        for f in cols:
            self.addColumn(f.name, f.dataType, f.nullable, comment=(f.metadata or {}).get("comment"))
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[T]:
        """The partition columns."""
        self._asked.partitions = list(column_names(cols, "Partitioning"))
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[T]:
        """The clustering columns, at most four, of a table without partition columns."""
        self._asked.clustering = list(column_names(cols, "Clustering"))
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[T]:
        """A table property."""
        if not isinstance(key, str) or not isinstance(value, str):
            raise ArgumentTypeError(f"Key and value of property must be string, found {key!r}: {value!r}")
        self._asked.properties[key] = value
        return self

    def execute(self) -> T:
        """Creates or replaces the table, in one commit. A new name is made before its table, and goes again if the
        table cannot be made; a name for a table that is there already needs the same columns.

        Raises AlreadyExistsError (create, or a name that is another's), TableNotFoundError (replace, or a database that
        is not there), SchemaError, ColumnNotFoundError, InvalidArgumentError, UnsupportedTypeError,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, StorageError.
        """
        name, location = self._asked.name, self._asked.location
        path = None if name is None else path_of(name)
        if name is None or path is not None:
            if location is None and path is None:
                raise InvalidArgumentError("neither tableName() nor location() is given", advice="call one of them")
            place = path_text(path or location or "")
            with errors_at(place):
                return self._opened(self._made(place), ())
        return self._opened(self._named(name, location), steps(name))

    def _named(self, name: str, location: str | None) -> Handle:
        entry = entry_of(self._spark, name, None if location is None else path_text(location))
        asked = self._wanted()
        uri = entry.uri if location is None else locate(path_text(location)).uri
        there = uri is not None and bool(formats_at(locate(uri), Stores()))
        if entry.free and self._mode == "replace":
            raise TableNotFoundError(f"there is no table {name!r} in Spark's metastore", advice="use createOrReplace()")
        if entry.free and there and self._mode.startswith("create") and self._mode != "createOrReplace":
            assert uri is not None
            handle = open_handle(uri, "delta")
            check_same(name, handle.snapshot, asked)
            return under_name(self._spark, entry, uri, asked.schema, asked.comment, lambda _: handle)

        def made(path: str) -> Handle:
            with errors_at(path):
                return self._made(path)

        return under_name(self._spark, entry, uri, asked.schema, asked.comment, made)

    def _wanted(self) -> CreateTable:
        """The table, with the properties that the session gives to every new one."""
        asked = self._asked.table()
        return replace(asked, properties=with_defaults(self._spark, asked.properties))

    def _made(self, path: str) -> Handle:
        exists = bool(formats_at(locate(path), Stores()))
        if not exists and self._mode != "replace":
            return create_table(path, "delta", self._wanted())
        if self._mode == "create":
            raise already_there(locate(path))
        handle = open_handle(path, "delta")
        if self._mode == "createIfNotExists":
            return handle
        if self._asked.identities:
            raise not_offered("replacing a table by one with identity columns", "create it at a new path")
        return Handle(run(handle, LOCAL, TableReplaced(self._wanted()), WriteOptions())[0])


def path_of(name: str) -> str | None:
    """The path of ``delta.`/path` ``, None for another name."""
    parts = steps(name.strip())
    return parts[1] if len(parts) == 2 and parts[0].lower() == "delta" and "/" in parts[1] else None


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} must be str, found {value!r}")
    return value


def _type_of(type: DataType) -> OurType:
    return from_spark(StructType([StructField("c", type)])).fields[0].type
