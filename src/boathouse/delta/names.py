"""What columns may be called, and what users may not say of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from boathouse.delta.actions import MAPPING_MODE
from boathouse.delta.features.type_changes import CHANGES
from boathouse.delta.schema import FIELD_ID, NESTED_IDS, PHYSICAL_NAME
from boathouse.errors import InvalidArgumentError, SchemaError
from boathouse.types import Field, Schema
from boathouse.types.data_types import children

_REFUSED: Final = frozenset(" ,;{}()\n\t=")
"""Characters that older Parquet readers take for syntax; the reference refuses them where files have these names."""
OF_FILES: Final = frozenset((FIELD_ID, PHYSICAL_NAME, NESTED_IDS, CHANGES))
"""Keys that describe the files of another table, and mean nothing in a new one."""


def check_names(fields: Iterable[Field], above: str, where: str) -> None:
    """Names are not empty, and unique ignoring case at every level. Raises SchemaError."""
    seen: dict[str, str] = {}
    for f in fields:
        path = f"{above}{f.name}"
        if not f.name:
            raise SchemaError(f"a column {f'in `{above[:-1]}` ' if above else ''}has no name", where=where)
        if (other := seen.setdefault(f.name.lower(), path)) is not path:
            raise SchemaError(f"the columns `{other}` and `{path}` differ only in case", where=where)
        check_names(children(f.type), f"{path}.", where)


def check_characters(fields: Iterable[Field], where: str, above: str = "") -> None:
    """Names that files can have, where no column mapping gives them others. Raises SchemaError."""
    for f in fields:
        path = f"{above}{f.name}"
        if not _REFUSED.isdisjoint(f.name):
            found = " ".join(sorted({repr(c) for c in f.name if c in _REFUSED}))
            raise SchemaError(
                f"the name of the column `{path}` contains {found}, which Delta allows with column mapping only",
                where=where,
                advice=f"rename it, or set the property {MAPPING_MODE} to name: readers then need reader version 2",
            )
        check_characters(children(f.type), where, f"{path}.")


def check_own_keys(schema: Schema, where: str) -> None:
    """Metadata that Delta keeps about columns is not given by users. Raises InvalidArgumentError."""
    for path, f in schema.walk():
        for key in f.metadata:
            if key.startswith("delta.") and key not in OF_FILES:
                raise InvalidArgumentError(
                    f"the column `{'.'.join(path)}` has the metadata key {key}, which is Delta's own",
                    where=where,
                    advice="leave it out: such keys are set by what they stand for",
                )
