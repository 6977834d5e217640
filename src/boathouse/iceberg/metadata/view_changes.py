"""Changes of view metadata, as updates of the REST catalog's specification, and what they make of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.iceberg.metadata.schemas import fresh_schema, schema_json
from boathouse.iceberg.metadata.versions import MODERN
from boathouse.table.view import ViewDefinition

Json = Mapping[str, Any]
HISTORY: Final = "version.history.num-entries"
DROP_DIALECT: Final = "replace.drop-dialect.allowed"
APPEND_DIALECT: Final = "replace.append-dialect.allowed"
_KEPT: Final = 10
_LAST: Final = -1
"""In an update: what one before it has added."""


def new_version(definition: ViewDefinition, id: int, schema_id: int, now: int, engine: str) -> dict[str, Any]:
    """A version of a view that has this definition. Raises InvalidArgumentError."""
    if not definition.sql:
        raise InvalidArgumentError("the view has no query", advice="pass its SQL, or {dialect: SQL}")
    dialects = [d.lower() for d in definition.sql]
    if len(set(dialects)) < len(dialects):
        raise InvalidArgumentError(
            f"two queries in one dialect ({', '.join(definition.sql)})", advice="pass one of each"
        )
    catalog = {} if definition.default_catalog is None else {"default-catalog": definition.default_catalog}
    return {
        "version-id": id, "timestamp-ms": now, "schema-id": schema_id,
        "summary": {"engine-name": "boathouse", "engine-version": engine},
        "representations": [{"type": "sql", "sql": sql, "dialect": d} for d, sql in definition.sql.items()],
        **catalog, "default-namespace": list(definition.default_namespace),
    }  # fmt: skip


def new_schema(definition: ViewDefinition, id: int) -> dict[str, Any]:
    """The schema with ids of its own. Raises UnsupportedTypeError, naming the column."""
    return schema_json(fresh_schema(definition.schema, MODERN)[0], id)


def new_document(
    definition: ViewDefinition, location: str, properties: Mapping[str, str], uuid: str, now: int, engine: str
) -> dict[str, Any]:
    """The first document of a view. Raises InvalidArgumentError."""
    check_properties(properties)
    return {
        "view-uuid": uuid, "format-version": 1, "location": location, "current-version-id": 1,
        "schemas": [new_schema(definition, 0)], "versions": [new_version(definition, 1, 0, now, engine)],
        "version-log": [{"timestamp-ms": now, "version-id": 1}], "properties": dict(properties),
    }  # fmt: skip


def replacing(document: Json, definition: ViewDefinition, now: int, engine: str) -> list[dict[str, Any]]:
    """A new definition becomes the current one; one that the view has or had is used again.

    Raises InvalidArgumentError if a dialect would be lost, UnsupportedFeatureError for a materialized view.
    """
    current = _current(document)
    if current.get("storage-table") is not None:
        raise UnsupportedFeatureError(
            "a materialized view is not replaced, as its rows would not be those of its query",
            advice="drop it and create the view, or replace it with the engine that keeps its rows",
        )
    updates: list[dict[str, Any]] = []
    schema = new_schema(definition, _next(document["schemas"], "schema-id", 0))
    known = _like(document["schemas"], schema, ("schema-id", "identifier-field-ids"))
    if known is None:
        updates.append({"action": "add-schema", "schema": schema})
    id = schema["schema-id"] if known is None else known["schema-id"]
    version = new_version(definition, _next(document["versions"], "version-id", 1), id, now, engine)
    if _allowed(document, APPEND_DIALECT):
        version["representations"] += _lost(current, version)
    _check_dialects(document, current, version)
    there = _like(document["versions"], version, ("version-id", "timestamp-ms"))
    if there is not None:
        return _made_current(document, int(there["version-id"]))
    added = {**version, "schema-id": _LAST} if known is None else version
    updates.append({"action": "add-view-version", "view-version": added})
    return [*updates, {"action": "set-current-view-version", "view-version-id": _LAST}]


def rolling_back(document: Json, version: int) -> list[dict[str, Any]]:
    """A version that the view has becomes the current one. Raises VersionNotFoundError, InvalidArgumentError."""
    found = next((v for v in document["versions"] if v["version-id"] == version), None)
    if found is None:
        known = ", ".join(str(v["version-id"]) for v in document["versions"])
        raise VersionNotFoundError(f"the view has no version {version}", advice=f"it has {known}")
    _check_dialects(document, _current(document), found)
    return _made_current(document, version)


def setting(properties: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Properties are set; None removes one. Raises InvalidArgumentError."""
    given = {k: v for k, v in properties.items() if v is not None}
    check_properties(given)
    gone = [k for k, v in properties.items() if v is None]
    updates: list[dict[str, Any]] = [{"action": "set-properties", "updates": given}] if given else []
    return [*updates, {"action": "remove-properties", "removals": gone}] if gone else updates


def check_properties(properties: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for settings of views that nobody could obey."""
    kept = properties.get(HISTORY)
    if kept is not None and _number(kept) is None:
        raise InvalidArgumentError(f"the property {HISTORY} would be {kept!r}", advice="set it to a positive number")
    if _is_true(properties, DROP_DIALECT) and _is_true(properties, APPEND_DIALECT):
        raise InvalidArgumentError(f"{DROP_DIALECT} and {APPEND_DIALECT} exclude each other", advice="set one of them")


def applied(document: Json, updates: Iterable[Json], now: int) -> dict[str, Any]:
    """The document after updates. What nothing is known of stays; versions beyond those that the view retains go."""
    found = {**document, "properties": dict(document.get("properties") or {})}
    found |= {name: [*document[name]] for name in ("schemas", "versions", "version-log")}
    added: set[int] = set()
    for update in updates:
        match update["action"]:
            case "add-schema":
                found["schemas"].append(update["schema"])
            case "add-view-version":
                version = dict(update["view-version"])
                if version["schema-id"] == _LAST:
                    version["schema-id"] = found["schemas"][-1]["schema-id"]
                found["versions"].append(version)
                added.add(version["version-id"])
            case "set-current-view-version":
                id = update["view-version-id"]
                id = found["versions"][-1]["version-id"] if id == _LAST else id
                found["current-version-id"] = id
                found["version-log"].append({"timestamp-ms": now, "version-id": id})
            case "set-properties":
                found["properties"].update(update["updates"])
            case "remove-properties":
                for name in update["removals"]:
                    found["properties"].pop(name, None)
    check_properties(found["properties"])
    return _trimmed(found, added)


def _trimmed(document: dict[str, Any], added: set[int]) -> dict[str, Any]:
    """As the reference does: the newest versions stay, and the current one; the log begins after the last entry of a
    version that is gone."""
    current = document["current-version-id"]
    keep = max(len(added | {current}), _number(document["properties"].get(HISTORY, "")) or _KEPT)
    if len(document["versions"]) <= keep:
        return document
    ids = sorted((v["version-id"] for v in document["versions"]), reverse=True)
    kept = {current, *[id for id in ids if id != current][: keep - 1]}
    log: list[Json] = []
    for entry in document["version-log"]:
        log = [*log, entry] if entry["version-id"] in kept else []
    return {**document, "versions": [v for v in document["versions"] if v["version-id"] in kept], "version-log": log}


def _made_current(document: Json, version: int) -> list[dict[str, Any]]:
    if document["current-version-id"] == version:
        return []
    return [{"action": "set-current-view-version", "view-version-id": version}]


def _current(document: Json) -> Json:
    id = document["current-version-id"]
    found = next((v for v in document["versions"] if v["version-id"] == id), None)
    if found is None:
        raise CorruptTableError(f"the view's metadata has no version-id {id}")
    return found


def _check_dialects(document: Json, before: Json, after: Json) -> None:
    lost = [r["dialect"] for r in _lost(before, after)]
    if lost and not _allowed(document, DROP_DIALECT):
        raise InvalidArgumentError(
            f"the view has a query in {', '.join(lost)}, and the new version has none",
            advice=f"pass it too, or set the view's property {DROP_DIALECT} to true",
        )


def _lost(before: Json, after: Json) -> list[Any]:
    """The queries in dialects that the later version lacks."""
    has = {r["dialect"].lower() for r in after["representations"] if r.get("type") == "sql"}
    return [r for r in before["representations"] if r.get("type") == "sql" and r["dialect"].lower() not in has]


def _next(members: Sequence[Json], name: str, first: int) -> int:
    return max((int(m[name]) + 1 for m in members), default=first)


def _like(members: Sequence[Json], wanted: Json, but: Sequence[str]) -> Json | None:
    """The member that is the same but for these fields."""

    def bare(member: Json) -> Json:
        return {k: v for k, v in member.items() if k not in but and v is not None}

    return next((m for m in members if bare(m) == bare(wanted)), None)


def _allowed(document: Json, name: str) -> bool:
    return _is_true(document.get("properties") or {}, name)


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "false").strip().lower() == "true"


def _number(text: str) -> int | None:
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    return found or None
