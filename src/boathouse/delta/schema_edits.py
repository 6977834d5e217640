"""Columns that are found, added, renamed, moved, dropped in a schemaString: every other part of its JSON stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.delta.actions import MAPPING_MODE, Metadata
from boathouse.delta.schema import field_json, without_mapping
from boathouse.delta.stats.written import column_names
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.table.edits import AddColumn, DropColumn, MoveColumn, RenameColumn, SetComment, SetNullable
from boathouse.types import Field, Schema

_STATS_COLUMNS: Final = "delta.dataSkippingStatsColumns"

Raw = Mapping[str, Any]
Path = tuple[str, ...]


def with_column(raw: Raw, edit: AddColumn, where: str) -> dict[str, Any]:
    """The metaData with one more field. Raises InvalidArgumentError, and UnsupportedFeatureError for a default, which
    rows that are there would have, too."""
    if edit.default is not None:
        raise UnsupportedFeatureError(
            f"column `{edit.name}` is added with a default, which is not offered for Delta tables",
            where=where,
            advice="leave it out, and set it afterwards for the rows to come: t.set_default(name, value), or ALTER "
            "COLUMN ... SET DEFAULT",
        )
    document = json.loads(raw["schemaString"])
    struct = document
    for name in edit.parent:
        struct = next((f["type"] for f in struct["fields"] if f["name"].lower() == name.lower()), None)
        if not isinstance(struct, dict) or struct.get("type") != "struct":
            raise InvalidArgumentError(f"`{'.'.join(edit.parent)}` is not a struct column", where=where)
    path = ".".join((*edit.parent, edit.name))
    if any(f["name"].lower() == edit.name.lower() for f in struct["fields"]):
        raise InvalidArgumentError(f"the column `{path}` already exists", where=where)
    if not edit.nullable:
        raise InvalidArgumentError(f"a new column is null in old rows, so `{path}` cannot be NOT NULL")
    plain = without_mapping(Schema((Field(edit.name, edit.type, doc=edit.comment),))).fields[0]
    struct["fields"].append(field_json(plain, path))
    found = _with_schema(raw, document)
    return found if edit.after is None else moved(found, MoveColumn((*edit.parent, edit.name), edit.after), where)


def renamed(metadata: Metadata, raw: Raw, edit: RenameColumn) -> dict[str, Any]:
    """The metaData with another name for a field; its id and physical name stay. Raises InvalidArgumentError, and
    UnsupportedFeatureError without column mapping."""
    _check_mapped(metadata, edit.path, "renamed")
    document = json.loads(raw["schemaString"])
    fields, found = _found(document, edit.path, metadata.where)
    taken = [f["name"] for f in fields if f is not found and f["name"].lower() == edit.name.lower()]
    if taken or not edit.name:
        why = f"there is a column `{taken[0]}`" if taken else "a column must have a name"
        raise InvalidArgumentError(f"`{'.'.join(edit.path)}` cannot be renamed: {why}", where=metadata.where)
    found["name"] = edit.name
    path = (*edit.path[:-1], edit.name)
    partition = list(raw["partitionColumns"])
    if len(path) == 1:
        partition = [edit.name if n.lower() == edit.path[0].lower() else n for n in partition]
    stats = [path + p[len(path) :] if _below(p, edit.path) else p for p in _stats_columns(raw)]
    return _with_stats_columns({**_with_schema(raw, document), "partitionColumns": partition}, stats)


def dropped(metadata: Metadata, raw: Raw, edit: DropColumn) -> dict[str, Any]:
    """The metaData without a field, whose values stay in the files unread. Raises InvalidArgumentError, and
    UnsupportedFeatureError without column mapping."""
    _check_mapped(metadata, edit.path, "dropped")
    name, where = ".".join(edit.path), metadata.where
    document = json.loads(raw["schemaString"])
    fields, found = _found(document, edit.path, where)
    partition = {n.lower() for n in raw["partitionColumns"]}
    if len(edit.path) == 1 and edit.path[0].lower() in partition:
        raise InvalidArgumentError(
            f"the table is partitioned by `{name}`, so that it cannot be dropped",
            where=where,
            advice="overwrite(rows, overwrite_schema=True, partition_by=...) rewrites the table with other columns",
        )
    fields.remove(found)
    kept = [f for f in fields if f["type"] not in ("void", "null")]
    if not any(len(edit.path) > 1 or f["name"].lower() not in partition for f in kept):
        raise InvalidArgumentError(
            f"`{name}` cannot be dropped: files would have no column{' there' if len(edit.path) > 1 else ''}",
            where=where,
            advice=f"drop `{'.'.join(edit.path[:-1])}`" if len(edit.path) > 1 else "add another column first",
        )
    stats = [p for p in _stats_columns(raw) if not _below(p, edit.path)]
    return _with_stats_columns(_with_schema(raw, document), stats)


def _check_mapped(metadata: Metadata, path: Path, what: str) -> None:
    if metadata.column_mapping == "none":
        raise UnsupportedFeatureError(
            f"column `{'.'.join(path)}` cannot be {what}: the table has no column mapping, so files have its name",
            where=metadata.where,
            advice=f"set the property {MAPPING_MODE} to name first: readers then need reader version 2, but no file is "
            "rewritten; or overwrite(rows, overwrite_schema=True)",
        )


def _found(document: Any, path: Sequence[str], where: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The field at a path, and the fields of its struct. Raises InvalidArgumentError."""
    type: Any = document
    for name in path[:-1]:
        match type:
            case {"type": "struct", "fields": fields}:
                type = next((f["type"] for f in fields if f["name"].lower() == name.lower()), None)
            case {"type": "array", "elementType": inner} if name == "element":
                type = inner
            case {"type": "map"} if name in ("key", "value"):
                type = type[f"{name}Type"]
            case _:
                type = None
    fields = type["fields"] if isinstance(type, dict) and type.get("type") == "struct" else []
    found = next((f for f in fields if f["name"].lower() == path[-1].lower()), None)
    if found is None:
        raise InvalidArgumentError(f"there is no column `{'.'.join(path)}`", where=where)
    return fields, found


def commented(raw: Raw, edit: SetComment, where: str) -> dict[str, Any]:
    """The metaData with another comment of the table, or of a field. Raises InvalidArgumentError."""
    if not edit.path:
        return with_text(raw, "description", edit.comment)
    document = json.loads(raw["schemaString"])
    _, found = _found(document, edit.path, where)
    found["metadata"] = with_text(found.get("metadata") or {}, "comment", edit.comment)
    return _with_schema(raw, document)


def moved(raw: Raw, edit: MoveColumn, where: str) -> dict[str, Any]:
    """The metaData with another order of fields: files are read by name. Raises InvalidArgumentError."""
    document = json.loads(raw["schemaString"])
    fields, found = _found(document, edit.path, where)
    if edit.after:
        _, sibling = _found(document, (*edit.path[:-1], edit.after), where)
        if sibling is not found:
            fields.remove(found)
            fields.insert(fields.index(sibling) + 1, found)
    else:
        fields.remove(found)
        fields.insert(0, found)
    return _with_schema(raw, document)


def nullable(raw: Raw, edit: SetNullable, where: str) -> dict[str, Any]:
    """The metaData with a field that may be null. Raises InvalidArgumentError, and UnsupportedFeatureError for one that
    may not be any more: rows that others add meanwhile could break the promise."""
    document = json.loads(raw["schemaString"])
    _, found = _found(document, edit.path, where)
    if not edit.nullable and found.get("nullable", True):
        name = ".".join(edit.path)
        raise UnsupportedFeatureError(
            f"column `{name}` of a Delta table may be null, and cannot become NOT NULL",
            where=where,
            advice=f"say add_constraint('{edit.path[-1]}_there', '{name} IS NOT NULL'): it refuses nulls from now on",
        )
    found["nullable"] = edit.nullable
    return _with_schema(raw, document)


def with_text(document: Raw, key: str, text: str | None) -> dict[str, Any]:
    """The document with a text; None removes it."""
    kept = {k: v for k, v in document.items() if k != key}
    return kept if text is None else {**kept, key: text}


def nearest(document: Any, path: Path, where: str) -> tuple[dict[str, Any], Path]:
    """The last field of a struct on a path, and the rest of the path: `element`, `key` and `value` below it.

    Raises InvalidArgumentError for a path that leads nowhere.
    """
    held: dict[str, Any] | None = None
    below: Path = ()
    type: Any = document
    for name in path:
        match type:
            case {"type": "struct", "fields": fields}:
                held = next((f for f in fields if f["name"].lower() == name.lower()), None)
                type, below = (None, ()) if held is None else (held["type"], ())
            case {"type": "array"} if name == "element":
                type, below = type["elementType"], (*below, name)
            case {"type": "map"} if name in ("key", "value"):
                type, below = type[f"{name}Type"], (*below, name)
            case _:
                held = None
        if held is None:
            raise InvalidArgumentError(f"there is no column `{'.'.join(path)}`", where=where)
    assert held is not None
    return held, below


def _with_schema(raw: Raw, document: Any) -> dict[str, Any]:
    return {**raw, "schemaString": json.dumps(document, ensure_ascii=False)}


def _stats_columns(raw: Raw) -> list[Path]:
    return column_names(str((raw.get("configuration") or {}).get(_STATS_COLUMNS) or ""))


def _with_stats_columns(raw: Raw, columns: Sequence[Path]) -> dict[str, Any]:
    """`delta.dataSkippingStatsColumns` names columns as they are called now."""
    if list(columns) == _stats_columns(raw):
        return dict(raw)
    text = ",".join(".".join(quote(part) for part in path) for path in columns)
    return {**raw, "configuration": {**raw["configuration"], _STATS_COLUMNS: text}}


def _below(path: Path, above: Path) -> bool:
    return tuple(n.lower() for n in path[: len(above)]) == tuple(n.lower() for n in above)
