"""What is declared of a new table, or of one that is replaced, and not every format has."""

from __future__ import annotations

from typing import Any

from boathouse.errors import UnsupportedFeatureError


def require_none(edit: object, format: str, where: str, *kinds: str) -> None:
    """Raises UnsupportedFeatureError for what is declared of these kinds, attributes of the edit, which tables of the
    format do not have."""
    for kind in kinds:
        if given := getattr(edit, kind):
            raise _not_of(format, where, kind, given)


def _not_of(format: str, where: str, kind: str, given: Any) -> UnsupportedFeatureError:
    first = "" if isinstance(given, str) else next(iter(given))
    name = first if isinstance(first, str) else ".".join(first)
    what, advice = {
        "identities": (
            f"have no identity columns: `{name}` would have to be filled by whoever writes",
            "leave identity out, or create a Delta table",
        ),
        "generated": (f"have no generated columns, as `{name}` would be", "compute it in the rows that are written"),
        "defaults": (f"have no defaults, as `{name}` would have", "leave the default out"),
        "cluster_by": (
            f"are not clustered by columns, as by `{name}`",
            "partition the table, or sort its rows: t.optimize(zorder_by=[...])",
        ),
        "comment": ("have no comment", "leave it out"),
    }[kind]
    return UnsupportedFeatureError(f"{format} tables {what}", where=where, advice=advice)
