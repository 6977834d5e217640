"""The demo's Iceberg table, as iceberg-spark reads it: each version, and the branch; and goes on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pc
import pytest
from reference_spark import ICEBERG

import boathouse as bh
from demo import board, data, streamed
from demo.releases import read_release

pytestmark = pytest.mark.slow
RELEASE = ICEBERG


def release(path, numbers, name):
    """A list of made airports, as a CSV file of a release."""
    texts = {"name": [name if i % 5 == 0 else f"{i} Field" for i in numbers], "lid": ["" for _ in numbers],
             "country": ["DE" if i % 7 == 0 else "NO" for i in numbers]}  # fmt: skip
    keys = {"icao": [f"X{i:03}" for i in numbers], "elevation": [i * 1.5 for i in numbers]}
    more = {"lat": [i / 7 for i in numbers], "lon": [-i / 3 for i in numbers]}
    pc.write_csv(pa.table({**keys, **texts, **more}), str(path))
    return path


def test_iceberg_spark_reads_the_vectors_and_the_branch(reference, nasty, tmp_path):
    releases = [("one", release(tmp_path / "one.csv", range(300), "old")),
                ("two", release(tmp_path / "two.csv", range(20, 330), "new"))]  # fmt: skip
    path, name = str(reference.root / "db" / "streamed"), "ice.db.streamed"
    facts = streamed.keep(path, data.Data(tmp_path, tmp_path, tuple(releases)), board.Board())
    assert facts["holds"] is True

    def theirs(query):
        reference.sql(f"REFRESH TABLE {name}")
        return reference.rows(query)

    new = read_release(releases[1][1])
    nasty.same(theirs(f"SELECT * FROM {name}").select(new.column_names), new, "icao")
    versions = [*bh.open(path).history(), *bh.open(path, ref="audit").history()]
    for version in sorted({e.version for e in versions if e.version is not None}):
        mine = bh.open(path, version=version).to_arrow()
        nasty.same(mine, theirs(f"SELECT * FROM {name} VERSION AS OF {version}"), "icao")
    branch = theirs(f"SELECT * FROM {name} VERSION AS OF 'audit'")
    nasty.same(bh.open(path, ref="audit").to_arrow(), branch, "icao")
    assert branch.num_rows == new.num_rows - sum(i % 7 == 0 for i in range(20, 330))
    files = theirs(f"SELECT content, file_format, record_count FROM {name}.delete_files").to_pylist()
    assert {(f["content"], f["file_format"]) for f in files} == {(1, "PUFFIN")}
    reference.sql(
        f"DELETE FROM {name}.branch_audit WHERE icao = 'X022'",
        "CALL ice.system.fast_forward(table => 'db.streamed', branch => 'main', to => 'audit')",
    )
    mine = bh.open(path).to_arrow()
    assert mine.num_rows == branch.num_rows - 1
    nasty.same(mine, theirs(f"SELECT * FROM {name}"), "icao")
    ids = bh.open(path).scan(["icao", "_row_id"]).to_arrow()
    nasty.same(ids, theirs(f"SELECT icao, _row_id FROM {name}"), "icao")
