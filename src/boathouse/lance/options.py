"""Constants shared by driver and executors: keys of options, and the format's own columns of FILES and OUTCOMES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr

FIELDS = "fields"
"""Option of ReadSpec and WriteContext: the table's fields as a SchemaMessage."""
VERSION = "version"
"""Option of WriteContext: the version of the data files."""
NATIVE = pa.struct([pa.field("fragment", pa.binary(), False), pa.field("rows", pa.binary())])
"""Column of FILES: the DataFragment message as in the manifest, and the rows that may satisfy the condition of the
plan, as ranges (`indices.row_ranges`; null: any)."""
OUTCOME_NATIVE = pa.struct(
    [pa.field("version", pa.string(), False), pa.field("row_ids", pa.binary()), pa.field("places", pa.binary())]
)
"""Column of OUTCOMES: the version of the data file, the ids of its rows if some have one already, as a sequence in
which new rows have numbers from `lineage.sequences.FIRST_NEW` on, and the addresses that they had, if that is asked."""
BFLOAT16 = "lance.bfloat16"
"""Read as 32-bit floats, and rounded to 16 bits as they are written; JSON is read as text, and stored as JSONB."""
NO_PARTITION = pa.struct([])


@dataclass(frozen=True, slots=True)
class NativeRead:
    """Of ReadSpec: the table's fields as a SchemaMessage, and the condition for which units were planned: `rows` of
    units hold for it alone. `overlays`: fragments may have data overlay files."""

    fields: bytes
    where: Expr | None = None
    overlays: bool = False
