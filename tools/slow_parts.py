"""The parts in which `./run slow` runs the slow tests, each of at most 40 minutes.

python tools/slow_parts.py          names the parts
python tools/slow_parts.py PART     the folders and files of one

A slow test is in the part that names its folder or its file; tests/test_suite.py fails for one in none or in two.
"""

from __future__ import annotations

import sys

PARTS = {
    "delta": ("tests/delta", "tests/conformance"),
    "iceberg": ("tests/iceberg", "tests/avro"),
    "lance": ("tests/lance",),
    "interop": ("tests/interop",),
    "waist": tuple(
        f"tests/waist/test_{name}.py"
        for name in (
            "concurrency",
            "conflicts",
            "inspect",
            "memory",
            "merge_memory",
            "merge_model",
            "mixed_writers",
            "model",
            "files_of_others",
            "sizes",
            "streams",
        )
    ),
    "waist-spark": tuple(
        f"tests/waist/test_{name}.py"
        for name in (
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
    ),
    "later": ("tests/waist/test_later_conditions.py",),
    "api": ("tests/api",),
    "engines": ("tests/cli", "tests/compat", "tests/compute", "tests/engines"),
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
