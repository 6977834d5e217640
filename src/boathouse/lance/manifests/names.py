"""Names of manifests, and whether a table's versions are agreed on in an external store."""

from __future__ import annotations

import re
from typing import Final, Literal

from boathouse.errors import InvalidArgumentError
from boathouse.table.context import TableContext

Scheme = Literal["V1", "V2"]
VERSIONS: Final = "_versions"
MAX: Final = (1 << 64) - 1
_NAME: Final = re.compile(r"(\d{1,20})\.manifest")
_STAGED: Final = re.compile(r"(\d{1,20}\.manifest)-.+")
_V2_DIGITS: Final = 20


def manifest_name(version: int, scheme: Scheme) -> str:
    return f"{version}.manifest" if scheme == "V1" else f"{MAX - version:020}.manifest"


def numbered(name: str) -> tuple[int, Scheme] | None:
    """The version that a file name says, and its scheme; None if it is not of the main line."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    digits = found[1]
    if len(digits) == _V2_DIGITS:
        return (MAX - int(digits), "V2") if int(digits) <= MAX else None
    return int(digits), "V1"


def final_name(name: str) -> str | None:
    """The name that the manifest which is staged under this one will get; None for any other file."""
    found = _STAGED.fullmatch(name)
    return None if found is None else found[1]


def store_name(context: TableContext) -> str | None:
    """The external manifest store that the user named, by the address or by an option. Raises InvalidArgumentError for
    two."""
    given, option = context.location.manifests, context.stores.options.get("manifest_store")
    if given is not None and option is not None and given != option:
        raise InvalidArgumentError(
            f"the address names the manifest store {given}, and the option manifest_store {option}",
            where=context.location.uri,
            advice="leave one of them out",
        )
    return option if given is None else given
