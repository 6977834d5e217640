"""Which rows of a column are well-formed variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.reading import read
from boathouse.variant.columns.scalars import decimals, numbers, strings
from boathouse.variant.primitives import Family
from boathouse.variant.validate import validate_bytes


def is_valid(data: Any) -> pa.BooleanArray | pa.ChunkedArray:
    """Whether each row of a column is a variant in which `Variant.validate` finds no error; null for null rows.

    Chunked if the column is. Raises SchemaMismatchError for what is not a column of variants.
    """
    parts = [_column(column) for column in chunks(data)]
    if isinstance(data, pa.ChunkedArray):
        return pa.chunked_array(parts, pa.bool_())
    return parts[0] if parts else pa.array([], pa.bool_())


def _column(column: Column) -> pa.BooleanArray:
    valid = np.zeros(column.rows, np.bool_)
    for _, _, rows, sound in read(column, _contents, Lenient()):
        valid[rows] = sound
    present = np.ones(column.rows, np.bool_) if column.valid is None else column.valid
    # What the vectorised reading refuses may be merely odd, such as an unknown primitive type.
    for row in np.flatnonzero(present & ~valid):
        valid[row] = _sound(column.metadata_bytes(int(row)), column.value(int(row)))
    return pa.array(valid, mask=~present)


def check_scalars(tree: Tree) -> None:
    """Raises Faulty for illegal contents of scalars."""
    for kind, which in tree.scalars():
        match kind.family:
            case Family.DECIMAL:
                decimals(tree, which, kind)
            case Family.TIME:
                numbers(tree, which, kind)
            case Family.STRING:
                strings(tree, which)


def _contents(tree: Tree) -> bool:
    """Whether the rows are certainly well-formed; Faulty for those that are not."""
    check_scalars(tree)
    # A name that is not UTF-8 is an error even where no field uses it: such rows are checked one by one.
    return tree.names.broken is None


def _sound(metadata: bytes, value: bytes) -> bool:
    return all(finding.kind != "error" for finding in validate_bytes(metadata, value))
