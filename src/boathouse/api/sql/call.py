"""CALL: procedures by name, with arguments by name or by position."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from boathouse.api.arguments import errors_at
from boathouse.api.changelog_view import PROCEDURES as OF_CHANGES
from boathouse.api.detection import formats_at, locate
from boathouse.api.procedures.files import PROCEDURES as OF_FILES
from boathouse.api.procedures.iceberg import PROCEDURES
from boathouse.api.procedures.procedure import Asked, Called, Maker, Parameter, Procedure
from boathouse.api.procedures.refs import PROCEDURES as OF_REFS
from boathouse.api.procedures.tables import MAKERS
from boathouse.api.sql.tables import Tables, named
from boathouse.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from boathouse.expr.call_statement import Call
from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statement_tree import TableName, Tokens
from boathouse.storage import Stores

_SCHEMA: Final = "system"
_BY_NAME: Final[Mapping[str, Procedure | Maker]] = {
    p.name: p for p in (*PROCEDURES, *OF_REFS, *OF_FILES, *OF_CHANGES, *MAKERS)
}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def call(tables: Tables, statement: Call) -> Any:
    """The procedure's result as a DataFrame. None where it is Spark's: a procedure of another schema, or of a catalog
    of the session, if this library does not have it or the table is not its own.

    Raises InvalidArgumentError for an unknown procedure or argument, TableNotFoundError, UnsupportedFeatureError for a
    table of another format, and what the procedure raises.
    """
    *catalog, schema, name = ("", "", *statement.parts)[-3:]
    if schema.lower() != _SCHEMA or len(statement.parts) > 3:
        return None
    theirs = _is_catalog(tables.spark, catalog[0])
    procedure = _BY_NAME.get(name.lower())
    if procedure is None:
        if theirs:
            return None
        raise InvalidArgumentError(
            f"there is no procedure system.{name}", advice=f"there are {', '.join(sorted(_BY_NAME))}"
        )
    if isinstance(procedure, Maker) and theirs:
        return None
    given = _values(tables.spark, procedure, _bound(procedure, statement))
    if isinstance(procedure, Maker):
        rows = list(procedure.run(Asked(tables.spark, catalog[0], given)))
        return tables.spark.createDataFrame(rows, procedure.returns)
    table = _table_name(str(given.pop("table")), catalog[0])
    if table is None or tables.find(table) is None:
        if theirs:
            return None
        raise TableNotFoundError(
            f"there is no table {table if table is not None else statement.arguments[0].value[0].text}",
            advice="pass its name in Spark's metastore, or its path: table => '/lake/trips'",
        )
    with errors_at(str(table)):
        found = tables.table(table)
        if found.format != "iceberg":
            raise UnsupportedFeatureError(
                f"system.{procedure.name} is for Iceberg tables, and this is {found.format}",
                advice="use OPTIMIZE, VACUUM and RESTORE, or the methods of the table",
            )
        name = table.parts[-1].rstrip("/").rpartition("/")[2]
        rows = list(procedure.run(Called(tables.spark, found, name, given)))
    return tables.spark.createDataFrame(rows, procedure.returns)


def _is_catalog(spark: Any, name: str) -> bool:
    return bool(name) and spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def _bound(procedure: Procedure | Maker, statement: Call) -> dict[str, Tokens]:
    """The tokens of each argument that is given, by the name of its parameter."""
    parameters = procedure.parameters
    names = [p.name for p in parameters]
    found: dict[str, Tokens] = {}
    for i, argument in enumerate(statement.arguments):
        if argument.name is None and i >= len(parameters):
            raise _wrong(procedure, f"takes at most {len(parameters)} arguments")
        name = parameters[i].name if argument.name is None else argument.name.lower()
        if name not in names:
            raise _wrong(procedure, f"has no argument {argument.name!r}")
        if name in found:
            raise _wrong(procedure, f"is given {name!r} twice")
        found[name] = argument.value
    for parameter in parameters:
        if parameter.required and parameter.name not in found:
            raise _wrong(procedure, f"needs the argument {parameter.name!r}")
    return found


def _wrong(procedure: Procedure | Maker, what: str) -> InvalidArgumentError:
    arguments = ", ".join(f"{p.name} => {p.type}" for p in procedure.parameters)
    return InvalidArgumentError(f"system.{procedure.name} {what}", advice=f"it takes {arguments}")


def _values(spark: Any, procedure: Procedure | Maker, given: Mapping[str, Tokens]) -> dict[str, Any]:
    """The values of the arguments, which Spark evaluates, without nulls. Raises InvalidArgumentError for one that does
    not fit its parameter, or is null and required; and Spark's errors."""
    parameters = [p for p in procedure.parameters if p.name in given]
    texts = [joined(given[p.name]) for p in parameters]
    columns = [
        f"({text}) IS NULL AS n{i}, {_cast(text, p.type)} AS v{i}"
        for i, (p, text) in enumerate(zip(parameters, texts, strict=True))
    ]
    (row,) = spark.sql(f"SELECT {', '.join(columns)}").collect()
    found = {}
    for i, (p, text) in enumerate(zip(parameters, texts, strict=True)):
        if row[f"v{i}"] is not None:
            found[p.name] = _python(row[f"v{i}"], p)
        elif p.required or not row[f"n{i}"]:
            raise _wrong(procedure, f"is given {p.name} => {text}, which is no {p.type}")
    return found


def _cast(text: str, type: str) -> str:
    """The value as a type that reaches Python unchanged; null where it does not fit. Spark hands times over without
    their zone."""
    cast = f"try_cast(({text}) AS {type})"
    return f"unix_micros({cast})" if type == "timestamp" else cast


def _python(value: Any, parameter: Parameter) -> Any:
    return _EPOCH + dt.timedelta(microseconds=value) if parameter.type == "timestamp" else value


def _table_name(text: str, catalog: str) -> TableName | None:
    """The table that an argument names: as SQL text does, or by its path; None for what is no name."""
    found = named(text)
    if found is not None:
        parts = found.parts
        if not catalog or (len(parts) == 2 and "/" in parts[1]) or parts[0].lower() == catalog.lower():
            return found
        quoted = Token("quoted", f"`{catalog.replace('`', '``')}`", 0, 0)
        return TableName((catalog, *parts), (quoted, Token("symbol", ".", 0, 0), *found.tokens))
    if "/" not in text:
        return None
    formats = formats_at(locate(text), Stores())
    format = "iceberg" if "iceberg" in formats else "boathouse"
    return TableName((format, text), (Token("quoted", f"`{text.replace('`', '``')}`", 0, 0),))
