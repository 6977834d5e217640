"""The parts in which `./run slow` runs the slow tests, each of at most 40 minutes.

python tools/slow_parts.py          names the parts
python tools/slow_parts.py PART     the folders and files of one

A slow test is in the part that names its folder or its file; tests/test_suite.py fails for one in none or in two.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests"


def _files(folder: str) -> tuple[str, ...]:
    return tuple(sorted(f"tests/{folder}/{path.name}" for path in (TESTS / folder).glob("test_*.py")))


def _named(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{folder}/test_{name}.py" for name in names)


# Tables that ours and the reference change in turn.
TURNS = _named("interop", "iceberg_histories", "iceberg_row_deletes", "iceberg_turns", "iceberg_writers")
LATER = _named("waist", "later_conditions")
ON_SPARK = _named(
    "waist",
    "assigned_fields",
    "changes",
    "compact",
    "conditions_on_spark",
    "evolve",
    "merge",
    "merge_columns",
    "operations",
    "replans",
    "sorted_rewrites",
    "update",
    "zorder",
)

PARTS = {
    "delta": ("tests/delta", "tests/conformance"),
    "iceberg": ("tests/iceberg", "tests/avro"),
    "lance": ("tests/lance",),
    "interop": tuple(path for path in _files("interop") if path not in TURNS),
    "turns": TURNS,
    "waist": tuple(path for path in _files("waist") if path not in (*ON_SPARK, *LATER)),
    "waist-spark": ON_SPARK,
    "later": LATER,
    "api": ("tests/api",),
    "engines": (
        "tests/arrow",
        "tests/cli",
        "tests/compat",
        "tests/compute",
        "tests/engines",
        "tests/parquet",
        "tests/report",
    ),
    "variant": ("tests/variant",),
}


def parts_of(test: str) -> list[str]:
    """The parts that have a test, by its id."""
    return [name for name, paths in PARTS.items() if any(test.startswith((f"{p}/", f"{p}::")) for p in paths)]


def main() -> int:
    match sys.argv[1:]:
        case []:
            print(*PARTS)
        case [name] if name in PARTS:
            print(*PARTS[name])
        case _:
            known = ", ".join((*PARTS, "random", "workers", "versions"))
            print(f"no part: {' '.join(sys.argv[1:])}; there are {known}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
