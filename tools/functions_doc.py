"""docs/functions.md, generated from the closed list in boathouse.expr.functions.

python tools/functions_doc.py            writes it
python tools/functions_doc.py --check    fails if it is not current
"""

from __future__ import annotations

import sys
from pathlib import Path

from boathouse.expr.functions import reference

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
_HEAD = """\
# Expressions and functions

Conditions (`where=`, `--where`, `delete`) are Spark SQL text with the semantics of Spark's ANSI mode, in every engine:
NaN equals NaN and is the greatest number, `-0.0 = 0.0`, `/` on integers is a double, overflow and invalid casts are
errors, names are resolved ignoring case.

Operators: `=`, `==`, `!=`, `<>`, `<`, `<=`, `>`, `>=`, `<=>`, `AND`, `OR`, `NOT`, `IN (...)`, `BETWEEN`, `LIKE`,
`ILIKE`, `IS [NOT] NULL`, `IS [NOT] TRUE`, `+`, `-`, `*`, `/`, `%`, `DIV`, `||`, `CASE`, `CAST(x AS type)`, `TRY_CAST`,
`DATE '2026-11-20'`, `TIMESTAMP '...'`, `a.b` for fields of structs. A TIMESTAMP cast to a number is the seconds since
the epoch (whole ones downwards), and a number cast to TIMESTAMP the instant after so many. `FIXED(n)` is a type too, of
n bytes: a cast of binaries with another length fails.

The same can be put together in Python, wherever text is accepted: `(bh.col("a") > 3) & bh.col("s").is_null()`.
`bh.col("a.b")` is a field of a struct, ``bh.col("`a.b`")`` a column whose name has a dot; `bh.lit(x)` is a constant.
There are `<`, `<=`, `>`, `>=`, `+`, `-`, `*`, `/`, `&`, `|`, `~`, and the methods `eq`, `ne`, `is_null`, `is_in` and
`like`; functions are for text only. `==` compares expressions as values, so use `eq` and `ne`; `and`, `or` and `not`
raise TypeError.

## Sessions without ANSI mode

The meaning is the same in a Spark session whose ANSI mode is off (`spark.sql.ansi.enabled=false`), for the values of
updates, merges and generated columns and for constraints too. A condition that Spark would take for another one (casts,
arithmetic, `size`) is evaluated by executor tasks, which `explain()` says; operations turn the mode on while they make
their plans. Over Spark Connect, which keeps no plan, Spark computes and holds an operation's rows before they are
written. What is applied to a DataFrame that `t.to_spark()` returned means what the session means by it.

## Time zones

A TIMESTAMP is an instant. Its date, its hour, its string, its comparison with a DATE or a TIMESTAMP_NTZ, and the
meaning of `TIMESTAMP '2024-03-10 00:00:00'` depend on a time zone, which is

- on Spark, and for every table that was opened with `spark=`, the session's `spark.sql.session.timeZone`;
- in process UTC, or what `timezone=` names in `bh.open`, `bh.create` and `bh.write` (`--timezone` in the shell);
- in a `replaceWhere` of `df.write.format("boathouse")` what the option `timeZone` names: Spark does not pass its
  session's time zone to a Python source, so a condition that depends on it is refused without the option.

On Spark a `timezone=` that the session does not have is refused. A string or literal that names a zone
(`TIMESTAMP '2024-03-10 00:00:00Z'`) uses that one. A wall clock that occurs twice is the earlier instant, one that is
skipped moves on by the gap, as in Spark. Zones come from the machine's tz database, or from the package `tzdata`.
Partition values and statistics are in UTC in every zone.

## The list

This list is closed: any other name is refused, with the nearest ones in the error. (On Spark, `t.to_spark()` returns a
DataFrame, on which all of Spark's functions can be used.) Arguments in brackets are optional.

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
