"""Schema evolution: the edits that a write makes, in the commit of its rows, for columns and types that the table
lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boathouse.bits.names import Names
from boathouse.table.edits import AddColumn, SetType
from boathouse.types import DataType, DecimalType, Field, FloatType, IntegerType, Schema, StructType


def evolution(table: Schema, data: Schema) -> tuple[AddColumn | SetType, ...]:
    """Fields that only the data has, at any depth of structs, and types that are wider in the data."""
    return tuple(_edits(table.fields, data.fields, ()))


def _edits(table: Sequence[Field], data: Sequence[Field], parent: tuple[str, ...]) -> Iterator[AddColumn | SetType]:
    names = Names(f.name for f in table)
    for f in data:
        hits = names.at(f.name)
        if not hits:
            yield AddColumn(f.name, f.type, parent)
        elif len(hits) == 1:
            have = table[hits[0]]
            if isinstance(have.type, StructType) and isinstance(f.type, StructType):
                yield from _edits(have.type.fields, f.type.fields, (*parent, have.name))
            elif wider(have.type, f.type):
                yield SetType((*parent, have.name), f.type)


def wider(have: DataType, given: DataType) -> bool:
    """Whether every value of the first type is one of the second, of the same kind."""
    match have, given:
        case (IntegerType(a, True), IntegerType(b, True)) | (FloatType(a), FloatType(b)):
            return b > a
        case (DecimalType(p, s), DecimalType(q, t)):
            return s == t and q > p
    return False
