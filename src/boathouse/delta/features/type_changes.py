"""Type widening: which types a column may change into, and what the schema records of it (PROTOCOL.md, "Type
Widening").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.features.support import supports
from boathouse.delta.schema import parse_type
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError
from boathouse.types import DataType, DateType, DecimalType, Field, FloatType, IntegerType
from boathouse.types.data_types import FLOAT, TIMESTAMP_NTZ

FEATURE: Final = "typeWidening"
PREVIEW: Final = "typeWidening-preview"
CHANGES: Final = "delta.typeChanges"
"""The key of a field's metadata with the changes of its type, and of the lists and maps in it, oldest first."""
_DIGITS: Final = {8: 10, 16: 10, 32: 10, 64: 20}
"""The digits before the point that a decimal needs for an integer of so many bits."""


def widens(old: DataType, new: DataType) -> bool:
    """Whether the protocol lets a column of one primitive type become one of the other."""
    match old, new:
        case (IntegerType(a, True), IntegerType(b, True)) | (FloatType(a), FloatType(b)):
            return b > a
        case (IntegerType(bits, True), FloatType(64)):
            return bits < 64
        case (IntegerType(bits, True), DecimalType(precision, scale)):
            return precision - scale >= _DIGITS[bits]
        case (DecimalType(p, s), DecimalType(q, t)):
            return old != new and q - p >= t - s >= 0
    return isinstance(old, DateType) and new == TIMESTAMP_NTZ


def check_changes(protocol: Protocol, metadata: Metadata) -> None:
    """Raises UnsupportedFeatureError for a change of type in the schema that the protocol does not know."""
    if CHANGES not in str(metadata.raw["schemaString"]) or not records(protocol):
        return
    for path, f in metadata.schema.walk():
        for change in recorded(f, path, metadata.where):
            name = ".".join((*path, *([change["fieldPath"]] if "fieldPath" in change else ())))
            words = f"column `{name}` was {change['fromType']} and became {change['toType']}"
            try:
                known = widens(*(parse_type(change[key], metadata.where) for key in ("fromType", "toType")))
            except BoathouseError:
                known = False
            if not known:
                raise UnsupportedFeatureError(
                    f"{words}: older files cannot be read as that",
                    where=metadata.where,
                    advice="upgrade boathouse, or read the table with the engine that wrote it",
                )


def recorded(f: Field, path: Sequence[str], where: str) -> Iterable[Mapping[str, Any]]:
    found = f.metadata.get(CHANGES, ())
    if not isinstance(found, list | tuple) or not all(
        isinstance(c, Mapping) and "fromType" in c and "toType" in c and isinstance(c.get("fieldPath", ""), str)
        for c in found
    ):
        raise CorruptTableError(f"{CHANGES} of column `{'.'.join(path)}` is {found!r}", where=where)
    return found


def records(protocol: Protocol) -> bool:
    """Whether types of the table may have changed."""
    return supports(protocol, FEATURE) or supports(protocol, PREVIEW)


def was_float(f: Field) -> bool:
    """Whether a column of doubles has older files with 32-bit floats, whose bounds are rounded as such."""
    if f.type == FLOAT or not isinstance(f.type, FloatType):
        return False
    found = f.metadata.get(CHANGES)
    return isinstance(found, list | tuple) and any(
        isinstance(c, Mapping) and c.get("fromType") == "float" and not c.get("fieldPath") for c in found
    )
