"""What an Avro file outside of a table says: its columns, and the number of rows."""

from __future__ import annotations

import pyarrow as pa

from boathouse.arrow.schema import from_arrow
from boathouse.parquet.field_source import FieldSource
from boathouse.parquet.footer_summary import AsStored, Footer
from boathouse.parquet.stats import LeafStats, schema_leaves


def footer_of(file: FieldSource) -> Footer:
    """The columns of an open file with their field ids, and its rows, which all blocks are read to count. Nothing is
    known of their values. Raises CorruptTableError, UnsupportedTypeError."""
    found = file.resolver.fields
    arrow = pa.schema([pa.field(f.name, f.type) for f in found])
    schema = AsStored(ids=True).schema(from_arrow(arrow), found)
    rows = sum(part.num_rows for part in file.tables(()))
    leaves = [leaf for leaf in schema_leaves(schema) if not leaf.repeated]
    return Footer(schema, rows, tuple(LeafStats(leaf.path, leaf.field.type) for leaf in leaves))
