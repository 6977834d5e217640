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
