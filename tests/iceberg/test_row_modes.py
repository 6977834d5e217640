"""`write.delete.mode` and its like: which operation each is about."""

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError
from boathouse.iceberg.row_modes import row_deletes

DATA = pa.table({"id": pa.array(range(8), pa.int64()), "p": ["a", "b"] * 4})


@pytest.mark.parametrize("spelled", ["merge-on-read", "MERGE-ON-READ"])
def test_the_mode_is_that_of_the_newest_version(make, spelled):
    table, eyes = make(DATA, partition_by=["p"], properties={"write.delete.mode": spelled})
    assert table.delete("id = 3").files_removed == 0
    table.set_properties({"write.delete.mode": "copy-on-write"})
    assert table.delete("id = 4").files_removed == 1
    assert eyes.rows().num_rows == 6


def test_what_the_mode_is_not_about_goes_on(make):
    """Whole files leave in either mode; appends and overwrites write files anyway."""
    modes = {f"write.{o}.mode": "merge-on-read" for o in ("delete", "update", "merge")}
    table, eyes = make(DATA, partition_by=["p"], properties=modes)
    table.append(DATA)
    table.delete("p = 'a'")
    assert eyes.rows().num_rows == 8
    table.overwrite(DATA.slice(1, 1), where="id = 1 and p = 'b'")
    assert eyes.rows().num_rows == 7
    table.delete("id > 100")
    table.overwrite(DATA)
    table.delete()
    assert eyes.rows().num_rows == 0


def test_each_operation_has_its_own_mode(make):
    table, eyes = make(DATA, properties={"write.update.mode": "merge-on-read", "write.merge.mode": "sometimes"})
    metadata = table._handle.snapshot.metadata
    assert row_deletes(metadata, "delete") == "rewrite"
    assert row_deletes(metadata, "update") == "positions"
    assert row_deletes(metadata, "overwrite") == "rewrite"
    with pytest.raises(InvalidArgumentError, match=r"write\.merge\.mode is 'sometimes'"):
        row_deletes(metadata, "merge")
    assert bh.open(str(eyes.root)).delete("id = 1").rows_deleted == 1
