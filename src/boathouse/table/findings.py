"""What is wrong with a table, or could be better: values that opening raises, and an examination lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from boathouse.errors import CorruptTableError

Severity = Literal["damage", "hazard", "hint"]
"""damage: rows cannot be read, or may be wrong; hazard: rows are right here, but other readers or the next writer may
refuse the table or misread it; hint: it could be faster or smaller."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is stable across releases: the format, and what it is about (`lance.fragment-without-file`). `where` is
    the file; `advice` one imperative sentence; `repair` the call that mends it, if there is one."""

    code: str
    severity: Severity
    message: str
    where: str | None = None
    advice: str | None = None
    repair: str | None = None

    def error(self) -> CorruptTableError:
        """The error that stops whoever needs what is damaged."""
        return CorruptTableError(self.message, where=self.where, advice=self.advice)

    @staticmethod
    def of(code: str, error: CorruptTableError) -> Finding:
        """The damage that an error names."""
        return Finding(code, "damage", error.message, error.where, error.advice)


def damage(code: str, message: str, where: str | None = None, advice: str | None = None) -> Finding:
    """A finding of the worst kind."""
    return Finding(code, "damage", message, where, advice)


def placed(findings: Iterable[Finding], where: str) -> Iterator[Finding]:
    """The findings, in this file where they name none."""
    return (f if f.where is not None else replace(f, where=where) for f in findings)


def raise_first(findings: Iterable[Finding]) -> None:
    """Raises CorruptTableError for the first damage; what is less does not stop a reader."""
    for finding in findings:
        if finding.severity == "damage":
            raise finding.error()
