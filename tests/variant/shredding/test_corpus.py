"""Shredded files written by Iceberg for every reader's tests (apache/parquet-testing)."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from boathouse.errors import MalformedVariant
from boathouse.variant import Variant, parse_metadata
from boathouse.variant.shredding.get import get
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.variants import tree_of


@pytest.fixture(scope="module")
def cases(corpora):
    home = corpora / "variant" / "shredded"
    if not home.is_dir():
        pytest.skip(f"no shredded variants in {corpora}")
    found = [case for case in json.loads((home / "cases.json").read_text()) if "parquet_file" in case]
    assert len(found) == 118
    return [(case, pq.read_table(home / case["parquet_file"])["var"], wanted(home, case)) for case in found]


def wanted(home, case):
    """The recorded variants; None for an error."""
    if "error_message" in case:
        return None
    files = case.get("variant_files") or [case["variant_file"]]
    raw = [None if name is None else (home / name).read_bytes() for name in files]
    return [None if r is None else split(r) for r in raw]


def split(raw):
    size = parse_metadata(raw).size
    return Variant(raw[:size], raw[size:])


def rows_of(column):
    return [None if row is None else Variant(**row) for row in column.to_pylist()]


@pytest.mark.spec("V-069", "V-068", "V-071", "V-072")
def test_every_case_reads_to_its_variant_with_exact_types(cases):
    for case, column, want in cases:
        if want is None:
            continue
        found = rows_of(unshred(column))
        assert found == want, case
        assert [v and tree_of(v) for v in found] == [v and tree_of(v) for v in want], case
        assert [v and v.metadata for v in found] == [v and v.metadata for v in want], case


@pytest.mark.spec("V-076")
def test_cases_that_are_errors_are_refused_with_their_row(cases):
    refused = [(case["case_number"], column) for case, column, want in cases if want is None]
    assert [number for number, _ in refused] == [40, 42]
    for _, column in refused:
        with pytest.raises(MalformedVariant) as error:
            unshred(column)
        assert error.value.row == 0
        with pytest.raises(MalformedVariant):
            get(column, "$")


@pytest.mark.spec("V-078")
def test_every_case_answers_the_root_path(cases):
    for case, column, want in cases:
        if want is not None:
            found = rows_of(get(column, "$"))
            assert [v and tree_of(v) for v in found] == [v and tree_of(v) for v in want], case


@pytest.mark.spec("V-081")
def test_every_case_is_shredded_again_as_it_was(cases):
    for case, column, want in cases:
        if want is None or "typed_value" not in [f.name for f in column.type]:
            continue
        from boathouse.variant.shredding.schema import shredding_schema, storage_type

        schema = shredding_schema(storage_type(shredding_schema(str(shredding_schema(column.type)))))
        again = rows_of(unshred(shred(unshred(column), schema)))
        assert [v and tree_of(v) for v in again] == [v and tree_of(v) for v in want], case


@pytest.mark.spec("V-003")
def test_files_without_a_value_column_are_read(cases):
    lacking = [(case, column) for case, column, _ in cases if "value" not in [f.name for f in column.type]]
    assert [case["case_number"] for case, _ in lacking] == [41]
    (variant,) = rows_of(unshred(lacking[0][1]))
    assert variant.to_python() == ["comedy", "drama"]
