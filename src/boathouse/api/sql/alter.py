"""ALTER TABLE in sql(): partition fields, the order of writes and identifier fields of Iceberg tables, with the meaning
that they have in Iceberg's extensions of Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from boathouse.api.engines import LOCAL
from boathouse.api.partition_by import partition_fields, sort_fields
from boathouse.api.sql.columns import nothing
from boathouse.api.sql.tables import Tables
from boathouse.bits.names import steps
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.expr.alter_table import AlterClustering, AlterIdentifiers, AlterPartitionFields, AlterWriteOrder
from boathouse.ops.options import WriteOptions
from boathouse.ops.schema.alter_columns import column_path
from boathouse.ops.table.layout import PartitioningSet, SortOrderSet
from boathouse.table.features import Identifiers
from boathouse.types import PartitionField, PartitionSpec, Schema

_DISTRIBUTION: Final = "write.distribution-mode"


def partition(tables: Tables, s: AlterPartitionFields) -> Any:
    """ADD, DROP or REPLACE PARTITION FIELD."""
    write = PartitioningSet(lambda schema, current: _fields(s, schema, current))
    tables.table(s.table)._run(LOCAL, write, WriteOptions())
    return nothing(tables)


def order(tables: Tables, s: AlterWriteOrder) -> Any:
    """WRITE ORDERED BY, LOCALLY ORDERED BY, UNORDERED, DISTRIBUTED BY PARTITION."""
    mode = "hash" if s.distributed else "none" if s.locally else "range"
    write = SortOrderSet(lambda schema: sort_fields(s.by, schema), {_DISTRIBUTION: mode})
    tables.table(s.table)._run(LOCAL, write, WriteOptions())
    return nothing(tables)


def identifiers(tables: Tables, s: AlterIdentifiers) -> Any:
    """SET or DROP IDENTIFIER FIELDS."""
    table = tables.table(s.table)
    if not s.drop:
        table.set_identifiers(list(s.columns))
        return nothing(tables)
    found = table._handle.snapshot.offers(Identifiers)
    kept = [] if found is None else list(found.columns)
    for name in s.columns:
        path = column_path(name, table.schema)
        if path not in kept:
            raise InvalidArgumentError(f"`{'.'.join(path)}` does not identify rows: it is no identifier field")
        kept.remove(path)
    table.set_identifiers([".".join(f"`{p}`" for p in path) for path in kept])
    return nothing(tables)


def clustering(tables: Tables, s: AlterClustering) -> Any:
    """CLUSTER BY."""
    tables.table(s.table).cluster_by(*s.columns)
    return nothing(tables)


def _fields(s: AlterPartitionFields, schema: Schema, current: PartitionSpec) -> tuple[PartitionField, ...]:
    kept = [f for f in current if f.transform.name != "void"]
    if s.gone is not None:
        kept.remove(_named(s.gone, schema, kept))
    if s.added is None:
        return tuple(kept)
    (new,) = partition_fields([s.added], schema)
    new = replace(new, name=s.name or _name(new))
    for f in kept:
        if (f.source, f.transform) == (new.source, new.transform) or f.name == new.name:
            raise InvalidArgumentError(
                f"the table is partitioned by {f.transform} of `{'.'.join(f.source)}`, called {f.name}, already",
                advice="give the field another name" if f.name == new.name else "there is nothing to add",
            )
    return (*kept, new)


def _named(text: str, schema: Schema, fields: Sequence[PartitionField]) -> PartitionField:
    """The field of this name, or of this transform."""
    path = steps(text) if "(" not in text else ()
    for f in fields:
        if len(path) == 1 and f.name == path[0]:
            return f
    with suppress(ColumnNotFoundError):
        (wanted,) = partition_fields([text], schema)
        for f in fields:
            if (f.source, f.transform) == (wanted.source, wanted.transform):
                return f
    there = ", ".join(f.name for f in fields)
    raise InvalidArgumentError(
        f"the table is not partitioned by {text}", advice=f"its partition fields are {there}" if there else None
    )


def _name(field: PartitionField) -> str:
    """The name that Iceberg's own extension gives a field: with the number of a transform."""
    if field.transform.name == "identity":
        return ".".join(field.source)
    return field.name if field.transform.parameter is None else f"{field.name}_{field.transform.parameter}"
