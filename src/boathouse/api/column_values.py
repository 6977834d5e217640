"""The methods of a table that add columns with values, and that change the type of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import located, names
from boathouse.api.columns import named, typed
from boathouse.api.conditions import Condition
from boathouse.api.engines import LOCAL, engine_for, is_dataframe
from boathouse.api.merge import texts as value_texts
from boathouse.api.schemas import as_schema
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.schema.column_values import ByExpressions, ByFunction, ByKeys, ColumnCast, ColumnsComputed, Given


class ColumnValues(Part):
    """What is written are the columns alone, in files beside those that are there: Lance tables have these."""

    _spark: Any

    @located
    def add_columns(
        self,
        values: Mapping[str, Condition] | Callable[[pa.RecordBatch], Any] | Any,
        *,
        on: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        schema: Any = None,
        replace: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Adds columns with values for the rows that are there; no file is rewritten. `values` are Spark SQL text by
        the names of new columns; or a function that gets a RecordBatch of `columns` (None: all) and gives the new
        columns of these rows as Arrow data, a pandas frame or a dict of arrays; or, with the keys `on`, data whose
        other columns are added: a row of the table gets those of the row with equal keys, null where there is none.
        With `replace` columns that are there get the values in place of theirs, in every row, and keep their types.

        The function is called for one batch after another, of at most 65,536 rows, and again after a concurrent change
        of the table; without `schema`, the new columns and their types, once more for the first rows. On Spark it runs
        in the executors. Data `on` keys is held in memory, and joined in process.

        Raises UnsupportedFeatureError for tables of another format, ExpressionError, ColumnNotFoundError,
        EvaluationError if an expression fails on a row, ConstraintViolationError if the data has a key twice,
        SchemaMismatchError, InvalidArgumentError for a name that exists, and for `replace` with keys,
        CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> places = bh.create("lake/places", "id bigint, city string", format="lance")
        >>> done = places.append([{"id": 1, "city": "Kiel"}, {"id": 2, "city": "Bergen"}])
        >>> done = places.add_columns({"name": "upper(city)", "letters": "length(city)"})
        >>> done = places.add_columns(pa.table({"id": [2], "country": ["NO"]}), on="id")
        >>> done = places.add_columns(lambda rows: {"half": [i / 2 for i in rows["id"].to_pylist()]}, columns=["id"])
        >>> done = places.add_columns({"letters": "letters + 1"}, replace=True)
        >>> places.to_arrow().to_pylist()[0]
        {'id': 1, 'city': 'Kiel', 'name': 'KIEL', 'letters': 5, 'country': None, 'half': 0.5}
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        given = _given(values, on, columns, schema)
        if replace and isinstance(given, ByKeys):
            raise InvalidArgumentError(
                "replace= with the keys on=: rows without a match would lose their values",
                advice="merge the data: t.merge(data, on=...).when_matched_update({...})",
            )
        engine = LOCAL if isinstance(given, ByKeys) else engine_for(None, self._spark)
        return self._run(engine, ColumnsComputed(given, replace), options, True)

    @located
    def cast_column(
        self,
        name: str,
        type: Any,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Gives a column another type, wider or not: its values are cast, as Spark casts them with ANSI on, and written
        beside the old ones, which nothing reads any more; those of a field of structs (`s.x`) alone. `type` is Spark
        SQL text or a DataType.

        Raises ColumnNotFoundError, ExpressionError for types of which none is cast to the other, EvaluationError if a
        value does not fit, UnsupportedFeatureError for what is in a list or map, and for tables of another format,
        UnsupportedTypeError, CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> notes = bh.create("lake/notes", "id string", format="lance")
        >>> done = notes.append([{"id": "12"}])
        >>> done = notes.cast_column("id", "bigint")
        >>> notes.to_arrow().to_pylist()
        [{'id': 12}]
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        return self._run(engine_for(None, self._spark), ColumnCast(named(name), typed(type)), options, True)


def _given(values: Any, on: str | Sequence[str] | None, columns: Sequence[str] | None, schema: Any) -> Given:
    """Raises InvalidArgumentError for arguments that exclude each other."""
    function = callable(values) and on is None
    if not function and (columns is not None or schema is not None):
        raise InvalidArgumentError("columns= and schema= are for a function", advice="leave them out")
    if function:
        reads = None if columns is None else tuple(names("columns", columns))
        return ByFunction(values, reads, None if schema is None else as_schema(schema))
    if on is None:
        return ByExpressions(value_texts(values))
    if is_dataframe(values):
        raise InvalidArgumentError(
            "the data is a DataFrame of Spark, but columns are joined in process", advice="pass frame.toArrow()"
        )
    keys = tuple(dict.fromkeys(names("on", [on] if isinstance(on, str) else on)))
    if not keys:
        raise InvalidArgumentError("on=[] names no column", advice="name the columns that identify a row")
    return ByKeys(LOCAL.source(values).table(), keys)
