"""ALTER TABLE ... BRANCH and TAG, parsed, as Iceberg's extensions of Spark SQL have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from boathouse.expr.statement_tree import TableName

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser

_UNITS: Final = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


@dataclass(frozen=True, slots=True)
class AlterRef:
    """`type` is branch or tag, `action` create, create-or-replace, create-if-absent, replace, drop or drop-if-exists;
    ages are in milliseconds."""

    table: TableName
    type: str
    action: str
    name: str
    version: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


def alter_refs(p: Parser, table: TableName) -> AlterRef | None:
    """What follows `ALTER TABLE t`; None for anything else. Raises ExpressionError that names the place."""
    for type in ("branch", "tag"):
        word = type.upper()
        if p.take("DROP", word):
            gone = "drop-if-exists" if p.take("IF", "EXISTS") else "drop"
            return AlterRef(table, type, gone, p.identifier(f"the name of a {type}"))
        if p.take("CREATE", "OR", "REPLACE", word):
            return _set(p, table, type, "create-or-replace")
        if p.take("CREATE", word):
            return _set(p, table, type, "create-if-absent" if p.take("IF", "NOT", "EXISTS") else "create")
        if p.take("REPLACE", word):
            return _set(p, table, type, "replace")
    return None


def _set(p: Parser, table: TableName, type: str, action: str) -> AlterRef:
    name = p.identifier(f"the name of a {type}")
    version = p.whole("a version") if p.take("AS", "OF", "VERSION") else None
    ref_age = _age(p, p.whole("a number")) if p.take("RETAIN") else None
    keep = snapshot_age = None
    if type == "branch" and p.take("WITH", "SNAPSHOT", "RETENTION"):
        number = p.whole("a number")
        if p.take("SNAPSHOTS"):
            keep = number
            snapshot_age = _age(p, p.whole("a number")) if not p.ended() else None
        else:
            snapshot_age = _age(p, number)
    return AlterRef(table, type, action, name, version, keep, snapshot_age, ref_age)


def _age(p: Parser, number: int) -> int:
    for unit, milliseconds in _UNITS.items():
        if p.take(unit):
            return number * milliseconds
    raise p.expected(", ".join(_UNITS))
