"""Verifies a manifest that was just written, with our own reader; on executors too."""

from __future__ import annotations

import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.iceberg.manifests.columns import TYPES, partition_column, plain
from boathouse.iceberg.manifests.entries import FILE, Entries
from boathouse.iceberg.manifests.records import DATA, Row, manifest_file
from boathouse.iceberg.manifests.writer import counts
from boathouse.table.attempt import held_back
from boathouse.types import PartitionSpec

_OF_VECTORS = ("referenced_data_file", "content_offset", "content_size_in_bytes")


def check_manifest(data: bytes, row: Row, meant: pa.Table, spec: PartitionSpec) -> None:
    """Raises CorruptTableError unless the manifest contains the intended entries, as counted in its row."""
    where = row["manifest_path"]
    found = Entries.read(data, manifest_file(row, where), where).files(live_only=False)
    if len(found) != meant.num_rows or any(row[name] != count for name, count in counts(meant).items()):
        raise held_back(f"the manifest contains {len(found)} entries instead of {meant.num_rows}", where)
    numbers = {"record_count": found.rows, "file_size_in_bytes": found.sizes}
    mine = {
        "status": longs(found.columns.longs(("status",))[0]).cast(pa.int32()),
        "file_path": found.paths(),
        **{name: longs(values) for name, values in numbers.items()},
        **{partition_column(f): found.partition_array(f) for f in spec},
    }
    if row["content"] != DATA:
        columns = found.whole().columns
        mine |= {name: plain(columns, (FILE, name), TYPES[name]) for name in _OF_VECTORS}
    changed = [n for n, array in mine.items() if not _equal(array, meant.column(n).combine_chunks())]
    if changed:
        raise held_back(f"the entries read back with another {', '.join(changed)}", where)
    if len(found) and not 0 <= found.file_sequence.min() <= found.file_sequence.max() <= row["sequence_number"]:
        raise held_back("an entry comes from a later commit", where)


def _equal(a: pa.Array, b: pa.Array) -> bool:
    if pa.types.is_floating(a.type):
        # NaN does not equal itself, and the two zeros are equal: bits are compared.
        bits = pa.int32() if a.type.bit_width == 32 else pa.int64()
        a, b = a.view(bits), b.view(bits)
    return bool(a.equals(b))
