"""Reports how much of the specifications' checklists the tests prove.

    python tools/spec_report.py            a table a document, and the open lines of House
    python tools/spec_report.py --check    fails if a line of docs/checklists/proved.txt has lost its test
    python tools/spec_report.py --update   writes docs/checklists/proved.txt from the tests

A line is proved by a test that carries `@pytest.mark.spec("D-204")`; refused by design, or open with a reason,
according to docs/checklists/status.toml.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKLISTS = ROOT / "docs" / "checklists"
PROVED = CHECKLISTS / "proved.txt"
STATUS = CHECKLISTS / "status.toml"
DOCUMENTS = ("delta", "iceberg", "lance", "variant")
_LINE = re.compile(r"^\|\s*([DILV]-\d+)\s*\|(.*)\|\s*$")


@dataclass(frozen=True)
class Line:
    """One line of a checklist; `where` is the piece of work that owes its proof."""

    id: str
    document: str
    title: str
    where: str


def lines() -> Iterator[Line]:
    for document in DOCUMENTS:
        for text in (CHECKLISTS / f"{document}.md").read_text().splitlines():
            match = _LINE.match(text)
            if match:
                cells = [c.strip() for c in match[2].split("|")]
                yield Line(match[1], document, cells[0], cells[-1])


def proofs() -> dict[str, list[str]]:
    """Line id -> the tests that carry it, read from the source without importing it."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for id in _ids(node.decorator_list):
                    found.setdefault(id, []).append(f"{path.relative_to(ROOT)}::{node.name}")
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "param":
                for id in _ids([k.value for k in node.keywords if k.arg == "marks"]):
                    found.setdefault(id, []).append(f"{path.relative_to(ROOT)}")
    return found


def _ids(decorators: list[ast.expr]) -> Iterator[str]:
    for decorator in decorators:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "spec":
                yield from (a.value for a in node.args if isinstance(a, ast.Constant))


def report(all_lines: list[Line], proved: dict[str, list[str]], status: dict[str, dict[str, str]]) -> None:
    refused, reasons = status.get("refused", {}), status.get("open", {})
    print(f"{'document':<10}{'lines':>7}{'proved':>8}{'refused':>9}{'open':>7}   House: lines proved refused open")
    for document in DOCUMENTS:
        mine = [x for x in all_lines if x.document == document]
        house = [x for x in mine if x.where == "House"]
        print(f"{document:<10}{_counts(mine, proved, refused)}   {_counts(house, proved, refused)}")
    print("\nHouse, not proved:")
    for line in all_lines:
        if line.where == "House" and line.id not in proved:
            kind, reason = ("refused", refused[line.id]) if line.id in refused else ("open", reasons.get(line.id))
            print(f"  {line.id} [{kind}] {line.title[:90]}: {reason or 'NO REASON GIVEN'}")


def _counts(some: list[Line], proved: dict[str, list[str]], refused: dict[str, str]) -> str:
    done = sum(x.id in proved for x in some)
    no = sum(x.id in refused and x.id not in proved for x in some)
    return f"{len(some):>7}{done:>8}{no:>9}{len(some) - done - no:>7}"


def check(all_lines: list[Line], proved: dict[str, list[str]], status: dict[str, dict[str, str]]) -> list[str]:
    """The faults: lost proofs, ids that no checklist contains, House lines open without a reason."""
    known = {x.id for x in all_lines}
    before = PROVED.read_text().split() if PROVED.exists() else []
    problems = [f"{id} was proved and has lost its test" for id in before if id not in proved]
    problems += [f"{id} is not a line of a checklist ({', '.join(at)})" for id, at in proved.items() if id not in known]
    reasons = {**status.get("open", {}), **status.get("refused", {})}
    problems += [
        f"{x.id} of House is open without a reason in {STATUS.name}"
        for x in all_lines
        if x.where == "House" and x.id not in proved and x.id not in reasons
    ]
    return problems


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--update", action="store_true")
    options = arguments.parse_args()
    all_lines, proved = list(lines()), proofs()
    status = tomllib.loads(STATUS.read_text()) if STATUS.exists() else {}
    if options.update:
        PROVED.write_text("\n".join(sorted(id for id in proved)) + "\n")
    report(all_lines, proved, status)
    problems = check(all_lines, proved, status) if options.check else []
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
