"""View metadata: the JSON document of the view specification, version 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.metadata.schemas import parse_schema
from boathouse.table.view import View, ViewVersion

Json = Mapping[str, Any]
_REQUIRED: Final = {
    "view-uuid": str, "format-version": int, "location": str, "schemas": list, "current-version-id": int,
    "versions": list, "version-log": list,
}  # fmt: skip
_OF_VERSION: Final = {
    "version-id": int, "schema-id": int, "timestamp-ms": int, "summary": dict, "representations": list,
    "default-namespace": list,
}  # fmt: skip


def is_view(document: Json) -> bool:
    """Whether a metadata document is that of a view."""
    return "view-uuid" in document


def parse_view(document: Json, where: str) -> View:
    """A view at its current version. Raises CorruptTableError, UnsupportedFeatureError for another format version."""
    _check("the view's metadata", document, _REQUIRED, where)
    if document["format-version"] != 1:
        raise UnsupportedFeatureError(
            f"Iceberg view format version {document['format-version']} is not offered", where=where
        )
    _with_id(document["versions"], "version-id", document["current-version-id"], where)
    versions = {v.version: v for v in (_version(document, v, where) for v in document["versions"])}
    current = versions[document["current-version-id"]]
    engine = " ".join(current.summary[n] for n in ("engine-name", "engine-version") if n in current.summary)
    return View(
        version=current.version,
        schema=current.schema,
        sql=current.sql,
        location=document["location"],
        default_namespace=current.default_namespace,
        default_catalog=current.default_catalog,
        storage_table=current.storage_table,
        engine=engine or None,
        properties=dict(document.get("properties") or {}),
        versions=tuple(versions[id] for id in sorted(versions)),
        log=tuple(_log_entry(e, where) for e in document["version-log"]),
    )


def _version(document: Json, version: object, where: str) -> ViewVersion:
    if not isinstance(version, dict):
        raise CorruptTableError(f"the view has the version {version!r:.80}", where=where)
    id = version.get("version-id")
    _check(f"version {id} of the view", version, _OF_VERSION, where)
    schema = _with_id(document["schemas"], "schema-id", version["schema-id"], where)
    return ViewVersion(
        version=version["version-id"],
        timestamp_ms=version["timestamp-ms"],
        schema=parse_schema(dict(schema), where),
        sql=_queries(version["representations"], where),
        default_namespace=tuple(str(n) for n in version["default-namespace"]),
        default_catalog=version.get("default-catalog"),
        storage_table=_storage_table(version.get("storage-table"), where),
        summary={str(k): str(v) for k, v in version["summary"].items()},
    )


def _log_entry(entry: object, where: str) -> tuple[int, int]:
    if not isinstance(entry, dict):
        raise CorruptTableError(f"the view's version log has {entry!r:.80}", where=where)
    _check("an entry of the view's version log", entry, {"timestamp-ms": int, "version-id": int}, where)
    return entry["timestamp-ms"], entry["version-id"]


def _check(what: str, found: Json, wanted: Mapping[str, type], where: str) -> None:
    for name, type in wanted.items():
        value = found.get(name)
        if not isinstance(value, type) or (type is int and isinstance(value, bool)):
            problem = f"lacks {name}" if value is None else f"has {name} {value!r:.80}"
            raise CorruptTableError(f"{what} {problem}", where=where)


def _with_id(members: list[Any], name: str, id: int, where: str) -> Json:
    found = next((m for m in members if isinstance(m, dict) and m.get(name) == id), None)
    if found is None:
        raise CorruptTableError(f"the view's metadata has no {name} {id}", where=where)
    return found


def _queries(representations: list[Any], where: str) -> dict[str, str]:
    """The query by dialect; representations of other types than SQL are left out."""
    found: dict[str, str] = {}
    for r in representations:
        if not isinstance(r, dict) or not isinstance(r.get("type"), str):
            raise CorruptTableError("a representation of the view has no type", where=where)
        if r["type"].lower() != "sql":
            continue
        dialect, sql = r.get("dialect"), r.get("sql")
        if not isinstance(dialect, str) or not isinstance(sql, str):
            raise CorruptTableError("a representation of the view lacks its SQL or dialect", where=where)
        if dialect in found:
            raise CorruptTableError(f"the view has two queries in {dialect}", where=where)
        found[dialect] = sql
    return found


def _storage_table(found: object, where: str) -> str | None:
    if found is None:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("namespace"), list) or not found.get("name"):
        raise CorruptTableError(f"the view has storage-table {found!r:.80}", where=where)
    return ".".join(map(str, (*found["namespace"], found["name"])))
