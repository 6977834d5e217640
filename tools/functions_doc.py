"""docs/functions.md, generated from the closed list in boathouse.expr.functions.

python tools/functions_doc.py            writes it
python tools/functions_doc.py --check    fails where it is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from boathouse.expr.functions import reference

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
_HEAD = """\
# Expressions and functions

Conditions (`where=`, `--where`, `delete`) are Spark SQL text and mean what Spark means with ANSI on, in every engine:
NaN equals NaN and is the greatest number, `-0.0 = 0.0`, `/` on whole numbers is a double, overflow and bad casts are
errors, names resolve ignoring case.

Operators: `=`, `==`, `!=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`, `AND`, `OR`, `NOT`, `IN (...)`, `BETWEEN`, `LIKE`,
`ILIKE`, `IS [NOT] NULL`, `IS [NOT] TRUE`, `+`, `-`, `*`, `/`, `%`, `DIV`, `||`, `CASE`, `CAST(x AS type)`, `TRY_CAST`,
`DATE '2026-11-20'`, `TIMESTAMP '...'`, `a.b` for members of structs.

## Time zones

A TIMESTAMP is an instant. Its date, its hour, its text, its place beside a DATE or a TIMESTAMP_NTZ, and what
`TIMESTAMP '2024-03-10 00:00:00'` means, are those of a time zone, and that is

- on Spark, and for every table that was opened with `spark=`, the session's `spark.sql.session.timeZone`;
- in process UTC, or what `timezone=` names in `bh.open`, `bh.create` and `bh.write` (`--timezone` in the shell);
- in a `replaceWhere` of `df.write.format("boathouse")` what the option `timeZone` names: Spark does not tell a Python
  source the zone of its session, so a condition that depends on it is refused without the option.

On Spark a `timezone=` that the session does not have is refused. A text or literal that names a zone
(`TIMESTAMP '2024-03-10 00:00:00Z'`) means that one. A wall clock that exists twice is the earlier instant, one that is
skipped moves on by the gap, as in Spark. Zones are those of the machine's tz database, or of the package `tzdata`.
Partition values and statistics are in UTC in every zone.

## What there is

This list is closed: another name is refused, and the nearest ones are named. (On Spark, `t.to_spark()` gives a
DataFrame, where everything that Spark knows may be used.) Arguments in brackets may be left out.

"""


def page() -> str:
    """The whole page."""
    return _HEAD + "## Functions\n\n" + reference().rstrip() + "\n"


def main() -> int:
    if "--check" in sys.argv[1:]:
        current = PAGE.is_file() and PAGE.read_text() == page()
        if not current:
            print("docs/functions.md is not current: run python tools/functions_doc.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
