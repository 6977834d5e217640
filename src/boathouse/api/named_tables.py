"""Names for tables in Spark's metastore.

The name is made before its table: Spark makes no managed table over files, and of two who make one name one fails. If
the table then cannot be made, the name goes again. Where a process ends in between, a name without a table stays: the
same statement, run again, makes the table there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from boathouse.api.detection import formats_at, locate
from boathouse.errors import AlreadyExistsError, CommitUnknownError
from boathouse.storage import Stores
from boathouse.table.edits import CreateTable
from boathouse.table.snapshot import Snapshot
from boathouse.types import DataType, Schema
from boathouse.types.data_types import unlabelled

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a name leads to: `uri` None if the name is free. `there`: one of this library's tables is at it."""

    name: str
    uri: str | None = None
    there: bool = False

    @property
    def free(self) -> bool:
        return self.uri is None


def entry_of(spark: Any, name: str, location: str | None = None) -> Entry:
    """What the name leads to; it may have no table yet, or none any more. Raises AlreadyExistsError for a view, a
    table of Spark's own, and one that lies elsewhere than at `location`."""
    names = import_module("boathouse.engines.spark.names")
    found = names.look_up(spark, name)
    if found is None:
        return Entry(name)
    if found.location is None:
        raise AlreadyExistsError(f"{name} is a view", advice="choose another name, or drop the view")
    uri = locate(found.location).uri
    there = bool(formats_at(locate(uri), Stores()))
    if not there and (found.provider or "").lower() != names.PROVIDER:
        raise AlreadyExistsError(
            f"{name} is a table of Spark's own, of {found.provider}", where=uri, advice="choose another name"
        )
    if location is not None and locate(location) != locate(uri):
        raise AlreadyExistsError(
            f"the name {name} is taken by what lies elsewhere than at {location}",
            where=uri,
            advice="leave the location out, choose another name, or drop the table",
        )
    return Entry(name, uri, there)


def check_same(name: str, snapshot: Snapshot, asked: CreateTable) -> None:
    """Raises AlreadyExistsError unless a table that is to get the name is what the statement says: its columns and
    partitioning, if the statement has any, and the properties that it names."""
    why = None
    if len(asked.schema) and _shape(asked.schema) != _shape(snapshot.schema):
        why = f"which has other columns: {', '.join(map(str, snapshot.schema))}"
    by, there = (
        [(f.source, f.transform) for f in fields] for fields in (asked.partition_by, snapshot.partitioning.current)
    )
    if why is None and by and by != there:
        why = "which is partitioned otherwise"
    other = next((k for k, v in asked.properties.items() if snapshot.properties.get(k) != v), None)
    if why is None and other is not None:
        why = f"in which the property {other} is {snapshot.properties.get(other)!r}"
    if why is not None:
        raise other_there(name, snapshot, why)


def other_there(name: str, snapshot: Snapshot, why: str) -> AlreadyExistsError:
    """The error for a table that cannot get the name by a statement."""
    uri = snapshot.context.location.uri
    return AlreadyExistsError(
        f"a table already exists there, {why}",
        where=uri,
        advice=f"to name it as it is, write CREATE TABLE {name} USING {snapshot.format} LOCATION '{uri}'; "
        "CREATE OR REPLACE TABLE replaces it",
    )


def _shape(schema: Schema) -> list[tuple[str, DataType, bool]]:
    return [(f.name, unlabelled(f.type), f.nullable) for f in schema]


def under_name(
    spark: Any, entry: Entry, location: str | None, schema: Schema, comment: str | None, make: Callable[[str], T]
) -> T:
    """Makes the name, if it is free, and then with `make` the table at the path that it leads to. Raises
    AlreadyExistsError, TableNotFoundError for a database that is not there, UnsupportedTypeError for a column that
    Spark has no type for, Spark's errors, and those of `make`."""
    if entry.uri is not None:
        return make(entry.uri)
    names = import_module("boathouse.engines.spark.names")
    place = None if location is None else locate(location).uri
    names.register(spark, entry.name, place, schema.fields, comment)
    uri = place
    try:
        if uri is None:
            uri = locate(names.look_up(spark, entry.name).location).uri
        return make(uri)
    except BaseException as error:
        # Spark removes the folder with a managed name.
        if not isinstance(error, CommitUnknownError) and not (uri is not None and formats_at(locate(uri), Stores())):
            names.forget(spark, entry.name)
        raise
