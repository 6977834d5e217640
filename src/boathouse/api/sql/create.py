"""CREATE TABLE, REPLACE TABLE and DROP TABLE in sql(): at a path, by a name of Spark's metastore, or in a catalog."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from boathouse import registry
from boathouse.api.catalog import catalog, create_in
from boathouse.api.create import create_table
from boathouse.api.delta_frames import clone_frame
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import spark_engine
from boathouse.api.named_tables import Entry, check_same, entry_of, other_there, under_name
from boathouse.api.opening import open_handle
from boathouse.api.partition_by import partition_fields
from boathouse.api.sql.columns import nothing
from boathouse.api.sql.new_table import Wanted, wanted
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidArgumentError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.expr.create_statement import DropTable, Head, NewTable, drop_table, head, new_table
from boathouse.expr.other_statements import RenameTo
from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statements import Parser
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.replace_table import TableReplaced
from boathouse.storage import Stores
from boathouse.table.edits import CreateTable
from boathouse.table.features import Relocation
from boathouse.types import Schema

_ANY: Final = "boathouse"
_FILES: Final = ("parquet", "orc", "avro")


def create(tables: Tables, sql: str, tokens: Sequence[Token]) -> Any:
    """The result of CREATE, REPLACE or DROP TABLE; None for another statement, and one about a table of Spark's.

    Raises what the making of the table raises; then neither the table nor its name is there.
    """
    dropped = drop_table(Parser(sql, tokens))
    if dropped is not None:
        return _drop(tables, dropped)
    found = head(Parser(sql, tokens), tokens)
    if found is None or not _is_ours(tables, found):
        _warn(found)
        return None
    statement = new_table(Parser(sql, tokens), found)
    place = tables.named_place(statement.table)
    cloned = None
    if place is not None and place.catalog is not None:
        _in_catalog(tables, statement, place.catalog, place.uri)
    elif place is not None:
        cloned = _at_path(tables, statement, place.uri, place.format)
    else:
        cloned = _by_name(tables, statement)
    if cloned is None or statement.clone is None:
        return nothing(tables)
    source = tables.table(statement.clone, statement.at).detail()
    return clone_frame(tables.spark, cloned, source["files"], source["bytes"])


def _is_ours(tables: Tables, s: Head) -> bool:
    """Whether the statement makes a table of this library's."""
    if tables.named_place(s.table) is not None:
        return True
    if not tables.in_session_catalog(s.table):
        return False
    using = s.using
    if using is None and s.source is not None:
        return tables.find(s.source) is not None
    if using is None:
        using = str(tables.spark.conf.get("spark.sql.sources.default", "parquet")).lower()
    if using not in (*registry.FORMATS, _ANY):
        return False
    return using not in str(tables.spark.conf.get("spark.sql.catalog.spark_catalog", "")).lower()


def _warn(s: Head | None) -> None:
    if s is None or s.location is None or s.using not in _FILES:
        return
    there = formats_at(locate(s.location), Stores())
    if there:
        warnings.warn(
            f"{s.table} will read the files of the {there[0]} table at {s.location} as they are: rows that were "
            f"deleted or replaced come back, and what Spark writes is not part of the table. Write USING {there[0]}",
            UserWarning,
            stacklevel=4,
        )


# ---- by name


def _by_name(tables: Tables, s: NewTable) -> WriteResult | None:
    """What a clone did; None for another table, and where nothing is to be done."""
    name = joined(s.table.tokens)
    entry = _entry(tables, s, name)
    if entry is None:
        return None
    if entry.free and s.mode == "replace":
        raise TableNotFoundError(f"there is no table {name} in Spark's metastore", advice="write CREATE OR REPLACE")
    uri = entry.uri if s.location is None else locate(s.location).uri
    there = () if uri is None else formats_at(locate(uri), Stores())
    format = _format(s, None, there)
    replaces = bool(there) and s.mode in ("replace", "create-or-replace")
    if there and not replaces:
        assert uri is not None
        table = _known(tables, s, uri, format)
        under_name(tables.spark, entry, uri, table.schema, s.comment, lambda _: None)
        return None
    asked = wanted(tables, s, format)
    make = _replace if replaces else _make
    schema = asked.table.schema
    return under_name(tables.spark, entry, uri, schema, s.comment, lambda at: make(tables, s, asked, at, format))


def _entry(tables: Tables, s: NewTable, name: str) -> Entry | None:
    """What the name leads to; None if nothing is to be done."""
    try:
        entry = entry_of(tables.spark, name, s.location)
    except AlreadyExistsError:
        if s.mode == "create-if-absent":
            return None
        raise
    if not entry.there or s.mode in ("replace", "create-or-replace"):
        return entry
    if s.mode == "create-if-absent":
        return None
    raise AlreadyExistsError(
        f"the table {name} already exists",
        where=entry.uri,
        advice="write IF NOT EXISTS to keep it, or CREATE OR REPLACE",
    )


def _known(tables: Tables, s: NewTable, uri: str, format: str) -> Table:
    """The table that is there and gets the name, if it is what the statement says. Raises AlreadyExistsError."""
    table = Table(open_handle(uri, format or None, spark=tables.spark), tables.spark)
    name, snapshot = joined(s.table.tokens), table._handle.snapshot
    if s.query is not None or s.like is not None or s.clone is not None:
        raise other_there(name, snapshot, "which this statement would write")
    if s.columns:
        check_same(name, snapshot, wanted(tables, s, format).table)
        return table
    by = partition_fields(s.partition_by, table.schema)
    check_same(name, snapshot, CreateTable(Schema(()), by, dict(s.properties)))
    return table


# ---- at a path


def _at_path(tables: Tables, s: NewTable, uri: str, given: str | None) -> WriteResult | None:
    if s.location is not None and locate(s.location) != locate(uri):
        raise InvalidArgumentError(f"{s.table} is a path, and LOCATION another", advice="leave LOCATION out")
    there = formats_at(locate(uri), Stores())
    if there and s.mode == "create-if-absent":
        return None
    if there and s.mode == "create":
        raise AlreadyExistsError("a table already exists", where=uri, advice="write IF NOT EXISTS or CREATE OR REPLACE")
    if not there and s.mode == "replace":
        raise TableNotFoundError("there is no table to replace", where=uri, advice="write CREATE OR REPLACE")
    format = _format(s, given, there)
    asked = wanted(tables, s, format)
    return (_replace if there else _make)(tables, s, asked, uri, format)


def _format(s: NewTable, given: str | None, there: Sequence[str]) -> str:
    """The format of the table: what the name or USING says, or what is there. Raises InvalidArgumentError."""
    using = None if s.using in (None, _ANY) else s.using
    if using is not None and using not in registry.FORMATS:
        raise InvalidArgumentError(f"USING {using} is no format of tables", advice="delta, iceberg and lance are")
    if given is not None and using not in (None, given):
        raise InvalidArgumentError(f"{s.table} is a {given} table, and USING says {using}", advice="leave USING out")
    chosen = given or using
    if there and chosen is not None and chosen not in there:
        raise UnsupportedFeatureError(
            f"the table that is there is {there[0]}, and {chosen} is asked for",
            advice="drop it and remove its folder first, or write into another",
        )
    return chosen or (there[0] if there else "")


def _make(tables: Tables, s: NewTable, asked: Wanted, uri: str, format: str) -> WriteResult | None:
    """A table where none is."""
    if asked.clone is not None:
        return asked.clone.clone(uri, properties=dict(s.properties) or None)
    engine = spark_engine(tables.spark)
    create_table(uri, format or asked.format, asked.table, source=asked.source, engine=engine)
    return None


def _replace(tables: Tables, s: NewTable, asked: Wanted, uri: str, format: str) -> WriteResult | None:
    """What is there becomes another table, as a new version."""
    if asked.clone is not None:
        return asked.clone.clone(uri, replace=True, properties=dict(s.properties) or None)
    _replaced(tables, Table(open_handle(uri, format, spark=tables.spark), tables.spark), asked)
    return None


def _replaced(tables: Tables, table: Table, asked: Wanted) -> None:
    if asked.table.identities:
        raise UnsupportedFeatureError(
            "replacing a table by one with identity columns is not offered",
            where=table.uri,
            advice="drop the table, and create it",
        )
    table._run(spark_engine(tables.spark), TableReplaced(asked.table, asked.source), WriteOptions())


# ---- in a catalog


def _in_catalog(tables: Tables, s: NewTable, name: str, identifier: str) -> None:
    """A table of a catalog of PyIceberg's configuration; rows are its second commit."""
    format = _format(s, "iceberg", ())
    made = catalog(name)
    there = _table_of(tables, s)
    if there is not None and s.mode == "create-if-absent":
        return
    if there is not None and s.mode == "create":
        raise AlreadyExistsError(f"the table {s.table} already exists", advice="write IF NOT EXISTS")
    if there is None and s.mode == "replace":
        raise TableNotFoundError(f"there is no table {s.table}", advice="write CREATE OR REPLACE")
    asked = wanted(tables, s, format)
    if asked.clone is not None:
        raise UnsupportedFeatureError("a shallow clone of an Iceberg table is not offered", advice="write AS SELECT")
    if there is not None:
        _replaced(tables, there, asked)
        return
    create_in(made, identifier, asked.table, s.location)
    if asked.source is None:
        return
    try:
        made.open(identifier, spark=tables.spark).append(asked.rows)
    except CommitUnknownError:
        raise
    except BaseException:
        made.drop(identifier)
        raise


def _table_of(tables: Tables, s: NewTable) -> Table | None:
    try:
        return tables.table(s.table)
    except TableNotFoundError:
        return None


# ---- drop


def _drop(tables: Tables, s: DropTable) -> Any:
    """None for a table of Spark's metastore: Spark drops the name, and the files of a managed table."""
    place = tables.named_place(s.table)
    if place is None:
        return None
    if place.catalog is None:
        raise UnsupportedFeatureError(
            "a table at a path has no name to be dropped",
            where=place.uri,
            advice="remove its folder, or delete its rows: TRUNCATE TABLE",
        )
    try:
        catalog(place.catalog).drop(place.uri, s.purge)
    except TableNotFoundError:
        if not s.if_exists:
            raise
    return nothing(tables)


def renamed(tables: Tables, s: RenameTo) -> Any:
    """ALTER TABLE ... RENAME TO: another name in the same catalog. Spark moves the folder of a managed table, which one
    whose metadata has whole paths does not survive: raises UnsupportedFeatureError."""
    place = tables.find(s.table)
    assert place is not None
    if place.catalog is not None:
        first, *rest = s.new.parts
        to = ".".join(rest) if first == place.catalog else ".".join(s.new.parts)
        catalog(place.catalog).rename(place.uri, to if "." in to else f"{place.uri.rpartition('.')[0]}.{to}")
        return nothing(tables)
    name = joined(s.table.tokens)
    if tables.named_place(s.table) is not None:
        raise UnsupportedFeatureError("a table at a path has no name to be changed", where=place.uri)
    entry = import_module("boathouse.engines.spark.names").look_up(tables.spark, name)
    table = tables.table(s.table)
    if entry is not None and entry.managed and table._handle.snapshot.offers(Relocation) is not None:
        raise UnsupportedFeatureError(
            f"Spark would move the files of {name}, whose metadata has their paths",
            where=place.uri,
            advice=f"write CREATE TABLE {s.new} USING {table.format} AS SELECT * FROM {name}, then drop {name}",
        )
    return tables.spark.sql(f"ALTER TABLE {name} RENAME TO {joined(s.new.tokens)}")
