"""Every Delta table of the corpora in process, at every version: the expected rows, or a refusal that names its reason.

The rows of the newest version are those that come with the table where there are any. deltalake reads the others, and
older versions; `OTHERS` are the tables that it does not read, or reads wrongly, and why. test_delta_corpus_reference.py
compares all of them with delta-spark.
"""

import datetime as dt
import json
from pathlib import Path

import pytest

import boathouse as bh
from boathouse import errors

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "delta_corpus.json").read_text())
"""Folder -> rows (int), or [error class, words of its message, why]; `open` refuses, or the first read does."""
OLDER = json.loads((HERE / "delta_corpus_versions.json").read_text())
"""Folder -> version or `first-last` -> the same, for every version but the newest."""
PACIFIC = "golden/data-reader-partition-values/delta"
"""Expects the zone of its writer."""
_SPELLING = (
    "a file is added under one spelling of its absolute path and removed under another, which it takes for two files"
)
OTHERS = {
    **{f"golden/canonicalized-paths-{kind}-{form}/delta": _SPELLING for kind in ("normal", "special") for form in "ab"},
    "golden/type-widening/delta": "does not know typeWidening-preview",
    "golden/type-widening-nested/delta": "does not know typeWidening-preview",
    "java-kernel/spark-shredded-variant-preview-delta": "does not know variantShredding-preview",
}


def outcome(folder, wanted, **at):
    """The table if it can be read; None if it is refused as expected."""
    if isinstance(wanted, list):
        kind, words = wanted[:2]
        with pytest.raises(errors.BoathouseError) as error:
            bh.open(str(folder), format="delta", **at).to_arrow()
        assert type(error.value).__name__ == kind
        assert words in str(error.value)
        return None
    table = bh.open(str(folder), format="delta", **at)
    found = table.to_arrow()
    assert found.num_rows == wanted == table.count()
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_table(delta_corpus, rows, name):
    folder = delta_corpus / name
    found = outcome(folder, EXPECTED[name])
    if found is None or name == PACIFIC:  # see below
        return
    expected = rows.expected(folder)
    if expected is not None:
        rows.same(found, expected.select(found.column_names))
    elif name not in OTHERS:
        rows.same(found, rows.by_deltalake(folder))


def versions_of(name):
    for key, wanted in OLDER[name].items():
        first, _, last = key.partition("-")
        for version in range(int(first), int(last or first) + 1):
            yield version, wanted


@pytest.mark.few(12)
@pytest.mark.parametrize("name", OLDER)
def test_older_versions(delta_corpus, rows, name):
    folder = delta_corpus / name
    for version, wanted in versions_of(name):
        found = outcome(folder, wanted, version=version)
        if found is not None and name not in OTHERS:
            rows.same(found, rows.by_deltalake(folder, version))


def test_no_table_and_no_version_is_left_out(delta_corpus):
    found = {str(p.parent.relative_to(delta_corpus)): p for p in delta_corpus.rglob("_delta_log")}
    assert found.keys() == EXPECTED.keys()
    for name, log in found.items():
        numbers = {int(p.name[:20]) for p in log.iterdir() if p.name[:20].isdigit() and p.stat().st_size}
        older = set(range(max(numbers)))
        assert {v for v, _ in versions_of(name)} == older if name in OLDER else not older, name


def test_every_refusal_has_a_reason():
    outcomes = [*EXPECTED.values(), *(o for found in OLDER.values() for o in found.values())]
    for wanted in outcomes:
        assert isinstance(wanted, int) or (len(wanted) == 3 and len(wanted[2]) > 20), wanted


@pytest.mark.parametrize("name", OTHERS)
def test_what_deltalake_does_not_read(delta_corpus, rows, name):
    """So that a table leaves the list when deltalake reads it."""
    folder = delta_corpus / name
    ours = bh.open(str(folder), format="delta").to_arrow()
    with pytest.raises(Exception):  # noqa: B017
        rows.same(ours, rows.by_deltalake(folder))


def test_partition_values_written_in_the_pacific_zone(delta_corpus, rows):
    """A timestamp without a zone is read in UTC: seven hours from what its writer in California meant."""
    folder = delta_corpus / PACIFIC
    found = bh.open(str(folder), format="delta").to_arrow()
    expected = rows.expected(folder).select(found.column_names)
    others = [n for n in found.column_names if n != "as_timestamp"]
    assert rows.of(found.select(others)) == rows.of(expected.select(others))
    ours = {t for t in found.column("as_timestamp").to_pylist() if t is not None}
    theirs = {t for t in expected.column("as_timestamp").to_pylist() if t is not None}
    assert {rows.plain(t) + dt.timedelta(hours=7) for t in ours} == {rows.plain(t) for t in theirs}
