"""`write.delete.mode` and its like: what cannot be obeyed yet is refused by name, by the operation it is about."""

from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.row_modes import row_deletes

DATA = pa.table({"id": pa.array(range(8), pa.int64()), "p": ["a", "b"] * 4})


def files(eyes):
    return sorted(Path(eyes.root).rglob("*.*"))


@pytest.mark.parametrize("spelled", ["merge-on-read", "MERGE-ON-READ"])
@pytest.mark.feature("row deletes under `write.delete.mode=merge-on-read`", format="iceberg")
def test_a_delete_of_rows_is_refused_before_anything_is_written(make, spelled):
    table, eyes = make(DATA, partition_by=["p"], properties={"write.delete.mode": spelled})
    before = files(eyes)
    with pytest.raises(UnsupportedFeatureError, match=r"write\.delete\.mode") as refused:
        table.delete("id = 3")
    assert files(eyes) == before
    assert "table.set_properties({'write.delete.mode': 'copy-on-write'})" in str(refused.value)
    table.set_properties({"write.delete.mode": "copy-on-write"})
    table.delete("id = 3")
    assert eyes.rows().num_rows == 7


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
    with pytest.raises(UnsupportedFeatureError, match=r"write\.update\.mode"):
        row_deletes(metadata, "update")
    with pytest.raises(InvalidArgumentError, match=r"write\.merge\.mode is 'sometimes'"):
        row_deletes(metadata, "merge")
    assert bh.open(str(eyes.root)).delete("id = 1").rows_deleted == 1
