"""Commands that return rows of a question: changes, sql."""

from __future__ import annotations

import tempfile
from importlib import import_module
from itertools import islice
from pathlib import Path as LocalPath
from typing import Annotated, Any

import typer

import boathouse
from boathouse.cli import show
from boathouse.cli.commands import Columns, Format, Json, Option, Path, Where, Zone, storage_options
from boathouse.cli.progress import spinner

Start = Annotated[int, typer.Option("--from", metavar="N", help="The first version whose changes are shown.")]
End = Annotated[int | None, typer.Option("--to", metavar="N", help="The last one; by default the newest.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many rows.")]
Text = Annotated[str, typer.Argument(metavar="STATEMENT", help="One statement; docs/sql.md has them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only name the statement and its table; nothing runs.")]


def register(app: typer.Typer) -> None:
    app.command()(changes)
    app.command()(sql)


def changes(
    path: Path, start: Start, end: End = None, limit: Limit = None, columns: Columns = None, where: Where = None,
    format: Format = None, timezone: Zone = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The rows that commits inserted, deleted and updated."""
    table = boathouse.open(path, format, storage_options=storage_options(option), timezone=timezone)
    wanted = None if columns is None else [c.strip() for c in columns.split(",") if c.strip()]
    found = table.changes(start, end, wanted, where)
    with spinner("reading"):
        reader = found.to_reader()
        rows = list(islice((row for batch in reader for row in batch.to_pylist()), limit))
    if json:
        show.as_json(rows)
    else:
        show.table(reader.schema.names, [list(row.values()) for row in rows])


def sql(statement: Text, limit: Limit = None, dry_run: DryRun = False, json: Json = False) -> None:
    """Runs a SQL statement on a small local Spark."""
    if dry_run:
        _described(statement, json)
        return
    spark = import_module("boathouse.cli.local_spark")
    spark.check()
    with tempfile.TemporaryDirectory(prefix="boathouse-sql-") as work, spark.session(LocalPath(work)) as session:
        with spinner("running"), import_module("boathouse.engines.spark.errors").one_line():
            found = boathouse.sql(session, statement)
            names = found.columns
            rows = [row.asDict(recursive=True) for row in (found if limit is None else found.limit(limit)).collect()]
    if json:
        show.as_json(rows)
    else:
        show.table(names, [list(row.values()) for row in rows])


def _described(statement: str, json: bool) -> None:
    """What `bh.sql` would do with the text. Raises what its parser raises."""
    statements = import_module("boathouse.expr.statements")
    refs = import_module("boathouse.expr.table_refs")
    tokens = statements.single(statement)
    found: Any = statements.parse_statement(statement, tokens, lambda table: True)
    read = [str(r.table) for r in refs.references(statement, tokens)] if found is None else []
    kind = tokens[0].text.upper() if found is None else type(found).__name__.lower()
    if found is None:
        made = import_module("boathouse.expr.create_statement")
        found = made.drop_table(statements.Parser(statement, tokens))
        found = found or made.head(statements.Parser(statement, tokens), tokens)
    shown = {"statement": kind, "changes": None if found is None else str(found.table), "reads": read}
    show.as_json(shown) if json else show.pairs(list(shown.items()))
