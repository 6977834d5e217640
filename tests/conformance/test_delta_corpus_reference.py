"""The Delta tables of the corpora as delta-spark reads them, at every version that `test_delta_corpus.py` lists."""

import json
from pathlib import Path

import pytest
from reference_spark import DELTA, started

import boathouse as bh

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "delta_corpus.json").read_text())
OLDER = json.loads((HERE / "delta_corpus_versions.json").read_text())
ONLY_WE_READ: dict[str, str] = {}
"""Tables that delta-spark refuses, or reads otherwise, and why."""
ONLY_IT_READS: dict[str, str] = {}
"""Tables that we refuse and delta-spark reads, and why."""
MOST = 8
"""Of a table with more older versions, these many are read."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(DELTA, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


def versions_of(name):
    found = []
    for key, wanted in OLDER.get(name, {}).items():
        first, _, last = key.partition("-")
        found += [(v, wanted) for v in range(int(first), int(last or first) + 1)]
    step = -(-len(found) // MOST) or 1
    return [*found[::step], (None, EXPECTED[name])]


@pytest.mark.parametrize("name", EXPECTED)
def test_table(delta_corpus, rows, reference, name):
    folder = delta_corpus / name
    for version, wanted in versions_of(name):
        at = "" if version is None else f" VERSION AS OF {version}"
        query = f"SELECT * FROM delta.`{folder}`{at}"
        if isinstance(wanted, list):
            refused = reference.error(f"CREATE OR REPLACE TEMP VIEW v AS {query}") or reference.error("CACHE TABLE v")
            assert (refused is None) == (name in ONLY_IT_READS), (version, wanted)
            continue
        ours = bh.open(str(folder), format="delta", version=version).to_arrow()
        if name in ONLY_WE_READ:
            with pytest.raises(AssertionError):
                rows.same(ours, reference.rows(query))
            continue
        rows.same(ours, reference.rows(query))
