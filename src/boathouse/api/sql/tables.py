"""The tables that a statement names: which are this library's, and views of their rows for Spark."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import TracebackType
from typing import Any, Final
from weakref import WeakKeyDictionary

from boathouse import registry
from boathouse.api.catalog import catalog
from boathouse.api.detection import formats_at, locate
from boathouse.api.opening import open_handle
from boathouse.api.table import Table
from boathouse.errors import ExpressionError, NotFoundError, TableNotFoundError, VersionNotFoundError
from boathouse.expr.changes_function import ChangesCall, changes_calls
from boathouse.expr.identifiers import quote
from boathouse.expr.query_conditions import certain_condition
from boathouse.expr.sql_tokens import Token, joined, tokenize
from boathouse.expr.statement_tree import TableName, TimeTravel
from boathouse.expr.table_refs import Reference, references, replaced
from boathouse.storage import Stores
from boathouse.table.inspection import NAMES

_ANY: Final = "boathouse"
SESSION_CATALOG: Final = "spark_catalog"
MOST_EARLY_VIEWS: Final = 100
_EARLY: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is; `format` None: what is found there. `ref` is the branch or tag that its name ends with. In a
    `catalog` of PyIceberg's configuration `uri` is its name there."""

    uri: str
    format: str | None
    ref: str | None = None
    catalog: str | None = None


class Tables:
    """The tables of one statement. A context: its views are dropped at the end, unless `keep`.

    A view has the rows of one version, and a name made from it. On Connect a query refers to views until it runs, so
    they stay. There Spark's planner does not ask for the files of a query: a view is made for it (`early`), of the rows
    that its own condition may want, as long as there are not too many of them.
    """

    def __init__(self, spark: Any, sql: str, early: bool | None = None) -> None:
        self.spark, self.keep = spark, False
        self._connect = type(spark).__module__.startswith("pyspark.sql.connect")
        self._early = self._connect if early is None else early
        self._sql = sql
        self._places: dict[tuple[str, ...], Place | None] = {}
        self._views: list[str] = []

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not self.keep and not self._connect:
            for view in self._views:
                self.spark.catalog.dropTempView(view)

    def find(self, name: TableName) -> Place | None:
        """Where this library's table of that name is; None for a table of Spark's, a view, or no table."""
        key = tuple(part.lower() for part in name.parts[:-1]) + name.parts[-1:]
        if key not in self._places:
            found, (short, ref) = self._place(name), _without_ref(name)
            in_catalog = found is not None and found.catalog is not None and len(short.parts) > 2
            if ref is not None and (found is None or in_catalog) and (found := self._place(short)) is not None:
                found = replace(found, ref=ref)
            self._places[key] = found
        return self._places[key]

    def _place(self, name: TableName) -> Place | None:
        return self.named_place(name) or self._named(name)

    def named_place(self, name: TableName) -> Place | None:
        """The place that a path, or a name in a catalog of PyIceberg's configuration, says by itself, whether there is
        a table or not."""
        found = _path(name.parts)
        if found is not None or len(name.parts) < 3 or self.is_sparks(name.parts[0]):
            return found
        if not registry.catalogs().configured(name.parts[0]):
            return None
        return Place(".".join(name.parts[1:]), "iceberg", catalog=name.parts[0])

    def is_sparks(self, catalog: str) -> bool:
        """Whether the session has a catalog of this name."""
        own = f"spark.sql.catalog.{catalog}"
        return catalog.lower() == SESSION_CATALOG or self.spark.conf.get(own, None) is not None

    def in_session_catalog(self, name: TableName) -> bool:
        """Whether a new table of this name would be one of Spark's own metastore."""
        if len(name.parts) == 3:
            return name.parts[0].lower() == SESSION_CATALOG
        if len(name.parts) == 2 and self.spark.conf.get(f"spark.sql.catalog.{name.parts[0]}", None) is not None:
            return False
        return len(name.parts) < 3 and str(self.spark.catalog.currentCatalog()) == SESSION_CATALOG

    def _named(self, name: TableName) -> Place | None:
        found = import_module("boathouse.engines.spark.names").look_up(self.spark, joined(name.tokens))
        if found is None or found.location is None or not formats_at(locate(found.location), Stores()):
            return None
        provider = (found.provider or "").lower()
        return Place(found.location, provider if provider in registry.FORMATS else None)

    def table(self, name: TableName, at: TimeTravel | None = None) -> Table:
        """The table, at a version if one is given. Raises what `open` raises."""
        place = self.find(name)
        assert place is not None
        version = None if at is None else at.version
        time = None if at is None or at.timestamp is None else self.time(joined(at.timestamp))
        ref = place.ref if at is None or at.ref is None else at.ref
        if place.catalog is not None:
            return catalog(place.catalog).open(place.uri, version, time, ref, spark=self.spark)
        return Table(open_handle(place.uri, place.format, version, time, ref, spark=self.spark), self.spark)

    def time(self, sql: str) -> dt.datetime:
        """The value of an expression as an instant. Raises ExpressionError for null."""
        rows = self.spark.range(1).selectExpr(f"unix_micros(CAST(({sql}) AS TIMESTAMP)) AS t").collect()
        if rows[0]["t"] is None:
            raise ExpressionError(f"the time {sql} is null", advice="write it as TIMESTAMP AS OF '2026-11-20 10:00:00'")
        return _EPOCH + dt.timedelta(microseconds=rows[0]["t"])

    def with_views(self, tokens: Sequence[Token], relation: bool = False) -> str:
        """The text with views instead of this library's tables. `relation`: it is what follows FROM."""
        tokens = self._with_changes(tokens)
        return replaced(tokens, lambda found: self._view(found, tokens), references(self._sql, tokens, relation))

    def _with_changes(self, tokens: Sequence[Token]) -> Sequence[Token]:
        """The tokens with views instead of calls of table_changes."""
        out, at = list(tokens[:0]), 0
        for call in changes_calls(self._sql, tokens):
            begin, end = tokens[call.first].start, tokens[call.end - 1].end
            out += [*tokens[at : call.first], Token("quoted", quote(self._changes(call)), begin, end)]
            at = call.end
        return [*out, *tokens[at:]] if out else tokens

    def _changes(self, call: ChangesCall) -> str:
        """A view of the changes of a table. Raises TableNotFoundError."""
        path = Place(call.table, None) if call.by_path else None
        name = TableName((call.table,), ()) if call.by_path else named(call.table)
        place = path or (None if name is None else self.find(name))
        if place is None or name is None:
            raise TableNotFoundError(
                f"{call.table} is no table of Delta, Iceberg or Lance",
                advice="pass a name of the metastore, or delta.`/path`, as a text",
            )
        self._places.setdefault(name.parts, place)
        table = self.table(name)
        start = self._version(table, call.start, first=True)
        last = None if call.last is None else self._version(table, call.last, first=False)
        view = _hashed(table, "changes", str(start), str(last))
        if view not in self._views:
            table.changes(start, last).to_spark(self.spark).createOrReplaceTempView(view)
            self._views.append(view)
        return view

    def _version(self, table: Table, sql: Sequence[Token], first: bool) -> int:
        """The version that a number says, or a time: the first one at or after it, or the last one that is not."""
        if len(sql) == 1 and sql[0].kind == "number" and sql[0].text.isdigit():
            return int(sql[0].text)
        time = (self.time(joined(sql)) - _EPOCH) // dt.timedelta(milliseconds=1)
        history = sorted(table.history(), key=lambda e: e.timestamp_ms)
        fitting = [e for e in history if (e.timestamp_ms >= time if first else e.timestamp_ms <= time)]
        if not fitting:
            raise VersionNotFoundError(f"the table has no version {'after' if first else 'before'} {joined(sql)}")
        found = fitting[0 if first else -1].version
        assert isinstance(found, int)
        return found

    def frame(self, tokens: Sequence[Token], relation: bool = False) -> Any:
        """The rows of a query, or of what follows FROM."""
        text = self.with_views(tokens, relation)
        return self.spark.sql(f"SELECT * FROM {text}" if relation else text)

    @property
    def viewed(self) -> bool:
        """Whether the statement names tables of this library, which are views now."""
        return bool(self._views)

    def _view(self, reference: Reference, tokens: Sequence[Token]) -> str | None:
        if (about := self._about(reference)) is not None:
            return about
        if self.find(reference.table) is None:
            return None
        table = self.table(reference.table, reference.at)
        where = certain_condition(tokens, reference, table.schema) if self._early else None
        view = _name_of(table, where)
        if where is not None and not _has_room(self.spark, view):
            where, view = None, _name_of(table, None)
        if view not in self._views:
            table.scan(where=where).to_spark(self.spark).createOrReplaceTempView(view)
            self._views.append(view)
        return view

    def _about(self, reference: Reference) -> str | None:
        """A view of a metadata table, `t.files`, where there is no table of that name."""
        name, kind = reference.table, reference.table.parts[-1].lower()
        if kind not in NAMES or len(name.tokens) < 3:
            return None
        short = TableName(name.parts[:-1], name.tokens[:-2])
        found = self.find(name)
        if (found is not None and found.catalog is None) or self.find(short) is None:
            return None
        try:
            table = self.table(short, reference.at)
        except NotFoundError:
            if found is None:
                raise
            return None
        view = _hashed(table, "metadata", kind)
        if view not in self._views:
            table.inspect.to_spark(kind).createOrReplaceTempView(view)
            self._views.append(view)
        return view


def _name_of(table: Table, where: str | None) -> str:
    """The name of a view of a version, or of its rows for which a condition is true."""
    # A tag has the schema of its version, a branch at the same version that of the table.
    return _hashed(table, str(where), *table.schema.names)


def _hashed(table: Table, *what: str) -> str:
    key = "\n".join((table.uri, table.format, str(table.version), *what))
    return f"boathouse_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _has_room(spark: Any, view: str) -> bool:
    """Whether a session may have this view for a condition: such views stay."""
    known = _EARLY.setdefault(spark, set())
    if view not in known and len(known) >= MOST_EARLY_VIEWS:
        return False
    known.add(view)
    return True


def _without_ref(name: TableName) -> tuple[TableName, str | None]:
    """`t.branch_audit` as the table and the branch, as Iceberg's catalogs in Spark have such names."""
    *parts, last = name.parts
    kind, _, ref = last.partition("_")
    if not parts or len(name.tokens) < 3 or not ref or kind.lower() not in ("branch", "tag"):
        return name, None
    return TableName(tuple(parts), name.tokens[:-2]), ref


def named(text: str) -> TableName | None:
    """A table's name that is given as text; None for what is no name."""
    try:
        tokens = tuple(tokenize(text))
    except ExpressionError:
        return None
    parts = tuple(t.name for t in tokens[::2] if t.name is not None)
    dots = all(t.text == "." for t in tokens[1::2])
    return TableName(parts, tokens) if len(tokens) % 2 and dots and len(parts) == (len(tokens) + 1) // 2 else None


def _path(parts: tuple[str, ...]) -> Place | None:
    """The place of a table that is named by its path."""
    if len(parts) != 2 or "/" not in parts[1]:
        return None
    format = parts[0].lower()
    if format not in (*registry.FORMATS, _ANY):
        return None
    return Place(parts[1], None if format == _ANY else format)
