"""Constants shared by driver and executors: keys of options, and the format's own columns of FILES and OUTCOMES."""

from __future__ import annotations

import pyarrow as pa

FIELDS = "fields"
"""Option of ReadSpec and WriteContext: the table's fields as a SchemaMessage."""
VERSION = "version"
"""Option of WriteContext: the version of the data files."""
NATIVE = pa.struct([pa.field("fragment", pa.binary(), False)])
"""Column of FILES: the DataFragment message as in the manifest."""
OUTCOME_NATIVE = pa.struct([pa.field("version", pa.string(), False), pa.field("row_ids", pa.binary())])
"""Column of OUTCOMES: the version of the data file, and the ids of its rows if some have one already, as a sequence in
which new rows have numbers from `lineage.sequences.FIRST_NEW` on."""
BFLOAT16 = "lance.bfloat16"
"""Read as 32-bit floats, but not written; JSON is not written either, and read as text."""
NO_PARTITION = pa.struct([])
