"""ALTER TABLE in sql(): branches and tags."""

from __future__ import annotations

from typing import Any

from boathouse.api.sql.columns import nothing
from boathouse.api.sql.tables import Tables
from boathouse.expr.alter_refs import AlterRef


def alter(tables: Tables, s: AlterRef) -> Any:
    """CREATE, REPLACE and DROP of a branch or tag."""
    refs = tables.table(s.table).refs
    ages: dict[str, Any] = {"max_ref_age_ms": s.max_ref_age_ms}
    if s.type == "branch":
        ages |= {"min_snapshots_to_keep": s.min_snapshots_to_keep, "max_snapshot_age_ms": s.max_snapshot_age_ms}
    create = refs.create_branch if s.type == "branch" else refs.create_tag
    replace = refs.replace_branch if s.type == "branch" else refs.replace_tag
    drop = refs.drop_branch if s.type == "branch" else refs.drop_tag
    match s.action:
        case "drop" | "drop-if-exists":
            drop(s.name, if_exists=s.action == "drop-if-exists")
        case "replace":
            replace(s.name, s.version, **ages)
        case _:
            replaces, keeps = s.action == "create-or-replace", s.action == "create-if-absent"
            create(s.name, s.version, or_replace=replaces, if_not_exists=keeps, **ages)
    return nothing(tables)
