"""The contents of `detail`, `files` and a table's repr."""

from __future__ import annotations

from html import escape
from typing import Any

import pyarrow as pa

from boathouse.api.text import human_bytes, iso
from boathouse.arrow.schema import to_arrow_type
from boathouse.errors import BoathouseError
from boathouse.ops.handle import Handle
from boathouse.types import PartitionSpec


def files_table(handle: Handle) -> pa.Table:
    """path, size, rows, deleted and one struct of partition values by name; all files of the snapshot."""
    names = {f.id: f.name for spec in handle.snapshot.partitioning.specs for f in spec}
    tables = []
    for batch in handle.snapshot.files():
        partition = batch.column("partition")
        columns = [batch.column(c) for c in ("path", "size", "rows", "deleted")]
        labels = [pa.field(names[int(f.name)], f.type) for f in partition.type]
        if labels:
            values = pa.StructArray.from_arrays([partition.field(i) for i in range(len(labels))], fields=labels)
        else:
            values = pa.array([{}] * batch.num_rows, pa.struct([]))
        tables.append(pa.Table.from_arrays([*columns, values], ["path", "size", "rows", "deleted", "partition"]))
    if tables:
        return pa.concat_tables(tables)
    fields = [pa.field(names[f.id], to_arrow_type(f.type)) for s in handle.snapshot.partitioning.specs for f in s]
    counts = [(c, pa.int64()) for c in ("size", "rows", "deleted")]
    return pa.schema([("path", pa.string()), *counts, ("partition", pa.struct(fields))]).empty_table()


def sizes(handle: Handle) -> dict[str, Any]:
    """Counts over all files: files, bytes, rows (null if some file does not record them), deleted, small files."""
    found = handle.snapshot.sizes()
    return {
        "files": found.files,
        "bytes": found.bytes,
        "rows": found.rows,
        "deleted_rows": found.deleted,
        "small_files": found.small_files,
    }


def detail(handle: Handle) -> dict[str, Any]:
    """The contents of `info`, as plain values."""
    s = handle.snapshot
    return {
        "format": s.format,
        "location": str(handle.location),
        "version": s.version,
        "timestamp": iso(s.timestamp_ms),
        "ref": s.ref,
        "identity": s.identity,
        **sizes(handle),
        "columns": [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in s.schema],
        "partition_by": partition_text(s.partitioning.current),
        "properties": dict(s.properties),
        **dict(s.detail()),
    }


def summary_lines(handle: Handle) -> list[str]:
    """A few lines for a repr; does not read the list of files."""
    s = handle.snapshot
    lines = [f"{s.format} table {handle.location}", f"  version {s.version}, {iso(s.timestamp_ms)}"]
    by = partition_text(s.partitioning.current)
    if by:
        lines.append(f"  partitioned by {', '.join(by)}")
    lines += [f"  {f}" for f in s.schema.fields[:40]]
    if len(s.schema) > 40:
        lines.append(f"  ... and {len(s.schema) - 40} more columns")
    return lines


def summary_html(handle: Handle) -> str:
    """As the lines, with what the version holds; that is left out where its metadata cannot be read."""
    head, *rest = summary_lines(handle)
    try:
        found = handle.snapshot.sizes()
    except BoathouseError:
        pass
    else:
        rows = "unknown rows" if found.rows is None else f"{found.rows:,} rows"
        rest.insert(1, f"{rows} in {found.files:,} files, {human_bytes(found.bytes)}")
    cells = "".join(f"<tr><td style='text-align:left'>{escape(line.strip())}</td></tr>" for line in rest)
    return f"<b>{escape(head)}</b><table>{cells}</table>"


def partition_text(spec: PartitionSpec) -> list[str]:
    """`month(day)`, `bucket(16, id)`, `country`."""
    return [str(field) for field in spec]
