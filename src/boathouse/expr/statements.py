"""Statements on tables, parsed: MERGE, UPDATE, DELETE, INSERT, TRUNCATE, OPTIMIZE, REORG, VACUUM, DESCRIBE, SHOW,
RESTORE and ALTER.

Conditions, values and queries in them are not parsed but passed on as tokens. Any other statement is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from boathouse.errors import ExpressionError, UnsupportedFeatureError
from boathouse.expr import other_statements as other
from boathouse.expr import row_statements as rows
from boathouse.expr.alter_columns import AlterColumns, alter_columns
from boathouse.expr.alter_refs import AlterRef, alter_refs
from boathouse.expr.alter_table import AlterTable, alter_table
from boathouse.expr.parse import parse
from boathouse.expr.sql_tokens import Token, joined, place, tokenize
from boathouse.expr.statement_tree import (
    Describe,
    Detail,
    History,
    Optimize,
    Reorg,
    Restore,
    ShowColumns,
    ShowProperties,
    Statement,
    TableName,
    TimeTravel,
    Tokens,
    Truncate,
    Vacuum,
)

Parsed = Statement | AlterTable | AlterRef | AlterColumns | other.Told


def parse_statement(sql: str, tokens: Sequence[Token], ours: Callable[[TableName], bool]) -> Parsed | None:
    """The statement; None if it is of another kind, or not about a table for which `ours` is true.

    Raises ExpressionError that names the place, UnsupportedFeatureError.
    """
    return Parser(sql, tokens).statement(ours)


def single(sql: str) -> list[Token]:
    """The tokens of one statement, without the semicolon at its end. Raises ExpressionError for none, or several."""
    tokens = tokenize(sql)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    for token in tokens:
        if token.text == ";" and token.kind == "symbol":
            raise ExpressionError(
                f"{place(sql, token.end)}: a second statement", advice="call sql() once for each statement"
            )
    if not tokens:
        raise ExpressionError("the text has no statement", advice="pass a statement, such as SELECT * FROM t")
    return tokens


class Parser:
    """Reads tokens from left to right."""

    def __init__(self, sql: str, tokens: Sequence[Token]) -> None:
        self._sql, self._tokens, self._at = sql, tokens, 0

    def statement(self, ours: Callable[[TableName], bool]) -> Parsed | None:
        """The whole statement."""
        for words, reader in _STATEMENTS.items():
            self._at = 0
            query = words in _DESCRIBE and self.sees(*words.split(), "(")
            if not query and self.take(*words.split()) and self._at < len(self._tokens):
                self.take("TABLE")
                table = self.table()
                if not ours(table):
                    return None
                found = reader(self, table)
                if found is None:
                    return None
                if self._at < len(self._tokens):
                    raise self.expected("the end")
                return found
        return None

    # ---- tokens

    def sees(self, *words: str) -> bool:
        """Whether these words (or symbols) follow."""
        ahead = self._tokens[self._at : self._at + len(words)]
        return len(ahead) == len(words) and all(
            t.is_word(w) or (t.kind == "symbol" and t.text == w) for t, w in zip(ahead, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Passes over these words if they follow."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def need(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.expected(word)

    def expected(self, what: str) -> ExpressionError:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            return ExpressionError(f"{place(self._sql, token.start)}: expected {what}, found {token.text}", advice=_SEE)
        return ExpressionError(f"{place(self._sql, len(self._sql))}: expected {what}, found the end", advice=_SEE)

    def refuse(self, what: str, advice: str) -> UnsupportedFeatureError:
        start = self._tokens[self._at].start
        return UnsupportedFeatureError(f"{place(self._sql, start)}: {what} is not offered", advice=advice)

    def until(self, what: str, *stops: str) -> Tokens:
        """The tokens of an expression, up to one of these words outside of parentheses and CASE, or the end."""
        start, depth = self._at, 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if depth == 0 and any(self.sees(*stop.split()) for stop in stops):
                break
            if token.text in ("(", "[") or token.is_word("CASE"):
                depth += 1
            elif token.text in (")", "]") or (token.is_word("END") and depth):
                if depth == 0:
                    break
                depth -= 1
            self._at += 1
        if start == self._at:
            raise self.expected(what)
        return tuple(self._tokens[start : self._at])

    def number(self, what: str) -> float:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.kind != "number" or not token.text.replace(".", "", 1).isdigit():
            raise self.expected(what)
        self._at += 1
        return float(token.text)

    def whole(self, what: str) -> int:
        number, text = self.number(what), self._tokens[self._at - 1].text
        if number != int(number):
            self._at -= 1
            raise self.expected(what)
        # A double does not hold the ids of snapshots.
        return int(text) if text.isdigit() else int(number)

    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def mark(self) -> int:
        """The place of the next token."""
        return self._at

    def since(self, mark: int) -> Tokens:
        """The tokens from a place to here."""
        return tuple(self._tokens[mark : self._at])

    def skip(self) -> None:
        """Passes over one token, whatever it is."""
        self._at += 1

    def text(self, what: str) -> str:
        """A string, a dotted name or a number, as text."""
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or token.kind == "symbol":
            raise self.expected(what)
        self._at += 1
        if token.kind == "string":
            return str(getattr(parse(token.text), "value", token.text))
        parts = [token.name or token.text]
        while token.kind in ("word", "quoted") and self.take("."):
            parts.append(self.identifier(what))
        return ".".join(parts)

    # ---- parts of statements

    def identifier(self, what: str) -> str:
        name = self._tokens[self._at].name if self._at < len(self._tokens) else None
        if name is None:
            raise self.expected(what)
        self._at += 1
        return name

    def table(self) -> TableName:
        """A name of one to three parts, or a path as a string."""
        start = self._at
        if self._at < len(self._tokens) and self._tokens[self._at].kind == "string":
            self._at += 1
            token = self._tokens[start]
            return TableName(("delta", token.text[1:-1]), (token,))
        parts = [self.identifier("a table")]
        while self.take("."):
            parts.append(self.identifier("a name"))
        return TableName(tuple(parts), tuple(self._tokens[start : self._at]))

    def alias(self, *keywords: str) -> str | None:
        if self.take("AS"):
            return self.identifier("an alias")
        more = self._at < len(self._tokens) and self._tokens[self._at].name is not None
        return self.identifier("an alias") if more and not any(self.sees(k) for k in keywords) else None

    def where(self) -> Tokens | None:
        return self.until("a condition") if self.take("WHERE") else None

    def at(self) -> TimeTravel:
        """VERSION AS OF n, TIMESTAMP AS OF expression."""
        if self.take("VERSION"):
            self.need("AS", "OF")
            return TimeTravel(version=self.whole("a version"))
        self.need("TIMESTAMP")
        self.need("AS", "OF")
        return TimeTravel(timestamp=self.until("a time", "LOCATION", "TBLPROPERTIES"))

    def assignments(self, *stops: str) -> tuple[tuple[Tokens, Tokens], ...]:
        """`a = x, t.b = y`."""
        found = []
        while True:
            column = self.until("a column", "=")
            self.need("=")
            found.append((column, self.until("a value", ",", *stops)))
            if not self.take(","):
                return tuple(found)

    def listed(self, what: str) -> tuple[Tokens, ...]:
        """`(a, b)`."""
        self.need("(")
        found = [self.until(what, ",")]
        while self.take(","):
            found.append(self.until(what, ","))
        self.need(")")
        return tuple(found)

    def rest(self) -> Tokens:
        """All tokens from here."""
        found = tuple(self._tokens[self._at :])
        self._at = len(self._tokens)
        return found

    def go(self, mark: int) -> None:
        """To a place that `mark` gave."""
        self._at = mark

    def named(self) -> bool:
        """Whether an identifier or a string follows."""
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        return token is not None and (token.name is not None or token.kind == "string")

    def back(self) -> None:
        """Back over one token, which an error then names."""
        self._at -= 1

    # ---- statements

    def optimize(self, table: TableName) -> Optimize:
        if self.sees("FULL"):
            raise self.refuse("OPTIMIZE ... FULL", "leave out FULL")
        where = self.until("a condition", "ZORDER") if self.take("WHERE") else None
        columns = None
        if self.take("ZORDER"):
            self.need("BY")
            columns = tuple(joined(c) for c in self.listed("a column"))
        return Optimize(table, where, columns)

    def reorg(self, table: TableName) -> Reorg:
        where = self.until("a condition", "APPLY") if self.take("WHERE") else None
        for word in ("APPLY", "(", "PURGE", ")"):
            self.need(word)
        return Reorg(table, where)

    def vacuum(self, table: TableName) -> Vacuum:
        mode, hours, dry_run = "full", None, False
        while self._at < len(self._tokens):
            if self.take("FULL") or self.take("LITE"):
                mode = self._tokens[self._at - 1].text.lower()
            elif self.take("RETAIN"):
                hours = self.number("a number of hours")
                self.need("HOURS")
            elif self.take("DRY"):
                self.need("RUN")
                dry_run = True
            elif self.sees("USING", "INVENTORY"):
                raise self.refuse("VACUUM ... USING INVENTORY", "write LITE, which reads the log and lists no folder")
            else:
                raise self.expected("RETAIN, DRY RUN, FULL, LITE or the end")
        return Vacuum(table, mode, hours, dry_run)

    def history(self, table: TableName) -> History:
        return History(table, self.whole("a number of commits") if self.take("LIMIT") else None)

    def detail(self, table: TableName) -> Detail:
        return Detail(table)

    def truncate(self, table: TableName) -> Truncate:
        if self.sees("PARTITION"):
            raise self.refuse("TRUNCATE TABLE ... PARTITION", "use DELETE FROM ... WHERE")
        return Truncate(table)

    def shown_properties(self, table: TableName) -> ShowProperties:
        key = None
        if self.take("("):
            key = self.text("a property")
            self.need(")")
        return ShowProperties(table, key)

    def restore(self, table: TableName) -> Restore:
        self.take("TO")
        return Restore(table, self.at())


def _alter(p: Parser, table: TableName) -> Parsed | None:
    """Any other ALTER TABLE of a table in Spark's metastore is Spark's; of one at a path, which Spark does not know, it
    is refused by name."""
    if p.take("RENAME", "TO"):
        return other.RenameTo(table, p.table())
    found = alter_refs(p, table) or alter_table(p, table) or alter_columns(p, table)
    if found is None and any(mark in table.parts[-1] for mark in "/:"):
        advice = "docs/sql.md has the forms that are; t.set_properties(), t.evolve() and others do more in Python"
        raise p.refuse("this form of ALTER TABLE", advice)
    return found


def _describe(extended: bool) -> Callable[[Parser, TableName], Parsed]:
    return lambda _, table: Describe(table, extended)


_SEE: Final = "docs/sql.md has the statements"
_DESCRIBE: Final = {
    f"{verb}{kind}{more}": _describe(bool(more))
    for verb in ("DESCRIBE", "DESC")
    for kind in (" TABLE", "")
    for more in (" EXTENDED", " FORMATTED", "")
}
_STATEMENTS: Final[dict[str, Callable[[Parser, TableName], Parsed | None]]] = {
    "MERGE INTO": rows.merge,
    "MERGE WITH SCHEMA EVOLUTION INTO": lambda p, table: rows.merge(p, table, evolve=True),
    "UPDATE": rows.update,
    "DELETE FROM": rows.delete,
    "INSERT INTO": rows.insert,
    "INSERT OVERWRITE": lambda p, table: rows.insert(p, table, overwrite=True),
    "INSERT WITH SCHEMA EVOLUTION INTO": lambda p, table: rows.insert(p, table, evolve=True),
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE": lambda p, table: rows.insert(p, table, overwrite=True, evolve=True),
    "OPTIMIZE": Parser.optimize,
    "REORG TABLE": Parser.reorg,
    "VACUUM": Parser.vacuum,
    "DESCRIBE HISTORY": Parser.history,
    "DESC HISTORY": Parser.history,
    "DESCRIBE DETAIL": Parser.detail,
    "DESC DETAIL": Parser.detail,
    "RESTORE": Parser.restore,
    "TRUNCATE": Parser.truncate,
    "SHOW TBLPROPERTIES": Parser.shown_properties,
    "SHOW COLUMNS IN": lambda _, table: ShowColumns(table),
    "SHOW COLUMNS FROM": lambda _, table: ShowColumns(table),
    "SHOW CREATE": lambda _, table: other.ShowCreate(table),
    "SHOW PARTITIONS": other.partitions,
    "COMMENT ON": other.comment,
    "REFRESH": lambda _, table: other.Refresh(table),
    **{words: other.refused(words) for words in other.REFUSED},
    **_DESCRIBE,
    "ALTER TABLE": _alter,
}
