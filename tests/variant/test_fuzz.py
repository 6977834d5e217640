"""A short form of tools/fuzz_variant.py; the long one, of 2,000,000 cases, is run by hand."""

import pytest


@pytest.mark.spec("V-086")
@pytest.mark.parametrize(("what", "cases"), [("values", 4000), ("json", 4000), ("leaves", 1500)])
def test_mutated_variants_never_crash_and_never_lie(tool, what, cases):
    assert tool("fuzz_variant").run(cases, seed=7, what=what, quiet=True) > 0
