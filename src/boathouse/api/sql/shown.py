"""DESCRIBE and SHOW in sql(): what a table is, in the columns of Spark's own statements."""

from __future__ import annotations

from typing import Any, Final

from boathouse.api.sql.tables import Tables
from boathouse.errors import InvalidArgumentError
from boathouse.expr.statement_tree import Describe, ShowColumns, ShowProperties

Row = tuple[str, str, str | None]
_NO_ROW: Final = ("", "", "")


def described(tables: Tables, s: Describe) -> Any:
    """DESCRIBE [EXTENDED]: the columns, how the table is partitioned, and with EXTENDED what else it is."""
    table = tables.table(s.table)
    rows: list[Row] = [(f.name, str(f.type), f.doc) for f in table.schema.fields]
    if fields := list(table.partitioning.current):
        rows += [_NO_ROW, ("# Partitioning", "", "")]
        rows += [(f"Part {i}", f"{f.transform}({'.'.join(f.source)})", "") for i, f in enumerate(fields)]
    if s.extended:
        detail = table.detail()
        rows += [_NO_ROW, ("# Detailed Table Information", "", "")]
        rows += [("Name", str(s.table), ""), ("Provider", table.format, ""), ("Location", table.uri, "")]
        rows += [("Version", str(table.version), ""), ("Rows", str(detail.get("rows")), "")]
        listed = ",".join(f"{k}={v}" for k, v in sorted(table.properties.items()))
        rows.append(("Table Properties", f"[{listed}]", ""))
    return tables.spark.createDataFrame(rows, "col_name string, data_type string, comment string")


def properties(tables: Tables, s: ShowProperties) -> Any:
    """SHOW TBLPROPERTIES."""
    known = dict(sorted(tables.table(s.table).properties.items()))
    if s.key is not None and s.key not in known:
        raise InvalidArgumentError(
            f"the table has no property {s.key!r}", advice=f"it has {', '.join(known)}" if known else None
        )
    rows = list(known.items()) if s.key is None else [(s.key, known[s.key])]
    return tables.spark.createDataFrame(rows, "key string, value string")


def columns(tables: Tables, s: ShowColumns) -> Any:
    """SHOW COLUMNS."""
    rows = [(name,) for name in tables.table(s.table).schema.names]
    return tables.spark.createDataFrame(rows, "col_name string")
