"""Tables that releases of pylance from 0.8 to 13 wrote, in every version of data files: each column has its rows.

tools/lance_corpus.py makes the archive, and says what it holds.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError

ARCHIVE = Path(__file__).with_name("lance_releases.tar.xz")
RELEASES = (
    "0.8.21", "0.12.3", "0.16.1", "0.20.0", "0.27.2", "0.30.0", "0.36.0", "0.39.0",
    "1.0.4", "2.0.1", "4.0.2", "6.1.0", "8.0.1", "10.0.0", "13.0.0",
)  # fmt: skip
SHORT = ("0.8.21", "0.20.0", "0.39.0", "6.1.0", "13.0.0")
"""Without the slow tests: the oldest, the newest, and some between."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("releases")
    with tarfile.open(ARCHIVE) as archive:
        # Python 3.11 has the filter from 3.11.4 on.
        archive.extractall(root, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return root


def read(path: Path) -> pa.Table:
    """Extension types, which pylance registers when it is imported, as their storage."""
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    columns = [
        pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)
        if isinstance(column.type, pa.BaseExtensionType)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def expected(corpus: Path, place: Path) -> dict[str, pa.ChunkedArray]:
    """What went in, but where a version does not keep it."""
    common, other = corpus / "expected" / f"{place.name}.arrow", place.with_suffix(".differs.arrow")
    found = {}
    for path in (common, other):
        if path.exists():
            table = read(path)
            found |= dict(zip(table.column_names, table.columns))
    return found


def equal(ours: pa.ChunkedArray, want: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(want.type):
        want = want.cast(want.type.value_type)
    if want.type == pa.binary(2) and pa.types.is_float32(ours.type):  # brain floats: the upper half of a float
        values = [v if v is None else np.frombuffer(b"\0\0" + v, "<f4")[0].item() for v in want.to_pylist()]
        want = pa.chunked_array([pa.array(values, pa.float32())])
    if ours.type != want.type:
        want = want.cast(ours.type) if not pa.types.is_nested(ours.type) else want
    return ours.combine_chunks().equals(want.combine_chunks()) or repr(ours.to_pylist()) == repr(want.to_pylist())


def check(corpus: Path, place: Path) -> list[str]:
    """The columns that do not read as they should."""
    wrong = []
    want = expected(corpus, place)
    refused = place.with_suffix(".refused.json")
    refused_there = json.loads(refused.read_text()) if refused.exists() else {}
    table = bh.open(str(place))
    whole = None if refused_there else table.to_arrow()
    for name in table.schema.names:
        try:
            column = (table.scan(columns=[name]).to_arrow() if whole is None else whole).column(name)
            column.validate(full=True)
            if not equal(column, want[name]):
                wrong.append(f"{name}: other values")
        except (CorruptTableError, UnsupportedFeatureError) as error:
            if name not in refused_there:
                wrong.append(f"{name}: {error}")
    return wrong


@pytest.mark.few(2)
@pytest.mark.spec("L-040", "L-101", "L-102", "L-103", "L-106", "L-135")
@pytest.mark.parametrize("release", [pytest.param(r, marks=() if r in SHORT else pytest.mark.slow) for r in RELEASES])
def test_every_column_has_its_rows(corpus, release):
    tables = sorted(p.parent for p in (corpus / release).glob("*/*/_versions"))
    assert len(tables) > 10
    wrong = {}
    for place in tables:
        try:
            found = check(corpus, place)
        except BoathouseError as error:
            found = [str(error)]
        if found:
            wrong[str(place.relative_to(corpus))] = found
    assert wrong == {}


def test_the_archive_holds_what_is_hard(corpus):
    """Every version of data files, and columns of several pages."""
    versions = {p.parents[1].name for p in corpus.glob("*/*/*/_versions")}
    assert versions == {"legacy", "2.0", "2.1", "2.2"}
    assert ARCHIVE.stat().st_size < 5_000_000
