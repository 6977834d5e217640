"""One schema for files with different ones: columns by name, at every depth of structs, lists and maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.bits.names import Names
from boathouse.errors import SchemaMismatchError
from boathouse.types.data_types import (
    DATE,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
)

Path = tuple[str, ...]
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""How many digits before the point a decimal needs to hold any integer of these bits, as Delta's type widening has
it."""


def united(schemas: Sequence[tuple[str, Schema]]) -> Schema:
    """The columns of all files, each given with where it is, in the order of first appearance.

    A column that a file lacks is nullable. Of two types one must be wider. Raises SchemaMismatchError, naming both
    files, for others, and for two names that differ only in case: some readers would find neither in the other's file.
    """
    (first, schema), *others = schemas
    union = _Union(first)
    fields = schema.fields
    for where, other in others:
        fields = union.fields(fields, other.fields, where, ())
    return Schema(fields)


def wider(a: DataType, b: DataType) -> DataType | None:
    """The one of two types that holds every value of the other; None if neither does."""
    if a == b or _widens(b, a):
        return a
    return b if _widens(a, b) else None


def _widens(narrow: DataType, wide: DataType) -> bool:
    match narrow, wide:
        case NullType(), _:
            return True
        case IntegerType(few, True), IntegerType(many, True):
            return few < many
        case IntegerType(bits, True), FloatType(64):
            return bits <= 32
        case IntegerType(bits, True), DecimalType(precision, scale):
            return precision - scale >= _DIGITS[bits]
        case FloatType(32), FloatType(64):
            return True
        case DecimalType(p, s), DecimalType(precision, scale):
            return s <= scale and p - s <= precision - scale
    return narrow == DATE and wide == TIMESTAMP_NTZ


class _Union:
    """`_homes` names the file that decided the type of a column, by its path; other columns are the first file's."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._homes: dict[Path, str] = {}

    def fields(self, known: Sequence[Field], more: Sequence[Field], where: str, above: Path) -> tuple[Field, ...]:
        places, here = Names(f.name for f in known), Names(f.name for f in more)
        found = []
        for f in known:
            at = here.exactly(f.name)
            found.append(self._field(f, more[at[0]], where, (*above, f.name)) if at else replace(f, nullable=True))
        for f in more:
            if places.exactly(f.name):
                continue
            path = (*above, f.name)
            if alike := places.loosely(f.name):
                self._refuse_case((*above, known[alike[0]].name), path, where)
            self._homes[path] = where
            found.append(replace(f, nullable=True))
        return tuple(found)

    def _field(self, known: Field, other: Field, where: str, path: Path) -> Field:
        type = self._type(known.type, other.type, where, path)
        return replace(known, type=type, nullable=known.nullable or other.nullable)

    def _type(self, known: DataType, other: DataType, where: str, path: Path) -> DataType:
        match known, other:
            case StructType(fields), StructType(more):
                return StructType(self.fields(fields, more, where, path))
            case ListType(element), ListType(more):
                return ListType(self._field(element, more, where, (*path, "element")))
            case MapType(key, value), MapType(key2, value2):
                of_key = self._field(key, key2, where, (*path, "key"))
                return MapType(of_key, self._field(value, value2, where, (*path, "value")))
        found = wider(known, other)
        if found is None:
            raise SchemaMismatchError(
                f"`{'.'.join(path)}` is {known} in {self._home(path)}, but {other} here",
                where=where,
                advice="rewrite one of the files with the other's type, or move it elsewhere",
            )
        if found != known:
            self._homes[path] = where
        return found

    def _home(self, path: Path) -> str:
        """The file that decided this column's type, or that of the nearest one around it."""
        return next((self._homes[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._homes), self._first)

    def _refuse_case(self, known: Path, path: Path, where: str) -> None:
        raise SchemaMismatchError(
            f"the column is `{'.'.join(known)}` in {self._home(known)}, but `{'.'.join(path)}` here: readers that "
            "distinguish case would miss one of them",
            where=where,
            advice="rewrite one of the files with the other's spelling",
        )
