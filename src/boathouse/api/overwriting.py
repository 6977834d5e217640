"""Which overwrite the arguments of a call mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from boathouse.api.arguments import flag
from boathouse.api.conditions import Condition, condition
from boathouse.api.partition_by import partition_fields
from boathouse.errors import InvalidArgumentError, SchemaError
from boathouse.ops.rows.overwrite import Overwrite, OverwriteWhere
from boathouse.ops.rows.overwrite_partitions import OverwritePartitions
from boathouse.ops.write import Source, Write
from boathouse.table.engine import Engine

Partitions = Literal["dynamic", "static"]


def overwriting(
    engine: Engine,
    source: Source,
    where: Condition | None,
    overwrite_schema: bool,
    partition_by: str | Sequence[str] | None,
    merge_schema: bool,
    partitions: Partitions | None,
) -> Write:
    """The overwrite of these arguments. Raises SchemaError and InvalidArgumentError if they exclude each other."""
    partition_mode(partitions)
    if flag("merge_schema", merge_schema) and overwrite_schema:
        raise SchemaError("merge_schema= and overwrite_schema= exclude each other", advice="pass one of them")
    if partition_by is not None and not flag("overwrite_schema", overwrite_schema):
        raise SchemaError("partition_by= needs overwrite_schema=True", advice="pass it too, or leave both out")
    if where is not None and overwrite_schema:
        raise SchemaError("overwrite_schema= replaces the whole table", advice="leave out where=, or overwrite_schema=")
    if partitions == "dynamic" and overwrite_schema:
        raise SchemaError("overwrite_schema= replaces the whole table", advice="leave out partitions='dynamic', or it")
    if partitions == "dynamic" and where is not None:
        raise InvalidArgumentError(
            "where= and partitions='dynamic' both say which rows are replaced", advice="leave one of them out"
        )
    if where is not None:
        return OverwriteWhere(source, condition(where, source.schema), merge_schema)
    by = None if partition_by is None else partition_fields(partition_by, source.schema)
    if partitions == "dynamic" or (partitions is None and engine.replaces_partitions):
        return OverwritePartitions(source, merge_schema, overwrite_schema, by, asked=partitions is not None)
    return Overwrite(source, merge_schema, overwrite_schema, by)


def partition_mode(partitions: Partitions | None) -> Partitions | None:
    """`partitions=` as given. Raises InvalidArgumentError."""
    if partitions not in (None, *get_args(Partitions)):
        raise InvalidArgumentError(f"partitions={partitions!r}", advice="pass 'dynamic', or 'static'")
    return partitions
