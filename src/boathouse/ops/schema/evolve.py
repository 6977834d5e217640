"""Schema evolution: the edits that a write makes, in the commit of its rows, for columns and types that the table
lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from boathouse.bits.names import Names
from boathouse.expr.tree import Path
from boathouse.table.edits import AddColumn, SetType
from boathouse.types import DataType, DecimalType, Field, FloatType, IntegerType, Schema, StructType


def evolution(table: Schema, data: Schema) -> tuple[AddColumn | SetType, ...]:
    """Fields that only the data has, at any depth of structs, and types that are wider in the data."""
    return tuple(_edits(table.fields, data.fields, ()))


def brought(data: Schema, paths: Collection[Path]) -> Schema:
    """What the data has at these paths; ignoring case, as names are resolved."""
    wanted = {tuple(name.lower() for name in path) for path in paths}
    return Schema(tuple(_brought(data.fields, wanted)))


def _brought(fields: Sequence[Field], wanted: Collection[Path]) -> Iterator[Field]:
    for f in fields:
        below = {path[1:] for path in wanted if path[0] == f.name.lower()}
        if () in below:
            yield f
        elif below and isinstance(f.type, StructType):
            yield f.with_type(StructType(tuple(_brought(f.type.fields, below))))


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
