"""How the variants of files that are about to be written are shredded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from boathouse.parquet.shredded import Shredding
from boathouse.parquet.stats import SchemaLeaf, leaf_array
from boathouse.types import VariantType
from boathouse.variant.shredding.choose import choose
from boathouse.variant.shredding.schema import ShreddingSchema


def shredding_of(
    leaves: Sequence[SchemaLeaf], rows: pa.RecordBatch, stored: Callable[[tuple[str, ...]], tuple[str, ...]]
) -> Shredding:
    """A schema for each variant that is worth shredding by what these rows hold, by its path in the files; `stored`
    gives that of a leaf."""
    found: dict[tuple[str, ...], ShreddingSchema] = {}
    for leaf in leaves:
        if isinstance(leaf.field.type, VariantType):
            schema = choose(leaf_array(rows, leaf.steps), widen=True)
            if schema.is_shredded:
                found[stored(leaf.path)] = schema
    return found
