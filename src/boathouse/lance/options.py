"""What driver and executors agree on: keys of options, and the format's own columns of FILES and OUTCOMES."""

from __future__ import annotations

import pyarrow as pa

FIELDS = "fields"
"""The table's fields as a SchemaMessage: of a ReadSpec and of a WriteContext."""
VERSION = "version"
"""The version of the data files, of a WriteContext."""
NATIVE = pa.struct([pa.field("fragment", pa.binary(), False)])
"""Of FILES: the DataFragment message as it is in the manifest."""
OUTCOME_NATIVE = pa.struct([pa.field("version", pa.string(), False)])
"""Of OUTCOMES: the version of the data file."""
BFLOAT16 = "lance.bfloat16"
"""Read as 32-bit floats, and not written; so is JSON, which is read as text."""
NO_PARTITION = pa.struct([])
