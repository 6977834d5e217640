"""Files that are added: many in one commit, and none that the table knows already."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.api.engines import LOCAL
from boathouse.errors import InvalidArgumentError
from boathouse.ops.outcomes import data_files
from boathouse.ops.run import run
from boathouse.ops.tasks.sink import sink_batches
from boathouse.ops.write import Planned, WritePlan
from boathouse.table.edits import AddFiles, RemoveFiles

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "text": [f"{i * 7919 % 104729}" * 4 for i in ids]}, SCHEMA)


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


def eyes(root):
    head = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return StaticTable.from_metadata(f"file://{head}")


@pytest.mark.few(1)
@pytest.mark.spec("I-186")
def test_a_large_append_makes_manifests_of_the_target_size(tmp_path, version):
    target = 5000
    properties = {"format-version": version, "commit.manifest.target-size-bytes": str(target)}
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=["id"], properties=properties)
    t.append(rows(1000))
    t.append(rows(*range(200)))
    theirs = eyes(tmp_path / "t")
    manifests = [m for m in theirs.inspect.manifests().to_pylist() if m["added_data_files_count"] > 1]
    assert len(manifests) > 2 and sum(m["added_data_files_count"] for m in manifests) == 200
    header = min(m["length"] for m in theirs.inspect.manifests().to_pylist())  # one entry and the schema
    assert all(m["length"] < target + header for m in manifests)
    counts = [m["added_data_files_count"] for m in manifests]
    assert max(counts) - min(counts) <= len(counts)  # no tiny one at the end
    if version != "3":
        assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == [*range(200), 1000]
    assert t.count() == 201 and t.scan(where="id = 7").to_arrow().num_rows == 1
    if version == "3":
        ids = t.scan(["id", "_row_id"]).to_arrow()["_row_id"].to_pylist()
        assert sorted(ids) == list(range(201))


@dataclass
class Adds:
    """The same files, once more."""

    outcomes: pa.Table
    found: bool
    removes: bool = False
    operation: str = "append"

    def plan(self, start):
        edits = [AddFiles(self.outcomes, found=self.found)]
        if self.removes:
            edits.append(RemoveFiles(start.snapshot.plan().units))
        return WritePlan((), lambda _: Planned(start.change("overwrite" if self.removes else "append", edits)))


@pytest.mark.spec("I-172", "I-171")
def test_a_path_is_added_once(tmp_path, version):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"format-version": version})
    context = t._handle.snapshot.write_context("somewhere-else")
    outcomes = data_files(pa.Table.from_batches(list(sink_batches(rows(1, 2).to_batches(), context))))

    def add(found=True, removes=False, files=outcomes):
        run(bh.open(str(tmp_path / "t"))._handle, LOCAL, Adds(files, found, removes))

    with pytest.raises(InvalidArgumentError, match="adds it twice"):
        add(found=False, files=pa.concat_tables([outcomes, outcomes]))
    add()
    assert bh.open(str(tmp_path / "t")).count() == 2
    before = sorted((tmp_path / "t" / "metadata").iterdir())
    with pytest.raises(InvalidArgumentError, match="the table has it"):
        add()
    with pytest.raises(InvalidArgumentError, match="the commit removes it"):
        add(found=False, removes=True)
    assert sorted((tmp_path / "t" / "metadata").iterdir()) == before
    bh.open(str(tmp_path / "t")).delete()
    before = sorted((tmp_path / "t" / "metadata").iterdir())
    with pytest.raises(InvalidArgumentError, match="deleted it"):
        add()
    assert sorted((tmp_path / "t" / "metadata").iterdir()) == before
    assert bh.open(str(tmp_path / "t")).count() == 0
