"""Column mapping: each field of the schema has an id, and a name in files, statistics and partition values that it
keeps when it is renamed (PROTOCOL.md, "Column Mapping").

Everything here edits a metaData action: `raw` is copied, never changed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from boathouse.delta.actions import MAPPING_MODE, Metadata, text_of
from boathouse.delta.features.support import ICEBERG_COMPAT
from boathouse.delta.schema import FIELD_ID, NESTED_IDS, PHYSICAL_NAME
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError

MAX_ID: Final = "delta.columnMapping.maxColumnId"
"""The property with the highest id that a column ever had; it never falls."""
_KEYS: Final = (PHYSICAL_NAME, FIELD_ID, NESTED_IDS)
_NESTED_BY: Final = "delta.enableIcebergCompatV2"
"""The property under which elements of lists, and keys and values of maps, have ids too."""
_NAMES: Final = uuid.UUID("5f0e1e5c-3a56-5d5e-9a51-9f8c4a0d6b1e")

Raw = Mapping[str, Any]
Document = dict[str, Any]
"""The JSON of a schema, type or field."""


def mode_of(properties: Mapping[str, object], where: str) -> str:
    """The mode that the properties of a new table, or an edit, ask for: compatibility with Iceberg needs one.

    Raises InvalidArgumentError.
    """
    asked = properties.get(MAPPING_MODE)
    if asked is None and any(_is_true(properties, key) for key in ICEBERG_COMPAT):
        return "name"
    mode = "none" if asked is None else text_of(asked).strip().lower()
    if mode not in ("none", "name", "id"):
        raise InvalidArgumentError(
            f"{MAPPING_MODE} is {asked!r}", where=where, advice="pass none or name, or for a new table also id"
        )
    return mode


def _is_true(properties: Mapping[str, object], key: str) -> bool:
    return text_of(properties.get(key, "")).strip().lower() == "true"


def walk(type: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Document]]:
    """Every field of the structs in a type, with its path, parents first."""
    match type:
        case {"type": "struct", "fields": fields}:
            for f in fields:
                path = (*above, f["name"])
                yield path, f
                yield from walk(f["type"], path)
        case {"type": "array", "elementType": element}:
            yield from walk(element, (*above, "element"))
        case {"type": "map", "keyType": key, "valueType": value}:
            yield from walk(key, (*above, "key"))
            yield from walk(value, (*above, "value"))


def unmapped(type: Any) -> None:
    """Removes ids and physical names from a type, in place."""
    for _, f in walk(type):
        f["metadata"] = {k: v for k, v in (f.get("metadata") or {}).items() if k not in _KEYS}


def completed(raw: Raw, before: Raw) -> Document:
    """The metaData with an id and a physical name for each field that has none; `before` is what it was made from.

    Names are UUIDs of what is committed upon, not random ones: files are written under them before the commit, by
    another process if a host writes them. A concurrent commit of metadata has the write planned again.
    """
    seed = f"{before.get('id')}\n{before.get('schemaString')}"
    return _assigned(raw, lambda _, id: "col-" + str(uuid.uuid5(_NAMES, f"{seed}\n{id}")))


def enabled(raw: Raw) -> Document:
    """The metaData of a table that had no mapping, with mode `name`: files have the names that columns have now."""
    document = json.loads(raw["schemaString"])
    unmapped(document)
    configuration = {**(raw.get("configuration") or {}), MAPPING_MODE: "name"}
    named = {**raw, "schemaString": _text(document), "configuration": configuration}
    return _assigned(named, lambda f, id: f["name"])


def disabled(raw: Raw) -> Document:
    """The metaData without mapping: files have the names of columns."""
    configuration = dict(raw.get("configuration") or {})
    if text_of(configuration.pop(MAPPING_MODE, "none")).lower() == "none":
        return dict(raw)
    configuration.pop(MAX_ID, None)
    document = json.loads(raw["schemaString"])
    unmapped(document)
    return {**raw, "schemaString": _text(document), "configuration": configuration}


def replaced(raw: Raw, before: Raw) -> Document:
    """The metaData after an overwrite of the schema: a field with the path and type of an earlier one continues it."""
    document, earlier = json.loads(raw["schemaString"]), json.loads(before["schemaString"])
    unmapped(document)
    known = {_folded(path): f for path, f in walk(earlier)}
    for path, f in walk(document):
        found = known.get(_folded(path))
        if found is not None and _same(found["type"], f["type"]):
            kept = {k: v for k, v in (found.get("metadata") or {}).items() if k in _KEYS}
            f["metadata"] = {**f["metadata"], **kept}
    return completed({**raw, "schemaString": _text(document)}, before)


def restored(raw: Raw, head: Metadata) -> Document:
    """The metaData of an older version as a version after `head`: mapping stays, and no id is given out again.

    Raises UnsupportedFeatureError if that version's files have no field ids, but the table's columns are found by id.
    """
    earlier = Metadata.parse(raw, head.where, head.mappable)
    if head.column_mapping == "none" or earlier.column_mapping == head.column_mapping:
        found = dict(raw)
    elif head.column_mapping == "name" and earlier.column_mapping == "none":
        found = enabled(_with_max(raw, _highest(head.raw)))
    else:
        raise _unchangeable(head.column_mapping, earlier.column_mapping, head.where)
    return _with_max(found, _highest(head.raw)) if MAX_ID in (head.raw.get("configuration") or {}) else found


def with_properties(raw: Raw, properties: Mapping[str, str | None], head: Metadata) -> Document:
    """The metaData with the properties; setting the mode to `name` turns mapping on.

    Raises UnsupportedFeatureError for any other change of the mode.
    """
    kept = {**(raw.get("configuration") or {}), **{k: text_of(v) for k, v in properties.items()}}
    found = {**raw, "configuration": {k: v for k, v in kept.items() if properties.get(k, v) is not None}}
    if MAPPING_MODE not in properties:
        numbered = head.column_mapping != "none" and properties.get(_NESTED_BY) is not None
        return completed(found, raw) if numbered else found
    mode = mode_of(properties, head.where)
    if mode == head.column_mapping:
        spelled = {} if properties[MAPPING_MODE] is None else {MAPPING_MODE: mode}
        return {**found, "configuration": {**found["configuration"], **spelled}}
    if (head.column_mapping, mode) != ("none", "name"):
        raise _unchangeable(head.column_mapping, mode, head.where)
    return enabled(found)


def _assigned(raw: Raw, name: Callable[[Document, int], str]) -> Document:
    document, last = json.loads(raw["schemaString"]), _highest(raw)
    for _, f in walk(document):
        metadata = f["metadata"] = dict(f.get("metadata") or {})
        if FIELD_ID not in metadata:
            last += 1
            metadata[FIELD_ID] = last
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = name(f, metadata[FIELD_ID])
    if _is_true(raw.get("configuration") or {}, _NESTED_BY):
        last = _numbered(document, last)
    return _with_max({**raw, "schemaString": _text(document)}, last)


def _numbered(document: Document, last: int) -> int:
    """Gives elements, keys and values an id, kept by the field that has them; the highest id."""
    for _, f in walk(document):
        metadata = f["metadata"]
        before = metadata.pop(NESTED_IDS, None) or {}
        ids = {}
        for path in nested_paths(f["type"], metadata[PHYSICAL_NAME]):
            last = last if path in before else last + 1
            ids[path] = before.get(path, last)
        if ids:
            metadata[NESTED_IDS] = ids
    return last


def nested_paths(type: Any, above: str) -> Iterator[str]:
    """The paths of the elements, keys and values in a type, down to its structs, below the field's physical name."""
    match type:
        case {"type": "array", "elementType": element}:
            yield f"{above}.element"
            yield from nested_paths(element, f"{above}.element")
        case {"type": "map", "keyType": key, "valueType": value}:
            for name, below in (("key", key), ("value", value)):
                yield f"{above}.{name}"
                yield from nested_paths(below, f"{above}.{name}")


def _highest(raw: Raw) -> int:
    """The highest id that the table is known to have used."""
    recorded = str((raw.get("configuration") or {}).get(MAX_ID, ""))
    found = [int(recorded) if recorded.isdigit() else 0]
    for _, f in walk(json.loads(raw["schemaString"])):
        metadata = f.get("metadata") or {}
        nested = metadata.get(NESTED_IDS)
        for id in (metadata.get(FIELD_ID), *(nested.values() if isinstance(nested, dict) else ())):
            found += [id] if isinstance(id, int) else []
    return max(found)


def _with_max(raw: Raw, last: int) -> Document:
    configuration = dict(raw.get("configuration") or {})
    recorded = configuration.get(MAX_ID, "")
    configuration[MAX_ID] = str(max(last, int(recorded) if recorded.isdigit() else 0))
    return {**raw, "configuration": configuration}


def _same(a: Any, b: Any) -> bool:
    """Whether two types are equal but for nullability and metadata."""
    match a, b:
        case {"type": "struct", "fields": one}, {"type": "struct", "fields": other}:
            return len(one) == len(other) and all(
                f["name"] == g["name"] and _same(f["type"], g["type"]) for f, g in zip(one, other)
            )
        case {"type": "array"}, {"type": "array"}:
            return _same(a["elementType"], b["elementType"])
        case {"type": "map"}, {"type": "map"}:
            return _same(a["keyType"], b["keyType"]) and _same(a["valueType"], b["valueType"])
    return bool(a == b)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)


def _text(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False)


def _unchangeable(before: str, after: str, where: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"the column mapping of a table cannot change from {before} to {after}",
        where=where,
        advice=f"{MAPPING_MODE} may be set to name where there is none, and to id only when a table is created; "
        "write the rows into a new table",
    )
