"""A short form of tools/fuzz_variant.py; the long one, of 2,000,000 cases, is run by hand."""

import pytest


@pytest.mark.few(2)
@pytest.mark.spec("V-086")
@pytest.mark.parametrize(
    ("what", "cases", "rows"),
    [("values", 4000, 500), ("json", 4000, 500), ("leaves", 1500, 500), ("alike", 3000, 3000)],
)
def test_mutated_variants_never_crash_and_never_lie(tool, what, cases, rows):
    assert tool("fuzz_variant").run(cases, seed=7, rows=rows, what=what, quiet=True) > 0
