"""Blobs in the rows of a write: what the table stores of a blob in its row, and two fields more. Either has a value:
the bytes of one that is new, or the file that has them of one that was in the table, which the writer copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from boathouse.types.data_types import BINARY, INT64, STRING, DataType, Field, IntegerType, StructType

DATA: Final = "boathouse:data"
FILE: Final = "boathouse:file"
"""Names that are no column's, as those of the marks of rows."""


def written(stored: StructType) -> StructType:
    """The type in the rows of a write of a blob of which the table stores this. Its numbers have a sign, so that every
    engine has them as they are."""
    members = tuple(replace(f, nullable=True, type=_signed(f.type)) for f in stored.fields)
    return StructType((*members, Field(DATA, BINARY), Field(FILE, STRING)))


def _signed(type: DataType) -> DataType:
    return INT64 if isinstance(type, IntegerType) else type


def is_written(type: DataType) -> bool:
    """Whether it is the type of blobs in the rows of a write."""
    return isinstance(type, StructType) and [f.name for f in type.fields[-2:]] == [DATA, FILE]
